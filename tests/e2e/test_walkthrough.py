"""A feature from the task to the commit, as in the walk-through of the specification.

A networking library in Rust gets connections that are tried again. On the way the state is looked
at: the staged steps, the heads, the narrative, the commit, and what the memory answers.
"""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from ctx.layout import project_at
from ctx.objects import commits, trees
from ctx.objects.object_store import decode, read_typed
from ctx.objects.object_types import Commit, EdgeBatch, FileVersion, RecordBatch, StepKind
from ctx.objects.repository import Repository
from tests.conftest import Ctx, git

TITLE = "Add connection retry with exponential backoff"
OBJECTIVE = """
## Requirements
- Max 5 retries

## Files likely involved
- crates/core/src/net/client.rs
"""
CLIENT, MODULE = "crates/core/src/net/client.rs", "core::net::client"
RETRY, RETRY_MODULE = "crates/core/src/retry/mod.rs", "core::retry"
LIB = "crates/core/src/lib.rs"
CONNECT, SEND = f"{MODULE}::Client::connect", f"{MODULE}::Client::send"
FILES = {
    "Cargo.toml": '[workspace]\nmembers = ["crates/core"]\n',
    "crates/core/Cargo.toml": '[package]\nname = "core"\nversion = "0.1.0"\nedition = "2021"\n',
    LIB: "pub mod net;\n",
    "crates/core/src/net/mod.rs": "pub mod client;\npub use client::Client;\n",
    CLIENT: """\
/// A connection to one server.
pub struct Client {
    address: String,
}

impl Client {
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
AGAIN = """\
        let mut backoff = Backoff::new(100);
        while !self.send("hello") {
            backoff.next_delay();
        }
        true
"""
BACKOFF = """\
/// How long to wait before the next try.
pub struct Backoff {
    delay_ms: u64,
}

impl Backoff {
    pub fn new(delay_ms: u64) -> Self {
        Self { delay_ms }
    }

    pub fn next_delay(&mut self) -> u64 {
        self.delay_ms *= 2;
        self.delay_ms
    }
}
"""
FAILED = """\
   Compiling core v0.1.0
error[E0432]: unresolved import `crate::retry`
 --> crates/core/src/net/client.rs:1:12
  |
1 | use crate::retry::Backoff;
  |            ^^^^^ could not find `retry` in the crate root

error: could not compile `core` (lib) due to 1 previous error
"""
PASSED = "running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored\n"
DECISION = "Retry strategy: exponential backoff with jitter"
WHY = "Client::connect() can fail transiently. A fixed delay is too aggressive or too slow."
MESSAGE = "feat: Add connection retry with exponential backoff\n\nCloses task_0001"


class Walk:
    """The project, and its visible state."""

    def __init__(self, root: Path, ctx: Ctx) -> None:
        self.root = root
        self._ctx = ctx

    def json(self, *words: str) -> Any:
        ran = self._ctx(*words, "--format", "json")
        assert ran.code == 0, ran.err
        return ran.json

    @property
    def repository(self) -> Repository:
        return Repository(project_at(str(self.root)))

    @property
    def heads(self) -> list[str]:
        return sorted(path.name for path in (self.root / ".ctx" / "heads").iterdir())

    def steps(self, session: str) -> list[StepKind]:
        """The staged steps of a session, newest first."""
        repository = self.repository
        tip = repository.refs.read(f"work/{session}")
        return [step.work.step_kind for step in commits.work_chain(repository.everything, tip)]

    def read(self, path: str) -> set[tuple[str, str, str]]:
        """Add a file with its relations."""
        semantics = self.json("add", "file", path, "--extract-semantics")["semantics"]
        batch = read_typed(self.repository.staged, semantics["batch"], EdgeBatch)
        return {(edge.from_.id, edge.label, edge.to.id) for edge in batch.edges}

    def linked(self, node: str) -> set[str]:
        """The contents of the nodes to which a node has edges."""
        found = self.json("edges", node)
        contents = {each["id"]: each["content"] for each in found["others"]}
        return {contents[edge["to_id"]] for edge in found["edges"] if edge["to_id"] in contents}

    def document(self, pattern: str) -> Path:
        [found] = (self.root / ".ctx" / "narrative").glob(pattern)
        return found


@pytest.fixture
def walk(repo: Path, ctx: Ctx) -> Walk:
    for path, text in FILES.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
    assert ctx("init").code == 0
    git("add", "-A")
    git("commit", "-qm", "The library")
    return Walk(repo, ctx)


def test_a_feature_from_the_task_to_the_commit(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    before = walk.heads
    task_id = walk.json("add", "task", TITLE, "--body", OBJECTIVE)["node"]["id"]
    task_file = walk.document("tasks/task_0001-*.md")
    # What was staged before a session starts is a commit of its own.
    session = walk.json("stage", "start", TITLE)["session"]
    base = walk.heads
    assert base != before
    assert walk.json("task", "current")["task"]["id"] == task_id

    first = walk.read(CLIENT)
    assert (CONNECT, "CALLS", SEND) in first
    (walk.root / RETRY).parent.mkdir()
    (walk.root / RETRY).write_text(BACKOFF)
    assert (RETRY, "DEFINES", f"{RETRY_MODULE}::Backoff") in walk.read(RETRY)
    changed = FILES[CLIENT].replace('        self.send("hello")\n', AGAIN)
    (walk.root / CLIENT).write_text(f"use crate::retry::Backoff;\n{changed}")
    assert walk.read(CLIENT) - first == {
        (MODULE, "IMPORTS", f"{RETRY_MODULE}::Backoff"),
        (CONNECT, "CALLS", f"{RETRY_MODULE}::Backoff::new"),
        (CONNECT, "CALLS", f"{RETRY_MODULE}::Backoff::next_delay"),
    }
    *rest, started = walk.steps(session)
    assert (rest[:3], started) == ([StepKind.FILE_READ] * 3, StepKind.SESSION_START)

    walk.json("relate", "task_0001", "Mentions", RETRY)
    walk.json("relate", "task_0001", "Mentions", "core::net::Client::connect")
    # The task's own text names the client.
    assert walk.linked(task_id) == {CLIENT, RETRY, CONNECT}

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FAILED.encode())))
    failed = walk.json("add", "command", "--stdin", "--name", "cargo test")
    assert (failed["exit_code"], failed["outcome"]) == (None, "failed")
    [error] = [each for each in failed["diagnostics"] if each["code"]]
    assert (error["code"], error["spans"][0]["path"]) == ("E0432", CLIENT)
    [anchor] = walk.json("list", "--type=diagnostic")["nodes"]
    assert CLIENT in walk.linked(anchor["id"])
    (walk.root / LIB).write_text("pub mod net;\npub mod retry;\n")
    assert ("core", "CONTAINS", RETRY_MODULE) in walk.read(LIB)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PASSED.encode())))
    passed = walk.json("add", "command", "--stdin", "--name", "cargo test")
    assert (passed["outcome"], passed["tests"]["passed"]) == ("passed", 1)

    walk.json("add", "decision", DECISION, "--body", WHY, "--mention", "Backoff")
    assert walk.linked("decision_0001") == {f"{RETRY_MODULE}::Backoff", CONNECT}
    assert DECISION in walk.document("decisions.md").read_text()
    walk.json("add", "note", "Completed task_0001. Ready for review.")
    assert walk.json("add", "rust", "--snapshot")["snapshot"]["files"] == 4
    assert walk.heads == base
    walk.json("stage", "compact", "--message", MESSAGE)
    assert walk.repository.refs.read(f"work/{session}") is None
    [head] = walk.heads
    check_commit(walk, head, base, session, task_file)
    check_answers(walk)


def check_commit(walk: Walk, head: str, base: list[str], session: str, task_file: Path) -> None:
    repository = walk.repository
    [(_, commit), *_] = commits.walk(repository.objects, [head])  # type: ignore[list-item]
    assert isinstance(commit, Commit)
    assert commit.parents == tuple(base)
    assert (commit.message, commit.session_id) == (MESSAGE, session)
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
    assert f"decisions/{walk.document('decisions/0001-*.md').name}" in kept
    # The file of the active task is kept with the commit, also where it did not change.
    assert kept[f"tasks/{task_file.name}"].role == "task"
    logs = (walk.root / ".ctx" / "narrative").glob("log/*.md")
    told = "\n".join(path.read_text() for path in logs)
    for line in (CLIENT, RETRY, LIB, DECISION, "cargo test: failed", "Client::send (8 edges)"):
        assert line in told
    # Only the last version of a file is in the tree; the steps stay where they were, for a while.
    [entry] = walk.json("debug", "index", f"path:{CLIENT}")["entries"]
    blob = repository.objects.read(entry["blob_id"]).payload.decode()
    assert blob == (walk.root / CLIENT).read_text()
    staged = [decode(repository.staged.read(id)) for id in repository.staged.ids()]
    versions = [v for v in staged if isinstance(v, FileVersion) and v.path == CLIENT]
    assert len(versions) == 2


def check_answers(walk: Walk) -> None:
    """Check what an agent can recall afterwards in a clone, and what the specification asks."""
    git("add", "-A")
    git("commit", "-qm", "Retry")
    clone = walk.root.parent / "clone"
    git("clone", "-q", str(walk.root), str(clone))
    there = ("-C", str(clone))
    walk.json(*there, "trust", "--yes")
    [decision, *_] = walk.json(*there, "search", "retry strategy")["nodes"]
    assert decision["content"].startswith(DECISION)
    failure = walk.json(*there, "search", "could not find retry crate")["nodes"]
    assert any("cargo test failed" in node["content"] for node in failure)
    assert git("status", "--porcelain", cwd=clone) == ""

    strategy = walk.json("query", "retry strategy")
    assert strategy["retrieved"][0]["title"] == f"Decision: {DECISION}"
    assert "pub struct Backoff" in shown(strategy, RETRY)
    assert "backoff.next_delay()" in shown(strategy, CLIENT)
    failure = walk.json("query", "test failure retry")
    said = [chunk["snippet"] for chunk in failure["retrieved"]]
    assert any("E0432" in each and "could not find `retry`" in each for each in said)
    involved = walk.json("query", "connection handling")
    assert "pub fn connect" in shown(involved, CLIENT)
    titles = {chunk["title"] for chunk in involved["retrieved"]}
    assert {f"Decision: {DECISION}", f"Task: {TITLE}"} <= titles
    led = [chunk["via"] for chunk in involved["retrieved"] if chunk["path"] == RETRY]
    assert led, "the words of the question are not in it"
    assert all(led)
    assert walk.json("why", "cli")["packed"]["task"] == "connection handling"


def shown(pack: dict[str, Any], path: str) -> str:
    """The text of a file in a pack."""
    return "\n".join(chunk["snippet"] for chunk in pack["retrieved"] if chunk["path"] == path)
