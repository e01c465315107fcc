"""The spool is processed: each command runs once, each event is stored once."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctx import clock, layout
from ctx.capture import event_store, session_table
from ctx.context import contexts, layers
from ctx.errors import CtxError, DatabaseFailure, DiskFailure
from ctx.hook_files import spool
from ctx.hosts.events import Event
from ctx.memory import receipts
from ctx.operations import apply, read_agent_commands
from ctx.operations.apply import ApplyResult, RefusedEvent, StopCommands
from ctx.workspace import Memory
from tests import effort
from tests.capture.conversations import SESSION, TIMEOUT_S, Client, Conversation, context_of
from tests.conftest import Ctx

DAY_MS = 86_400_000


def remember(content: str) -> str:
    return f'<ctx:remember type="fact">{content}</ctx:remember>'


def remembered(client: Client) -> list[str]:
    """The contents of memory, in the order in which they were added."""
    with client.memory() as memory:
        rows = memory.user.connection.execute(
            "SELECT json_extract(body, '$.content') FROM records WHERE kind = 'node.put'"
            " ORDER BY stamp"
        ).fetchall()
    return [content for (content,) in rows if content is not None]


def claims(client: Client) -> list[str]:
    """The names of the commands that have run."""
    with client.memory() as memory:
        rows = memory.local.execute("SELECT id FROM commands ORDER BY rowid").fetchall()
    return [name for (name,) in rows]


def stops(applied: ApplyResult) -> list[tuple[int, int, int]]:
    return [(stop.done, stop.failed, stop.repeated) for stop in applied.stops]


def leave(client: Client, said: dict[str, Any], kind: str) -> str:
    """Write an event to the spool as a hook does, and return its id."""
    event_id = spool.new_id(clock.now_ms())
    spool.put(client.home, event_id, kind, json.dumps(said).encode())
    return event_id


# Each command once


def test_the_commands_of_an_answer_are_run(talk: Conversation) -> None:
    talk.prompt()
    talk.reply(f"I looked.\n\n{remember('One.')}", f"{remember('Two.')} <ctx:nonsense/>")
    talk.reply("Now I know more.", message_id="msg_last")
    talk.reply(remember("Three."))
    event_id = leave(talk.client, talk.stop_payload(), "stop.-")
    assert talk.client.apply() == apply.NOTHING._replace(
        stops=(StopCommands(event_id, SESSION, 3, 1, 0, 0, ""),)
    )
    assert remembered(talk.client) == ["One.", "Two.", "Three."]
    assert talk.client.waiting() == []
    with talk.client.memory() as memory:
        rows = memory.local.execute(
            "SELECT id, session, name FROM commands ORDER BY rowid"
        ).fetchall()
        claims = [row[0].split(" ") for row in rows]
        assert [each[1] for each in claims] == ["msg_5dd6_1"] * 3 + ["msg_5dd6_3"]
        assert len({each[2] for each in claims}) == 4
        assert [row[0].split(" ")[3] for row in rows] == ["0"] * 4
        assert [row[1:] for row in rows] == [
            *((SESSION, "remember"), (SESSION, "remember"), (SESSION, "?"), (SESSION, "remember"))
        ]
        kept = memory.local.execute("SELECT id, session, event FROM events").fetchall()
        assert kept == [(event_id, SESSION, "Stop")]


def test_a_repeated_stop_runs_commands_once(talk: Conversation) -> None:
    talk.start()
    talk.prompt()
    talk.reply(remember("Before."))
    talk.reply(remember("Once.") + " <ctx:status/> <ctx:nonsense/>")
    for number in range(5):
        talk.stop()
        if number > 2:
            talk.client.apply()
    assert remembered(talk.client) == ["Before.", "Once."]
    told = context_of(talk.submit())
    assert told.count("## A memory command failed") == 1
    assert told.count("## Memory status") == 1
    assert context_of(talk.submit()) == ""


def test_the_same_question_twice_in_one_answer_is_answered_once(talk: Conversation) -> None:
    talk.answer('<ctx:recall query="tokens"/>\n<ctx:recall query="tokens"/>')
    assert stops(talk.client.apply()) == [(2, 0, 0)]
    assert context_of(talk.submit()).count("## Recall Results") == 1


def test_a_command_gets_its_name_when_the_transcript_has_it(talk: Conversation) -> None:
    talk.answer("Nothing.")
    talk.prompt()
    text = f"{remember('Twice.')} {remember('Twice.')} {remember('Once.')}"
    talk.stop(last_assistant_message=text)
    talk.client.apply()
    unnamed = [claim.split(" ") for claim in claims(talk.client)]
    assert [claim[:2] for claim in unnamed] == [[SESSION, "~prompt-2"]] * 3
    assert len({claim[2] for claim in unnamed}) == 1
    with talk.client.memory() as memory:
        keys = memory.local.execute("SELECT key FROM pending").fetchall()
    assert keys == []
    talk.reply("Before it.", message_id="msg_late")
    talk.reply(text, message_id="msg_late")
    talk.stop()
    talk.client.apply()
    named = [claim.split(" ") for claim in claims(talk.client)]
    assert [claim[:2] for claim in named] == [[SESSION, "msg_late"]] * 3
    assert {tuple(claim[2:]) for claim in named} == {tuple(claim[3:]) for claim in unnamed}
    assert remembered(talk.client) == ["Twice.", "Twice.", "Once."]


def test_the_end_of_an_answer_in_the_transcript_is_waited_for(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it has its name, and differs from the same text in a later message."""
    talk.answer("Nothing.")
    talk.prompt()
    text = remember("Written late.")
    talk.stop(last_assistant_message=text)
    monkeypatch.setattr(read_agent_commands, "_LATE_S", TIMEOUT_S)
    writing = Timer(0.05, talk.reply, [text], {"message_id": "msg_late"})
    writing.start()
    talk.client.apply()
    writing.join()
    (claim,) = claims(talk.client)
    assert claim.split(" ")[:2] == [SESSION, "msg_late"]
    talk.stop()
    talk.client.apply()
    assert remembered(talk.client) == ["Written late."]


