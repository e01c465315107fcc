"""An untrusted store needs limited time and memory, whatever it contains."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests import effort
from tests.conftest import Ctx
from tests.e2e import store_bombs
from tests.e2e.store_bombs import BOMBS
from tests.e2e.terminals import on_a_terminal

# Far more than any of it takes, so that a busy machine changes nothing.
TIME_LIMIT_S = 240
MEMORY_LIMIT = 1536 * store_bombs.MB

COMMANDS = [
    *(["list"], ["debug", "verify"], ["trust"], ["log"], ["doctor"], ["init"]),
    *(["add", "--type=fact", "Mine"], ["commit", "-m", "Mine"]),
]


def limit_memory() -> None:
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ctx", *words],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=TIME_LIMIT_S,
        preexec_fn=limit_memory,
    )


@pytest.fixture
def untrusted(repo: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    assert ctx("trust", "--revoke").code == 0
    return repo


@pytest.mark.parametrize("number", range(len(BOMBS)), ids=lambda n: BOMBS[n][0].__name__)
def test_every_command_ends_in_limited_time_and_memory(untrusted: Path, number: int) -> None:
    for bomb in BOMBS[number]:
        bomb(untrusted)
    for words in effort.share(COMMANDS, 5, number):
        done = run(*words)
        assert done.returncode in (0, 1), (words, done.stderr)
        assert "Traceback" not in done.stderr, (words, done.stderr)
        assert "E000" not in done.stderr, (words, done.stderr)
        assert len(done.stdout) < store_bombs.MB, words
    shown = on_a_terminal(["list", "--untrusted"], untrusted, prepare=limit_memory)
    assert "Traceback" not in shown
    is_too_large = BOMBS[number][0] in store_bombs.TOO_LARGE
    assert ("error E033" in shown) == is_too_large, shown
    assert not is_too_large or "`ctx trust`" in shown


def test_a_large_store_can_be_trusted(untrusted: Path, ctx: Ctx) -> None:
    store_bombs.long_texts(untrusted)
    assert "error E033" in on_a_terminal(["list", "--untrusted"], untrusted)
    assert ctx("trust", "--yes").code == 0
    assert ctx("list").code == 0


def test_an_incomplete_count_is_shown_before_trusting(untrusted: Path, ctx: Ctx) -> None:
    store_bombs.large_messages(untrusted)
    asked = ctx("trust")
    assert "at least" in asked.out + asked.err
    assert ctx("trust", "--yes", "--format=json").json["contents"]["complete"] is False


def test_many_damaged_objects_are_counted(untrusted: Path, ctx: Ctx) -> None:
    store_bombs.damaged_heads(untrusted)
    ran = ctx("debug", "verify")
    assert ran.code == 1
    assert "4,000 damages" in ran.out
    assert "… and 3,900 more" in ran.out
    assert len(ran.out.splitlines()) < 110
    assert len(ctx("debug", "verify", "--format=json").json["damages"]) == 4_000


def test_many_stray_files_among_the_heads_are_handled(untrusted: Path, ctx: Ctx) -> None:
    store_bombs.bogus_heads(untrusted)
    ran = ctx("debug", "verify")
    assert ran.code == 0
    assert "20,000 files that are not needed" in ran.out


def test_recursive_trees_end_in_a_trusted_store(untrusted: Path, ctx: Ctx) -> None:
    store_bombs.shared_trees(untrusted)
    assert ctx("trust", "--yes").code == 0
    for words in (["list"], ["log"], ["debug", "verify"], ["diff"], ["debug", "index"]):
        done = run(*words)
        assert done.returncode in (0, 1), (words, done.stderr)
    assert "error E010" in run("debug", "index").stderr
