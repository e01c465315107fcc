"""Which file is which module of which crate."""

from ctx.code.packages import cargo
from ctx.code.packages.package_model import ManifestPackage
from ctx.code.resolve.rules import OUTSIDE, MaybeValue, Value, file_value
from ctx.code.resolve.world import SourceFile, World

_LIBRARIES = ("lib", "proc_macro")


class Modules:
    """The trees of modules, each below the root of a crate."""

    def __init__(self, world: World) -> None:
        self._world = world
        workspace = cargo.read(world.root, world.ids)
        self._roots = {target.path for package in workspace.packages for target in package.targets}
        self._crates: dict[str, dict[str, str]] = {}
        """The crates by the name that code in a package's folder uses: the root file, or empty if
        it is not in the repository."""
        libraries = {package.manifest: _library(package) for package in workspace.packages}
        for package in workspace.packages:
            folder = "" if package.root == "." else package.root
            known = self._crates.setdefault(folder, {})
            if library := libraries[package.manifest]:
                known[library[0]] = library[1]
        for need in workspace.dependencies:
            folder = need.from_.rpartition("/")[0]
            called = (need.known_as or need.to).replace("-", "_")
            library = libraries.get(need.manifest)
            if library and not need.known_as:
                called = library[0]
            self._crates.setdefault(folder, {})[called] = library[1] if library else ""
        self._parents: dict[str, Value | None] = {}
        self._elsewhere: dict[str, dict[str, tuple[int, int]]] = {}

    def home(self, path: str) -> str:
        """The folder of the package that a file belongs to."""
        while path:
            path = path.rpartition("/")[0]
            if path in self._crates:
                return path
        return ""

    def crate_called(self, file: SourceFile, name: str) -> MaybeValue:
        root = self._crates.get(self.home(file.path), {}).get(name)
        if root is None:
            return None
        return file_value(self._world.at(root) if root else None) or OUTSIDE

    def around(self, file: SourceFile, scope: int) -> int:
        """The module that contains an item: an inline module, or the file."""
        while scope > 0 and file.items[scope].kind != "module":
            scope = file.items[scope].parent
        return max(scope, 0)

    def root(self, file: SourceFile) -> MaybeValue:
        """The root module of a file's crate."""
        visited: set[str] = set()
        while file.path not in self._roots and file.path not in visited:
            visited.add(file.path)
            parent = self._parent(file)
            if parent is None:
                break
            file = parent[1]
        return False, file, 0

    def above(self, file: SourceFile, place: int) -> MaybeValue:
        """The parent of a module."""
        if place > 0:
            return False, file, self.around(file, file.items[place].parent)
        return None if file.path in self._roots else self._parent(file)

    def below(self, file: SourceFile, place: int, name: str) -> MaybeValue:
        """The module with a name that is declared in a module and has its own file."""
        folder = self._folder(file, place)
        for path in (f"{folder}{name}.rs", f"{folder}{name}/mod.rs"):
            target = self._world.at(path)
            if target is not None and target is not file:
                return False, target, 0
        return None

    def at(self, file: SourceFile, place: int, written: str) -> MaybeValue:
        """The module in a file that an attribute names."""
        path = self._path_attribute_file(file, place, written)
        return file_value(self._world.at(path) if path else None)

    def _path_attribute_file(self, file: SourceFile, place: int, written: str) -> str | None:
        folder = file.path.rpartition("/")[0] if place == 0 else self._folder(file, place)
        parts = [part for part in folder.split("/") if part]
        for part in written.split("/"):
            if part == "..":
                if not parts:
                    return None
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return "/".join(parts)

    def _folder(self, file: SourceFile, place: int) -> str:
        """The folder of the files of a module's submodules, with a trailing slash."""
        folder, _, name = file.path.rpartition("/")
        names = [folder] if folder else []
        if file.path not in self._roots and name != "mod.rs":
            names.append(name.removesuffix(".rs"))
        inside: list[str] = []
        while place > 0:
            if file.items[place].kind == "module":
                inside.append(file.items[place].name)
            place = file.items[place].parent
        return "".join(f"{part}/" for part in (*names, *reversed(inside)))

    def _parent(self, file: SourceFile) -> Value | None:
        if file.path not in self._parents:
            self._parents[file.path] = self._find_parent(file.path)
        return self._parents[file.path]

    def _find_parent(self, path: str) -> Value | None:
        """The module that declares a file, by its location or by an attribute."""
        folder, _, name = path.rpartition("/")
        if name == "mod.rs":
            folder, _, name = folder.rpartition("/")
        name = name.removesuffix(".rs")
        named = self._by_attribute(path)
        if named is not None:
            return named
        candidates = self._modules_of(folder)
        for candidate in candidates:
            declared = candidate[1].imported(candidate[2], name)
            if declared is not None and declared.module == f"self::{name}":
                return candidate
        return candidates[0] if candidates else None

    def _modules_of(self, folder: str) -> list[Value]:
        """The modules whose submodules have their files in a folder."""
        above, _, last = folder.rpartition("/")
        paths = [f"{folder}/mod.rs", f"{folder}.rs"]
        paths += [
            path
            for number in self._world.in_folder(folder)
            if (path := self._world.path(number)) in self._roots
        ]
        # A library comes first if a program has its modules in the same folder.
        paths.sort(key=lambda path: path.endswith("main.rs"))
        modules = [module for path in paths if (module := file_value(self._world.at(path)))]
        if not modules and last:
            for _, file, _ in self._modules_of(above) if above.count("/") < 40 else ():
                place = file.member(0, last)
                if place is not None and file.items[place].kind == "module":
                    modules.append((False, file, place))
        return modules

    def _by_attribute(self, path: str) -> Value | None:
        """The module that names a file with `#[path]`: it is in a parent folder, or beside it."""
        folder = path.rpartition("/")[0]
        home = self.home(path)
        while True:
            if folder not in self._elsewhere:
                self._elsewhere[folder] = self._attributes_in(folder)
            spot = self._elsewhere[folder].get(path)
            if spot is not None:
                file = self._world.file(spot[0])
                return (False, file, spot[1]) if file else None
            if folder == home or not folder:
                return None
            folder = folder.rpartition("/")[0]

    def _attributes_in(self, folder: str) -> dict[str, tuple[int, int]]:
        by_path: dict[str, tuple[int, int]] = {}
        for number in self._world.in_folder(folder):
            if self._world.languages.get(number) != "rust":
                continue
            file = self._world.file(number)
            for import_ in file.facts.imports if file else ():
                if file and import_.module.startswith('"'):
                    scope = self.around(file, import_.scope)
                    path = self._path_attribute_file(file, scope, import_.module.strip('"'))
                    if path:
                        by_path.setdefault(path, (number, scope))
        return by_path


def _library(package: ManifestPackage) -> tuple[str, str] | None:
    """The name of a package's library, and its root file."""
    for target in package.targets:
        if target.kind in _LIBRARIES:
            return target.name, target.path
    return None
