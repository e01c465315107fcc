"""`ctx add code` and `ctx add rust`: their options are in `add.py`."""

import argparse
from typing import NamedTuple

from ctx.cli import code, opening
from ctx.cli import commit as commit_command
from ctx.cli.output import Block, Line, Output, count, listing
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.ids import CLI_SESSION
from ctx.operations import add_code, commit
from ctx.operations.add_code import AddCodeResult, Options, StagedSnapshot

_MOST_NAMED = 10


class AddCodeCommitResult(NamedTuple):
    """The answer of `ctx add code --snapshot --commit`."""

    code: AddCodeResult
    commit: commit.CommitResult


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    wants_commit = options.commit or options.message is not None
    if wants_commit and not options.snapshot:
        raise UsageError("--commit needs --snapshot.", hint="Add --snapshot.")
    if options.message is not None:
        commit.require_message(options.message)
    language = "rust" if options.subcommand == "rust" else None
    wanted = Options(options.files, settings.folder, language)
    # Checked before anything is read: a snapshot needs a project store.
    workspace = opening.open_to_write(settings, output) if options.snapshot else None
    codebase = code.codebase_for_command(settings)
    with output.progress("Reading the code") as tick:
        added = add_code.add_code(codebase, wanted, tick)
    if workspace is None:
        output.show(added, render)
        _print_details(added, output)
        return
    with output.progress("Taking the snapshot") as tick:
        taken = add_code.snapshot(workspace, codebase, wanted, tick)
    added = added._replace(snapshot=taken)
    if wants_commit:
        message = options.message or f"Snapshot {count(taken.files, 'file')} of code"
        made = commit.commit(workspace, commit.Options(message))
        output.show(AddCodeCommitResult(added, made), render_both)
        commit_command.print_details(made, output)
    else:
        output.show(added, render)
    _print_details(added, output)
    if taken.work_commit and not wants_commit:
        session = "" if taken.session == CLI_SESSION else f" --session {taken.session}"
        output.note(f"Next: ctx commit -m MESSAGE{session}")


def _print_details(added: AddCodeResult, output: Output) -> None:
    if added.problems:
        places = count(sum(each.places for each in added.problems), "place")
        more = f" and {len(added.problems) - 3} more" if len(added.problems) > 3 else ""
        named = ", ".join(each.path for each in added.problems[:3])
        output.warn(f"{places} could not be parsed, in {named}{more}.")
    taken = added.snapshot
    if taken:
        for path, reason in taken.left_out[:_MOST_NAMED]:
            output.warn(f"{path} is not in the snapshot: {reason}.")
        if len(taken.left_out) > _MOST_NAMED:
            output.warn(f"{len(taken.left_out) - _MOST_NAMED:,} more files are not in it either.")
        if taken.parked:
            output.warn(f"Work staged on another branch is now in session {taken.parked}.")


def render_both(both: AddCodeCommitResult) -> list[Block]:
    return [*render(both.code), *commit_command.render(both.commit)]


def render(added: AddCodeResult) -> list[Block]:
    if not added.read:
        return [Line("No code found.")]
    items = sum(each.items for each in added.items)
    files = f"{added.read:,} of {count(added.files, 'file')}"
    changed = f"{added.changed:,} new or changed" if added.changed else "none changed"
    languages = [
        (each.language, count(each.files, "file"), count(each.lines, "line"))
        for each in added.languages
    ]
    blocks: list[Block] = [
        Line(f"Read {files} ({changed}): {count(items, 'item')}."),
        *listing(("language", "files", "lines"), languages),
        Line(f"Items: {', '.join(f'{each.items:,} {each.kind}' for each in added.items)}."),
    ]
    if added.skipped:
        skipped = ", ".join(f"{each.files:,} ({each.reason})" for each in added.skipped)
        blocks.append(Line(f"Not read: {skipped}."))
    if added.snapshot:
        blocks.append(Line(_snapshot_line(added.snapshot)))
    return blocks


def _snapshot_line(taken: StagedSnapshot) -> str:
    if taken.work_commit is None:
        return f"Unchanged since the last snapshot of {count(taken.files, 'file')}."
    removed = f", {taken.removed:,} removed" if taken.removed else ""
    return (
        f"Staged a snapshot of {count(taken.files, 'file')} in session {taken.session}: "
        f"{taken.changed:,} new or changed{removed}."
    )
