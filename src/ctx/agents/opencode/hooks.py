"""What a hook process knows about our plugin in OpenCode: payloads, answers and limits.

    {"session": "ses_…", "folder": "/…", "agent": "", "source": "startup"}
    {"session": …, "tool": "bash", "call": "call_1", "args": {…}, "output": "…", "metadata": {…}}
    {"session": …, "messages": [{"id": "msg_…", "text": "…"}]}        what was said in a turn

Every hook loads this module. For an event that needs no answer it parses nothing, so `json` and
everything else is imported by the methods that need it.
"""

from ctx.agents.runtime.hook import field, text_in, with_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx.hosts.hook_events import HookAnswer, HookEvent

NAME = "opencode"

_OF_SESSION = ("OPENCODE", "OPENCODE_PID", "OPENCODE_RUN_ID", "OPENCODE_PROCESS_ROLE")


class OpenCodeHooks:
    spool_name = NAME
    nothing = b""
    largest_answer = 10_000
    """OpenCode takes any length, but no session needs more."""
    starts_with_prompt = False
    compacts_silently = False
    """The plugin starts the session again."""

    def length(self, text: str) -> int:
        return len(text)

    def session(self, payload: bytes) -> str:
        return field(payload, b"session")

    def folder(self, payload: bytes) -> str:
        return field(payload, b"folder")

    def transcript(self, payload: bytes) -> str:  # noqa: ARG002
        """Sessions are in a database. The payload of a Stop contains the turn instead."""
        return ""

    def edited_files(self, _payload: bytes) -> "list[str]":
        return []

    def is_by_agent(self, line: bytes) -> bool:  # noqa: ARG002
        return False

    def is_of_subagent(self, payload: bytes) -> bool:
        return bool(field(payload, b"agent"))

    def is_noise(self, word: str, payload: bytes, environment: "Mapping[str, str]") -> bool:  # noqa: ARG002
        return False

    def has_turn(self, payload: bytes, tail: bytes) -> bool:  # noqa: ARG002
        return True

    def process(self, environment: "Mapping[str, str]") -> str:  # noqa: ARG002
        return ""

    def project_folder(self, environment: "Mapping[str, str]") -> str:  # noqa: ARG002
        return ""

    def without_session(self, environment: "Mapping[str, str]") -> "dict[str, str]":
        return {name: environment[name] for name in environment if name not in _OF_SESSION}

    def read(self, payload: bytes) -> "HookEvent":
        import json

        from ctx.hosts.hook_events import HookEvent

        parsed = json.loads(payload)
        keys = parsed if isinstance(parsed, dict) else {}
        place = text_in(keys, "session"), text_in(keys, "folder"), ""
        return HookEvent(*place, payload, text_in(keys, "source") or None, text_in(keys, "prompt"))

    def with_response(
        self, payload: bytes, session: str, folder: str, response: str
    ) -> "tuple[str, bytes]":
        return with_response(payload, ("session", session), ("folder", folder), response)

    def forked_from(self, event: "HookEvent", process: str, now_s: float) -> str:  # noqa: ARG002
        return ""

    def remembers(self, event: "HookEvent") -> bool:  # noqa: ARG002
        """What the plugin adds to a message is stored with it."""
        return True

    def write(self, name: str, answer: "HookAnswer") -> bytes:  # noqa: ARG002
        """The plugin shows no message to the user."""
        if not answer.text:
            return self.nothing
        import json

        return json.dumps({"additionalContext": answer.text}).encode() + b"\n"
