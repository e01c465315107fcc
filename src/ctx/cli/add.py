"""`ctx add`"""

import argparse
from typing import NamedTuple

from ctx.cli import commit as commit_command
from ctx.cli import options as shared
from ctx.cli.opening import open_workspace
from ctx.cli.output import Block, Line, Output, Table, count, size
from ctx.cli.settings import Settings
from ctx.operations import commit
from ctx.operations.add_file import FilesAdded, Options, add_file

EXAMPLES = """
ctx add file src/app.py README.md      snapshot two files
ctx add file src                       every file in a folder that git would add
ctx add file 'src/**/*.py'             by a glob
ctx add file src -m "Before the move"  and commit them
"""

_SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    file = shared.add_subcommand(
        group, "file", "snapshot files into the session's staging", EXAMPLES
    )
    file.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, or a glob")
    file.add_argument("--commit", action="store_true", help="make a commit right away")
    file.add_argument("-m", "--message", help="the commit's message (implies --commit)")
    file.add_argument("-f", "--force", action="store_true", help="also add ignored files")
    file.add_argument(
        "--allow-secrets", action="store_true", help="also add files that hold a secret"
    )
    shared.session_option(file)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    if options.message is not None:
        commit.require_message(options.message)
    workspace = open_workspace(settings, output)
    wanted = Options(options.paths, settings.folder, options.force, options.allow_secrets)
    with output.progress("Reading files") as tick:
        added = add_file(workspace, wanted, tick)
    if options.commit or options.message:
        message = options.message or f"Add {count(len(added.added), 'file')}"
        both = AddedAndCommitted(added, commit.commit(workspace, commit.Options(message)))
        output.show(both, render_both)
        commit_command.say_more(both.commit, output)
    else:
        output.show(added, render)
        if added.added:
            output.note("Next: ctx commit -m MESSAGE")
    return 1 if any(refused.named for refused in added.refused) else 0


class AddedAndCommitted(NamedTuple):
    """The answer of `ctx add file --commit`."""

    files: FilesAdded
    commit: commit.Committed


def render_both(both: AddedAndCommitted) -> list[Block]:
    return [*render(both.files), *commit_command.render(both.commit)]


def render(added: FilesAdded) -> list[Block]:
    rows = [(item.state, item.path, size(item.bytes)) for item in added.added[:_SHOWN]]
    blocks: list[Block] = []
    if added.added:
        total = f"{count(len(added.added), 'file')} ({size(added.bytes)})"
        blocks.append(Line(f"Staged {total} in session {added.session}:"))
        blocks.append(Table(("state", "path", "size"), rows))
    if len(added.added) > _SHOWN:
        blocks.append(Line(f"  … and {len(added.added) - _SHOWN:,} more"))
    if added.unchanged:
        blocks.append(Line(f"{count(len(added.unchanged), 'file')} unchanged."))
    if added.restored:
        files = count(len(added.restored), "file")
        blocks.append(Line(f"{files} unchanged; a missing or damaged object was written again."))
    if added.refused:
        blocks.append(Line(f"Refused {count(len(added.refused), 'file')}:"))
        blocks.append(
            Table(("path", "reason"), [(item.path, item.reason) for item in added.refused])
        )
    return blocks or [Line("No files there.")]
