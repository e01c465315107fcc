"""What a language defines for name resolution: where an import leads, and what else is visible."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ctx.code.resolve.world import SourceFile, World
from ctx.code.source_model import SourceImport

if TYPE_CHECKING:
    from ctx.code.resolve.evaluator import Evaluator

Value = tuple[bool, SourceFile, int]
"""The value of an expression: whether it is an instance rather than the thing itself, and the item
by its file and index. The first item of a file is the file."""

MaybeValue = Value | None
"""None: unknown."""


def file_value(file: SourceFile | None) -> MaybeValue:
    """A file as a value."""
    return None if file is None else (False, file, 0)


class _ExternalFile(SourceFile):
    """Stands for everything outside of the repository."""

    __slots__ = ()

    def __init__(self) -> None:
        self.id = -1
        self.path = ""


OUTSIDE: Value = (False, _ExternalFile(), -1)
"""Known to be elsewhere: in the language itself, or in another package. Compare it with `is`."""


class ResolutionRules:
    """The rules of one language. The evaluator calls these methods, and caches the results."""

    languages: tuple[str, ...]
    """The languages whose files can refer to each other's items."""
    members_are_visible = False
    """Whether a method sees the members of its class by their plain names."""
    builtins: frozenset[str] = frozenset()
    """Names of the language itself, unless a file defines them."""
    common: frozenset[str] = frozenset()
    """Members of the language's own types: a match of such a name proves nothing."""
    called_kinds = frozenset({"function", "method"})
    """What a call of an unknown member may refer to."""
    names_are_global = False
    """Whether a plain name may refer to an item of any other file."""
    receivers: frozenset[str] = frozenset()
    """Words like `self`, which `receiver` resolves."""

    def __init__(self, world: World, evaluator: "Evaluator") -> None:
        self.world = world
        self.evaluator = evaluator

    def module(self, file: SourceFile, module: str) -> MaybeValue:
        """The file or item that the module of an import refers to; `OUTSIDE` if it is known not to
        be here."""
        raise NotImplementedError

    def target(self, file: SourceFile, import_: SourceImport) -> MaybeValue:
        """What an import refers to."""
        value = self.module(file, import_.module)
        if value is None or value is OUTSIDE or import_.item in ("", "*"):
            return value
        return self.evaluator.member(value, import_.item)

    def receiver(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        """What `self`, `this` and similar words refer to."""
        return None

    def implicit(self, file: SourceFile, name: str) -> MaybeValue:
        """The meaning of a name that is not imported: in the same package, or in the language
        itself."""
        return OUTSIDE if name in self.builtins else None

    def within(self, file: SourceFile, name: str) -> MaybeValue:
        """What a module contains beside the content of its file: the modules in its folder."""
        return None

    def containers(self, file: SourceFile, place: int) -> Iterable[tuple[SourceFile, int]]:
        """Where the members of a type are, besides in its own body."""
        return ()

    def bases(self, file: SourceFile, place: int) -> Iterator[MaybeValue]:
        """The types that a type inherits from."""
        item = file.items[place]
        for base in item.bases:
            yield self.evaluator.expression(file, item.parent, base)

    def namesakes(self, file: SourceFile, name: str) -> list[tuple[int, int]]:
        """Candidates for a call of an unknown member: ids and files."""
        languages = self.world.languages
        return [
            (namesake.id, namesake.file_id)
            for namesake in self.world.named(name)
            if namesake.kind in self.called_kinds
            and languages.get(namesake.file_id) in self.languages
        ]

    def is_common(self, file: SourceFile, name: str) -> bool:
        """Whether the name of a member is so common that a match proves nothing."""
        return name in self.common

    def inherited(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        """What `super().name` refers to."""
        return None

    def import_targets(
        self, file: SourceFile, import_: SourceImport, value: Value
    ) -> Iterable[Value]:
        """The items that an import leads to: by default, what it names. A language whose packages
        are folders selects the files."""
        return (value,)


def class_around(file: SourceFile, scope: int) -> int:
    """The type around a place; 0 if there is none."""
    items = file.items
    while scope > 0 and items[scope].kind not in TYPES:
        scope = items[scope].parent
    return max(scope, 0)


TYPES = frozenset({"class", "struct", "enum", "trait", "interface", "impl"})
