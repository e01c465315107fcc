"""A narrative document for search: its sections, each with its position in the file."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctx.narrative import document_format
from ctx.narrative.markdown_blocks import COMMENT, HEADING, blocks
from ctx.redaction import redact

LONGEST = 20_000
"""The maximum number of characters of a section."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKS = re.compile(r"\A#{1,6}[ \t]*|[ \t]+#*[ \t]*\Z")


class Section(NamedTuple):
    """The text under one heading, up to the next."""

    title: str
    """The title of the document and the heading, if there are any."""
    text: str
    first_line: int
    """From 1; the line of the heading."""
    last_line: int


def sections(text: str) -> Iterator[Section]:
    """The sections that have text, in order. Comments are left out.

    A file that people write may contain a secret; the search index must not.
    """
    title = document_format.parse(text).title
    all_blocks = list(blocks(text))
    headings = [block for block in all_blocks if block.kind == HEADING]
    hidden = [(block.start, block.end) for block in all_blocks if block.kind == COMMENT]
    starts = [0, *(block.start for block in headings)]
    ends = [*(block.start for block in headings), len(text)]
    names = ["", *(_MARKS.sub("", text[block.start : block.end]) for block in headings)]
    line, at = 1, 0
    for start, end, name in zip(starts, ends, names, strict=True):
        line += len(_LINE_END.findall(text, at, start))
        at = start
        body = _without(text, start + len(_first_line(text, start) if name else ""), end, hidden)
        if body:
            above = title if title != name else ""
            last = line + len(_LINE_END.findall(text[start:end].rstrip()))
            heading = redact(" › ".join(filter(None, (above, name)))).text
            yield Section(heading, redact(body).text[:LONGEST], line, last)


def _first_line(text: str, start: int) -> str:
    end = _LINE_END.search(text, start)
    return text[start : end.end() if end else len(text)]


def _without(text: str, start: int, end: int, hidden: list[tuple[int, int]]) -> str:
    kept = []
    for from_, to in hidden:
        if start <= from_ < end:
            kept.append(text[start:from_])
            start = to
    return "".join([*kept, text[start:end]]).strip()
