"""Events become steps, each once, also after errors, and within the limits of the settings."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.agents.claude_code import payloads
from ctx.capture import capture as policy
from ctx.capture import capture_pauses, event_store, pipeline, session_state, steps
from ctx.capture.capture import DroppedEvent
from ctx.capture.pipeline import CaptureCounts
from ctx.capture.steps import Step
from ctx.hook_files import spool
from ctx.hosts.events import Event, Heading
from ctx.operations import apply
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory
from tests.capture.conversations import SESSION, Client
from tests.conftest import git

AT = 1_794_700_000_000
DAY_MS = 86_400_000


@pytest.fixture
def client(repo: Path, surroundings: Path) -> Client:
    return Client(surroundings / ".ctx", repo)


class EventFeed:
    """The events of one session, one after the other."""

    def __init__(self, memory: Memory, home: str, folder: str) -> None:
        self.memory = memory
        self.home = home
        self.folder = folder
        self._count = 0

    @property
    def connection(self) -> sqlite3.Connection:
        return self.memory.local

    def event(
        self, name: str, tool: str | None = None, /, session: str = SESSION, **said: Any
    ) -> Event:
        self._count += 1
        at_ms = AT + self._count * 10_000
        use = f"toolu_{self._count}" if tool else None
        folder = str(said.pop("folder", self.folder))
        at = clock.iso(at_ms)
        heading = Heading(f"{at_ms}-1-00000000", session, name, at, folder, tool, use)
        return payloads.restore(heading, payloads.without_contents(said, tool))

    def keep(self, *found: Event) -> None:
        with transaction(self.connection):
            for each in found:
                event_store.keep(self.connection, each)

    def use_tool(self, tool: str, response: Any = None, /, **given: Any) -> Event:
        event = self.event("PostToolUse", tool, tool_input=given, tool_response=response)
        self.keep(event)
        return event

    def take(self) -> CaptureCounts:
        return pipeline.take(self.memory, self.home)

    def steps(self) -> list[tuple[str, str, str]]:
        rows = self.connection.execute(
            "SELECT id, session, at, tool, tool_use, body FROM events WHERE status = 'step'"
            " ORDER BY id"
        )
        return [(each.kind, each.path, each.text) for each in map(steps.read, rows)]

    def skipped(self) -> list[tuple[str, str]]:
        return self.connection.execute(
            "SELECT id, reason FROM events WHERE status = 'skipped' ORDER BY id DESC"
        ).fetchall()

    def reasons(self) -> list[tuple[str, str]]:
        rows = self.connection.execute(
            "SELECT status, reason FROM events WHERE reason IS NOT NULL ORDER BY id"
        )
        return rows.fetchall()


@pytest.fixture
def feed(client: Client) -> Iterator[EventFeed]:
    with client.memory() as memory:
        yield EventFeed(memory, client.home, str(client.folder))


def test_a_session_from_its_beginning_to_its_end(feed: EventFeed) -> None:
    path = f"{feed.folder}/src/shop.py"
    feed.keep(feed.event("SessionStart", source="startup"))
    feed.keep(feed.event("UserPromptSubmit", prompt="Add the tax."))
    feed.use_tool(
        "Read", {"file": {"numLines": 2, "startLine": 1, "totalLines": 2}}, file_path=path
    )
    feed.use_tool("Grep", {}, pattern="tax")
    feed.use_tool("Write", {"type": "create"}, file_path=path, content="def tax():\n    return 2\n")
    feed.use_tool("Bash", {"stdout": "1 passed in 0.01s"}, command="pytest")
    feed.keep(feed.event("Stop", last_assistant_message="Done."))
    feed.keep(feed.event("SessionEnd", reason="other"))
    assert feed.take() == CaptureCounts(7, 1, 0, (SESSION,))
    assert feed.steps() == [
        ("mark", "", "began"),
        ("prompt", "", "Add the tax."),
        ("read", "src/shop.py", ""),
        ("write", "src/shop.py", ""),
        ("command", "", "pytest"),
        ("say", "", "Done."),
        ("mark", "", "ended"),
    ]
    assert feed.reasons() == [("dropped", "the tool is excluded")]
    session = session_state.get(feed.connection, SESSION)
    assert (session.project, session.status, session.request) == (
        "app",
        "completed",
        "Add the tax.",
    )
    assert feed.connection.execute("SELECT * FROM symbol_changes").fetchall() == [
        *((SESSION, "src/shop.py", "tax", "function", "new", "def tax()", 1, "app", _at(5)),)
    ]
    # To do it again changes nothing.
    before = list(feed.connection.iterdump())
    assert feed.take() == CaptureCounts()
    assert list(feed.connection.iterdump()) == before


def _at(number: int) -> str:
    return clock.iso(AT + number * 10_000)


def test_repeated_reads_commands_and_messages_are_dropped(feed: EventFeed) -> None:
    a, b = f"{feed.folder}/a.py", f"{feed.folder}/b.py"
    for path in (a, b, a):
        feed.use_tool("Read", {}, file_path=path)
    feed.use_tool("Write", {}, file_path=a, content="x = 1\n")
    feed.use_tool("Read", {}, file_path=a)
    for _ in range(2):
        feed.use_tool("Bash", {"stdout": "same"}, command="make")
    feed.use_tool("Bash", {"stdout": "x"}, command="ls")
    feed.use_tool("Bash", {"stdout": "same"}, command="make")
    feed.keep(feed.event("AssistantMessage", text="All is well."))
    feed.keep(feed.event("Stop", last_assistant_message="All is  well.\n"))
    assert feed.take().dropped == 3
    assert feed.reasons() == [("dropped", "seen before")] * 3
    assert [step[:2] for step in feed.steps()] == [
        *(("read", "a.py"), ("read", "b.py"), ("write", "a.py"), ("read", "a.py")),
        *(("command", ""), ("command", ""), ("command", ""), ("say", "")),
    ]
    # Also where somebody else took in what was before.
    feed.use_tool("Read", {}, file_path=b)
    assert feed.take() == CaptureCounts(0, 1, 0, ())


def test_a_title_that_is_written_again(feed: EventFeed) -> None:
    feed.keep(feed.event("UserPromptSubmit", prompt="Add the tax."))
    for title in ("Tax", "Tax", "Taxes", "Taxes"):
        feed.keep(feed.event("SessionTitle", text=title))
        feed.keep(feed.event("AssistantMessage", text=f"Done {title}."))
    feed.keep(feed.event("SessionEnd", reason="other"))
    feed.keep(feed.event("SessionTitle", text="Taxes of orders"))
    feed.take()
    titles = [text for kind, _, text in feed.steps() if kind == "title"]
    assert titles == ["Tax", "Taxes", "Taxes of orders"]
    assert session_state.get(feed.connection, SESSION).status == "completed"


def test_what_two_hooks_are_told_of_a_prompt(feed: EventFeed) -> None:
    """The second comes when a step was made of the first, so that their rows differ."""
    first = feed.event("UserPromptSubmit", prompt="Go on.")
    feed.keep(first)
    feed.take()
    ms = int(first.id[:13])
    feed.keep(first._replace(id=f"{ms + 40}-2-00000000"))
    feed.keep(first._replace(id=f"{ms + 9_000}-2-00000000"))
    assert feed.take() == CaptureCounts(1, 1, 0, (SESSION,))


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        (["", "a", "a b"], {"a": "new", "b": "new"}),
        (["a", "a2", "a3"], {"a": "modified"}),
        (["a b", "a", "a b"], {"b": "modified"}),
        (["a", "a b", "a"], {}),
        (["a b", "b"], {"a": "deleted"}),
        (["a", "a2", ""], {"a": "deleted"}),
    ],
)
def test_changes_of_an_item_are_merged_over_a_session(
    feed: EventFeed, changes: list[str], left: dict[str, str]
) -> None:
    texts = [
        "".join(f"def {w[0]}():\n    return {w[1:] or 1}\n" for w in c.split()) for c in changes
    ]
    for before, after in pairwise(texts):
        feed.use_tool(
            "Write", {"originalFile": before}, file_path=f"{feed.folder}/a.py", content=after
        )
        feed.take()
    rows = feed.connection.execute("SELECT name, change FROM symbol_changes ORDER BY name")
    assert dict(rows.fetchall()) == left


def test_paths_are_relative_to_the_project(feed: EventFeed, tmp_path: Path) -> None:
    """A sub-folder is the same project; a file of another project has an absolute path."""
    (Path(feed.folder) / "sub").mkdir()
    other = tmp_path / "other"
    git("init", "-q", str(other))
    said: dict[str, Any] = {"tool_input": {"file_path": "b.py"}}
    feed.keep(feed.event("SessionStart", source="startup"))
    feed.keep(feed.event("PostToolUse", "Read", folder=f"{feed.folder}/sub", **said))
    feed.keep(feed.event("PostToolUse", "Read", folder=str(other), **said))
    code = "def f():\n    return 1\n"
    written: dict[str, Any] = {"tool_input": {"file_path": "b.py", "content": code}}
    feed.keep(feed.event("PostToolUse", "Write", folder=str(other), **written))
    feed.take()
    assert [step[1] for step in feed.steps()] == ["", "sub/b.py", *[f"{other}/b.py"] * 2]
    changed = feed.connection.execute("SELECT project, path, name FROM symbol_changes").fetchall()
    assert changed == [("other", "b.py", "f")]
    assert session_state.get(feed.connection, SESSION).project == "app"


def test_events_during_a_pause_are_dropped(feed: EventFeed) -> None:
    before, during, after = (feed.event("UserPromptSubmit", prompt=str(n)) for n in range(3))
    middle = int(during.id[:13])
    capture_pauses.pause(feed.home, ["*"], middle - 1_000, 0)
    capture_pauses.resume(feed.home, None, middle + 1_000)
    feed.keep(before, during, after)
    feed.take()
    assert [step[2] for step in feed.steps()] == ["0", "2"]
    assert feed.reasons() == [("dropped", "ctx was paused")]
    assert "1" not in [row[0] for row in feed.connection.execute("SELECT body FROM events")]


COMMIT = ("commit", "-q", "--allow-empty", "-m", "Begin")


def test_a_pause_covers_a_working_tree_that_is_added_later(feed: EventFeed, tmp_path: Path) -> None:
    capture_pauses.pause(feed.home, [feed.folder], AT - 1_000, 0)
    later = tmp_path / "later"
    git("-C", feed.folder, "-c", "user.name=a", "-c", "user.email=a@b", *COMMIT)
    git("-C", feed.folder, "worktree", "add", "-q", str(later))
    feed.keep(feed.event("UserPromptSubmit", prompt="Go on.")._replace(folder=str(later)))
    feed.take()
    assert feed.reasons() == [("dropped", "ctx was paused")]


@pytest.mark.parametrize("tree", [".claude/worktrees/fix", "../app-worktree"])
@pytest.mark.parametrize("is_inside", [True, False])
def test_files_of_a_working_tree_are_files_of_the_project(
    feed: EventFeed, tree: str, is_inside: bool
) -> None:
    """Also if the session runs in another working tree of the same project."""
    top = Path(feed.folder, tree).resolve()
    git("-C", feed.folder, "-c", "user.name=a", "-c", "user.email=a@b", *COMMIT)
    git("-C", feed.folder, "worktree", "add", "-q", str(top))
    given = {"file_path": f"{top}/src/b.py", "content": "def f(): ...\n"}
    write = feed.event("PostToolUse", "Write", tool_input=given, tool_response={"type": "create"})
    failed = f"{top}/src/b.py:1: error: Name is not defined  [name-defined]\nFound 1 error"
    check = feed.event(
        *("PostToolUseFailure", "Bash"),
        tool_input={"command": f"cd {top} && mypy src"},
        error=f"Exit code 1\n{failed}",
    )
    folder = str(top) if is_inside else feed.folder
    feed.keep(*(each._replace(folder=folder) for each in (write, check)))
    feed.take()
    assert [step[:2] for step in feed.steps()] == [("write", "src/b.py"), ("command", "")]
    rows = feed.connection.execute("SELECT project, path, name FROM symbol_changes").fetchall()
    assert rows == [("app", "src/b.py", "f")]
    (body,) = feed.connection.execute("SELECT body FROM events WHERE tool = 'Bash'").fetchone()
    # What a check prints about files outside of the working tree has no path.
    path = "" if tree.startswith("..") and not is_inside else "src/b.py"
    assert [each[0] for each in json.loads(body)["findings"]] == [path]
    assert session_state.get(feed.connection, SESSION).project == "app"


def test_files_of_a_removed_working_tree_belong_to_the_project(feed: EventFeed) -> None:
    top = f"{feed.folder}/.claude/worktrees/fix"
    feed.use_tool("Write", {"type": "create"}, file_path=f"{top}/a.py", content="x = 1\n")
    inside = feed.event(
        *("PostToolUse", "Write"),
        tool_input={"file_path": f"{top}/lib/b.py", "content": "y = 1\n"},
        tool_response={"type": "create"},
    )
    feed.keep(inside._replace(folder=top))
    feed.use_tool(
        "Write", {"type": "create"}, file_path=f"{feed.folder}/worktree.py", content="z\n"
    )
    feed.take()
    assert [step[1] for step in feed.steps()] == ["a.py", "lib/b.py", "worktree.py"]
    assert session_state.get(feed.connection, SESSION).project == "app"


def test_events_of_an_ignored_project_are_dropped(feed: EventFeed, client: Client) -> None:
    Path(client.home, "config.toml").write_text('[capture]\nignore_projects = ["app"]\n')
    feed.keep(feed.event("UserPromptSubmit", prompt="Go on."))
    assert feed.take() == CaptureCounts(0, 1, 0, ())
    assert feed.connection.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
    assert feed.connection.execute("SELECT body FROM events").fetchone() == ("",)


def test_ignored_content_is_never_written_to_disk(feed: EventFeed, client: Client) -> None:
    Path(feed.folder, ".ctxignore").write_text("private/\n")
    Path(client.home, "config.toml").write_text('[capture]\nignore_projects = ["other"]\n')
    other = Path(feed.folder).parent / "other"
    git("init", "-q", str(other))
    given = {"file_path": f"{feed.folder}/private/a.txt", "content": "mustnotbekept"}
    said = {"tool_name": "Write", "tool_input": given, "tool_use_id": "toolu_1"}
    common = {"session_id": SESSION, "cwd": feed.folder}
    elsewhere = {**common, "cwd": str(other.parent), "tool_use_id": "toolu_2"}
    theirs = {"file_path": f"{other}/b.txt", "content": "mustnotbekept"}
    for kind, told in (
        ("post-tool-use", {**common, **said}),
        ("post-tool-use", {**said, **elsewhere}),
        ("post-tool-use", {**said, **elsewhere, "tool_use_id": "toolu_3", "tool_input": theirs}),
        ("prompt-submit", {"session_id": "b", "cwd": str(other), "prompt": "mustnotbekept"}),
    ):
        spool.put(client.home, spool.new_id(AT), kind, json.dumps(told).encode())
    assert apply.events(feed.memory, client.home, 5.0).events == 4
    assert "mustnotbekept" not in "".join(feed.connection.iterdump())
    assert feed.take() == CaptureCounts(0, 4, 0, ())
    reasons = [reason for _, reason in feed.reasons()]
    assert sorted(reasons) == [
        *["the path is excluded"] * 3,
        "the project is left out by capture.ignore_projects",
    ]


# What goes wrong


def failing_on(word: str) -> Callable[..., Step | DroppedEvent]:
    step_of = policy.step_of

    def break_down(event: Event, *rest: Any) -> Step | DroppedEvent:
        if word in json.dumps(event.payload):
            raise KeyError(word)
        return step_of(event, *rest)

    return break_down


def test_an_event_that_fails_is_skipped_after_three_attempts(
    feed: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "step_of", failing_on("poison"))
    found = [feed.event("UserPromptSubmit", prompt=text) for text in ("one", "poison", "two")]
    feed.keep(*found)
    assert feed.take() == CaptureCounts(2, 0, 0, (SESSION,))
    assert feed.take() == CaptureCounts()
    assert feed.take() == CaptureCounts(0, 0, 1, ())
    assert feed.take() == CaptureCounts()
    assert feed.skipped() == [(found[1].id, "KeyError: 'poison'")]
    assert [step[2] for step in feed.steps()] == ["one", "two"]


class Killed(BaseException):
    """Stands for the end of the process."""


def test_an_event_that_kills_the_process_does_not_stop_the_others(
    feed: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other events are captured, at the latest in the next round."""
    step_of = policy.step_of

    def die(event: Event, *rest: Any) -> Step | DroppedEvent:
        if event.text == "poison":
            raise Killed
        return step_of(event, *rest)

    monkeypatch.setattr(policy, "step_of", die)
    texts = ["one", "poison", "two", "three"]
    feed.keep(*(feed.event("UserPromptSubmit", prompt=text) for text in texts))
    deaths = 0
    while True:
        try:
            feed.take()
            break
        except Killed:
            deaths += 1
    assert deaths == 3
    assert [step[2] for step in feed.steps()] == ["one", "two", "three"]
    assert [reason for _, reason in feed.skipped()] == ["It was tried three times."]


