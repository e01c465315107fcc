"""What a tool was called for, and what came of it."""

from typing import NamedTuple

TODO_LIST = "TodoWrite"
NEW_TASK = "TaskCreate"
CHANGED_TASK = "TaskUpdate"
PLAN = "ExitPlanMode"
QUESTION = "AskUserQuestion"
"""The tools by which agents plan, as steps are stored since version 0.1.0. An adapter gives its own
tools of these kinds these names."""


class FileContents(NamedTuple):
    """A file before and after it was written."""

    before: str | None
    """None: there was no file."""
    after: str
    is_whole: bool
    """Whether these are whole files, rather than the pieces that were exchanged."""


class Outcome(NamedTuple):
    """How a command ended."""

    ok: bool
    exit_code: int | None
    output: str
    was_run: bool = True
    """Whether it was run at all: a person or a rule may have refused it."""


# What a tool was called for: one of these.


class OwnTool(NamedTuple):
    """A tool of ctx itself."""


class IgnoredTool(NamedTuple):
    """A tool that says nothing about the work."""


class UnknownTool(NamedTuple):
    """A tool that the adapter knows nothing about."""


class CommandCall(NamedTuple):
    line: str
    outcome: Outcome


class FileRead(NamedTuple):
    first_line: int | None = None
    line_count: int | None = None
    total_lines: int | None = None


class FileWrite(NamedTuple):
    written: FileContents | None
    """None: the host does not say what was written."""


class Search(NamedTuple):
    text: str


class PlanCall(NamedTuple):
    text: str


class TodoList(NamedTuple):
    items: tuple[tuple[str, bool], ...]
    """Each with whether it is done."""


class TaskCall(NamedTuple):
    subject: str
    description: str
    status: str
    """Empty: it is new."""
    number: str


class Delegation(NamedTuple):
    """Work that was given to a subagent."""

    description: str
    prompt: str


class Skill(NamedTuple):
    name: str
    arguments: str


class QuestionCall(NamedTuple):
    """What the agent asked a person, and the answers."""

    answers: tuple[tuple[str, str], ...]


class ForeignTool(NamedTuple):
    """A tool of somebody else's server."""

    name: str
    texts: tuple[str, ...]
    """What it was asked."""


Call = (
    OwnTool
    | IgnoredTool
    | UnknownTool
    | CommandCall
    | FileRead
    | FileWrite
    | Search
    | PlanCall
    | TodoList
    | TaskCall
    | Delegation
    | Skill
    | QuestionCall
    | ForeignTool
)
