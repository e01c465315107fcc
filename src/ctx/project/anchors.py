"""Anchors: nodes that represent a file, an item or a diagnostic of the code.

An anchor exists if memory mentions the thing. Its id is derived from its name, so two branches that
mention the same file have the same node. In the user store, which holds anchors of many projects,
the project is part of the name.
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
    """The path from the project's root with `/`, the qualified name, or a tool's message."""
    tag: str = ""
    """The project's tag, `project:app`, if the project has no store."""

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
    """An error that a tool reported, by a name without a line number."""
    return Anchor("diagnostic", name)


def put(change: Change, anchor: Anchor) -> bool:
    """Create an anchor as part of a change; whether it is new.

    An anchor that only a document mentions is recorded too, so that it outlives the mention.
    """
    about = records.records_about(change.graph.connection, anchor.id, "node.")
    recorded = replay.node(record for record in about if record.stamp < records.BEYOND)
    if recorded and recorded.alive:
        return False
    if recorded:
        change.restore_node(anchor.id)
    change.add_node(anchor.type, anchor.name, metadata=anchor.metadata, node_id=anchor.id)
    if anchor.tag:
        change.tag(anchor.id, anchor.tag)
    return not change.graph.has(anchor.id)


def mentioned_anchor(text: str) -> Anchor:
    """The anchor for a word in a document's list of mentions: a path, else a name.

    A prefix makes it explicit: `item:app.run`, `file:run`.
    """
    word = " ".join(text.split())
    kind, colon, name = word.partition(":")
    if colon and kind in _KINDS and name and not name.startswith(":"):
        return Anchor(kind, name)
    path = word.removeprefix("./")
    # The form of the word decides, because whether the file exists changes with the branch.
    if "/" in path or path in _WITHOUT_ENDING:
        return file(posixpath.normpath(path))
    stem, dot, ending = path.rpartition(".")
    is_file = bool(dot and stem) and ending.isalnum() and len(ending) <= 4 and "::" not in path
    return file(path) if is_file else item(word)


def word_for(anchor: Anchor) -> str:
    """The word that a document uses to mention an anchor."""
    looks = mentioned_anchor(anchor.name) == anchor
    return anchor.name if looks else f"{anchor.type}:{anchor.name}"


def looks_qualified(text: str) -> bool:
    """Whether a word can be a name in code: `core::net::Client`, `pkg.Class`."""
    if not text or any(character.isspace() for character in text):
        return False
    return any(separator in text for separator in _SEPARATORS) or text.isidentifier()
