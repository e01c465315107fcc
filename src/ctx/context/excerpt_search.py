"""Finds what past sessions said about a prompt.

What shares words with the prompt is rated by `chooser` and given in the order of chance per token.
What says nearly the same, or what the session was given before, is left out.

    ## From earlier sessions

    The user, yesterday:
    - Never commit yourself: I review every change first.
    The agent, 3 days ago:
    - The lock was taken twice because `refresh` calls itself.

Hooks load this module with the first prompt of a session.
"""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock, terms, tokens
from ctx.context import chooser, hook_queries, layer_rows
from ctx.context.chooser import Passage
from ctx.context.contexts import NOTHING, SAID, Context, ContextItem
from ctx.context.layer_lines import cut, digest
from ctx.ids import NodeId
from ctx.markdown import flat
from ctx.memory import model, sources

HEADING = "## From earlier sessions"

_MOST_TERMS = 64
"""Of a long prompt, so many of its rarest terms are searched for."""
_MOST_COUNTED = 384
_COUNTED_TO = 500
_MOST_ROWS = 200
_MOST_STATED = 3
_LONGEST_NODE = 400
_LONGEST_PROMPT = 6_000
_FEWEST_SHARED = 2
_FEWEST_SAME = 4
"""A name of a file that two texts contain does not make them the same."""
_RARE, _FEWEST_RARE, _SHORTEST_RARE = 50, 3, 3
"""A word in at most one of 50 excerpts is rare."""
_MOST_STRICT, _STRICT_BUDGET = 2, 260
_FEWEST_OF_SUBJECT, _MOST_SPOKEN = 4, 1 / 3
_MOST_SAID, _LONGEST_SAID = 400, 20_000
"""So many of the last steps of a session are read, if they are not longer."""


