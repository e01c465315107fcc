"""Conversations: what is remembered, what a resumed, forked, cleared or compacted one gets.

Also the client on a terminal, where it keeps running and shows the messages of hooks.
"""

from tests.e2e.claude_code.client import Person
from tests.e2e.claude_code.conftest import ANY_CLIENT, BOTH_CLIENTS, OLDER_CLIENT
from tests.e2e.claude_code.terminal import at_terminal

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


def test_a_resumed_conversation_gets_only_changes(person: Person) -> None:
    person.adds("Deploys happen on Tuesdays.")
    first = person.say("Hello.", "Hi.")
    assert "Deploys happen" in first.request.injected_at("SessionStart")

    second = person.say("Still there?", "Yes.", resume=first.session)
    assert second.request.newest.injected_at("SessionStart") == ""

    person.adds("Releases have names.")
    third = person.say("And now?", "Yes.", resume=first.session)
    given = third.request.newest.injected_at("SessionStart")
    assert "Releases have names." in given
    assert "Deploys happen" not in given


@OLDER_CLIENT
def test_a_client_that_drops_hook_output_gets_all_of_it_again(person: Person) -> None:
    person.adds("Deploys happen on Tuesdays.")
    first = person.say("Hello.", "Hi.")
    second = person.say("Still there?", "Yes.", resume=first.session)
    assert second.request.injected.count("Deploys happen on Tuesdays.") == 1


def test_a_fork_gets_pending_results_and_repeats_nothing(person: Person) -> None:
    first = person.say(
        "Remember.",
        '<ctx:remember type="fact" tags="tier:reference">Once.</ctx:remember>'
        '<ctx:recall query="once"/>',
    )
    fork = person.say("Elsewhere.", "Yes.", resume=first.session, fork=True)
    assert fork.session != first.session
    assert "- [fact:" in fork.request.newest.injected_at("SessionStart")
    assert "## Recall Results" in fork.request.newest.injected_at("UserPromptSubmit")
    person.say("On.", '<ctx:remember type="fact">Twice.</ctx:remember>', resume=fork.session)
    assert [*person.nodes()] == ["Once.", "Twice."]


def test_after_compaction_the_state_comes_first(person: Person) -> None:
    person.adds("Deploys happen on Tuesdays.", "--type", "fact", "--tag", "tier:pinned")
    first = person.say(
        "Let us do the tokens.",
        '<ctx:task name="Token refresh" action="start"/>'
        '<ctx:remember type="observation" tags="tier:working">Called twice.</ctx:remember>'
        '<ctx:remember type="open-question">Who calls it?</ctx:remember>',
    )
    compacted = person.say("/compact", "<summary>Tokens.</summary>", resume=first.session)
    assert compacted.session == first.session
    second = person.say("Go on.", "Yes.", resume=first.session)
    context = second.request.injected_at("SessionStart")
    in_order = ["Token refresh", "Called twice.", "Deploys happen on Tuesdays."]
    places = [context.find(text) for text in in_order]
    assert -1 not in places
    assert places == sorted(places)
    assert "Who calls it?" in context
    assert context.count("Called twice.") == 1


def test_a_cleared_conversation_gets_the_context_again(person: Person) -> None:
    source = person.adds("Cookies are signed.", "--type", "fact", "--no-tier")
    summed_up = ("--content", "Sessions are safe.", "--tag", "tier:reference")
    summary = person.ctx("summarize", source, *summed_up)["summary"]["id"]
    with at_terminal(
        person,
        f'First answer. <ctx:expand node="{summary[:12]}"/> <ctx:recall query="safe"/>',
        'Second answer. <ctx:remember type="fact"></ctx:remember>',
    ) as terminal:
        terminal.shows("SessionStart:startup says: ctx: 1 node")
        terminal.types("How safe are sessions?")
        terminal.shows("First answer.")
        terminal.types("/clear")
        terminal.shows("SessionStart:clear says: ctx: ")
        terminal.types("Why?")
        terminal.shows("Second answer.")
        terminal.shows("Stop says: ctx: 1 command failed")
    first, second = terminal.requests
    assert "Sessions are safe." in first.injected_at("SessionStart")
    assert "Cookies are signed." not in first.injected
    # What was asked for before belongs to whoever goes on.
    assert "Cookies are signed." in second.injected_at("SessionStart")
    assert "## Recall Results" in second.injected_at("UserPromptSubmit")
