"""The modules that a hook loads. It runs at every step of an agent, and importing is its main cost.

The interpreter lists what it loads: each hook runs as it is registered, with one more
option for that.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.worker import spawn
from ctx.worker.wake_pipe import WakePipe
from tests.agents.claude_code.hook_processes import WORDS, Hooks, command
from tests.conftest import Ctx

CAPTURING = {
    "ctx",
    "ctx.agents",
    "ctx.agents.claude_code",
    "ctx.agents.claude_code.claude_hooks",
    "ctx.agents.runtime",
    "ctx.agents.runtime.hook",
    "ctx.clock",
    "ctx.hook_files",
    "ctx.hook_files.hook_log",
    "ctx.hook_files.live",
    "ctx.hook_files.spool",
}
ANSWERING = {
    *CAPTURING,
    "ctx.agents.runtime.hook_answers",
    "ctx.agents.runtime.run_apply",
    "ctx.agents.runtime.hook_receipts",
    "ctx.agents.runtime.hook_store",
    "ctx.checkouts",
    "ctx.clock",
    "ctx.context",
    "ctx.context.contexts",
    "ctx.context.hook_queries",
    "ctx.disk",
    "ctx.errors",
    "ctx.hook_files.start_receipts",
    "ctx.hosts",
    "ctx.hosts.hook_events",
    "ctx.ids",
    "ctx.layout",
    "ctx.repository_names",
}
CONTEXT = {*ANSWERING, "ctx.agents.runtime.session_context"}
NOTICES = {"ctx.agents.runtime.notices"}
"""Additional modules for messages to the user."""
ASKING = {*ANSWERING, "ctx.agents.runtime.worker_request"}
"""With a request to the worker, also if none runs."""
WAITING = {"ctx.agents.runtime.pending_results"}
"""Additional modules for pending results of a session."""
STARTING = {"ctx.detached", "ctx.worker", "ctx.worker.spawn"}
"""Additional modules to start a process."""
COMPOSING = {
    *CONTEXT,
    "ctx.context.compose",
    "ctx.context.default_view",
    "ctx.context.context_entries",
    "ctx.context.layer_lines",
    "ctx.context.layer_rows",
    "ctx.context.layers",
    "ctx.context.command_lines",
    "ctx.context.layer_limits",
    "ctx.context.context_page",
    "ctx.context.other_trees",
    "ctx.context.past_work",
    "ctx.context.session_layers",
    "ctx.markdown",
    "ctx.memory",
    "ctx.memory.code_anchors",
    "ctx.memory.learning_confidence",
    "ctx.memory.model",
    "ctx.memory.short_ids",
    "ctx.memory.sources",
    "ctx.tokens",
}
SEARCHING = {
    *CONTEXT,
    "ctx.agents.runtime.first_prompt",
    "ctx.context.excerpt_search",
    "ctx.context.layer_lines",
    "ctx.context.layer_rows",
    "ctx.context.past_work",
    "ctx.markdown",
    "ctx.memory",
    "ctx.memory.code_anchors",
    "ctx.memory.model",
    "ctx.memory.sources",
    "ctx.terms",
    "ctx.tokens",
}
"""Modules for the first prompt of a session."""
LINEAGE = {"ctx.agents.claude_code.session_lineage", "ctx.agents.runtime.transcript_ends"}
"""Additional modules for a session that continues another."""
WHERE = {"ctx.context.compaction_state"}
"""Additional modules for a compacted conversation."""
CONFIGURED = {
    *COMPOSING,
    "ctx.config",
    "ctx.config.config_files",
    "ctx.config.resolve",
    "ctx.config.schema",
    "ctx.config.setting",
}

IN_PROJECT = {
    "ctx.context.project_store_context",
    "ctx.interrupts",
    "ctx.narrative",
    "ctx.narrative.document_roles",
    "ctx.narrative.narrative_scan",
    "ctx.objects",
    "ctx.objects.heads",
    "ctx.objects.refs",
    "ctx.objects.untracked_commits",
    "ctx.project",
    "ctx.project.project_index_state",
    "ctx.project.trust_list",
}
"""Additional modules for a project store."""
AUTHORS = {"ctx.project.authors"}
"""Additional modules for the authors of nodes in a project store."""

# Of the standard library an answer takes these, with what they need themselves. Others cost as
# much as a whole hook, or more: argparse, dataclasses, logging, pathlib, subprocess, tempfile, …
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


def loaded(hooks: Hooks, word: str, **changed: object) -> set[str]:
    """The modules that a hook loads."""
    return _imported_modules(hooks, command(word), hooks.event(word, **changed))


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


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "ctx"}


@pytest.mark.parametrize("word", ["post-tool-use", "post-tool-use-failure", "subagent-stop"])
def test_storing_an_event_loads_few_modules(hooks: Hooks, word: str) -> None:
    modules = loaded(hooks, word)
    assert ours(modules) == CAPTURING
    assert modules - CAPTURING <= of_library(hooks, "os")


@pytest.mark.parametrize("word", ["post-tool-use", "stop"])
def test_waking_the_worker_loads_few_modules(hooks: Hooks, word: str) -> None:
    bell = WakePipe(str(hooks.home / "worker.wake"))
    modules = loaded(hooks, word)
    assert bell.was_written()
    bell.close()
    assert ours(modules) == CAPTURING
    assert modules - CAPTURING <= of_library(hooks, "os")


def test_a_missing_worker_loads_the_starter(hooks: Hooks) -> None:
    """Another hook has just started one, so that this hook does not."""
    (hooks.home / spawn.MARK).touch()
    del hooks.environment["CTX_WORKER_AUTOSTART"]
    modules = loaded(hooks, "post-tool-use")
    assert ours(modules) == CAPTURING | STARTING
    assert modules - CAPTURING - STARTING <= of_library(hooks, "os")


def test_a_stop_without_commands_loads_few_modules(hooks: Hooks, tmp_path: Path) -> None:
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text("{}\n" * 1000)
    modules = loaded(hooks, "stop", transcript_path=str(transcript))
    assert ours(modules) == CAPTURING
    assert modules - CAPTURING <= of_library(hooks, "os")


def test_a_stop_with_commands_loads_the_starter(hooks: Hooks) -> None:
    modules = loaded(hooks, "stop", last_assistant_message="<ctx:status/>")
    assert ours(modules) == ASKING | STARTING
    assert modules - ASKING - STARTING <= of_library(hooks, ASKING_LIBRARY)


def test_the_end_of_a_session_loads_few_modules(hooks: Hooks) -> None:
    modules = loaded(hooks, "session-end")
    assert ours(modules) == ANSWERING | STARTING
    assert modules - ANSWERING - STARTING <= of_library(hooks, ANSWERING_LIBRARY)


def test_the_first_prompt_loads_few_modules(hooks: Hooks) -> None:
    modules = loaded(hooks, "prompt-submit")
    assert ours(modules) == SEARCHING
    assert modules - SEARCHING <= of_library(hooks, SEARCHING_LIBRARY)


def test_a_prompt_without_pending_results_loads_few_modules(hooks: Hooks) -> None:
    hooks.run("prompt-submit", hooks.event("prompt-submit"))
    modules = loaded(hooks, "prompt-submit")
    assert ours(modules) == ASKING
    assert modules - ASKING <= of_library(hooks, ASKING_LIBRARY)


def test_a_prompt_with_pending_results_loads_the_composer(hooks: Hooks) -> None:
    asked = "<ctx:recall query='what'/>"
    hooks.run("prompt-submit", hooks.event("prompt-submit"))
    hooks.run("stop", hooks.event("stop", last_assistant_message=asked))
    hooks.settle()
    modules = loaded(hooks, "prompt-submit")
    expected = COMPOSING | ASKING | WAITING
    assert ours(modules) == expected
    assert modules - expected <= of_library(hooks, f"{COMPOSING_LIBRARY}, _socket")


def test_a_prepared_context_loads_few_modules(hooks: Hooks) -> None:
    hooks.run("session-start", hooks.event("session-start"))
    hooks.settle()
    modules = loaded(hooks, "session-start", session_id="another")
    # The context has characters that are not ASCII, and is checked for hidden ones.
    expected = CONTEXT | NOTICES | {"ctx.markdown"}
    assert ours(modules) == expected
    assert modules - expected <= of_library(hooks, ANSWERING_LIBRARY)


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact", "fork"])
def test_composing_a_context_loads_the_composer(hooks: Hooks, source: str) -> None:
    modules = loaded(hooks, "session-start", source=source)
    expected = COMPOSING | NOTICES | (WHERE if source == "compact" else STARTING)
    if source == "fork":
        expected |= LINEAGE
    assert ours(modules) == expected
    assert modules - expected <= of_library(hooks, COMPOSING_LIBRARY)


def test_saving_the_state_before_compaction_loads_few_modules(hooks: Hooks) -> None:
    modules = loaded(hooks, "pre-compact")
    assert ours(modules) == COMPOSING | WHERE
    assert modules - COMPOSING - WHERE <= of_library(hooks, COMPOSING_LIBRARY)


def test_a_settings_file_loads_the_toml_parser(hooks: Hooks) -> None:
    (hooks.home / "config.toml").write_text("[context]\nbudget = 1000\n")
    modules = loaded(hooks, "session-start")
    assert ours(modules) == CONFIGURED | STARTING | NOTICES
    assert modules - CONFIGURED - STARTING - NOTICES <= of_library(hooks, CONFIGURED_LIBRARY)


def test_a_project_loads_the_project_modules(hooks: Hooks, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    assert ctx("add", "--type=fact", "--tag=tier:reference", "What is ours.").code == 0
    composed = {*COMPOSING, *STARTING, *NOTICES, *IN_PROJECT, *AUTHORS}
    modules = loaded(hooks, "session-start")
    assert ours(modules) == composed
    assert modules - composed <= of_library(hooks, f"{COMPOSING_LIBRARY}, {PROJECT_LIBRARY}")
    hooks.settle()
    given = {*CONTEXT, *NOTICES, *IN_PROJECT, "ctx.markdown"}
    modules = loaded(hooks, "session-start", session_id="another")
    assert ours(modules) == given
    assert modules - given <= of_library(hooks, f"{ANSWERING_LIBRARY}, {PROJECT_LIBRARY}")
    first = {*SEARCHING, *ASKING, *IN_PROJECT}
    assert ours(loaded(hooks, "prompt-submit")) == first
    assert ours(loaded(hooks, "prompt-submit")) == ASKING
    assert ours(loaded(hooks, "post-tool-use")) == CAPTURING


def test_expensive_modules_are_not_loaded(hooks: Hooks) -> None:
    dear = "argparse asyncio dataclasses http inspect logging pathlib socket subprocess tempfile"
    assert of_library(hooks, CONFIGURED_LIBRARY).isdisjoint(dear.split())
    capturing = of_library(hooks, "os")
    assert capturing.isdisjoint(["collections", "json", "re", "sqlite3", "typing"])


def test_every_hook_is_covered() -> None:
    here = Path(__file__).read_text()
    assert [word for word in WORDS if f'"{word}"' not in here] == []
