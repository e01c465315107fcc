"""Sections of a document."""

from hypothesis import given
from hypothesis import strategies as st

from ctx.narrative.sections import LONGEST, Section, sections

DOCUMENT = """\
Before all of it.

# The shop

<!-- metadata:
created: 2026-01-20T10:00:00Z
-->

What it sells.

## Retries ##

Three times.
<!-- nobody's
text -->
Then it gives up.

```
# no heading
```

## Empty

### Last
at once"""


def test_a_document_is_split_into_sections() -> None:
    assert list(sections(DOCUMENT)) == [
        Section("The shop", "Before all of it.", 1, 1),
        Section("The shop", "What it sells.", 3, 9),
        Section(
            "The shop › Retries",
            "Three times.\n\nThen it gives up.\n\n```\n# no heading\n```",
            11,
            20,
        ),
        Section("The shop › Last", "at once", 24, 25),
    ]
    assert list(sections("")) == []
    assert list(sections("# Only a title")) == []
    (long,) = sections("x" * 50_000)
    assert len(long.text) == LONGEST


@given(st.text(alphabet="# `~a\n\r<!->", max_size=200))
def test_the_lines_of_sections_are_in_order_and_inside_the_text(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    last = 0
    for section in sections(text):
        assert last < section.first_line <= section.last_line <= len(lines)
        last = section.last_line
