"""Finds what past sessions said about a prompt.

Excerpts are ranked by the words that they share with the prompt (BM25), weighted by who said them,
by how recent their session is, and by the names in them that several sessions use. Excerpts that
say nearly the same, or what the session was given before, are left out.

    ## From earlier sessions

    - [user, yesterday] Never commit yourself: I review every change first.
    - [agent, 3 days ago] The lock was taken twice because `refresh` calls itself.

Hooks load this module with the first prompt of a session.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from math import log
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock, terms, tokens
from ctx.context import hook_queries, layer_rows
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
_MOST_ROWS = 300
_MOST_STATED = 3
_SMALLEST = 12
"""No line has fewer tokens."""
_LONGEST_NODE = 400
_LONGEST_PROMPT = 6_000
_FEWEST_SHARED = 2
_FEWEST_SAME = 4
"""A name of a file that two texts contain does not make them the same."""
_NEWEST, _HALF_LIFE = 1.0, 5.0
"""The newest session counts twice; the bonus halves every five sessions."""
_NAME, _MOST_NAMES = 0.4, 2.0
_RARE, _FEWEST_RARE, _SHORTEST_RARE = 50, 3, 3
"""A word in at most one of 50 excerpts is rare."""
_MOST_STRICT, _STRICT_BUDGET = 2, 260
_KINDS = {
    "correction": 1.5,
    "prompt": 0.7,
    "answer": 1.5,
    "final": 1.5,
    "report": 1.5,
    "commit": 1.0,
    "recap": 1.0,
    "plan": 0.7,
    "remark": 1.0,
    "pasted": 0.2,
}


class Hit(NamedTuple):
    """An excerpt that was found, or a node that somebody wrote."""

    id: int
    session: str
    at: str
    kind: str
    source: str
    worth: int
    text: str
    score: float
    step: str = ""
    node: str = ""
    """The id of the node, if it is one."""
    label: str = ""


def search(
    connections: Sequence[Connection],
    project: str | None,
    prompt: str,
    budget: int,
    *,
    session: str = "",
    given: Collection[str] = (),
    given_text: str = "",
) -> list[Hit]:
    """What memory has about a prompt that fits into a budget of tokens, the best first.

    Nodes that somebody wrote come before excerpts. What `session` itself said is left out, and what
    it was given before: `given` are ids of nodes and digests of texts, `given_text` is the text if
    it is known. The last store is the user's, which has the excerpts.
    """
    connection = connections[-1]
    wanted = _rarest(connection, _subject(prompt))
    if not wanted:
        return []
    query = " OR ".join(f'"{term}"' for term in wanted)
    rows = hook_queries.matching_excerpts(connection, query, project, session, _MOST_ROWS)
    sessions = hook_queries.sessions_with_excerpts(connection, project)
    ages = {each: age for age, each in enumerate(sessions)}
    hits = _rank_hits([Hit(*row) for row in rows], ages)
    stated = _hits_of_nodes(
        connections,
        hook_queries.matching_statements(
            *(connections, query, project, _MOST_STATED),
            json.dumps([f"session:{each}" for each in sessions]),
        ),
    )
    # Excerpts have no id.
    asked, before = frozenset(wanted), frozenset(given) - {""}
    in_prompt = terms.significant(prompt[:_LONGEST_PROMPT])
    outdated = layer_rows.Withdrawn(connections, project, prompt=prompt)
    every = [(hit, terms.significant(hit.text)) for hit in (*stated, *hits)]
    named = asked & terms.significant(" ".join(layer_rows.names(prompt)))
    every.sort(key=lambda each: len(each[1] & asked) < _FEWEST_SHARED)
    news = (
        (hit, own)
        for hit, own in every
        if _is_about(hit, own, asked, named)
        and not _is_question(hit)
        and not (hit.kind == "prompt" and layer_rows.is_mostly_in(own, in_prompt, _FEWEST_SAME))
        and hit.node not in before
        and digest(flat(hit.text)) not in before
        and not outdated.has(hit.session, hit.step, hit.text, own & asked, hit.node)
    )
    # Other lines are headings, names of files and the frame of a context.
    known = [terms.significant(line) for line in given_text.splitlines() if line.startswith("- ")]
    return _hits_in_budget(news, budget, known)


def search_strictly(
    connection: Connection,
    project: str | None,
    prompt: str,
    session: str,
    is_known: Callable[[Hit], bool],
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
    if len(rare) < _FEWEST_RARE:
        return []
    named = terms.significant(" ".join(layer_rows.names(prompt)))
    query = " OR ".join(f'"{term}"' for term in sorted(rare, key=counts.__getitem__)[:_MOST_TERMS])
    rows = hook_queries.matching_excerpts(connection, query, project, session, _MOST_ROWS)
    in_prompt = terms.significant(prompt[:_LONGEST_PROMPT])
    outdated = layer_rows.Withdrawn([connection], project, prompt=prompt)
    hits = [
        (hit, own)
        for hit, own in (
            (hit, terms.significant(hit.text))
            for hit in _rank_hits([Hit(*row) for row in rows], {})
        )
        if len(own & rare) >= _FEWEST_RARE + (not own & rare & named)
        and not _is_question(hit)
        and not layer_rows.is_mostly_in(own, in_prompt, _FEWEST_SAME)
        and not is_known(hit)
        and not outdated.has(hit.session, hit.step, hit.text, own & in_prompt)
    ]
    return _hits_in_budget(hits, _STRICT_BUDGET, [])[:_MOST_STRICT]


def _hits_of_nodes(connections: Sequence[Connection], rows: Sequence[Sequence[Any]]) -> list[Hit]:
    captured = hook_queries.captured_imports(connections[-1], [row[0] for row in rows])
    rows = [row for row in rows if row[0] not in captured]
    about = {row[0]: (row[1], row[2], model.from_json(row[3])) for row in rows}
    said_by = sources.of_nodes(connections, about)
    return [
        Hit(
            *(0, "", row[5], row[1], said_by[row[0]], 0, cut(flat(row[2]), _LONGEST_NODE)),
            *(0.0, "", row[0], layer_rows.label(row)),
        )
        for row in rows
    ]


def _hits_in_budget(
    hits: Iterable[tuple[Hit, frozenset[str]]], budget: int, known: list[frozenset[str]]
) -> list[Hit]:
    """As many as fit, in order, without what is said twice.

    `known` are the words of what was said before; those of the hits are added.
    """
    chosen: list[Hit] = []
    for hit, own in hits:
        if budget < _SMALLEST:
            break
        cost = tokens.estimate(line_of(hit))
        is_known = any(layer_rows.is_mostly_in(own, other, _FEWEST_SAME) for other in known)
        if cost <= budget and not is_known:
            known.append(own)
            budget -= cost
            chosen.append(hit)
    return chosen


def context_from_hits(hits: Sequence[Hit]) -> Context:
    """The text that an agent is given, and its receipt."""
    if not hits:
        return NOTHING
    lines = [line_of(hit) for hit in hits]
    text = f"{HEADING}\n\n{''.join(lines)}"
    items = tuple(
        ContextItem(
            NodeId(hit.node),  # type: ignore[arg-type]
            label_of(hit),
            hit.at,
            tokens.estimate(line),
            digest(hit.text),
            SAID,
        )
        for hit, line in zip(hits, lines, strict=True)
    )
    return Context(text, tokens.estimate(text), items)


def label_of(hit: Hit) -> str:
    return hit.label or f"said:{hit.session[:8]}"


def line_of(hit: Hit) -> str:
    if hit.node:
        return f"- [{hit.label}, {hit.source}] {hit.text}\n"
    at_ms = clock.parse_iso(hit.at) or 0
    age = clock.days_ago(clock.day_number(clock.now_ms()) - clock.day_number(at_ms))
    return f"- [{hit.source}, {age}] {flat(hit.text)}\n"


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


def _is_question(hit: Hit) -> bool:
    """Whether it is a question of the user; a later session needs the answer to it."""
    return hit.kind == "prompt" and hit.text.rstrip().endswith("?")


def _rarest(connection: Connection, wanted: Sequence[str]) -> list[str]:
    if len(wanted) <= _MOST_TERMS:
        return list(wanted)
    counts = {
        term: hook_queries.excerpts_with(connection, term, _COUNTED_TO)
        for term in wanted[:_MOST_COUNTED]
    }
    known = [term for term in counts if counts[term]]
    return sorted(known, key=lambda term: counts[term])[:_MOST_TERMS]


def _rank_hits(hits: Sequence[Hit], ages: dict[str, int]) -> list[Hit]:
    """The hits, best first."""
    named = {hit.id: layer_rows.names(hit.text) for hit in hits}
    sessions = Counter(
        name for name, _ in {(name, hit.session) for hit in hits for name in named[hit.id]}
    )

    def score(hit: Hit) -> float:
        recency: float = 1 + _NEWEST * 0.5 ** (ages.get(hit.session, len(ages)) / _HALF_LIFE)
        reused = sum(sessions[name] > 1 for name in named[hit.id])
        form = 1 + log(1 + max(0, hit.worth) / 1000)
        weight = _KINDS.get(hit.kind, 1.0) * recency * form
        return hit.score * weight * (1 + min(_MOST_NAMES, _NAME * reused))

    scored = [hit._replace(score=score(hit)) for hit in hits]
    return sorted(scored, key=lambda hit: (-hit.score, -hit.id))
