"""Go."""

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
    "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64"
    " rune string uint uint8 uint16 uint32 uint64 uintptr".split()
)
_KEYWORDS = frozenset("func struct interface map chan nil".split())
_NAMELESS = _OWN_TYPES | _KEYWORDS - {"func"}
_OWN_CALLS = _OWN_TYPES | frozenset("append cap len make new panic recover".split())
"""Names of the language that are rarely redefined. Packages do define their own `min`, `close` or
`copy`."""

_HARMLESS = frozenset(("_", "err", "ok"))
"""Names of results that are never called or confused with package-level names."""

_WORD = r"[^\W\d]\w*"
_NAMES = re.compile(
    rf"(?!chan\b|func\b)({_WORD}(?:\s*,\s*{_WORD})*)\s+(?:\.\.\.\s*)?(?=[\w*\[(<])(.*)", re.DOTALL
)
_TYPE = re.compile(
    rf"(?:[*(~\s]|\.\.\.|<-|chan\b|map\[[^\[\]]*\]|\[[^\[\]]*\])*({_WORD}(?:\.{_WORD})?)"
)
_TYPES = re.compile(
    rb"(?<![\w\]\x80-\xff])\[[^\[\]]*\]|[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:\.[A-Za-z_\x80-\xff][\w\x80-\xff]*)?"
)
_HEAD = re.compile(rb"func\s*(\([^()]*\))?\s*([A-Za-z_\x80-\xff][\w\x80-\xff]*)")
_CALL_ASSIGNMENT = re.compile(rb"(\w+)(?:, (?:err|ok|_))? := ([\w.]*\w)\([^()]*\)")
_LITERAL_ASSIGNMENT = re.compile(rb"(\w+) := &?([\w.]+)\{")
_EMBEDDED = re.compile(rf"\*?\s*((?:{_WORD}\.)?)({_WORD})(?:\[.*\])?\s*(?:[`\"]|$)", re.DOTALL)
_ASSERTED = re.compile(rb"\.\(\s*\*?\s*([\w.\x80-\xff]+)\s*\)")
_MADE = re.compile(
    rb"\(\s*&?([\w.\x80-\xff]+)\x05\s*\)|([\w.\x80-\xff]+)\x05|new\(\s*([\w.\x80-\xff]+)\s*\)"
    rb"|\(\s*\*?([\w.\x80-\xff]+)\s*\)\s*\([^()]*\)"
)
"""A value of an explicit type: `(&T{…})`, `T{…}`, `new(T)`, `(*T)(…)`; \\x05 for braces."""
_BRACKETED = re.compile(rb"\(\s*[*&]?([\w.\x80-\xff]+)\s*\)")
_BRACES, _BRACKETS = re.compile(rb"\{[^{}]*\}"), re.compile(rb"\[[^\[\]]*\]")
_PARENTHESES = re.compile(rb"\([^()]*\)")
_PATH = re.compile(r"(?:\.[^\W\d]\w*|\(\))*")
_LONGEST_EXPRESSION = 300
_DIRECTIVE = re.compile(rb"//(?:[a-z]+:\S|nolint\b|\s*\+build\s)")
_MAJOR_VERSION = re.compile(r"v\d+")
_VERSION_SUFFIX = re.compile(r"\.v\d+$")


class Go(LanguageWithRepeatedBindings):
    name = "go"
    query_file = "go.scm"

    def item(
        self, node: "Node", kind: str, parent: SourceItem, source: SourceText
    ) -> ItemDescription | Iterable[ItemDescription] | None:
        if kind in ("const", "static"):
            return _variables(node, kind, source) if parent.kind == "module" else None
        if head := _HEAD.match(source.content, node.start_byte):
            name, at = head[2].decode("utf-8", "replace"), head.start(2)
        elif name_node := node.child_by_field_name("name"):
            name, at = source.text(name_node), name_node.start_byte
        else:
            return None
        access = visibility(name)
        doc = comment_before(source.content, node.start_byte, _DIRECTIVE)
        if kind == "type":
            return _defined_type(
                node, ItemDescription(name, at, kind, access, node.end_byte, doc=doc), source
            )
        if kind == "type_alias":
            type_ = principal(source.field(node, "type"))
            return ItemDescription(name, at, kind, access, node.end_byte, type_, (), doc)
        type_ = principal(_first_result(source.field(node, "result")))
        bases = _receiver(head[1]) if head and head[1] else ()
        body = start_of(node, "body")
        return ItemDescription(name, at, kind, access, body, type_, bases, doc)

    def imports(
        self, node: "Node", scope: int, line: int, source: SourceText
    ) -> Iterable[SourceImport]:
        module = source.field(node, "path").strip('"`')
        if not module:
            return
        alias = source.field(node, "name") or package_name(module)
        if alias == ".":
            yield SourceImport(scope, "", module, "*", line)
        else:
            yield SourceImport(scope, "" if alias == "_" else alias, module, "", line)

    def new_bindings(
        self, node: "Node", text: bytes, source: SourceText
    ) -> Iterable[tuple[str, str]]:
        written = text.decode("utf-8", "replace")
        match node.type:
            case "short_var_declaration":
                return _short_declaration(node, text, source)
            case "parameter_declaration" | "variadic_parameter_declaration":
                return _declarations(written)
            case "field_declaration":
                return _field(written)
            case "range_clause":
                return _range_variables(node, source)
            case "var_spec" if not node.child_by_field_name("type"):
                names = written.partition("=")[0]
                return _pairs(names, node.child_by_field_name("value"), source)
            case "var_spec":
                return _declarations(written.partition("=")[0])
            case _:
                # The element type of a composite type.
                element = principal(written)
                return [("[]", element)] if element not in ("", "func") else ()

    def expression(self, text: bytes) -> str | None:
        if b"(" in text or b"{" in text:
            return _rebuilt(text)
        flattened = flatten(text)
        if not flattened or flattened in _OWN_CALLS:
            return None
        return flattened.replace("[]", "")

    def types(self, text: bytes) -> Iterator[tuple[int, str]]:
        if text[:1] == b"(":
            # Several results, each captured separately.
            return
        for match in _TYPES.finditer(text):
            name = match.group().decode("utf-8", "replace")
            if name in ("func", "struct", "interface"):
                # What follows is captured separately.
                return
            if name[0] != "[" and name not in _OWN_TYPES and name not in _KEYWORDS:
                yield match.start(), name


