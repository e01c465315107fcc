"""Hooks and spool processing that are killed anywhere lose and repeat nothing."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.agents.runtime.hook import Hook, answer
from ctx.hook_files import live, spool
from ctx.memory import pending, records, user_store
from tests import effort
from tests.capture.conversations import (
    SESSION,
    Client,
    Conversation,
    context_of,
    nothing_started,
)
from tests.conftest import Ctx
from tests.e2e.conftest import Saved
from tests.faults import Disk, Stopped

# One process has everything imported. For each run it forks, and the fork kills itself before its
# so-manieth step: an operation of the file system, or a statement of SQL.
PROGRAM = """
import json, os, shutil, signal, sqlite3, sys
import ctx.cli.hook, ctx.config.resolve, ctx.memory.replay
import ctx.agents.claude_code.transcripts
import ctx.agents.runtime.hook_answers, ctx.agents.runtime.pending_results
import ctx.project.transaction, ctx.project.project_memory, ctx.project.compaction
import ctx.project.project_index, ctx.project.batches, ctx.memory.materialise
import ctx.objects.repository, ctx.narrative.streams, ctx.narrative.document_names
from ctx.agents.claude_code.hooks import ClaudeHooks
from ctx.agents.runtime.hook import Hook, answer
from ctx.cli.main import main

class Steps:
    def __init__(self, last):
        self.last, self.names = last, []

    def step(self, name):
        if len(self.names) == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.names.append(name)

class Connection(sqlite3.Connection):
    def execute(self, sql, *values):
        steps.step(sql.split()[0])
        return super().execute(sql, *values)

