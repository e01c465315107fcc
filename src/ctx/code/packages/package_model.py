"""What manifests say: packages, what they build, what they depend on."""

from typing import NamedTuple

CARGO, NPM, PYTHON, GO, MAVEN = "cargo", "npm", "python", "go", "maven"

NORMAL, DEV, BUILD = "normal", "dev", "build"
PEER = "peer"
"""Whoever depends on the package brings it."""
EXTRA = "extra"
"""Only with an extra of that package."""
INDIRECT = "indirect"
"""What a dependency needs, written down by the tool."""


class PackageTarget(NamedTuple):
    """Something that a package builds or offers: a library, a program, an entry."""

    name: str
    kind: str
    """cargo: `lib bin test bench example proc_macro build_script`; npm: `main module types export
    bin`; Python: `script`; Go: `bin`."""
    path: str
    """From the project's root. What is built first need not be there; empty where unknown."""


class ManifestPackage(NamedTuple):
    name: str
    version: str
    ecosystem: str
    root: str
    """The folder from the project's root; `.` is the root itself."""
    manifest: str
    """The path of its manifest, which no other package has."""
    targets: tuple[PackageTarget, ...] = ()
    modules: tuple[str, ...] = ()
    """What imports call it: a crate, an npm name, the top modules of a Python project, the path of
    a Go module."""
    import_roots: tuple[str, ...] = ()
    """The folders that the paths of imports are relative to, where that is not the package's."""
    workspace: str = ""
    """The manifest of the workspace that it belongs to, if there is one."""


class ManifestDependency(NamedTuple):
    from_: str
    """The manifest of the package that needs it."""
    to: str
    """The name of the package that is needed."""
    kind: str
    optional: bool = False
    features: tuple[str, ...] = ()
    """What is asked of it: features of a crate, extras of a Python project."""
    local: bool = False
    requirement: str = ""
    known_as: str = ""
    """What imports call it, where that is another name."""
    manifest: str = ""
    """The manifest of the package that is meant, if it is one of this project."""


class ManifestProblem(NamedTuple):
    path: str
    reason: str
    """As the rest of a sentence that begins with the path."""


class PackageWorkspace(NamedTuple):
    """All that was found."""

    packages: tuple[ManifestPackage, ...] = ()
    dependencies: tuple[ManifestDependency, ...] = ()
    problems: tuple[ManifestProblem, ...] = ()
