"""The packages of a project: what each builds, what it needs, who needs it."""

from typing import NamedTuple

from ctx.code.packages import known
from ctx.code.packages.known import Known, Needed
from ctx.codebase import code_items
from ctx.codebase.code_index import Age, Opened
from ctx.errors import NodeNotFound


class DependentPackage(NamedTuple):
    """A package that depends on what was asked about."""

    package: str
    manifest: str
    dependency: Needed


class PackageList(NamedTuple):
    """The answer of `ctx code packages`."""

    name: str
    """As it was asked; empty for all."""
    packages: tuple[Known, ...]
    """None where the name is only that of a package from elsewhere."""
    needed_by: tuple[DependentPackage, ...]
    """Who depends on what has that name; none where no name was asked."""
    age: Age


def packages(opened: Opened, name: str = "") -> PackageList:
    every = known.every(opened.code.connection)
    if not name:
        return PackageList("", tuple(every), (), opened.age)
    meant = known.called(every, name)
    if not meant:
        # A path may also be meant from where the command works, or be a whole one.
        paths = opened.code.inside(name, opened.folder)
        meant = [each for path in paths for each in known.called(every, path)]
    found = known.needing(every, meant) if meant else known.needing_from_elsewhere(every, name)
    if not meant and not found:
        hint = code_items.reservation(opened.age) or _hint(every, name)
        raise NodeNotFound(f"No package is called {name[:80]!r}.", hint=hint)
    needing = tuple(DependentPackage(each.name, each.manifest, needed) for each, needed in found)
    return PackageList(name, tuple(meant), needing, opened.age)


def _hint(every: list[Known], name: str) -> str:
    if near := known.near(every, name):
        return f"Did you mean {' or '.join(f'`{each}`' for each in near)}?"
    return "`ctx code packages` shows those that are here."
