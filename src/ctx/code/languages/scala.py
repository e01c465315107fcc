"""Scala: definitions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctx.code.languages.definitions import Definitions

if TYPE_CHECKING:
    from tree_sitter import Node

_ACCESSES = {b"protected": "super", b"private": "private"}


class Scala(Definitions):
    name = "scala"
    query_file = "scala.scm"
    bodies = ("body", "value")
    accesses = _ACCESSES

    def names(self, node: "Node") -> Iterable["Node"]:
        name = node.child_by_field_name("name") or node.child_by_field_name("pattern")
        return (name,) if name else ()


LANGUAGE = Scala()
