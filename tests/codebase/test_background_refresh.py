"""The index is refreshed in the background by a separate process."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ctx import locks
from ctx.code import lookup
from ctx.codebase import background_refresh, indexing
from ctx.codebase.indexing import Codebase
from ctx.layout import UserStore
from ctx.workspace import Environment
from tests.conftest import git

SOURCE = (
    "def charge(amount):\n    return confirm(amount)\n\n\ndef confirm(amount):\n    return amount\n"
)


@pytest.fixture
def codebase(repo: Path, surroundings: Path) -> Codebase:
    (repo / "pay.py").write_text(SOURCE)
    git("add", "-A")
    git("commit", "-qm", "Charge cards")
    store = UserStore(str(surroundings / ".ctx"))
    return indexing.codebase_at(Environment(str(repo), store, {}, (), "cli"))  # type: ignore[arg-type]


def exit_code(process: int) -> int:
    """Wait for a child process and return its exit code."""
    try:
        _, status = os.waitpid(process, 0)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        raise
    return os.waitstatus_to_exitcode(status)


def test_the_index_is_built_by_a_separate_process(codebase: Codebase) -> None:
    process = background_refresh.start(codebase)
    assert process is not None
    # Neither the terminal nor the end of whoever asked concerns it.
    assert os.getsid(process) == process != os.getsid(0)
    # There is one of them.
    assert background_refresh.start(codebase) is None
    assert exit_code(process) == 0
    with indexing.open_unrefreshed(codebase) as opened:
        [charge] = opened.code.named("charge")
        assert [edge.label for edge in opened.code.edges_from([charge.id])] == ["CALLS"]
        commits = opened.code.connection.execute("SELECT subject FROM commits").fetchall()
        assert commits == [("Charge cards",)]
    assert not locks.is_held(codebase.place.lock)


def test_a_second_refresh_is_not_started(codebase: Codebase) -> None:
    with locks.hold(codebase.place.lock, "a test", 1):
        assert background_refresh.start(codebase) is None
        # Also where both began at once: the later one goes away without a word.
        start = "import sys; from ctx.codebase.background_refresh import run; run(sys.argv[1])"
        words = [sys.executable, "-c", start, background_refresh._encode(codebase)]
        done = subprocess.run(words, capture_output=True, timeout=300, check=True)
        assert (done.stdout, done.stderr) == (b"", b"")
    assert lookup.open_index(codebase.place.database, codebase.place.root) is None


def test_no_refresh_is_started_if_the_index_cannot_be_written(
    codebase: Codebase, repo: Path
) -> None:
    beneath_a_file = codebase.place._replace(database=str(repo / "pay.py" / "index" / "code.db"))
    assert background_refresh.start(codebase._replace(place=beneath_a_file)) is None


def test_the_arguments_of_the_process_survive_encoding(codebase: Codebase) -> None:
    strange = codebase._replace(
        place=codebase.place._replace(root="/a\udcff b\n'"), ignore_globs=("*.x", "ü"), folder=""
    )
    assert background_refresh._decode(background_refresh._encode(strange)) == strange
