"""What is read from one source file: items, imports, bindings, mentions.

These values are sent between processes and stored in the index as arrays, so new fields go to the
end, and a change of their meaning raises the version of the index (`index_file.VERSION`).

An *expression* is how code names something, reduced to what helps to find it: names joined by the
language's separators, `()` for the result of a call, `[]` for an element. `?` stands for what
cannot be followed: `?.connect` is the `connect` of something.
"""

from hashlib import blake2b

import msgspec

CALL, REFERENCE, TYPE = "call", "reference", "type"
"""The kinds of mentions."""


class SourceItem(msgspec.Struct, array_like=True, gc=False):
    """A definition: the file itself, which is the first item, or something in it."""

    kind: str
    name: str
    parent: int
    """The index of the enclosing item; -1 for the file."""
    visibility: str
    start: int
    """In bytes, like the end."""
    end: int
    line: int
    """From 1, like the last line."""
    end_line: int
    signature: str = ""
    """One line: what a reader must know to use it."""
    doc: str = ""
    body_hash: bytes = b""
    """The hash of its body without the items in it; independent of its position."""
    type: str = ""
    """What it returns or holds, as the type of a binding."""
    bases: tuple[str, ...] = ()
    """What it extends or implements; for an `impl`, the trait."""

    @property
    def signature_hash(self) -> bytes:
        return blake2b(self.signature.encode("utf-8", "replace"), digest_size=8).digest()


class SourceImport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A name that a file imports."""

    scope: int
    """The item that contains it: the file, or a function with a local import."""
    bound: str
    """The local name; empty if it introduces none."""
    module: str
    """The module, as written."""
    item: str
    """The imported item; empty for the whole module, `*` for everything."""
    line: int
    shared: bool = False
    """Whether other files can import it from here: `pub use`, `export … from`, a Python module."""


class Binding(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A name that holds a value: a variable, a parameter, a field."""

    scope: int
    name: str
    type: str
    """What it holds, as an expression: a type (`Client`), the result of a call (`connect()`), or
    after `=` what it is an alias of (`=Client`)."""


class NameMention(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An item mentions something. There is one per expression, however often it occurs."""

    scope: int
    kind: str
    expression: str
    line: int
    times: int


class ParseProblem(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Something in a file that could not be parsed."""

    line: int
    message: str


class ParsedFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Everything that is known about a file from its content alone."""

    language: str
    namespace: str
    """The package that the file declares, in Go or Java. Empty if the path determines it."""
    lines: int
    items: tuple[SourceItem, ...]
    imports: tuple[SourceImport, ...] = ()
    bindings: tuple[Binding, ...] = ()
    mentions: tuple[NameMention, ...] = ()
    problems: tuple[ParseProblem, ...] = ()


def path_in_file(items: tuple[SourceItem, ...], place: int) -> tuple[str, ...]:
    """The names from the file inward: `("Client", "connect")`."""
    names: list[str] = []
    while place > 0:
        # An impl block has no name of its own: its items belong to its type.
        names.append(items[place].name)
        place = items[place].parent
    return tuple(reversed(names))
