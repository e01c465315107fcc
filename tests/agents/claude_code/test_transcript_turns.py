"""Transcripts of real clients, and damaged transcripts."""

import json
import os
import random
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import clock
from ctx.agents.claude_code.transcripts import LINES
from ctx.hosts.transcript_reader import LONGEST_LINE
from ctx.hosts.transcripts import Message, Turn, has_final
from ctx.hosts.turn_lines import FURTHEST
from tests import effort

last_turn, since = LINES.last_turn, LINES.since
SAMPLES = Path(__file__).parents[2] / "golden" / "claude_code" / "transcripts"
SOON = clock.monotonic() + 3600
MEGABYTE = 1024 * 1024

Messages = list[tuple[int, str]]


def stub(messages: Messages) -> tuple[Message, ...]:
    return tuple(Message(f"msg_stub{number:018}", text) for number, text in messages)


# What was said in all of a conversation, and how many of those messages are the last turn's.
CONVERSATIONS: dict[str, tuple[Messages, int]] = {
    "after_clear": ([], 0),
    "basic_tools": ([(2, "Running a command."), (14, "First para.\n\nSecond para: done.")], 2),
    "client_2.0.47": ([(4, "Run."), (6, "Done.")], 2),
    # Each run of the program that stood in for the model numbered its messages from 1.
    "resume_compact": (
        [(1, f"{number} answer.") for number in ("First", "Second", "Third")]
        + [(1, "after compact answer")],
        1,
    ),
    "subagent": ([], 0),
    "with_subagent": ([(2, "Delegating."), (6, "Main done.")], 2),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_is_read(name: str) -> None:
    path = str(SAMPLES / f"{name}.jsonl")
    said, last = CONVERSATIONS[name]
    assert since(path, 0, None, SOON) == Turn(stub(said), "")
    assert last_turn(path, None, SOON) == Turn(stub(said[len(said) - last :]), "")


def test_a_part_of_a_conversation_is_read() -> None:
    path = str(SAMPLES / "resume_compact.jsonl")
    second_answer = (3123, 4396)
    assert since(path, *second_answer, SOON) == Turn(stub([(1, "Second answer.")]), "")
    assert last_turn(path, 4396, SOON) == Turn(stub([(1, "Second answer.")]), "")
    assert last_turn(path, 3123, SOON) == Turn((), "")
    assert since(path, 4396, 4396, SOON) == Turn((), "")
    assert since(path, -5, 10**12, SOON) == since(path, 0, None, SOON)


@pytest.mark.parametrize(
    ("text", "last", "expected"),
    [
        ("Done.", "Done.", True),
        ("Done.\n", " Done.\n\n", True),
        ("First.\n\nLast.", "Last.", True),
        ("First.\n\nLast.", "First.\nLast.", True),
        ("First.\n\nLast.", "First.", False),
        ("Undone.", "done.", False),
        ("Done.", "", True),
        ("cut \ufffd", "cut \ud83d", True),
    ],
)
def test_the_final_message_is_recognised(text: str, last: str, expected: bool) -> None:
    earlier = Message("a", "Something else.")
    assert has_final(Turn((earlier, Message("b", text)), ""), last) == expected
    assert not has_final(Turn((Message("b", text), earlier), ""), last or "more")
    assert has_final(Turn((), ""), last) == (not last)


def prompt(text: str = "Go on", **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


def block(message_id: str, *texts: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    message = {"id": message_id, "role": "assistant", "content": content}
    return {"type": "assistant", "message": message, **more}


RESULT = prompt() | {"message": {"content": [{"type": "tool_result", "content": "user"}]}}


def write(path: Path, *entries: dict[str, Any] | bytes) -> str:
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in entries]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        # As the first clients wrote it: there is no id, so the line names itself.
        (
            [
                {"type": "user", "message": {"content": "Go"}},
                {"type": "assistant", "message": {"content": "One."}},
                {"type": "assistant", "uuid": "u-2", "message": {"content": "Two."}},
            ],
            [("47", "One."), ("u-2", "Two.")],
        ),
        # Blocks of one message, with what a tool gave between them.
        (
            [block("a", "One."), block("b", "Two."), RESULT, block("a", "", "Three.", " \n")],
            [("a", "One.\n\nThree."), ("b", "Two.")],
        ),
        # A block that is written twice is there once.
        ([block("a", "One.", uuid="u"), block("a", "One.", uuid="u")], [("a", "One.")]),
        # An id that comes again behind a prompt is another message.
        ([block("a", "One."), prompt(), block("a", "Two.")], [("a", "One."), ("a", "Two.")]),
        # What the main thread did not say.
        (
            [
                block("a", "A subagent's.", isSidechain=True),
                block("b", "The client's.", isMeta=True),
                block("c", "An API error.") | {"message": {"model": "<synthetic>", "content": "x"}},
                block("d", "A copy of a request.") | {"type": "api-request-blob"},
                {"type": "attachment", "attachment": {"type": "assistant"}, "message": None},
                {"type": "assistant", "message": "assistant"},
                {"type": "assistant", "message": {"content": [7, {"type": "text", "text": 7}]}},
                {"type": "assistant", "message": {"content": None}},
                {"type": "assistant", "message": {"content": [{"type": "thinking"}]}},
                block("e", "Mine."),
            ],
            [("e", "Mine.")],
        ),
        # Half a character.
        ([block("a", "cut \ud83d")], [("a", "cut \ufffd")]),
    ],
)
def test_all_shapes_of_entries_are_read(
    entries: list[dict[str, Any]], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    path = write(tmp_path / "t.jsonl", *entries)
    found = since(path, 0, None, SOON)
    assert found.messages == tuple(Message(*each) for each in expected)
    assert found.problem == ""


def test_error_messages_of_the_client_are_not_those_of_the_agent(tmp_path: Path) -> None:
    synthetic = block("b", "") | {"message": {"model": "<synthetic>", "content": "Synthetic."}}
    failed = block("c", "Failed.", isApiErrorMessage=True)
    path = write(tmp_path / "t.jsonl", block("a", "Mine."), synthetic, failed)
    found = since(path, 0, None, SOON)
    assert (found.messages, set(found.errors)) == (
        (Message("a", "Mine."),),
        {"Synthetic.", "Failed."},
    )


@pytest.mark.parametrize(
    "entry",
    [
        prompt("<local-command-caveat>…", isMeta=True),
        prompt("This session is being continued", isCompactSummary=True),
        prompt("A subagent's", isSidechain=True),
        prompt(""),
        RESULT,
        prompt() | {"message": {"content": [{"type": "image"}]}},
        {"type": "queue-operation", "message": {"content": "user"}},
        {"type": "system", "subtype": "user"},
    ],
)
def test_other_entries_do_not_end_a_turn(entry: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", prompt(), block("a", "One."), entry, block("b", "Two."))
    assert last_turn(path, None, SOON) == Turn((Message("a", "One."), Message("b", "Two.")), "")


@pytest.mark.parametrize(
    "entry",
    [
        prompt("Go on"),
        prompt('Say "tool_result"'),
        prompt() | {"message": {"content": [{"type": "image"}, {"type": "text", "text": "See"}]}},
    ],
)
def test_a_prompt_ends_a_turn(entry: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", block("a", "One."), entry, block("b", "Two."))
    assert last_turn(path, None, SOON) == Turn((Message("b", "Two."),), "")


DAMAGED = "A line of the transcript is damaged."


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"type": "assistant", "message": {"id": "x", "content": "hal', DAMAGED),
        (b'{"type": "assistant", "message": {"content": "\xff"}}', DAMAGED),
        (b'{"type": "assistant", "message": ' + b"[" * 100_000, DAMAGED),
        (b'"assistant"', ""),
        (b'["assistant"]', ""),
        (b"", ""),
        (b"not JSON at all", ""),
        (b"\0" * 1000, ""),
    ],
)
def test_an_invalid_line_is_skipped(line: bytes, problem: str, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", block("a", "One."), line, block("b", "Two."))
    expected = Turn((Message("a", "One."), Message("b", "Two.")), problem)
    assert since(path, 0, None, SOON) == expected
    assert last_turn(path, None, SOON) == expected


def test_a_partial_line_is_read_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, block("a", "One."), block("b", "Two."))
    whole = path.read_bytes()
    one, two = Message("a", "One."), Message("b", "Two.")
    half = "The last line of the transcript is half-written."

    path.write_bytes(whole[:-10])
    assert since(str(path), 0, None, SOON) == Turn((one,), half)
    seen = path.stat().st_size
    path.write_bytes(whole)
    assert since(str(path), seen, None, SOON) == Turn((two,), "")

    # What lacks only the mark of its end is whole.
    path.write_bytes(whole[:-1])
    assert since(str(path), 0, None, SOON) == Turn((one, two), "")
    seen = path.stat().st_size
    path.write_bytes(whole)
    assert since(str(path), seen, None, SOON) == Turn((), "")


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    missing, fifo = tmp_path / "missing", tmp_path / "fifo"
    os.mkfifo(fifo)
    problems = {
        str(missing): f"There is no transcript {missing}.",
        f"{missing}/below": f"There is no transcript {missing}/below.",
        str(tmp_path): f"The transcript {tmp_path} is not a plain file.",
        str(fifo): f"The transcript {fifo} is not a plain file.",
        "/dev/zero": "The transcript /dev/zero is not a plain file.",
        "": "There is no transcript .",
        "a\0b": "The transcript a\0b cannot be opened: embedded null byte.",
        "x" * 5000: f"The transcript {'x' * 5000} cannot be opened: File name too long.",
    }
    for path, problem in problems.items():
        assert since(path, 0, None, SOON) == Turn((), problem)
        assert last_turn(path, None, SOON) == Turn((), problem)


def test_reading_ends_at_the_time_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", block("a", "One."))
    shorter = Turn((), "The transcript is shorter than it was.")
    assert since(path, 10_000, None, SOON) == shorter
    expected = Turn((), "Reading the transcript took too long.")
    assert since(path, 0, None, clock.monotonic()) == expected
    assert last_turn(path, None, clock.monotonic()) == expected


def test_only_the_end_of_a_large_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, block("a", "The first."))
    os.truncate(path, 500 * MEGABYTE)
    with path.open("ab") as file:
        for entry in (b"", prompt(), block("b", "One."), RESULT, block("c", "Two.")):
            file.write((entry if isinstance(entry, bytes) else json.dumps(entry).encode()) + b"\n")
    said = (Message("b", "One."), Message("c", "Two."))
    assert last_turn(str(path), None, SOON) == Turn(said, "")
    assert since(str(path), 500 * MEGABYTE, None, SOON) == Turn(said, "")
    limit = f"Only the last {FURTHEST // MEGABYTE} MB of the transcript were read."
    assert since(str(path), 0, None, SOON) == Turn(said, limit)


def test_a_message_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, block("a", "Its beginning."))
    os.truncate(path, FURTHEST + MEGABYTE)
    with path.open("ab") as file:
        for entry in (block("a", "Its end."), block("b", "One.")):
            file.write(b"\n" + json.dumps(entry).encode())
    limit = f"Only the last {FURTHEST // MEGABYTE} MB of the transcript were read."
    assert last_turn(str(path), None, SOON) == Turn((Message("b", "One."),), limit)


