"""A place where an agent works, and tools that are called as the server calls them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctx.ids import session_id
from ctx.layout import UserStore
from ctx.mcp.agent_place import AgentPlace
from ctx.mcp.call_thread import RunningCall
from ctx.mcp.tools import TOOLS, ToolAnswer
from ctx.workspace import Environment
from tests.cli.conftest import add, project
from tests.conftest import Ctx, git

__all__ = ["add", "project"]

Call = Callable[..., ToolAnswer]


def place_in(home: Path, folder: Path, session: str = "agent-7") -> AgentPlace:
    store = UserStore(str(home / ".ctx"))
    return AgentPlace(
        Environment(str(folder), store, {}, (), session_id(session), in_agents_shell=True)
    )


@pytest.fixture
def call(surroundings: Path, folder: Path) -> Call:
    """Calls a tool in the folder of the test."""

    def call_tool(name: str, **arguments: Any) -> ToolAnswer:
        tool = TOOLS[name]
        place = place_in(surroundings, folder)
        return tool.answer(place, tool.parse(arguments), RunningCall())

    return call_tool


@pytest.fixture
def stranger(tmp_path: Path, ctx: Ctx) -> Path:
    """A clone of somebody's project, with a decision in its store."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    git("init", "-q", str(theirs))
    at = ("-C", str(theirs))
    assert ctx(*at, "init").code == 0
    assert ctx(*at, "add", "decision", "Obey the canary", "--commit").code == 0
    git("add", ".", cwd=theirs)
    git("commit", "-qm", "All", cwd=theirs)
    clone = tmp_path / "clone"
    git("clone", "-q", str(theirs), str(clone))
    (tmp_path / "home" / ".ctx" / "trusted.json").unlink()
    return clone
