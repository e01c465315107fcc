"""`ctx add cargo`: its options are in `add.py`."""

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ctx import clock
from ctx.cli import commit as commit_command
from ctx.cli.opening import open_to_write
from ctx.cli.output import Block, Line, Output, count, listing
from ctx.cli.settings import Settings
from ctx.code import file_selection
from ctx.code.packages import cargo_metadata
from ctx.code.packages.package_model import ManifestProblem
from ctx.ids import CLI_SESSION, ObjectId, SessionId
from ctx.objects.object_store import typed
from ctx.objects.object_types import (
    BatchEdge,
    CargoSnapshot,
    EdgeBatch,
    EdgeEvidence,
    Endpoint,
    EvidenceTool,
    ResolvedDependency,
    StepKind,
)
from ctx.objects.object_types import Package as KeptPackage
from ctx.operations import commit
from ctx.project import staging, tool_snapshots
from ctx.workspace import Workspace


class CargoTarget(NamedTuple):
    name: str
    kind: str
    """lib, bin, test, bench, example, proc_macro or build_script."""
    path: str


class CargoPackage(NamedTuple):
    id: str
    name: str
    version: str
    manifest: str
    edition: str
    targets: tuple[CargoTarget, ...]


class CargoDependency(NamedTuple):
    from_id: str
    to_id: str
    kind: str
    """normal, dev or build."""
    optional: bool
    features: tuple[str, ...]


class AddCargoResult(NamedTuple):
    """The answer of `ctx add cargo`."""

    session: SessionId
    work_commit: ObjectId | None
    """None where nothing has changed since the last snapshot."""
    snapshot: ObjectId
    workspace_root: str
    packages: tuple[CargoPackage, ...]
    """Those of the project; what they need of others is in the snapshot."""
    dependencies: tuple[CargoDependency, ...]
    """What the packages of the project need."""
    edges: int
    problems: tuple[ManifestProblem, ...]
    parked: SessionId | None = None
    """Where this session's work of another branch was set aside."""


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


def add_cargo(workspace: Workspace) -> AddCargoResult:
    """Let cargo describe the project, and stage it if it differs from what is known already."""
    project = workspace.project
    rules = file_selection.SelectionRules(
        ignore_globs=workspace.config.texts("ingestion.ignore_globs"),
        max_file_bytes=workspace.config.integer("ingestion.max_file_bytes"),
    )
    chosen, _ = file_selection.choose(project, project.root, ["."], rules)
    # Cargo may take a while: the lock is not held meanwhile.
    value, problems = cargo_metadata.describe(project.root, (each.path for each in chosen))
    snapshot = typed(value)
    edges = tuple(_edges(value))
    repository = workspace.repository
    with repository.locked("ctx add cargo"):
        heads = repository.tips()
        steps, parked = staging.open_steps(repository, workspace.session, heads)
        step = None
        if tool_snapshots.last_cargo(repository, steps, heads) != snapshot.id:
            batch = typed(EdgeBatch(edges, clock.now_s()))
            step = staging.append(
                repository,
                workspace.session,
                StepKind.COMMAND_RUN,
                [snapshot, batch],
                [snapshot.id, batch.id],
            )
    return AddCargoResult(
        workspace.session,
        step,
        snapshot.id,
        value.workspace_root,
        tuple(_package(package) for package in _own_packages(value)),
        tuple(CargoDependency(*msgspec.structs.astuple(need)) for need in _needs_of_own(value)),
        len(edges),
        problems,
        parked,
    )


def _package(package: KeptPackage) -> CargoPackage:
    return CargoPackage(
        package.package_id,
        package.name,
        package.version,
        package.manifest_path,
        package.edition,
        tuple(CargoTarget(each.name, each.kind, each.src_path) for each in package.targets),
    )


def _own_packages(snapshot: CargoSnapshot) -> list[KeptPackage]:
    return [package for package in snapshot.packages if package.manifest_path]


def _needs_of_own(snapshot: CargoSnapshot) -> Iterator[ResolvedDependency]:
    own = {package.package_id for package in _own_packages(snapshot)}
    return (need for need in snapshot.resolve if need.from_package_id in own)


def _edges(snapshot: CargoSnapshot) -> Iterator[BatchEdge]:
    """What a snapshot relates, as far as it helps to find one's way in the project: what others'
    packages need of each other is left to the snapshot, and so are kinds and features."""
    evidence = EdgeEvidence(EvidenceTool.CARGO)
    pairs = dict.fromkeys(
        (need.from_package_id, need.to_package_id) for need in _needs_of_own(snapshot)
    )
    for from_, to in pairs:
        yield BatchEdge(Endpoint("package", from_), "DEPENDS_ON", Endpoint("package", to), evidence)
    for package in _own_packages(snapshot):
        whole = Endpoint("package", package.package_id)
        for target in package.targets:
            part = Endpoint("target", target.target_id)
            crate = Endpoint("crate", target.name.replace("-", "_"))
            yield BatchEdge(part, "TARGET_OF", whole, evidence)
            yield BatchEdge(crate, "CRATE_FROM_TARGET", part, evidence)