def test_a_huge_line_needs_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, prompt(), block("a", "One."))
    start = path.stat().st_size
    os.truncate(path, start + 3 * LONGEST_LINE)
    with path.open("ab") as file:
        file.write(b"\n" + json.dumps(block("b", "Two.")).encode() + b"\n")
    tracemalloc.start()
    try:
        found = last_turn(str(path), None, SOON)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    problem = f"A line of more than {LONGEST_LINE // MEGABYTE} MB was skipped."
    assert found == Turn((Message("a", "One."), Message("b", "Two.")), problem)
    assert peak < 2 * LONGEST_LINE


def test_lines_of_all_lengths_are_read(tmp_path: Path) -> None:
    """Long enough that a line begins in one read buffer and ends in another."""
    chance = random.Random(1)
    texts = ["x" * int(10 ** chance.uniform(0, 6)) for _ in range(40)]
    entries = [block(f"m{number}", text) for number, text in enumerate(texts)]
    path = tmp_path / "t.jsonl"
    write(path, *entries)
    everything = tuple(Message(f"m{number}", text) for number, text in enumerate(texts))
    assert since(str(path), 0, None, SOON) == Turn(everything, "")
    size = path.stat().st_size
    for _ in range(25):
        cut = chance.randrange(size)
        before, after = (
            since(str(path), 0, cut, SOON),
            since(str(path), cut, None, SOON),
        )
        assert before.messages + after.messages == everything


