"""A first look at the code, for a question that cannot wait until there is an index.

The files are read in the order of their promise, by what they are called, until the time is up, and
in each the words of the question are counted as plain bytes: no more is known of it then. Only of
the best is read what is in them. All of that is put into an index like any other, except that it is
in memory and holds the words of this question alone, so whoever reads an index can read this one.

`git grep` would count the words too. It is slower than Python's own search, and in files with very
long lines it takes minutes.
"""

import heapq
import math
import os
from array import array
from collections.abc import Callable, Container, Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, disk, terms
from ctx.code import index_file, kinds, listing, postings, reading, roles, store, words
from ctx.code.asked import Asked
from ctx.code.build import Place
from ctx.code.crew import LARGE
from ctx.code.edges import Follow
from ctx.code.listing import Listed
from ctx.code.lookup import Code
from ctx.code.reading import Read, Wanted
from ctx.code.roles import BESIDE
from ctx.code.segments import FILES
from ctx.code.words import BODY, NAMES, PATH
from ctx.sqlite.connection import closed_on_failure, transaction

SECONDS = 2.0

_READING_SHARE = 0.75
"""Of the time. The rest is for looking into the best files."""
_MOST_FILES = 1 << 16
_PARSED = 40
_PARSED_ANYWAY = 3
"""However late it is: files alone, without anything in them, are hardly an answer."""

_MOST_WORDS = 256
_MOST_NEEDLES = 16
"""Each costs a passage through every file."""
_SAMPLE = 128
_SHORTEST = 3
_LONG = 4
_MOST_TIMES = 255
_PATH_COUNTS = 1.5
_BESIDE_COUNTS = 0.5

# What makes the length of a file that was not read comparable with that of one that was. Measured
# over repositories in several languages.
_BYTES_OF_A_WORD = 7
_WORDS_OF_A_NAME = 20

_NOT_YET = "not read yet"


class _Candidate(NamedTuple):
    """A file that may have the answer."""

    id: int
    path: str
    size: int
    role: int
    called: frozenset[str]
    """The words of the question that are in its path."""
    length: int
    """How many words its path has."""
    promise: float


def scan(
    place: Place,
    weights: Mapping[str, float],
    seconds: float = SECONDS,
    files: Sequence[Listed] | None = None,
) -> Code | None:
    """An index of what can be found out in some seconds about weighted terms; None where there are
    no files. Nothing is written to disk. To be closed. Who has listed the `files` hands them in."""
    is_reading_time = clock.deadline(seconds * _READING_SHARE)
    is_in_time = clock.deadline(seconds)
    if files is None:
        globs = place.ignore_globs
        files = listing.belonging(place.root, place.checkout, globs, is_reading_time).files
    if not files:
        return None
    languages = [kinds.language_of(each[0]) for each in files]
    candidates = _candidates(files, languages, weights)
    limits = reading.limits(place.root, place.max_bytes)
    with closed_on_failure(index_file.in_memory()) as connection:
        with transaction(connection):
            _number(connection, files, languages)
            if candidates:
                found = _counted(place.root, candidates, weights, limits, is_reading_time)
                found.put(connection)
                read: list[tuple[int, Read]] = []
                for position in _best(connection, candidates, weights):
                    if len(read) >= _PARSED_ANYWAY and not is_in_time():
                        break
                    each = candidates[position]
                    wanted = Wanted(each.id, each.path)
                    read.append((position, reading.read(place.root, wanted, limits)))
                _replace(connection, found, read)
        store.index_backward(connection)
        return Code(connection, place.root, _following(connection, place.root))


def _counted(
    root: str,
    candidates: Sequence[_Candidate],
    weights: Mapping[str, float],
    limits: kinds.Limits,
    is_in_time: Callable[[], bool],
) -> "_Found":
    """What is in as many files as there is time for."""
    found = _Found(candidates, _needles(root, candidates, weights, is_in_time))
    for position, each in enumerate(candidates):
        if not is_in_time():
            break
        if not kinds.unfit_unread(each.path, each.size, limits):
            found.count(position, _content(root, each.path))
    return found


def _replace(connection: Connection, found: "_Found", read: Sequence[tuple[int, Read]]) -> None:
    """Put what is really in some files in place of what was counted in them."""
    postings.clear(connection, FILES)
    found.forget({position for position, _ in read})
    found.put(connection)
    for _, each in read:
        if each.state != "gone":
            store.put(connection, each, others=False)


def _number(
    connection: Connection, files: Sequence[Listed], languages: Sequence[str | None]
) -> None:
    """Every file is in the index, as one that waits to be read."""
    connection.executemany(
        "INSERT INTO files (id, path, language, size, mtime_ns, ctime_ns, inode, settled, skipped)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)",
        (
            (number, each[0], language, *each[1:], _NOT_YET)
            for number, (each, language) in enumerate(zip(files, languages, strict=True), 1)
        ),
    )


def _candidates(
    files: Sequence[Listed], languages: Sequence[str | None], weights: Mapping[str, float]
) -> list[_Candidate]:
    """The files that may be text of people, those with promising names first, tests last."""
    found = []
    for number, (each, language) in enumerate(zip(files, languages, strict=True), 1):
        path, size = each[:2]
        if language is None or language in reading.DATA or size > words.LONGEST_TEXT:
            continue
        said = set(terms.extract(os.path.splitext(path)[0]))
        called = frozenset(said & weights.keys())
        promise = sum(weights[term] for term in called)
        role = roles.of(path)
        if language in reading.AROUND:
            role = max(role, roles.AUXILIARY)
        found.append(_Candidate(number, path, size, role, called, len(said), promise))
    found.sort(key=lambda each: (each.role == BESIDE, -each.promise, each.id))
    return found[:_MOST_FILES]


