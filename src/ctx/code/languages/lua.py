"""Lua: functions."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctx.code.languages.definitions import Definitions, children

if TYPE_CHECKING:
    from tree_sitter import Node

_LONG = re.compile(rb"\A--\[=*\[|\]=*\]\Z")
_OWNER = re.compile(r"(.*)[.:]([^.:]+)\Z", re.DOTALL)

_ACCESSES = {b"local": "private"}


class Lua(Definitions):
    name = "lua"
    query_file = "lua.scm"
    accesses = _ACCESSES

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
        return super().doc([_LONG.sub(b"", comment) for comment in comments])

    def name_and_owner(self, text: str) -> tuple[str, tuple[str, ...]]:
        """`M.shape:area` is the `area` of `M.shape`."""
        match = _OWNER.match(text)
        return (match.group(2), (match.group(1),)) if match else (text, ())


def _assignment(node: "Node") -> "Node":
    """The statement after `local`, or the whole node."""
    return next(iter(children(node, "assignment_statement")), node)


LANGUAGE = Lua()
