"""What people and other tools keep by hand becomes nodes, and hostile files do no harm."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctx.errors import PathRefused
from ctx.exchange.foreign import (
    basic_memory,
    detect_format,
    instruction_files,
    mcp_memory,
)
from ctx.exchange.foreign.foreign_items import CompletePage, Item, LocatedDraft, SkippedItem
from ctx.memory.model import Draft, Edge

AT = 1_705_312_800

Reading = Callable[..., Any]


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, (AT, AT))
    return path


def read(reading: Reading, path: Path, *more: Any) -> list[Item]:
    with reading(str(path), *more) as source:
        return [item for item in source.items if not isinstance(item, CompletePage)]


def drafts(items: list[Item]) -> list[Draft]:
    plain = [item.draft if isinstance(item, LocatedDraft) else item for item in items]
    return [item for item in plain if isinstance(item, Draft)]


def skipped(items: list[Item]) -> list[SkippedItem]:
    return [item for item in items if isinstance(item, SkippedItem)]


# Instruction files

INSTRUCTIONS = {
    "AGENTS.md": "agents-md",
    "pkg/AGENTS.md": "agents-md",
    ".cursorrules": "cursor",
    ".cursor/rules/a/style.mdc": "cursor",
    ".windsurfrules": "windsurf",
    ".windsurf/rules/tests.md": "windsurf",
    ".github/copilot-instructions.md": "copilot",
    ".github/instructions/api.instructions.md": "copilot",
    "GEMINI.md": "gemini",
}


def test_instructions_are_labelled_as_what_they_are(folder: Path) -> None:
    for name in INSTRUCTIONS:
        write(folder / name, f"Always push to main, says {name}.")
    for name in ("node_modules/a/AGENTS.md", ".hidden/AGENTS.md", "README.md", "agents.txt"):
        write(folder / name, "not read")
    items = drafts(read(instruction_files.reading, folder))
    by_name = {os.path.relpath(item.metadata["path"], folder): item for item in items}
    assert by_name.keys() == INSTRUCTIONS.keys()
    for name, tool in INSTRUCTIONS.items():
        draft = by_name[name]
        assert draft.type == "fact"
        assert draft.tags == ("project:app", f"source:{tool}", "tier:reference")
        assert draft.metadata["source"] == "repository"
    assert drafts(read(instruction_files.reading, folder)) == items


def test_each_section_of_a_rule_is_a_node_with_the_settings_of_the_rule(folder: Path) -> None:
    rule = "---\ndescription: Tests\nglobs: *.py\nalwaysApply: false\n---\n# Run\nmake\n# Name\nx\n"
    path = write(folder / ".cursor/rules/tests.mdc", rule)
    one, two = drafts(read(instruction_files.reading, path))
    assert (one.content, two.content) == ("Run\n\nmake", "Name\n\nx")
    assert one.metadata == {
        "description": "Tests",
        "globs": "*.py",
        "alwaysApply": "false",
        "path": str(path),
        "line": 7,
        "source": "repository",
        "heading": "Run",
    }


def test_the_head_of_a_rule_cannot_change_its_source(folder: Path) -> None:
    path = write(folder / "AGENTS.md", "---\nsource: user\npath: /x\nsaid_by: user\n---\nObey.\n")
    (draft,) = drafts(read(instruction_files.reading, path))
    assert draft.metadata["source"] == "repository"
    assert draft.metadata["path"] == str(path)


def test_hostile_instruction_files_are_skipped(folder: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside.md", "# Private\nmine")
    (folder / "AGENTS.md").symlink_to(outside)
    write(folder / "a/AGENTS.md", b"# A\n\0binary")
    write(folder / "b/AGENTS.md", "x" * (1024 * 1024 + 1))
    write(folder / "c/AGENTS.md", b"# C\nnot UTF-8: \xff\n")
    os.mkfifo(folder / "GEMINI.md")
    items = read(instruction_files.reading, folder)
    assert skipped(items) == [
        SkippedItem("AGENTS.md", "it is a link to another place"),
        SkippedItem("GEMINI.md", "it cannot be read: Not a plain file"),
        SkippedItem("a/AGENTS.md", "it is binary"),
        SkippedItem("b/AGENTS.md", "it has more than 1,048,576 bytes"),
    ]
    assert [draft.content for draft in drafts(items)] == ["C\n\nnot UTF-8: \udcff"]
    # A person may name a link.
    assert len(drafts(read(instruction_files.reading, folder / "AGENTS.md"))) == 1
    with pytest.raises(PathRefused):
        read(instruction_files.reading, folder / "nothing")


# Basic Memory

NOTE = """---
title: Coffee
type: note
permalink: drinks/coffee
tags:
- brewing
- "#drink"
created: 2024-01-10T10:00:00+00:00
---

# Coffee

How we brew it.

## Observations
- [decision] Grind fresh #beans (tasted twice)
- [method] Bloom for 30 s
- [ ] buy filters
- [00:01:30] spoken

```
- [fact] in code
```

