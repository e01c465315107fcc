"""Resources: a node, a session and the context, by address.

ctx://context         what a session that starts here is given
ctx://node/{id}       a node with its tags and edges
ctx://session/{id}    the summary of a session, its observations and its files
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from ctx.errors import NodeNotFound, SessionNotFound, UsageError
from ctx.markdown import code, flat, visible
from ctx.mcp.agent_place import AgentPlace, connections
from ctx.mcp.call_thread import RunningCall
from ctx.workspace import Memory

CONTEXT = "ctx://context"
NODE = "ctx://node/"
SESSION = "ctx://session/"
MARKDOWN = "text/markdown"


def read(place: AgentPlace, address: str, call: RunningCall) -> str:
    """The text of a resource. An error has our code, as everywhere."""
    with place.open(writing=False) as memory:
        call.may_interrupt(*connections(memory))
        if address == CONTEXT:
            return visible(_context(memory))
        if address.startswith(NODE):
            return visible(_node(memory, unquote(address.removeprefix(NODE))))
        if address.startswith(SESSION):
            return visible(_session(memory, unquote(address.removeprefix(SESSION))))
    raise UsageError(
        f"There is no resource {address[:80]!r}.",
        hint=f"There are {CONTEXT}, {NODE}ID and {SESSION}ID.",
    )


def _context(memory: Memory) -> str:
    from ctx.operations import context, keep_receipt

    found = context.context(memory)
    keep_receipt.keep_text(memory, "context", found.tokens)
    return found.text


def _node(memory: Memory, text: str) -> str:
    from ctx.operations import recall_index
    from ctx.operations.show import show

    found = recall_index.texts(memory, [text])
    if not found.texts:
        raise NodeNotFound(f"No node has the id {text[:40]!r}.", hint="`recall` shows ids.")
    [node] = found.texts
    shown = show(memory, node.id, with_edges=True, with_history=False)
    edges = [
        f"- {edge.type} {'to' if edge.from_id == node.id else 'from'}"
        f" {code(shown.short_ids[other])}"
        for edge in shown.edges or ()
        for other in [edge.to_id if edge.from_id == node.id else edge.from_id]
        if other in shown.short_ids
    ]
    return "\n".join([node.text, *(["", "## Edges", "", *edges] if edges else []), ""])


def _session(memory: Memory, text: str) -> str:
    from ctx.operations import sessions

    found = sessions.show(memory, text)
    if found.session.project not in (None, memory.project):
        raise SessionNotFound(f"No session begins with {text[:80]!r}.")
    parts = [f"# {flat(found.title or found.session.request or found.session.id)}", ""]
    parts += [f"{found.session.status}, {found.session.started_at}, {code(found.session.id)}", ""]
    for name, value in found.summary.items():
        parts += [f"## {name.replace('_', ' ').capitalize()}", "", *_lines(value), ""]
    if found.observations:
        lines = [
            f"- {code(each.short_id)} {each.kind}: {flat(each.title)}"
            for each in found.observations
        ]
        parts += ["## Observations", "", *lines, ""]
    if found.files:
        lines = [
            f"- {code(each.path)} ({each.reads} reads, {each.writes} writes)"
            for each in found.files
        ]
        parts += ["## Files", "", *lines, ""]
    text = "\n".join(parts)
    from ctx import tokens
    from ctx.operations import keep_receipt

    keep_receipt.keep_text(memory, "session", tokens.estimate(text))
    return text


def _lines(value: Any) -> list[str]:
    values: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
    return [f"- {flat(str(each))}" for each in values]
