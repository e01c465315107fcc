"""Where a message speaks, and where it only shows something.

A message is markdown. What stands in a fence, in inline code, in an indented block or in a comment
is shown, and what stands behind a `>` is somebody else's; the rest is what the writer says. That
decides whether a `<ctx:` is a command, so CommonMark decides, and not a pattern: a block of code
may be inside a list item, and a code span may go on in the next line.

Left out of CommonMark is what makes no code: links, emphasis, HTML other than comments. A text is
read once, from its beginning to its end, however hard it is to read.
"""

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

MARK = "<ctx:"
ESCAPED = r"\\[!-/:-@\[-`{-~]"
"""A backslash and what it takes the meaning from."""

_BLANK_LINES = re.compile(r"(?>(?:[ \t]*+(?:\r\n?|\n))*)")
_LINE_END = re.compile(r"\r\n?|\n")
_FENCE = re.compile(r"`{3,}(?=[^`]*\Z)|~{3,}")
_FENCE_END = re.compile(r"(?:`{3,}|~{3,})(?=[ \t]*\Z)")
_HEADING = re.compile(r"#{1,6}(?=[ \t]|\Z)")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*\Z")
_RULE = re.compile(r"(?>(?:\*[ \t]*+){3,}|(?:-[ \t]*+){3,}|(?:_[ \t]*+){3,})\Z")
_ITEM = re.compile(r"(?:[-+*]|([0-9]{1,9})[.)])(?=[ \t]|\Z)")
_SPACE = re.compile(r"[ \t]*")
_INLINE = re.compile(rf"{ESCAPED}|`+|<!--|{MARK}")
_SHORT_COMMENT = re.compile(r"<!---?>")

# What a line may be a part of, beside a paragraph. A fence is its marks.
_INDENTED = "indented"
_COMMENT = "<!--"

_TAB = 4
_DEEPEST = 20
"""Containers inside each other. Nobody means more, and each of them costs time in every line."""


class _Item(NamedTuple):
    """A list item."""

    width: int
    """By how many columns the lines below the first are indented."""
    is_empty: bool
    """Whether there is nothing in it yet: a blank line ends it then."""


_QUOTE = _Item(-1, False)

_Containers = tuple[_Item, ...]


class _Line:
    """A line that is read from the left, in columns: a tab reaches to the next fourth one."""

    __slots__ = ("at", "column", "end", "start", "taken", "text")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.start, self.end = text, start, end
        self.at, self.column, self.taken = start, 0, 0
        self._pass_space()

    @property
    def indent(self) -> int:
        return self.column - self.taken

    @property
    def is_blank(self) -> bool:
        """Whether nothing is left of it."""
        return self.at == self.end

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing in it."""
        return self.is_blank and not self.taken

    def begins(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.match(self.text, self.at, self.end)

    def pass_mark(self, length: int) -> None:
        """Go behind the mark of a quote or an item, to what it holds."""
        self.at += length
        self.column += length
        self.taken = self.column
        self._pass_space()

    def _pass_space(self) -> None:
        found = _SPACE.match(self.text, self.at, self.end)
        space = found[0] if found else ""
        self.at += len(space)
        if "\t" not in space:
            self.column += len(space)
            return
        for character in space:
            self.column += _TAB - self.column % _TAB if character == "\t" else 1


class _Words:
    """Lines whose code spans are looked for together: a paragraph, or a heading."""

    __slots__ = ("containers", "end", "quoted", "start")

    def __init__(self, start: int, end: int, containers: _Containers) -> None:
        self.start, self.end = start, end
        self.containers = containers
        self.quoted: list[tuple[int, int]] = []
        """Those of the lines that have a `>`. One without, which goes on with a quotation for
        CommonMark, is the writer's own: nobody quotes without the mark."""

    def add(self, line: _Line, *, is_quoted: bool) -> None:
        self.end = line.end
        if is_quoted:
            self.quoted.append((line.start, line.end))

    def quotes(self, position: int) -> bool:
        before = bisect_right(self.quoted, (position, self.end)) - 1
        return before >= 0 and position < self.quoted[before][1]


