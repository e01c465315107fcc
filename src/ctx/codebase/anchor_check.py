"""Checks the code that nodes are about: unchanged, moved, changed since, or gone.

A file that was not written after the node is unchanged. For the others, git shows whether the file
differs from its commit and when it was last committed, and the index shows where a file or an item
has moved. A checkout writes files without changing them, so the time of a file alone does not prove
a change.
"""

import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from ctx import checkouts, clock
from ctx.errors import GitFailure
from ctx.ids import NodeId
from ctx.memory import code_anchors
from ctx.memory.code_anchors import CHANGED, GONE, MOVED, UNCHANGED, AnchorState
from ctx.memory.graph import PROJECT
from ctx.memory.model import ANCHOR_TYPES, Node
from ctx.workspace import Memory

if TYPE_CHECKING:
    # Most nodes have no anchors, and most anchors are unchanged.
    from ctx.code.lookup import Code
    from ctx.codebase.freshness import AvailableCode

_GRACE_S = 3_600
"""Work is often committed after it was observed. A commit within this time is not a change."""
_MOST_MENTIONED = 20
_ORDINARY = frozenset(
    "__init__.py __main__.py conftest.py index.js index.ts index.tsx main.py main.rs mod.rs lib.rs"
    " README.md package.json Makefile setup.py".split()
)
"""Names that many files have, which do not show where a file has moved."""

Mentions = Mapping[NodeId, Sequence[tuple[str, str]]]
"""The types and names of the anchors that nodes mention."""


def check(
    memory: Memory, nodes: Iterable[Node], opened: "AvailableCode | None" = None
) -> dict[NodeId, tuple[AnchorState, ...]]:
    """The states of the anchors of those nodes that belong to this project and have anchors.

    The index is opened if it is needed and not passed as `opened`.
    """
    own = [node for node in nodes if _belongs_to_project(memory, node)]
    named = mentions(memory, own)
    anchored = [node for node in own if _files(node, named) or _items(node, named)]
    if not anchored:
        return {}
    from ctx.codebase import freshness

    if (codebase := freshness.codebase_here(memory)) is None:
        return {}
    written = {node.id: _written_s(memory, node) for node in anchored}
    quick = AnchorCheck(memory.place.folder, codebase.place.root, None)
    states = {node.id: quick.states(node, named, written[node.id]) for node in anchored}
    unclear = [node for node in anchored if _is_unclear(states[node.id])]
    if not unclear:
        return states

    def answer(there: "AvailableCode") -> dict[NodeId, tuple[AnchorState, ...]]:
        whole = AnchorCheck(memory.place.folder, codebase.place.root, there.code)
        return {node.id: whole.states(node, named, written[node.id]) for node in unclear}

    return states | (answer(opened) if opened else freshness.with_code(codebase, "", answer))


def _is_unclear(states: Sequence[AnchorState]) -> bool:
    """Whether the index is needed: because an anchor may have changed, or because only items are
    named."""
    has_file = any(state.type == "file" for state in states)
    return not has_file or any(state.state != UNCHANGED for state in states)


def _written_s(memory: Memory, node: Node) -> float:
    """When a node was written. For an observation, it is the end of the session, because later work
    of the same session follows from it."""
    times = [node.updated_at]
    session = node.metadata.get("session")
    if isinstance(session, str) and session:
        for graph in memory.graph.graphs:
            tagged = graph.nodes(graph.tagged(f"session:{session}"))
            times += [other.updated_at for other in tagged if other.type == "summary"]
    return max(clock.parse_iso(stamp) or 0 for stamp in times) / 1000


def mentions(memory: Memory, nodes: Sequence[Node]) -> dict[NodeId, list[tuple[str, str]]]:
    """The files and items that nodes mention by an edge."""
    ends = {
        node.id: [edge.to_id for edge in memory.graph.edges(node.id, "out", "MENTIONS")]
        for node in nodes
    }
    every = dict.fromkeys(end for mentioned in ends.values() for end in mentioned[:_MOST_MENTIONED])
    known = {
        anchor.id: (anchor.type, anchor.content)
        for anchor in memory.graph.nodes(every)
        if anchor.type in ("file", "item")
    }
    return {
        node_id: [known[end] for end in mentioned if end in known]
        for node_id, mentioned in ends.items()
    }


def _belongs_to_project(memory: Memory, node: Node) -> bool:
    if node.type in ANCHOR_TYPES:
        return False
    return node.scope == PROJECT or (memory.own_tag is not None and memory.own_tag in node.tags)


def _files(node: Node, named: Mentions) -> list[str]:
    mentioned = [name for kind, name in named.get(node.id, ()) if kind == "file"]
    inside = filter(code_anchors.is_inside, mentioned)
    return list(dict.fromkeys([*code_anchors.files_of(node.metadata), *inside]))


