"""Events become steps: each once, whatever happens meanwhile, and no more than anybody wants."""

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
from ctx.capture.pipeline import CaptureCounts, SkippedEvent
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


class Heard:
    """What a session says, one event after the other."""

    def __init__(self, memory: Memory, home: str, folder: str) -> None:
        self.memory = memory
        self.home = home
        self.folder = folder
        self._count = 0

    @property
    def connection(self) -> sqlite3.Connection:
        return self.memory.user.connection

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

    def used(self, tool: str, response: Any = None, /, **given: Any) -> Event:
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

    def reasons(self) -> list[tuple[str, str]]:
        rows = self.connection.execute(
            "SELECT status, reason FROM events WHERE reason IS NOT NULL ORDER BY id"
        )
        return rows.fetchall()


@pytest.fixture
def heard(client: Client) -> Iterator[Heard]:
    with client.memory() as memory:
        yield Heard(memory, client.home, str(client.folder))


def test_a_session_from_its_beginning_to_its_end(heard: Heard) -> None:
    path = f"{heard.folder}/src/shop.py"
    heard.keep(heard.event("SessionStart", source="startup"))
    heard.keep(heard.event("UserPromptSubmit", prompt="Add the tax."))
    heard.used("Read", {"file": {"numLines": 2, "startLine": 1, "totalLines": 2}}, file_path=path)
    heard.used("Grep", {}, pattern="tax")
    heard.used("Write", {"type": "create"}, file_path=path, content="def tax():\n    return 2\n")
    heard.used("Bash", {"stdout": "1 passed in 0.01s"}, command="pytest")
    heard.keep(heard.event("Stop", last_assistant_message="Done."))
    heard.keep(heard.event("SessionEnd", reason="other"))
    assert heard.take() == CaptureCounts(7, 1, 0, (SESSION,))
    assert heard.steps() == [
        ("mark", "", "began"),
        ("prompt", "", "Add the tax."),
        ("read", "src/shop.py", ""),
        ("write", "src/shop.py", ""),
        ("command", "", "pytest"),
        ("say", "", "Done."),
        ("mark", "", "ended"),
    ]
    assert heard.reasons() == [("dropped", "the tool is excluded")]
    session = session_state.get(heard.connection, SESSION)
    assert (session.project, session.status, session.request) == (
        "app",
        "completed",
        "Add the tax.",
    )
    assert heard.connection.execute("SELECT * FROM symbol_changes").fetchall() == [
        *((SESSION, "src/shop.py", "tax", "function", "new", "def tax()", 1, "app", _at(5)),)
    ]
    # To do it again changes nothing.
    before = list(heard.connection.iterdump())
    assert heard.take() == CaptureCounts()
    assert list(heard.connection.iterdump()) == before


def _at(number: int) -> str:
    return clock.iso(AT + number * 10_000)


def test_what_was_seen_before(heard: Heard) -> None:
    a, b = f"{heard.folder}/a.py", f"{heard.folder}/b.py"
    for path in (a, b, a):
        heard.used("Read", {}, file_path=path)
    heard.used("Write", {}, file_path=a, content="x = 1\n")
    heard.used("Read", {}, file_path=a)
    for _ in range(2):
        heard.used("Bash", {"stdout": "same"}, command="make")
    heard.used("Bash", {"stdout": "x"}, command="ls")
    heard.used("Bash", {"stdout": "same"}, command="make")
    heard.keep(heard.event("AssistantMessage", text="All is well."))
    heard.keep(heard.event("Stop", last_assistant_message="All is  well.\n"))
    assert heard.take().dropped == 3
    assert heard.reasons() == [("dropped", "seen before")] * 3
    assert [step[:2] for step in heard.steps()] == [
        *(("read", "a.py"), ("read", "b.py"), ("write", "a.py"), ("read", "a.py")),
        *(("command", ""), ("command", ""), ("command", ""), ("say", "")),
    ]
    # Also where somebody else took in what was before.
    heard.used("Read", {}, file_path=b)
    assert heard.take() == CaptureCounts(0, 1, 0, ())


def test_a_title_that_is_written_again(heard: Heard) -> None:
    heard.keep(heard.event("UserPromptSubmit", prompt="Add the tax."))
    for title in ("Tax", "Tax", "Taxes", "Taxes"):
        heard.keep(heard.event("SessionTitle", text=title))
        heard.keep(heard.event("AssistantMessage", text=f"Done {title}."))
    heard.keep(heard.event("SessionEnd", reason="other"))
    heard.keep(heard.event("SessionTitle", text="Taxes of orders"))
    heard.take()
    titles = [text for kind, _, text in heard.steps() if kind == "title"]
    assert titles == ["Tax", "Taxes", "Taxes of orders"]
    assert session_state.get(heard.connection, SESSION).status == "completed"


