"""Queries on the indexed packages of a project."""

import difflib
import json
from collections import defaultdict
from sqlite3 import Connection
from typing import NamedTuple

from ctx.code.packages.package_model import PackageTarget


class PackageDependency(NamedTuple):
    """A dependency of a package."""

    name: str
    kind: str
    """`normal`, `dev`, `build`, `peer`, `extra` or `indirect`."""
    optional: bool
    features: tuple[str, ...]
    """The requested features of a crate, or extras of a Python project."""
    requirement: str
    """The version requirement in the manifest."""
    local: bool
    """Whether it is a package of this project."""
    manifest: str
    """The manifest of that package; empty for an external one."""


class IndexedPackage(NamedTuple):
    name: str
    version: str
    ecosystem: str
    """`cargo`, `npm`, `python`, `go` or `maven`."""
    root: str
    """The folder relative to the project's root; `.` is the root itself."""
    manifest: str
    targets: tuple[PackageTarget, ...]
    """What it builds or provides."""
    dependencies: tuple[PackageDependency, ...]


def all_packages(connection: Connection) -> list[IndexedPackage]:
    """The packages in the order of their folders, with their dependencies."""
    needed: defaultdict[str, list[PackageDependency]] = defaultdict(list)
    for manifest, name, kind, optional, features, requirement, target in connection.execute(
        "SELECT manifest, name, kind, optional, features, requirement, target FROM dependencies"
        " ORDER BY manifest, kind <> 'normal', kind, name, requirement"
    ):
        names = tuple(features.split())
        needed[manifest].append(
            PackageDependency(name, kind, bool(optional), names, requirement, bool(target), target)
        )
    rows = connection.execute(
        "SELECT name, version, ecosystem, root, manifest, targets FROM packages"
        " ORDER BY root <> '.', root, manifest"
    )
    return [
        IndexedPackage(
            name,
            version,
            ecosystem,
            root,
            manifest,
            tuple(PackageTarget(*target) for target in json.loads(targets)),
            tuple(needed[manifest]),
        )
        for name, version, ecosystem, root, manifest, targets in rows
    ]


def find_packages(packages: list[IndexedPackage], word: str) -> list[IndexedPackage]:
    """The packages with a name, a manifest, or a folder."""
    wanted = word.removeprefix("./").rstrip("/") or "."
    return [package for package in packages if wanted in (package.name, package.manifest)] or [
        package
        for package in packages
        if wanted == package.root or _comparable_name(wanted) == _comparable_name(package.name)
    ]


def dependents(
    packages: list[IndexedPackage], meant: list[IndexedPackage]
) -> list[tuple[IndexedPackage, PackageDependency]]:
    """The dependents of some packages."""
    manifests = {package.manifest for package in meant}
    names = {(package.ecosystem, _comparable_name(package.name)) for package in meant}
    return [
        (package, needed)
        for package in packages
        for needed in package.dependencies
        if needed.manifest in manifests
        or (not needed.manifest and (package.ecosystem, _comparable_name(needed.name)) in names)
    ]


def dependents_of_external(
    packages: list[IndexedPackage], name: str
) -> list[tuple[IndexedPackage, PackageDependency]]:
    """The dependents of an external package."""
    return [
        (package, needed)
        for package in packages
        for needed in package.dependencies
        if not needed.manifest and _comparable_name(needed.name) == _comparable_name(name)
    ]


def similar_names(packages: list[IndexedPackage], word: str) -> list[str]:
    """Similar names of packages, local or external."""
    names = {package.name for package in packages}
    names.update(needed.name for package in packages for needed in package.dependencies)
    return difflib.get_close_matches(word, sorted(names), n=3)


def _comparable_name(name: str) -> str:
    """A name for comparison: `-`, `_` and case do not matter."""
    return name.replace("_", "-").casefold()
