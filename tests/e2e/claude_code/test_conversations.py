"""From one conversation to the next: remembered, known again, recalled."""

from tests.e2e.claude_code.client import Person
from tests.e2e.claude_code.conftest import ANY_CLIENT, BOTH_CLIENTS

REMEMBERS = """I will remember that.

<ctx:remember type="fact" tags="tier:reference">
Deploys happen on Tuesdays.
</ctx:remember>"""


@BOTH_CLIENTS
def test_what_one_conversation_remembers_the_next_one_knows(person: Person) -> None:
    first = person.say("We deploy on Tuesdays. Remember that.", REMEMBERS)
    assert "Deploys happen" not in first.request.injected
    assert "ctx" in first.request.given_at("SessionStart")

    (node,) = person.nodes().values()
    assert node["type"] == "fact"
    assert node["content"] == "Deploys happen on Tuesdays."
    assert node["tags"] == ["project:shop", "tier:reference"]

    second = person.say("When do we deploy?", "On Tuesdays.")
    assert second.session != first.session
    given = second.request.given_at("SessionStart")
    assert f"\n- [fact:{node['id'][:12]}] (agent) Deploys happen on Tuesdays.\n" in given
    # What was injected is never taken for something that was said.
    assert len(person.nodes()) == 1


@ANY_CLIENT
def test_what_is_recalled_arrives_with_the_next_prompt_and_only_then(person: Person) -> None:
    node = person.adds("Deploys happen on Tuesdays.", "--type", "fact")
    first = person.say("Good morning.", 'Let me see. <ctx:recall query="deploys"/>')
    assert "Deploys happen" not in first.request.injected

    results = (
        "## Recall Results\n\nQuery: `deploys`\n\nFound 1 node:\n\n"
        f"- [fact:{node[:12]}] Deploys happen on Tuesdays.\n  - Tags: project:shop\n\n---"
    )
    second = person.say("And?", "On Tuesdays.", resume=first.session)
    assert results in second.request.newest.given_at("UserPromptSubmit")

    third = person.say("Sure?", "Yes.", resume=first.session)
    assert "Recall Results" not in third.request.newest.injected
