"""Steps as they are stored and read."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.capture import steps
from ctx.capture.steps import Step, SuccessfulStep
from ctx.sqlite.connection import transaction
from tests import effort
from tests.memory import graphs

# What is kept has no half of a character, and no zero: SQLite would end a text there.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
STEPS = st.builds(
    Step,
    id=st.just(""),
    session=st.just("s"),
    at=st.just("2026-01-20T10:00:00Z"),
    kind=st.sampled_from(["prompt", "say", "read", "write", "command", "mark"]),
    text=TEXTS,
    path=TEXTS,
    ok=st.booleans(),
    output=TEXTS,
    passed=st.sampled_from([True, False, None]),
)


@settings(max_examples=effort.times(25), deadline=None)
@given(st.lists(STEPS, max_size=6))
def test_successful_steps_are_the_steps_without_an_error(taken: list[Step]) -> None:
    with graphs.graph() as graph, transaction(graph.connection):
        graph.connection.executemany(
            "INSERT INTO events (id, session, event, at, status, body)"
            " VALUES (?, 's', 'PostToolUse', '', 'step', ?)",
            [(f"{number:013d}-1-0", steps.body(step)) for number, step in enumerate(taken)],
        )
        found = steps.successful_steps(graph.connection, "s")
        expected = [
            SuccessfulStep(step.kind, step.text, step.path, step.passed is True)
            for step in steps.of_session(graph.connection, "s")
            if step.kind in ("command", "write") and step.ok
        ]
    assert found == expected
