"""Captured sessions in the staging of their project: files, code edges and diagnostics."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctx import layout
from ctx.capture import session_state
from ctx.errors import CtxError, StagingConflict
from ctx.ids import ObjectId, SessionId
from ctx.objects import refs
from ctx.objects.object_store import decode
from ctx.objects.object_types import EdgeBatch, StepKind
from ctx.objects.repository import Repository
from ctx.operations import stage_captured
from ctx.operations.worker_round import WorkerRounds
from ctx.project import staging
from tests.capture.conversations import SESSION, Client
from tests.conftest import Ctx
from tests.operations.test_worker_round import run_command, use_tool

RETRY = "def wait() -> int:\n    return pause()\n\n\ndef pause() -> int:\n    return 1\n"
FAILED = """\
============================= test session starts ==============================
tests/test_retry.py F                                                    [100%]
=================================== FAILURES ===================================
___________________________________ test_wait __________________________________

    def test_wait():
>       assert wait() == 2
E       assert 1 == 2

tests/test_retry.py:4: AssertionError
=========================== short test summary info ============================
FAILED tests/test_retry.py::test_wait - assert 1 == 2
============================== 1 failed in 0.01s ===============================
"""


PASSED = """\
============================= test session starts ==============================
tests/test_retry.py .                                                    [100%]

