"""Objects that must not be there any more, and what is to stand in for them.

What comes is durable first, then the names that lead to it, and only then the old files go. A
crash in between leaves an object too many, and doing it again removes that.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from ctx import clock, disk
from ctx.ids import ObjectId
from ctx.objects.loose import LooseStore
from ctx.objects.repository import Repository
from ctx.objects.staged_objects import StagedStore
from ctx.objects.store import Object

Rewritten = Callable[[Object], Object | None]
"""What is to stand in for an object; None where it may stay as it is."""


class Held(NamedTuple):
    """Which objects hold something, and the files that cannot be read."""

    objects: dict[ObjectId, Object]
    """What is to stand in for each."""
    files: tuple[str, ...]
    """All files that they are in, second copies too."""
    unreadable: tuple[str, ...]


def find(store: LooseStore, rewritten: Rewritten, tick: clock.Tick = clock.no_tick) -> Held:
    """The objects of a store that are not what they should be."""
    found: dict[ObjectId, Object] = {}
    files: list[str] = []
    unreadable: list[str] = []
    every = list(store.files())
    for number, path in enumerate(every):
        tick(number, len(every))
        if not os.path.getsize(path):
            continue
        inside = store.inside(path)
        if not inside:
            unreadable.append(path)
        for item in inside:
            after = found.get(item.id) or rewritten(item)
            if after is not None and after.id != item.id:
                found[item.id] = after
                if path not in files[-1:]:
                    files.append(path)
    return Held(found, tuple(files), tuple(unreadable))


def scrub(repository: Repository, store: LooseStore, held: Held) -> None:
    """Let the successors take the places of what is held. The project's lock is held."""
    if not held.objects:
        return
    store.write(held.objects.values())
    repository.replaced.note((old, new.id) for old, new in held.objects.items())
    repository.note_as_own(new.id for new in held.objects.values())
    with disk.explained("removing objects"):
        for path in held.files:
            id = store.id_of_file(path)
            if id is not None and id not in held.objects:
                # It lies in one file with others, and lies alone from now on.
                store.rewrite([store.read_file(path)])
            elif isinstance(store, StagedStore):
                disk.discard(path)
            else:
                disk.replace(path, b"", durable_name=False)
        for folder in sorted({os.path.dirname(path) for path in held.files}):
            disk.sync_folder(folder)
