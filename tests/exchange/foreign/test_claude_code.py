import os
import re
from pathlib import Path
from typing import Any

import pytest

from ctx.errors import PathRefused
from ctx.exchange.foreign import claude_code
from ctx.exchange.foreign.claude_code import ClaudeFolders
from ctx.exchange.foreign.foreign_items import CompletePage, Item, SkippedItem
from ctx.memory.model import Draft
from tests.conftest import git

AT = 1_705_312_800


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (AT, AT))
    return path


def read(
    *paths: Path, home: Path | None = None, project: str | None = None, near: Path | None = None
) -> list[Item]:
    """The items, without the marks that a page is complete."""
    config = str((home or Path("/nowhere")) / ".claude")
    folders = ClaudeFolders(config, [str(near)] if near else [])
    with claude_code.reading([str(path) for path in paths], folders, project) as reading:
        return [item for item in reading.items if not isinstance(item, CompletePage)]


def shown(items: list[Item]) -> list[Any]:
    return [
        (item.type, item.content, *item.tags, item.metadata["line"])
        if isinstance(item, Draft)
        else item
        for item in items
    ]


TAGS = ("project:app", "source:claude-code", "tier:reference")


def test_each_section_is_a_node(folder: Path) -> None:
    page = write(
        folder / "CLAUDE.md",
        "An app.\n\n# App\n\nSells things.\n\n## Commands\n\n```sh\n# not a heading\nmake\n```\n\n"
        "## Code style\n- tabs\n- no globals\n\n## Empty\n\n# Rules ##\nNever push.\n",
    )
    items = read(folder)
    assert shown(items) == [
        ("fact", "An app.", *TAGS, 1),
        ("fact", "App\n\nSells things.", *TAGS, 5),
        ("fact", "Commands\n\n```sh\n# not a heading\nmake\n```", *TAGS, 9),
        ("pattern", "Code style\n\n- tabs\n- no globals", *TAGS, 15),
        ("pattern", "Rules\n\nNever push.", *TAGS, 21),
    ]
    style = items[3]
    assert isinstance(style, Draft)
    assert style.metadata == {"path": str(page), "line": 15, "heading": "App / Code style"}
    assert style.created_at == style.updated_at == "2024-01-15T10:00:00Z"
    assert read(folder) == items


def test_without_headings_each_block_is_a_node(folder: Path) -> None:
    write(folder / "CLAUDE.md", "We write tests first.\n\nAlways:\n\n- lint\n- format\n\n\nBye.\n")
    assert [content for _, content, *_ in shown(read(folder))] == [
        "We write tests first.",
        "Always:\n\n- lint\n- format",
        "Bye.",
    ]


def test_a_section_keeps_its_id_when_it_or_others_change(folder: Path) -> None:
    write(folder / "CLAUDE.md", "# One\na\n# Two\nb\n# Two\nc\n")
    before = [item.id for item in read(folder) if isinstance(item, Draft)]
    write(folder / "CLAUDE.md", "# Zero\nz\n# One\nchanged\n# Two\nb\n# Two\nc\n")
    after = [item.id for item in read(folder) if isinstance(item, Draft)]
    assert after[1:] == before
    assert len(set(after)) == 4


def test_equal_headings_are_distinguished_by_their_text(folder: Path) -> None:
    write(folder / "CLAUDE.md", "One\n\nTwo\n\nTwo\n")
    one, two = (item.id for item in read(folder) if isinstance(item, Draft))
    write(folder / "CLAUDE.md", "Zero\n\nOne\n\nTwo\n")
    assert [i.id for i in read(folder) if isinstance(i, Draft)][1:] == [one, two]


def test_a_page_lists_the_ids_of_its_sections(folder: Path) -> None:
    page = write(folder / "CLAUDE.md", "# One\na\n# Two\nb\n")
    with claude_code.reading([str(page)], ClaudeFolders("/nowhere"), "shop") as reading:
        one, two, whole = reading.items
    assert isinstance(one, Draft)
    assert isinstance(two, Draft)
    tags = ("project:shop", "source:claude-code")
    assert whole == CompletePage(str(page), tags, frozenset({one.id, two.id}))


