"""`ctx stage`: sessions, what they have staged, and what becomes of it."""

import os
import pty
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctx import clock
from ctx.layout import project_at
from ctx.objects.repository import Repository
from ctx.operations import compact
from tests.conftest import Ctx, Ran, git

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
    (chain,) = succeeded(ctx("stage", "status", "--format=json")).json["chains"]
    assert chain["began"] <= chain["last"]
    assert chain["tokens"] > 20
    assert {**chain, "began": 0, "last": 0, "tokens": 0} == {
        "session": session,
        "state": "active",
        "task": "Fix timeout handling!",
        "steps": 3,
        "records": 4,
        "files": 0,
        "documents": 0,
        "tokens": 0,
        "began": 0,
        "last": 0,
        "reason": None,
    }
    made = succeeded(ctx("stage", "compact", "--format=json")).json
    assert made["session"] == session
    assert made["steps"] == 3
    assert made["message"] == "Decide: Use jitter"
    assert succeeded(ctx("stage")).out == "Current session: cli.\nNothing staged.\n"


def test_the_message_option_is_the_commit_message(project: Path, ctx: Ctx) -> None:
    succeeded(ctx("stage", "start", "Retry"))
    succeeded(ctx("stage", "compact", "-m", "Retries are in"))
    assert messages(ctx) == ["Retries are in"]


def test_which_session_is_joined(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch, local: Path
) -> None:
    def joined(*words: str) -> str:
        made = succeeded(ctx("add", "--type=fact", "x", *words, "--format=json")).json
        history = succeeded(ctx("show", made["node"]["id"], "--history", "--format=json")).json
        return str(history["history"][-1]["session"])

    assert joined() == "cli"
    session = session_in(ctx("stage", "start", "--session", "mine", "One"))
    assert session == "mine"
    assert joined() == "mine"
    monkeypatch.setenv("CTX_SESSION", "theirs")
    assert joined() == "theirs"
    assert joined("--session", "other") == "other"
    monkeypatch.delenv("CTX_SESSION")
    (local / "STAGE").write_text("../no/session\n")
    told = ctx("list")
    assert told.code == 0
    assert "does not name a session" in told.err
    assert joined() == "cli"
    assert "it is closed" in succeeded(ctx("stage", "recover")).out
    assert not (local / "STAGE").exists()


def test_a_session_that_the_environment_names_is_begun_by_itself(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch, local: Path
) -> None:
    succeeded(ctx("add", "--type=fact", "By hand"))
    monkeypatch.setenv("CTX_SESSION", "theirs")
    assert session_in(ctx("stage", "start", "One")) == "theirs"
    assert states(ctx) == {"cli": "active", "theirs": "active"}
    assert not (local / "STAGE").exists()
    named = ctx("stage", "start", "Two", "--session", "mine")
    assert named.code == 0
    assert "Commands here still use session theirs" in named.err


def test_another_start_compacts_what_was_staged_before(project: Path, ctx: Ctx) -> None:
    succeeded(ctx("add", "--type=fact", "By hand"))
    first = ctx("stage", "start", "One", "--session", "one")
    assert "Compacted session cli (session one begins)" in first.err
    succeeded(ctx("add", "--type=fact", "In one"))
    second = succeeded(ctx("stage", "start", "Two", "--session", "two", "--format=json")).json
    assert second["compacted"]["session"] == "one"
    assert second["left"] is None
    assert states(ctx) == {"two": "active"}
    again = succeeded(ctx("stage", "start", "Two", "--session", "two", "--format=json")).json
    assert again["resumed"]
    assert len(messages(ctx)) == 2


def test_a_task_that_cannot_be_begun_leaves_no_session(project: Path, ctx: Ctx) -> None:
    failed = ctx("stage", "start", "!!!")
    assert failed.code == 2
    assert "cannot name a task" in failed.err
    assert states(ctx) == {}
    assert succeeded(ctx("stage")).out.startswith("Current session: cli.")


def test_outside_of_a_project(folder: Path, ctx: Ctx) -> None:
    for words in (("start", "x"), ("flush",), ("compact",), ("abort",), ("status",), ("recover",)):
        failed = ctx("stage", *words)
        assert failed.code == 1
        assert "E012" in failed.err


