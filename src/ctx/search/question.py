"""A task as a person wrote it, and the words in it that count.

People paste issues with their template, tracebacks, and the output of commands. The words that they
wrote themselves matter most, above all the first line. So boilerplate is removed, and a word counts
more the more often it occurs, in prose more than in code.
"""

import re
from collections import Counter
from collections.abc import Container, Mapping
from functools import cache
from math import log2
from typing import NamedTuple

from ctx import terms
from ctx.search import boilerplate, trace_frames

LONGEST = 200_000
"""The number of characters that are read."""

_IN_FIRST_LINE = 2.0
_IN_INLINE_CODE = 1.0
_CODE_COUNTS = 0.5
_SHORTEST = 2
_LONGEST_LINE = 4_000
_BOLD = 5
"""The heading level of a line that is bold or ends with a colon."""

_COMMENT, _COMMENT_ENDS = "<!--", "-->"
_LINK = re.compile(r"\b(?:https?|ftp)://[^\s<>()\"'`\]]+|\bwww\.[^\s<>()\"'`\]]+", re.IGNORECASE)
_FENCED = re.compile(
    r"^ {0,3}(`{3,9}|~{3,9})[^\n]*\n(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_INLINE = re.compile(r"(`{1,2})([^`\n]{1,300})\1")
_HEADING = re.compile(
    r"^ {0,3}(#{1,6})[ \t]+([^\n]{0,200})$|^([^\n]{1,100})\n(?:={3,}|-{3,})[ \t]*$"
    r"|^[ \t]*\*\*([^*\n]{1,80})\*\*:?[ \t]*$|^([A-Z][^\n.`:]{1,40}):[ \t]*$",
    re.MULTILINE,
)
_BOX = re.compile(
    r"^[ \t]*(?:(?:[-*+]|\d{1,2}\.) \[[ xX\u2705\u2713]?\]|\[[ xX]\] |[\u2610-\u2612])[^\n]*$",
    re.MULTILINE,
)
"""The check boxes of an issue form."""
_TYPED = re.compile(r"^[ \t]*(?:>>>|\.\.\.|In \[\d{1,4}\]:|\$) [^\n]*$", re.MULTILINE)
"""Input at a prompt."""


_TRACE_WORDS = re.compile(
    r"File \"|\", line \d{1,9}(?:, in)?|Traceback \(most recent call last\):?"
    r"|During handling of the above exception, another exception occurred:?"
    r"|The above exception was the direct cause of the following exception:?"
    r"|(?<![^\s\"'(])[^\s\"'(]{0,300}/(?:(?:site|dist)-packages|node_modules)/"
)
"""Words that are in every stack trace, and the folders of installed libraries."""


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    # Compiled when the first heading is found: most tasks have none.
    return re.compile(rf"\W*(?:{'|'.join(patterns)})\W*", re.IGNORECASE)


# Headings of issue forms that say nothing about the code.
_FORM = (
    r"(?:issue )?description|bug (?:report|summary)|describe the (?:bug|issue|problem)",
    r"(?:how |steps?(?:/code)? )?to reproduce(?: the (?:bug|issue|behaviou?r))?|reproduc\w+",
    r"(?:minimal )?(?:reproducible |code )?(?:sample|example)s?|code for reproduction",
    r"(?:expected|actual|current|observed)(?: (?:behaviou?r|results?|outcome|output))?",
    r"what (?:happened|did you (?:expect|do|see).{0,40}|is the .{0,40}|were you .{0,40})",
    r"additional (?:context|information|details|info)|summary|motivation|context|problem|proposal",
    r"possible (?:fix|solution|implementation)|screenshots?|code of conduct|checklist|contribution",
    r"is your feature request related.{0,60}|describe (?:the solution|alternatives).{0,60}",
    r"related (?:issues?|problems?)|comments?|question|feature|bug",
)
_SURROUNDINGS = (
    (
        r"(?:your |system |software )?(?:environment|versions?|system|platform|setup|os)"
        r"(?: (?:info\w*|details|and .{0,40}|of .{0,40}))?"
    ),
    r".{0,20}version(?: info\w*)?|what version .{0,80}|library versions?",
    r"output of .{0,60}|installed packages|dependencies|(?:operating|affected) .{0,30}",
    r".{0,30}(?:go|node|npm|python|rust\w*) (?:env|version).{0,30}",
)
_TESTS = re.compile(
    r"\b(?:(?:add|write|fix|improve|update|missing|flaky|more|unit|failing|broken)\s+"
    r"(?:\w+\s+){0,3}?tests?|tests?\s+(?:for|suite|coverage|cases?\b)|test_\w+|conftest)\b",
    re.IGNORECASE,
)


