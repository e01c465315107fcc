"""Putting an element into a JSON text and taking one out again, with nothing else moved.

Comments stay beside what they speak of, commas are where they were, and what is put in looks as
the text around it does. What was put in last can be taken out to the byte, by the text alone: for
that, brackets that held nothing get an empty line above their first element.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ctx.agents.claude_code import jsonc
from ctx.agents.claude_code.jsonc import Element, Value

_UNIT = "  "
_LINE_END = re.compile(r"\r\n|\r|\n")
_REST_OF_LINE_IS_EMPTY = re.compile(r"[ \t]*(?:[\r\n]|\Z)")


class Style(NamedTuple):
    """The formatting of a file, for what is added to it."""

    line_end: str
    unit: str

    def lines(self, value: Any, indent: str) -> str:
        """A value, one thing a line, as the client itself writes its settings."""
        shown = json.dumps(value, indent=self.unit, ensure_ascii=False)
        return shown.replace("\n", self.line_end + indent)

    def member(self, key: str, value: Any) -> Callable[[str], str]:
        return lambda indent: f"{json.dumps(key)}: {self.lines(value, indent)}"


def style_of(text: str, root: Value | None) -> Style:
    """Line ends as the first one; indentation as the first member of the document has it."""
    unit = ""
    if root and root.elements:
        unit = _own_indent(text, root.elements[0].start) or ""
        unit = unit.removeprefix(indent_at(text, root.start))
    return Style(line_end_of(text), unit or _UNIT)


def line_end_of(text: str) -> str:
    return match[0] if (match := _LINE_END.search(text)) else "\n"


def indent_at(text: str, position: int) -> str:
    """The white space with which the line of a position begins."""
    line = max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1
    before = text[line:position]
    return before[: len(before) - len(before.lstrip(" \t"))]


def _own_indent(text: str, position: int) -> str | None:
    """The same, if nothing else stands before the position on its line."""
    indent = indent_at(text, position)
    return indent if text.endswith(("\n", "\r"), 0, position - len(indent)) else None


def inserted(text: str, holder: Value, style: Style, shown: Callable[[str], str]) -> str:
    """The text with one more element in an object or array, behind all others."""
    outer = indent_at(text, holder.start)
    if not holder.elements:
        indent = outer + style.unit
        piece = style.line_end + indent + shown(indent)
        if holder.space == holder.start + 1:
            closing = holder.end - 1
            whole = style.line_end + piece + style.line_end + outer
            return text[:closing] + whole + text[closing:]
        # Brackets with a comment in them are known to be theirs by that.
        return text[: holder.space] + piece + text[holder.space :]
    last = holder.elements[-1]
    own = _own_indent(text, last.start)
    indent = outer + style.unit if own is None else own
    piece = style.line_end + indent + shown(indent)
    # A comment after the last element belongs to it, and stays beside it.
    if last.comma is None:
        point = jsonc.end_of_comments(text, last.end)
        return f"{text[: last.end]},{text[last.end : point]}{piece}{text[point:]}"
    point = jsonc.end_of_comments(text, last.comma + 1)
    return f"{text[:point]}{piece},{text[point:]}"


def taken_out(text: str, holders: list[tuple[Value, Element]]) -> str | None:
    """The text without the first element whose holder stays. None: the last holder goes too."""
    line_end = line_end_of(text)
    for holder, element in holders:
        tail = text[element.end : holder.end - 1]
        # Comments show that somebody else has edited it.
        is_alone = element.space == holder.start + 1 and not tail.strip(" \t\r\n")
        if len(holder.elements) > 1 or not is_alone:
            return _cut(text, holder, element)
        above = text[element.space : element.start].rstrip(" \t")
        if above.endswith(line_end * 2):
            theirs = above.removesuffix(line_end * 2)
            return text[: element.space] + theirs + text[holder.end - 1 :]
    return None


def _cut(text: str, holder: Value, element: Element) -> str:
    """The text without an element and its comma, or, if it has none, the one before it."""
    position = holder.elements.index(element)
    before, behind = text[: element.space], text[element.end :]
    following = holder.elements[position + 1 : position + 2]
    if not position and following and following[0].space == (element.comma or 0) + 1:
        # The next one takes its place: the empty line above the first means something.
        return text[: element.start] + text[following[0].start :]
    if element.comma is not None:
        behind = text[element.end : element.comma] + text[element.comma + 1 :]
    elif position:
        comma = holder.elements[position - 1].comma
        assert comma is not None
        before = text[:comma] + text[comma + 1 : element.space]
    if element.below_comment and not _REST_OF_LINE_IS_EMPTY.match(behind):
        before += text[element.space : element.start]
    return before + behind
