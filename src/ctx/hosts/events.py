"""An event: one thing that happened in a session, whichever host it was in."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ctx.hosts.host_registry import FIRST
from ctx.hosts.tool_calls import Call

Speaker = Literal["user", "agent", "host", ""]


class Event(NamedTuple):
    """One thing that happened in a session."""

    id: str
    session: str
    name: str
    """What kind of event it is: `UserPromptSubmit`, `PostToolUse` and so on, for every host."""
    at: str
    folder: str
    tool: str | None
    tool_use: str | None
    """The id of the call, if the host gives it one."""
    payload: Mapping[str, Any]
    """What is stored of what the host reported. Only its adapter reads it."""
    host: str = FIRST
    text: str | None = None
    """What was said; None where the host reports no text."""
    speaker: Speaker = ""
    """Whose words the text is."""
    agent: str = ""
    """The subagent that it happened in; empty: the agent itself."""
    path: str = ""
    """The file that a tool was used on."""
    call: Call | None = None
    """What a tool was called for, and what came of it; None: it is no tool call."""
    transcript: str = ""
    branch: str = ""
    """The git branch, where the host names it."""
    caller: str = ""
    """What started the session, as the host calls it: `cli`, `sdk-py`; empty: unknown."""
    version: str = ""
    """The version of the host; empty: unknown."""
    continues: bool = False
    """Whether a session that starts goes on from where it was."""
    prompt: str = ""
    """The id of the prompt that it belongs to, if the host gives it one."""
    response: str | None = None
    """The whole answer of the agent, where it was given by hand."""
    team: str = ""
    """The team of agents that the session belongs to, where the host names it."""
    teammate: str = ""
    """What the session is called in its team; empty: it leads the team."""
    lead: str = ""
    """The session that leads the team, where the host names it."""
    is_host_command: bool = False
    """Whether the host carries out a prompt itself, without asking the model."""
    further: tuple["Event", ...] = ()
    """More events of the same report: a patch may write several files."""


class Heading(NamedTuple):
    """The columns of an event: the same as its first fields."""

    id: str
    session: str
    name: str
    at: str
    folder: str
    tool: str | None
    tool_use: str | None
