"""Output of nodes and edges, for all commands."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ctx import clock
from ctx.cli.output import Block, Line, Output, Table, age_text, beyond_limit, count
from ctx.cli.terminal import cut
from ctx.ids import NodeId
from ctx.memory import sources
from ctx.memory.graph import PROJECT, USER
from ctx.memory.model import REFERENCE, WORKING, Edge, Node, Redaction, tier
from ctx.operations.list import NodeList

if TYPE_CHECKING:
    from ctx.codebase.code_names import UnknownName

_LONGEST_NAME = 60
_OPTIONAL_COLUMNS = ("where", "source")


def render_listing(listing: NodeList) -> list[Block]:
    if not listing.nodes:
        return [Line("No nodes.")]
    more = listing.total - len(listing.nodes)
    return [table(listing.nodes, listing.short_ids, listing.scopes), *beyond_limit(more, "")]


def table(
    nodes: Iterable[Node], short_ids: Mapping[NodeId, str], scopes: Sequence[str] = (USER,)
) -> Table:
    """Nodes in a row each. The store and the source have a column if they are unusual."""
    now = clock.now_ms()
    shown = list(nodes)
    places = [place(node, scopes) for node in shown]
    node_sources = [node.source if node.source != sources.USER else "" for node in shown]
    columns = [
        ("id", "id", [short_ids.get(node.id, node.id) for node in shown]),
        ("type", "type", [node.type for node in shown]),
        ("age", "age", [age_text(node.created_at, now) for node in shown]),
        ("where", "dim", places),
        ("source", "dim", node_sources),
        ("content", "text", [preview(node) for node in shown]),
        ("tags", "tags", [" ".join(node.tags) for node in shown]),
    ]
    used_columns = [
        column for column in columns if any(column[2]) or column[0] not in _OPTIONAL_COLUMNS
    ]
    headings, kinds, cells = zip(*used_columns, strict=True)
    return Table(headings, list(zip(*cells, strict=True)), kinds)


def place(node: Node, scopes: Sequence[str]) -> str:
    """Where a node is, if it is not in a commit of this project."""
    if node.staged is not None:
        return "staged"
    return USER if node.scope == USER and PROJECT in scopes else ""


def preview(node: Node) -> str:
    """A node in one line: its summary, else the beginning of its content."""
    short = cut(node.summary or node.content)
    return f"{short} (superseded)" if node.superseded_by else short


def edge_rows(
    edges: Sequence[Edge],
    node_id: NodeId,
    others: Mapping[NodeId, Node],
    short: Mapping[NodeId, str],
) -> Table:
    """The edges of a node, from its point of view."""
    rows = []
    for edge in edges:
        outward = edge.from_id == node_id
        other = others[edge.to_id if outward else edge.from_id]
        arrow = f"── {edge.type} →" if outward else f"← {edge.type} ──"
        rows.append((arrow, short[other.id], other.type, preview(other), evidence(edge)))
    return Table(
        ("edge", "id", "type", "content", "evidence"), rows, ("", "id", "type", "text", "tags")
    )


def evidence(edge: Edge) -> str:
    """The evidence of an edge in a few words; empty for a plain, certain statement."""
    parts = []
    confidence = edge.metadata.get("confidence", 1000)
    if confidence != 1000:
        parts.append(f"{confidence / 10:g} %")
    known = ("reason", "commit", "span")
    parts += [str(edge.metadata[key]) for key in known if key in edge.metadata]
    return ", ".join(parts)


def warn_of_redaction(redacted: Sequence[Redaction], output: Output) -> None:
    """Say what was removed. The secret itself is not shown."""
    if not redacted:
        return
    told_places = (f"{each.where}, line {each.line} ({each.rule})" for each in redacted)
    places = list(dict.fromkeys(told_places))
    listed = "; ".join(places[:3]) + ("; …" if len(places) > 3 else "")
    output.warn(f"{count(len(redacted), 'secret')} removed: {listed}.")


def note_tier(node: Node, short_id: str, given: Sequence[str], output: Output) -> None:
    """Say whether agents are shown the node, if the user did not choose it."""
    if WORKING in given:
        output.note("Agents are shown this during the current task. To prevent it: --no-tier")
    elif REFERENCE in given:
        output.note("Agents are shown this from their next session on. To prevent it: --no-tier")
    elif tier(node.tags) is None:
        output.note(
            f"Agents are not shown this at start. To show it: `ctx tag {short_id} tier:reference`"
        )


def note_unknown(unknown: "Sequence[UnknownName]", output: Output) -> None:
    """Say which names are not in the code, and suggest similar ones."""
    for name, near in unknown:
        meant = f" Did you mean {_join_with_or(near)}?" if near else ""
        output.note(f"The code here has no `{short_name(name)}`: stored as written.{meant}")


def note_unclear(unclear: "Sequence[UnknownName]", output: Output) -> None:
    """Say which names are ambiguous."""
    for name, several in unclear:
        meant = f" It may be {_join_with_or(several)}." if several else ""
        output.note(f"`{short_name(name)}` names several things: stored as written.{meant}")


def short_name(name: str) -> str:
    return cut(name, _LONGEST_NAME)


def _join_with_or(names: Sequence[str]) -> str:
    return " or ".join(f"`{each}`" for each in names)
