"""Staging that is stopped at every file-system operation keeps everything that was reported."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from ctx import clock
from ctx.cli.main import main
from ctx.layout import project_at
from ctx.objects.repository import Repository
from ctx.objects.verify import verify
from tests import effort
from tests.conftest import git
from tests.e2e import merge_trials
from tests.e2e.conftest import Saved
from tests.faults import NO_SPACE, Disk, Stopped
from tests.llm import model_server
from tests.llm.model_server import Says

# `{One.}` stands for the node that begins so.
SCENARIO = [
    ["stage", "start", "Ship the shop"],
    ["add", "--type", "fact", "One.", "--tag", "area:net"],
    ["add", "--type", "fact", "Two."],
    ["add", "note", "Seen on Monday."],
    ["add", "task", "Mend the cart", "--body", "It forgets."],
    ["add", "decision", "Use one queue", "--body", "It is simpler."],
    ["update", "{One.}", "--content", "One, and more."],
    ["tag", "{Two.}", "tier:pinned"],
    ["relate", "{Mend}", "DEPENDS_ON", "{Two.}"],
    ["relate", "{Use one}", "MENTIONS", "main.py"],
    ["add", "--type", "pattern", "Three."],
    ["link", "{Three.}", "{Two.}", "--type", "SUPERSEDES"],
    ["update", "{Mend}", "--content", "Mend the cart\n\nIt forgets everything."],
    ["tag", "{Mend}", "area:cart"],
    ["add", "--type", "observation", "Four."],
    ["delete", "{One}", "--yes"],
    ["restore", "{One}"],
    ["untag", "{One}", "area:net"],
    ["add", "note", "Seen on Tuesday."],
    ["add", "decision", "Keep the cart", "--body", "In the session."],
    ["llm", "--pack", "why.json"],
    ["stage", "flush"],
    ["stage", "compact", "-m", "Shipped"],
    ["task", "start", "{Mend}"],
    ["add", "--type", "fact", "Five."],
    ["commit", "-m", "Five"],
    ["llm", "--pack", "how.json", "-m", "Asked"],
]
GONE = re.compile(r"\{(.*)\}")


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock, so that a step performs the same operations in every run."""
    moment = clock.wall_ms() + 60_000
    monkeypatch.setattr(clock, "wall_ms", lambda: moment)


def visible_lines(folder: Path) -> set[str]:
    """Everything that a reader sees, as lines without ids."""
    tables = merge_trials.graph(folder)
    names = {row[0]: row[2].partition("\n")[0] for row in tables["nodes"]}
    found = {f"{row[1]} {row[2]}" for row in tables["nodes"]}
    found |= {f"{names[row[0]]} # {row[1]}" for row in tables["tags"]}
    found |= {f"{names[row[1]]} {row[3]} {names[row[2]]}" for row in tables["edges"]}
    return found


class Stage:
    """The scenario step by step; the current step can be repeated."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._home = Path(os.environ["CTX_HOME"])
        self.known: dict[str, str] = {}

    def words(self, step: list[str]) -> list[str]:
        """A step with the ids of its nodes filled in."""
        return [GONE.sub(lambda found: self._named(found[1]), word) for word in step]

    def _named(self, beginning: str) -> str:
        for row in merge_trials.graph(self.folder)["nodes"]:
            self.known[row[2]] = row[0]
        [found] = {each for name, each in self.known.items() if name.startswith(beginning)}
        return found

    def save(self) -> None:
        self._saved = Saved(self.folder, self._home)

    def reset(self) -> None:
        self._saved.restore()


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with model_server.serve() as server:
        folder = tmp_path / "app"
        folder.mkdir()
        server.otherwise = Says("It is in main.py.\n\n", "Decision: keep it.")
        monkeypatch.setenv("CTX_LLM_BACKEND", "openai")
        monkeypatch.setenv("CTX_LLM_SERVER_URL", server.url)
        monkeypatch.chdir(folder)
        yield Stage(folder)


def begin(stage: Stage) -> None:
    git("init", "-q", "-b", "main")
    (stage.folder / "main.py").write_text("print('shop')\n")
    for task in ("why", "how"):
        (stage.folder / f"{task}.json").write_text(json.dumps({"task": task, "retrieved": []}))
    assert main(["init"]) == 0
    git("add", "-A")
    git("commit", "-qm", "Base")


def check(folder: Path, before: set[str], after: set[str], where: str) -> None:
    """Check that lines which exist before and after a step exist in between."""
    damages = verify(Repository(project_at(str(folder)))).damages
    assert not damages, f"{where}: {damages}"
    found = visible_lines(folder)
    lost = (before & after) - found
    assert not lost, f"{where}: lost {sorted(lost)}"
    assert before <= found or after <= found, f"{where}: {sorted((before | after) - found)}"


class Point(NamedTuple):
    """An operation of a command, and what a reader sees before and after the command."""

    words: list[str]
    number: int
    before: set[str]
    after: set[str]
    where: str

    def check_next(self, folder: Path) -> None:
        """Check that the next command works. Some are refused a second time."""
        code = main(self.words)
        assert code == 0 or (code < 3 and self.words[0] in ("delete", "restore", "stage")), self
        assert main(["-q", "status"]) == 0, self.where
        check(folder, self.after, self.after, f"{self.where}, then run again")


def points(stage: Stage, every: int) -> Iterator[Point]:
    """Every so-manieth operation of each step, which is about to happen."""
    begin(stage)
    for place, step in enumerate(SCENARIO):
        words = stage.words(step)
        before = visible_lines(stage.folder)
        stage.save()
        whole = Disk()
        with whole.installed():
            assert main(words) == 0, words
        after = visible_lines(stage.folder)
        for number in range(place % every, whole.operations, every):
            stage.reset()
            where = f"{' '.join(words)} stopped at {number}: {whole.log[number]}"
            yield Point(words, number, before, after, where)
        stage.reset()
        assert main(words) == 0, words


def stop_everywhere(stage: Stage, *, power_loss: bool, every: int = 1) -> int:
    return sum(stop(stage, point, power_loss=power_loss) for point in points(stage, every))


def stop(stage: Stage, point: Point, *, power_loss: bool) -> int:
    disk = Disk(point.number, power_loss=power_loss)
    # Names are random, and now and then a folder for one is there already.
    with disk.installed(), suppress(Stopped):
        main(point.words)
    if power_loss:
        disk.lose_power()
    check(stage.folder, point.before, point.after, point.where)
    point.check_next(stage.folder)
    return 1


def refuse(stage: Stage, point: Point, capsys: pytest.CaptureFixture[str]) -> None:
    """A full disk: it is reported, and nothing is left half done."""
    capsys.readouterr()
    with Disk(point.number, refuse_with=NO_SPACE).installed():
        code = main(point.words)
    said = capsys.readouterr().err
    assert code == 0 or "error E0" in said, f"{point.where}: {code} {said}"
    check(stage.folder, point.after if code == 0 else point.before, point.after, point.where)
    point.check_next(stage.folder)


def test_staging_that_is_stopped_or_refused_loses_nothing(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is killed, loses its power, or finds a full disk, in turn."""
    tried = 0
    for tried, point in enumerate(points(stage, effort.every(19))):
        if tried % 3 < 2:
            stop(stage, point, power_loss=bool(tried % 3))
            assert "Traceback" not in capsys.readouterr().err, point.where
        else:
            refuse(stage, point, capsys)
    assert tried > 40
