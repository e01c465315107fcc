"""The skill: its statements are true, and installing it removes nothing."""

import os
import re
from pathlib import Path

import pytest

from ctx.agent_commands.command_parser import Command
from ctx.agent_commands.command_parser import parse as parse_commands
from ctx.agents.claude_code import plugin
from ctx.agents.host_setup import skill
from ctx.errors import PathRefused
from ctx.memory import model
from ctx.memory.query.query_parser import parse as parse_query
from ctx.memory.query.syntax import FILTERS
from tests.agents.claude_code.shell_commands import fences, shell_lines, try_to_type

PAGES = skill.files()
TEXTS = {
    **PAGES,
    **{
        name: text
        for name, text in plugin.files().items()
        if name.endswith(".md") and not name.startswith("skills")
    },
}
NAMES = ("remember", "recall", "summarize", "link", "status", "task", "expand", "supersede")


def lines_of(language: str) -> list[tuple[str, str]]:
    found = [(name, block) for name, text in TEXTS.items() for block in fences(text, language)]
    return [(name, line) for name, block in found for line in block.splitlines()]


def rows(text: str) -> list[str]:
    """The first cells of the rows of a table."""
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


# What the client shows, and when it thinks of the skill.


def test_the_description_contains_the_trigger_words() -> None:
    head = re.match(r"---\nname: ctx\ndescription: (.+)\n---\n", PAGES["SKILL.md"])
    assert head is not None
    description = head[1]
    assert len(description) <= 500
    # A plain scalar of YAML, in one line.
    assert ": " not in description
    assert " #" not in description
    for words in (
        "remember",
        "recall",
        "past knowledge",
        "past discussions",
        "what do you remember",
        "context",
        "memory",
    ):
        assert words in description.lower()


def test_the_first_page_is_short_and_links_to_the_others() -> None:
    assert len(PAGES["SKILL.md"].splitlines()) < 200
    for name, text in PAGES.items():
        targets = re.findall(r"\]\(([^)]+)\)", text)
        assert set(targets) <= set(PAGES), name
    assert set(re.findall(r"\]\(([^)]+)\)", PAGES["SKILL.md"])) == set(PAGES) - {"SKILL.md"}


# Everything that can be typed is right.


@pytest.mark.parametrize(
    ("name", "block"),
    [(name, block) for name, text in TEXTS.items() for block in fences(text, "xml")],
)
def test_every_command_in_the_texts_is_valid(name: str, block: str) -> None:
    found = parse_commands(block)
    assert [each for each in found if not isinstance(each, Command)] == []
    assert len(found) == len(re.findall(r"<ctx:", block)), "not all of it was read"


@pytest.mark.parametrize("name", TEXTS)
def test_reading_a_page_aloud_runs_no_command(name: str) -> None:
    assert parse_commands(TEXTS[name]) == []


@pytest.mark.parametrize("page", ["SKILL.md", "commands.md"])
def test_every_command_has_an_example(page: str) -> None:
    shown = [command for block in fences(PAGES[page], "xml") for command in parse_commands(block)]
    assert {each.name for each in shown if isinstance(each, Command)} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_attribute_in_the_tables_is_read(name: str) -> None:
    section = PAGES["commands.md"].partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    example = next(
        command
        for block in fences(section, "xml")
        for command in parse_commands(block)
        if isinstance(command, Command)
    )
    values = {"tags": "topic:auth", "scope": "user", "tier": "working", "archive": "true"}
    values |= {"action": "end", "summarize": "true"}
    attributes = dict(example.attributes)
    for row in rows(section):
        attributes[row] = values.get(row, attributes.get(row, "01HQ1A2B3C4D"))
    written = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    text = f"<ctx:{name} {written}>{example.content}</ctx:{name}>"
    (read,) = parse_commands(text)
    assert isinstance(read, Command), read
    # A tier is one of the tags.
    assert set(attributes) - {"tier"} <= set(read.attributes)


@pytest.mark.parametrize(
    ("page", "line"), [(name, line) for name, text in TEXTS.items() for line in shell_lines(text)]
)
def test_every_shell_command_is_valid(page: str, line: str) -> None:
    try_to_type(line)


@pytest.mark.parametrize(("page", "line"), lines_of("query"))
def test_every_query_is_a_filter_query(page: str, line: str) -> None:
    assert parse_query(line).mode == "filters"


@pytest.mark.parametrize(("page", "line"), lines_of("words"))
def test_every_question_is_a_text_query(page: str, line: str) -> None:
    assert parse_query(line).mode == "text"


def test_the_table_of_filters_is_complete() -> None:
    found = rows(PAGES["query-language.md"])
    assert {row.partition(":")[0] for row in found} == set(FILTERS)
    assert {parse_query(row).mode for row in found} == {"filters"}


def test_the_types_and_tiers_are_complete() -> None:
    types = PAGES["SKILL.md"].partition("## Types")[2].partition("## Tiers")[0]
    assert set(rows(types)) == set(model.KNOWLEDGE_TYPES)
    tiers = PAGES["SKILL.md"].partition("## Tiers")[2].partition("## Scopes")[0]
    assert rows(tiers) == [
        model.PINNED,
        model.REFERENCE,
        model.WORKING,
        model.OFF_CONTEXT,
    ]
    relations = PAGES["SKILL.md"].partition("## Relations")[2].partition("## Good")[0]
    assert set(re.findall(r"`([A-Z_]+)`", relations)) <= set(model.EDGE_TYPES)


