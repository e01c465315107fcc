"""The JSON objects of answers. What is empty is left out."""

from msgspec import Struct


class Results(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """What every answer may have."""

    next_cursor: str = ""
    notes: list[str] = []


class FoundEntry(Struct, omit_defaults=True):
    """A result of a query, or with `text` one that was asked for by its id."""

    id: str
    kind: str
    title: str = ""
    tokens: int = 0
    source: str = ""
    at: str = ""
    text: str = ""


class RecallResults(Results):
    results: list[FoundEntry]
    total: int


class RememberResults(Results):
    id: str
    type: str
    tags: list[str]
    proposed: list[str]


class PackedChunk(Struct, omit_defaults=True, rename="camel"):
    title: str
    tokens: int
    text: str
    path: str | None = None
    first_line: int | None = None
    last_line: int | None = None
    source: str = ""


class PackResults(Results):
    chunks: list[PackedChunk]
    tokens: int
    confidence: float
    recently: str = ""


class HistoryEntry(Struct, omit_defaults=True):
    at: str
    kind: str
    text: str
    id: str = ""
    session: str = ""


class TimelineResults(Results):
    entries: list[HistoryEntry]


class ForgetResults(Results):
    forgotten: list[str]
    proposed: list[str]