class Hit(NamedTuple):
    """A passage that was found, or a node that somebody wrote."""

    session: str
    at: str
    kind: str
    source: str
    text: str
    step: str = ""
    node: str = ""
    """The id of the node, if it is one."""
    label: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its key in a receipt: `receipts.key_of`, which a hook need not load."""
        return self.node or f"{label_of(self)} {self.at}"


class Found(NamedTuple):
    """What may be given with a prompt, before anything is left out."""

    passages: list[Passage]
    ages: dict[str, int]
    asked: frozenset[str]
    named: frozenset[str]
    query: str


def find(
    connection: Connection, project: str | None, prompt: str, session: str = ""
) -> Found | None:
    """The passages that share words with a prompt; None if it has no subject."""
    wanted = _rarest(connection, _subject(prompt))
    if not wanted:
        return None
    query = " OR ".join(f'"{term}"' for term in wanted)
    rows = hook_queries.matching_excerpts(connection, query, project, session, _MOST_ROWS)
    sessions = hook_queries.sessions_with_excerpts(connection, project)
    asked = frozenset(wanted)
    named = asked & terms.significant(" ".join(layer_rows.names(prompt)))
    ages = {each: age for age, each in enumerate(sessions)}
    return Found([Passage(*row) for row in rows], ages, asked, named, query)


class Choice(NamedTuple):
    hits: list[Hit]
    """What is given."""
    next: list[Hit]
    """What there was no room for, the best first."""


def choose(
    connections: Sequence[Connection],
    project: str | None,
    prompt: str,
    budget: int,
    *,
    session: str = "",
    given: Collection[str] = (),
    given_text: str = "",
    order: Callable[[Sequence[Hit]], Sequence[Hit]] | None = None,
) -> Choice:
    """What memory has about a prompt that fits into a budget of tokens, the best first.

    Nodes that somebody wrote come before passages. What `session` itself said is left out, and what
    it was given before: `given` are keys of receipts and digests of texts, `given_text` is the
    text if it is known. `order` orders the hits anew. The last store is the user's, which has the
    passages.
    """
    found = find(connections[-1], project, prompt, session)
    if found is None:
        return Choice([], [])
    stated = _hits_of_nodes(
        connections,
        hook_queries.matching_statements(
            *(connections, found.query, project, _MOST_STATED),
            json.dumps([f"session:{each}" for each in found.ages]),
        ),
    )
    in_prompt = terms.significant(prompt[:_LONGEST_PROMPT])
    outdated = layer_rows.Withdrawn(connections, project, prompt=prompt)
    news = (
        (hit, own)
        for hit, own in (*stated, *_passage_hits(found))
        if _is_about(hit, own, found.asked, found.named)
        and not (hit.kind == "prompt" and layer_rows.is_mostly_in(own, in_prompt, _FEWEST_SAME))
        and hit.key not in given
        and digest(flat(hit.text)) not in given
        and not outdated.has(hit.session, hit.step, hit.text, own & found.asked, hit.node)
    )
    if order:
        words = dict(news)
        news = ((hit, words[hit]) for hit in order([*words]))
    # Other lines are headings, names of files and the frame of a context.
    known = [terms.significant(line) for line in given_text.splitlines() if line.startswith("- ")]
    return _hits_in_budget(news, budget, known)


def search_strictly(
    connection: Connection,
    project: str | None,
    prompt: str,
    session: str,
    given: Collection[str],
) -> list[Hit]:
    """The few passages that share several rare words with a later prompt of a session.

    At least one of three rare words is from a name, or there are four.
    """
    counts = {
        term: hook_queries.excerpts_with(connection, term, _COUNTED_TO)
        for term in _subject(prompt)[:_MOST_COUNTED]
        if len(term) >= _SHORTEST_RARE
    }
    most = max(3, hook_queries.count_excerpts(connection, project) // _RARE)
    rare = frozenset(term for term, count in counts.items() if 0 < count <= most)
    found = find(connection, project, prompt, session) if len(rare) >= _FEWEST_RARE else None
    if found is None:
        return []
    in_prompt = terms.significant(prompt[:_LONGEST_PROMPT])
    outdated = layer_rows.Withdrawn([connection], project, prompt=prompt)
    hits = (
        (hit, own)
        for hit, own in _passage_hits(found)
        if len(own & rare) >= _FEWEST_RARE + (not own & rare & found.named)
        and not layer_rows.is_mostly_in(own, in_prompt, _FEWEST_SAME)
        and hit.key not in given
        and not outdated.has(hit.session, hit.step, hit.text, own & in_prompt)
    )
    return _hits_in_budget(hits, _STRICT_BUDGET, []).hits[:_MOST_STRICT]


def changes_subject(connection: Connection, session: str, prompt: str) -> bool:
    """Whether a session has hardly spoken of what a later prompt is about."""
    subject = frozenset(_subject(prompt))
    if len(subject) < _FEWEST_OF_SUBJECT:
        return False
    steps = map(json.loads, hook_queries.last_steps(connection, session, _MOST_SAID, _LONGEST_SAID))
    said = [each.get("text", "").lower() for each in steps if each.get("kind") in ("prompt", "say")]
    # The prompt itself may have been captured by now.
    if said and all(term in said[-1] for term in subject):
        said.pop()
    # A term is the stem of a word, so it is found in the text. This takes a millisecond.
    spoken = sum(any(term in text for text in said) for term in subject)
    return bool(said) and spoken <= _MOST_SPOKEN * len(subject)


def _passage_hits(found: Found) -> list[tuple[Hit, frozenset[str]]]:
    """The passages that are likely enough to be needed, the best for their tokens first.

    A later session needs the answer to a question of the user, not the question.
    """
    rated = chooser.rate(found.passages, found.ages, found.asked, found.named)
    rated = [each for each in rated if each.chance >= chooser.LEAST_CHANCE]
    rated.sort(key=lambda each: -each.worth(tokens.estimate(each.passage.text)))
    return [
        (Hit(it.session, it.at, it.kind, it.source, it.text, it.step, reasons=each.reasons), own)
        for each in rated
        for it, own in ((each.passage, each.words - terms.STOP_WORDS),)
        if not (it.source == "user" and chooser.is_question(it.text))
    ]


def _hits_of_nodes(
    connections: Sequence[Connection], rows: Sequence[Sequence[Any]]
) -> list[tuple[Hit, frozenset[str]]]:
    captured = hook_queries.captured_imports(connections[-1], [row[0] for row in rows])
    rows = [row for row in rows if row[0] not in captured]
    about = {row[0]: (row[1], row[2], model.from_json(row[3])) for row in rows}
    said_by = sources.of_nodes(connections, about)
    hits = [
        Hit(
            *("", row[5], row[1], said_by[row[0]], cut(flat(row[2]), _LONGEST_NODE)),
            *("", row[0], layer_rows.label(row)),
        )
        for row in rows
    ]
    return [(hit, terms.significant(hit.text)) for hit in hits]


def _hits_in_budget(
    hits: Iterable[tuple[Hit, frozenset[str]]], budget: int, known: list[frozenset[str]]
) -> Choice:
    """As many as fit, in order, without what is said twice.

    `known` are the words of what was said before; those of the hits are added.
    """
    choice = Choice([], [])
    headings: set[str] = set()
    for hit, own in hits:
        if any(layer_rows.is_mostly_in(own, other, _FEWEST_SAME) for other in known):
            continue
        heading = _heading_of(hit)
        cost = tokens.estimate(line_of(hit))
        cost += tokens.estimate(heading) if heading not in headings else 0
        if cost > budget:
            choice.next.append(hit)
            continue
        known.append(own)
        headings.add(heading)
        budget -= cost
        choice.hits.append(hit)
    return choice


def context_from_hits(hits: Sequence[Hit]) -> Context:
    """The text that an agent is given, and its receipt."""
    if not hits:
        return NOTHING
    by_heading: dict[str, list[str]] = {}
    for hit in sorted(hits, key=lambda hit: (bool(hit.node), hit.at[:10]), reverse=True):
        by_heading.setdefault(_heading_of(hit), []).append(line_of(hit))
    groups = (f"{heading}{''.join(lines)}" for heading, lines in by_heading.items())
    text = f"{HEADING}\n\n{''.join(groups)}"
    items = tuple(
        ContextItem(
            NodeId(hit.node),  # type: ignore[arg-type]
            *(label_of(hit), hit.at, tokens.estimate(line_of(hit)), digest(hit.text), SAID),
        )
        for hit in hits
    )
    return Context(text, tokens.estimate(text), items)


def label_of(hit: Hit) -> str:
    return hit.label or f"said:{hit.session[:8]}"


def line_of(hit: Hit) -> str:
    if hit.node:
        return f"- [{hit.label}, {hit.source}] {hit.text}\n"
    return f"- {flat(hit.text)}\n"


def _heading_of(hit: Hit) -> str:
    """Who said it, and when; a node has that in its line."""
    if hit.node:
        return ""
    at_ms = clock.parse_iso(hit.at) or 0
    age = clock.days_ago(clock.day_number(clock.now_ms()) - clock.day_number(at_ms))
    return f"The {hit.source}, {age}:\n"


def _subject(prompt: str) -> list[str]:
    """The terms of what a prompt is about; none for `thanks` or `go on`."""
    return [*filter(terms.can_be_subject, terms.query(prompt[:_LONGEST_PROMPT]))]


def _is_about(hit: Hit, own: frozenset[str], asked: frozenset[str], named: frozenset[str]) -> bool:
    """Whether a text shares two words with a prompt, or one that is from a name in the prompt.

    If the prompt has a single one, it has to be from a name in a passage, or in a node.
    """
    if len(asked) > 1:
        return len(own & asked) >= _FEWEST_SHARED or bool(own & named)
    return asked <= (own if hit.node else terms.significant(" ".join(layer_rows.names(hit.text))))


def _rarest(connection: Connection, wanted: Sequence[str]) -> list[str]:
    if len(wanted) <= _MOST_TERMS:
        return list(wanted)
    counts = {
        term: hook_queries.excerpts_with(connection, term, _COUNTED_TO)
        for term in wanted[:_MOST_COUNTED]
    }
    known = [term for term in counts if counts[term]]
    return sorted(known, key=lambda term: counts[term])[:_MOST_TERMS]
