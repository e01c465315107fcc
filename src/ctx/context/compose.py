"""Entries in, one markdown text out, within a budget of tokens.

    <!-- ctx: 3 nodes, 120 tokens, 1 left out, rendered at 2026-01-20T10:00:00Z -->

    ## Pinned

    - [fact:01HQ1A2B3C4D] Deploys run on Fridays
      - Tags: tier:pinned

    ## Reference

    ### Decisions

    - [decision:01HQ1A2B3C4E] We use SQLite
      - Rationale: no servers to run
      - Depends on: [fact:01HQ1A2B3C4D]

    ## Working Context

    - [observation:01HQ1A2B3C4F] The parser is half done

    <!-- ctx:end -->

The text of a node is untrusted: it is shown unchanged, and cannot leave its list item. Its lines
are indented below the first one. If something in it would swallow or imitate what follows (an open
fence, HTML, a line like `- Tags:`), the text is put into a fence of its own. Nothing in it can open
a comment. If somebody else wrote it, the author is named:

    - [decision:01HQ1A2B3C4E] (by Ada Lovelace) We use SQLite

What the user said has no mark; for all other text the source is named. Text that ranks below what
agents say (`memory/sources.py`) is quoted:

    - [fact:01HQ1A2B3C4G] (agent) The cache is warmed at start
    - [source:01HQ1A2B3C4H] (web) "Redis 8 is out"

Hooks load this module: it has few imports.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from ctx import tokens
from ctx.errors import BudgetExceeded
from ctx.markdown import contained, flat, quoted, without_comments

END = "<!-- ctx:end -->"

TYPE_HEADINGS = {
    "fact": "Facts",
    "decision": "Decisions",
    "pattern": "Patterns",
    "observation": "Observations",
    "hypothesis": "Hypotheses",
    "open-question": "Open questions",
    "task": "Tasks",
    "summary": "Summaries",
    "source": "Sources",
    "file": "Files",
    "item": "Items",
    "package": "Packages",
    "diagnostic": "Diagnostics",
}
STATE = "state"
"""Used like a tier: what an agent was working on when its conversation was compacted."""

_SECTIONS = {
    STATE: "## Where you were",
    "tier:pinned": "## Pinned",
    "tier:reference": "## Reference",
    "tier:working": "## Working Context",
}
_OTHER = "## Other"
_SECTION_PLACES = {tier: place for place, tier in enumerate(_SECTIONS)}
_TYPE_PLACES = {node_type: place for place, node_type in enumerate(TYPE_HEADINGS)}
_BY_TYPE = "tier:reference"
_SHORTEST = 20
"""Characters of an entry that must appear, if there is hardly room."""
# After so many entries in a row that do not fit, the rest is not read.
_MOST_MISSES = 50
_MOST_NAMED = 8
# No text has more characters than this for each token of its estimate.
_CHARACTERS_PER_TOKEN = 4
_SMALLEST_ITEM = tokens.estimate("- [fact:01HQ1A2B3C4D] x\n")


class ContextEntry(NamedTuple):
    """A node as input of a context."""

    label: str
    """Its name in the text: `fact:01HQ1A2B3C4D`."""
    type: str
    tier: str | None
    content: str
    tags: Sequence[str] = ()
    rationale: str = ""
    depends_on: Sequence[str] = ()
    """The labels of the nodes it depends on."""
    superseded_by: str = ""
    kept: bool = False
    """Whether it is shortened rather than left out when there is no room.

    These entries come before all others.
    """
    author: str = ""
    """Who wrote it; empty if it was the reader."""
    source: str = ""
    """Who said it; empty if it was the user."""
    is_data: bool = False
    """Whether it ranks below what agents say, so that it is quoted."""


class OmittedNodes(NamedTuple):
    """How many nodes match but are not shown."""

    nodes: int
    or_more: bool = False
    """Whether there are more that were not counted."""


_MOST_LEFT_OUT = OmittedNodes(9_999_999, or_more=True)


class ComposedText(NamedTuple):
    text: str
    token_count: int
    shown: tuple[int, ...]
    """The numbers of the entries in the text, in the order of the text."""
    left_out: OmittedNodes


class ContextFrame(NamedTuple):
    """The text around the entries."""

    rendered_at: str = ""
    """Empty if the text must not depend on the time."""
    preface: str = ""
    """A paragraph for the reader."""


def compose(
    entries: Iterable[ContextEntry],
    left_out: Callable[[int], OmittedNodes],
    budget: int,
    frame: ContextFrame,
) -> ComposedText:
    """As many entries as fit, in their order.

    Only as many are read as may be shown. `left_out` gets the number of shown entries and returns
    how many are omitted. Inside a section, entries keep their order.
    """
    body = ContextBody()
    body.fill(entries, room(budget, frame))
    missing = left_out(len(body.items))
    text, token_count = frame_text(body.text(), len(body.items), missing, budget, frame)
    shown = tuple(each.number for each in body.items)
    return ComposedText(text, token_count, shown, missing)


def room(budget: int, frame: ContextFrame) -> int:
    """The part of a budget that is left inside a frame."""
    # The frame is estimated with the longest numbers that it may contain.
    return budget - tokens.estimate(_frame("", budget, _MOST_LEFT_OUT, budget, frame))


def frame_text(
    inside: str, shown: int, left_out: OmittedNodes, budget: int, frame: ContextFrame
) -> tuple[str, int]:
    """The whole text and its tokens; the text includes the count itself."""
    count = 0
    text = ""
    while not text or tokens.estimate(text) != count:
        # The count only grows, so this ends.
        count = tokens.estimate(text)
        text = _frame(inside, shown, left_out, count, frame)
    if count > budget:
        raise BudgetExceeded(
            f"A budget of {budget:,} tokens is too small: an empty context takes {count:,}.",
            hint=f"Give a budget of {count:,} tokens or more.",
        )
    return text, count


def item(entry: ContextEntry, *, with_tags: bool) -> str:
    """An entry as an item of a list, whole."""
    first, *more = quoted(entry.content) if entry.is_data else contained(entry.content)
    lines = [f"{_head(entry)} {first}" if first else _head(entry), *more]
    if with_tags and entry.tags:
        lines.append(_tags_line(entry))
    if entry.rationale:
        lines.append(f"  - Rationale: {flat(entry.rationale)}")
    if entry.depends_on:
        named = ", ".join(f"[{label}]" for label in entry.depends_on[:_MOST_NAMED])
        more_named = len(entry.depends_on) - _MOST_NAMED
        lines.append(f"  - Depends on: {named}" + (f" +{more_named:,}" if more_named > 0 else ""))
    if entry.superseded_by:
        lines.append(f"  - Superseded by: [{entry.superseded_by}]")
    return "\n".join(lines)


def short_item(entry: ContextEntry, *, with_tags: bool, characters: int = 100) -> str:
    """An entry as an item of a list, with the beginning of its content in one line."""
    # Only the part of a long content that may be shown is processed.
    text = flat(entry.content[: characters * 8])
    if len(text) > characters or len(entry.content) > characters * 8:
        text = f"{text[:characters].rstrip()}..."
    shown = f'{_head(entry)} "{text}"' if entry.is_data else f"{_head(entry)} {text}"
    return f"{shown}\n{_tags_line(entry)}" if with_tags and entry.tags else shown


def _head(entry: ContextEntry) -> str:
    by = f"by {without_comments(entry.author)}" if entry.author else ""
    marks = [mark for mark in (entry.source, by) if mark]
    return f"- [{entry.label}] ({', '.join(marks)})" if marks else f"- [{entry.label}]"


class BodyItem(NamedTuple):
    number: int
    """Its place among all entries that were read."""
    entry: ContextEntry
    text: str
    cost: int
    """The tokens of the text, without headings."""


class ContextBody:
    """Entries as sections of a text, without the frame."""

    def __init__(self) -> None:
        self.tokens = 0
        """With headings. A sum of estimates is never less than the estimate of the sum."""
        self.items: list[BodyItem] = []
        """In the order of the text."""
        self._headings: set[str] = set()
        self._numbers = count()

    def fill(self, entries: Iterable[ContextEntry], most: int) -> None:
        """As many entries as fit into `most` tokens."""
        numbered = zip(entries, self._numbers, strict=False)
        following, left = self._take_required(numbered, most)
        misses = 0
        while following and misses < _MOST_MISSES and left >= _SMALLEST_ITEM:
            entry, number = following
            too_long = len(entry.content) > left * _CHARACTERS_PER_TOKEN
            cost = 0 if too_long else self._take(number, entry, _full_text(entry), left)
            left -= cost
            misses = 0 if cost else misses + 1
            following = next(numbered, None)
        self.items.sort(key=lambda each: (_place(each.entry.tier, each.entry.type), each.number))

    def _take_required(
        self, numbered: Iterator[tuple[ContextEntry, int]], left: int
    ) -> tuple[tuple[ContextEntry, int] | None, int]:
        """Take the entries that must appear. Returns the next one, and the tokens that are left.

        Entries share the tokens evenly: the long ones also get what the short ones do not need.
        """
        kept: list[tuple[int, int, ContextEntry]] = []
        following = None
        least = left
        for entry, number in numbered:
            if not entry.kept:
                following = entry, number
                break
            least -= _cost(_shortened(entry, 0))
            if least < 0:
                break
            too_long = len(entry.content) > left * _CHARACTERS_PER_TOKEN
            kept.append((left + 1 if too_long else _cost(_full_text(entry)), number, entry))
        headings = {each for *_, entry in kept for each in self._new_headings(entry)}
        spare = left - sum(map(_heading_cost, headings))
        for waiting, (cost, number, entry) in zip(
            range(len(kept), 0, -1), sorted(kept), strict=True
        ):
            share = spare // waiting
            text = _full_text(entry) if cost <= share else _shortened(entry, share)
            spare -= _cost(text)
            left -= self._take(number, entry, text, left)
        return following, left

    def _take(self, number: int, entry: ContextEntry, text: str, most: int) -> int:
        """What the entry takes with its headings; 0 if that is too much."""
        headings = self._new_headings(entry)
        cost = _cost(text)
        whole = cost + sum(map(_heading_cost, headings))
        if whole > most:
            return 0
        self.tokens += whole
        self.items.append(BodyItem(number, entry, text, cost))
        self._headings.update(headings)
        return whole

    def _new_headings(self, entry: ContextEntry) -> list[str]:
        return [each for each in _headings(entry) if each not in self._headings]

    def text(self) -> str:
        parts: list[str] = []
        above: tuple[str, ...] = ()
        for _, entry, text, _ in self.items:
            headings = _headings(entry)
            if headings != above:
                parts += ["\n"] if above else []
                parts += [f"{heading}\n\n" for heading in headings if heading not in above]
                above = headings
            parts.append(f"{text}\n")
        return "".join(parts) + ("\n" if parts else "")


def _frame(body: str, shown: int, left_out: OmittedNodes, count: int, frame: ContextFrame) -> str:
    nodes = "1 node" if shown == 1 else f"{shown:,} nodes"
    more = "+" if left_out.or_more else ""
    missing = f", {left_out.nodes:,}{more} left out" if left_out.nodes else ""
    when = f", rendered at {frame.rendered_at}" if frame.rendered_at else ""
    preface = f"{frame.preface}\n\n" if frame.preface else ""
    return f"<!-- ctx: {nodes}, {count:,} tokens{missing}{when} -->\n\n{preface}{body}{END}\n"


def _cost(text: str) -> int:
    return tokens.estimate(f"{text}\n")


def _heading_cost(heading: str) -> int:
    # With an empty line before and after it, and one after its list.
    return tokens.estimate(f"{heading}\n\n\n")


def _headings(entry: ContextEntry) -> tuple[str, ...]:
    section = _SECTIONS.get(entry.tier or "", _OTHER)
    if entry.tier != _BY_TYPE:
        return (section,)
    return section, f"### {TYPE_HEADINGS.get(entry.type, entry.type.capitalize())}"


def _place(tier: str | None, node_type: str) -> tuple[int, int, str]:
    section = _SECTION_PLACES.get(tier or "", len(_SECTION_PLACES))
    if tier != _BY_TYPE:
        return section, 0, ""
    return section, _TYPE_PLACES.get(node_type, len(_TYPE_PLACES)), node_type


def _full_text(entry: ContextEntry) -> str:
    return item(entry, with_tags=entry.tier == "tier:pinned")


def _shortened(entry: ContextEntry, most: int) -> str:
    """The beginning of an entry, within `most` tokens or as short as possible."""
    # As if all of it were ASCII.
    characters = (most - _cost(f'{_head(entry)} "..."')) * 7 // 2
    while True:
        text = short_item(entry, with_tags=False, characters=max(_SHORTEST, characters))
        if characters <= _SHORTEST or _cost(text) <= most:
            return text
        characters = characters * 7 // 8


def _tags_line(entry: ContextEntry) -> str:
    return f"  - Tags: {without_comments(', '.join(entry.tags))}"
