"""Nodes are remembered in one conversation, and shown or recalled in the next."""

from tests.e2e.claude_code.client import Person
from tests.e2e.claude_code.conftest import ANY_CLIENT, BOTH_CLIENTS

REMEMBERS = """I will remember that.

<ctx:remember type="fact" tags="tier:reference">
Deploys happen on Tuesdays.
</ctx:remember>"""


@BOTH_CLIENTS
def test_a_remembered_node_is_shown_in_the_next_conversation(person: Person) -> None:
    first = person.say("We deploy on Tuesdays. Remember that.", REMEMBERS)
    assert "Deploys happen" not in first.request.injected
    assert "ctx" in first.request.injected_at("SessionStart")

    (node,) = person.nodes().values()
    assert node["type"] == "fact"
    assert node["content"] == "Deploys happen on Tuesdays."
    assert node["tags"] == ["project:shop", "tier:reference"]

    second = person.say("When do we deploy?", "On Tuesdays.")
    assert second.session != first.session
    given = second.request.injected_at("SessionStart")
    assert f"\n- [fact:{node['id'][:12]}] (agent) Deploys happen on Tuesdays.\n" in given
    # What was injected is never taken for something that was said.
    assert len(person.nodes()) == 1


@ANY_CLIENT
def test_recalled_nodes_are_sent_once_with_the_next_prompt(person: Person) -> None:
    node = person.adds("Deploys happen on Tuesdays.", "--type", "fact", "--no-tier")
    first = person.say("Good morning.", 'Let me see. <ctx:recall query="deploys"/>')
    assert "Deploys happen" not in first.request.injected

    results = (
        "## Recall Results\n\nQuery: `deploys`\n\nFound 1 node:\n\n"
        f"- [fact:{node[:12]}] Deploys happen on Tuesdays.\n  - Tags: project:shop\n\n---"
    )
    second = person.say("And?", "On Tuesdays.", resume=first.session)
    assert results in second.request.newest.injected_at("UserPromptSubmit")

    third = person.say("Sure?", "Yes.", resume=first.session)
    assert "Recall Results" not in third.request.newest.injected
