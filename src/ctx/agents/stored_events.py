"""The events of OpenCode, Copilot CLI and Qwen Code in the form that ctx stores.

An adapter reads the payload of its host once, as an `EventContent`. Until the event becomes a step,
ctx stores that content instead of the payload:

    {"text": "Make it build.", "speaker": "user", "transcript": "/…/events.jsonl"}
    {"path": "/…/a.py", "call": {"kind": "write", "written": {"before": null, "after": "…"}}}

So an adapter needs no second reader for stored events, and its host may change its payloads.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ctx import clock, ids
from ctx.capture import written_lines
from ctx.capture.written_lines import MOST
from ctx.errors import ContentRefused, UsageError
from ctx.hosts import tool_calls, transcript_reader
from ctx.hosts.events import Event, Heading, Speaker
from ctx.hosts.json_fields import fields_of, plain, text_of
from ctx.hosts.tool_calls import Call, FileContents, Outcome
from ctx.hosts.transcript_reader import TranscriptReader

_MOST_TODOS = 50
_SPEAKERS: tuple[Speaker, ...] = ("user", "agent", "host")
# Fields that say that something happened, and no more.
_OUTLINE = frozenset("agent transcript branch source prompt".split())


class StoringHost:
    """A host whose events are stored in this form."""

    name: str

    def restore(self, heading: Heading, payload: Mapping[str, Any]) -> Event:
        return restore(self.name, heading, payload)

    def outline(self, event: Event, path: str) -> Mapping[str, Any]:
        """The payload of an event without content: only that it happened, and to which file."""
        kept = {name: value for name, value in event.payload.items() if name in _OUTLINE}
        return {**kept, "path": path} if path else kept


class EventContent(NamedTuple):
    """What a host reports about an event, besides its columns."""

    text: str | None = None
    speaker: Speaker = ""
    agent: str = ""
    path: str = ""
    call: Call | None = None
    transcript: str = ""
    branch: str = ""
    caller: str = ""
    version: str = ""
    source: str = ""
    """How a session starts: `startup`, `resume`, `clear`, `compact` or `fork`."""
    prompt: str = ""
    response: str | None = None
    is_host_command: bool = False


class ToolReport(NamedTuple):
    """A call of a tool and its result."""

    tool: str
    arguments: Mapping[str, Any]
    output: str = ""
    """What the model got."""
    error: str | None = None
    """None: the tool did not fail."""
    details: Mapping[str, Any] = {}
    """What the host adds to it, such as an exit code or the contents of a file."""


class WaitingCall(NamedTuple):
    """A tool call in a transcript that waits for its result."""

    offset: int
    tool: str
    arguments: Mapping[str, Any]
    call_id: str = ""
    """Its id in the payload of a hook, where that is another one."""


class StoringReader(TranscriptReader):
    """Reads a transcript whose events are stored in this form."""

    host: str

    def __init__(self, path: str, session: str, most: int, deadline: float) -> None:
        super().__init__(path, most, deadline)
        self.session = session
        self.calls: dict[str, WaitingCall] = {}

    def waiting(self, behind: int) -> Iterable[int]:  # noqa: ARG002
        return (call.offset for call in self.calls.values())

    def add(
        self,
        name: str,
        content: EventContent,
        *,
        stamp: str,
        known_by: str,
        folder: str,
        tool: str = "",
        call_id: str = "",
    ) -> None:
        """Add an event; `known_by` distinguishes it from others of this time."""
        at_ms = self.time_of(stamp)
        columns = name, clock.iso(at_ms), self.session, folder, tool, call_id
        made = heading(transcript_reader.event_id(at_ms, name, known_by), *columns)
        self.events.append(event(self.host, made, content._replace(transcript=self.path)))


def heading(
    event_id: str, name: str, at: str, session: str, folder: str, tool: str = "", call_id: str = ""
) -> Heading:
    """The columns of an event. `ContentRefused` if the session is no valid id."""
    try:
        known = ids.session_id(plain(session))
    except UsageError:
        raise ContentRefused("It names no session.") from None
    # A path with this character cannot exist, and the system would raise an error for it.
    place = "" if "\0" in folder else plain(folder)
    return Heading(event_id, known, name, at, place, plain(tool) or None, plain(call_id) or None)


def event(host: str, columns: Heading, content: EventContent) -> Event:
    """A new event of a host."""
    call = content.call
    if isinstance(call, tool_calls.FileWrite) and written_lines.is_secret_file(content.path):
        content = content._replace(call=call._replace(written=FileContents(None, "", False)))
    return restore(host, columns, _payload(content))


def restore(host: str, columns: Heading, payload: Mapping[str, Any]) -> Event:
    """The event of a payload that was stored."""
    text, response, speaker = payload.get("text"), payload.get("response"), payload.get("speaker")
    return Event(
        *columns,
        payload,
        host,
        text if isinstance(text, str) else None,
        next((each for each in _SPEAKERS if each == speaker), ""),
        agent=text_of(payload, "agent"),
        path=text_of(payload, "path"),
        call=_restored_call(payload.get("call")),
        transcript=text_of(payload, "transcript"),
        branch=text_of(payload, "branch"),
        caller=text_of(payload, "caller"),
        version=text_of(payload, "version"),
        continues=payload.get("source") in ("resume", "compact"),
        prompt=text_of(payload, "prompt"),
        response=response if isinstance(response, str) else None,
        is_host_command=payload.get("is_host_command") is True,
    )


def file_contents(before: str | None, after: str, *, is_whole: bool) -> FileContents:
    """A file before and after a write; one that is too large is cut, and marked as incomplete."""
    if max(len(before or ""), len(after)) <= MOST:
        return FileContents(before, after, is_whole)
    return FileContents(None if before is None else before[:MOST], after[:MOST], is_whole=False)


def file_write(before: object, after: object, *, is_whole: bool = False) -> Call:
    """A write, from what a host calls the old and the new content."""
    if not isinstance(after, str):
        return tool_calls.FileWrite(None)
    earlier = before if isinstance(before, str) else None
    return tool_calls.FileWrite(file_contents(earlier, after, is_whole=is_whole))


def todo_list(todos: object, subject: str = "content") -> Call:
    """A list of things to do; `subject` is the field with the text of one."""
    items = todos[:_MOST_TODOS] if isinstance(todos, list) else []
    return tool_calls.TodoList(
        tuple(
            (text, item.get("status") == "completed")
            for item in items
            if isinstance(item, Mapping) and (text := text_of(item, subject).strip())
        )
    )


def foreign_call(name: str, arguments: object) -> Call:
    """A call of a tool from somebody else's server."""
    values = fields_of(arguments).values()
    texts = tuple(value for value in values if isinstance(value, str) and value.strip())
    return tool_calls.ForeignTool(name, texts)


