"""Embedders turn texts into vectors: the built-in table, or a server that the user configures."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

from ctx.config.resolve import Config

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from ctx.search.static_embedder import StaticEmbedder

    Matrix = NDArray[numpy.float32]

DATA = os.path.join(os.path.dirname(__file__), "data", "static.table")
CHECKSUM = "23ab64c86bfff139e9e78357bdcd6eb0ca12d7bd0ed33663ae786d8aed798d34"
"""The BLAKE3 hash of the table. Another table is another version: their vectors are not comparable.
"""


class Embedder(Protocol):
    """One model. Vectors are comparable if name, version and dimensions are equal."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> "Matrix":
        """A row of length 1 for each text; zeros if no word of the text is known."""


@cache
def default() -> "StaticEmbedder":
    """The built-in table. It is not loaded before this call, and numpy not before it embeds."""
    table = unchecked()
    table.expect(CHECKSUM)
    return table


@cache
def unchecked() -> "StaticEmbedder":
    """The built-in table for vectors that are compared once and not stored."""
    from ctx.search.static_embedder import StaticEmbedder

    return StaticEmbedder(DATA)


def configured_embedder(
    config: Config, environment: Mapping[str, str], patience_s: float | None = None
) -> Embedder | None:
    """The embedder from the settings; None if vectors are disabled.

    A server gets about `patience_s` seconds in total; None: no limit.
    """
    if not config.flag("search.vectors"):
        return None
    if config.choice("search.embedder") == "static":
        return default()
    from ctx.search.embedding_server import EmbeddingServer

    return EmbeddingServer(
        config.text("search.url"),
        config.text("search.model"),
        environment.get(config.text("search.api_key_env"), ""),
        patience_s,
    )