def test_the_description_of_a_page_is_not_a_summary_of_its_sections(folder: Path) -> None:
    head = "---\ndescription: About errors\n---\n"
    write(folder / ".claude" / "rules" / "errors.md", f"{head}# One\na\n")
    write(folder / ".claude" / "rules" / "more.md", f"{head}# One\na\n# Two\nb\n")
    drafts = [item for item in read(folder) if isinstance(item, Draft)]
    assert [draft.summary for draft in drafts] == ["About errors", None, None]


def test_the_project_tag_comes_from_the_repository(folder: Path) -> None:
    git("init", "-q")
    write(folder / "CLAUDE.md", "top")
    write(folder / "CLAUDE.local.md", "local")
    write(folder / ".claude" / "CLAUDE.md", "inner")
    write(folder / ".claude" / "rules" / "api" / "errors.md", "rule")
    write(folder / "src" / "deep" / "CLAUDE.md", "nested")
    write(folder / "node_modules" / "x" / "CLAUDE.md", "theirs")
    write(folder / "projects" / "one" / "CLAUDE.md", "of a part")
    write(folder / "README.md", "not for the agent")
    assert [content for _, content, *_ in shown(read(folder))] == [
        "top",
        "local",
        "inner",
        "rule",
        "of a part",
        "nested",
    ]
    items = read(folder / "src")
    assert shown(items) == [("fact", "nested", *TAGS, 1)]
    assert shown(read(folder / "src", project="shop"))[0][2] == "project:shop"


def test_imported_pages_are_read(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "secret.md", "theirs")
    write(folder / "docs" / "style.md", "Style, and @more.txt")
    write(folder / "docs" / "more.txt", "More")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    write(
        folder / "CLAUDE.md",
        "See @docs/style.md, @docs/style.md, @../secret.md, @~/me.md, @link.md and @gone.md.\n"
        "Mail me@example.md, use @types/node, `@code.md`.\n```\n@fenced.md\n```\n",
    )
    items = read(folder)
    assert [content for _, content, *_ in shown([i for i in items if isinstance(i, Draft)])][
        1:
    ] == [
        "Style, and @more.txt",
        "More",
    ]
    outside = "it is outside of the folder"
    assert [item for item in items if isinstance(item, SkippedItem)] == [
        SkippedItem("@../secret.md in CLAUDE.md", outside),
        SkippedItem("@~/me.md in CLAUDE.md", outside),
        SkippedItem("@link.md in CLAUDE.md", outside),
        SkippedItem("@gone.md in CLAUDE.md", "there is no such file"),
    ]


def test_circular_imports_end(folder: Path) -> None:
    write(folder / "CLAUDE.md", "@a.md")
    for here, there in zip("abcdefg", "bcdefga", strict=True):
        write(folder / f"{here}.md", f"@{there}.md")
    told, skipped = read(folder)
    # What only names a page that is read says nothing itself.
    assert isinstance(told, Draft)
    assert (told.content, told.metadata["path"]) == ("@f.md", str(folder / "e.md"))
    assert skipped == SkippedItem("@f.md in e.md", "more than 5 imports lead to it")


def test_sections_that_only_name_files(folder: Path) -> None:
    write(folder / "style.md", "Tabs.")
    write(
        folder / "CLAUDE.md",
        "# Read\n@style.md\n- @style.md\n\n# Also\n@style.md\n@gone.md\n\n# See\nthe @style.md\n",
    )
    assert [i.content for i in read(folder) if isinstance(i, Draft)] == [
        "Also\n\n@style.md\n@gone.md",
        "See\n\nthe @style.md",
        "Tabs.",
    ]


def test_links_out_of_the_project_are_skipped(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "private.md", "a person's own")
    (folder / "CLAUDE.md").symlink_to(tmp_path / "private.md")
    (folder / "sub").mkdir()
    os.mkfifo(folder / "sub" / "CLAUDE.md")
    assert read(folder) == [SkippedItem("CLAUDE.md", "it is a link to another place")]
    # A link inside the project is an everyday thing, and so is one that a person names.
    write(folder / "AGENTS.md", "for agents")
    (folder / "CLAUDE.local.md").symlink_to("AGENTS.md")
    assert [i.content for i in read(folder) if isinstance(i, Draft)] == ["for agents"]
    named = read(folder / "CLAUDE.md")
    assert [i.content for i in named if isinstance(i, Draft)] == ["a person's own"]


