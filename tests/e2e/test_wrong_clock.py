"""With any wall clock, acknowledged changes are kept, and later changes win."""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ctx import clock
from ctx.hook_files import spool
from tests import effort
from tests.agents.claude_code.hook_processes import sample
from tests.conftest import Ctx, git
from tests.e2e.forked_commands import Done, Forker

SESSION = "5dd65eaa-e3b0-4b25-afae-79ee4238d2da"


def year_ms(year: int, month: int = 1, day: int = 1) -> int:
    """Milliseconds since 1970, also for years that `datetime` does not support."""
    cycles, within = divmod(year - 2000, 400)
    moment = datetime(2000 + within, month, day, 10, 30, tzinfo=UTC)
    return int(moment.timestamp() * 1000) + cycles * 146_097 * 86_400_000


MOMENTS = {
    "1901": year_ms(1901),
    "1969": -1,
    "1970": 0,
    "2038": year_ms(2038, 1, 20),
    "2106": year_ms(2106, 2, 8),
    "2262": year_ms(2262, 4, 12),
    "2311": year_ms(2311),
    "9999": year_ms(9999, 12, 31),
    "10889": year_ms(10889, 8, 3),
    "20000": year_ms(20000),
}
TRIED = {n: MOMENTS[n] for n in MOMENTS if effort.IS_THOROUGH or n in ("1901", "9999", "20000")}
WRONG = pytest.mark.parametrize("wall_ms", TRIED.values(), ids=TRIED)


class Clocked:
    """A folder and a home in which commands run at any time."""

    def __init__(self, folder: Path, forked: Forker, home: str = "") -> None:
        self.folder = folder
        self.forked = forked
        self._home = home
        self._ran = 0

    def run(self, wall_ms: int | None, *commands: str | list[str], stdin: str = "") -> list[Done]:
        """Run commands one after the other, each at a later time; None is the real clock."""
        first = self._ran
        self._ran += len(commands)
        return [
            self.forked.run(
                command.split() if isinstance(command, str) else command,
                self.folder,
                stdin=stdin,
                wall_ms=None if wall_ms is None else wall_ms + number * 10_000,
                home=self._home,
            )
            for number, command in enumerate(commands, first)
        ]

    def hook(self, wall_ms: int | None, word: str, name: str, session: str = SESSION) -> list[Done]:
        """Run a hook with the sample of an event."""
        told = {"session_id": session, "cwd": str(self.folder)}
        return self.run(wall_ms, f"hook {word}", stdin=sample(name, **told).decode())


@pytest.fixture
def clocked(repo: Path, forked: Forker) -> Clocked:
    (repo / "client.py").write_text("def connect(timeout):\n    return timeout\n")
    git("add", "-A")
    git("commit", "-qm", "Begin")
    return Clocked(repo, forked)


def require_no_failure(answers: list[Done], but: tuple[str, ...] = ()) -> None:
    for ran in answers:
        assert "E000" not in ran.err, ran
        assert "Traceback" not in ran.err, ran
        assert ran.code == 0 or ran.words[0] in but, ran


def contents(clocked: Clocked) -> set[str]:
    (listed,) = clocked.run(None, "list --limit=0 --format=json")
    return {node["content"] for node in listed.json["nodes"]}


COMMANDS = """
init
trust
add --type=fact --tag=tier:working First
add --type=fact --user Mine
add note Noted
add decision Decided
add task Planned
task start Another
task
add command --name make --body boom
stage status
commit -m first
add --type=fact Second
task end
commit -m second
stage start --session work work
add --type=fact Staged
stage abort
stage recover work
add --type=fact Undone
undo
undo --list
review
list
list --since=1w
search first
recall first
query connect
query created:<1w
compose
context
log
log --day DAY
why
why --list
status
sessions list
learnings list
gc --dry-run
gc
rebuild
debug verify
cost
pause
resume
store backup
store check
code outline client.py
worker status
doctor
"""


