"""Python."""

import functools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctx.code.language import HASH_COMMENT, ItemDescription, Language, SourceText, flatten, start_of
from ctx.code.source_model import SourceImport, SourceItem

if TYPE_CHECKING:
    from tree_sitter import Node

_STRING = re.compile(rb"(?s)[rRuU]{0,2}(?:(\"\"\"|''')(.{0,8000}?)\1|([\"'])([^\n\"']{0,1000})\3)")
_BEFORE_ANYTHING = re.compile(rb"(?:\xef\xbb\xbf)?(?>(?:\s|#[^\n]*+)*)")
_QUOTES = frozenset({b'"', b"'", b"r", b"R", b"u", b"U"})
_NOT_IN_IMPORTS = re.compile(r"#[^\n]*|\\")
_FROM = re.compile(r"from\s*([\w.\s]+?)\s*\bimport\b(.*)\Z", re.DOTALL)
_WRAPPED = re.compile(
    r"(?:typing\.|t\.)?(?:Optional|Annotated|Final|ClassVar|Required)\[(.*)\]", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z_][\w.]*")


class Python(Language):
    name = "python"
    query_file = "python.scm"
    indentation_matters = True
    comment = HASH_COMMENT

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | None:
        if kind == "static":
            return _variable(node, parent, source)
        name_node = node.child_by_field_name("left" if kind == "type_alias" else "name")
        if name_node is None:
            return None
        name = source.text(name_node)
        if kind == "type_alias":
            # `type Pair[A, B] = …`: the parameters are not part of the name.
            name, start = name.partition("[")[0], start_of(node, "right")
            type_, access = principal(source.content[start : node.end_byte]), _visibility(name)
            return ItemDescription(name, name_node.start_byte, kind, access, start, type_)
        at, access = name_node.start_byte, _visibility(name)
        body = node.child_by_field_name("body")
        body_start = body.start_byte if body else node.end_byte
        doc = _docstring(source.content, body_start) if body else ""
        if kind == "class":
            bases = _bases(node.child_by_field_name("superclasses"), source)
            return ItemDescription(name, at, kind, access, body_start, "", bases, doc)
        if parent.kind == "class":
            kind = "method"
        returns = node.child_by_field_name("return_type")
        type_ = principal(source.content[returns.start_byte : returns.end_byte]) if returns else ""
        return ItemDescription(name, at, kind, access, body_start, type_, (), doc)

    def imports(
        self, node: "Node", scope: int, line: int, source: SourceText
    ) -> Iterable[SourceImport]:
        # The syntax is so simple that matching the text is faster than the tree.
        text = source.text(node)
        if "#" in text or "\\" in text:
            text = _NOT_IN_IMPORTS.sub(" ", text)
        match = _FROM.match(text)
        module, names = match.groups() if match else ("", text.partition("import")[2])
        module = "".join(module.split())
        for name in names.replace("(", " ").replace(")", " ").split(","):
            match name.split():
                case ["*"]:
                    yield SourceImport(scope, "", module, "*", line, True)
                case [item]:
                    if match:
                        yield SourceImport(scope, item, module, item, line, True)
                    else:
                        # `import a.b` binds `a`, and makes `a.b` reachable through it.
                        yield SourceImport(scope, item.partition(".")[0], item, "", line, True)
                case [item, "as", alias]:
                    if match:
                        yield SourceImport(scope, alias, module, item, line, True)
                    else:
                        yield SourceImport(scope, alias, item, "", line, True)

    def bindings(self, node: "Node", source: SourceText) -> Iterable[tuple[str, str]]:
        kind = node.type
        if kind != "assignment" and kind != "as_pattern":
            # A parameter: `name: Type`, perhaps with a default.
            text = source.content[node.start_byte : node.end_byte]
            name, _, declared = text.partition(b":")
            type_ = principal(declared)
            # `*rest: Type` holds several of them.
            is_one = type_ and not name.startswith(b"*")
            return ((name.decode("utf-8", "replace"), type_),) if is_one else ()
        if kind == "assignment":
            left, declared_node = node.child_by_field_name("left"), node.child_by_field_name("type")
            if left is None:
                return ()
            name_text = source.text(left)
            if name_text.startswith("cls."):
                # Class attributes are available on instances.
                name_text = f"self.{name_text[4:]}"
            if declared_node:
                span = source.content[declared_node.start_byte : declared_node.end_byte]
                return ((name_text, principal(span)),)
            right = node.child_by_field_name("right")
            return ((name_text, _value(right, source)),) if right else ()
        children = node.named_children
        if len(children) < 2:
            return ()
        value = _value(children[0], source)
        if node.parent and node.parent.type == "except_clause":
            # A caught exception is an instance.
            value = value.removeprefix("=")
        return ((source.text(children[-1]), value),)

    def file_doc(self, content: bytes, /) -> str:
        begin = _BEFORE_ANYTHING.match(content)
        return _docstring(content, begin.end() if begin else 0)

    def expression(self, text: bytes) -> str | None:
        # A method of a literal belongs to the language, and `super()` calls nothing of the class.
        return None if text[:1] in b"\"'[{(0123456789" or text == b"super" else flatten(text)


