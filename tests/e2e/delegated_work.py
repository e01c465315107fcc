"""A turn in which the agent gives work to a subagent, and a compacted conversation, in any host.

What the model writes for a subagent reads like a rule of the user, and so does the summary of the
compacted conversation. Neither may become the user's words.
"""

from typing import Any

from tests.e2e.claude_code.client import Person

OWN = "Always use tabs in the ledger files."
PROMPT = f"Please count the prices. {OWN}"
RULE = "Never deploy from the branch zebra without asking."
TASK = f"Count the prices in shop.py. {RULE}"
SUMMARY = "Never restart the cactus server on Mondays."
"""The summary of the compacted conversation."""


def check_words(person: Person) -> str:
    """Only what the person said is the user's, and the work of the subagent is in their session.

    The id of the only session.
    """
    (session,) = person.sessions(1)
    assert session["status"] == "completed"
    replay = person.ctx("sessions", "replay", session["id"])["steps"]
    own = [step["text"] for step in replay if step["kind"] == "prompt" and not step["agent"]]
    assert own[0] == PROMPT
    assert not any(RULE in text or SUMMARY in text for text in own)
    assert any(step["kind"] == "agent" and RULE in step["text"] for step in replay)
    assert [step["text"] for step in replay if step["kind"] in ("command", "search")]
    nodes = person.ctx("list", "--limit", "0")["nodes"]
    by_user = [node for node in nodes if _is_by_user(node)]
    assert not [node for node in by_user if RULE.rstrip(".") in node["content"]]
    assert not [node for node in by_user if SUMMARY.rstrip(".") in node["content"]]
    assert [node for node in by_user if OWN.rstrip(".") in node["content"]]
    return str(session["id"])


def _is_by_user(node: dict[str, Any]) -> bool:
    return "user" in (node["source"], node["metadata"].get("said_by"))


def check_context(text: str) -> None:
    """What the next session gets: the rules are the person's, and nobody else's."""
    _, _, below = text.partition("## Rules and corrections\n")
    rules = below.partition("\n## ")[0]
    assert OWN.rstrip(".") in rules
    assert SUMMARY.rstrip(".") not in rules
    assert RULE.rstrip(".") not in text