def test_what_two_hooks_are_told_of_a_prompt(heard: Heard) -> None:
    """The second comes when a step was made of the first, so that their rows differ."""
    first = heard.event("UserPromptSubmit", prompt="Go on.")
    heard.keep(first)
    heard.take()
    ms = int(first.id[:13])
    heard.keep(first._replace(id=f"{ms + 40}-2-00000000"))
    heard.keep(first._replace(id=f"{ms + 9_000}-2-00000000"))
    assert heard.take() == CaptureCounts(1, 1, 0, (SESSION,))


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
def test_what_becomes_of_items_over_a_session(
    heard: Heard, changes: list[str], left: dict[str, str]
) -> None:
    texts = [
        "".join(f"def {w[0]}():\n    return {w[1:] or 1}\n" for w in c.split()) for c in changes
    ]
    for before, after in pairwise(texts):
        heard.used(
            "Write", {"originalFile": before}, file_path=f"{heard.folder}/a.py", content=after
        )
        heard.take()
    rows = heard.connection.execute("SELECT name, change FROM symbol_changes ORDER BY name")
    assert dict(rows.fetchall()) == left


def test_places(heard: Heard, tmp_path: Path) -> None:
    """A sub-folder is the same project; a file of another one is told from the root of the disk."""
    (Path(heard.folder) / "sub").mkdir()
    other = tmp_path / "other"
    git("init", "-q", str(other))
    said: dict[str, Any] = {"tool_input": {"file_path": "b.py"}}
    heard.keep(heard.event("SessionStart", source="startup"))
    heard.keep(heard.event("PostToolUse", "Read", folder=f"{heard.folder}/sub", **said))
    heard.keep(heard.event("PostToolUse", "Read", folder=str(other), **said))
    code = "def f():\n    return 1\n"
    written: dict[str, Any] = {"tool_input": {"file_path": "b.py", "content": code}}
    heard.keep(heard.event("PostToolUse", "Write", folder=str(other), **written))
    heard.take()
    assert [step[1] for step in heard.steps()] == ["", "sub/b.py", *[f"{other}/b.py"] * 2]
    changed = heard.connection.execute("SELECT project, path, name FROM symbol_changes").fetchall()
    assert changed == [("other", "b.py", "f")]
    assert session_state.get(heard.connection, SESSION).project == "app"


def test_what_a_pause_covers(heard: Heard) -> None:
    before, during, after = (heard.event("UserPromptSubmit", prompt=str(n)) for n in range(3))
    middle = int(during.id[:13])
    capture_pauses.pause(heard.home, ["*"], middle - 1_000, 0)
    capture_pauses.resume(heard.home, None, middle + 1_000)
    heard.keep(before, during, after)
    heard.take()
    assert [step[2] for step in heard.steps()] == ["0", "2"]
    assert heard.reasons() == [("dropped", "ctx was paused")]
    assert "1" not in [row[0] for row in heard.connection.execute("SELECT body FROM events")]


COMMIT = ("commit", "-q", "--allow-empty", "-m", "Begin")


def test_a_pause_covers_a_working_tree_that_is_made_meanwhile(heard: Heard, tmp_path: Path) -> None:
    capture_pauses.pause(heard.home, [heard.folder], AT - 1_000, 0)
    later = tmp_path / "later"
    git("-C", heard.folder, "-c", "user.name=a", "-c", "user.email=a@b", *COMMIT)
    git("-C", heard.folder, "worktree", "add", "-q", str(later))
    heard.keep(heard.event("UserPromptSubmit", prompt="Go on.")._replace(folder=str(later)))
    heard.take()
    assert heard.reasons() == [("dropped", "ctx was paused")]


@pytest.mark.parametrize("tree", [".claude/worktrees/fix", "../app-worktree"])
@pytest.mark.parametrize("is_inside", [True, False])
def test_files_of_a_working_tree_are_files_of_the_project(
    heard: Heard, tree: str, is_inside: bool
) -> None:
    """Whether the session runs in the working tree, or in another one of the same project."""
    top = Path(heard.folder, tree).resolve()
    git("-C", heard.folder, "-c", "user.name=a", "-c", "user.email=a@b", *COMMIT)
    git("-C", heard.folder, "worktree", "add", "-q", str(top))
    given = {"file_path": f"{top}/src/b.py", "content": "def f(): ...\n"}
    write = heard.event("PostToolUse", "Write", tool_input=given, tool_response={"type": "create"})
    failed = f"{top}/src/b.py:1: error: Name is not defined  [name-defined]\nFound 1 error"
    check = heard.event(
        *("PostToolUseFailure", "Bash"),
        tool_input={"command": f"cd {top} && mypy src"},
        error=f"Exit code 1\n{failed}",
    )
    folder = str(top) if is_inside else heard.folder
    heard.keep(*(each._replace(folder=folder) for each in (write, check)))
    heard.take()
    assert [step[:2] for step in heard.steps()] == [("write", "src/b.py"), ("command", "")]
    rows = heard.connection.execute("SELECT project, path, name FROM symbol_changes").fetchall()
    assert rows == [("app", "src/b.py", "f")]
    (body,) = heard.connection.execute("SELECT body FROM events WHERE tool = 'Bash'").fetchone()
    # What a check prints about files outside of the working tree has no path.
    path = "" if tree.startswith("..") and not is_inside else "src/b.py"
    assert [each[0] for each in json.loads(body)["findings"]] == [path]
    assert session_state.get(heard.connection, SESSION).project == "app"