class Writing:
    """A talk whose client can write the transcript late."""

    def __init__(self, talk: Conversation) -> None:
        self.talk = talk
        self.expected: Counter[str] = Counter()
        self._told: dict[str, Any] = {}
        self._late: list[tuple[str, str]] = []
        self._number = 0

    def does(self, what: str) -> None:
        if what == "apply":
            self.talk.client.apply()
        elif what == "stop again":
            if self._told:
                self.talk.client.hook("stop", self._told)
        elif what == "write":
            self._write()
        else:
            self._answer(what)

    def _answer(self, what: str) -> None:
        self._write()
        self._number += 1
        talk = self.talk
        talk.prompt()
        contents = ["The same." if "same" in what else f"Number {self._number}."]
        if "twice" in what:
            # The blocks of one message are never the same.
            contents.append("The last block." if "blocks" in what else contents[0])
        texts = ["Nothing."]
        if "nothing" not in what:
            texts = list(map(remember, contents))
            self.expected.update(contents)
        for at, each in enumerate(texts):
            message_id = f"msg_{self._number}_{0 if 'blocks' in what else at}"
            if "late" in what and at == len(texts) - 1:
                self._late.append((each, message_id))
            else:
                talk.reply(each, message_id=message_id)
        talk.last = texts[-1]
        self._told = {}
        if "unheard" not in what:
            self._told = talk.stop_payload()
            talk.client.hook("stop", self._told)

    def _write(self) -> None:
        for text, message_id in self._late:
            self.talk.reply(text, message_id=message_id)
        self._late = []

    def ends(self) -> None:
        self._answer("nothing")
        self.talk.client.apply()


HAPPENING = st.sampled_from(
    [
        *("one", "one same", "one nothing", "one late", "one same late", "one unheard"),
        *("twice", "twice same", "twice late", "twice blocks", "twice blocks late"),
        *("apply", "apply", "stop again", "stop again", "write"),
    ]
)


@settings(max_examples=effort.times(12), deadline=None, derandomize=True)
@given(st.lists(HAPPENING, min_size=1, max_size=9))
@example(["one late", "apply", "stop again", "apply", "write", "stop again"])
@example(["twice late", "apply", "write", "stop again", "apply", "stop again"])
@example(["twice blocks late", "apply", "write", "stop again", "apply", "stop again"])
@example(["twice same", "stop again", "apply", "one same", "apply", "one same", "stop again"])
@example(["one unheard", "one unheard", "one unheard", "one nothing"])
@example(["one same", "apply", "one same late", "apply", "one same"])
@example(["one unheard", "twice same late", "stop again", "apply", "apply"])
def test_each_command_is_run_once_in_any_order_of_events(happening: list[str]) -> None:
    with TemporaryDirectory() as space, pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_agent_commands, "_LATE_S", 0)
        client = Client(Path(space) / ".ctx", Path(space))
        writing = Writing(client.talk())
        # From the first Stop on, nothing is missed.
        for what in ("one nothing", *happening):
            writing.does(what)
        writing.ends()
        assert Counter(remembered(client)) == writing.expected
        assert client.waiting() == []