def _short_declaration(node: "Node", text: bytes, source: SourceText) -> Iterable[tuple[str, str]]:
    """The bindings of `a, b := …`. Most are simple enough to be read without the tree."""
    call = _CALL_ASSIGNMENT.fullmatch(text)
    if call:
        name, called = call[1].decode(), call[2].decode()
        if name in _HARMLESS:
            return ()
        if called not in _OWN_CALLS:
            return ((name, f"{called}()"),)
    elif (
        text[-1:] == b"}" and (literal := _LITERAL_ASSIGNMENT.match(text)) and literal[2] != b"func"
    ):
        return ((literal[1].decode(), literal[2].decode()),)
    return _pairs(source.field(node, "left"), node.child_by_field_name("right"), source)


def _range_variables(node: "Node", source: SourceText) -> Iterator[tuple[str, str]]:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    # A single name is the index, or an element of a channel.
    if left and right and left.named_child_count == 2:
        among = value(right, source)
        element = left.named_child(1)
        if among and element:
            yield source.text(element), among


def _defined_type(node: "Node", type_: ItemDescription, source: SourceText) -> ItemDescription:
    """A type. Embedded fields of a struct or an interface become its bases."""
    meant = node.child_by_field_name("type")
    if meant is None:
        return type_._replace(kind="type_alias")
    if meant.type == "struct_type":
        fields = meant.named_child(0) if meant.named_child_count else None
        bases = [
            principal(source.text(field))
            for field in (fields.named_children if fields else ())
            if field.type == "field_declaration" and not field.child_by_field_name("name")
        ]
        body = fields.start_byte if fields else node.end_byte
        return type_._replace(kind="struct", body=body, bases=tuple(filter(None, bases)))
    if meant.type == "interface_type":
        bases = [
            principal(source.text(element))
            for element in meant.named_children
            if element.type == "type_elem" and element.named_child_count == 1
        ]
        # Between the keyword and the methods of the interface.
        body = meant.start_byte + len("interface")
        return type_._replace(kind="interface", body=body, bases=tuple(filter(None, bases)))
    # It has its own methods, not those of its underlying type.
    return type_._replace(kind="type_alias")


def _variables(node: "Node", kind: str, source: SourceText) -> list[ItemDescription] | None:
    declared, values = source.field(node, "type"), node.child_by_field_name("value")
    type_ = principal(declared)
    assigned = values.named_children if values and not declared else []
    names = [child for child in node.children_by_field_name("name") if child.is_named]
    body = start_of(node, "value")
    doc = comment_before(source.content, node.start_byte, _DIRECTIVE)
    items = []
    for place, name_node in enumerate(names):
        name = source.text(name_node)
        own = type_
        if not own and place < len(assigned) and (place == 0 or len(assigned) == len(names)):
            own = value(assigned[place], source)
        if name != "_":
            at, access = name_node.start_byte, visibility(name)
            items.append(ItemDescription(name, at, kind, access, body, own, (), doc))
    return items or None


def _pairs(names: str, right: "Node | None", source: SourceText) -> Iterator[tuple[str, str]]:
    """Pair names with values. For a call with several results, the first name gets the declared
    result."""
    if right is None or not right.named_child_count:
        return
    if right.named_child_count == 1:
        first_value = right.named_child(0)
        first = names.partition(",")[0]
        if first_value and first.strip() not in _HARMLESS and (known := value(first_value, source)):
            yield first.strip(), known
        return
    for name, right_value in zip(names.split(","), right.named_children, strict=False):
        if known := value(right_value, source):
            yield name.strip(), known