def test_nothing_to_compact(project: Path, ctx: Ctx) -> None:
    succeeded(ctx("commit", "--auto"))
    assert "Nothing to commit in session cli" in succeeded(ctx("stage", "compact")).out
    failed = ctx("stage", "compact", "--session", "nobody")
    assert failed.code == 1
    assert "Session nobody has nothing staged" in failed.err


# Flush


def test_flushed_documents_survive_git_clean(project: Path, ctx: Ctx) -> None:
    document = project / ".ctx" / "narrative" / "plan.md"
    succeeded(ctx("commit", "--auto"))
    git("add", "-A")
    document.write_text("# Plan\n\nFirst this.\n")
    flushed = succeeded(ctx("stage", "flush", "--format=json")).json
    assert flushed["documents"] == ["plan.md"]
    assert succeeded(ctx("stage", "flush", "--format=json")).json["step"] is None
    git("clean", "-fdxq", ".ctx")
    assert not document.exists()
    assert "Flushed documents that are missing" in succeeded(ctx("stage", "recover")).out
    made = succeeded(ctx("stage", "compact", "--format=json")).json
    assert made["commit"]
    repository = Repository(project_at(str(project)))
    (head,) = repository.current()
    (ref,) = [ref for ref in head.commit.narrative_refs if ref.path == "plan.md"]
    assert repository.objects.read(ref.blob_id).payload == b"# Plan\n\nFirst this.\n"
    assert succeeded(ctx("debug", "verify")).code == 0


def test_flushed_documents_can_be_had_back(project: Path, ctx: Ctx) -> None:
    document = project / ".ctx" / "narrative" / "plan.md"
    document.write_text("# Plan\n")
    succeeded(ctx("stage", "flush"))
    document.unlink()
    assert "Restored: narrative/plan.md" in succeeded(ctx("stage", "recover", "--documents")).out
    assert document.read_text() == "# Plan\n"


def test_a_flushed_document_that_was_changed_back(project: Path, ctx: Ctx) -> None:
    document = project / ".ctx" / "narrative" / "plan.md"
    document.write_text("# Plan\n")
    succeeded(ctx("commit", "-m", "Plan"))
    document.write_text("# Another\n")
    succeeded(ctx("stage", "flush"))
    document.write_text("# Plan\n")
    assert "Nothing to commit" in succeeded(ctx("stage", "compact")).out


# Abort, and back


def test_what_is_aborted_is_hidden_and_can_be_had_back(project: Path, ctx: Ctx) -> None:
    session = session_in(ctx("stage", "start", "Try it"))
    succeeded(ctx("add", "--no-tier", "--type=fact", "Tried"))
    would = succeeded(ctx("stage", "abort", "--dry-run"))
    assert would.out == f"Would abort session {session} (3 steps, 4 records).\n"
    assert facts(ctx) == ["Tried"]
    gone = succeeded(ctx("stage", "abort", "--reason", "Changed approach", "--format=json")).json
    assert gone["session"] == session
    assert gone["reason"] == "Changed approach"
    assert facts(ctx) == []
    assert states(ctx) == {gone["aborted"]: "aborted"}
    assert "aborted (Changed approach)" in succeeded(ctx("stage")).out
    back = succeeded(ctx("stage", "recover", session, "--format=json")).json
    assert back["restored"] == session
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
    dry = succeeded(ctx("stage", "abort", "--dry-run", "--format=json")).json
    assert (dry["documents"], len(dry["removed"]), dry["task_left"]) == ([], 2, None)
    assert edited.exists()
    gone = succeeded(ctx("stage", "abort"))
    assert "Files that it created are kept with it: narrative/decisions/" in gone.out
    assert "task:try-it started in this session and is no longer the current task." in gone.out
    assert succeeded(ctx("task", "current", "--format=json")).json["task"] is None
    assert not edited.exists()
    assert "Use files" not in (narrative / "decisions.md").read_text()
    assert succeeded(ctx("list", "--format=json")).json["total"] == 0
    succeeded(ctx("add", "--type=fact", "Something else"))
    made = succeeded(ctx("commit", "-m", "Else", "--format=json")).json
    assert not [path for path in made["documents"] if not path.startswith("log/")]
    back = succeeded(ctx("stage", "recover", "try"))
    assert "Restored: narrative/decisions/" in back.out
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
    gone = succeeded(ctx("stage", "abort", "--format=json")).json
    assert gone["removed"] == []
    (path,) = gone["documents"]
    assert (project / ".ctx" / "narrative" / path).exists()
    assert gone["task_left"] == "known-before"
    assert succeeded(ctx("task", "current", "--format=json")).json["task"] is None
    succeeded(ctx("task", "start", "Other"))
    succeeded(ctx("stage", "abort"))
    succeeded(ctx("task", "start", "Known before"))
    succeeded(ctx("add", "--type=fact", "One", "--session", "side"))
    beside = succeeded(ctx("stage", "abort", "--session", "side", "--format=json")).json
    assert beside["task_left"] is None, "it is the task of another session"