def test_commands_are_run_in_the_order_in_which_they_were_written(talk: Conversation) -> None:
    other = talk.client.talk("another")
    talk.answer('<ctx:task name="First" action="start"/>' + remember("Of the first."))
    other.answer('<ctx:remember type="fact" tier="working">Works.</ctx:remember>')
    talk.answer('<ctx:task name="First" action="end"/>' + remember("After it."))
    talk.client.apply()
    assert remembered(talk.client) == ["First", "Of the first.", "Works.", "After it."]
    with talk.client.memory() as memory:
        found = memory.graph.newest([], ["task:first"], None, None)[0]
        tags = {node.content: node.tags[-1] for node in memory.graph.nodes(found)}
    assert tags == {"First": "tier:off-context", "Works.": "tier:off-context"}


# What the transcript may look like


def test_a_fork_runs_only_its_own_commands(talk: Conversation) -> None:
    """Its transcript is a copy, so all earlier messages are in it."""
    talk.answer(remember("Before the fork."))
    talk.answer(remember("Right before the fork."))
    talk.client.apply()
    fork = talk.client.talk("fork")
    fork.path.write_bytes(talk.path.read_bytes().replace(SESSION.encode(), b"fork"))
    fork.start("fork")
    for number in range(2):
        fork.prompt()
        fork.reply(remember(f"In the fork {number}."), message_id=f"msg_fork_{number}")
        fork.stop()
        talk.client.apply()
    # And the one that it was made from may go on as well.
    talk.answer(remember("Beside the fork."))
    talk.client.apply()
    assert remembered(talk.client) == [
        "Before the fork.",
        "Right before the fork.",
        "In the fork 0.",
        "In the fork 1.",
        "Beside the fork.",
    ]


def test_without_a_stored_position_only_the_last_turn_counts(talk: Conversation) -> None:
    """The position of the last Stop was deleted."""
    for number in range(3):
        talk.answer(remember(f"Turn {number}."))
    talk.client.apply()
    os.unlink(f"{talk.client.home}/live/{SESSION}.stop")
    talk.stop()
    talk.answer(remember("Last turn."))
    talk.client.apply()
    assert remembered(talk.client) == ["Turn 0.", "Turn 1.", "Turn 2.", "Last turn."]


def test_a_rewritten_transcript_is_read_from_the_last_turn(talk: Conversation) -> None:
    """It is shorter than the stored position."""
    talk.answer("Nothing. " * 100)
    talk.path.unlink()
    talk.answer(remember("Anew."))
    talk.client.apply()
    assert remembered(talk.client) == ["Anew."]


@pytest.mark.parametrize("cut", [1, 20])
@pytest.mark.parametrize("tells_the_last", [True, False])
def test_a_partial_line_is_run_once(talk: Conversation, cut: int, tells_the_last: bool) -> None:
    """With or without the last message in the payload: now or at the next Stop."""
    talk.answer("Nothing.")
    talk.prompt()
    talk.reply(remember("Half written."))
    whole = talk.path.read_bytes()
    talk.path.write_bytes(whole[:-cut])
    told = {} if tells_the_last else {"last_assistant_message": None}
    talk.stop(**told)
    talk.client.apply()
    is_readable = tells_the_last or cut == 1
    assert remembered(talk.client) == (["Half written."] if is_readable else [])
    talk.path.write_bytes(whole)
    talk.answer("Nothing more.")
    talk.client.apply()
    assert remembered(talk.client) == ["Half written."]


