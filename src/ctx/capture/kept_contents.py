"""A written file, as adapters store it in the payload of an event until the event becomes a step.

All hosts use one shape, so that no more than necessary is stored and redaction sees whole files
instead of pieces.
"""

from collections.abc import Mapping
from typing import Any

from ctx.capture import secret_files
from ctx.capture.written_lines import MOST
from ctx.hosts.tool_calls import FileContents

KEPT = "written"
"""The field of a response that contains this shape."""


def as_kept(contents: FileContents) -> dict[str, Any]:
    return {"before": contents.before, "after": contents.after, "whole": contents.is_whole}


def stored(fields: object) -> FileContents | None:
    """What `as_kept` made; None if it is something else."""
    if not isinstance(fields, Mapping):
        return None
    before, after = fields.get("before"), fields.get("after")
    if not isinstance(after, str):
        return None
    return FileContents(
        before if isinstance(before, str) else None, after, fields.get("whole") is True
    )


def limited(before: str | None, after: str, *, is_whole: bool) -> FileContents:
    """The contents; those of a file that is too large are cut, and marked as incomplete."""
    if max(len(before or ""), len(after)) <= MOST:
        return FileContents(before, after, is_whole)
    return FileContents(None if before is None else before[:MOST], after[:MOST], False)


def without_secrets(path: str, contents: FileContents) -> FileContents:
    """The contents, unless the name of the file says that it is secret."""
    return FileContents(None, "", False) if secret_files.is_secret_file(path) else contents
