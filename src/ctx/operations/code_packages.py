"""The packages of a project: what each builds, what it needs, who needs it."""

from typing import NamedTuple

from ctx.code.packages import package_queries
from ctx.code.packages.package_queries import IndexedPackage, PackageDependency
from ctx.codebase import code_items
from ctx.codebase.code_index import IndexAge, OpenIndex
from ctx.errors import NodeNotFound


class DependentPackage(NamedTuple):
    """A package that depends on what was asked about."""

    package: str
    manifest: str
    dependency: PackageDependency


class PackageList(NamedTuple):
    """The answer of `ctx code packages`."""

    name: str
    """As it was asked; empty for all."""
    packages: tuple[IndexedPackage, ...]
    """None where the name is only that of a package from elsewhere."""
    needed_by: tuple[DependentPackage, ...]
    """Who depends on what has that name; none where no name was asked."""
    age: IndexAge


def packages(opened: OpenIndex, name: str = "") -> PackageList:
    every = package_queries.all_packages(opened.code.connection)
    if not name:
        return PackageList("", tuple(every), (), opened.age)
    meant = package_queries.find_packages(every, name)
    if not meant:
        # A path may also be meant from where the command works, or be a whole one.
        paths = opened.code.inside(name, opened.folder)
        meant = [each for path in paths for each in package_queries.find_packages(every, path)]
    found = (
        package_queries.dependents(every, meant)
        if meant
        else package_queries.dependents_of_external(every, name)
    )
    if not meant and not found:
        hint = code_items.reservation(opened.age) or _hint(every, name)
        raise NodeNotFound(f"There is no package {name[:80]!r}.", hint=hint)
    needing = tuple(DependentPackage(each.name, each.manifest, needed) for each, needed in found)
    return PackageList(name, tuple(meant), needing, opened.age)


def _hint(every: list[IndexedPackage], name: str) -> str:
    if near := package_queries.similar_names(every, name):
        return f"Did you mean {' or '.join(f'`{each}`' for each in near)}?"
    return "`ctx code packages` lists the packages."