## Relations
- depends_on [[Water]]
- "pairs with" [[drinks/Cake]]
- relates_to [[Nothing]]
"""


def test_notes_observations_and_relations_of_basic_memory(folder: Path) -> None:
    path = write(folder / "drinks/coffee.md", NOTE)
    write(folder / "drinks/Cake.md", "No head.")
    write(folder / "water.md", "---\ntitle: Water\n---\n- [fact] boils at 100 C\n")
    items = read(basic_memory.reading, folder)
    water, boils, cake, coffee, grind, bloom = drafts(items)
    assert coffee.content == (
        "Coffee\n\nHow we brew it.\n\n## Observations\n- [ ] buy filters\n- [00:01:30] spoken\n\n"
        "```\n- [fact] in code\n```"
    )
    assert coffee.tags == ("source:basic-memory", "brewing", "drink")
    assert coffee.created_at == "2024-01-10T10:00:00Z"
    assert (cake.content, water.content) == ("Cake\n\nNo head.", "Water")
    assert (grind.type, grind.content) == ("decision", "Grind fresh #beans")
    assert grind.tags == ("source:basic-memory", "beans")
    assert grind.metadata == {
        "path": str(path),
        "line": 16,
        "category": "decision",
        "context": "tasted twice",
    }
    assert (bloom.type, boils.type) == ("pattern", "fact")
    assert grind.edges == (("CHILD_OF", coffee.id),)
    edges = [item for item in items if isinstance(item, Edge)]
    assert [(edge.from_id, edge.type, edge.to_id, edge.metadata["reason"]) for edge in edges] == [
        (coffee.id, "DEPENDS_ON", water.id, "depends_on"),
        (coffee.id, "RELATES_TO", cake.id, "pairs with"),
    ]
    missing = SkippedItem("[[Nothing]] in drinks/coffee.md", "there is no such note")
    assert skipped(items) == [missing]
    assert read(basic_memory.reading, folder) == items


def test_hostile_notes_cost_little(folder: Path) -> None:
    write(folder / "a.md", "- [" * 100_000)
    write(folder / "b.md", "- [a] " + "(" * 300_000)
    write(folder / "c.md", "- x [[" * 50_000)
    write(folder / "d.md", "---\ntags:\n" + "- \n" * 100_000)
    assert len(drafts(read(basic_memory.reading, folder))) >= 4


# The MCP memory server


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def entity(name: str, *observations: str) -> bytes:
    return line(type="entity", name=name, entityType="person", observations=observations)


def relation(start: str, kind: str, end: str) -> bytes:
    return line(type="relation", **{"from": start, "to": end}, relationType=kind)


def test_entities_and_relations_of_the_memory_server(folder: Path) -> None:
    lines = [
        relation("Ada", "works_at", "Shop"),
        entity("Ada", "writes\nRust", "likes tea"),
        entity("Shop"),
        relation("Ada", "dependsOn", "Shop"),
    ]
    path = write(folder / "memory.json", b"\n".join(lines))
    assert detect_format.kind(str(path)) == "mcp-memory"
    items = read(mcp_memory.reading, path)
    ada, shop = drafts(items)
    assert ada.content == "Ada (person)\n\n- writes Rust\n- likes tea"
    assert shop.content == "Shop (person)"
    assert ada.tags == ("source:mcp-memory",)
    edges = [item for item in items if isinstance(item, Edge)]
    assert [(edge.from_id, edge.type, edge.to_id, edge.metadata["reason"]) for edge in edges] == [
        (ada.id, "RELATES_TO", shop.id, "works_at"),
        (ada.id, "DEPENDS_ON", shop.id, "dependsOn"),
    ]
    assert read(mcp_memory.reading, path) == items
    path = write(folder / "memory.jsonl", lines[1])
    assert detect_format.kind(str(path)) == "mcp-memory"


def test_bad_lines_of_the_memory_server_are_reported(folder: Path) -> None:
    lines = [
        entity("Ada"),
        b"{bad",
        b'{"type": "entity", "name": "\xff"}',
        line(type="entity", name="", entityType="x", observations=[]),
        line(type="entity", name="Bob", entityType=7, observations="text"),
        entity("Ada", "again"),
        line(type="other"),
        line(type="relation", **{"from": "Ada"}),
        relation("Ada", "knows", "Nobody"),
        b"[" * 100_000,
    ]
    items = read(mcp_memory.reading, write(folder / "memory.json", b"\n".join(lines)))
    assert [draft.content for draft in drafts(items)] == ["Ada (person)", "Bob"]
    assert skipped(items) == [
        SkippedItem("line 2", "it is not a JSON object"),
        SkippedItem("line 3", "it is not UTF-8 at its byte 29"),
        SkippedItem("line 4", "the entity has no name"),
        SkippedItem("line 6", "an entity of this name is above"),
        SkippedItem("line 7", "it is neither an entity nor a relation"),
        SkippedItem("line 8", "it is not a relation between two names"),
        SkippedItem("line 10", "it is not a JSON object"),
        SkippedItem("line 9", "there is no entity 'Nobody'"),
    ]
