"""Go modules, from `go.mod` and `go.work`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ctx.code.packages import package_model
from ctx.code.packages.manifest_files import ManifestTree, inside, is_name, joined, split
from ctx.code.packages.package_model import (
    ManifestDependency,
    ManifestPackage,
    PackageTarget,
    PackageWorkspace,
)

MANIFEST = "go.mod"
WORKSPACE = "go.work"


class _Line(NamedTuple):
    """A directive, such as `require`, and its words. A block is one directive per line."""

    verb: str
    words: tuple[str, ...]
    comment: str


def read(root: str, paths: Iterable[str]) -> PackageWorkspace:
    """The Go modules among a project's files."""
    return go_manifests(ManifestTree(root, paths))


def go_manifests(tree: ManifestTree) -> PackageWorkspace:
    by_path = {
        path: list(_lines(text))
        for path in tree.called(MANIFEST)
        if "vendor" not in path.split("/") and (text := tree.text(path)) is not None
    }
    workspaces = dict(_workspace_modules(tree, by_path))
    packages = []
    for path, lines in by_path.items():
        name = next((line.words[0] for line in lines if line.verb == "module" and line.words), "")
        if name:
            packages.append(_package(tree, path, name, workspaces.get(path, "")))
        elif lines:
            # An empty manifest only excludes its folder from the module around it.
            tree.problem(path, "names no module")
    dependencies = [
        need for package in packages for need in _dependencies(package, by_path, packages)
    ]
    return PackageWorkspace(tuple(packages), tuple(dependencies), tuple(tree.problems))


def _lines(text: str) -> Iterator[_Line]:
    block = ""
    for line in text.splitlines():
        code, _, comment = line.partition("//")
        words = [word.strip('"`') for word in code.split()]
        if block and words == [")"]:
            block = ""
        elif not block and len(words) == 2 and words[1] == "(":
            block = words[0]
        elif words and all(map(is_name, words)):
            verb = block or words.pop(0)
            yield _Line(verb, tuple(words), comment.strip())


def _workspace_modules(
    tree: ManifestTree, by_path: Mapping[str, list[_Line]]
) -> Iterator[tuple[str, str]]:
    """The modules that a workspace uses, each with the file of the workspace."""
    for path in tree.called(WORKSPACE):
        for line in _lines(tree.text(path) or ""):
            if line.verb == "use" and line.words:
                manifest = _manifest(split(path)[0], line.words[0])
                if manifest in by_path:
                    yield manifest, path


def _manifest(folder: str, path: str) -> str:
    return inside(joined(folder, path) or "..", MANIFEST)


def _package(tree: ManifestTree, path: str, name: str, workspace: str) -> ManifestPackage:
    folder = split(path)[0]
    programs = tuple(_programs(tree, folder, name))
    return ManifestPackage(
        *(name, "", package_model.GO, folder, path, programs), (name,), (folder,), workspace
    )


def _programs(tree: ManifestTree, folder: str, name: str) -> Iterator[PackageTarget]:
    """The programs in conventional places. Only their code could confirm it."""
    main = joined(folder, "main.go") or ""
    if main in tree:
        yield PackageTarget(name.rpartition("/")[2], "bin", main)
    programs = joined(folder, "cmd") or ""
    for program in tree.folders(programs):
        if f"{programs}/{program}/main.go" in tree:
            yield PackageTarget(program, "bin", f"{programs}/{program}/main.go")


def _dependencies(
    package: ManifestPackage,
    by_path: Mapping[str, list[_Line]],
    packages: Iterable[ManifestPackage],
) -> Iterator[ManifestDependency]:
    lines = by_path[package.manifest]
    together = {
        other.name: other.manifest
        for other in packages
        if package.workspace and other.workspace == package.workspace
    }
    replaced = {}
    for line in lines:
        if line.verb == "replace" and "=>" in line.words:
            at = line.words.index("=>")
            before, after = line.words[:at], line.words[at + 1 :]
            if before and after and after[0].startswith((".", "/")):
                replaced[before[0]] = _manifest(package.root, after[0])
    for line in lines:
        if line.verb == "require" and line.words:
            name, *version = line.words
            meant = replaced.get(name) or together.get(name, "")
            meant = meant if meant in by_path else ""
            is_indirect = line.comment.startswith("indirect")
            yield ManifestDependency(
                package.manifest,
                name,
                package_model.INDIRECT if is_indirect else package_model.NORMAL,
                local=bool(meant),
                requirement=version[0] if version else "",
                manifest=meant,
            )
