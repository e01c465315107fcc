"""The real client lists the tools of `ctx mcp`, calls them, and gives the model their answers."""

import json

from tests.e2e.claude_code.api import Reply, Tool
from tests.e2e.claude_code.client import CTX, Person

PREFIX = "mcp__ctx__"
TOOLS = ("recall", "remember", "pack", "timeline", "forget")


def test_the_client_lists_and_calls_the_tools(person: Person) -> None:
    servers = {"ctx": {"command": str(CTX), "args": ["mcp"]}}
    config = person.home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    person.adds("Payments are retried three times, because banks are slow.")
    allowed = ",".join(f"{PREFIX}{name}" for name in TOOLS)
    said = person.say(
        "How often are payments retried?",
        Reply(("Let me look.",), (Tool(f"{PREFIX}recall", {"query": "payments retried"}),)),
        Reply(("And keep this.",), (Tool(f"{PREFIX}remember", {"text": "The bank locks at 10."}),)),
        "Three times.",
        options=["--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", allowed],
    )
    # Newer clients name the tools of a server, and load the rest of them when they are needed.
    first = said.request
    listed = f"{first.text} {first.injected} {' '.join(first.tools)}"
    assert [name for name in TOOLS if f"{PREFIX}{name}" not in listed] == []
    assert "banks are slow" in said.requests[1].newest.text
    assert "tier:reference" in said.requests[2].newest.text
    kept = person.nodes()["The bank locks at 10."]
    assert (kept["source"], kept["tags"]) == ("agent", ["project:shop", "tier:reference"])
    given = person.ctx("why", said.session)
    assert given["session"] == said.session
