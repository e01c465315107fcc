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
from tests.capture.conversations import SESSION, Client, Conversation
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


@pytest.fixture
def client(repo: Path, surroundings: Path, ctx: Ctx) -> Client:
    assert ctx("init").code == 0
    return Client(surroundings / ".ctx", repo)


@pytest.fixture
def conversation(client: Client) -> Conversation:
    found = client.talk()
    found.start()
    return found


@pytest.fixture
def problems() -> list[str]:
    return []


@pytest.fixture
def rounds(client: Client, problems: list[str]) -> WorkerRounds:
    @contextmanager
    def guard(doing: str) -> Iterator[None]:
        try:
            yield
        except CtxError as error:
            problems.append(f"{doing}: {error}")

    return WorkerRounds(client.home, guard)


def repository_of(client: Client) -> Repository:
    project = layout.find_project(str(client.folder), client.home)
    assert project
    return Repository(project)


def work(client: Client, rounds: WorkerRounds) -> None:
    with client.memory() as memory:
        rounds.round(memory)


def write_file(conversation: Conversation, name: str, content: str = RETRY) -> None:
    path = conversation.client.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    use_tool(
        conversation,
        "Write",
        f"toolu_{name}_{len(content)}",
        tool_input={"file_path": str(path), "content": content},
        tool_response={"type": "create", "filePath": str(path), "content": content},
    )


def finish_turn(conversation: Conversation) -> None:
    conversation.submit("Make the retries wait for a second.")
    conversation.prompt("Make the retries wait for a second.")
    conversation.reply("We decided to wait a second because the broker needs it.")
    conversation.stop()


def work_one_turn(conversation: Conversation, client: Client, rounds: WorkerRounds) -> None:
    """A turn in which a file is written and a test fails."""
    write_file(conversation, "retry.py")
    run_command(conversation, "pytest -q", FAILED)
    finish_turn(conversation)
    work(client, rounds)


def start(ctx: Ctx, *options: str) -> None:
    assert ctx("stage", "start", "Fix the retries", *options).code == 0


def chains(ctx: Ctx) -> dict[str, dict[str, Any]]:
    """The staged sessions, by name."""
    return {
        each["session"]: each for each in ctx("stage", "status", "--format=json").json["chains"]
    }


def observations(ctx: Ctx) -> dict[str, set[str]]:
    """The types of the inferred nodes in each scope."""
    listed = ctx("list", "--format=json", "--limit=0").json["nodes"]
    found: dict[str, set[str]] = {"user": set(), "project": set()}
    for each in listed:
        if f"session:{SESSION}" in each["tags"] and "command" not in each["tags"]:
            found[each["scope"]].add(each["type"])
    return found


