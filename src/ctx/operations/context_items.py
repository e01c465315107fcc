"""The items of a context, and those for which there was no room: why, how old, who said it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ctx import clock, terms, tokens
from ctx.context import excerpt_search
from ctx.context.context_page import MadeContext
from ctx.context.contexts import (
    BEFORE_EDIT,
    COMMANDS,
    MEMORY,
    RECALLED,
    RULES,
    SAID,
    SESSIONS,
    STANDING,
    WORDS,
    ContextItem,
)
from ctx.context.excerpt_search import Hit
from ctx.ids import NodeId
from ctx.markdown import code
from ctx.memory import model, sources
from ctx.memory.model import Node
from ctx.project import authors
from ctx.workspace import Memory

_MOST_WORDS = 8
_LONGEST_PROMPT = 6_000
_AROUND_WORDS = ".,:;!?()[]{}`'\"*"
_LONGEST_OMITTED = 400
_MOST_NEXT = 10


class GivenItem(NamedTuple):
    """One item of a context."""

    id: str
    """The node; empty for a command and for a passage."""
    label: str
    layer: str
    text: str
    """As the session gets it."""
    tokens: int
    reason: str
    """Why it is in the context."""
    source: str
    """Who said it: `user`, `agent`, `repository`, `tool output` or `web`."""
    author: str
    """The person who wrote it, if that is somebody else."""
    updated_at: str
    age_days: int
    session: str = ""
    """The session of an excerpt."""


class OmittedItem(NamedTuple):
    """Something for which there was no room."""

    id: str
    label: str
    layer: str
    text: str
    """Its beginning."""
    tokens: int
    reason: str
    source: str
    updated_at: str
    age_days: int


class ItemList(NamedTuple):
    items: tuple[GivenItem, ...]
    omitted: tuple[OmittedItem, ...]


def of_context(memory: Memory, made: Sequence[MadeContext]) -> ItemList:
    """The items of all parts of a context."""
    pairs = [
        pair
        for part in made
        for pair in zip(part.context.items, part.texts, part.reasons, strict=False)
    ]
    last = made[-1] if made else None
    nodes = _Nodes(memory, [*(item.id for item, *_ in pairs if item.id), *_omitted_ids(last)])
    given = [
        nodes.given_item(item, text, reason or layer_reason(item.layer, nodes.by_id.get(item.id)))
        for item, text, reason in pairs
    ]
    return ItemList(tuple(given), tuple(_omitted(nodes, last) if last else ()))


def of_hits(
    memory: Memory, items: Sequence[ContextItem], hits: Sequence[Hit], prompt: str
) -> tuple[GivenItem, ...]:
    """The items of what a session gets with a prompt."""
    nodes = _Nodes(memory, [item.id for item in items if item.id])
    asked = terms_of_words(prompt)
    found = []
    for item, hit in zip(items, hits, strict=True):
        text = excerpt_search.line_of(hit).rstrip("\n")
        kind = "" if hit.node else hit.kind
        why = ", ".join([match_reason(asked, hit.text, kind), *hit.reasons])
        given = nodes.given_item(item, text, why)
        found.append(given._replace(source=hit.source, session=hit.session))
    return tuple(found)


class _Nodes:
    """The nodes of a context, read once."""

    def __init__(self, memory: Memory, node_ids: Iterable[NodeId]) -> None:
        wanted = list(dict.fromkeys(node_ids))
        self.by_id = {node.id: node for node in memory.graph.nodes(wanted)}
        self._authors = authors.strangers(memory.graph.connections[:-1], wanted)
        self._today = clock.day_number(clock.now_ms())

    def given_item(self, item: ContextItem, text: str, reason: str) -> GivenItem:
        node = self.by_id.get(item.id)
        source = node.source if node else sources.AGENT
        by = self._authors.get(item.id, "")
        return GivenItem(
            *(item.id, item.label, item.layer, text, item.tokens, reason, source, by),
            *(item.updated_at, self.age_days(item.updated_at)),
        )

    def age_days(self, at: str) -> int:
        at_ms = clock.parse_iso(at)
        return 0 if at_ms is None else max(0, self._today - clock.day_number(at_ms))


def of_next_hits(memory: Memory, hits: Sequence[Hit]) -> tuple[OmittedItem, ...]:
    """What would have come next with a prompt."""
    nodes = _Nodes(memory, ())
    return tuple(
        OmittedItem(
            *(hit.node, excerpt_search.label_of(hit), SAID, hit.text[:_LONGEST_OMITTED]),
            tokens.estimate(hit.text),
            *("less likely to be needed for its tokens", hit.source, hit.at),
            nodes.age_days(hit.at),
        )
        for hit in hits[:_MOST_NEXT]
    )


# Why something is in a context


def layer_reason(layer: str, node: Node | None) -> str:
    """Why something is in a layer of a context."""
    about: Mapping[str, Any] = node.metadata if node else {}
    if layer == MEMORY:
        return _tier_reason(node.tags if node else ())
    if layer == RULES:
        kind = next((tag for tag in node.tags if tag.startswith("kind:")), "") if node else ""
        details = [f"`{kind}`"] if kind else []
        if about.get("lasting") is True:
            details.append("holds in general")
        sessions = about.get("sessions")
        if isinstance(sessions, list) and len(sessions) > 1:
            details.append(_times(len(sessions)))
        return ", ".join(["rule of the project", *details])
    return {
        STANDING: "the end of the last session",
        WORDS: "what the user said, likely to be needed again",
        SESSIONS: "one of the latest sessions",
        COMMANDS: "what sessions ran here",
        BEFORE_EDIT: "about the file that the agent read or edited",
        RECALLED: "the agent asked for it",
    }.get(layer, layer)


def _tier_reason(tags: Sequence[str]) -> str:
    tier = model.tier(tags)
    if tier == model.PINNED:
        return "pinned"
    task = next((tag for tag in tags if tag.startswith("task:")), "")
    if tier == model.WORKING and task:
        return f"`{tier}` of the current task, in the view `default`"
    is_given = tier and tier != model.OFF_CONTEXT
    return f"`{tier}`, in the view `default`" if is_given else "in the view `default`"


def _times(count: Any) -> str:
    number = count if isinstance(count, int) else 1
    return "seen in 1 session" if number == 1 else f"seen in {number:,} sessions"


def terms_of_words(prompt: str) -> dict[str, frozenset[str]]:
    """The words of a prompt, each with its terms."""
    every = (word.strip(_AROUND_WORDS) for word in prompt[:_LONGEST_PROMPT].split())
    return {word: terms.significant(word) for word in dict.fromkeys(filter(None, every))}


def match_reason(asked: Mapping[str, frozenset[str]], text: str, kind: str = "") -> str:
    """Why a text is given with a prompt of these words; `kind` is that of an excerpt."""
    own = terms.significant(text)
    shared = [word for word, terms in asked.items() if terms & own]
    words = ", ".join(code(word) for word in shared[:_MOST_WORDS])
    stated = f"shares {words} with the prompt" if shared else "matches the prompt"
    return f"{kind} of an earlier session, {stated}" if kind else stated


# What there was no room for


def _omitted_ids(last: MadeContext | None) -> list[NodeId]:
    if last is None:
        return []
    lines = [NodeId(line.id) for _, line in last.omitted_lines if line.id]  # type: ignore[arg-type]
    return [*last.omitted_nodes, *lines]


def _omitted(nodes: _Nodes, last: MadeContext) -> Iterable[OmittedItem]:
    for node_id in last.omitted_nodes:
        if node := nodes.by_id.get(node_id):
            yield OmittedItem(
                *(node.id, f"{node.type}:{node.id[:12]}", MEMORY, node.content[:_LONGEST_OMITTED]),
                node.token_estimate,
                f"no room in the layer {MEMORY}",
                node.source,
                *(node.updated_at, nodes.age_days(node.updated_at)),
            )
    for layer, line in last.omitted_lines:
        node = nodes.by_id.get(line.id)  # type: ignore[call-overload]
        yield OmittedItem(
            *(line.id, line.label, layer, line.texts[0][:_LONGEST_OMITTED]),
            tokens.estimate(line.texts[0]),
            f"no room in the layer {layer}",
            node.source if node else sources.AGENT,
            *(line.updated_at, nodes.age_days(line.updated_at)),
        )