@pytest.mark.parametrize("wall_ms", [MOMENTS["1901"], MOMENTS["20000"]], ids=["1901", "20000"])
def test_every_command_works_with_a_wrong_clock(wall_ms: int, clocked: Clocked) -> None:
    said = COMMANDS.replace("DAY", clock.iso(0)[:10]).strip().splitlines()
    require_no_failure(clocked.run(wall_ms, *said), ("doctor", "why", "log"))
    wanted = {"First", "Mine", "Noted", "Decided", "Second", "Planned", "Staged"}
    listing = "list --limit=0 --format=json"
    after = clocked.run(None, listing, "commit -m third", "rebuild", listing)
    require_no_failure(after)
    for listed in (after[0], after[-1]):
        found = {node["content"]: node["id"] for node in listed.json["nodes"]}
        assert wanted <= found.keys()
        assert "Undone" not in found
    node = found["First"]
    require_no_failure(
        clocked.run(wall_ms, f"show {node}", f"show {node} --history", f"trace {node}")
    )


@WRONG
def test_sessions_work_with_a_wrong_clock(wall_ms: int, clocked: Clocked) -> None:
    stopped = "<ctx:remember type='fact'>Of an agent</ctx:remember>"
    ran = [
        *clocked.run(wall_ms, "status"),
        *clocked.hook(wall_ms, "session-start", "SessionStart.startup"),
        *clocked.hook(wall_ms, "prompt-submit", "UserPromptSubmit"),
        *clocked.hook(wall_ms, "post-tool-use", "PostToolUse.Bash"),
        *clocked.run(wall_ms, ["hook", "stop", "--response", stopped]),
        *clocked.hook(wall_ms, "stop", "Stop"),
        *clocked.run(wall_ms, "hook apply", "sessions list", f"sessions show {SESSION}"),
        *clocked.hook(wall_ms, "session-end", "SessionEnd.other"),
        *clocked.run(wall_ms, "hook apply"),
    ]
    require_no_failure(ran)
    home = Path(os.environ["CTX_HOME"])
    assert not (home / "hook.log").exists(), (home / "hook.log").read_text()
    (listed, shown) = clocked.run(
        None, "sessions list --all --format=json", f"sessions show {SESSION}"
    )
    assert SESSION in {each["id"] for each in listed.json["sessions"]}
    assert shown.code == 0


def test_a_wrong_clock_does_not_hide_nodes_and_the_last_change_wins(clocked: Clocked) -> None:
    """Each change reads the one before, so it gets a later stamp with any clock."""
    (_, added) = clocked.run(None, "init", "add --type=fact 0 --no-tier --json")
    node = added.json["node"]["id"]
    for number, wall_ms in enumerate([*TRIED.values(), None, *reversed(TRIED.values())]):
        change = (f"update {node} --content {number}", "commit -m x")
        require_no_failure(clocked.run(wall_ms, *change))
        shutil.rmtree(clocked.folder / ".git" / "ctx" / "main" / "index")
        (listed,) = clocked.run(wall_ms, "list --format=json")
        assert [each["content"] for each in listed.json["nodes"]] == [str(number)]
        assert contents(clocked) == {str(number)}
    (shown,) = clocked.run(None, f"show {node} --history --format=json")
    assert len(shown.json["history"]) == 2 * len(TRIED) + 1


def test_a_clock_that_leaps_ahead_deletes_nothing(clocked: Clocked) -> None:
    """Also if it stays wrong: objects that were new before the leap are new after it."""
    require_no_failure(
        clocked.run(
            None,
            "init",
            "add --type=fact Kept",
            "commit -m first",
            "add --type=fact Aborted --session=old",
            "stage abort --session=old",
        )
    )
    for name in ("2038", "2311", "9999"):
        ran = clocked.run(MOMENTS[name], f"add --type=fact {name}", "gc --format=json", "gc")
        require_no_failure(ran)
        assert [each for each in ran[1].json["deleted"] if each["id"]] == []
        assert ran[1].json["doubted"] > 0
        assert "If the clock is right" in ran[2].out
    require_no_failure(clocked.run(None, "stage recover old"))
    assert {"Kept", "Aborted", "2038", "2311", "9999"} <= contents(clocked)


