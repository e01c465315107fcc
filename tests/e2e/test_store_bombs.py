"""An untrusted store needs limited time and memory, whatever it contains."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ctx import clock
from ctx.ids import ObjectId
from ctx.layout import project_at
from ctx.objects import object_store, read_limits
from ctx.objects.object_store import Kind
from ctx.objects.repository import Repository
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
    is_counted = BOMBS[number][0] is store_bombs.empty_heads
    assert not is_too_large or ("git log" if is_counted else "`ctx trust`") in shown


def test_a_trusted_store_of_any_size_is_checked(
    repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ctx("init").code == 0
    store_bombs.long_history(repo, 20)
    monkeypatch.setattr(read_limits, "MOST_OBJECTS", 5)
    monkeypatch.setattr(read_limits, "MOST_BYTES", 1000)
    assert ctx("debug", "verify").code == 0


def test_what_is_written_can_be_read_elsewhere(
    repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ctx("init").code == 0
    monkeypatch.setattr(object_store, "LARGEST_TYPED", 5000)
    ran = ctx("add", "--type=fact", "word " * 1500)
    assert (ran.code, "E010" in ran.err) == (1, True)
    for number in range(20):
        assert ctx("add", "--type=fact", f"{number} {'word ' * 80}").code == 0
    assert ctx("commit", "-m", "Many").code == 0
    sizes = [
        len(read.payload)
        for path in (repo / ".ctx" / "objects").glob("*/*")
        for read in [Repository(project_at(str(repo))).objects.read(ObjectId(path.name))]
        if read.kind is Kind.TYPED
    ]
    assert max(sizes) <= 5000 < sum(sizes)
    assert len(ctx("list", "--limit=0", "--format=json").json["nodes"]) == 20


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
    assert "900 damages" in ran.out
    assert "… and 800 more" in ran.out
    assert len(ran.out.splitlines()) < 110
    assert len(ctx("debug", "verify", "--format=json").json["damages"]) == 900


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


_MEASURED = """
import resource, subprocess, sys
code = subprocess.run([sys.executable, "-m", "ctx", *sys.argv[1:]]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def peak_of(*words: str) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run a command, also with the most bytes of memory that it had.

    A process counts the memory of the one that it was forked from, so a small one starts it.
    """
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *words],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=TIME_LIMIT_S,
    )
    *lines, size = done.stderr.splitlines()
    done.stderr = "\n".join(lines)
    return done, int(size) * (1 if sys.platform == "darwin" else 1024)


MOST_MEMORY = 300 * store_bombs.MB


@pytest.mark.parametrize(
    "bomb", [store_bombs.huge_messages, store_bombs.short_frame, store_bombs.large_tree]
)
def test_an_object_that_unfolds_to_more_than_ctx_writes_is_refused_by_name(
    repo: Path, ctx: Ctx, bomb: Callable[[Path], list[str]]
) -> None:
    assert ctx("init").code == 0
    assert ctx("add", "--type=fact", "Ours").code == 0
    ids = bomb(repo)
    for words in (["list"], ["add", "--type=fact", "More"], ["status"], ["rebuild", "--full"]):
        started = time.monotonic()
        done, peak = peak_of(*words)
        assert (done.returncode, peak < MOST_MEMORY) == (0, True), (words, peak, done.stderr)
        assert time.monotonic() - started < 20 * clock.patience, words
        if bomb is not store_bombs.large_tree:
            # No command of these reads a tree.
            assert f"{len(ids)} object" in done.stderr, words
            assert all(id[:12] in done.stderr for id in ids), words
    assert "Ours" in ctx("list").out
    done, peak = peak_of("debug", "verify", "--format=json")
    assert (done.returncode, peak < MOST_MEMORY) == (1, True), (peak, done.stderr)
    # A frame that is longer than it says is damaged.
    code = "E003" if bomb is store_bombs.short_frame else "E035"
    damages = json.loads(done.stdout)["damages"]
    assert {Path(damage["where"]).name for damage in damages if damage["code"] == code} == {*ids}
    done, peak = peak_of("gc", "--format=json")
    refused = json.loads(done.stderr)["error"]
    assert (refused["code"], peak < MOST_MEMORY) == (code, True)
    assert "git" in refused["hint"]
    assert any(id in refused["message"] for id in ids)


def test_too_many_heads_are_counted_and_not_read(repo: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    store_bombs.empty_heads(repo)
    for words in (["list"], ["add", "--type=fact", "More"], ["status"], ["log"], ["context"]):
        started = time.process_time()
        ran = ctx(*words)
        assert time.process_time() - started < 10
        assert "20,00" in ran.err, words
        assert "error E033" in ran.err or words == ["context"], words
        assert "git log" in ran.err, words
    assert len(ctx("debug", "verify", "--format=json").json["damages"]) == 20_000
