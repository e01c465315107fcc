"""`ctx why`"""

import argparse

from ctx.cli import arguments, opening, pack_answers
from ctx.cli.output import Block, Line, Output, Table, age_text, beyond_limit, count
from ctx.cli.settings import Settings
from ctx.cli.terminal import cut
from ctx.errors import UsageError
from ctx.memory import code_anchors, sources
from ctx.memory.receipts import PackReceipt, Receipt
from ctx.operations.why import ReceiptDetails, ReceiptList, ReceiptNode, last, why

EXAMPLES = """
ctx why                     the last context or pack of this project
ctx why --list              the last receipts of this project; of all, where it has none
ctx why --list --limit=0    all of them
ctx why 1768906800123       one of them, by its id; of a pack also why each part is in it
ctx why agent-7             the last one of a session
"""

_PREVIEW_LENGTH = 60
_LAYERS = {"past_work": "past work", "before_edit": "before an edit"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "receipt", nargs="?", metavar="RECEIPT", help="the beginning of its id, or of a session's"
    )
    parser.add_argument("--list", action="store_true", help="list the last receipts")
    arguments.limit(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.list and options.receipt is not None:
        raise UsageError(
            "--list takes no receipt.", hint=f"`ctx why {options.receipt[:80]}` shows that one."
        )
    with opening.reading(settings, output) as memory:
        if options.list:
            output.show(last(memory, options.limit), render_list)
        else:
            output.show(why(memory, options.receipt), render)


def render(explained: ReceiptDetails) -> list[Block]:
    if explained.packed is not None:
        return _render_pack(explained, explained.packed)
    place = f" for {explained.project}" if explained.project else ""
    head = (
        f"{explained.event}{place}, {explained.at}: {_amount(explained)},"
        f" {explained.tokens:,} tokens"
    )
    return [
        Line(head),
        Line(f"Session {explained.session}, receipt {explained.receipt}"),
        _given_nodes(explained),
    ]


def _given_nodes(explained: ReceiptDetails) -> Table:
    """One row per node. Layers and sources have a column if any is unusual."""
    items = explained.items
    columns = [
        ("node", "id", [each.label for each in items]),
        ("tokens", "number", [f"{each.tokens:,}" for each in items]),
    ]
    if any(each.layer != "memory" for each in items):
        columns.append(("layer", "dim", [_LAYERS.get(each.layer, each.layer) for each in items]))
    if any(each.source not in (None, sources.USER) for each in items):
        columns.append(("source", "dim", [each.source or "" for each in items]))
    columns.append(("content", "text", [_current_text(each) for each in items]))
    if explained.frame:
        frame = {
            "node": "frame",
            "tokens": f"{explained.frame:,}",
            "content": "(everything but the nodes)",
        }
        for heading, _, cells in columns:
            cells.append(frame.get(heading, ""))
    headings, kinds, texts = zip(*columns, strict=True)
    return Table(headings, list(zip(*texts, strict=True)), kinds)


def _render_pack(explained: ReceiptDetails, packed: PackReceipt) -> list[Block]:
    place = f" for {explained.project}" if explained.project else ""
    free = packed.budget - packed.reserved
    blocks: list[Block] = [
        Line(
            f"{explained.event}{place}, {explained.at}: {_amount(explained)},"
            f" {explained.tokens:,} of {free:,} tokens"
        ),
        Line(f"Session {explained.session}, receipt {explained.receipt}"),
        Line(f"Task: {packed.task}"),
        Line(f"Confidence {pack_answers.percent(packed.confidence)}; the code: {packed.code}"),
    ]
    for chunk in packed.chunks:
        line = f"  {chunk.kind}, {chunk.tokens:,} tokens, score {chunk.score:.2f}"
        reasons = f": {pack_answers.sums(chunk.reasons)}" if chunk.reasons else ""
        blocks += [Line(""), Line(chunk.title, "heading"), Line(f"{line}{reasons}")]
        if chunk.via:
            blocks.append(Line(f"  by way of {pack_answers.path_text(chunk.via)}"))
    if packed.narrative:
        blocks += [Line(""), Line(pack_answers.recent_log_text(packed.narrative))]
    if changed := [
        (each.label, "", _current_text(each)) for each in explained.items if each.changed
    ]:
        blocks += [Line(""), Line("Changed since", "heading")]
        blocks.append(Table(("node", "", "content"), changed, ("id", "", "text")))
    if unknown := [each.label for each in explained.items if each.changed is None]:
        blocks += [Line(""), Line(f"Unknown here: {', '.join(unknown)}", "dim")]
    if packed.left_out:
        rows = [
            (each.title, f"{each.tokens:,} tokens", f"{each.score:.2f}", each.reason)
            for each in packed.left_out
        ]
        blocks += pack_answers.left_out_rows(rows, packed.more_left_out)
    return blocks


def _amount(receipt: ReceiptDetails | Receipt) -> str:
    if receipt.packed is not None:
        return count(len(receipt.packed.chunks), "chunk")
    if not receipt.items and receipt.event == "SessionStart":
        return "nothing relevant in memory"
    nodes = count(sum(1 for each in receipt.items if each.id), "node")
    files = sum(1 for each in receipt.items if not each.id)
    return f"{nodes} and {count(files, 'changed file')}" if files else nodes


def _current_text(each: ReceiptNode) -> str:
    if not each.id:
        return f"changed in a session, last at {each.updated_at}"
    if each.content is None:
        return "(deleted since)" if each.changed else "(not known here)"
    text = cut(each.content, _PREVIEW_LENGTH)
    changed = code_anchors.describe(each.anchors)
    text = f"{text} ({changed})" if changed else text
    return f"{text} (changed since)" if each.changed else text


def render_list(listed: ReceiptList) -> list[Block]:
    if not listed.receipts:
        return [Line("No receipts yet.")]
    rows = [
        (
            each.id,
            age_text(each.at),
            each.event,
            _amount(each),
            f"{each.tokens:,} tokens",
            each.project or "",
        )
        for each in listed.receipts
    ]
    headings = ("receipt", "age", "event", "nodes", "tokens", "project")
    return [Table(headings, rows, ("id", "", "")), *beyond_limit(listed.more)]
