"""The qualified name of an item: the module of its file, and the names from there inward.

People name things like this, `shop.net.Client.connect` or `core::net::Client`, and memory uses
it as the key of an item. It follows from paths and manifests, so it is not stored.
"""

import re
from collections.abc import Iterable
from sqlite3 import Connection
from typing import TYPE_CHECKING, NamedTuple

from ctx.code.vocabulary import FOLDERS_BESIDE_CODE, KINDS, file_of

if TYPE_CHECKING:
    # Only two languages need manifests, and their reader is large.
    from ctx.code.packages.package_model import PackageTarget

_DEEPEST = 100
_MOST_ROWS = 10_000
"""The number of rows to hold on to, for many names in a row."""
_MODULE = KINDS.index("module")
_CARGO = "Cargo.toml"
_GO = "go.mod"
_PYTHON_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg")
_SEPARATORS = {"rust": "::", "c": "::", "cpp": "::"}
_OWN_FILES = frozenset({"mod", "lib", "main"})
# A method defined outside of its type names the type: `func (c *Client) Get()`, `void
# Client::get()`.
_GO_RECEIVER = re.compile(r"func \((?:\w+ )?\*?(\w+)")
_CPP_OWNER = re.compile(
    r"((?:\w+(?:<[^<>()]*(?:<[^<>()]*>[^<>()]*)*>)?::)+)"
    r"(?:(operator)\b[^()]*(?:\(\))?|(~?\w+))\s*\("
)
_ARGUMENTS = re.compile(r"<[^<>]*>")


def separator(language: str | None) -> str:
    """The separator between the names of items."""
    return _SEPARATORS.get(language or "", ".")


class _File(NamedTuple):
    path: str
    language: str | None
    module: str
    """The module name of the file; empty if its items need none."""


class _ItemRow(NamedTuple):
    parent: int | None
    name: str
    signature: str
    kind: int


