"""Python projects, from `pyproject.toml` and `setup.cfg`. A `setup.py` is a program and is not
run."""

import configparser
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ctx.code.packages import package_model
from ctx.code.packages.manifest_files import (
    ManifestTree,
    Table,
    entries,
    is_name,
    joined,
    split,
    table_of,
    tables_of,
    text_of,
    texts_of,
)
from ctx.code.packages.package_model import (
    ManifestDependency,
    ManifestPackage,
    PackageTarget,
    PackageWorkspace,
)
from ctx.code.vocabulary import FOLDERS_BESIDE_CODE

MANIFEST = "pyproject.toml"
OLD_MANIFEST = "setup.cfg"

# A name, its extras, and the rest: `requests[socks] >= 2 ; python_version < "3.13"`.
_REQUIREMENT = re.compile(
    r"\s{0,9}([A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)\s{0,9}"
    r"(?:\[([^\]]{0,300})\])?\s{0,9}([=<>!~;@(].*)?"
)
_MODULE = re.compile(r"[A-Za-z_][\w.]{0,200}")


class _Project(NamedTuple):
    """The content of either kind of manifest in one form."""

    name: str
    version: str
    scripts: Mapping[str, str]
    """The names of programs, and `package.module:function`."""
    needs: tuple["_PythonDependency", ...]


class _PythonDependency(NamedTuple):
    name: str
    extras: tuple[str, ...]
    requirement: str
    kind: str
    optional: bool


def python_manifests(tree: ManifestTree) -> PackageWorkspace:
    by_folder: dict[str, tuple[ManifestPackage, _Project]] = {}
    for path in (*tree.called(MANIFEST), *tree.called(OLD_MANIFEST)):
        folder, name = split(path)
        content: Table | None = None
        if name == MANIFEST:
            content = tree.toml(path)
            project = _of_pyproject(content or {})
        else:
            project = _of_setup_cfg(tree, path)
        # Many of these files only contain tool settings.
        if project is not None and folder not in by_folder:
            by_folder[folder] = (_package(tree, path, project, content or {}), project)
    by_name = {
        _normalized_name(package.name): package.manifest for package, _ in by_folder.values()
    }
    dependencies = [
        dependency
        for package, project in by_folder.values()
        for dependency in _dependencies(package, project, by_name)
    ]
    packages = tuple(package for package, _ in by_folder.values())
    return PackageWorkspace(packages, tuple(dependencies), tuple(tree.problems))


def _of_pyproject(content: Table) -> _Project | None:
    project, poetry = table_of(content, "project"), table_of(content, "tool", "poetry")
    if not project and not poetry:
        return None
    needs = [*_needs(texts_of(project, "dependencies"), package_model.NORMAL)]
    for extra, _ in entries(table_of(project, "optional-dependencies")):
        needs += _needs(texts_of(project, "optional-dependencies", extra), package_model.EXTRA)
    for group, _ in entries(table_of(content, "dependency-groups")):
        needs += _needs(texts_of(content, "dependency-groups", group), package_model.DEV)
    needs += _needs(texts_of(content, "build-system", "requires"), package_model.BUILD)
    needs += _needs_of_poetry(poetry)
    scripts: dict[str, str] = {}
    tables = [table_of(project, "scripts"), table_of(project, "gui-scripts")]
    for table in (*tables, table_of(poetry, "scripts")):
        scripts.update((name, what) for name, what in entries(table) if isinstance(what, str))
    return _Project(
        text_of(project, "name") or text_of(poetry, "name"),
        text_of(project, "version") or text_of(poetry, "version"),
        scripts,
        tuple(needs),
    )


def _needs(requirements: Iterable[str], kind: str) -> Iterator[_PythonDependency]:
    """The requirements in a list; invalid ones are skipped."""
    for text in requirements:
        if read := _REQUIREMENT.fullmatch(text):
            name, extras, rest = read.groups("")
            named = tuple(extra.strip() for extra in extras.split(",") if extra.strip())
            yield _PythonDependency(name, named, rest.strip(), kind, kind == package_model.EXTRA)


def _needs_of_poetry(poetry: Table) -> Iterator[_PythonDependency]:
    places = [(table_of(poetry, "dependencies"), package_model.NORMAL)]
    places.append((table_of(poetry, "dev-dependencies"), package_model.DEV))
    for group, _ in entries(table_of(poetry, "group")):
        places.append((table_of(poetry, "group", group, "dependencies"), package_model.DEV))
    for table, kind in places:
        for name, wanted in entries(table):
            if name != "python":
                version = wanted if isinstance(wanted, str) else text_of(wanted, "version")
                optional = isinstance(wanted, dict) and wanted.get("optional") is True
                yield _PythonDependency(
                    name, tuple(texts_of(wanted, "extras")), version, kind, optional
                )


