"""Types, values and patterns of JavaScript and TypeScript, by their text."""

import functools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ctx.code.language import SourceText, flatten

if TYPE_CHECKING:
    from tree_sitter import Node

_GENERIC = re.compile(rb"<[^<>(){};]*>|<[^<>]*>(?=\s*[({,]|\s*\Z|\s+(?:extends|implements))")
_WRAPPED = re.compile(
    r"(?:Promise|PromiseLike|Awaited|Readonly|Partial|Required|NonNullable|Omit|Pick|Exclude|Extract)"
    r"<(.*)>\Z",
    re.DOTALL,
)
_TYPE_NAME = re.compile(r"[^\W\d][\w$]*(?:\s*\.\s*[\w$]+)*|\$[\w$.]*")
_PREDICATE = re.compile(r"(?:asserts\s+)?[\w$]+\s+is\s|asserts\s")
_IMPORTS = ("require(", "import(", "import.meta", "undefined")
_NOTHING = frozenset({"null", "undefined", "void", "never"})
_LITERAL = re.compile(r"[\d\"'`]|(?:true|false)\b")
_TYPED = re.compile(
    rb"((?:(?:public|private|protected|readonly|override|static|declare|abstract)\s+)*)"
    rb"([\w$]+)[?!]?\s*:\s*([\w$.<>,\s\[\]|]++)(?:(=)(?!>)|\Z)"
)
_MADE = re.compile(
    rb"([\w$]+)\s*=\s*(?:await\s+)?(new\s+)?([\w$]+(?>(?:\.[\w$]+)*))(\((?:[^()]*\)\Z)?)?"
)
_HERITAGE = re.compile(rb"\b(?:extends|implements)\b([^{]*?)(?=\bimplements\b|\Z)", re.DOTALL)
_CHAIN = re.compile(rb"[\w$.?!]+(?:\(|\Z)")
_PRIVATE = "PRIVATE_NAME_"
_FUNCTION = re.compile(rb"\s*(?:async\b\s*)?(?:function\b|<|\(|[\w$]+\s*=>)")
_AROUND = frozenset(
    {
        *("parenthesized_expression", "await_expression", "non_null_expression"),
        *("satisfies_expression", "as_expression", "type_assertion"),
    }
)
_LONGEST = 400
_LONGEST_CHAIN = 2000
_MOST_PATTERNS = 20

FUNCTIONS = frozenset({"function_expression", "arrow_function", "generator_function"})

WRAPPERS = frozenset(
    {
        *(b"useCallback", b"useEffectEvent", b"useEvent", b"memo", b"forwardRef", b"observer"),
        *(b"debounce", b"throttle", b"defineComponent", b"lazy"),
    }
)
"""A function passed to one of these is still that function."""


def without_generics(text: bytes) -> bytes:
    """An expression or class head without type arguments."""
    text = text.replace(b"=>", b"")
    for _ in range(8):
        shorter = _GENERIC.sub(b"", text)
        if shorter == text:
            break
        text = shorter
    return text


@functools.lru_cache(maxsize=20_000)
def principal(annotation: str) -> str:
    """The principal type of an annotation: `Promise<a.B<c> | null>` is `a.B`."""
    text = annotation[:_LONGEST].strip().removeprefix(":").strip()
    for _ in range(6):
        text = text.removeprefix("readonly ").strip()
        if text.startswith("(") and text.endswith(")") and "=>" not in text:
            text = text[1:-1].strip()
        parts = [part for part in _parts(text, "|") if part not in _NOTHING]
        if len(parts) != 1:
            return ""
        text = parts[0]
        wrapped = _WRAPPED.match(text)
        if wrapped is None:
            break
        text = _parts(wrapped.group(1), ",")[0]
    if text.startswith("typeof "):
        name = _TYPE_NAME.match(text, 7)
        return f"={''.join(name.group().split())}" if name else ""
    if text.endswith("]"):
        # An array belongs to the language; an indexed type may be anything.
        return "Array" if text.endswith("[]") or text.startswith("[") else ""
    if _PREDICATE.match(text) or _LITERAL.match(text):
        return ""
    if text.startswith(("(", "new ", "<")):
        return "Function" if "=>" in text else ""
    match = _TYPE_NAME.match(text)
    if match is None:
        return ""
    rest = text[match.end() :].lstrip()
    # `A & B` has all members of `A`.
    return "".join(match.group().split()) if not rest or rest[0] in "<&" else ""


def _parts(text: str, separator: str) -> list[str]:
    """The parts of a union, or the arguments of a type; at least one."""
    if separator not in text:
        return [text.strip()]
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(text):
        if character in "<([{":
            depth += 1
        elif character in ">)]}" and text[place - 1 : place] != "=":
            depth -= 1
        elif character == separator and not depth:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [part for part in (*parts, text[begin:].strip()) if part] or [""]