def test_without_a_transcript_the_last_message_is_used(talk: Conversation) -> None:
    talk.last = remember("Only told.")
    for _ in range(3):
        talk.stop()
        assert talk.client.apply().stops[0].problem == ""
    talk.last = remember("Only told too.")
    talk.stop(transcript_path="")
    assert talk.client.apply().stops[0].problem == ""
    assert remembered(talk.client) == ["Only told.", "Only told too."]
    # Only where nothing is told either is there a problem.
    leave(talk.client, talk.stop_payload(last_assistant_message=None), "stop.-")
    problem = f"There is no transcript {talk.path}."
    assert talk.client.apply().stops[0].problem == problem


def test_old_transcripts_are_read(talk: Conversation) -> None:
    """They have no ids, no lists and no last message."""
    for number in range(2):
        talk.prompt()
        content = remember(f"Old {number}.")
        talk.entry("assistant", message={"content": content})
        for _ in range(2):
            talk.stop(last_assistant_message=None, prompt_id=None)
            talk.client.apply()
    assert remembered(talk.client) == ["Old 0.", "Old 1."]


def test_a_lone_surrogate_does_not_stop_the_rest(talk: Conversation) -> None:
    """A text that is cut inside an emoji is not valid Unicode."""
    other = talk.client.talk("another")
    talk.last = f"{remember('Cut 😀'.encode('utf-16', 'surrogatepass').decode('utf-16'))}"
    talk.last = talk.last.replace("😀", "\ud83d") + remember("Whole.")
    talk.stop()
    other.answer(remember("Another."))
    talk.client.apply()
    assert talk.client.waiting() == []
    found = remembered(talk.client)
    assert found[1:] == ["Whole.", "Another."]
    assert found[0].startswith("Cut ")


def test_secrets_in_an_answer_are_redacted(talk: Conversation) -> None:
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    talk.last = f"The token is {secret}. {remember(f'It is {secret}.')}"
    talk.stop()
    talk.client.apply()
    talk.answer(f"Again {secret}. {remember(f'Again {secret}.')}")
    talk.client.apply()
    assert len(remembered(talk.client)) == 2
    with talk.client.memory() as memory:
        assert secret not in "".join(memory.user.connection.iterdump())


def test_a_response_on_the_command_line_can_be_repeated(client: Client) -> None:
    for _ in range(2):
        client.hook("stop", {}, "--response", remember("By hand."))
        client.apply()
    assert remembered(client) == ["By hand."] * 2


# Where an agent works


def test_an_agent_works_in_its_own_folder(talk: Conversation, tmp_path: Path) -> None:
    talk.answer(remember("In the project."))
    elsewhere = talk.client.talk("elsewhere")
    elsewhere.prompt()
    elsewhere.reply(remember("Outside."))
    elsewhere.stop(cwd=str(tmp_path))
    elsewhere.stop(cwd="relative")
    talk.client.apply()
    with talk.client.memory() as memory:
        tags = {
            node.content: node.tags
            for node in memory.graph.nodes(memory.graph.newest(["fact"], [], None, None)[0])
        }
        sessions = memory.user.connection.execute(
            "SELECT DISTINCT session, author FROM records WHERE session <> '' ORDER BY 1"
        ).fetchall()
    assert tags == {"In the project.": ("project:app",), "Outside.": ()}
    assert sessions == [(SESSION, "claude-code"), ("elsewhere", "claude-code")]


@pytest.mark.parametrize("query", ["type:fact", "gateway", "gateway type:fact"])
def test_outside_of_any_project_an_agent_finds_what_it_remembered_for_one(
    talk: Conversation, tmp_path: Path, ctx: Ctx, query: str
) -> None:
    talk.answer(remember("The gateway of the project."))
    talk.client.apply()
    assert ctx("config", "set", "agents.may_pin", "true").code == 0
    talk.client.folder = tmp_path
    outside = talk.client.talk("outside")
    tagged = '<ctx:remember type="fact" tags="project:shop">The gateway says 429.</ctx:remember>'
    outside.answer(f'{tagged}\n\n<ctx:recall query="{query}"/>')
    talk.client.apply()
    told = context_of(outside.submit())
    assert "] (agent) The gateway says 429." in told
    assert "The gateway of the project." not in told + context_of(outside.start())
    other = talk.client.talk("other")
    other.answer(f'<ctx:recall query="{query}"/>')
    talk.client.apply()
    assert "The gateway says 429." not in context_of(other.submit())


# What cannot be handled


