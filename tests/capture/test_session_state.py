"""The state of a session follows from its events, in whatever order they arrive."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import checkouts, clock, layout
from ctx.agents.claude_code import payloads
from ctx.capture import event_store, session_state
from ctx.capture.session_state import Session, Status
from ctx.errors import AmbiguousId, SessionNotFound, UsageError
from ctx.hook_files import live
from ctx.hosts.events import Event, Heading
from ctx.layout import Place
from ctx.memory import user_store
from ctx.sqlite.connection import transaction
from tests import effort
from tests.conftest import git

SESSION = "0c1fb4a8-52d1-4e0c-9a55-6cf7d9c12f01"
NOON = clock.parse_iso("2026-11-02T12:00:00Z") or 0
DAY_MS = 86_400_000


@pytest.fixture
def connection(surroundings: Path) -> Iterator[Connection]:
    with closing(user_store.open_for_writing(str(surroundings / ".ctx/store.db"))) as opened:
        yield opened


@pytest.fixture
def home(surroundings: Path) -> str:
    return str(surroundings / ".ctx")


def event(
    name: str, at_ms: int, *, session: str = SESSION, folder: str = "/", **told: Any
) -> Event:
    known_by = f"{at_ms:013d}-1-{abs(hash((name, session, json.dumps(told)))) % 16**8:08x}"
    said = {"session_id": session, "cwd": folder, "hook_event_name": name, **told}
    tool, tool_use = told.get("tool_name"), told.get("tool_use_id")
    heading = Heading(known_by, session, name, clock.iso(at_ms), folder, tool, tool_use)
    return payloads.restore(heading, said)


def prompt(text: str, at_ms: int, **told: Any) -> Event:
    return event("UserPromptSubmit", at_ms, prompt=text, **told)


def record_events(
    connection: Connection, home: str, heard: Sequence[Event], now_ms: int = NOON
) -> None:
    """Record each event in its own transaction."""
    for each in heard:
        with transaction(connection):
            event_store.keep(connection, each)
            place = layout.place(each.folder, home) if each.folder else Place("", None, "")
            session_state.record_event(connection, home, each, place, now_ms)
            connection.execute("UPDATE events SET status = 'step' WHERE id = ?", (each.id,))


def only_session(connection: Connection) -> Session:
    (found,) = session_state.all_of(connection)
    return found


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        ("", "active"),
        ("SessionStart", "active"),
        ("SessionStart UserPromptSubmit PostToolUse Stop", "active"),
        ("SessionStart UserPromptSubmit Stop SessionEnd", "completed"),
        ("SessionStart SessionEnd", "completed"),
        ("SessionEnd", "completed"),
        ("UserPromptSubmit PostToolUse SessionEnd", "completed"),
        ("UserPromptSubmit StopFailure", "active"),
        ("UserPromptSubmit StopFailure SessionEnd", "failed"),
        ("UserPromptSubmit StopFailure UserPromptSubmit Stop SessionEnd", "completed"),
        ("UserPromptSubmit UserInterrupt", "active"),
        ("UserPromptSubmit UserInterrupt SessionEnd", "aborted"),
        ("UserPromptSubmit UserInterrupt UserPromptSubmit SessionEnd", "completed"),
        ("UserPromptSubmit Stop SessionEnd SessionEnd", "completed"),
        ("UserPromptSubmit StopFailure SessionEnd SessionEnd", "failed"),
        # What was on its way when it ended does not begin it again; to go on does.
        ("UserPromptSubmit SessionEnd AssistantMessage Stop SubagentStop", "completed"),
        ("UserPromptSubmit SessionEnd SessionStart", "active"),
        ("UserPromptSubmit SessionEnd UserPromptSubmit", "active"),
        ("UserPromptSubmit SessionEnd PostToolUse", "active"),
        ("UserPromptSubmit SessionEnd SessionStart Stop SessionEnd", "completed"),
    ],
)
def test_the_status_follows_from_the_last_events(heard: str, expected: Status) -> None:
    assert session_state.status_of(reversed(heard.split())) == expected


def test_every_field_of_a_session_is_filled(connection: Connection, home: str, repo: Path) -> None:
    git("commit", "-q", "--allow-empty", "-m", "First")
    (repo / "src").mkdir()
    live.write(home, f"{SESSION}.before", "the-one-before")
    transcript = "/home/dev/.claude/projects/shop/it.jsonl"
    record_events(
        connection,
        home,
        [
            event("SessionStart", NOON, folder=str(repo), transcript_path=transcript),
            prompt("Refresh tokens once, <private>please</private> not twice", NOON + 2_000),
            prompt("And now the tests", NOON + 60_000),
            event("SessionEnd", NOON + 90_000, reason="other"),
        ],
    )
    assert only_session(connection) == Session(
        id=SESSION,
        project="app",
        folder=str(repo),
        repository=str(repo / ".git"),
        branch="main",
        head=git("rev-parse", "HEAD").strip(),
        client="claude-code",
        transcript=transcript,
        transcript_read=0,
        goes_on_from="the-one-before",
        status="completed",
        started_at="2026-11-02T12:00:00Z",
        last_at="2026-11-02T12:01:30Z",
        ended_at="2026-11-02T12:01:30Z",
        request="Refresh tokens once, not twice",
        synthesised="",
        summary=None,
    )


def test_branch_and_commit_of_packed_and_detached_heads(
    connection: Connection, home: str, repo: Path
) -> None:
    git("commit", "-q", "--allow-empty", "-m", "First")
    commit = git("rev-parse", "HEAD").strip()
    git("checkout", "-q", "-b", "feature/deep")
    git("pack-refs", "--all")
    record_events(
        connection, home, [event("SessionStart", NOON, folder=str(repo), session="packed")]
    )
    git("checkout", "-q", "--detach")
    record_events(
        connection, home, [event("SessionStart", NOON, folder=str(repo), session="detached")]
    )
    stood = {each.id: (each.branch, each.head) for each in session_state.all_of(connection)}
    assert stood == {"packed": ("feature/deep", commit), "detached": (None, commit)}


def test_an_old_session_does_not_take_the_commit_of_today(
    connection: Connection, home: str, repo: Path
) -> None:
    git("commit", "-q", "--allow-empty", "-m", "First")
    then = NOON - 30 * DAY_MS
    record_events(
        connection, home, [event("SessionStart", then, folder=str(repo), gitBranch="old")]
    )
    assert (only_session(connection).branch, only_session(connection).head) == ("old", None)


def test_a_folder_that_was_removed_is_still_recorded(connection: Connection, home: str) -> None:
    record_events(connection, home, [event("SessionStart", NOON, folder="/nowhere/shop")])
    assert (only_session(connection).folder, only_session(connection).repository) == (
        "/nowhere/shop",
        None,
    )


def test_the_request_is_one_line_without_secrets(connection: Connection, home: str) -> None:
    key = "ghp_" + "a8Kd93mQz7" * 3 + "xY2b4W"
    context = "<!-- ctx: 1 node, 3 tokens -->\nKnown.\n<!-- ctx:end -->"
    record_events(connection, home, [prompt(f"{context}\nUse {key}\n\nand {'go on ' * 100}", NOON)])
    request = only_session(connection).request
    assert key not in request
    assert "Known" not in request
    assert request.startswith("Use ")
    assert (len(request), request[-1], "\n" in request) == (200, "…", False)


def test_a_notification_is_not_the_request(connection: Connection, home: str) -> None:
    told = [prompt("<task-notification>done</task-notification>", NOON), prompt("Do it", NOON + 9)]
    record_events(connection, home, told)
    assert only_session(connection).request == "Do it"


def test_a_session_is_over_when_its_client_has_ended_or_is_silent_for_a_day(
    connection: Connection, home: str
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    now = NOON + 2 * DAY_MS
    told = {
        "long-ago": [prompt("a", NOON)],
        "failed": [prompt("a", NOON), event("StopFailure", NOON + 1)],
        "stopped": [prompt("a", NOON), event("UserInterrupt", NOON + 1)],
        "still-there": [prompt("a", NOON)],
        "lately": [prompt("a", now - DAY_MS + 1_000)],
        "over": [prompt("a", NOON), event("SessionEnd", NOON + 1)],
        "left": [prompt("a", now - 60_000), event("Stop", now - 30_000)],
        "killed": [prompt("a", now - 30_000)],
        "leaves": [prompt("a", now - 30_000), event("Stop", now - 10_000)],
    }
    for session, heard in told.items():
        renamed = [each._replace(session=session, id=f"{each.id}{session}") for each in heard]
        record_events(connection, home, renamed)
    live.begin(home, "still-there", "1", "/")
    for session in ("left", "killed", "leaves"):
        live.begin(home, session, str(ended.pid), "/")

    found = [each.id for each in session_state.silent_sessions(connection, home, now)]
    assert sorted(found) == ["failed", "killed", "left", "long-ago", "stopped"]
    with transaction(connection):
        for session in found:
            session_state.end(
                connection, session, session_state.closing_status(connection, session)
            )
    stand = {each.id: each.status for each in session_state.all_of(connection)}
    names = "long-ago", "failed", "stopped", "still-there", "left", "killed"
    assert [stand[name] for name in names] == [
        *("interrupted", "failed", "aborted", "active", "completed", "interrupted"),
    ]
    assert session_state.silent_sessions(connection, home, now) == []


def test_a_late_event_does_not_restart_an_interrupted_session(
    connection: Connection, home: str
) -> None:
    record_events(connection, home, [prompt("a", NOON), event("Stop", NOON + 9_000)])
    with transaction(connection):
        session_state.end(connection, SESSION, session_state.INTERRUPTED)
    record_events(connection, home, [event("PostToolUse", NOON + 5_000)])
    assert only_session(connection).status == "interrupted"
    record_events(connection, home, [event("SessionStart", NOON + 20_000, source="resume")])
    assert (only_session(connection).status, only_session(connection).ended_at) == ("active", None)


def test_a_session_is_found_by_a_prefix_of_its_id(connection: Connection, home: str) -> None:
    for session in ("abcd-1", "abcd-2", "efgh-1"):
        record_events(connection, home, [event("SessionStart", NOON, session=session)])
    assert session_state.get(connection, "efgh").id == "efgh-1"
    assert session_state.get(connection, "abcd-1").id == "abcd-1"
    with pytest.raises(AmbiguousId):
        session_state.get(connection, "abcd")
    with pytest.raises(UsageError):
        session_state.get(connection, "abc")
    for unknown in ("xyz-9", "%%%%", "____"):
        with pytest.raises(SessionNotFound):
            session_state.get(connection, unknown)


def test_sessions_are_listed_by_their_last_event(connection: Connection, home: str) -> None:
    for number, session in enumerate(("one", "two", "three")):
        record_events(
            connection, home, [event("SessionStart", NOON + number * 1_000, session=session)]
        )
    record_events(connection, home, [event("SessionEnd", NOON + 9_000, session="two")])
    listed = {
        "all": session_state.all_of(connection),
        "active": session_state.all_of(connection, statuses=("active",)),
        "since": session_state.all_of(connection, since=clock.iso(NOON + 2_000)),
        "elsewhere": session_state.all_of(connection, project="shop"),
    }
    assert {name: [each.id for each in found] for name, found in listed.items()} == {
        "all": ["two", "three", "one"],
        "active": ["three", "one"],
        "since": ["two", "three"],
        "elsewhere": [],
    }


_names = st.sampled_from(
    [
        *("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"),
        *("AssistantMessage", "StopFailure", "UserInterrupt", "SubagentStop"),
    ]
)
# Many of them within one second, which is as exact as a row is.
_heard = st.lists(
    st.tuples(_names, st.integers(0, 4_000), st.sampled_from(["", "/", "/nowhere", "/usr"])),
    min_size=1,
    max_size=8,
    unique_by=lambda each: each[1],
)


@settings(max_examples=effort.times(25), deadline=None)
@given(_heard.flatmap(lambda all_of: st.tuples(st.just(all_of), st.permutations(all_of))))
def test_the_order_of_events_does_not_matter(
    told: tuple[list[tuple[str, int, str]], list[tuple[str, int, str]]],
) -> None:
    rows = []
    for order in (sorted(told[0], key=lambda each: each[1]), told[1]):
        with closing(user_store.empty_store()) as connection:
            heard = [
                event(name, NOON + at, folder=folder, prompt=f"Number {at}")
                for name, at, folder in order
            ]
            record_events(connection, "/nowhere/.ctx", heard)
            rows.append(only_session(connection))
    assert rows[0] == rows[1]
    in_time = [name for name, _, _ in sorted(told[0], key=lambda each: each[1])]
    assert rows[0].status == session_state.status_of(reversed(in_time))


def test_a_pipe_in_place_of_packed_refs_is_not_waited_for(repo: Path) -> None:
    os.mkfifo(repo / ".git" / "packed-refs")
    checkout = checkouts.find_checkout(str(repo))
    assert checkout is not None
    assert checkouts.branch_and_commit(checkout) == ("main", None)
