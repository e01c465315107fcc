"""`ctx context`"""

import argparse
import os

from ctx import ids
from ctx.cli import arguments, opening
from ctx.cli.options import flag
from ctx.cli.output import Block, Line, Markdown, Output, Table
from ctx.cli.settings import Settings
from ctx.config import schema, setting
from ctx.context.layer_lines import cut
from ctx.errors import UsageError
from ctx.markdown import flat
from ctx.operations.context import (
    ContextLayer,
    ContextResult,
    Options,
    context,
    find_session,
    prompt_context,
)
from ctx.operations.context_items import GivenItem, OmittedItem
from ctx.workspace import for_agents

_LONGEST_TEXT = 90
_PINNED = ", without pinned nodes"

EXAMPLES = """
ctx context                        the context of a session that starts here now
ctx context --explain              each item with its reason, and what was left out
ctx context --budget=500           the same within another budget
ctx context --source=compact --session=5dd6    the context after a compaction
ctx context --prompt "why does refresh fail?"  what a session gets with this first prompt
ctx context --project-path=../shop --format json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--project-path", metavar="DIR", help="where the session starts (default: here)"
    )
    parser.add_argument(
        "--session",
        # Not `session`: that is the session that a command joins.
        dest="named",
        metavar="ID",
        default="",
        help="the session that continues: the beginning of its id",
    )
    arguments.number(parser, "--budget", "the token budget")
    parser.add_argument(
        "--source",
        choices=("startup", "resume", "compact"),
        default="startup",
        help="why the session starts: new, resumed, or after a compaction",
    )
    parser.add_argument(
        "--prompt", metavar="TEXT", help="what a session gets with TEXT as its first prompt"
    )
    flag(parser, "--explain", "show the layers instead of the text")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    settings.refuse_server()
    if options.source != "startup" and not options.named:
        raise UsageError(
            f"--source={options.source} needs --session.",
            hint="`ctx sessions list` shows ids.",
        )
    if options.source == "startup" and options.named:
        raise UsageError(
            "--session needs --source=resume or --source=compact.",
            hint="Add one of them.",
        )
    if options.prompt is not None and (options.named or options.budget is not None):
        raise UsageError(
            "--prompt cannot be combined with --session or --budget.",
            hint="`context.prompt_budget` is its budget: see `ctx config explain`.",
        )
    if options.budget is not None:
        # It has the same limits as the setting.
        known = schema.setting_named("context.budget")
        if setting.accept(known, options.budget) is None:
            raise UsageError(f"--budget must be {known.takes}, not {options.budget}.")
    folder = os.path.abspath(options.project_path) if options.project_path else settings.folder
    if not os.path.isdir(folder):
        raise UsageError(f"{options.project_path} is not a folder.")
    with opening.reading(settings, output) as memory:
        opening.note_conflicts(memory, output)
        session = find_session(memory, options.named) if options.named else ""
        joined = ids.session_id(session) if session else memory.session
        with for_agents(memory, folder, joined, "cli") as there:
            if options.prompt is not None:
                shown = prompt_context(there, options.prompt)
            else:
                shown = context(there, Options(session, options.budget, options.source))
    output.show(shown, _explanation if options.explain else _text)


def _text(shown: ContextResult) -> list[Block]:
    if not shown.text and shown.source == "prompt":
        return [Line("No earlier session said anything about this.")]
    if not shown.text:
        return [Line("Nothing new since this session last got a context.")]
    return [Markdown(shown.text)]


def _explanation(shown: ContextResult) -> list[Block]:
    where = f" for {shown.project}" if shown.project else ""
    parts = f" in {shown.parts} parts" if shown.parts > 1 else ""
    state = "ready" if shown.is_ready else f"composed in {shown.build_ms} ms"
    rows = [
        (
            each.name,
            f"{each.tokens:,}",
            f"{each.shown:,}",
            _omitted_count(each),
            each.problem or each.made_of,
        )
        for each in shown.layers
    ]
    frame = shown.tokens - sum(each.tokens for each in shown.layers)
    rows.append(("frame", f"{max(0, frame):,}", "", "", "headings and instructions"))
    return [
        Line(
            f"{shown.source}{where}: {shown.tokens:,} tokens{parts}, {state}."
            f" The budget is {shown.budget:,}{_PINNED if shown.source != 'prompt' else ''}."
        ),
        Table(
            ("layer", "tokens", "shown", "left out", "made of"),
            rows,
            ("id", "number", "number", "number", "text"),
        ),
        *(line for each in shown.items for line in _item_lines(each)),
        *([Line(""), Line("Left out, the next ones first:")] if shown.omitted else []),
        *(line for each in shown.omitted for line in _item_lines(each)),
    ]


def _item_lines(each: GivenItem | OmittedItem) -> list[Line]:
    text = cut(flat(each.text).removeprefix("- "), _LONGEST_TEXT)
    return [Line(f"{each.tokens:5,}  {text}"), Line(f"       {each.reason}")]


def _omitted_count(layer: ContextLayer) -> str:
    if not layer.left_out:
        return ""
    return f"{layer.left_out:,}{'+' if layer.more_left_out else ''}"
