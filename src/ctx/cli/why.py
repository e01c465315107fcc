"""`ctx why`"""

import argparse
from collections.abc import Mapping

from ctx.cli import arguments, opening, pack_answers
from ctx.cli.options import flag
from ctx.cli.output import Block, Line, Output, Table, age_text, beyond_limit, count
from ctx.cli.settings import Settings
from ctx.cli.terminal import cut
from ctx.errors import UsageError
from ctx.memory import code_anchors
from ctx.memory.receipts import PackReceipt
from ctx.operations.why import (
    ReceiptDetails,
    ReceiptList,
    ReceiptNode,
    chunk_kind,
    counts,
    counts_text,
    last,
    why,
)

EXAMPLES = """
ctx why                     what a session of this project was last given
ctx why --list              the last receipts of this project; of all, where it has none
ctx why --list --limit=0    all of them
ctx why 1768906800123       one of them, by its id; of a pack also why each part is in it
ctx why agent-7             the last one of a session
ctx why cli                 your own last pack
"""

_PREVIEW_LENGTH = 78


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "receipt", nargs="?", metavar="RECEIPT", help="the beginning of its id, or of a session's"
    )
    flag(parser, "--list", "list the last receipts")
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
    blocks: list[Block] = [
        Line(f"{_head(explained)}, {explained.tokens:,} tokens"),
        Line(f"Session {explained.session}, receipt {explained.receipt}"),
        Line(""),
    ]
    for each in explained.items:
        blocks += [Line(_current_text(each)), Line(f"  {_about(each)}", "dim")]
    if explained.frame:
        blocks.append(Line(f"Headings and instructions: {explained.frame:,} tokens", "dim"))
    return blocks


def _head(explained: ReceiptDetails) -> str:
    place = f" for {explained.project}" if explained.project else ""
    event = "pack" if explained.packed else explained.event
    return f"{event}{place}, {explained.at}: {_amount(explained.event, explained.counts)}"


def _about(each: ReceiptNode) -> str:
    """What it is, who said it, what it cost, and why it was given."""
    what = each.label if each.id or each.content is None else each.kind
    parts = [what, each.source, count(each.tokens, "token")]
    return f"{', '.join(filter(None, parts))}: {each.reason}"


def _render_pack(explained: ReceiptDetails, packed: PackReceipt) -> list[Block]:
    free = packed.budget - packed.reserved
    blocks: list[Block] = [
        Line(f"{_head(explained)}, {explained.tokens:,} of {free:,} tokens"),
        Line(f"Session {explained.session}, receipt {explained.receipt}"),
        Line(f"Task: {packed.task}"),
        Line(f"Confidence {pack_answers.percent(packed.confidence)}; the code: {packed.code}"),
    ]
    for chunk in packed.chunks:
        line = f"  {chunk_kind(chunk.kind)}, {chunk.tokens:,} tokens, score {chunk.score:.2f}"
        reasons = f": {pack_answers.sums(chunk.reasons)}" if chunk.reasons else ""
        blocks += [Line(""), Line(cut(chunk.title, _PREVIEW_LENGTH), "heading")]
        blocks.append(Line(f"{line}{reasons}"))
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


def _amount(event: str, of_kinds: Mapping[str, int]) -> str:
    if not of_kinds and event == "SessionStart":
        return "nothing relevant in memory"
    return counts_text(of_kinds) or "0 nodes"


def _current_text(each: ReceiptNode) -> str:
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
            _amount(each.event, counts(each)),
            f"{each.tokens:,} tokens",
            each.project or "",
        )
        for each in listed.receipts
    ]
    headings = ("receipt", "age", "event", "content", "tokens", "project")
    return [Table(headings, rows, ("id", "", "")), *beyond_limit(listed.more)]
