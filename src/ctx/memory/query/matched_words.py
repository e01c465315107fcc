"""The words of a node that a search matched, for the people who read the result.

Search compares terms, which are stems and parts of identifiers, so the words of a text are reduced
to terms in the same way before they are compared.
"""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from ctx import terms

_WORD = re.compile(r"[\w-]+")
_LONGEST = 20_000
"""The characters of a text that are searched for words."""
_BEFORE = 60
"""The characters that an excerpt has before its first word."""


class TextPart(NamedTuple):
    text: str
    is_match: bool


class MatchExcerpt(NamedTuple):
    """A piece of a text around the words that matched."""

    parts: tuple[TextPart, ...]
    words: tuple[str, ...]
    """The different words that matched, in lower case."""


class _Span(NamedTuple):
    start: int
    end: int


def excerpt(
    text: str, wanted: Collection[str], most: int, *, beginnings: bool = False
) -> MatchExcerpt:
    """The piece of a text with the most different matching words, on one line.

    `wanted` are terms; with `beginnings`, words that begin with one of them match too.
    """
    line = " ".join(text[:_LONGEST].split())
    spans = list(_spans(line, wanted, beginnings=beginnings)) if wanted else []
    start = _best_start(line, spans, most)
    end = min(len(line), start + most)
    parts: list[TextPart] = [TextPart("… ", False)] if start else []
    place = start
    for span in spans:
        if start <= span.start and span.end <= end:
            parts += [TextPart(line[place : span.start], False)]
            parts += [TextPart(line[span.start : span.end], True)]
            place = span.end
    parts.append(TextPart(line[place:end], False))
    if end < len(line) or len(text) > _LONGEST:
        parts.append(TextPart(" …", False))
    words = dict.fromkeys(line[span.start : span.end].lower() for span in spans)
    return MatchExcerpt(tuple(part for part in parts if part.text), tuple(words))


def _spans(line: str, wanted: Collection[str], *, beginnings: bool) -> Iterator[_Span]:
    known: dict[str, bool] = {}
    for match in _WORD.finditer(line):
        word = match.group()
        if word not in known:
            known[word] = _is_match(word, wanted, beginnings=beginnings)
        if not known[word]:
            continue
        # In scripts without spaces, the word is a whole clause: only what matched is marked.
        pieces = [] if word.isascii() else _pieces(match, wanted)
        yield from pieces or [_Span(*match.span())]


def _is_match(word: str, wanted: Collection[str], *, beginnings: bool) -> bool:
    own = terms.extract(word)
    if any(term in wanted for term in own):
        return True
    return beginnings and any(term.startswith(tuple(wanted)) for term in own)


def _pieces(match: re.Match[str], wanted: Collection[str]) -> list[_Span]:
    """The matching characters of a word without spaces, joined where they overlap."""
    word = match.group().lower()
    if len(word) != len(match.group()):
        return []
    pieces: list[_Span] = []
    for place in range(len(word)):
        ends = [place + len(term) for term in wanted if term and word.startswith(term, place)]
        if not ends:
            continue
        start, end = match.start() + place, match.start() + max(ends)
        if pieces and start <= pieces[-1].end:
            pieces[-1] = _Span(pieces[-1].start, max(end, pieces[-1].end))
        else:
            pieces.append(_Span(start, end))
    return pieces


def _best_start(line: str, spans: list[_Span], most: int) -> int:
    """Where the excerpt begins: at the beginning, unless another piece has more of the words."""
    if len(line) <= most or not spans:
        return 0
    best, best_words = 0, _words_between(line, spans, 0, most)
    for span in spans[:200]:
        start = min(max(0, span.start - _BEFORE), len(line) - most)
        start = line.rfind(" ", 0, start) + 1
        words = _words_between(line, spans, start, most)
        if words > best_words:
            best, best_words = start, words
    return best


def _words_between(line: str, spans: list[_Span], start: int, most: int) -> int:
    inside = (span for span in spans if start <= span.start and span.end <= start + most)
    return len({line[span.start : span.end].lower() for span in inside})
