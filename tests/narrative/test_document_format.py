"""Documents that people and ctx edit: parsing, rendering and rewriting."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctx.errors import ContentRefused
from ctx.narrative import document_format
from ctx.narrative.document_format import Document, content, parse, render, rewritten, tidy
from tests import effort

DOCUMENT = """\
# Retries

<!-- metadata:
created: 2026-01-20T10:00:00Z
updated: 2026-01-20T15:30:00Z
tags: [rust, async, networking]
mentions: [crates/core/src/net.rs, core::net::Client]
-->

## Summary

With jitter.
"""


def test_a_document_is_read() -> None:
    assert parse(DOCUMENT) == Document(
        title="Retries",
        body="## Summary\n\nWith jitter.",
        created="2026-01-20T10:00:00Z",
        updated="2026-01-20T15:30:00Z",
        tags=("rust", "async", "networking"),
        mentions=("crates/core/src/net.rs", "core::net::Client"),
    )
    assert content(parse(DOCUMENT)) == "Retries\n\n## Summary\n\nWith jitter."
    assert content(parse("# Retries\n")) == "Retries"
    assert content(parse("Only text.\n")) == "Only text."


def test_a_document_is_written() -> None:
    written = render(
        "Retries",
        "With jitter.\n",
        created="2026-01-20T10:00:00Z",
        tags=("rust", "a, b"),
        mentions=["core::net::Client", "src/[id].ts", 'say "-->"'],
    )
    assert written == (
        "# Retries\n"
        "\n"
        "<!-- metadata:\n"
        "created: 2026-01-20T10:00:00Z\n"
        "updated: 2026-01-20T10:00:00Z\n"
        'tags: [rust, "a, b"]\n'
        'mentions: [core::net::Client, "src/[id].ts", "say \\"--\\u003e\\""]\n'
        "-->\n"
        "\n"
        "With jitter.\n"
    )
    assert render("T", "", created="now") == (
        "# T\n\n<!-- metadata:\ncreated: now\nupdated: now\n-->\n"
    )


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("", "", ""),
        ("\ufeff# T\r\n\r\nx\r\ny\r\n", "T", "x\ny"),
        ("# T\rx\ry", "T", "x\ny"),
        ("# T", "T", ""),
        ("# T #\nx", "T", "x"),
        ("# C \\#\nx", "C #", "x"),
        ("#\nx\n# T", "", "x\n# T"),
        ("#hashtag\nx", "", "#hashtag\nx"),
        ("## T\nx", "", "## T\nx"),
        ("intro\n\n# T\nx", "T", "intro\n\nx"),
        ("```sh\n# not\n```\n# T", "T", "```sh\n# not\n```"),
        ("~~~\n# not\n```\n# not\n~~~~\n# T", "T", "~~~\n# not\n```\n# not\n~~~~"),
        ("- a\n  ```\n  # not\n  ```\n# T", "T", "- a\n  ```\n  # not\n  ```"),
        ("```\n# never closed", "", "```\n# never closed"),
        ("``` a `b`\n# T", "T", "``` a `b`"),
        ("    # code\n# T", "T", "    # code"),
        ("<!--\n# not\n-->\n# T", "T", "<!--\n# not\n-->"),
        ("<!-->\n# T", "T", "<!-->"),
        ("<!-- never closed\n# T", "", "<!-- never closed\n# T"),
        ("# A\n# B\nx", "A", "# B\nx"),
        ("# T\n\n    indented\n", "T", "    indented"),
    ],
)
def test_titles_and_bodies(text: str, title: str, body: str) -> None:
    found = parse(text)
    assert (found.title, found.body) == (title, body)


@pytest.mark.parametrize(
    ("lines", "tags"),
    [
        ("tags: [a, b]", ("a", "b")),
        ("tags: []", ()),
        ("tags:", ()),
        ("tags: null", ()),
        ("Tags : [ a ,, b, ] # why", ("a", "b")),
        ("tags: a, b # why", ("a", "b")),
        ("tags: [a[0], b[[1]], c]", ("a[0]", "b[[1]]", "c")),
        ("tags: [\"a, ]\", 'it''s', \"\\u00e9\\ud83d\\ude00\\n\"]", ("a, ]", "it's", "é😀\n")),
        ('tags: ["\\ud800", "\\U00110000", "\\x41"]', ("\ufffd", "\ufffd", "A")),
        ('tags: ["never closed, b]', ('"never closed', "b")),
        ("tags: [a,\n  b,\n  two\n  words]", ("a", "b", "two words")),
        ("tags:\n  - a # why\n  - \"b, c\"\n  - 'd'\n  -\n", ("a", "b, c", "d")),
        ("tags:\r\n- a\r\n- b", ("a", "b")),
        ("tags: [a, b\nmentions: [c]", ("a", "b")),
        ("junk\n: : :\ntags: [a]\n]]]", ("a",)),
        ("tags: [a]\ntags: [b]", ("a",)),
        ("tags: [tier:pinned, http://x/y]", ("tier:pinned", "http://x/y")),
    ],
)
def test_tags_are_read_in_several_notations(lines: str, tags: tuple[str, ...]) -> None:
    assert parse(f"# T\n<!-- metadata:\n{lines}\n-->\nx").tags == tags
    assert parse(f"# T\nx\n<!--Metadata: {lines}-->") == parse(
        f"<!-- metadata: {lines} -->\n# T\nx"
    )


@pytest.mark.parametrize(
    "text",
    [
        "# T\n<!-- metadata:\ntags: [a]\nx",
        "# T\n```\n<!-- metadata: tags: [a] -->\n```",
        "# T\ntext <!-- metadata: tags: [a] -->",
        "# T\n<!-- data: tags: [a] -->",
        "# T\n<!-- metadata: tags: [a] " + "x" * 70_000 + "-->",
    ],
)
def test_invalid_metadata_is_text(text: str) -> None:
    assert parse(text).tags == ()
    assert "tags: [a]" in parse(text).body


def test_rewriting_keeps_the_rest_byte_for_byte() -> None:
    text = (
        "\ufeffIntro\r\n\r\n# Old #\r\n\r\n<!-- metadata:\r\n  owner: ada # hm\r\n"
        "  tags:\r\n    - a\r\n    - b\r\n\r\nstatus: open\r\n-->\r\n\r\nText\r\nmore"
    )
    assert rewritten(text) == text
    assert rewritten(text, title="Old", tags=("a", "b"), body="Intro\n\nText\nmore") == text
    assert rewritten(text, title="New") == text.replace("# Old #", "# New")
    assert rewritten(text, tags=("c",)) == text.replace("tags:\r\n    - a\r\n    - b", "tags: [c]")
    assert rewritten(text, updated="2026") == text.replace(
        "status: open\r\n", "status: open\r\nupdated: 2026\r\n"
    )
    assert rewritten(text, body="One\ntwo") == text.replace("Intro\r\n\r\n", "").replace(
        "Text\r\nmore", "One\r\ntwo"
    )


@pytest.mark.parametrize(
    ("text", "wish", "expected"),
    [
        ("", {"title": "T"}, "# T\n\n"),
        ("x\n", {"title": "T"}, "# T\n\nx\n"),
        ("x\n", {"tags": ()}, "x\n"),
        ("x\n", {"tags": ("a",)}, "<!-- metadata:\ntags: [a]\n-->\n\nx\n"),
        ("# T", {"tags": ("a",)}, "# T\n\n<!-- metadata:\ntags: [a]\n-->\n"),
        ("# T\nx\n", {"tags": ("a",)}, "# T\n\n<!-- metadata:\ntags: [a]\n-->\n\nx\n"),
        ("# T\n\nx\n", {"tags": ("a",)}, "# T\n\n<!-- metadata:\ntags: [a]\n-->\n\nx\n"),
        (
            "# T\r\nx\r\n",
            {"tags": ("a",)},
            "# T\r\n\r\n<!-- metadata:\r\ntags: [a]\r\n-->\r\n\r\nx\r\n",
        ),
        ("# T", {"body": "x"}, "# T\n\nx\n"),
        ("# T\n\nx\n", {"body": ""}, "# T\n"),
        ("# T\nx\n<!-- metadata: -->\n", {"body": "y"}, "# T\ny\n<!-- metadata: -->\n"),
        # What looks like a title or metadata must not become one.
        ("# T\n\nx\n", {"body": "# U"}, "# T\n\n# U\n"),
        ("x\n", {"body": "# U"}, "#\n\n# U\n"),
        ("# T\nx\n<!-- metadata: -->\n", {"body": "```"}, "# T\n\n<!-- metadata: -->\n\n```\n"),
        (
            "# T\nx\n",
            {"body": "<!-- metadata: tags: [a] -->"},
            "# T\n\n<!-- metadata:\n-->\n\n<!-- metadata: tags: [a] -->\n",
        ),
    ],
)  # fmt: skip
def test_parts_are_rewritten(
    text: str, wish: dict[str, str | tuple[str, ...]], expected: str
) -> None:
    assert rewritten(text, **wish) == expected  # type: ignore[arg-type]


def test_invalid_values_are_refused() -> None:
    with pytest.raises(ContentRefused, match="one line"):
        render("a\nb", "", created="now")
    with pytest.raises(ContentRefused, match="empty"):
        render("a", "", created="now", tags=("",))
    with pytest.raises(ContentRefused, match="not text"):
        rewritten("a", mentions=("\ud800",))


# Anything, and often what means something.
PIECES = st.sampled_from(
    [
        "# ", "# T\n", "#\n", "## S\n", "\n", "\r\n", "\r", " ", "    ", "\t", "```", "```\n",
        "~~~\n", "<!--", "-->", "<!-- metadata:\n", "<!-- metadata: ", "<!-- x -->", "tags: [a]\n",
        "tags:\n", "- b\n", "mentions: [", "]", "updated: x\n", "created: 1\n", "unknown: y\n", ",",
        '"', "'", "\\", "#", ": ", "\ufeff", "é", "\u2028", "\x85", "\0", "--", ">", "text", "=",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=3), max_size=14).map("".join)
SOUND = TEXTS.filter(lambda text: text == document_format._readable(text))
TITLES = SOUND.map(lambda text: " ".join(text.replace("\r", "\n").split("\n")))
ITEMS = st.lists(SOUND.filter(bool), max_size=3).map(tuple)
TIMES = st.sampled_from(["2026-01-20T10:00:00Z", "soon", "x # y", '"'])


@settings(max_examples=effort.times(30))
@given(TITLES, SOUND, TIMES, ITEMS, ITEMS)
def test_a_rendered_document_is_parsed_back(
    title: str, body: str, created: str, tags: tuple[str, ...], mentions: tuple[str, ...]
) -> None:
    text = render(title, body, created=created, tags=tags, mentions=mentions)
    expected = Document(title.strip(), tidy(body), created, created, tags, mentions)
    assert parse(text) == expected
    assert text.count("-->") >= 1


@given(TEXTS)
@example('tags: ["')
def test_any_text_is_parsed_and_kept_unchanged(text: str) -> None:
    found = parse(text)
    found.body.encode()
    parse(f"<!-- metadata:\n{text}-->")
    same = rewritten(
        text, title=found.title, body=found.body, updated=found.updated, tags=found.tags
    )
    assert same == text


@settings(max_examples=effort.times(30))
@given(SOUND, TITLES, SOUND, TIMES, ITEMS, ITEMS)
def test_each_part_is_replaced_independently(
    text: str, title: str, body: str, updated: str, tags: tuple[str, ...], mentions: tuple[str, ...]
) -> None:
    old = parse(text)
    assert parse(rewritten(text, title=title)) == old._replace(title=title.strip())
    assert parse(rewritten(text, body=body)) == old._replace(body=tidy(body))
    assert parse(rewritten(text, updated=updated)) == old._replace(updated=updated)
    assert parse(rewritten(text, tags=tags)) == old._replace(tags=tags)
    assert parse(rewritten(text, mentions=mentions)) == old._replace(mentions=mentions)
    every = rewritten(text, title=title, body=body, updated=updated, tags=tags, mentions=mentions)
    assert parse(every) == Document(title.strip(), tidy(body), old.created, updated, tags, mentions)


@pytest.mark.slow
def test_large_and_hostile_texts_are_parsed_quickly() -> None:
    # Each of these would take minutes if reading went back over what it has read.
    size = 3_000
    for text in (
        "<!-- metadata:\n" * size,
        "```\n~~~~\n" * size,
        "````\n```\n" * size,
        "#" * size + "\n",
        "<!-- metadata: tags: [" + "[" * 10_000 + "-->",
        '<!-- metadata: tags: ["' + '\\"' * 10_000 + "-->",
        "<!-- metadata: tags: [" + "','" * 8_000 + "-->",
        "<!-- metadata:" + "a:\n" * 8_000 + "-->",
        " " * size + "x" + "\n " * size,
    ):
        found = parse(text)
        assert parse(rewritten(text, tags=("a",))).tags == ("a",)
        assert parse(rewritten(text, body="x")) == found._replace(body="x")
