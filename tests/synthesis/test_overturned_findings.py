"""Findings that later steps of a session overturn are not kept."""

import pytest

from ctx.synthesis.observations import Synthesis
from ctx.synthesis.synthesise import synthesise
from tests.synthesis.session_scripts import session, steps

RED = (
    "\n  failed 1\n  finding: tests/test_a.py:3 | AssertionError | 1 == 2 | tests/test_a.py::test_x"
)
EDIT = "write: src/a.py +1 -1\n  modified function f ()\n  - return 1\n  + return 2"
PASS = "run: pytest\n  passed"


def synthesised(*lines: str) -> Synthesis:
    return synthesise(session(), steps("\n".join(lines)), is_over=True)


def titles(found: Synthesis, kind: str) -> list[str]:
    return [each.title for each in found.observations if each.kind == kind]


def still_failing(*lines: str) -> list[str]:
    summary = synthesised("prompt: Sort the list", "write: src/b.py +1 -1", *lines).summary
    return [each for each in summary.next_steps if "still failed" in each] if summary else []


def attempts(*lines: str) -> list[str]:
    summary = synthesised("prompt: Sort the list", *lines).summary
    return [each for each in summary.notes if "in vain" in each] if summary else []


def test_a_new_failing_test_is_not_a_bug() -> None:
    test = "write: tests/test_a.py +3 -1\n  modified function test_x ()"
    built = "prompt: Let f return two", "write: src/b.py +1 -1"
    assert titles(synthesised(*built, test, f"run: pytest{RED}", EDIT, PASS), "bugfix") == []
    # Without a change to the test, the code was broken.
    assert titles(synthesised(*built, f"run: pytest{RED}", EDIT, PASS), "bugfix") == [
        'Fixed `test_x` in src/a.py: "AssertionError: 1 == 2"'
    ]


@pytest.mark.parametrize(
    ("passing", "told"),
    [
        ("pytest", "`test_x` is flaky: it failed and passed without a change"),
        (
            "PYTHONPATH=src pytest",
            "`test_x` needs `PYTHONPATH`: it failed without and passed with it",
        ),
        ("uv run pytest", "`test_x` fails with `pytest` and passes with `uv run pytest`"),
        (
            "pytest tests/test_a.py",
            "`test_x` fails with `pytest` and passes with `pytest tests/test_a.py`",
        ),
    ],
)
def test_different_commands_do_not_make_a_test_flaky(passing: str, told: str) -> None:
    found = synthesised("prompt: Run the tests", f"run: pytest{RED}", f"run: {passing}\n  passed")
    assert titles(found, "discovery") == [told]


def test_a_reverted_fix_is_not_kept() -> None:
    fix = "prompt: Fix the test", f"run: pytest{RED}", EDIT, PASS
    assert len(titles(synthesised(*fix), "bugfix")) == 1
    for undoing in (
        "run: git checkout -- src/a.py",
        "run: git restore src/a.py",
        "run: git reset --hard",
        "run: git stash",
        "run: rm src/a.py",
        "write: src/a.py +1 -1\n  - return 2\n  + return 1",
    ):
        assert titles(synthesised(*fix, undoing), "bugfix") == []
    for other in (
        "run: git checkout -b feature",
        "run: git checkout -- src/other.py",
        "run: git stash list",
        "run: git stash\nrun: git stash pop",
        "run: rm /tmp/a.py.orig",
    ):
        assert len(titles(synthesised(*fix, other), "bugfix")) == 1


def test_a_check_that_passed_at_the_end_is_not_failing() -> None:
    fails = 'run: bun run lint\n  failed 1\n  printed error: script "lint" exited with code 1'
    assert still_failing(fails) == [
        "`bun run lint` still failed: \"error: script 'lint' exited with code 1\""
    ]
    assert still_failing(fails, "run: bun run lint\n  passed") == []
    # It ends with success once everything is fixed.
    assert still_failing(fails, "run: bun run lint:fix\n  passed") == []
    # Whether it passed behind the pipe is not known.
    assert still_failing(fails, "run: bun run lint | tail -3") == []
    # It fails if it could not fix everything; the check itself decides.
    fixing = 'run: bun run lint:fix\n  failed 1\n  printed error: script "lint:fix" exited'
    assert still_failing(fixing) == []


def test_a_command_that_cannot_run_is_not_a_failure_of_the_code() -> None:
    wrapped = "run: rtk bun run test\n  failed 2\n  printed error: unrecognized subcommand 'bun'"
    assert still_failing(wrapped, wrapped) == []
    found = synthesised("prompt: Fix it", wrapped, EDIT, "run: bun run test\n  passed")
    assert titles(found, "bugfix") == []
    assert (
        still_failing("run: rtk git add a.py\n  failed 1", "run: rtk git add a.py\n  failed 1")
        == []
    )
    typed = "run: python3 -c 'import yaml'\n  failed 1\n  printed ImportError: no yaml"
    assert still_failing(typed, typed) == []


def test_parts_of_a_chain_with_unknown_outcome_are_left_out() -> None:
    chain = "run: make lint && make test\n  failed 2"
    assert still_failing(chain) == []
    assert still_failing(f"{chain}\n  printed make: *** [Makefile:3: test] Error 1") == [
        "`make test` still failed"
    ]


def test_progress_is_not_a_failed_attempt() -> None:
    other = "  finding: src/b.py:9 | TS2304 | Cannot find name 'y' | "
    fails = "run: tsc\n  failed 2\n  finding: src/a.ts:3 | TS2304 | Cannot find name 'x' | "
    edit = "write: src/a.ts +1 -1\n  modified function f ()"
    elsewhere = "write: src/c.ts +1 -1\n  modified function g ()"
    assert len(attempts(fails, edit, fails)) == 1
    # Another error is gone.
    assert attempts(f"{fails}\n{other}", edit, fails) == []
    # The edit was about something else.
    assert attempts(fails, elsewhere, fails) == []
    lint = "run: eslint src\n  failed 1\n  finding: src/a.ts:3 | no-undef | x | "
    assert attempts(lint, edit, lint) == []