def test_an_error_of_the_store_is_not_an_attempt_of_the_event(
    feed: EventFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    feed.keep(feed.event("UserPromptSubmit", prompt="Go on."))
    with monkeypatch.context() as patch:
        patch.setattr(session_state, "record_event", refuse)
        for _ in range(5):
            with pytest.raises(sqlite3.OperationalError):
                feed.take()
    row = feed.connection.execute("SELECT status, attempts FROM events").fetchone()
    assert row == ("new", 0)
    assert feed.take() == CaptureCounts(1, 0, 0, (SESSION,))


# What is forgotten


def test_old_steps_are_removed_and_new_events_are_kept(
    feed: EventFeed, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.keep(feed.event("UserPromptSubmit", prompt="One."))
    feed.take()
    feed.keep(feed.event("UserPromptSubmit", prompt="Two."))
    monkeypatch.setattr(clock, "now_ms", lambda: AT + 31 * DAY_MS)
    # Nothing was made of it yet: it may have come from a transcript of last month.
    assert pipeline.forget(feed.memory) == 0
    feed.connection.execute(
        "UPDATE sessions SET synthesised = (SELECT min(id) FROM events WHERE status = 'step')"
    )
    for days, gone in ((29, 0), (31, 1)):
        monkeypatch.setattr(clock, "now_ms", lambda days=days: AT + days * DAY_MS)
        assert pipeline.forget(feed.memory) == gone
    assert feed.connection.execute("SELECT status FROM events").fetchall() == [("new",)]
    assert feed.take() == CaptureCounts(1, 0, 0, (SESSION,))
    Path(client.home, "config.toml").write_text("[capture]\nkeep_days = 365\n")
    assert pipeline.forget(feed.memory) == 0


def test_above_the_size_limit_synthesised_sessions_are_removed_first(
    feed: EventFeed, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_MEGABYTE", 1_000)
    monkeypatch.setattr(clock, "now_ms", lambda: AT)
    Path(client.home, "config.toml").write_text("[capture]\nmax_mb = 1\n")
    first, second = "older", "newer"
    for session in (first, second):
        for number in range(4):
            prompt = f"{number} {'x' * 150}"
            feed.keep(feed.event("UserPromptSubmit", session=session, prompt=prompt))
    feed.take()
    with transaction(feed.connection):
        feed.connection.execute("UPDATE sessions SET synthesised = 'z' WHERE id = ?", (second,))
    waiting = feed.event("UserPromptSubmit", prompt="x" * 2_000)
    feed.keep(waiting)
    assert pipeline.forget(feed.memory) == 3
    assert pipeline.forget(feed.memory) == 0
    rows = feed.connection.execute("SELECT session, count(*) FROM events GROUP BY 1 ORDER BY 1")
    assert rows.fetchall() == [(SESSION, 1), (second, 1), (first, 4)]


@pytest.mark.parametrize("portion", [1, 3])
def test_events_give_the_same_steps_in_batches_of_any_size(feed: EventFeed, portion: int) -> None:
    """The batches are of one event, of a few, or of all."""
    path = f"{feed.folder}/a.py"
    waiting = [
        feed.event("UserPromptSubmit", prompt="Go on."),
        feed.event("PostToolUse", "Read", tool_input={"file_path": path}),
        feed.event("PostToolUse", "Read", tool_input={"file_path": path}),
        feed.event("PostToolUse", "Write", tool_input={"file_path": path, "content": "a = 1"}),
        feed.event("PostToolUse", "Read", tool_input={"file_path": path}),
        feed.event("PostToolUse", "Bash", tool_input={"command": "make"}),
        feed.event("PostToolUse", "Bash", tool_input={"command": "make"}),
        feed.event("AssistantMessage", text="Done."),
        feed.event("Stop", last_assistant_message="Done."),
    ]
    for start in range(0, len(waiting), portion):
        feed.keep(*waiting[start : start + portion])
        feed.take()
        feed.keep(*waiting[: start + portion])
    feed.take()
    kinds = ["prompt", "read", "write", "read", "command", "say"]
    assert [step[0] for step in feed.steps()] == kinds
    assert feed.reasons() == [("dropped", "seen before")] * 3