def _payload(content: EventContent) -> dict[str, Any]:
    fields = content._asdict()
    fields["call"] = _stored_call(content.call)
    return {name: value for name, value in fields.items() if value not in ("", None, False)}


_KINDS: Mapping[str, type[Any]] = {
    "own": tool_calls.OwnTool,
    "ignored": tool_calls.IgnoredTool,
    "unknown": tool_calls.UnknownTool,
    "command": tool_calls.CommandCall,
    "read": tool_calls.FileRead,
    "write": tool_calls.FileWrite,
    "search": tool_calls.Search,
    "plan": tool_calls.PlanCall,
    "todos": tool_calls.TodoList,
    "task": tool_calls.TaskCall,
    "delegation": tool_calls.Delegation,
    "skill": tool_calls.Skill,
    "question": tool_calls.QuestionCall,
    "foreign": tool_calls.ForeignTool,
}
_KIND_OF = {kind: name for name, kind in _KINDS.items()}


def _stored_call(call: Call | None) -> dict[str, Any] | None:
    if call is None:
        return None
    fields: dict[str, Any] = {"kind": _KIND_OF[type(call)]}
    for name, value in call._asdict().items():
        is_value = isinstance(value, Outcome | FileContents)
        fields[name] = value._asdict() if is_value else _as_lists(value)
    return fields


def _as_lists(value: Any) -> Any:
    return [_as_lists(each) for each in value] if isinstance(value, tuple) else value


def _restored_call(stored: object) -> Call | None:
    fields = fields_of(stored)
    kind = _KINDS.get(text_of(fields, "kind"))
    if kind is None:
        return None
    values = {name: _restored_value(name, fields.get(name)) for name in kind._fields}
    call: Call = kind(**values)
    return call


def _restored_value(name: str, value: Any) -> Any:
    match name:
        case "outcome":
            return Outcome(**{each: value[each] for each in Outcome._fields})
        case "written" if value is not None:
            return FileContents(**{each: value[each] for each in FileContents._fields})
        case _:
            return _as_tuples(value)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
