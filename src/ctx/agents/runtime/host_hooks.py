"""What a hook process knows about its host, with a default for everything.

Every hook loads this module and the `hooks` of one host, which sets what differs there. For an
event that needs no answer they parse nothing, so `json` and everything else is imported by the
methods that need it.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ctx.hosts.hook_events import HookAnswer, HookEvent

_ENDS = 512 * 1024
# The ends of the names of variables that apply to all sessions.
_OF_ALL_SESSIONS = ("_HOME", "_CONFIG_DIR", "_API_KEY")


class HostHooks:
    spool_name = ""
    """The host in the names of spool files; empty for the first host."""
    nothing = b""
    """What a hook prints if it has no answer."""
    largest_answer = 10_000
    """The longest text that an agent receives whole, as `length` counts it. Some hosts
    take more, but no session needs it."""
    starts_with_prompt = False
    """Whether the context of a session is given with its first prompt, because the host does not
    handle an answer at the start well."""
    compacts_silently = False
    """Whether no start of the session follows a compaction: then the next result of a tool or the
    next prompt gets what a compacted session needs."""

    session_key = folder_key = transcript_key = agent_key = ""
    """The fields of a payload with the session, the folder in which the agent works, the path of
    the transcript, and the subagent that it is about; empty: there is none."""
    tool_key = reader = read_key = ""
    """The field of a payload with the tool, the tool that reads a file, and the field with the path
    of that file. Empty: what memory knows about a file is not given when it was read."""
    answer_key = ""
    """The field of an answer with the text for the agent."""
    by_agent: tuple[bytes, ...] = ()
    """One of these is in every line of a transcript that the agent wrote."""
    context_mark = b""
    """What shows in a transcript that the session still has the context of hooks; empty: a resumed
    session has only the context of its last start."""

    variables: tuple[str, ...] = ()
    """How the names of the variables begin that the host sets."""
    session_variable = process_variable = ""
    """The variables with the id of the session and of the host's process, if it passes them on."""
    project_variables: tuple[str, ...] = ()
    """The variables with the folder of the project."""
    doubling_client = ""
    """How the name of its MCP client begins, if it shows a model both forms of an answer, the text
    and the JSON object: then it is given the text alone."""

    def length(self, text: str) -> int:
        """The length of a text, in the units of the host's limit."""
        return len(text)

    def session(self, payload: bytes) -> str:
        """The session that a payload names, without parsing all of it; empty: none."""
        return field(payload, self.session_key)

    def folder(self, payload: bytes) -> str:
        return field(payload, self.folder_key)

    def transcript(self, payload: bytes) -> str:
        return field(payload, self.transcript_key)

    def edited_files(self, payload: bytes) -> "list[str]":  # noqa: ARG002
        """The files that the agent is about to read or edit, as absolute paths."""
        return []

    def read_files(self, payload: bytes) -> "list[str]":
        """The files that the agent has just read, as absolute paths."""
        if not self.reader or field(payload, self.tool_key) != self.reader:
            return []
        return [os.path.join(self.folder(payload), field(payload, self.read_key))]

    def is_by_agent(self, line: bytes) -> bool:
        """Whether the agent wrote a line of the transcript."""
        return any(mark in line for mark in self.by_agent)

    def is_of_subagent(self, payload: bytes) -> bool:
        """Whether a payload names the subagent that it is about. It may be wrong where a tool call
        has a field of the same name."""
        return bool(field(payload, self.agent_key))

    def is_noise(self, word: str, payload: bytes, environment: "Mapping[str, str]") -> bool:  # noqa: ARG002
        """Whether to ignore a payload: a host may report a prompt where there is none, and another
        host may run this hook."""
        return False

    def has_turn(self, payload: bytes, tail: bytes) -> bool:  # noqa: ARG002
        """Whether the end of the transcript contains the turn that a Stop ends. A host may write it
        while the hook runs; if the payload contains the last message, that need not be awaited."""
        return True

    def process(self, environment: "Mapping[str, str]") -> str:
        return environment.get(self.process_variable, "")

    def project_folder(self, environment: "Mapping[str, str]") -> str:
        """The folder of the project; empty: the host does not pass it on."""
        return next(filter(None, map(environment.get, self.project_variables)), "") or ""

    def without_session(self, environment: "Mapping[str, str]") -> "dict[str, str]":
        """The environment without the variables of one session, for a process that serves all."""
        return {
            name: value
            for name, value in environment.items()
            if not name.startswith(self.variables) or name.endswith(_OF_ALL_SESSIONS)
        }

    def session_in_call(self, meta: "Mapping[str, Any]") -> str:  # noqa: ARG002
        """The session that the metadata of a call of the MCP server names; empty: none."""
        return ""

    def read(self, payload: bytes) -> "HookEvent":
        """An event that needs an answer. `ValueError` if the payload cannot be parsed."""
        import json

        parsed = json.loads(payload)
        return self.event(parsed if isinstance(parsed, dict) else {}, payload)

    def event(self, fields: "Mapping[str, Any]", payload: bytes) -> "HookEvent":
        """The same, from its fields."""
        from ctx.hosts.hook_events import HookEvent

        return HookEvent(
            text_in(fields, self.session_key),
            text_in(fields, self.folder_key),
            text_in(fields, self.transcript_key),
            payload,
            text_in(fields, "source") or None,
            text_in(fields, "prompt"),
        )

    def with_response(
        self, payload: bytes, session: str, folder: str, response: str
    ) -> "tuple[str, bytes]":
        """The session and the payload of a Stop with a response that is given by hand.

        Session and folder are used if the payload names none.
        """
        import json

        try:
            parsed = json.loads(payload) if payload.strip() else {}
        except ValueError:
            parsed = {}
        given = parsed if isinstance(parsed, dict) else {}
        fields = {self.session_key: session, self.folder_key: folder, **given, "response": response}
        return fields[self.session_key], json.dumps(fields).encode()

    def forked_from(self, event: "HookEvent", process: str, now_s: float) -> str:  # noqa: ARG002
        """The session that a forked one was copied from; empty if it is not known."""
        return ""

    def remembers(self, event: "HookEvent") -> bool:
        """Whether a resumed session still has the context that it received."""
        return bool(self.context_mark) and _mentions(event.transcript, self.context_mark)

    def write(self, name: str, answer: "HookAnswer") -> bytes:  # noqa: ARG002
        """The answer to an event of this name, as the host reads it from standard output. Most
        hosts show no message to the user."""
        if not answer.text:
            return self.nothing
        import json

        return json.dumps({self.answer_key: answer.text}).encode() + b"\n"


