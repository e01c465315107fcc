"""Parses the `<ctx:…>` commands in an agent's reply.

    <ctx:remember type="fact" tags="tier:reference">content</ctx:remember>      a Command
    <ctx:rember type="fact">content</ctx:rember>                                a CommandProblem
    `<ctx:status/>`, the <ctx: prefix, <ctx:…>                                  nothing

Agents sometimes write markup incorrectly, so everything with one clear meaning is accepted: both
kinds of quotes, a word without quotes, `/>` or a closing tag. Everything else is reported back with
the correct form and does not affect the other commands.
"""

import difflib
import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from ctx.agent_commands.markup import (
    MARK,
    Backticks,
    ClosingTags,
    OpeningTag,
    Span,
    is_last_in_line,
    read_opening,
)
from ctx.errors import UsageError
from ctx.memory import model

LONGEST_WRITTEN = 120
_UNESCAPED_MARK = re.compile(rf"(?<!\\)(?>(?:\\\\)*){MARK}")
_LONGEST_TEXT = 1_000_000
"""A longer text has no commands: reading it would take too long."""
_MOST_READINGS = 6
_WORD = "\ue000"
"""Masks commands: neither a letter nor a mark that means anything in Markdown."""

_LONGEST_WORD = 80
_CLOSERS = "[)\\]*_\"'”’»]*+"
_SENTENCE_END = re.compile(
    rf"[.!?]{_CLOSERS}\s[\s\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]*+\Z|[。！？]{_CLOSERS}\s*+\Z"
)
_NO_SENTENCE_END = re.compile(
    r"(?:\.\.|(?<!\w)(?:\w|\d+|(?:\w\.)+\w|eg|ie|cf|vs|viz|ex|etc|incl|esp|approx|resp|bzw|vgl)\.)\Z",
    re.IGNORECASE,
)
"""Abbreviations, numbers and ellipses."""


class Command(NamedTuple):
    name: str
    attributes: Mapping[str, str]
    """The checked attributes; lists have commas and no spaces. A `tier` is part of the `tags`, and
    a `link` always has a `type`."""
    content: str
    """The content as written, stripped. Empty for commands without content."""
    position: int
    """Its index among all commands and problems of the message, from 0. It identifies a command,
    also when the message is read again."""


class CommandProblem(NamedTuple):
    """Text that was meant as a command but is invalid."""

    written: str
    """Its beginning, in one line."""
    problem: str
    right: str
    """The correct form of such a command."""
    position: int


def parse(text: str) -> list[Command | CommandProblem]:
    """All commands and problems of a message, in order."""
    return [
        _read(text, each.opening, each.closing, position)
        for position, each in enumerate(_meant_elements(text))
    ]


def spans(text: str) -> list[Span]:
    """The spans of all commands and problems of a message, with their content."""
    return [(each.opening.start, each.end) for each in _meant_elements(text)]


class _Element(NamedTuple):
    opening: OpeningTag
    closing: Span | None
    masked_end: int

    @property
    def start(self) -> int:
        return self.opening.start

    @property
    def end(self) -> int:
        return self.closing[1] if self.closing else self.opening.end


def _meant_elements(text: str) -> list[_Element]:
    """The elements that are commands: at the start of a line, after a sentence or after another
    command, and not quoted. Elements inside another element are not commands.

    The text is read with each element masked as a word. Where one turns out to be no command, that
    was wrong, and the text is read again with this element unmasked: it may hide a quotation mark.
    It quotes its content.
    """
    if MARK not in text or len(text) > _LONGEST_TEXT:
        return []
    closings = ClosingTags(text, Backticks(text), _begins_content)
    shown: dict[int, Span] = {}
    for _ in range(_MOST_READINGS):
        elements = list(_elements(text, closings, shown))
        meant = _commands_among(elements, text, [*shown.values()]) if elements else []
        if len(meant) == len(elements):
            return meant
        starts = {each.start for each in meant}
        shown |= {e.start: (e.start, e.end) for e in elements if e.start not in starts}
    return []


def _elements(text: str, closings: ClosingTags, shown: Container[int]) -> Iterator[_Element]:
    """The elements of a text that are neither inside another one nor known as shown."""
    at = 0
    while mark := _UNESCAPED_MARK.search(text, at):
        at = mark.end()
        start = at - len(MARK)
        opening = None if start in shown else read_opening(text, start)
        if opening is None or not _is_meant(text, opening):
            continue
        closing = closings.closing_of(opening) if _may_have_content(opening) else None
        at = closing[1] if closing else opening.end
        if opening.problem:
            # Its end is unknown. Its quotes must not quote the text below.
            line_end = text.find("\n", at)
            at = line_end if line_end >= 0 else len(text)
        yield _Element(opening, closing, at)