def test_what_is_aborted_comes_back_beside_what_went_on(project: Path, ctx: Ctx) -> None:
    succeeded(ctx("add", "--type=fact", "One"))
    name = succeeded(ctx("stage", "abort", "--format=json")).json["aborted"]
    succeeded(ctx("add", "--type=fact", "Two"))
    assert ctx("stage", "recover", "nobody").code == 1
    back = succeeded(ctx("stage", "recover", name, "--format=json")).json["restored"]
    assert facts(ctx) == ["One", "Two"]
    assert states(ctx) == {"cli": "active", back: "active"}
    succeeded(ctx("commit", "-m", "Two"))
    succeeded(ctx("commit", "-m", "One"))
    assert messages(ctx) == ["One", "Two"]
    assert states(ctx) == {}


def test_a_session_that_was_aborted_twice(project: Path, ctx: Ctx) -> None:
    names = []
    for text in ("One", "Two"):
        succeeded(ctx("add", "--type=fact", text))
        names.append(succeeded(ctx("stage", "abort", "--format=json")).json["aborted"])
    failed = ctx("stage", "recover", "cli")
    assert failed.code == 2
    assert all(name in failed.err for name in names)
    failed = ctx("stage", "abort")
    assert failed.code == 2
    assert "has nothing staged" in failed.err


def test_a_secret_in_the_reason_is_not_kept(project: Path, ctx: Ctx) -> None:
    succeeded(ctx("add", "--type=fact", "One"))
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    gone = succeeded(ctx("stage", "abort", "--reason", f"It had {secret}", "--format=json")).json
    assert secret not in gone["reason"]


def test_what_was_aborted_goes_with_the_garbage(project: Path, ctx: Ctx, local: Path) -> None:
    succeeded(ctx("add", "--type=fact", "One"))
    name = succeeded(ctx("stage", "abort", "--format=json")).json["aborted"]
    succeeded(ctx("gc", "--aggressive"))
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


def test_what_is_staged_stays_in_sight_however_often_a_commit_is_amended(
    project: Path, ctx: Ctx, local: Path
) -> None:
    succeeded(ctx("add", "--type=fact", "Zero"))
    succeeded(ctx("commit", "-m", "First"))
    succeeded(ctx("add", "--type=fact", "One", "--session", "agent"))
    for number in (1, 2, 3):
        succeeded(ctx("commit", "--amend", "-m", f"Words {number}"))
        assert facts(ctx) == ["One", "Zero"]
    succeeded(ctx("add", "--type=fact", "Two", "--session", "agent"))
    for _ in range(2):
        assert facts(ctx) == ["One", "Two", "Zero"]
        assert states(ctx) == {"agent": "active"}
        shutil.rmtree(local / "index")
    assert (
        succeeded(ctx("commit", "--auto", "--session", "agent", "--format=json")).json["nodes"] == 2
    )
    assert facts(ctx) == ["One", "Two", "Zero"]


@pytest.mark.parametrize("amended", [1, 2])
def test_what_belongs_to_a_branch_stays_there_after_an_amended_commit_was_collected(
    project: Path, ctx: Ctx, local: Path, amended: int
) -> None:
    succeeded(ctx("add", "--type=fact", "Early", "--session", "early"))
    succeeded(ctx("add", "--type=fact", "Zero"))
    succeeded(ctx("commit", "-m", "Zero"))
    for number in range(amended):
        succeeded(ctx("commit", "--amend", "-m", f"Words {number}"))
    succeeded(ctx("gc", "--keep-days", "0"))
    git("add", "-A")
    git("commit", "-q", "-m", "Zero")
    git("switch", "-q", "-c", "other")
    succeeded(ctx("add", "--type=fact", "Other"))
    succeeded(ctx("commit", "-m", "Other"))
    git("add", "-A")
    git("commit", "-q", "-m", "Other")
    succeeded(ctx("add", "--type=fact", "Staged on other"))
    git("switch", "-q", "main")
    assert states(ctx) == {"cli": "parked", "early": "active"}
    assert facts(ctx) == ["Early", "Zero"]
    succeeded(ctx("add", "--type=fact", "Main"))
    assert succeeded(ctx("commit", "-m", "Main", "--format=json")).json["nodes"] == 1
    shutil.rmtree(local / "index")
    assert facts(ctx) == ["Early", "Main", "Zero"]
    git("add", "-A")
    git("commit", "-q", "-m", "Main")
    git("switch", "-q", "other")
    assert facts(ctx) == ["Early", "Other", "Staged on other", "Zero"]


