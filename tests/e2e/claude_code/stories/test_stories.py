"""The last session gets what a colleague would tell it, nothing false, and not much else."""

import sys

import pytest

from ctx import tokens
from tests.conftest import git
from tests.e2e.claude_code.client import Person
from tests.e2e.claude_code.stories.harbour import HARBOUR, TWO_AT_ONCE
from tests.e2e.claude_code.stories.story import Story, missing, played_at, untrue

MOST_TOKENS = 800
FIX = 2
"""The session with a failing test and an attempt that failed."""
JUNK = ("Traceback", "test session starts", "short test summary")


@pytest.mark.slow
def test_the_last_session_gets_what_a_colleague_would_tell_it(person: Person) -> None:
    story = HARBOUR
    prepare(person, story)
    for number, turns in enumerate(story.sessions):
        if number == FIX:
            # The user writes it: a new test that fails is no bug that was there before.
            (person.project / "tests" / "test_at_once.py").write_text(TWO_AT_ONCE)
        session = person.converse(
            [(turn.prompt, played_at(person.project, turn.replies)) for turn in turns]
        )
        person.settles()
        if number == FIX:
            check_observations(person, session)

    given = context_for(person, story.prompt)
    assert not missing(story, given), given
    assert not untrue(story, given), given
    assert tokens.estimate(given) <= MOST_TOKENS, given


def check_observations(person: Person, session: str) -> None:
    made = [node for node in person.captured() if f"session:{session}" in node["tags"]]
    (fix,) = [node for node in made if "kind:bugfix" in node["tags"]]
    assert "A1 was booked twice" in fix["content"]
    assert "berth/booking.py" in fix["metadata"]["files"]
    assert len([node for node in made if node["type"] == "observation"]) <= 4, made
    assert [node["content"] for node in made if any(each in node["content"] for each in JUNK)] == []
    (summary,) = [node["metadata"] for node in made if node["type"] == "summary"]
    assert "A1 was booked twice" in str(summary["request"])
    assert "berth/booking.py" in summary["files_edited"]


def context_for(person: Person, prompt: str) -> str:
    """The context of a new session with its first prompt; all of it reaches the model."""
    said = person.say(prompt, "Yes.")
    outputs = [hook.output.get("hookSpecificOutput", {}) for hook in said.hooks]
    texts = [str(output.get("additionalContext", "")) for output in outputs]
    assert all(text.strip() in said.request.injected for text in texts)
    return "\n".join(texts)


def prepare(person: Person, story: Story) -> None:
    for path, content in story.files.items():
        file = person.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    git("config", "user.name", "A Person", cwd=person.project)
    git("config", "user.email", "person@example.org", cwd=person.project)
    git("add", "-A", cwd=person.project)
    git("commit", "-qm", "A small project", cwd=person.project)
    person.puts_on_path("python3", [sys.executable])