def test_invalid_entries_are_refused_and_do_not_stop_the_rest(talk: Conversation) -> None:
    kinds = {
        "stop.0-9": b"not JSON",
        "stop.-": b"{}",
        "post-tool-use": b"[]",
        "nonsense": b"{}",
        "receipt": b'{"items": 7}',
    }
    expected = {
        "stop.0-9": "It is not JSON.",
        "stop.-": "It names no session.",
        "post-tool-use": "ctx does not know this event.",
        "nonsense": "ctx does not know this event.",
        "receipt": "This is not a receipt.",
    }
    for number, (kind, data) in enumerate(kinds.items()):
        spool.put(talk.client.home, f"{number:013d}-1-a", kind, data)
    talk.answer(remember("Good."))
    leave(talk.client, talk.payload("PostToolUse", tool_name="Bash"), "post-tool-use")
    applied = talk.client.apply()
    assert applied.refused == tuple(
        RefusedEvent(f"{number:013d}-1-a", kind.partition(".")[0], expected[kind])
        for number, kind in enumerate(kinds)
    )
    assert (stops(applied), applied.events) == ([(1, 0, 0)], 1)
    assert talk.client.waiting() == []
    assert remembered(talk.client) == ["Good."]
    # They can be looked at, and are not reported again. What they said is nobody's business.
    assert spool.failed_names(talk.client.home) == [
        f"{n:013d}-1-a.{kind}" for n, kind in enumerate(kinds)
    ]
    folder = Path(spool.path_of(talk.client.home, spool.FAILED))
    assert {path.name.partition(".")[2]: path.read_text() for path in folder.iterdir()} == {
        kind: f"{reason}\n" for kind, reason in expected.items()
    }
    assert talk.client.apply() == apply.NOTHING


def test_refused_entries_are_removed_after_some_weeks(client: Client) -> None:
    spool.put(client.home, "0000000000001-1-a", "nonsense", b"{}")
    client.apply()
    (name,) = spool.failed_names(client.home)
    old = clock.wall_s() - 60 * 86_400
    os.utime(f"{spool.path_of(client.home, spool.FAILED)}/{name}", (old, old))
    client.apply()
    assert spool.failed_names(client.home) == []


def test_waiting_events_of_a_deleted_session_are_dropped(talk: Conversation) -> None:
    leave(talk.client, talk.payload("UserPromptSubmit", prompt="Before"), "prompt-submit")
    session_table.add(talk.client.home, talk.session, clock.now_ms())
    talk.client.apply()
    with talk.client.memory() as memory:
        count = memory.local.execute("SELECT count(*) FROM events").fetchone()
    assert count == (0,)


def test_unreadable_entries_do_not_stop_the_rest(talk: Conversation, tmp_path: Path) -> None:
    names = [
        f"{number:013d}-1-a.{kind}"
        for number, kind in enumerate(["stop.-", "post-tool-use", "receipt", "stop.0-9"])
    ]
    folder = Path(talk.client.home) / "spool"
    folder.mkdir(parents=True)
    for name in names[:2]:
        (folder / name).mkdir()
    (folder / names[2]).symlink_to(tmp_path / "gone")
    os.mkfifo(folder / names[3])
    talk.answer(remember("Good."))
    leave(talk.client, talk.payload("PostToolUse", tool_name="Bash"), "post-tool-use")
    applied = talk.client.apply()
    assert sorted(each.event for each in applied.refused) == sorted(map(spool.id_of, names))
    assert {each.reason.partition(":")[0] for each in applied.refused} == {"It cannot be read"}
    assert (stops(applied), applied.events) == ([(1, 0, 0)], 1)
    assert remembered(talk.client) == ["Good."]
    assert talk.client.waiting() == []
    assert spool.failed_names(talk.client.home) == names
    assert talk.client.apply() == apply.NOTHING


def test_an_entry_that_failed_three_times_is_set_aside(talk: Conversation) -> None:
    """It is not tried again, and it is listed."""
    event_id = leave(talk.client, talk.payload("PostToolUse"), "post-tool-use")
    for _ in range(3):
        assert spool.attempt(talk.client.home, spool.pending_names(talk.client.home)[0])
    applied = talk.client.apply()
    assert applied.refused == (
        RefusedEvent(event_id, "post-tool-use", "It was tried three times."),
    )
    assert applied.events == 0
    assert spool.failed_names(talk.client.home) == [f"{event_id}.post-tool-use"]
    assert talk.client.apply() == apply.NOTHING


