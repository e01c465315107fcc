"""Graphs as text for Graphviz and Mermaid.

Names come from untrusted code. In both languages, everything that could have a meaning is escaped.
"""

from ctx.cli.output import Block, Line, Markdown, Table, VerbatimText, count
from ctx.cli.terminal import one_line, visible
from ctx.operations.debug_graph import GraphPicture, Vertex

_SHAPES = {"file": "note", "item": "box", "package": "folder", "diagnostic": "octagon"}
# Characters that Mermaid shows as they are inside quotes.
_PLAIN = frozenset(" _-./,:()=*+")


def dot(drawn: GraphPicture) -> list[Block]:
    """For `dot -Tsvg`."""
    lines = ["digraph ctx {", "  rankdir=LR;", '  node [shape=ellipse, fontname="sans-serif"];']
    names = _names(drawn)
    for vertex in drawn.vertices:
        shape = _SHAPES.get(vertex.kind, "ellipse" if _is_memory(vertex) else "box")
        label = f"{vertex.kind}\n{vertex.label}"
        lines.append(f"  {names[vertex.id]} [label={_dot_quoted(label)}, shape={shape}];")
    for arrow in drawn.edges:
        style = "" if arrow.confidence in ("", "high") else ", style=dashed"
        ends = f"{names[arrow.source]} -> {names[arrow.target]}"
        lines.append(f"  {ends} [label={_dot_quoted(arrow.type)}{style}];")
    lines += [f"  // {_omission_note(drawn)}"] if drawn.left_out else []
    return [VerbatimText("\n".join([*lines, "}"]) + "\n")]


def _dot_quoted(text: str) -> str:
    """A quoted text for dot; line ends stay line ends in the picture."""
    shown = "\\n".join(
        visible(line).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
        for line in text.split("\n")
    )
    return f'"{shown}"'


def mermaid(drawn: GraphPicture) -> list[Block]:
    """For pages that draw Mermaid, such as those of forges."""
    return [VerbatimText(_mermaid(drawn))]


def markdown(drawn: GraphPicture) -> list[Block]:
    return [Markdown(f"```mermaid\n{_mermaid(drawn)}```\n")]


def _mermaid(drawn: GraphPicture) -> str:
    lines = ["flowchart LR"]
    names = _names(drawn)
    for vertex in drawn.vertices:
        left, right = ("[", "]") if not _is_memory(vertex) else ("(", ")")
        label = _mermaid_quoted(f"{vertex.kind}: {vertex.label}")
        lines.append(f"  {names[vertex.id]}{left}{label}{right}")
    for arrow in drawn.edges:
        line = "-->" if arrow.confidence in ("", "high") else "-.->"
        label = _mermaid_quoted(arrow.type)
        lines.append(f"  {names[arrow.source]} {line}|{label}| {names[arrow.target]}")
    lines += [f"  %% {_omission_note(drawn)}"] if drawn.left_out else []
    return "\n".join(lines) + "\n"


def _mermaid_quoted(text: str) -> str:
    shown = "".join(
        each if each.isalnum() or each in _PLAIN else f"#{ord(each)};"
        for each in visible(one_line(text))
    )
    return f'"{shown}"'


def text(drawn: GraphPicture) -> list[Block]:
    if not drawn.vertices:
        return [Line("There is nothing to draw.")]
    counts = f"{count(len(drawn.vertices), 'node')}, {count(len(drawn.edges), 'edge')}"
    by_id = {vertex.id: vertex for vertex in drawn.vertices}
    met = {end for arrow in drawn.edges for end in (arrow.source, arrow.target)}
    rows = [
        (by_id[arrow.source].label, arrow.type, by_id[arrow.target].label, arrow.confidence)
        for arrow in drawn.edges
    ]
    blocks: list[Block] = [
        Line(counts, "heading"),
        Table(("from", "type", "to", "sure"), rows, ("text", "edge", "text", "dim")),
    ]
    alone = [(vertex.kind, vertex.label) for vertex in drawn.vertices if vertex.id not in met]
    if alone:
        blocks += [Line("Without edges", "heading"), Table(("kind", "name"), alone)]
    return [*blocks, Line(_omission_note(drawn), "dim")] if drawn.left_out else blocks


def _omission_note(drawn: GraphPicture) -> str:
    return f"{drawn.left_out:,} more left out (--limit)"


def _names(drawn: GraphPicture) -> dict[str, str]:
    """Short names that have no meaning in either language."""
    return {vertex.id: f"n{number}" for number, vertex in enumerate(drawn.vertices)}


def _is_memory(vertex: Vertex) -> bool:
    return vertex.id == vertex.node