def _commands_among(elements: list[_Element], text: str, shown: list[Span]) -> list[_Element]:
    """The elements that are placed as a command and not quoted."""
    # Loads a Markdown parser, which most processes do not need.
    from ctx.agent_commands.quotations import Quotations

    quotations = Quotations(_masked(text, elements))
    quoted = quotations.places(shown)
    paragraphs = quotations.paragraphs
    found: list[_Element] = []
    last: _Element | None = None
    for each in elements:
        index = bisect_right(paragraphs, each.start, key=lambda paragraph: paragraph.start) - 1
        if index < 0 or each.start >= paragraphs[index].end:
            continue
        paragraph = paragraphs[index]
        if (
            each.start in paragraph.line_starts
            or _ends_sentence(text, paragraph.start, each.start)
            or (last is not None and not text[last.end : each.start].strip(" \t"))
        ):
            last = each
            if not quoted.has(each.start):
                found.append(each)
    return found


def _masked(text: str, elements: list[_Element]) -> str:
    """A text with a word of the same length in place of each element."""
    parts: list[str] = []
    at = 0
    for each in elements:
        parts += [text[at : each.start], _WORD * (each.masked_end - each.start)]
        at = each.masked_end
    return "".join([*parts, text[at:]])


def _ends_sentence(text: str, start: int, end: int) -> bool:
    """Whether a sentence has just ended."""
    before = text[max(start, end - _LONGEST_WORD) : end]
    found = _SENTENCE_END.search(before)
    return found is not None and not _NO_SENTENCE_END.search(before[: found.start() + 1])


Reader = Callable[[str], str]
"""Parses an attribute value; raises `UsageError` if it is invalid."""


def _ids(value: str) -> str:
    """Ids, also in the form that contexts show: `[fact:01HQ1A2B3C4D]`."""
    words = (word.strip("[]`").rpartition(":")[2] for word in re.split(r"[,\s]+", value))
    found = ",".join(filter(None, words))
    if not found:
        raise UsageError(f"`{value[:80]}` is not a node.")
    return found


def _tags(value: str) -> str:
    return ",".join(model.tags(filter(None, re.split(r"[,\s]+", value))))


def _one_of(*known: str) -> Reader:
    def read(value: str) -> str:
        if value.lower() not in known:
            raise UsageError(f"`{value[:80]}` is neither `{'` nor `'.join(known)}`.")
        return value.lower()

    return read


_yes_or_no = _one_of("true", "false")


class _Form(NamedTuple):
    right: str
    needed: Mapping[str, Reader] = {}
    optional: Mapping[str, Reader] = {}
    has_content: bool = False


_FORMS = {
    "remember": _Form(
        '<ctx:remember type="fact" tags="tier:reference">What to remember.</ctx:remember>',
        {"type": model.node_type},
        {
            "tags": _tags,
            "tier": str,
            "scope": _one_of("user", "project"),
            "summary": str,
            "rationale": str,
            "supersedes": _ids,
        },
        has_content=True,
    ),
    "recall": _Form('<ctx:recall query="how do we deploy"/>', {"query": str}),
    "summarize": _Form(
        '<ctx:summarize nodes="ID,ID" archive="true">What they say.</ctx:summarize>',
        {"nodes": _ids},
        {"archive": _yes_or_no, "tags": _tags},
        has_content=True,
    ),
    "link": _Form(
        '<ctx:link from="ID" to="ID" type="DEPENDS_ON"/>',
        {"from": _ids, "to": _ids},
        {"type": model.edge_type},
    ),
    "status": _Form("<ctx:status/>"),
    "task": _Form(
        '<ctx:task name="Implement OAuth" action="start"/>',
        {"name": str, "action": _one_of("start", "end")},
        {"summarize": _yes_or_no},
    ),
    "expand": _Form('<ctx:expand node="ID"/>', {"node": _ids}),
    "supersede": _Form('<ctx:supersede old="ID" new="ID"/>', {"old": _ids, "new": _ids}),
}


def _is_meant(text: str, opening: OpeningTag) -> bool:
    """An incomplete tag is a mistake if it has values or is alone in its line, else it is prose."""
    return not opening.problem or (
        opening.name in _FORMS
        and (
            any(value is not None for _, value in opening.attributes)
            or is_last_in_line(text, opening)
        )
    )


