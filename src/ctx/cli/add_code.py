"""`ctx add code` and `ctx add rust`: their options are in `add.py`.

A snapshot is a tree of the project's folders with one object per file. If only some files are
requested, the others stay as in the previous snapshot, unless they no longer exist.
"""

import argparse
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from sqlite3 import Connection, DatabaseError
from typing import Any, NamedTuple

from ctx import clock, layout
from ctx.cli import code, opening
from ctx.cli import commit as commit_command
from ctx.cli.output import Block, Line, Output, count, listing
from ctx.cli.settings import Settings
from ctx.code import affected_files, code_snapshots, file_selection, index_check, language_detection
from ctx.code.code_snapshots import SnapshotFile, SnapshotMaker
from ctx.code.coverage import LanguageFiles, UnreadFiles
from ctx.code.file_listing import ExcludedPath
from ctx.code.vocabulary import KINDS
from ctx.codebase import indexing
from ctx.codebase.indexing import Codebase
from ctx.errors import UsageError
from ctx.ids import CLI_SESSION, ObjectId, SessionId
from ctx.objects import trees
from ctx.objects.object_store import Object, typed
from ctx.objects.object_types import StepKind
from ctx.objects.repository import Repository
from ctx.operations import commit
from ctx.project import staging, tool_snapshots
from ctx.workspace import Workspace

# A large project is written in parts, so that it need not fit into memory.
_MOST_PENDING = 32 * 1024 * 1024

# These determine the names of other files and the targets of imports: they are always read.
_ALWAYS_READ = frozenset({*affected_files.MANIFESTS, "__init__.py"})


class Options(NamedTuple):
    files: Sequence[str] = ()
    """Paths, folders and globs; none: everything."""
    folder: str = "."
    """What they are relative to."""
    language: str | None = None
    """Only files of this one."""


class KindCount(NamedTuple):
    kind: str
    items: int


class FileProblems(NamedTuple):
    path: str
    places: int
    """How many places in the file were not understood."""


class StagedSnapshot(NamedTuple):
    """A snapshot of the code, staged in a session."""

    session: SessionId
    work_commit: ObjectId | None
    """None where nothing has changed since the last snapshot."""
    tree: ObjectId
    files: int
    """All that are in it."""
    changed: int
    """Files that are new, or not what they were in the last snapshot."""
    removed: int
    left_out: tuple[ExcludedPath, ...]
    parked: SessionId | None
    """Where this session's work of another branch was set aside."""


class AddCodeResult(NamedTuple):
    """The answer of `ctx add code` and `ctx add rust`."""

    root: str
    files: int
    read: int
    """Files out of which something was read."""
    changed: int
    """Those that are new in the index, or not what they were."""
    languages: tuple[LanguageFiles, ...]
    items: tuple[KindCount, ...]
    problems: tuple[FileProblems, ...]
    skipped: tuple[UnreadFiles, ...]
    """Why nothing was read out of the other files."""
    left_out: tuple[ExcludedPath, ...]
    """Links, submodules and the like."""
    snapshot: StagedSnapshot | None = None


class _FileFilter(NamedTuple):
    """The requested files."""

    paths: Collection[str] | None
    language: str | None

    def __call__(self, path: str) -> bool:
        is_named = self.paths is None or path in self.paths
        return is_named and self.language in (None, language_detection.language_of(path))

    @property
    def is_everything(self) -> bool:
        return self.paths is None and self.language is None


class _CollectedFiles(NamedTuple):
    leaves: dict[str, ObjectId]
    objects: list[Object]
    """Those that have yet to be written."""
    left_out: list[ExcludedPath]


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
        added = add_code(codebase, wanted, tick)
    if workspace is None:
        output.show(added, render)
        _print_details(added, output)
        return
    with output.progress("Taking the snapshot") as tick:
        taken = snapshot(workspace, codebase, wanted, tick)
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


def add_code(
    codebase: Codebase, options: Options, tick: clock.Tick = clock.no_tick
) -> AddCodeResult:
    """Update the index as far as needed, and return what it has of the requested files."""
    chosen = _file_filter(codebase, options)

    def attempt() -> AddCodeResult:
        done = indexing.refresh(codebase, tick, chosen=_read_filter(chosen))
        with indexing.open_unrefreshed(codebase) as opened:
            return _result(opened.code.connection, codebase.place.root, chosen, done)

    try:
        return attempt()
    except DatabaseError:
        # Damage that a refresh without changes does not read.
        if not indexing.remove_damaged(codebase):
            raise
    return attempt()


def _read_filter(chosen: _FileFilter) -> Callable[[str], bool] | None:
    if chosen.is_everything:
        return None
    return lambda path: chosen(path) or path.rpartition("/")[2] in _ALWAYS_READ


