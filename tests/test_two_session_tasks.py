"""`python -m bench tasks`: the tasks can be solved, only with what the first session said."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import tasks
from bench.task_agent import Attempt, Limits, Session
from bench.task_script import ScriptedModel
from bench.two_session_tasks import Task, all_tasks, write
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.prices import Prices
from ctx.llm.protocol import Meter
from ctx.llm.scripted_backend import ScriptedBackend

TASKS = all_tasks()
LIMITS = Limits(turns=4, answer_tokens=500)


@pytest.fixture
def meter(tmp_path: Path) -> Iterator[Meter]:
    target = ModelTarget("scripted", "a script", "scripted")
    with Ledger(str(tmp_path / "ledger.db")) as ledger:
        yield ledger.meter(Purpose("llm"), target, Caps(10**9), Prices(()))


def test_there_are_several_tasks_of_several_kinds_and_languages() -> None:
    assert len(TASKS) >= 12
    assert len({task.kind for task in TASKS}) >= 5
    assert len({task.language for task in TASKS}) >= 5


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_check_accepts_the_right_answer_alone(task: Task, folder: Path) -> None:
    task.write_files(folder)
    assert not task.is_solved(folder)
    write(folder, task.scripted.wrong_path, task.scripted.wrong)
    assert not task.is_solved(folder)
    write(folder, task.scripted.path, task.scripted.right)
    assert task.is_solved(folder)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_only_the_first_session_has_what_a_task_needs(task: Task) -> None:
    known = [task.prompt, *task.files, *task.files.values()]
    assert not [text for text in known if re.search(task.scripted.needs, text)]
    said = " ".join(value for step in task.first for value in step.values())
    assert re.search(task.scripted.needs, said)


def run(folder: Path, meter: Meter, *answers: str) -> tuple[Attempt, list[str]]:
    """Play a session with these answers; what the model was shown."""
    backend = ScriptedBackend(answers)
    session = Session(folder, "Do it.", "", lambda question: f"nothing about {question}")
    attempt = session.play(backend, meter, LIMITS)
    return attempt, [request.prompt for request in backend.requests]


def test_an_agent_reads_writes_and_recalls(folder: Path, meter: Meter) -> None:
    write(folder, "a.txt", "one\n")
    attempt, prompts = run(
        folder, meter, "READ a.txt", "RECALL two", "WRITE b/c.txt\n```text\nthree\n```", "DONE"
    )
    assert attempt.turns == 4
    assert attempt.tokens > 0
    assert prompts[1].endswith("READ a.txt\n\nIts result:\none\n\n")
    assert prompts[2].endswith("nothing about two\n")
    assert (folder / "b" / "c.txt").read_text() == "three\n"


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("WRITE ../out.txt\nx", "../out.txt cannot be written"),
        ("WRITE /etc/hosts\nx", "/etc/hosts cannot be written"),
        ("WRITE .git/config\nx", ".git/config cannot be written"),
        ("WRITE \nx", "cannot be written"),
        ("READ ../ledger.db", "There is no file ../ledger.db."),
        ("READ link", "There is no file link."),
        ("READ \0", "There is no file"),
        ("I would write a file.", "This is not an action."),
    ],
)
def test_an_action_outside_of_the_repository_is_refused(
    folder: Path, meter: Meter, answer: str, result: str
) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    _, prompts = run(folder, meter, answer, "DONE")
    assert result in prompts[1]
    assert [path.name for path in folder.iterdir()] == ["link"]


def test_a_model_that_fails_is_an_unsolved_task(folder: Path, meter: Meter) -> None:
    attempt, _ = run(folder, meter, "READ a.txt")
    assert attempt.problem == "The script has no more replies."


def outcome(name: str, with_ctx: bool, without: bool, tokens: int) -> tasks.Outcome:
    attempts = Attempt(2, tokens), Attempt(1, 100)
    return tasks.Outcome(name, "rule", "Python", with_ctx, without, *attempts)


def test_rounds_of_a_task_count_once() -> None:
    outcomes = [
        outcome("a", True, False, 200),
        outcome("a", False, False, 400),
        outcome("b", True, True, 300),
    ]
    success, tokens, turns = tasks.measures(outcomes)
    assert (success.with_ctx, success.without) == ([0.5, 1.0], [0.0, 1.0])
    assert (tokens.with_ctx, turns.with_ctx) == ([300.0, 300.0], [2.0, 2.0])


def test_a_share_of_few_tasks_has_a_wide_interval() -> None:
    assert tasks.share([1.0] * 14) == pytest.approx((1.0, 0.785, 1.0), abs=0.001)
    assert tasks.share([0.0] * 4) == pytest.approx((0.0, 0.0, 0.490), abs=0.001)
    assert tasks.share([1.0, 0.0]) == pytest.approx((0.5, 0.095, 0.905), abs=0.001)


@pytest.mark.slow
def test_a_scripted_model_needs_ctx(
    meter: Meter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CTX_WORKER_AUTOSTART")
    [task] = [task for task in TASKS if task.name == "rule_money"]
    played = tasks.play(task, ScriptedModel(task), meter, LIMITS)
    assert (played.is_solved_with, played.is_solved_without) == (True, False)