def test_a_working_tree_that_is_gone(heard: Heard) -> None:
    top = f"{heard.folder}/.claude/worktrees/fix"
    heard.used("Write", {"type": "create"}, file_path=f"{top}/a.py", content="x = 1\n")
    inside = heard.event(
        *("PostToolUse", "Write"),
        tool_input={"file_path": f"{top}/lib/b.py", "content": "y = 1\n"},
        tool_response={"type": "create"},
    )
    heard.keep(inside._replace(folder=top))
    heard.used("Write", {"type": "create"}, file_path=f"{heard.folder}/worktree.py", content="z\n")
    heard.take()
    assert [step[1] for step in heard.steps()] == ["a.py", "lib/b.py", "worktree.py"]
    assert session_state.get(heard.connection, SESSION).project == "app"


def test_a_project_that_is_left_out(heard: Heard, client: Client) -> None:
    Path(client.home, "config.toml").write_text('[capture]\nignore_projects = ["app"]\n')
    heard.keep(heard.event("UserPromptSubmit", prompt="Go on."))
    assert heard.take() == CaptureCounts(0, 1, 0, ())
    assert heard.connection.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
    assert heard.connection.execute("SELECT body FROM events").fetchone() == ("",)


def test_what_is_left_out_is_never_written_down(heard: Heard, client: Client) -> None:
    Path(heard.folder, ".ctxignore").write_text("private/\n")
    Path(client.home, "config.toml").write_text('[capture]\nignore_projects = ["other"]\n')
    other = Path(heard.folder).parent / "other"
    git("init", "-q", str(other))
    given = {"file_path": f"{heard.folder}/private/a.txt", "content": "mustnotbekept"}
    said = {"tool_name": "Write", "tool_input": given, "tool_use_id": "toolu_1"}
    common = {"session_id": SESSION, "cwd": heard.folder}
    elsewhere = {**common, "cwd": str(other.parent), "tool_use_id": "toolu_2"}
    theirs = {"file_path": f"{other}/b.txt", "content": "mustnotbekept"}
    for kind, told in (
        ("post-tool-use", {**common, **said}),
        ("post-tool-use", {**said, **elsewhere}),
        ("post-tool-use", {**said, **elsewhere, "tool_use_id": "toolu_3", "tool_input": theirs}),
        ("prompt-submit", {"session_id": "b", "cwd": str(other), "prompt": "mustnotbekept"}),
    ):
        spool.put(client.home, spool.new_id(AT), kind, json.dumps(told).encode())
    assert apply.events(heard.memory, client.home, 5.0).events == 4
    assert "mustnotbekept" not in "".join(heard.connection.iterdump())
    assert heard.take() == CaptureCounts(0, 4, 0, ())
    reasons = [reason for _, reason in heard.reasons()]
    assert sorted(reasons) == [
        *["the path is excluded"] * 3,
        "the project is left out by capture.ignore_projects",
    ]


# What goes wrong


def poison(word: str) -> Callable[..., Step | DroppedEvent]:
    step_of = policy.step_of

    def break_down(event: Event, *rest: Any) -> Step | DroppedEvent:
        if word in json.dumps(event.payload):
            raise KeyError(word)
        return step_of(event, *rest)

    return break_down


def test_an_event_that_cannot_be_taken(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "step_of", poison("poison"))
    found = [heard.event("UserPromptSubmit", prompt=text) for text in ("one", "poison", "two")]
    heard.keep(*found)
    assert heard.take() == CaptureCounts(2, 0, 0, (SESSION,))
    assert heard.take() == CaptureCounts()
    assert heard.take() == CaptureCounts(0, 0, 1, ())
    assert heard.take() == CaptureCounts()
    event = found[1]
    assert pipeline.skipped(heard.connection) == [
        SkippedEvent(event.id, SESSION, "UserPromptSubmit", event.at, None, "KeyError: 'poison'")
    ]
    assert [step[2] for step in heard.steps()] == ["one", "two"]


class Killed(BaseException):
    """As if the process was gone."""