@contextmanager
def full_store(client: Client) -> Iterator[Memory]:
    """A memory that cannot be written, as on a full disk."""
    with client.memory() as memory:
        pages = memory.user.connection.execute("PRAGMA page_count").fetchone()[0]
        memory.user.connection.execute(f"PRAGMA max_page_count = {pages}")
        yield memory


@contextmanager
def damaged_store(client: Client) -> Iterator[Memory]:
    """A memory in which a table is missing while it is open."""
    with client.memory() as memory:
        memory.local.execute("ALTER TABLE commands RENAME TO elsewhere")
        memory.local.execute("ALTER TABLE events RENAME TO elsewhere_too")
        try:
            yield memory
        finally:
            memory.local.execute("ALTER TABLE elsewhere RENAME TO commands")
            memory.local.execute("ALTER TABLE elsewhere_too RENAME TO events")


@pytest.mark.parametrize(
    ("broken", "error"), [(full_store, DiskFailure), (damaged_store, DatabaseFailure)]
)
def test_a_store_that_cannot_be_written_loses_no_events(
    talk: Conversation, broken: Any, error: type[CtxError]
) -> None:
    """The events wait, and the attempts do not count."""
    talk.prompt()
    talk.reply(remember("x" * 200_000))
    talk.stop()
    talk.client.hook(
        "post-tool-use", talk.payload("PostToolUse", tool_response=["y" * 15_000] * 20)
    )
    before = spool.pending_names(talk.client.home)
    assert len(before) == 2
    for _ in range(5):
        for process in (apply.commands, apply.events):
            with pytest.raises(error), broken(talk.client) as memory:
                process(memory, talk.client.home, TIMEOUT_S)
    assert spool.pending_names(talk.client.home) == before
    applied = talk.client.apply()
    assert (stops(applied), applied.events) == ([(1, 0, 0)], 1)
    assert remembered(talk.client) == ["x" * 200_000]


def test_one_process_at_a_time_processes_the_spool(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "_LOCK_S", 0.05)
    with apply.hold_spool(client.home) as first:
        with apply.hold_spool(client.home) as second:
            assert (first, second) == (True, False)
        with apply.hold_spool(client.home) as third:
            assert not third
    with apply.hold_spool(client.home) as again:
        assert again


# Events, receipts, contexts


def test_events_are_stored_in_order_and_once(talk: Conversation) -> None:
    talk.start()
    talk.submit("Do it.")
    said = talk.payload("PostToolUse", tool_name="Bash", tool_use_id="toolu_1")
    talk.client.hook("post-tool-use", said)
    talk.prompt()
    talk.reply(remember("Done."))
    talk.stop()
    names = spool.pending_names(talk.client.home)
    saved = {name: Path(spool.path_of(talk.client.home, name)).read_bytes() for name in names}
    applied = talk.client.apply()
    assert (applied.events, applied.receipts, stops(applied)) == (3, 0, [(1, 0, 0)])
    # Somebody was killed right before he removed them.
    for name, data in saved.items():
        Path(spool.path_of(talk.client.home, name)).write_bytes(data)
    applied = talk.client.apply()
    assert (applied.events, stops(applied)) == (3, [(0, 0, 1)])
    with talk.client.memory() as memory:
        rows = memory.local.execute(
            "SELECT id, event, folder, tool, tool_use, status FROM events ORDER BY id"
        ).fetchall()
    folder = str(talk.client.folder)
    assert rows == [
        (spool.id_of(names[0]), "SessionStart", folder, None, None, "new"),
        (spool.id_of(names[1]), "UserPromptSubmit", folder, None, None, "new"),
        (spool.id_of(names[2]), "PostToolUse", folder, "Bash", "toolu_1", "new"),
        (spool.id_of(names[3]), "Stop", folder, None, None, "new"),
    ]


