"""C++: C with classes, namespaces and templates."""

import functools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctx.code.language import ItemDescription, SourceText, access_at, flatten, start_of
from ctx.code.languages.c import (
    C,
    blank_word,
    declared_name,
    end_of_promise,
    is_header,
    visibility,
    with_whole_blocks,
)
from ctx.code.source_model import SourceImport, SourceItem

if TYPE_CHECKING:
    from tree_sitter import Node

_ACCESS = {b"public": "public", b"protected": "super", b"private": "private"}
_TYPES = frozenset({"class", "struct"})
_MOST_WRAPPERS = 5
_ARGUMENTS = re.compile(rb"<[^<>()]*>")
_OF_ARGUMENTS = re.compile(
    r"(?:std::)?(?:unique_ptr|shared_ptr|weak_ptr|optional|atomic|reference_wrapper)<(.*)>\Z",
    re.DOTALL,
)
_SIMPLE = re.compile(
    rb"(?:(?:const|static|constexpr|mutable|struct|class|enum|thread_local)\s+)*"
    rb"((?!unsigned|signed)[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)"
    rb"\s*(?:<([^<>;={}()]*(?:<[^<>;={}()]*>[^<>;={}()]*)*)>)?"
    rb"(?:\s*[*&]|\s+const\b)*\s*\b([A-Za-z_]\w*)\s*(?:[;={\[)]|\Z)"
)
_SMART = frozenset(
    (b"std::" * is_long + name)
    for is_long in (False, True)
    for name in (b"unique_ptr", b"shared_ptr", b"weak_ptr", b"optional", b"atomic")
)
_QUALIFIERS = re.compile(r"\b(?:const|volatile|typename|struct|class|enum)\b\s*")
_TYPE = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
_PLAIN = re.compile(rb"[\w:~]+")
_OPERATOR = re.compile(rb"\boperator\b(?:\s+([A-Za-z_][^()]*))?")
_UPPER_CASE = re.compile(r"[A-Z][A-Z\d_]+\Z")
_MADE = re.compile(rb"(?:std::)?make_(?:unique|shared)<(.*)>\Z", re.DOTALL)

# A macro where the grammar expects none: before the name of a class, and before a declaration. Each
# is a word in capitals. A pattern that begins with a fixed word is found quickly.
_BEFORE_A_NAME = (
    rb"[ \t]+((?:[A-Z][A-Z\d]*_[A-Z\d_]+|[A-Z]{4,})(?:\([^()\n]*\))?)"
    rb"(?=\s+[A-Za-z_]\w*(?:::\w+)*\s*(?:final\s*)?[:{<])"
)
_MACROS = (
    re.compile(rb"class" + _BEFORE_A_NAME),
    re.compile(rb"struct" + _BEFORE_A_NAME),
    re.compile(
        rb"\n([A-Z][A-Z\d_]{3,}(?:\([^()\n]*\))?)"
        rb"(?=\s+(?:/[/*]|#|\Z|\}|(?:namespace|template|class|struct|union|enum|using|typedef|static"
        rb"|inline|extern|constexpr|const|virtual|explicit|void|int|char|long|short|unsigned|float"
        rb"|double|bool|auto|size_t|std::\w+)\b|[A-Za-z_][\w:]*[ \t*&]+[A-Za-z_]\w*[ \t]*\())"
    ),
)


_ANNOTATION = re.compile(
    rb"(?<=[\w)]\s)((?:[A-Z]+_)*(?:GUARDED_BY|LOCKS_EXCLUDED|UNLOCK_FUNCTION|LOCKS?_REQUIRED"
    rb"|LOCK_FUNCTION|ACQUIRED_(?:AFTER|BEFORE)|LOCK_RETURNED)\([^()\n]*\))"
)
"""Lock annotations after the name of a member."""
_LOCK_ANNOTATIONS = (b"GUARDED_BY(", b"LOCKS_EXCLUDED(", b"LOCKS_REQUIRED(", b"LOCK_FUNCTION(")


