"""`ctx why`"""

import argparse
from collections.abc import Mapping
from itertools import count as count_from
from typing import TYPE_CHECKING

from ctx.cli import arguments, opening, pack_answers
from ctx.cli.options import flag
from ctx.cli.output import Block, Line, Output, Table, age_text, beyond_limit, count
from ctx.cli.settings import Settings
from ctx.cli.terminal import cut
from ctx.errors import UsageError
from ctx.ids import short
from ctx.memory import code_anchors
from ctx.memory.receipts import PackReceipt
from ctx.operations.verdicts import Verdict
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

if TYPE_CHECKING:
    from ctx.operations.judge import JudgeResult

EXAMPLES = """
ctx why                     what a session of this project was last given
ctx why --list              the last receipts of this project; of all, where it has none
ctx why --list --limit=0    all of them
ctx why 1768906800123       one of them, by its id; of a pack also why each part is in it
ctx why agent-7             the last one of a session
ctx why cli                 your own last pack
ctx why --useless 3         item 3 only with a prompt that names its subject
ctx why --wrong 2 --instead "The API listens on port 9090."
"""

_PREVIEW_LENGTH = 78


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "receipt", nargs="?", metavar="RECEIPT", help="the beginning of its id, or of a session's"
    )
    flag(parser, "--list", "list the last receipts")
    arguments.limit(parser)
    parser.add_argument(
        "--wrong", metavar="ITEM", help="never give an item again: its number, label or id"
    )
    parser.add_argument("--instead", metavar="TEXT", help="the right text, with --wrong")
    parser.add_argument(
        "--useless", metavar="ITEM", help="give an item only if a prompt names its subject"
    )


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.list and options.receipt is not None:
        raise UsageError(
            "--list takes no receipt.", hint=f"`ctx why {options.receipt[:80]}` shows that one."
        )
    if options.wrong is not None or options.useless is not None:
        _judge(options, settings, output)
        return
    if options.instead is not None:
        raise UsageError("--instead belongs to --wrong.")
    with opening.reading(settings, output) as memory:
        if options.list:
            output.show(last(memory, options.limit), render_list)
        else:
            output.show(why(memory, options.receipt), render)


def _judge(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    from ctx.operations import judge

    if options.list or None not in (options.wrong, options.useless):
        raise UsageError("--list, --wrong and --useless cannot be used together.")
    if options.instead is not None and options.wrong is None:
        raise UsageError("--instead belongs to --wrong.")
    with opening.writing(settings, output) as memory:
        explained = why(memory, options.receipt)
        named = options.useless if options.wrong is None else options.wrong
        item = judge.find_item(explained, named)
        instead = options.instead or ""
        if options.wrong is None:
            done = judge.judge(memory, explained, item, "useless")
        else:
            has_text = options.instead is not None or (item.verdict and item.verdict.instead)
            if not has_text and output.is_interactive and output.is_for_people:
                output.note(cut(item.content or "", _PREVIEW_LENGTH))
                instead = output.ask("What is right instead? (Enter for nothing)")
            done = judge.judge(memory, explained, item, "wrong", instead)
    output.show(done, render_verdict)
    if done.change:
        output.note(f"To undo: `ctx undo {done.change}`")


def render_verdict(done: "JudgeResult") -> list[Block]:
    lead = "Marked" if done.change else "Already marked"
    blocks: list[Block] = [Line(f"{lead} as {done.verdict}: {cut(done.text, _PREVIEW_LENGTH)}")]
    if done.instead:
        blocks.append(Line(f"Right is {short(done.instead)}."))
    elif done.verdict == "wrong":
        blocks.append(Line("The right text, if there is one: add --instead TEXT.", "dim"))
    return blocks


def render(explained: ReceiptDetails) -> list[Block]:
    if explained.packed is not None:
        return _render_pack(explained, explained.packed)
    blocks: list[Block] = [
        Line(f"{_head(explained)}, {explained.tokens:,} tokens"),
        Line(f"Session {explained.session}, receipt {explained.receipt}"),
        Line(""),
    ]
    width = len(str(len(explained.items)))
    for number, each in enumerate(explained.items, 1):
        blocks.append(Line(f"{number:>{width}}  {_current_text(each)}"))
        blocks.append(Line(f"{'':{width}}  {_about(each)}", "dim"))
        if each.verdict:
            blocks.append(Line(f"{'':{width}}  {_verdict_text(each.verdict)}"))
    if explained.frame:
        blocks.append(Line(f"Headings and instructions: {explained.frame:,} tokens", "dim"))
    return blocks


def _head(explained: ReceiptDetails) -> str:
    place = f" for {explained.project}" if explained.project else ""
    event = "pack" if explained.packed else explained.event
    return f"{event}{place}, {explained.at}: {_amount(explained.event, explained.counts)}"


def _verdict_text(verdict: Verdict) -> str:
    right = f"; right is {short(verdict.instead)}" if verdict.instead else ""
    return f"You marked this as {verdict.word}{right}. To undo: `ctx undo {verdict.change}`"


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
    # Only nodes can be marked: a file has the text that it has.
    numbers = count_from(1)
    for chunk in packed.chunks:
        number = f"{next(numbers)}  " if chunk_kind(chunk.kind) == "node" else ""
        line = f"  {chunk_kind(chunk.kind)}, {chunk.tokens:,} tokens, score {chunk.score:.2f}"
        reasons = f": {pack_answers.sums(chunk.reasons)}" if chunk.reasons else ""
        blocks += [Line(""), Line(f"{number}{cut(chunk.title, _PREVIEW_LENGTH)}", "heading")]
        blocks.append(Line(f"{line}{reasons}"))
        if chunk.via:
            blocks.append(Line(f"  by way of {pack_answers.path_text(chunk.via)}"))
    for place, each in enumerate(explained.items, 1):
        if each.verdict:
            blocks += [Line(""), Line(f"{place}  {_verdict_text(each.verdict)}")]
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


def _verdicts_text(of_words: Mapping[str, int]) -> str:
    words = ", ".join(f"{number:,} {word}" for word, number in of_words.items())
    return f" ({words})" if words else ""


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
            _amount(each.event, counts(each)) + _verdicts_text(listed.verdicts.get(each.id, {})),
            f"{each.tokens:,} tokens",
            each.project or "",
        )
        for each in listed.receipts
    ]
    headings = ("receipt", "age", "event", "content", "tokens", "project")
    return [Table(headings, rows, ("id", "", "")), *beyond_limit(listed.more)]