def _variable(node: "Node", parent: SourceItem, source: SourceText) -> ItemDescription | None:
    left = node.child_by_field_name("left")
    if left is None or parent.kind not in ("module", "class"):
        return None
    name = source.text(left)
    if name == "__all__":
        return None
    declared, right = node.child_by_field_name("type"), node.child_by_field_name("right")
    type_ = principal(source.content[declared.start_byte : declared.end_byte]) if declared else ""
    if not type_ and right:
        type_ = _value(right, source)
    kind = "const" if name.isupper() else "static"
    if right and type_.endswith("TypeAlias"):
        kind, type_ = "type_alias", principal(source.content[right.start_byte : right.end_byte])
    body = right.start_byte if right else node.end_byte
    return ItemDescription(name, left.start_byte, kind, _visibility(name), body, type_, (), "")


def _value(node: "Node", source: SourceText) -> str:
    """The type of an assigned value, if it is known: the result of a call, or an alias."""
    kind = node.type
    if kind == "await" and node.named_child_count:
        node = node.named_children[0]
        kind = node.type
    if kind == "call":
        function = node.child_by_field_name("function")
        if function is None:
            return ""
        called = flatten(source.content[function.start_byte : function.end_byte])
        return f"{called}()" if called and called[0] != "?" else ""
    return f"={source.text(node)}" if kind in ("identifier", "attribute") else ""


@functools.lru_cache(maxsize=20_000)
def principal(annotation: bytes) -> str:
    """The principal type of an annotation: `Optional["a.B[c]"]` is `a.B`."""
    text = annotation.decode("utf-8", "replace").partition("=")[0].strip().strip("\"'")
    while wrapped := _WRAPPED.fullmatch(text):
        text = wrapped.group(1).strip().strip("\"'")
    parts = [part.strip().strip("\"'") for part in text.split("|")]
    parts = [part for part in parts if part != "None"]
    match = _NAME.match(parts[0]) if len(parts) == 1 else None
    return match.group() if match else ""


def _bases(arguments: "Node | None", source: SourceText) -> tuple[str, ...]:
    if arguments is None:
        return ()
    bases = (
        flatten(source.content[child.start_byte : child.end_byte])
        for child in arguments.named_children
        if child.type in ("identifier", "attribute", "subscript", "call")
    )
    return tuple(base.removesuffix("[]") for base in bases if base and base[0] != "?")


def _docstring(content: bytes, start: int) -> str:
    """The string at the beginning of a body."""
    if content[start : start + 1] not in _QUOTES:
        return ""
    match = _STRING.match(content, start)
    if match is None:
        return ""
    text = match.group(2) or match.group(4) or b""
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return "\n".join([line.strip() for line in lines])


def _visibility(name: str) -> str:
    is_private = name.startswith("_") and not (name.startswith("__") and name.endswith("__"))
    return "private" if is_private else "public"


LANGUAGE = Python()
