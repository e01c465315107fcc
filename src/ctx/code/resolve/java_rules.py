"""Where Java's imports lead. A package is all files that declare it, wherever they are; they see
each other's types."""

import re
from collections.abc import Iterable, Iterator

from ctx.code.resolve.evaluator import Evaluator
from ctx.code.resolve.rules import (
    OUTSIDE,
    TYPES,
    MaybeValue,
    ResolutionRules,
    Value,
    class_around,
    file_value,
)
from ctx.code.resolve.world import SourceFile, World
from ctx.code.source_model import SourceImport

_FIRST = re.compile(r"\w+")


class JavaRules(ResolutionRules):
    languages = ("java",)
    members_are_visible = True
    receivers = frozenset(("this", "super"))
    builtins = frozenset(
        "AssertionError AutoCloseable Boolean Byte CharSequence Character Class ClassLoader"
        " Cloneable Comparable Deprecated Double Enum Error Exception Float FunctionalInterface"
        " IllegalArgumentException IllegalStateException Integer InterruptedException Iterable Long"
        " Math NullPointerException Number NumberFormatException Object Override Process Record"
        " Runnable Runtime RuntimeException SafeVarargs Short String StringBuffer StringBuilder"
        " SuppressWarnings System Thread ThreadLocal Throwable UnsupportedOperationException"
        " Void".split()
    )
    common = frozenset(
        "accept add addAll apply build charAt clear clone close collect compareTo contains"
        " containsKey containsValue copyOf endsWith entrySet equals filter first flush forEach"
        " format get getClass getKey getMessage getName getOrDefault getValue hasNext hashCode"
        " indexOf isEmpty isPresent iterator join keySet last length map match matches name next of"
        " ofNullable orElse ordinal parse peek pop print println push put putAll read remove"
        " replace reset reverse run set size sort split startsWith stream submit substring test"
        " then toArray toList toString trim valueOf values wait write".split()
    )

    def __init__(self, world: World, evaluator: Evaluator) -> None:
        super().__init__(world, evaluator)
        self._folders: dict[str, list[str]] = {}
        """The folders of each package. All files of a folder belong to one package, so one file is
        enough."""
        self._packages: dict[str, dict[str, tuple[int, int]]] = {}
        """The types of each package: the file and the index."""
        for folder in world.folders():
            numbers = self._java_files(folder)
            first = world.file(numbers[0]) if numbers else None
            if first is not None:
                self._folders.setdefault(first.facts.namespace, []).append(folder)

    def _java_files(self, folder: str) -> list[int]:
        return [n for n in self.world.in_folder(folder) if self.world.languages.get(n) == "java"]

    def _types(self, package: str) -> dict[str, tuple[int, int]]:
        known = self._packages.get(package)
        if known is None:
            known = self._packages[package] = {}
            # Tests may define a type of the same name, which other files do not refer to.
            folders = self._folders.get(package, ())
            for folder in sorted(folders, key=lambda path: "test" in path.split("/")):
                for number in self._java_files(folder):
                    file = self.world.file(number)
                    for name, place in file.members(0) if file else ():
                        known.setdefault(name, (number, place))
        return known

    def module(self, file: SourceFile, module: str) -> MaybeValue:
        """A type by its full name; a package contains only types."""
        package, _, name = module.rpartition(".")
        if package in self._folders:
            value = self._type(package, name)
            if value is not None:
                return value
        elif package:
            around = self.module(file, package)
            if around is not None and around is not OUTSIDE:
                return self.evaluator.member(around, name)
        return OUTSIDE

    def target(self, file: SourceFile, import_: SourceImport) -> MaybeValue:
        if import_.item != "*":
            value = self.module(file, f"{import_.module}.{import_.item}")
            if value is OUTSIDE and import_.module not in self._folders:
                # A static member.
                around = self.module(file, import_.module)
                if around is not None and around is not OUTSIDE:
                    return self.evaluator.member(around, import_.item)
            return value
        if import_.module in self._folders:
            # A file stands for its package: see `within`.
            numbers = [n for f in self._folders[import_.module] for n in self._java_files(f)]
            return file_value(self.world.file(numbers[0])) or OUTSIDE
        return self.module(file, import_.module)

    def within(self, file: SourceFile, name: str) -> MaybeValue:
        return self._type(file.facts.namespace, name)

    def import_targets(
        self, file: SourceFile, import_: SourceImport, value: Value
    ) -> Iterable[Value]:
        if import_.item != "*" or value[2] != 0:
            return (value,)
        words = {_FIRST.match(mention.expression) for mention in self.world.mentions(file.id)}
        used = sorted({word.group() for word in words if word})
        types = (self._type(import_.module, name) for name in used)
        return [type_ for type_ in types if type_] or (value,)

    def receiver(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        place = class_around(file, scope)
        if not place:
            return None
        if name == "this":
            return True, file, place
        return next((base for base in self.bases(file, place) if base is not None), OUTSIDE)

    def bases(self, file: SourceFile, place: int) -> Iterator[MaybeValue]:
        # A name that a class might inherit from outside much more often belongs to its
        # surroundings.
        return (base for base in super().bases(file, place) if base is not OUTSIDE)

    def implicit(self, file: SourceFile, name: str) -> MaybeValue:
        value = self._type(file.facts.namespace, name)
        if value is not None:
            return value
        for star in file.stars:
            value = self._type(star.module, name)
            if value is not None:
                return value
        return super().implicit(file, name)

    def _type(self, package: str, name: str) -> MaybeValue:
        number, place = self._types(package).get(name, (-1, 0))
        file = self.world.file(number) if number >= 0 else None
        if file is None or file.items[place].kind not in TYPES:
            return None
        return False, file, place


RULES = JavaRules
