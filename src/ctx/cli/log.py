"""`ctx log`"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from ctx import clock
from ctx.cli import arguments
from ctx.cli.opening import open_workspace
from ctx.cli.options import flag
from ctx.cli.output import MOST_ROWS, Block, Line, Markdown, Output, count
from ctx.cli.settings import Settings
from ctx.errors import CtxError, UsageError
from ctx.ids import ObjectId, SessionId, short
from ctx.memory import history
from ctx.memory.history import IndexedCommit
from ctx.objects import object_types as objects
from ctx.objects import trees
from ctx.objects.object_store import read_typed
from ctx.objects.repository import Repository
from ctx.project import changelog, project_index_state, staged_private, staging, tool_snapshots
from ctx.workspace import Workspace


class LogEntry(NamedTuple):
    """A commit and what it changed."""

    commit: ObjectId
    parents: tuple[ObjectId, ...]
    is_head: bool
    time: str
    author: str
    session: str
    message: str
    changes: tuple[str, ...]
    """What changed in memory, in a line for each thing."""
    files: tuple[str, ...]
    """The files of the project whose content came or changed with it."""
    documents: tuple[str, ...]
    """The narrative files that it holds."""


class StagedLog(NamedTuple):
    """What a session has staged since its last commit."""

    session: SessionId
    time: str
    steps: int
    changes: tuple[str, ...]
    files: tuple[str, ...]


class Log(NamedTuple):
    """The answer of `ctx log`, newest first."""

    staged: tuple[StagedLog, ...]
    commits: tuple[LogEntry, ...]
    more: int
    """How many older commits there are."""


class LogDay(NamedTuple):
    """The answer of `ctx log --day`."""

    day: str
    text: str
    """The log files of that day, joined."""


EXAMPLES = """
ctx log                       what is staged, and the last commits
ctx log --oneline --limit=0   all of them, a line each
ctx log --day 2026-01-20      the log of a day
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.limit(parser)
    flag(parser, "--oneline", "a line for each commit")
    parser.add_argument("--day", metavar="YYYY-MM-DD", help="the log of a day (UTC)")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    workspace = open_workspace(settings, output)
    if options.day:
        output.show(day(workspace, options.day), render_day)
        return
    shown = log(workspace, options.limit)
    output.show_long(shown, render_lines if options.oneline else render)


def render_day(day: LogDay) -> list[Block]:
    return [Markdown(day.text)]


def render_lines(log: Log) -> list[Block]:
    blocks: list[Block] = [
        Line(f"staged {each.time[:10]} {each.session}: {_staged_counts(each)}")
        for each in log.staged
    ]
    for each in log.commits:
        title = each.message.partition("\n")[0]
        mark = " (head)" if each.is_head else ""
        blocks.append(Line(f"{short(each.commit)} {each.time[:10]} {title}{mark}"))
    return blocks + _older_commits_line(log)


def render(log: Log) -> list[Block]:
    blocks: list[Block] = []
    for staged in log.staged:
        blocks.append(Line(f"staged in session {staged.session}", "heading"))
        blocks.append(Line(f"date:    {staged.time}"))
        blocks += [*_changes(staged), Line("")]
    for each in log.commits:
        mark = " (head)" if each.is_head else ""
        blocks.append(Line(f"commit {short(each.commit)}{mark}", "heading"))
        if len(each.parents) > 1:
            blocks.append(Line(f"joins:   {' '.join(map(short, each.parents))}"))
        blocks += [Line(f"author:  {each.author}")] if each.author else []
        blocks += [Line(f"date:    {each.time}"), Line(f"session: {each.session}"), Line("")]
        blocks += [Line(f"    {line}".rstrip()) for line in each.message.splitlines()]
        blocks += [*_changes(each), Line("")]
    return blocks + _older_commits_line(log)


def _changes(what: LogEntry | StagedLog) -> list[Block]:
    lines = [*what.changes, *(f"= {path}" for path in what.files)]
    if not lines:
        return []
    more = len(lines) - MOST_ROWS
    blocks: list[Block] = [Line(""), *(Line(f"    {line}") for line in lines[:MOST_ROWS])]
    return blocks + ([Line(f"    … and {more:,} more", "dim")] if more > 0 else [])


