"""The packages of a project as its index has them: what was read out of the manifests."""

import json
from collections import defaultdict
from sqlite3 import Connection
from typing import NamedTuple

from ctx.code.packages.package_model import PackageTarget


class PackageDependency(NamedTuple):
    """What a package depends on."""

    name: str
    kind: str
    """`normal`, `dev`, `build`, `peer`, `extra` or `indirect`."""
    optional: bool
    features: tuple[str, ...]
    """What is asked of it: features of a crate, extras of a Python project."""
    requirement: str
    """Which versions will do, as the manifest says it."""
    local: bool
    """Whether it is a package of this project."""
    manifest: str
    """The manifest of that package; empty for one from elsewhere."""


class IndexedPackage(NamedTuple):
    name: str
    version: str
    ecosystem: str
    """`cargo`, `npm`, `python`, `go` or `maven`."""
    root: str
    """The folder from the project's root; `.` is the root itself."""
    manifest: str
    targets: tuple[PackageTarget, ...]
    """What it builds or offers."""
    dependencies: tuple[PackageDependency, ...]


def all_packages(connection: Connection) -> list[IndexedPackage]:
    """The packages in the order of their folders, each with what it needs."""
    needed: defaultdict[str, list[PackageDependency]] = defaultdict(list)
    for manifest, name, kind, optional, features, requirement, target in connection.execute(
        "SELECT manifest, name, kind, optional, features, requirement, target FROM dependencies"
        " ORDER BY manifest, kind <> 'normal', kind, name, requirement"
    ):
        asked = tuple(features.split())
        needed[manifest].append(
            PackageDependency(name, kind, bool(optional), asked, requirement, bool(target), target)
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
            tuple(PackageTarget(*each) for each in json.loads(targets)),
            tuple(needed[manifest]),
        )
        for name, version, ecosystem, root, manifest, targets in rows
    ]


def find_packages(packages: list[IndexedPackage], word: str) -> list[IndexedPackage]:
    """Those that somebody means by a name, a manifest, or a folder."""
    wanted = word.removeprefix("./").rstrip("/") or "."
    return [each for each in packages if wanted in (each.name, each.manifest)] or [
        each for each in packages if wanted == each.root or _alike(wanted) == _alike(each.name)
    ]


def dependents(
    packages: list[IndexedPackage], meant: list[IndexedPackage]
) -> list[tuple[IndexedPackage, PackageDependency]]:
    """Who depends on some of them."""
    manifests = {each.manifest for each in meant}
    names = {(each.ecosystem, _alike(each.name)) for each in meant}
    return [
        (each, needed)
        for each in packages
        for needed in each.dependencies
        if needed.manifest in manifests
        or (not needed.manifest and (each.ecosystem, _alike(needed.name)) in names)
    ]


def dependents_of_external(
    packages: list[IndexedPackage], name: str
) -> list[tuple[IndexedPackage, PackageDependency]]:
    """Who depends on a package that is not here."""
    return [
        (each, needed)
        for each in packages
        for needed in each.dependencies
        if not needed.manifest and _alike(needed.name) == _alike(name)
    ]


def similar_names(packages: list[IndexedPackage], word: str) -> list[str]:
    """Names of packages, from here or from elsewhere, that somebody may have meant."""
    import difflib

    names = {each.name for each in packages}
    names.update(needed.name for each in packages for needed in each.dependencies)
    return difflib.get_close_matches(word, sorted(names), n=3)


def _alike(name: str) -> str:
    """A name as those compare it who write `-`, `_` and capitals as they like."""
    return name.replace("_", "-").casefold()
