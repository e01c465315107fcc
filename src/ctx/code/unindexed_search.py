"""Search the code without an index, for a question that cannot wait for one.

The files are read until the time is up, those with promising names first, and the words of the
question are counted as plain bytes. Only the best files are parsed. The result is an index like any
other, except that it is in memory and contains only the words of this question, so all code that
reads an index can use it.

`git grep` could count the words too, but it is slower than Python's own search, and takes
minutes on files with very long lines.
"""

import heapq
import math
import os
import re
from array import array
from collections.abc import Callable, Container, Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, disk, terms
from ctx.code import (
    code_tables,
    file_listing,
    file_reader,
    file_roles,
    file_words,
    index_check,
    index_file,
    language_detection,
    postings,
)
from ctx.code.bm25 import Bm25Collection
from ctx.code.code_graph import Follow
from ctx.code.file_listing import ListedFile
from ctx.code.file_reader import FileRecord, FileToRead
from ctx.code.file_roles import BESIDE
from ctx.code.file_words import BODY, NAMES, PATH
from ctx.code.index_check import SourceTree
from ctx.code.lookup import Code
from ctx.code.postings import FILES
from ctx.code.process_pool import LARGE
from ctx.sqlite.connection import closed_on_failure, transaction

SECONDS = 2.0

_NAMING_SHARE = 0.4
"""The share of the time for the words in paths. After it, the other files count as unpromising."""
_READING_SHARE = 0.75
"""The share of the time for counting. The rest is for parsing the best files."""
_MOST_FILES = 1 << 16
_PARSED = 40
_PARSED_ANYWAY = 3
"""The number of files to parse even if the time is up: files without items are hardly an answer."""

_MOST_WORDS = 256
_MOST_NEEDLES = 16
"""The maximum number of words to search for. Each one costs a pass over every file."""
_SAMPLE = 128
_SHORTEST = 3
_LONG = 4
_MOST_TIMES = 255
_PATH_COUNTS = 1.5
_BESIDE_COUNTS = 0.5

# Estimates the number of words in a file that was not split into words. Measured over repositories
# in several languages.
_BYTES_OF_A_WORD = 7
_WORDS_OF_A_NAME = 20

_NOT_YET = "not read yet"


class _Candidate(NamedTuple):
    """A file that may contain the answer."""

    id: int
    path: str
    size: int
    role: int
    called: frozenset[str]
    """The words of the question in its path."""
    length: int
    """The number of words in its path."""
    promise: float


def search(
    place: SourceTree,
    weights: Mapping[str, float],
    seconds: float = SECONDS,
    files: Sequence[ListedFile] | None = None,
) -> Code | None:
    """An index of what can be found within some seconds for weighted terms; None if there are no
    files. Nothing is written to disk. The caller closes it, and passes `files` if it has listed
    them already."""
    is_naming_time = clock.deadline(seconds * _NAMING_SHARE)
    is_reading_time = clock.deadline(seconds * _READING_SHARE)
    is_in_time = clock.deadline(seconds)
    if files is None:
        globs = place.ignore_globs
        files = file_listing.list_files(place.root, place.checkout, globs, is_reading_time).files
    if not files:
        return None
    languages = [language_detection.language_of(file[0]) for file in files]
    candidates = _candidates(files, languages, weights, is_naming_time)
    limits = index_check.limits(place.root, place.max_bytes)
    with closed_on_failure(index_file.in_memory()) as connection:
        with transaction(connection):
            _number(connection, files, languages)
            if candidates:
                counted = _count_words(place.root, candidates, weights, limits, is_reading_time)
                counted.put(connection)
                read: list[tuple[int, FileRecord]] = []
                for position in _best(connection, candidates, weights):
                    if len(read) >= _PARSED_ANYWAY and not is_in_time():
                        break
                    candidate = candidates[position]
                    wanted = FileToRead(candidate.id, candidate.path)
                    read.append((position, file_reader.read(place.root, wanted, limits)))
                _replace(connection, counted, read)
        code_tables.index_backward(connection)
        return Code(connection, place.root, _edge_resolver(connection, place.root))


