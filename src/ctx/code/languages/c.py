"""C, and the parts of C++ that come from it."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ctx.code.language import ItemDescription, Language, SourceText, start_of
from ctx.code.source_model import SourceImport, SourceItem

if TYPE_CHECKING:
    from tree_sitter import Node

_HEADER = re.compile(r"\.(?:h|hh|hpp|hxx|h\+\+|H|inc|inl|ipp|tpp|txx|cuh|def)\Z")
_STATIC = re.compile(rb"\bstatic\b")
_EXTERN = re.compile(rb"\bextern\b")
_CONST = re.compile(rb"\bconst(?:expr|init)?\b")
_GUARD = re.compile(r"(?:_|\A)(?:H|HH|HPP|HXX|INC|INCLUDED?)_*\Z")
_UPPER_CASE = re.compile(r"[A-Z][A-Z\d_]*\Z")

# A macro where the grammar expects none. A pattern that begins with a fixed word is found quickly.
_STRUCT_MACRO = re.compile(
    rb"struct[ \t]+([A-Z][A-Z\d]*_[A-Z\d_]+|[A-Z]{4,})(?=\s+[A-Za-z_]\w*\s*[:{])"
)
_MACRO_BEFORE = re.compile(
    rb"\n([A-Z][A-Z\d_]{3,}(?:\([^()\n]*\))?)"
    rb"(?=\s+(?:/[/*]|#|\Z|\}|(?:static|extern|inline|const|typedef|struct|union|enum|void|int|char|long"
    rb"|short|unsigned|signed|float|double|bool|size_t|ssize_t|u?int\d+_t)\b"
    rb"|[A-Za-z_]\w*[ \t*]+[A-Za-z_]\w*[ \t]*\())"
)
_DIRECTIVE = re.compile(rb"#[ \t]*(if|elif|else|endif)[^\n]*")
_NOT_A_LINE_END = re.compile(rb"[^\n]+")
_CONTINUATION_MARKS = frozenset((b",", b"(", b"&", b"|", b"+", b"=", b"?"))
_MOST_CONDITIONS = 50
_OMITTED_BODY = " { … }".encode()

_AROUND_A_NAME = frozenset(
    {
        *("pointer_declarator", "array_declarator", "function_declarator", "init_declarator"),
        *("parenthesized_declarator", "attributed_declarator", "reference_declarator"),
    }
)
_MOST_AROUND_A_NAME = 30
SPECIFIERS = {
    "struct_specifier": "struct",
    "union_specifier": "struct",
    "enum_specifier": "enum",
    "class_specifier": "class",
}


class C(Language):
    name = "c"
    query_file = "c.scm"

    def readable(self, content: bytes) -> bytes:
        """The same bytes without what the grammar cannot parse."""
        content = with_whole_blocks(content)
        return _MACRO_BEFORE.sub(blank_word, _STRUCT_MACRO.sub(blank_word, content))

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        if kind == "function":
            return self.function(node, source)
        if kind == "macro":
            return _macro(node, source)
        if kind == "static":
            return self.declared(node, parent, source)
        if kind == "type_alias":
            return self._typedef(node, source)
        return _type_specifier(node, kind, parent, source)

    def function(self, node: "Node", source: SourceText) -> ItemDescription | None:
        declared = declared_name(node.child_by_field_name("declarator"))
        if declared is None:
            return None
        name_node, is_function = declared
        body = node.child_by_field_name("body")
        type_node = node.child_by_field_name("type")
        name, start = source.text(name_node), name_node.start_byte
        if not is_function:
            return _misread_struct(name, type_node, body, source)
        access = visibility(source.content[node.start_byte : start], source)
        type_ = self.type_of(type_node, source)
        return ItemDescription(name, start, "function", access, start_of(node, "body"), type_)

    def declared(
        self, node: "Node", parent: SourceItem, source: SourceText
    ) -> tuple[ItemDescription, ...] | None:
        """Variables and prototypes. Declarations of other files' definitions count only in headers:
        elsewhere they would hide the definition."""
        if parent.kind != "module":
            return None
        type_node = node.child_by_field_name("type")
        declarators = node.children_by_field_name("declarator")
        if type_node is None or not declarators:
            return None
        before = source.content[node.start_byte : declarators[0].start_byte]
        access, type_ = visibility(before, source), self.type_of(type_node, source)
        is_elsewhere = bool(_EXTERN.search(before)) and not is_header(source)
        variable = "const" if _CONST.search(before) else "static"
        items = []
        for declarator in declarators:
            named = declared_name(declarator)
            if named is None:
                continue
            name_node, is_function = named
            if is_elsewhere or (is_function and not is_header(source)):
                continue
            name, at = source.text(name_node), name_node.start_byte
            value = declarator.child_by_field_name("value")
            end = value.start_byte if value else end_of_promise(node, source)
            kind = "function" if is_function else variable
            items.append(ItemDescription(name, at, kind, access, end, type_))
        items += defined_in(type_node, source)
        return tuple(items) or None

    def _typedef(self, node: "Node", source: SourceText) -> tuple[ItemDescription, ...] | None:
        type_node = node.child_by_field_name("type")
        if type_node is None:
            return None
        inside = tuple(defined_in(type_node, source))
        kind, body = SPECIFIERS.get(type_node.type), type_node.child_by_field_name("body")
        target = inside[0].name if inside else self.type_of(type_node, source)
        end = body.start_byte if body else end_of_promise(node, source)
        items: list[ItemDescription] = []
        for declarator in node.children_by_field_name("declarator"):
            named = declared_name(declarator)
            if named is None:
                continue
            name, at = source.text(named[0]), named[0].start_byte
            promise = b""
            if body:
                # The members of the struct are between its own name and this one, and are not part
                # of the signature.
                promise = source.content[node.start_byte : end]
                if not inside:
                    promise = b"typedef " + target.encode() if target else promise + _OMITTED_BODY
                promise += b" " + source.content[declarator.start_byte : declarator.end_byte]
            if kind and body and not inside and not items and declarator.type == "type_identifier":
                # An anonymous struct is named after the first name that it is given.
                items.append(ItemDescription(name, at, kind, "public", end, promise=promise))
                target = name
            elif name != target or not (inside or body):
                target = "" if name == target else target
                items.append(
                    ItemDescription(name, at, "type_alias", "public", end, target, promise=promise)
                )
        # The members belong to the last one: the struct.
        items.sort(key=lambda item: item.kind != "type_alias")
        return (*items, *inside) or None

    def type_of(self, node: "Node | None", source: SourceText) -> str:
        """The name of a user-defined type: `struct dict *` is `dict`."""
        if node is not None and node.type in SPECIFIERS:
            node = node.child_by_field_name("name")
        return source.text(node) if node is not None and node.type == "type_identifier" else ""

    def imports(
        self, node: "Node", scope: int, line: int, source: SourceText
    ) -> Iterable[SourceImport]:
        """A system include keeps its brackets: `<stdio.h>`."""
        path = node.child_by_field_name("path")
        if path is None or path.type == "identifier":
            return
        module = source.text(path).strip('"')
        # A file that includes this one also sees what it includes.
        yield SourceImport(scope, "", module, "", line, shared=True)


def is_header(source: SourceText) -> bool:
    return bool(_HEADER.search(source.path))


def visibility(before: bytes, source: SourceText) -> str:
    """A static definition belongs to its file; in a header, to everyone who includes it."""
    if b"static" not in before or is_header(source):
        return "public"
    return "private" if _STATIC.search(before) else "public"


def declared_name(declarator: "Node | None") -> tuple["Node", bool] | None:
    """The name in a declarator, and whether it is a function."""
    is_function = False
    for _ in range(_MOST_AROUND_A_NAME):
        if declarator is None:
            return None
        around = declarator.type
        if around not in _AROUND_A_NAME:
            return declarator, is_function or around == "operator_cast"
        if around != "parenthesized_declarator":
            is_function = around == "function_declarator"
        inner = declarator.child_by_field_name("declarator")
        if inner is None and (count := declarator.named_child_count):
            inner = declarator.named_child(count - 1)
        declarator = inner
    return None


def end_of_promise(node: "Node", source: SourceText) -> int:
    """The end of a declaration, without its semicolon."""
    end = node.end_byte
    return end - 1 if source.content[end - 1 : end] == b";" else end


def defined_in(type_node: "Node", source: SourceText) -> Iterator[ItemDescription]:
    """The struct of `struct point { … } origin;`. It is described together with the declaration."""
    kind = SPECIFIERS.get(type_node.type)
    name = type_node.child_by_field_name("name") if kind else None
    body = type_node.child_by_field_name("body") if name else None
    if kind and name and body:
        yield ItemDescription(source.text(name), name.start_byte, kind, "public", body.start_byte)


def _type_specifier(
    node: "Node", kind: str, parent: SourceItem, source: SourceText
) -> ItemDescription | None:
    name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name_node is None or body is None:
        return None
    name = source.text(name_node)
    if parent.kind == kind and parent.name == name:
        # Already described with its declaration.
        return None
    return ItemDescription(name, name_node.start_byte, kind, "public", body.start_byte)


def _macro(node: "Node", source: SourceText) -> ItemDescription | None:
    name_node, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name_node is None:
        return None
    name = source.text(name_node)
    if value is None and _GUARD.search(name):
        # An include guard.
        return None
    last = node.child_by_field_name("parameters") or name_node
    return ItemDescription(name, name_node.start_byte, "macro", "public", last.end_byte)


def _misread_struct(
    name: str, type_node: "Node | None", body: "Node | None", source: SourceText
) -> ItemDescription | None:
    """`struct EXPORT name { … }` looks like a function that returns an `EXPORT`."""
    kind = SPECIFIERS.get(type_node.type) if type_node else None
    between = type_node.child_by_field_name("name") if type_node else None
    if kind is None or between is None or body is None:
        return None
    if _UPPER_CASE.match(name):
        name = source.text(between)
    return ItemDescription(name, between.start_byte, kind, "public", body.start_byte)


def blank_word(match: "re.Match[bytes]") -> bytes:
    """A match with the word in it blanked."""
    begin, end = match.span(1)
    before, whole = begin - match.start(), match.group()
    return whole[:before] + b" " * (end - begin) + whole[before + end - begin :]


def with_whole_blocks(content: bytes) -> bytes:
    """Remove preprocessor conditions that cut through a block or a statement.

    If the first branch opens what is closed elsewhere, it is kept as if there were no condition.
    The grammar can handle all other conditions.
    """
    if b"#" not in content:
        return content
    cuts: list[tuple[int, int]] = []
    conditions: list[list[tuple[int, int]]] = []
    for match in _DIRECTIVE.finditer(content):
        begin = content.rfind(b"\n", 0, match.start()) + 1
        if content[begin : match.start()].strip():
            continue
        here = (begin, match.end())
        match match.group(1):
            case b"if":
                conditions.append([here])
            case b"endif":
                if conditions:
                    cuts += _cuts([*conditions.pop(), here], content)
            case _:
                if conditions:
                    conditions[-1].append(here)
        if len(conditions) > _MOST_CONDITIONS:
            break
    if not cuts:
        return content
    mended = bytearray(content)
    for begin, end in cuts:
        mended[begin:end] = _NOT_A_LINE_END.sub(_spaces, content[begin:end])
    return bytes(mended)


def _cuts(directives: list[tuple[int, int]], content: bytes) -> list[tuple[int, int]]:
    first, then, last = directives[0], directives[1], directives[-1]
    begin, end = first[1], then[0]
    is_whole = content.count(b"{", begin, end) == content.count(b"}", begin, end)
    if is_whole and content[max(begin, end - 100) : end].rstrip()[-1:] not in _CONTINUATION_MARKS:
        return []
    return [first, (end, last[1])]


def _spaces(match: "re.Match[bytes]") -> bytes:
    return b" " * len(match.group())


LANGUAGE = C()