def _declarations(text: str) -> Iterator[tuple[str, str]]:
    """The bindings of `a, b T`."""
    match = _NAMES.match(text)
    if not match:
        return
    type_ = principal(match.group(2))
    if type_:
        for name in match.group(1).split(","):
            yield name.strip(), type_


def _field(text: str) -> Iterator[tuple[str, str]]:
    match = _EMBEDDED.match(text)
    if match is None:
        yield from _declarations(text)
    elif match[1]:
        yield match[2], match[1] + match[2]
    else:
        # An embedded field, which has the name of its type.
        yield match[2], f"{match[2]}()"


def value(node: "Node", source: SourceText) -> str:
    """The type of an assigned value, if it is known; see `Binding.type`. A slice, a map or a
    channel stands for its elements, because it has no methods."""
    kind = node.type
    if kind == "unary_expression":
        operand = node.child_by_field_name("operand")
        if operand is None:
            return ""
        node, kind = operand, operand.type
    if kind == "call_expression":
        return _callee(node, source)
    if kind in ("composite_literal", "type_assertion_expression", "type_conversion_expression"):
        type_node = node.child_by_field_name("type")
        type_ = principal(source.field(node, "type"))
        # A call of a generic function looks like a conversion.
        is_call = type_node and kind[5] == "c" and type_node.type == "generic_type"
        return f"{type_}()" if is_call and type_ else type_
    if kind in ("identifier", "selector_expression", "index_expression"):
        text = LANGUAGE.expression(source.content[node.start_byte : node.end_byte])
        return f"={text}" if text and text[0] != "?" else ""
    return "func" if kind == "func_literal" else ""


def _callee(node: "Node", source: SourceText) -> str:
    function = node.child_by_field_name("function")
    if function is None:
        return ""
    text = source.content[function.start_byte : function.end_byte]
    if text in (b"new", b"make", b"append"):
        arguments = node.child_by_field_name("arguments")
        first = arguments.named_child(0) if arguments and arguments.named_child_count else None
        if text != b"append":
            return principal(source.text(first)) if first else ""
        return value(first, source) if first and first.type != "call_expression" else ""
    called = LANGUAGE.expression(text)
    if called is None:
        return ""
    return f"{called}()" if called[0] != "?" else ""


def _rebuilt(text: bytes) -> str | None:
    """The callee, if something is constructed, asserted or called on the way: `x.(*T).m` is a
    method of T, and so is `(&T{}).m`."""
    cut = text[-_LONGEST_EXPRESSION:]
    cut = collapsed(_BRACES, b"\5", cut)
    if len(text) <= _LONGEST_EXPRESSION and (made := _MADE.match(cut)):
        # \3 and \4 enclose the type of a value.
        cut = b"\3" + made[made.lastindex or 0] + b"\4" + cut[made.end() :]
    elif bracketed := _BRACKETED.match(cut):
        text = cut = bracketed[1] + cut[bracketed.end() :]
    cut = _ASSERTED.sub(b"\3\\1\4", cut)
    cut = collapsed(_PARENTHESES, b"\1", collapsed(_BRACKETS, b"", cut))
    _, mark, after = cut.replace(b"\1", b"()").rpartition(b"\3")
    if not mark:
        flat = flatten(text)
        return flat.replace("[]", "") if flat else None
    type_, _, rest = after.decode("utf-8", "replace").partition("\4")
    rest = "".join(rest.split())
    if type_ in _OWN_TYPES or not _PATH.fullmatch(rest):
        return None
    return f"{type_}(){rest}" if rest else type_


@functools.lru_cache(20_000)
def principal(text: str) -> str:
    """The principal type of a type: `[]*pkg.T[K]` is `pkg.T`. Empty for built-in and anonymous
    types, `func` for functions: they have no members."""
    match = _TYPE.match(text)
    if not match:
        return ""
    name = match.group(1)
    return "" if name in _NAMELESS else name


def _first_result(text: str) -> str:
    """The type of the first result: `*T` in `(found *T, err error)`."""
    if not text.startswith("("):
        return text
    named = _NAMES.match(text[1:].lstrip())
    return named.group(2) if named else text[1:]


@functools.lru_cache(2_000)
def _receiver(text: bytes) -> tuple[str, ...]:
    inside = text.decode("utf-8", "replace").strip("() \t\n")
    named = _NAMES.match(inside)
    type_ = principal(named.group(2) if named else inside)
    return (type_,) if type_ and type_ != "func" else ()


def visibility(name: str) -> str:
    return "public" if name[:1].isupper() else "crate"


def package_name(path: str) -> str:
    """The likely name of the package at a path; only its files are certain."""
    *before, last = path.split("/")
    if before and _MAJOR_VERSION.fullmatch(last):
        last = before[-1]
    last = _VERSION_SUFFIX.sub("", last).removeprefix("go-").removesuffix("-go").removesuffix(".go")
    return last.rpartition("-")[2]


LANGUAGE = Go()
