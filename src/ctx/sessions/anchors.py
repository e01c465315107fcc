"""What stands in the graph for a thing in the code: a file, something in one, or what is wrong.

An anchor is there when memory mentions the thing, under an id that follows from its name: two
branches that mention the same file have the same node.
"""

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from ctx import ids
from ctx.ids import NodeId

if TYPE_CHECKING:
    from ctx.memory.changes import Change

_SEPARATORS = ("::", "#", ".")
_WITHOUT_ENDING = frozenset({"Dockerfile", "Justfile", "LICENSE", "Makefile", "README"})


class Anchor(NamedTuple):
    type: str
    """`file`, `item` or `diagnostic`."""
    name: str
    """The path from the project's root with `/`, the qualified name, or what a tool said."""

    @property
    def id(self) -> NodeId:
        return ids.anchor_id(self.type, self.name)

    @property
    def metadata(self) -> dict[str, str]:
        return {"path": self.name} if self.type == "file" else {"name": self.name}


def file(path: str) -> Anchor:
    return Anchor("file", path)


def item(name: str) -> Anchor:
    return Anchor("item", name)


def diagnostic(name: str) -> Anchor:
    """An error that a tool reported, by a name that does not say in which line."""
    return Anchor("diagnostic", name)


def put(change: "Change", anchor: Anchor) -> bool:
    """Let an anchor be there, as part of a change; whether it was not.

    One that only a document mentions would go with the mention: it is recorded now.
    """
    from ctx.memory import records, replay

    about = records.about(change.graph.connection, anchor.id, "node.")
    recorded = replay.node(record for record in about if record.stamp < records.BEYOND)
    if recorded and recorded.alive:
        return False
    if recorded:
        change.restore_node(anchor.id)
    change.add_node(anchor.type, anchor.name, metadata=anchor.metadata, node_id=anchor.id)
    return not change.graph.has(anchor.id)


def mentioned(text: str) -> Anchor:
    """What a document means by a word in its list of mentions: a path, else a name."""
    word = " ".join(text.split())
    path = word.removeprefix("./")
    # Told by its looks: whether the file is there changes with the branch.
    if "/" in path or path in _WITHOUT_ENDING:
        return file(posixpath.normpath(path))
    stem, dot, ending = path.rpartition(".")
    is_file = bool(dot and stem) and ending.isalnum() and len(ending) <= 4 and "::" not in path
    return file(path) if is_file else item(word)


def looks_qualified(text: str) -> bool:
    """Whether a word can be the name of something in code: `core::net::Client`, `pkg.Class`."""
    if not text or any(character.isspace() for character in text):
        return False
    return any(separator in text for separator in _SEPARATORS) or text.isidentifier()
