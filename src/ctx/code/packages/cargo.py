"""Crates, from their `Cargo.toml` files alone. For cargo's own description, see
`cargo_metadata`."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ctx.code.packages import package_model
from ctx.code.packages.manifest_files import (
    ManifestTree,
    Table,
    entries,
    inside,
    is_name,
    joined,
    split,
    table_of,
    tables_of,
    text_of,
    texts_of,
)
from ctx.code.packages.package_model import (
    ManifestDependency,
    ManifestPackage,
    PackageTarget,
    PackageWorkspace,
)

MANIFEST = "Cargo.toml"

_KINDS = {
    "dependencies": package_model.NORMAL,
    "dev-dependencies": package_model.DEV,
    "dev_dependencies": package_model.DEV,
    "build-dependencies": package_model.BUILD,
    "build_dependencies": package_model.BUILD,
}
# The table that lists the targets, the switch for automatic discovery, and where they are
# discovered.
_DISCOVERED_TARGETS = {
    "bin": ("autobins", "src/bin"),
    "example": ("autoexamples", "examples"),
    "test": ("autotests", "tests"),
    "bench": ("autobenches", "benches"),
}


class _Crate(NamedTuple):
    """A manifest, and the manifest of the workspace that it inherits from."""

    manifest: str
    content: Table
    workspace: str
    workspace_content: Table

    @property
    def root(self) -> str:
        return split(self.manifest)[0]

    def package(self, key: str) -> Any:
        """A value of `[package]`, which may be inherited from the workspace."""
        value = table_of(self.content, "package").get(key)
        if isinstance(value, dict) and value.get("workspace") is True:
            return table_of(self.workspace_content, "workspace", "package").get(key)
        return value

    @property
    def name(self) -> str:
        return text_of(self.content, "package", "name")


def read(root: str, paths: Iterable[str]) -> PackageWorkspace:
    """The crates among a project's files."""
    return cargo_manifests(ManifestTree(root, paths))


def cargo_manifests(tree: ManifestTree) -> PackageWorkspace:
    manifests = {
        path: content for path in tree.called(MANIFEST) if (content := tree.toml(path)) is not None
    }
    packages = []
    dependencies: list[ManifestDependency] = []
    for path, manifest in manifests.items():
        if "package" not in manifest:
            continue
        above = _workspace(path, manifests)
        crate = _Crate(path, manifest, above, manifests.get(above, {}))
        if not crate.name:
            tree.problem(path, "names no package")
            continue
        packages.append(_package(tree, crate))
        dependencies += _dependencies(crate, manifests)
    return PackageWorkspace(tuple(packages), tuple(dependencies), tuple(tree.problems))


def _workspace(path: str, manifests: dict[str, Table]) -> str:
    """The manifest of the workspace that a package belongs to; empty for none.

    It is the one that it names, or the nearest parent that is a workspace and does not exclude it.
    """
    folder = split(path)[0]
    named = text_of(manifests[path], "package", "workspace")
    if named:
        return _manifest(folder, named, manifests) or ""
    above = folder
    while True:
        manifest = inside(above, MANIFEST)
        workspace = manifests.get(manifest, {}).get("workspace")
        if isinstance(workspace, dict):
            left_out = [joined(above, pattern) for pattern in texts_of(workspace, "exclude")]
            if not any(each and f"{folder}/".startswith(f"{each}/") for each in left_out):
                return manifest
        if above == ".":
            return ""
        above = split(above)[0]


def _manifest(folder: str, path: str, manifests: dict[str, Table]) -> str | None:
    """The manifest of the crate in a folder that another one names."""
    home = joined(folder, path)
    manifest = inside(home, MANIFEST) if home else ""
    return manifest if manifest in manifests else None


def _package(tree: ManifestTree, crate: _Crate) -> ManifestPackage:
    targets = list(_targets(tree, crate))
    version = crate.package("version")
    return ManifestPackage(
        crate.name,
        version if isinstance(version, str) and is_name(version) else "0.0.0",
        package_model.CARGO,
        crate.root,
        crate.manifest,
        tuple(targets),
        tuple(target.name for target in targets if target.kind in ("lib", "proc_macro")),
        workspace=crate.workspace,
    )


def _targets(tree: ManifestTree, crate: _Crate) -> Iterator[PackageTarget]:
    """The targets of a crate: those in its manifest, and those that cargo discovers."""
    yield from _library(tree, crate)
    for kind in _DISCOVERED_TARGETS:
        yield from _programs(tree, crate, kind)
    build = crate.package("build")
    script = joined(crate.root, build if isinstance(build, str) else "build.rs")
    if build is not False and script and (isinstance(build, str) or script in tree):
        stem = split(script)[1].removesuffix(".rs")
        yield PackageTarget(f"build-script-{stem}", "build_script", script)


