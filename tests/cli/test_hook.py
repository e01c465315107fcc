"""`ctx hook`: what agents are given, once each, and what looking after the spool says."""

import json
import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ctx import clock
from ctx.hook_files import live, spool
from ctx.memory import pending
from ctx.operations import apply
from tests.agents.claude_code.hook_processes import Hooks
from tests.capture.conversations import SESSION, Client, Conversation, context_of
from tests.cli.conftest import Add
from tests.conftest import Ctx

DAY_MS = 86_400_000
RECALL = '<ctx:recall query="type:fact"/>'


@pytest.fixture
def client(repo: Path, surroundings: Path) -> Client:
    return Client(surroundings / ".ctx", repo)


@pytest.fixture
def conversation(client: Client) -> Conversation:
    return client.talk()


def remember(content: str) -> str:
    return f'<ctx:remember type="fact">{content}</ctx:remember>'


# ctx hook apply


def test_what_was_done(ctx: Ctx, client: Client, conversation: Conversation, add: Add) -> None:
    assert ctx("hook", "apply").out == "0 events and 0 receipts processed\n"
    add("--type=fact", "--tag=tier:pinned", "Known.")
    conversation.start()
    for _ in range(2):
        conversation.prompt()
        conversation.reply(f"{remember('One.')} {remember('Two.')} <ctx:nonsense/>")
        conversation.stop()
    names = [name for name in spool.pending_names(client.home) if spool.has_commands(name)]
    os.link(spool.path_of(client.home, names[0]), spool.path_of(client.home, "9-9-9.stop.-"))
    stop = {"session": SESSION, "done": 2, "failed": 1, "repeated": 0, "large": 0, "problem": ""}
    stop["proposed"] = 0
    again = {**stop, "event": "9-9-9", "done": 0, "failed": 0, "repeated": 3}
    assert ctx("hook", "apply", "--format=json").json == {
        "stops": [*({"event": spool.id_of(name), **stop} for name in names), again],
        "events": 1,
        "receipts": 1,
        "refused": [],
        "waiting": 0,
    }
    conversation.answer(f"{remember('Three.')} <ctx:nonsense/>")
    conversation.stop()
    assert ctx("hook", "apply").out == (
        f"{SESSION}: 1 command done, 1 failed\n"
        f"{SESSION}: 0 commands done, 0 failed, 2 done before\n"
        "0 events and 0 receipts processed\n"
    )


