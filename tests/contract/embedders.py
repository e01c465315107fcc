"""The contract of every embedder: the table and a server."""

import numpy
import pytest

from ctx.search.embedders import Embedder

TEXTS = [
    "users log in with a password",
    "def refresh_token(session): return session.renew()",
    "HTTPServer",
    "更新令牌 トークンを更新する обновить токен",
    "done 🎉👩‍👩‍👧 ok",
    "x" * 5_000,
    "word " * 40_000,
    "broken \ud800 surrogate and \x00 nothing",
]


class EmbedderContract:
    @pytest.fixture
    def embedder(self) -> Embedder:
        raise NotImplementedError

    def test_it_has_a_name_a_version_and_dimensions(self, embedder: Embedder) -> None:
        assert embedder.name
        assert embedder.version
        assert embedder.dimensions > 0

    def test_every_text_gives_a_unit_vector_or_a_zero_vector(self, embedder: Embedder) -> None:
        rows = embedder.embed(TEXTS)
        assert rows.shape == (len(TEXTS), embedder.dimensions)
        assert rows.dtype == numpy.float32
        for length in numpy.linalg.norm(rows, axis=1):
            assert length == 0 or length == pytest.approx(1, abs=1e-4)

    def test_a_sentence_never_gives_a_zero_vector(self, embedder: Embedder) -> None:
        assert embedder.embed(TEXTS[:3]).any(axis=1).all()

    def test_an_empty_text_gives_a_zero_vector(self, embedder: Embedder) -> None:
        assert not embedder.embed(["", " \n\t "]).any()
        assert embedder.embed([]).shape == (0, embedder.dimensions)

    def test_the_same_text_gives_the_same_row(self, embedder: Embedder) -> None:
        assert (embedder.embed(TEXTS) == embedder.embed(TEXTS)).all()

    def test_the_row_of_a_text_does_not_depend_on_the_batch(self, embedder: Embedder) -> None:
        together = embedder.embed(TEXTS * 6)
        for text, row in zip(TEXTS * 6, together, strict=True):
            assert embedder.embed([text])[0] == pytest.approx(row, abs=1e-6)