def test_a_session_that_its_agent_started_is_staged(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    start(ctx, "--session", SESSION)
    work_one_turn(conversation, client, rounds)
    chain = chains(ctx)[SESSION]
    assert (chain["files"], chain["state"], chain["task"]) == (1, "active", "Fix the retries")
    assert observations(ctx) == {"user": set(), "project": {"observation", "summary"}}
    repository = repository_of(client)
    steps = staging.chain(repository, SessionId(SESSION))
    kinds = [step.work.step_kind for step in steps]
    assert {StepKind.FILE_WRITE, StepKind.COMMAND_RUN} <= set(kinds)
    written = next(step.work for step in steps if step.work.step_kind is StepKind.FILE_WRITE)
    parts = [decode(repository.everything.read(each)) for each in written.payload]
    labels = {edge.label for part in parts if isinstance(part, EdgeBatch) for edge in part.edges}
    assert {"DEFINES", "CALLS"} <= labels
    (diagnostic,) = ctx("diff", "--format=json").json["diagnostics"]
    assert "assert 1 == 2" in str(diagnostic)
    made = ctx("commit", "-m", "The retries wait", "--session", SESSION, "--format=json").json
    assert made["files"] == ["retry.py"]
    run_command(conversation, "pytest -q tests", PASSED)
    finish_turn(conversation)
    work(client, rounds)
    (went,) = ctx("diff", "--format=json").json["diagnostics"]
    assert (diagnostic["kind"], went["kind"]) == ("added", "removed")


def test_a_check_in_a_pipe_has_failed_and_is_not_part_of_the_context(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    start(ctx)
    run_command(conversation, "pytest -q | tail", FAILED)
    finish_turn(conversation)
    work(client, rounds)
    (command,) = ctx("list", "--format=json", "--tag=command").json["nodes"]
    assert command["content"].startswith("pytest -q | tail failed: 1 failed")
    assert [tag for tag in command["tags"] if tag.startswith("tier:")] == []


def test_a_commit_has_the_diagnostics_of_each_tool(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    start(ctx)
    run_command(conversation, "pytest -q", FAILED)
    run_command(conversation, "ruff check", "All checks passed!\n")
    finish_turn(conversation)
    work(client, rounds)
    made = ctx("commit", "-m", "One", "--format=json").json
    (parent,) = made["parents"]
    (came,) = ctx("diff", parent, made["commit"], "--format=json").json["diagnostics"]
    assert (came["kind"], came["test"]) == ("added", "tests/test_retry.py::test_wait")


def test_a_session_in_a_folder_in_which_a_person_started_one_is_staged_there(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    start(ctx)
    work_one_turn(conversation, client, rounds)
    (chain,) = chains(ctx).values()
    assert chain["session"].startswith("fix-the-retries-")
    assert chain["files"] == 1
    assert observations(ctx)["user"] == set()
    assert ctx("commit", "-m", "The retries wait", "--format=json").json["files"] == ["retry.py"]


def test_a_session_that_nobody_started_is_not_staged(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    work_one_turn(conversation, client, rounds)
    assert chains(ctx) == {}
    assert observations(ctx) == {"user": {"observation", "summary"}, "project": set()}


def test_sessions_are_staged_if_all_are_shared(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    assert ctx("config", "set", "share.sessions", "all", "--user").code == 0
    work_one_turn(conversation, client, rounds)
    assert chains(ctx)[SESSION]["files"] == 1
    assert observations(ctx)["user"] == set()


def test_with_summaries_shared_the_files_stay_private(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    assert ctx("config", "set", "share.sessions", "summary", "--user").code == 0
    work_one_turn(conversation, client, rounds)
    assert chains(ctx)[SESSION]["files"] == 0
    assert observations(ctx) == {"user": {"observation"}, "project": {"summary"}}


def test_work_before_the_start_is_not_staged(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    write_file(conversation, "before.py")
    finish_turn(conversation)
    work(client, rounds)
    start(ctx, "--session", SESSION)
    write_file(conversation, "after.py")
    finish_turn(conversation)
    work(client, rounds)
    made = ctx("commit", "-m", "After", "--session", SESSION, "--format=json").json
    assert made["files"] == ["after.py"]
    # What memory has about a session stays together, in the store of its first observations.
    assert observations(ctx) == {"user": {"observation", "summary"}, "project": set()}


def test_staging_is_repeatable(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    start(ctx, "--session", SESSION)
    work_one_turn(conversation, client, rounds)
    before = chains(ctx)
    with client.memory() as memory:
        found = session_state.get(memory.local, SESSION)
        again = stage_captured.stage_captured(memory, found)
    assert again is not None
    assert (again.files, again.commands) == ((), ())
    assert chains(ctx) == before


def test_work_after_a_commit_is_staged_too(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    start(ctx, "--session", SESSION)
    work_one_turn(conversation, client, rounds)
    assert ctx("commit", "-m", "One", "--session", SESSION).code == 0
    write_file(conversation, "more.py")
    finish_turn(conversation)
    work(client, rounds)
    made = ctx("commit", "-m", "Two", "--session", SESSION, "--format=json").json
    assert made["files"] == ["more.py"]
    assert observations(ctx)["user"] == set()


def test_a_session_that_ends_in_its_first_turn_is_staged(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    """What its agent staged itself is committed before."""
    start(ctx, "--session", SESSION)
    assert ctx("add", "fact", "The broker needs a second", "--session", SESSION).code == 0
    write_file(conversation, "retry.py")
    finish_turn(conversation)
    conversation.end()
    work(client, rounds)
    assert chains(ctx) == {}
    assert "retry.py" in ctx("log", "--format=json").out


def test_an_aborted_session_is_no_longer_staged(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    start(ctx, "--session", SESSION)
    work_one_turn(conversation, client, rounds)
    assert ctx("stage", "abort", "--session", SESSION).code == 0
    write_file(conversation, "more.py")
    finish_turn(conversation)
    conversation.end()
    work(client, rounds)
    assert SESSION not in chains(ctx)
    assert observations(ctx) == {"user": {"observation", "summary"}, "project": set()}


def test_files_that_must_not_be_stored_are_left_out(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx, tmp_path: Path
) -> None:
    start(ctx, "--session", SESSION)
    (client.folder / ".gitignore").write_text("ignored.py\n")
    write_file(conversation, "ignored.py")
    write_file(conversation, "secret.py", f'aws_key = "AKIA{"Q" * 8}7RTYUIOP"\n')
    write_file(conversation, "gone.py")
    (client.folder / "gone.py").unlink()
    write_file(conversation, "large.py", "x = 1\n" * 300_000)
    write_file(conversation, str(tmp_path / "outside.py"))
    link = client.folder / "link.py"
    write_file(conversation, "link.py")
    link.unlink()
    link.symlink_to("/etc/passwd")
    write_file(conversation, "fine.py")
    finish_turn(conversation)
    work(client, rounds)
    made = ctx("commit", "-m", "Files", "--session", SESSION, "--format=json").json
    assert made["files"] == ["fine.py"]


def test_many_files_are_staged_in_several_steps(
    client: Client, conversation: Conversation, rounds: WorkerRounds, ctx: Ctx
) -> None:
    assert ctx("config", "set", "ingestion.max_files_per_step", "2", "--user").code == 0
    start(ctx, "--session", SESSION)
    for number in range(5):
        write_file(conversation, f"part_{number}.py", f"x = {number}\n")
    finish_turn(conversation)
    work(client, rounds)
    repository = repository_of(client)
    steps = staging.chain(repository, SessionId(SESSION))
    kinds = [step.work.step_kind for step in steps]
    assert kinds.count(StepKind.FILE_WRITE) == 3
    assert chains(ctx)[SESSION]["files"] == 5


def test_a_failure_is_tried_again_and_does_not_prevent_synthesis(
    client: Client,
    conversation: Conversation,
    rounds: WorkerRounds,
    problems: list[str],
    ctx: Ctx,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise StagingConflict("The disk is full.")

    monkeypatch.setattr(stage_captured, "stage_captured", fail)
    work_one_turn(conversation, client, rounds)
    assert observations(ctx)["user"] == set()
    work(client, rounds)
    work(client, rounds)
    assert observations(ctx)["user"] == {"observation", "summary"}
    assert problems == [f"staging of {SESSION}: E008: The disk is full."] * 3


def test_work_is_staged_after_a_damaged_chain_was_recovered(
    client: Client,
    conversation: Conversation,
    rounds: WorkerRounds,
    problems: list[str],
    ctx: Ctx,
) -> None:
    start(ctx, "--session", SESSION)
    repository, name = repository_of(client), refs.work(SessionId(SESSION))
    repository.refs.move(name, repository.refs.require(name), ObjectId("0" * 64))
    work_one_turn(conversation, client, rounds)
    assert problems == [f"staging of {SESSION}: E001: Object {'0' * 64} does not exist."]
    assert ctx("stage", "recover", SESSION).code == 0
    work(client, rounds)
    assert chains(ctx)[SESSION]["files"] == 1
    assert observations(ctx) == {"user": set(), "project": {"observation", "summary"}}
