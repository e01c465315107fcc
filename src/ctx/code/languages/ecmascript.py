"""What JavaScript and TypeScript have in common: the descriptions of their definitions."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ctx.code.language import ItemDescription, Language, SourceText, plain_comment, start_of
from ctx.code.languages import ecmascript_imports
from ctx.code.languages.ecmascript_imports import FileNames
from ctx.code.languages.ecmascript_values import (
    FUNCTIONS,
    bare,
    bases_of,
    bound_names,
    flat,
    last_assigned,
    principal,
    value_of,
    wrapped,
)
from ctx.code.source_model import SourceImport, SourceItem

if TYPE_CHECKING:
    from tree_sitter import Node

_DECLARED = re.compile(rb"\b(?:const|let|var|using)\s+\Z")
_IS_EXPORTED = re.compile(rb"\bexport\s+(?:default\s+)?(?:declare\s+)?(?:(?:const|let|var)\s+)?\Z")
_NAME = re.compile(rb"[\w$\x80-\xff]+")
_EXPANDO = re.compile(r"([\w$.]+?)(?:\.prototype)?\.([\w$]+)")
_EXPORTS = re.compile(r"(?:module\.)?exports(?:\.([\w$]+))?")

# What may be between two overloads: separators, comments, and modifiers.
_BETWEEN = re.compile(
    rb"(?>(?:[\s;,]++|//[^\n]*+|/\*.{0,4000}?\*/)*)"
    rb"(?>(?:(?:export|default|declare|async|function|public|private|protected|static|abstract"
    rb"|override|readonly|get|set)\s++)*)",
    re.DOTALL,
)
_AFTER_COMMENT = re.compile(rb"\s*(?:(?:export|default|declare|public|protected|static|async)\s+)*")
_IMPORTED = re.compile(rb"(?:require|import)(?:\s*\(|\Z)")
_IS_IMPORT = re.compile(rb"(?:require|import)\s*\(\s*[\"'][^\"'\n]*[\"']\s*\)(?:\s*\.\s*[\w$]+)?")
_SIGNATURES = frozenset({"method_signature", "property_signature"})
_HAVE_SIGNATURES = frozenset({"class", "interface", "type_alias"})
_AMBIENT = (".d.ts", ".d.mts", ".d.cts")
_DIRECTIVE = re.compile(
    rb"/[/*]+\s*(?:eslint|tslint|prettier-|biome-|@ts-|@__|#__|istanbul|c8|v8|webpack|#?region)"
)


class EcmaScript(Language):
    def __init__(self, name: str, query_file: str) -> None:
        super().__init__()
        self.name, self.query_file = name, query_file
        self._names = FileNames()
        self._first_overload: tuple[bytes, str, int] = (b"", "", 0)

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        match kind:
            case "held":
                return self._held_by_variable(node, parent, source)
            case "variable":
                return self._variable(node, parent, source)
            case "further":
                is_of_file = parent.kind == "module" and _is_top_level(node)
                return self._variable(node, parent, source) if is_of_file else None
            case "method" | "exported":
                return self._method(node, parent, source)
            case "member":
                # Of an object that is an item itself.
                is_of_item = parent.kind in ("const", "static")
                return self._method(node, parent, source) if is_of_item else None
            case "returned":
                is_made = parent.kind in ("function", "method")
                return self._method(node, parent, source) if is_made else None
            case "field":
                return _field(node, parent, source)
            case "default":
                return self._default(node, source)
            case "assigned":
                return self._assigned_member(node, source)
        return self._named_item(node, kind, parent, source)

    def _named_item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | None:
        """A declaration that has a name of its own."""
        name_node = node.child_by_field_name("name")
        if name_node is None:
            return None
        name = source.text(name_node).strip("\"'`")
        body = node.child_by_field_name("body")
        body_start = body.start_byte if body else node.end_byte
        at = name_node.start_byte
        access = self._visibility(node.start_byte, name, parent, source)
        if parent.kind == "module" and self._is_hidden(node, name, parent, source):
            return None
        if kind == "function":
            if body is None and self._is_overloaded(node, name, source):
                return None
            doc, type_ = self._doc_of_overloads(name, source), _return_type(node, name, source)
            return ItemDescription(name, at, kind, access, body_start, type_, (), doc)
        if kind in ("class", "interface"):
            bases = bases_of(source.content[name_node.end_byte : body_start])
            return ItemDescription(name, at, kind, access, body_start, "", bases)
        if kind == "type_alias":
            return _alias(node, name, at, access, source)
        return ItemDescription(name, at, kind, access, body_start)

    def imports(
        self, node: "Node", scope: int, line: int, source: SourceText
    ) -> Iterable[SourceImport]:
        return ecmascript_imports.read(node, scope, line, source)

    def bindings(self, node: "Node", source: SourceText) -> Iterable[tuple[str, str]]:
        return bound_names(node, source)

    def doc(self, comments: list[bytes]) -> str:
        for comment in reversed(comments):
            if comment.startswith(b"/**"):
                return plain_comment(comment.decode("utf-8", "replace"))
        return super().doc([comment for comment in comments if not _DIRECTIVE.match(comment)])

    def expression(self, text: bytes) -> str | None:
        # A method of a literal belongs to the language, and these two are imports.
        if text[:1] in b"\"'`[{/0123456789" or _IMPORTED.match(text):
            return None
        return flat(text)

    def types(self, text: bytes) -> Iterator[tuple[int, str]]:
        # A single letter is usually a type parameter.
        if len(text) > 1:
            yield 0, "".join(text.decode("utf-8", "replace").split())

    # Visibility

    def _visibility(self, start: int, name: str, parent: SourceItem, source: SourceText) -> str:
        if parent.kind != "module":
            return "private"
        if source.path.endswith(_AMBIENT):
            return "public"
        if _IS_EXPORTED.search(source.content, max(0, start - 60), start):
            return "public"
        if parent.parent >= 0:
            return "private"
        return "public" if self._names.is_shared(source.content, name) else "private"

    def _is_hidden(self, node: "Node", name: str, parent: SourceItem, source: SourceText) -> bool:
        """Whether a function is in a block that is not an item, such as a test, and the file has
        others of its name, which are meant outside of the block."""
        content, start = source.content, node.start_byte
        begin = content.rfind(b"\n", max(0, start - 200), start) + 1
        if content[begin : begin + 1] not in (b" ", b"\t"):
            # Code without indentation is in no block, and this is faster than the tree.
            return False
        around = node.parent
        if node.type == "variable_declarator" and around is not None:
            around = around.parent
        if around is None or around.type != "statement_block" or parent.parent >= 0:
            return False
        return self._names.has_several(content, name)

    # Overloads are one item: the last one, which has the body. Its documentation is before the
    # first one.

    def _is_overloaded(self, node: "Node", name: str, source: SourceText) -> bool:
        content = source.content
        between = _BETWEEN.match(content, node.end_byte)
        after = _NAME.match(content, between.end()) if between else None
        is_followed = after is not None and after.group() == name.encode()
        if is_followed and self._first_overload[:2] != (content, name):
            self._first_overload = (content, name, node.start_byte)
        return is_followed

    def _doc_of_overloads(self, name: str, source: SourceText) -> str | None:
        content, first, start = self._first_overload
        if first != name or content is not source.content:
            return None
        self._first_overload = (b"", "", 0)
        close = content.rfind(b"*/", max(0, start - 200), start)
        if close < 0 or not _AFTER_COMMENT.fullmatch(content, close + 2, start):
            return None
        opened = content.rfind(b"/**", max(0, close - 10_000), close)
        return self.doc([content[opened : close + 2]]) if opened >= 0 else None

    # Definitions

    def _held_by_variable(
        self, node: "Node", parent: SourceItem, source: SourceText
    ) -> ItemDescription | None:
        """A function or class that is named after the variable that it is assigned to."""
        name_node, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name_node is None or value is None:
            return None
        name = source.text(name_node)
        access = "private"
        if parent.kind == "module":
            if self._is_hidden(node, name, parent, source):
                return None
            access = self._visibility(_declaration(node, source.content), name, parent, source)
        return _named_expression(name, name_node.start_byte, access, wrapped(value, source), source)

    def _variable(
        self, node: "Node", parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        name_node = node.child_by_field_name("name")
        value = last_assigned(node)
        if name_node is None or (value is not None and _is_something_else(value, source)):
            return None
        content = source.content
        start = _declaration(node, content)
        name = source.text(name_node)
        access = self._visibility(start, name, parent, source)
        at = name_node.start_byte
        is_const = content[start - 6 : start].strip() == b"const"
        kind = "const" if is_const else "static"
        body = value.start_byte if value else node.end_byte
        if name_node.type != "identifier":
            return [
                ItemDescription(bound, at, kind, access, body, type_)
                for bound, type_ in bound_names(node, source)
            ] or None
        type_ = principal(source.field(node, "type"))
        if not type_ and value is not None:
            # An object is its own type: it contains its members.
            type_ = f"={name}" if value.type == "object" else value_of(value, source)
        return ItemDescription(name, at, kind, access, body, type_)

    def _method(
        self, node: "Node", parent: SourceItem, source: SourceText
    ) -> ItemDescription | None:
        kind = "method" if parent.kind != "module" else "function"
        if node.type in _SIGNATURES and parent.kind not in _HAVE_SIGNATURES:
            # A part of another type.
            return None
        name_node = (
            node.child_by_field_name("name")
            or node.child_by_field_name("key")
            or node.child_by_field_name("property")
        )
        if name_node is None:
            return None
        name = source.text(name_node).strip("\"'`")
        head = source.content[node.start_byte : name_node.start_byte]
        if kind == "function":
            access = "public"
        elif name.startswith("#") or b"private" in head:
            access = "private"
        elif b"protected" in head:
            access = "super"
        else:
            access = parent.visibility if parent.kind in ("const", "static") else "public"
        value = node.child_by_field_name("value")
        function = value or node
        body = function.child_by_field_name("body")
        if body is None and self._is_overloaded(node, name, source):
            return None
        doc, type_ = self._doc_of_overloads(name, source), _return_type(function, name, source)
        end = body.start_byte if body else node.end_byte
        return ItemDescription(name, name_node.start_byte, kind, access, end, type_, (), doc)

    def _default(self, node: "Node", source: SourceText) -> ItemDescription | None:
        value = bare(node.child_by_field_name("value"))
        if value is None or value.type in ("identifier", "member_expression"):
            return None
        value = wrapped(value, source)
        at = node.start_byte
        described = _named_expression("default", at, "public", value, source)
        if described is not None:
            return _with_own_name(described, value, source)
        type_ = "=default" if value.type == "object" else value_of(value, source)
        return ItemDescription("default", at, "const", "public", value.start_byte, type_)

    def _assigned_member(self, node: "Node", source: SourceText) -> ItemDescription | None:
        """`exports.name = …`, `module.exports = …`, and members that are assigned later."""
        left, right = node.child_by_field_name("left"), last_assigned(node)
        if left is None:
            return None
        named = source.text(left)
        if right is None or right.type in ("identifier", "assignment_expression"):
            return None
        at = left.start_byte
        if exported := _EXPORTS.fullmatch(named):
            name = exported.group(1)
            if name is None and right.type == "object":
                return None
            right = wrapped(right, source)
            described = _named_expression(name or "default", at, "public", right, source)
            if described is not None:
                return described if name else _with_own_name(described, right, source)
            type_ = f"={name}" if right.type == "object" else value_of(right, source)
            return ItemDescription(
                name or "default", at, "const", "public", right.start_byte, type_
            )
        expando = _EXPANDO.fullmatch(named)
        if expando is None or right.type not in FUNCTIONS or expando.group(1) == "this":
            return None
        described = _named_expression(expando.group(2), at, "public", right, source)
        return described and described._replace(kind="method", bases=(expando.group(1),))


def _declaration(node: "Node", content: bytes) -> int:
    """The byte after the `const` of a variable, directly before it or before the variable that it
    follows."""
    start = node.start_byte
    if _DECLARED.search(content, max(0, start - 12), start):
        return start
    around = node.parent
    first = around.named_child(0) if around and around.named_child_count else None
    return first.start_byte if first else start


def _is_top_level(node: "Node") -> bool:
    declaration = node.parent
    around = declaration.parent if declaration else None
    return around is not None and around.type in ("program", "export_statement")


def _is_something_else(value: "Node", source: SourceText) -> bool:
    """Whether a variable is only an alias of a function, a class or an import."""
    kind = wrapped(value, source).type
    if kind in FUNCTIONS or kind == "class":
        return True
    return _IS_IMPORT.fullmatch(source.content, value.start_byte, value.end_byte) is not None


def _named_expression(
    name: str, at: int, access: str, value: "Node", source: SourceText
) -> ItemDescription | None:
    """A function or class expression."""
    if value.type in FUNCTIONS:
        type_ = _return_type(value, name, source)
        return ItemDescription(name, at, "function", access, start_of(value, "body"), type_)
    if value.type == "class":
        body = start_of(value, "body")
        bases = bases_of(source.content[value.start_byte : body])
        return ItemDescription(name, at, "class", access, body, "", bases)
    return None


def _with_own_name(
    described: ItemDescription, value: "Node", source: SourceText
) -> ItemDescription:
    name = value.child_by_field_name("name")
    if name is None:
        return described
    return described._replace(name=source.text(name), at=name.start_byte)


def _field(node: "Node", parent: SourceItem, source: SourceText) -> ItemDescription | None:
    name_node = node.child_by_field_name("name") or node.child_by_field_name("property")
    value = node.child_by_field_name("value")
    if name_node is None or value is None or value.type in FUNCTIONS or parent.kind != "class":
        return None
    name = source.text(name_node).strip("\"'`")
    head = source.content[node.start_byte : name_node.start_byte]
    access = "private" if name.startswith("#") or b"private" in head else "public"
    if b"protected" in head:
        access = "super"
    type_node = node.child_by_field_name("type")
    type_ = principal(source.text(type_node)) if type_node else value_of(value, source)
    kind = "const" if b"readonly" in head else "static"
    return ItemDescription(name, name_node.start_byte, kind, access, value.start_byte, type_)


def _alias(node: "Node", name: str, at: int, access: str, source: SourceText) -> ItemDescription:
    value = node.child_by_field_name("value")
    if value is None:
        return ItemDescription(name, at, "type_alias", access, node.end_byte)
    if value.type == "object_type":
        return ItemDescription(name, at, "type_alias", access, value.start_byte, f"={name}")
    text = source.text(value)
    bases: tuple[str, ...] = ()
    type_ = principal(text)
    if value.type == "intersection_type":
        # It has the members of all of them.
        parts = (principal(source.text(part)) for part in value.named_children)
        bases = tuple(part for part in parts if part and part[0] != "=")
        type_ = f"={name}"
    body = node.end_byte if len(text) < 200 else value.start_byte
    return ItemDescription(name, at, "type_alias", access, body, type_, bases)


def _return_type(function: "Node", name: str, source: SourceText) -> str:
    returns = function.child_by_field_name("return_type")
    if returns is not None:
        return principal(source.text(returns))
    declared = function.child_by_field_name("type")
    if declared is not None:
        text = source.text(declared)
        return principal(text.rpartition("=>")[2])
    body = function.child_by_field_name("body")
    if body is not None and body.type == "statement_block" and body.named_child_count:
        # The last statement, if there is no declared type.
        last = body.named_child(body.named_child_count - 1)
        if last is None or last.type != "return_statement" or not last.named_child_count:
            return ""
        body = last.named_child(0)
    body = bare(body)
    if body is None:
        return ""
    return f"={name}" if body.type == "object" else value_of(body, source)


_QUERIES = {
    "javascript": "javascript.scm jsx.scm",
    "typescript": "typescript.scm",
    "tsx": "typescript.scm jsx.scm",
}
LANGUAGES = {name: EcmaScript(name, query_file) for name, query_file in _QUERIES.items()}
