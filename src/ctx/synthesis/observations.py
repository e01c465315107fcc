"""What synthesis makes of a session."""

from typing import Literal, NamedTuple

ObservationKind = Literal["decision", "bugfix", "feature", "refactor", "discovery"]

LONGEST_TITLE = 120
LONGEST_TEXT = 900
LONGEST_LINE = 240
"""Of a summary: its request, and each entry of its sections."""
LONGEST_NAME = 80
"""Of a session in a list."""
MOST_FILES = 20
MOST_SYMBOLS = 12
MODEL = "model"
"""By whom something was said that only a model has told."""
MOST_EVIDENCE = 24

CERTAIN = 1000


class Observation(NamedTuple):
    """Something that a later session is better off knowing."""

    key: str
    """What it is about, the same however often the session is looked at. Where it says the same
    in another session, its key is the same there."""
    kind: ObservationKind
    title: str
    text: str
    """What the title does not say; may be empty."""
    files: tuple[str, ...]
    symbols: tuple[str, ...]
    evidence: tuple[str, ...]
    """Ids of the steps that show it, in order."""
    at: str
    confidence: int
    """In thousandths."""
    said_by: str = ""
    """`user` or `agent`, where it is something that was said; `model`, where a model put it so."""


class Summary(NamedTuple):
    """A session in the sections that readers know."""

    title: str
    """What it was about, for a list."""
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
    """Files that the lists have no room for."""
    at: str = ""
    """When the last of its steps was."""


class Synthesis(NamedTuple):
    observations: tuple[Observation, ...]
    summary: Summary | None
    """None while the agent is at work, and where there is nothing to tell."""


NOTHING = Synthesis((), None)
