"""The words of files and commit messages, as the index stores them.

A word is a term of `ctx.terms` in one of five fields, stored as a number: its checksum. Two words
may have the same number. That happens to a few hundred of a million words, and affects the ranking
only slightly.
"""

from array import array
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from zlib import crc32

from ctx import terms

BODY, PATH, NAMES, SUBJECT, EXPLANATION = "", "/", "#", ":", ";"
"""The content of a file, its path, the names it defines; the first line of a commit message, and
the rest of it. A field is the character before its words."""

FILE_FIELDS = (BODY, PATH, NAMES)
MESSAGE_FIELDS = (SUBJECT, EXPLANATION)

LONGEST_TEXT = 400_000
"""The maximum number of characters that are read."""

_MOST_TIMES = 255
_WORDS_KEPT = 1 << 17


class WordCounts(NamedTuple):
    """The words of one text."""

    lengths: tuple[int, ...]
    """The number of words in each field, with repetitions."""
    packed: bytes
    """The sorted numbers of the words, four bytes each; then the count of each, one byte each."""


def of_file(path: str, text: str, names: Iterable[str]) -> WordCounts:
    """The words of a file, and the names it defines."""
    return _pack(
        [
            (BODY, terms.counts(text[:LONGEST_TEXT])),
            # A word in the path counts once, even if folders repeat it.
            (PATH, dict.fromkeys(terms.extract(_without_ending(path)), 1)),
            (NAMES, terms.counts(" ".join(names))),
        ]
    )


def of_message(subject: str, explanation: str = "") -> WordCounts:
    return _pack(
        [
            (SUBJECT, terms.counts(subject[:LONGEST_TEXT])),
            (EXPLANATION, terms.counts(explanation[:LONGEST_TEXT])),
        ]
    )


def number(field: str, term: str) -> int:
    """The number under which a word is stored."""
    return crc32(f"{field}{term}".encode())


def unpack(packed: bytes) -> tuple["array[int]", bytes]:
    """The numbers of the words, and the counts."""
    count = len(packed) // 5
    numbers = array("I")
    numbers.frombytes(packed[: 4 * count])
    return numbers, packed[4 * count :]


class _Numbers(dict[str, int]):
    """A cache of the numbers of words: texts repeat their words."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __missing__(self, term: str) -> int:
        if len(self) >= _WORDS_KEPT:
            self.clear()
        hashed = self[term] = number(self._field, term)
        return hashed


_numbers = {field: _Numbers(field) for field in (*FILE_FIELDS, *MESSAGE_FIELDS)}


def _pack(fields: list[tuple[str, Mapping[str, int]]]) -> WordCounts:
    times: dict[int, int] = {}
    lengths = []
    for field, counted in fields:
        numbers = _numbers[field]
        length = 0
        for term, count in counted.items():
            # A single ASCII letter is in every text. A single character of another script may be a
            # word.
            if len(term) > 1 or term > "\x7f":
                times[numbers[term]] = count
                length += count
        lengths.append(length)
    rising = sorted(times)
    counts = bytes([min(times[word], _MOST_TIMES) for word in rising])
    return WordCounts(tuple(lengths), array("I", rising).tobytes() + counts)


def _without_ending(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    return f"{folder}{slash}{stem or ending}"
