"""`ctx task`"""

import argparse
from typing import NamedTuple

from ctx import clock
from ctx.cli import opening
from ctx.cli import options as shared
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.output import Block, Line, Output, Table, VerbatimText, age_text, count
from ctx.cli.settings import Settings
from ctx.ids import NodeId
from ctx.memory import pending
from ctx.operations import document
from ctx.operations.task import (
    ACTIVE,
    DONE,
    OPEN,
    CurrentTask,
    EndTaskResult,
    StartTaskResult,
    Task,
    belongs,
    current,
    end,
    name_of,
    start,
    word_of,
)
from ctx.workspace import Memory

CURRENT = "current"
_ORDER = (CURRENT, ACTIVE, OPEN, DONE)


class TaskEntry(NamedTuple):
    task: str
    """The word that its nodes carry: `task:<word>`."""
    name: str
    id: NodeId
    short_id: str
    number: str | None
    """`task_0043`, if it has a file."""
    state: str
    """`current`, `active`, `open` or `done`."""
    created_at: str
    started: str | None
    ended: str | None


class TaskList(NamedTuple):
    """The answer of `ctx task list`."""

    tasks: tuple[TaskEntry, ...]
    """The current one first, then those that are active, open and done; the newest first."""
    done: int
    """Tasks that are done and left out."""


EXAMPLES = """
ctx task start "Implement OAuth"    working nodes now carry task:implement-oauth
ctx task                            the current task
ctx task list                       all tasks that are not done, with their state
ctx task end --summarize            end it, and add a summary
"""

ALONE = "current"

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
    shared.complete_with(name, "task")
    shared.session_option(begin)
    finish = shared.add_subcommand(
        group, "end", "end a task: archive its working nodes, keep its decisions", END_EXAMPLES
    )
    name = finish.add_argument("name", nargs="*", metavar="NAME", help="(default: the current one)")
    shared.complete_with(name, "task")
    shared.flag(finish, "--summarize", "add a summary of its nodes")
    shared.session_option(finish)
    shared.add_subcommand(group, "current", "show the current task", "ctx task current")
    listing = shared.add_subcommand(
        group, "list", "list tasks and their state", "ctx task list\nctx task list --all"
    )
    shared.flag(listing, "--all", "also those that are done")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.subcommand == "current":
        with opening.reading(settings, output) as memory:
            output.show(current(memory), render_current)
        return
    if options.subcommand == "list":
        with opening.reading(settings, output) as memory:
            output.show(list_tasks(memory, include_done=options.all), render_list)
        return
    name = " ".join(options.name)
    with opening.adding(settings, output) as memory:
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
            opening.note_compaction(compacted, output)


def render_started(started: StartTaskResult) -> list[Block]:
    blocks: list[Block] = [Line(f"Started: {_task_label(started.task)}")]
    if started.replaced:
        blocks.append(
            Line(f"It replaces task:{started.replaced}; agents are not shown nodes of that task.")
        )
    if started.joined:
        blocks.append(Line(f"{count(len(started.joined), 'working node')} added to it."))
    return blocks


def render_ended(ended: EndTaskResult) -> list[Block]:
    blocks: list[Block] = [
        Line(f"Ended: {_task_label(ended.task)}"),
        Line(
            f"{count(len(ended.archived), 'node')} archived,"
            f" {len(ended.promoted):,} kept as reference."
        ),
    ]
    if ended.summary:
        blocks += [
            Line(f"Created summary: {ended.summary_short_id}"),
            VerbatimText(f"{ended.summary.content}\n"),
        ]
    return blocks


def render_current(shown: CurrentTask) -> list[Block]:
    task = shown.task
    if task is None:
        return [Line("No current task.")]
    age = f", started {age_text(task.started, clock.now_ms())} ago" if task.started else ""
    return [Line(f"{_task_label(task)}{age}, {count(shown.working, 'working node')}")]


def render_list(found: TaskList) -> list[Block]:
    now = clock.now_ms()
    rows = [
        [each.short_id, each.number or "", each.state, age_text(each.created_at, now), each.name]
        for each in found.tasks
    ]
    headings, kinds = ["id", "number", "state", "age", "task"], ["id", "", "type", "age", "text"]
    if not any(each.number for each in found.tasks):
        # Only a task of a project has a number.
        for cells in (headings, kinds, *rows):
            del cells[1]
    blocks: list[Block] = [Table(headings, rows, kinds)]
    if found.done:
        done = f"{found.done:,} done (--all)"
        blocks.append(Line(f"  … and {done}" if rows else f"No open tasks; {done}.", "dim"))
    elif not rows:
        blocks.append(Line('No tasks. To start one: `ctx task start "…"`'))
    return blocks


def _task_label(task: Task) -> str:
    return f"{task.short_id} {task.name} (task:{task.task})" if task.id else f"task:{task.task}"


def list_tasks(memory: Memory, *, include_done: bool = False) -> TaskList:
    """The tasks of this project, or of none."""
    graph = memory.graph
    current = pending.current_task(memory.user, memory.place.task_key)
    nodes = [
        node for node in graph.nodes(graph.of_type("task")) if belongs(node.tags, memory.project)
    ]
    shown = graph.shown([node.id for node in nodes])
    found = []
    for node in sorted(nodes, key=lambda node: node.id, reverse=True):
        path = document.file_of(node)
        word = word_of(node)
        status = node.metadata.get("status")
        state = CURRENT if word == current else status if status in (ACTIVE, DONE) else OPEN
        found.append(
            TaskEntry(
                word,
                name_of(node),
                node.id,
                shown[node.id],
                document.document_name(path) if path else None,
                state,
                node.created_at,
                node.metadata.get("started"),
                node.metadata.get("ended"),
            )
        )
    found.sort(key=lambda each: _ORDER.index(each.state))
    listed = [each for each in found if include_done or each.state != DONE]
    return TaskList(tuple(listed), len(found) - len(listed))