def test_edits_for_another_request_are_not_attempts() -> None:
    fails = f"run: pytest{RED}"
    other = "prompt: Now add a page for the orders of a customer"
    assert attempts(fails, other, EDIT, fails) == []


def test_changes_of_the_test_are_not_attempts() -> None:
    fails = f"run: pytest{RED}"
    test = "write: tests/test_a.py +3 -1\n  modified function test_x ()"
    assert attempts(fails, test, fails) == []
    assert len(attempts(fails, EDIT, fails)) == 1


def test_a_test_is_recognised_in_any_command_that_runs_it() -> None:
    wide = f"run: mise run test:integration{RED}"
    unrelated = "write: src/z.go +1 -1\n  modified function z ()"
    narrow = f"run: go test -run TestX ./a{RED}"
    found = synthesised(
        *("prompt: Fix it", wide, unrelated, narrow, "write: src/a.go +1 -1"),
        *("run: go test -run TestX ./a\n  passed", "run: mise run test:integration\n  passed"),
    )
    (fix,) = [each for each in found.observations if each.kind == "bugfix"]
    assert fix.files == ("src/a.go",)


def test_an_error_about_options_is_not_a_next_step() -> None:
    finding = "finding: apps/web/tsconfig.json:1 | TS6310 | may not disable emit | "
    options = f"run: tsc -b apps/web --noEmit\n  failed 1\n  {finding}"
    code = "run: tsc -b apps/web\n  failed 1\n  finding: src/a.ts:1 | TS2304 | no name | "
    assert still_failing(options) == []
    assert still_failing(code) == ['`tsc -b apps/web` still failed: "TS2304: no name"']


def test_of_two_similar_decisions_the_later_one_is_kept() -> None:
    found = synthesised(
        "prompt: Always use port 3000 for the dev server.",
        "say: OK, I will.",
        "prompt: No, always use port 4008 for the dev server.",
        "say: OK.",
    )
    assert len(titles(found, "decision")) == 1
    assert "4008" in titles(found, "decision")[0]


def test_a_session_that_was_killed_keeps_request_failure_and_files() -> None:
    summary = synthesised(
        "prompt: Round the tax up to whole cents",
        f"run: pytest{RED}",
        "say: The tax is rounded down. Let me change that.",
        EDIT,
        "write: src/tax.py +9 -0\n  new function round_up (cents) -> int",
    ).summary
    assert summary is not None
    assert summary.request == "Round the tax up to whole cents."
    assert summary.completed == ()
    assert summary.files_edited == ("src/tax.py", "src/a.py")
    assert summary.next_steps == (
        '`pytest` still failed: `test_x`: "AssertionError: 1 == 2"',
        "The session stopped after an edit of src/tax.py, without a report",
    )


def test_a_session_that_was_killed_completed_its_earlier_turns() -> None:
    summary = synthesised(
        "prompt: Add a function that rounds up",
        "write: src/tax.py +9 -0\n  new function round_up (cents) -> int",
        "say: Added `round_up` to src/tax.py.",
        "prompt: Now add a page with the orders of a customer",
        "say: Let me write the page.",
        "write: src/page.py +9 -0\n  new function show_orders (customer) -> str",
        "run: python -m shop\n  failed 1\n  printed no such module",
    ).summary
    assert summary is not None
    assert summary.completed == ("Added `round_up` to src/tax.py",)
    assert summary.next_steps[-1:] == (
        "The session stopped after `python -m shop` failed, without a report",
    )


@pytest.mark.parametrize(
    "end",
    [
        "say: Added `round_up`.",
        PASS,
        "run: git commit -m 'Round up'",
        "say: Added `round_up`.\nrun: git push",
        "prompt: Thanks, that is all for the tax",
        "say: Let me write a plan.\nwrite: /home/me/.claude/plans/tax.md +20 -0",
        "say: Let me check it.\nrun: ls src",
    ],
)
def test_a_session_with_a_proper_end_was_not_killed(end: str) -> None:
    edit = "write: src/tax.py +9 -0\n  new function round_up (cents) -> int"
    summary = synthesised(
        "prompt: Round the tax up", "say: I have added `round_up`.", edit, end
    ).summary
    assert summary is not None
    assert summary.completed
    assert not [each for each in summary.next_steps if "stopped" in each]


REVIEW = (
    "say: I looked at src/tax.py and src/page.py.",
    "  | ## Summary of changes",
    "  | - `round_up` has no unit tests",
    "  | - `show_orders` now reads all orders before it checks the customer",
    "  | - `Tax.total` is called twice for each page",
)
FINDINGS = (
    "`round_up` has no unit tests",
    "`show_orders` now reads all orders before it checks the customer",
    "`Tax.total` is called twice for each page",
)


def test_a_review_has_findings_and_no_completed_work() -> None:
    summary = synthesised("prompt: Review the branch", "read: src/tax.py", *REVIEW).summary
    assert summary is not None
    assert summary.completed == ()
    assert sorted(summary.learned) == sorted(FINDINGS)


def test_the_findings_of_a_review_are_not_completed_by_later_work() -> None:
    later = (
        "prompt: Write a page with the prices",
        "write: src/b.py +3 -0\n  new function show_prices () -> str",
        "say: Added `show_prices` to src/b.py.",
    )
    summary = synthesised("prompt: Review the branch", "read: src/tax.py", *REVIEW, *later).summary
    assert summary is not None
    assert summary.completed == ("Added `show_prices` to src/b.py",)
