"""Proof that nothing is damaged: every object, ref and head is read and checked.

The answer lists every damage, not only the first. A missing parent is not one: history may
begin at a boundary. Everything else that is named must be there.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from ctx import clock, disk, git
from ctx.errors import CtxError, DeserializationFailed, ObjectNotFound
from ctx.ids import ObjectId, is_object_id
from ctx.objects import codec, lock, references, refs
from ctx.objects.loose import LooseStore
from ctx.objects.model import Commit, Typed
from ctx.objects.repository import Repository
from ctx.objects.store import decode


class Found(NamedTuple):
    """An object file that was read; no value for a blob, and for what is damaged."""

    path: str
    value: Typed | codec.Unknown | None


class Damage(NamedTuple):
    code: str
    where: str
    """The file, or what named the thing that is missing."""
    message: str


class Report(NamedTuple):
    objects: int
    commits: int
    heads: int
    refs: int
    boundaries: tuple[ObjectId, ...]
    """Parents that are not here: a shallow clone, a squash, a cherry-pick."""
    newer: int
    """Objects of a kind that this version does not know. They are kept as they are."""
    leftovers: tuple[str, ...]
    """Temporary files and a lock file of writers that were killed. Harmless."""
    damages: tuple[Damage, ...]


def verify(repository: Repository, tick: clock.Tick = clock.no_tick) -> Report:
    damages: list[Damage] = []
    leftovers: list[str] = []
    # Pointers before objects: whoever writes meanwhile does it the other way round.
    pointers = [*_heads(repository, damages), *_refs(repository, damages)]
    found: dict[ObjectId, Found] = {}
    newer = 0
    files = [
        (store, path, id)
        for store in (repository.objects, repository.staged)
        for path, id in _object_files(store, damages, leftovers)
    ]
    for number, (store, path, id) in enumerate(files):
        tick(number, len(files))
        try:
            value = decode(store.read_file(path))
        except CtxError as error:
            damages.append(Damage(error.code, path, error.message))
            found.setdefault(id, Found(path, None))
        else:
            newer += isinstance(value, codec.Unknown)
            found[id] = Found(path, value)
    boundaries = _follow(pointers, found, damages)
    if os.path.exists(repository.project.lock) and not lock.is_held(repository.project.lock):
        leftovers.append(repository.project.lock)
    return Report(
        objects=len(files),
        commits=sum(isinstance(item.value, Commit) for item in found.values()),
        heads=len(disk.names(repository.heads.folder)),
        refs=sum(1 for _ in repository.refs.names()),
        boundaries=tuple(sorted(boundaries)),
        newer=newer,
        leftovers=tuple(leftovers),
        damages=tuple(damages),
    )


def _follow(
    pointers: list[tuple[str, ObjectId]], found: dict[ObjectId, Found], damages: list[Damage]
) -> set[ObjectId]:
    """Walk from the pointers; what is named and not here is damage, or a boundary.

    What no pointer reaches is on its way to being collected, and may be incomplete.
    """
    boundaries: set[ObjectId] = set()
    seen: set[ObjectId] = set()
    stack = list(pointers)
    while stack:
        path, id = stack.pop()
        if id in seen:
            continue
        seen.add(id)
        if id not in found:
            damages.append(Damage(ObjectNotFound.code, path, f"Object {id} does not exist."))
            continue
        here, value = found[id]
        parents = value.parents if isinstance(value, Commit) else ()
        boundaries.update(parent for parent in parents if parent not in found)
        stack += [(here, parent) for parent in parents if parent in found]
        stack += [(here, needed) for needed in references.needed(value)]
    return boundaries


def _object_files(
    store: LooseStore, damages: list[Damage], leftovers: list[str]
) -> Iterator[tuple[str, ObjectId]]:
    for path in store.everything():
        id = store.id_of_file(path)
        if id is not None:
            yield path, id
        elif store.is_leftover(path):
            leftovers.append(path)
        else:
            message = "A file that is not named after an object lies among the objects."
            damages.append(Damage(DeserializationFailed.code, path, message))


def _heads(repository: Repository, damages: list[Damage]) -> Iterator[tuple[str, ObjectId]]:
    for name in disk.names(repository.heads.folder):
        path = os.path.join(repository.heads.folder, name)
        if not is_object_id(name):
            message = "A head is not named after a commit."
            damages.append(Damage(DeserializationFailed.code, path, message))
            continue
        if os.path.isdir(path) or os.path.getsize(path):
            message = "A head must be an empty file."
            damages.append(Damage(DeserializationFailed.code, path, message))
        yield path, ObjectId(name)


def _refs(repository: Repository, damages: list[Damage]) -> Iterator[tuple[str, ObjectId]]:
    for name in repository.refs.names():
        path = os.path.join(repository.refs.folder, name)
        try:
            id = repository.refs.require(name)
        except CtxError as error:
            damages.append(Damage(error.code, path, error.message))
        else:
            if name != refs.MAIN or not _is_elsewhere(repository, id):
                yield path, id


def _is_elsewhere(repository: Repository, id: ObjectId) -> bool:
    """Whether the commit made here last is on another branch by now."""
    checkout = repository.project.checkout
    if id in repository.objects or checkout is None:
        return False
    file = os.path.join(repository.objects.folder, id[:2], id)
    return git.has_seen(checkout, file)
