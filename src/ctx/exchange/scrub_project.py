"""Removes a text from a project's store: documents, objects and derived files.

See `scrub_objects` for the objects. The indexes are deleted and rebuilt.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress

from ctx import clock, disk, git
from ctx.exchange import scrub_files
from ctx.exchange.scrub_files import RemainingPlace, ScrubbedPlace, holds, plain_files
from ctx.exchange.scrub_objects import find_objects, replace_objects, rewritten_object
from ctx.layout import CONFIG_NAME, INDEX_KEY
from ctx.objects.object_store import Object
from ctx.objects.repository import Repository
from ctx.objects.staged_objects import StagedStore
from ctx.redaction.needle import Needle
from ctx.sqlite.connection import JOURNALS, discard


class ScrubbedProject:
    """Finds and removes a text in a project's store, and tracks the affected files."""

    def __init__(self, repository: Repository, needle: Needle) -> None:
        self._repository = repository
        self._project = repository.project
        self._needle = needle
        self.touched: list[str] = []
        """Files that contained it and may be in git."""

    def look(self, tick: clock.Tick) -> list[ScrubbedPlace]:
        """Report what would be done."""
        places = [*self._documents(acting=False), *self._objects(acting=False, tick=tick)]
        return [*places, *self._derived(acting=False, any_found=bool(places))]

    def scrub(self, tick: clock.Tick) -> list[ScrubbedPlace]:
        """Remove the text. The caller holds the project's lock."""
        places = [*self._documents(acting=True), *self._objects(acting=True, tick=tick)]
        return [*places, *self._derived(acting=True, any_found=bool(places))]

    def _documents(self, *, acting: bool) -> Iterator[ScrubbedPlace]:
        folder = self._project.narrative
        for path in list(plain_files(folder)):
            inside = os.path.relpath(path, folder)
            renamed = "/".join(map(self._needle.name, inside.split(os.sep)))
            after = scrub_files.rewritten(path, self._needle)
            if after is None and renamed == inside:
                continue
            self.touched.append(path)
            if acting:
                if after is not None:
                    scrub_files.write(path, after)
                if renamed != inside:
                    _rename(path, os.path.join(folder, renamed))
            yield ScrubbedPlace(self._shown(os.path.join(folder, renamed)), 1, "rewritten")

    def _objects(self, *, acting: bool, tick: clock.Tick) -> Iterator[ScrubbedPlace]:
        repository = self._repository
        for store in (repository.objects, repository.staged):
            held = find_objects(store, self._rewritten, tick)
            if store is repository.objects:
                self.touched += held.files
            if acting:
                replace_objects(repository, store, held)
            if held.objects:
                yield ScrubbedPlace(self._shown(store.folder), len(held.objects), "rewritten")

    def _rewritten(self, stored: Object) -> Object | None:
        return rewritten_object(stored, self._needle)

    def _derived(self, *, acting: bool, any_found: bool) -> Iterator[ScrubbedPlace]:
        """Delete memory indexes if memory contains the text, and the code index if it does."""
        project = self._project
        memory = [
            path
            for name in disk.names(project.indexes)
            if len(name) == INDEX_KEY or name.endswith(disk.TEMPORARY_SUFFIX)
            if os.path.isdir(path := os.path.join(project.indexes, name))
        ]
        memory += [p for p in (project.narrative_index, project.vectors) if os.path.exists(p)]
        # The indexes may still contain text that the objects no longer have.
        if not any_found and not self._needle.is_rules:
            memory = [path for path in memory if self._is_below(path)]
        code = project.code
        of_code = [code.database] if os.path.exists(code.database) else []
        of_code = [path for path in of_code if self._is_below(path)]
        if acting:
            for path in (*memory, *of_code):
                _remove(path)
            if of_code:
                shutil.rmtree(code.derived, ignore_errors=True)
        if memory:
            yield ScrubbedPlace(self._shown(project.indexes), len(memory), "made anew")
        if of_code:
            yield ScrubbedPlace(self._shown(code.database), 1, "made anew")

    def _is_below(self, path: str) -> bool:
        if os.path.isdir(path):
            return any(holds(file, self._needle) for file in plain_files(path))
        return any(holds(path + suffix, self._needle) for suffix in ("", *JOURNALS))

    def left(self) -> Iterator[RemainingPlace]:
        """Places that still contain it: settings, other working trees, unreadable objects."""
        project = self._project
        local = os.path.join(project.store, "local")
        yield from self._left_in(project.store, (project.objects, local))
        if project.checkout is not None:
            yield from self._left_in_other_trees(os.path.dirname(project.local))
        yield from self._left_in(project.local, (project.staged_objects,))
        for store in (self._repository.objects, self._repository.staged):
            held = find_objects(store, self._rewritten)
            for path in held.files:
                yield RemainingPlace(
                    self._shown(path), "it changed meanwhile: run the command again"
                )
            for path in held.unreadable:
                yield RemainingPlace(self._shown(path), "it cannot be read")

    def _left_in_other_trees(self, together: str) -> Iterator[RemainingPlace]:
        """Check the other working trees: each has its own staged work and indexes."""
        for name in disk.names(together):
            folder = os.path.join(together, name)
            staged = StagedStore(os.path.join(folder, "stage", "objects"))
            if folder != self._project.local and (
                any(holds(path, self._needle) for path in plain_files(folder))
                or find_objects(staged, self._rewritten).objects
            ):
                why = "another working tree of this repository: run `ctx scrub` there too"
                yield RemainingPlace(self._shown(folder), why)

    def _left_in(self, folder: str, but: tuple[str, ...]) -> Iterator[RemainingPlace]:
        for path in plain_files(folder):
            if path.startswith(tuple(excluded + os.sep for excluded in but)):
                continue
            if holds(path, self._needle):
                is_settings = os.path.basename(path) == CONFIG_NAME
                why = "it is your file: edit it" if is_settings else "it was not expected there"
                yield RemainingPlace(self._shown(path), why)
            elif self._needle.name(name := os.path.basename(path)) != name:
                yield RemainingPlace(
                    self._shown(os.path.dirname(path)), "the name of a file contains it"
                )

    def in_git(self) -> tuple[str, ...]:
        """Commands that show what git's own history still contains."""
        checkout = self._project.checkout
        if checkout is None or not self.touched:
            return ()
        listed = git.tracked_files(checkout, self._project.store)
        tracked = {os.path.join(checkout.top, path) for path in listed}
        known = [path for path in self.touched if path in tracked]
        if not known:
            return ()
        shown = [os.path.relpath(path, checkout.top) for path in known]
        # The command must not contain the scrubbed text.
        shown = [path for path in shown if self._needle.name(path) == path]
        return (
            "git log --all --oneline -S'PATTERN' -- "
            + os.path.relpath(self._project.narrative, checkout.top),
            *(f"git log --all --oneline -- {path}" for path in shown[:_SHOWN]),
        )

    def _shown(self, path: str) -> str:
        """A path without the scrubbed text."""
        return self._needle.name(os.path.relpath(path, self._project.root))


_SHOWN = 5


def _rename(path: str, target: str) -> None:
    """Rename a document; an existing file is never overwritten."""
    stem, dot, ending = target.rpartition(".")
    number = 1
    while os.path.lexists(target):
        number += 1
        target = f"{stem}-{number}{dot}{ending}"
    with disk.explained("renaming a document"):
        disk.make_folder(os.path.dirname(target))
        os.rename(path, target)
        disk.sync_folder(os.path.dirname(target))
        disk.sync_folder(os.path.dirname(path))
        with suppress(OSError):
            os.rmdir(os.path.dirname(path))


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        discard(path)
