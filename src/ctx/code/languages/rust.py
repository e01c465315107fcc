"""Rust."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ctx.code.language import ItemDescription, Language, SourceText, plain_comment
from ctx.code.languages.rust_macros import without_macros
from ctx.code.languages.rust_values import (
    bound_by_let,
    bounds,
    named_by,
    path_of,
    principal,
    split_outside,
)
from ctx.code.source_model import SourceImport, SourceItem

if TYPE_CHECKING:
    from tree_sitter import Node

_LONGEST_DOC = 4_000

_LONGEST_NAME = 60

_VISIBILITY = re.compile(rb"pub\b(?:\s*\(\s*(\w+))?")
_VISIBILITIES = {b"": "public", b"crate": "crate", b"super": "super", b"self": "private"}
# Other comments and attributes may be between the documentation and its item.
_BETWEEN = (
    rb"(?:[ \t]*(?://(?!!)[^\n]*\n"
    rb"|#\[[^\n]*\][ \t\r]*\n|#\[[^\n]*[(,\[][ \t\r]*\n(?:[^\n]*\n){0,12}?[ \t)]*\][ \t\r]*\n))*"
)
_LINES_OF_DOC = re.compile(rb"///(?!/)[^\n]*\n" + _BETWEEN)
_AFTER_BLOCK = re.compile(rb"[ \t\r]*\n" + _BETWEEN)
_DOC_LINE = re.compile(rb"(?<!/)///(?!/) ?([^\r\n]*)")
_INNER_DOC = re.compile(rb"(?:[ \t]*//![^\n]*(?:\n|\Z))+")
_LONGEST_ATTRIBUTES = 400
_LONGEST_USE = 6_000

_PATH_ATTRIBUTE = re.compile(rb"#\[\s*(?:cfg_attr\b[^\n]*?\b)?path\s*=\s*\"([^\"\n]+)\"")
_EXTERN_CRATE = re.compile(r"extern\s+crate\s+(\w+)(?:\s+as\s+(\w+))?")
_USE = re.compile(r"(pub\b(?:\s*\([^)]*\))?\s*)?use\b")
_USE_TOKEN = re.compile(r"\s+as\s+|[{},;*]|::|\w+")
_COMMENT = re.compile(r"//[^\n]*|/\*(?:[^*]|\*(?!/)){0,500}\*/")

_SEVERAL = re.compile(r"(?:[\w:]*\b(?:Result|Option|Box|Poll)\s*<\s*)?\([^)]")
_TYPED = re.compile(
    rb"(?:pub\b\s*(?:\([^)]*\))?\s*)?(?:mut\s+)?(?:r#)?([A-Za-z_\x80-\xff][\w\x80-\xff]*)\s*:\s*"
)
_FIELD_VISIBILITY = re.compile(
    r"(?:#\[[^\]]*\]\s*)*(?:pub\b\s*(?:\((?:crate|super|self|in\b)[^)]*\))?\s*)?"
)
_VARIANT = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*")

_MACRO = re.compile(rb"(?:::)?([\w:]+)\s*!")

# Constructors, methods and macros of the language: ubiquitous, and never resolved.
_EVERYWHERE = frozenset(
    b"Some Ok Err Poll::Ready Box::new Pin::new Vec::new String::new drop".split()
)
_OF_THE_LANGUAGE = (b"std::", b"core::", b"alloc::", b"::std::", b"::core::")
_OF_ALL_VALUES = tuple(
    b".unwrap .expect .clone .to_string .to_owned .collect .is_some .is_none .is_ok .is_err".split()
)
_OWN_MACROS = frozenset(
    b"assert assert_eq assert_ne debug_assert debug_assert_eq debug_assert_ne println print"
    b" eprintln eprint format format_args panic write writeln unreachable todo unimplemented dbg"
    b" vec matches cfg concat stringify env option_env include include_str include_bytes line file"
    b" column module_path compile_error thread_local".split()
)

_NAME_IN_TYPE = re.compile(
    rb"(?<![\w'\x80-\xff])[A-Za-z_\x80-\xff][\w\x80-\xff]*+"
    rb"(?>(?:\s*+::\s*+[A-Za-z_\x80-\xff][\w\x80-\xff]*+)*)(?!\s*=[^>])"
)
_NO_TYPES = frozenset(
    b"dyn mut impl const fn as for where unsafe extern ref in move crate self super static Self r"
    b" bool char str u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64"
    b" Option Vec String Box Some Sized Send Sync Copy Clone Unpin FnOnce FnMut Fn".split()
)


class Rust(Language):
    name = "rust"
    query_file = "rust.scm"
    separator = "::"

    def __init__(self) -> None:
        super().__init__()
        self._content = b""
        """The current file, and the documentation in it."""
        self._docs: dict[int, int] = {}
        self._inner = b"", 0

    def readable(self, content: bytes) -> bytes:
        return without_macros(content)

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | None:
        start, content = node.start_byte, source.content
        if kind == "doc":
            self._read_inner(parent, node, content)
            return None
        if content is not self._content:
            self._content, self._docs = content, _docs(content)
        line_start = content.rfind(b"\n", max(0, start - _LONGEST_ATTRIBUTES), start) + 1
        begin = self._docs.get(line_start)
        doc = "" if begin is None else _doc_text(content[begin:start])
        if kind == "impl":
            return _implementation(node, doc, source)
        name_node = node.child_by_field_name("name")
        if name_node is None:
            return None
        at = name_node.start_byte
        name = source.text(name_node).removeprefix("r#")
        if name in ("_", ""):
            return None
        access = _visibility(content[start:at], parent)
        end = node.end_byte
        type_ = ""
        bases: tuple[str, ...] = ()
        if kind == "function":
            if parent.kind in ("impl", "trait"):
                kind = "method"
            type_ = _return_type(source.field(node, "return_type"), name, parent)
            body_node = node.child_by_field_name("body")
        elif kind in ("const", "static", "type_alias"):
            type_ = principal(source.field(node, "type"))
            body_node = node.child_by_field_name("value") if kind != "type_alias" else None
        elif kind == "macro":
            is_shared = b"macro_export" in _attributes(content, start)
            access = "public" if is_shared else "crate"
            return ItemDescription(name, at, kind, access, name_node.end_byte, "", (), doc)
        else:
            body_node = node.child_by_field_name("body")
            if kind == "trait":
                bases = bounds(source.field(node, "bounds"))
            if kind == "struct" and body_node and content[body_node.start_byte] == 0x28:
                # The fields of a tuple struct are part of its signature.
                body_node = None
        body = body_node.start_byte if body_node else end - (content[end - 1 : end] == b";")
        return ItemDescription(name, at, kind, access, body, type_, bases, doc)

    def _read_inner(self, parent: SourceItem, node: "Node", content: bytes) -> None:
        """Read the inner documentation of a file or module once for all its lines."""
        start, end = node.start_byte, node.end_byte
        if parent.doc or (content is self._inner[0] and start < self._inner[1]):
            return
        lines = _INNER_DOC.match(content, start)
        self._inner = content, lines.end() if lines else end
        text = lines.group() if lines else content[start:end]
        parent.doc = plain_comment(text.decode("utf-8", "replace"))[:_LONGEST_DOC]

    def imports(
        self, node: "Node", scope: int, line: int, source: SourceText
    ) -> Iterator[SourceImport]:
        start = node.start_byte
        content = source.content[start : min(node.end_byte, start + _LONGEST_USE)]
        text = content.decode("utf-8", "replace")
        if node.type == "mod_item":
            name_node = node.child_by_field_name("name")
            if name_node is not None:
                name = source.text(name_node).removeprefix("r#")
                written = _PATH_ATTRIBUTE.search(_attributes(source.content, start))
                module = f'"{written.group(1).decode("utf-8", "replace")}"' if written else ""
                is_shared = text.startswith("pub")
                yield SourceImport(scope, name, module or f"self::{name}", "", line, is_shared)
            return
        if node.type == "extern_crate_declaration":
            match = _EXTERN_CRATE.search(text)
            if match:
                bound = match.group(2) or match.group(1)
                yield SourceImport(scope, bound, match.group(1), "", line, text.startswith("pub"))
            return
        used = _USE.match(text)
        if used:
            for path, bound in _leaves(text[used.end() :]):
                module, _, item = path.rpartition("::")
                if item == "self":
                    module, _, item = module.rpartition("::")
                if not module:
                    module, item = item, ""
                if bound is None:
                    bound = "" if item == "*" else item or module
                yield SourceImport(scope, bound, module, item, line, bool(used.group(1)))

    def bindings(self, node: "Node", source: SourceText) -> Iterable[tuple[str, str]]:
        start, end = node.start_byte, node.end_byte
        text = source.content[start:end]
        if text.startswith(b"let"):
            return bound_by_let(text)
        kind = node.type
        if kind in ("parameter", "field_declaration"):
            named = _TYPED.match(text)
            if named is None:
                return ()
            type_ = principal(text[named.end() :].decode("utf-8", "replace"))
            return ((named.group(1).decode("utf-8", "replace"), type_),)
        if kind == "enum_variant":
            named = _VARIANT.match(text)
            return ((named.group().decode("utf-8", "replace"), "=Self"),) if named else ()
        if kind in ("ordered_field_declaration_list", "tuple_type"):
            fields = split_outside(text[1:-1].decode("utf-8", "replace"), ",")
            types = (principal(_FIELD_VISIBILITY.sub("", field, count=1)) for field in fields)
            return [(str(place), type_) for place, type_ in enumerate(types)]
        named = _TYPED.match(text)
        able = bounds(text[named.end() :].decode("utf-8", "replace")) if named else ()
        return ((named.group(1).decode("utf-8", "replace"), able[0]),) if named and able else ()

    def expression(self, text: bytes) -> str | None:
        if text in _EVERYWHERE or text[:1] in b"\"'[{0123456789|":
            return None
        if text.startswith(_OF_THE_LANGUAGE):
            return None
        macro = _MACRO.match(text)
        if macro and (macro.end() == len(text) or text[-1:] in b")]}"):
            name = macro.group(1)
            return None if name in _OWN_MACROS else name.decode("utf-8", "replace") + "!"
        return None if text.endswith(_OF_ALL_VALUES) else named_by(text)

    def types(self, text: bytes) -> Iterator[tuple[int, str]]:
        for match in _NAME_IN_TYPE.finditer(text):
            name = match.group()
            if name.startswith(_OF_THE_LANGUAGE) or name in _NO_TYPES:
                continue
            if len(name) > 1 or name.islower():
                written = b"".join(name.split()).decode("utf-8", "replace")
                yield match.start(), written.removeprefix("self::")


def _return_type(returns: str, name: str, parent: SourceItem) -> str:
    """The type that a function returns. Several results become names in the function."""
    if _SEVERAL.match(returns):
        return f"=Self::{name}" if parent.kind in ("impl", "trait") else f"={name}"
    return principal(returns)


def _implementation(node: "Node", doc: str, source: SourceText) -> ItemDescription | None:
    type_node, trait = node.child_by_field_name("type"), node.child_by_field_name("trait")
    if type_node is None:
        return None
    type_ = path_of(source.text(type_node))
    bases = (path_of(source.text(trait)),) if trait else ()
    body_node = node.child_by_field_name("body")
    body = body_node.start_byte if body_node else node.end_byte
    name = type_.rpartition("::")[2] or source.text(type_node)[:_LONGEST_NAME]
    # The name of its type is part of the definition, and not a mention.
    return ItemDescription(name, type_node.start_byte, "impl", "public", body, type_, bases, doc)


def _visibility(head: bytes, parent: SourceItem) -> str:
    match = _VISIBILITY.match(head)
    if match:
        return _VISIBILITIES.get(match.group(1) or b"", "crate")
    if parent.kind == "trait":
        return parent.visibility
    # The methods of a trait implementation are as visible as the trait.
    return "public" if parent.kind == "impl" and parent.bases else "private"


def _attributes(content: bytes, start: int) -> bytes:
    """The text between the previous item and this one, which contains its attributes."""
    before = content[max(0, start - _LONGEST_ATTRIBUTES) : start]
    return before[max(before.rfind(b";\n"), before.rfind(b"}\n")) + 1 :]


def _docs(content: bytes) -> dict[int, int]:
    """Where documentation begins, by the line that follows it and the attributes."""
    docs = {match.end(): match.start() for match in _LINES_OF_DOC.finditer(content)}
    begin = content.find(b"/**")
    while begin >= 0:
        end = content.find(b"*/", begin + 3)
        after = _AFTER_BLOCK.match(content, end + 2) if end >= 0 else None
        if after:
            docs[after.end()] = begin
        begin = content.find(b"/**", end) if end >= 0 else -1
    return docs


def _doc_text(text: bytes) -> str:
    if text.startswith(b"/**"):
        return plain_comment(text[: text.find(b"*/") + 2].decode("utf-8", "replace"))
    return b"\n".join(_DOC_LINE.findall(text)).decode("utf-8", "replace").strip()


def _leaves(text: str) -> Iterator[tuple[str, str | None]]:
    """The paths of a `use`, each with its alias, if there is one."""
    if "{" not in text and "/" not in text:
        yield _leaf(" ".join(text.rstrip("; \n").split()).replace("r#", "").replace(" ::", "::"))
        return
    prefixes: list[str] = []
    path = ""
    for match in _USE_TOKEN.finditer(_COMMENT.sub(" ", text).replace("r#", "")):
        token = match.group()
        if token == "{":
            prefixes.append(path)
        elif token in ",};":
            if path and path != (prefixes[-1] if prefixes else ""):
                yield _leaf(path)
            if token == "}" and prefixes:
                prefixes.pop()
            path = prefixes[-1] if prefixes else ""
        elif token[0].isspace():
            path += " as "
        elif path[-1:].isalnum() and token[0].isalnum():
            # Incomplete code.
            return
        else:
            path += token
    if path and not prefixes:
        yield _leaf(path)


def _leaf(path: str) -> tuple[str, str | None]:
    path, _, alias = path.partition(" as ")
    return path.removeprefix("::"), alias or None


LANGUAGE = Rust()
