"""How the snapshots of two states of a project differ: its code, its packages, its diagnostics.

A commit stores a snapshot only if one was taken since the last commit. So a state has the last
snapshot in its history, and the last diagnostics of each tool.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from ctx.errors import CtxError
from ctx.ids import ObjectId, SessionId
from ctx.objects import commits, refs, trees
from ctx.objects.object_store import decode, derived_id
from ctx.objects.object_types import (
    CargoSnapshot,
    CodeSnapshot,
    Commit,
    Diagnostic,
    DiagnosticsSnapshot,
    Item,
)
from ctx.project import batches, staging, staging_chains, tool_snapshots
from ctx.project.project_repository import ProjectRepository

Kind = Literal["added", "removed", "changed"]

_MOST_RECORDS_READ = 100
"""Of how many commits with diagnostics all snapshots are read, not only the last one."""
# A build that passes has compiled everything.
_SAME_TOOL = {"rustc": "cargo", "clippy": "cargo", "cargo test": "cargo"}


class ItemDifference(NamedTuple):
    """A function, a class or another item of the code."""

    kind: Kind
    item: str
    """`function`, `class` and so on."""
    name: str
    path: str
    line: int | None
    before: str
    """The signature before; empty if it was not there."""
    after: str


class PackageDifference(NamedTuple):
    kind: Kind
    name: str
    before: str
    """The version before; empty if it was not there."""
    after: str


class DependencyDifference(NamedTuple):
    kind: Kind
    from_package: str
    to_package: str
    needed_for: str
    """`normal`, `dev` or `build`."""


class DiagnosticDifference(NamedTuple):
    """An error or a warning that came or went."""

    kind: Kind
    tool: str
    severity: str
    code: str
    message: str
    test: str
    path: str
    """Empty if it names no file of the project, or one that is not known any more."""
    line: int | None


class SnapshotDiff(NamedTuple):
    items: tuple[ItemDifference, ...]
    packages: tuple[PackageDifference, ...]
    dependencies: tuple[DependencyDifference, ...]
    diagnostics: tuple[DiagnosticDifference, ...]


class SnapshotState(NamedTuple):
    """The last snapshots of a state."""

    code: ObjectId | None
    cargo: ObjectId | None
    diagnostics: Mapping[str, DiagnosticsSnapshot]
    """By tool."""


def state_at(repository: ProjectRepository, heads: Sequence[ObjectId]) -> SnapshotState:
    """The snapshots in the history of some commits."""
    diagnostics: dict[str, DiagnosticsSnapshot] = {}
    reporting = 0
    for _, commit in repository.history(heads):
        if commit.diagnostics_snapshot is None:
            continue
        reporting += 1
        others = _other_tools(repository, commit) if reporting <= _MOST_RECORDS_READ else ()
        for each in _diagnostics(repository, [commit.diagnostics_snapshot, *others]):
            diagnostics.setdefault(_tool(each), each)
    return SnapshotState(
        tool_snapshots.last_committed_code(repository, heads),
        tool_snapshots.last_cargo(repository, (), heads),
        diagnostics,
    )


def _other_tools(repository: ProjectRepository, commit: Commit) -> list[ObjectId]:
    """The snapshots that the records of a commit name, newest first.

    The commit itself names only the last one, and several tools may have reported something.
    """
    try:
        records = [
            record
            for batch_id in commit.record_batches
            for record in batches.read(repository.everything, batch_id)
        ]
    except CtxError:
        # `ctx debug verify` reports it.
        return []
    return list(tool_snapshots.referenced_snapshots(records))[::-1]


def staged_state(
    repository: ProjectRepository, heads: Sequence[ObjectId], session: SessionId
) -> SnapshotState:
    """The same with what sessions have staged; what `session` has staged comes first."""
    found = state_at(repository, heads)
    code = cargo = None
    diagnostics: list[DiagnosticsSnapshot] = []
    names = map(refs.session_of, repository.refs.names())
    sessions = sorted(filter(None, names), key=lambda each: each != session)
    for each in sessions:
        steps = staging.chain(repository, SessionId(each))
        if not commits.contain(repository.objects, heads, steps[0].work.bases):
            continue
        last = tool_snapshots.last_snapshots(repository, steps)
        code, cargo = code or last.code, cargo or last.cargo
        said = staging_chains.records(repository, steps)
        diagnostics += _diagnostics(repository, tool_snapshots.referenced_snapshots(said))
    diagnostics.sort(key=lambda each: each.timestamp)
    newer = {_tool(each): each for each in diagnostics}
    return SnapshotState(code or found.code, cargo or found.cargo, {**found.diagnostics, **newer})


def compare_snapshots(
    repository: ProjectRepository,
    before: SnapshotState,
    after: SnapshotState,
    repo_id: str,
    paths: Iterable[str],
) -> SnapshotDiff:
    """What differs. `paths` are files that diagnostics may be about."""
    files = _Files(repository, before.code, after.code)
    known = dict.fromkeys((*files.before, *files.after, *paths))
    path_of = {derived_id("file", repo_id, path): path for path in known}
    cargo = [_cargo(repository, each) for each in (before.cargo, after.cargo)]
    return SnapshotDiff(
        tuple(files.differences()),
        tuple(_packages(*cargo)),
        tuple(_dependencies(*cargo)),
        tuple(_added_and_removed(repository, before.diagnostics, after.diagnostics, path_of)),
    )


class _Files:
    """The files of two code snapshots."""

    def __init__(
        self, repository: ProjectRepository, before: ObjectId | None, after: ObjectId | None
    ) -> None:
        self._reader = repository.everything
        self.before, self.after = (
            dict(trees.paths(self._reader, each)) if each else {} for each in (before, after)
        )

    def differences(self) -> Iterator[ItemDifference]:
        for path in sorted(self.before.keys() | self.after.keys()):
            ids = self.before.get(path), self.after.get(path)
            if ids[0] == ids[1]:
                continue
            old, new = (self._items(each) for each in ids)
            for item_id in dict.fromkeys((*new, *old)):
                both = old.get(item_id), new.get(item_id)
                if both[0] is None or both[1] is None or _hashes(both[0]) != _hashes(both[1]):
                    yield _item(path, *both)

    def _items(self, file: ObjectId | None) -> dict[ObjectId, Item]:
        value = decode(self._reader.read(file)) if file else None
        items = value.items if isinstance(value, CodeSnapshot) else ()
        return {each.item_id: each for each in items}


def _hashes(item: Item) -> tuple[str, str]:
    return item.signature_hash, item.body_hash


def _item(path: str, before: Item | None, after: Item | None) -> ItemDifference:
    item = after or before
    assert item is not None
    return ItemDifference(
        kind_of(before, after),
        item.kind.value,
        item.stable_key or item.name,
        path,
        item.declared_span.start_line,
        before.signature if before else "",
        after.signature if after else "",
    )


def _cargo(repository: ProjectRepository, id: ObjectId | None) -> CargoSnapshot:
    value = decode(repository.everything.read(id)) if id else None
    return value if isinstance(value, CargoSnapshot) else CargoSnapshot("", ())


def _packages(old: CargoSnapshot, new: CargoSnapshot) -> Iterator[PackageDifference]:
    before, after = ({(each.name, each.version) for each in side.packages} for side in (old, new))
    gone, come = sorted(before - after), sorted(after - before)
    for name in sorted({name for name, _ in (*gone, *come)}):
        versions = [[version for each, version in side if each == name] for side in (gone, come)]
        if len(versions[0]) == len(versions[1]) == 1:
            yield PackageDifference("changed", name, versions[0][0], versions[1][0])
            continue
        yield from (PackageDifference("removed", name, each, "") for each in versions[0])
        yield from (PackageDifference("added", name, "", each) for each in versions[1])


def _dependencies(old: CargoSnapshot, new: CargoSnapshot) -> Iterator[DependencyDifference]:
    before, after = _needs(old), _needs(new)
    for each in sorted(before ^ after):
        yield DependencyDifference("added" if each in after else "removed", *each)


def _needs(snapshot: CargoSnapshot) -> set[tuple[str, str, str]]:
    names = {each.package_id: each.name for each in snapshot.packages}
    return {
        (
            names.get(each.from_package_id, each.from_package_id),
            names.get(each.to_package_id, each.to_package_id),
            each.kind.value,
        )
        for each in snapshot.resolve
    }


def _diagnostics(
    repository: ProjectRepository, ids: Iterable[ObjectId]
) -> Iterator[DiagnosticsSnapshot]:
    for each in ids:
        try:
            value = decode(repository.everything.read(each))
        except CtxError:
            # `ctx debug verify` reports it.
            continue
        if isinstance(value, DiagnosticsSnapshot):
            yield value


def _tool(snapshot: DiagnosticsSnapshot) -> str:
    return _SAME_TOOL.get(snapshot.tool, snapshot.tool)


def _added_and_removed(
    repository: ProjectRepository,
    before: Mapping[str, DiagnosticsSnapshot],
    after: Mapping[str, DiagnosticsSnapshot],
    path_of: Mapping[ObjectId, str],
) -> Iterator[DiagnosticDifference]:
    for tool in sorted(before.keys() | after.keys()):
        old, new = (
            [
                _diagnostic_difference(repository, tool, each, path_of)
                for each in (side[tool].diagnostics if tool in side else ())
            ]
            for side in (before, after)
        )
        counts = [Counter(each._replace(line=None) for each in side) for side in (old, new)]
        for side, kind, other in ((old, "removed", counts[1]), (new, "added", counts[0])):
            left = Counter(other)
            for each in side:
                key = each._replace(line=None)
                if left[key] > 0:
                    left[key] -= 1
                else:
                    yield each._replace(kind="added" if kind == "added" else "removed")


def _diagnostic_difference(
    repository: ProjectRepository, tool: str, found: Diagnostic, path_of: Mapping[ObjectId, str]
) -> DiagnosticDifference:
    """A diagnostic as it is shown. Its line may change without it being another one."""
    span = next((each for each in found.spans if each.file_id in path_of), None)
    related = _text(repository, found.related_blob_id)
    test = related.partition("\n")[0].removeprefix("test ") if related.startswith("test ") else ""
    return DiagnosticDifference(
        "added",
        tool,
        found.severity.value,
        found.code,
        _text(repository, found.message_blob_id),
        test,
        path_of[span.file_id] if span else "",
        span.start_line if span else None,
    )


def _text(repository: ProjectRepository, blob: ObjectId | None) -> str:
    if blob is None:
        return ""
    try:
        return repository.everything.read(blob).payload.decode("utf-8", "replace")
    except CtxError:
        return ""


def kind_of(before: object, after: object) -> Kind:
    return "changed" if before and after else "added" if after else "removed"
