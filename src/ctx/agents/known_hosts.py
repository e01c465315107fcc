"""The hosts that ctx knows, one line for each. Entry points pass them with the surroundings."""

from ctx.hosts.host_registry import Hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.hosts.host_adapter import Host


def _claude_code() -> "Host":
    from ctx.agents.claude_code.claude_adapter import ClaudeCode

    return ClaudeCode()


HOSTS = Hosts({"claude-code": _claude_code})
