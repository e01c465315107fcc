"""Score texts by BM25."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import compress
from sqlite3 import Connection
from typing import NamedTuple

from ctx.code import file_words
from ctx.code.postings import FIELDS, Segment, segments_of, texts_of

_MOST_WORDS = 256
"""The maximum number of words of a question: those with the highest weights."""

_TELLING, _MANY = 0.2, 2_000
"""A word that four fifths of many texts contain says nothing, and costs most."""
_SATURATION = 1.2
_LENGTH_COUNTS = 0.75


class SegmentScores(NamedTuple):
    """The scores of the texts of a segment: the weighted sum of the BM25 score of each field.

    A rare word counts more than a common one, each repetition less than the one before, and a word
    in a short text more than in a long one.
    """

    segment: Segment
    totals: list[float]
    """By the position of the text."""
    fields: dict[str, list[float]]
    """What each field adds, if it contains any of the words. The values of outdated texts are
    meaningless."""


class _Occurrences(NamedTuple):
    """The texts of a segment that contain a word."""

    weight: float
    """The weight of the word: higher if it is rare."""
    positions: Sequence[int]
    times: Sequence[int]


_BASE = _SATURATION * (1 - _LENGTH_COUNTS)
_BASES = [times + _BASE for times in range(256)]


class Bm25Collection:
    """One collection, opened for queries. Use it within one snapshot of the database."""

    def __init__(self, connection: Connection, collection: int) -> None:
        self._connection = connection
        self._collection = collection
        self.segments = segments_of(connection, collection)
        self.total = sum(len(segment.ids) - len(segment.outdated) for segment in self.segments)
        """The number of current texts."""
        self._outdated = [frozenset(segment.outdated) for segment in self.segments]

    def scores(
        self, fields: Mapping[str, float], weights: Mapping[str, float]
    ) -> list[SegmentScores]:
        """The scores for weighted terms in weighted fields."""
        heaviest = sorted(weights, key=lambda term: -weights[term])[:_MOST_WORDS]
        scored = [SegmentScores(segment, [0.0] * len(segment.ids), {}) for segment in self.segments]
        for field, factor in fields.items():
            place = FIELDS[self._collection].index(field)
            mean = self._mean_length(place)
            if not mean:
                continue
            slope = _SATURATION * _LENGTH_COUNTS / mean
            factors = {file_words.number(field, term): factor * weights[term] for term in heaviest}
            for number, having in self._word_occurrences(factors).items():
                segment, totals, by_field = scored[number]
                own = _bm25_sums(having, segment.lengths[place], slope)
                if by_field:
                    for position in compress(range(len(own)), own):
                        totals[position] += own[position]
                else:
                    totals[:] = own
                by_field[field] = own
        for segment, totals, _ in scored:
            for position in segment.outdated:
                totals[position] = 0.0
        return scored

    def _word_occurrences(self, factors: Mapping[int, float]) -> dict[int, list[_Occurrences]]:
        """The occurrences of weighted words, by segment."""
        having: dict[int, list[_Occurrences]] = {}
        for word, occurrences in self._texts(factors).items():
            times_found = sum(
                self._count_current_texts(number, positions)
                for number, (positions, _) in occurrences.items()
            )
            rare = math.log(1 + (self.total - times_found + 0.5) / (times_found + 0.5))
            if rare < _TELLING and self.total > _MANY:
                continue
            weight = factors[word] * rare * (1 + _SATURATION)
            for number, (positions, times) in occurrences.items():
                having.setdefault(number, []).append(_Occurrences(weight, positions, times))
        return having

    def _count_current_texts(self, number: int, positions: Sequence[int]) -> int:
        """How many of these texts are current."""
        outdated = self._outdated[number]
        if not outdated:
            return len(positions)
        return sum(position not in outdated for position in positions)

    def _mean_length(self, place: int) -> float:
        if not self.total:
            return 0.0
        words_in_all = 0
        for segment in self.segments:
            lengths = segment.lengths[place]
            words_in_all += segment.words[place] - sum(
                lengths[position] for position in segment.outdated
            )
        return words_in_all / self.total

    def _texts(
        self, factors: Mapping[int, float]
    ) -> dict[int, dict[int, tuple[Sequence[int], Sequence[int]]]]:
        """For each word and segment, the texts that contain it and the counts."""
        by_word: dict[int, dict[int, tuple[Sequence[int], Sequence[int]]]] = {}
        place_of = {segment.id: place for place, segment in enumerate(self.segments) if segment.id}
        for word, segment, texts in self._connection.execute(
            "SELECT word, segment, texts FROM postings"
            " WHERE word IN (SELECT value FROM json_each(?))",
            (str(list(factors)),),
        ):
            if segment in place_of:
                by_word.setdefault(word, {})[place_of[segment]] = texts_of(texts)
        if self.segments and not self.segments[0].id:
            for word, having in self._loose_occurrences(factors).items():
                by_word.setdefault(word, {})[0] = having
        return by_word

    def _loose_occurrences(
        self, factors: Mapping[int, float]
    ) -> dict[int, tuple["array[int]", bytearray]]:
        loose: dict[int, tuple[array[int], bytearray]] = {}
        rows = self._connection.execute(
            "SELECT words FROM loose WHERE collection = ? ORDER BY id", (self._collection,)
        )
        for position, (packed,) in enumerate(rows):
            numbers, times = file_words.unpack(packed)
            for word in factors:
                place = bisect_left(numbers, word)
                if place < len(numbers) and numbers[place] == word:
                    positions, every = loose.setdefault(word, (array("I"), bytearray()))
                    positions.append(position)
                    every.append(times[place])
        return loose


def _bm25_sums(having: Sequence[_Occurrences], lengths: Sequence[int], slope: float) -> list[float]:
    """What words add to the scores of the texts of a segment, given the lengths of the texts;
    `slope` is the penalty per unit of length."""
    sums = [0.0] * len(lengths)
    for weight, positions, every in having:
        weighted = [weight * times for times in range(max(every, default=0) + 1)]
        for position, times in zip(positions, every, strict=True):
            sums[position] += weighted[times] / (_BASES[times] + slope * lengths[position])
    return sums