def _may_have_content(opening: OpeningTag) -> bool:
    if opening.problem or opening.is_all:
        return False
    return opening.name not in _FORMS or _FORMS[opening.name].has_content


def _begins_content(opening: OpeningTag) -> bool:
    """Whether the opening tag is valid, so that a closing tag must follow."""
    if opening.problem or opening.is_all:
        return False
    try:
        _parse_attributes(opening)
    except UsageError:
        return False
    return True


def _read(
    text: str, opening: OpeningTag, closing: Span | None, position: int
) -> Command | CommandProblem:
    """Parse an opening tag and its closing tag.

    Commands inside the content are content: examples, or a mistake that must do no harm.
    """
    name = opening.name
    try:
        attributes = _parse_attributes(opening)
        content = text[opening.end : closing[0]].strip() if closing else ""
        if _FORMS[name].has_content and not content:
            if closing or opening.is_all:
                raise UsageError(f"`{name}` has no content.")
            raise UsageError(f"`{name}` is not closed by `</ctx:{name}>`.")
        return Command(name, attributes, content, position)
    except UsageError as error:
        problem = _in_one_line(f"{error.message} {error.hint or ''}")
        meant = name if name in _FORMS else _nearest(name, tuple(_FORMS)) or "remember"
        return CommandProblem(
            _first_line_of_command(text, opening, closing), problem, _FORMS[meant].right, position
        )


def _parse_attributes(opening: OpeningTag) -> dict[str, str]:
    """The parsed and checked attributes."""
    name = opening.name
    if opening.problem:
        raise UsageError(opening.problem)
    if name not in _FORMS:
        raise UsageError(f"There is no command `{name[:80]}`{_suggest_words(name, tuple(_FORMS))}")
    form = _FORMS[name]
    readers = {**form.needed, **form.optional}
    given = _checked_attributes(opening, readers)
    for needed in form.needed:
        if not given.get(needed):
            raise UsageError(f"`{name}` needs a value for `{needed}`.")
    if tier := given.pop("tier", "").lower():
        tags = [given.get("tags", ""), f"tier:{tier.removeprefix('tier:')}"]
        given["tags"] = ",".join(tags)
    found = {each: readers[each](value) for each, value in given.items() if value}
    if name == "link":
        found.setdefault("type", "RELATES_TO")
    return found


def _checked_attributes(opening: OpeningTag, readers: Mapping[str, Reader]) -> dict[str, str]:
    """The attributes as written, without duplicates."""
    found: dict[str, str] = {}
    for name, value in opening.attributes:
        if name not in readers:
            instead = _suggest_words(name, tuple(readers)) if readers else "; it has none."
            raise UsageError(f"`{opening.name}` has no attribute `{name[:80]}`{instead}")
        if name in found:
            raise UsageError(f"`{name}` is given twice.")
        if value is None and readers[name] is not _yes_or_no:
            raise UsageError(f"`{name}` has no value.")
        # As in HTML, a boolean attribute is true if it is present.
        found[name] = "true" if value is None else value.strip()
    return found


def _first_line_of_command(text: str, opening: OpeningTag, closing: Span | None) -> str:
    written = text[opening.start : opening.start + 4 * LONGEST_WRITTEN]
    if opening.problem:
        # Its end is unknown, so its line is shown.
        written = written.partition("\n")[0]
    else:
        written = written[: (closing[1] if closing else opening.end) - opening.start]
    line = _in_one_line(written)
    return line if len(line) <= LONGEST_WRITTEN else f"{line[: LONGEST_WRITTEN - 1]}…"


def _suggest_words(word: str, known: tuple[str, ...]) -> str:
    """The end of a sentence about an unknown word: a suggestion or the known words."""
    near = _nearest(word, known)
    return f"; did you mean `{near}`?" if near else f"; there are `{'`, `'.join(known)}`."


@lru_cache(maxsize=64)
def _nearest(word: str, known: tuple[str, ...]) -> str | None:
    return next(iter(difflib.get_close_matches(word, known, n=1)), None)


def right_form(name: str) -> str:
    """The correct form of a command."""
    return _FORMS[name].right


def command_start(command: Command) -> str:
    """The beginning of a command in one line."""
    values = {name: text.replace('"', "&quot;") for name, text in command.attributes.items()}
    given = "".join(f' {name}="{value}"' for name, value in values.items())
    content = " ".join(command.content.split())
    text = f"<ctx:{command.name}{given}" + (f">{content}" if content else "/>")
    return text if len(text) <= LONGEST_WRITTEN else f"{text[: LONGEST_WRITTEN - 1]}…"


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
