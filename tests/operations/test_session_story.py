"""A session as a story: turns, failures, decisions, memory, and the steps behind each line."""

import json
from pathlib import Path

import pytest

from ctx.capture.steps import Step
from ctx.errors import SessionNotFound
from ctx.operations import session_turns
from ctx.operations.session_story import SessionStory, StoryOptions, story
from ctx.page.sessions_view import as_markdown
from ctx.sqlite.connection import transaction
from ctx.synthesis.session_writer import synthesise
from ctx.workspace import Memory
from tests.synthesis.session_scripts import steps as scripted
from tests.synthesis.test_session_writer import add_steps

FIXING = """
mark: startup
prompt: Fix the test in auth. Never call refresh twice, because tokens are single-use.
search: refresh
read: src/auth.py
read: tests/test_auth.py
run: pytest -q
  failed 1
  finding: src/auth.py:12 | AssertionError | assert 2 == 1 | tests/test_auth.py::test_once
  printed assert 2 == 1
say: It is called twice, so I remove the second call.
write: src/auth.py +3 -1
  modified function Session.refresh (self) -> Token
  + return token
run: pytest -q
  passed
say: Fixed: `refresh` is called once now.
prompt: Thanks. Is the README right?
read: README.md
say: Yes, it is.
"""


def story_of(memory: Memory, script: str = FIXING, **options: object) -> SessionStory:
    add_steps(memory, script)
    return story(memory, "s1", StoryOptions(**options))  # type: ignore[arg-type]


def ids(script: str, kind: str) -> list[str]:
    return [step.id for step in scripted(script) if step.kind == kind]


def test_a_turn_is_a_prompt_and_what_was_done_in_groups(memory: Memory) -> None:
    before, fixing, asking = story_of(memory).turns
    assert (before.number, before.prompt, [each.group for each in before.groups]) == (
        *(0, None),
        ["mark"],
    )
    assert fixing.prompt
    assert fixing.prompt.line.startswith("Fix the test")
    assert [(each.group, each.line, each.names, each.failed) for each in fixing.groups] == [
        ("search", "1 search", "refresh", 0),
        ("read", "2 files read", "auth.py, test_auth.py", 0),
        ("edit", "1 file edited (+3 −1)", "auth.py", 0),
        ("command", "2 commands", "pytest -q", 1),
        ("say", "1 message", "It is called twice, so I remove the second call.", 0),
    ]
    assert fixing.answer
    assert fixing.answer.step.text == "Fixed: `refresh` is called once now."
    assert [each.line for each in asking.groups] == ["1 file read"]
    assert asking.answer
    assert asking.answer.line == "Yes, it is."


def test_the_story_as_markdown(memory: Memory) -> None:
    shown = as_markdown(story_of(memory))
    for part in (
        "tokens are single-use.**\n\n- 1 search: refresh\n",
        "- 1 file edited (+3 −1): auth.py\n- 2 commands (1 failed): pytest -q\n- Fixed: `refresh`",
        "## Failures and fixes\n\n- `pytest` failed: AssertionError: assert 2 == 1; passed",
        "; passed after changes to `src/auth.py`\n",
        "## Decisions\n\n- Never call refresh twice, because tokens are single-use\n",
        "## Files\n\n- `src/auth.py` (+3 −1)\n- `README.md` (read)\n",
    ):
        assert part in shown


def test_what_still_fails_has_no_step_that_passed(memory: Memory) -> None:
    script = FIXING.replace("run: pytest -q\n  passed\n", "")
    (failure,) = story_of(memory, script).failures
    assert failure.passed is None


def test_a_failure_names_the_steps_from_failing_to_passing(memory: Memory) -> None:
    (failure,) = story_of(memory).failures
    failed, passed = ids(FIXING, "command")
    assert failure.command == "pytest"
    assert failure.messages == ("AssertionError: assert 2 == 1",)
    assert (failure.failed, failure.passed) == ((failed,), passed)
    assert failure.edits == tuple(ids(FIXING, "write"))
    assert failure.files == ("src/auth.py",)


def test_decisions_are_there_before_and_after_synthesis(memory: Memory) -> None:
    (spoken,) = story_of(memory).decisions
    prompt = ids(FIXING, "prompt")[0]
    assert "refresh" in spoken.text
    assert (spoken.steps, spoken.node) == ((prompt,), "")
    synthesise(memory, "s1", is_over=True)
    stored = [each for each in story(memory, "s1").decisions if prompt in each.steps]
    assert stored
    assert all(memory.graph.node(memory.graph.find(each.node)) for each in stored)


