"""The positions of headings, fences and comments in a markdown text.

This is not a markdown parser: it finds what begins at the start of a line and could hide or imitate
a title or the metadata comment. A heading begins in the first column. A block that is never closed
extends to the end of the text, as in rendered markdown.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

HEADING = "heading"
FENCE = "fence"
COMMENT = "comment"

# Lines end with any of the three line endings: a negative lookbehind matches the start of one.
_LINE = r"(?<![^\r\n])"
_END = r"(?=[\r\n]|\Z)"
_BEGINNING = re.compile(
    rf"{_LINE}(?:"
    rf"(?P<heading>#{{1,6}})(?:[ \t][^\r\n]*)?{_END}"
    rf"|[ ]{{0,3}}(?P<fence>`{{3,}}(?=[^`\r\n]*{_END})|~{{3,}})[^\r\n]*"
    r"|[ ]{0,3}(?P<comment><!--)"
    r")"
)
_CLOSING = re.compile(rf"{_LINE}[ ]{{0,3}}(?P<marks>`{{3,}}|~{{3,}})[ \t]*{_END}")
_COMMENT_END = "-->"


class Block(NamedTuple):
    kind: str
    start: int
    end: int
    marks: str
    """The `#`s of a heading, or what closes a fence or a comment."""
    closed: bool = True


def blocks(text: str) -> Iterator[Block]:
    """In order; nothing inside a fence or a comment is a block."""
    at = 0
    while begins := _BEGINNING.search(text, at):
        at = begins.end()
        match begins.lastgroup:
            case "fence":
                block = _fence(text, begins)
            case "comment":
                # `<!-->` is a complete comment.
                end = text.find(_COMMENT_END, at - 2)
                at = end + len(_COMMENT_END) if end >= 0 else len(text)
                block = Block(COMMENT, begins.start(), at, _COMMENT_END, end >= 0)
            case _:
                block = Block(HEADING, begins.start(), at, begins["heading"])
        at = block.end
        yield block


def _fence(text: str, begins: re.Match[str]) -> Block:
    marks = begins["fence"]
    for closing in _CLOSING.finditer(text, begins.end()):
        if closing["marks"].startswith(marks):
            return Block(FENCE, begins.start(), closing.end(), marks)
    return Block(FENCE, begins.start(), len(text), marks, closed=False)


def nest_headings(text: str, levels: int) -> str:
    """The text as part of a larger one: its headings are lower, and open blocks are closed."""
    made = []
    done = 0
    for block in blocks(text):
        if block.kind == HEADING:
            made += [text[done : block.start], "#" * min(levels, 6 - len(block.marks))]
            done = block.start
        if not block.closed:
            return "".join([*made, text[done:].rstrip("\r\n"), "\n", block.marks])
    return "".join([*made, text[done:]])
