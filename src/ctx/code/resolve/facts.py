"""The facts of a file that are needed to resolve names through it, as the index stores them."""

import functools
import re
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import msgspec

from ctx.code.source_model import Binding, NameMention, ParsedFile, SourceImport
from ctx.errors import IndexCorrupt

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# The facts are written more often than read, so writing must be fast.
_LEVEL = 1
_MOST_REMEMBERED = 1 << 16
_SEPARATORS = re.compile(r"[^\w$]+")
_NAMED = re.compile(r"[\w$]")
_NAMES_ONLY = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in "_$")}
"""Replaces all separators in ASCII."""
_FOLDER_ITSELF = "__init__ index"
"""The targets of `from . import x` and `import '..'`: files that stand for their folders."""


class ItemFacts(msgspec.Struct, array_like=True, gc=False):
    """The fields of an item that matter for resolving others."""

    kind: str
    name: str
    parent: int
    type: str
    bases: tuple[str, ...]
    visibility: str
    line: int


class Facts(msgspec.Struct, array_like=True, gc=False):
    """What other files need to know about a file."""

    language: str
    namespace: str
    items: tuple[ItemFacts, ...]
    imports: tuple[SourceImport, ...]
    bindings: tuple[Binding, ...]


_encoder = msgspec.msgpack.Encoder()
# Creating a compressor takes longer than compressing the facts of a small file.
_compressor = zstd.ZstdCompressor(_LEVEL)
_facts_decoder = msgspec.msgpack.Decoder(Facts)
_mentions_decoder = msgspec.msgpack.Decoder(tuple[NameMention, ...])


def extract_facts(parsed: ParsedFile) -> Facts:
    items = tuple(
        [
            ItemFacts(
                item.kind, item.name, item.parent, item.type, item.bases, item.visibility, item.line
            )
            for item in parsed.items
        ]
    )
    return Facts(parsed.language, parsed.namespace, items, parsed.imports, parsed.bindings)


def encode(values: Facts | tuple[NameMention, ...]) -> bytes:
    return _compressor.compress(_encoder.encode(values), zstd.ZstdCompressor.FLUSH_FRAME)


def decode(content: bytes) -> Facts:
    with _readable():
        return _facts_decoder.decode(zstd.decompress(content))


def decode_mentions(content: bytes) -> tuple[NameMention, ...]:
    with _readable():
        return _mentions_decoder.decode(zstd.decompress(content))


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (zstd.ZstdError, msgspec.MsgspecError) as error:
        raise IndexCorrupt("The index of the code is damaged.") from error


def hashes(facts: Facts, mentions: tuple[NameMention, ...]) -> bytes:
    """The hashes of all names that a file mentions, preceded by the number of those at the
    beginning from which something else in the file may be derived."""
    texts: set[str] = set()
    for import_ in facts.imports:
        texts.add(import_.module if _NAMED.search(import_.module) else _FOLDER_ITSELF)
        texts.add(import_.item)
    for binding in facts.bindings:
        texts.add(binding.type)
    for item in facts.items:
        texts.add(item.type)
        texts.update(item.bases)
    made = set(map(_hashes.__getitem__, _words(" ".join(texts))))
    expressions = " ".join([mention.expression for mention in mentions])
    others = set(map(_hashes.__getitem__, _words(expressions))) - made
    return array("I", [len(made), *made, *others]).tobytes()


class _Hashes(dict[str, int]):
    """A cache of the hashes of names: files use the same names."""

    def __missing__(self, name: str) -> int:
        hashed = crc32(name.encode())
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        self[name] = hashed
        return hashed


_hashes = _Hashes()


EVERYTHING = ""
"""The name under which a file offers what it re-exports without naming it: a star, an include."""


def offers(facts: Facts) -> dict[str, list[tuple[object, ...]]]:
    """What other files can find in a file, by name: if this changes, files that mention the name
    are resolved again. For several items of one name, their number and order matter."""
    by_name: dict[str, list[tuple[object, ...]]] = {}
    items = facts.items
    for item in items:
        around = items[item.parent].name if item.parent > 0 else ""
        by_name.setdefault(item.name, []).append(
            (item.kind, around, item.type, item.bases, item.visibility, facts.namespace)
        )
    for import_ in facts.imports:
        if import_.shared:
            by_name.setdefault(import_.bound, []).append(("import", import_.module, import_.item))
    for binding in facts.bindings:
        if items[binding.scope].kind not in _FUNCTIONS:
            by_name.setdefault(binding.name, []).append(("binding", binding.type))
    return by_name


def reexported_names(facts: Facts, names: set[str]) -> set[str]:
    """What a file offers that is derived from one of these names and may have changed."""
    names = _local_names(facts, names)
    passed: set[str] = set()
    for item in facts.items:
        if item.type and not names.isdisjoint(_known_words(item.type)):
            passed.add(item.name)
        if any(not names.isdisjoint(_known_words(base)) for base in item.bases):
            passed.add(item.name)
    for import_ in facts.imports:
        if import_.shared and (
            import_.item in names or not names.isdisjoint(_known_words(import_.module))
        ):
            passed.add(import_.bound)
    for binding in facts.bindings:
        is_offered = facts.items[binding.scope].kind not in _FUNCTIONS
        if is_offered and not names.isdisjoint(_known_words(binding.type)):
            passed.add(binding.name)
    return passed


def _local_names(facts: Facts, names: set[str]) -> set[str]:
    """The names including their local names in the file: import aliases, and local variables that
    are derived from them."""
    known = set(names)
    for import_ in facts.imports:
        if import_.item in known or not known.isdisjoint(_known_words(import_.module)):
            known.add(import_.bound)
    grew = True
    while grew:
        before = len(known)
        for binding in facts.bindings:
            if binding.name not in known and not known.isdisjoint(_known_words(binding.type)):
                known.add(binding.name)
        grew = len(known) > before
    known.discard(EVERYTHING)
    return known


_FUNCTIONS = frozenset({"function", "method"})


def _words(text: str) -> list[str]:
    if text.isascii():
        # Faster than the pattern.
        return text.translate(_NAMES_ONLY).split()
    return _SEPARATORS.sub(" ", text).split()


# Files import the same modules, and use the same types.
_known_words = functools.lru_cache(maxsize=1 << 14)(_words)
