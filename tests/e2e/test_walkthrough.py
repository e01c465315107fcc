"""A feature from the task to the commit, as in the walk-through of the specification.

A networking library in Rust gets connections that are tried again. After each step the state is
looked at: the chain of the session, the heads, the narrative, and what the memory answers.
"""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctx.layout import Project, project_at
from ctx.objects import commits, trees
from ctx.objects.object_store import decode, read_typed
from ctx.objects.object_types import (
    Commit,
    EdgeBatch,
    FileVersion,
    RecordBatch,
    StepKind,
)
from ctx.objects.repository import Repository
from tests.conftest import Ctx, Ran, git

TITLE = "Add connection retry with exponential backoff"
OBJECTIVE = """
## Objective
Add automatic retry logic to Client::connect() with exponential backoff.

## Requirements
- Max 5 retries

## Files likely involved
- crates/core/src/net/client.rs
"""
CLIENT, MODULE = "crates/core/src/net/client.rs", "core::net::client"
RETRY, RETRY_MODULE = "crates/core/src/retry/mod.rs", "core::retry"
LIB = "crates/core/src/lib.rs"
FILES = {
    "Cargo.toml": '[workspace]\nmembers = ["crates/core"]\n',
    "crates/core/Cargo.toml": '[package]\nname = "core"\nversion = "0.1.0"\nedition = "2021"\n',
    LIB: "pub mod net;\n",
    "crates/core/src/net/mod.rs": "pub mod client;\npub use client::Client;\n",
    CLIENT: """\
//! Connections to a server.

/// A connection to one server.
pub struct Client {
    address: String,
}

impl Client {
    pub fn new(address: String) -> Self {
        Self { address }
    }

    /// Connects once.
    pub fn connect(&self) -> bool {
        self.send("hello")
    }

    pub fn send(&self, text: &str) -> bool {
        !self.address.is_empty() && !text.is_empty()
    }
}
""",
}
ONCE = """\
        self.send("hello")
"""
AGAIN = """\
        let mut backoff = Backoff::new(100, 10_000, 5);
        loop {
            if self.send("hello") {
                return true;
            }
            if backoff.next_delay().is_none() {
                return false;
            }
        }
"""
BACKOFF = """\
//! Exponential backoff for retries.

/// How long to wait before the next try.
#[derive(Debug, Clone)]
pub struct Backoff {
    delay_ms: u64,
    max_delay_ms: u64,
    left: u32,
}

impl Backoff {
    pub fn new(delay_ms: u64, max_delay_ms: u64, retries: u32) -> Self {
        Self { delay_ms, max_delay_ms, left: retries }
    }

    /// The next delay, or None after the last try.
    pub fn next_delay(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let delay = self.delay_ms;
        self.delay_ms = (delay * 2).min(self.max_delay_ms);
        Some(delay)
    }
}

"""
FAILED = """\
   Compiling core v0.1.0
error[E0432]: unresolved import `crate::retry`
 --> crates/core/src/net/client.rs:2:12
  |
2 | use crate::retry::Backoff;
  |            ^^^^^ could not find `retry` in the crate root

error: could not compile `core` (lib) due to 1 previous error
"""
PASSED = "running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored\n"
DECISION = "Retry strategy: exponential backoff with jitter"
WHY = """
## Context
Client::connect() can fail transiently.

## Decision
Use exponential backoff with jitter: 100 ms at first, 10 s at most, 5 retries.

## Alternatives Considered
- Fixed delay: too aggressive or too slow
"""
MESSAGE = """feat: Add connection retry with exponential backoff

- Add core::retry::Backoff for exponential backoff with jitter
- Integrate retry logic into Client::connect()

Closes task_0001"""


