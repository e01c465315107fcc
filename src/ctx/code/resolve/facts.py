"""What must be known of a file to follow names through it, as it lies in the index."""

import re
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import msgspec

from ctx.code.model import Binding, Import, Mention, Parsed
from ctx.errors import IndexCorrupt

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# The facts of a file are read far less often than written: what matters is the time to write them.
_LEVEL = 1
_SEPARATORS = re.compile(r"[^\w$]+")


class Outline(msgspec.Struct, array_like=True, gc=False):
    """An item, as far as it matters for finding others."""

    kind: str
    name: str
    parent: int
    type: str
    bases: tuple[str, ...]
    visibility: str
    line: int


class Facts(msgspec.Struct, array_like=True, gc=False):
    """What others must know of a file."""

    language: str
    namespace: str
    items: tuple[Outline, ...]
    imports: tuple[Import, ...]
    bindings: tuple[Binding, ...]


_encoder = msgspec.msgpack.Encoder()
_facts_decoder = msgspec.msgpack.Decoder(Facts)
_mentions_decoder = msgspec.msgpack.Decoder(tuple[Mention, ...])


def of(parsed: Parsed) -> Facts:
    items = tuple(
        [
            Outline(
                item.kind, item.name, item.parent, item.type, item.bases, item.visibility, item.line
            )
            for item in parsed.items
        ]
    )
    return Facts(parsed.language, parsed.namespace, items, parsed.imports, parsed.bindings)


def encode(values: Facts | tuple[Mention, ...]) -> bytes:
    return zstd.compress(_encoder.encode(values), _LEVEL)


def decode(content: bytes) -> Facts:
    with _readable():
        return _facts_decoder.decode(zstd.decompress(content))


def decode_mentions(content: bytes) -> tuple[Mention, ...]:
    with _readable():
        return _mentions_decoder.decode(zstd.decompress(content))


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (zstd.ZstdError, msgspec.MsgspecError) as error:
        raise IndexCorrupt("The index of the code is damaged.") from error


def hashes(facts: Facts, mentions: tuple[Mention, ...]) -> bytes:
    """The hashes of all names that a file speaks of, wherever it does."""
    words: set[str] = {mention.expression for mention in mentions}
    for each in facts.imports:
        words.add(each.module)
        words.add(each.item)
    for binding in facts.bindings:
        words.add(binding.type)
    for item in facts.items:
        words.add(item.type)
        words.update(item.bases)
    names = set(_SEPARATORS.sub(" ", " ".join(words)).split())
    return array("I", [crc32(name.encode()) for name in names]).tobytes()


def offers(facts: Facts) -> dict[str, set[tuple[object, ...]]]:
    """What others can find in a file, by its name: whoever speaks of a name has to be looked at
    again when this changes."""
    found: dict[str, set[tuple[object, ...]]] = {}
    items = facts.items
    for item in items:
        around = items[item.parent].name if item.parent > 0 else ""
        found.setdefault(item.name, set()).add(
            (item.kind, around, item.type, item.bases, item.visibility)
        )
    for each in facts.imports:
        if each.shared:
            found.setdefault(each.bound, set()).add(("import", each.module, each.item))
    for binding in facts.bindings:
        if items[binding.scope].kind not in _FUNCTIONS:
            found.setdefault(binding.name, set()).add(("binding", binding.type))
    return found


def passed_on(facts: Facts, names: set[str]) -> set[str]:
    """What a file offers that is made of one of these names: it may be something else now."""
    found: set[str] = set()
    for item in facts.items:
        if item.type and not names.isdisjoint(_words(item.type)):
            found.add(item.name)
        if any(not names.isdisjoint(_words(base)) for base in item.bases):
            found.add(item.name)
    for each in facts.imports:
        if each.shared and (each.item in names or not names.isdisjoint(_words(each.module))):
            found.add(each.bound)
    for binding in facts.bindings:
        is_offered = facts.items[binding.scope].kind not in _FUNCTIONS
        if is_offered and not names.isdisjoint(_words(binding.type)):
            found.add(binding.name)
    return found


_FUNCTIONS = frozenset({"function", "method"})


def _words(text: str) -> list[str]:
    return _SEPARATORS.sub(" ", text).split()