def _of_setup_cfg(tree: ManifestTree, path: str) -> _Project | None:
    # Python's parser takes time quadratic in the spaces of a line.
    lines = (tree.text(path) or "").splitlines()
    text = "\n".join(" " * line[:1].isspace() + " ".join(line.split()) for line in lines)
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except (configparser.Error, ValueError):
        tree.problem(path, "cannot be read")
        return None
    if not parser.has_section("metadata"):
        return None

    def listed(section: str, key: str) -> list[str]:
        text = parser.get(section, key, fallback="") or ""
        lines = (line.partition(" #")[0].strip() for line in text.splitlines())
        return [line for line in lines if is_name(line) and not line.startswith("#")]

    needs = [*_needs(listed("options", "install_requires"), package_model.NORMAL)]
    needs += _needs(listed("options", "setup_requires"), package_model.BUILD)
    extras = "options.extras_require"
    for key in parser.options(extras) if parser.has_section(extras) else ():
        needs += _needs(listed(extras, key), package_model.EXTRA)
    programs = (line.partition("=") for line in listed("options.entry_points", "console_scripts"))
    name, version = (parser.get("metadata", key, fallback="") for key in ("name", "version"))
    return _Project(
        name if is_name(name or "") else "",
        # `attr: package.__version__` is a reference, not a version.
        version if is_name(version or "") and ":" not in version else "",
        {name.strip(): what.strip() for name, _, what in programs},
        tuple(needs),
    )


def _package(tree: ManifestTree, path: str, project: _Project, content: Table) -> ManifestPackage:
    folder = split(path)[0]
    layout = _find_layout(tree, folder, project.name, content)
    targets = [
        PackageTarget(name, "script", layout.file_of(tree, what.partition(":")[0].strip()))
        for name, what in project.scripts.items()
        if is_name(name) and _MODULE.match(what)
    ]
    return ManifestPackage(
        project.name,
        project.version,
        package_model.PYTHON,
        folder,
        path,
        tuple(targets),
        layout.modules,
        layout.roots,
    )


def _dependencies(
    package: ManifestPackage, project: _Project, by_name: Mapping[str, str]
) -> Iterator[ManifestDependency]:
    for name, extras, requirement, kind, optional in dict.fromkeys(project.needs):
        meant = by_name.get(_normalized_name(name), "")
        # A project may require its own extras.
        local = meant not in ("", package.manifest)
        yield ManifestDependency(
            package.manifest,
            name,
            kind,
            optional,
            extras,
            local,
            requirement,
            manifest=meant if local else "",
        )


def _normalized_name(name: str) -> str:
    """A name, normalised as on the package index."""
    return re.sub(r"[-_.]+", "-", name).lower()


class _Layout(NamedTuple):
    roots: tuple[str, ...]
    """The folders that imports are relative to."""
    modules: tuple[str, ...]
    """The top-level modules in them."""

    def file_of(self, tree: ManifestTree, module: str) -> str:
        """The file of a dotted module; empty if it is not here."""
        inside = module.replace(".", "/")
        for root in self.roots:
            for end in (".py", "/__init__.py", ".pyi"):
                path = joined(root, inside + end)
                if path and path in tree:
                    return path
        return ""


def _find_layout(tree: ManifestTree, folder: str, name: str, said: Table) -> _Layout:
    """The layout of the project in a folder; its manifest may configure it."""
    told = [
        root
        for root in dict.fromkeys(_configured_folders(folder, said))
        if any(_modules_in_folder(tree, root))
    ]
    if not told:
        inside = joined(folder, "src") or "src"
        has_source = any(_modules_in_folder(tree, inside)) and f"{inside}/__init__.py" not in tree
        told = [inside if has_source else folder]
    modules: dict[str, None] = {}
    for root in told:
        is_project = root == folder
        for each in _modules_in_folder(tree, root, named=name):
            if not (is_project and (each in FOLDERS_BESIDE_CODE or each in ("setup", "conftest"))):
                modules[each] = None
    return _Layout(tuple(told), tuple(modules))


def _configured_folders(folder: str, said: Table) -> Iterator[str]:
    """The folders that the settings of build tools name."""
    setuptools = table_of(said, "tool", "setuptools")
    paths = [text_of(setuptools, "package-dir", "")]
    paths += texts_of(setuptools, "packages", "find", "where")
    paths.append(text_of(said, "tool", "maturin", "python-source"))
    paths.append(text_of(said, "tool", "pdm", "build", "package-dir"))
    paths += [text_of(each, "from") for each in tables_of(said, "tool", "poetry", "packages")]
    wheel = table_of(said, "tool", "hatch", "build", "targets", "wheel")
    paths += [split(each)[0] for each in texts_of(wheel, "packages")]
    paths += texts_of(wheel, "sources")
    backend = text_of(said, "tool", "uv", "build-backend", "module-root")
    for path in (*paths, backend):
        if root := joined(folder, path):
            yield root


def _modules_in_folder(tree: ManifestTree, root: str, named: str = "") -> Iterator[str]:
    """The top-level modules in a folder: packages, files, and folders that contain packages."""
    for name in tree.folders(root):
        inside = joined(root, name) or name
        files = tree.files(inside)
        is_package = "__init__.py" in files or "__init__.pyi" in files
        is_namespace = root.rpartition("/")[2] == "src" or name == re.sub(r"[-.]", "_", named)
        if name.isidentifier() and (is_package or (is_namespace and _has_python(tree, inside))):
            yield name
    for name in tree.files(root):
        stem, dot, end = name.rpartition(".")
        if dot and end == "py" and stem.isidentifier() and not stem.startswith("__"):
            yield stem


def _has_python(tree: ManifestTree, folder: str) -> bool:
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        if any(name.endswith(".py") for name in tree.files(here)):
            return True
        waiting += [f"{here}/{name}" for name in tree.folders(here)]
    return False
