"""The hosts that ctx knows, one line for each. Entry points pass them with the surroundings."""

from ctx.hosts.registry import Hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.hosts.adapter import Host


def _claude_code() -> "Host":
    from ctx.agents.claude_code.adapter import ClaudeCode

    return ClaudeCode()


HOSTS = Hosts({"claude-code": _claude_code})