# Status


def test_every_state(project: Path, ctx: Ctx, local: Path) -> None:
    def add(session: str) -> None:
        succeeded(ctx("add", "--no-tier", f"About {session}", "--session", session))

    git("branch", "other")
    succeeded(ctx("commit", "-m", "On main"))
    (project / "x").write_text("x")
    add("first")
    succeeded(ctx("commit", "-m", "First", "--session", "first"))
    git("add", "-A")
    git("commit", "-q", "-m", "First")
    add("parked")
    git("switch", "-q", "other")
    for session in ("active", "stale", "gone", "broken"):
        add(session)
    age(local, "stale", 2 * DAY_S)
    aborted = succeeded(ctx("stage", "abort", "--session", "gone", "--format=json")).json["aborted"]
    (local / "refs" / "work" / "broken").write_text("nonsense")
    assert states(ctx) == {
        "active": "active",
        "stale": "stale",
        "parked": "parked",
        aborted: "aborted",
        "broken": "damaged",
    }
    text = succeeded(ctx("stage")).out
    assert "`ctx stage compact --session stale`" in text
    assert "parked is parked: check out its branch to continue." in text
    assert f"`ctx stage recover {aborted}`" in text
    assert "`ctx stage recover broken`" in text
    refused = ctx("stage", "compact", "--session", "parked")
    assert refused.code == 1
    assert "E008" in refused.err
    shown = succeeded(ctx("status", "--format=json")).json["staged"]
    assert {each["session"]: each["state"] for each in shown} == {
        "active": "active",
        "stale": "stale",
        "parked": "parked",
    }
    assert "stale (1 record, stale)" in succeeded(ctx("status")).out


# Sessions that nobody goes on with


def test_a_stale_session_is_named_to_people_only(project: Path, ctx: Ctx, local: Path) -> None:
    succeeded(ctx("add", "--type=fact", "One", "--session", "left"))
    age(local, "left", 2 * DAY_S)
    assert "waiting" not in ctx("list").err
    terminal, behind = pty.openpty()
    for words in (["list"], ["list", "--format=json"]):
        program = [sys.executable, "-m", "ctx", *words]
        assert subprocess.run(program, stderr=behind, stdout=-3, check=False).returncode == 0
    os.close(behind)
    with open(terminal, "rb", buffering=0) as reader:
        told = reader.read(1000).decode()
    assert told == "Staged, not committed: left (2 d). See `ctx stage`.\r\n"
    succeeded(ctx("add", "--type=fact", "Two", "--session", "left"))
    assert states(ctx) == {"left": "active"}


def test_an_old_session_is_compacted_by_the_next_that_writes(
    project: Path, ctx: Ctx, local: Path
) -> None:
    succeeded(ctx("add", "--type=fact", "One", "--session", "left"))
    succeeded(ctx("add", "--type=fact", "Two"))
    age(local, "left", 8 * DAY_S)
    age(local, "cli", 8 * DAY_S)
    succeeded(ctx("list"))
    assert states(ctx) == {"cli": "stale", "left": "stale"}
    told = ctx("add", "--type=fact", "Three")
    assert told.code == 0
    assert "Compacted session left (nothing was added for 8 d)" in told.err
    assert states(ctx) == {"cli": "active"}
    assert messages(ctx) == ["Keep 1 node", "Keep 1 node"]
    assert facts(ctx) == ["One", "Three", "Two"]


def test_the_session_of_an_agent_that_runs_is_not_old(
    project: Path, ctx: Ctx, local: Path, surroundings: Path
) -> None:
    succeeded(ctx("add", "--type=fact", "One", "--session", "agent"))
    age(local, "agent", 8 * DAY_S)
    live = surroundings / ".ctx" / "live"
    live.mkdir(parents=True)
    (live / "agent").write_text(f"{os.getpid()}\n{project}\n")
    succeeded(ctx("add", "--type=fact", "Two"))
    assert states(ctx) == {"agent": "active", "cli": "active"}