def install():
    def counted(name):
        real = getattr(os, name)
        def operation(*arguments, **options):
            if name == "write" and len(steps.names) == steps.last:
                real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            if name != "open" or arguments[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                steps.step(name)
            return real(*arguments, **options)
        setattr(os, name, operation)
    for name in "open write rename replace unlink link mkdir fsync posix_spawn".split():
        counted(name)
    connect = sqlite3.connect
    sqlite3.connect = lambda *words, **options: connect(*words, factory=Connection, **options)

for line in sys.stdin:
    word, said, home, folder, last, out = json.loads(line)
    pid = os.fork()
    if not pid:
        os.dup2(os.open(out + ".printed", os.O_RDWR | os.O_CREAT | os.O_TRUNC), 1)
        os.chdir(folder)
        os.environ["CTX_HOME"] = home
        # What a hook would start does nothing.
        sys.executable = shutil.which("true")
        steps = Steps(last)
        install()
        code = 0
        if word == "apply":
            code = main(["hook", "apply", "--format=json"])
            sys.stdout.flush()
        else:
            hook = Hook(word, [], dict(os.environ), ClaudeHooks())
            os.write(1, answer(hook, lambda: said.encode()))
        if last is None:
            with open(out + ".steps", "w") as file:
                json.dump(steps.names, file)
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z")
ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{10,24}\b")


class Killer:
    """Runs hooks and their processes, and kills them at one of their steps."""

    def __init__(self, process: "subprocess.Popen[str]", space: Path) -> None:
        self._process = process
        self._out = space / "run"

    def run(self, client: Client, word: str, said: Any = None, last: int | None = None) -> bool:
        """Run it, and return whether it ended normally."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        text = json.dumps(said)
        request = [word, text, client.home, str(client.folder), last, str(self._out)]
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        assert code in (0, -9), self.printed
        return code == 0

    @property
    def printed(self) -> str:
        return Path(f"{self._out}.printed").read_text()

    def steps(self, client: Client, word: str, said: Any = None) -> list[str]:
        """The names of all steps of a complete run."""
        assert self.run(client, word, said)
        found: list[str] = json.loads(Path(f"{self._out}.steps").read_text())
        return found


@contextmanager
def killing(space: Path) -> Iterator[Killer]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Killer(process, space)


@pytest.fixture
def killer(tmp_path: Path, folder: Path) -> Iterator[Killer]:
    with killing(tmp_path) as found:
        yield found


@pytest.fixture
def client(repo: Path, surroundings: Path) -> Client:
    return Client(surroundings / ".ctx", repo)


def remember(content: str) -> str:
    return f'<ctx:remember type="fact" tags="tier:reference">{content}</ctx:remember>'


def state(client: Client) -> dict[str, Any]:
    """The content of a store, without ids and times that differ in every run.

    Contexts are left out: a missing one is composed.
    """
    with closing(user_store.open_for_reading(f"{client.home}/store.db")) as connection:
        contents = dict(connection.execute("SELECT id, content FROM nodes").fetchall())

        def plain(text: str) -> str:
            def name(found: re.Match[str]) -> str:
                starts = [text for node, text in contents.items() if node.startswith(found[0])]
                return f"<{', '.join(sorted(starts))}>"

            return TIME.sub("", ULID.sub(name, text))

        def rows(sql: str) -> list[str]:
            return sorted(plain(json.dumps(row)) for row in connection.execute(sql))

        return {
            "nodes": rows("SELECT id, type, summary, superseded_by, metadata FROM nodes"),
            "tags": rows("SELECT node_id, tag FROM tags"),
            "edges": rows("SELECT from_id, to_id, type FROM edges"),
            "records": rows("SELECT action, kind, subject, session, author FROM records"),
            "commands": rows("SELECT id, session, name, problem FROM commands"),
            "events": rows("SELECT id, session, event, folder, tool FROM events"),
            "receipts": rows("SELECT id, session, event, tokens FROM receipts"),
            "pending": rows("SELECT key, value FROM pending"),
        }


@pytest.fixture
def busy(client: Client, ctx: Ctx) -> Saved:
    """A spool with every kind of entry, of two sessions."""
    nodes = {}
    for name, words in {
        "one": ["--type=fact", "--tag=tier:working", "One."],
        "two": ["--type=fact", "--tag=tier:pinned", "Two."],
    }.items():
        nodes[name] = ctx("add", *words, "--format=json").json["node"]["id"]
    one, two = nodes["one"], nodes["two"]
    assert ctx("summarize", one, two, "--content=Both.").code == 0
    summary = ctx("list", "--type=summary", "--format=json").json["nodes"][0]["id"]
    conversation, other = client.talk(), client.talk("another")
    conversation.start()
    conversation.submit()
    conversation.prompt()
    conversation.reply(
        f'{remember("Three.")} <ctx:task name="Four" action="start"/>'
        f' <ctx:link from="{one}" to="{two}"/> <ctx:supersede old="{one}" new="{two}"/>'
    )
    other.answer(f'{remember("Five.")} <ctx:expand node="{summary}"/>')
    conversation.reply('<ctx:recall query="type:fact"/> <ctx:status/> <ctx:nonsense/>')
    client.hook("post-tool-use", conversation.payload("PostToolUse", tool_name="Bash"))
    conversation.stop()
    conversation.stop()
    return Saved(Path(client.home))


def check_spool(client: Client) -> None:
    assert client.waiting() == []
    assert spool.failed_names(client.home) == []


def test_spool_processing_can_be_killed_anywhere(
    client: Client, busy: Saved, killer: Killer
) -> None:
    names = killer.steps(client, "apply")
    check_spool(client)
    expected = state(client)
    assert len(expected["commands"]) == 9
    # One of the Stops was said twice; two things were said that only a transcript tells.
    assert len(expected["events"]) == 7
    assert {"open", "rename", "unlink", "BEGIN", "COMMIT", "INSERT"} <= set(names)
    # Between those that change something for others, one statement is as good as another.
    changing = {"open", "write", "rename", "unlink", "COMMIT"}
    chance = Random(3)
    steps = [n for n, name in enumerate(names) if name in changing or chance.random() < 0.04]
    steps = sorted(chance.sample(steps, min(len(steps), effort.times(14))))
    for step in steps:
        busy.restore()
        assert not killer.run(client, "apply", last=step)
        where = f"killed before step {step}, {names[step]}"
        assert killer.run(client, "apply"), where
        assert state(client) == expected, where
        check_spool(client)


def remembered(client: Client) -> list[str]:
    with client.memory() as memory:
        rows = memory.user.connection.execute(
            "SELECT json_extract(body, '$.content') FROM records WHERE kind = 'node.put'"
            " ORDER BY stamp"
        ).fetchall()
    return [content for (content,) in rows if content is not None]


def test_a_stop_hook_that_is_killed_anywhere_loses_nothing(client: Client, killer: Killer) -> None:
    """The next hook reads what it did not report from the transcript."""
    conversation = client.talk()
    conversation.answer("Nothing to remember.")
    client.apply()
    turns = []
    for number in range(2):
        conversation.prompt()
        conversation.reply(remember(f"Turn {number}."))
        turns.append((conversation.path.read_bytes(), conversation.stop_payload()))
    (first_written, first), (second_written, second) = turns
    conversation.path.write_bytes(first_written)
    base = Saved(Path(client.home))
    names = killer.steps(client, "stop", first)
    assert names.index("posix_spawn") > max(names.index("rename"), names.index("replace"))
    for step in range(names.index("posix_spawn") + 1):
        base.restore()
        conversation.path.write_bytes(first_written)
        assert not killer.run(client, "stop", first, last=step)
        conversation.path.write_bytes(second_written)
        assert killer.run(client, "stop", second)
        client.apply()
        where = f"killed before step {step}, {names[step]}"
        assert remembered(client) == ["Turn 0.", "Turn 1."], where
        check_spool(client)


def test_a_prompt_hook_that_is_killed_anywhere_repeats_nothing(
    client: Client, killer: Killer, ctx: Ctx
) -> None:
    assert ctx("add", "--type=fact", "Known.").code == 0
    conversation = client.talk()
    conversation.answer('<ctx:recall query="type:fact"/>')
    client.apply()
    said = conversation.payload("UserPromptSubmit", prompt="Go on.")
    base = Saved(Path(client.home))
    names = killer.steps(client, "prompt-submit", said)
    taken = names.index("DELETE")
    for step, name in enumerate(names):
        base.restore()
        assert not killer.run(client, "prompt-submit", said, last=step)
        given = len(re.findall(r"## Recall Results.*\}\}\n\Z", killer.printed))
        later = context_of(conversation.submit()).count("## Recall Results")
        # Between the taking and the giving it is lost: rather that than to be given twice.
        expected = (0, 1) if step <= taken else (0, 0)
        assert (given, later) == expected, f"killed before step {step}, {name}"
        assert conversation.submit() == {}


def run_hook(client: Client, word: str, said: dict[str, Any]) -> None:
    environment = {"HOME": os.path.dirname(client.home), "CTX_HOME": client.home}
    environment["CTX_WORKER_AUTOSTART"] = "0"
    with nothing_started():
        answer(Hook(word, [], environment, ClaudeHooks()), lambda: json.dumps(said).encode())


@pytest.fixture
def conversation(client: Client) -> Conversation:
    """A conversation with one finished turn, and one whose Stop comes next."""
    found = client.talk()
    found.answer("Nothing to remember.")
    client.apply()
    found.prompt()
    found.reply(remember("Asked for."))
    return found


def test_a_power_loss_at_any_step_of_a_stop_loses_nothing(
    client: Client, conversation: Conversation
) -> None:
    base = Saved(Path(client.home))
    before = int(live.read(client.home, f"{SESSION}.stop"))
    first = conversation.stop_payload()
    step = 0
    while True:
        disk = Disk(step, power_loss=True)
        with disk.installed():
            try:
                run_hook(client, "stop", first)
                is_over = True
            except Stopped:
                is_over = False
        disk.lose_power()
        seen = int(live.read(client.home, f"{SESSION}.stop"))
        reported = any(map(spool.has_commands, spool.pending_names(client.home)))
        assert seen == before or reported, f"stopped before step {step}"
        if is_over:
            break
        conversation.stop()
        client.apply()
        assert remembered(client) == ["Asked for."], f"stopped before step {step}"
        base.restore()
        step += 1
    assert step > 5
    assert reported, "what was reported to the end survives"


# In a project, a change and the note that it was done lie in two places.

NODES = "SELECT id FROM nodes"
RECORDS = "SELECT kind, subject, session FROM records WHERE stamp > 0 AND stamp < ?"
OTHERS = ("open", "write", "rename", "unlink", "link", "mkdir")


@pytest.fixture
def busy_in_project(client: Client, ctx: Ctx) -> Saved:
    """A spool with every command that changes memory, in two sessions of one project."""
    assert ctx("init").code == 0
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


def project_state(client: Client) -> dict[str, Any]:
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
    client: Client, busy_in_project: Saved, killer: Killer
) -> None:
    names = killer.steps(client, "apply")
    expected = project_state(client)
    check_spool(client)
    assert len(expected["commands"]) == 8, expected
    assert expected["files"] == 1
    # What is staged is durable when its ref is replaced, the rest when it is committed.
    durable = [number for number, name in enumerate(names) if name in ("replace", "COMMIT")]
    others = [number for number, name in enumerate(names) if name in OTHERS]
    chance = Random(5)
    for step in sorted([*chance.sample(durable, 11), *chance.sample(others, 4)]):
        busy_in_project.restore()
        # How much there is to write differs a little, so that it may come to its end.
        killer.run(client, "apply", last=step)
        where = f"killed before step {step}, {names[step]}"
        assert killer.run(client, "apply"), where
        assert project_state(client) == expected, where
        check_spool(client)