def test_a_clock_that_leaps_ahead_removes_no_steps(clocked: Clocked) -> None:
    """Every round of the worker removes old steps and receipts."""

    def work(wall_ms: int | None, session: str) -> None:
        ran = [
            *clocked.hook(wall_ms, "session-start", "SessionStart.startup", session),
            *clocked.hook(wall_ms, "post-tool-use", "PostToolUse.Bash", session),
            *clocked.hook(wall_ms, "session-end", "SessionEnd.other", session),
            *clocked.run(wall_ms, "query connect", "hook apply", "hook apply"),
        ]
        require_no_failure(ran)

    def kept() -> tuple[int, set[str]]:
        replay, receipts = clocked.run(
            None, f"sessions replay {SESSION} --format=json", "why --list --limit=0 --format=json"
        )
        return len(replay.json["steps"]), {each["id"] for each in receipts.json["receipts"]}

    require_no_failure(clocked.run(None, "status"))
    work(None, SESSION)
    steps, receipts = kept()
    assert steps
    assert receipts
    for number, name in enumerate(("2038", "2311", "1901")):
        work(MOMENTS[name], f"later-{number}")
    assert kept()[0] == steps
    assert kept()[1] >= receipts


def test_commands_work_with_files_from_any_year(clocked: Clocked) -> None:
    """Files can have any date that the file system supports."""
    require_no_failure(clocked.run(None, "init", "add note connect"))
    paths = [path for path in clocked.folder.rglob("*") if ".git" not in path.parts]
    for year in effort.share((1901, 1960, 2038, 2400, 9999), 2):
        for path in paths:
            if path.is_file():
                os.utime(path, (year_ms(year) // 1000,) * 2)
        require_no_failure(clocked.run(None, "query connect", "recall connect", "rebuild", "gc"))


def clock_check(clocked: Clocked, wall_ms: int | None) -> dict[str, str]:
    (ran,) = clocked.run(wall_ms, "doctor --format=json")
    found: dict[str, str]
    (found,) = [each for each in ran.json["checks"] if each["name"] == "clock"]
    return found


def test_doctor_reports_a_wrong_clock_and_records_from_the_future(clocked: Clocked) -> None:
    require_no_failure(clocked.run(None, "add --type=fact Right"))
    for wall_ms in MOMENTS.values():
        is_possible = clock.EARLIEST_MS <= wall_ms < clock.LATEST_MS
        found = clock_check(clocked, wall_ms)
        assert found["state"] == ("ok" if is_possible else "problem")
    require_no_failure(clocked.run(MOMENTS["2038"], "add --type=fact Ahead"))
    found = clock_check(clocked, None)
    assert (found["state"], "2038-01-20" in found["seen"]) == ("warning", True)


def test_a_pause_and_a_backup_from_the_future(clocked: Clocked, ctx: Ctx) -> None:
    home = Path(os.environ["CTX_HOME"])
    ahead = clocked.run(MOMENTS["2038"], "pause", "add --type=fact x", "hook apply")
    require_no_failure(ahead)
    clocked.hook(None, "post-tool-use", "PostToolUse.Bash")
    assert spool.pending_names(str(home)) == []
    assert ctx("resume").code == 0
    clocked.hook(None, "post-tool-use", "PostToolUse.Bash")
    assert len(spool.pending_names(str(home))) == 1
    # The backup from the future does not stop later ones.
    backups = home / "backups"
    before = set(os.listdir(backups)) if backups.exists() else set()
    require_no_failure(clocked.run(None, "hook apply", "hook apply"))
    assert len(set(os.listdir(backups)) - before) == 1
