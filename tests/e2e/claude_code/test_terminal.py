"""The client on a terminal, where it keeps running and shows the messages of hooks."""

from tests.e2e.claude_code.client import Person
from tests.e2e.claude_code.terminal import at_terminal


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
        terminal.shows("SessionStart:clear says: ctx: 2 nodes")
        terminal.types("Why?")
        terminal.shows("Second answer.")
        terminal.shows("Stop says: ctx: 1 command failed")
    first, second = terminal.requests
    assert "Sessions are safe." in first.injected_at("SessionStart")
    assert "Cookies are signed." not in first.injected
    # What was asked for before belongs to whoever goes on.
    assert "Cookies are signed." in second.injected_at("SessionStart")
    assert "## Recall Results" in second.injected_at("UserPromptSubmit")