def _library(tree: ManifestTree, crate: _Crate) -> Iterator[PackageTarget]:
    listed = crate.content.get("lib")
    lib = listed if isinstance(listed, dict) else {}
    path = joined(crate.root, text_of(lib, "path") or "src/lib.rs")
    exists = path and ("path" in lib or path in tree)
    if path and exists and (lib or crate.package("autolib") is not False):
        is_macro = lib.get("proc-macro") is True or lib.get("proc_macro") is True
        kinds = texts_of(lib, "crate-type") + texts_of(lib, "crate_type")
        name = text_of(lib, "name") or crate.name.replace("-", "_")
        yield PackageTarget(
            name, "proc_macro" if is_macro or "proc-macro" in kinds else "lib", path
        )


def _programs(tree: ManifestTree, crate: _Crate, kind: str) -> Iterator[PackageTarget]:
    switch, folder = _DISCOVERED_TARGETS[kind]
    there = dict(_targets_in_folder(tree, crate, kind, folder))
    listed = [program for program in tables_of(crate.content, kind) if text_of(program, "name")]
    named = {}
    for program in listed:
        name = text_of(program, "name")
        path = joined(crate.root, text_of(program, "path")) or there.get(name, "")
        named[name] = PackageTarget(name, kind, path)
    # Before 2018, an explicit list disabled discovery.
    is_old = crate.package("edition") in (None, "2015")
    enabled = crate.package(switch)
    if enabled is True or (enabled is None and not (listed and is_old)):
        taken = {target.path for target in named.values()}
        for name, path in there.items():
            if name not in named and path not in taken:
                named[name] = PackageTarget(name, kind, path)
    yield from (named[name] for name in sorted(named))


def _targets_in_folder(
    tree: ManifestTree, crate: _Crate, kind: str, folder: str
) -> Iterator[tuple[str, str]]:
    """The names and files of the targets in the folder for a kind."""
    start = joined(crate.root, "src/main.rs") or ""
    if kind == "bin" and start in tree:
        yield crate.name, start
    home = joined(crate.root, folder) or folder
    for name in tree.files(home):
        if name.endswith(".rs"):
            yield name.removesuffix(".rs"), f"{home}/{name}"
    for name in tree.folders(home):
        main = f"{home}/{name}/main.rs"
        if main in tree:
            yield name, main


def _dependencies(crate: _Crate, manifests: dict[str, Table]) -> Iterator[ManifestDependency]:
    patched = _patched_crates(crate, manifests)
    for table, kind in _KINDS.items():
        parts = (crate.content, *table_of(crate.content, "target").values())
        for part in parts:
            for name, wanted in entries(table_of(part, table)):
                dependency = _dependency(crate, name, wanted, kind, manifests)
                if not dependency.local and dependency.to in patched:
                    dependency = dependency._replace(local=True, manifest=patched[dependency.to])
                yield dependency


def _dependency(
    crate: _Crate, name: str, wanted: Any, kind: str, manifests: dict[str, Table]
) -> ManifestDependency:
    own = wanted if isinstance(wanted, dict) else {"version": wanted}
    folder, declared = crate.root, own
    if own.get("workspace") is True:
        shared = table_of(crate.workspace_content, "workspace", "dependencies").get(name)
        folder = split(crate.workspace)[0]
        declared = shared if isinstance(shared, dict) else {"version": shared}
    path = text_of(declared, "path")
    manifest = _manifest(folder, path, manifests) if path else None
    package = text_of(declared, "package") or name
    features = dict.fromkeys([*texts_of(declared, "features"), *texts_of(own, "features")])
    return ManifestDependency(
        crate.manifest,
        package,
        kind,
        own.get("optional") is True,
        tuple(features),
        manifest is not None,
        text_of(declared, "version"),
        "" if package == name else name,
        manifest or "",
    )


def _patched_crates(crate: _Crate, manifests: dict[str, Table]) -> dict[str, str]:
    """The crates of this project that replace published ones, by name."""
    patched = {}
    where, tables = crate.workspace or crate.manifest, crate.workspace_content or crate.content
    for source in table_of(tables, "patch"):
        for name, declared in entries(table_of(tables, "patch", source)):
            manifest = _manifest(split(where)[0], text_of(declared, "path"), manifests)
            if manifest:
                patched[text_of(declared, "package") or name] = manifest
    return patched
