"""Splits a message into sentences, without code, quotations, tables and markdown.

A text is read line by line, in one pass. Fenced code and `>` quotations are not the author's own
words. A list item is a sentence of its own and carries the heading above it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 400
"""Longer sentences are enumerations or not prose; they are dropped. Passages are cut."""

_LONGEST_TEXT = 24_000
_LONGEST_LINE = 4_000
_LONGEST_LEAD = 80
_MOST = 300
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*)")
_BOLD_HEADING = re.compile(r"\s{0,3}(?:\*\*|__)([^*_]{1,60})(?:\*\*|__):?\s*\Z")
_ITEM = re.compile(r"\s{0,12}(?:[-+*•]|[0-9]{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_PRINTED = re.compile(r'\s*(?:at \S+ \(|File "|Traceback \(|[\w./-]+:[0-9]+:[0-9]+\b)')
_SYMBOLS = re.compile(r"\A[^\w\s`\"'(\[<{/.~$@#&*%+=|\\:;,!?„“‘¿¡-]+\s*")
_LINK = re.compile(r"!?\[([^\[\]]{0,200})\]\([^()\s]{0,500}\)")
_EMPHASIS = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|(?<![\w*`])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_END = re.compile(r"(?<![.!?…])[.!?…]+[\"')\]”’]*(?=\s)|[。！？]+")
_ABBREVIATED = re.compile(
    r"(?:\b(?i:e\.g|i\.e|z\.b|d\.h|vs|etc|cf|approx|nr|bzw|resp|incl)|(?<=\w\. )[A-Z])\.\Z"
)
_SPACE = re.compile(r"\s+")


_COMMAND = "<ctx:"


class Sentence(NamedTuple):
    text: str
    heading: str = ""
    """The heading above it, in lower case."""
    is_item: bool = False
    starts: bool = True
    """Whether it begins a paragraph or a list item."""

    @property
    def is_question(self) -> bool:
        return self.text.rstrip("\"'”)*_ ").endswith(("?", "？"))


def split_sentences(text: str) -> list[Sentence]:
    """The sentences of a text, in order; only the beginning and end of a very long text."""
    if len(text) > _LONGEST_TEXT:
        half = _LONGEST_TEXT // 2
        text = f"{text[:half]}\n\n{text[-half:]}"
    found: list[Sentence] = []
    for part, heading, is_item in _paragraphs(text):
        for index, words in enumerate(_split(_plain(part))):
            if _COMMAND in words:
                # A sentence that explains `<ctx:…>` commands says nothing about the work.
                continue
            found.append(Sentence(words, heading, is_item, index == 0))
            if len(found) == _MOST:
                return found
    return found


def _paragraphs(text: str) -> Iterator[tuple[str, str, bool]]:
    """Paragraphs and list items: text, heading above it, whether it is an item."""
    heading, lead, fence, is_item = "", "", "", False
    lines: list[str] = []
    for raw in text.splitlines():
        line = raw[:_LONGEST_LINE]
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
            continue
        title = _HEADING.match(line) or _BOLD_HEADING.match(line)
        stripped = line.strip()
        item = _ITEM.match(line)
        # An indented block that continues no paragraph is code, not prose.
        is_shown = line.startswith(("    ", "\t")) and not lines and not item
        is_shown = is_shown or _PRINTED.match(line) is not None
        is_end = mark or title or not stripped or item or stripped[0] in ">|<" or is_shown
        if is_end:
            if lines:
                words = " ".join(lines)
                yield words, lead if is_item and lead else heading, is_item
                if not is_item:
                    # `Next steps:` acts as a heading for the list below it.
                    is_lead = words.endswith(":") and len(words) <= _LONGEST_LEAD
                    lead = _plain(words).rstrip(": ").lower() if is_lead else ""
            lines, is_item = [], False
        if mark:
            fence = mark[1]
        elif title:
            heading, lead = _plain(title[1]).rstrip(": ").lower(), ""
        elif item:
            lines, is_item = [line[item.end() :].strip()], True
        elif not is_shown and stripped and stripped[0] not in ">|<":
            lines.append(stripped)
    if lines:
        yield " ".join(lines), lead if is_item and lead else heading, is_item


def _plain(text: str) -> str:
    text = _LINK.sub(r"\1", text)
    if "`" not in text:
        return _without_emphasis(text)
    # Code in backticks keeps its stars, underscores and brackets.
    parts = text.split("`")
    return "`".join(
        part if index % 2 else _without_emphasis(part) for index, part in enumerate(parts)
    )


def _without_emphasis(text: str) -> str:
    return _TAG.sub("", _EMPHASIS.sub("", text))


def _split(text: str) -> Iterator[str]:
    start = counted = ticks = 0
    for end in _END.finditer(text):
        ticks += text.count("`", counted, end.end())
        counted = end.end()
        # A period inside backticks or after `e.g` does not end a sentence.
        if ticks % 2 or _ABBREVIATED.search(text[max(start, counted - 8) : counted]):
            continue
        yield from _fit_sentence(text[start:counted])
        start = counted
    yield from _fit_sentence(text[start:])


def _fit_sentence(text: str) -> Iterator[str]:
    words = _SYMBOLS.sub("", _SPACE.sub(" ", text).strip())
    if words and len(words) <= LONGEST:
        yield words


SHORTEST = 20
"""The shortest passage: less says nothing without the conversation around it."""

_BREAKS = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+•]|\d+[.)])\s)|\n(?=#)")
_FENCED = re.compile(
    # A fence that is not closed ends with the text, as in markdown.
    r"^[ \t]{0,3}(```|~~~).*?(?:^[ \t]{0,3}\1[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE_END = re.compile(r"[.!?…:;][)\"'”’*_]*\s")
_BLANKS = re.compile(r"[ \t]+")


def passages(text: str, shortest: int = SHORTEST) -> list[str]:
    """The passages in order, without fenced code. Short neighbours are joined."""
    text = _FENCED.sub("\n\n", text[:_LONGEST_TEXT])
    joined: list[str] = []
    for block in _BREAKS.split(text):
        for passage in _cut_block(_BLANKS.sub(" ", block).strip()):
            if joined and len(joined[-1]) + len(passage) < LONGEST:
                joined[-1] += f"\n{passage}"
            else:
                joined.append(passage)
    return [passage for passage in joined if len(passage) >= shortest]


def _cut_block(text: str) -> Iterator[str]:
    while len(text) > LONGEST:
        ends = [end.end() for end in _SENTENCE_END.finditer(text, LONGEST // 3, LONGEST)]
        at = ends[-1] if ends else text.rfind(" ", LONGEST // 2, LONGEST)
        at = at if at > 0 else LONGEST
        yield text[:at].strip()
        text = text[at:].strip()
    if text:
        yield text