class Walk:
    """The project, and its visible state."""

    def __init__(self, root: Path, ctx: Ctx) -> None:
        self.root = root
        self._ctx = ctx
        self.session = ""

    def ctx(self, *words: str) -> Ran:
        ran = self._ctx(*words)
        assert ran.code == 0, ran.err
        return ran

    def json(self, *words: str) -> Any:
        return self.ctx(*words, "--format", "json").json

    @property
    def project(self) -> Project:
        return project_at(str(self.root))

    @property
    def repository(self) -> Repository:
        return Repository(self.project)

    @property
    def heads(self) -> list[str]:
        return sorted(path.name for path in (self.root / ".ctx" / "heads").iterdir())

    def steps(self) -> list[StepKind]:
        """The staged steps of the session, oldest first."""
        repository = self.repository
        tip = repository.refs.read(f"work/{self.session}")
        chain = commits.work_chain(repository.everything, tip)
        return [step.work.step_kind for step in reversed(chain)]

    def read(self, path: str) -> set[tuple[str, str, str]]:
        """Add a file with its relations."""
        semantics = self.json("add", "file", path, "--extract-semantics")["semantics"]
        batch = read_typed(self.repository.staged, semantics["batch"], EdgeBatch)
        return {(edge.from_.id, edge.label, edge.to.id) for edge in batch.edges}

    def narrative(self, pattern: str) -> list[Path]:
        return sorted((self.root / ".ctx" / "narrative").glob(pattern))


@pytest.fixture
def walk(repo: Path, ctx: Ctx) -> Walk:
    for path, text in FILES.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
    assert ctx("init").code == 0
    git("add", "-A")
    git("commit", "-qm", "The library")
    return Walk(repo, ctx)


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_feature_from_the_task_to_the_commit(walk: Walk, piped: Callable[[str], None]) -> None:
    before = walk.heads

    # 1. Create the task.
    added = walk.json("add", "task", TITLE, "--body", OBJECTIVE)
    [task_file] = walk.narrative("tasks/task_0001-*.md")
    assert "- Max 5 retries" in task_file.read_text()
    task_id = added["node"]["id"]
    assert walk.json("list", "--type=task")["nodes"][0]["content"].startswith(TITLE)

    # 2. Start a staging session. What was staged before is a commit of its own.
    walk.session = walk.json("stage", "start", TITLE)["session"]
    stage = Path(walk.project.stage)
    assert stage.read_text().strip() == walk.session
    assert walk.steps()[0] is StepKind.SESSION_START
    base = walk.heads
    assert base != before
    assert walk.json("task", "current")["task"]["id"] == task_id

    _change_code(walk)
    _relate(walk, task_id)
    _test_until_it_passes(walk, piped)

    # 11. Record the decision. 12. A note, and the end.
    walk.ctx("add", "decision", DECISION, "--body", WHY, "--mention", "Backoff")
    others = walk.json("edges", "decision_0001")["others"]
    mentioned = {node["content"] for node in others}
    assert mentioned == {f"{RETRY_MODULE}::Backoff", f"{MODULE}::Client::connect"}
    [decision_file] = walk.narrative("decisions/0001-*.md")
    assert DECISION in walk.narrative("decisions.md")[0].read_text()
    walk.ctx("add", "note", "Completed task_0001. All tests passing. Ready for review.")
    taken = walk.json("add", "rust", "--snapshot")["snapshot"]
    assert (taken["files"], taken["left_out"]) == (4, [])
    assert walk.heads == base
    staged = walk.json("stage", "status")
    assert [chain["session"] for chain in staged["chains"]] == [walk.session]

    walk.ctx("stage", "compact", "--message", MESSAGE)
    assert not stage.exists()
    assert walk.repository.refs.read(f"work/{walk.session}") is None
    [head] = walk.heads
    assert walk.repository.refs.read("main") == head
    _check_commit(walk, head, base, task_file, decision_file)
    _check_answers(walk)


