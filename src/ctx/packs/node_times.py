"""The time that a question names, and the nodes that are about it.

A node is about a time if it was created then, and more so if its text says so: "yesterday" in a
node of 8 May. A question may also name a time by an event: for "before the migration", the node
that matches the event best gives the day.

Some times belong to what is asked: "what should be done by early June", "my goals for this year".
Such a question is answered by its words, and what fits the time only counts somewhat more.
"""

import re
from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, terms
from ctx.ids import NodeId
from ctx.memory.query import node_candidates
from ctx.memory.query.compile import Scope
from ctx.memory.query.node_candidates import NodeText
from ctx.memory.query.query_parser import And, Query
from ctx.memory.query.time_filters import TimeFilter
from ctx.packs import node_query
from ctx.packs.node_query import NodeQuery
from ctx.search import dates
from ctx.search.dates import DaySpan

_LONGEST_QUESTION = 2_000
"""In characters. A longer question contains pasted text, and its dates are those of a log."""
_LONGEST_TEXT = 2_000
_MOST_CANDIDATES = 200
_LATER = 8
"""In days. Events may be recorded this much later."""
_DAY_MS = 86_400_000
_CREATED_THEN = 0.8
"""The fit of a node that was created at the right time and names no time itself."""
_LEAST_FIT = 0.05
_LEAST_BEST_FIT = 0.35
"""The minimum fit of a node from the right time; nodes from soon after have less."""
_RARE = 5.0
"""The rarity of a word that counts as much as the time."""
_COMMON = 1.0
_EVENT = re.compile(
    r"\b(?:(?:right|just|shortly|soon|immediately)\s+)?(?P<side>before|after|since)\s+"
    r"(?P<event>(?:the|our|my|we|i|his|her|their)\s[^?.,;:!\n]{3,60})",
    re.IGNORECASE,
)
_DEADLINE = re.compile(
    r"\b(?:by|until|till|due)(?:\s+(?:the|end|middle|start|beginning|of|on))*\s*\Z",
    re.IGNORECASE,
)
_OWN_DEADLINE = re.compile(r"(?:by|until)\s", re.IGNORECASE)
_LONGEST_CURRENT = 2
"""In days. Nearly everything is from a longer time that is not over yet, such as this year."""
_MOST_EVENTS = 5
_LONGEST_EVENT = 10
"""In days."""


class DatedQuestion(NamedTuple):
    """A question, divided into words and times."""

    words: NodeQuery
    spans: tuple[DaySpan, ...] = ()
    words_count: float = 1.0
    """How much the words count beside the time, from 0 to 1. Common words, such as the name of a
    person who appears everywhere, count little."""
    asks_for_time: bool = False
    """Whether it asks for what happened then. Otherwise the time is part of its subject."""


def read(
    connections: Sequence[Connection], query: Query, scope: Scope, now_ms: int
) -> DatedQuestion:
    text = query.words
    if len(text) > _LONGEST_QUESTION:
        return DatedQuestion(node_query.parse(text, connections))
    today = clock.day_number(now_ms)
    if named := dates.spans(text, today):
        words = node_query.parse_telling(dates.without(text, named), connections)
        if words != node_query.NOTHING and all(_is_of_subject(text, it, today) for it in named):
            return DatedQuestion(node_query.parse(text, connections), tuple(named))
        return DatedQuestion(words, tuple(named), _words_count(words), asks_for_time=True)
    words = node_query.parse(text, connections)
    if event := _EVENT.search(text):
        start, end = event.span()
        rest = node_query.parse_telling(f"{text[:start]} {text[end:]}", connections)
        # Rare words describe the answer better than its time.
        is_about_time = _rarest(rest) <= _COMMON
        span = _event_span(connections, query, scope, now_ms, event) if is_about_time else None
        if span is not None:
            # Work after an event may be part of it; work before it is not.
            is_before = event["side"].lower() == "before"
            words = rest if is_before else words
            return DatedQuestion(words, (span,), _words_count(rest), asks_for_time=True)
    return DatedQuestion(words)


