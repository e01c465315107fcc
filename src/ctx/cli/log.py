"""`ctx log`"""

import argparse

from ctx.cli import arguments
from ctx.cli.opening import open_workspace
from ctx.cli.output import MOST_ROWS, Block, Line, Markdown, Output, count
from ctx.cli.settings import Settings
from ctx.ids import short
from ctx.operations.log import Log, LogDay, LogEntry, StagedLog, day, log

EXAMPLES = """
ctx log                       what is staged, and the last commits
ctx log --oneline --limit=0   all of them, a line each
ctx log --day 2026-01-20      the log of a day
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.limit(parser)
    parser.add_argument("--oneline", action="store_true", help="a line for each commit")
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
