import math

from hypothesis import given
from hypothesis import strategies as st

from ctx.tokens import estimate


@given(st.text())
def test_tokens_follow_the_definition(text: str) -> None:
    plain = sum(character < "\x80" for character in text)
    assert estimate(text) == math.ceil(plain / 3.5) + len(text) - plain


def test_examples_have_the_expected_tokens() -> None:
    assert [estimate(text) for text in ("", "a", "abcdefg", "abcdefgh", "再試行", "é!")] == [
        0,
        1,
        2,
        3,
        3,
        2,
    ]


@given(st.text(), st.text())
def test_a_longer_text_never_costs_less(one: str, two: str) -> None:
    assert estimate(one + two) >= max(estimate(one), estimate(two))
