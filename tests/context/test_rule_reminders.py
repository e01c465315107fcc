"""Rules that a prompt would break."""

import pytest

from ctx.context.relevance import Rule, about_to_break
from ctx.ids import NodeId, Ulid

ID = NodeId(Ulid("01M7E8EP508EB05Z0Y7WVT0A4M"))


@pytest.mark.parametrize(
    ("rule", "prompt"),
    [
        ("Never commit yourself, I review every change first.", "commit this"),
        ("Don't push to main.", "ok, now push it"),
        ("please do not mock the database", "mock the database in these tests"),
        ("We use pnpm here", "npm install left-pad"),
        ("Use uv for all packages", "pip install requests please"),
        ("Niemals direkt committen", "commit das bitte direkt"),
    ],
)
def test_a_prompt_that_would_break_a_rule_is_noticed(rule: str, prompt: str) -> None:
    known = [Rule(ID, "Always write tests"), Rule(ID, rule)]
    assert about_to_break(prompt, known) == [Rule(ID, rule)]


@pytest.mark.parametrize(
    ("rule", "prompt"),
    [
        ("Never commit yourself", "What does this function do?"),
        ("Don't forget to run the tests", "run the tests"),
        ("You do not need to add comments", "add a parser"),
        ("We use pnpm here", "pnpm install left-pad"),
        ("We use pnpm, not npm", "why does npm fail on the server?"),
        ("We use pnpm here", ""),
    ],
)
def test_a_prompt_that_breaks_no_rule_gets_no_reminder(rule: str, prompt: str) -> None:
    assert about_to_break(prompt, [Rule(ID, rule)]) == []
