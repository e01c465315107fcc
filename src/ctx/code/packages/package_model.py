"""The content of manifests: packages, targets, dependencies."""

from typing import NamedTuple

CARGO, NPM, PYTHON, GO, MAVEN = "cargo", "npm", "python", "go", "maven"

NORMAL, DEV, BUILD = "normal", "dev", "build"
PEER = "peer"
"""Dependents of the package provide it."""
EXTRA = "extra"
"""Only with an extra of that package."""
INDIRECT = "indirect"
"""A dependency of a dependency, recorded by the tool."""


class PackageTarget(NamedTuple):
    """Something that a package builds or provides: a library, a program, an entry point."""

    name: str
    kind: str
    """cargo: `lib bin test bench example proc_macro build_script`; npm: `main module types export
    bin`; Python: `script`; Go: `bin`."""
    path: str
    """Relative to the project's root. A build output may not exist; empty if unknown."""


class ManifestPackage(NamedTuple):
    name: str
    version: str
    ecosystem: str
    root: str
    """The folder relative to the project's root; `.` is the root itself."""
    manifest: str
    """The path of its manifest, which is unique."""
    targets: tuple[PackageTarget, ...] = ()
    modules: tuple[str, ...] = ()
    """The names for imports: a crate, an npm name, the top modules of a Python project, the path of
    a Go module."""
    import_roots: tuple[str, ...] = ()
    """The folders that import paths are relative to, if not the package's."""
    workspace: str = ""
    """The manifest of its workspace, if there is one."""


class ManifestDependency(NamedTuple):
    from_: str
    """The manifest of the dependent package."""
    to: str
    """The name of the required package."""
    kind: str
    optional: bool = False
    features: tuple[str, ...] = ()
    """The requested features of a crate, or extras of a Python project."""
    local: bool = False
    requirement: str = ""
    known_as: str = ""
    """The name for imports, if it differs."""
    manifest: str = ""
    """The manifest of the required package, if it is one of this project."""


class ManifestProblem(NamedTuple):
    path: str
    reason: str
    """The rest of a sentence that begins with the path."""


class PackageWorkspace(NamedTuple):
    """All packages, dependencies and problems."""

    packages: tuple[ManifestPackage, ...] = ()
    dependencies: tuple[ManifestDependency, ...] = ()
    problems: tuple[ManifestProblem, ...] = ()
