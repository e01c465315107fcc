"""Text that a person marked as private is removed, whatever surrounds it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.capture.private_text import without_private
from tests import effort


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a<private>b</private>c", "ac"),
        ("a<PRIVATE>b</Private >c", "ac"),
        ('a<private why="x">b</private>c', "ac"),
        ("a<private>b", "a"),
        ("a<private>b<private>c</private>d</private>e", "ae"),
        ("a<private>b<private>c</private>d", "a"),
        ("a</private>b", "b"),
        ("a<private>b</private>c</private>d<private>e", "d"),
        ("a <privateer> b", "a <privateer> b"),
        ("one <private>two\nthree</private> four\n<private>five</private>", "one  four\n"),
    ],
)
def test_private_text_is_removed(text: str, left: str) -> None:
    assert without_private(text) == left


PIECES = st.lists(st.sampled_from(("<private>", "</private>", "open ", "<", "private>", "\n")))


@settings(max_examples=effort.times(60), deadline=None, derandomize=True)
@given(PIECES)
def test_nothing_inside_of_private_marks_is_left(pieces: list[str]) -> None:
    depth = 0
    left: list[str] = []
    text = "".join(pieces)
    # What two pieces make together is an edge as well.
    for part in text.replace("<private>", "\0+\0").replace("</private>", "\0-\0").split("\0"):
        if part == "+":
            depth += 1
        elif part == "-":
            left = left if depth else []
            depth = max(0, depth - 1)
        elif not depth:
            left.append(part)
    assert without_private(text) == "".join(left)


def test_long_texts_take_linear_time() -> None:
    assert without_private("<private" * 100_000) == "<private" * 100_000
    assert without_private("<private>" * 100_000) == ""
