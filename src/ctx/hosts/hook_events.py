"""What a hook process receives from a host, and what it answers.

Hooks load this module, so it imports nothing but `typing`.
"""

from typing import NamedTuple


class HookEvent(NamedTuple):
    """An event that needs an answer. `events.Event` is the same event as capture stores it."""

    session: str
    """Empty: the host names none."""
    folder: str
    """Where the agent works; empty: the host does not say."""
    transcript: str
    """The path of the transcript, if the host names it."""
    raw: bytes
    """The payload as the host wrote it, for the spool."""
    source: str | None = None
    """How a session starts: `startup`, `resume`, `clear`, `compact` or `fork`."""
    prompt: str = ""
    is_cleared: bool = False
    """Whether a session ends because the user starts over in the same client."""
    idle_s: float | None = None
    """Seconds since the last answer of the agent, if the host counts them."""


class HookAnswer(NamedTuple):
    text: str = ""
    """What the agent reads."""
    message: str = ""
    """What the user reads, one line for each thing."""


NO_ANSWER = HookAnswer()
