"""Parses JSON, also with comments and trailing commas, and edits it without moving anything else.

The standard library parses JSON and drops the text. To change a file without touching the rest, it
must know where each value begins and ends, where the commas are, and where the white space before a
value begins: after the last comment, so that a comment is never cut.

An inserted element looks like the text around it. Comments stay beside the element that they are
about, and commas stay where they were. What was inserted last can be removed to the byte, by the
text alone: for that, brackets that were empty get an empty line above their first element.
"""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from ctx.errors import SettingsUnreadable

BYTE_ORDER_MARK = "\ufeff"

_DEEPEST = 100

_SPACE = re.compile(r"[ \t\r\n]*")
_BLANKS = re.compile(r"[ \t]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_UNIT = "  "
_LINE_END = re.compile(r"\r\n|\r|\n")
_REST_OF_LINE_IS_EMPTY = re.compile(r"[ \t]*(?:[\r\n]|\Z)")


class Value(NamedTuple):
    """A value and its place in the text: `text[start:end]`."""

    start: int
    end: int
    plain: Any
    """The value in Python."""
    elements: "tuple[Element, ...]" = ()
    """The content of an object or an array, in the order of the text."""
    space: int = 0
    """Where the white space before the closing bracket begins."""


class Element(NamedTuple):
    """A member of an object, or an item of an array."""

    key: str
    """Empty in an array."""
    start: int
    """The position of the key, or of the item."""
    value: Value
    space: int
    """Where the white space before it begins."""
    below_comment: bool
    """Whether a `//` comment precedes it on the same line: text that moves there would become part
    of it."""
    comma: int | None
    """The position of the comma after it."""

    @property
    def end(self) -> int:
        return self.value.end


class JsoncDocument(NamedTuple):
    root: Value
    not_json: int | None
    """The position of the first comment or trailing comma, neither of which plain JSON allows."""


# Cached, because callers parse the same text several times, and it may be long.
@lru_cache(maxsize=2)
def parse(text: str) -> JsoncDocument:
    """Parse a document. SettingsUnreadable names the line and column of an error."""
    reader = _Reader(text)
    root = reader.value(0)
    if reader.skip() != len(text):
        raise syntax_error(text, reader.position, "nothing should follow here")
    return JsoncDocument(root, min(reader.not_json, default=None))


def member_at(text: str, start: int) -> Value:
    """Parse the value of a member of the root again, without the rest of the text."""
    reader = _Reader(text)
    reader.position = start
    return reader.value(1)


def is_blank(text: str) -> bool:
    """Whether the text contains only white space and comments."""
    return _Reader(text).skip() == len(text)


def last(holder: Value, key: str) -> Element | None:
    """The member with this key. If there are several, the last one counts."""
    members = [element for element in holder.elements if element.key == key]
    return members[-1] if members else None


def end_of_comments(text: str, position: int) -> int:
    """The end of the comments on the line of a position; the position itself if there are none."""
    while comment := _COMMENT.match(text, _end(_BLANKS, text, position)):
        position = comment.end()
    return position


def place(text: str, position: int) -> str:
    """`line 3, column 5`."""
    before = re.split(r"\r\n|\r|\n", text[:position].removeprefix(BYTE_ORDER_MARK))
    return f"line {len(before)}, column {len(before[-1]) + 1}"


def syntax_error(text: str, position: int, what: str) -> SettingsUnreadable:
    return SettingsUnreadable(f"{place(text, position)}: {what}.")


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
        self.not_json: list[int] = []
        # The position of the white space that was skipped last.
        self.space = self.position
        self.below_comment = False

    def skip(self) -> int:
        """Skip white space and comments."""
        self.space, self.below_comment = self.position, False
        while True:
            self.position = _end(_SPACE, self.text, self.position)
            comment = _COMMENT.match(self.text, self.position)
            if comment is None:
                return self.position
            self.not_json.append(self.position)
            self.space = self.position = comment.end()
            self.below_comment = comment[0].startswith("//")

    def value(self, depth: int) -> Value:
        start = self.skip()
        match self.text[start : start + 1]:
            case "{" | "[" if depth == _DEEPEST:
                raise syntax_error(self.text, start, "this is nested too deeply")
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"':
                return self._read(_STRING, "this text has no end, or a character that needs a \\")
            case "":
                raise syntax_error(self.text, start, "something is missing at the end")
            case _:
                return self._read(_PLAIN, "this is not a JSON value")

    def _object(self, depth: int) -> Value:
        start = self.position
        elements: list[Element] = []
        fields: dict[str, Any] = {}
        while self._has_next_element("}", elements):
            space, below_comment = self.space, self.below_comment
            if self.text[self.position] != '"':
                raise syntax_error(self.text, self.position, "expected a name in quotes, or }")
            key = self._read(_STRING, "this name has no end, or a character that needs a \\")
            if self.text[self.skip() : self.position + 1] != ":":
                raise syntax_error(self.text, self.position, "expected a colon")
            self.position += 1
            value = self.value(depth + 1)
            fields[key.plain] = value.plain
            comma = self._comma("}")
            elements.append(Element(key.plain, key.start, value, space, below_comment, comma))
        return Value(start, self.position, fields, tuple(elements), self.space)

    def _array(self, depth: int) -> Value:
        start = self.position
        elements: list[Element] = []
        while self._has_next_element("]", elements):
            space, below_comment = self.space, self.below_comment
            value = self.value(depth + 1)
            comma = self._comma("]")
            elements.append(Element("", value.start, value, space, below_comment, comma))
        values = [element.value.plain for element in elements]
        return Value(start, self.position, values, tuple(elements), self.space)

    def _has_next_element(self, closing: str, elements: list[Element]) -> bool:
        """Whether another element follows. If not, the closing bracket is consumed."""
        if not elements:
            self.position += 1
        if self.text[self.skip() : self.position + 1] != closing:
            if self.position == len(self.text):
                raise syntax_error(self.text, self.position, f"a {closing} is missing at the end")
            return True
        if elements and elements[-1].comma is not None:
            self.not_json.append(elements[-1].comma)
        self.position += 1
        return False

    def _comma(self, closing: str) -> int | None:
        """The position of the comma after an element; None after the last element."""
        behind = self.position
        match self.text[self.skip() : self.position + 1]:
            case ",":
                self.position += 1
                return self.position - 1
            case other if other == closing:
                # The comments before it are skipped again when the bracket is read.
                self.position = behind
                return None
            case "":
                raise syntax_error(self.text, self.position, f"a {closing} is missing at the end")
            case _:
                raise syntax_error(
                    self.text, self.position, f"a comma, or {closing}, is expected here"
                )

    def _read(self, form: re.Pattern[str], problem: str) -> Value:
        match = form.match(self.text, self.position)
        try:
            if match is None:
                raise ValueError
            plain = json.loads(match[0])
        except ValueError:
            raise syntax_error(self.text, self.position, problem) from None
        self.position = match.end()
        return Value(match.start(), match.end(), plain)


def _end(form: re.Pattern[str], text: str, position: int) -> int:
    match = form.match(text, position)
    assert match is not None
    return match.end()


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
    return found[0] if (found := _LINE_END.search(text)) else "\n"


def indent_at(text: str, position: int) -> str:
    """The white space with which the line of a position begins."""
    line = max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1
    before = text[line:position]
    return before[: len(before) - len(before.lstrip(" \t"))]


def _own_indent(text: str, position: int) -> str | None:
    """The same, if nothing else stands before the position on its line."""
    indent = indent_at(text, position)
    return indent if text.endswith(("\n", "\r"), 0, position - len(indent)) else None


def insert_element(text: str, holder: Value, style: Style, shown: Callable[[str], str]) -> str:
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
        point = end_of_comments(text, last.end)
        return f"{text[: last.end]},{text[last.end : point]}{piece}{text[point:]}"
    point = end_of_comments(text, last.comma + 1)
    return f"{text[:point]}{piece},{text[point:]}"


def remove_element(text: str, holders: list[tuple[Value, Element]]) -> str | None:
    """The text without the first element whose holder stays. None: the last holder goes too."""
    line_end = line_end_of(text)
    for holder, element in holders:
        tail = text[element.end : holder.end - 1]
        # Comments show that somebody else has edited it.
        is_alone = element.space == holder.start + 1 and not tail.strip(" \t\r\n")
        if len(holder.elements) > 1 or not is_alone:
            return _cut_element(text, holder, element)
        above = text[element.space : element.start].rstrip(" \t")
        if above.endswith(line_end * 2):
            theirs = above.removesuffix(line_end * 2)
            return text[: element.space] + theirs + text[holder.end - 1 :]
    return None


def without_root(text: str, root: Value) -> str | None:
    """What remains if the whole object was ours: nothing, or the blank file that was there
    before."""
    before, behind = text[: root.start], text[root.end :]
    if behind.strip():
        return f"{before}{text[root.start]}{text[root.end - 1]}{behind}"
    if before in ("", BYTE_ORDER_MARK):
        return None
    return before.removesuffix(line_end_of(text))


def _cut_element(text: str, holder: Value, element: Element) -> str:
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
