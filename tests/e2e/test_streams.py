"""Every command with a full or closed stdout, and on a disk that cannot be written."""

import os
from pathlib import Path

import pytest

from ctx.cli.options import READ_ONLY
from tests import effort
from tests.conftest import Ctx, git
from tests.e2e import command_examples
from tests.e2e.command_examples import OTHER_WRITES, READS, STARTS, STORE_WRITES, leaf, lines
from tests.e2e.forked_commands import Done, Forker
from tests.faults import READ_ONLY as NOT_WRITABLE
from tests.faults import Disk

NO_COMMAND = ["--version", "help list", "frobnicate", "__complete zsh ctx li"]
NEED_A_LOCK = ("code history", "sessions rebuild")
EXAMPLES = lines(READS, OTHER_WRITES, STORE_WRITES, STARTS)


def test_every_command_has_an_example() -> None:
    missing = command_examples.leaves() - set(map(leaf, EXAMPLES))
    assert not missing, f"Add lines to {command_examples.__file__} for {missing}."
    assert set(READ_ONLY) <= set(map(leaf, lines(READS)))


@pytest.fixture
def commands(repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The examples in a project with two nodes and a task."""
    (repo / "main.py").write_text("def main():\n    pass\n")
    git("add", "main.py")
    git("commit", "-qm", "Base")
    assert ctx("init").code == 0
    assert ctx("task", "start", "The cart").code == 0
    monkeypatch.setenv("EDITOR", "true")
    a, b = (ctx("add", "--type=fact", f"{name} one.", "--tag=a:b").out.split()[1] for name in "AB")
    return {line: command_examples.filled(line, a, b) for line in [*NO_COMMAND, *EXAMPLES]}


def check(ran: Done, name: str) -> None:
    assert ran.code in (0, 1, 2), f"{name}: {ran.code} {ran.err}"
    assert "Traceback" not in ran.err, f"{name}: {ran.err}"
    assert "Exception" not in ran.err, f"{name}: {ran.err}"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no such file here")
def test_output_that_cannot_be_written_is_an_error(
    forked: Forker, commands: dict[str, list[str]], repo: Path
) -> None:
    failed = 0
    tried = effort.share(list(commands.items()), 8)
    for name, words in tried:
        ran = forked.run(words, repo, streams=("", "/dev/full", ""))
        check(ran, name)
        if name.startswith("hook ") and name != "hook apply":
            assert ran.code == 0, f"{name}: {ran.err}"
        elif "Cannot print the answer: No space left on device." in ran.err:
            assert (ran.code, "E014" in ran.err) == (1, True), f"{name}: {ran.err}"
            failed += 1
        else:
            assert not forked.run(words, repo, by="operation").out, f"{name}: {ran.err}"
    assert failed > len(tried) // 2


@pytest.mark.parametrize(
    "streams",
    [("", "pipe", ""), ("closed", "closed", "")],
    ids=["closed pipe", "closed streams"],
)
def test_a_closed_pipe_ends_a_command_quietly(
    forked: Forker,
    commands: dict[str, list[str]],
    repo: Path,
    streams: tuple[str, str, str],
) -> None:
    done = 0
    tried = effort.share(list(commands.items()), 8, 1 + streams.count("closed"))
    for name, words in tried:
        ran = forked.run(words, repo, streams=streams)
        check(ran, name)
        done += ran.code == 0
    assert done > len(tried) // 2


class Frozen(Disk):
    """A file system that is mounted read-only."""

    def _step(self, name: str, path: object) -> None:
        if name != "run" and path != os.devnull:
            raise OSError(NOT_WRITABLE, os.strerror(NOT_WRITABLE), str(path))


def test_reading_works_on_a_read_only_disk(ctx: Ctx, commands: dict[str, list[str]]) -> None:
    assert ctx("commit", "-m", "One").code == 0
    for line in lines(READS):
        with Frozen().installed():
            ran = ctx(*commands[line])
        assert ran.code in (0, 1, 2), (line, ran.err)
        assert "E000" not in ran.err, (line, ran.err)
        assert "E014" not in ran.err or leaf(line) in NEED_A_LOCK, (line, ran.err)
