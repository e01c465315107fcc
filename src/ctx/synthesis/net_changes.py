"""What became of the items of code, from the first edit to the last.

Only what is left at the end counts: an item that was made and deleted again was never there.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctx.capture.steps import Step, SymbolChange
from ctx.synthesis import one_line_text
from ctx.synthesis.timeline import Timeline, last_name


class NetChange(NamedTuple):
    """What became of an item of code, from the first edit to the last."""

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
        """Some languages have their tests beside the code."""
        first = self.name.partition("::")[0]
        return one_line_text.is_test(self.path) or first == "tests" or "::tests::" in self.name


def net_changes(edits: Iterable[Step]) -> tuple[NetChange, ...]:
    """What is left of many changes."""
    found: dict[tuple[str, str], NetChange] = {}
    for step in edits:
        for change in step.changes:
            key = (step.path, change.name)
            before = found.pop(key, None)
            after = _after(before.change if before else "", change)
            if after:
                found[key] = NetChange(step.path, after, change.kind, change.name, change.signature)
    return tuple(found.values())


def net_changes_at(timeline: Timeline, places: Iterable[int]) -> tuple[NetChange, ...]:
    return net_changes(timeline.steps[index] for index in places)


def _after(before: str, change: SymbolChange) -> str:
    match before, change.change:
        case "new", "deleted":
            return ""
        case "new", _:
            return "new"
        case "deleted", "new":
            return "modified"
        case _, now:
            return now


def moved(items: Sequence[NetChange]) -> list[tuple[NetChange, NetChange]]:
    """What was renamed or put elsewhere: one item gone, one that looks the same come."""
    gone: dict[tuple[str, str], NetChange] = {}
    for each in items:
        if each.change == "deleted":
            gone.setdefault(_looks(each), each)
    return [
        (before, each)
        for each in items
        if each.change == "new" and (before := gone.pop(_looks(each), None))
    ]


def _looks(item: NetChange) -> tuple[str, str]:
    """An item without its own name."""
    own = last_name(item.name)
    return item.kind, item.signature.replace(own, "", 1)[:200] if item.signature else own


def reverted_items(timeline: Timeline) -> tuple[NetChange, ...]:
    """What one request brought into the code, and a later one took out again."""
    left = {(each.path, each.name) for each in net_changes_at(timeline, timeline.edits)}
    made: list[NetChange] = []
    for goal in timeline.goals:
        items = net_changes_at(timeline, timeline.edits_between(goal.start - 1, goal.end))
        made += [each for each in items if each.change == "new"]
        # What has another name now is still there.
        left |= {(before.path, before.name) for before, _ in moved(items)}
    return tuple(each for each in made if each.is_public and (each.path, each.name) not in left)
