"""A complete check: every object, ref and head is read and verified.

The report lists all damage, not only the first. A missing parent is not damage: history may begin
at a boundary. Everything else that is referred to must exist.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ctx import clock, locks
from ctx.errors import CtxError, DeserializationFailed, ObjectNotFound, StoreTooLarge
from ctx.ids import ObjectId
from ctx.objects import codec, references, refs
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import decode
from ctx.objects.object_types import Commit, Tree, Typed
from ctx.objects.replaced_objects import pair_of
from ctx.objects.repository import Repository


class ReadObject(NamedTuple):
    """An object file that was read, and what it refers to, packed: its content is not kept."""

    path: str
    kind: type[Typed | codec.UnknownObject] | None = None
    """None for a blob and for damaged files."""
    parents: bytes = b""
    needed: bytes = b""


class Damage(NamedTuple):
    code: str
    where: str
    """The file, or the object that refers to the missing one."""
    message: str


class Report(NamedTuple):
    objects: int
    commits: int
    heads: int
    refs: int
    boundaries: tuple[ObjectId, ...]
    """Missing parents, and content behind them: after a squash or a cherry-pick."""
    newer: int
    """Objects of a kind that this version does not know. They are kept unchanged."""
    leftovers: tuple[str, ...]
    """Files that do no harm: those of killed writers, and files among the heads that are not heads.
    """
    damages: tuple[Damage, ...]


def verify(repository: Repository, tick: clock.Tick = clock.no_tick) -> Report:
    damages: list[Damage] = []
    leftovers: list[str] = []
    # Pointers before objects: writers work in the opposite order.
    heads = [*_heads(repository, damages)]
    leftovers += [os.path.join(repository.heads.folder, name) for name in repository.heads.stray()]
    chains = [*_refs(repository, damages)]
    newer = 0
    files = [
        (store, path, id)
        for store in (repository.objects, repository.staged)
        for path, id in _object_files(store, damages, leftovers)
    ]
    committed: dict[ObjectId, ReadObject] = {}
    staged: dict[ObjectId, ReadObject] = {}
    for number, (store, path, id) in enumerate(files):
        tick(number, len(files))
        objects = committed if store is repository.objects else staged
        try:
            value = decode(store.skimming().read_file(path))
        except StoreTooLarge:
            raise
        except CtxError as error:
            damages.append(Damage(error.code, path, error.message))
            objects.setdefault(id, ReadObject(path))
        else:
            newer += isinstance(value, codec.UnknownObject)
            objects[id] = _read_object(path, value)
    commits = sum(item.kind is Commit for item in committed.values())
    damages += _damaged_replacements(repository)
    for old in repository.replaced.successors():
        stand_ins = repository.replaced.standing_in(old)
        for objects in (committed, staged):
            if there := next(
                (objects[stand_in] for stand_in in stand_ins if stand_in in objects), None
            ):
                objects[old] = there
    # Committed data must be complete without staging, which is not shared through git.
    boundaries = _follow(heads, committed, damages)
    boundaries |= _follow(chains, {**staged, **committed}, damages)
    if os.path.exists(repository.project.lock) and not locks.is_held(repository.project.lock):
        leftovers.append(repository.project.lock)
    return Report(
        objects=len(files),
        commits=commits,
        heads=len(heads),
        refs=sum(1 for _ in repository.refs.names()),
        boundaries=tuple(sorted(boundaries)),
        newer=newer,
        leftovers=tuple(leftovers),
        damages=tuple(damages),
    )


def _read_object(path: str, value: Typed | codec.UnknownObject | None) -> ReadObject:
    parents = value.parents if isinstance(value, Commit) else ()
    kind = None if value is None else type(value)
    return ReadObject(path, kind, _packed(parents), _packed(references.required_ids(value)))


def _packed(ids: Iterable[ObjectId]) -> bytes:
    return bytes.fromhex("".join(ids))


def _unpacked(ids: bytes) -> Iterator[ObjectId]:
    return (ObjectId(ids[start : start + 32].hex()) for start in range(0, len(ids), 32))


def _follow(
    pointers: list[tuple[str, ObjectId]], objects: dict[ObjectId, ReadObject], damages: list[Damage]
) -> set[ObjectId]:
    """Walk from the pointers: a missing object is damage, or beyond a boundary.

    Unreachable objects await collection and may be incomplete. If a parent is missing (after a
    cherry-pick, a squash or a revert), files that a commit took over from it may be missing too.
    """
    boundaries: set[ObjectId] = set()
    missing: list[tuple[Damage, ObjectId, bool]] = []
    visited: set[ObjectId] = set()
    stack = [(path, id, False) for path, id in pointers]
    while stack:
        path, id, is_content = stack.pop()
        if id in visited:
            continue
        visited.add(id)
        if id not in objects:
            damage = Damage(ObjectNotFound.code, path, f"Object {id} does not exist.")
            missing.append((damage, id, is_content))
            continue
        here = objects[id]
        for parent in _unpacked(here.parents):
            if parent in objects:
                stack.append((here.path, parent, False))
            else:
                boundaries.add(parent)
        stack += [(here.path, needed, here.kind is Tree) for needed in _unpacked(here.needed)]
    for damage, id, is_content in missing:
        if is_content and boundaries:
            boundaries.add(id)
        else:
            damages.append(damage)
    return boundaries


def _object_files(
    store: LooseStore, damages: list[Damage], leftovers: list[str]
) -> Iterator[tuple[str, ObjectId]]:
    for path in store.everything():
        id = store.id_of_file(path)
        if id is not None:
            if not store.was_emptied(path, id):
                yield path, id
        elif store.is_leftover(path):
            leftovers.append(path)
        else:
            message = "A file that is not named after an object lies among the objects."
            damages.append(Damage(DeserializationFailed.code, path, message))


def _damaged_replacements(repository: Repository) -> Iterator[Damage]:
    """Entries of scrubbed objects that lead nowhere."""
    for name in repository.replaced.names():
        if pair_of(name) is None:
            path = os.path.join(repository.replaced.folder, name)
            message = "A file that leads from no object to another lies among the replaced."
            yield Damage(DeserializationFailed.code, path, message)


def _heads(repository: Repository, damages: list[Damage]) -> Iterator[tuple[str, ObjectId]]:
    for id in repository.heads.named():
        path = os.path.join(repository.heads.folder, id)
        try:
            status = os.lstat(path)
        except FileNotFoundError:  # Another commit replaced it meanwhile.
            continue
        if not stat.S_ISREG(status.st_mode) or status.st_size:
            message = "A head must be an empty file."
            damages.append(Damage(DeserializationFailed.code, path, message))
        yield path, id


def _refs(repository: Repository, damages: list[Damage]) -> Iterator[tuple[str, ObjectId]]:
    for name in repository.refs.names():
        if refs.damaged_name(name):
            # `ctx stage recover` has already reported it.
            continue
        path = os.path.join(repository.refs.folder, name)
        try:
            id = repository.refs.require(name)
        except CtxError as error:
            damages.append(Damage(error.code, path, error.message))
        else:
            # The commit made here last may be on another branch by now, or discarded.
            is_here = id in repository.objects or repository.project.checkout is None
            if name != refs.MAIN or is_here:
                yield path, id
