"""What a name refers to in the code around a command: the one item with that name.

Any suffix of the qualified name is enough. Names in the middle may be missing, because people often
import an item from a package that re-exports it.
"""

import re
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ctx import checkouts
from ctx.errors import AmbiguousId, CtxError
from ctx.project import anchors
from ctx.project.anchors import Anchor
from ctx.workspace import Memory

if TYPE_CHECKING:
    # Most commands name a file or a node and never need these modules.
    from ctx.code.lookup import Code, LocatedItem
    from ctx.codebase.indexing import Codebase

_PLACE = re.compile(r"[^\s:]+:\d{1,9}", re.ASCII)
_MOST_NAMED = 8


class UnknownName(NamedTuple):
    """A name that the code does not define."""

    name: str
    near: tuple[str, ...]
    """Similar names that the code does define."""


class CodeNames:
    """The names in the code around a command, looked up on demand. Use it as a context manager."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __enter__(self) -> "CodeNames":
        return self

    def __exit__(self, *_: object) -> None:
        if "_code" in self.__dict__ and self._code:
            self._code.connection.close()

    def anchor(self, text: str) -> Anchor | None:
        """The anchor of the item with a name; None if there is no such item or no index."""
        matches = self._matches(text)
        if len(matches) > 1:
            raise AmbiguousId(
                f"{text[:80]!r} names {len(matches)} items in the code.",
                detail="\n".join(_lines(list(matches.values()))),
                hint="Use more of its name, or FILE:LINE.",
            )
        for name, item in matches.items():
            return anchors.file(item.path) if name == item.path else anchors.item(name)
        return None

    def unclear(self, text: str) -> UnknownName:
        """An ambiguous name, with some of the items that have it."""
        return UnknownName(text, tuple(self._matches(text))[:_MOST_NAMED])

    def _matches(self, text: str) -> "dict[str, LocatedItem]":
        """The items that a name can refer to, by qualified name."""
        if not (anchors.looks_qualified(text) or _PLACE.fullmatch(text)) or self._code is None:
            return {}
        from ctx.code import lookup

        every = lookup.without_impls(self._code.find(text, self._folder))
        meant = lookup.exact_matches(every, text)
        return {item.name: item for item in meant}

    def unknown(self, text: str) -> UnknownName | None:
        """A name that the code could define but does not; None without an index."""
        from ctx.code import suggestions

        if self._code is None:
            return None
        return UnknownName(text, tuple(suggestions.similar_names(self._code, text, self._folder)))

    @cached_property
    def _codebase(self) -> "Codebase | None":
        from ctx.codebase import indexing

        memory = self._memory
        is_somewhere = memory.project_memory or checkouts.find_checkout(memory.folder)
        if memory.environment.is_single_store or not is_somewhere:
            # A folder outside of any project may hold anything, and very many files.
            return None
        with suppress(CtxError):
            return indexing.codebase_at(memory.environment)
        return None

    @property
    def _folder(self) -> str:
        return self._codebase.folder if self._codebase else ""

    @cached_property
    def _code(self) -> "Code | None":
        from ctx.codebase import freshness

        return freshness.open_if_quick(self._codebase) if self._codebase else None


def _lines(items: "list[LocatedItem]") -> list[str]:
    width = max(len(item.name) for item in items[:_MOST_NAMED])
    lines = [f"{item.name:{width}}  {item.path}:{item.line}" for item in items[:_MOST_NAMED]]
    more = len(items) - _MOST_NAMED
    return [*lines, f"and {more} more"] if more > 0 else lines