class QualifiedNames:
    """Computes the names of items, and caches what it learns about files and manifests."""

    def __init__(self, connection: Connection, root: str) -> None:
        self._connection = connection
        self._root = root
        self._files: dict[int, _File | None] = {}
        self._packages: dict[str, bool] = {}
        self._go: dict[str, str] = {}
        self._targets: list[PackageTarget] | None = None
        self._inside: dict[int, str] = {}
        self._rows: dict[int, _ItemRow] = {}

    def load(self, items: Iterable[int]) -> None:
        """Read the rows of items and of what encloses them, with one statement for each level."""
        unknown = {item for item in items if item not in self._inside}
        if len(self._rows) > _MOST_ROWS:
            self._rows.clear()
        for _ in range(_DEEPEST):
            unknown -= self._rows.keys()
            if not unknown:
                return
            rows = self._connection.execute(
                "SELECT id, parent, name, signature, kind FROM items"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (str(list(unknown)),),
            )
            found = {id: _ItemRow(*row) for id, *row in rows}
            self._rows |= found
            unknown = {row.parent for row in found.values() if row.parent is not None}

    def qualified_name(self, item: int) -> str:
        """The qualified name of an item; for a file that is not a module, its path."""
        file = self._file(file_of(item))
        if file is None:
            return ""
        inside = self._names_inside(item, file.language)
        if not inside:
            return file.module if file.language in _NAMED_FILES else file.path
        return separator(file.language).join(filter(None, (file.module, inside)))

    def _names_inside(self, item: int, language: str | None) -> str:
        """The joined names from the file inward; empty for the file itself."""
        known = self._inside.get(item)
        if known is not None:
            return known
        self.load([item])
        names: list[str] = []
        row = self._rows.get(item)
        while row is not None and row.parent is not None and len(names) < _DEEPEST:
            above = self._rows.get(row.parent)
            names.append(row.name)
            # An item inside its type needs no other owner; a namespace is not a type.
            if above is not None and above.kind == _MODULE:
                names += reversed(_owners(row.name, row.signature, language))
            row = above
        joined = self._inside[item] = separator(language).join(reversed(names))
        return joined

    def _file(self, file_id: int) -> _File | None:
        if file_id not in self._files:
            row = self._connection.execute(
                "SELECT path, language FROM files WHERE id = ?", (file_id,)
            ).fetchone()
            file = _File(row[0], row[1], self._module(file_id, *row)) if row else None
            self._files[file_id] = file
        return self._files[file_id]

    def _module(self, file_id: int, path: str, language: str | None) -> str:
        match language:
            case "python":
                return self._python(path)
            case "rust":
                return self._rust(path)
            case "go":
                return self._go_package(path.rpartition("/")[0])
            case "java" | "kotlin" | "scala":
                return self._namespace(file_id)
            case "c" | "cpp":
                return ""
            case _:
                return _without_ending(path)

    def _has(self, path: str) -> bool:
        row = self._connection.execute("SELECT 1 FROM files WHERE path = ?", (path,)).fetchone()
        return row is not None

    def _python(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        stem = name.partition(".")[0]
        names = [] if stem == "__init__" else [stem]
        while folder and self._is_package(folder):
            folder, _, name = folder.rpartition("/")
            names.append(name)
        return ".".join(reversed(names)) or stem

    def _is_package(self, folder: str) -> bool:
        """Whether the dotted names of the files in a folder contain its name.

        A package needs no `__init__.py`. Without one, a folder is a package if it is inside of one,
        or if imports can reach it from a folder that has a manifest, from `src`, or from the top.
        """
        is_package = self._packages.get(folder)
        if is_package is None:
            is_package = self._has_python(folder, "__init__") or self._is_namespace(folder)
            self._packages[folder] = is_package
        return is_package

    def _is_namespace(self, folder: str) -> bool:
        above, _, name = folder.rpartition("/")
        if not name.isidentifier() or self._is_root(folder):
            return False
        if above and not self._is_root(above):
            return self._is_package(above)
        return above.rpartition("/")[2] == "src" or name not in FOLDERS_BESIDE_CODE

    def _is_root(self, folder: str) -> bool:
        """Whether imports are relative to a folder. A package has an identifier as its name."""
        name = folder.rpartition("/")[2]
        if not name.isidentifier():
            return True
        if name == "src":
            return not self._has_python(folder, "__init__")
        return any(self._has(f"{folder}/{name}") for name in _PYTHON_MANIFESTS)

    def _has_python(self, folder: str, stem: str) -> bool:
        return any(self._has(f"{folder}/{stem}{ending}") for ending in (".py", ".pyi"))

    def _rust(self, path: str) -> str:
        target = self._target(path)
        if target is not None and target.path == path:
            return target.name.replace("-", "_")
        if target is not None:
            crate, top = target.name.replace("-", "_"), target.path.rpartition("/")[0]
        else:
            top = path.rpartition("/")[0]
            before, source, _ = f"/{path}".partition("/src/")
            if source:
                top = f"{before}/src"[1:]
            crate = before.rpartition("/")[2] if source else top.rpartition("/")[2]
        inside = _without_ending(path.removeprefix(top).lstrip("/")).split("/")
        if inside[-1] == "mod" or (len(inside) == 1 and inside[0] in _OWN_FILES):
            inside.pop()
        return "::".join(filter(None, (crate or "crate", *inside)))

    def _target(self, path: str) -> "PackageTarget | None":
        """The target that a Rust file belongs to: its own, or the nearest one above it."""
        if self._targets is None:
            from ctx.code.packages import cargo

            paths = self._connection.execute(
                "SELECT path FROM files WHERE language = 'rust' OR path = ? OR path LIKE ?",
                (_CARGO, f"%/{_CARGO}"),
            )
            workspace = cargo.read(self._root, (path for (path,) in paths))
            self._targets = [
                target
                for package in workspace.packages
                for target in package.targets
                if target.path
            ]
        best: PackageTarget | None = None
        for target in self._targets:
            if target.path == path:
                return target
            folder = target.path.rpartition("/")[0]
            if target.kind == "build_script" or not f"{path}/".startswith(
                f"{folder}/" if folder else ""
            ):
                continue
            # A library comes first in its package, before the programs beside it.
            if best is None or len(folder) > len(best.path.rpartition("/")[0]):
                best = target
        return best

    def _go_package(self, folder: str) -> str:
        """The import path of a folder."""
        at, names = folder, list[str]()
        while at not in self._go and at and not self._has(f"{at}/{_GO}"):
            at, _, name = at.rpartition("/")
            names.append(name)
        if at not in self._go:
            from ctx.code.packages import go_modules

            manifest = f"{at}/{_GO}" if at else _GO
            modules = (
                go_modules.read(self._root, [manifest]).packages if self._has(manifest) else ()
            )
            self._go[at] = modules[0].name if modules else at
        package = self._go[folder] = "/".join(filter(None, (self._go[at], *reversed(names))))
        return package

    def _namespace(self, file_id: int) -> str:
        from ctx.code.resolve import facts

        row = self._connection.execute(
            "SELECT facts FROM facts WHERE file_id = ?", (file_id,)
        ).fetchone()
        return facts.decode(row[0]).namespace if row else ""


_NAMED_FILES = frozenset({"python", "rust", "typescript", "tsx", "javascript"})
"""Languages in which a file is a module and named like one."""


def _owners(name: str, signature: str, language: str | None) -> list[str]:
    """The type that an item belongs to although it is defined outside of it."""
    if language == "go":
        match = _GO_RECEIVER.match(signature)
        return [match[1]] if match else []
    if language == "cpp":
        for match in _CPP_OWNER.finditer(signature[:600]):
            # A placeholder for a parameter may match too.
            if match[3] == name or (match[2] and name.startswith(match[2])):
                return _ARGUMENTS.sub("", _ARGUMENTS.sub("", match[1])).split("::")[:-1]
    return []


def _without_ending(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    stem, dot, _ = name.rpartition(".")
    return folder + slash + (stem if dot and stem else name)
