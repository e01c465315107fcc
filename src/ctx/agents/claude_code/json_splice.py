"""Inserts an element into a JSON text, and removes it again, without changing anything else.

Comments and commas stay in place, and the new element is formatted like the text around it.
Removing the element that was inserted last restores the text byte for byte, without any other
information. For that, an element in an object or array that was empty gets a blank line above it.
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
    """The formatting of a file, for text that is added to it."""

    line_end: str
    unit: str

    def lines(self, value: Any, indent: str) -> str:
        """A value in several lines, formatted as the client formats its settings."""
        shown = json.dumps(value, indent=self.unit, ensure_ascii=False)
        return shown.replace("\n", self.line_end + indent)

    def member(self, key: str, value: Any) -> Callable[[str], str]:
        return lambda indent: f"{json.dumps(key)}: {self.lines(value, indent)}"


def style_of(text: str, root: Value | None) -> Style:
    """The line ends are those of the first line; the indentation is that of the first member."""
    unit = ""
    if root and root.elements:
        unit = _own_indent(text, root.elements[0].start) or ""
        unit = unit.removeprefix(indent_at(text, root.start))
    return Style(line_end_of(text), unit or _UNIT)


def line_end_of(text: str) -> str:
    return match[0] if (match := _LINE_END.search(text)) else "\n"


def indent_at(text: str, position: int) -> str:
    """The indentation of the line that contains a position."""
    line = max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1
    before = text[line:position]
    return before[: len(before) - len(before.lstrip(" \t"))]


def _own_indent(text: str, position: int) -> str | None:
    """The indentation of a line if the position is the first thing on it."""
    indent = indent_at(text, position)
    return indent if text.endswith(("\n", "\r"), 0, position - len(indent)) else None


def inserted(text: str, holder: Value, style: Style, shown: Callable[[str], str]) -> str:
    """The text with another element at the end of an object or array."""
    outer = indent_at(text, holder.start)
    if not holder.elements:
        indent = outer + style.unit
        piece = style.line_end + indent + shown(indent)
        if holder.space == holder.start + 1:
            closing = holder.end - 1
            whole = style.line_end + piece + style.line_end + outer
            return text[:closing] + whole + text[closing:]
        # A comment shows that the brackets existed before.
        return text[: holder.space] + piece + text[holder.space :]
    last = holder.elements[-1]
    own = _own_indent(text, last.start)
    indent = outer + style.unit if own is None else own
    piece = style.line_end + indent + shown(indent)
    # A comment after the last element belongs to it, and stays with it.
    if last.comma is None:
        point = jsonc.end_of_comments(text, last.end)
        return f"{text[: last.end]},{text[last.end : point]}{piece}{text[point:]}"
    point = jsonc.end_of_comments(text, last.comma + 1)
    return f"{text[:point]}{piece},{text[point:]}"


def taken_out(text: str, holders: list[tuple[Value, Element]]) -> str | None:
    """The text without the first element whose container stays. None: no container stays."""
    line_end = line_end_of(text)
    for holder, element in holders:
        tail = text[element.end : holder.end - 1]
        # Comments show that somebody else has edited the container.
        is_alone = element.space == holder.start + 1 and not tail.strip(" \t\r\n")
        if len(holder.elements) > 1 or not is_alone:
            return _cut(text, holder, element)
        above = text[element.space : element.start].rstrip(" \t")
        if above.endswith(line_end * 2):
            theirs = above.removesuffix(line_end * 2)
            return text[: element.space] + theirs + text[holder.end - 1 :]
    return None


def _cut(text: str, holder: Value, element: Element) -> str:
    """The text without an element and its comma; the last element is removed with the comma before
    it."""
    position = holder.elements.index(element)
    before, behind = text[: element.space], text[element.end :]
    following = holder.elements[position + 1 : position + 2]
    if not position and following and following[0].space == (element.comma or 0) + 1:
        # The next element takes its place, below the blank line that marks our brackets.
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
