"""The folders of the modules of a Python project: as its build tool is configured, else by
convention: a folder `src`, or the project's own."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctx.code.packages.manifest_files import (
    ManifestTree,
    Table,
    joined,
    split,
    table_of,
    tables_of,
    text_of,
    texts_of,
)
from ctx.code.vocabulary import FOLDERS_BESIDE_CODE


class Layout(NamedTuple):
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


def find_layout(tree: ManifestTree, folder: str, name: str, said: Table) -> Layout:
    """The layout of the project in a folder; its manifest may configure it."""
    told = [
        root for root in dict.fromkeys(_configured_folders(folder, said)) if any(_in(tree, root))
    ]
    if not told:
        inside = joined(folder, "src") or "src"
        has_source = any(_in(tree, inside)) and f"{inside}/__init__.py" not in tree
        told = [inside if has_source else folder]
    modules: dict[str, None] = {}
    for root in told:
        is_project = root == folder
        for each in _in(tree, root, named=name):
            if not (is_project and (each in FOLDERS_BESIDE_CODE or each in ("setup", "conftest"))):
                modules[each] = None
    return Layout(tuple(told), tuple(modules))


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


def _in(tree: ManifestTree, root: str, named: str = "") -> Iterator[str]:
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
