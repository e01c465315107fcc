"""Garbage collection: which objects nothing refers to, and which of them may be deleted.

An object is kept while any head, ref or other root reaches it, and for a grace period after that.
Objects that git tracks are kept by default: another branch, here or in another clone, may be about
to use them, and git would silently merge the deletion into that branch.
"""

import contextlib
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from ctx import clock, disk, git, interrupts
from ctx.errors import CommitOrphan, ObjectNotFound
from ctx.ids import ObjectId, is_object_id
from ctx.layout import Project
from ctx.objects import references, refs, untracked_commits, untracked_survey
from ctx.objects.git_history import GitObjects
from ctx.objects.object_store import LayeredReader, Object, Reader, decode
from ctx.objects.object_types import Commit, Tree
from ctx.objects.repository import Repository

_DAY_MS = 86_400_000
_TRACKED_KEEP_DAYS = 90
# A temporary file this old belongs to a writer that was killed.
_STALE_TEMPORARY_MS = 3_600_000


class Limits(NamedTuple):
    """How long unreachable objects are kept."""

    keep_days: int
    tracked: bool = False
    """Also delete objects that git tracks, if they have been unreachable for 90 days:
    another branch may need them."""
    aggressive: bool = False
    """Delete the staging of ended and aborted sessions whatever its age."""


class Garbage(NamedTuple):
    path: str
    id: ObjectId | None
    """None for a temporary file of a killed writer and for the ref of an aborted session."""
    size: int
    tracked: bool = False


class Collection(NamedTuple):
    """What a collection found, and deletes unless it is a dry run."""

    scanned: int
    reachable: int
    young: int
    """Unreachable, but within the grace period."""
    held_by_git: int
    """Unreachable and old, but tracked by git."""
    garbage: tuple[Garbage, ...]
    doubted: int = 0
    """Young only if the clock has leapt ahead by more than a year."""

    @property
    def bytes(self) -> int:
        return sum(item.size for item in self.garbage)


def reachable(reader: Reader, roots: Iterable[ObjectId]) -> Iterator[ObjectId]:
    """Everything reachable from the roots, each once, in the order of the walk.

    Missing parents are boundaries, and content that a tree took over from behind a boundary may be
    missing too (see `verify`). Anything else that is missing or damaged is an error: a collection
    that knows only half of the graph deletes what is still needed.
    """
    stack = list(roots)
    required = set(stack)
    contents: set[ObjectId] = set()
    parents: set[ObjectId] = set()
    visited = set(stack)
    missing: list[ObjectNotFound] = []
    has_boundary = False
    while stack:
        id = stack.pop()
        try:
            stored = reader.read(id)
        except ObjectNotFound as error:
            if id in required:
                raise
            if id in contents:
                missing.append(error)
            has_boundary |= id in parents
            continue
        yield id
        if stored.id != id:
            # It was scrubbed, and this is its replacement.
            yield stored.id
        value = decode(stored)
        (contents if isinstance(value, Tree) else required).update(references.required_ids(value))
        if isinstance(value, Commit):
            parents.update(value.parents)
        for named in references.referenced_ids(stored):
            if named not in visited:
                visited.add(named)
                stack.append(named)
    if missing and not has_boundary:
        raise missing[0]


def collect(repository: Repository, limits: Limits, tick: clock.Tick = clock.no_tick) -> Collection:
    """Find what can be deleted. To delete it as well, hold the lock for this call and for
    `delete`."""
    ages = _FileAges(repository)
    expired = _expired_refs(repository, limits, ages)
    names = [name for name in repository.refs.names() if not refs.damaged_name(name)]
    pointers = {name: repository.refs.require(name) for name in names if name not in expired}
    chains = [id for name, id in pointers.items() if name != refs.MAIN]
    # Committed objects are in the project's objects. Staging is only needed for open chains.
    objects, staging = repository.objects.skimming(), repository.staged.skimming()
    everything = LayeredReader(objects, staging)
    staged = set(reachable(_ObjectsWithoutCommits(everything), chains))
    # Until git has a commit, its files in the working tree can be lost at any time.
    staged |= untracked_survey.objects_to_keep(repository)
    here = LayeredReader(objects, _ObjectsWithoutCommits(staging))
    # The commit made here last may be on another branch by now.
    last = [id for id in pointers.values() if id in repository.objects]
    roots = {*repository.heads.named(), *untracked_commits.every_head(repository.project), *last}
    committed = reachable(objects, roots)
    kept = staged.union(committed, reachable(here, chains))
    tracked = _tracked_objects(repository.project)
    fallow = _unused_object_files(repository, kept, _TRACKED_KEEP_DAYS) if limits.tracked else set()
    young = held_by_git = 0
    garbage: list[Garbage] = [
        *expired.values(),
        *_expired_discarded_commits(repository.project, limits.keep_days, ages),
        *_old_temporaries(repository.project),
    ]
    files = [
        (store, path)
        for store in (repository.objects, repository.staged)
        for path in store.everything()
    ]
    for number, (store, path) in enumerate(files):
        tick(number, len(files))
        is_staging = store is repository.staged
        keep_days = 0 if limits.aggressive and is_staging else limits.keep_days
        used = staged if is_staging else kept
        id = store.id_of_file(path)
        if id in used:
            continue
        try:
            status = os.lstat(path)
        except FileNotFoundError:  # Another process wrote meanwhile: a dry run takes no lock.
            continue
        item = Garbage(path, id, status.st_size, path in tracked)
        if id is None:
            if store.is_leftover(path) and _is_stale(status):
                garbage.append(item)
        elif item.tracked:
            if path in fallow:
                garbage.append(item)
            else:
                held_by_git += 1
        elif ages.is_old(status, keep_days):
            garbage.append(item)
        else:
            young += 1
    return Collection(len(files), len(kept), young, held_by_git, tuple(garbage), ages.doubted)


