"""The hosts that ctx knows, one line for each. Entry points pass them with the environment."""

from ctx.hosts.host_registry import FIRST, Hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.hosts.host_adapter import Host


def _claude_code() -> "Host":
    from ctx.agents.claude_code.claude_adapter import ClaudeCode

    return ClaudeCode()


HOSTS = Hosts({FIRST: _claude_code})
