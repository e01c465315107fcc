"""What a language has to say when names are followed: where an import leads, and what else is
visible."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ctx.code.resolve.world import SourceFile, World
from ctx.code.source_model import SourceImport

if TYPE_CHECKING:
    from ctx.code.resolve.evaluator import Evaluator

Value = tuple[bool, SourceFile, int]
"""Something that an expression can stand for: whether it is one of a kind rather than the thing
itself, and the item by its file and place. The first item of a file is the file."""

MaybeValue = Value | None
"""None: nobody knows."""


class _Outside(SourceFile):
    """Stands for all that is not in the repository."""

    __slots__ = ()

    def __init__(self) -> None:
        self.id = -1
        self.path = ""


OUTSIDE: Value = (False, _Outside(), -1)
"""It is known to lie elsewhere: the language's own, or another package. Compared with `is`."""


class ResolutionRules:
    """One language. The evaluator asks these questions, and remembers the answers."""

    languages: tuple[str, ...]
    """Whose files can name each other's items."""
    members_are_visible = False
    """Whether a method sees the members of its class by their plain names."""
    builtins: frozenset[str] = frozenset()
    """Names that are the language's own unless a file says otherwise."""
    common: frozenset[str] = frozenset()
    """Members of the language's own types: of these, one of the same name proves nothing."""
    names_are_global = False
    """Whether a plain name may mean something in any other file."""
    receivers: frozenset[str] = frozenset()
    """Words like `self`: `receiver` says what they stand for."""

    def __init__(self, world: World, evaluator: "Evaluator") -> None:
        self.world = world
        self.evaluator = evaluator

    def module(self, file: SourceFile, module: str) -> MaybeValue:
        """The file, or the item, that the first part of an import names; `OUTSIDE` where it is
        known not to be here."""
        raise NotImplementedError

    def target(self, file: SourceFile, each: SourceImport) -> MaybeValue:
        """What an import brings in."""
        found = self.module(file, each.module)
        if found is None or found is OUTSIDE or each.item in ("", "*"):
            return found
        return self.evaluator.member(found, each.item)

    def receiver(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        """What `self`, `this` and their like stand for."""
        return None

    def implicit(self, file: SourceFile, name: str) -> MaybeValue:
        """What a name means that no import brought: the same package, the language itself."""
        return OUTSIDE if name in self.builtins else None

    def within(self, file: SourceFile, name: str) -> MaybeValue:
        """What a module has beside what stands in its own file: the modules in its folder."""
        return None

    def containers(self, file: SourceFile, place: int) -> Iterable[tuple[SourceFile, int]]:
        """Where the members of a type are, besides in its own body."""
        return ()

    def bases(self, file: SourceFile, place: int) -> Iterator[MaybeValue]:
        """What a type takes members from."""
        item = file.items[place]
        for base in item.bases:
            yield self.evaluator.expression(file, item.parent, base)

    def namesakes(self, file: SourceFile, name: str) -> list[tuple[int, int]]:
        """Items that a call of a member may mean where nothing else is known: ids and files."""
        languages = self.world.languages
        return [
            (each.id, each.file_id)
            for each in self.world.named(name)
            if each.kind in _CALLABLE and languages.get(each.file_id) in self.languages
        ]

    def is_common(self, file: SourceFile, name: str) -> bool:
        """Whether so many things have a member of this name that one of them proves nothing."""
        return name in self.common

    def inherited(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        """What `super().name` means."""
        return None

    def import_targets(self, file: SourceFile, each: SourceImport, found: Value) -> Iterable[Value]:
        """Which items an import leads to: what it names. A language whose packages are folders
        says which of the files in one are meant."""
        return (found,)


_CALLABLE = frozenset({"function", "method"})


def class_around(file: SourceFile, scope: int) -> int:
    """The type that a place lies in; 0 where it lies in none."""
    items = file.items
    while scope > 0 and items[scope].kind not in TYPES:
        scope = items[scope].parent
    return max(scope, 0)


TYPES = frozenset({"class", "struct", "enum", "trait", "interface", "impl"})
