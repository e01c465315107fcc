"""What a hook process knows about our plugin in OpenCode.

    {"session": "ses_…", "folder": "/…", "agent": "", "source": "startup"}
    {"session": …, "tool": "bash", "call": "call_1", "args": {…}, "output": "…", "metadata": {…}}
    {"session": …, "messages": [{"id": "msg_…", "text": "…"}]}        what was said in a turn

Sessions are in a database, so the payload of a Stop contains the turn. Every hook loads this
module, so it imports nothing slow.
"""

from ctx.agents.runtime.host_hooks import HostHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.hosts.hook_events import HookEvent

NAME = "opencode"


class OpenCodeHooks(HostHooks):
    spool_name = NAME
    session_key = "session"
    folder_key = "folder"
    agent_key = "agent"
    tool_key = "tool"
    reader = "read"
    read_key = "filePath"
    answer_key = "additionalContext"
    variables = ("OPENCODE",)

    def remembers(self, event: "HookEvent") -> bool:  # noqa: ARG002
        """What the plugin adds to a message is stored with it."""
        return True


HOOKS = OpenCodeHooks()
