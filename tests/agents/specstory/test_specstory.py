"""Past sessions are imported from what SpecStory wrote, in every form that it had."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx.agents.known_hosts import HOSTS, NAMES
from ctx.agents.specstory import adapter
from ctx.agents.specstory.adapter import HOST
from ctx.hosts.tool_calls import CommandCall, FileWrite
from tests.conftest import Ctx

GOLDEN = Path(__file__).parents[2] / "golden" / "specstory"
SESSION = "0c1d2e3f-0000-4000-8000-00000000000a"
SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA3"

EVENTS = {
    # Without a session, times and tools.
    "2025-05-06_17-43-slow-list.md": [
        "17:43:00 user Why is the list slow?",
        "17:43:01 agent I look.",
        "17:43:02 read src/list.py",
        "17:43:03 write src/list.py: sort(sort(rows)) → sort(rows)",
        "17:43:04 agent It was sorted twice.",
    ],
    # Tools without an element around them. A command without a result is left out.
    "2025-10-02_12-00Z-broken-build.md": [
        "12:00:00 user The build is broken.",
        "12:00:01 command make → 2",
        "12:00:02 agent A line was missing.",
    ],
    # The first prompt was before the time in the name.
    "2026-01-05_08-00Z-sort.md": [
        "07:30:00 user Sort the list.",
        "07:30:01 write a.py:  → if a < b: pass",
        "07:30:02 command make → None",
        "07:30:03 agent Done.",
    ],
    "2026-01-05_08-00-00Z-page.md": [
        "08:00:00 user Write a page.",
        "08:00:01 write docs/page.md",
        "08:01:00 agent Written.",
    ],
    # What a client wrote under the heading of a user is left out. Two times are wrong.
    "2026-02-03_09-10-00Z-review.md": [
        "09:10:00 user /review a.py",
        "09:10:05 (subagent) agent I am a subagent.",
        "09:10:20 command pytest -q → 1",
        "09:11:00 write /p/a.py",
        "00:00:00 agent Fixed: ``` _**User**_ ```",
        "00:00:01 user Thanks.",
    ],
    "check.md": ["09:10:05 user Check it.", "09:10:06 command go vet ./... → 0"],
}


def events(path: Path) -> list[str]:
    lines = []
    for event in HOST.transcripts.events(str(path), 0).events:
        subagent = "(subagent) " if event.agent else ""
        line = f"{event.speaker} {' '.join((event.text or '').split())}"
        if isinstance(event.call, CommandCall):
            line = f"command {event.call.line} → {event.call.outcome.exit_code}"
        elif isinstance(event.call, FileWrite):
            written = event.call.written
            is_change = written is not None and written.before is not None
            change = f": {written.before} → {written.after}" if written and is_change else ""
            line = f"write {event.path}{change}"
        elif event.call:
            line = f"read {event.path}"
        lines.append(f"{event.at[11:19]} {subagent}{line}")
    return lines


@pytest.mark.parametrize("name", EVENTS)
def test_every_form_becomes_events(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    data = (GOLDEN / name).read_bytes()
    for written in (data, data.replace(b"\n", b"\r\n").replace(b"SpecStory", b"SpecStory\xff\0")):
        path.write_bytes(written)
        # A time in the future becomes that of the file.
        os.utime(path, (1_780_272_000, 1_780_272_000))
        assert events(path) == EVENTS[name]


@given(data=st.data(), name=st.sampled_from(list(EVENTS)))
def test_a_damaged_file_is_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str
) -> None:
    lines = (GOLDEN / name).read_bytes().splitlines(keepends=True)
    kept = lines[: data.draw(st.integers(0, len(lines)))]
    more = data.draw(st.lists(st.sampled_from(lines) | st.binary(max_size=9), max_size=60))
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(b"".join(kept + more))
    found = HOST.transcripts.events(str(path), 0)
    times = [event.at for event in found.events]
    assert times == sorted(set(times))
    assert (found.next_offset, found.problem) == (path.stat().st_size, "")


def test_a_call_that_is_not_whole_yet_waits(tmp_path: Path) -> None:
    path = tmp_path / "2026-01-05_08-00Z-sort.md"
    path.write_text((GOLDEN / path.name).read_text().partition("if a")[0])
    assert events(path) == EVENTS[path.name][:1]


# By command


@pytest.fixture
def history(repo: Path) -> Path:
    found = repo / ".specstory" / "history"
    shutil.copytree(GOLDEN, found)
    for name in ("2026-01-05_08-00-00Z-page.md", "2026-02-03_09-10-00Z-review.md", "check.md"):
        # The session is in another file too.
        (found / name).unlink()
    return found


def run(ctx: Ctx, *words: str) -> dict[str, Any]:
    ran = ctx("import", "--from", "specstory", *words, "--format", "json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = ran.json
    return found


def steps(ctx: Ctx, session: str) -> list[str]:
    shown = ctx("sessions", "replay", session, "--format", "json").json
    return [f"{step['kind']} {step['text'] or step['path']}" for step in shown["steps"]]


def test_the_history_of_a_project_is_imported_once(ctx: Ctx, history: Path) -> None:
    assert len(run(ctx, "--dry-run")["sessions"]) == 2
    assert run(ctx, "--since", "2124-01-01")["left_out"] == 2
    done = run(ctx)
    assert [each["what"] for each in done["sessions"]] == [
        "Why is the list slow?",
        "Sort the list.",
    ]
    assert (run(ctx)["unchanged"], run(ctx, str(history.parents[1]))["unchanged"]) == (2, 2)
    listed = ctx("sessions", "list", "--format", "json").json["sessions"]
    assert {each["host"] for each in listed} == {"specstory"}
    changes = ctx("undo", "--list", "--format", "json").json["changes"]
    assert [ctx("undo", each["id"]).code for each in changes] == [0] * len(changes) != []
    assert ctx("list", "--format", "json").json["nodes"] == []


def test_a_session_goes_on_in_a_file_with_another_name(ctx: Ctx, history: Path) -> None:
    run(ctx)
    before = steps(ctx, SESSION)
    path = history / "2026-01-05_08-00Z-sort.md"
    text = path.read_text().replace("# Sort", "# Sort the list")
    turn = f"\n---\n\n_**User (2026-01-06 08:00Z)**_\n\nUse the token {SECRET}.\n"
    (history / "2026-01-05_08-00Z-sort-the-list.md").write_text(text + turn)
    assert [each["session"] for each in run(ctx)["sessions"]] == [SESSION]
    assert steps(ctx, SESSION) == [*before, "prompt Use the token [redacted:github-token]."]


def test_what_a_host_reported_is_not_imported_again(ctx: Ctx, history: Path) -> None:
    path = history / "2026-01-05_08-00Z-sort.md"
    claude = Path(os.environ["HOME"]) / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl"
    claude.parent.mkdir(parents=True)
    claude.write_text(
        f'{{"type":"user","sessionId":"{SESSION}","timestamp":"2026-01-04T07:30:00Z",'
        f'"cwd":"{history.parents[1]}","message":{{"content":"Sort the list."}}}}\n'
    )
    assert ctx("import", "--transcripts").code == 0
    assert run(ctx, str(path))["unchanged"] == 1


def test_other_files_are_refused(ctx: Ctx, history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (history / "notes.md").write_text("# Notes\n")
    os.mkfifo(history / "pipe.md")
    assert len(run(ctx)["sessions"]) == 2
    ran = ctx("import", "--from", "specstory", str(history / "notes.md"))
    assert (ran.code, "neither a transcript nor a folder" in ran.err) == (2, True)
    monkeypatch.setattr(adapter, "_LARGEST", 100)
    (history / "2026-01-05_08-00Z-large.md").write_bytes(b"<!-- Generated by SpecStory -->" * 4)
    assert [each["reason"] for each in run(ctx)["skipped"]] == ["It has more than 0 MB."]


def test_it_is_no_host(ctx: Ctx) -> None:
    assert "specstory" in HOSTS.names
    assert "specstory" not in NAMES
    assert "specstory" not in ctx("hook", "stop", "--help").out
    assert "specstory" in ctx("import", "--from", "nothing").err
