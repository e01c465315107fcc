"""Synthesis of any steps is fast, and its result is short and valid."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.capture.steps import Kind, Step, StepFinding, SymbolChange
from ctx.synthesis.observations import (
    LONGEST_LINE,
    LONGEST_NAME,
    LONGEST_TEXT,
    LONGEST_TITLE,
    MOST_EVIDENCE,
    MOST_FILES,
    Synthesis,
)
from ctx.synthesis.summary import markdown
from ctx.synthesis.synthesise import synthesise
from tests import effort
from tests.synthesis.session_scripts import session

PHRASES = st.sampled_from(
    [
        *("Let's use ", "instead of ", "We decided to ", "from now on ", "No, use ", "because "),
        *("The problem is that ", "Turns out ", "`Client.get` ", "src/a.py ", "```\n", "> ", "- "),
        *("## Next steps\n", "always ", "never ", "option 2", "yes", "? ", ". ", "\n\n", "**", "`"),
        *("Fixed ", "Added ", "still fails ", "I'll ", "x" * 500, "\0", "\ud800"[:0], "é", "統"),
    ]
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(PHRASES, max_size=30).map("".join))
COMMANDS = st.one_of(
    TEXTS,
    st.sampled_from(
        ["pytest", "pytest -x a.py", "cargo test", "go vet ./...", "make", "npm test", "cd a && b"]
    ),
)
PATHS = st.sampled_from(["src/a.py", "src/b.py", "tests/test_a.py", "/etc/x", "../y", "", "a b.c"])
NAMES = st.text(string.ascii_letters + "._:[]", max_size=12)
FINDINGS = st.builds(StepFinding, PATHS, st.none() | st.integers(0, 9), NAMES, TEXTS, NAMES)
CHANGES = st.builds(
    SymbolChange,
    st.sampled_from(["new", "modified", "deleted"]),
    st.sampled_from(["function", "class"]),
    NAMES,
    TEXTS,
    st.just(1),
)
KINDS: tuple[Kind, ...] = (
    *("prompt", "say", "read", "write", "command", "search", "plan", "agent", "mark"),
)


@st.composite
def sessions(draw: st.DrawFn) -> list[Step]:
    found = []
    for number in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(KINDS))
        step = Step(
            f"{1_794_700_800_000 + number}-1-0",
            "s1",
            f"2026-11-15T00:00:{number:02}.000Z",
            kind,
            draw(
                st.sampled_from(
                    ["", "TodoWrite", "TaskCreate", "TaskUpdate", "AskUserQuestion", "ExitPlanMode"]
                )
            ),
            agent=draw(st.sampled_from(["", "", "a1"])),
            text=draw(COMMANDS if kind == "command" else TEXTS),
            path=draw(PATHS),
        )
        if kind == "command":
            step = step._replace(
                ok=draw(st.booleans()),
                exit_code=draw(st.sampled_from([None, 0, 1])),
                passed=draw(st.sampled_from([None, True, False])),
                output=draw(TEXTS),
                findings=tuple(draw(st.lists(FINDINGS, max_size=3))),
            )
        if kind == "write":
            step = step._replace(
                changes=tuple(draw(st.lists(CHANGES, max_size=3))),
                added=draw(st.integers(0, 50)),
                removed=draw(st.integers(0, 50)),
                excerpt=draw(TEXTS),
            )
        found.append(step)
    return found


def is_in_form(found: Synthesis, steps: list[Step]) -> bool:
    there = {step.id for step in steps}
    for each in found.observations:
        assert 0 < len(each.title) <= LONGEST_TITLE
        assert "\n" not in each.title + each.text
        assert len(each.text) <= LONGEST_TEXT
        assert 0 < len(each.evidence) <= MOST_EVIDENCE
        assert there.issuperset(each.evidence)
        assert 0 < each.confidence <= 1000
        assert all(each.files)
    assert len({each.key for each in found.observations}) == len(found.observations)
    if summary := found.summary:
        assert 0 < len(summary.title) <= LONGEST_NAME
        assert 0 < len(summary.request) <= 2 * LONGEST_LINE
        for section in (*summary[2:6], summary.notes):
            assert all(0 < len(line) <= LONGEST_LINE for line in section)
        assert max(len(summary.files_read), len(summary.files_edited)) <= MOST_FILES
        assert markdown(summary).startswith("**Request:** ")
    return True


@settings(max_examples=effort.times(25), deadline=None)
@given(sessions())
def test_any_steps_give_a_valid_result(steps: list[Step]) -> None:
    for is_over in (False, True):
        found = synthesise(session(), steps, is_over=is_over)
        assert is_in_form(found, steps)
        assert found == synthesise(session(), steps, is_over=is_over)
        prompts = {" ".join(step.text.split()) for step in steps if step.kind == "prompt"}
        told = {f"{each.title} {each.text}".strip() for each in found.observations}
        assert not prompts & told


@settings(max_examples=effort.times(20), deadline=None)
@given(sessions())
def test_observations_of_a_running_session_are_kept_at_its_end(steps: list[Step]) -> None:
    """A running session gives no observation that its end would withdraw."""
    while_at_work = synthesise(session(), steps, is_over=False).observations
    at_the_end = synthesise(session(), steps, is_over=True).observations
    assert {each.key for each in while_at_work} <= {each.key for each in at_the_end}


ATTACKS = (
    "a " * 500_000,
    "`" * 1_000_000,
    "." * 1_000_000,
    "because " * 100_000,
    "let's use x instead of " * 40_000,
    "use " + "a" * 1_000_000,
    "- " * 400_000,
    "[" * 500_000 + "](" * 200_000,
    "**" * 400_000,
    "ok, " * 250_000,
    "I " * 400_000,
    "> " * 400_000,
    "\n" * 1_000_000,
    "i've " * 200_000,
    "no, please " * 90_000,
    "the actual " * 90_000 + "problem",
    "<" * 1_000_000,
    "1. " * 300_000,
    " " * 1_000_000 + "x",
    "'" * 1_000_000,
    'a="' * 300_000,
    "x=1 " * 250_000,
    "sudo " * 200_000,
    "統" * 1_000_000,
    "_a" * 500_000,
)


HEADS = (
    *("", "hi ", "ok, ", "I ", "let's use ", "always ", "the problem is ", "all ", "no, ", "I'll "),
    *("use x instead of ", "Fixed ", "next ", "thanks ", "option 1 ", "don't ", "wir ", "(", "`"),
)


def test_hostile_texts_take_linear_time() -> None:
    """With quadratic time, this would take minutes."""
    for text in ATTACKS:
        for kind in ("prompt", "say", "command", "plan"):
            step = Step("1794700800000-1-0", "s1", "2026-11-15T00:00:00Z", kind, text=text)
            asked = step._replace(kind="prompt", text="Fix the tests in src/a.py please")
            failing = step._replace(output=text, ok=False, excerpt=text, path="src/a.py")
            steps = [asked, failing, step._replace(kind="write", path="src/a.py"), step]
            assert is_in_form(synthesise(session(), steps, is_over=True), steps)


@pytest.mark.slow
def test_hostile_sentences_take_little_time() -> None:
    """Patterns are applied to sentences up to a maximum length."""
    units = [attack[:24] for attack in ATTACKS[::2]]
    units += ["1", "11 ", "a", "A_", "an ", "the ", "error ", "tests ", "We ", "never use ", "en "]
    for unit in units:
        told = "\n\n".join(f"{head}{unit * 400}"[:390] + "!" for head in HEADS)
        first = Step("1794700800000-1-0", "s1", "2026-11-15T00:00:00Z", "prompt", text=told)
        steps = [first, first._replace(kind="read", path="a.py"), first._replace(kind="say")]
        assert is_in_form(synthesise(session(), steps, is_over=True), steps)


@pytest.mark.slow
def test_a_very_long_session_is_synthesised_quickly() -> None:
    steps = []
    for number in range(4_000):
        at = f"2026-11-15T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000Z"
        base = Step(f"{1_794_700_800_000 + number}-1-0", "s1", at, "say")
        test = StepFinding("src/a.py", 1, "KeyError", f"'{number}'", f"tests/a.py::test_{number}")
        match number % 4:
            case 0:
                steps.append(
                    base._replace(kind="prompt", text=f"Let's use x{number} instead of y.")
                )
            case 1:
                text = f"pytest tests/a.py::test_{number}"
                failed = base._replace(kind="command", text=text, ok=False, findings=(test,) * 10)
                steps.append(failed)
            case 2:
                change = SymbolChange("new", "function", f"f{number}", "()", 1)
                path = f"src/m{number}.py"
                steps.append(base._replace(kind="write", path=path, changes=(change,), added=3))
            case _:
                steps.append(base._replace(text=f"Turns out `f{number}` only works because of 3."))
    found = synthesise(session(), steps, is_over=True)
    assert is_in_form(found, steps)
    assert found.summary is not None
    assert found.summary.more_edited == 1_000 - MOST_FILES
