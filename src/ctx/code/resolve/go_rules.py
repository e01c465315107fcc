"""Where Go's imports lead. A package is a folder: its files see each other's names, and the methods
of a type may be in any of them."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ctx.code.resolve.evaluator import Evaluator
from ctx.code.resolve.rules import OUTSIDE, MaybeValue, ResolutionRules, Value, file_value
from ctx.code.resolve.world import SourceFile, World, normal_path
from ctx.code.source_model import SourceImport

_MODULE = re.compile(r"^module\s+[\"`]?([^\s\"`]+)", re.MULTILINE)
_REPLACE = re.compile(
    r"^(?:replace)?[ \t]*([^\s()]+)(?:[ \t]+v\S+)?[ \t]*=>[ \t]*(\.{1,2}(?:/\S*)?)[ \t]*(?://.*)?$",
    re.MULTILINE,
)
_PLATFORMS = (
    *("_windows.go", "_darwin.go", "_freebsd.go", "_netbsd.go", "_openbsd.go", "_plan9.go"),
    *("_solaris.go", "_js.go", "_wasm.go", "_other.go", "_others.go", "_unsupported.go"),
)


class _Package(NamedTuple):
    """The files of a folder that form a package, by id."""

    files: list[int]
    names: dict[str, tuple[int, int]]
    """Its package-level definitions: the file and the index."""
    methods: dict[str, list[tuple[int, int]]]
    """By the name of their type: the files, and the index of their members."""


class GoRules(ResolutionRules):
    languages = ("go",)
    called_kinds = frozenset({"method"})
    # A variable that holds a function is bound to `func`, which has no members.
    builtins = frozenset(
        "any append bool byte cap clear close comparable complex complex64 complex128 copy delete"
        " error false float32 float64 func imag int int8 int16 int32 int64 iota len make max min"
        " new nil panic print println real recover rune string true uint uint8 uint16 uint32 uint64"
        " uintptr".split()
    )
    common = frozenset(
        "Add After Before Bytes Close Cleanup Context Copy Delete Do Done Equal Err Error Errorf"
        " Fatal Fatalf Find Flush Format Get Grow Header Helper Int Index Kind Len Less Load Lock"
        " Log Logf Name New Next Open Parse Print Printf Put Range Read ReadAll ReadFile Reset Run"
        " Scan Seek Set Size Skip Start Stat Stop Store String Sub Sum Swap Sync Text Type Unlock"
        " Unwrap Value Wait Write WriteString".split()
    )

    def __init__(self, world: World, evaluator: Evaluator) -> None:
        super().__init__(world, evaluator)
        self._packages: dict[tuple[str, str], _Package] = {}
        self._imported: dict[tuple[str, str], MaybeValue] = {}
        self._used: tuple[int, dict[str, set[str]]] = (-1, {})
        self._modules: dict[str, str] = {}
        """The folders of the modules in the repository, by module path."""
        self._replaced: dict[str, dict[str, str]] = {}
        """The replacements of each folder with a module, by module path."""
        for path in sorted(world.ids):
            if path.rpartition("/")[2] == "go.mod" and "vendor" not in path.split("/"):
                self._read_module(path)

    def _read_module(self, path: str) -> None:
        text = (self.world.content(path) or b"").decode("utf-8", "replace")
        folder = path.rpartition("/")[0]
        named = _MODULE.search(text)
        if named:
            self._modules.setdefault(named[1], folder)
        self._replaced[folder] = {
            name: normal_path(f"{folder}/{where}") for name, where in _REPLACE.findall(text)
        }

    def module(self, file: SourceFile, module: str) -> MaybeValue:
        key = (self._home(file.path), module)
        if key not in self._imported:
            self._imported[key] = self._module(*key)
        return self._imported[key]

    def _home(self, path: str) -> str:
        """The folder of the module that a file belongs to."""
        while path:
            path = path.rpartition("/")[0]
            if path in self._replaced:
                return path
        return ""

    def _module(self, home: str, module: str) -> MaybeValue:
        replaced = self._replaced.get(home, {})
        prefix = module
        while prefix:
            folder = replaced.get(prefix, self._modules.get(prefix))
            if folder is not None:
                rest = module[len(prefix) + 1 :]
                return self._in_folder(f"{folder}/{rest}".strip("/"), module)
            prefix = prefix.rpartition("/")[0]
        return OUTSIDE

    def _in_folder(self, folder: str, module: str) -> MaybeValue:
        """The package that a folder exports, represented by its first file."""
        files: dict[str, list[int]] = {}
        for number in self._go_files(folder):
            file = self.world.file(number)
            if file is not None and not file.path.endswith("_test.go"):
                files.setdefault(file.facts.namespace, []).append(number)
        if not files:
            return OUTSIDE
        # A main package may be in the same folder.
        last = module.rpartition("/")[2]
        names = sorted(files, key=lambda name: (name != last, name == "main", -len(files[name])))
        return file_value(self.world.file(files[names[0]][0])) or OUTSIDE

    def _go_files(self, folder: str) -> list[int]:
        """The preferred files first: a name may be defined once per platform."""
        numbers = [n for n in self.world.in_folder(folder) if self.world.languages.get(n) == "go"]

        def order(number: int) -> tuple[bool, bool, str]:
            path = self.world.path(number)
            return path.endswith("_test.go"), path.endswith(_PLATFORMS), path

        return sorted(numbers, key=order)

    def _package(self, file: SourceFile) -> _Package:
        key = (file.path.rpartition("/")[0], file.facts.namespace)
        known = self._packages.get(key)
        if known is not None:
            return known
        package = self._packages[key] = _Package([], {}, {})
        for number in self._go_files(key[0]):
            member_file = self.world.file(number)
            if member_file is None or member_file.facts.namespace != key[1]:
                continue
            package.files.append(number)
            for name, place in member_file.members(0):
                package.names.setdefault(name, (number, place))
            for type_, place in member_file.outside.items():
                package.methods.setdefault(type_, []).append((number, place))
        return package

    def _package_member(self, file: SourceFile, name: str) -> MaybeValue:
        number, place = self._package(file).names.get(name, (-1, 0))
        target = self.world.file(number) if number >= 0 else None
        return (False, target, place) if target else None

    # Called by the evaluator

    def implicit(self, file: SourceFile, name: str) -> MaybeValue:
        found = self._package_member(file, name)
        return found if found is not None else super().implicit(file, name)

    def within(self, file: SourceFile, name: str) -> MaybeValue:
        return self._package_member(file, name)

    def containers(self, file: SourceFile, place: int) -> Iterator[tuple[SourceFile, int]]:
        if file.items[place].parent == 0:
            for number, where in self._package(file).methods.get(file.items[place].name, ()):
                target = self.world.file(number)
                if target:
                    yield target, where

    def bases(self, file: SourceFile, place: int) -> Iterator[MaybeValue]:
        item = file.items[place]
        element = file.binding(place, "[]")
        for base in (*item.bases, *((element,) if element else ())):
            yield self.evaluator.expression(file, item.parent, base)

    def import_targets(
        self, file: SourceFile, import_: SourceImport, value: Value
    ) -> Iterable[Value]:
        """The files of a package that define the used names; the first file if no name is used."""
        package = self._package(value[1])
        used = self._used_names(file)
        by_name = used.get(import_.bound) or used.get(value[1].facts.namespace) or ()
        names: Iterable[str] = used if import_.item == "*" else by_name
        numbers = {package.names[name][0] for name in names if name in package.names}
        files = [self.world.file(number) for number in sorted(numbers)]
        return [(False, one, 0) for one in files if one] or [value]

    def _used_names(self, file: SourceFile) -> dict[str, set[str]]:
        """The names that a file uses: the first names of its expressions, and the names after
        them."""
        if self._used[0] != file.id:
            used: dict[str, set[str]] = {}
            for mention in self.world.mentions(file.id):
                first, _, rest = mention.expression.partition(".")
                second = rest.partition(".")[0].partition("(")[0]
                used.setdefault(first.partition("(")[0], set()).add(second)
            self._used = (file.id, used)
        return self._used[1]


RULES = GoRules
