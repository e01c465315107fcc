"""Imports and exports of JavaScript and TypeScript, for ES modules and CommonJS.

An export under another name, or without a name, is an import from the file itself: its module is
empty, and `default` is the name of an export without one.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ctx.code.language import SourceText
from ctx.code.languages.ecmascript_values import last_assigned
from ctx.code.source_model import SourceImport

if TYPE_CHECKING:
    from tree_sitter import Node


HERE = ""
DEFAULT = "default"

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_BRACES = re.compile(r"\{([^}]*)\}")
_NAMESPACE = re.compile(r"\*\s*as\s+([\w$]+)")
_FIRST = re.compile(r"import\s+(?:type\s+(?!from\b|,))?([\w$]+)\s*(?:,|from\b)")
_EXPORTED_VALUE = re.compile(r"export\s*=\s*([\w$.]+)")
_ALIAS = re.compile(r"import\s+(?:type\s+)?([\w$]+)\s*=\s*([\w$.\s]+)")
_HOLDER = re.compile(r"(?<![\w$.])([\w$]+)\s*(?::[^=;\n]*)?\Z")
_TAKEN = re.compile(r"\)*\s*\.\s*([\w$]+)")
_EXPORTS = re.compile(r"(?:module\.)?exports(?:\.([\w$]+))?\Z")
_FAR = 600
_EXPORTED = re.compile(
    rb"export(?:\s*(?:type\s*)?\{([^{}]*)|s\s*=\s*\{([^{}]*)"
    rb"|(?:\s+default|\s*=|s\s*=|s\.[\w$]+\s*=)\s*([\w$]+))"
)
_DECLARED = re.compile(rb"(?:const|let|var|function|class)\s+([\w$]+)")
_IMPORTED = re.compile(rb"import\s[^;\"']*")
_NAME = re.compile(rb"[\w$\x80-\xff]+")


def read(node: "Node", scope: int, line: int, source: SourceText) -> Iterator[SourceImport]:
    """The imports and re-exports of a node. Exports belong to the whole file."""
    match node.type:
        case "call_expression":
            return _call(node, scope, line, source)
        case "import_statement":
            return _import(node, scope, line, source)
        case "export_statement":
            return _export(node, line, source)
        case "import_alias":
            return _alias(node, scope, line, source)
    return _assignment(node, line, source)


def _import(node: "Node", scope: int, line: int, source: SourceText) -> Iterator[SourceImport]:
    from_node = node.child_by_field_name("source")
    if from_node is None:
        clause = node.named_child(0) if node.named_child_count else None
        wanted = clause.child_by_field_name("source") if clause else None
        held = clause.named_child(0) if clause and clause.named_child_count else None
        if wanted and held:
            yield SourceImport(scope, source.text(held), _text(wanted, source), "", line)
        return
    module = _text(from_node, source)
    head = _head(node, from_node, source)
    if match := _FIRST.match(head):
        yield SourceImport(scope, match.group(1), module, DEFAULT, line)
    if match := _NAMESPACE.search(head):
        yield SourceImport(scope, match.group(1), module, "*", line)
    listed = _BRACES.search(head)
    if listed:
        for name, alias in _names_in_braces(listed.group(1)):
            yield SourceImport(scope, alias, module, name, line)
    elif "from" not in head:
        yield SourceImport(scope, "", module, "", line)


def _export(node: "Node", line: int, source: SourceText) -> Iterator[SourceImport]:
    from_node = node.child_by_field_name("source")
    if from_node is None:
        yield from _own_export(node, line, source)
        return
    module = _text(from_node, source)
    head = _head(node, from_node, source)
    if listed := _BRACES.search(head):
        for name, alias in _names_in_braces(listed.group(1)):
            yield SourceImport(0, alias, module, name, line, shared=True)
    elif match := _NAMESPACE.search(head):
        yield SourceImport(0, match.group(1), module, "*", line, shared=True)
    else:
        yield SourceImport(0, "", module, "*", line, shared=True)


def _own_export(node: "Node", line: int, source: SourceText) -> Iterator[SourceImport]:
    start = node.start_byte
    declaration = node.child_by_field_name("declaration") or node.child_by_field_name("value")
    if declaration is not None:
        # Decorators before it do not matter.
        name = declaration.child_by_field_name("name")
        if declaration.type == "identifier":
            yield SourceImport(0, DEFAULT, HERE, source.text(declaration), line, shared=True)
        elif name is not None and declaration.type != "call_expression":
            yield SourceImport(0, DEFAULT, HERE, source.text(name), line, shared=True)
        return
    text = _COMMENT.sub(" ", source.content[start : node.end_byte].decode("utf-8", "replace"))
    if value := _EXPORTED_VALUE.match(text):
        yield SourceImport(0, DEFAULT, HERE, value.group(1), line, shared=True)
    elif listed := _BRACES.search(text):
        for name_here, alias in _names_in_braces(listed.group(1)):
            yield SourceImport(0, alias, HERE, name_here, line, shared=True)


def _alias(node: "Node", scope: int, line: int, source: SourceText) -> Iterator[SourceImport]:
    """`import Short = Long.Name`."""
    if match := _ALIAS.match(source.text(node)):
        yield SourceImport(scope, match.group(1), HERE, "".join(match.group(2).split()), line)


def _call(node: "Node", scope: int, line: int, source: SourceText) -> Iterator[SourceImport]:
    content, start = source.content, node.start_byte
    is_import = content.startswith(b"import", start)
    if not is_import and not content.startswith(b"require", start):
        return
    module = _asked_for(node, source)
    if not module:
        return
    after = content[node.end_byte : node.end_byte + 80].decode("utf-8", "replace")
    taken = _TAKEN.match(after)
    held = _holder(content[max(0, start - _FAR) : start].decode("utf-8", "replace"))
    if after.lstrip()[:1] == "(":
        # The result is called at once, so what it holds is unknown.
        held = ""
    if taken and (not is_import or after[:1] == ")"):
        yield SourceImport(scope, "" if held[:1] == "{" else held, module, taken.group(1), line)
    elif held[:1] != "{":
        item = "*" if is_import and held else ""
        yield SourceImport(scope, held, module, item, line)
    else:
        for name, alias in _names_in_braces(held[1:].replace(":", " as ")):
            yield SourceImport(scope, alias, module, name, line)


def _holder(before: str) -> str:
    """What the following value is assigned to: a name, or `{` and the names of a destructuring
    pattern."""
    before = before.rstrip()
    if before.endswith("await"):
        before = before[:-5].rstrip().removesuffix("(").rstrip()
    if not before.endswith("="):
        return ""
    before = before[:-1].rstrip()
    if before.endswith("}"):
        return before[before.rfind("{") : -1]
    match = _HOLDER.search(before[before.rfind("\n") + 1 :])
    return match.group(1) if match else ""


def _asked_for(node: "Node", source: SourceText) -> str:
    """The module of `require("…")` and `import("…")`, if it is a literal."""
    called, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if called is None or arguments is None or not arguments.named_child_count:
        return ""
    if source.content[called.start_byte : called.end_byte] not in (b"require", b"import"):
        return ""
    first = arguments.named_child(0)
    return _text(first, source) if first and first.type == "string" else ""


def _assignment(node: "Node", line: int, source: SourceText) -> Iterator[SourceImport]:
    """The exports by assignment to `exports`."""
    if node.type == "variable_declarator":
        # `const app = module.exports = {}`
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        for _ in range(4):
            if name is None or value is None or value.type != "assignment_expression":
                return
            left, value = value.child_by_field_name("left"), value.child_by_field_name("right")
            if left and source.text(left) == "module.exports":
                yield SourceImport(0, DEFAULT, HERE, source.text(name), line, shared=True)
        return
    left, right = node.child_by_field_name("left"), last_assigned(node)
    exported = _EXPORTS.match(source.text(left)) if left else None
    if exported is None or right is None:
        return
    bound = exported.group(1) or DEFAULT
    own = right.child_by_field_name("name")
    if right.type == "identifier":
        yield SourceImport(0, bound, HERE, source.text(right), line, shared=True)
    elif right.type == "call_expression" and (module := _asked_for(right, source)):
        star = "" if exported.group(1) else "*"
        yield SourceImport(0, bound if not star else "", module, star, line, shared=True)
    elif own is not None and bound == DEFAULT and right.type != "call_expression":
        yield SourceImport(0, DEFAULT, HERE, source.text(own), line, shared=True)
    elif right.type == "object" and bound == DEFAULT:
        yield from _members(right, line, source)


def _members(node: "Node", line: int, source: SourceText) -> Iterator[SourceImport]:
    for part in node.named_children:
        if part.type == "shorthand_property_identifier":
            name = source.text(part)
            yield SourceImport(0, name, HERE, name, line, shared=True)
        elif part.type == "pair":
            key, value = part.child_by_field_name("key"), part.child_by_field_name("value")
            if key is None or value is None:
                continue
            name = source.text(key).strip("\"'`")
            if value.type == "identifier":
                yield SourceImport(0, name, HERE, source.text(value), line, shared=True)
            elif value.type == "call_expression" and (module := _asked_for(value, source)):
                yield SourceImport(0, name, module, "", line, shared=True)
        elif part.type == "spread_element" and part.named_child_count:
            value = part.named_child(0)
            if value and value.type == "call_expression" and (module := _asked_for(value, source)):
                yield SourceImport(0, "", module, "*", line, shared=True)


def _head(node: "Node", from_node: "Node", source: SourceText) -> str:
    head = source.content[node.start_byte : from_node.start_byte].decode("utf-8", "replace")
    return _COMMENT.sub(" ", head) if "/" in head else head


def _names_in_braces(text: str) -> Iterator[tuple[str, str]]:
    """The names in braces, each with its alias."""
    for part in text.split(","):
        words = part.partition("=")[0].split()
        # `type a`, `type a as b`; but `type` and `type as b` refer to something named type.
        if len(words) in (2, 4) and words[0] in ("type", "typeof"):
            words = words[1:]
        if words and words[-1] != "as" and not words[0].startswith("..."):
            yield words[0].strip("\"'"), words[-1].strip("\"'")


def _text(node: "Node", source: SourceText) -> str:
    return source.text(node)[1:-1]


class FileNames:
    """The names of the last file."""

    def __init__(self) -> None:
        self._shared: tuple[bytes, frozenset[bytes] | None] = (b"", None)
        self._declared: tuple[bytes, Counter[bytes]] = (b"", Counter())

    def is_shared(self, content: bytes, name: str) -> bool:
        """Whether a file exports a name apart from its definition. In a script without imports and
        exports, all names are global."""
        if self._shared[0] is not content:
            self._shared = (content, _exported_names(content))
        shared = self._shared[1]
        return shared is None or name.encode() in shared

    def has_several(self, content: bytes, name: str) -> bool:
        """Whether a name is imported, or declared more than once, anywhere in a file."""
        if self._declared[0] is not content:
            names = _DECLARED.findall(content)
            for listed in _IMPORTED.findall(content):
                names += 2 * _NAME.findall(listed)
            self._declared = (content, Counter(names))
        return self._declared[1][name.encode()] > 1


def _exported_names(content: bytes) -> frozenset[bytes] | None:
    is_module = b"export" in content or b"\nimport" in content or content.startswith(b"import")
    if not is_module:
        return None
    names: set[bytes] = set()
    for found in _EXPORTED.finditer(content):
        names.update(_NAME.findall(b" ".join(part or b"" for part in found.groups())))
    return frozenset(names)
