"""Bytes from a server, read as events."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.llm.event_stream import StreamError, read_events

LARGEST = 8_000_000

objects = st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.none(), max_size=3)


def read(stream: bytes, cuts: list[int] | None = None) -> tuple[list[dict[str, Any]], str]:
    """The events of a stream that arrives in these pieces, and the reason of an early end."""
    places = sorted({cut % (len(stream) + 1) for cut in cuts or []})
    ends = [*places, len(stream)]
    pieces = [stream[at:end] for at, end in zip([0, *places], ends, strict=True)]
    found = []
    try:
        for event in read_events(pieces, LARGEST):
            found.append(event)  # noqa: PERF402
    except StreamError as broken:
        return found, broken.what
    return found, ""


def sent(values: list[dict[str, Any]], newline: str, is_spaced: bool) -> bytes:
    begin = "data: " if is_spaced else "data:"
    lines = [f"{begin}{json.dumps(value, ensure_ascii=False)}" for value in values]
    return "".join(line + newline * 2 for line in lines).encode("utf-8", "replace")


@settings(deadline=None)
@given(
    st.lists(objects, min_size=1, max_size=4),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.lists(st.integers(0), max_size=8),
)
def test_events_are_read_from_any_pieces(
    values: list[dict[str, Any]], newline: str, is_spaced: bool, cuts: list[int]
) -> None:
    # Half a character cannot be sent.
    values = json.loads(json.dumps(values, ensure_ascii=False).encode("utf-8", "replace"))
    stream = sent(values, newline, is_spaced)
    assert read(stream, cuts) == (values, "")
    assert read(b"\xef\xbb\xbf" + stream + b"data: [DONE]\n\ndata: {nothing", cuts) == (values, "")
    noisy = stream.replace(b"data:", b": waiting\nevent: chunk\nid: 7\ndata:")
    assert read(noisy, cuts) == (values, "")


@settings(deadline=None)
@given(objects, st.lists(st.integers(0), max_size=8), st.integers(0, 8))
def test_a_whole_answer_is_one_event(value: dict[str, Any], cuts: list[int], spaces: int) -> None:
    stream = json.dumps(value, indent=spaces).encode()
    assert read(b"\n " + stream + b"\n", cuts) == ([json.loads(stream)], "")


BYTES = st.binary() | st.lists(
    st.sampled_from([b"data: ", b"{", b"}", b'"a"', b":", b"1", b"\n", b"\r", b"[DONE]", b"\xff"])
).map(b"".join)


@settings(deadline=None)
@given(BYTES, st.lists(st.integers(0), max_size=8))
def test_any_bytes_are_events_or_a_reason(stream: bytes, cuts: list[int]) -> None:
    found, why = read(stream, cuts)
    assert (found, why) == read(stream), "however it is cut up"
    assert all(isinstance(event, dict) for event in found)
    assert why.isprintable()


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        # One event on several lines; one without an end; a field without a value.
        (b'data: {"a":\ndata: 1}\n\n', ([{"a": 1}], "")),
        (b'data: {"a": 1}', ([{"a": 1}], "")),
        (b'event\n\ndata: {"a": 1}\n\n', ([{"a": 1}], "")),
        (b"data: [DONE]", ([], "")),
        (b": nothing but waiting\n\n", ([], "")),
        (
            b'data: {"a": 1}\n\ndata: {"b": \xc3',
            ([{"a": 1}], "ended its answer in the middle of a line"),
        ),
        (b'data: {"a": 1}\n\ndata: 7\n\n', ([{"a": 1}], "answered with JSON that is no object: 7")),
        (b'{"a": 1}{"a": 2}', ([], 'answered with invalid JSON: {"a": 1}{"a": 2}')),
        (b'{"a": ' + b"1" * 5_000 + b"}", ([], f'answered with invalid JSON: {{"a": {"1" * 794}')),
    ],
)
def test_variants_of_servers_are_read(stream: bytes, expected: tuple[list[Any], str]) -> None:
    assert read(stream) == expected


def test_a_line_that_arrives_byte_by_byte_takes_linear_time() -> None:
    """With quadratic time, a megabyte in single bytes would take hours."""
    stream = b'data: {"a": "' + b"x" * 300_000 + b'"}\n\n'
    [event] = read_events((stream[at : at + 1] for at in range(len(stream))), LARGEST)
    assert event == {"a": "x" * 300_000}
