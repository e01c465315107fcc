"""The words of files and commit messages, as the index stores them.

A word is a term of `ctx.terms` in one of five fields, stored as a number: its checksum. Two words
may have the same number. That happens to a few hundred of a million words, and affects the ranking
only slightly.
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from itertools import chain
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
    # A word in the path counts once, even if folders repeat it.
    in_path = map(_numbers[PATH].__getitem__, terms.words(_without_ending(path)))
    return _pack(
        [
            _counts(BODY, text),
            dict.fromkeys(chain.from_iterable(in_path), 1),
            _counts(NAMES, " ".join(names)),
        ]
    )


def of_message(subject: str, explanation: str = "") -> WordCounts:
    return _pack([_counts(SUBJECT, subject), _counts(EXPLANATION, explanation)])


def number(field: str, term: str) -> int:
    """The number under which a word is stored."""
    return crc32(f"{field}{term}".encode())


def unpack(packed: bytes) -> tuple["array[int]", bytes]:
    """The numbers of the words, and the counts."""
    count = len(packed) // 5
    numbers = array("I")
    numbers.frombytes(packed[: 4 * count])
    return numbers, packed[4 * count :]


class _Numbers(dict[str, tuple[int, ...]]):
    """A cache of the numbers of the terms of words: texts repeat their words."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __missing__(self, word: str) -> tuple[int, ...]:
        # A single ASCII letter is in every text. A single character of another script may be a
        # word.
        field = self._field
        hashed = tuple(
            [
                crc32((field + term).encode())
                for term in terms.terms_of_word(word)
                if len(term) > 1 or term > "\x7f"
            ]
        )
        if len(word) <= terms.LONGEST:
            if len(self) >= _WORDS_KEPT:
                self.clear()
            self[word] = hashed
        return hashed


_numbers = {field: _Numbers(field) for field in (*FILE_FIELDS, *MESSAGE_FIELDS)}


def _counts(field: str, text: str) -> dict[int, int]:
    """How often each word is in a text, by its number."""
    numbers = _numbers[field]
    times: dict[int, int] = {}
    for word, count in Counter(terms.words(text[:LONGEST_TEXT])).items():
        for hashed in numbers[word]:
            times[hashed] = times.get(hashed, 0) + count
    return times


def _pack(fields: list[dict[int, int]]) -> WordCounts:
    lengths = tuple([sum(times.values()) for times in fields])
    times: dict[int, int] = {}
    for of_field in fields:
        times |= of_field
    if times and max(times.values()) > _MOST_TIMES:
        times = {word: min(count, _MOST_TIMES) for word, count in times.items()}
    rising = sorted(times)
    counts = bytes(map(times.__getitem__, rising))
    return WordCounts(lengths, array("I", rising).tobytes() + counts)


def _without_ending(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    return f"{folder}{slash}{stem or ending}"
