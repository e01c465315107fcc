"""Read the packages of all ecosystems in a project."""

from collections.abc import Iterable

from ctx.code.packages.cargo import cargo_manifests
from ctx.code.packages.go_modules import go_manifests
from ctx.code.packages.manifest_files import ManifestTree
from ctx.code.packages.maven import maven_manifests
from ctx.code.packages.npm import npm_manifests
from ctx.code.packages.package_model import ManifestDependency, ManifestPackage, PackageWorkspace
from ctx.code.packages.pyproject import python_manifests

_READERS = (cargo_manifests, npm_manifests, python_manifests, go_manifests, maven_manifests)

MANIFESTS = frozenset(
    {
        *("Cargo.toml", "package.json", "pnpm-workspace.yaml"),
        *("pyproject.toml", "setup.cfg", "go.mod", "go.work", "pom.xml"),
    }
)
"""The names of all files that are read. While none of them changes, and no file is added or
removed, the result stays the same."""


def read_all(root: str, paths: Iterable[str]) -> PackageWorkspace:
    """The packages among a project's files, given as paths from its root."""
    tree = ManifestTree(root, paths)
    packages: list[ManifestPackage] = []
    dependencies: list[ManifestDependency] = []
    for reader in _READERS:
        workspace = reader(tree)
        packages += workspace.packages
        dependencies += workspace.dependencies
    return PackageWorkspace(tuple(packages), tuple(dependencies), tuple(tree.problems))