# Words that occur in all kinds of tasks.
_GENERIC_WORDS = frozenset(
    terms.query(
        "cannot doing etc get got however instead like made make makes new now off once one only"
        " over own rather same see since such through two under until use used using via"
    )
)
_SILENT = terms.STOP_WORDS | _GENERIC_WORDS


class SearchQuestion(NamedTuple):
    """A task, and the words to search for."""

    text: str
    """As it was asked."""
    cleaned: str
    """Without boilerplate."""
    weights: Mapping[str, float]
    """The weight of each term."""
    is_about_tests: bool

    @property
    def first_line(self) -> str:
        """The title of an issue, or the whole of a short task."""
        return self.cleaned.lstrip().partition("\n")[0]

    @property
    def is_telling(self) -> bool:
        """Whether it contains a specific word."""
        return not self.weights.keys() <= _SILENT

    def without(self, words: Container[str]) -> "SearchQuestion":
        """The question without the weights of some terms, unless there are no others."""
        weights = {term: weight for term, weight in self.weights.items() if term not in words}
        return self._replace(weights=weights or self.weights)


def read(text: str) -> SearchQuestion:
    text = text[:LONGEST]
    cleaned = clean(text)
    return SearchQuestion(
        text, cleaned, _weights(cleaned) or _weights(text), _is_about_tests(cleaned)
    )


def clean(text: str) -> str:
    """A task without comments, addresses, form headings, and descriptions of the environment."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = boilerplate.remove_lines(_BOX.sub("", _without_comments(text)))
    return _without_sections(_LINK.sub(" ", text)).strip()


def _without_comments(text: str) -> str:
    first, *others = text.split(_COMMENT)
    return " ".join([first, *(part.partition(_COMMENT_ENDS)[2] for part in others)])


def _without_sections(text: str) -> str:
    """Remove the headings of a form, and the sections that describe somebody's machine."""
    kept: list[str] = []
    start, depth_left_out = 0, 0
    code = [(fence_match.start(), fence_match.end()) for fence_match in _FENCED.finditer(text)]
    fence = 0
    for heading in _HEADING.finditer(text):
        while fence < len(code) and code[fence][1] <= heading.start():
            fence += 1
        if fence < len(code) and code[fence][0] <= heading.start():
            # A comment in code looks like a heading.
            continue
        depth = len(heading[1]) if heading[1] else 2 if heading[3] else _BOLD
        title = next((group for group in heading.groups()[1:] if group), "")
        if not depth_left_out:
            kept.append(text[start : heading.start()])
        elif depth > depth_left_out:
            continue
        is_surroundings = bool(_any_of(_SURROUNDINGS).fullmatch(title)) and bool(heading.start())
        depth_left_out = depth if is_surroundings else 0
        if not is_surroundings and not _any_of(_FORM).fullmatch(title):
            kept.append(f"{title}\n")
        start = heading.end()
    if not depth_left_out:
        kept.append(text[start:])
    return "\n".join(kept)


def _weights(text: str) -> dict[str, float]:
    first, _, _ = text.lstrip().partition("\n")
    code: list[str] = []

    def taken(match: re.Match[str]) -> str:
        code.append(match[2])
        return "\n"

    prose = _FENCED.sub(taken, text)
    code += _TYPED.findall(prose)
    lines = _TYPED.sub("", prose).split("\n")
    in_trace = trace_frames.read([line[:_LONGEST_LINE] for line in lines]).lines
    code += [line for number, line in enumerate(lines) if number in in_trace]
    prose = "\n".join(line for number, line in enumerate(lines) if number not in in_trace)
    prose = _TRACE_WORDS.sub(" ", prose)
    inline = Counter(terms.extract(" ".join(match[2] for match in _INLINE.finditer(prose))))
    in_prose = Counter(terms.extract(prose))
    shown = Counter(terms.extract(_TRACE_WORDS.sub(" ", "\n".join(code))))
    title = set(terms.extract(first))
    weights = {
        term: log2(1 + in_prose[term] + _CODE_COUNTS * shown[term])
        + _IN_FIRST_LINE * (term in title)
        + _IN_INLINE_CODE * (term in inline)
        for term in dict.fromkeys((*in_prose, *shown))
        if len(term) >= _SHORTEST or term > "\x7f"
    }
    return {term: weight for term, weight in weights.items() if term not in _SILENT} or weights


def _is_about_tests(text: str) -> bool:
    first, _, _ = text.lstrip().partition("\n")
    return bool(_TESTS.search(first))
