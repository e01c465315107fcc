"""`ctx task`"""

import argparse

from ctx import clock
from ctx.cli import opening
from ctx.cli import options as shared
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.output import Block, Line, Output, Verbatim, count, since
from ctx.cli.settings import Settings
from ctx.operations.task import (
    CurrentTask,
    EndTaskResult,
    StartTaskResult,
    Task,
    current,
    end,
    start,
)

EXAMPLES = """
ctx task start "Implement OAuth"    working nodes now carry task:implement-oauth
ctx task                            the current task
ctx task end --summarize            end it, and add a summary
"""

START_EXAMPLES = """
ctx task start "Implement OAuth"    a new task, or the one of that name
ctx task start implement-oauth      the same, by its tag
ctx task start task_0042            by its number in the project
ctx task start 01M7ESYZ1SB4         by its node
"""

END_EXAMPLES = """
ctx task end                        the current task
ctx task end implement-oauth        another one
ctx task end --summarize            and add a summary
"""


def prepare(words: list[str]) -> list[str]:
    """`ctx task` alone is `ctx task current`."""
    only_options = not words or (words[0][0] == "-" and words[0] not in ("-h", "--help"))
    return ["current", *words] if only_options else words


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    begin = shared.add_subcommand(
        group,
        "start",
        "start a task, or switch to it",
        START_EXAMPLES,
    )
    name = begin.add_argument(
        "name", nargs="+", metavar="NAME", help="its name, its tag, its number or its id"
    )
    shared.completing(name, "task")
    shared.session_option(begin)
    finish = shared.add_subcommand(
        group, "end", "end a task: archive its working nodes, keep its decisions", END_EXAMPLES
    )
    name = finish.add_argument("name", nargs="*", metavar="NAME", help="(default: the current one)")
    shared.completing(name, "task")
    finish.add_argument("--summarize", action="store_true", help="add a summary of its nodes")
    shared.session_option(finish)
    shared.add_subcommand(group, "current", "show the current task", "ctx task current")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.subcommand == "current":
        with opening.reading(settings, output) as memory:
            output.show(current(memory), render_current)
        return
    name = " ".join(options.name)
    with opening.writing(settings, output) as memory:
        if options.subcommand == "start":
            started = start(memory, name)
            output.show(started, render_started)
            warn_of_redaction(started.redacted, output)
            compacted = started.compacted
        else:
            ended = end(memory, name or None, summarize=options.summarize)
            output.show(ended, render_ended)
            compacted = ended.compacted
        if compacted:
            opening.tell(compacted, output)


def render_started(started: StartTaskResult) -> list[Block]:
    blocks: list[Block] = [Line(f"Started: {_named(started.task)}")]
    if started.replaced:
        blocks.append(
            Line(f"It replaces task:{started.replaced}; agents are not shown nodes of that task.")
        )
    if started.joined:
        blocks.append(Line(f"{count(len(started.joined), 'working node')} added to it."))
    return blocks


def render_ended(ended: EndTaskResult) -> list[Block]:
    blocks: list[Block] = [
        Line(f"Ended: {_named(ended.task)}"),
        Line(
            f"{count(len(ended.archived), 'node')} archived,"
            f" {len(ended.promoted):,} kept as reference."
        ),
    ]
    if ended.summary:
        blocks += [
            Line(f"Created summary: {ended.summary_short_id}"),
            Verbatim(f"{ended.summary.content}\n"),
        ]
    return blocks


def render_current(shown: CurrentTask) -> list[Block]:
    task = shown.task
    if task is None:
        return [Line("No current task.")]
    age = f", started {since(task.started, clock.now_ms())} ago" if task.started else ""
    return [Line(f"{_named(task)}{age}, {count(shown.working, 'working node')}")]


def _named(task: Task) -> str:
    return f"{task.short_id} {task.name} (task:{task.task})" if task.id else f"task:{task.task}"