def _is_of_subject(text: str, span: DaySpan, today: int) -> bool:
    """Whether a time is a deadline, or one that is not over yet."""
    start, end = span.place
    is_deadline = _DEADLINE.search(text[:start]) or _OWN_DEADLINE.match(text[start:end])
    is_current = span.first + _LONGEST_CURRENT <= today <= span.last and span.nearest is None
    is_ahead = span.first > today
    return bool(is_deadline) or is_ahead or (is_current and "this" in text[start:end].lower())


def _rarest(words: NodeQuery) -> float:
    return max((words.covering[term] / weight for term, weight in words.weights.items()), default=0)


def _words_count(words: NodeQuery) -> float:
    return min(1.0, _rarest(words) / _RARE)


def _event_span(
    connections: Sequence[Connection],
    query: Query,
    scope: Scope,
    now_ms: int,
    event: re.Match[str],
) -> DaySpan | None:
    """The time before or after an event, or None if no node has most of its words."""
    wanted = set(terms.query(event["event"])) - terms.STOP_WORDS
    node_ids = node_candidates.best_by_terms(
        connections, query, scope, now_ms, sorted(wanted), _MOST_EVENTS
    )
    texts = {text.id: text for text in node_candidates.texts(connections, node_ids)}
    for node_id in node_ids:
        if len(wanted.intersection(texts[node_id].terms.split())) > len(wanted) / 2:
            first, last = _days_of_node(connections, texts[node_id])
            if event["side"].lower() == "before":
                return dates.before_day(first, event.span())
            return dates.since_day(last, event.span())
    return None


def _days_of_node(connections: Sequence[Connection], text: NodeText) -> tuple[int, int]:
    """The days that a node is about: those that it names, or the day on which it was created."""
    day = _created_day(text)
    content = node_candidates.contents(connections, [text.id], _LONGEST_TEXT)[text.id]
    for span in dates.spans(content, day):
        if span.nearest is None and span.last <= day and span.last - span.first < _LONGEST_EVENT:
            return span.first, span.last
    return day, day


def _created_day(text: NodeText) -> int:
    return clock.day_number(clock.parse_iso(text.created_at) or 0)


def candidates(
    connections: Sequence[Connection],
    query: Query,
    scope: Scope,
    now_ms: int,
    question: DatedQuestion,
) -> list[NodeId]:
    """The nodes from the time of a question: the best by its words, and the newest."""
    node_ids: dict[NodeId, None] = {}
    for span in question.spans:
        first, last = (
            clock.iso(_DAY_MS * day)[:10] for day in (span.first - 1, span.last + _LATER)
        )
        within = (
            TimeFilter("created_at", ">=", None, first),
            TimeFilter("created_at", "<=", None, last),
        )
        tree = And(within) if query.tree is None else And((*within, query.tree))
        then = query._replace(tree=tree)
        best = node_candidates.best_by_terms(
            connections, then, scope, now_ms, question.words.rarest, _MOST_CANDIDATES
        )
        newest = node_candidates.newest(connections, then, scope, now_ms, _MOST_CANDIDATES)
        node_ids.update(dict.fromkeys((*best, *newest)))
    return list(node_ids)


def fits(
    connections: Sequence[Connection], texts: Mapping[NodeId, NodeText], named: Sequence[DaySpan]
) -> dict[NodeId, float]:
    """How well the nodes match the time of a question, from 0 to 1, without those that do not
    match.

    If no node is from that time, nodes from soon after are not an answer.
    """
    contents = node_candidates.contents(connections, texts.keys(), _LONGEST_TEXT)
    by_node: dict[NodeId, float] = {}
    for node_id, text in texts.items():
        day = _created_day(text)
        fit = _CREATED_THEN * max(span.fit(day, day) for span in named)
        for own in dates.spans(contents[node_id], day):
            met = (span for span in named if own.nearest is None and own.meets(span))
            fit = max([fit, *(span.fit(own.first, own.last) for span in met)])
        if fit >= _LEAST_FIT:
            by_node[node_id] = fit
    return by_node if max(by_node.values(), default=0.0) >= _LEAST_BEST_FIT else {}
