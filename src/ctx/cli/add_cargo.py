"""`ctx add cargo`: its options are in `add.py`."""

import argparse
from collections import Counter
from typing import NamedTuple

from ctx.cli import commit as commit_command
from ctx.cli.opening import open_to_write
from ctx.cli.output import Block, Line, Output, count, listing
from ctx.cli.settings import Settings
from ctx.ids import CLI_SESSION
from ctx.operations import commit
from ctx.operations.add_cargo import AddCargoResult, add_cargo


class AddCargoCommitResult(NamedTuple):
    """The answer of `ctx add cargo --commit`."""

    cargo: AddCargoResult
    commit: commit.CommitResult


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.message is not None:
        commit.require_message(options.message)
    workspace = open_to_write(settings, output)
    added = add_cargo(workspace)
    if options.commit or options.message:
        message = options.message or f"Add {count(len(added.packages), 'package')}"
        made = commit.commit(workspace, commit.Options(message))
        output.show(AddCargoCommitResult(added, made), render_both)
        commit_command.print_details(made, output)
    else:
        output.show(added, render)
    for path, reason in added.problems:
        output.warn(f"{path} {reason}")
    if added.parked:
        output.warn(f"Work staged on another branch is now in session {added.parked}.")
    if added.work_commit and not (options.commit or options.message):
        session = "" if added.session == CLI_SESSION else f" --session {added.session}"
        output.note(f"Next: ctx commit -m MESSAGE{session}")


def render_both(both: AddCargoCommitResult) -> list[Block]:
    return [*render(both.cargo), *commit_command.render(both.commit)]


def render(added: AddCargoResult) -> list[Block]:
    counts = f"{count(len(added.packages), 'package')}, {count(added.edges, 'edge')}"
    if added.work_commit is None:
        return [Line(f"Unchanged since the last snapshot: {counts}.")]
    needs = Counter(need.from_id for need in added.dependencies)
    rows = [
        (
            package.name,
            package.version,
            package.manifest,
            count(len(package.targets), "target"),
            count(needs[package.id], "dependency", "dependencies"),
        )
        for package in added.packages
    ]
    headings = ("package", "version", "manifest", "targets", "dependencies")
    return [
        Line(f"Staged a cargo snapshot in session {added.session}: {counts}."),
        *listing(headings, rows),
    ]
