"""Processes that run agent commands in a project can be killed anywhere: nothing is lost,
and nothing is done twice. There a change and the note that it was done lie in two places."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctx.memory import pending, records
from tests.capture.conversations import Client
from tests.conftest import Ctx
from tests.e2e.conftest import Saved
from tests.e2e.test_hook_crash import PROGRAM, Killer, check_spool, remember

# What is imported only there is imported before the process is forked.
IN_PROJECT = """
import ctx.project.transaction, ctx.project.project_memory, ctx.project.compaction
import ctx.project.project_index, ctx.project.batches, ctx.memory.materialise
import ctx.objects.repository
import ctx.narrative.streams, ctx.narrative.document_names
"""
NODES = "SELECT id FROM nodes"
RECORDS = "SELECT kind, subject, session FROM records WHERE stamp > 0 AND stamp < ?"
OTHERS = ("open", "write", "rename", "unlink", "link", "mkdir")


@pytest.fixture
def killer(tmp_path: Path) -> Iterator[Killer]:
    program = (IN_PROJECT + PROGRAM).replace("unlink mkdir", "unlink link mkdir")
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Killer(process, tmp_path)


@pytest.fixture
def client(repo: Path, surroundings: Path, ctx: Ctx) -> Client:
    assert ctx("init").code == 0
    return Client(surroundings / ".ctx", repo)


@pytest.fixture
def busy(client: Client, ctx: Ctx) -> Saved:
    """A spool with every command that changes memory, in two sessions of one project."""
    one, two = (
        ctx("add", "--type=fact", text, "--format=json").json["node"]["id"]
        for text in ("One.", "Two.")
    )
    conversation, other = client.talk(), client.talk("another")
    conversation.answer(
        f'{remember("Three.")} <ctx:task name="Four" action="start"/>'
        f' <ctx:link from="{one}" to="{two}"/> <ctx:supersede old="{one}" new="{two}"/>'
    )
    other.answer(
        f'{remember("Five.")} <ctx:summarize nodes="{two}" archive="true">Six.</ctx:summarize>'
        ' <ctx:remember type="fact" scope="user">Seven.</ctx:remember>'
        ' <ctx:recall query="type:fact"/>'
    )
    return Saved(Path(client.home), client.folder)


def state(client: Client) -> dict[str, Any]:
    """The content of memory, from the records alone, without the index."""
    for index in client.folder.glob(".git/ctx/*/index"):
        shutil.rmtree(index)
    with client.memory() as memory:
        graph, user = memory.graph, memory.user.connection
        every = [row[0] for each in graph.connections for row in each.execute(NODES)]
        nodes = {node.id: node for node in graph.nodes(every)}
        assert len(nodes) == len(every)
        words = {node_id: node.content for node_id, node in nodes.items()}
        tasks = client.folder.glob(".ctx/narrative/tasks/*.md")
        return {
            "nodes": sorted(
                (node.content, node.scope, node.staged or "", node.type, *node.tags)
                for node in nodes.values()
            ),
            "edges": sorted(
                (words[edge.from_id], edge.type, words[edge.to_id])
                for node_id in nodes
                for edge in graph.edges(node_id, "out")
            ),
            "records": sorted(
                (kind, words.get(subject, "?"), session)
                for each in graph.connections
                for kind, subject, session in each.execute(RECORDS, (records.BEYOND,))
            ),
            "commands": sorted(
                user.execute("SELECT name, session, ifnull(problem, '') FROM commands")
            ),
            "pending": sorted(user.execute("SELECT key FROM pending")),
            "task": pending.current_task(memory.user, memory.place.task_key),
            "files": len([each for each in tasks if each.name != "README.md"]),
        }


def test_agent_commands_are_neither_lost_nor_repeated(
    client: Client, busy: Saved, killer: Killer
) -> None:
    names = killer.steps(client, "apply")
    expected = state(client)
    check_spool(client)
    assert len(expected["commands"]) == 8, expected
    assert expected["files"] == 1
    # What is staged is durable when its ref is replaced, the rest when it is committed.
    durable = [number for number, name in enumerate(names) if name in ("replace", "COMMIT")]
    others = [number for number, name in enumerate(names) if name in OTHERS]
    chance = Random(5)
    for step in sorted([*chance.sample(durable, 11), *chance.sample(others, 4)]):
        busy.restore()
        # How much there is to write differs a little, so that it may come to its end.
        killer.run(client, "apply", last=step)
        where = f"killed before step {step}, {names[step]}"
        assert killer.run(client, "apply"), where
        assert state(client) == expected, where
        check_spool(client)
