"""`ctx stage`: sessions, what they have staged, and what becomes of it."""

import os
import re
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ctx import clock
from ctx.errors import UsageError
from ctx.layout import project_at
from ctx.objects import repository
from ctx.objects.repository import Repository
from ctx.operations import compact, task
from tests.conftest import Ctx, Ran, git
from tests.e2e.terminals import on_a_terminal

DAY_S = 86_400


@pytest.fixture
def project(repo: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    git("add", "-A")
    git("commit", "-q", "-m", "Begin")
    return repo


@pytest.fixture
def local(project: Path) -> Path:
    return project / ".git" / "ctx" / "main"


def succeeded(ran: Ran) -> Ran:
    assert ran.code == 0, ran.err
    return ran


def session_in(ran: Ran) -> str:
    found = re.search(r"session (\S+):", succeeded(ran).out)
    assert found, ran.out
    return found[1]


def facts(ctx: Ctx) -> list[str]:
    shown = succeeded(ctx("list", "--type=fact", "--limit=0", "--format=json")).json
    return sorted(node["content"] for node in shown["nodes"])


def messages(ctx: Ctx) -> list[str]:
    """What the commits are about, the newest first."""
    shown = succeeded(ctx("debug", "history", "--format=json")).json
    return [each["message"] for each in shown["commits"] if each["message"] != "Initial commit"]


def states(ctx: Ctx) -> dict[str, str]:
    shown = succeeded(ctx("stage", "status", "--format=json")).json
    return {chain["session"]: chain["state"] for chain in shown["chains"]}


def age(local: Path, session: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(local / "refs" / "work" / session, (then, then))


# Begin, join, compact


def test_a_session_is_joined_until_it_is_compacted(project: Path, ctx: Ctx) -> None:
    session = session_in(ctx("stage", "start", "Fix timeout handling!"))
    assert re.fullmatch(r"fix-timeout-handling-[0-9a-f]{6}", session)
    assert "Fix timeout handling! (task:fix-timeout-handling)" in ctx("task").out
    succeeded(ctx("add", "--no-tier", "--type=decision", "Use jitter"))
    (chain,) = staged(ctx, "status")["chains"]
    assert chain["began"] <= chain["last"]
    assert chain["tokens"] > 20
    shown = {"session": session, "state": "active", "task": "Fix timeout handling!", "steps": 3}
    assert shown.items() <= chain.items()
    assert (chain["records"], chain["files"], chain["documents"]) == (4, 0, 0)
    made = staged(ctx, "compact")
    assert (made["session"], made["steps"]) == (session, 3)
    assert made["message"] == "Decide: Use jitter"
    assert succeeded(ctx("stage")).out == "Current session: cli.\nNothing staged.\n"
    assert "Nothing to commit in session cli" in succeeded(ctx("stage", "compact")).out
    failed = ctx("stage", "compact", "--session", "nobody")
    assert (failed.code, "Session nobody has nothing staged" in failed.err) == (1, True)
    succeeded(ctx("stage", "start", "Retry"))
    succeeded(ctx("stage", "compact", "-m", "Retries are in"))
    assert messages(ctx) == ["Retries are in", "Decide: Use jitter"]
    failed = ctx("stage", "start", "!!!")
    assert (failed.code, "cannot name a task" in failed.err) == (2, True)
    assert states(ctx) == {}


def test_what_another_process_writes_meanwhile_is_left_alone(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that cannot start is removed later: `ctx stage abort`."""
    there = repository.Repository(project_at(str(project)))
    monkeypatch.setattr(repository, "_WRITER_WAITS_S", 0)
    with ExitStack() as held:

        def fail(*_: object) -> None:
            held.enter_context(there.locked("another command"))
            raise UsageError("No.")

        monkeypatch.setattr(task, "start", fail)
        assert "another command" in ctx("stage", "start", "One", "--session", "one").err
    assert [*there.refs.names()] == ["main", "work/one"]


def test_which_session_is_joined(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch, local: Path
) -> None:
    def joined(*words: str) -> str:
        made = succeeded(ctx("add", "--type=fact", "x", *words, "--format=json")).json
        history = succeeded(ctx("show", made["node"]["id"], "--history", "--format=json")).json
        return str(history["history"][-1]["session"])

    assert joined() == "cli"
    monkeypatch.setenv("CTX_SESSION", "theirs")
    assert session_in(ctx("stage", "start", "One")) == "theirs"
    assert states(ctx) == {"cli": "active", "theirs": "active"}
    assert not (local / "STAGE").exists()
    named = ctx("stage", "start", "Two", "--session", "mine")
    assert "Commands here still use session theirs" in named.err
    assert joined() == "theirs"
    assert joined("--session", "other") == "other"
    monkeypatch.delenv("CTX_SESSION")
    assert joined() == "mine"
    (local / "STAGE").write_text("../no/session\n")
    assert "does not name a session" in ctx("list").err
    assert joined() == "cli"
    assert "it is closed" in succeeded(ctx("stage", "recover")).out
    assert not (local / "STAGE").exists()


def test_another_start_compacts_what_was_staged_before(project: Path, ctx: Ctx) -> None:
    fact(ctx, "By hand")
    first = ctx("stage", "start", "One", "--session", "one")
    assert "Compacted session cli (session one begins)" in first.err
    fact(ctx, "In one", "one")
    second = staged(ctx, "start", "Two", "--session", "two")
    assert (second["compacted"]["session"], second["left"]) == ("one", None)
    assert states(ctx) == {"two": "active"}
    assert staged(ctx, "start", "Two", "--session", "two")["resumed"]
    assert len(messages(ctx)) == 2


# Flush


def test_flushed_documents_survive_git_clean(project: Path, ctx: Ctx) -> None:
    document = project / ".ctx" / "narrative" / "plan.md"
    succeeded(ctx("commit", "--auto"))
    git("add", "-A")
    document.write_text("# Plan\n\nFirst this.\n")
    assert staged(ctx, "flush")["documents"] == ["plan.md"]
    assert staged(ctx, "flush")["step"] is None
    git("clean", "-fdxq", ".ctx")
    assert "Flushed documents that are missing" in succeeded(ctx("stage", "recover")).out
    assert "Restored: narrative/plan.md" in succeeded(ctx("stage", "recover", "--documents")).out
    assert document.read_text() == "# Plan\n\nFirst this.\n"
    git("clean", "-fdxq", ".ctx")
    assert staged(ctx, "compact")["commit"]
    repository = Repository(project_at(str(project)))
    (head,) = repository.current()
    (ref,) = [ref for ref in head.commit.narrative_refs if ref.path == "plan.md"]
    assert repository.objects.read(ref.blob_id).payload == b"# Plan\n\nFirst this.\n"
    assert succeeded(ctx("debug", "verify")).code == 0
    # One that was changed, flushed and changed back.
    for text in ("# Another\n", "# Plan\n\nFirst this.\n"):
        document.write_text(text)
        succeeded(ctx("stage", "flush") if "Another" in text else ctx("list"))
    assert "Nothing to commit" in succeeded(ctx("stage", "compact")).out


# Abort, and back


def test_what_is_aborted_is_hidden_and_can_be_had_back(project: Path, ctx: Ctx) -> None:
    session = session_in(ctx("stage", "start", "Try it"))
    fact(ctx, "Tried", session)
    would = succeeded(ctx("stage", "abort", "--dry-run"))
    assert would.out == f"Would abort session {session} (3 steps, 6 records).\n"
    assert facts(ctx) == ["Tried"]
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    gone = staged(ctx, "abort", "--reason", f"Changed approach: {secret}")
    assert gone["session"] == session
    assert secret not in gone["reason"]
    assert facts(ctx) == []
    assert states(ctx) == {gone["aborted"]: "aborted"}
    assert "aborted (Changed approach" in succeeded(ctx("stage")).out
    assert staged(ctx, "recover", session)["restored"] == session
    assert facts(ctx) == ["Tried"]
    succeeded(ctx("stage", "compact", "--session", session))
    assert facts(ctx) == ["Tried"]
    assert succeeded(ctx("debug", "verify")).code == 0


def test_an_aborted_session_takes_its_task_and_files_along(project: Path, ctx: Ctx) -> None:
    succeeded(ctx("commit", "--auto"))
    narrative = project / ".ctx" / "narrative"
    succeeded(ctx("stage", "start", "Try it", "--session", "try"))
    succeeded(ctx("add", "decision", "Use files"))
    (edited,) = narrative.glob("tasks/*.md")
    edited.write_text(edited.read_text() + "\nOne more line.\n")
    decision = next(narrative.glob("decisions/*.md"))
    texts = {path: path.read_text() for path in (edited, decision)}
    dry = staged(ctx, "abort", "--dry-run")
    assert (dry["documents"], len(dry["removed"]), dry["task_left"]) == ([], 2, None)
    assert edited.exists()
    gone = succeeded(ctx("stage", "abort")).out
    assert "Files that it created are kept with it: narrative/decisions/" in gone
    assert "task:try-it started in this session and is no longer the current task." in gone
    assert not edited.exists()
    assert "Use files" not in (narrative / "decisions.md").read_text()
    assert succeeded(ctx("list", "--format=json")).json["total"] == 0
    fact(ctx, "Something else")
    made = succeeded(ctx("commit", "-m", "Else", "--format=json")).json
    assert not [path for path in made["documents"] if not path.startswith("log/")]
    assert "Restored: narrative/decisions/" in succeeded(ctx("stage", "recover", "try")).out
    assert {path: path.read_text() for path in texts} == texts
    succeeded(ctx("stage", "compact", "--session", "try"))
    titles = {node["content"].split("\n")[0] for node in ctx("list", "--format=json").json["nodes"]}
    assert titles == {"Try it", "Use files", "Something else"}
    assert succeeded(ctx("debug", "verify")).code == 0


def test_files_that_others_have_stay(project: Path, ctx: Ctx) -> None:
    succeeded(ctx("add", "task", "Known before"))
    succeeded(ctx("commit", "--auto"))
    succeeded(ctx("stage", "start", "Known before", "--session", "try"))
    succeeded(ctx("add", "decision", "Use files"))
    git("add", "-A")
    gone = staged(ctx, "abort")
    assert gone["removed"] == []
    (path,) = gone["documents"]
    assert (project / ".ctx" / "narrative" / path).exists()
    assert gone["task_left"] == "known-before"
    assert succeeded(ctx("task", "current", "--format=json")).json["task"] is None
    succeeded(ctx("task", "start", "Known before"))
    fact(ctx, "One", "side")
    beside = staged(ctx, "abort", "--session", "side")
    assert beside["task_left"] is None, "it is the task of another session"


def test_what_is_aborted_comes_back_beside_what_went_on(project: Path, ctx: Ctx) -> None:
    fact(ctx, "One")
    name = staged(ctx, "abort")["aborted"]
    fact(ctx, "Two")
    assert ctx("stage", "recover", "nobody").code == 1
    back = staged(ctx, "recover", name)["restored"]
    assert facts(ctx) == ["One", "Two"]
    assert states(ctx) == {"cli": "active", back: "active"}
    for message in ("Two", "One"):
        succeeded(ctx("commit", "-m", message))
    assert messages(ctx) == ["One", "Two"]
    # A session that was aborted twice has to be named more exactly.
    names = []
    for text in ("Three", "Four"):
        fact(ctx, text)
        names.append(staged(ctx, "abort")["aborted"])
    failed = ctx("stage", "recover", "cli")
    assert (failed.code, all(name in failed.err for name in names)) == (2, True)
    failed = ctx("stage", "abort")
    assert (failed.code, "has nothing staged" in failed.err) == (2, True)


def test_what_was_aborted_goes_with_the_garbage(project: Path, ctx: Ctx, local: Path) -> None:
    fact(ctx, "One")
    name = staged(ctx, "abort")["aborted"]
    succeeded(ctx("gc"))
    assert states(ctx) == {name: "aborted"}
    then = time.time() - 8 * DAY_S
    for path in (local / "refs" / "aborted" / name, *(local / "stage").rglob("*")):
        os.utime(path, (then, then))
    succeeded(ctx("gc", "--dry-run"))
    assert states(ctx) == {name: "aborted"}
    succeeded(ctx("gc"))
    assert states(ctx) == {}
    assert not [path for path in (local / "stage").rglob("*") if path.is_file()]
    assert succeeded(ctx("debug", "verify")).code == 0


@pytest.mark.parametrize("amended", [0, 1, 2])
def test_what_belongs_to_a_branch_stays_there_after_an_amended_commit_was_collected(
    project: Path, ctx: Ctx, local: Path, amended: int
) -> None:
    fact(ctx, "Early", "early")
    fact(ctx, "Zero")
    succeeded(ctx("commit", "-m", "Zero"))
    for number in range(amended):
        succeeded(ctx("commit", "--amend", "-m", f"Words {number}"))
        assert facts(ctx) == ["Early", "Zero"]
    succeeded(ctx("gc", "--keep-days", "0"))
    git("add", "-A")
    git("commit", "-q", "-m", "Zero")
    git("switch", "-q", "-c", "other")
    fact(ctx, "Other")
    succeeded(ctx("commit", "-m", "Other"))
    git("add", "-A")
    git("commit", "-q", "-m", "Other")
    fact(ctx, "Staged on other")
    git("switch", "-q", "main")
    assert states(ctx) == {"cli": "parked", "early": "active"}
    assert facts(ctx) == ["Early", "Zero"]
    fact(ctx, "Main")
    assert succeeded(ctx("commit", "-m", "Main", "--format=json")).json["nodes"] == 1
    shutil.rmtree(local / "index")
    assert facts(ctx) == ["Early", "Main", "Zero"]
    git("add", "-A")
    git("commit", "-q", "-m", "Main")
    git("switch", "-q", "other")
    assert facts(ctx) == ["Early", "Other", "Staged on other", "Zero"]


# Status


def test_every_state(project: Path, ctx: Ctx, local: Path) -> None:
    git("branch", "other")
    succeeded(ctx("commit", "-m", "On main"))
    fact(ctx, "First", "first")
    succeeded(ctx("commit", "-m", "First", "--session", "first"))
    git("add", "-A")
    git("commit", "-q", "-m", "First")
    fact(ctx, "Parked", "parked")
    git("switch", "-q", "other")
    for session in ("active", "stale", "gone", "broken"):
        fact(ctx, f"About {session}", session)
    age(local, "stale", 2 * DAY_S)
    aborted = staged(ctx, "abort", "--session", "gone")["aborted"]
    (local / "refs" / "work" / "broken").write_text("nonsense")
    alive = {"active": "active", "stale": "stale", "parked": "parked"}
    assert states(ctx) == {**alive, aborted: "aborted", "broken": "damaged"}
    text = succeeded(ctx("stage")).out
    assert "`ctx stage compact --session stale`" in text
    assert "parked is parked: check out main to continue." in text
    assert f"`ctx stage recover {aborted}`" in text
    assert "`ctx stage recover broken`" in text
    refused = ctx("stage", "compact", "--session", "parked")
    assert (refused.code, "E008" in refused.err) == (1, True)
    shown = succeeded(ctx("status", "--format=json")).json["staged"]
    assert {each["session"]: each["state"] for each in shown} == alive
    assert "stale (2 records, stale)" in succeeded(ctx("status")).out


# Sessions that nobody goes on with


def test_a_stale_session_is_named_to_people_only(project: Path, ctx: Ctx, local: Path) -> None:
    fact(ctx, "One", "left")
    age(local, "left", 2 * DAY_S)
    assert "waiting" not in ctx("list").err
    told = "Staged, not committed: left (2 d). See `ctx stage`."
    assert told in on_a_terminal(["list"], project)
    assert told not in on_a_terminal(["list", "--format=json"], project)
    fact(ctx, "Two", "left")
    assert states(ctx) == {"left": "active"}


def test_an_old_session_is_compacted_by_the_next_that_writes(
    project: Path, ctx: Ctx, local: Path, surroundings: Path
) -> None:
    for session in ("left", "cli", "agent", "dropped"):
        fact(ctx, f"Of {session}", session)
    for session in states(ctx):
        age(local, session, 8 * DAY_S)
    live = surroundings / ".ctx" / "live"
    live.mkdir(parents=True)
    (live / "agent").write_text(f"{os.getpid()}\n{project}\n")
    assert states(ctx)["left"] == "stale"
    # It can still be aborted.
    succeeded(ctx("stage", "abort", "--session", "dropped"))
    told = ctx("add", "--type=fact", "Three")
    assert told.code == 0
    assert "Compacted session left (nothing was added for 8 d)" in told.err
    # The agent of that session runs.
    found = states(ctx)
    assert {name: found[name] for name in ("cli", "agent")} == {"cli": "active", "agent": "active"}
    assert messages(ctx) == ["Keep 1 node", "Keep 1 node"]
    assert facts(ctx) == ["Of agent", "Of cli", "Of left", "Three"]


def test_an_old_session_that_is_parked_stays(project: Path, ctx: Ctx, local: Path) -> None:
    git("branch", "other")
    succeeded(ctx("commit", "-m", "On main"))
    fact(ctx, "Zero")
    succeeded(ctx("commit", "-m", "Zero"))
    git("add", "-A")
    git("commit", "-q", "-m", "Main")
    fact(ctx, "One", "left")
    age(local, "left", 8 * DAY_S)
    git("switch", "-q", "other")
    assert "left" not in ctx("add", "--type=fact", "Two").err
    assert states(ctx) == {"cli": "active", "left": "parked"}
    assert facts(ctx) == ["Two"]
    git("switch", "-q", "main")
    # What began before the branches parted belongs to both.
    assert facts(ctx) == ["One", "Two", "Zero"]


def test_a_failed_compaction_stops_nothing(project: Path, ctx: Ctx, local: Path) -> None:
    fact(ctx, "One", "left")
    (local / "refs" / "work" / "left").write_text("0" * 64 + "\n")
    age(local, "left", 8 * DAY_S)
    told = ctx("add", "--type=fact", "Two")
    assert (told.code, "could not be compacted" in told.err) == (0, True)
    assert facts(ctx) == ["Two"]


# When a session is compacted without being asked


def test_a_commit_leaves_the_documents_of_other_sessions_alone(ctx: Ctx, project: Path) -> None:
    succeeded(ctx("add", "task", "A draft", "--session=a"))
    fact(ctx, "Unrelated", "b")
    for session, has_task in (("b", False), ("a", True)):
        made = ctx("commit", "-m", "x", f"--session={session}", "--format=json").json
        assert any(path.startswith("tasks/") for path in made["documents"]) is has_task


def staged(ctx: Ctx, *words: str) -> Any:
    return succeeded(ctx("stage", *words, "--format=json")).json


def fact(ctx: Ctx, content: str, session: str = "cli") -> None:
    succeeded(ctx("add", "--type=fact", content, "--session", session))


def test_a_session_is_compacted_by_its_size_or_age(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    def added(content: str, session: str) -> str:
        return ctx("add", "--type=fact", content, "--session", session).err

    with monkeypatch.context() as small:
        small.setattr(compact, "_MOST_TOKENS", 100)
        assert "Compacted" not in added("One", "cli")
        assert "Compacted session cli (more than 100 tokens)" in added("word " * 200, "cli")
        assert states(ctx) == {}
        assert "Compacted" not in added("Two", "cli")
    fact(ctx, "One", "agent")
    later = clock.wall_ms() + 5 * 3_600_000
    monkeypatch.setattr(clock, "wall_ms", lambda: later)
    assert "Compacted" not in added("Three", "cli")
    assert "Compacted session agent (older than 4 h)" in added("Two", "agent")
    assert states(ctx) == {"cli": "active"}


def test_a_session_is_compacted_at_the_end_of_its_task(project: Path, ctx: Ctx) -> None:
    fact(ctx, "Before")
    for _ in range(2):
        assert "Compacted" not in ctx("task", "start", "One").err
    assert "Compacted session cli (another task begins)" in ctx("task", "start", "Two").err
    assert len(messages(ctx)) == 1
    succeeded(ctx("add", "--type=decision", "So be it"))
    ended = succeeded(ctx("task", "end", "--format=json")).json
    assert ended["compacted"]["why"] == "the task has ended"
    assert states(ctx) == {}
    assert messages(ctx)[0] == "Decide: So be it"
