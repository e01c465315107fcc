"""The texts in a transcript that the agent read but did not write: prompts, tool results and
attachments. Only texts that may contain a command matter (`capture.read_markup`)."""

from collections.abc import Iterator
from typing import Any

from ctx.agents.claude_code.transcript_turns import is_error
from ctx.capture import repeated_commands
from ctx.hosts.transcript_reader import COMMAND_BYTES, lines_that_mention, nested_strings

_ENTRIES = ("user", "attachment", "system")


def read_by_agent(path: str, end: int | None, deadline: float) -> Iterator[str | None]:
    """The texts before a position of the file, None for its end. Returns None if a part cannot be
    searched.

    The file is read line by line, and only lines that mention a command are parsed.
    """
    for entry in lines_that_mention(path, COMMAND_BYTES, end, deadline):
        if entry is None:
            yield None
        else:
            yield from _texts_of(entry)


def _texts_of(entry: dict[str, Any]) -> Iterator[str]:
    """The texts of an entry that the agent did not write."""
    if entry.get("isSidechain"):
        return
    if entry.get("type") not in _ENTRIES and not is_error(entry):
        return
    attachment = entry.get("attachment")
    kind = attachment.get("type") if isinstance(attachment, dict) else None
    is_of_hook = isinstance(kind, str) and kind.startswith("hook_")
    for text in nested_strings(entry, "ctx"):
        yield repeated_commands.without_reports(text) if is_of_hook else text
