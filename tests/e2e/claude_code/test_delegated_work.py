"""Only what a person typed becomes the user's: no task of a subagent, and no summary."""

from tests.e2e.claude_code.api import Reply, Tool
from tests.e2e.claude_code.client import Person
from tests.e2e.delegated_work import (
    PROMPT,
    SUMMARY,
    TASK,
    check_context,
    check_words,
)


def test_only_the_persons_words_become_the_users(person: Person) -> None:
    task = {"description": "Count prices", "prompt": TASK, "subagent_type": "general-purpose"}
    first = person.say(
        PROMPT,
        Reply((), (Tool("Agent", {**task, "run_in_background": False}),)),
        "Counted.",
        to_subagents=[
            Reply((), (Tool("Bash", {"command": "ls", "description": "List"}),)),
            "There are three.",
        ],
    )
    person.say("/compact", SUMMARY, resume=first.session)
    session = check_words(person)
    steps = person.ctx("sessions", "replay", session)["steps"]
    assert [step["text"] for step in steps if step["agent"] and step["kind"] == "command"] == ["ls"]
    check_context(person.say("Hello.", "Hello.").request.injected)