class Cpp(C):
    name = "cpp"
    query_file = "cpp.scm"
    separator = "::"

    def __init__(self) -> None:
        super().__init__()
        self._content = b""
        self._hidden = (0, 0)
        """The span of the last anonymous namespace, whose items are private to the file."""
        self._accesses: dict[int, list[tuple[int, str]]] = {}
        """For each class of the file, by its end: from which offset on which access applies."""

    def readable(self, content: bytes) -> bytes:
        content = with_whole_blocks(content)
        for macro in _MACROS:
            content = macro.sub(blank_word, content)
        if any(word in content for word in _LOCK_ANNOTATIONS):
            content = _ANNOTATION.sub(blank_word, content)
        return content

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        if source.content is not self._content:
            self._content, self._hidden, self._accesses = source.content, (0, 0), {}
        match kind:
            case "module":
                return self._namespace(node, source)
            case "class" | "struct":
                return self._class(node, kind, parent, source)
            case "method":
                return self._member(node, parent, source)
            case "trait":
                name = node.child_by_field_name("name")
                if name is None:
                    return None
                return ItemDescription(
                    source.text(name), name.start_byte, "trait", "public", name.end_byte
                )
            case "function":
                return self._function(node, parent, source)
            case "type_alias" if node.type == "alias_declaration":
                return self._alias(node, parent, source)
        described = super().item(node, kind, parent, source)
        if described is None or not (parent.kind in _TYPES or self._is_hidden(node)):
            return described
        access = self._access(node, parent)
        if isinstance(described, ItemDescription):
            return described._replace(visibility=access)
        return [item._replace(visibility=access) for item in described]

    def _is_hidden(self, node: "Node") -> bool:
        begin, end = self._hidden
        return begin <= node.start_byte < end

    def _access(self, node: "Node", parent: SourceItem) -> str:
        if parent.kind not in _TYPES:
            return "private" if self._is_hidden(node) else "public"
        default = "private" if parent.kind == "class" else "public"
        return access_at(self._accesses.get(parent.end, ()), node.start_byte, default)

    def _namespace(self, node: "Node", source: SourceText) -> ItemDescription | None:
        name = node.child_by_field_name("name")
        if name is None:
            if not is_header(source) and not self._is_hidden(node):
                self._hidden = (node.start_byte, node.end_byte)
            return None
        full_name = "".join(source.text(name).split())
        body = start_of(node, "body")
        return ItemDescription(full_name, name.start_byte, "module", "public", body)

    def _class(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | None:
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name_node is None or body is None:
            return None
        name = without_template_arguments(source.content[name_node.start_byte : name_node.end_byte])
        if parent.kind == kind and parent.name == name:
            # Already described with its declaration.
            self._accesses[parent.end] = _accesses(body, source)
            return None
        self._accesses[node.end_byte] = _accesses(body, source)
        bases: Iterable[str] = ()
        for child in node.named_children:
            if child.type == "base_class_clause":
                bases = [
                    without_template_arguments(source.content[base.start_byte : base.end_byte])
                    for base in child.named_children
                    if base.type in ("type_identifier", "qualified_identifier", "template_type")
                ]
        access = self._access(node, parent)
        at = name_node.start_byte
        bases = tuple(base for base in bases if base)
        return ItemDescription(name, at, kind, access, body.start_byte, "", bases)

    def _function(
        self, node: "Node", parent: SourceItem, source: SourceText
    ) -> ItemDescription | None:
        declarator = node.child_by_field_name("declarator")
        declared_as = declared_name(declarator)
        if declared_as is None:
            return None
        name_node, is_function = declared_as
        if not is_function and name_node.type != "qualified_identifier":
            return self.function(node, source)
        body, type_node = node.child_by_field_name("body"), node.child_by_field_name("type")
        begin = start_of(node, "body")
        if type_node is None:
            # The body of a constructor begins with its initialisers.
            for child in node.named_children:
                if child.type == "field_initializer_list":
                    begin = child.start_byte
        if body is None:
            # Defaulted or deleted.
            begin = end_of_promise(node, source)
        name, bases = function_name(name_node, source)
        if type_node is None and not bases and parent.kind == "module" and _UPPER_CASE.match(name):
            name = _made_by_macro(declarator, source) or name
        kind = "method" if bases or parent.kind in _TYPES else "function"
        if parent.kind in _TYPES or self._is_hidden(node):
            access = self._access(node, parent)
        else:
            access = visibility(source.content[node.start_byte : name_node.start_byte], source)
        type_ = self.type_of(type_node, source)
        return ItemDescription(name, name_node.start_byte, kind, access, begin, type_, bases)

    def declared(
        self, node: "Node", parent: SourceItem, source: SourceText
    ) -> tuple[ItemDescription, ...] | None:
        if parent.kind in _TYPES:
            # A constructor or a template: such members look like definitions outside of a class.
            member = self._member(node, parent, source)
            return (member,) if member else None
        items = super().declared(node, parent, source)
        if not items or not any("::" in item.name or "<" in item.name for item in items):
            return items
        # `int A::count = 0;` defines what the class declares.
        return tuple(item for item in items if "::" not in item.name) or None

    def _member(
        self, node: "Node", parent: SourceItem, source: SourceText
    ) -> ItemDescription | None:
        if parent.kind not in _TYPES:
            return None
        declarator = node.child_by_field_name("declarator")
        declared = declared_name(declarator)
        if declared is None or declarator is None:
            return None
        name_node, is_function = declared
        before = source.content[node.start_byte : declarator.start_byte]
        words = before.split()
        if not is_function and b"static" not in words and b"constexpr" not in words:
            return None
        kind = "method"
        if not is_function:
            kind = "const" if b"const" in words or b"constexpr" in words else "static"
        value = node.child_by_field_name("default_value")
        body = end_of_promise(node, source)
        if value and not is_function:
            body = value.start_byte
        type_ = self.type_of(node.child_by_field_name("type"), source)
        name, _ = function_name(name_node, source)
        return ItemDescription(
            name, name_node.start_byte, kind, self._access(node, parent), body, type_
        )

    def _alias(
        self, node: "Node", parent: SourceItem, source: SourceText
    ) -> ItemDescription | None:
        name, type_node = node.child_by_field_name("name"), node.child_by_field_name("type")
        if name is None or type_node is None or parent.kind in ("function", "method"):
            return None
        access, end = self._access(node, parent), end_of_promise(node, source)
        type_ = principal(source.text(type_node))
        return ItemDescription(source.text(name), name.start_byte, "type_alias", access, end, type_)

    def type_of(self, node: "Node | None", source: SourceText) -> str:
        return principal(source.text(node)) if node and node.type not in _UNNAMED_TYPES else ""

    def imports(
        self, node: "Node", scope: int, line: int, source: SourceText
    ) -> Iterable[SourceImport]:
        """A `using` imports from a namespace, which is written `::name`."""
        if node.type == "preproc_include":
            yield from super().imports(node, scope, line, source)
            return
        words = source.text(node).rstrip(";").split()[1:]
        shared = scope == 0 or is_header(source)
        if words[:1] == ["namespace"]:
            yield SourceImport(scope, "", "::" + "".join(words[1:]), "*", line, shared)
        elif words and words[0] != "enum":
            module, _, item = "".join(words).rpartition("::")
            yield SourceImport(scope, item, "::" + module, item, line, shared)

    def bindings(self, node: "Node", source: SourceText) -> Iterable[tuple[str, str]]:
        # Nearly all are as simple as `const Options& options`, and matching the text is faster than
        # the tree.
        simple = _SIMPLE.match(source.content, node.start_byte, node.end_byte)
        if simple is None:
            return self._bindings(node, source)
        type_, arguments, name = simple.groups()
        if type_ == b"auto":
            return self._bindings(node, source)
        if arguments and type_ in _SMART:
            type_ = arguments
        return ((name.decode(), principal(type_.decode("utf-8", "replace"))),)

    def _bindings(self, node: "Node", source: SourceText) -> list[tuple[str, str]]:
        type_ = self.type_of(node.child_by_field_name("type"), source)
        bindings = []
        for declarator in node.children_by_field_name("declarator"):
            named = declared_name(declarator)
            if named is None or named[1] or not named[0].type.endswith("identifier"):
                continue
            held = type_
            if type_ == "auto":
                value = declarator.child_by_field_name("value")
                held = _value(value, source) if value else ""
            if held:
                bindings.append((source.text(named[0]), held))
        return bindings

    def expression(self, text: bytes) -> str | None:
        return flatten(without_arguments(text))


_UNNAMED_TYPES = frozenset({"primitive_type", "sized_type_specifier", "decltype"})


def without_arguments(text: bytes) -> bytes:
    """`std::make_unique<T>` becomes `std::make_unique`."""
    if b"<" not in text or len(text) > 1_000:
        return text
    text = text.replace(b"->", b".")
    for _ in range(5):
        shorter = _ARGUMENTS.sub(b"", text)
        if shorter == text:
            break
        text = shorter
    return text


def without_template_arguments(text: bytes) -> str:
    if _PLAIN.fullmatch(text):
        return text.decode("utf-8", "replace")
    return b"".join(without_arguments(text).split()).decode("utf-8", "replace")


def function_name(node: "Node", source: SourceText) -> tuple[str, tuple[str, ...]]:
    """The name of a function, and the class or namespace that it is a member of."""
    text = source.content[node.start_byte : node.end_byte]
    operator = _OPERATOR.search(text) if b"operator" in text else None
    if operator:
        # The rest may contain brackets, and `operator bool` has parameters.
        scope, kind = text[: operator.start()], operator.group(1)
        name = "operator" + (f" {principal(kind.decode('utf-8', 'replace'))}" if kind else "")
        if not kind:
            name += "".join(text[operator.end() :].decode("utf-8", "replace").split())
        base = without_template_arguments(scope).removesuffix("::")
    else:
        base, _, name = without_template_arguments(text).rpartition("::")
    return name, (base,) if base else ()


@functools.lru_cache(maxsize=8192)
def principal(text: str) -> str:
    """The principal type of a type: `const std::unique_ptr<Table>&` is `Table`."""
    text = _QUALIFIERS.sub("", text).strip()
    for _ in range(_MOST_WRAPPERS):
        wrapped = _OF_ARGUMENTS.match(text)
        if wrapped is None:
            break
        text = _QUALIFIERS.sub("", wrapped.group(1)).strip()
    match = _TYPE.match(text)
    return match.group() if match else ""


def _value(node: "Node", source: SourceText) -> str:
    """What a variable without a type is initialised with: the result of a call, or a new object."""
    if node.type == "new_expression":
        return principal(source.field(node, "type"))
    if node.type != "call_expression":
        return ""
    function = node.child_by_field_name("function")
    if function is None:
        return ""
    text = source.content[function.start_byte : function.end_byte]
    if made := _MADE.match(text):
        return principal(made.group(1).decode("utf-8", "replace"))
    called = flatten(without_arguments(text))
    return f"{called}()" if called and called[0] != "?" else ""


def _accesses(body: "Node", source: SourceText) -> list[tuple[int, str]]:
    accesses = []
    for child in body.named_children:
        if child.type == "access_specifier":
            word = source.content[child.start_byte : child.end_byte]
            accesses.append((child.start_byte, _ACCESS.get(word, "public")))
    return accesses


def _made_by_macro(declarator: "Node | None", source: SourceText) -> str:
    """`TEST(Suite, Name) { … }` is named `Suite.Name`."""
    parameters = declarator.child_by_field_name("parameters") if declarator else None
    if parameters is None:
        return ""
    words = [word.strip() for word in source.text(parameters).strip("()").split(",")]
    return ".".join(words) if all(word.isidentifier() for word in words) else ""


LANGUAGE = Cpp()
