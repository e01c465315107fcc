"""What a hook process knows about GitHub Copilot CLI: payloads, answers, variables and limits.

Every hook loads this module. For an event that needs no answer it parses nothing, so `json` and
everything else is imported by the methods that need it.
"""

from ctx.agents.runtime.hook import field, text_in, with_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx.hosts.hook_events import HookAnswer, HookEvent

NAME = "copilot"

SOURCES = {"new": "startup"}
"""How the client calls the start of a session, where ctx calls it otherwise."""

_PROJECT_FOLDERS = ("COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
_STOP = b'"agentStop"'
_BY_AGENT = (b'"type":"assistant.message"', b'"type": "assistant.message"')


class CopilotHooks:
    spool_name = NAME
    nothing = b""
    largest_answer = 10_000
    """The client takes ten times as much, but no session needs it."""
    starts_with_prompt = False
    compacts_silently = True

    def length(self, text: str) -> int:
        return len(text)

    def session(self, payload: bytes) -> str:
        return field(payload, b"sessionId")

    def folder(self, payload: bytes) -> str:
        return field(payload, b"cwd")

    def transcript(self, payload: bytes) -> str:
        return field(payload, b"transcriptPath")

    def edited_files(self, _payload: bytes) -> "list[str]":
        return []

    def is_by_agent(self, line: bytes) -> bool:
        return any(mark in line for mark in _BY_AGENT)

    def is_of_subagent(self, payload: bytes) -> bool:
        return bool(field(payload, b"agentId"))

    def is_noise(self, word: str, payload: bytes, environment: "Mapping[str, str]") -> bool:  # noqa: ARG002
        return False

    def has_turn(self, payload: bytes, tail: bytes) -> bool:
        """The client notes the start of this hook behind the turn, with the same time."""
        digits = payload.partition(b'"timestamp":')[2].lstrip()[:13]
        return _STOP in tail and digits in tail

    def process(self, environment: "Mapping[str, str]") -> str:  # noqa: ARG002
        return ""

    def project_folder(self, environment: "Mapping[str, str]") -> str:
        return next(filter(None, map(environment.get, _PROJECT_FOLDERS)), "") or ""

    def without_session(self, environment: "Mapping[str, str]") -> "dict[str, str]":
        return {
            name: value
            for name, value in environment.items()
            if not name.startswith("COPILOT_") and name not in _PROJECT_FOLDERS
        }

    def read(self, payload: bytes) -> "HookEvent":
        import json

        from ctx.hosts.hook_events import HookEvent

        parsed = json.loads(payload)
        keys = parsed if isinstance(parsed, dict) else {}
        source = text_in(keys, "source")
        return HookEvent(
            text_in(keys, "sessionId"),
            text_in(keys, "cwd"),
            text_in(keys, "transcriptPath"),
            payload,
            SOURCES.get(source, source) or None,
            text_in(keys, "prompt"),
        )

    def with_response(
        self, payload: bytes, session: str, folder: str, response: str
    ) -> "tuple[str, bytes]":
        return with_response(payload, ("sessionId", session), ("cwd", folder), response)

    def forked_from(self, event: "HookEvent", process: str, now_s: float) -> str:  # noqa: ARG002
        return ""

    def remembers(self, event: "HookEvent") -> bool:  # noqa: ARG002
        """A resumed session has only the context of its last start."""
        return False

    def write(self, name: str, answer: "HookAnswer") -> bytes:  # noqa: ARG002
        """The client shows no message of a hook to its user."""
        if not answer.text:
            return self.nothing
        import json

        return json.dumps({"additionalContext": answer.text}).encode() + b"\n"
