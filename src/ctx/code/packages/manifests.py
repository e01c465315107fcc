"""The packages of every ecosystem in a project: the one door for whoever resolves imports."""

from collections.abc import Iterable

from ctx.code.packages.cargo import cargo_manifests
from ctx.code.packages.go_modules import go_manifests
from ctx.code.packages.manifest_files import Tree
from ctx.code.packages.maven import maven_manifests
from ctx.code.packages.npm import npm_manifests
from ctx.code.packages.package_model import Dependency, Package, Workspace
from ctx.code.packages.pyproject import python_manifests

_READERS = (cargo_manifests, npm_manifests, python_manifests, go_manifests, maven_manifests)

MANIFESTS = frozenset(
    {
        *("Cargo.toml", "package.json", "pnpm-workspace.yaml"),
        *("pyproject.toml", "setup.cfg", "go.mod", "go.work", "pom.xml"),
    }
)
"""The names of all files that are read. While none of them changes, and no file comes or goes, the
answer stays the same."""


def read_all(root: str, paths: Iterable[str]) -> Workspace:
    """The packages among a project's files, given as paths from its root."""
    tree = Tree(root, paths)
    packages: list[Package] = []
    dependencies: list[Dependency] = []
    for reader in _READERS:
        found = reader(tree)
        packages += found.packages
        dependencies += found.dependencies
    return Workspace(tuple(packages), tuple(dependencies), tuple(tree.problems))
