"""The words of files and of commit messages, as the index of the code keeps them.

A word is a term of `ctx.terms` in one of five fields, and kept as a number: their checksum.
Two words may have the same one; of a million words that happens to a few hundred, and costs a text
that has one of them a little of its place.
"""

from array import array
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from zlib import crc32

from ctx import terms

BODY, PATH, NAMES, SUBJECT, EXPLANATION = "", "/", "#", ":", ";"
"""What is said in a file, what it is called, what it defines; the first line of a commit message,
and the rest of it. A field is the character before its words."""

FILE_FIELDS = (BODY, PATH, NAMES)
MESSAGE_FIELDS = (SUBJECT, EXPLANATION)

LONGEST_TEXT = 400_000
"""So many characters of a text are looked at."""

_MOST_TIMES = 255
_WORDS_KEPT = 1 << 17


class Words(NamedTuple):
    """The words of one text."""

    lengths: tuple[int, ...]
    """How many there are in each field, with repetitions."""
    packed: bytes
    """The numbers of the words, rising, four bytes each; then how often each is there, a byte."""


def of_file(path: str, text: str, names: Iterable[str]) -> Words:
    """The words of a file, with the names of what it defines."""
    return _pack(
        [
            (BODY, terms.counts(text[:LONGEST_TEXT])),
            # What a file is called is said once, however often a folder repeats it.
            (PATH, dict.fromkeys(terms.extract(_without_ending(path)), 1)),
            (NAMES, terms.counts(" ".join(names))),
        ]
    )


def of_message(subject: str, explanation: str = "") -> Words:
    return _pack(
        [
            (SUBJECT, terms.counts(subject[:LONGEST_TEXT])),
            (EXPLANATION, terms.counts(explanation[:LONGEST_TEXT])),
        ]
    )


def number(field: str, term: str) -> int:
    """By what a word is kept."""
    return crc32(f"{field}{term}".encode())


def unpack(packed: bytes) -> tuple["array[int]", bytes]:
    """The numbers of the words, and how often each is there."""
    count = len(packed) // 5
    numbers = array("I")
    numbers.frombytes(packed[: 4 * count])
    return numbers, packed[4 * count :]


class _Numbers(dict[str, int]):
    """The number of each word met so far: texts repeat their words."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __missing__(self, term: str) -> int:
        if len(self) >= _WORDS_KEPT:
            self.clear()
        found = self[term] = number(self._field, term)
        return found


_numbers = {field: _Numbers(field) for field in (*FILE_FIELDS, *MESSAGE_FIELDS)}


def _pack(fields: list[tuple[str, Mapping[str, int]]]) -> Words:
    times: dict[int, int] = {}
    lengths = []
    for field, counted in fields:
        numbers = _numbers[field]
        length = 0
        for term, count in counted.items():
            # A single letter is in every text. What is written with one character is not.
            if len(term) > 1 or term > "\x7f":
                times[numbers[term]] = count
                length += count
        lengths.append(length)
    rising = sorted(times)
    counts = bytes([min(times[each], _MOST_TIMES) for each in rising])
    return Words(tuple(lengths), array("I", rising).tobytes() + counts)


def _without_ending(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    return f"{folder}{slash}{stem or ending}"
