"""Cargo workspaces as `cargo metadata` describes them, as a snapshot that can be stored.

A clone is untrusted. Its `.cargo/config.toml` may name programs that cargo runs, and its
`rust-toolchain.toml` may name a whole toolchain. Both are searched from the working folder: so
cargo runs in the root of the file system, and gets the path of the manifest. It must not use the
network, and does not write a `Cargo.lock`.

A snapshot contains nothing about the machine: paths are relative to the project's root, and crates
outside of it have none.
"""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ctx import redaction
from ctx.code.packages.cargo import MANIFEST, cargo_manifests
from ctx.code.packages.manifest_files import ManifestTree, split, tables_of, text_of
from ctx.code.packages.package_model import ManifestProblem
from ctx.errors import PathRefused, ProgramFailure
from ctx.objects.object_store import derived_id
from ctx.objects.object_types import (
    CargoSnapshot,
    DependencyKind,
    Package,
    ResolvedDependency,
    Target,
    TargetKind,
)

OUTSIDE = "path+outside"
"""The location of a crate in another folder of this machine."""

_NEUTRAL_FOLDER = "/"
_TIME_LIMIT_S = 60
_MOST_WORKSPACES = 20
_LONGEST_ERROR = 300
_USER_IN_URL = re.compile(r"//[^/@?#]*@")
_NO_CARGO = "Install Rust from https://rustup.rs, or add the folder of cargo to PATH."
_KINDS = {
    "bin": TargetKind.BIN,
    "test": TargetKind.TEST,
    "bench": TargetKind.BENCH,
    "example": TargetKind.EXAMPLE,
    "proc-macro": TargetKind.PROC_MACRO,
    "custom-build": TargetKind.BUILD_SCRIPT,
}


class CargoDescription(NamedTuple):
    snapshot: CargoSnapshot
    problems: tuple[ManifestProblem, ...]


# The fields of cargo's output that are used here.


class _Target(msgspec.Struct, frozen=True):
    name: str
    kind: tuple[str, ...]
    src_path: str
    crate_types: tuple[str, ...] = ()


class _DeclaredDependency(msgspec.Struct, frozen=True):
    name: str
    source: str | None = None
    req: str = ""
    kind: str | None = None
    optional: bool = False
    features: tuple[str, ...] = ()
    path: str | None = None


class _Package(msgspec.Struct, frozen=True):
    id: str
    name: str
    version: str
    manifest_path: str
    source: str | None = None
    edition: str = ""
    targets: tuple[_Target, ...] = ()
    dependencies: tuple[_DeclaredDependency, ...] = ()


class _Kind(msgspec.Struct, frozen=True):
    kind: str | None = None