def bare(node: "Node | None") -> "Node | None":
    """A value without casts and `await`."""
    for _ in range(6):
        if node is None or node.type not in _AROUND or not node.named_child_count:
            return node
        node = node.named_child(node.named_child_count - 1 if node.type == "type_assertion" else 0)
    return node


def wrapped(value: "Node", source: SourceText) -> "Node":
    """The function that is passed to a wrapper which returns it in another form."""
    if value.type != "call_expression":
        return value
    called, arguments = (
        value.child_by_field_name("function"),
        value.child_by_field_name("arguments"),
    )
    if called is None or arguments is None or not arguments.named_child_count:
        return value
    first = arguments.named_child(0)
    if first is None or first.type not in FUNCTIONS:
        return value
    name = source.content[called.start_byte : called.end_byte].rpartition(b".")[2]
    return first if name in WRAPPERS else value


def last_assigned(node: "Node") -> "Node | None":
    """The final value of a variable or an assignment: `c` for `a = b = c`."""
    value = bare(node.child_by_field_name("value") or node.child_by_field_name("right"))
    for _ in range(4):
        if value is None or value.type != "assignment_expression":
            break
        value = bare(value.child_by_field_name("right"))
    return value


def value_of(node: "Node", source: SourceText) -> str:
    """The type of a value for a binding, if it is known."""
    for _ in range(6):
        if node.type not in _AROUND or not node.named_child_count:
            break
        place = 0
        if node.type == "as_expression" and node.named_child_count > 1:
            declared = principal(source.text(node.named_children[1]))
            if declared:
                return declared
        elif node.type == "type_assertion":
            place = node.named_child_count - 1
        inner = node.named_child(place)
        if inner is None:
            return ""
        node = inner
    kind = node.type
    if kind in ("call_expression", "new_expression"):
        called = node.child_by_field_name("function" if kind[0] == "c" else "constructor")
        name = _flat_node(called, source) if called else ""
        return f"{name}()" if name and not f"{name}(".startswith(_IMPORTS) else ""
    if kind in ("identifier", "member_expression", "this"):
        name = _flat_node(node, source)
        return f"={name}" if name and not name.startswith(_IMPORTS) else ""
    return ""


def _flat_node(node: "Node", source: SourceText) -> str:
    text = flat(source.content[node.start_byte : node.end_byte])
    return text if text and text[0] != "?" else ""


def flat(text: bytes) -> str | None:
    """An expression without arguments: see `source_model`. A private name keeps its mark."""
    if text[-1:] == b"!":
        text = text[:-1]
    if text[:1] == b"(":
        text = _unwrap_parentheses(text)
    if len(text) > _LONGEST_CHAIN:
        return flatten(text)
    if b"<" in text:
        text = without_generics(text)
    if b"#" not in text:
        return flatten(text)
    flattened = flatten(text.replace(b"#", _PRIVATE.encode()))
    return flattened and flattened.replace(_PRIVATE, "#")


def _unwrap_parentheses(text: bytes) -> bytes:
    """`(await a()).b` becomes `a().b`, and `(a as B).c` becomes the `c` of `B`."""
    close = _closing_bracket(text)
    if close < 0:
        return text
    inside, rest = text[1:close].strip(), text[close + 1 :]
    _, is_as, type_ = inside.rpartition(b" as ")
    if is_as:
        inside = principal(type_.decode("utf-8", "replace")).encode().removeprefix(b"=")
    inside = inside.removeprefix(b"await ").strip()
    return inside + rest if _CHAIN.match(inside) else text


def _closing_bracket(text: bytes) -> int:
    """The position of the matching bracket; -1 if it is far away."""
    depth = 0
    for place, byte in enumerate(text[:_LONGEST]):
        depth += (byte in b"(") - (byte in b")")
        if not depth:
            return place
    return -1


def bound_names(node: "Node", source: SourceText) -> Iterable[tuple[str, str]]:
    """The names that a captured node binds, and what they hold."""
    content, start, end = source.content, node.start_byte, node.end_byte
    # Most are simple, and matching the text is faster than the tree.
    if node.type == "pair":
        return _bound_by_tree(node, source)
    if match := _TYPED.match(content, start, end):
        modifier, name, type_, is_given = match.groups()
        held = principal(type_.decode("utf-8", "replace"))
        if not held or (is_given and _FUNCTION.match(content, match.end(), end)):
            # A function is an item, and needs no binding.
            return ()
        called = name.decode("utf-8", "replace")
        if modifier and node.type.endswith("_parameter"):
            # `constructor(private client: Client)` declares a field.
            return (called, held), (f"this.{called}", held)
        return ((called, held),)
    if match := _MADE.match(content, start, end):
        name, new, value, is_called = match.groups()
        after = match.end()
        if is_called and value.rpartition(b".")[2] in WRAPPERS:
            return ()
        if is_called and after != end:
            # The call may be the first of a chain: the last one counts.
            made = node.child_by_field_name("value")
            what = made and made.child_by_field_name("constructor" if new else "function")
            after = end if what and what.end_byte == match.end(3) else -1
        if after == end and value != b"require":
            held = value.decode("utf-8", "replace")
            held = f"{held}()" if new or is_called else f"={held}"
            return ((name.decode("utf-8", "replace"), held),)
    return _bound_by_tree(node, source)


