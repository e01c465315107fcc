"""Hints for a prompt: relevant memory that this session was not given yet.

Hints are unasked, so they are few and short, and they arrive in time or not at all.
"""

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, ids, terms, tokens
from ctx.capture.injected_text import without_injected
from ctx.context import compose, excerpt_search, layer_rows, relevance
from ctx.context.compose import ContextEntry, ContextFrame, OmittedNodes
from ctx.context.contexts import HINT, ContextItem
from ctx.context.relevance import RelevantNode
from ctx.hook_files import spool, start_receipts
from ctx.memory import code_anchors, lookups, model, receipts, sources
from ctx.memory.model import Node
from ctx.memory.query import node_candidates
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import parse_words
from ctx.operations.visible_nodes import VisibleNodes, scope_of
from ctx.operations.why import receipts_in_files
from ctx.packs import node_ranking
from ctx.packs.node_ranking import RankedNode
from ctx.project import authors
from ctx.search import entities
from ctx.workspace import Memory, for_agents

MOST_TOKENS = 400
AUTHOR = "claude-code"

_PREFACE = "Related memory (ctx):"
_PREFACE_OF_A_FIX = "Related memory (ctx); this has failed before:"
_PREFACE_OF_A_RULE = "The user has a rule about this (ctx):"
_FRAME_TOKENS = 40
_LONGEST_PROMPT = 4_000
_ADDRESS = re.compile(r"https?://\S+")
"""The words of an address are those of all addresses of the same place."""
_MOST_RANKED = 30
_MOST_RECEIPTS = 50
_MOST_FILES = 5
_MOST_ABOUT_FILES = 3
_ABOUT_A_FILE = 0.5
"""The node is about a file that the prompt names."""
_PREVIEWS = (700, 350, 160)
"""Characters of a node, the fewer the less room there is."""
# How many steps of its machine SQLite takes between two looks at the clock.
_STEPS = 20_000


class PromptHints(NamedTuple):
    """What a session is given with a prompt."""

    text: str
    items: tuple[ContextItem, ...]
    tokens: int


NOTHING = PromptHints("", (), 0)


def prompt_hints(
    memory: Memory, folder: str, session: str, prompt: str, deadline: float
) -> PromptHints:
    """The few nodes that matter to a prompt. The deadline is a time of `clock.monotonic`."""
    asked = _ADDRESS.sub(" ", without_injected(prompt)[:_LONGEST_PROMPT]).strip()
    if not asked or asked.startswith("/"):
        return NOTHING
    with for_agents(memory, folder, ids.session_id(session), AUTHOR) as there:
        try:
            with _interrupt_at_deadline(deadline, there.graph.connections):
                return _find_hints(there, session, asked, deadline)
        except sqlite3.OperationalError:
            # It took too long, or another process holds the store.
            return NOTHING


def _find_hints(there: Memory, session: str, asked: str, deadline: float) -> PromptHints:
    broken = _rules_about_to_break(there, session, asked)
    if broken:
        return _fitted_hints(there, broken, _PREFACE_OF_A_RULE)
    said = relevance.names_in(entities.find(asked))
    scope = scope_of(there, VisibleNodes(project=there.project or ""))
    # What only stands beside something relevant, or is only of the same day, is not what anybody
    # must see.
    without = (node_ranking.BESIDE, node_ranking.TIME)
    now_ms = clock.now_ms()
    found = node_ranking.rank(there.graph, asked, scope, now_ms, _MOST_RANKED, None, without)
    if clock.monotonic() > deadline:
        return NOTHING
    found += _about_files(there, said.paths, {each.node.id for each in found}, scope, now_ms)
    known = _known_ids(there, session)
    own = f"session:{session}"
    about = [each.node.metadata for each in found]
    elsewhere = layer_rows.sessions_elsewhere(there.local, there.place.folder, about)
    others = [
        each
        for each in found
        if own not in each.node.tags
        and not _is_useless(each.node, asked)
        and (each.node.metadata.get("session") in elsewhere or _file_exists(there, each.node))
    ]
    chosen = relevance.choose(asked, said, others, known)
    if clock.monotonic() > deadline:
        return NOTHING
    if not chosen:
        return _find_excerpts(there, session, asked, known)
    is_fix = any("kind:bugfix" in each.node.tags for each in chosen[:1])
    return _fitted_hints(there, chosen, _PREFACE_OF_A_FIX if is_fix else _PREFACE)


def _is_useless(node: Node, asked: str) -> bool:
    """Whether the user called a node useless, and the prompt does not name its subject."""
    if model.USELESS not in node.tags:
        return False
    shared = terms.significant(node.content) & terms.significant(asked)
    return not layer_rows.names_subject(asked, node.content, shared)