class _FileAges:
    """The age of files by the wall clock, as far as the clock can be trusted."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._now_ms = clock.wall_ms()
        self.doubted = 0
        """Files that would be old if the clock is right."""

    def is_old(self, status: os.stat_result, days: int) -> bool:
        if days == 0:
            return True
        limit_ms = self._now_ms - days * _DAY_MS
        if _written_ms(status) > limit_ms:
            return False
        # If nothing was written in a year around the limit, the clock may have leapt ahead: files
        # from before such a gap may be from yesterday.
        place = bisect_right(self._times, limit_ms)
        after = self._times[place] if place < len(self._times) else self._now_ms
        has_leapt = place > 0 and after - self._times[place - 1] > clock.YEAR_MS
        self.doubted += has_leapt
        return not has_leapt

    @cached_property
    def _times(self) -> list[int]:
        """When each object and each ref was written. Computed only if something may be old."""
        repository = self._repository
        folder = repository.refs.folder
        paths = [os.path.join(folder, name) for name in repository.refs.names()]
        paths += [*repository.objects.everything(), *repository.staged.everything()]
        times = []
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                times.append(_written_ms(os.lstat(path)))
        return sorted(times)


class _ObjectsWithoutCommits:
    """The objects without the base commits of chains, and without what only these refer to.

    Staging has copies of commits, but not of everything that they need.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read(self, id: ObjectId) -> Object:
        stored = self._reader.read(id)
        if isinstance(decode(stored), Commit):
            raise ObjectNotFound(f"Object {id} is a commit.")
        return stored

    def __contains__(self, id: ObjectId) -> bool:
        return id in self._reader


def _expired_refs(repository: Repository, limits: Limits, ages: _FileAges) -> dict[str, Garbage]:
    """The refs of aborted and damaged chains that can no longer be restored."""
    garbage = {}
    for name in repository.refs.names():
        if refs.aborted_name(name) or refs.damaged_name(name):
            path = os.path.join(repository.refs.folder, name)
            keep_days = 0 if limits.aggressive and refs.aborted_name(name) else limits.keep_days
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(path)
                if ages.is_old(status, keep_days):
                    garbage[name] = Garbage(path, None, status.st_size)
    return garbage


def _expired_discarded_commits(
    project: Project, keep_days: int, ages: _FileAges
) -> Iterator[Garbage]:
    """The entries of discarded commits that can no longer be restored."""
    for commit in untracked_commits.discarded_commits(project):
        path = untracked_commits.discarded_file(project, commit)
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            if ages.is_old(status, keep_days):
                yield Garbage(path, None, status.st_size)


def _written_ms(status: os.stat_result) -> int:
    return status.st_mtime_ns // 1_000_000


def _is_stale(status: os.stat_result) -> bool:
    return clock.wall_ms() - _written_ms(status) > _STALE_TEMPORARY_MS


def _old_temporaries(project: Project) -> Iterator[Garbage]:
    """Temporary files of refs and notes that killed writers left."""
    chains = [os.path.join(project.refs, name) for name in refs.FOLDERS]
    for folder in (project.local, project.refs, *chains):
        for name in disk.names(folder):
            if not name.endswith(disk.TEMPORARY_SUFFIX):
                continue
            path = os.path.join(folder, name)
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(path)
                if _is_stale(status):
                    yield Garbage(path, None, status.st_size)


def delete(collection: Collection, tick: clock.Tick = clock.no_tick) -> None:
    interrupts.defer()
    with disk.explain_errors("deleting objects"):
        folders = set()
        for number, item in enumerate(collection.garbage):
            tick(number, len(collection.garbage))
            disk.discard(item.path)
            folders.add(os.path.dirname(item.path))
        for folder in sorted(folders):
            disk.sync_folder(folder)
            with contextlib.suppress(OSError):  # Usually it is not empty.
                os.rmdir(folder)


def _tracked_objects(project: Project) -> set[str]:
    """The object files that git's index knows."""
    checkout = project.checkout
    if checkout is None:
        return set()
    listed = git.tracked_files(checkout, project.objects)
    return {os.path.join(checkout.top, path) for path in listed}


def _unused_object_files(repository: Repository, kept: set[ObjectId], days: int) -> set[str]:
    """The tracked object files that no git ref has used in the last days.

    A file is used if it is reachable from a head that any ref has, or had within those days. A file
    that git added within those days counts as used too.
    """
    project = repository.project
    checkout = project.checkout
    if checkout is None:
        return set()
    names = git.names_since(checkout, project.heads, days)
    heads = {ObjectId(name) for name in names if is_object_id(name)}
    additions = {
        os.path.join(checkout.top, path): addition
        for path, addition in git.additions(checkout, project.objects).items()
    }
    in_git = GitObjects(repository, additions)
    try:
        reader = LayeredReader(repository.everything, in_git)
        for head in heads:
            if head not in reader:
                raise CommitOrphan(
                    f"Commit {head} is a head on some git ref, but it cannot be read here.",
                    hint="Fetch the whole history first (`git fetch --unshallow`).",
                )
        used = kept.union(reachable(reader, heads))
    finally:
        in_git.close()
    oldest = clock.wall_s() - days * 86_400
    return {
        path
        for path, addition in additions.items()
        if addition.time < oldest and repository.objects.id_of_file(path) not in used
    }