ENTRY = st.one_of(
    st.builds(prompt, st.text(max_size=5)),
    st.just(RESULT),
    st.sampled_from([b"", b"{", b"\xff", b'{"type": "assistant"']),
    st.lists(st.text(max_size=5), max_size=2),
)


@settings(max_examples=effort.times(150), deadline=None, derandomize=True)
@given(st.lists(ENTRY, max_size=8), st.lists(st.integers(0, 2000), max_size=3))
def test_reading_in_parts_gives_each_line_once(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Any], cuts: list[int]
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    entries = [
        block(f"m{number}", *each) if isinstance(each, list) else each
        for number, each in enumerate(drawn)
    ]
    write(path, *entries)
    spoken = [
        (f"m{number}", [text for text in each if text.strip()])
        for number, each in enumerate(drawn)
        if isinstance(each, list)
    ]
    everything = [Message(name, "\n\n".join(texts)) for name, texts in spoken if texts]
    assert list(since(str(path), 0, None, SOON).messages) == everything

    size = path.stat().st_size
    places = sorted({0, size, *(min(cut, size) for cut in cuts)})
    parts = [since(str(path), start, end, SOON).messages for start, end in pairwise(places)]
    assert [message for part in parts for message in part] == everything

    last_prompt = max(
        (number for number, each in enumerate(entries) if isinstance(each, dict) and _asks(each)),
        default=-1,
    )
    after = [each for each in everything if int(each.id[1:]) > last_prompt]
    assert list(last_turn(str(path), None, SOON).messages) == after


def _asks(entry: dict[str, Any]) -> bool:
    content = entry["message"]["content"]
    return entry["type"] == "user" and isinstance(content, str) and bool(content.strip())
