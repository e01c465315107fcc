"""Java."""

import functools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ctx.code.language import (
    ItemDescription,
    LanguageWithRepeatedBindings,
    SourceText,
    collapsed,
    comment_before,
    flatten,
    start_of,
)
from ctx.code.source_model import SourceImport, SourceItem

if TYPE_CHECKING:
    from tree_sitter import Node

_OWN_TYPES = frozenset(
    "boolean byte char double float int long short void var Boolean Byte Character Double Float"
    " Integer Long Object Override Short String Void".split()
)
"""Common types of the language, whose names are rarely redefined."""

_WORD = r"[^\W\d][\w$]*"
_TYPE = re.compile(rf"(?:@{_WORD}\s+|final\s+)*({_WORD}(?:\s*\.\s*{_WORD})*)")
_TYPED_NAME = re.compile(rf"((?:.*[\s\]>.])?)({_WORD})\s*(?:\[\s*\]\s*)*", re.DOTALL)
_IMPORT = re.compile(rf"import\s+(?:static\s+)?((?:{_WORD}\s*\.\s*)+(?:{_WORD}|\*))\s*(?:;|\Z)")
_ARGUMENTS = rb"[^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*"
_CHAIN = re.compile(
    rb"([\w$.\x80-\xff]+)((?:\(%b\)\s*\.\s*[\w$\x80-\xff]+)*)\(%b\)" % (_ARGUMENTS, _ARGUMENTS)
)
"""Calls with arguments at most three levels deep: nearly all."""
_LINK = re.compile(rb"\(%b\)\s*\.\s*" % _ARGUMENTS)
_DECLARATION = re.compile(
    rf"(?:(?:private|public|protected|static|final|transient|volatile)\s+)*({_WORD}(?:\.{_WORD})*)"
    rf"(?:<[^=;()]*>)?\s+({_WORD})\s*(?:=(.*))?;",
    re.DOTALL,
)
_ANOTHER = re.compile(rf",\s*{_WORD}\s*(?:=[^=]|\Z)")
_FIRST_PATH = re.compile(rb"[\w$.\x80-\xff]+(?=\s*\()")
_LAST_CALL = re.compile(rb"\.\s*([\w$\x80-\xff]+)\s*\([^()]*\)\Z")
_LITERALS = re.compile(
    rb'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
)
_COMMENTS = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BRACES, _PARENTHESES = re.compile(rb"\{[^{}]*\}"), re.compile(rb"\([^()]*\)")
_GENERIC = re.compile(rb"<[^<>()]*>")
_MADE = re.compile(rb"\(?\s*new\s+([\w$.\x80-\xff]+)\s*\x01\s*\x02?\s*\)?")
_CAST = re.compile(rb"\(\s*\(\s*([\w$.\x80-\xff]+)\s*\)[^()]*\)")
_ANNOTATIONS = re.compile(r"@[\w.]+(?:\([^()]*\))?")
_INNERMOST = re.compile(r"<[^<>]*>|\([^()]*\)")
_BASES = re.compile(r"\b(?:extends|implements)\b")
_LONGEST_CALL = 2_000
_LONGEST_REMEMBERED = 120


class _ShortNames(dict[bytes, str]):
    """Calls are keyed with their arguments. Only short ones are likely to recur."""

    def __setitem__(self, text: bytes, called: str) -> None:
        if len(text) <= _LONGEST_REMEMBERED:
            super().__setitem__(text, called)


class Java(LanguageWithRepeatedBindings):
    name = "java"
    query_file = "java.scm"

    def __init__(self) -> None:
        super().__init__()
        self.known_expressions = _ShortNames()

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        if kind == "static":
            return _fields(node, parent, source)
        name_node = node.child_by_field_name("name")
        if name_node is None:
            return None
        name, at = source.text(name_node), name_node.start_byte
        body = node.child_by_field_name("body")
        # Without a body it ends with a semicolon.
        body_start = body.start_byte if body else max(name_node.end_byte, node.end_byte - 1)
        if kind == "const":
            doc = comment_before(source.content, node.start_byte)
            return ItemDescription(
                name, at, kind, "public", name_node.end_byte, parent.name, (), doc
            )
        access = _visibility(_modifiers(node, source), parent)
        doc = comment_before(source.content, node.start_byte)
        if kind == "method":
            declared = source.field(node, "type")
            if not declared:
                # A constructor: its name refers to the class.
                return ItemDescription(name, at, kind, access, body_start, name, (name,), doc)
            type_ = principal(declared)
            return ItemDescription(name, at, kind, access, body_start, type_, (), doc)
        promise = source.content[name_node.end_byte : body_start].decode("utf-8", "replace")
        return ItemDescription(name, at, kind, access, body_start, "", _bases(promise), doc)

    def imports(
        self, node: "Node", scope: int, line: int, source: SourceText
    ) -> Iterable[SourceImport]:
        match = _IMPORT.match(source.text(node))
        if not match:
            return
        module, _, item = "".join(match[1].split()).rpartition(".")
        yield SourceImport(scope, "" if item == "*" else item, module, item, line)

    def new_bindings(
        self, node: "Node", text: bytes, source: SourceText
    ) -> Iterator[tuple[str, str]]:
        kind, written = node.type, text.decode("utf-8", "replace")
        if kind in ("local_variable_declaration", "field_declaration"):
            plain = _DECLARATION.fullmatch(written)
            if plain and plain[1] != "var" and not (plain[3] and _ANOTHER.search(plain[3])):
                if held := principal(plain[1]):
                    yield plain[2], held
                return
            type_ = source.field(node, "type")
            held = principal(type_)
            for declarator in node.children_by_field_name("declarator"):
                name = source.field(declarator, "name")
                if type_ == "var" and (initial := declarator.child_by_field_name("value")):
                    held = _value(initial, source)
                if name and held:
                    yield name, held
        elif kind in ("enhanced_for_statement", "resource", "instanceof_expression"):
            type_ = source.field(node, "right" if kind == "instanceof_expression" else "type")
            name = source.field(node, "name")
            if name and (held := principal(type_)):
                yield name, held
        else:
            match = _TYPED_NAME.fullmatch(written)
            # With several types, it is unknown which one it is.
            if match and "|" not in match[1] and (held := principal(match[1])):
                yield match[2], held

    def expression(self, text: bytes) -> str | None:
        if text.isalnum():
            return text.decode()
        if len(text) <= _LONGEST_CALL and (chain := _CHAIN.fullmatch(text)):
            links = _LINK.sub(b"().", chain[2]) if chain[2] else b""
            return (chain[1] + links).decode("utf-8", "replace")
        if b"::" in text and not text.endswith(b")"):
            return _method_reference(text)
        if text.endswith(b")"):
            return _callee(text)
        # The constructed type, with or without type arguments.
        return principal(text.decode("utf-8", "replace")) or None

    def types(self, text: bytes) -> Iterator[tuple[int, str]]:
        name = text.decode("utf-8", "replace")
        if name not in _OWN_TYPES:
            yield 0, name


