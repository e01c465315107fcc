"""Now: what a session here would be given, at its start and with a prompt."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import quote

from ctx.context.contexts import (
    COMMANDS,
    MEMORY,
    RULES,
    SAID,
    SESSIONS,
    STANDING,
    WORDS,
)
from ctx.errors import CtxError, UsageError
from ctx.ids import NodeId
from ctx.memory.model import Node
from ctx.operations import context, delete, review, tag, update, visibility
from ctx.operations.agent_proposals import proposals as open_proposals
from ctx.operations.context import ContextLayer, ContextResult
from ctx.operations.context_items import GivenItem, OmittedItem
from ctx.page.requests import AUTHOR, Answer, GoTo, HtmlPage, PageRequest, PageRoute, last_change
from ctx.workspace import Memory, for_agents

LAYER_NAMES = {
    MEMORY: "Memory",
    STANDING: "Where things stand",
    RULES: "Rules and corrections",
    WORDS: "What the user said",
    COMMANDS: "Commands",
    SESSIONS: "Recent sessions",
    SAID: "From earlier sessions",
}
_MOST_HIDDEN = 20
_MOST_ITEMS = 50
"""Items of a layer that are shown one by one."""
_LONGEST_EDITED = 4_000
"""Longer texts are edited on the page of the node."""
_LONGEST_PROMPT = 6_000


class BarPart(NamedTuple):
    """The share of a layer in the bar of a budget, in percent of its width."""

    label: str
    layer: str
    tokens: int
    start: float
    width: float


class ShownLayer(NamedTuple):
    """The items of a layer, or what it leaves out."""

    name: str
    label: str
    items: Sequence[GivenItem | OmittedItem]
    tokens: int = 0
    """Of the layer with its heading, as in the bar; nothing for what is left out."""
    more: str = ""
    """What else there is."""


class ShownContext(NamedTuple):
    result: ContextResult
    bar: Sequence[BarPart]
    frame: int
    """The tokens of headings and instructions."""
    largest: int
    """The tokens of its largest item."""
    layers: Sequence[ShownLayer]
    omitted: Sequence[ShownLayer]


class EditedNode(NamedTuple):
    """The item that is edited. If an edit is refused, what the user typed is not lost."""

    id: str
    content: str = ""
    error: str = ""


def now(request: PageRequest) -> Answer:
    return _page(request, request.text("prompt"), EditedNode(request.text("edit")))


def _page(request: PageRequest, prompt: str, edited: EditedNode) -> HtmlPage:
    prompt = prompt[:_LONGEST_PROMPT]
    with (
        request.reading() as memory,
        for_agents(memory, request.environment.folder, memory.session, AUTHOR) as there,
    ):
        start = _shown(context.context(there))
        asked = _shown(context.prompt_context(there, prompt)) if prompt.strip() else None
        contexts = [each for each in (asked, start) if each]
        values = {
            "start": start,
            "asked": asked,
            "prompt": prompt,
            "query": _query(prompt),
            "edited": edited,
            "names": LAYER_NAMES,
            "nodes": _nodes(there, contexts),
            "proposals": {each.id: each for each in open_proposals(there)},
            "hidden": visibility.hidden(there, _MOST_HIDDEN),
            "withheld": memory.withheld,
            "version_of": version_of,
            "longest_edited": _LONGEST_EDITED,
        }
    return HtmlPage("now.html", "Now", values, 409 if edited.error else 200)


def _shown(result: ContextResult) -> ShownContext:
    # With a large budget, a context has several parts, and each has all layers.
    by_layer: dict[str, list[GivenItem]] = {}
    for item in result.items:
        by_layer.setdefault(item.layer, []).append(item)
    tokens = {each.name: each.tokens for each in result.layers}
    frame = max(0, result.tokens - sum(tokens.values()))
    return ShownContext(
        result,
        _bar(result, frame),
        frame,
        max((each.tokens for each in result.items), default=0),
        [_layer_of_items(name, items, tokens[name]) for name, items in by_layer.items()],
        [layer for each in result.layers if (layer := _omitted(result, each))],
    )


def _layer_of_items(name: str, items: Sequence[GivenItem], tokens: int) -> ShownLayer:
    rest = len(items) - _MOST_ITEMS
    more = f"{rest:,} more: see the text above." if rest > 0 else ""
    return ShownLayer(name, LAYER_NAMES[name], items[:_MOST_ITEMS], tokens, more)


def _omitted(result: ContextResult, layer: ContextLayer) -> ShownLayer | None:
    named = [each for each in result.omitted if each.layer == layer.name]
    rest = max(0, layer.left_out - len(named))
    if not named and not rest and not layer.problem:
        return None
    more = layer.problem
    if rest:
        at_least = " or more" if layer.more_left_out else ""
        more = f"{rest:,}{at_least} more"
    return ShownLayer(layer.name, LAYER_NAMES[layer.name], named, more=more)


def _bar(result: ContextResult, frame: int) -> list[BarPart]:
    whole = max(result.budget, result.tokens, 1)
    parts = []
    start = 0.0
    for name, tokens in [*((each.name, each.tokens) for each in result.layers), ("frame", frame)]:
        width = tokens * 100 / whole
        if tokens:
            label = LAYER_NAMES.get(name, "Headings and instructions")
            parts.append(BarPart(label, name, tokens, start, width))
            start += width
    return parts


def _nodes(memory: Memory, contexts: Sequence[ShownContext]) -> Mapping[str, Node]:
    ids = [NodeId(item.id) for each in contexts for item in each.result.items if item.id]  # type: ignore[arg-type]
    ids += [NodeId(item.id) for each in contexts for item in each.result.omitted if item.id]  # type: ignore[arg-type]
    return {node.id: node for node in memory.graph.nodes(dict.fromkeys(ids))}


def version_of(node: Node) -> str:
    """Changes with the content: an edit of another version is refused."""
    return blake2b(node.content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


# Changes


def decide(request: PageRequest) -> Answer:
    """One of the buttons of an item, such as `pin 01J…`."""
    what, _, command = request.field("do").partition(":")
    if what == "remove-command":
        with request.writing() as memory:
            visibility.remove_command(memory, command)
            return GoTo(_back(request), f"Removed the command `{command}`.", last_change(memory))
    what, _, name = request.field("do").partition(" ")
    if what not in _DECISIONS:
        raise UsageError(f"There is no action {what[:40]!r}.")
    with request.writing() as memory:
        node_id = memory.graph.find(name)
        _DECISIONS[what](memory, node_id)
        return GoTo(_back(request), f"{_DONE[what]}.", last_change(memory))


def edit(request: PageRequest) -> Answer:
    content, prompt = request.field("content"), request.field("prompt")
    with request.writing() as memory:
        node_id = memory.graph.find(request.path["node"])
        try:
            node = memory.graph.node(node_id)
            if request.field("version") != version_of(node):
                raise UsageError("The node was changed meanwhile. Save again to replace it.")
            update.update(memory, node_id, update.Options(content, based_on=node.content))
        except CtxError as error:
            refused = EditedNode(node_id, content, error.message)
        else:
            return GoTo(_back(request), "Saved.", last_change(memory))
    return _page(request, prompt, refused)


def _back(request: PageRequest) -> str:
    return f"/now{_query(request.field('prompt'))}"


def _query(prompt: str) -> str:
    return f"?prompt={quote(prompt, safe='')}" if prompt else ""


_DECISIONS: Mapping[str, Callable[[Memory, NodeId], object]] = {
    "accept": lambda memory, node_id: visibility.accept(memory, [node_id]),
    "pin": lambda memory, node_id: tag.pin(memory, [node_id]),
    "unpin": lambda memory, node_id: tag.unpin(memory, [node_id]),
    "hide": lambda memory, node_id: visibility.hide(memory, [node_id]),
    "reveal": visibility.reveal,
    "delete": lambda memory, node_id: delete.delete(memory, [node_id]),
    "accept-proposal": lambda memory, node_id: review.decide(memory, [node_id], accepting=True),
    "reject-proposal": lambda memory, node_id: review.decide(memory, [node_id], accepting=False),
}
_DONE = {
    "accept": "Accepted: it counts as said by you",
    "pin": "Pinned",
    "unpin": "Unpinned",
    "hide": "Hidden from agents",
    "reveal": "Shown to agents again",
    "delete": "Deleted",
    "accept-proposal": "Accepted what the agent proposed",
    "reject-proposal": "Rejected what the agent proposed",
}

ROUTES = [
    PageRoute("GET", "/now", now),
    PageRoute("POST", "/now", decide),
    PageRoute("POST", "/now/{node}/edit", edit),
]
