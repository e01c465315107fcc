"""The net change of each code item, from the first edit to the last.

Only the final state counts: an item that was created and deleted again does not appear.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctx.capture.steps import Step, SymbolChange
from ctx.synthesis import wording
from ctx.synthesis.timeline import Timeline, last_name


class NetChange(NamedTuple):
    """The net change of one code item over several edits."""

    path: str
    change: str
    kind: str
    name: str
    signature: str

    @property
    def is_public(self) -> bool:
        return not last_name(self.name).startswith("_")

    @property
    def is_test(self) -> bool:
        """Whether the item is a test; some languages keep tests beside the code."""
        first = self.name.partition("::")[0]
        return wording.is_test(self.path) or first == "tests" or "::tests::" in self.name


def net_changes(edits: Iterable[Step]) -> tuple[NetChange, ...]:
    """The net changes of a series of edits."""
    found: dict[tuple[str, str], NetChange] = {}
    for step in edits:
        for change in step.changes:
            key = (step.path, change.name)
            before = found.pop(key, None)
            after = _combined_change(before.change if before else "", change)
            if after:
                found[key] = NetChange(step.path, after, change.kind, change.name, change.signature)
    return tuple(found.values())


def net_changes_at(timeline: Timeline, places: Iterable[int]) -> tuple[NetChange, ...]:
    return net_changes(timeline.steps[index] for index in places)


def _combined_change(before: str, change: SymbolChange) -> str:
    match before, change.change:
        case "new", "deleted":
            return ""
        case "new", _:
            return "new"
        case "deleted", "new":
            return "modified"
        case _, now:
            return now


def moved_items(items: Sequence[NetChange]) -> list[tuple[NetChange, NetChange]]:
    """Renamed or moved items: a deleted item and a new one with the same signature."""
    gone: dict[tuple[str, str], NetChange] = {}
    for each in items:
        if each.change == "deleted":
            gone.setdefault(_kind_and_signature(each), each)
    return [
        (before, each)
        for each in items
        if each.change == "new" and (before := gone.pop(_kind_and_signature(each), None))
    ]


def _kind_and_signature(item: NetChange) -> tuple[str, str]:
    """The kind and signature of an item, without its name."""
    own = last_name(item.name)
    return item.kind, item.signature.replace(own, "", 1)[:200] if item.signature else own


def reverted_items(timeline: Timeline) -> tuple[NetChange, ...]:
    """Items that one goal added and a later goal removed."""
    left = {(each.path, each.name) for each in net_changes_at(timeline, timeline.edits)}
    made: list[NetChange] = []
    for goal in timeline.goals:
        items = net_changes_at(timeline, timeline.edits_between(goal.start - 1, goal.end))
        made += [each for each in items if each.change == "new"]
        # A renamed item still exists.
        left |= {(before.path, before.name) for before, _ in moved_items(items)}
    return tuple(each for each in made if each.is_public and (each.path, each.name) not in left)
