"""Finds the quoted parts of a paragraph: text that the writer shows and does not mean.

Quotation marks, code spans, links, table rows, comments, and every element except plain layout
quote text. Ambiguous text counts as quoted: an ignored command can be repeated, but a command that
is carried out by mistake changes memory. So

- an unclosed quotation mark or backtick quotes the rest of its paragraph; if a later paragraph has
  an unmatched closing mark, everything between the two is quoted;
- an apostrophe is not a quotation mark: `don't`, `users'`, `'em`;
- an element quotes up to its closing tag, in any paragraph. An unclosed element quotes the rest of
  its paragraph if it is a quoting element, and nothing otherwise: `Vec<String>`.

Each paragraph is read once. Which positions are quoted is known after all of them are read.
Commands are masked in the text, so that nothing in them counts.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

from ctx.agent_commands import unfenced
from ctx.agent_commands.markup import ESCAPED, MARK, Backticks, Span
from ctx.agent_commands.prose import Blocks, Paragraph, RawHtml

_LAYOUT = frozenset(
    "b strong i em u ins mark small big sub sup font center span div p br hr wbr section article"
    " main header footer aside nav details summary ul ol li dl dt dd h1 h2 h3 h4 h5 h6".split()
)
"""Elements that only affect layout and appearance."""
_QUOTING_BLOCKS = frozenset(
    "blockquote table pre xmp listing plaintext script style textarea template svg iframe noscript"
    " private".split()
)
"""Elements that quote the rest of the text if they begin a line and are not closed."""
_QUOTING = _QUOTING_BLOCKS | frozenset(
    "a q cite code samp kbd tt var dfn abbr title thead tbody tfoot tr td th caption s del strike"
    " option select button label math object example quote".split()
)
"""Elements that quote even if they are not closed."""

_PAIRS = {"「": "」", "『": "』", "〈": "〉", "《": "》"}
_SINGLE = "'＇‘’‚‛"
_GROUPS = {
    **dict.fromkeys('"＂“”„‟〝〞〟', "double"),
    **dict.fromkeys(_SINGLE, "single"),
    **dict.fromkeys("«»", "«"),
    **dict.fromkeys("‹›", "‹"),
    **{mark: opening for opening, closing in _PAIRS.items() for mark in (opening, closing)},
}
"""By quotation mark: which others may close what it opens."""
_STRAIGHT = frozenset('"＂')
_ONLY_OPENS = frozenset("„‚" + "".join(_PAIRS))
_ONLY_CLOSES = frozenset(_PAIRS.values())
_OPENING_QUOTES = frozenset("“‘‟‛〝")
_CLOSING_QUOTES = frozenset("”’〞〟")
_BEFORE_OPENING = frozenset("([{<—–-/=:,;|")
_AFTER_CLOSING = frozenset(".,;:!?)]}>|…")
_CONTRACTION = re.compile(
    r"['’](?:\d|(?:em|tis|twas|cause|til|till|n|bout|round|cuz|ere|sup|s|t|d)\b)", re.IGNORECASE
)
_DEEPEST_INDENT = 80
_FIRST_IDEOGRAPH = "\u2e80"
"""From here on, scripts have no spaces and no apostrophes."""

_TAG = r"""<(/?)([A-Za-z][\w:.-]*+)((?>(?:[^<>"']++|"[^"]*+"|'[^']*+')*))>"""
_TOKEN = re.compile(
    rf"(?:{ESCAPED}|`+|<!--|<!\[CDATA\[|<\?|{MARK}|{_TAG}|[\[\]]"
    rf"|([{''.join(_GROUPS)}])\4*+|,,(?=\S)|&#?\w{{2,8}};)"
)
_ROW_OF_DASHES = re.compile(
    r"[ \t>]*+\|?(?>(?:[ \t]*+:?-++:?[ \t]*+\|)*)(?:[ \t]*+:?-++:?)?[ \t]*+"
)
_REFERENCE = re.compile(r"[ \t]*+\[[^\[\]\n]*+\]:")


class _OpenMark(NamedTuple):
    start: int
    is_weak: bool
    """Whether it may be an apostrophe: then it quotes only if it is closed."""


class _OpenElement(NamedTuple):
    name: str
    start: int
    end: int
    """The end of the quotation if no closing tag is found in prose."""


class Quotations:
    """The quotations of a text, collected paragraph by paragraph."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._backticks = Backticks(text)
        self._raw = RawHtml(text)
        blocks = Blocks(text, self._raw)
        self.paragraphs = blocks.paragraphs
        """Those outside of block quotes."""
        self._spans = blocks.quoted + unfenced.find(blocks)
        self._elements: list[_OpenElement] = []
        self._open_names: dict[str, int] = {}
        self._left_open: dict[str, int] = {}
        """By group: a quotation mark of an earlier paragraph that is not closed there."""
        for paragraph in blocks.paragraphs:
            self._read(paragraph)

    def places(self, others: list[Span]) -> "QuotedPlaces":
        """All quoted places, including `others`."""
        spans = [(each.start, each.end) for each in self._elements]
        return QuotedPlaces(self._spans + spans + others)

    def _read(self, paragraph: Paragraph) -> None:
        text, end = self._text, paragraph.end
        marks = _Marks(text, paragraph, self._left_open)
        self._spans += _quoted_lines(text, paragraph)
        at = paragraph.start
        while token := _TOKEN.search(text, at, end):
            start, at = token.span()
            written = token[0]
            if written[0] == "`":
                at = self._code_end(paragraph, start, at)
            elif written in ("<!--", "<![CDATA[", "<?"):
                section_end = self._raw.section_end(written, start)
                self._spans.append((start, section_end or end))
                at = min(section_end, end) if section_end else at
            elif token[2]:
                self._read_tag(token, paragraph)
            elif written == "[":
                marks.brackets.append(start)
            elif written == "]":
                marks.close_bracket(start)
            elif written == ",,":
                marks.read("„", start, at)
            elif written[0] == "&":
                marks.read(unescape(written), start, at)
            else:
                marks.read(written.removeprefix("\\"), start, at)
        marks.end()
        self._spans += marks.spans

    def _code_end(self, paragraph: Paragraph, start: int, at: int) -> int:
        end = self._backticks.closing(at - start, at, paragraph.end)
        self._spans.append((start, end or paragraph.end))
        return end or at

    def _read_tag(self, tag: re.Match[str], paragraph: Paragraph) -> None:
        name = tag[2].lower()
        if name in _LAYOUT or name.startswith("ctx:"):
            return
        if tag[1]:
            self._close(name, tag.end())
            return
        end = self._raw.last_closing(name)
        if end < tag.end():
            if name not in _QUOTING or tag[3].endswith("/"):
                return
            runs_on = name in _QUOTING_BLOCKS and self._begins_line(paragraph, tag.start())
            end = len(self._text) if runs_on else paragraph.end
        self._elements.append(_OpenElement(name, tag.start(), end))
        self._open_names[name] = self._open_names.get(name, 0) + 1

    def _begins_line(self, paragraph: Paragraph, position: int) -> bool:
        before = self._text[max(paragraph.start, position - _DEEPEST_INDENT) : position]
        return not before.rpartition("\n")[2].strip()

    def _close(self, name: str, end: int) -> None:
        """Close an element and the elements inside it."""
        while self._open_names.get(name):
            element = self._elements.pop()
            self._open_names[element.name] -= 1
            self._spans.append((element.start, end))
            if element.name == name:
                return


class QuotedPlaces:
    """The quoted positions of a text."""

    def __init__(self, spans: list[Span]) -> None:
        self._spans: list[Span] = []
        for start, end in sorted(spans):
            if self._spans and start <= self._spans[-1][1]:
                self._spans[-1] = self._spans[-1][0], max(end, self._spans[-1][1])
            else:
                self._spans.append((start, end))

    def has(self, position: int) -> bool:
        before = bisect_left(self._spans, (position + 1,)) - 1
        return before >= 0 and position < self._spans[before][1]


class _Marks:
    """The quotation marks and brackets of one paragraph."""

    def __init__(self, text: str, paragraph: Paragraph, left_open: dict[str, int]) -> None:
        self.spans: list[Span] = []
        self.brackets: list[int] = []
        self._text = text
        self._start, self._end = paragraph.start, paragraph.end
        self._left_open = left_open
        self._open: dict[str, list[_OpenMark]] = {}
        self._last_single: Span | None = None
        self._odd_straight: int | None = None
        self._last_parenthesis = text.rfind(")", self._start, self._end)

    def read(self, written: str, start: int, end: int) -> None:
        """Read a mark, or several equal marks in a row."""
        if written[:1] not in _GROUPS:
            return
        mark, is_one = written[0], len(written) == 1
        before = self._text[start - 1] if start > self._start else " "
        after = self._text[end] if end < self._end else " "
        if is_one and mark in "'＇’" and _is_letter(before) and _is_letter(after):
            # An apostrophe.
            return
        if mark in _STRAIGHT and len(written) % 2:
            self._count_straight(start, end)
        group = _GROUPS[mark] if is_one else "double"
        may_open = not (after.isspace() or after in _AFTER_CLOSING or _is_letter(before))
        may_close = not (before.isspace() or before in _BEFORE_OPENING)
        if is_one or may_open or may_close:
            # Otherwise it is an empty quotation.
            opened = self._open.setdefault(group, [])
            is_open = bool(opened) or group in self._left_open
            if _opens(mark, may_open, may_close, is_open=is_open):
                is_weak = group == "single" and bool(_CONTRACTION.match(self._text, start))
                opened.append(_OpenMark(start, is_weak))
            else:
                self._close(group, end)

    def close_bracket(self, start: int) -> None:
        """End the text of a link; its address may follow."""
        if self.brackets:
            self.spans.append((self.brackets.pop(), start + 1))
            if self._text.startswith("(", start + 1):
                is_closed = start < self._last_parenthesis
                end = self._text.find(")", start, self._end) if is_closed else self._end
                self.spans.append((start, end))

    def end(self) -> None:
        """End the paragraph."""
        for group, opened in self._open.items():
            unclosed = next((each.start for each in opened if not each.is_weak), None)
            if unclosed is not None:
                self.spans.append((unclosed, self._end))
                if group != "single":
                    self._left_open[group] = unclosed
        if self._odd_straight is not None:
            self.spans.append((self._odd_straight, self._end))

    def _close(self, group: str, end: int) -> None:
        opened = self._open[group]
        if opened:
            self.spans.append((opened.pop().start, end))
            if group == "single":
                self._last_single = self.spans[-1]
        elif group in self._left_open:
            self.spans.append((self._left_open.pop(group), end))
        elif group == "single" and self._last_single:
            # In `'the users' data'` the first two marks or all three may be the quotation.
            self._last_single = self._last_single[0], end
            self.spans.append(self._last_single)

    def _count_straight(self, start: int, end: int) -> None:
        """Straight marks also quote in pairs, whatever is next to them."""
        if self._odd_straight is None:
            self._odd_straight = start
        else:
            self.spans.append((self._odd_straight, end))
            self._odd_straight = None


def _opens(mark: str, may_open: bool, may_close: bool, *, is_open: bool) -> bool:
    """Whether a quotation mark opens, by its neighbours, else by its shape."""
    if mark in _ONLY_OPENS or mark in _ONLY_CLOSES:
        return mark in _ONLY_OPENS
    if may_open != may_close:
        return may_open
    if mark in _OPENING_QUOTES or mark in _CLOSING_QUOTES:
        return mark in _OPENING_QUOTES
    return not is_open


def _is_letter(character: str) -> bool:
    return character.isalnum() and character < _FIRST_IDEOGRAPH


def _quoted_lines(text: str, paragraph: Paragraph) -> Iterator[Span]:
    """The rows of tables, with or without a row of dashes, and the definitions of links."""
    start, end = paragraph.start, paragraph.end
    if text.find("|", start, end) < 0 and text.find("]:", start, end) < 0:
        return
    before: Span | None = None
    in_table = False
    for line in text[start:end].splitlines(keepends=True):
        span = start, start + len(line)
        start = span[1]
        content = line.rstrip("\r\n")
        if _REFERENCE.match(content):
            yield span[0], end
        if "|" in content:
            if before and _ROW_OF_DASHES.fullmatch(content):
                in_table = True
                yield before
            if in_table or content.lstrip().startswith("|"):
                yield span
        before = span