============================== 1 passed in 0.01s ===============================
"""


class Work:
    """The work of an agent in a project, and the rounds of the worker."""

    def __init__(self, client: Client, ctx: Ctx) -> None:
        self.client, self.ctx = client, ctx
        self.problems: list[str] = []
        self.rounds = WorkerRounds(client.home, self._guard)
        self.conversation = client.talk()
        self.conversation.start()

    @contextmanager
    def _guard(self, doing: str) -> Iterator[None]:
        try:
            yield
        except CtxError as error:
            self.problems.append(f"{doing}: {error}")

    @property
    def repository(self) -> Repository:
        project = layout.find_project(str(self.client.folder), self.client.home)
        assert project
        return Repository(project)

    def start(self, *options: str) -> None:
        assert self.ctx("stage", "start", "Fix the retries", *options).code == 0

    def write(self, name: str, content: str = RETRY) -> None:
        path = self.client.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        use_tool(
            self.conversation,
            "Write",
            f"toolu_{name}_{len(content)}",
            tool_input={"file_path": str(path), "content": content},
            tool_response={"type": "create", "filePath": str(path), "content": content},
        )

    def run(self, command: str, printed: str) -> None:
        run_command(self.conversation, command, printed)

    def round(self) -> None:
        with self.client.memory() as memory:
            self.rounds.round(memory)

    def finish_turn(self, *, ends: bool = False) -> None:
        self.conversation.submit("Make the retries wait for a second.")
        self.conversation.prompt("Make the retries wait for a second.")
        self.conversation.reply("We decided to wait a second because the broker needs it.")
        self.conversation.stop()
        if ends:
            self.conversation.end()
        self.round()

    def one_turn(self) -> None:
        """A turn in which a file is written and a test fails."""
        self.write("retry.py")
        self.run("pytest -q", FAILED)
        self.finish_turn()

    def commit(self, *options: str) -> Any:
        return self.ctx("commit", "-m", "Retry", *options, "--format=json").json

    def chains(self) -> dict[str, dict[str, Any]]:
        """The staged sessions, by name."""
        found = self.ctx("stage", "status", "--format=json").json["chains"]
        return {each["session"]: each for each in found}

    def observations(self) -> dict[str, set[str]]:
        """The types of the inferred nodes in each scope."""
        found: dict[str, set[str]] = {"user": set(), "project": set()}
        for each in self.ctx("list", "--format=json", "--limit=0").json["nodes"]:
            if f"session:{SESSION}" in each["tags"] and "command" not in each["tags"]:
                found[each["scope"]].add(each["type"])
        return found


@pytest.fixture
def work(repo: Path, surroundings: Path, ctx: Ctx) -> Work:
    assert ctx("init").code == 0
    return Work(Client(surroundings / ".ctx", repo), ctx)


OWN = ("--session", SESSION)
IN_PROJECT = {"user": set(), "project": {"observation", "summary"}}
OF_USER = {"user": {"observation", "summary"}, "project": set()}


def test_a_session_that_its_agent_started_is_staged(work: Work) -> None:
    work.start(*OWN)
    work.one_turn()
    chain = work.chains()[SESSION]
    assert (chain["files"], chain["state"], chain["task"]) == (1, "active", "Fix the retries")
    assert work.observations() == IN_PROJECT
    repository = work.repository
    steps = staging.chain(repository, SessionId(SESSION))
    assert {StepKind.FILE_WRITE, StepKind.COMMAND_RUN} <= {step.work.step_kind for step in steps}
    written = next(step.work for step in steps if step.work.step_kind is StepKind.FILE_WRITE)
    parts = [decode(repository.everything.read(each)) for each in written.payload]
    labels = {edge.label for part in parts if isinstance(part, EdgeBatch) for edge in part.edges}
    assert {"DEFINES", "CALLS"} <= labels

    # Staging it again adds nothing.
    before = work.chains()
    with work.client.memory() as memory:
        found = session_state.get(memory.local, SESSION)
        again = stage_captured.stage_captured(memory, found)
    assert again is not None
    assert (again.files, again.commands) == ((), ())
    assert work.chains() == before

    (came,) = work.ctx("diff", "--format=json").json["diagnostics"]
    assert "assert 1 == 2" in str(came)
    assert work.commit(*OWN)["files"] == ["retry.py"]
    # What comes after a commit is staged too.
    work.run("pytest -q tests", PASSED)
    work.write("more.py")
    work.finish_turn()
    (went,) = work.ctx("diff", "--format=json").json["diagnostics"]
    assert (came["kind"], went["kind"]) == ("added", "removed")
    assert work.commit(*OWN)["files"] == ["more.py"]
    assert work.observations()["user"] == set()


def test_the_results_of_commands_are_staged(work: Work) -> None:
    """A check in a pipe has failed, and is not part of the context."""
    work.start()
    work.run("pytest -q | tail", FAILED)
    work.run("ruff check", "All checks passed!\n")
    work.finish_turn()
    found = work.ctx("list", "--format=json", "--tag=command").json["nodes"]
    (command,) = [each for each in found if "pytest" in each["content"]]
    assert command["content"].startswith("pytest -q | tail failed: 1 failed")
    assert [tag for tag in command["tags"] if tag.startswith("tier:")] == []
    # A commit has the diagnostics of each tool.
    made = work.commit()
    (parent,) = made["parents"]
    (came,) = work.ctx("diff", parent, made["commit"], "--format=json").json["diagnostics"]
    assert (came["kind"], came["test"]) == ("added", "tests/test_retry.py::test_wait")


def test_a_session_in_a_folder_in_which_a_person_started_one_is_staged_there(work: Work) -> None:
    work.start()
    work.one_turn()
    (chain,) = work.chains().values()
    assert chain["session"].startswith("fix-the-retries-")
    assert chain["files"] == 1
    assert work.observations()["user"] == set()
    assert work.commit()["files"] == ["retry.py"]


@pytest.mark.parametrize(
    ("share", "files", "observations"),
    [
        ("none", [], OF_USER),
        ("all", [1], IN_PROJECT),
        # Files stay private.
        ("summary", [0], {"user": {"observation"}, "project": {"summary"}}),
    ],
)
def test_a_session_that_nobody_started_is_staged_if_it_is_shared(
    work: Work, share: str, files: list[int], observations: dict[str, set[str]]
) -> None:
    assert work.ctx("config", "set", "share.sessions", share, "--user").code == 0
    work.one_turn()
    assert [each["files"] for each in work.chains().values()] == files
    assert work.observations() == observations


def test_work_before_the_start_is_not_staged(work: Work) -> None:
    work.write("before.py")
    work.finish_turn()
    work.start(*OWN)
    work.write("after.py")
    work.finish_turn()
    assert work.commit(*OWN)["files"] == ["after.py"]
    # What memory has about a session stays together, in the store of its first observations.
    assert work.observations() == OF_USER


def test_a_session_that_ends_in_its_first_turn_is_staged(work: Work) -> None:
    """What its agent staged itself is committed before."""
    work.start(*OWN)
    assert work.ctx("add", "fact", "The broker needs a second", *OWN).code == 0
    work.write("retry.py")
    work.finish_turn(ends=True)
    assert work.chains() == {}
    assert "retry.py" in work.ctx("log", "--format=json").out


def test_an_aborted_session_is_no_longer_staged(work: Work) -> None:
    work.start(*OWN)
    work.one_turn()
    assert work.ctx("stage", "abort", *OWN).code == 0
    work.write("more.py")
    work.finish_turn(ends=True)
    assert SESSION not in work.chains()
    assert work.observations() == OF_USER


def test_files_that_must_not_be_stored_are_left_out(work: Work, tmp_path: Path) -> None:
    work.start(*OWN)
    folder = work.client.folder
    (folder / ".gitignore").write_text("ignored.py\n")
    work.write("ignored.py")
    work.write("secret.py", f'aws_key = "AKIA{"Q" * 8}7RTYUIOP"\n')
    work.write("gone.py")
    (folder / "gone.py").unlink()
    work.write("large.py", "x = 1\n" * 300_000)
    work.write(str(tmp_path / "outside.py"))
    work.write("link.py")
    (folder / "link.py").unlink()
    (folder / "link.py").symlink_to("/etc/passwd")
    work.write("fine.py")
    work.finish_turn()
    assert work.commit(*OWN)["files"] == ["fine.py"]


def test_many_files_are_staged_in_several_steps(work: Work) -> None:
    assert work.ctx("config", "set", "ingestion.max_files_per_step", "2", "--user").code == 0
    work.start(*OWN)
    for number in range(5):
        work.write(f"part_{number}.py", f"x = {number}\n")
    work.finish_turn()
    steps = staging.chain(work.repository, SessionId(SESSION))
    assert [step.work.step_kind for step in steps].count(StepKind.FILE_WRITE) == 3
    assert work.chains()[SESSION]["files"] == 5


def test_a_failure_is_tried_again_and_does_not_prevent_synthesis(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StagingConflict("The disk is full.")

    monkeypatch.setattr(stage_captured, "stage_captured", fail)
    work.one_turn()
    assert work.observations()["user"] == set()
    work.round()
    work.round()
    assert work.observations()["user"] == {"observation", "summary"}
    assert work.problems == [f"staging of {SESSION}: E008: The disk is full."] * 3


def test_work_is_staged_after_a_damaged_chain_was_recovered(work: Work) -> None:
    work.start(*OWN)
    repository, name = work.repository, refs.work(SessionId(SESSION))
    repository.refs.move(name, repository.refs.require(name), ObjectId("0" * 64))
    work.one_turn()
    assert work.problems == [f"staging of {SESSION}: E001: Object {'0' * 64} does not exist."]
    assert work.ctx("stage", "recover", SESSION).code == 0
    work.round()
    assert work.chains()[SESSION]["files"] == 1
    assert work.observations() == IN_PROJECT
