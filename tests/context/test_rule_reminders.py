"""Rules that a prompt would break."""

from ctx.context.relevance import Rule, about_to_break
from ctx.ids import NodeId, Ulid

ID = NodeId(Ulid("01M7E8EP508EB05Z0Y7WVT0A4M"))
ALWAYS = Rule(ID, "Always write tests")


def test_a_prompt_that_would_break_a_rule_is_noticed() -> None:
    for rule, prompt in (
        ("Never commit yourself, I review every change first.", "commit this"),
        ("Don't push to main.", "ok, now push it"),
        ("please do not mock the database", "mock the database in these tests"),
        ("We use pnpm here", "npm install left-pad"),
        ("Use uv for all packages", "pip install requests please"),
        ("Niemals direkt committen", "commit das bitte direkt"),
    ):
        assert about_to_break(prompt, [ALWAYS, Rule(ID, rule)]) == [Rule(ID, rule)]


def test_a_prompt_that_breaks_no_rule_gets_no_reminder() -> None:
    for rule, prompt in (
        ("Never commit yourself", "What does this function do?"),
        ("Don't forget to run the tests", "run the tests"),
        ("You do not need to add comments", "add a parser"),
        ("We use pnpm here", "pnpm install left-pad"),
        ("We use pnpm, not npm", "why does npm fail on the server?"),
        ("We use pnpm here", ""),
    ):
        assert about_to_break(prompt, [Rule(ID, rule)]) == []