def test_commands_are_run_while_events_are_stored(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process with commands waits for the lock of the one that stores events."""
    said = json.dumps(talk.payload("PostToolUse", tool_name="Bash")).encode()
    for number in range(300):
        spool.put(talk.client.home, spool.new_id(number), "post-tool-use", said)
    left: list[int] = []
    keep = event_store.keep

    def keep_and_answer(connection: Connection, event: Event) -> None:
        keep(connection, event)
        if spool.made_ms(event.id) in (0, 150, 299):
            talk.answer(remember(f"After {spool.made_ms(event.id)}."))
        elif event.name == "Stop":
            left.append(len(talk.client.waiting()))

    monkeypatch.setattr(event_store, "keep", keep_and_answer)
    applied = talk.client.apply()
    assert (stops(applied), applied.events) == ([(1, 0, 0)] * 3, 300)
    assert remembered(talk.client) == ["After 0.", "After 150.", "After 299."]
    assert talk.client.waiting() == []
    # The first ones did not have to wait for the last event.
    assert left[0] > 200
    assert left[1] > 50


def test_receipts_are_stored_once(talk: Conversation, ctx: Ctx) -> None:
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Pinned.").code == 0
    given = talk.start()
    assert "Pinned." in context_of(given)
    (name,) = (each for each in spool.pending_names(talk.client.home) if each.endswith(".receipt"))
    data = Path(spool.path_of(talk.client.home, name)).read_bytes()
    assert talk.client.apply().receipts == 1
    Path(spool.path_of(talk.client.home, name)).write_bytes(data)
    assert talk.client.apply().receipts == 1
    with talk.client.memory() as memory:
        wanted = layers.ContextRequest("app", None, 2_000)
        made = layers.context([memory.user.connection], wanted)
        (receipt,) = receipts.newest(memory.local, "app", 10)
        (item,) = made.items
        at = clock.iso(spool.made_ms(spool.id_of(name)))
        assert receipt == receipts.Receipt(
            spool.id_of(name),
            SESSION,
            "SessionStart",
            at,
            "app",
            made.tokens,
            (receipts.ReceiptItem(item.id, item.label, item.updated_at, item.tokens),),
        )


def ready(client: Client, folder: Path, part: int = 1) -> str | None:
    with client.memory() as memory:
        place = layout.place(str(folder), client.home)
        key = contexts.key_of(place, client.home, {}, part)
        found = contexts.valid_context(memory.local, key)
    return found.text if found else None


def test_contexts_of_active_places_are_prepared(
    talk: Conversation, ctx: Ctx, tmp_path: Path
) -> None:
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Pinned.").code == 0
    talk.start()
    assert ready(talk.client, talk.client.folder) is None
    talk.client.apply()
    first = ready(talk.client, talk.client.folder)
    assert first is not None
    assert "Pinned." in first
    assert ready(talk.client, tmp_path) is None
    talk.answer(remember("Something new."))
    talk.client.talk("elsewhere").client.hook(
        "session-start",
        {**talk.client.talk("elsewhere").payload("SessionStart"), "cwd": str(tmp_path)},
    )
    talk.client.apply()
    assert ready(talk.client, tmp_path) is not None


def test_a_context_is_prepared_in_parts(talk: Conversation, ctx: Ctx) -> None:
    assert ctx("config", "set", "context.budget", "6000").code == 0
    for number in range(60):
        assert (
            ctx("add", "--type=fact", "--tag=tier:reference", f"{number} " + "word " * 60).code == 0
        )
    talk.start()
    talk.client.apply()
    with talk.client.memory() as memory:
        for part in (1, 2, 3):
            wanted = layers.ContextRequest("app", None, 6_000, part)
            made = layers.context([memory.user.connection], wanted).text
            assert ready(talk.client, talk.client.folder, part) == made
            given = context_of(talk.start("clear", "--part", str(part)))
            assert given == made
    assert ready(talk.client, talk.client.folder, 4) is None


def test_a_view_with_an_age_is_not_prepared(talk: Conversation, ctx: Ctx) -> None:
    assert ctx("view", "update", "default", "--query", "created:>1d").code == 0
    assert ctx("add", "--type=fact", "New.").code == 0
    assert "New." in context_of(talk.start())
    talk.client.apply()
    assert ready(talk.client, talk.client.folder) is None
    assert "New." in context_of(talk.start("clear"))


def test_old_receipts_are_removed(
    talk: Conversation, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Pinned.").code == 0
    talk.start()
    talk.client.apply()

    def count() -> int:
        with talk.client.memory() as memory:
            found = memory.local.execute("SELECT count(*) FROM receipts")
            return int(found.fetchone()[0])

    now = clock.now_ms()
    for days, expected in ((0, 1), (89, 1), (91, 0)):
        monkeypatch.setattr(clock, "now_ms", lambda days=days: now + days * DAY_MS)
        talk.client.apply()
        assert count() == expected
