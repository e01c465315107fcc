"""The languages of which only the definitions are read. Their calls and imports are unknown."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ctx.code.language import (
    HASH_COMMENT,
    ItemDescription,
    Language,
    SourceText,
    access_at,
    start_of,
)
from ctx.code.source_model import SourceItem

if TYPE_CHECKING:
    from tree_sitter import Node

TYPES = frozenset({"class", "struct", "enum", "trait", "interface", "impl"})
_IN_FUNCTIONS = frozenset({"function", "method"})
_VALUES = frozenset({"const", "static"})
_ACCESSES = {b"public": "public", b"protected": "super", b"private": "private"}


class Definitions(Language):
    """The query finds the items; the methods return name, body and visibility."""

    bodies: tuple[str, ...] = ("body",)
    """The fields of a node where a body can begin."""
    accesses: Mapping[bytes, str] = MappingProxyType({})
    """The modifiers that determine the visibility."""
    unsaid = unsaid_member = "public"
    """The default visibility, at the top level and inside of a type."""
    open_types: tuple[str, ...] = ("interface",)
    """Types whose members have the visibility of the type."""
    constants: re.Pattern[bytes] | None = None
    """Matches what precedes the name of a constant."""

    def __init__(self) -> None:
        super().__init__()
        words = b"|".join(map(re.escape, self.accesses))
        self._access_words = re.compile(rb"\b(?:" + words + rb")\b") if words else None

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        if kind in _VALUES and parent.kind in _IN_FUNCTIONS:
            return None
        items = []
        for name_node in self.names(node):
            at = name_node.start_byte
            before = source.content[node.start_byte : at]
            name, bases = self.name_and_owner(source.text(name_node))
            own = self.kind(kind, before, parent)
            if bases:
                own = "method"
            access = self.visibility(before, own, parent)
            body = self.body(node)
            if own in _VALUES:
                equals = source.content.find(b"=", name_node.end_byte, body)
                body = equals if equals >= 0 else body
            body -= source.content[body - 1 : body] == b";"
            items.append(ItemDescription(name, at, own, access, body, "", bases))
        return items or None

    def names(self, node: "Node") -> Iterable["Node"]:
        """The nodes of the names that a definition introduces."""
        name = node.child_by_field_name("name")
        return (name,) if name else ()

    def name_and_owner(self, text: str) -> tuple[str, tuple[str, ...]]:
        """A name, and the type that it is written as a member of."""
        return text, ()

    def kind(self, kind: str, before: bytes, parent: SourceItem) -> str:
        if kind == "function" and parent.kind in TYPES:
            return "method"
        if kind == "static" and self.constants and self.constants.search(before):
            return "const"
        return kind

    def visibility(self, before: bytes, kind: str, parent: SourceItem) -> str:
        words = self._access_words.findall(before) if self._access_words else []
        if words:
            # The last one: an earlier one may be the argument of an annotation.
            return self.accesses[words[-1]]
        if parent.kind in TYPES:
            return "public" if parent.kind in self.open_types else self.unsaid_member
        return "public" if kind == "module" else self.unsaid

    def body(self, node: "Node") -> int:
        return start_of(node, *self.bodies)


def children(node: "Node", *types: str) -> Iterable["Node"]:
    """The children of some types, then theirs: a path into the tree."""
    nodes = [node]
    for type_ in types:
        nodes = [
            child for parent in nodes for child in parent.named_children if child.type == type_
        ]
    return nodes


def named(nodes: Iterable["Node"]) -> list["Node"]:
    """The names of nodes that have one."""
    names = (node.child_by_field_name("name") for node in nodes)
    return [name for name in names if name]


class Bash(Definitions):
    name = "bash"
    query_file = "bash.scm"
    comment = HASH_COMMENT
    constants = re.compile(rb"readonly|-\w*r")

    def names(self, node: "Node") -> Iterable["Node"]:
        if node.type == "declaration_command":
            return named(children(node, "variable_assignment"))
        return super().names(node)


_OPERATOR = re.compile(rb"\boperator\s*([^\s(]+)")
_OF_THE_TYPE = re.compile(rb"\b(?:const|static)\b")


class CSharp(Definitions):
    name = "csharp"
    query_file = "csharp.scm"
    bodies = ("body", "accessors", "value")
    accesses = _ACCESSES | {b"internal": "crate"}
    unsaid = "crate"
    unsaid_member = "private"
    open_types = ("interface", "enum")
    constants = re.compile(rb"\bconst\b")

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        match node.type:
            case "operator_declaration" | "conversion_operator_declaration":
                match = _OPERATOR.search(source.content, node.start_byte, node.end_byte)
                if match is None:
                    return None
                name = f"operator {match.group(1).decode('utf-8', 'replace')}"
                at = match.start()
                access = self.visibility(source.content[node.start_byte : at], kind, parent)
                return ItemDescription(name, at, "method", access, self.body(node))
            case "destructor_declaration":
                end = node.child_by_field_name("name")
                if end is None:
                    return None
                name = f"~{source.text(end)}"
                return ItemDescription(name, end.start_byte, kind, "private", self.body(node))
            case "field_declaration":
                # Instance fields are not items.
                text = source.content[node.start_byte : node.end_byte]
                if not _OF_THE_TYPE.search(text.partition(b"=")[0]):
                    return None
        return super().item(node, kind, parent, source)

    def names(self, node: "Node") -> Iterable["Node"]:
        if node.type == "field_declaration":
            return named(children(node, "variable_declaration", "variable_declarator"))
        return super().names(node)


_KOTLIN_BODIES = frozenset({"class_body", "enum_class_body", "function_body", "getter"})
_ENUM = re.compile(rb"\benum\b")


class Kotlin(Definitions):
    name = "kotlin"
    query_file = "kotlin.scm"
    accesses = _ACCESSES | {b"internal": "crate"}
    constants = re.compile(rb"\bconst\b")

    def names(self, node: "Node") -> Iterable["Node"]:
        if node.type == "property_declaration":
            return list(children(node, "variable_declaration", "identifier"))[:1]
        name = node.child_by_field_name("name") or node.child_by_field_name("type")
        return (name,) if name else ()

    def kind(self, kind: str, before: bytes, parent: SourceItem) -> str:
        if kind == "class" and _ENUM.search(before):
            return "enum"
        return super().kind(kind, before, parent)

    def body(self, node: "Node") -> int:
        for child in node.named_children:
            if child.type in _KOTLIN_BODIES:
                return child.start_byte
        return node.end_byte


_LONG_COMMENT = re.compile(rb"\A--\[=*\[|\]=*\]\Z")
_OWNER = re.compile(r"(.*)[.:]([^.:]+)\Z", re.DOTALL)


class Lua(Definitions):
    name = "lua"
    query_file = "lua.scm"
    accesses = MappingProxyType({b"local": "private"})

    def names(self, node: "Node") -> Iterable["Node"]:
        if node.type in ("function_declaration", "field"):
            return super().names(node)
        assigned = children(_assignment(node), "variable_list")
        return [child.named_children[0] for child in assigned if child.named_child_count]

    def body(self, node: "Node") -> int:
        """The signature of a function ends with its parameters."""
        function = node
        if node.type == "field":
            function = node.child_by_field_name("value") or node
        elif node.type != "function_declaration":
            values = children(_assignment(node), "expression_list", "function_definition")
            function = next(iter(values), node)
        parameters = function.child_by_field_name("parameters")
        return parameters.end_byte if parameters else node.end_byte

    def doc(self, comments: list[bytes]) -> str:
        return super().doc([_LONG_COMMENT.sub(b"", comment) for comment in comments])

    def name_and_owner(self, text: str) -> tuple[str, tuple[str, ...]]:
        """`M.shape:area` is the `area` of `M.shape`."""
        match = _OWNER.match(text)
        return (match.group(2), (match.group(1),)) if match else (text, ())


def _assignment(node: "Node") -> "Node":
    """The statement after `local`, or the whole node."""
    return next(iter(children(node, "assignment_statement")), node)


class Php(Definitions):
    name = "php"
    query_file = "php.scm"
    separator = "\\"
    accesses = _ACCESSES

    def names(self, node: "Node") -> Iterable["Node"]:
        if node.type == "const_declaration":
            return children(node, "const_element", "name")
        return super().names(node)


class Ruby(Definitions):
    name = "ruby"
    query_file = "ruby.scm"
    separator = "::"
    comment = HASH_COMMENT

    def __init__(self) -> None:
        super().__init__()
        self._content = b""
        self._sections: dict[int, list[tuple[int, str]]] = {}
        """For each class of the file, by its end: from which offset on which access applies."""

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        if source.content is not self._content:
            self._content, self._sections = source.content, {}
        name_node = node.child_by_field_name("left" if kind == "const" else "name")
        if name_node is None:
            return None
        name = source.text(name_node)
        access = "public"
        if kind in ("class", "module"):
            body = node.child_by_field_name("body")
            if body:
                self._sections[node.end_byte] = _sections(body, source)
        elif kind == "method" and parent.kind in ("class", "module") and parent.parent >= 0:
            if node.type == "method":
                access = self._access(node, parent, source)
        elif kind == "method":
            kind = "function"
        base = node.child_by_field_name("superclass")
        # The signature ends with the last of these; Ruby has no mark for it.
        last = base or node.child_by_field_name("parameters") or name_node
        bases = (source.text(base).lstrip("< \t\n"),) if base else ()
        return ItemDescription(name, name_node.start_byte, kind, access, last.end_byte, "", bases)

    def _access(self, node: "Node", parent: SourceItem, source: SourceText) -> str:
        line = source.content.rfind(b"\n", 0, node.start_byte) + 1
        word = source.content[line : node.start_byte].strip()
        if word in _ACCESSES:
            # `private def name`
            return _ACCESSES[word]
        return access_at(self._sections.get(parent.end, ()), node.start_byte, "public")


def _sections(body: "Node", source: SourceText) -> list[tuple[int, str]]:
    """The positions of a bare `private` and the like, which apply to what follows."""
    accesses = []
    for child in body.named_children:
        if child.type == "identifier":
            word = source.content[child.start_byte : child.end_byte]
            if word in _ACCESSES:
                accesses.append((child.start_byte, _ACCESSES[word]))
    return accesses


class Scala(Definitions):
    name = "scala"
    query_file = "scala.scm"
    bodies = ("body", "value")
    accesses = _ACCESSES

    def names(self, node: "Node") -> Iterable["Node"]:
        name = node.child_by_field_name("name") or node.child_by_field_name("pattern")
        return (name,) if name else ()


_WITHOUT_A_NAME = {
    "init_declaration": "init",
    "deinit_declaration": "deinit",
    "subscript_declaration": "subscript",
}

_MOST_OPEN_COMMENTS = 50
_SWIFT_ACCESSES = {
    b"open": "public",
    b"public": "public",
    b"package": "crate",
    b"internal": "crate",
    b"fileprivate": "private",
    b"private": "private",
}


class Swift(Definitions):
    name = "swift"
    query_file = "swift.scm"
    bodies = ("body", "computed_value", "value")
    accesses = _SWIFT_ACCESSES
    unsaid = unsaid_member = "crate"
    constants = re.compile(rb"\blet\b")

    def readable(self, content: bytes) -> bytes:
        """The grammar takes very long for comments that are opened again and again."""
        opened = content.count(b"/*")
        if opened > _MOST_OPEN_COMMENTS:
            without = content.replace(b"/*", b"  ")
            if opened - without.count(b"*/") > _MOST_OPEN_COMMENTS:
                return without
        return content

    def names(self, node: "Node") -> Iterable["Node"]:
        word = _WITHOUT_A_NAME.get(node.type)
        if word is None:
            return super().names(node)
        # They are named after their keyword.
        return [child for child in node.children if child.type == word]

    def body(self, node: "Node") -> int:
        if node.type == "subscript_declaration":
            for child in node.named_children:
                if child.type == "computed_property":
                    return child.start_byte
        return super().body(node)


LANGUAGES = {
    language.name: language
    for language in (Bash(), CSharp(), Kotlin(), Lua(), Php(), Ruby(), Scala(), Swift())
}
