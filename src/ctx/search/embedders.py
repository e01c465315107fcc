"""What turns texts into vectors: the table that comes with ctx, or a server that a user named."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from ctx.config.resolve import Config

    Matrix = NDArray[numpy.float32]

DATA = os.path.join(os.path.dirname(__file__), "data", "static.table")
CHECKSUM = "23ab64c86bfff139e9e78357bdcd6eb0ca12d7bd0ed33663ae786d8aed798d34"
"""BLAKE3 of the table. Another table is another version: vectors of the two do not compare."""


class Embedder(Protocol):
    """One model. Vectors compare if its name, its version and its dimensions are the same."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> "Matrix":
        """A row for each text, of length 1; zeros for a text in which it knows nothing."""


@cache
def default() -> Embedder:
    """The table. Neither it nor numpy is loaded before this is called."""
    from ctx.search.static_embedder import StaticEmbedder

    return StaticEmbedder(DATA, CHECKSUM)


def configured(
    config: "Config", environment: Mapping[str, str], patience_s: float | None = None
) -> Embedder | None:
    """The embedder that a user chose; None where vectors are not wanted.

    A server is asked for about as long as `patience_s` in all; None: for as long as it takes.
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
