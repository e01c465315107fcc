"""`ctx gc`"""

import argparse
import os
from typing import NamedTuple

from ctx import disk
from ctx.cli import options as shared
from ctx.cli.opening import open_workspace
from ctx.cli.output import Block, Line, Output, count, listing, size
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.ids import ObjectId, short
from ctx.objects import gc, git_history, untracked_survey
from ctx.objects.repository import Repository

EXAMPLES = """
ctx gc --dry-run            what would be deleted
ctx gc                      delete what nothing has referred to for 7 days
ctx gc --keep-days 0        regardless of age
ctx gc --aggressive         also staging that was committed or aborted just now
ctx gc --tracked            also what git tracks, if unreachable from every ref for 90 days
"""


class GcResult(NamedTuple):
    """The answer of `ctx gc`."""

    dry_run: bool
    tracked: bool
    """Whether files that git tracks may be deleted too."""
    scanned: int
    reachable: int
    young: int
    held_by_git: int
    doubted: int
    """Of the young ones: those that are old if the clock is right."""
    deleted: tuple["DeletedFile", ...]
    bytes: int


class DeletedFile(NamedTuple):
    path: str
    id: ObjectId | None
    bytes: int
    tracked: bool


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="only show what would be deleted"
    )
    shared.flag(
        parser, "--aggressive", "also delete the recent staging of ended and aborted sessions"
    )
    shared.flag(parser, "--tracked", "also objects that git tracks and no ref uses")
    parser.add_argument(
        "--keep-days",
        type=int,
        metavar="N",
        help="keep younger objects (default: gc.keep_days)",
    )
    shared.yes_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    workspace = open_workspace(settings, output)
    config = workspace.config
    keep_days = config.integer("gc.keep_days") if options.keep_days is None else options.keep_days
    if keep_days < 0:
        raise UsageError("--keep-days must not be negative.")
    limits = gc.Limits(keep_days, options.tracked, options.aggressive)
    repository = workspace.repository
    if options.dry_run or (options.tracked and not options.yes):
        result = collect(repository, limits, output)
        tracked = sum(item.tracked for item in result.garbage)
        if tracked and not options.dry_run:
            question = (
                f"{count(tracked, 'object file')} that git tracks would be deleted. Continue?"
            )
            output.confirm(question, yes=False)
    if not options.dry_run:
        with repository.locked("ctx gc"):
            untracked_survey.prune(repository)
            git_history.keep_needed(repository)
            result = collect(repository, limits, output)
            with output.progress("Deleting") as tick:
                gc.delete(result, tick)
    root = workspace.project.root
    output.show(
        GcResult(
            options.dry_run,
            options.tracked,
            result.scanned,
            result.reachable,
            result.young,
            result.held_by_git,
            result.doubted,
            tuple(
                DeletedFile(os.path.relpath(item.path, root), item.id, item.size, item.tracked)
                for item in result.garbage
            ),
            result.bytes,
        ),
        render,
    )


def collect(repository: Repository, limits: gc.Limits, output: Output) -> gc.Collection:
    with output.progress("Checking objects") as tick:
        return gc.collect(repository, limits, tick)


def _file_kind(path: str) -> str:
    return "temporary" if path.endswith(disk.TEMPORARY_SUFFIX) else "ref"


def render(result: GcResult) -> list[Block]:
    verb = "Would delete" if result.dry_run else "Deleted"
    files = count(len(result.deleted), "file")
    blocks: list[Block] = [
        Line(f"{verb} {files} ({size(result.bytes)}) of {result.scanned:,} scanned.")
    ]
    if result.dry_run:
        rows = [(short(item.id or _file_kind(item.path)), item.path) for item in result.deleted]
        blocks += listing(("object", "path"), rows)
    kept = [count(result.reachable, "object") + " in use"]
    if result.young:
        kept.append(f"{result.young:,} unused but young")
    if result.held_by_git:
        why = "in use lately" if result.tracked else "see --tracked"
        kept.append(f"{result.held_by_git:,} unused here but tracked by git ({why})")
    blocks.append(Line(f"Kept {', '.join(kept)}."))
    if result.doubted:
        message = (
            f"{count(result.doubted, 'file')} may be older: nothing else was written for a year."
        )
        blocks.append(
            Line(f"{message} If the clock is right, `ctx gc --keep-days 0` deletes them.")
        )
    return blocks