class _Needle(NamedTuple):
    """A word of the question, as it is looked for in a file."""

    term: str
    bytes: bytes
    share: float
    """Of files that have it, as far as a sample tells."""


def _needles(
    root: str,
    candidates: Sequence[_Candidate],
    weights: Mapping[str, float],
    is_in_time: Callable[[], bool],
) -> list[_Needle]:
    """The words of the question, first those that tell most: heavy ones that few files have."""
    heaviest = sorted(weights, key=lambda term: -weights[term])[:_MOST_WORDS]
    needles = {term: _beginning(term).encode() for term in heaviest}
    having = dict.fromkeys(heaviest, 0)
    looked_at = 0
    for each in candidates[:: len(candidates) // _SAMPLE + 1]:
        if not is_in_time():
            break
        looked_at += 1
        content = _content(root, each.path)
        for term, needle in needles.items():
            if needle in content:
                having[term] += 1

    def worth(term: str) -> float:
        rare = math.log((looked_at + 1) / (having[term] + 0.5))
        # What is short is a part of many words.
        return weights[term] * rare * (len(term) >= _SHORTEST or term > "\x7f")

    return [
        _Needle(term, needles[term], having[term] / max(looked_at, 1))
        for term in sorted(heaviest, key=worth, reverse=True)
    ]


def _beginning(term: str) -> str:
    """What all forms of a word have in common: `entity`, `entities`."""
    return term.removesuffix("y") if len(term) > _LONG else term


def _content(root: str, path: str) -> bytes:
    """A file in small letters, as far as they are ASCII; nothing of one that is no text."""
    try:
        content = disk.read_plain(os.path.join(root, path), words.LONGEST_TEXT)
    except OSError:
        return b""
    return b"" if content.find(b"\0", 0, kinds.HEAD) >= 0 else content.lower()


class _Found:
    """Which words of the question are in which files."""

    def __init__(self, candidates: Sequence[_Candidate], needles: Sequence[_Needle]) -> None:
        self._candidates = candidates
        self._having: dict[int, tuple[array[int], bytearray]] = {}
        first, others = needles[:_MOST_NEEDLES], needles[_MOST_NEEDLES:]
        self._needles = [(each.bytes, *self._entry(BODY, each.term)) for each in first]
        for each in others:
            # It is not counted. But how rare it is must be known of every word.
            positions, times = self._entry(BODY, each.term)
            positions.extend(range(round(each.share * len(candidates))))
            times.extend(bytes(len(positions)))
        for position, candidate in enumerate(candidates):
            for term in candidate.called:
                positions, times = self._entry(PATH, term)
                positions.append(position)
                times.append(1)

    def _entry(self, field: str, term: str) -> tuple["array[int]", bytearray]:
        """Who has a word, and how often."""
        return self._having.setdefault(words.number(field, term), (array("H"), bytearray()))

    def count(self, position: int, content: bytes) -> None:
        for needle, positions, counts in self._needles:
            if times := content.count(needle):
                positions.append(position)
                counts.append(min(times, _MOST_TIMES))

    def forget(self, positions: Container[int]) -> None:
        """Take out what was found in some files."""
        for word, (old, times) in self._having.items():
            kept = [place for place, position in enumerate(old) if position not in positions]
            if len(kept) < len(old):
                left = array("H", [old[place] for place in kept])
                self._having[word] = left, bytearray(times[place] for place in kept)

    def put(self, connection: Connection) -> None:
        """As the index keeps it."""
        sizes = [each.size // _BYTES_OF_A_WORD for each in self._candidates]
        lengths = {
            BODY: sizes,
            PATH: [each.length for each in self._candidates],
            NAMES: [size // _WORDS_OF_A_NAME for size in sizes],
        }
        postings.put_segment(
            connection,
            FILES,
            [each.id for each in self._candidates],
            bytes(each.role for each in self._candidates),
            [lengths[field] for field in words.FILE_FIELDS],
            self._having,
        )


def _best(
    connection: Connection, candidates: Sequence[_Candidate], weights: Mapping[str, float]
) -> list[int]:
    """Where the files are that are worth looking into, as far as it can be told from outside."""
    fields = {BODY: 1.0, PATH: _PATH_COUNTS}
    # There is one segment, of all of them.
    ((_, totals, _),) = Asked(connection, FILES).scores(fields, weights)
    scores = [
        # Nobody knows how long a grammar takes for a large one.
        0.0 if each.size >= LARGE else total * (_BESIDE_COUNTS if each.role == BESIDE else 1)
        for each, total in zip(candidates, totals, strict=True)
    ]
    best = heapq.nlargest(_PARSED, range(len(scores)), key=scores.__getitem__)
    return [position for position in best if scores[position]]


def _following(connection: Connection, root: str) -> Follow:
    def follow(files: Sequence[int]) -> None:
        from ctx.code.resolve.resolving import Resolver

        resolver = Resolver(connection, root)
        for file_id in files:
            store.put_edges(connection, resolver.resolve(file_id))

    return follow
