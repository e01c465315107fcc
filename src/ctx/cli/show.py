"""`ctx show`"""

import argparse
import json
from collections.abc import Sequence

from ctx import clock
from ctx.cli import arguments, opening
from ctx.cli.nodes import edge_rows
from ctx.cli.options import flag
from ctx.cli.output import Block, Line, Output, Table, VerbatimText, age_text
from ctx.cli.settings import Settings
from ctx.ids import short
from ctx.memory import code_anchors, sources
from ctx.memory.graph import PROJECT
from ctx.operations.show import NodeVersion, ShowResult, show

EXAMPLES = """
ctx show 01M7ESYZ1SB4                 a node, whole
ctx show 01M7ESYZ1SB4 --with-edges    and what it is connected to
ctx show 01M7ESYZ1SB4 --history       and every change to it, with the commit that has it
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    flag(parser, "--with-edges", "also show its edges")
    flag(parser, "--history", "also show every change to it")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.reading(settings, output) as memory:
        node_id = memory.graph.find(options.id)
        shown = show(memory, node_id, with_edges=options.with_edges, with_history=options.history)
        output.show(shown, render)


def render(shown: ShowResult) -> list[Block]:
    node, now = shown.node, clock.now_ms()
    facts = [
        ("type", node.type),
        ("source", node.source),
        ("tags", " ".join(node.tags)),
        ("created", f"{node.created_at} ({age_text(node.created_at, now)})"),
        ("updated", node.updated_at if node.updated_at != node.created_at else ""),
        ("tokens", f"{node.token_estimate:,}"),
        ("summary", node.summary or ""),
        ("superseded by", node.superseded_by or ""),
        ("staged in", node.staged or ""),
        ("store", node.scope if PROJECT in shown.scopes else ""),
        ("code", code_anchors.describe(shown.anchors) or ("unchanged" if shown.anchors else "")),
        *(
            (f"meta {key}", _metadata_text(value))
            for key, value in node.metadata.items()
            if key != sources.KEY
        ),
    ]
    blocks: list[Block] = [
        Line(f"{node.type} {node.id}", "heading"),
        Table(("field", "value"), [fact for fact in facts[1:] if fact[1]], ("field", "")),
        Line(""),
        VerbatimText(node.content + "\n"),
    ]
    if shown.answer is not None:
        blocks += [Line(""), Line("The whole answer", "heading"), VerbatimText(shown.answer)]
    if shown.edges is not None:
        blocks += [Line(""), Line("Edges" if shown.edges else "No edges.", "heading")]
        others = {other.id: other for other in shown.others}
        blocks.append(edge_rows(shown.edges, node.id, others, shown.short_ids))
    if shown.history is not None:
        blocks += [Line(""), Line("History", "heading"), _history(shown.history, now)]
    return blocks


def _history(versions: Sequence[NodeVersion], now: int) -> Table:
    headings = ["age", "by", "change", "session"]
    kinds = ["age", "type", "text", "dim"]
    rows = [
        [age_text(version.at, now), version.action, version.what, version.session]
        for version in versions
    ]
    places = [_place(version) for version in versions]
    if any(places):
        for row, place in zip((headings, kinds, *rows), ("commit", "id", *places), strict=True):
            row.insert(2, place)
    return Table(headings, rows, kinds)


def _place(version: NodeVersion) -> str:
    """Where a version is stored in a project."""
    if version.commit:
        return short(version.commit)
    return f"staged in {version.staged}" if version.staged else version.document or ""


def _metadata_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
