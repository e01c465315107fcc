"""What Claude Code reports about a file that was written: the file before and after.

Its versions report it in several shapes:

    Write          the new content; `originalFile` if the file existed
    Edit           `old_string` and `new_string`; `originalFile`
    MultiEdit      a list of such edits; `originalFileContents`
    NotebookEdit   the new source of a cell; `original_file` and `updated_file`

All of them are converted to one shape, which is also stored until the event becomes a step
(`capture.kept_contents`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctx.capture import kept_contents
from ctx.capture.kept_contents import KEPT
from ctx.capture.written_lines import MOST
from ctx.hosts.json_fields import fields_of
from ctx.hosts.tool_calls import FileContents

TOOLS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})

_MOST_EDITS = 1_000


class Edit(NamedTuple):
    old: str
    new: str
    is_all: bool


def path_of(payload: Mapping[str, Any]) -> str:
    """The file that a tool was used on."""
    tool_input = fields_of(payload.get("tool_input"))
    response = fields_of(payload.get("tool_response"))
    file = fields_of(response.get("file"))
    named = [tool_input.get(name) for name in ("file_path", "notebook_path", "path")]
    for path in (*named, response.get("filePath"), file.get("filePath")):
        if isinstance(path, str) and path:
            return path
    return ""


def written_contents(payload: Mapping[str, Any]) -> FileContents | None:
    """The content of a file before and after a write; None if the payload has no known shape."""
    tool_input, response = fields_of(payload.get("tool_input")), fields_of(response_of(payload))
    if isinstance(kept := response.get(KEPT), Mapping):
        return kept_contents.stored(kept)
    names = ("originalFile", "originalFileContents", "original_file")
    before = next((response[name] for name in names if isinstance(response.get(name), str)), None)
    after = response.get("updated_file")
    if isinstance(after, str):
        return kept_contents.limited(before, after, is_whole=before is not None)
    if isinstance(after := tool_input.get("content"), str):
        is_new = before is None and response.get("type") != "update"
        return kept_contents.limited(before, after, is_whole=is_new or before is not None)
    edits = list(_edits(tool_input, response))[:_MOST_EDITS]
    if not edits:
        return None
    if before is not None and (after := _apply_edits(before, edits)) is not None:
        whole = kept_contents.limited(before, after, is_whole=True)
        if whole.is_whole:
            return whole
    pieces = FileContents(
        "\n".join(old for old, _, _ in edits), "\n".join(new for _, new, _ in edits), False
    )
    return kept_contents.limited(*pieces[:2], is_whole=False)


def _edits(tool_input: Mapping[str, Any], response: Mapping[str, Any]) -> Iterator[Edit]:
    every = tool_input.get("edits") or response.get("edits")
    for entry in every if isinstance(every, list) else (tool_input, response):
        edit = fields_of(entry)
        old = edit.get("old_string", edit.get("oldString", edit.get("old_source")))
        new = edit.get("new_string", edit.get("newString", edit.get("new_source")))
        if isinstance(old, str) or isinstance(new, str):
            is_all = edit.get("replace_all", edit.get("replaceAll")) is True
            yield Edit(
                old if isinstance(old, str) else "", new if isinstance(new, str) else "", is_all
            )
            if not isinstance(every, list):
                return


def _apply_edits(text: str, edits: Sequence[Edit]) -> str | None:
    """A text after some edits; None if one of them does not apply."""
    for old, new, is_all in edits:
        if not old and not text:
            text = new
        elif not old or old not in text:
            return None
        else:
            text = text.replace(old, new) if is_all else text.replace(old, new, 1)
        if len(text) > 2 * MOST:
            return None
    return text


def response_of(payload: Mapping[str, Any]) -> Any:
    """The response of a tool; older clients use another key."""
    response = payload.get("tool_response")
    return payload.get("tool_output") if response is None else response