def _count_words(
    root: str,
    candidates: Sequence[_Candidate],
    weights: Mapping[str, float],
    limits: language_detection.FileLimits,
    is_in_time: Callable[[], bool],
) -> "_FileWords":
    """Count the words in as many files as time permits."""
    counted = _FileWords(candidates, _needles(root, candidates, weights, is_in_time))
    for position, candidate in enumerate(candidates):
        if not is_in_time():
            break
        if not language_detection.unfit_unread(candidate.path, candidate.size, limits):
            counted.count(position, _content(root, candidate.path))
    return counted


def _replace(
    connection: Connection, counted: "_FileWords", read: Sequence[tuple[int, FileRecord]]
) -> None:
    """Replace the counts of some files by their parsed content."""
    postings.clear(connection, FILES)
    counted.forget({position for position, _ in read})
    counted.put(connection)
    for _, record in read:
        if record.state != "gone":
            code_tables.put(connection, record, others=False)


def _number(
    connection: Connection, files: Sequence[ListedFile], languages: Sequence[str | None]
) -> None:
    """Insert every file into the index as one that is still to be read."""
    connection.executemany(
        "INSERT INTO files (id, path, language, size, mtime_ns, ctime_ns, inode, settled, skipped)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)",
        (
            (number, file[0], language, *file[1:], _NOT_YET)
            for number, (file, language) in enumerate(zip(files, languages, strict=True), 1)
        ),
    )


def _candidates(
    files: Sequence[ListedFile],
    languages: Sequence[str | None],
    weights: Mapping[str, float],
    is_in_time: Callable[[], bool],
) -> list[_Candidate]:
    """The files that may be text written by people, those with promising names first, tests
    last."""
    candidates = []
    may_name = _prefilter(weights)
    for number, (file, language) in enumerate(zip(files, languages, strict=True), 1):
        path, size = file[:2]
        if language is None or language in file_reader.DATA or size > file_words.LONGEST_TEXT:
            continue
        called = _NO_WORDS
        length = path.count("/") + path.count("_") + path.count("-") + 1
        if may_name(path) and is_in_time():
            words = set(terms.extract(os.path.splitext(path)[0]))
            called, length = frozenset(words & weights.keys()), len(words)
        promise = sum(weights[term] for term in called)
        role = file_roles.role_of(path)
        if language in file_reader.AROUND:
            role = max(role, file_roles.AUXILIARY)
        candidates.append(_Candidate(number, path, size, role, called, length, promise))
    candidates.sort(
        key=lambda candidate: (candidate.role == BESIDE, -candidate.promise, candidate.id)
    )
    return candidates[:_MOST_FILES]


def _prefilter(weights: Mapping[str, float]) -> Callable[[str], bool]:
    """Whether a path may contain one of these words. Splitting a path into words takes ten times as
    long, and few paths contain a word of the question."""
    beginnings = {terms.stem_prefix(term) for term in weights if term.isascii()}
    pattern = re.compile("|".join(map(re.escape, sorted(beginnings))) or r"(?!)")

    def may_name(path: str) -> bool:
        # A word may be written with separators.
        joined = path.replace("_", "").replace("-", "").lower()
        return not path.isascii() or pattern.search(joined) is not None

    return may_name


_NO_WORDS: frozenset[str] = frozenset()


class _Needle(NamedTuple):
    """A word of the question, as it is searched in a file."""

    term: str
    bytes: bytes
    share: float
    """The share of files that contain it, estimated from a sample."""


