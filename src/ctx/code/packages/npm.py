"""JavaScript packages, from `package.json`; workspaces of npm, yarn and pnpm."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
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
    text_of,
    texts_of,
)
from ctx.code.packages.package_model import (
    ManifestDependency,
    ManifestPackage,
    PackageTarget,
    PackageWorkspace,
)

MANIFEST = "package.json"
PNPM = "pnpm-workspace.yaml"

# If a package is listed twice, npm treats it as optional.
_KINDS = {
    "optionalDependencies": package_model.NORMAL,
    "dependencies": package_model.NORMAL,
    "peerDependencies": package_model.PEER,
    "devDependencies": package_model.DEV,
}
_ENTRIES = {"main": "main", "module": "module", "types": "types", "typings": "types"}
_MOST_EXPORTS = 1000
_LOCAL = ("workspace:", "file:", "link:", "portal:")
_LONGEST_GLOB = 300
_MOST_GLOBS = 200


class _Members(NamedTuple):
    """A workspace: its manifest, its folder, and the globs of its members."""

    manifest: str
    folder: str
    globs: list[str]

    def has(self, folder: str) -> bool:
        if folder == self.folder:
            return True
        rest = folder if self.folder == "." else folder.removeprefix(f"{self.folder}/")
        return (self.folder == "." or rest != folder) and matches(rest, self.globs)


def npm_manifests(tree: ManifestTree) -> PackageWorkspace:
    by_path = {
        path: content
        for path in tree.called(MANIFEST)
        if "node_modules" not in path.split("/") and (content := tree.json(path)) is not None
    }
    workspaces = list(_workspaces(tree, by_path))
    packages = []
    for path, manifest in by_path.items():
        # A file that only sets options for its folder is not a package.
        if "name" in manifest or "workspaces" in manifest or any(key in manifest for key in _KINDS):
            packages.append(_package(tree, path, manifest, workspaces))
    known = _ProjectPackages(packages)
    dependencies = [need for package in packages for need in _dependencies(package, by_path, known)]
    return PackageWorkspace(tuple(packages), tuple(dependencies), tuple(tree.problems))


def _workspaces(tree: ManifestTree, by_path: Mapping[str, Table]) -> Iterator[_Members]:
    for path, manifest in by_path.items():
        folder = split(path)[0]
        listed = manifest.get("workspaces")
        named = texts_of(listed, "packages") or texts_of(manifest, "workspaces")
        pnpm = inside(folder, PNPM)
        if pnpm in tree:
            named = _listed_for_pnpm(tree.text(pnpm) or "")
        if named or listed is not None or pnpm in tree:
            yield _Members(path, folder, named)


def _listed_for_pnpm(text: str) -> list[str]:
    """The list `packages` of a YAML file. Only the usual forms of pnpm are supported: one entry per
    line, or all in brackets."""
    patterns: list[str] = []
    is_inside = False
    for line in text.splitlines():
        bare = line.partition(" #")[0].rstrip()
        if bare.startswith("packages:"):
            is_inside = True
            inline = bare.removeprefix("packages:").strip()
            if inline.startswith("["):
                patterns += [_unquoted(part) for part in inline.strip("[]").split(",")]
        elif is_inside and bare.lstrip().startswith("- "):
            patterns.append(_unquoted(bare.lstrip()[2:]))
        elif bare and not bare.startswith((" ", "\t", "#")):
            is_inside = False
    return [pattern for pattern in patterns if is_name(pattern)]


def _unquoted(text: str) -> str:
    return text.strip().strip("\"'")


def _package(
    tree: ManifestTree, path: str, manifest: Table, workspaces: Iterable[_Members]
) -> ManifestPackage:
    folder = split(path)[0]
    name = text_of(manifest, "name")
    if "name" in manifest and not name:
        tree.problem(path, "has a name that is none")
    # The innermost workspace that contains it; they are sorted from outside in.
    above = [workspace.manifest for workspace in workspaces if workspace.has(folder)]
    return ManifestPackage(
        name,
        text_of(manifest, "version"),
        package_model.NPM,
        folder,
        path,
        tuple(dict.fromkeys(_targets(manifest, folder, name))),
        (name,) if name else (),
        workspace=above[-1] if above else "",
    )


def _targets(manifest: Table, folder: str, name: str) -> Iterator[PackageTarget]:
    for key, kind in _ENTRIES.items():
        if path := joined(folder, text_of(manifest, key)):
            yield PackageTarget(".", kind, path)
    yield from _exports(manifest.get("exports"), folder)
    programs = manifest.get("bin")
    # A program given by path alone has the name of the package, without its scope.
    named = {name.rpartition("/")[2]: programs} if isinstance(programs, str) else programs
    for program, file in entries(named if isinstance(named, dict) else {}):
        if path := joined(folder, file if isinstance(file, str) else ""):
            yield PackageTarget(program, "bin", path)


def _exports(exports: Any, folder: str) -> Iterator[PackageTarget]:
    """The entry points of a package, and the files behind them.

    `exports` is a path, or a tree of entry points (which begin with a dot) and conditions.
    """
    waiting: list[tuple[str, Any]] = [(".", exports)]
    for _ in range(_MOST_EXPORTS):
        if not waiting:
            return
        way, value = waiting.pop()
        if isinstance(value, str):
            if path := joined(folder, value):
                yield PackageTarget(way, "export", path)
        elif isinstance(value, list):
            waiting += [(way, nested) for nested in reversed(value)]
        elif isinstance(value, dict):
            inner = [
                (key if key.startswith(".") else way, nested) for key, nested in entries(value)
            ]
            waiting += reversed(inner)


class _ProjectPackages:
    """The packages of the project, by name."""

    def __init__(self, packages: Iterable[ManifestPackage]) -> None:
        self._by_name: dict[str, list[ManifestPackage]] = {}
        self._by_root = {package.root: package for package in packages}
        for package in packages:
            self._by_name.setdefault(package.name, []).append(package)

    def meant(self, package: ManifestPackage, name: str, requirement: str) -> str:
        """The manifest of the required package, if it is one of the project.

        It belongs to the same workspace, or its folder is named.
        """
        for protocol in _LOCAL:
            folder = joined(package.root, requirement.removeprefix(protocol))
            if requirement.startswith(protocol) and folder in self._by_root:
                return self._by_root[folder].manifest
        for other in self._by_name.get(name, ()):
            if package.workspace and other.workspace == package.workspace:
                return other.manifest
        return ""


def _dependencies(
    package: ManifestPackage, by_path: Mapping[str, Table], known: _ProjectPackages
) -> Iterator[ManifestDependency]:
    manifest = by_path[package.manifest]
    optional = table_of(manifest, "peerDependenciesMeta")
    declared = set()
    for table, kind in _KINDS.items():
        for name, wanted in entries(table_of(manifest, table)):
            requirement = wanted if isinstance(wanted, str) and is_name(wanted) else ""
            to, alias = name, ""
            if requirement.startswith("npm:"):
                to, _, requirement = requirement.removeprefix("npm:").rpartition("@")
                to, alias = to or requirement, name
            is_optional = table == "optionalDependencies"
            if kind == package_model.PEER:
                is_optional = table_of(optional, name).get("optional") is True
            meant = "" if alias else known.meant(package, name, requirement)
            if (to, kind, alias) not in declared:
                yield ManifestDependency(
                    *(package.manifest, to, kind, is_optional, (), bool(meant)),
                    *(requirement, alias, meant),
                )
            declared.add((to, kind, alias))


def matches(folder: str, globs: Sequence[str]) -> bool:
    """Whether globs such as `packages/*` list a folder; one with `!` excludes again."""
    listed = False
    for glob in globs[:_MOST_GLOBS]:
        wanted = not glob.startswith("!")
        if wanted != listed and _fits(folder, glob.removeprefix("!")):
            listed = wanted
    return listed


def _fits(folder: str, glob: str) -> bool:
    if len(glob) > _LONGEST_GLOB:
        return False
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    names = [] if folder == "." else folder.split("/")
    # How many names the parts so far can match: all possibilities at once, none tried twice.
    reached = {0}
    for part in parts:
        if part == "**":
            reached = set(range(min(reached), len(names) + 1))
        else:
            fits = _part(part)
            reached = {n + 1 for n in reached if n < len(names) and fits.match(names[n])}
        if not reached:
            return False
    return len(names) in reached


@lru_cache(maxsize=256)
def _part(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part))
