"""The parts of the matching files to read.

Files are ranked as a whole, but an agent reads items: a function, a class, a few lines at the top.
An item matches by the words of the task it contains, more for its name than for its body, and more
for words that few items have. What the task names ranks above what only resembles it. A formula
turns the match, the rank of the file, and the size of both into the probability that the task
changes the item. Its weights come from a logistic regression on the commits of public repositories.
The weights of the file were then raised by hand, which keeps the first chunks in the right files.
`scripts/ranking/functions.py` measures the result.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ctx import terms
from ctx.code.lookup import Code
from ctx.code.vocabulary import CONTAINERS, KINDS, SLOTS, item_id
from ctx.packs import file_excerpts
from ctx.packs.file_excerpts import FileText, FileTexts
from ctx.packs.file_ranking import RankedFile
from ctx.packs.task_words import TaskWords, lines_with

_LONGEST_TEXT = 400_000
_MOST_ITEMS = 2_000
_FUNCTIONS = ("function", "method")
_MOST_OF_A_FILE = 60
"""The maximum number of parts of one file."""

# The results hardly depend on these values; only their order matters.
_IN_NAME = 3.0
_IN_SIGNATURE = 1.0
_SATURATION = 1.2
_AROUND = 0.5
_UNKNOWN = 0.35
"""The score of the first lines of a file without any word of the task. It was ranked for its path
or its history."""
SHORT = 350
"""A file of at most this many tokens is included whole."""

# The log odds that a task changes an item.
_ODDS = -9.2
_ODDS_BY_FILE = 6.0
"""By the weight of its file, from 0 to 1."""
_ODDS_BY_ITEMS = -0.5
"""By the logarithm of the number of functions in its file."""
_ODDS_BY_FIT = 3.3
_ODDS_BY_NAME = 1.8
"""By the share of its name that the task contains."""
_ODDS_BY_LINES = 0.4
"""By the logarithm of its length."""
_ODDS_OF_CONTAINER = -0.5
_ODDS_OF_OTHERS = -2.6
"""For constants, macros and the like."""


class RankedRow(NamedTuple):
    """The fields of an item that the choice needs."""

    id: int
    parent: int | None
    kind: str
    name: str
    line: int
    end_line: int
    signature: str


Rows = Mapping[int, RankedRow]
"""The items of a file by id, in file order; the file itself is the first."""


class FilePart(NamedTuple):
    """A part of a file as it is shown."""

    id: int
    """The id of the item, or of the file for the whole file."""
    path: str
    hash: str
    name: str
    """The name inside the file, such as `Client.connect`; empty for the file."""
    kind: str
    first_line: int
    last_line: int
    snippet: str
    signature: str


class ItemQuery(NamedTuple):
    """What to look for in files."""

    weights: Mapping[str, float]
    named: Mapping[int, float]
    """Items that the task names, with confidence."""
    quoted: Sequence[str]
    most_tokens: int
    """The limit for one part."""
    file_weights: Mapping[int, float] = {}
    """The weight of each file, compared with the best."""


class SearchedFile(NamedTuple):
    """A file with the matches in it."""

    file: RankedFile
    text: FileText
    rows: Rows
    lines: Mapping[int, Mapping[str, int]]
    """The words of the task by line."""
    numbers: Sequence[int]
    """These lines in order."""
    owners: Mapping[int, int]
    """The innermost item around each of these lines."""


class ItemCandidate(NamedTuple):
    """A part of a file that may be shown. Its text is not built yet."""

    searched: SearchedFile
    row: RankedRow | None
    """None: the whole file."""
    probability: float
    """The probability that the task changes it."""
    covered: frozenset[str]
    """Words of the task in it."""

    @property
    def id(self) -> int:
        return self.row.id if self.row else item_id(self.searched.file.id, 0)


def candidates(
    code: Code, texts: FileTexts, files: Sequence[RankedFile], query: ItemQuery
) -> list[ItemCandidate]:
    """The parts of files that may be shown, grouped by file, the best first."""
    words = TaskWords(query.weights)
    searched = [result for file in files if (result := _search_file(code, texts, file, words))]
    matching = [_matching_items(file, words) for file in searched]
    rarity = _rarity(matching)
    scores = [
        _scores(file, own, rarity, query) for file, own in zip(searched, matching, strict=True)
    ]
    best = max((max(of_file.values(), default=0.0) for of_file in scores), default=0.0) or 1.0
    return [
        candidate
        for file, own, of_items in zip(searched, matching, scores, strict=True)
        for candidate in _choose_candidates(file, own, of_items, query, best)
    ]


def _rows_of(code: Code, file_id: int) -> Rows:
    """The items of a file in file order, the file itself first."""
    rows = code.connection.execute(
        "SELECT start, -stop, id, parent, kind, name, line, end_line, signature FROM items"
        " WHERE id BETWEEN ? AND ?",
        (item_id(file_id, 0), item_id(file_id, (1 << SLOTS) - 1)),
    ).fetchall()
    # They are nearly sorted, so this is faster than sorting in SQL.
    rows.sort()
    return {
        id: RankedRow(id, parent, KINDS[kind], name, line, end_line, signature)
        for _, _, id, parent, kind, name, line, end_line, signature in rows[:_MOST_ITEMS]
    }


def _search_file(
    code: Code, texts: FileTexts, file: RankedFile, words: TaskWords
) -> SearchedFile | None:
    text = texts.file_text(file.id)
    if text is None:
        return None
    rows = _rows_of(code, file.id) if text.is_indexed else {}
    lines = lines_with(text.content[:_LONGEST_TEXT], words)
    numbers = sorted(lines)
    return SearchedFile(file, text, rows, lines, numbers, _owners(rows, file.id, numbers))


def _owners(items: Rows, file_id: int, lines: Sequence[int]) -> dict[int, int]:
    """The innermost item around each line. Items are in file order, outer items first."""
    rows = list(items.values())
    whole = item_id(file_id, 0)
    owners: dict[int, int] = {}
    around: list[RankedRow] = []
    place = 0
    for line in lines:
        while place < len(rows) and rows[place].line <= line:
            while around and around[-1].end_line < rows[place].line:
                around.pop()
            around.append(rows[place])
            place += 1
        while around and around[-1].end_line < line:
            around.pop()
        owners[line] = whole
        for row in reversed(around):
            if row.end_line >= line and row.parent:
                owners[line] = row.id
                break
    return owners


class _Matches(NamedTuple):
    """The terms of the task in the items of a file."""

    counts: dict[int, dict[str, float]]
    """How often each item contains each term. Matches in a name count more than in a body."""
    names: dict[int, float]
    """The share of each name that consists of terms."""


def _matching_items(searched: SearchedFile, words: TaskWords) -> _Matches:
    by_item: dict[int, dict[str, float]] = {}
    names: dict[int, float] = {}
    for line, here in searched.lines.items():
        own = by_item.setdefault(searched.owners[line], {})
        for term, times in here.items():
            own[term] = own.get(term, 0.0) + times
    rows = [row for row in searched.rows.values() if row.parent is not None]
    # Join all texts into one, two lines each: searching one text is faster than searching many.
    texts = [text.replace("\n", " ") for row in rows for text in (row.name, row.signature)]
    for line, here in lines_with("\n".join(texts), words).items():
        place, is_signature = divmod(line - 1, 2)
        row = rows[place]
        own = by_item.setdefault(row.id, {})
        for term in here:
            own[term] = own.get(term, 0.0) + (_IN_SIGNATURE if is_signature else _IN_NAME)
        if not is_signature:
            names[row.id] = len(here) / max(len(here), len(set(terms.extract(row.name))))
    return _Matches(by_item, names)


def _rarity(matching: Sequence[_Matches]) -> dict[str, float]:
    """How rare each term is among these items."""
    having: dict[str, int] = {}
    total = 1
    for of_file in matching:
        total += len(of_file.counts)
        for own in of_file.counts.values():
            for term in own:
                having[term] = having.get(term, 0) + 1
    return {
        term: math.log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in having.items()
    }


def _scores(
    searched: SearchedFile, matching: _Matches, rarity: Mapping[str, float], query: ItemQuery
) -> dict[int, float]:
    rows = searched.rows
    lengths = [row.end_line - row.line + 1 for row in rows.values() if row.kind not in CONTAINERS]
    mean = max(10.0, sum(lengths) / len(lengths)) if lengths else 20.0
    scores: dict[int, float] = {}
    for id, own in matching.counts.items():
        row = rows.get(id)
        is_function = row is not None and row.kind not in CONTAINERS
        length = row.end_line - row.line + 1 if row and is_function else mean
        norm = _SATURATION * (0.5 + 0.5 * min(length / mean, 4.0))
        score = sum(
            query.weights[term] * rarity[term] * times / (times + norm)
            for term, times in own.items()
        )
        # The lines of a file outside of its items are mostly imports.
        scores[id] = score if row is None or row.parent is not None else score * _AROUND
    strongest = max(scores.values(), default=1.0)
    for id, sure in query.named.items():
        if id in rows:
            scores[id] = scores.get(id, 0.0) + strongest * sure
    for row in rows.values() if query.quoted else ():
        if any(quote in row.signature or quote == row.name for quote in query.quoted):
            scores[row.id] = scores.get(row.id, 0.0) + strongest * 0.5
    return scores


def _choose_candidates(
    searched: SearchedFile,
    matching: _Matches,
    scores: Mapping[int, float],
    query: ItemQuery,
    best: float,
) -> Iterator[ItemCandidate]:
    text, rows = searched.text, searched.rows
    functions = sum([row.kind not in CONTAINERS for row in rows.values()])
    of_file = (
        _ODDS
        + _ODDS_BY_FILE * query.file_weights.get(searched.file.id, 0.0)
        + _ODDS_BY_ITEMS * math.log1p(functions)
    )
    if not rows or text.size * 2 / 7 <= min(SHORT, query.most_tokens):
        fit = max(max(scores.values(), default=0.0) / best, _UNKNOWN)
        covered = frozenset(term for own in matching.counts.values() for term in own)
        yield ItemCandidate(searched, None, _probability(of_file + _ODDS_BY_FIT * fit), covered)
        return
    odds = {
        id: of_file
        + _ODDS_BY_FIT * score / best
        + _ODDS_BY_NAME * matching.names.get(id, 0.0)
        + _odds_of_kind(rows[id])
        for id, score in scores.items()
        if id in rows and score > 0
    }
    if not odds:
        first = next(iter(rows.values()))
        odds[first.id] = of_file + _ODDS_BY_FIT * _UNKNOWN + _odds_of_kind(first)
    for id in sorted(odds, key=lambda id: (-odds[id], id))[:_MOST_OF_A_FILE]:
        covered = frozenset(matching.counts.get(id, ()))
        yield ItemCandidate(searched, rows[id], _probability(odds[id]), covered)


def _odds_of_kind(row: RankedRow) -> float:
    if row.kind in CONTAINERS:
        return _ODDS_OF_CONTAINER
    by_lines = _ODDS_BY_LINES * math.log(row.end_line - row.line + 1)
    return by_lines if row.kind in _FUNCTIONS else by_lines + _ODDS_OF_OTHERS


def _probability(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


def candidate_part(candidate: ItemCandidate, query: ItemQuery) -> FilePart:
    """The text of a candidate, within a number of tokens."""
    searched, row, most = candidate.searched, candidate.row, query.most_tokens
    text = searched.text
    first, last = (row.line, row.end_line) if row else (1, len(text.lines))
    inside = slice(bisect_left(searched.numbers, first), bisect_right(searched.numbers, last))
    matters = {
        line: sum(map(query.weights.__getitem__, searched.lines[line]))
        for line in searched.numbers[inside]
    }
    if row is not None:
        return item_part(text, searched.rows, row, matters, most)
    every = range(1, len(text.lines) + 1)
    snippet = file_excerpts.join_lines(text, file_excerpts.fit_lines(text, every, matters, most))
    place = 1, max(len(text.lines), 1)
    return FilePart(candidate.id, text.path, text.hash, "", "module", *place, snippet, "")


def item_part(
    text: FileText, rows: Rows, row: RankedRow, matters: Mapping[int, float], most: int
) -> FilePart:
    """The text of an item, within a number of tokens."""
    first, last, snippet = _item_excerpt(text, rows, row, matters, most)
    name = _name_inside(rows, row)
    shape = row.kind, first, last, snippet, row.signature
    return FilePart(row.id, text.path, text.hash, name, *shape)


def _item_excerpt(
    text: FileText, rows: Rows, row: RankedRow, matters: Mapping[int, float], most: int
) -> tuple[int, int, str]:
    """An item with its surroundings: the lines that enclose it, and the comments above it."""
    above: list[int] = []
    parent = rows.get(row.parent) if row.parent is not None else None
    while parent is not None and parent.parent is not None and len(above) < 5:
        above.insert(0, parent.line)
        parent = rows.get(parent.parent)
    first = file_excerpts.first_line_with_comments(text, row.line, above[-1] + 1 if above else 1)
    last = min(row.end_line, len(text.lines))
    numbers: Sequence[int] = range(first, last + 1)
    if row.kind in CONTAINERS and file_excerpts.cost(text, numbers) > min(most, SHORT):
        numbers = _outline(rows, row, numbers)
        most = min(most, SHORT)
    left = max(most - file_excerpts.cost(text, above), 40)
    kept = file_excerpts.fit_lines(text, numbers, matters, left)
    head = [number for number in above if number < first]
    return first, last, file_excerpts.join_lines(text, [*head, *kept])


def _outline(rows: Rows, container: RankedRow, numbers: Sequence[int]) -> list[int]:
    """The lines of a class or file without the bodies of its items."""
    hidden: set[int] = set()
    for row in rows.values():
        inside = container.line <= row.line and row.end_line <= container.end_line
        if row.id == container.id or not inside or row.kind in CONTAINERS:
            continue
        if row.end_line - row.line > 2:
            hidden.update(range(row.line + 1, row.end_line + 1))
    return [number for number in numbers if number not in hidden]


def _name_inside(rows: Rows, row: RankedRow) -> str:
    """The name of an item inside its file."""
    names: list[str] = []
    at: RankedRow | None = row
    while at is not None and at.parent is not None and len(names) < 20:
        names.append(at.name)
        at = rows.get(at.parent)
    return ".".join(reversed(names))
