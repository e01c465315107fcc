"""Log files as reviewers read them, with any content."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ctx.errors import UsageError
from ctx.narrative import document_format, log_files
from ctx.narrative.log_files import Entry
from ctx.narrative.narrative_scan import GivenNarrative

PARSER = MarkdownIt("commonmark")
NOON = 1_768_910_700_000  # 2026-01-20T12:05:00Z

ENTRY = Entry(
    title="Retry with jitter",
    at_ms=NOON,
    author="A Person <person@example.org>",
    session="cli",
    message="Retry with jitter\n\nThe old way hit `Vec<u8>` <b>hard</b>:\n- # a\n- second\n\n# No",
    sections=[
        ("Changes", ["+ decision 01M7ESYZ1SB4: Use jitter", "- fact 01M7: a\nb", "# fact: <!-- x"]),
        ("Nothing", []),
        ("Files", ["src/net.rs", "1. x", "[a]: b", "--> `"]),
    ],
)


def test_an_entry_is_rendered() -> None:
    assert log_files.render(ENTRY) == (
        "# Retry with jitter\n"
        "\n"
        "<!-- metadata:\n"
        "created: 2026-01-20T12:05:00Z\n"
        "updated: 2026-01-20T12:05:00Z\n"
        'author: "A Person <person@example.org>"\n'
        "session: cli\n"
        "-->\n"
        "\n"
        "The old way hit `Vec<u8>` \\<b>hard\\</b>:\n"
        "- \\# a\n"
        "- second\n"
        "\n"
        "\\# No\n"
        "\n"
        "## Changes\n"
        "\n"
        "- `+` decision 01M7ESYZ1SB4: Use jitter\n"
        "- `-` fact 01M7: a b\n"
        "- `#` fact: \\<!-- x\n"
        "\n"
        "## Files\n"
        "\n"
        "- src/net.rs\n"
        "- 1\\. x\n"
        "- \\[a]: b\n"
        "- --> \\`\n"
    )


def test_an_empty_entry_is_rendered() -> None:
    assert log_files.render(Entry("T", NOON, "", "", "", [])) == (
        "# T\n\n<!-- metadata:\ncreated: 2026-01-20T12:05:00Z\nupdated: 2026-01-20T12:05:00Z\n-->\n"
    )
    assert 'author: "?"' in log_files.render(Entry("T", NOON, "\udcff", "", "", []))


PIECES = st.sampled_from(
    [
        "#", "# ", "## x", ">", "> ", "-", "- ", "+ ", "* ", "1. ", "1) ", "```", "`", "``", "~~~",
        "~~~\n", "\n", "\n\n", "\r", "\u2028", "\t", "    ", "===", "---", "***", "___", "<b>", "<",
        "</", "<!--", "-->", "<?x", "<!X", "<![CDATA[", "&lt;b>", "[a]: b", "[a]:", "](", "\\",
        "\\\\", "x", "*", "_", "|", "<http://x>", "![a](b)",
    ]
)  # fmt: skip
ANYTHING = st.lists(PIECES | st.text(max_size=3), max_size=10).map("".join)


@given(ANYTHING, ANYTHING, st.lists(ANYTHING, max_size=4), ANYTHING)
@example("", "a ` b\nc ` <b> `", [], "")
@example("", "a\n===", ["```"], "")
def test_text_cannot_leave_its_place(
    title: str, message: str, lines: list[str], author: str
) -> None:
    text = log_files.render(Entry(title, NOON, author, "cli", message, [("Changes", lines)]))
    tokens = PARSER.parse(text)
    flat = [inner for token in tokens for inner in (token.children or [])]
    headings = [token.tag for token in tokens if token.type == "heading_open"]
    assert headings == ["h1"] * bool(title.strip()) + ["h2"] * bool(lines)
    html = [token.content for token in tokens if token.type == "html_block"]
    assert len(html) == 1
    assert html[0].startswith("<!-- metadata:\n")
    assert [token for token in flat if token.type == "html_inline"] == []
    assert {token.type for token in tokens} <= {
        "heading_open", "heading_close", "inline", "html_block", "paragraph_open",
        "paragraph_close", "bullet_list_open", "bullet_list_close", "list_item_open",
        "list_item_close", "ordered_list_open", "ordered_list_close",
    }  # fmt: skip
    if lines:
        last = text.rpartition("## Changes\n\n")[2]
        assert last.count("\n") == len(lines)
    assert document_format.parse(text).created == "2026-01-20T12:05:00Z"


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("Retry needs jitter", "Retry needs jitter", ""),
        ("# Retry\n\n```\n# x\n```\n", "Retry", "```\n# x\n```"),
        ("x" * 101 + "\nmore", "x" * 99 + "…", "x" * 101 + "\nmore"),
        ("\n\n", "", ""),
    ],
)
def test_a_note_is_rendered(text: str, title: str, body: str) -> None:
    made = log_files.note(text, NOON, "A Person", "cli", ["note", "area:net"])
    found = document_format.parse(made)
    assert (found.title, found.body) == (title, body)
    assert found.tags == ("note", "area:net")
    assert document_format.entry(made, "author") == "A Person"
    assert document_format.entry(made, "session") == "cli"
    assert document_format.entry(made, "other") == ""


@pytest.fixture
def narrative(tmp_path: Path) -> Path:
    folder = tmp_path / "narrative"
    for path, text in {
        "log/2026-01-20-1205-bbbb.md": log_files.render(ENTRY._replace(message="", sections=[])),
        "log/2026-01-20-0905-aaaa.md": log_files.note(
            "Why?\n\n## More\n```\nopen", NOON, "", "", []
        ),
        "feature/net/log/2026-01-20-1000-cccc.md": "<!-- metadata: session: s-1 -->\n<!-- open",
        "log/2026-01-20.md": "# By hand\n\ntext\n",
        "log/2026-01-21-1000-dddd.md": "# Next\n",
        "log/2026-13-40-1000-dddd.md": "# No day\n",
        "log/notes.md": "# No day\n",
        "work/s/log/2026-01-22-1000-dddd.md": "# Work\n",
        "README.md": "# Readme\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "log" / "2026-01-20-0000-link.md").symlink_to("/etc/hosts")
    return folder


def test_the_entries_of_a_day_are_listed(narrative: Path) -> None:
    listed = log_files.day(GivenNarrative(str(narrative), set), "2026-01-20")
    assert listed.split("\n## ") == [
        "# 2026-01-20\n",
        "By hand\n\ntext\n",
        "09:05 Why?\n\n### More\n```\nopen\n```\n",
        "10:00 Untitled\n\n*session s-1, feature-net*\n\n<!-- open\n-->\n",
        "12:05 Retry with jitter\n\n*A Person \\<person@example.org>, session cli*\n",
    ]
    assert log_files.days(str(narrative)) == ["2026-01-20", "2026-01-21"]


def test_days_without_a_log_are_empty(narrative: Path, tmp_path: Path) -> None:
    assert log_files.day(GivenNarrative(str(narrative), set), "2025-01-01") == ""
    assert log_files.days(str(tmp_path / "nowhere")) == []
    for text in ("yesterday", "2026-13-01", "2026-01-32", "../../etc", "2026-01-20\n"):
        with pytest.raises(UsageError, match="is not a day"):
            log_files.day(GivenNarrative(str(narrative), set), text)
