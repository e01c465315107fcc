"""Conversations that are resumed, forked, cleared, compacted or concurrent."""

from tests.e2e.claude_code.client import Person
from tests.e2e.claude_code.conftest import OLDER_CLIENT


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
