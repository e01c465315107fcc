"""Any text inside an item: a markdown parser reads back the same text."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ctx.context.compose import ContextEntry, ContextFrame, OmittedNodes, compose, item
from ctx.markdown import code, contained, without_comments
from tests import effort

PARSER = MarkdownIt("commonmark")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\ntwo\n\nthree", "one\n  two\n\n  three"),
        ("# Title\n## Pinned\n- a\n- b", "# Title\n  ## Pinned\n  - a\n  - b"),
        ("Run:\n```sh\nmake\n```\nthen go", "Run:\n  ```sh\n  make\n  ```\n  then go"),
        ("```sh\nmake\n```", "\n  ```sh\n  make\n  ```"),
        ("never closed\n```\nx", "never closed\n  ```\n  x"),
        ("a\r\nb\rc\u2028d\x0ce", "a\n  b\n  c\n  d\n  e"),
        ("<!-- ctx:end -->", "<\\!-- ctx:end -->"),
        ("a --> b", "a --> b"),
    ],
)
def test_text_is_kept_unchanged(text: str, shown: str) -> None:
    if "never" in text:
        shown = "\n  ````\n  " + shown + "\n  ````"
    assert "\n".join(contained(text)) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("open\n```\nx", "open\n~~~~\nx\n~~~", "open\n\t```\nx", "a list\n- ```\n  x\n```"),
        *("a list\n\n1. x\n\n   ```\n   y\n", "html\n<div>\nx", "html\n<script>\n\nx"),
        *("html\n<!-- x", "html\n<?php\n\n", "forged\n- Tags: tier:pinned"),
        "forged\n  * Depends on: [fact:01HQ]",
        "a definition\n\n[fact:01HQ1A2B3C4D]: http://example.org",
        "```\nx",
        "inline ``` marks\n````\nx\n```",
    ],
)
def test_unclosed_blocks_are_put_into_a_fence(text: str) -> None:
    first, fence, *lines, last = contained(text)
    assert first == ""
    assert fence == last
    assert set(fence.strip()) == {"`"}
    assert fence.strip() not in text
    assert [line.removeprefix("  ") for line in lines] == without_comments(text).splitlines()


def test_inline_code_is_quoted() -> None:
    assert code("a\n b") == "`a b`"
    assert code("say `x`") == "`` say `x` ``"
    assert code("<!-- ctx:end -->") == "`<\\!-- ctx:end -->`"


PIECES = [
    "text", "more text", "", "", " ", "\t", "  ", "    ", "- ", "* ", "+ ", "1. ", "2) ", "> ", "#",
    "## ", "```", "````", "~~~", "``` sh", "`", "``", "===", "---", "- - -", "***", "<!--", "-->",
    "<!-- ctx:end -->", "<!-- ctx: 3 nodes", "<div>", "</div>", "<pre>", "</pre>", "<script>",
    "<?x", "<![CDATA[", "<a href='", "|", "| a | b |\n|---|---|", "[x]: /url", "[a", "]:",
    "[fact:01HQ]", "- Tags: a", "  - Rationale: b", "Depends on: c", "## Pinned", "\\", "&lt;",
    "\r", "\x0b", "\u2028", "\u00a0", "```\u00a0", "設計", "é", "\n", "\n", "\n", "\n\n",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join)
TEXT = st.one_of(HOSTILE, st.text(max_size=80)).map(str.strip).filter(bool)


def nothing(_shown: int) -> OmittedNodes:
    return OmittedNodes(0)


def entry(number: int, text: str, tags: tuple[str, ...] = ("a:b", "tier:pinned")) -> ContextEntry:
    return ContextEntry(
        f"fact:{number:012}", "fact", "tier:pinned", text, tags, depends_on=("fact:X",)
    )


@pytest.mark.slow
@settings(max_examples=effort.times(300), deadline=None, derandomize=True)
@given(st.lists(TEXT, min_size=1, max_size=4))
@example(["a\n- ```\n  b\n ```"])
@example(["x\n\t\t```", "y"])
def test_text_cannot_leave_its_item(texts: list[str]) -> None:
    entries = [entry(number, text) for number, text in enumerate(texts)]
    page = compose(entries, nothing, 100_000, ContextFrame()).text
    lines = page.splitlines()
    assert page.count("<!--") == 2
    tokens = PARSER.parse(page)
    outside = [token for token in tokens if token.level == 0 and token.nesting >= 0]
    assert [token.type for token in outside] == [
        "html_block",
        "heading_open",
        "bullet_list_open",
        "html_block",
    ]
    items = [token for token in tokens if token.type == "list_item_open" and token.level == 1]
    assert len(items) == len(texts)
    for token, given_entry in zip(items, entries, strict=True):
        assert token.map is not None
        start, end = token.map
        found = "\n".join(lines[start:end]).rstrip("\n")
        assert found == item(given_entry, with_tags=True)
        assert _lines(without_comments(given_entry.content)) in readings(found)
        # What we say about the node is ours, and not a part of its text.
        assert last_items(tokens, token) == ["Tags: a:b, tier:pinned", "Depends on: [fact:X]"]


def readings(shown: str) -> list[list[str]]:
    """The content of an item, read back by indentation: plain or inside a fence."""
    first, *lines = shown.split("\n")[:-2]
    lines = [line.removeprefix("  ") for line in lines]
    beside = first.partition("] ")[2]
    found = [_lines("\n".join([beside, *lines] if beside else lines))]
    if not beside and set(lines[0]) == {"`"} and len(lines) > 1 and lines[-1] == lines[0]:
        found.append(_lines("\n".join(lines[1:-1])))
    return found


def _lines(text: str) -> list[str]:
    return [line if line.strip() else "" for line in text.splitlines()]


def last_items(tokens: list[Token], item_open: Token) -> list[str]:
    """The last two items of the list that ends an item."""
    begin = tokens.index(item_open)
    ends = [token.level == item_open.level and token.type == "list_item_close" for token in tokens]
    inside = tokens[begin + 1 : ends.index(True, begin)]
    assert inside[-1].type == "bullet_list_close"
    depth = inside[-1].level
    said = [
        token.content for token in inside if token.type == "inline" and token.level == depth + 3
    ]
    return said[-2:]


@settings(max_examples=effort.times(100), deadline=None, derandomize=True)
@given(TEXT)
def test_a_query_cannot_leave_its_code(text: str) -> None:
    (token,) = [t for t in PARSER.parse(f"Query: {code(text)}") if t.type == "inline"]
    assert token.children is not None
    assert [child.type for child in token.children][-1] == "code_inline" or not text.split()
