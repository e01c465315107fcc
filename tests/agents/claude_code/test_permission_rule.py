"""The recommended permission rule is the same in every text and allows only reading."""

import json
import re
from pathlib import Path

import pytest

from ctx.cli.options import READ_ONLY

ROOT = Path(__file__).parents[3]
AGENTS = ROOT / "src" / "ctx" / "agents"
RECOMMENDED = ("recall", "search", "show")


@pytest.mark.parametrize(
    "page",
    [
        ROOT / "README.md",
        ROOT / "docs" / "claude-code.md",
        AGENTS / "claude_code" / "texts" / "README.md",
        AGENTS / "host_setup" / "texts" / "skill" / "SKILL.md",
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_rule_allows_only_reading_commands(page: Path) -> None:
    (found,) = [
        block.strip()
        for block in re.findall(r"```json\n(.+?)```", page.read_text(), re.DOTALL)
        if "permissions" in block
    ]
    rule = json.loads(found if found.startswith("{") else f"{{{found}}}")
    allowed = [f"Bash(ctx {command}:*)" for command in RECOMMENDED]
    assert rule == {"permissions": {"allow": allowed}}


def test_every_rule_in_every_text_names_a_read_only_command() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*")]
    rules = {
        (rule, page.name)
        for page in pages
        if page.is_file() and page.suffix != ".pyc"
        for rule in re.findall(r"Bash\((ctx[^)]*)\)", page.read_text(errors="replace"))
    }
    assert len(rules) > len(RECOMMENDED)
    allowed = {f"ctx {command}:*" for command in READ_ONLY}
    assert {(rule, page) for rule, page in rules if rule not in allowed} == set()