def _fields(node: "Node", parent: SourceItem, source: SourceText) -> list[ItemDescription] | None:
    """Static fields are items; instance fields are only known by their types."""
    modifiers = _modifiers(node, source)
    if parent.kind != "interface" and "static" not in modifiers:
        return None
    is_const = parent.kind == "interface" or "final" in modifiers
    kind, access = "const" if is_const else "static", _visibility(modifiers, parent)
    type_ = principal(source.field(node, "type"))
    doc = comment_before(source.content, node.start_byte)
    items = []
    for declarator in node.children_by_field_name("declarator"):
        if name_node := declarator.child_by_field_name("name"):
            name, at, body = (
                source.text(name_node),
                name_node.start_byte,
                start_of(declarator, "value"),
            )
            items.append(ItemDescription(name, at, kind, access, body, type_, (), doc))
    return items or None


def _modifiers(node: "Node", source: SourceText) -> list[str]:
    first = node.named_child(0) if node.named_child_count else None
    if first is None or first.type != "modifiers":
        return []
    return source.text(first).split()


def _visibility(modifiers: list[str], parent: SourceItem) -> str:
    if "public" in modifiers:
        return "public"
    if "private" in modifiers:
        return "private"
    if "protected" in modifiers:
        return "super"
    return "public" if parent.kind == "interface" else "crate"


def _bases(promise: str) -> tuple[str, ...]:
    """The types after `extends` and `implements` in the text between a name and its body."""
    if "extends" not in promise and "implements" not in promise:
        return ()
    plain = _ANNOTATIONS.sub("", promise) if "@" in promise else promise
    plain = collapsed(_INNERMOST, "", plain)
    _, *lists = _BASES.split(plain.partition(" permits ")[0])
    names = ("".join(name.split()) for part in lists for name in part.split(","))
    return tuple(name for name in names if name and "<" not in name)


def _value(node: "Node", source: SourceText) -> str:
    if node.type == "object_creation_expression":
        return principal(source.field(node, "type"))
    if node.type == "method_invocation":
        called = LANGUAGE.expression(source.content[node.start_byte : node.end_byte])
        return f"{called}()" if called and called[0] != "?" else ""
    if node.type in ("identifier", "field_access"):
        text = flatten(source.content[node.start_byte : node.end_byte])
        return f"={text}" if text and text[0] != "?" else ""
    return ""


def _callee(text: bytes) -> str | None:
    """The callee of a call with a receiver: `a.b(c).d(e)` is a call of `a.b().d`."""
    if len(text) > _LONGEST_CALL:
        # Either the last of a long chain, or a call with long arguments, such as a lambda.
        last = _LAST_CALL.search(text[-_LONGEST_CALL:])
        if last:
            return "?." + last[1].decode("utf-8", "replace")
        first = _FIRST_PATH.match(text)
        return first.group().decode("utf-8", "replace") if first else None
    plain = _COMMENTS.sub(b" ", _LITERALS.sub(b"0", text))
    if made := _CAST.match(plain):
        plain = made[1] + b"\1" + plain[made.end() :]
    plain = collapsed(_BRACES, b"\2", collapsed(_GENERIC, b"", plain) if b"<" in plain else plain)
    plain = collapsed(_PARENTHESES, b"\1", plain)
    if made := _MADE.match(plain):
        plain = made[1] + b"\1" + plain[made.end() :]
    if not plain.endswith(b"\1"):
        return None
    return flatten(plain[:-1].replace(b"\1", b"()"))


def _method_reference(text: bytes) -> str | None:
    """`Client::connect` refers to a method, `Client::new` to a constructor."""
    owner, _, name = text.rpartition(b"::")
    named = principal(owner.decode("utf-8", "replace")) if b"(" not in owner else flatten(owner)
    method = name.decode("utf-8", "replace").strip()
    if not named or named[0] == "?":
        return f"?.{method}" if method != "new" else None
    return named if method == "new" else f"{named}.{method}"


@functools.lru_cache(20_000)
def principal(text: str) -> str:
    """The principal type of a type, without type arguments; empty for primitive types. A list stays
    a list, because it has methods."""
    match = _TYPE.match(text)
    if not match or text.endswith("]"):
        return ""
    name = "".join(match[1].split())
    return "" if name in _OWN_TYPES else name


LANGUAGE = Java()
