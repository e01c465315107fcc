"""A project with something in every part of memory, for the views that show all of it."""

from pathlib import Path
from typing import NamedTuple

from ctx.ids import CLI_SESSION
from ctx.memory.model import PINNED, REFERENCE
from ctx.operations import agent_proposals
from ctx.operations.agent_proposals import ProposedChange
from ctx.workspace import Environment, Memory, open_memory
from tests.conftest import Ctx, git
from tests.packs.session_store import change, command, learning, observation, session


class FilledProject(NamedTuple):
    pinned: str
    reference: str
    rule: str
    proposal: str
    learning: str
    conflict: str
    imported: str


RULE = "Never commit yourself: I review every change first."
INSTRUCTIONS = """# Guide

## Tests

Run `make test` before each commit.

## Style

Use tabs.
"""


def fill(ctx: Ctx, environment: Environment, folder: Path) -> FilledProject:
    """Fill the memory of a git repository without a commit, in which commands run."""
    ctx("init")
    conflict = _add(ctx, "--type=fact", "--tag=tier:reference", "Deploys run on Mondays")
    pinned = _add(ctx, "--type=fact", f"--tag={PINNED}", "The API listens on port 8080")
    reference = _add(ctx, "--type=decision", f"--tag={REFERENCE}", "We use SQLite, no server")
    _conflict(ctx, conflict)
    (folder / "AGENTS.md").write_text(INSTRUCTIONS)
    ctx("import", "--from=instructions", "AGENTS.md")
    imported = next(
        node["id"]
        for node in ctx("list", "--format=json").json["nodes"]
        if "Run `make test`" in node["content"]
    )
    with open_memory(environment, writing=True, author="claude-code") as memory:
        rule, learned = _sessions(memory)
        proposal = _proposal(memory)
    return FilledProject(pinned, reference, rule, proposal, learned, conflict, imported)


def _add(ctx: Ctx, *words: str) -> str:
    ctx("add", *words)
    return str(ctx("list", "--limit=1", "--format=json").json["nodes"][0]["id"])


def _conflict(ctx: Ctx, node: str) -> None:
    """Two branches give a node different texts, and are merged."""
    _commit(ctx, "Base")
    git("switch", "-qc", "side")
    ctx("update", node, "--content", "Deploys run on Fridays")
    _commit(ctx, "Side")
    git("switch", "-q", "main")
    ctx("update", node, "--content", "Deploys run daily")
    _commit(ctx, "Main")
    git("merge", "-q", "--no-edit", "side")


def _commit(ctx: Ctx, message: str) -> None:
    ctx("commit", "-m", message)
    git("add", "-A")
    git("commit", "-qm", message)


def _sessions(memory: Memory) -> tuple[str, str]:
    user = memory.user
    session(user, "s1", 1, completed="The refresh takes a lock", next_steps="the mobile client")
    session(user, "s2", 3, completed="Checked the links", next_steps="")
    change(user, "s1", "auth/service.py", "def refresh(self, token: str) -> Token")
    for name in ("s1", "s2"):
        command(user, name, "make test", runs=4)
    rule = observation(user, "s1", "rule", RULE, said_by="user", session="s1", lasting=True)
    observation(
        user,
        "s2",
        "bugfix",
        "Fixed test_refresh in auth/service.py",
        "The lock was taken twice because refresh calls itself.",
        session="s2",
    )
    learned = learning(user, "gotcha", "The tests need a running Redis")
    for number in range(4):
        learning(user, "convention", f"Errors are values, never exceptions, in module {number}")
    return rule, learned


def _proposal(memory: Memory) -> str:
    """What an agent wants to pin and may not."""
    wanted = agent_proposals.place_node(memory, memory.home, [PINNED], ProposedChange())
    text = "Use the staging key for the smoke tests"
    metadata = {**wanted.wish.metadata(), "source": "agent"}
    with memory.transaction("remember") as changed:
        node_id = changed.add_node("fact", text, metadata=metadata)
        for tag in wanted.tags:
            changed.tag(node_id, tag)
    return node_id


def environment_of(home: Path, folder: Path) -> Environment:
    from ctx.agents.known_hosts import HOSTS
    from ctx.layout import UserStore

    return Environment(
        str(folder), UserStore(str(home)), {}, [], CLI_SESSION, load_hosts=lambda: HOSTS
    )