def test_another_process_is_at_it(
    ctx: Ctx, client: Client, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation.answer(remember("One."))
    monkeypatch.setattr(apply, "_LOCK_S", 0.05)
    with apply.hold_spool(client.home) as held:
        assert held
        ran = ctx("hook", "apply")
        assert ran.out == (
            "0 events and 0 receipts processed\n1 event left: another process is working on them.\n"
        )
        assert ctx("hook", "apply", "--format=json").json["waiting"] == 1
    # A hook waits for the commands alone; the events are taken in nevertheless.
    done = ctx("hook", "apply", "--quick", "--format=json").json
    assert ([stop["done"] for stop in done["stops"]], done["events"]) == ([1], 0)
    assert client.waiting() == []
    spool.put(client.home, "1-2-3", "post-tool-use", b"{")
    ran = ctx("hook", "apply")
    assert ran.code == 0
    assert ran.err == "warning: post-tool-use 1-2-3 was not stored: It is not JSON.\n"
    log = (Path(client.home) / "hook.log").read_text()
    assert log.endswith(" apply post-tool-use 1-2-3 was not stored: It is not JSON.\n")


def test_a_mistake_in_the_command_line(ctx: Ctx) -> None:
    ran = ctx("hook", "nonsense")
    assert ran.code == 2
    assert ran.err.startswith("error E011: ")
    for word in spool.EVENTS:
        assert f"ctx hook {word} <" in ctx("hook", word, "--help").out


# As processes


def test_a_prompt_has_what_a_stop_left_done_first(
    client: Client, repo: Path, conversation: Conversation, add: Add
) -> None:
    add("--type=fact", "Known.")
    conversation.answer(f"{RECALL} <ctx:nonsense/>")
    assert client.waiting() == ["stop.-" + str(conversation.size)]
    said = json.dumps(conversation.payload("UserPromptSubmit", prompt="Go on.")).encode()
    with closing(Hooks(Path(client.home), repo)) as hooks:
        answer = json.loads(hooks.run("prompt-submit", said).out)
    assert "] Known." in context_of(answer)
    assert answer["systemMessage"] == (
        "ctx: 1 of 2 commands failed; the agent is told with your next prompt"
    )


# What waits for a session


def waiting_recall(conversation: Conversation) -> None:
    conversation.answer(RECALL)
    conversation.client.apply()


def moves_on(client: Client, conversation: Conversation, seconds: int) -> None:
    """Say when a conversation went on from another; times are written in whole seconds."""
    path = live.path_of(client.home, f"{conversation.session}.before")
    os.utime(path, (clock.now_s() + seconds,) * 2)


def test_what_waits_is_for_its_session_alone(client: Client, conversation: Conversation) -> None:
    conversation.start()
    waiting_recall(conversation)
    assert context_of(client.talk("another").submit()) == ""
    # One that ends otherwise than by being cleared keeps it.
    conversation.end("logout")
    after = client.talk("after")
    after.start("startup")
    assert after.submit() == {}
    conversation.start("resume")
    assert "## Recall Results" in context_of(conversation.submit())
    assert conversation.submit() == {}


@pytest.mark.parametrize("process", ["", "4242"])
def test_it_goes_along_however_often_a_conversation_is_cleared(
    client: Client, conversation: Conversation, process: str
) -> None:
    client.process = process
    conversation.start()
    waiting_recall(conversation)
    conversation.end("clear")
    for number in range(3):
        after = client.talk(f"after-clear-{number}")
        assert "## Recall Results" not in context_of(after.start("clear"))
        if number < 2:
            after.end("clear")
    assert "## Recall Results" in context_of(after.submit())
    assert after.submit() == {}
    assert conversation.submit() == {}


def test_pending_results_of_both_sides_come_in_order(
    client: Client, conversation: Conversation
) -> None:
    """One is done after the conversation was cleared, and was still asked for in it."""
    client.process = "4242"
    conversation.start()
    conversation.answer('<ctx:recall query="type:fact"/>')
    conversation.end("clear")
    after = client.talk("after-clear")
    after.start("clear")
    moves_on(client, after, 1)
    after.answer('<ctx:recall query="type:task"/>')
    client.apply()
    asked = re.findall("Query: `(.*)`", context_of(after.submit()))
    assert asked == ["type:fact", "type:task"]


def test_it_goes_along_when_a_conversation_is_forked(
    client: Client, conversation: Conversation
) -> None:
    """The client says only how long ago the other one had its last answer."""
    stranger = client.talk("stranger")
    stranger.start()
    waiting_recall(stranger)
    os.utime(stranger.path, (clock.now_s() - 500,) * 2)
    conversation.start()
    waiting_recall(conversation)
    os.utime(conversation.path, (clock.now_s() - 90,) * 2)
    fork = client.talk("fork")
    fork.start("fork", seconds_since_last_response=91)
    assert context_of(fork.submit()).count("## Recall Results") == 1
    # Whoever comes first is given it.
    assert conversation.submit() == {}
    assert "## Recall Results" in context_of(stranger.submit())


def test_results_after_a_fork_stay_in_their_session(
    client: Client, conversation: Conversation
) -> None:
    conversation.start()
    conversation.answer("Nothing.")
    fork = client.talk("fork")
    fork.start("fork", seconds_since_last_response=0)
    assert live.continued_session(client.home, "fork") == SESSION
    moves_on(client, fork, -2)
    waiting_recall(conversation)
    assert fork.submit() == {}
    assert "## Recall Results" in context_of(conversation.submit())
    # And the other way round.
    waiting_recall(fork)
    assert conversation.submit() == {}
    assert "## Recall Results" in context_of(fork.submit())


def test_of_a_fork_of_a_fork_only_what_was_there_moves_along(
    client: Client, conversation: Conversation
) -> None:
    conversation.start()
    waiting_recall(conversation)
    fork = client.talk("fork")
    fork.start("fork", seconds_since_last_response=0)
    moves_on(client, fork, -2)
    second = client.talk("second")
    live.write(client.home, "second.before", "fork")
    # What waits for the first one came after the first fork, though before the second.
    assert second.submit() == {}
    moves_on(client, fork, 2)
    assert "## Recall Results" in context_of(second.submit())


def test_two_clients_are_not_mixed_up(client: Client, conversation: Conversation) -> None:
    """One clears its conversation, and another one in the same folder starts a new one."""
    client.process = "4242"
    conversation.start()
    waiting_recall(conversation)
    conversation.end("clear")
    client.process = "4343"
    other = client.talk("other-client")
    other.start("clear")
    assert other.submit() == {}
    client.process = "4242"
    after = client.talk("after-clear")
    after.start("clear")
    assert "## Recall Results" in context_of(after.submit())


def test_pending_results_expire_after_a_day(
    ctx: Ctx, client: Client, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ctx("task", "start", "OAuth").code == 0
    waiting_recall(conversation)
    with client.memory() as memory:
        connection = memory.user.connection
        rows = connection.execute("SELECT key FROM pending ORDER BY 1").fetchall()
        assert rows == [("current_task:app:main",), (f"recall_results:{SESSION}",)]
        yesterday = clock.iso(clock.now_ms() - DAY_MS - 1000)
        connection.execute("UPDATE pending SET created_at = ?", (yesterday,))
    assert conversation.submit() == {}
    other = client.talk("another")
    waiting_recall(other)
    with client.memory() as memory:
        rows = memory.local.execute("SELECT key FROM pending ORDER BY 1").fetchall()
        assert rows == [("current_task:app:main",), ("recall_results:another",)]
        assert pending.current_task(memory.user, memory.place.task_key) == "oauth"
    assert "## Recall Results" in context_of(other.submit())


def test_what_is_too_much_is_cut_between_items(
    client: Client, conversation: Conversation, add: Add, ctx: Ctx
) -> None:
    for number in range(9):
        add("--type=fact", f"Fact {number} of the 更新 " + "word " * 180)
    asked = ("fact", "word", "type:fact")
    conversation.answer("".join(f'<ctx:recall query="{query}"/>' for query in asked))
    client.apply()
    answer = conversation.submit()
    text = context_of(answer)
    assert len(text.encode("utf-16-le")) // 2 <= 10_000
    body, cut, rest = text.rpartition("… ")
    assert cut
    assert re.fullmatch(
        r"\d+ more parts did not fit here\. `ctx recall WORDS`, `ctx query FILTERS` or"
        r" `ctx show ID` in a shell shows the rest\.\n",
        rest,
    )
    assert body.endswith("  - Tags: project:app\n\n")
    given = ctx("why", "--format=json").json
    assert len(given["items"]) == body.count("- [fact:")
    assert conversation.submit() == {}, "what was cut is not given later"


# What changed, and where an agent was


def test_a_resumed_session_gets_the_changes(
    client: Client, conversation: Conversation, ctx: Ctx, add: Add
) -> None:
    add("--type=fact", "--tag=tier:reference", "Stays.")
    gone = add("--type=fact", "--tag=tier:reference", "Goes.")
    first = context_of(conversation.start())
    assert "Stays." in first
    assert conversation.start("resume") == {}
    added = add("--type=fact", "--tag=tier:reference", "Is new.")
    ctx("delete", gone, "--yes")
    answer = conversation.start("resume")
    text = context_of(answer)
    assert "Stays." not in text
    assert f"[fact:{added}] Is new." in text
    assert f"No longer included: [node:{gone}]." in text
    assert answer["systemMessage"].startswith("ctx: 1 node, ")
    assert conversation.start("resume") == {}
    # A conversation that begins anew has forgotten all of it.
    again = context_of(conversation.start("compact"))
    assert "Stays." in again
    assert "Is new." in again
    assert conversation.start("resume") == {}


def receipts_of(client: Client) -> dict[str, dict[str, str]]:
    """The files that tell what a session was given, by how their names end."""
    folder = Path(client.home) / "live"
    found = sorted(folder.glob(f"{SESSION}.receipt*"))
    return {path.name.partition(".")[2]: json.loads(path.read_text()) for path in found}


def test_a_context_in_parts_is_known_on_resume(
    client: Client, conversation: Conversation, ctx: Ctx, add: Add
) -> None:
    assert ctx("config", "set", "context.budget", "6000").code == 0
    ids = [
        add("--type=fact", "--tag=tier:reference", f"{number} " + "word " * 30)
        for number in range(50)
    ]
    client.apply()
    for part in ("3", "1", "2"):
        assert context_of(conversation.start("startup", "--part", part))
    kept = receipts_of(client)
    assert kept.keys() == {"receipt", "receipt-2", "receipt-3"}
    assert sorted(node[:12] for part in kept.values() for node in part) == sorted(ids)
    assert conversation.start("resume") == {}
    assert receipts_of(client).keys() == {"receipt"}
    assert ctx("update", ids[0], "--content=Is changed.").code == 0
    for part in ("2", "3"):
        assert conversation.start("resume", "--part", part) == {}
    text = context_of(conversation.start("resume"))
    assert re.findall(r"\[fact:(\w+)\]", text) == [ids[0]]
    assert conversation.start("resume") == {}
    assert len(receipts_of(client)["receipt"]) == 50


def test_an_empty_context_is_known_too(
    ctx: Ctx, client: Client, conversation: Conversation, add: Add
) -> None:
    assert ctx("status").code == 0
    assert conversation.start()["systemMessage"] == "ctx: memory is empty here"
    assert receipts_of(client) == {"receipt": {}}
    assert client.waiting() == ["session-start", "receipt"]
    assert client.apply().receipts == 1
    told = ctx("why", "--format=json").json
    assert told["items"] == []
    add("--type=fact", "--tag=tier:reference", "Is new.")
    assert "Is new." in context_of(conversation.start("resume"))


def test_a_client_that_loses_its_context(
    client: Client, conversation: Conversation, add: Add
) -> None:
    """Older ones do not write it down; when they resume, they are given everything again."""
    add("--type=fact", "--tag=tier:reference", "Stays.")
    first = context_of(conversation.start())
    conversation.path.unlink()
    conversation.answer("Nothing.")
    assert context_of(conversation.start("resume")) == first


def test_what_it_was_at_comes_first_after_a_compaction(
    client: Client, conversation: Conversation, ctx: Ctx, add: Add
) -> None:
    add("--type=fact", "--tag=tier:pinned", "A pin.")
    assert ctx("task", "start", "OAuth").code == 0
    add("--type=observation", "--tag=tier:working", "Half done.")
    add("--type=open-question", "Which library?")
    conversation.start()
    client.hook("pre-compact", conversation.payload("PreCompact", trigger="auto"))
    state = Path(live.path_of(client.home, f"{SESSION}.state"))
    nodes, lines = json.loads(state.read_text())
    assert (len(nodes), lines) == (3, [])
    text = context_of(conversation.start("compact"))
    assert re.findall(r"^## .*|\] .*", text, re.MULTILINE) == [
        "## Where you were",
        "] OAuth",
        "] Which library?",
        "] Half done.",
        "## Pinned",
        "] A pin.",
    ]
    assert not state.exists()
    # The next start is about the place, and not about where somebody was.
    assert "## Where you were" not in context_of(client.talk("another").start())


def test_a_session_without_a_context_gets_all_of_it(client: Client, add: Add) -> None:
    add("--type=fact", "--tag=tier:reference", "Stays.")
    for source in ("startup", "clear", "compact", "fork", "resume"):
        assert "Stays." in context_of(client.talk(f"of-{source}").start(source)), source


def test_a_hook_names_another_host(repo: Path, surroundings: Path) -> None:
    for words in (["--host", "gemini"], ["--host=gemini"], ["--host", "nobody"]):
        done = subprocess.run(
            [Path(sys.executable).with_name("ctx"), "hook", "post-tool-use", *words],
            input=b'{"session_id":"a"}',
            capture_output=True,
            check=False,
        )
        assert done.returncode == (2 if words == ["--host", "nobody"] else 0), done.stderr
    names = os.listdir(surroundings / ".ctx" / "spool")
    assert len([name for name in names if "gemini" in name]) == 2
