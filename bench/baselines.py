"""Baselines for localisation: files ranked for a task by grep, by BM25, and by a tuned BM25.

They see every source file of a commit, including tests. The strongest splits identifiers, adds the
words of the path, and ranks tests, documentation and examples last.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

GREP, WORDS, CAREFUL = "grep", "BM25", "BM25, split, path, tests last"
NAMES = (GREP, WORDS, CAREFUL)

_SUFFIXES = frozenset(
    ".rs .py .pyx .pyi .go .js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .java .c .h .cc .cpp .hpp .rb"
    " .php .cs .kt".split()
)
_BESIDE = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|testdata|fixtures|e2e|benches|benchmarks?|examples?"
    r"|playground|docs?|docs_src|doc_src_code|integration|vendor|third_party|node_modules)(?:/|$)"
    r"|(?:^|/)(?:test_[^/]*|[^/]*_tests?|tests?|conftest)\.[a-z]+$"
    r"|\.(?:test|spec|bench|d)\.[cm]?[jt]sx?$"
    r"|(?-i:[a-z.](?:Tests?|Specs)/|step_definitions\b|Test\.java$|Tests?\.(?:cs|kt|php)$|Spec\.kt$|_spec\.rb$)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]{3,}")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_LONGEST_WORD = 60
_LONGEST_FILE = 400_000
_LONGEST_TASK = 6_000
_MOST_TIMES = 3
_K1, _B = 1.2, 0.75
_STOP = frozenset(
    """
a an and are as at be been but by can cannot could did do does doing for from had has have how i if
in into is it its just me more most my no nor not of off on once only or other our out over own same
should so some such than that the their them then there these they this those through to too under
until up use used using very was we were what when where which while who why will with would you
your also e.g i.e etc via now new one two get got make makes made instead rather like see since
because however
""".split()
)


def is_source(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in _SUFFIXES


def is_beside(path: str) -> bool:
    """Whether it is a test, documentation, an example, or third-party code."""
    return bool(_BESIDE.search(path))


class Document(NamedTuple):
    """The counts of the task words in a file."""

    words: Mapping[str, int]
    words_total: int
    parts: Mapping[str, int]
    parts_total: int


class Ranker:
    """The files of one repository. Contents are cached by hash: most files stay the same."""

    def __init__(self, tasks: Iterable[str]) -> None:
        self._wanted: set[str] = set()
        for task in tasks:
            self._wanted.update(_parts(task))
        self._documents: dict[str, Document] = {}

    def rank(
        self, task: str, files: Mapping[str, str], read: Callable[[str], bytes]
    ) -> dict[str, list[str]]:
        """The files by each method, the best first; `files` maps each path to its hash."""
        paths = sorted(files)
        documents = [self._document(files[path], path, read) for path in paths]
        task = task[:_LONGEST_TASK]
        words = Counter(word for word in _words(task) if word not in _STOP)
        parts = Counter(part for part in _parts(task) if part not in _STOP)
        by_word = _bm25([(each.words, each.words_total) for each in documents], words)
        by_part = _bm25([(each.parts, each.parts_total) for each in documents], parts)
        own = [dict.fromkeys(_path_parts(path), 1) for path in paths]
        by_path = _bm25([(each, len(each)) for each in own], parts)
        both = [text + path for text, path in zip(by_part, by_path, strict=True)]
        return {
            GREP: _sorted(paths, [_word_overlap(each, words) for each in documents]),
            WORDS: _sorted(paths, by_word),
            CAREFUL: sorted(_sorted(paths, both), key=is_beside),
        }

    def _document(self, hash: str, path: str, read: Callable[[str], bytes]) -> Document:
        known = self._documents.get(hash)
        if known is None:
            text = read(path)[:_LONGEST_FILE].decode("utf-8", "replace")
            words, parts = _words(text), _parts(text)
            known = Document(self._of_use(words), len(words), self._of_use(parts), len(parts))
            self._documents[hash] = known
        return known

    def _of_use(self, words: Iterable[str]) -> Mapping[str, int]:
        return Counter(filter(self._wanted.__contains__, words))


def _word_overlap(document: Document, words: Mapping[str, int]) -> float:
    """How many of the words occur in it; then how often."""
    times = [document.words.get(word, 0) for word in words]
    return sum(map(bool, times)) + min(sum(times), 99_999) / 100_000


def _bm25(
    documents: Sequence[tuple[Mapping[str, int], int]], asked: Mapping[str, int]
) -> list[float]:
    count = len(documents)
    average = sum(length for _, length in documents) / max(count, 1) or 1.0
    scores = [0.0] * count
    for term, times in asked.items():
        holding = [(place, d[term]) for place, (d, _) in enumerate(documents) if term in d]
        rarity = math.log(1 + (count - len(holding) + 0.5) / (len(holding) + 0.5))
        for place, there in holding:
            room = _K1 * (1 - _B + _B * documents[place][1] / average)
            scores[place] += min(times, _MOST_TIMES) * rarity * there * (_K1 + 1) / (there + room)
    return scores


def _sorted(paths: Sequence[str], scores: Sequence[float]) -> list[str]:
    order = sorted(range(len(paths)), key=lambda place: (-scores[place], paths[place]))
    return [paths[place] for place in order]


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text) if len(word) > 1]


def _parts(text: str) -> list[str]:
    """The words, and the parts of compound words."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if len(word) > _LONGEST_WORD:
            continue
        lower = word.lower()
        if len(lower) > 1:
            found.append(lower)
        if "_" in word or not (lower == word or word[1:].islower()):
            pieces = (piece.lower() for piece in _PART.findall(word))
            found += [piece for piece in pieces if len(piece) > 1 and piece != lower]
    return found


def _path_parts(path: str) -> list[str]:
    return _parts(re.sub(r"[/.-]", " ", os.path.splitext(path)[0]))
