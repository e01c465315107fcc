"""A feature from the task to the commit, as the specification walks through it.

A networking library in Rust gets connections that are tried again. After each step the state is
looked at: the chain of the session, the heads, the narrative, and what the memory answers. The
steps that need the code graph come with it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ctx.layout import Project, project_at
from ctx.objects import commits, work
from ctx.objects.model import Commit, EdgeBatch, FileVersion, RecordBatch, StepKind
from ctx.objects.repository import Repository
from ctx.objects.store import decode, read_typed
from tests.conftest import Ctx, Ran, git

TITLE = "Add connection retry with exponential backoff"
OBJECTIVE = """
## Objective
Add automatic retry logic to Client::connect() with exponential backoff.

## Requirements
- Max 5 retries
- Initial delay: 100ms
- Max delay: 10s
- Add jitter to prevent thundering herd

## Files likely involved
- crates/core/src/net/client.rs
- New: crates/core/src/retry/mod.rs
"""
CLIENT = "crates/core/src/net/client.rs"
RETRY = "crates/core/src/retry/mod.rs"
LIB = "crates/core/src/lib.rs"
FILES = {
    "crates/core/Cargo.toml": '[package]\nname = "core"\nversion = "0.1.0"\nedition = "2021"\n',
    LIB: "pub mod net;\n",
    "crates/core/src/net/mod.rs": "pub mod client;\n",
    CLIENT: "pub struct Client;\n\nimpl Client {\n    pub fn connect(&self) {}\n}\n",
}
BACKOFF = "//! Exponential backoff for retries.\n\npub struct Backoff {\n    retries: u32,\n}\n"
FAILED = """\
   Compiling core v0.1.0
error[E0433]: failed to resolve: could not find `retry` in the crate root
 --> crates/core/src/net/client.rs:1:12
error: could not compile `core` (lib) due to 1 previous error
"""
PASSED = "running 15 tests\ntest result: ok. 15 passed; 0 failed; 0 ignored\n"
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
    """The project, and what can be seen of it from outside."""

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
        """What the session has staged, the oldest first."""
        repository = self.repository
        tip = repository.refs.read(f"work/{self.session}")
        chain = work.chain(repository.everything, tip)
        return [step.work.step_kind for step in reversed(chain)]

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
def piped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    with ExitStack() as stack:

        def give(text: str) -> None:
            (tmp_path / "output").write_text(text)
            file = stack.enter_context((tmp_path / "output").open())
            monkeypatch.setattr(sys, "stdin", file)

        yield give


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

    # 4. Read existing code. 5. Create a new module. 6. Modify the client to use it.
    count = len(walk.steps())
    walk.ctx("add", "file", CLIENT)
    (walk.root / RETRY).parent.mkdir()
    (walk.root / RETRY).write_text(BACKOFF)
    walk.ctx("add", "file", RETRY)
    (walk.root / CLIENT).write_text(FILES[CLIENT] + "// It is tried again now.\n")
    walk.ctx("add", "file", CLIENT)
    assert walk.steps()[count:] == [StepKind.FILE_READ] * 3

    # 7. Add task relations.
    walk.ctx("relate", "task_0001", "Mentions", RETRY)
    walk.ctx("relate", "task_0001", "Mentions", "core::net::Client::connect")
    edges = walk.json("edges", task_id)
    others = {node["id"]: node for node in edges["others"]}
    mentioned = {others[edge["to_id"]]["content"] for edge in edges["edges"]}
    assert mentioned == {RETRY, "core::net::Client::connect"}

    # 8. Run tests: they fail. 9. Fix the issue. 10. They pass.
    piped(FAILED)
    failed = walk.json("add", "command", "--stdin", "--name", "cargo test", "--exit-code", "101")
    assert failed["node"]["metadata"]["exit_code"] == 101
    assert "could not find `retry`" in failed["node"]["content"]
    assert walk.steps()[-1] is StepKind.COMMAND_RUN
    (walk.root / LIB).write_text("pub mod net;\npub mod retry;\n")
    walk.ctx("add", "file", LIB)
    piped(PASSED)
    walk.ctx("add", "command", "--stdin", "--name", "cargo test", "--exit-code", "0")

    # 11. Record the decision. 12. A note, and the end.
    walk.ctx("add", "decision", DECISION, "--body", WHY)
    [decision_file] = walk.narrative("decisions/0001-*.md")
    assert DECISION in walk.narrative("decisions.md")[0].read_text()
    walk.ctx("add", "note", "Completed task_0001. All tests passing. Ready for review.")
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
    [edges] = commit.edge_batches
    labels = [edge.label for edge in read_typed(repository.objects, edges, EdgeBatch).edges]
    assert labels == ["MENTIONS", "MENTIONS"]
    kept = {ref.path: ref for ref in commit.narrative_refs}
    assert f"decisions/{decision_file.name}" in kept
    # The file of the active task is kept with the commit, also where it did not change.
    assert kept[f"tasks/{task_file.name}"].role == "task"
    logs = [path for path in walk.narrative("log/*.md") if f"log/{path.name}" in kept]
    told = "\n".join(path.read_text() for path in logs)
    for line in (CLIENT, RETRY, LIB, DECISION, "cargo test: failed with exit code 101"):
        assert line in told
    # Only the last version of a file is in the tree; the steps stay where they were, for a while.
    found = walk.json("debug", "index", f"path:{CLIENT}")["entries"]
    blob = repository.objects.read(found[0]["blob_id"]).payload.decode()
    assert blob == (walk.root / CLIENT).read_text()
    staged = [decode(repository.staged.read(id)) for id in repository.staged.ids()]
    versions = [v for v in staged if isinstance(v, FileVersion) and v.path == CLIENT]
    assert len(versions) == 2


def _check_answers(walk: Walk) -> None:
    """What an agent can recall afterwards; also in a clone, once git has it."""
    git("add", "-A")
    git("commit", "-qm", "Retry")
    clone = walk.root.parent / "clone"
    git("clone", "-q", str(walk.root), str(clone))
    for folder in (walk.root, clone):
        there = ("-C", str(folder))
        [decision, *_] = walk.json(*there, "search", "retry strategy")["nodes"]
        assert decision["content"].startswith(DECISION)
        failure = walk.json(*there, "search", "could not find retry crate")["nodes"]
        assert any("exit code 101" in node["content"] for node in failure)
        tasks = walk.json(*there, "list", "--type=task")["nodes"]
        assert [node["content"].splitlines()[0] for node in tasks] == [TITLE]
        assert git("status", "--porcelain", cwd=folder) == ""
