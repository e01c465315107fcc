"""What memory knows about files: how often something went wrong in each, and how long ago.

A file is warm if nodes about failures, fixes, corrections and rules mention it or its items. Each
counts less the older it is.
"""

import os
from collections.abc import Iterable
from typing import NamedTuple

from ctx import clock
from ctx.code.lookup import Code
from ctx.codebase.indexing import OpenIndex
from ctx.memory.graphs import AnchorMention
from ctx.operations import debug_graph
from ctx.workspace import Memory

_FAILURES = ("failure", "bugfix", "correction")
_RULES = ("rule",)
_RULE_TYPES = ("pattern",)
_DECISION = "decision"
_HALF_LIFE_DAYS = 60.0
_DAY_MS = 86_400_000
_MOST_ITEMS = 200
"""Items whose file is looked up, those of the newest nodes."""


class Trouble(NamedTuple):
    """What memory knows about a file, or about all files of a folder."""

    failures: int = 0
    """Nodes about failures, fixes and corrections."""
    rules: int = 0
    decisions: int = 0
    others: int = 0
    newest: str = ""
    """When the newest of them was added."""
    heat: float = 0.0
    """Failures and rules, each counted less the older it is."""

    def __add__(self, other: "Trouble") -> "Trouble":  # type: ignore[override]
        counts = (
            self.failures + other.failures,
            self.rules + other.rules,
            self.decisions + other.decisions,
            self.others + other.others,
        )
        return Trouble(*counts, max(self.newest, other.newest), self.heat + other.heat)


NO_TROUBLE = Trouble()


class FileMention(NamedTuple):
    """A node that mentions a file, or an item in it."""

    path: str
    item: str
    """The name of the item; empty for the file itself."""
    mention: AnchorMention


def file_mentions(memory: Memory, opened: OpenIndex | None) -> list[FileMention]:
    """What mentions files of this project and their items, the newest first.

    Items need an index; an item whose name is in several files says nothing about one of them.
    """
    project = memory.project
    foreign = (
        debug_graph.foreign_nodes(memory.graph, f"project:{project}") if project else frozenset()
    )
    inside = os.path.relpath(opened.root, memory.place.folder) if opened else "."
    beginning = "" if inside == "." else f"{inside.replace(os.sep, '/')}/"
    found: list[FileMention] = []
    path_of: dict[str, str] = {}
    for mention in memory.graph.code_mentions():
        if mention.node in foreign or mention.anchor in foreign:
            continue
        if mention.type == "file":
            if mention.name.startswith(beginning):
                found.append(FileMention(mention.name.removeprefix(beginning), "", mention))
        elif opened:
            if mention.name not in path_of and len(path_of) < _MOST_ITEMS:
                path_of[mention.name] = _file_of_item(opened.code, mention.name)
            if path := path_of.get(mention.name):
                found.append(FileMention(path, mention.name, mention))
    return found


def _file_of_item(code: Code, name: str) -> str:
    """The file that defines an item; empty if there is none, or several."""
    paths = {item.path for item in code.named(name) if item.kind != "module"}
    return paths.pop() if len(paths) == 1 else ""


def trouble_by_file(found: Iterable[FileMention]) -> dict[str, Trouble]:
    """For each file what is known about it. A node counts once, whatever it mentions in the
    file."""
    now = clock.now_ms()
    by_file: dict[str, Trouble] = {}
    counted = set()
    for each in found:
        if (each.path, each.mention.node) not in counted:
            counted.add((each.path, each.mention.node))
            known = by_file.get(each.path, NO_TROUBLE)
            by_file[each.path] = known + _trouble(each.mention, now)
    return by_file


def trouble_below(by_file: dict[str, Trouble], folder: str) -> Trouble:
    """The sum for a folder."""
    beginning = f"{folder}/" if folder else ""
    total = NO_TROUBLE
    for path, trouble in by_file.items():
        if path.startswith(beginning):
            total += trouble
    return total


def _trouble(mention: AnchorMention, now_ms: int) -> Trouble:
    at = clock.parse_iso(mention.created_at)
    days = max(0.0, (now_ms - (at if at is not None else now_ms)) / _DAY_MS)
    weight = 0.5 ** (days / _HALF_LIFE_DAYS)
    if mention.kind in _FAILURES:
        return Trouble(failures=1, newest=mention.created_at, heat=weight)
    if mention.kind in _RULES or mention.node_type in _RULE_TYPES:
        return Trouble(rules=1, newest=mention.created_at, heat=weight / 2)
    if mention.kind == _DECISION or mention.node_type == _DECISION:
        return Trouble(decisions=1, newest=mention.created_at)
    return Trouble(others=1, newest=mention.created_at)
