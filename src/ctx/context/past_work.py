"""The layers of a context that tell what past sessions said.

    ## Where things stand
    - [yesterday] The refresh works; the mobile client still needs it.
    - Next: the same for the mobile client
    ## Rules and corrections
    - Never commit yourself: I review every change first.
    ## Relevant Past Work
    - [bugfix] Fixed test_refresh in auth/service.py: the lock was taken twice

Observations are ranked once, by what they are worth, how recent their session is, whether they are
about files in work, and whether they use names that several sessions use. What the user forbids or
prefers in general does not lose worth with time. Nothing is said twice.

Hooks load this module.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import filterfalse
from sqlite3 import Connection, DatabaseError
from typing import Any, NamedTuple

from ctx import clock, tokens
from ctx.context import hook_queries, layer_rows
from ctx.context.layer_lines import LayerLine, cut, digest, marked, sentence
from ctx.markdown import flat
from ctx.memory import code_anchors, model

_RECENT = 12
"""Observations of so many sessions are candidates."""
_MOST_CANDIDATES = 300
_MOST_RULES = 500
_MOST_ABOUT = 60
_LEAST_ABOUT = 2.5
"""So many of the best are compared with a prompt, and have to be worth this."""
_MOST_FILES = 40
_MOST_FINALS = 2
_MOST_MISSES = 3
_LENGTHS = (400, 240, 140, 80)
_SHORTEST_WORD = 4
_AROUND_WORDS = ".,:;!?()[]{}`'\"*"
_CHANGED = re.compile(r"(?:Added|Modified|Removed|Renamed|Moved) `")
"""How synthesis describes changes to the code."""

_WORTH = {
    "rule": 3_000,
    "correction": 2_500,
    "decision": 2_500,
    "bugfix": 2_000,
    "discovery": 1_600,
    "statement": 1_200,
    "feature": 900,
    "refactor": 500,
}
_OLDEST, _HALF_LIFE = 0.15, 4.0
"""An observation keeps this part of its worth; the rest halves every four sessions."""
_NAME, _MOST_NAMES = 0.4, 2.0
_FILE, _MOST_OF_FILES = 0.5, 2
_REPETITION_FACTOR = 1.5
_SHARED, _REPLACED = 4, 0.4
_QUESTION, _REQUEST = 0.3, 0.5
_ASKS_FOR_WORK = re.compile(
    r"(?:(?:ok|yes|and|so),? )?(?:can|could|would) (?:you|we)\b", re.IGNORECASE
)
"""What was asked for once, and is done since."""
_LEAST = 0.5
_SAID_BY_USER = "Said by the user."
"""What synthesis writes below a decision; lines of the layer of rules do not repeat it."""
_FEWEST_SHARED = 3
"""A single word does not say it all."""


class RankedObservation(NamedTuple):
    score: float
    kind: str
    about: Mapping[str, Any]
    """The metadata of the node."""
    row: Sequence[Any]

    @property
    def said_by(self) -> str:
        return str(self.about.get("said_by", ""))


class PastWork(NamedTuple):
    """The lines of the three layers, each best first."""

    standing: tuple[LayerLine, ...]
    rules: tuple[LayerLine, ...]
    past_work: tuple[LayerLine, ...]
    sessions: frozenset[str]
    """The sessions whose last message or main change is shown."""


def read(
    connections: Sequence[Connection],
    project: str | None,
    session: str,
    most_rule_tokens: int,
    most_tokens: int,
    root: str = "",
) -> PastWork:
    """The layers. Past work gets `most_tokens`, and the tokens that rules leave.

    `root` is the top of the working tree; if it is empty, files are not looked at.
    """
    user = connections[-1]
    summaries = hook_queries.sessions(user, project, session)[:3]
    ranked = _rank_observations(connections, project, session, [row[2] for row in summaries])
    standing, shown = _last_session_state(connections, project, summaries[:1], ranked)
    told = {str(each.about.get("session", "")) for each in ranked if each.row[2] in shown}
    unlike = _without_similar(_without_known_features(ranked), shown)
    candidates = _with_code(user, root, unlike) if root else unlike
    rules, left = _rows_in_budget(connections, filter(is_rule, candidates), most_rule_tokens)
    others, _ = _rows_in_budget(connections, filterfalse(is_rule, candidates), most_tokens + left)
    for each, _ in others:
        if each.about.get("said_as") == "final" or each.kind in ("feature", "refactor"):
            told.add(str(each.about.get("session", "")))
    return PastWork(
        tuple(standing),
        tuple(line for _, line in rules),
        tuple(line for _, line in others),
        frozenset(told),
    )


def _rows_in_budget(
    connections: Sequence[Connection], ranked: Iterable[RankedObservation], most_tokens: int
) -> tuple[list[tuple[RankedObservation, LayerLine]], int]:
    """The best rows that fit with their lines, and the tokens that are left."""
    chosen = []
    misses = 0
    for each in ranked:
        line = line_of(each)
        cost = tokens.estimate(line.texts[0] + "\n")
        if cost <= most_tokens:
            most_tokens -= cost
            chosen.append((each, line))
        elif (misses := misses + 1) == _MOST_MISSES:
            break
    authors = layer_rows.author_prefixes(connections, [each.row[0] for each, _ in chosen])
    return [
        (each, line.with_author(authors.get(each.row[0], ""))) for each, line in chosen
    ], most_tokens


def about(
    connections: Sequence[Connection],
    project: str | None,
    session: str,
    words: Callable[[str], frozenset[str]],
    wanted: frozenset[str],
) -> Iterator[tuple[RankedObservation, LayerLine]]:
    """The observations with their lines, those first that are worth most and share words.

    A prompt does not name all that it is about: what is worth much follows even without.
    """
    summaries = hook_queries.sessions(connections[-1], project, session)[:3]
    ranked = _rank_observations(connections, project, session, [row[2] for row in summaries])

    best = [
        each._replace(score=each.score * (1 + len(words(each.row[2]) & wanted)))
        for each in _without_similar(_without_known_features(ranked)[:_MOST_ABOUT], ())
    ]
    for each in sorted(best, key=lambda each: -each.score):
        if each.score < _LEAST_ABOUT:
            break
        if not layer_rows.is_about_commands(each.row[2]):
            yield each, line_of(each)


def is_rule(each: RankedObservation) -> bool:
    return each.kind in ("rule", "correction") or (
        each.kind == "decision" and each.said_by == "user"
    )


def _rank_observations(
    connections: Sequence[Connection],
    project: str | None,
    session: str,
    summaries: Sequence[str],
) -> list[RankedObservation]:
    """The observations of recent sessions and about files in work, and all rules, best first."""
    recent = hook_queries.latest_sessions(connections[-1], project, session)[:_RECENT]
    in_work = _files_in_work(connections, project, session, summaries)
    rows: dict[str, Sequence[Any]] = {}
    for connection in connections:
        found = hook_queries.observations(connection, recent, in_work, project, _MOST_CANDIDATES)
        rows |= {row[0]: row for row in found}
    for tag in ("kind:rule", "kind:decision"):
        for row in hook_queries.nodes_with_tag(connections, project, tag, _MOST_RULES):
            rows.setdefault(row[0], row)
    for row in layer_rows.shared(connections, "observation", project, session):
        rows.setdefault(row[0], row)
    for node_id in hook_queries.captured_imports(connections[-1], list(rows)):
        del rows[node_id]
    kinds = hook_queries.kinds(connections, list(rows))
    about = {node_id: model.from_json(row[3]) for node_id, row in rows.items()}
    named = {node_id: layer_rows.names(row[2]) for node_id, row in rows.items()}
    used = Counter(
        name
        for name, _ in {
            (name, about[node_id].get("session")) for node_id in rows for name in named[node_id]
        }
    )
    ages = {each: age for age, each in enumerate(recent)}
    replaced = _replaced_nodes(rows.values(), about)
    ranked = []
    for node_id, row in rows.items():
        if node_id not in kinds:
            continue
        each = RankedObservation(0.0, kinds[node_id], about[node_id], row)
        reused = sum(used[name] > 1 for name in named[node_id])
        score = _score(each, ages, set(in_work)) * (1 + min(_MOST_NAMES, _NAME * reused))
        score *= _REPLACED if node_id in replaced and not is_rule(each) else 1
        if score >= _LEAST:
            ranked.append(each._replace(score=score))
    return sorted(ranked, key=lambda each: (-each.score, each.row[0]))


def _score(each: RankedObservation, ages: Mapping[str, int], files: set[str]) -> float:
    about = each.about
    worth = about.get("worth")
    worth = worth if isinstance(worth, int) else _WORTH.get(each.kind, 0)
    sessions = [*layer_rows.texts(about.get("sessions")), str(about.get("session", ""))]
    age = min(ages.get(session, len(ages)) for session in sessions)
    is_lasting = about.get("lasting") is True
    decay = 1.0 if is_lasting else _OLDEST + (1 - _OLDEST) * 0.5 ** (age / _HALF_LIFE)
    shared = len(files & set(layer_rows.texts(about.get("files"))))
    again = _REPETITION_FACTOR if len(set(sessions)) > 1 else 1.0
    is_question = each.row[2].rstrip().endswith("?")
    asks = _QUESTION if is_question else _REQUEST if _ASKS_FOR_WORK.match(each.row[2]) else 1.0
    return worth / 1000 * decay * again * asks * (1 + _FILE * min(shared, _MOST_OF_FILES))


def _replaced_nodes(
    rows: Iterable[Sequence[Any]], about: Mapping[str, Mapping[str, Any]]
) -> set[str]:
    """The nodes about something that a later session made a statement about too."""
    newest_first = sorted(rows, key=lambda row: (row[4], row[0]), reverse=True)
    words = {row[0]: _words(row[2]) for row in newest_first}
    frequency = Counter(word for own in words.values() for word in own)
    common = max(3, len(newest_first) // 8)
    later: dict[str, list[str]] = {}
    replaced = set()
    for row in newest_first:
        node_id, session = row[0], about[row[0]].get("session")
        rare = [word for word in words[node_id] if frequency[word] <= common]
        shared = Counter(other for word in rare for other in later.get(word, ()))
        if any(
            count >= _SHARED and about[other].get("session") != session
            for other, count in shared.items()
        ):
            replaced.add(node_id)
        for word in rare:
            later.setdefault(word, []).append(node_id)
    return replaced


def _without_known_features(ranked: Sequence[RankedObservation]) -> list[RankedObservation]:
    """The rows without changes to the code that the last message of their session tells better."""
    told = {each.about.get("session") for each in ranked if each.about.get("said_as") == "final"}
    return [
        each
        for each in ranked
        if each.kind not in ("feature", "refactor") or each.about.get("session") not in told
    ]


def _without_similar(
    ranked: Iterable[RankedObservation], shown: Iterable[str]
) -> list[RankedObservation]:
    """The rows without those that say nearly the same as a better one."""
    known = [_words(text) for text in shown]
    kept = []
    for each in ranked:
        own = _words(each.row[2].removesuffix(_SAID_BY_USER))
        if not any(layer_rows.is_mostly_in(own, other, _FEWEST_SHARED) for other in known):
            known.append(own)
            kept.append(each)
    return kept


def _with_code(
    user: Connection, root: str, ranked: Sequence[RankedObservation]
) -> list[RankedObservation]:
    """The rows without those about files that are gone. What the user said stays."""
    elsewhere = layer_rows.sessions_elsewhere(user, root, [each.about for each in ranked])
    return [
        each
        for each in ranked
        if each.about.get("session") in elsewhere
        or not code_anchors.can_be_left_out(layer_rows.source(each.row))
        or not code_anchors.are_files_gone(root, each.about)
    ]


# Where things stand


def _last_session_state(
    connections: Sequence[Connection],
    project: str | None,
    last: Sequence[Any],
    ranked: Sequence[RankedObservation],
) -> tuple[list[LayerLine], list[str]]:
    """The end of the last session in its own words, what it left open, and the texts shown."""
    if not last:
        return [], []
    session, seconds, summary = last[0]
    today = clock.day_number(clock.now_ms())
    age = clock.days_ago(today - clock.day_number((seconds or 0) * 1000))
    finals = [
        each
        for each in ranked
        if each.about.get("said_as") == "final" and each.about.get("session") == session
    ]
    lines, shown = [], []
    for each in finals[:_MOST_FINALS]:
        text = flat(each.row[2])
        forms = tuple(f"- [{age}] {cut(text, length)}" for length in _LENGTHS)
        lines.append(_layer_line(each.row, text, forms))
        shown.append(each.row[2])
    for row in hook_queries.valid_nodes(connections, [summary], project):
        if further := layer_rows.next_steps(model.from_json(row[3])):
            if any(further.casefold() in flat(text).casefold() for text in shown):
                continue
            forms = tuple(f"- Next: {cut(further, length)}" for length in _LENGTHS)
            lines.append(_layer_line(row, further, forms))
            shown.append(further)
    return lines, shown


# Rows and lines


def _files_in_work(
    connections: Sequence[Connection], project: str | None, session: str, summaries: Sequence[str]
) -> list[str]:
    try:
        changes = hook_queries.symbol_changes(connections[-1], project, session)
    except DatabaseError:
        # The layer of changed code reports it. Without files, the ranking is only less exact.
        changes = []
    files = dict.fromkeys(row[1] for row in changes)
    for row in hook_queries.valid_nodes(connections, summaries, project):
        files |= dict.fromkeys(layer_rows.texts(model.from_json(row[3]).get("files_edited")))
    return list(files)[:_MOST_FILES]


def line_of(each: RankedObservation) -> LayerLine:
    row = each.row
    title, _, rest = row[2].strip()[: layer_rows.LONGEST_COMPARED].partition("\n")
    title, rest = flat(title), flat(rest)
    if is_rule(each):
        rest = rest.removesuffix(_SAID_BY_USER).rstrip()
    elif _CHANGED.match(rest) and not _CHANGED.match(title):
        # The layer of changed code has the details.
        rest = ""
    is_begun = bool(title) and rest.startswith(title.rstrip("….:"))
    if each.kind in ("rule", "correction", "statement"):
        text = flat(row[2])
    else:
        # A decision is followed by who made it, the others by details.
        begun = sentence(title) if each.kind == "decision" else f"{title.rstrip('.:')}:"
        text = rest if is_begun else f"{begun} {rest}" if title and rest else title or rest
    mark = flat(each.said_by if each.kind == "statement" else each.kind)
    # Without a mark, a text could begin a list, a heading or a code block.
    shown = "" if is_rule(each) and text[:1].isalpha() else f"[{mark}] "
    if each.kind == "statement" or is_rule(each):
        texts = [cut(text, length) for length in _LENGTHS]
    else:
        texts = marked(text, layer_rows.source(row), _LENGTHS)
    return _layer_line(row, text, tuple(f"- {shown}{form}" for form in texts))


def _layer_line(row: Sequence[Any], text: str, forms: tuple[str, ...]) -> LayerLine:
    title = layer_rows.one_line(model.from_json(row[3]).get("title"))
    return LayerLine(
        row[0], layer_rows.label(row), row[5], digest(text), forms, "", title.rstrip("….")
    )


def _words(text: str) -> set[str]:
    words = (
        word.strip(_AROUND_WORDS) for word in text[: layer_rows.LONGEST_COMPARED].lower().split()
    )
    return {word for word in words if len(word) >= _SHORTEST_WORD}