def test_an_old_session_that_is_parked_stays(project: Path, ctx: Ctx, local: Path) -> None:
    git("branch", "other")
    succeeded(ctx("commit", "-m", "On main"))
    succeeded(ctx("add", "--type=fact", "Zero"))
    succeeded(ctx("commit", "-m", "Zero"))
    git("add", "-A")
    git("commit", "-q", "-m", "Main")
    succeeded(ctx("add", "--type=fact", "One", "--session", "left"))
    age(local, "left", 8 * DAY_S)
    git("switch", "-q", "other")
    told = ctx("add", "--type=fact", "Two")
    assert "left" not in told.err
    assert states(ctx) == {"cli": "active", "left": "parked"}
    assert facts(ctx) == ["Two"]
    git("switch", "-q", "main")
    # What began before the branches parted belongs to both.
    assert facts(ctx) == ["One", "Two", "Zero"]


def test_an_old_session_can_still_be_aborted(project: Path, ctx: Ctx, local: Path) -> None:
    succeeded(ctx("add", "--type=fact", "One", "--session", "left"))
    age(local, "left", 8 * DAY_S)
    succeeded(ctx("stage", "abort", "--session", "left"))
    assert facts(ctx) == []


def test_a_failed_compaction_stops_nothing(project: Path, ctx: Ctx, local: Path) -> None:
    succeeded(ctx("add", "--type=fact", "One", "--session", "left"))
    (local / "refs" / "work" / "left").write_text("0" * 64 + "\n")
    age(local, "left", 8 * DAY_S)
    told = ctx("add", "--type=fact", "Two")
    assert told.code == 0
    assert "could not be compacted" in told.err
    assert facts(ctx) == ["Two"]


# When a session is compacted without being asked


def test_by_its_size(project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "_MOST_TOKENS", 100)
    assert "Compacted" not in ctx("add", "--type=fact", "One").err
    told = ctx("add", "--type=fact", "word " * 200)
    assert "Compacted session cli (more than 100 tokens)" in told.err
    assert states(ctx) == {}
    assert "Compacted" not in ctx("add", "--type=fact", "Two").err


def test_by_how_long_it_lasts(project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    for session in ("cli", "agent"):
        succeeded(ctx("add", "--type=fact", "One", "--session", session))
    later = clock.wall_ms() + 5 * 3_600_000
    monkeypatch.setattr(clock, "wall_ms", lambda: later)
    assert "Compacted" not in ctx("add", "--type=fact", "Two").err
    told = ctx("add", "--type=fact", "Two", "--session", "agent")
    assert "Compacted session agent (older than 4 h)" in told.err
    assert states(ctx) == {"cli": "active"}


def test_by_the_end_of_a_task(project: Path, ctx: Ctx) -> None:
    succeeded(ctx("task", "start", "One"))
    succeeded(ctx("add", "--type=decision", "So be it"))
    ended = succeeded(ctx("task", "end", "--format=json")).json
    assert ended["compacted"]["why"] == "the task has ended"
    assert states(ctx) == {}
    assert messages(ctx) == ["Decide: So be it"]


def test_by_the_start_of_another_task(project: Path, ctx: Ctx) -> None:
    succeeded(ctx("add", "--type=fact", "Before"))
    assert "Compacted" not in ctx("task", "start", "One").err
    assert "Compacted" not in ctx("task", "start", "One").err
    told = ctx("task", "start", "Two")
    assert "Compacted session cli (another task begins)" in told.err
    assert len(messages(ctx)) == 1
    assert states(ctx) == {"cli": "active"}


def test_a_commit_leaves_the_documents_of_other_sessions_alone(ctx: Ctx, project: Path) -> None:
    assert ctx("add", "task", "A draft", "--session=a").code == 0
    assert ctx("add", "--type=fact", "Unrelated", "--session=b").code == 0
    made = ctx("commit", "-m", "B only", "--session=b", "--format=json").json
    assert not [path for path in made["documents"] if path.startswith("tasks/")]
    made = ctx("commit", "-m", "A too", "--session=a", "--format=json").json
    assert [path for path in made["documents"] if path.startswith("tasks/")]
