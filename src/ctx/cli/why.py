"""`ctx why`"""

import argparse

from ctx.cli import arguments, opening, pack_answers
from ctx.cli.options import completing
from ctx.cli.output import Block, Line, Output, Table, count, since
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.receipts import PackReceipt, Receipt
from ctx.operations.why import GivenNode, ReceiptDetails, ReceiptList, last, why

EXAMPLES = """
ctx why                     the last context or pack of this project
ctx why --list              the last receipts of this project; of all, where it has none
ctx why --list --limit=0    all of them
ctx why 1768906800123       one of them, by its id; of a pack also why each part is in it
ctx why agent-7             the last one of a session
"""

_GLANCE = 60
_LAYERS = {"past_work": "past work"}


def configure(parser: argparse.ArgumentParser) -> None:
    receipt = parser.add_argument(
        "receipt", nargs="?", metavar="RECEIPT", help="the beginning of its id, or of a session's"
    )
    completing(receipt, "receipt")
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
    rows = [
        (each.label, f"{each.tokens:,}", _LAYERS.get(each.layer, each.layer), _now(each))
        for each in explained.items
    ]
    if explained.frame:
        rows.append(("frame", f"{explained.frame:,}", "", "(everything but the nodes)"))
    table = Table(("node", "tokens", "layer", "content"), rows, ("id", "number", "dim", "text"))
    if all(each.layer == "memory" for each in explained.items):
        # Usually there is only one.
        short = [(label, cost, told) for label, cost, _, told in rows]
        table = Table(("node", "tokens", "content"), short, ("id", "number", "text"))
    return [
        Line(head),
        Line(f"Session {explained.session}, receipt {explained.receipt}"),
        table,
    ]


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
        told = f"  {chunk.kind}, {chunk.tokens:,} tokens, score {chunk.score:.2f}"
        reasons = f": {pack_answers.sums(chunk.reasons)}" if chunk.reasons else ""
        blocks += [Line(""), Line(chunk.title, "heading"), Line(f"{told}{reasons}")]
        if chunk.via:
            blocks.append(Line(f"  by way of {pack_answers.way(chunk.via)}"))
    if packed.narrative:
        blocks += [Line(""), Line(pack_answers.lately(packed.narrative))]
    if changed := [(each.label, "", _now(each)) for each in explained.items if each.changed]:
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


def _amount(given: ReceiptDetails | Receipt) -> str:
    if given.packed is not None:
        return count(len(given.packed.chunks), "chunk")
    if not given.items and given.event == "SessionStart":
        return "nothing relevant in memory"
    nodes = count(sum(1 for each in given.items if each.id), "node")
    files = sum(1 for each in given.items if not each.id)
    return f"{nodes} and {count(files, 'changed file')}" if files else nodes


def _now(each: GivenNode) -> str:
    if not each.id:
        return f"changed in a session, last at {each.updated_at}"
    if each.content is None:
        return "(deleted since)" if each.changed else "(not known here)"
    line = " ".join(each.content[:200].split())
    text = line if len(line) <= _GLANCE else f"{line[: _GLANCE - 1]}…"
    return f"{text} (changed since)" if each.changed else text


def render_list(found: ReceiptList) -> list[Block]:
    if not found.receipts:
        return [Line("No receipts yet.")]
    rows = [
        (
            each.id,
            since(each.at),
            each.event,
            _amount(each),
            f"{each.tokens:,} tokens",
            each.project or "",
        )
        for each in found.receipts
    ]
    return [Table(("receipt", "age", "event", "nodes", "tokens", "project"), rows, ("id", "", ""))]
