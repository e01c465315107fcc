"""The paragraphs of a message that are not quoted, by Markdown's block structure.

A message is Markdown. Fenced and indented code, block quotes, headings, raw HTML and front matter
are not what the writer says; the paragraphs that are left are. markdown-it finds the blocks. Raw
HTML and front matter are found here: more elements count as raw than in CommonMark. What is quoted
inside a paragraph, `quotations` knows.
"""

import re
from functools import cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock, fence, lheading, paragraph

from ctx.agent_commands.markup import Span

_FENCE_ENDS = {mark: re.compile(rf"^[ \t>]*+({mark}{{3,}})[ \t]*$", re.MULTILINE) for mark in "`~"}
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

_CODE_INDENT = 4
_INTERRUPTS: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}


class Paragraph(NamedTuple):
    """Lines of text that belong together."""

    start: int
    end: int
    line_starts: set[int]
    """Where the text of each line begins, unless it is indented as code."""


class RawHtml:
    """Finds the ends of parts that are not Markdown: comments, CDATA, `<pre>`, …"""

    def __init__(self, text: str) -> None:
        self._text = text
        self._last_closing = {tag[1].lower(): tag.start() for tag in _CLOSING_TAG.finditer(text)}
        self._unclosed: set[str] = set()
        self._block_ends: dict[str, int] = {}

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
        name = found[0].lower()
        if start >= self._block_ends.get(name, -1):
            end = self._element_end(name[1:], start) if found[1] else self._section_end(name, start)
            if end is None:
                return None
            self._block_ends[name] = end
        return self._block_ends[name]

    def _section_end(self, opening: str, start: int) -> int:
        end = self.section_end(opening.upper(), start)
        return len(self._text) if end is None else end

    def _element_end(self, name: str, start: int) -> int | None:
        last = self.last_closing(name)
        if last < start:
            return len(self._text) if name in _RUN_ON else None
        depth = 0
        for tag in _RAW_TAGS[name].finditer(self._text, start):
            depth += -1 if tag[1] else 1
            if not depth:
                return tag.end()
        return last


class Blocks:
    """The paragraphs outside of block quotes, and what blocks quote beyond CommonMark.

    For CommonMark, a fence and raw HTML end with their list item or block quote. But whoever writes
    a fence into a list item may forget to indent what is in it. So they quote up to their own end.
    """

    def __init__(self, text: str, raw: RawHtml) -> None:
        self.paragraphs: list[Paragraph] = []
        self.quoted: list[Span] = []
        self.raw = raw
        self.prose: set[int] = set()
        self.fenced: set[int] = set()
        """The numbers of the lines in paragraphs and in fences."""
        self._fence_ends: dict[str, int] = {}
        start = _front_matter_end(text)
        self.source = " " * start + text[start:].replace("\r\n", " \n").replace("\r", "\n")
        _markdown().block.parse(self.source, _markdown(), {"blocks": self}, [])

    def quote_until_fence(self, text: str, mark: str, start: int) -> None:
        """Quote what is between the end of an unclosed fence and the next end of a fence."""
        if self._fence_ends.get(mark, -1) < start:
            found = _FENCE_ENDS[mark].search(text, start)
            self._fence_ends[mark] = found.end() if found else len(text) + 1
        if self._fence_ends[mark] <= len(text):
            self.quoted.append((start, self._fence_ends[mark]))


@cache
def _markdown() -> MarkdownIt:
    """The parser of blocks, which notes in `env` what it finds."""
    markdown = MarkdownIt("commonmark").disable("reference")
    rules = markdown.block.ruler
    rules.at("paragraph", _note_paragraph)
    rules.at("lheading", _note_underlined_heading)
    rules.at("fence", _note_fence, _INTERRUPTS)
    rules.at("blockquote", _skip_quote, _INTERRUPTS)
    rules.at("html_block", _raw_block, _INTERRUPTS)
    return markdown


def _note_paragraph(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    return paragraph(state, first, end, silent) and _note_lines(state, first)


def _note_underlined_heading(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    return lheading(state, first, end, silent) and _note_lines(state, first)


def _note_lines(state: StateBlock, first: int) -> bool:
    line_starts = {
        _text_start(state, line)
        for line in range(first, state.line)
        if state.sCount[line] - state.blkIndent < _CODE_INDENT
    }
    start, end = _text_start(state, first), state.eMarks[state.line - 1]
    state.env["blocks"].paragraphs.append(Paragraph(start, end, line_starts))
    state.env["blocks"].prose.update(range(first, state.line))
    return True


def _note_fence(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    if not fence(state, first, end, silent):
        return False
    if not silent:
        state.env["blocks"].fenced.update(range(first, state.line))
    if not silent and state.line < state.lineMax:
        last = state.line - 1
        marks = state.tokens[-1].markup
        written = state.src[_text_start(state, last) : state.eMarks[last]].rstrip()
        is_closed = (
            first < last
            and written.startswith(marks)
            and not written.strip(marks[0])
            and not state.is_code_block(last)
        )
        if not is_closed:
            state.env["blocks"].quote_until_fence(state.src, marks[0], state.eMarks[last])
    return True


def _skip_quote(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A line of a block quote and the lines after it, up to a blank line or another block.

    For CommonMark, only the lines of a paragraph go on like this.
    """
    if state.is_code_block(first) or not state.src.startswith(">", _text_start(state, first)):
        return False
    if not silent:
        parent, state.parentType = state.parentType, "blockquote"
        others = state.md.block.ruler.getRules("blockquote")
        line = first + 1
        while line < end and not state.isEmpty(line):
            if any(rule(state, line, end, True) for rule in others):
                break
            line += 1
        state.line, state.parentType = line, parent
    return True


def _raw_block(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A comment, `<pre>`, … up to its end, also behind the end of its list item."""
    if state.is_code_block(first):
        return False
    blocks: Blocks = state.env["blocks"]
    start = _text_start(state, first)
    raw_end = blocks.raw.block_end(start)
    if raw_end is None or silent:
        return raw_end is not None
    blocks.quoted.append((start, raw_end))
    state.line = first + 1
    while (
        state.line < end
        and state.bMarks[state.line] < raw_end
        and (state.isEmpty(state.line) or state.sCount[state.line] >= state.blkIndent)
    ):
        state.line += 1
    return True


def _text_start(state: StateBlock, line: int) -> int:
    return state.bMarks[line] + state.tShift[line]


def _front_matter_end(text: str) -> int:
    """The end of front matter; 0 if there is none. If unclosed, it ends at the first blank line."""
    start = _FRONT_MATTER.match(text)
    if start is None:
        return 0
    end = _FRONT_MATTER_END.search(text, start.end()) or _BLANK_LINE.search(text, start.end())
    return end.end() if end else len(text)
