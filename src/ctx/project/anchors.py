"""What stands in the graph for a thing in the code: a file, something in one, or what is wrong.

An anchor is there when memory mentions the thing, under an id that follows from its name: two
branches that mention the same file have the same node. In the user store, where those of many
projects meet, the project is a part of what it is called.
"""

import posixpath
from typing import NamedTuple

from ctx import ids
from ctx.ids import NodeId
from ctx.memory import records, replay
from ctx.memory.changes import Change

_SEPARATORS = ("::", "#", ".")
_KINDS = ("file", "item")
_WITHOUT_ENDING = frozenset({"Dockerfile", "Justfile", "LICENSE", "Makefile", "README"})


class Anchor(NamedTuple):
    type: str
    """`file`, `item` or `diagnostic`."""
    name: str
    """The path from the project's root with `/`, the qualified name, or what a tool said."""
    tag: str = ""
    """Of the project, `project:app`, where that has no store of its own."""

    @property
    def id(self) -> NodeId:
        return ids.anchor_id(self.type, f"{self.tag}\0{self.name}" if self.tag else self.name)

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


def put(change: Change, anchor: Anchor) -> bool:
    """Let an anchor be there, as part of a change; whether it was not.

    One that only a document mentions would go with the mention: it is recorded now.
    """
    about = records.about(change.graph.connection, anchor.id, "node.")
    recorded = replay.node(record for record in about if record.stamp < records.BEYOND)
    if recorded and recorded.alive:
        return False
    if recorded:
        change.restore_node(anchor.id)
    change.add_node(anchor.type, anchor.name, metadata=anchor.metadata, node_id=anchor.id)
    if anchor.tag:
        change.tag(anchor.id, anchor.tag)
    return not change.graph.has(anchor.id)


def mentioned(text: str) -> Anchor:
    """What a document means by a word in its list of mentions: a path, else a name.

    Which of the two it is can be said, too: `item:app.run`, `file:run`.
    """
    word = " ".join(text.split())
    kind, colon, name = word.partition(":")
    if colon and kind in _KINDS and name and not name.startswith(":"):
        return Anchor(kind, name)
    path = word.removeprefix("./")
    # Told by its looks: whether the file is there changes with the branch.
    if "/" in path or path in _WITHOUT_ENDING:
        return file(posixpath.normpath(path))
    stem, dot, ending = path.rpartition(".")
    is_file = bool(dot and stem) and ending.isalnum() and len(ending) <= 4 and "::" not in path
    return file(path) if is_file else item(word)


def word_for(anchor: Anchor) -> str:
    """What a document has to say to mean an anchor."""
    looks = mentioned(anchor.name) == anchor
    return anchor.name if looks else f"{anchor.type}:{anchor.name}"


def looks_qualified(text: str) -> bool:
    """Whether a word can be the name of something in code: `core::net::Client`, `pkg.Class`."""
    if not text or any(character.isspace() for character in text):
        return False
    return any(separator in text for separator in _SEPARATORS) or text.isidentifier()
