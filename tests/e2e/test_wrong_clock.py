"""With any wall clock, acknowledged changes are kept, and later changes win."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx import clock
from tests import effort
from tests.agents.claude_code.hook_processes import sample
from tests.conftest import Ctx, git
from tests.e2e.wrong_clock import Clock, Clocked, Ran, clock_process, year_ms

MOMENTS = {
    "1901": year_ms(1901),
    "1960": year_ms(1960),
    "1969": -1,
    "1970": 0,
    "2038": year_ms(2038, 1, 20),
    "2106": year_ms(2106, 2, 8),
    "2262": year_ms(2262, 4, 12),
    "2311": year_ms(2311),
    "9999": year_ms(9999, 12, 31),
    "10000": year_ms(10000),
    "10889": year_ms(10889, 8, 3),
    "20000": year_ms(20000),
}
FEW = ("1901", "9999", "20000")
TRIED = MOMENTS if effort.IS_THOROUGH else {name: MOMENTS[name] for name in FEW}
WRONG = pytest.mark.parametrize("wall_ms", TRIED.values(), ids=TRIED)
SESSION = "5dd65eaa-e3b0-4b25-afae-79ee4238d2da"


@pytest.fixture(scope="module")
def any_clock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clock]:
    with clock_process(tmp_path_factory.mktemp("site")) as process:
        yield process


@pytest.fixture
def clocked(repo: Path, any_clock: Clock) -> Clocked:
    (repo / "client.py").write_text("def connect(timeout):\n    return timeout\n")
    git("add", "-A")
    git("commit", "-qm", "Begin")
    return Clocked(repo, any_clock)


def require_no_failure(answers: list[Ran], but: tuple[str, ...] = ()) -> None:
    for ran in answers:
        assert "E000" not in ran.err, ran
        assert "Traceback" not in ran.err, ran
        assert ran.code == 0 or ran.words[0] in but, ran


def contents(clocked: Clocked) -> set[str]:
    (listed,) = clocked.run(None, ["list", "--limit=0", "--format=json"])
    return {node["content"] for node in listed.json["nodes"]}


@WRONG
def test_every_command_works_with_a_wrong_clock(wall_ms: int, clocked: Clocked) -> None:
    said = [
        ["init"],
        ["trust"],
        ["add", "--type=fact", "--tag=tier:working", "A fact"],
        ["add", "--type=fact", "--user", "My own fact"],
        ["add", "note", "A note"],
        ["add", "decision", "A decision"],
        ["add", "task", "A task"],
        ["task", "start", "Another task"],
        ["task"],
        ["add", "command", "--name", "make", "--body", "boom"],
        ["stage", "status"],
        ["commit", "-m", "first"],
        ["add", "--type=fact", "A second fact"],
        ["task", "end"],
        ["commit", "-m", "second"],
        ["stage", "start", "--session", "work", "work"],
        ["add", "--type=fact", "A staged fact"],
        ["stage", "abort"],
        ["stage", "recover", "work"],
        ["add", "--type=fact", "A fact to undo"],
        ["undo"],
        ["undo", "--list"],
        ["review"],
        ["list"],
        ["list", "--since=1w"],
        ["search", "fact"],
        ["recall", "fact"],
        ["query", "connect timeout"],
        ["query", "created:<1w OR created:>1w"],
        ["compose"],
        ["context"],
        ["log"],
        ["log", "--day", clock.iso(0)[:10]],
        ["why"],
        ["why", "--list"],
        ["status"],
        ["sessions", "list"],
        ["learnings", "list"],
        ["gc", "--dry-run"],
        ["gc"],
        ["rebuild"],
        ["debug", "verify"],
        ["cost"],
        ["pause"],
        ["resume"],
        ["store", "backup"],
        ["store", "check"],
        ["code", "outline", "client.py"],
        ["worker", "status"],
        ["doctor"],
    ]
    answers = clocked.run(wall_ms, *said)
    require_no_failure(answers, ("doctor", "why", "log"))
    wanted = {"A fact", "My own fact", "A note", "A decision", "A second fact", "A task"}
    listing = ["list", "--limit=0", "--format=json"]
    after = clocked.run(None, listing, ["commit", "-m", "third"], ["rebuild"], listing)
    require_no_failure(after)
    for listed in (after[0], after[-1]):
        found = {node["content"]: node["id"] for node in listed.json["nodes"]}
        assert {*wanted, "A staged fact"} <= found.keys()
        assert "A fact to undo" not in found
    node = found["A fact"]
    shown = clocked.run(wall_ms, ["show", node], ["show", node, "--history"], ["trace", node])
    require_no_failure(shown)


@WRONG
def test_sessions_work_with_a_wrong_clock(wall_ms: int, clocked: Clocked) -> None:
    def event(name: str, **changed: object) -> str:
        told = {"session_id": SESSION, "cwd": str(clocked.folder), **changed}
        return sample(name, **told).decode()

    hooks: list[tuple[list[str], str]] = [
        (["status"], ""),
        (["hook", "session-start"], event("SessionStart.startup")),
        (["hook", "prompt-submit"], event("UserPromptSubmit")),
        (["hook", "post-tool-use"], event("PostToolUse.Bash")),
        (["hook", "stop", "--response"], "<ctx:remember type='fact'>Of an agent</ctx:remember>"),
        (["hook", "stop"], event("Stop")),
        (["hook", "apply"], ""),
        (["sessions", "list"], ""),
        (["sessions", "show", SESSION], ""),
        (["worker", "status"], ""),
        (["hook", "session-end"], event("SessionEnd.other")),
        (["hook", "apply"], ""),
    ]
    require_no_failure(clocked.run_with_stdin(wall_ms, hooks))
    home = Path(os.environ["CTX_HOME"])
    assert not (home / "hook.log").exists(), (home / "hook.log").read_text()
    (listed, shown) = clocked.run(
        None, ["sessions", "list", "--all", "--format=json"], ["sessions", "show", SESSION]
    )
    assert SESSION in {each["id"] for each in listed.json["sessions"]}
    assert shown.code == 0


@WRONG
def test_a_record_survives_merge_export_and_import(
    wall_ms: int, clocked: Clocked, any_clock: Clock, tmp_path: Path
) -> None:
    add = ["add", "--type=fact", "Made at a wrong time", "--format=json"]
    _, added, *rest = clocked.run(wall_ms, ["init"], add, ["commit", "-m", "first"])
    require_no_failure([added, *rest])
    node = added.json["node"]["id"]
    git("add", "-A")
    git("commit", "-qm", "memory")
    git("clone", "-q", ".", str(tmp_path / "clone"))
    other = Clocked(tmp_path / "clone", any_clock, CTX_HOME=str(tmp_path / "elsewhere"))
    require_no_failure(other.run(None, ["trust", "-y"]))
    assert "Made at a wrong time" in contents(other)
    # A later change wins, also where the clock is right and says less.
    changed = other.run(
        None,
        ["update", node, "--content", "Made right"],
        ["commit", "-m", "right"],
    )
    require_no_failure(changed)
    assert contents(other) == {"Made right"}
    git("add", "-A", cwd=other.folder)
    git("commit", "-qm", "memory", cwd=other.folder)
    assert clocked.run(wall_ms, ["tag", node, "meanwhile"], ["commit", "-m", "tag"])[1].code == 0
    git("add", "-A")
    git("commit", "-qm", "tag")
    git("pull", "-q", "--no-edit", "--no-rebase", str(other.folder), "main")
    require_no_failure(clocked.run(None, ["review", "accept", "--all"]))
    assert contents(clocked) == {"Made right"}
    (shown,) = clocked.run(None, ["show", node, "--format=json"])
    assert "meanwhile" in shown.json["node"]["tags"]
    exported = tmp_path / "out.json"
    require_no_failure(clocked.run(wall_ms, ["export", "-o", str(exported)]))
    apart = Clocked(tmp_path, any_clock, CTX_HOME=str(tmp_path / "third"))
    require_no_failure(apart.run(None, ["import", str(exported)]))
    assert contents(apart) == {"Made right"}


def test_a_wrong_clock_does_not_hide_nodes(clocked: Clocked) -> None:
    require_no_failure(clocked.run(None, ["init"], ["add", "--type=fact", "Made right"]))
    require_no_failure(clocked.run(None, ["commit", "-m", "first"]))
    for wall_ms in TRIED.values():
        index = clocked.folder / ".git" / "ctx" / "main" / "index"
        shutil.rmtree(index)
        (listed,) = clocked.run(wall_ms, ["list", "--format=json"])
        assert [node["content"] for node in listed.json["nodes"]] == ["Made right"]


def test_the_last_change_wins_over_years(clocked: Clocked) -> None:
    """Each change reads the one before, so it gets a later stamp with any clock."""
    (_, added) = clocked.run(None, ["init"], ["add", "--type=fact", "0", "--no-tier", "--json"])
    node = added.json["node"]["id"]
    for number, wall_ms in enumerate([*TRIED.values(), None, *reversed(TRIED.values())]):
        require_no_failure(
            clocked.run(wall_ms, ["update", node, "--content", str(number)], ["commit", "-m", "x"])
        )
        assert contents(clocked) == {str(number)}
    (shown,) = clocked.run(None, ["show", node, "--history", "--format=json"])
    assert len(shown.json["history"]) == 2 * len(TRIED) + 1


def test_a_clock_that_leaps_ahead_deletes_nothing(clocked: Clocked) -> None:
    """Also if it stays wrong: objects that were new before the leap are new after it."""
    require_no_failure(
        clocked.run(
            None,
            ["init"],
            ["add", "--type=fact", "Kept"],
            ["commit", "-m", "first"],
            ["add", "--type=fact", "Aborted", "--session=old"],
            ["stage", "abort", "--session=old"],
        )
    )
    for name in ("2038", "2311", "9999"):
        ran = clocked.run(
            MOMENTS[name], ["add", "--type=fact", f"In {name}"], ["gc", "--format=json"], ["gc"]
        )
        require_no_failure(ran)
        assert [each for each in ran[1].json["deleted"] if each["id"]] == []
        assert ran[1].json["doubted"] > 0
        assert "If the clock is right" in ran[2].out
    require_no_failure(clocked.run(None, ["stage", "recover", "old"]))
    assert {"Kept", "Aborted", "In 2038", "In 2311", "In 9999"} <= contents(clocked)


def test_a_clock_that_leaps_ahead_removes_no_steps(clocked: Clocked) -> None:
    """Every round of the worker removes old steps and receipts."""

    def event(name: str, session: str) -> str:
        told = {"session_id": session, "cwd": str(clocked.folder)}
        return sample(name, **told).decode()

    def worked(session: str) -> list[tuple[list[str], str]]:
        return [
            (["hook", "session-start"], event("SessionStart.startup", session)),
            (["hook", "post-tool-use"], event("PostToolUse.Bash", session)),
            (["hook", "session-end"], event("SessionEnd.other", session)),
            (["query", "connect timeout"], ""),
            (["hook", "apply"], ""),
            (["hook", "apply"], ""),
        ]

    def kept() -> tuple[int, set[str]]:
        replay, receipts = clocked.run(
            None,
            ["sessions", "replay", SESSION, "--format=json"],
            ["why", "--list", "--limit=0", "--format=json"],
        )
        return len(replay.json["steps"]), {each["id"] for each in receipts.json["receipts"]}

    require_no_failure(clocked.run_with_stdin(None, [(["status"], ""), *worked(SESSION)]))
    steps, receipts = kept()
    assert steps
    assert receipts
    for number, name in enumerate(("2038", "2038", "2311", "1960")):
        require_no_failure(clocked.run_with_stdin(MOMENTS[name], worked(f"later-{number}")))
    assert kept()[0] == steps
    assert kept()[1] >= receipts


def test_commands_work_with_files_from_any_year(clocked: Clocked) -> None:
    """Files can have any date that the file system supports."""
    require_no_failure(clocked.run(None, ["init"], ["add", "note", "A note about connect"]))
    paths = [path for path in clocked.folder.rglob("*") if ".git" not in path.parts]
    for year in effort.share((1901, 1960, 2038, 2400, 9999), 2):
        for path in paths:
            if path.is_file():
                os.utime(path, (year_ms(year) // 1000,) * 2)
        commands = (["query", "connect timeout"], ["recall", "connect"], ["rebuild"], ["gc"])
        require_no_failure(clocked.run(None, *commands))


@WRONG
def test_doctor_reports_a_wrong_clock(wall_ms: int, clocked: Clocked) -> None:
    require_no_failure(clocked.run(None, ["add", "--type=fact", "Made right"]))
    (ran,) = clocked.run(wall_ms, ["doctor", "--format=json"])
    (check,) = [each for each in ran.json["checks"] if each["name"] == "clock"]
    is_possible = clock.EARLIEST_MS <= wall_ms < clock.LATEST_MS
    assert check["state"] == ("ok" if is_possible else "problem")


def test_doctor_reports_records_from_the_future(clocked: Clocked) -> None:
    require_no_failure(clocked.run(MOMENTS["2038"], ["add", "--type=fact", "Made ahead"]))
    (ran,) = clocked.run(None, ["doctor", "--format=json"])
    (check,) = [each for each in ran.json["checks"] if each["name"] == "clock"]
    assert check["state"] == "warning"
    assert "2038-01-20" in check["seen"]


def test_a_pause_from_the_future_holds(clocked: Clocked, ctx: Ctx) -> None:
    require_no_failure(clocked.run(MOMENTS["2038"], ["pause"]))
    told = {"session_id": SESSION, "cwd": str(clocked.folder)}
    event = json.dumps(json.loads(sample("PostToolUse.Bash", **told)))
    clocked.run_with_stdin(None, [(["hook", "post-tool-use"], event)])
    spool = Path(os.environ["CTX_HOME"]) / "spool"
    assert not spool.exists() or os.listdir(spool) == []
    assert ctx("resume").code == 0
    clocked.run_with_stdin(None, [(["hook", "post-tool-use"], event)])
    assert len(os.listdir(spool)) == 1


def test_a_backup_from_the_future_does_not_stop_backups(clocked: Clocked) -> None:
    require_no_failure(clocked.run(MOMENTS["2038"], ["add", "--type=fact", "x"], ["hook", "apply"]))
    folder = Path(os.environ["CTX_HOME"]) / "backups"
    ahead = set(os.listdir(folder)) if folder.exists() else set()
    require_no_failure(clocked.run(None, ["hook", "apply"], ["hook", "apply"]))
    assert len(set(os.listdir(folder)) - ahead) == 1