def field(data: bytes, name: str) -> str:
    """The value of a string field of the outermost object, found without parsing the whole payload.

    Quotes inside strings are escaped, so the first match is a key. The client writes the fields
    that all events have first.
    """
    at = data.find(b'"%s"' % name.encode()) if name else -1
    rest = data[at + len(name) + 2 : at + len(name) + 4200].lstrip() if at >= 0 else b""
    rest = rest[1:].lstrip() if rest.startswith(b":") else b""
    end = rest.find(b'"', 1)
    if not rest.startswith(b'"') or end < 0:
        return ""
    value = rest[1:end]
    if b"\\" in value:
        import json

        try:
            payload = json.loads(data)
        except (ValueError, RecursionError):
            return ""
        return text_in(payload, name) if isinstance(payload, dict) else ""
    return value.decode("utf-8", "replace")


def text_in(fields: "Mapping[str, object]", name: str) -> str:
    """The value of a field, if it is a text."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _mentions(path: str, mark: bytes) -> bool:
    """Whether a mark is near the beginning or the end of a file."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            if mark in file.read(_ENDS):
                return True
            file.seek(max(_ENDS, os.fstat(file.fileno()).st_size - _ENDS))
            return mark in file.read(_ENDS)
    except (OSError, ValueError):
        return False
