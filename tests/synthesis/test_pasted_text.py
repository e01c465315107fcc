"""Typed and pasted parts of a prompt."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.synthesis.pasted_text import line_keys, split_pasted
from tests import effort

PLAN = "# Plan: retries\n\n1. Cache the rows in Redis.\n2. Always commit after each step."
LOG = """12:00:01 starting the exporter
12:00:02 error: the queue is full
12:00:03 retrying in 5 seconds"""
TRACE = """Traceback (most recent call last):
  File "src/export.py", line 3, in main
  File "src/queue.py", line 9, in put
src/queue.py:9: QueueFull"""
TABLE = "| key | value |\n| --- | --- |\n| rows | 100 |"
REVIEW = "Medium severity: consider adding a timeout to `export`."
PROSE = (
    "Issue 12. The exporter drops rows when the network is slow. The expected result is that every"
    " row arrives, in order, exactly once, and that the command exits with 0 in the end."
)


@pytest.mark.parametrize(
    "prompt",
    [
        "Never commit yourself, I review every change first.",
        "no, use pnpm instead",
        "Why are you adding a dependency?\n\nWe agreed on the standard library.",
        "- keep the tests small\n- and please do not mock the store",
    ],
)
def test_typed_text_is_recognised(prompt: str) -> None:
    assert split_pasted(prompt) == (prompt, "")


@pytest.mark.parametrize("pasted", [PLAN, LOG, TRACE, TABLE, REVIEW, PROSE, f"```\n{LOG}\n```"])
def test_pasted_text_is_recognised_by_its_form(pasted: str) -> None:
    own, other = split_pasted(pasted)
    assert own == ""
    assert other.split() == pasted.split() or pasted.startswith("```")


@pytest.mark.parametrize("pasted", [PLAN, TABLE, f"```\n{LOG}\n```"])
def test_typed_text_above_pasted_text_is_separated(pasted: str) -> None:
    own, other = split_pasted(f"please do this, but never commit:\n\n{pasted}")
    assert own == "please do this, but never commit:"
    assert "never commit" not in other


def test_text_that_the_session_printed_before_is_pasted() -> None:
    answer = "The exporter should always cache its rows in Redis first.\nIt never needs a lock."
    printed = line_keys(answer)
    assert split_pasted(answer) == (answer, "")
    assert split_pasted(answer, printed) == ("", answer)
    quoted = "\n".join(f"> {line}" for line in answer.splitlines())
    assert split_pasted(quoted, printed)[0] == ""


@settings(max_examples=effort.times(100), deadline=None, derandomize=True)
@given(
    st.lists(
        st.sampled_from([PLAN, LOG, TRACE, TABLE, REVIEW, "\n\n", "I want it. ", "x", "```", "# "]),
        max_size=12,
    ).map("".join)
    | st.text(max_size=400),
    st.sets(st.text(max_size=40), max_size=3),
)
def test_any_prompt_can_be_split(prompt: str, printed: set[str]) -> None:
    own, pasted = split_pasted(prompt, printed)
    known = set(prompt.split())
    assert all(any(word in whole for whole in known) for word in (own + " " + pasted).split())


@pytest.mark.timeout(600)
def test_a_long_prompt_takes_linear_time() -> None:
    """Less than a second; with quadratic time it takes longer than the limit."""
    for piece in ("\n", "\n \n", "| ", "|\n", "#\n", "```a\n", "a:1\n", "a\n\n"):
        split_pasted((piece * 150_000)[:150_000])