# Put in place, brought up to date, taken away.


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "skills" / "ctx"


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def older(text: str) -> str:
    """A page as an older version would have written it."""
    return skill.add_mark(text.rpartition("\n<!-- ctx-skill")[0] + "An older sentence.\n")


def test_the_skill_is_written_once_and_then_current(place: Path) -> None:
    assert not skill.is_current(str(place))
    assert skill.planned_state(str(place)) == "written"
    assert not place.parent.exists()
    assert skill.write(str(place)) == "written"
    assert contents(place) == PAGES
    assert {path.stat().st_mode & 0o777 for path in place.iterdir()} == {0o600}
    assert skill.is_current(str(place))
    assert skill.write(str(place)) == "current"
    assert skill.edited_pages(str(place)) == ()


def test_an_older_version_is_replaced(place: Path) -> None:
    skill.write(str(place))
    (place / "SKILL.md").write_text(older(PAGES["SKILL.md"]))
    (place / "gone.md").write_text(older("A page that there was once.\n"))
    (place / "mine.md").write_text("Mine.\n")
    assert skill.edited_pages(str(place)) == ()
    assert not skill.is_current(str(place))
    assert skill.write(str(place)) == "updated"
    assert contents(place) == {**PAGES, "mine.md": "Mine.\n"}


def test_an_edited_page_is_backed_up(place: Path) -> None:
    skill.write(str(place))
    for number, name in ((1, "SKILL.md.edited"), (2, "SKILL.md.edited-2")):
        changed = PAGES["SKILL.md"].replace("# ctx", f"# Mine {number}")
        (place / "SKILL.md").write_text(changed)
        assert skill.edited_pages(str(place)) == (str(place / "SKILL.md"),)
        assert skill.write(str(place)) == "updated"
        assert contents(place)["SKILL.md"] == PAGES["SKILL.md"]
        assert contents(place)[name] == changed
        assert skill.write(str(place)) == "current"
    names = ("SKILL.md.edited", "SKILL.md.edited-2")
    assert skill.put_aside(str(place)) == tuple(str(place / name) for name in names)
    assert skill.remove(str(place), force=True) == "removed"
    assert sorted(contents(place)) == [*names]


def test_the_skill_is_removed_completely(place: Path) -> None:
    assert skill.remove(str(place), force=False) == "missing"
    skill.write(str(place))
    (place / "SKILL.md").write_text(older(PAGES["SKILL.md"]))
    (place / "gone.md").write_text(older("A page that there was once.\n"))
    assert skill.remove(str(place), force=False, dry_run=True) == "removed"
    assert "gone.md" in contents(place)
    assert skill.remove(str(place), force=False) == "removed"
    assert not place.parent.exists()


def test_removing_keeps_files_of_the_user(place: Path) -> None:
    skill.write(str(place))
    (place.parent / "other").mkdir()
    (place / "mine.md").write_text("Mine.\n")
    (place / "examples.md").write_text("Changed.\n")
    assert skill.remove(str(place), force=False) == "kept"
    assert contents(place) == {"mine.md": "Mine.\n", "examples.md": "Changed.\n"}
    assert skill.remove(str(place), force=True) == "removed"
    assert contents(place) == {"mine.md": "Mine.\n"}
    assert skill.remove(str(place), force=True) == "missing"


def test_a_link_of_the_user_stays(place: Path, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles.md"
    dotfiles.write_text(older(PAGES["SKILL.md"]))
    place.mkdir(parents=True)
    (place / "SKILL.md").symlink_to(dotfiles)
    assert skill.write(str(place)) == "updated"
    assert (place / "SKILL.md").is_symlink()
    assert dotfiles.read_text() == PAGES["SKILL.md"]


@pytest.mark.parametrize("target", ["/dev/zero", "nowhere", "secret"])
def test_links_to_other_files_are_replaced(place: Path, target: str) -> None:
    place.mkdir(parents=True)
    (place / "secret").write_text("A person's own.\n")
    (place / "SKILL.md").symlink_to(target)
    os.mkfifo(place / "commands.md")
    (place / "examples.md").mkdir()
    assert skill.write(str(place)) == "updated"
    assert {name: (place / name).read_text() for name in PAGES} == PAGES
    assert (place / "secret").read_text() == "A person's own.\n"
    assert os.readlink(place / "SKILL.md.edited") == target


@pytest.mark.parametrize("name", ["skills", "skills/ctx"])
def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    there = tmp_path / name
    there.parent.mkdir(exist_ok=True)
    there.write_text("a file\n")
    for attempt in (skill.planned_state, skill.write):
        with pytest.raises(PathRefused) as raised:
            attempt(str(tmp_path / "skills" / "ctx"))
        assert (
            raised.value.message
            == f"{there} is not a folder, so the skill cannot be written there."
        )
        assert raised.value.hint == "Move it away, or leave the skill out with --no-skill."
    there.unlink()
    there.symlink_to("nowhere")
    with pytest.raises(PathRefused):
        skill.write(str(tmp_path / "skills" / "ctx"))
