"""The results of synthesis: observations and the session summary."""

from typing import Literal, NamedTuple

from ctx.ids import NodeId

ObservationKind = Literal[
    "rule", "correction", "decision", "bugfix", "feature", "refactor", "discovery", "statement"
]

LONGEST_TITLE = 120
LONGEST_TEXT = 900
LONGEST_LINE = 240
"""For the request and each section entry of a summary."""
LONGEST_NAME = 80
"""For the title of a session in a list."""
MOST_FILES = 20
MOST_SYMBOLS = 12
LONGEST_OBJECT = 160
"""For what a statement is about, if its own words do not say it."""
MOST_EVIDENCE = 24


class Observation(NamedTuple):
    """Something that is useful to later sessions."""

    key: str
    """Identifies the subject. It is stable across runs, and equal for the same observation in
    another session."""
    kind: ObservationKind
    title: str
    text: str
    """Details beyond the title; may be empty."""
    files: tuple[str, ...]
    symbols: tuple[str, ...]
    evidence: tuple[str, ...]
    """Ids of the steps that support it, in order."""
    at: str
    confidence: int
    """In thousandths."""
    said_by: str = ""
    """`user` or `agent` if it comes from a message."""
    worth: int | None = None
    """How likely a later session needs it, in thousandths; None: what its kind is worth."""
    said_as: str = ""
    """The kind of the excerpt that it is."""
    is_lasting: bool = False
    """Whether the user forbids or prefers something in general."""
    replaces: tuple[NodeId, ...] = ()
    """The earlier observations that are no longer true because of it, according to a model."""


class Summary(NamedTuple):
    """The summary of a session, by section."""

    title: str
    """The session title, for lists."""
    request: str
    investigated: tuple[str, ...]
    learned: tuple[str, ...]
    completed: tuple[str, ...]
    next_steps: tuple[str, ...]
    files_read: tuple[str, ...]
    files_edited: tuple[str, ...]
    notes: tuple[str, ...]
    more_read: int = 0
    more_edited: int = 0
    """The number of files beyond the end of each list."""
    at: str = ""
    """The time of the last step."""
    ended: tuple[str, ...] = ()
    """What the last message reports, in whole sentences."""
    uncommitted: tuple[str, ...] = ()
    """The files that were edited after the last commit, if the session commits."""


class Synthesis(NamedTuple):
    observations: tuple[Observation, ...]
    summary: Summary | None
    """None while the agent is working, and if there is nothing to summarise."""


NOTHING = Synthesis((), None)
