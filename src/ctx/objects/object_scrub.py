"""Replaces objects that contain scrubbed text.

The replacement is made durable first, then the name that leads to it, and then the old file is
removed. A crash leaves one object too many, which the next scrub removes.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from ctx import clock, disk
from ctx.ids import ObjectId
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import Object
from ctx.objects.repository import Repository
from ctx.objects.staged_objects import StagedStore

Rewritten = Callable[[Object], Object | None]
"""The replacement of an object; None if it can stay."""


class Held(NamedTuple):
    """The objects that match, and unreadable files."""

    objects: dict[ObjectId, Object]
    """The replacement of each."""
    files: tuple[str, ...]
    """All files that contain them, including second copies."""
    unreadable: tuple[str, ...]


def find(store: LooseStore, rewritten: Rewritten, tick: clock.Tick = clock.no_tick) -> Held:
    """Find the objects of a store that must be replaced."""
    after_scrub: dict[ObjectId, Object] = {}
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
            after = after_scrub.get(item.id) or rewritten(item)
            if after is not None and after.id != item.id:
                after_scrub[item.id] = after
                if path not in files[-1:]:
                    files.append(path)
    return Held(after_scrub, tuple(files), tuple(unreadable))


def scrub(repository: Repository, store: LooseStore, held: Held) -> None:
    """Replace the objects. The caller holds the project's lock."""
    if not held.objects:
        return
    store.write(held.objects.values())
    repository.replaced.note((old, new.id) for old, new in held.objects.items())
    repository.note_as_own(new.id for new in held.objects.values())
    with disk.explained("removing objects"):
        for path in held.files:
            id = store.id_of_file(path)
            if id is not None and id not in held.objects:
                # It shares a file with others, and gets its own now.
                store.rewrite([store.read_file(path)])
            elif isinstance(store, StagedStore):
                disk.discard(path)
            else:
                disk.replace(path, b"", durable_name=False)
        for folder in sorted({os.path.dirname(path) for path in held.files}):
            disk.sync_folder(folder)
