"""The replacements of scrubbed objects, as empty files `replaced/<old id>.<new id>`.

An object cannot be changed, because everything refers to it by its hash. So an object with a secret
is removed, the rest of it is written as a new object, and an empty file maps the old id to the new
one. Readers follow this mapping, so no commit, head or batch is rewritten.

The files are tracked by git and never removed. They are empty, so every merge of two branches keeps
all of them. The file of the old object stays as an empty file: without it, git would detect the
replacement as a rename, because it is similar, and two branches that scrub different words could
not be merged.

If two scrubs replaced one object differently, the first replacement by name counts. It may contain
what the other scrub removed; scrubbing again removes that too.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from ctx import disk
from ctx.ids import ObjectId, is_object_id

# Each scrub of an object adds one. Without a limit, every read would follow a chain of any length
# in an untrusted store.
_MOST_STAND_INS = 50


class ReplacedObjects:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._stamp: object = None
        self._successors: Mapping[ObjectId, Sequence[ObjectId]] = {}

    def current(self, id: ObjectId) -> ObjectId:
        """The id to read for an object: itself, or its replacement."""
        return self.standing_in(id)[0]

    def standing_in(self, id: ObjectId) -> list[ObjectId]:
        """The candidates to read for an object, in order; the object itself last."""
        successors = self.successors()
        if id not in successors:
            return [id]
        order: list[ObjectId] = []
        # Files from outside may form a cycle or a very long chain.
        passed = {id}
        waiting = [(id, iter(successors.get(id, ())))]
        while waiting:
            here, after = waiting[-1]
            is_enough = len(passed) >= _MOST_STAND_INS
            following = next(
                (next_id for next_id in after if next_id not in passed and not is_enough),
                None,
            )
            if following is None:
                order.append(here)
                waiting.pop()
            else:
                passed.add(following)
                waiting.append((following, iter(successors.get(following, ()))))
        return order

    def successors(self) -> Mapping[ObjectId, Sequence[ObjectId]]:
        """Every replaced object with its replacements, in order of the names."""
        try:
            status = os.stat(self.folder)
        except OSError:
            return {}
        # A long-running process must notice scrubs of others.
        stamp = status.st_mtime_ns, status.st_ino
        if stamp != self._stamp:
            successors: dict[ObjectId, list[ObjectId]] = {}
            for old, new in filter(None, map(pair_of, self.names())):
                successors.setdefault(old, []).append(new)
            self._successors = successors
            self._stamp = stamp
        return self._successors

    def names(self) -> list[str]:
        return disk.names(self.folder)

    def note(self, pairs: Iterable[tuple[ObjectId, ObjectId]]) -> None:
        """Record replacements. The replacing objects are durable before this call."""
        with disk.explain_errors("noting what was replaced"):
            disk.make_folder(self.folder)
            for old, new in pairs:
                path = os.path.join(self.folder, f"{old}.{new}")
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT, disk.FILE_MODE))
            disk.sync_folder(self.folder)


def pair_of(name: str) -> tuple[ObjectId, ObjectId] | None:
    """The old and new id in a file name; None if it is invalid."""
    old, _, new = name.partition(".")
    is_pair = is_object_id(old) and is_object_id(new) and old != new
    return (ObjectId(old), ObjectId(new)) if is_pair else None
