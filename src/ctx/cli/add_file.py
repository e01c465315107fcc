"""`ctx add file`: its options are in `add.py`, so that adding a node does not load all of this."""

import argparse
from typing import NamedTuple

from ctx.cli import commit as commit_command
from ctx.cli.opening import open_to_write
from ctx.cli.output import Block, Line, Output, count, listing, size
from ctx.cli.settings import Settings
from ctx.codebase.extraction_result import ExtractedFile
from ctx.ids import CLI_SESSION
from ctx.operations import commit
from ctx.operations.add_file import AddFileResult, Options, add_file

_MOST_NAMED = 8


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    if options.message is not None:
        commit.require_message(options.message)
    workspace = open_to_write(settings, output)
    wanted = Options(
        options.paths,
        settings.folder,
        options.force,
        options.allow_secrets,
        options.extract_semantics,
    )
    with output.progress("Reading files") as tick:
        added = add_file(workspace, wanted, tick)
    failed = any(refused.named for refused in added.refused)
    wants_commit = options.commit or options.message
    if wants_commit and not failed:
        message = options.message or f"Add {count(len(added.added), 'file')}"
        both = AddFileCommitResult(added, commit.commit(workspace, commit.Options(message)))
        output.show(both, render_both)
        commit_command.print_details(both.commit, output)
        _print_limits(added, output)
        return 0
    output.show(added, render)
    _print_limits(added, output)
    if added.parked:
        output.warn(f"Work staged on another branch is now in session {added.parked}.")
    if wants_commit:
        output.warn("Nothing committed: a file you named was refused.")
    if added.work_commit:
        session = "" if added.session == CLI_SESSION else f" --session {added.session}"
        output.note(f"Next: ctx commit -m MESSAGE{session}")
    return 1 if failed else 0


def _print_limits(added: AddFileResult, output: Output) -> None:
    if added.semantics and added.semantics.over_budget:
        output.note(
            f"{count(added.semantics.over_budget, 'edge')} left out: the limit of a step is "
            "ingestion.max_edges_per_step. The code index has all of them."
        )


class AddFileCommitResult(NamedTuple):
    """The answer of `ctx add file --commit`."""

    files: AddFileResult
    commit: commit.CommitResult


def render_both(both: AddFileCommitResult) -> list[Block]:
    return [*render(both.files), *commit_command.render(both.commit)]


def render(added: AddFileResult) -> list[Block]:
    blocks: list[Block] = []
    if added.added:
        total = f"{count(len(added.added), 'file')} ({size(added.bytes)})"
        states = [(item.state, item.path, size(item.bytes)) for item in added.added]
        blocks.append(Line(f"Staged {total} in session {added.session}:"))
        blocks += listing(("state", "path", "size"), states)
    if added.unchanged:
        blocks.append(Line(f"{count(len(added.unchanged), 'file')} unchanged."))
    if added.restored:
        files = count(len(added.restored), "file")
        blocks.append(Line(f"{files} unchanged; a missing or damaged object is repaired."))
    if added.refused:
        blocks.append(Line(f"Refused {count(len(added.refused), 'file')}:"))
        rows = [(item.path, item.reason) for item in added.refused]
        blocks += listing(("path", "reason"), rows)
    if added.semantics and added.semantics.files:
        edges = count(added.semantics.edges, "edge")
        blocks.append(Line(f"Extracted {edges}:"))
        rows = [(each.path, _file_line(each)) for each in added.semantics.files]
        blocks += listing(("path", "found"), rows)
    return blocks or [Line("No files to add; --force adds ignored ones.")]


def _file_line(file: ExtractedFile) -> str:
    """The module, and the names of its new or changed items."""
    if file.problem:
        return file.problem
    is_new = all(each.state == "new" for each in file.items)
    inside = [
        _name_in_module(each.name, file.module) + ("" if is_new else f" ({each.state})")
        for each in file.items
        if each.state != "same"
    ]
    inside += [f"{_name_in_module(part, file.module)} (module)" for part in file.parts]
    named = inside[:_MOST_NAMED]
    others = [
        (len(inside) - len(named), "more"),
        (len(file.items) - sum(each.state != "same" for each in file.items), "unchanged"),
    ]
    parts = [*([", ".join(named)] if named else []), *(f"{n:,} {word}" for n, word in others if n)]
    module = f"{file.module}: " if file.module != file.path else ""
    return f"{module}{' and '.join(parts) or 'no items'}"


def _name_in_module(name: str, module: str) -> str:
    return name.removeprefix(module).lstrip(":.") if name.startswith(module) else name
