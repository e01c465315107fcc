"""The markup of a command: its opening tag with attributes, and its closing tag.

    <ctx:remember type="fact" tags='tier:reference'>  content  </ctx:remember>
    └ Opening ─────────────────────────────────────┘           └ closing ────┘

It does not know which commands there are. Nothing here looks at a text more often than a few
times, whatever stands in it: a reply may be made of nothing but openings.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

MARK = "<ctx:"
ESCAPED = r"\\[!-/:-@\[-`{-~]"
"""A backslash and the character that it makes literal."""

Span = tuple[int, int]

_LONGEST_DETOUR = 1000
"""How far an opening tag may continue after the next `<ctx:`, which is then part of a value. If it
continues further, a quote is missing."""
_PATIENCE = 20
"""How often a text is searched for closing tags outside of code. After that, every closing tag
counts: this limits the cost of hostile input."""

_COMMAND = r"[A-Za-z][\w-]*"
_NAME = re.compile(rf"{_COMMAND}(?=[\s/>]|\Z)")
_END = re.compile(r"\s*+(/\s*+)?>")
_REST_OF_LINE = re.compile(r"[ \t]*+(?=[\r\n]|\Z)")
_SPACE = re.compile(r"\s*+")
_QUOTES = "\"'“”„‘’‚"

# The last matching group shows what was matched: a name alone, a name with `=`, or a value.
_ATTRIBUTE = r"\s*+(?P<name>[A-Za-z_][\w-]*+)(?:\s*+(?P<equals>=)\s*+(?:{values})?)?"
_PLAIN_VALUES = (
    r'"(?P<double>[^"]*+)"',
    r"'(?P<single>[^']*+)'",
    "[“”„](?P<typographic>[^“”„]*+)[“”]",
    "[‘’‚](?P<single_typographic>[^‘’‚]*+)[‘’]",
    rf"(?P<unquoted>(?>(?:[^\s`<>=/{_QUOTES}]|/(?!\s*+>))+))",
)
_ESCAPING_VALUES = (r'"(?P<double>(?>(?:[^"\\]|\\.)*))"', r"'(?P<single>(?>(?:[^'\\]|\\.)*))'")
_PLAIN_ATTRIBUTE = re.compile(_ATTRIBUTE.format(values="|".join(_PLAIN_VALUES)))
_ESCAPING_ATTRIBUTE = re.compile(_ATTRIBUTE.format(values="|".join(_ESCAPING_VALUES)), re.DOTALL)
_ESCAPED_QUOTE = re.compile(r"""\\(["'])""")
_ENTITY = re.compile("&(quot|apos|lt|gt|amp);")
_CHARACTERS = {"quot": '"', "apos": "'", "lt": "<", "gt": ">", "amp": "&"}


class OpeningTag(NamedTuple):
    name: str
    """In lower case. It may be unknown."""
    start: int
    end: int
    """After its `>`; after its name if it is invalid."""
    attributes: tuple[tuple[str, str | None], ...]
    """In order, the names in lower case. None: a name alone."""
    is_all: bool
    """Whether it is `<…/>`, without content and closing tag."""
    problem: str
    """Why it is invalid; empty if it is valid."""


def read_opening(text: str, start: int) -> OpeningTag | None:
    """Parse the tag at a `<ctx:`; None if no name follows, so that it is not a command."""
    name = _NAME.match(text, start + len(MARK))
    if name is None:
        return None
    other = text.find(MARK, name.end())
    limit = len(text) if other < 0 else min(len(text), other + _LONGEST_DETOUR)
    opening = _read_attributes(text, name, limit, _PLAIN_ATTRIBUTE)
    if opening.problem and opening.attributes:
        # Quotes in a value may be escaped with backslashes, which changes where it ends.
        escaping = _read_attributes(text, name, limit, _ESCAPING_ATTRIBUTE)
        if not escaping.problem:
            pairs = [(each, _unescaped(value)) for each, value in escaping.attributes]
            return escaping._replace(attributes=tuple(pairs))
    return opening


def is_last_in_line(text: str, opening: OpeningTag) -> bool:
    """Whether the name is the last text in its line."""
    return _REST_OF_LINE.match(text, opening.end) is not None


def _read_attributes(
    text: str, name: re.Match[str], limit: int, attribute: re.Pattern[str]
) -> OpeningTag:
    command, start, at = name[0].lower(), name.start() - len(MARK), name.end()
    found: list[tuple[str, str | None]] = []
    while not (end := _END.match(text, at, limit)):
        pair = attribute.match(text, at, limit)
        if pair is None:
            problem = _invalid_tag_reason(text, at, found)
            return OpeningTag(command, start, name.end(), tuple(found), False, problem)
        at = pair.end()
        match pair.lastgroup:
            case "name":
                value = None
            case "equals":
                value = ""
            case group:
                value = _ENTITY.sub(lambda entity: _CHARACTERS[entity[1]], pair[group or 0])
        found.append((pair["name"].lower(), value))
    return OpeningTag(command, start, end.end(), tuple(found), bool(end[1]), "")


def _invalid_tag_reason(text: str, at: int, found: list[tuple[str, str | None]]) -> str:
    """Why an opening tag is invalid at this position, after these attributes."""
    valued = [name for name, value in found if value is not None]
    space = _SPACE.match(text, at)
    at = space.end() if space else at
    if not valued or text[at : at + 1] not in tuple(_QUOTES):
        return "The closing `>` is missing."
    if found[-1] == (valued[-1], ""):
        return f"The quote at `{valued[-1]}` is not closed."
    return (
        f"`{valued[-1]}` continues after its closing quote; write a quote inside a value as"
        " `&quot;`."
    )


def _unescaped(value: str | None) -> str | None:
    return None if value is None else _ESCAPED_QUOTE.sub(r"\1", value)


_ESCAPED_TAG = re.compile(r"&lt;(/?+ctx:(?>(?:[^<>&]|&(?!gt;|lt;/?+ctx:))*))&gt;", re.IGNORECASE)


def unescape_tags(text: str) -> str:
    """What an agent wrote in a host that shows it `<` as `&lt;`, also in the context of ctx."""
    return _ESCAPED_TAG.sub(r"<\1>", text)


_EDGE = rf"</ctx:(?P<closed>{_COMMAND})\s*+>|{MARK}(?P<opened>{_COMMAND})"
_EDGES = re.compile(_EDGE)
_IN_CONTENT = re.compile(
    rf"^[ \t>]*+(?P<fence>`{{3,}}(?=[^`\n]*$)|~{{3,}})|{ESCAPED}|(?P<ticks>`+)|{_EDGE}",
    re.MULTILINE,
)
_REST_IS_BLANK = re.compile(r"[ \t\r]*$", re.MULTILINE)
_PARAGRAPH_END = re.compile(r"\n(?=[ \t>\r]*+(?:\n|`{3,}[^`\n]*$|~{3,}))", re.MULTILINE)


class Backticks:
    """The positions of runs of backticks, by length."""

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


class _Edge(NamedTuple):
    """An opening or closing tag in the content of a command."""

    match: re.Match[str]
    """With the name of its command in the group `opened` or `closed`."""
    code: int | None
    """The start of the code that it is in."""


class _UnclosedTag:
    """An opening tag without a closing tag yet, and its fallback candidates."""

    def __init__(self, end: int) -> None:
        self.end = end
        self.in_code: Span | None = None
        self.code: int | None = None
        """The start of the code that this one is in."""
        self.of_example: Span | None = None
        """The closing tag in the same code."""


class ClosingTags:
    """Matches closing tags with opening tags.

    Openings and closings of one name are matched as brackets are, so that one that was forgotten
    does not take the next command with it. Those in code do not count. But a stray backtick makes
    code of what is none, so a closing in code does count if there is no other, or if a command
    begins before the other.
    """

    def __init__(
        self, text: str, backticks: Backticks, begins_content: Callable[[OpeningTag], bool]
    ) -> None:
        self._text = text
        self._backticks = backticks
        self._begins_content = begins_content
        self._paragraph_ends = [*(end.start() for end in _PARAGRAPH_END.finditer(text)), len(text)]
        self._last: dict[str, int] = {}
        for edge in _EDGES.finditer(text):
            if edge["closed"]:
                self._last[edge["closed"].lower()] = edge.start()
        self._found: dict[int, Span | None] = {}
        """By the end of the opening."""
        self._patience = _PATIENCE * len(text)

    def closing_of(self, opening: OpeningTag) -> Span | None:
        """The span of its closing tag; None if it has none."""
        if opening.end > self._last.get(opening.name, -1):
            return None
        if opening.end not in self._found:
            if self._patience > 0:
                self._search(opening)
            else:
                first = re.compile(rf"</ctx:{opening.name}\s*+>", re.IGNORECASE)
                found = first.search(self._text, opening.end)
                self._found[opening.end] = found.span() if found else None
        return self._found[opening.end]

    def _search(self, opening: OpeningTag) -> None:
        """Find the closing tags of an opening tag and of those in its content."""
        waiting = [_UnclosedTag(opening.end)]
        shown: dict[int, int] = {}  # by code: how many openings in it are to be closed in it
        at = opening.end
        for edge, code in self._edges(opening.end):
            at = edge.end()
            if (edge["opened"] or edge["closed"]).lower() != opening.name:
                continue
            last = waiting[-1]
            if edge["closed"]:
                if code is None:
                    self._found[waiting.pop().end] = edge.span()
                elif shown.get(code):
                    shown[code] -= 1
                    last.of_example = last.of_example or edge.span()
                elif last.in_code is None:
                    last.in_code, last.code = edge.span(), code
            elif (nested := self._nested_opening_tag(edge.start())) is None:
                continue
            elif code is not None and code != last.code:
                shown[code] = shown.get(code, 0) + 1
            else:
                if last.in_code is not None:
                    # A closing tag and then an opening tag: that was the end, not code.
                    self._found[waiting.pop().end] = last.in_code
                if code is None and waiting:
                    waiting.append(_UnclosedTag(nested.end))
            if not waiting:
                break
        if waiting:
            at = len(self._text)
        for each in waiting:
            self._found[each.end] = each.in_code or each.of_example
        self._patience -= at - opening.end

    def _nested_opening_tag(self, start: int) -> OpeningTag | None:
        """The opening tag at a position in content, if it needs a closing tag."""
        opening = read_opening(self._text, start)
        return opening if opening and self._begins_content(opening) else None

    def _edges(self, start: int) -> Iterator[_Edge]:
        """The opening and closing tags from a position on, and which of them are in code.

        Content is anybody's text, indented as its writer likes: a closing behind eight spaces,
        or in a quotation, is one. So only fences, at any depth, and code spans count as code.
        """
        text, at = self._text, start
        fence = ""
        fence_start: int | None = None
        while token := _IN_CONTENT.search(text, at):
            at = token.end()
            if marks := token["fence"]:
                if not fence:
                    fence, fence_start = marks, token.start()
                elif marks.startswith(fence) and _REST_IS_BLANK.match(text, at):
                    fence, fence_start = "", None
            elif token.lastgroup in ("closed", "opened"):
                yield _Edge(token, fence_start)
            elif token[0] == "\\<" and (edge := _EDGES.match(text, at - 1)):
                # The backslash takes its meaning from it, unless it is the end of the content.
                yield _Edge(edge, token.start())
                at = edge.end()
            elif token["ticks"] and not fence:
                limit = self._paragraph_ends[bisect_left(self._paragraph_ends, at)]
                if span := self._backticks.closing(len(token["ticks"]), at, limit):
                    for match in _EDGES.finditer(text, at, span):
                        yield _Edge(match, token.start())
                    at = span
