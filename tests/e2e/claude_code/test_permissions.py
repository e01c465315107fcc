"""ctx commands in the shell of a model, with and without our permission rule."""

import json
import re
from pathlib import Path

from tests.e2e.claude_code.api import Reply, Script, Tool, serving
from tests.e2e.claude_code.client import CTX, Person
from tests.e2e.claude_code.conftest import ANY_CLIENT

DOCS = Path(__file__).parents[3] / "docs" / "claude-code.md"


def rule() -> dict[str, dict[str, list[str]]]:
    """The rule that the docs recommend for the settings."""
    blocks = re.findall(r"```json\n(.+?)```", DOCS.read_text(), re.DOTALL)
    (found,) = [each for each in map(json.loads, blocks) if "permissions" in each]
    return found  # type: ignore[no-any-return]


def in_a_shell(person: Person, command: str) -> str:
    """The tool result of a command for which nobody could be asked."""
    tool = Tool("Bash", {"command": command, "description": "Ask memory"})
    script = Script([Reply((), (tool,)), "Done."], ())
    with serving(script) as address:
        person.claude("-p", "Look it up.", "--output-format", "json", api=address)
    return [request for request in script.requests if request.tools][-1].newest.text


@ANY_CLIENT
def test_reading_memory_in_a_shell_needs_the_rule(person: Person) -> None:
    person.puts_on_path("ctx", (CTX,))
    node = person.adds("Deploys run on Mondays.", "--type=fact", "--tag=tier:off-context")
    assert "Deploys run" not in in_a_shell(person, "ctx recall deploys")
    path = person.home / ".claude" / "settings.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps(settings | rule()))
    # The client looks at each of them, and runs all or none.
    asked = f"ctx recall deploys && ctx search deploys && ctx show {node[:12]}"
    assert in_a_shell(person, asked).count("Deploys run on Mondays.") == 3
    for other in (
        f"ctx delete {node[:12]} --yes",
        "ctx query deploys --output notes.txt",
        "ctx --set search.vectors=false recall deploys",
    ):
        assert "approval" in in_a_shell(person, other)
    assert [*person.nodes()] == ["Deploys run on Mondays."]