def _find_excerpts(there: Memory, session: str, asked: str, known: Collection[str]) -> PromptHints:
    """What was said about a prompt: on a new subject as much as with the first prompt of a session,
    else little, with strong evidence."""
    if excerpt_search.changes_subject(there.local, session, asked):
        budget = there.environment.user_config.integer("context.prompt_budget")
        stores = there.graph.connections
        hits = excerpt_search.choose(
            stores, there.project, asked, budget, session=session, given=known
        ).hits
    else:
        hits = excerpt_search.search_strictly(there.local, there.project, asked, session, known)
    found = excerpt_search.context_from_hits(hits)
    return PromptHints(found.text, found.items, found.tokens)


def _rules_about_to_break(there: Memory, session: str, asked: str) -> list[RelevantNode]:
    """Also those that the session was given at its start: that may be long ago."""
    connections = there.graph.connections
    known = relevance.rules(connections, there.project)
    broken = [each.id for each in relevance.about_to_break(asked, known)]
    own = f"session:{session}"
    nodes = [node for node in there.graph.nodes(broken) if own not in node.tags]
    return [RelevantNode(node, "the prompt is about to break it") for node in nodes]


def _file_exists(there: Memory, node: Node) -> bool:
    """Whether a file that a node is about still exists, as far as one look at the disk shows."""
    is_own = there.own_tag is not None and there.own_tag in node.tags
    if not is_own or not code_anchors.can_be_left_out(node.source, node.tags):
        return True
    return not code_anchors.are_files_gone(there.place.folder, node.metadata)


def _about_files(
    there: Memory, paths: Iterable[str], known: Collection[str], scope: Scope, now_ms: int
) -> list[RankedNode]:
    """What was fixed or decided in files that the prompt names, whatever words it has for it."""
    connections = there.graph.connections
    wanted = [*paths][:_MOST_FILES]
    about = (lookups.settled_in_files(each, wanted, _MOST_ABOUT_FILES) for each in connections)
    ids = {node_id for found in about for node_id in found} - set(known)
    seen = (
        node_candidates.visible_nodes(connections, parse_words(""), scope, now_ms, ids)
        if ids
        else ids
    )
    return [
        RankedNode(node, _ABOUT_A_FILE, (), _ABOUT_A_FILE, 0.0)
        for node in there.graph.nodes(sorted(seen, reverse=True))
    ]


def _known_ids(there: Memory, session: str) -> set[str]:
    """What a session was given before, at its start or at a prompt: ids, or keys of excerpts."""
    home = there.environment.user_store.home
    known = start_receipts.given(home, session)
    known |= receipts.keys_given(there.local, session, _MOST_RECEIPTS)
    for receipt in receipts_in_files(home, spool.pending_names(home)[-_MOST_RECEIPTS:]):
        if receipt.session == session:
            known.update(receipts.key_of(*each[:3]) for each in receipt.items)
    return known


def _fitted_hints(there: Memory, chosen: Sequence[RelevantNode], preface: str) -> PromptHints:
    """As many of them as fit, each as long as there is room for."""
    names = there.graph.shown(each.node.id for each in chosen)
    projects = there.graph.connections[:-1]
    written_by = authors.strangers(projects, [each.node.id for each in chosen])
    left = MOST_TOKENS - _FRAME_TOKENS
    parts: list[str] = []
    items: list[ContextItem] = []
    for each in chosen:
        node = each.node
        source, is_data = sources.mark(node.source)
        entry = ContextEntry(
            f"{node.type}:{names[node.id]}",
            node.type,
            model.tier(node.tags),
            _one_line_text(node),
            author=written_by.get(node.id, ""),
            source=source,
            is_data=is_data,
        )
        for length in _PREVIEWS:
            text = compose.short_item(entry, with_tags=False, characters=length)
            cost = tokens.estimate(f"{text}\n")
            if cost <= left:
                left -= cost
                parts.append(f"{text}\n")
                items.append(ContextItem(node.id, entry.label, node.updated_at, cost, "", HINT))
                break
    if not items:
        return NOTHING
    frame = ContextFrame(preface=preface)
    body = "".join(parts) + "\n"
    text, used = compose.frame_text(body, len(items), OmittedNodes(0), MOST_TOKENS, frame)
    return PromptHints(text, tuple(items), used)


def _one_line_text(node: Node) -> str:
    """What a node says in one line."""
    begun, gap, rest = node.content.partition("\n\n")
    ends = begun.endswith((".", ":", "!", "?", "…")) or not begun
    return f"{begun}{' ' if ends else '. '}{rest}" if gap else begun


@contextmanager
def _interrupt_at_deadline(deadline: float, connections: Sequence[Connection]) -> Iterator[None]:
    """Have SQLite give up when the time is over."""

    def is_over() -> bool:
        return clock.monotonic() > deadline

    for connection in connections:
        connection.set_progress_handler(is_over, _STEPS)
    try:
        yield
    finally:
        for connection in connections:
            connection.set_progress_handler(None, 0)