def _needles(
    root: str,
    candidates: Sequence[_Candidate],
    weights: Mapping[str, float],
    is_in_time: Callable[[], bool],
) -> list[_Needle]:
    """The words of the question, the most informative first: high weight and few files."""
    heaviest = sorted(weights, key=lambda term: -weights[term])[:_MOST_WORDS]
    needles = {term: _word_prefix(term).encode() for term in heaviest}
    having = dict.fromkeys(heaviest, 0)
    looked_at = 0
    for candidate in candidates[:: len(candidates) // _SAMPLE + 1]:
        if not is_in_time():
            break
        looked_at += 1
        content = _content(root, candidate.path)
        for term, needle in needles.items():
            if needle in content:
                having[term] += 1

    def worth(term: str) -> float:
        rare = math.log((looked_at + 1) / (having[term] + 0.5))
        # A short word is part of many others.
        return weights[term] * rare * (len(term) >= _SHORTEST or term > "\x7f")

    return [
        _Needle(term, needles[term], having[term] / max(looked_at, 1))
        for term in sorted(heaviest, key=worth, reverse=True)
    ]


def _word_prefix(term: str) -> str:
    """The common prefix of all forms of a word: `entity`, `entities`."""
    return term.removesuffix("y") if len(term) > _LONG else term


def _content(root: str, path: str) -> bytes:
    """A file with ASCII letters in lower case; empty if it is not text."""
    try:
        content = disk.read_plain(os.path.join(root, path), file_words.LONGEST_TEXT)
    except OSError:
        return b""
    return b"" if content.find(b"\0", 0, language_detection.HEAD) >= 0 else content.lower()


class _FileWords:
    """Which files contain which words of the question."""

    def __init__(self, candidates: Sequence[_Candidate], needles: Sequence[_Needle]) -> None:
        self._candidates = candidates
        self._having: dict[int, tuple[array[int], bytearray]] = {}
        first, others = needles[:_MOST_NEEDLES], needles[_MOST_NEEDLES:]
        self._needles = [(needle.bytes, *self._entry(BODY, needle.term)) for needle in first]
        for needle in others:
            # It is not counted, but its rarity must be known.
            positions, times = self._entry(BODY, needle.term)
            positions.extend(range(round(needle.share * len(candidates))))
            times.extend(bytes(len(positions)))
        for position, candidate in enumerate(candidates):
            for term in candidate.called:
                positions, times = self._entry(PATH, term)
                positions.append(position)
                times.append(1)

    def _entry(self, field: str, term: str) -> tuple["array[int]", bytearray]:
        """The files that contain a word, and the counts."""
        return self._having.setdefault(file_words.number(field, term), (array("H"), bytearray()))

    def count(self, position: int, content: bytes) -> None:
        for needle, positions, counts in self._needles:
            if times := content.count(needle):
                positions.append(position)
                counts.append(min(times, _MOST_TIMES))

    def forget(self, positions: Container[int]) -> None:
        """Remove the counts of some files."""
        for word, (old, times) in self._having.items():
            kept = [place for place, position in enumerate(old) if position not in positions]
            if len(kept) < len(old):
                left = array("H", [old[place] for place in kept])
                self._having[word] = left, bytearray(times[place] for place in kept)

    def put(self, connection: Connection) -> None:
        """Write the counts in the format of the index."""
        sizes = [candidate.size // _BYTES_OF_A_WORD for candidate in self._candidates]
        lengths = {
            BODY: sizes,
            PATH: [candidate.length for candidate in self._candidates],
            NAMES: [size // _WORDS_OF_A_NAME for size in sizes],
        }
        postings.put_segment(
            connection,
            FILES,
            [candidate.id for candidate in self._candidates],
            bytes(candidate.role for candidate in self._candidates),
            [lengths[field] for field in file_words.FILE_FIELDS],
            self._having,
        )


def _best(
    connection: Connection, candidates: Sequence[_Candidate], weights: Mapping[str, float]
) -> list[int]:
    """The positions of the files that are worth parsing."""
    fields = {BODY: 1.0, PATH: _PATH_COUNTS}
    # There is one segment with all files.
    ((_, totals, _),) = Bm25Collection(connection, FILES).scores(fields, weights)
    scores = [
        # A grammar may take very long for a large file.
        0.0
        if candidate.size >= LARGE
        else total * (_BESIDE_COUNTS if candidate.role == BESIDE else 1)
        for candidate, total in zip(candidates, totals, strict=True)
    ]
    best = heapq.nlargest(_PARSED, range(len(scores)), key=scores.__getitem__)
    return [position for position in best if scores[position]]


def _edge_resolver(connection: Connection, root: str) -> Follow:
    def follow(files: Sequence[int]) -> None:
        from ctx.code.resolve.resolver import Resolver

        resolver = Resolver(connection, root)
        for file_id in files:
            code_tables.put_edges(connection, resolver.resolve(file_id))

    return follow