def test_generated_blocks_are_left_out(folder: Path) -> None:
    write(
        folder / "CLAUDE.md",
        "# Mine\nkept\n<claude-mem-context>\n# Recent\nx\n</claude-mem-context>\n"
        "<!-- ctx: 3 nodes -->\n- y\n<!-- ctx:end -->\n# Also mine\nkept too\n",
    )
    assert [(content, line) for _, content, *_, line in shown(read(folder))] == [
        ("Mine\n\nkept", 2),
        ("Also mine\n\nkept too", 11),
    ]


def test_unreadable_pages_are_skipped_with_a_reason(folder: Path) -> None:
    (folder / "CLAUDE.md").write_bytes(b"a\0b")
    (folder / "CLAUDE.local.md").write_text("x" * (1024 * 1024 + 1))
    assert read(folder) == [
        SkippedItem("CLAUDE.md", "it is binary"),
        SkippedItem("CLAUDE.local.md", "it has more than 1,048,576 bytes"),
    ]
    (folder / "CLAUDE.local.md").write_bytes(b"not \xff UTF-8")
    assert [i.content for i in read(folder) if isinstance(i, Draft)] == ["not \udcff UTF-8"]
    with pytest.raises(PathRefused):
        read(folder / "missing")


NOTE = """---
name: testing-feedback
description: >
  Integration tests,
  not mocks
metadata:
  type: feedback
---
Tests must hit a real database.

**Why:** mocks hid a broken migration.
"""


def test_the_memory_notes_of_claude_code_are_read(surroundings: Path) -> None:
    claude = surroundings / ".claude"
    write(claude / "CLAUDE.md", "# Preferences\nBe brief.\n")
    write(claude / "rules" / "git.md", "Sign commits.")
    notes = claude / "projects" / "-home-me-my-shop" / "memory"
    write(
        notes / "MEMORY.md",
        "# Index\n- [Testing](testing.md) — no mocks\n- [Gone](gone.md)\n\n# Notes\n- fast disk\n",
    )
    write(notes / "testing.md", NOTE)
    write(claude / "projects" / "-x" / "memory" / "MEMORY.md", "- something")
    (claude / "projects" / "-x" / "a.jsonl").write_text(
        '{"type":"summary"}\n{"cwd":"/home/me/my \\"x\\""}\n'
    )
    items = read(claude, home=surroundings)
    source = ("source:claude-code", "tier:reference")
    assert shown(items) == [
        ("pattern", "Preferences\n\nBe brief.", *source, 2),
        ("fact", "Sign commits.", *source, 1),
        ("fact", "Index\n\n- [Gone](gone.md)", "project:home-me-my-shop", *source, 2),
        ("fact", "Notes\n\n- fast disk", "project:home-me-my-shop", *source, 6),
        (
            "pattern",
            "Tests must hit a real database.\n\n**Why:** mocks hid a broken migration.",
            "project:home-me-my-shop",
            "memory:feedback",
            *source,
            9,
        ),
        ("fact", "- something", "project:my-x", *source, 1),
    ]
    note = items[4]
    assert isinstance(note, Draft)
    assert note.summary == "Integration tests, not mocks"
    assert note.metadata["name"] == "testing-feedback"
    assert read(notes / "testing.md")[0].id == note.id  # type: ignore[union-attr]
    assert len(read(notes)) == 3


def test_notes_are_tagged_with_their_project(surroundings: Path, folder: Path) -> None:
    git("init", "-q")
    (folder / "my_lib.d").mkdir()
    name = re.sub("[^A-Za-z0-9]", "-", str(folder))
    for about in (name, f"{name}-my-lib-d", f"{name}-other"):
        write(surroundings / ".claude" / "projects" / about / "memory" / "MEMORY.md", "- a note")
    claude = surroundings / ".claude"
    known = shown(read(claude, home=surroundings, near=folder / "my_lib.d"))
    other = f"{name}-other".strip("-")
    assert [note[2] for note in known] == ["project:app", "project:app", f"project:{other}"]
    assert shown(read(claude, folder, home=surroundings))[0][2] == "project:app"


def test_the_home_folder_is_not_searched_recursively(surroundings: Path) -> None:
    write(surroundings / "CLAUDE.md", "mine")
    write(surroundings / "code" / "CLAUDE.md", "of a project")
    assert [i.content for i in read(surroundings) if isinstance(i, Draft)] == ["mine"]