def _staged_counts(staged: StagedLog) -> str:
    counts = [(len(staged.changes), "change"), (len(staged.files), "file")]
    return ", ".join(count(number, noun) for number, noun in counts if number) or "nothing new"


def _older_commits_line(log: Log) -> list[Block]:
    return [Line(f"… and {count(log.more, 'older commit')} (--limit)", "dim")] if log.more else []


def log(workspace: Workspace, limit: int) -> Log:
    connection = workspace.memory.graph.connection
    found = history.commits(connection)
    heads = {head.id for head in workspace.repository.current()}
    shown = list(found.values())[: limit or None]
    return Log(
        tuple(_staged_logs(workspace)),
        tuple(_entry(workspace, commit, commit.id in heads) for commit in shown),
        len(found) - len(shown),
    )


def day(workspace: Workspace, date: str) -> LogDay:
    from ctx.narrative import log_files

    ms = clock.parse_iso(date)
    if ms is None or clock.iso(ms)[:10] != date:
        raise UsageError(f"{date[:40]!r} is not a day.", hint="Write it as 2026-01-20.")
    folder = workspace.project.narrative
    if date not in (days := log_files.days(folder)):
        newest = max(days, default=None)
        hint = (
            f"The last day with an entry is {newest}."
            if newest
            else "There are no log entries yet."
        )
        raise UsageError(f"There is no log of {date}.", hint=hint)
    return LogDay(date, log_files.day(workspace.memory.narrative, date))


def _staged_logs(workspace: Workspace) -> Iterator[StagedLog]:
    graph, repository = workspace.memory.graph, workspace.repository
    for name in history.sessions(graph.connection):
        session = SessionId(name)
        steps = staging.chain(repository, session)
        if steps:
            unseen = staged_private.records_to_withhold(graph.connection, session)
            staged = history.staged_by(graph.connection, session)
            visible = [record for record in staged if record.id not in unseen]
            yield StagedLog(
                session,
                clock.iso(steps[0].work.created_at * 1000),
                len(steps),
                changelog.describe_changes(graph, visible, unseen).lines,
                tuple(sorted(staging.files(repository, steps))),
            )


def _entry(workspace: Workspace, commit: IndexedCommit, is_head: bool) -> LogEntry:
    graph = workspace.memory.graph
    is_given = commit.id not in project_index_state.withheld_by(graph.connection).objects
    rows = graph.connection.execute(
        "SELECT path FROM snapshots WHERE commit_id = ? ORDER BY path", (commit.id,)
    )
    return LogEntry(
        ObjectId(commit.id),
        tuple(map(ObjectId, commit.parents)),
        is_head,
        clock.iso(commit.timestamp_unix * 1000),
        commit.author,
        commit.session,
        commit.message,
        (
            *changelog.describe_changes(graph, history.records_in(graph.connection, commit)).lines,
            *(_surveys(workspace.repository, commit) if is_given else ()),
        ),
        _files(workspace.repository, commit) if is_given else (),
        tuple(row[0] for row in rows),
    )


def _surveys(repository: Repository, commit: IndexedCommit) -> list[str]:
    """What it holds besides, of what tools found out."""
    try:
        own = read_typed(repository.objects, ObjectId(commit.id), objects.Commit)
    except CtxError:
        return []
    return tool_snapshots.ToolSnapshots(own.cargo_snapshot, (), own.code_snapshot).lines


def _files(repository: Repository, commit: IndexedCommit) -> tuple[str, ...]:
    """The files that are not what they are in any of its parents."""
    try:
        ids = [ObjectId(each) for each in (commit.id, *commit.parents)]
        own, *before = (read_typed(repository.objects, id, objects.Commit).root_tree for id in ids)
        roots: list[ObjectId | None] = [*before] or [None]
        parts = [trees.differing_paths(repository.objects, root, own) for root in roots]
    except CtxError:
        # History may end here, as in a shallow clone. The rest is shown.
        return ()
    return tuple(sorted(set.intersection(*parts)))
