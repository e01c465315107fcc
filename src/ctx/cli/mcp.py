"""`ctx mcp`"""

import argparse
import secrets

from ctx.cli import opening, options
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.errors import CtxError, ProgramFailure, UsageError
from ctx.ids import SessionId, session_id

EXAMPLES = """
ctx mcp                      the command to register with a host, which starts it
ctx -C ~/src/shop mcp        for a host that starts it in another folder
ctx mcp --session agent-7    calls belong to this session
"""


def configure(parser: argparse.ArgumentParser) -> None:
    options.session_option(parser)


def run(_options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if output.is_interactive:
        raise UsageError(
            "`ctx mcp` speaks to a program, not to a terminal.",
            hint="Register it with your agent: `ctx install --mcp`. See docs/mcp.md.",
        )
    if output.is_closed:
        raise UsageError("`ctx mcp` needs stdout.", hint="A host starts it.")
    try:
        from ctx.mcp import server
    except ImportError as error:
        raise ProgramFailure(
            f"The MCP SDK cannot be loaded: {error}.",
            hint="Install ctx again: `pip install --force-reinstall ctx-memory`.",
        ) from error
    from ctx.agents.known_hosts import is_doubling_client, session_in_call

    environment = opening.environment(settings, _session(settings), settings.graph_database)
    environment = environment._replace(in_agents_shell=True)
    server.serve(environment, session_in_call, is_doubling_client)


def _session(settings: Settings) -> SessionId:
    """The session that was named, that of the host, or a new one."""
    from ctx.agents.known_hosts import session_in_environment

    if named := settings.session or settings.environment.get("CTX_SESSION"):
        return session_id(named)
    try:
        if named := session_in_environment(settings.environment):
            return session_id(named)
    except CtxError:
        # Whatever a host calls its sessions must not keep an agent from its memory.
        pass
    return session_id(f"mcp-{secrets.token_hex(4)}")
