"""A narrative document as search sees it: its sections, each with its place in the file."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctx.narrative import document_format
from ctx.narrative.markdown_blocks import COMMENT, HEADING, blocks
from ctx.redaction import redact

LONGEST = 20_000
"""Characters of a section that are kept. Nobody reads more of one at once."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKS = re.compile(r"\A#{1,6}[ \t]*|[ \t]+#*[ \t]*\Z")


class Section(NamedTuple):
    """What stands under one heading, as far as the next."""

    title: str
    """The title of the document and the heading, as far as there are any."""
    text: str
    first_line: int
    """From 1; the line of the heading."""
    last_line: int


def sections(text: str) -> Iterator[Section]:
    """The sections that say something, in order. Comments are nobody's text.

    What people write into a file of their own may hold a secret; what search keeps of it may not.
    """
    title = document_format.parse(text).title
    found = list(blocks(text))
    headings = [block for block in found if block.kind == HEADING]
    hidden = [(block.start, block.end) for block in found if block.kind == COMMENT]
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
