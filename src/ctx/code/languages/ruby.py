"""Ruby: definitions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctx.code.language import HASH_COMMENT, ItemDescription, SourceText
from ctx.code.languages.definitions import Definitions
from ctx.code.source_model import SourceItem

if TYPE_CHECKING:
    from tree_sitter import Node

_ACCESSES = {b"public": "public", b"protected": "super", b"private": "private"}


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
        current = "public"
        for begin, access in self._sections.get(parent.end, ()):
            if begin > node.start_byte:
                break
            current = access
        return current


def _sections(body: "Node", source: SourceText) -> list[tuple[int, str]]:
    """The positions of a bare `private` and the like, which apply to what follows."""
    accesses = []
    for child in body.named_children:
        if child.type == "identifier":
            word = source.content[child.start_byte : child.end_byte]
            if word in _ACCESSES:
                accesses.append((child.start_byte, _ACCESSES[word]))
    return accesses


LANGUAGE = Ruby()