class _NodeDependency(msgspec.Struct, frozen=True):
    pkg: str
    dep_kinds: tuple[_Kind, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    id: str
    deps: tuple[_NodeDependency, ...] = ()


class _Resolve(msgspec.Struct, frozen=True):
    nodes: tuple[_Node, ...]


class _Metadata(msgspec.Struct, frozen=True):
    packages: tuple[_Package, ...]
    workspace_root: str
    resolve: _Resolve | None = None


class _LocalManifests(NamedTuple):
    """The content of the manifests themselves."""

    tree: ManifestTree
    meant: Mapping[tuple[str, str], str]
    """The manifest of a crate of this project, by the dependent manifest and the name."""


def describe(root: str, paths: Iterable[str]) -> CargoDescription:
    """The cargo workspaces among a project's files, as one snapshot.

    E015 if there is no manifest, E029 if cargo is missing or can describe none of them.
    """
    root = os.path.realpath(root)
    tree = ManifestTree(root, paths)
    # A link may point to anything on this machine.
    manifests = outermost(
        path for path in tree.called(MANIFEST) if _project_path(root, path) == path
    )
    if not manifests:
        raise PathRefused(
            f"There is no {MANIFEST} among the files of this project.",
            hint="`ctx add cargo` is for projects that cargo builds.",
        )
    needs = cargo_manifests(tree).dependencies
    local = _LocalManifests(
        tree, {(need.from_, need.to): need.manifest for need in needs if need.local}
    )
    parts: list[CargoSnapshot] = []
    problems: list[ManifestProblem] = []
    for manifest in manifests[:_MOST_WORKSPACES]:
        try:
            parts.append(_workspace(root, manifest, local, problems))
        except ProgramFailure as error:
            if len(manifests) == 1:
                raise
            problems.append(ManifestProblem(manifest, f"is left out: {error.message}"))
    if not parts:
        raise ProgramFailure("cargo can describe none of the manifests.", hint=problems[0].reason)
    too_many = f"is left out: there are more than {_MOST_WORKSPACES} workspaces"
    problems += [ManifestProblem(manifest, too_many) for manifest in manifests[_MOST_WORKSPACES:]]
    return CargoDescription(_merge_snapshots(parts), tuple(problems))


def outermost(manifests: Iterable[str]) -> list[str]:
    """The manifests without another one in a parent folder. Cargo knows their members."""
    outer: list[str] = []
    folders: set[str] = set()
    for manifest in sorted(manifests, key=lambda path: (path.count("/"), path)):
        above, name = split(manifest)
        while above not in folders and name and above != ".":
            above, name = split(above)
        if above not in folders:
            folders.add(split(manifest)[0])
            outer.append(manifest)
    return outer


def _workspace(
    root: str, manifest: str, local: _LocalManifests, problems: list[ManifestProblem]
) -> CargoSnapshot:
    options = ("--manifest-path", os.path.join(root, manifest))
    metadata = _ask(root, "--offline", "--no-deps", *options)
    lock = os.path.join(metadata.workspace_root, "Cargo.lock")
    if os.path.isfile(lock):
        try:
            whole = _ask(root, "--frozen", *options)
        except ProgramFailure as error:
            problems.append(
                ManifestProblem(
                    manifest, f"has dependencies as declared, not as resolved: {error.message}"
                )
            )
        else:
            return _snapshot(root, whole, _resolved_dependencies(root, whole))
    else:
        problems.append(
            ManifestProblem(manifest, "has dependencies as declared: there is no Cargo.lock")
        )
    locked = _locked_versions(local.tree, _project_path(root, lock))
    return _snapshot(root, metadata, _declared_dependencies(root, metadata, local, locked))


def _ask(root: str, *options: str) -> _Metadata:
    """The output of `cargo metadata`. E029 if it fails."""
    cargo = shutil.which("cargo")
    # A relative folder on PATH would be one of the project's.
    if cargo is None or not os.path.isabs(cargo):
        raise ProgramFailure("cargo is not on this machine's PATH.", hint=_NO_CARGO)
    try:
        done = subprocess.run(
            [cargo, "metadata", "--format-version", "1", "--color", "never", *options],
            cwd=_NEUTRAL_FOLDER,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TIME_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise ProgramFailure(f"cargo took longer than {_TIME_LIMIT_S} seconds.") from None
    except OSError as error:
        raise ProgramFailure(
            f"cargo could not be started: {error.strerror}.", hint=_NO_CARGO
        ) from error
    if done.returncode:
        raise ProgramFailure(
            f"cargo says: {_complaint(root, done.stderr)}",
            hint="Fix what cargo reports, then run the command again.",
        )
    try:
        return msgspec.json.decode(done.stdout, type=_Metadata)
    except msgspec.DecodeError as error:
        raise ProgramFailure(f"cargo describes the workspace in a new way: {error}.") from error


def _complaint(root: str, printed: bytes) -> str:
    """The error in one line: cargo prints what failed, and then why."""
    lines = printed.decode("utf-8", "replace").replace(f"{root}/", "").splitlines()
    begun = next((n for n, line in enumerate(lines) if line.startswith("error")), 0)
    message_lines = [" ".join(line.split()) for line in lines[begun:]]
    reasons = [line for line in message_lines if line not in ("", "Caused by:")]
    reason = ": ".join(line.rstrip(".:") for line in reasons).removeprefix("error: ") or "nothing"
    return f"{reason}." if len(reason) <= _LONGEST_ERROR else f"{reason[:_LONGEST_ERROR].rstrip()}…"


# From cargo's output to the snapshot.


def _snapshot(root: str, metadata: _Metadata, needs: Iterable[ResolvedDependency]) -> CargoSnapshot:
    packages = [
        Package(
            id := _id(root, package),
            package.name,
            package.version,
            _manifest(root, package) or "",
            package.edition,
            tuple(_targets(root, id, package)),
        )
        for package in metadata.packages
    ]
    where = _project_path(root, metadata.workspace_root) or "."
    return CargoSnapshot(where, tuple(packages), tuple(needs))


def _targets(root: str, package_id: str, package: _Package) -> Iterator[Target]:
    if _manifest(root, package) is None:
        return
    for cargo_target in sorted(package.targets, key=lambda target: (target.kind, target.name)):
        path = _project_path(root, cargo_target.src_path)
        if path is not None and path.isprintable():
            kind = _KINDS.get(cargo_target.kind[0] if cargo_target.kind else "", TargetKind.LIB)
            id = derived_id("target", package_id, kind, cargo_target.name)
            yield Target(id, cargo_target.name, kind, path, cargo_target.crate_types)


def _resolved_dependencies(root: str, metadata: _Metadata) -> Iterator[ResolvedDependency]:
    """The dependencies of every package, as cargo resolved them."""
    packages = {package.id: package for package in metadata.packages}
    for node in metadata.resolve.nodes if metadata.resolve else ():
        from_ = packages[node.id]
        for needed in node.deps:
            to = packages[needed.pkg]
            for kind in dict.fromkeys(dep_kind.kind for dep_kind in needed.dep_kinds):
                declared = [d for d in from_.dependencies if (d.name, d.kind) == (to.name, kind)]
                yield _dependency(_id(root, from_), _id(root, to), kind, declared)


def _declared_dependencies(
    root: str, metadata: _Metadata, local: _LocalManifests, locked: Mapping[str, str]
) -> Iterator[ResolvedDependency]:
    """The dependencies that the packages of a workspace declare."""
    ids = {_manifest(root, package): _id(root, package) for package in metadata.packages}
    for package in metadata.packages:
        manifest = _manifest(root, package) or ""
        for named in dict.fromkeys((d.name, d.kind) for d in package.dependencies):
            declared = [d for d in package.dependencies if (d.name, d.kind) == named]
            path = declared[0].path and _project_path(
                root, os.path.join(declared[0].path, MANIFEST)
            )
            to = ids.get(path or local.meant.get((manifest, declared[0].name), ""))
            source = declared[0].source
            if to is None:
                version = locked.get(declared[0].name, declared[0].req)
                to = f"{_source(source) if source else OUTSIDE}#{declared[0].name}@{version}"
            yield _dependency(_id(root, package), to, declared[0].kind, declared)


def _dependency(
    from_: str, to: str, kind: str | None, declared: Sequence[_DeclaredDependency]
) -> ResolvedDependency:
    return ResolvedDependency(
        from_,
        to,
        DependencyKind(kind or "normal"),
        bool(declared) and all(dependency.optional for dependency in declared),
        tuple(dict.fromkeys(feature for dependency in declared for feature in dependency.features)),
    )


def _locked_versions(tree: ManifestTree, path: str | None) -> dict[str, str]:
    """The versions in a `Cargo.lock`, for packages with a single version."""
    table = tree.toml(path) if path else None
    listed = [(text_of(entry, "name"), entry) for entry in tables_of(table, "package")]
    times = Counter(name for name, _ in listed)
    return {name: text_of(entry, "version") for name, entry in listed if times[name] == 1}


def _merge_snapshots(parts: Sequence[CargoSnapshot]) -> CargoSnapshot:
    packages = {package.package_id: package for part in parts for package in part.packages}
    needs = {
        (need.from_package_id, need.to_package_id, need.kind): need
        for part in parts
        for need in part.resolve
    }
    return CargoSnapshot(
        parts[0].workspace_root if len(parts) == 1 else ".",
        tuple(packages[id] for id in sorted(packages)),
        tuple(needs[key] for key in sorted(needs)),
    )


def _id(root: str, package: _Package) -> str:
    """Cargo's id of a package, without folders of this machine."""
    if package.source is None:
        manifest = _manifest(root, package)
        where = OUTSIDE if manifest is None else f"path+{split(manifest)[0]}"
    else:
        where = _source(package.source)
    return f"{where}#{package.name}@{package.version}"


def _source(source: str) -> str:
    """The source of a published package, without revision and credentials."""
    if "file:" in source:
        return f"{source.partition('+')[0]}+outside"
    return redaction.redact(_USER_IN_URL.sub("//", source.partition("#")[0])).text


def _manifest(root: str, package: _Package) -> str | None:
    """The manifest of a package of the project. Cargo's home may be inside a project: fetched
    packages do not belong to the project."""
    return None if package.source else _project_path(root, package.manifest_path)


def _project_path(root: str, path: str) -> str | None:
    """A path relative to the project's root with links resolved; None if it is outside."""
    inside = os.path.relpath(os.path.realpath(os.path.join(root, path)), root)
    return None if inside == ".." or inside.startswith("../") else inside
