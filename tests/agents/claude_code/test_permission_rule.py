"""What a person is told to allow is the same wherever it is told, and only reads."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXTS = ROOT / "src" / "ctx" / "agents" / "claude_code" / "texts"


@pytest.mark.parametrize(
    "page",
    [
        ROOT / "README.md",
        ROOT / "docs" / "claude-code.md",
        TEXTS / "README.md",
        TEXTS / "skill" / "SKILL.md",
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_rule(page: Path) -> None:
    (found,) = [
        block.strip()
        for block in re.findall(r"```json\n(.+?)```", page.read_text(), re.DOTALL)
        if "permissions" in block
    ]
    rule = json.loads(found if found.startswith("{") else f"{{{found}}}")
    allowed = [f"Bash(ctx {command}:*)" for command in ("recall", "search", "show", "query")]
    assert rule == {"permissions": {"allow": allowed}}
