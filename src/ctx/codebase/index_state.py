"""What an answer says about the index that it rests on."""

from typing import NamedTuple


class IndexState(NamedTuple):
    """How far the answer can be relied on, as far as the index goes."""

    state: str
    """`fresh`, `as it was`, `busy`, `not writable`, `scanned`, `none`; `refused` where git does not
    let anybody look."""
    refreshed_at: str | None
    files: int
    history: int
    """Commits that are known."""