def test_an_event_that_ends_the_process(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beside it are taken all the same, at the latest the next time."""
    step_of = policy.step_of

    def die(event: Event, *rest: Any) -> Step | DroppedEvent:
        if event.text == "poison":
            raise Killed
        return step_of(event, *rest)

    monkeypatch.setattr(policy, "step_of", die)
    texts = ["one", "poison", "two", "three"]
    heard.keep(*(heard.event("UserPromptSubmit", prompt=text) for text in texts))
    deaths = 0
    while True:
        try:
            heard.take()
            break
        except Killed:
            deaths += 1
    assert deaths == 3
    assert [step[2] for step in heard.steps()] == ["one", "two", "three"]
    assert [each.reason for each in pipeline.skipped(heard.connection)] == [
        "It was tried three times."
    ]


def test_what_is_the_fault_of_the_store_counts_against_nobody(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    heard.keep(heard.event("UserPromptSubmit", prompt="Go on."))
    with monkeypatch.context() as patch:
        patch.setattr(session_state, "record_event", refuse)
        for _ in range(5):
            with pytest.raises(sqlite3.OperationalError):
                heard.take()
    row = heard.connection.execute("SELECT status, attempts FROM events").fetchone()
    assert row == ("new", 0)
    assert heard.take() == CaptureCounts(1, 0, 0, (SESSION,))


# What is forgotten


def test_old_steps_are_forgotten_and_new_events_are_not(
    heard: Heard, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard.keep(heard.event("UserPromptSubmit", prompt="One."))
    heard.take()
    heard.keep(heard.event("UserPromptSubmit", prompt="Two."))
    monkeypatch.setattr(clock, "now_ms", lambda: AT + 31 * DAY_MS)
    # Nothing was made of it yet: it may have come from a transcript of last month.
    assert pipeline.forget(heard.memory) == 0
    heard.connection.execute(
        "UPDATE sessions SET synthesised = (SELECT min(id) FROM events WHERE status = 'step')"
    )
    for days, gone in ((29, 0), (31, 1)):
        monkeypatch.setattr(clock, "now_ms", lambda days=days: AT + days * DAY_MS)
        assert pipeline.forget(heard.memory) == gone
    assert heard.connection.execute("SELECT status FROM events").fetchall() == [("new",)]
    assert heard.take() == CaptureCounts(1, 0, 0, (SESSION,))
    Path(client.home, "config.toml").write_text("[capture]\nkeep_days = 365\n")
    assert pipeline.forget(heard.memory) == 0


def test_where_there_is_too_much_what_memory_was_made_of_goes_first(
    heard: Heard, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_MEGABYTE", 1_000)
    monkeypatch.setattr(clock, "now_ms", lambda: AT)
    Path(client.home, "config.toml").write_text("[capture]\nmax_mb = 1\n")
    first, second = "older", "newer"
    for session in (first, second):
        for number in range(4):
            prompt = f"{number} {'x' * 150}"
            heard.keep(heard.event("UserPromptSubmit", session=session, prompt=prompt))
    heard.take()
    with transaction(heard.connection):
        heard.connection.execute("UPDATE sessions SET synthesised = 'z' WHERE id = ?", (second,))
    waiting = heard.event("UserPromptSubmit", prompt="x" * 2_000)
    heard.keep(waiting)
    assert pipeline.forget(heard.memory) == 3
    assert pipeline.forget(heard.memory) == 0
    rows = heard.connection.execute("SELECT session, count(*) FROM events GROUP BY 1 ORDER BY 1")
    assert rows.fetchall() == [(SESSION, 1), (second, 1), (first, 4)]


@pytest.mark.parametrize("portion", [1, 2, 3, 100])
def test_in_whatever_portions_events_are_taken(heard: Heard, portion: int) -> None:
    """They may be kept one by one or all at once: the steps are the same."""
    path = f"{heard.folder}/a.py"
    waiting = [
        heard.event("UserPromptSubmit", prompt="Go on."),
        heard.event("PostToolUse", "Read", tool_input={"file_path": path}),
        heard.event("PostToolUse", "Read", tool_input={"file_path": path}),
        heard.event("PostToolUse", "Write", tool_input={"file_path": path, "content": "a = 1"}),
        heard.event("PostToolUse", "Read", tool_input={"file_path": path}),
        heard.event("PostToolUse", "Bash", tool_input={"command": "make"}),
        heard.event("PostToolUse", "Bash", tool_input={"command": "make"}),
        heard.event("AssistantMessage", text="Done."),
        heard.event("Stop", last_assistant_message="Done."),
    ]
    for start in range(0, len(waiting), portion):
        heard.keep(*waiting[start : start + portion])
        heard.take()
        heard.keep(*waiting[: start + portion])
    heard.take()
    kinds = ["prompt", "read", "write", "read", "command", "say"]
    assert [step[0] for step in heard.steps()] == kinds
    assert heard.reasons() == [("dropped", "seen before")] * 3