class Backticks:
    """Where runs of backticks stand in a text, by their length."""

    def __init__(self, text: str) -> None:
        self._starts: dict[int, list[int]] = {}
        for run in re.finditer("`+", text):
            self._starts.setdefault(len(run[0]), []).append(run.start())

    def closing(self, length: int, start: int, end: int) -> int | None:
        """The end of the code span whose marks end at `start`; None if it has no end."""
        starts = self._starts.get(length, [])
        index = bisect_left(starts, start)
        if index == len(starts) or starts[index] + length > end:
            return None
        return starts[index] + length


class Prose:
    """The places in a text where the writer says `<ctx:`, one after the other."""

    def __init__(self, text: str, backticks: Backticks) -> None:
        self._text = text
        self._backticks = backticks
        self._last = text.rfind(MARK)
        # The structure: what the next line may be a part of.
        self._next_line = 0
        self._containers: _Containers = ()
        self._leaf = ""
        self._paragraph: _Words | None = None
        # The words: what has been read of the structure and not yet been looked at.
        self._ready: list[_Words] = []
        self._at = 0
        self._no_comment_ends_before = 0

    def next(self) -> int | None:
        while self._ready or self._read_block():
            found = self._said(self._ready[0])
            if found is not None:
                return found
            self._ready.pop(0)
        return None

    def go_on_from(self, position: int) -> None:
        """Leave out what is before: a command that was read, whatever stands in it.

        The structure is that of its first line, as if the command were a word in it.
        """
        words = self._ready[0]
        self._at = position
        if position <= words.end:
            return
        self._ready = []
        self._containers, self._leaf = words.containers, ""
        line_end, self._next_line = _line_end(self._text, position)
        self._paragraph = _Words(position, line_end, self._containers)

    def _read_block(self) -> bool:
        """Read on until there are words to look at. False: there are no more."""
        while not self._ready and (
            self._next_line <= self._last or (self._paragraph and self._next_line < len(self._text))
        ):
            start = self._next_line
            end, self._next_line = _line_end(self._text, start)
            line = _Line(self._text, start, end)
            self._read_line(line)
            if line.is_empty and (more := _BLANK_LINES.match(self._text, self._next_line)):
                # What one blank line does, the next ones need not do again.
                self._next_line = more.end()
        if not self._ready:
            self._end_paragraph()
        return bool(self._ready)

    def _read_line(self, line: _Line) -> None:
        containers = self._going_on(line)
        kept = len(containers)
        is_inside = kept == len(self._containers)
        if self._leaf and is_inside and self._is_in_leaf(line):
            return
        self._leaf = ""
        while not line.is_blank:
            # As long as nothing new begins, the line may be one more of the paragraph.
            may_go_on = self._paragraph is not None and len(containers) == kept
            if line.indent >= _TAB:
                if may_go_on:
                    break
                self._set(containers, _INDENTED)
                return
            new = self._new_container(line, containers, in_paragraph=may_go_on and is_inside)
            if new is None:
                if self._is_block(line, containers, in_paragraph=may_go_on and is_inside):
                    return
                break
            containers = (*containers, new)
        if line.is_blank:
            self._set(containers)
        else:
            self._add_text(line, containers, may_go_on=len(containers) == kept)

    def _going_on(self, line: _Line) -> _Containers:
        """Those of the open containers that this line is in, by its marks and its indentation."""
        found: list[_Item] = []
        for container in self._containers:
            if container is _QUOTE:
                if line.indent >= _TAB or line.is_blank or line.text[line.at] != ">":
                    break
                _pass_quote(line)
            elif line.is_blank:
                if container.is_empty:
                    break
            elif line.indent >= container.width:
                line.taken += container.width
            else:
                break
            found.append(container)
        if not line.is_blank:
            found = [item._replace(is_empty=False) if item.is_empty else item for item in found]
        return tuple(found)

    def _is_in_leaf(self, line: _Line) -> bool:
        """Whether a line belongs to the code or the comment that is open, also as its end."""
        if self._leaf == _INDENTED:
            return line.is_blank or line.indent >= _TAB
        if self._leaf == _COMMENT:
            self._read_comment(line, line.start)
            return True
        end = line.begins(_FENCE_END) if line.indent < _TAB else None
        if end and end[0].startswith(self._leaf):
            self._leaf = ""
        return True

    def _new_container(
        self, line: _Line, containers: _Containers, *, in_paragraph: bool
    ) -> _Item | None:
        if len(containers) >= _DEEPEST:
            return None
        if line.text[line.at] == ">":
            _pass_quote(line)
            return _QUOTE
        if line.begins(_RULE) or not (mark := line.begins(_ITEM)):
            return None
        if in_paragraph:
            # A line of `-` underlines it, and `1986. What a year` goes on with it.
            is_empty = not line.text[mark.end() : line.end].strip(" \t")
            if is_empty or mark[1] not in (None, "1") or line.begins(_UNDERLINE):
                return None
        offset = line.indent
        line.pass_mark(len(mark[0]))
        padding = line.indent if 1 <= line.indent <= _TAB and not line.is_blank else 1
        line.taken += padding
        return _Item(offset + len(mark[0]) + padding, line.is_blank)

    def _is_block(self, line: _Line, containers: _Containers, *, in_paragraph: bool) -> bool:
        """Whether a line is no part of a paragraph, or its underline; it is taken note of then."""
        if line.begins(_HEADING):
            self._set(containers)
            if _QUOTE not in containers:
                self._ready.append(_Words(line.at, line.end, containers))
        elif fence := line.begins(_FENCE):
            self._set(containers, fence[0])
        elif line.text.startswith(_COMMENT, line.at, line.end):
            self._set(containers, _COMMENT)
            self._read_comment(line, line.at)
        elif (in_paragraph and line.begins(_UNDERLINE)) or line.begins(_RULE):
            self._set(containers)
        else:
            return False
        return True

    def _read_comment(self, line: _Line, start: int) -> None:
        """A line in a comment. What stands behind its end is said, in this line alone."""
        end = line.text.find("-->", start, line.end)
        if end >= 0:
            self._leaf = ""
            if _QUOTE not in self._containers:
                self._ready.append(_Words(end + 3, line.end, self._containers))

    def _add_text(self, line: _Line, containers: _Containers, *, may_go_on: bool) -> None:
        if self._paragraph is None or not may_go_on:
            self._set(containers)
            self._paragraph = _Words(line.at, line.end, containers)
        # Otherwise the containers stay, also those whose marks this line does not repeat.
        self._paragraph.add(line, is_quoted=_QUOTE in containers)

    def _set(self, containers: _Containers, leaf: str = "") -> None:
        self._end_paragraph()
        self._containers, self._leaf = containers, leaf

    def _end_paragraph(self) -> None:
        if self._paragraph:
            self._ready.append(self._paragraph)
        self._paragraph = None

    def _said(self, words: _Words) -> int | None:
        """The next `<ctx:` in words that is neither code nor commented out nor quoted."""
        text, end = self._text, words.end
        self._at = max(self._at, words.start)
        while token := _INLINE.search(text, self._at, end):
            start, self._at = token.span()
            if token[0] == MARK:
                if not words.quotes(start):
                    return start
            elif token[0][0] == "`":
                span = self._backticks.closing(len(token[0]), self._at, end)
                self._at = span or self._at
            elif token[0] == _COMMENT:
                self._at = self._end_of_comment(start, end)
        return None

    def _end_of_comment(self, start: int, end: int) -> int:
        """Where a comment among words ends. One that does not end is no comment."""
        if short := _SHORT_COMMENT.match(self._text, start, end):
            return short.end()
        begin = start + len(_COMMENT)
        if begin < self._no_comment_ends_before:
            return begin
        found = self._text.find("-->", begin, end)
        if found < 0:
            self._no_comment_ends_before = end
            return begin
        return found + 3


def _pass_quote(line: _Line) -> None:
    line.pass_mark(1)
    if line.indent:
        line.taken += 1


def _line_end(text: str, start: int) -> tuple[int, int]:
    """Where the line at a place ends, and where the next one begins."""
    found = _LINE_END.search(text, start)
    return found.span() if found else (len(text), len(text) + 1)
