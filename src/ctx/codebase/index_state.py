"""What an answer reports about the index it used."""

from typing import NamedTuple


class IndexState(NamedTuple):
    """How far the index behind an answer can be relied on."""

    state: str
    """`fresh`, `as it was`, `busy`, `not writable`, `scanned`, `none`; `refused` if git refuses to
    read the repository."""
    refreshed_at: str | None
    files: int
    history: int
    """Indexed commits."""
