"""Where the steps of a session are in its transcript."""

import json
from pathlib import Path

from ctx.capture import step_positions
from ctx.capture.steps import Kind, Step


def step(number: int, kind: Kind, text: str = "", tool_use: str = "", agent: str = "") -> Step:
    at = "2026-11-15T00:00:00Z"
    return Step(f"s{number}", "s", at, kind, text=text, tool_use=tool_use, agent=agent)


def transcript(folder: Path, *entries: object) -> str:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in entries))
    return str(path)


def test_the_same_words_are_found_in_order(tmp_path: Path) -> None:
    path = transcript(
        tmp_path, {"content": "yes, please"}, {"content": "yes"}, {"id": "toolu_1"}, {"text": "yes"}
    )
    steps = [
        step(1, "prompt", "yes"),
        step(2, "read", tool_use="toolu_1"),
        step(3, "prompt", "yes"),
    ]
    assert step_positions.lines_of(path, steps) == {"s1": 2, "s2": 3, "s3": 4}


def test_a_text_is_found_however_json_writes_it(tmp_path: Path) -> None:
    said = 'Größe “x”\n\t"quoted" \\ and much more than the first sixty characters of it'
    for escapes in (True, False):
        path = tmp_path / "t.jsonl"
        path.write_text("{}\n" + json.dumps({"text": said}, ensure_ascii=escapes) + "\n")
        assert step_positions.lines_of(str(path), [step(1, "say", said)]) == {"s1": 2}


def test_what_is_not_there_has_no_line(tmp_path: Path) -> None:
    path = transcript(tmp_path, {"content": "yes"}, {"id": "toolu_1"})
    elsewhere = [
        step(1, "prompt", "no"),
        step(2, "read", tool_use="toolu_2"),
        step(3, "say", "yes", agent="a1"),
        step(4, "prompt", ""),
        step(5, "command", "yes"),
    ]
    assert step_positions.lines_of(path, elsewhere) == {}
    assert step_positions.lines_of(path, [*elsewhere, step(6, "read", tool_use="toolu_1")]) == {
        "s6": 2
    }


def test_a_transcript_that_cannot_be_read(tmp_path: Path) -> None:
    steps = [step(1, "prompt", "yes")]
    link = tmp_path / "link.jsonl"
    link.symlink_to(transcript(tmp_path, {"content": "yes"}))
    for path in ("", str(tmp_path), str(tmp_path / "none"), str(link), "a\0b"):
        assert step_positions.lines_of(path, steps) == {}
