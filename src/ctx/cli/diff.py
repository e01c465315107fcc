"""`ctx diff`"""

import argparse
import difflib
from collections.abc import Iterator, Mapping

from ctx.cli.opening import open_workspace
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.cli.terminal import cut
from ctx.ids import NodeId, short
from ctx.memory.model import Node
from ctx.operations.diff import (
    HEAD,
    STAGED,
    Diff,
    DiffSide,
    EdgeDifference,
    FieldDifference,
    NodeDifference,
    ViewDifference,
    diff,
)
from ctx.project.snapshot_diff import (
    DependencyDifference,
    DiagnosticDifference,
    ItemDifference,
    PackageDifference,
)

EXAMPLES = """
ctx diff                              what is staged, against what is committed
ctx diff HEAD~1 HEAD                  what the last commit did
ctx diff 3f2a91c0 9b41d7e2            the memory of two commits, by their ids
ctx diff 3f2a91c0 --format json       a commit against now, with whole nodes
"""

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_MOST_LINES = 50
_EDGE_SIGNS = {"added": ">", "removed": "x", "changed": "~"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "before",
        nargs="?",
        default=HEAD,
        metavar="A",
        help="the beginning of a commit's id, or HEAD (default)",
    )
    parser.add_argument(
        "after",
        nargs="?",
        default=STAGED,
        metavar="B",
        help="the same, or STAGED (default): including what is not committed yet",
    )


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    workspace = open_workspace(settings, output)
    output.show(diff(workspace, options.before, options.after), render)


def render(diff: Diff) -> list[Block]:
    sides = f"{_side(diff.before)} → {_side(diff.after)}"
    if not any(diff[2:]):
        return [Line(f"Nothing differs: {sides}.")]
    names = {node.id: node for each in diff.nodes for node in (each.before, each.after) if node}
    blocks: list[Block] = [Line(sides, "heading")]
    for node in diff.nodes:
        blocks += _node(node)
    blocks += [_edge(edge, names) for edge in diff.edges]
    blocks += [_view(view) for view in diff.views]
    blocks += _shorten_list([_item(each) for each in diff.items])
    blocks += _shorten_list([_package(each) for each in diff.packages])
    blocks += _shorten_list([_dependency(each) for each in diff.dependencies])
    blocks += _shorten_list([_diagnostic(each) for each in diff.diagnostics])
    return blocks


def _shorten_list(lines: list[Line]) -> list[Line]:
    """The first snapshot of a project may differ in thousands of items."""
    more = len(lines) - _MOST_LINES
    rest = [Line(f"  … and {more:,} more: --format json")] if more > 0 else []
    return [*lines[:_MOST_LINES], *rest]


def _item(found: ItemDifference) -> Line:
    shown = found.after or found.before or found.name
    if found.kind == "changed":
        is_same = found.before == found.after
        shown = "another body" if is_same else f"{found.before} → {found.after}"
    place = f"{found.path}:{found.line}" if found.line else found.path
    return Line(f"{_SIGNS[found.kind]} {found.item} {found.name} ({place}): {_title(shown)}")


def _package(found: PackageDifference) -> Line:
    versions = " → ".join(filter(None, (found.before, found.after)))
    return Line(f"{_SIGNS[found.kind]} package {found.name} {versions}")


def _dependency(found: DependencyDifference) -> Line:
    use = "" if found.needed_for == "normal" else f" ({found.needed_for})"
    return Line(f"{_SIGNS[found.kind]} dependency {found.from_package} → {found.to_package}{use}")


def _diagnostic(found: DiagnosticDifference) -> Line:
    place = f"{found.path}:{found.line}" if found.line else found.path
    code = f"[{found.code}]" if found.code else ""
    what = found.test or f"{found.severity}{code}"
    where = f" {place}" if place else ""
    return Line(f"{_SIGNS[found.kind]} {found.tool} {what}{where}: {_title(found.message)}")


def _side(side: DiffSide) -> str:
    if side.staged:
        return side.name
    commits = " ".join(map(short, side.commits)) or "nothing"
    return commits if commits.startswith(side.name[:12]) else f"{side.name} ({commits})"


def _node(difference: NodeDifference) -> Iterator[Block]:
    node = difference.after or difference.before
    assert node is not None
    tags = " ".join(
        [
            *(f"+{tag}" for tag in difference.tags_added),
            *(f"-{tag}" for tag in difference.tags_removed),
        ]
    )
    is_changed = difference.kind == "changed"
    tag_list = f" ({', '.join(node.tags)})" if node.tags and not is_changed else ""
    yield Line(f"{_SIGNS[difference.kind]} {_name(node)}: {_title(node.content)}{tag_list}")
    for field in difference.fields:
        yield from _field(field)
    if tags and is_changed:
        yield Line(f"    tags: {tags}")


def _field(field: FieldDifference) -> Iterator[Block]:
    texts = ["" if value is None else str(value) for value in (field.before, field.after)]
    if all("\n" not in text and len(text) <= 60 for text in texts):
        old, new = (text or "nothing" for text in texts)
        yield Line(f"    {field.name}: {old} → {new}")
        return
    yield Line(f"    {field.name}:")
    old_lines, new_lines = (text.splitlines() for text in texts)
    lines = list(difflib.unified_diff(old_lines, new_lines, n=1, lineterm=""))
    # The lines before the first hunk name files and positions.
    for line in lines[3:]:
        yield Line("      …" if line.startswith("@@") else f"      {line[:1]} {line[1:]}".rstrip())


def _edge(difference: EdgeDifference, names: Mapping[NodeId, Node]) -> Line:
    edge = difference.after or difference.before
    assert edge is not None
    ends = [_name(names[end]) if end in names else short(end) for end in (edge.from_id, edge.to_id)]
    return Line(f"{_EDGE_SIGNS[difference.kind]} {ends[0]} {edge.type} {ends[1]}")


def _view(difference: ViewDifference) -> Line:
    view = difference.after or difference.before
    assert view is not None
    budget = f", {view.budget:,} tokens" if view.budget is not None else ""
    return Line(f"{_SIGNS[difference.kind]} view {view.name}: {view.query}{budget}")


def _name(node: Node) -> str:
    return f"{node.type} {short(node.id)}"


def _title(content: str) -> str:
    return cut(content.partition("\n")[0])
