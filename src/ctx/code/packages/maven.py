"""Java projects that Maven builds, from `pom.xml`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from xml.etree.ElementTree import Element

from ctx.code.packages import package_model
from ctx.code.packages.manifest_files import ManifestTree, inside, is_name, joined, split
from ctx.code.packages.package_model import ManifestDependency, ManifestPackage, PackageWorkspace

MANIFEST = "pom.xml"

_SOURCES = tuple(
    f"src/{part}/{language}"
    for part in ("main", "test")
    for language in ("java", "kotlin", "scala", "groovy")
)
_PROPERTY = re.compile(r"\$\{([^${}]{1,200})\}")
_MOST_PARENTS = 20


class _Project:
    """A manifest, and those that it inherits from, the nearest first."""

    def __init__(self, manifest: str, settings: Element) -> None:
        self.manifest = manifest
        self.settings = settings
        self.parents: tuple[_Project, ...] = ()

    @cached_property
    def group(self) -> str:
        return self._own_or_parents("groupId")

    @cached_property
    def version(self) -> str:
        return self._own_or_parents("version")

    def _own_or_parents(self, key: str) -> str:
        return self.filled(_text(self.settings, key) or _text(self.settings, "parent", key))

    @cached_property
    def artifact(self) -> str:
        return self.filled(_text(self.settings, "artifactId"))

    @property
    def name(self) -> str:
        """The name for dependents."""
        return f"{self.group}:{self.artifact}"

    @cached_property
    def properties(self) -> dict[str, str]:
        every = _children(self.settings, "properties")
        return {_name(child): value for child in every if (value := _text(child))}

    @cached_property
    def managed(self) -> dict[str, str]:
        """The versions that this manifest sets for manifests that inherit from it, by name."""
        every = _children(self.settings, "dependencyManagement", "dependencies")
        return {self.needed(entry): self.filled(_text(entry, "version")) for entry in every}

    def needed(self, entry: Element) -> str:
        group, artifact = (self.filled(_text(entry, key)) for key in ("groupId", "artifactId"))
        return f"{group}:{artifact}"

    def filled(self, text: str) -> str:
        """A text with its properties substituted, once: they may refer to each other."""
        filled = _PROPERTY.sub(self._value, text) if "${" in text else text
        return filled if is_name(filled) else ""

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        # The project's own properties, unless one of them is being computed.
        if name == "project.version" and "version" in vars(self):
            return self.version
        if name == "project.groupId" and "group" in vars(self):
            return self.group
        values = (project.properties.get(name) for project in (self, *self.parents))
        return next((value for value in values if value), match[0])


def maven_manifests(tree: ManifestTree) -> PackageWorkspace:
    every = {
        path: _Project(path, settings)
        for path in tree.called(MANIFEST)
        if (settings := tree.xml(path)) is not None
    }
    listed = dict(_modules(every))
    packages = []
    manifests: dict[str, str] = {}
    for path, project in every.items():
        project.parents = tuple(_parents(path, every))
        if not project.artifact:
            tree.problem(path, "names no artifact")
            continue
        packages.append(_package(tree, project, listed.get(path, "")))
        manifests.setdefault(project.name, path)
    dependencies = [
        need for package in packages for need in _dependencies(every[package.manifest], manifests)
    ]
    return PackageWorkspace(tuple(packages), tuple(dependencies), tuple(tree.problems))


def _parents(path: str, every: Mapping[str, _Project]) -> Iterator[_Project]:
    """The manifests of this project that a manifest inherits from: as declared, or in the parent
    folder."""
    visited = {path}
    for _ in range(_MOST_PARENTS):
        if _child(every[path].settings, "parent") is None:
            return
        named = _text(every[path].settings, "parent", "relativePath") or f"../{MANIFEST}"
        above = joined(split(path)[0], named) or ""
        path = above if above in every else inside(above, MANIFEST)
        if path in visited or path not in every:
            return
        visited.add(path)
        yield every[path]


def _modules(every: Mapping[str, _Project]) -> Iterator[tuple[str, str]]:
    """The manifests that another one lists as modules, each with that one."""
    for path, project in every.items():
        for module in _children(project.settings, "modules"):
            place = joined(split(path)[0], (module.text or "").strip())
            if place:
                yield (place if place in every else inside(place, MANIFEST)), path


def _package(tree: ManifestTree, project: _Project, workspace: str) -> ManifestPackage:
    folder = split(project.manifest)[0]
    roots = [joined(folder, source) or source for source in _SOURCES]
    return ManifestPackage(
        project.name,
        project.version,
        package_model.MAVEN,
        folder,
        project.manifest,
        import_roots=tuple(root for root in roots if tree.files(root) or tree.folders(root)),
        workspace=workspace,
    )


def _dependencies(project: _Project, manifests: Mapping[str, str]) -> Iterator[ManifestDependency]:
    above = (project, *project.parents)
    for entry in _children(project.settings, "dependencies"):
        name = project.needed(entry)
        chosen = [_text(entry, "version"), *(parent.managed.get(name) for parent in above)]
        version = project.filled(next((candidate for candidate in chosen if candidate), ""))
        meant = manifests.get(name, "")
        if name.strip(":"):
            yield ManifestDependency(
                project.manifest,
                name,
                package_model.DEV if _text(entry, "scope") == "test" else package_model.NORMAL,
                _text(entry, "optional") == "true",
                local=bool(meant),
                requirement=version,
                manifest=meant,
            )


def _child(element: Element, name: str) -> Element | None:
    """The child element with a name, in any namespace."""
    return next((child for child in element if _name(child) == name), None)


def _children(element: Element, *names: str) -> Iterable[Element]:
    child = _descendant(element, names)
    return () if child is None else child


def _descendant(element: Element, names: Iterable[str]) -> Element | None:
    child: Element | None = element
    for name in names:
        child = _child(child, name) if child is not None else None
    return child


def _text(element: Element, *names: str) -> str:
    child = _descendant(element, names)
    text = ((child.text if child is not None else "") or "").strip()
    return text if is_name(text) else ""


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