def test_memory_of_a_session_names_its_steps(memory: Memory) -> None:
    assert story_of(memory).memory == ()
    synthesise(memory, "s1", is_over=True)
    nodes = story(memory, "s1").memory
    assert nodes[0].kind == "summary"
    known = {step.id for step in scripted(FIXING)}
    bugfix = next(each for each in nodes if each.kind == "bugfix")
    assert bugfix.steps
    assert set(bugfix.steps) <= known


def test_files_that_were_written_come_first(memory: Memory) -> None:
    files = story_of(memory).files
    assert [(each.path, each.reads, each.writes, each.added) for each in files] == [
        ("src/auth.py", 1, 1, 3),
        ("README.md", 1, 0, 0),
        ("tests/test_auth.py", 1, 0, 0),
    ]
    assert files[0].steps == tuple(ids(FIXING, "write"))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("REFRESH", ["prompt", "search", "write", "say"]),
        ("assert 2 == 1", ["command"]),
        ("test_auth.py", ["read", "command"]),
        ("startup", []),
        ("no such thing", []),
        ("  ", []),
    ],
)
def test_search_within_a_session(memory: Memory, text: str, kinds: list[str]) -> None:
    found = story_of(memory, text=text)
    assert [each.step.kind for each in found.hits] == kinds
    assert found.hit_count == len(kinds)


def test_a_long_session_has_pages(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_turns, "_PAGE_STEPS", 4)
    whole = scripted(FIXING)
    first = story_of(memory)
    assert (first.page, first.pages) == (1, 4)
    shown: list[Step] = []
    for number in range(1, 5):
        for turn in story(memory, "s1", StoryOptions(page=number)).turns:
            alike = [each for group in turn.groups for each in group.steps]
            shown += [each.step for each in (turn.prompt, *alike, turn.answer) if each]
    assert sorted(each.id for each in shown) == [each.id for each in whole]
    assert story(memory, "s1", StoryOptions(page=99)).page == 4
    of_step = story(memory, "s1", StoryOptions(step=whole[-1].id))
    assert of_step.page == 4
    second = story(memory, "s1", StoryOptions(page=2)).turns[0]
    assert (second.number, second.is_continued, second.prompt) == (1, True, None)
    assert second.answer is None


def test_a_session_without_steps_is_a_short_story(memory: Memory) -> None:
    found = story_of(memory, "")
    assert (found.turns, found.pages, found.failures, found.files) == ((), 1, (), ())
    with pytest.raises(SessionNotFound):
        story(memory, "nowhere")


def test_steps_have_their_line_in_the_transcript(memory: Memory, tmp_path: Path) -> None:
    transcript = tmp_path / "s1.jsonl"
    said = "Zeile eins — “zwei”\nund drei"
    entries: list[object] = [
        {"type": "summary"},
        {"message": {"content": said}},
        {"message": {"content": [{"type": "tool_use", "id": "toolu_1"}]}},
    ]
    transcript.write_text("".join(json.dumps(each) + "\n" for each in entries))
    add_steps(memory, "mark: startup")
    connection = memory.local
    with transaction(connection):
        connection.execute("UPDATE sessions SET transcript = ? WHERE id = 's1'", (str(transcript),))
        for number, (kind, text, use) in enumerate(
            [("prompt", said, None), ("read", "", "toolu_1"), ("say", "not written yet", None)]
        ):
            body = json.dumps({"kind": kind, "text": text}, separators=(",", ":"))
            connection.execute(
                "INSERT INTO events (id, session, event, at, tool_use, status, body)"
                " VALUES (?, 's1', 'x', '2026-11-15T01:00:00Z', ?, 'step', ?)",
                (f"1794799999999-1-{number}", use, body),
            )
    turn = story(memory, "s1").turns[1]
    assert turn.prompt
    assert turn.prompt.transcript_line == 2
    assert [each.transcript_line for group in turn.groups for each in group.steps] == [3]
    assert turn.answer
    assert turn.answer.transcript_line is None
    transcript.unlink()
    gone = story(memory, "s1").turns[1].prompt
    assert gone
    assert gone.transcript_line is None
