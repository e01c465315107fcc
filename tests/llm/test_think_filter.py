"""Thoughts of a model are removed from its answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx.llm.event_stream import ThinkFilter


def filtered(*pieces: str, is_thinking: bool = False) -> list[str]:
    said: list[str] = []
    aloud = ThinkFilter(said.append, is_thinking=is_thinking)
    for piece in pieces:
        aloud.feed(piece)
    assert aloud.finish() == "".join(said)
    return said


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (("It is", " blue."), ["It is", " blue."]),
        (("<think>", "The sky", "</think>", "\n\n", "Blue."), ["Blue."]),
        (("\n<thi", "nk>a</thi", "nk>\n", " \n", "Blue", "."), ["Blue", "."]),
        (("<th", "e answer>"), ["<the answer>"]),
        (("<", "th"), ["<th"]),
        (("<think>it went on and on",), []),
        (("<think>a</think>", "\n"), []),
        (("Blue. <think>not", " a thought</think>"), ["Blue. <think>not", " a thought</think>"]),
        (("", ""), []),
    ],
)
def test_thoughts_before_an_answer_are_removed(
    pieces: tuple[str, ...], expected: list[str]
) -> None:
    assert filtered(*pieces) == expected


def test_thoughts_can_begin_in_the_prompt() -> None:
    assert filtered("so it is", "</think>Blue.", is_thinking=True) == ["Blue."]
    assert filtered("so it is", is_thinking=True) == []


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "a ", "\n", "think>", "é"])), st.data()
)
def test_the_result_does_not_depend_on_the_pieces(words: list[str], data: st.DataObject) -> None:
    text = "".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    for is_thinking in (True, False):
        whole = "".join(filtered(text, is_thinking=is_thinking))
        assert "".join(filtered(*pieces, is_thinking=is_thinking)) == whole