def _change_code(walk: Walk) -> None:
    # 4. Read existing code.
    count = len(walk.steps())
    connect, send = f"{MODULE}::Client::connect", f"{MODULE}::Client::send"
    before = walk.read(CLIENT)
    assert (connect, "CALLS", send) in before

    # 5. Create a new module.
    (walk.root / RETRY).parent.mkdir()
    (walk.root / RETRY).write_text(BACKOFF)
    assert (RETRY, "DEFINES", f"{RETRY_MODULE}::Backoff") in walk.read(RETRY)

    # 6. Modify the client to use it.
    head, rest = FILES[CLIENT].split("\n", 1)
    tried_again = f"{head}\nuse crate::retry::Backoff;\n{rest.replace(ONCE, AGAIN)}"
    (walk.root / CLIENT).write_text(tried_again)
    assert walk.read(CLIENT) - before == {
        (MODULE, "IMPORTS", f"{RETRY_MODULE}::Backoff"),
        (connect, "CALLS", f"{RETRY_MODULE}::Backoff::new"),
        (connect, "CALLS", f"{RETRY_MODULE}::Backoff::next_delay"),
    }
    assert walk.steps()[count:] == [StepKind.FILE_READ] * 3


def _relate(walk: Walk, task_id: str) -> None:
    # 7. Add task relations: an item is known by the whole of its name.
    walk.ctx("relate", "task_0001", "Mentions", RETRY)
    walk.ctx("relate", "task_0001", "Mentions", "core::net::Client::connect")
    edges = walk.json("edges", task_id)
    others = {node["id"]: node for node in edges["others"]}
    mentioned = {others[edge["to_id"]]["content"] for edge in edges["edges"]}
    # The file is one that the task's own text speaks of.
    assert mentioned == {CLIENT, RETRY, f"{MODULE}::Client::connect"}


def _test_until_it_passes(walk: Walk, piped: Callable[[str], None]) -> None:
    # 8. Run tests: they fail.
    piped(FAILED)
    failed = walk.json("add", "command", "--stdin", "--name", "cargo test")
    assert (failed["exit_code"], failed["outcome"]) == (None, "failed")
    assert "could not find `retry`" in failed["node"]["content"]
    [error] = [each for each in failed["diagnostics"] if each["code"]]
    assert (error["code"], error["spans"][0]["path"]) == ("E0432", CLIENT)
    [anchor] = walk.json("list", "--type=diagnostic")["nodes"]
    edges = walk.json("edges", anchor["id"])
    others = {node["id"]: node["content"] for node in edges["others"]}
    led_to = [others[e["to_id"]] for e in edges["edges"] if e["type"] == "REFERENCES"]
    assert led_to == [CLIENT]
    assert walk.steps()[-1] is StepKind.COMMAND_RUN

    # 9. Fix the issue: the library says that it has the module.
    (walk.root / LIB).write_text("pub mod net;\npub mod retry;\n")
    assert ("core", "CONTAINS", RETRY_MODULE) in walk.read(LIB)

    # 10. They pass.
    piped(PASSED)
    passed = walk.json("add", "command", "--stdin", "--name", "cargo test")
    assert (passed["outcome"], passed["tests"]["passed"]) == ("passed", 1)


