"""Rules and corrections in prompts, and the statements that they dispute."""

import pytest

from ctx.synthesis import session_excerpts, synthesise
from ctx.synthesis.check_commands import checks
from ctx.synthesis.observations import Observation
from ctx.synthesis.statements import with_statements
from tests.synthesis.session_scripts import session, steps


def observations_of(script: str) -> list[Observation]:
    taken = steps(script)
    found = synthesise.synthesise(session(), taken, is_over=True)
    excerpts = session_excerpts.excerpts(taken)
    return list(with_statements(found, taken, excerpts, is_over=True).observations)


def test_a_short_correction_is_kept_in_addition_to_the_request() -> None:
    script = """
prompt: The page with the free berths is slow.
say: I would cache the free berths in Redis. Shall I start?
prompt: No Redis, the harbour has one box and one SQLite file. Index it.
write: src/store.py +1 -0
say: The table has an index now.
"""
    (correction,) = [each for each in observations_of(script) if each.kind == "correction"]
    assert correction.text.startswith("No Redis")


def test_a_rule_begins_at_the_sentence_that_forbids_something() -> None:
    script = """
prompt: Add a way to cancel a booking. We never delete rows of bookings. Use cents everywhere.
write: src/booking.py +4 -0
say: Bookings can be cancelled.
"""
    texts = [each.text for each in observations_of(script) if each.kind in ("rule", "decision")]
    assert not [text for text in texts if text.startswith("Add a way")]


@pytest.mark.parametrize(
    "prompt",
    [
        "Rules: migrations stay untouched, money is integer cents.",
        "A few things before you start: the box only has busybox.",
        "I commit, you don't.",
        "I format the card in the camera myself.",
        "Remember, it is busybox.",
        "I told you before.",
        "Never push.",
        "Never push to main.",
        "Always ask first.",
    ],
)
def test_rules_are_recognised(prompt: str) -> None:
    assert session_excerpts.is_rule(prompt)


@pytest.mark.parametrize(
    "prompt", ["I fixed it myself.", "I will test it myself.", "Fix it.", "Never mind."]
)
def test_other_prompts_are_not_rules(prompt: str) -> None:
    assert not session_excerpts.is_rule(prompt)


TAXED = """
prompt: Add the tax to all orders of the shop.
write: src/tax.py +3 -1
say: All orders have the tax now, and I made a commit.
"""


def test_a_short_correction_takes_back_what_was_said_before_it() -> None:
    undone = steps(f"{TAXED}prompt: Undo the commit.\nsay: It is undone.")
    report, correction = session_excerpts.excerpts(undone)[1:3]
    assert (correction.kind, correction.text) == ("correction", "Undo the commit.")
    assert report.is_disputed
    assert report.is_reversed
    # What it means is in the conversation around it.
    assert correction.worth < session_excerpts.LEAST_WORTH
    assert "Undo the commit." not in [
        each.text for each in observations_of(f"{TAXED}prompt: Undo the commit.")
    ]


def test_a_short_rule_is_kept() -> None:
    rules = [
        each for each in observations_of(f"{TAXED}prompt: No mocks!\nsay: OK.") if each.is_lasting
    ]
    assert [each.title for each in rules] == ["No mocks!"]


@pytest.mark.parametrize("prompt", ["yes", "no thanks", "commit", "ok lets try it", "but why?"])
def test_a_short_answer_says_nothing(prompt: str) -> None:
    said = session_excerpts.excerpts(steps(f"{TAXED}prompt: {prompt}\nsay: OK."))
    assert prompt not in [each.text for each in said]


def test_a_short_prompt_without_work_before_it_corrects_nothing() -> None:
    said = session_excerpts.excerpts(steps("prompt: Undo the commit.\nsay: It is undone."))
    assert "Undo the commit." not in [each.text for each in said]


def test_a_question_is_a_correction_only_if_it_criticises() -> None:
    assert not session_excerpts.is_corrective("Should they go into the same folder?")
    assert session_excerpts.is_corrective("Why do you use npm?")


@pytest.mark.parametrize(
    ("said", "prompt"),
    [
        ("I would cache the free berths in Redis.", "No Redis, the harbour has one box."),
        ("The export is written, and I committed it.", "I commit. Undo the commit."),
        ("The mirror plan of Tom works well with cron.", "nah, lets drop the plan of Tom, no cron"),
    ],
)
def test_a_statement_that_the_next_prompt_rejects_is_disputed(said: str, prompt: str) -> None:
    script = f"prompt: What now with all of it?\nsay: {said}\nprompt: {prompt}\nsay: Done.\n"
    (excerpt,) = [each for each in session_excerpts.excerpts(steps(script)) if each.text == said]
    assert excerpt.is_disputed


@pytest.mark.parametrize("command", ["./tests/run.sh", "sh tests/run.sh", "bash test/all.sh"])
def test_a_script_that_runs_all_tests_is_a_test(command: str) -> None:
    assert [(check.goal, check.targets) for check in checks(command)] == [("test", ())]


def test_another_script_in_the_tests_folder_is_not_a_test() -> None:
    assert [check.goal for check in checks("sh tests/prepare_disk.sh")] == ["run"]
