"""What a hook loads. It runs at every step of an agent, and importing is its main cost.

The interpreter lists what it loads: each hook runs as it is registered, with one more option for
that. A hook may load the named modules of the standard library, with what these need themselves,
and so many modules of ctx. Other libraries cost as much as a whole hook, or more.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.worker import spawn
from ctx.worker.event_loop import WakePipe
from tests.agents.claude_code.hook_processes import WORDS, Hooks, command
from tests.conftest import Ctx

CAPTURING, STARTING = 12, 3
"""To store an event, and to start a worker."""
ANSWERING, SEARCHING, COMPOSING = 28, 41, 49
"""To answer at all, to find what belongs to a first prompt, to compose a context."""
IN_PROJECT = 12

ANSWERING_LIBRARY = "contextlib, errno, fcntl, json, os, select, sqlite3, typing, zlib"
ASKING_LIBRARY = f"{ANSWERING_LIBRARY}, _socket"
COMPOSING_LIBRARY = f"{ANSWERING_LIBRARY}, datetime, encodings.utf_16_le, itertools"
SEARCHING_LIBRARY = f"{COMPOSING_LIBRARY}, _socket, bisect, unicodedata"
CONFIGURED_LIBRARY = f"{COMPOSING_LIBRARY}, encodings.utf_8_sig, tomllib"
PROJECT_LIBRARY = "_blake2, heapq, stat"


@pytest.fixture
def hooks(surroundings: Path, repo: Path, ctx: Ctx) -> Iterator[Hooks]:
    """A user with a small memory who works in a repository."""
    for tier in ("pinned", "reference", "working"):
        assert ctx("add", "--type=fact", f"--tag=tier:{tier}", f"What is {tier}.").code == 0
    hooks = Hooks(surroundings / ".ctx", repo)
    yield hooks
    hooks.close()


def check(hooks: Hooks, word: str, most: int, library: str, **changed: object) -> None:
    """A hook loads at most so many modules of ctx, and only these of the standard library."""
    modules = _imported_modules(hooks, command(word), hooks.event(word, **changed))
    ours = {name for name in modules if name.partition(".")[0] == "ctx"}
    assert len(ours) <= most, sorted(ours)
    assert modules - ours - of_library(hooks, library) == set()


def of_library(hooks: Hooks, names: str) -> set[str]:
    """The modules that an interpreter loads for importing some modules."""
    return _imported_modules(hooks, [*command("")[:3], "-c", f"import {names}"], b"")


def _imported_modules(hooks: Hooks, words: list[str], said: bytes) -> set[str]:
    interpreter, *rest = words
    ran = hooks.run_command([interpreter, "-X", "importtime", *rest], said)
    assert ran.code == 0
    lines = ran.err.decode().splitlines()
    assert all(each.startswith("import time:") for each in lines), ran.err
    return {each.rpartition("|")[2].strip() for each in lines}


def test_storing_an_event(hooks: Hooks, tmp_path: Path) -> None:
    for word in ("post-tool-use", "post-tool-use-failure", "subagent-stop"):
        check(hooks, word, CAPTURING, "os")
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text("{}\n" * 1000)
    check(hooks, "stop", CAPTURING, "os", transcript_path=str(transcript))
    waiting = WakePipe(str(hooks.home / "worker.wake"))
    check(hooks, "post-tool-use", CAPTURING, "os")
    assert waiting.was_written()
    waiting.close()


def test_a_missing_worker(hooks: Hooks) -> None:
    """Another hook has just started one, so that this hook does not."""
    (hooks.home / spawn.MARK).touch()
    del hooks.environment["CTX_WORKER_AUTOSTART"]
    check(hooks, "post-tool-use", CAPTURING + STARTING, "os")


def test_the_end_of_an_answer_with_commands_and_of_a_session(hooks: Hooks) -> None:
    most = ANSWERING + 1 + STARTING
    check(hooks, "stop", most, ASKING_LIBRARY, last_assistant_message="<ctx:status/>")
    check(hooks, "session-end", ANSWERING + STARTING, ANSWERING_LIBRARY)


def test_prompts(hooks: Hooks) -> None:
    check(hooks, "prompt-submit", SEARCHING, SEARCHING_LIBRARY)
    check(hooks, "prompt-submit", ANSWERING + 1, ASKING_LIBRARY)
    asked = "<ctx:recall query='what'/>"
    hooks.run("stop", hooks.event("stop", last_assistant_message=asked))
    hooks.settle()
    check(hooks, "prompt-submit", COMPOSING + 2, f"{COMPOSING_LIBRARY}, _socket")


def test_session_starts(hooks: Hooks) -> None:
    for source in ("startup", "resume", "clear", "compact", "fork"):
        check(hooks, "session-start", COMPOSING + 6, COMPOSING_LIBRARY, source=source)
    check(hooks, "pre-compact", COMPOSING + 1, COMPOSING_LIBRARY)
    hooks.settle()
    # The context that was prepared is printed.
    check(hooks, "session-start", ANSWERING + 3, ANSWERING_LIBRARY, session_id="another")


def test_a_settings_file(hooks: Hooks) -> None:
    (hooks.home / "config.toml").write_text("[context]\nbudget = 1000\n")
    check(hooks, "session-start", COMPOSING + 10, CONFIGURED_LIBRARY)


def test_a_project(hooks: Hooks, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    assert ctx("add", "--type=fact", "--tag=tier:reference", "What is ours.").code == 0
    library = f"{COMPOSING_LIBRARY}, {PROJECT_LIBRARY}"
    check(hooks, "session-start", COMPOSING + IN_PROJECT + 5, library)
    hooks.settle()
    library = f"{ANSWERING_LIBRARY}, {PROJECT_LIBRARY}"
    check(hooks, "session-start", ANSWERING + IN_PROJECT + 3, library, session_id="another")
    library = f"{SEARCHING_LIBRARY}, {PROJECT_LIBRARY}"
    check(hooks, "prompt-submit", SEARCHING + IN_PROJECT + 1, library)
    check(hooks, "prompt-submit", ANSWERING + 1, ASKING_LIBRARY)
    check(hooks, "post-tool-use", CAPTURING, "os")


def test_expensive_modules_are_not_loaded(hooks: Hooks) -> None:
    dear = "argparse asyncio dataclasses http inspect logging pathlib socket subprocess tempfile"
    assert of_library(hooks, CONFIGURED_LIBRARY).isdisjoint(dear.split())
    capturing = of_library(hooks, "os")
    assert capturing.isdisjoint(["collections", "json", "re", "sqlite3", "typing"])


def test_every_hook_is_covered() -> None:
    here = Path(__file__).read_text()
    assert [word for word in WORDS if f'"{word}"' not in here] == []
