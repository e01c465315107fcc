"""The static table: a vector for each of some thirty thousand words and pieces of words.

The vector of a text is the weighted sum of its words, so no model runs: it takes a lookup, an
addition, and a tenth of a millisecond. The table knows that `login` is near `authenticate`, but it
ignores word order. `scripts/embeddings` builds it; see
docs/decisions/0013-static-embeddings-instead-of-a-model.md.

The file begins with one line of JSON with the lengths of its parts: the words, one per line, then a
scale for each (which includes the word's weight), then the rows as signed bytes.
"""

import json
import math
import re
from collections.abc import Sequence
from functools import cached_property
from mmap import ACCESS_READ, mmap
from struct import Struct
from typing import TYPE_CHECKING

from ctx import disk, terms
from ctx.errors import IndexCorrupt

if TYPE_CHECKING:
    from ctx.search.embedders import Matrix

CONTINUES = "##"
"""The prefix of a piece that does not begin a word."""

_OPENING = 30
"""In pieces. A text states its topic first: at this position a word counts a quarter."""
_LONGEST_TEXT = 16_384
"""The number of characters that are read. The rest would hardly change the vector."""
_LONGEST_WORD = 64
_REMEMBERED = 1 << 16
_WORD = re.compile(r"\w+")
_SCALE = Struct("<f")


class StaticEmbedder:
    """An embedder that adds up the vectors of words."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            with disk.explain_errors("reading the table of vectors"), open(path, "rb") as file:
                self._data = data = mmap(file.fileno(), 0, access=ACCESS_READ)
            end_of_head = data.find(b"\n") + 1
            head = json.loads(data[:end_of_head])
            self.name: str = head["name"]
            self.dimensions: int = head["dimensions"]
            end_of_words = end_of_head + head["words"]
            pieces = data[end_of_head:end_of_words].decode("ascii").splitlines()
            self._count = len(pieces)
            self._scales_at = end_of_words
            self._rows_at = end_of_words + 4 * len(pieces)
            is_whole = self._rows_at + self._count * self.dimensions == len(data)
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged() from error
        if not is_whole:
            raise self._damaged()
        self._vocabulary = PieceVocabulary(pieces)

    @cached_property
    def checksum(self) -> str:
        """The BLAKE3 hash of the table. It takes longer than embedding a few texts."""
        from blake3 import blake3

        return blake3(self._data).hexdigest()

    @property
    def version(self) -> str:
        return self.checksum[:16]

    def expect(self, checksum: str) -> None:
        """Refuse any other table."""
        if self.checksum != checksum:
            raise self._damaged()

    def _damaged(self) -> IndexCorrupt:
        return IndexCorrupt(
            f"The embedding table {self._path} is damaged.",
            hint="Install ctx again; until then, `ctx config set search.vectors off`.",
        )

    def embed(self, texts: Sequence[str]) -> "Matrix":
        import numpy

        scales = numpy.frombuffer(self._data, "<f4", self._count, self._scales_at)
        size = self._count * self.dimensions
        every = numpy.frombuffer(self._data, numpy.int8, size, self._rows_at)
        every = every.reshape(self._count, self.dimensions)
        vectors = numpy.zeros((len(texts), self.dimensions), numpy.float32)
        for vector, text in zip(vectors, texts, strict=True):
            used = self._vocabulary.weights(text)
            if used:
                rows = numpy.fromiter(used, numpy.intp, len(used))
                weights = numpy.fromiter(used.values(), numpy.float32, len(used))
                vector += (weights * scales[rows]) @ every[rows].astype(numpy.float32)
                vector /= max(float(numpy.linalg.norm(vector)), 1e-12)
        return vectors

    def embed_one(self, text: str) -> list[float]:
        """The vector of a short text, without numpy, which takes longer to load."""
        layout = Struct(f"{self.dimensions}b")
        vector = [0.0] * self.dimensions
        for row, weight in self._vocabulary.weights(text).items():
            (scale,) = _SCALE.unpack_from(self._data, self._scales_at + 4 * row)
            factor = weight * scale
            values = layout.unpack_from(self._data, self._rows_at + self.dimensions * row)
            vector = [sum + factor * value for sum, value in zip(vector, values, strict=True)]
        length = max(math.hypot(*vector), 1e-12)
        return [value / length for value in vector]


class PieceVocabulary:
    """The pieces that have a row, and how a text is split into them."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._rows = dict(zip(pieces, range(len(pieces)), strict=True))
        self._known: dict[str, tuple[int, ...]] = {}

    def weights(self, text: str) -> dict[int, float]:
        """The distinct rows of a text, each with the square root of the number of uses of its
        piece."""
        used: dict[int, float] = {}
        for place, row in enumerate(self.rows(text[:_LONGEST_TEXT])):
            used[row] = used.get(row, 0.0) + (1 + place / _OPENING) ** -2
        return {row: math.sqrt(use) for row, use in used.items()}

    def rows(self, text: str) -> list[int]:
        """The rows of a text's pieces in reading order, with repetitions."""
        rows: list[int] = []
        for word in words(text):
            known = self._known.get(word)
            rows += self._of_word(word) if known is None else known
        return rows

    def _of_word(self, word: str) -> tuple[int, ...]:
        rows = tuple(row for part in parts(word) for row in self._of_part(part))
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[word] = rows
        return rows

    def _of_part(self, part: str) -> list[int]:
        """The rows of the longest known pieces, from left to right; empty if one is missing,
        because half a word means something else."""
        rows: list[int] = []
        begin, prefix = 0, ""
        while begin < len(part):
            for end in range(len(part), begin, -1):
                row = self._rows.get(prefix + part[begin:end])
                if row is not None:
                    rows.append(row)
                    begin, prefix = end, CONTINUES
                    break
            else:
                return []
        return rows


def words(text: str) -> list[str]:
    """The words between separators. Identifiers stay whole."""
    return _WORD.findall(text)


def parts(word: str) -> list[str]:
    """The words that an identifier consists of, in lower case. A very long one is data and is
    skipped."""
    return terms.split_identifier(word) if len(word) <= _LONGEST_WORD else []


def pack_table(name: str, pieces: Sequence[str], rows: "Matrix") -> bytes:
    """The bytes of a table file, with each row rounded to signed bytes."""
    import numpy

    scales = numpy.maximum(numpy.abs(rows).max(axis=1), 1e-12) / 127
    rounded = numpy.rint(rows / scales[:, None]).astype(numpy.int8)
    listed = "".join(f"{piece}\n" for piece in pieces).encode("ascii")
    head = {"name": name, "rows": len(pieces), "dimensions": rows.shape[1], "words": len(listed)}
    start = json.dumps(head).encode("ascii") + b"\n"
    return b"".join((start, listed, scales.astype("<f4").tobytes(), rounded.tobytes()))
