"""What a node says about the code, and whether it still holds.

A node is anchored to the files and items in its metadata (`files`, `symbols`) and to those that it
mentions. Each anchor has a state:

    unchanged   it is as it was when the node was written
    moved       it has another path now
    changed     it changed after the node was written
    gone        it does not exist any more

A node whose files are all gone is left out of contexts, packs and search results, unless the user
said it or pinned it. `codebase/anchor_check.py` finds the states. A hook cannot load an index; it
only looks whether the files exist.

Hooks load this module: it imports nothing slow.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ctx.memory import sources
from ctx.memory.model import PINNED

UNCHANGED, MOVED, CHANGED, GONE = "unchanged", "moved", "changed", "gone"

_MOST = 20


class AnchorState(NamedTuple):
    """A file or an item that a node is about, and what has become of it."""

    type: str
    """`file` or `item`."""
    name: str
    state: str
    """`unchanged`, `moved`, `changed` or `gone`."""
    where: str | None = None
    """The path of what moved."""


def files_of(metadata: Mapping[str, Any]) -> list[str]:
    """The files in a node's metadata that can be inside of a project."""
    return [path for path in _texts(metadata.get("files")) if is_inside(path)][:_MOST]


def symbols_of(metadata: Mapping[str, Any]) -> list[str]:
    return _texts(metadata.get("symbols"))[:_MOST]


def is_inside(path: str) -> bool:
    return not os.path.isabs(path) and not path.startswith("..") and "\0" not in path


def are_files_gone(root: str, metadata: Mapping[str, Any]) -> bool:
    """Whether a node is about files below a root, and none of them exists."""
    files = files_of(metadata)
    return bool(files) and not any(os.path.lexists(os.path.join(root, path)) for path in files)


def can_be_left_out(source: str, tags: Iterable[str] = ()) -> bool:
    """Whether a node is left out if its code is gone. What the user said is a decision to keep."""
    return source != sources.USER and PINNED not in tags


def is_gone(states: Sequence[AnchorState]) -> bool:
    """Whether nothing is left of the files that a node is about."""
    files = [state.state for state in states if state.type == "file"]
    return bool(files) and all(state == GONE for state in files)


def describe(states: Sequence[AnchorState]) -> str:
    """What has become of the anchors, in a few words; empty if all are unchanged."""
    parts = []
    for state in states:
        if state.state == MOVED:
            parts.append(f"{state.name} moved to {state.where}")
        elif state.state == CHANGED and state.type == "file":
            parts.append(f"{state.name} changed since")
        elif state.state == GONE:
            parts.append(f"{state.name} is gone")
    return "; ".join(parts)


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