def _check_commit(
    walk: Walk, head: str, base: list[str], task_file: Path, decision_file: Path
) -> None:
    repository = walk.repository
    [(_, commit), *_] = commits.walk(repository.objects, [head])  # type: ignore[list-item]
    assert isinstance(commit, Commit)
    assert commit.parents == tuple(base)
    assert commit.message == MESSAGE
    assert commit.session_id == walk.session
    [batch] = commit.record_batches
    assert len(read_typed(repository.objects, batch, RecordBatch).records) > 10
    labels = {
        edge.label
        for id in commit.edge_batches
        for edge in read_typed(repository.objects, id, EdgeBatch).edges
    }
    assert labels >= {"DEFINES", "CONTAINS", "IMPORTS", "CALLS", "MENTIONS", "REFERENCES"}
    assert commit.diagnostics_snapshot is not None
    assert commit.code_snapshot is not None
    code = sorted(path for path, _ in trees.paths(repository.objects, commit.code_snapshot))
    assert code == [LIB, CLIENT, "crates/core/src/net/mod.rs", RETRY]
    kept = {ref.path: ref for ref in commit.narrative_refs}
    assert f"decisions/{decision_file.name}" in kept
    # The file of the active task is kept with the commit, also where it did not change.
    assert kept[f"tasks/{task_file.name}"].role == "task"
    logs = [path for path in walk.narrative("log/*.md") if f"log/{path.name}" in kept]
    told = "\n".join(path.read_text() for path in logs)
    for line in (CLIENT, RETRY, LIB, DECISION, "cargo test: failed", "Client::send (9 edges)"):
        assert line in told
    # Only the last version of a file is in the tree; the steps stay where they were, for a while.
    found = walk.json("debug", "index", f"path:{CLIENT}")["entries"]
    blob = repository.objects.read(found[0]["blob_id"]).payload.decode()
    assert blob == (walk.root / CLIENT).read_text()
    staged = [decode(repository.staged.read(id)) for id in repository.staged.ids()]
    versions = [v for v in staged if isinstance(v, FileVersion) and v.path == CLIENT]
    assert len(versions) == 2


def _check_answers(walk: Walk) -> None:
    """Check what an agent can recall afterwards, also in a clone."""
    git("add", "-A")
    git("commit", "-qm", "Retry")
    clone = walk.root.parent / "clone"
    git("clone", "-q", str(walk.root), str(clone))
    walk.json("-C", str(clone), "trust", "--yes")
    for folder in (walk.root, clone):
        there = ("-C", str(folder))
        [decision, *_] = walk.json(*there, "search", "retry strategy")["nodes"]
        assert decision["content"].startswith(DECISION)
        failure = walk.json(*there, "search", "could not find retry crate")["nodes"]
        assert any("cargo test failed" in node["content"] for node in failure)
        tasks = walk.json(*there, "list", "--type=task")["nodes"]
        assert [node["content"].splitlines()[0] for node in tasks] == [TITLE]
        assert git("status", "--porcelain", cwd=folder) == ""
    _check_packs(walk)


def _check_packs(walk: Walk) -> None:
    """Check the three questions at the end of the specification."""
    strategy = walk.json("query", "retry strategy")
    decision = strategy["retrieved"][0]
    assert (decision["chunk_kind"], decision["title"]) == ("Decision", f"Decision: {DECISION}")
    assert "pub struct Backoff" in _shown(strategy, RETRY)
    assert "backoff.next_delay()" in _shown(strategy, CLIENT)

    failure = walk.json("query", "test failure retry")
    said = [chunk["snippet"] for chunk in failure["retrieved"]]
    assert any("E0432" in each and "could not find `retry`" in each for each in said)
    kinds = {chunk["chunk_kind"] for chunk in failure["retrieved"]}
    assert "NarrativeExcerpt" in kinds
    assert "pub mod retry;" in _shown(failure, LIB)

    involved = walk.json("query", "connection handling")
    assert "pub fn connect" in _shown(involved, CLIENT)
    assert "Backoff" in _shown(involved, RETRY)
    titles = [chunk["title"] for chunk in involved["retrieved"]]
    assert {f"Decision: {DECISION}", f"Task: {TITLE}"} <= set(titles)
    assert involved["graph_context"]["scc_dag_used"]
    led = [chunk["via"] for chunk in involved["retrieved"] if chunk["path"] == RETRY]
    assert all(led), "the words of the question are not in it"
    assert walk.json("why")["packed"]["task"] == "connection handling"


def _shown(pack: dict[str, Any], path: str) -> str:
    """The text of a file in a pack."""
    return "\n".join(chunk["snippet"] for chunk in pack["retrieved"] if chunk["path"] == path)