def _bound_by_tree(node: "Node", source: SourceText) -> Iterator[tuple[str, str]]:
    match node.type:
        case "variable_declarator":
            name = node.child_by_field_name("name")
            yield from _declared_bindings(node, name, source)
        case "required_parameter" | "optional_parameter":
            name = node.child_by_field_name("pattern")
            for bound, type_ in _declared_bindings(node, name, source):
                yield bound, type_
                if (
                    name is not None
                    and name.start_byte != node.start_byte
                    and name.type == "identifier"
                ):
                    # `constructor(private client: Client)` declares a field.
                    yield f"this.{bound}", type_
        case "public_field_definition" | "field_definition" | "property_signature":
            name = node.child_by_field_name("name") or node.child_by_field_name("property")
            yield from _declared_bindings(node, name, source)
        case "assignment_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left and right:
                yield source.text(left), value_of(right, source)
        case "type_parameter":
            name, constraint = (
                node.child_by_field_name("name"),
                node.child_by_field_name("constraint"),
            )
            if name and constraint:
                yield source.text(name), principal(source.text(constraint).removeprefix("extends"))
        case "shorthand_property_identifier":
            name_here = source.text(node)
            yield name_here, f"={name_here}"
        case "pair":
            key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
            if key and value:
                yield source.text(key).strip("\"'`"), value_of(value, source)
        case "assignment_pattern":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left and right and left.type == "identifier":
                yield source.text(left), value_of(right, source)


def _declared_bindings(
    node: "Node", name: "Node | None", source: SourceText
) -> Iterator[tuple[str, str]]:
    if name is None:
        return
    declared = node.child_by_field_name("type")
    if declared is not None:
        type_ = principal(source.text(declared))
    else:
        value = node.child_by_field_name("value")
        type_ = value_of(value, source) if value else ""
    if not type_ or (type_ == "Function" and node.type == "property_signature"):
        return
    if name.type == "object_pattern":
        taken = type_.removeprefix("=")
        for key, bound in _taken_apart(name, source):
            yield bound, f"={taken}.{key}"
    elif name.type != "array_pattern":
        yield source.text(name), type_


def _taken_apart(pattern: "Node", source: SourceText) -> Iterator[tuple[str, str]]:
    """The names in `{ a, b: c, d: { e } }`, each with its local name."""
    waiting = [("", pattern)]
    while waiting:
        before, around = waiting.pop()
        for part in around.named_children:
            key: Node | None = part
            value: Node | None = part
            if part.type == "pair_pattern":
                key, value = part.child_by_field_name("key"), part.child_by_field_name("value")
                if value and value.type == "assignment_pattern":
                    value = value.child_by_field_name("left")
            elif part.type == "object_assignment_pattern":
                key = value = part.child_by_field_name("left")
            if key is None or value is None:
                continue
            if value.type in ("identifier", "shorthand_property_identifier_pattern"):
                yield before + source.text(key), source.text(value)
            elif value.type == "object_pattern" and len(waiting) < _MOST_PATTERNS:
                waiting.append((f"{before}{source.text(key)}.", value))


def bases_of(head: bytes) -> tuple[str, ...]:
    """What a class or interface extends and implements."""
    if b"s" not in head:
        return ()
    head = without_generics(head)
    bases: list[str] = []
    for clause in _HERITAGE.finditer(head):
        for part in _outside_brackets(clause.group(1)):
            base = flatten(part.strip())
            if base and base[0] != "?":
                bases.append(base)
    return tuple(dict.fromkeys(bases))


def _outside_brackets(text: bytes) -> list[bytes]:
    """Split at commas outside of brackets."""
    if b"(" not in text:
        return text.split(b",")
    parts, depth, begin = [], 0, 0
    for place, byte in enumerate(text):
        if byte in b"(":
            depth += 1
        elif byte in b")":
            depth -= 1
        elif byte in b"," and not depth:
            parts.append(text[begin:place])
            begin = place + 1
    return [*parts, text[begin:]]