def _file_filter(codebase: Codebase, options: Options) -> _FileFilter:
    if not options.files:
        return _FileFilter(None, options.language)
    rules = file_selection.SelectionRules(codebase.ignore_globs, codebase.max_bytes)
    place = layout.Project(codebase.place.root, codebase.place.checkout)
    found, _ = file_selection.choose(place, options.folder, options.files, rules)
    return _FileFilter(frozenset(each.path for each in found), options.language)


def _result(
    connection: Connection, root: str, chosen: _FileFilter, done: index_check.RefreshCounts
) -> AddCodeResult:
    every = connection.execute(
        "SELECT id, path, language, lines, skipped, problems FROM files ORDER BY path"
    )
    found = [row for row in every if chosen(row[1])]
    read = {row[0]: row for row in found if row[4] is None}
    count = Counter[int]()
    for file_id, kind, number in connection.execute(
        "SELECT id >> 16, kind, count(*) FROM items WHERE parent NOT NULL GROUP BY 1, 2"
    ):
        if file_id in read:
            count[kind] += number
    lines: dict[str, list[int]] = {}
    for row in read.values():
        lines.setdefault(row[2], []).append(row[3])
    languages = [LanguageFiles(name, len(each), sum(each)) for name, each in lines.items()]
    skipped = Counter(row[4] for row in found if row[4] is not None)
    return AddCodeResult(
        root,
        len(found),
        len(read),
        # Files that determine the names of others are read too.
        min(done.added + done.changed, len(found)),
        tuple(sorted(languages, key=lambda each: (-each.files, each.language))),
        tuple(KindCount(KINDS[kind], number) for kind, number in _sort_by_count(count)),
        tuple(FileProblems(row[1], row[5]) for row in found if row[5]),
        tuple(UnreadFiles(reason, number) for reason, number in _sort_by_count(skipped)),
        tuple(each for each in done.left_out if chosen.is_everything or chosen(each.path)),
    )


def _sort_by_count(count: "Counter[Any]") -> list[tuple[Any, int]]:
    return sorted(count.items(), key=lambda each: (-each[1], each[0]))


def snapshot(
    workspace: Workspace,
    codebase: Codebase,
    options: Options,
    tick: clock.Tick = clock.no_tick,
) -> StagedSnapshot:
    """Stage the requested files as the index has them, if they differ from the last snapshot."""
    chosen = _file_filter(codebase, options)
    repository = workspace.repository
    root = codebase.place.root
    with indexing.open_unrefreshed(codebase, tick) as opened, repository.locked("ctx add code"):
        heads = repository.tips()
        steps, parked = staging.open_steps(repository, workspace.session, heads)
        before = tool_snapshots.last_code(repository, steps, heads)
        known = dict(trees.paths(repository.everything, before)) if before else {}
        others = {
            path: id
            for path, id in known.items()
            if not chosen(path) and os.path.lexists(os.path.join(root, path))
        }
        asked = _indexed_files(opened.code.connection, chosen)
        taker = SnapshotMaker(opened.code, root, workspace.repo_id)
        taken = _collect_files(repository, taker, asked, known, tick)
        every = trees.overlay_paths(others, taken.leaves)
        tree, folders = trees.update_tree(repository.everything, None, every)
        step = None
        if tree != (before or trees.EMPTY.id):
            objects = [*taken.objects, *folders]
            step = staging.append(
                repository, workspace.session, StepKind.COMMAND_RUN, objects, [tree]
            )
    return StagedSnapshot(
        workspace.session,
        step,
        tree,
        len(every),
        sum(known.get(path) != id for path, id in taken.leaves.items()),
        len(known.keys() - every.keys()),
        tuple(taken.left_out),
        parked,
    )


def _collect_files(
    repository: Repository,
    taker: SnapshotMaker,
    asked: Sequence[SnapshotFile],
    known: Mapping[str, ObjectId],
    tick: clock.Tick,
) -> _CollectedFiles:
    """What is in each file. The objects of a large project are written on the way."""
    leaves: dict[str, ObjectId] = {}
    left_out: list[ExcludedPath] = []
    objects: list[Object] = []
    pending = 0
    for number, file in enumerate(asked):
        tick(number, len(asked))
        if trees.is_too_deep(file.path):
            left_out.append(ExcludedPath(file.path, "it is in too many nested folders"))
            continue
        value = taker.snapshot(file)
        if isinstance(value, code_snapshots.SkippedFile):
            left_out.append(ExcludedPath(*value))
            continue
        made = typed(value)
        leaves[file.path] = made.id
        if known.get(file.path) == made.id:
            continue
        objects.append(made)
        pending += len(made.payload)
        if pending > _MOST_PENDING:
            repository.staged.write(objects)
            objects, pending = [], 0
    return _CollectedFiles(leaves, objects, left_out)


def _indexed_files(connection: Connection, chosen: _FileFilter) -> list[SnapshotFile]:
    rows = connection.execute(
        "SELECT id, path, language, hash FROM files"
        " WHERE skipped IS NULL AND hash NOT NULL AND language NOT NULL ORDER BY path"
    )
    return [file for row in rows if chosen((file := SnapshotFile(*row)).path)]
