"""A text is split into passages of whole sentences with a maximum length."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.synthesis.sentences import LONGEST, passages
from tests import effort

PIECES = st.sampled_from(
    [
        *("A sentence about the exporter. ", "word ", "x" * 500, "\n", "\n\n", "- item\n", "1. "),
        *("# Heading\n", "```\ncode\n```\n", "```py\n", "~~~\n", "| a |\n", "é", "統", "\0", "\t"),
        *("`code` ", "e.g. ", "…", "!", "? ", ": ", "\u2028", "\r\n"),
    ]
)
TEXTS = st.one_of(st.text(max_size=900), st.lists(PIECES, max_size=80).map("".join))


def test_a_text_is_split_at_paragraphs_items_and_sentences() -> None:
    long = "The exporter waits for the network before it writes. " * 12
    text = f"First paragraph of some length.\n\n{long}\n- one item of a list\n- another item"
    found = passages(text)
    assert found[0] == "First paragraph of some length."
    assert all(each.startswith("The exporter waits") for each in found[1:-1])
    assert all(each.endswith("it writes.") for each in found[1:-1])
    assert found[-1].endswith("- one item of a list\n- another item")


def test_code_and_short_texts_are_left_out() -> None:
    assert passages("ok") == []
    text = "This is how it is called:\n```py\nexport(rows)\n```\nIt returns the number of rows."
    assert passages(text) == ["This is how it is called:\nIt returns the number of rows."]
    assert passages("It never ends, as it seems:\n```\nexport(rows)\n") == [
        "It never ends, as it seems:"
    ]


@settings(max_examples=effort.times(100), deadline=None, derandomize=True)
@given(TEXTS)
def test_any_text_can_be_split(text: str) -> None:
    found = passages(text)
    assert all(20 <= len(each) <= LONGEST for each in found)
    # Nothing is made up, and nothing is said in another order.
    whole, at = "".join(text.split()), 0
    for word in " ".join(found).split():
        at = whole.find(word, at)
        assert at >= 0, word
        at += len(word)


def test_a_long_text_is_split_quickly() -> None:
    for piece in ("```a\n", "~~~\n```x\n", "\n", "\n \n", "- ", "a. ", "word ", "x", "#\n", "\t\n"):
        began = time.process_time()
        passages((piece * 300_000)[:300_000])
        assert time.process_time() - began < 1
