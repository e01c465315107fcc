"""What is read out of one source file: items, imports, bindings, mentions.

These values travel between processes and into the index as arrays, so their fields are added at
the end, and a change of their meaning raises the version of the index (`index_file.VERSION`).

An *expression* is how code names something, without what does not help to find it: names joined
by the language's own separators, `()` for the result of a call, `[]` for an element. `?` stands
for what cannot be followed: `?.connect` is a `connect` of something.
"""

from hashlib import blake2b

import msgspec

CALL, REFERENCE, TYPE = "call", "reference", "type"
"""What a mention can be."""


class SourceItem(msgspec.Struct, array_like=True, gc=False):
    """A thing that is defined: the file itself, which is the first, or something in it."""

    kind: str
    name: str
    parent: int
    """The place of the item around it in the list; -1 for the file."""
    visibility: str
    start: int
    """In bytes, and so is the end."""
    end: int
    line: int
    """From 1, and so is the last line."""
    end_line: int
    signature: str = ""
    """One line: what a reader must know to use it."""
    doc: str = ""
    body_hash: bytes = b""
    """Of what it does, without the items in it; the same wherever it stands."""
    type: str = ""
    """What it gives when it is called or read, as the type of a binding."""
    bases: tuple[str, ...] = ()
    """What it extends or implements; for an `impl` the trait."""

    @property
    def signature_hash(self) -> bytes:
        return blake2b(self.signature.encode("utf-8", "replace"), digest_size=8).digest()


class SourceImport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A name that a file takes from elsewhere."""

    scope: int
    """The item that has it: the file, or a function that imports for itself."""
    bound: str
    """What it is called here; empty where it gives no name of its own."""
    module: str
    """Where from, as it is written."""
    item: str
    """What of it; empty for the whole, `*` for everything."""
    line: int
    shared: bool = False
    """Whether others can take it from here: `pub use`, `export … from`, a Python module."""


class Binding(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A name that holds a value: a variable, a parameter, a field."""

    scope: int
    name: str
    type: str
    """What it holds, as an expression: a type (`Client`), what a call gives (`connect()`), or
    behind `=` what it is another name for (`=Client`)."""


class NameMention(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An item speaks of something. One for each expression, however often it is there."""

    scope: int
    kind: str
    expression: str
    line: int
    times: int


class ParseProblem(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Something in a file that could not be read."""

    line: int
    message: str


class ParsedFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Everything that is known about a file from looking at it alone."""

    language: str
    namespace: str
    """What the file itself says it belongs to: a Go or Java package. Empty where the path tells."""
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
        # An impl block is no name of its own: what it has belongs to its type.
        names.append(items[place].name)
        place = items[place].parent
    return tuple(reversed(names))
