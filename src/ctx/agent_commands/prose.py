"""The paragraphs of a message that are not quoted, by Markdown's block structure.

A message is Markdown. Fenced and indented code, block quotes, headings, raw HTML and front matter
are not what the writer says; the paragraphs that are left are. CommonMark decides, and not a
pattern: a block of code may be inside a list item, and a line without `>` may still belong to a
block quote. What is quoted inside a paragraph, `quotations` knows.

A text is read once, from its beginning to its end.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

MARK = "<ctx:"
ESCAPED = r"\\[!-/:-@\[-`{-~]"
"""A backslash and the character that it makes literal."""

_BLANK_LINES = re.compile(r"(?>(?:[ \t]*+(?:\r\n?|\n))*)")
_LINE_END = re.compile(r"\r\n?|\n")
_FENCE = re.compile(r"`{3,}(?=[^`]*\Z)|~{3,}")
_FENCE_END = re.compile(r"(?:`{3,}|~{3,})(?=[ \t]*\Z)")
_ANY_FENCE_END = {
    mark: re.compile(rf"^[ \t>]*+{mark}{{3,}}[ \t]*\r?$", re.MULTILINE) for mark in "`~"
}
_HEADING = re.compile(r"#{1,6}(?=[ \t]|\Z)")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*\Z")
_RULE = re.compile(r"(?>(?:\*[ \t]*+){3,}|(?:-[ \t]*+){3,}|(?:_[ \t]*+){3,})\Z")
_ITEM = re.compile(r"(?:[-+*]|([0-9]{1,9})[.)])(?=[ \t]|\Z)")
_SPACE = re.compile(r"[ \t]*")
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?=[ \t]*[\w\"'-]+[ \t]*[:=])")
_FRONT_MATTER_END = re.compile(r"^(?:---|\+\+\+|\.\.\.)[ \t]*\r?$", re.MULTILINE)
_BLANK_LINE = re.compile(r"^[ \t]*\r?$", re.MULTILINE)

_SECTIONS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_RUN_ON = ("pre", "script", "style", "textarea")
_RAW_NAMES = (
    *(*_RUN_ON, "xmp", "listing", "plaintext", "template", "svg", "math", "title", "iframe"),
    *("noscript", "private"),
)
_RAW = re.compile(rf"<!--|<!\[CDATA\[|<\?|<({'|'.join(_RAW_NAMES)})(?=[\s/>]|\Z)", re.IGNORECASE)
_RAW_TAGS = {name: re.compile(rf"<(/?){name}(?=[\s/>]|\Z)", re.IGNORECASE) for name in _RAW_NAMES}
_CLOSING_TAG = re.compile(r"</([A-Za-z][\w:.-]*)")

# What a line may be a part of, beside a paragraph. A fence is its marks.
_INDENTED = "indented"
_RAW_BLOCK = "raw"

_TAB = 4
_DEEPEST = 20
"""The maximum nesting of containers: each level costs time in every line."""


class _Item(NamedTuple):
    """A list item."""

    width: int
    """The indentation of the lines after the first, in columns."""
    is_empty: bool
    """Whether it is still empty: then a blank line ends it."""


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
        """Skip the mark of a quote or a list item."""
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


class Paragraph:
    """Lines of text that belong together."""

    __slots__ = ("containers", "end", "marks", "start")

    def __init__(self, start: int, end: int, containers: _Containers) -> None:
        self.start, self.end = start, end
        self.containers = containers
        self.marks: set[int] = set()
        """The positions of `<ctx:` at the start of a line that is not indented as code."""

    def add(self, line: _Line) -> None:
        self.end = line.end
        if line.indent < _TAB and line.text.startswith(MARK, line.at, line.end):
            self.marks.add(line.at)


class Prose:
    """Iterates over the paragraphs of a text."""

    def __init__(self, text: str, raw: "RawHtml") -> None:
        self._text = text
        self._next_line = _front_matter_end(text)
        self._containers: _Containers = ()
        self._leaf = ""
        self._raw = raw
        self._paragraph: Paragraph | None = None
        self._ended: Paragraph | None = None
        self.cut: list[tuple[int, int]] = []
        """Where a fence or raw HTML ended with its list item or block quote, up to its own end.

        It is an end for CommonMark. But whoever writes a fence into a list item may forget to
        indent what is in it.
        """
        self._raw_end = 0
        self._fence_ends: dict[str, int] = {}

    def paragraphs(self) -> Iterator[Paragraph]:
        """The unquoted paragraphs. Between two of them, `skip_to` can skip a part."""
        while (paragraph := self._next_paragraph()) is not None:
            if _QUOTE not in paragraph.containers:
                yield paragraph

    def skip_to(self, position: int, paragraph: Paragraph) -> None:
        """Leave out what is before: an element that began in a paragraph and ends behind it.

        The structure is that of its first line, as if the element were a word in it.
        """
        self._ended = None
        self._containers, self._leaf = paragraph.containers, ""
        line_end, self._next_line = _line_end(self._text, position)
        self._paragraph = Paragraph(position, line_end, self._containers)

    def _next_paragraph(self) -> Paragraph | None:
        while self._ended is None and self._next_line < len(self._text):
            start = self._next_line
            end, self._next_line = _line_end(self._text, start)
            line = _Line(self._text, start, end)
            self._read_line(line)
            if line.is_empty and (more := _BLANK_LINES.match(self._text, self._next_line)):
                # Further blank lines have no effect.
                self._next_line = more.end()
        if self._ended is None:
            self._end_paragraph()
        ended, self._ended = self._ended, None
        return ended

    def _read_line(self, line: _Line) -> None:
        containers = self._continued_containers(line)
        kept = len(containers)
        is_inside = kept == len(self._containers)
        if self._leaf and is_inside and self._is_in_leaf(line):
            return
        if self._leaf and not is_inside and not line.is_blank:
            self._cut_leaf(line.start)
        self._leaf = ""
        while not line.is_blank:
            # Unless a new block begins, the line continues the paragraph.
            may_go_on = self._paragraph is not None and len(containers) == kept
            if line.indent >= _TAB:
                if may_go_on:
                    break
                self._enter_block(containers, _INDENTED)
                return
            new = self._new_container(line, containers, in_paragraph=may_go_on and is_inside)
            if new is None:
                if self._is_block(line, containers, in_paragraph=may_go_on and is_inside):
                    return
                break
            containers = (*containers, new)
        if line.is_blank:
            self._enter_block(containers)
        else:
            self._add_text(line, containers, may_go_on=len(containers) == kept)

    def _cut_leaf(self, start: int) -> None:
        mark = self._leaf[0]
        if self._leaf == _RAW_BLOCK:
            self.cut.append((start, self._raw_end))
        elif mark in _ANY_FENCE_END:
            if self._fence_ends.get(mark, -1) < start:
                end = _ANY_FENCE_END[mark].search(self._text, start)
                self._fence_ends[mark] = end.end() if end else len(self._text) + 1
            if self._fence_ends[mark] <= len(self._text):
                self.cut.append((start, self._fence_ends[mark]))

    def _continued_containers(self, line: _Line) -> _Containers:
        """The open containers that this line is in, by its marks and indentation."""
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
        """Whether a line belongs to the open code or raw HTML, including its last line."""
        if self._leaf == _INDENTED:
            return line.is_blank or line.indent >= _TAB
        if self._leaf == _RAW_BLOCK:
            return line.start < self._raw_end
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
            # A line of `-` underlines it, and `1986. What a year` continues it.
            is_empty = not line.text[mark.end() : line.end].strip(" \t")
            if is_empty or mark[1] not in (None, "1") or line.begins(_UNDERLINE):
                return None
        offset = line.indent
        line.pass_mark(len(mark[0]))
        padding = line.indent if 1 <= line.indent <= _TAB and not line.is_blank else 1
        line.taken += padding
        return _Item(offset + len(mark[0]) + padding, line.is_blank)

    def _is_block(self, line: _Line, containers: _Containers, *, in_paragraph: bool) -> bool:
        """Whether a line is another block or an underline; if so, it is processed."""
        if fence := line.begins(_FENCE):
            self._enter_block(containers, fence[0])
        elif (raw_end := self._raw.block_end(line.at)) is not None:
            self._enter_block(containers, _RAW_BLOCK)
            # The rest of its last line is raw too, as CommonMark has it.
            self._raw_end = raw_end
        elif (
            line.begins(_HEADING)
            or (in_paragraph and line.begins(_UNDERLINE))
            or line.begins(_RULE)
        ):
            self._enter_block(containers)
        else:
            return False
        return True

    def _add_text(self, line: _Line, containers: _Containers, *, may_go_on: bool) -> None:
        if self._paragraph is None or not may_go_on:
            self._enter_block(containers)
            self._paragraph = Paragraph(line.at, line.end, containers)
        # Otherwise the containers stay open, even if this line does not repeat their marks.
        self._paragraph.add(line)

    def _enter_block(self, containers: _Containers, leaf: str = "") -> None:
        self._end_paragraph()
        self._containers, self._leaf = containers, leaf

    def _end_paragraph(self) -> None:
        if self._paragraph is not None:
            self._ended = self._paragraph
        self._paragraph = None


class RawHtml:
    """Finds the ends of parts that are not Markdown: comments, CDATA, `<pre>`, …"""

    def __init__(self, text: str) -> None:
        self._text = text
        self._last_closing = {tag[1].lower(): tag.start() for tag in _CLOSING_TAG.finditer(text)}
        self._unclosed: set[str] = set()

    def last_closing(self, name: str) -> int:
        """The start of the last closing tag of a name; -1 if there is none."""
        return self._last_closing.get(name, -1)

    def section_end(self, opening: str, start: int) -> int | None:
        """The end of a comment or a similar section; None if it is not closed."""
        if opening in self._unclosed:
            return None
        closing = _SECTIONS[opening]
        found = self._text.find(closing, start + len(opening))
        if found < 0:
            # Nothing later is closed either.
            self._unclosed.add(opening)
            return None
        return found + len(closing)

    def block_end(self, start: int) -> int | None:
        """The end of the raw block that starts a line; None if there is none."""
        found = _RAW.match(self._text, start)
        if found is None:
            return None
        if not found[1]:
            end = self.section_end(found[0], start)
            return len(self._text) if end is None else end
        name = found[1].lower()
        last = self.last_closing(name)
        if last < start:
            return len(self._text) if name in _RUN_ON else None
        depth = 0
        for tag in _RAW_TAGS[name].finditer(self._text, start):
            depth += -1 if tag[1] else 1
            if not depth:
                return tag.end()
        return last


def _front_matter_end(text: str) -> int:
    """The end of front matter; 0 if there is none. If unclosed, it ends at the first blank line."""
    start = _FRONT_MATTER.match(text)
    if start is None:
        return 0
    end = _FRONT_MATTER_END.search(text, start.end()) or _BLANK_LINE.search(text, start.end())
    return end.end() if end else len(text)


def _pass_quote(line: _Line) -> None:
    line.pass_mark(1)
    if line.indent:
        line.taken += 1


def _line_end(text: str, start: int) -> tuple[int, int]:
    """The end of the line at a position, and the start of the next line."""
    found = _LINE_END.search(text, start)
    return found.span() if found else (len(text), len(text) + 1)
