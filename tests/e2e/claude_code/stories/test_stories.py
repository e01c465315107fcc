"""The eighth session gets what a colleague would tell it, nothing false, and not much else."""

import json
import sys
import time
from typing import Any

import pytest

from ctx import tokens
from ctx.hook_files import spool
from tests.conftest import git
from tests.e2e.claude_code.client import Person
from tests.e2e.claude_code.replay.scenario import played_at
from tests.e2e.claude_code.stories.harbour import HARBOUR
from tests.e2e.claude_code.stories.story import Story, is_shown, missing, untrue

MOST_TOKENS = 600
FILLERS = 33


@pytest.mark.slow
def test_the_eighth_session_gets_what_a_colleague_would_tell_it(person: Person) -> None:
    story = HARBOUR
    prepare(person, story)
    for turns in story.sessions:
        person.converse([(turn.prompt, played_at(person.project, turn.replies)) for turn in turns])
        person.settles()

    given = context_for(person, story.prompt)
    assert not missing(story, given), given
    assert not untrue(story, given), given
    assert tokens.estimate(given) <= MOST_TOKENS, given

    for number in range(FILLERS):
        works_on_something_else(person, number)
    person.settles()
    last = context_for(person, "Hello.")
    assert all(is_shown(expected, last) for expected in story.expected if expected.is_rule), last


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


THINGS = ("map", "weather page", "login", "newsletter", "price list", "camera", "season report")


def works_on_something_else(person: Person, number: int) -> None:
    """Run a session about other files."""
    home, session = str(person.home / ".ctx"), f"filler-{number}"
    thing = f"{THINGS[number % len(THINGS)]} {number}"
    path = person.project / f"filler_{number}.py"
    common = {"session_id": session, "cwd": str(person.project), "transcript_path": ""}
    content = f"def make_{number}(): ...\n"
    reported: list[tuple[str, dict[str, Any]]] = [
        ("session-start", {"source": "startup"}),
        ("prompt-submit", {"prompt": f"Write the {thing}. It should load in {number} ms."}),
        (
            "post-tool-use",
            {
                "tool_name": "Write",
                "tool_use_id": f"toolu_{number}",
                "tool_input": {"file_path": str(path), "content": content},
                "tool_response": {"type": "create", "filePath": str(path)},
            },
        ),
        (
            "stop",
            {
                "last_assistant_message": f"The {thing} is in filler_{number}.py. `make_{number}`"
                f" uses {number} workers, because more of them do not help."
            },
        ),
        ("session-end", {"reason": "other"}),
    ]
    for word, values in reported:
        event = {**common, "hook_event_name": spool.EVENTS[word], **values}
        spool.put(home, spool.new_id(time.time_ns() // 1_000_000), word, json.dumps(event).encode())
        time.sleep(0.002)