def _items(node: Node, named: Mentions) -> list[str]:
    mentioned = [name for kind, name in named.get(node.id, ()) if kind == "item"]
    return list(dict.fromkeys([*code_anchors.symbols_of(node.metadata), *mentioned]))


class AnchorCheck:
    """The working tree and, if there is one, the index of its code."""

    def __init__(self, top: str, root: str, code: "Code | None") -> None:
        # Capture names files from the top of the working tree, the index from the project's root.
        self._roots = tuple(dict.fromkeys((top, root)))
        self._root = root
        self._code = code

    def states(self, node: Node, named: Mentions, written_s: float) -> tuple[AnchorState, ...]:
        items = _items(node, named)
        known = (self._file(path, written_s, items) for path in _files(node, named))
        files = [each for each in known if each]
        return (*files, *(self._item(name, files) for name in items))

    def _file(self, path: str, written_s: float, items: Sequence[str]) -> AnchorState | None:
        """None for a file that was never on this branch: it may be on the one of its session."""
        for root in self._roots:
            with suppress(OSError):
                modified_s = os.stat(os.path.join(root, path)).st_mtime
                is_changed = modified_s > written_s and self._is_changed(root, path, written_s)
                return AnchorState("file", path, CHANGED if is_changed else UNCHANGED)
        where = self._moved_to(path, written_s, items)
        if where is None and not self._is_in_history(path):
            return None
        return AnchorState("file", path, MOVED if where else GONE, where)

    def _is_in_history(self, path: str) -> bool:
        """Whether the history of the current branch has a file; outside git, nobody knows."""
        if self._code is None or checkouts.find_checkout(self._root) is None:
            return True
        from ctx.code.history import commit_queries

        inside = self._project_path(self._roots[0], path)
        return bool(commit_queries.commits_of(self._code.connection, inside, 1))

    def _is_changed(self, root: str, path: str, written_s: float) -> bool:
        """Whether a file that was written after the node also has different content."""
        inside = self._project_path(root, path)
        if inside in self._uncommitted_files or self._code is None:
            return True
        from ctx.code.history import commit_queries

        last = commit_queries.commits_of(self._code.connection, inside, 1)
        return not last or last[0].time > written_s + _GRACE_S

    def _project_path(self, root: str, path: str) -> str:
        """A path from the project's root, as the index has it."""
        return os.path.relpath(os.path.join(root, path), self._root).replace(os.sep, "/")

    @cached_property
    def _uncommitted_files(self) -> frozenset[str]:
        """The files that differ from the current commit, from the project's root."""
        checkout = checkouts.find_checkout(self._root)
        if checkout is None:
            return frozenset()
        from ctx import git

        with suppress(GitFailure):
            if head := git.head_commit(checkout):
                changes = git.differences(checkout, head, self._root)
                full = (os.path.join(checkout.top, change.path) for change in changes)
                return frozenset(os.path.relpath(path, self._root) for path in full)
        return frozenset()

    def _moved_to(self, path: str, written_s: float, items: Sequence[str]) -> str | None:
        """Where a file has moved: according to git, else where its items are, else by its name."""
        if self._code is None:
            return None
        from ctx.code.history import commit_queries

        old = self._project_path(self._roots[0], path)
        since = int(written_s) - _GRACE_S
        renamed = commit_queries.current_name(self._code.connection, old, since)
        if renamed and renamed != old and self._code.file(renamed):
            return renamed
        places = {place for name in items for place in self._places(name)}
        if len(places) == 1:
            return places.pop()
        name = posixpath.basename(path)
        same = [] if name in _ORDINARY else self._code.files_named(name, 2)
        return same[0] if len(same) == 1 else None

    def _places(self, name: str) -> list[str]:
        """The files that define an item with this name."""
        items = self._code.named(name) if self._code else []
        return list(dict.fromkeys(item.path for item in items if item.kind != "module"))

    def _item(self, name: str, files: Sequence[AnchorState]) -> AnchorState:
        if files and all(file.state == UNCHANGED for file in files):
            return AnchorState("item", name, UNCHANGED)
        if self._code is None:
            return AnchorState("item", name, CHANGED if files else UNCHANGED)
        places = self._places(name)
        if not places:
            here = [file.where or file.name for file in files if file.state != GONE]
            read = [self._code.file(path) for path in here]
            # If the file was not parsed, the item may still exist.
            is_known = all(file is not None and file.skipped is None for file in read)
            return AnchorState("item", name, GONE if is_known else CHANGED)
        own = [file for file in files if file.name in places]
        if own or not files:
            return AnchorState("item", name, own[0].state if own else UNCHANGED)
        return AnchorState("item", name, MOVED, places[0])
