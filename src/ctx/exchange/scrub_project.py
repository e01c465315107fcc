"""Removes a text from a project's store: documents, objects, refs and derived files.

See `scrub_objects` for the objects. The indexes are deleted and rebuilt.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ctx import checkouts, clock, disk, git
from ctx.exchange import scrub_files
from ctx.exchange.scrub_files import RemainingPlace, ScrubbedPlace, holds, plain_files
from ctx.exchange.scrub_objects import MatchingObjects, find_objects, replace_objects
from ctx.layout import INDEX_KEY
from ctx.objects import refs, untracked_commits
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
        self._kept: list[RemainingPlace] = []

    def look(self, tick: clock.Tick) -> list[ScrubbedPlace]:
        """Report what would be done."""
        return self._each_part(acting=False, tick=tick)

    def scrub(self, tick: clock.Tick) -> list[ScrubbedPlace]:
        """Remove the text. The caller holds the project's lock."""
        return self._each_part(acting=True, tick=tick)

    def _each_part(self, *, acting: bool, tick: clock.Tick) -> list[ScrubbedPlace]:
        places = [
            *self._documents(acting=acting),
            *self._objects(acting=acting, tick=tick),
            *self._pointers(acting=acting),
        ]
        return [*places, *self._scrub_derived(acting=acting, any_found=bool(places))]

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
            yield ScrubbedPlace(self._scrubbed_path(os.path.join(folder, renamed)), 1, "rewritten")
        if acting:
            # The files in these folders were moved.
            for path in list(scrub_files.named_so(folder, self._needle)):
                _remove_empty(path)

    def _objects(self, *, acting: bool, tick: clock.Tick) -> Iterator[ScrubbedPlace]:
        repository = self._repository
        for store in (repository.objects, repository.staged):
            held = find_objects(store, self._needle, tick)
            self._kept += self._kept_of(held)
            if store is repository.objects:
                self.touched += held.files
            if acting:
                replace_objects(repository, store, held)
            if held.objects:
                yield ScrubbedPlace(
                    self._scrubbed_path(store.folder), len(held.objects), "rewritten"
                )

    def _pointers(self, *, acting: bool) -> Iterator[ScrubbedPlace]:
        """Rename the refs of sessions, the session that commands join, and git branches."""
        folder = self._project.refs
        for kind in refs.FOLDERS:
            for name in disk.names(os.path.join(folder, kind)):
                after = self._ref_name(kind, name)
                path = os.path.join(folder, kind, name)
                if after == name:
                    continue
                if acting and name.endswith(disk.TEMPORARY_SUFFIX):
                    disk.discard(path)
                elif acting:
                    _rename(path, os.path.join(folder, kind, after))
                yield ScrubbedPlace(self._scrubbed_path(os.path.join(folder, kind)), 1, "rewritten")
        joined = disk.read_or_none(self._project.stage) or b""
        text = joined.decode("utf-8", "surrogateescape")
        if (renamed := self._needle.name(text)) != text:
            if acting:
                scrub_files.write(self._project.stage, renamed.encode("utf-8", "surrogateescape"))
            yield ScrubbedPlace(self._scrubbed_path(self._project.stage), 1, "rewritten")
        for path in untracked_commits.entry_files(self._project):
            if (after_json := scrub_files.rewritten(path, self._needle)) is not None:
                if acting:
                    scrub_files.write(path, after_json)
                    untracked_commits.forget_places(self._project)
                yield ScrubbedPlace(self._scrubbed_path(os.path.dirname(path)), 1, "rewritten")
        if acting and holds(untracked_commits.places_file(self._project), self._needle):
            untracked_commits.forget_places(self._project)

    def _ref_name(self, kind: str, name: str) -> str:
        """The new name of a ref. An aborted one ends with a part of an object id."""
        session, dash, tip = name.rpartition("-") if kind == "aborted" else (name, "", "")
        return self._needle.name(session) + dash + tip if session else self._needle.name(name)

    def _scrub_derived(self, *, acting: bool, any_found: bool) -> Iterator[ScrubbedPlace]:
        """Delete memory indexes if memory or one of them contains the text, and the code index if
        that does."""
        project = self._project
        memory = [
            path
            for name in disk.names(project.indexes)
            if len(name) == INDEX_KEY or name.endswith(disk.TEMPORARY_SUFFIX)
            if os.path.isdir(path := os.path.join(project.indexes, name))
        ]
        memory += [p for p in (project.narrative_index, project.vectors) if os.path.exists(p)]
        # The indexes may still contain text that the objects no longer have.
        found = memory if any_found else [path for path in memory if self._index_holds(path)]
        code = project.code
        of_code = [code.database] if os.path.exists(code.database) else []
        if not (
            scrub_files.code_holds(code.database, self._needle) or self._is_below(code.derived)
        ):
            of_code = []
        if acting:
            # Rules do not recognise a secret in free pages and text indexes.
            for path in (*(memory if self._needle.is_rules else found), *of_code):
                _remove(path)
            if of_code:
                shutil.rmtree(code.derived, ignore_errors=True)
        if found:
            yield ScrubbedPlace(self._scrubbed_path(project.indexes), len(found), "made anew")
        if of_code:
            yield ScrubbedPlace(self._scrubbed_path(code.database), 1, "made anew")

    def _index_holds(self, path: str) -> bool:
        if not self._needle.is_rules or not os.path.isdir(path):
            return self._is_below(path)
        databases = (file for file in plain_files(path) if not file.endswith(JOURNALS))
        # An index that cannot be read is rebuilt.
        return any(scrub_files.rows_hold(file, self._needle) != 0 for file in databases)

    def _is_below(self, path: str) -> bool:
        if os.path.isdir(path):
            return any(holds(file, self._needle) for file in plain_files(path))
        return any(holds(path + suffix, self._needle) for suffix in ("", *JOURNALS))

    def out_of_reach(self) -> Iterator[RemainingPlace]:
        """Places that a scrub does not change. After `look` or `scrub`."""
        project = self._project
        if holds(project.config_file, self._needle):
            yield RemainingPlace(self._scrubbed_path(project.config_file), scrub_files.OF_USER)
        if project.checkout is not None:
            yield from self._other_trees(os.path.dirname(project.local))
        yield from self._branch()
        yield from dict.fromkeys(self._kept)

    def left(self) -> Iterator[RemainingPlace]:
        """All places that still contain it."""
        project = self._project
        self._kept = []
        for store in (self._repository.objects, self._repository.staged):
            held = find_objects(store, self._needle)
            self._kept += self._kept_of(held)
            for path in held.files:
                yield RemainingPlace(self._scrubbed_path(path), scrub_files.MEANWHILE)
        yield from self.out_of_reach()
        yield from self._left_in(project.store, (project.objects, project.local))
        yield from self._left_in(project.local, (project.staged_objects,))

    def _kept_of(self, held: MatchingObjects) -> Iterator[RemainingPlace]:
        # A word of the format is in every object.
        places = held.kept if len(held.kept) <= _SHOWN else [_folder_of(held.kept)]
        for path in places:
            yield RemainingPlace(self._scrubbed_path(path), scrub_files.OURS)
        for path in held.unreadable:
            yield RemainingPlace(self._scrubbed_path(path), "it cannot be read")

    def _other_trees(self, together: str) -> Iterator[RemainingPlace]:
        """Check the other working trees: each has its own staged work and indexes."""
        for name in disk.names(together):
            folder = os.path.join(together, name)
            if holds(folder, self._needle):
                yield RemainingPlace(self._scrubbed_path(folder), scrub_files.OF_USER)
            staged = StagedStore(os.path.join(folder, "stage", "objects"))
            if folder != self._project.local and (
                any(holds(path, self._needle) for path in plain_files(folder))
                or any(scrub_files.named_so(folder, self._needle))
                or find_objects(staged, self._needle).objects
            ):
                why = "another working tree of this repository: run `ctx scrub` there too"
                yield RemainingPlace(self._scrubbed_path(folder), why)

    def _branch(self) -> Iterator[RemainingPlace]:
        checkout = self._project.checkout
        branch = checkouts.branch_and_commit(checkout)[0] if checkout else None
        if checkout and branch and self._needle.is_in(branch):
            why = "the git branch has it in its name: ctx stores it again, unless you rename it"
            yield RemainingPlace(self._scrubbed_path(os.path.join(checkout.git_dir, "HEAD")), why)

    def _left_in(self, folder: str, but: tuple[str, ...]) -> Iterator[RemainingPlace]:
        """Files below a folder that contain it, or whose names do."""
        excluded = tuple(path + os.sep for path in but)
        for path in plain_files(folder):
            if path.startswith(excluded) or path == self._project.config_file:
                continue
            if holds(path, self._needle):
                yield RemainingPlace(self._scrubbed_path(path), "it was not expected there")
        for path in scrub_files.named_so(folder, self._needle):
            if not path.startswith(excluded):
                shown = self._scrubbed_path(os.path.dirname(path))
                yield RemainingPlace(shown, scrub_files.NAMED_SO)

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

    def _scrubbed_path(self, path: str) -> str:
        """A path without the scrubbed text."""
        return self._needle.name(os.path.relpath(path, self._project.root))


_SHOWN = 5


def _rename(path: str, target: str) -> None:
    """Rename a document or a ref; an existing file is never overwritten."""
    stem, dot, ending = target.rpartition(".") if target.endswith(".md") else (target, "", "")
    number = 1
    while os.path.lexists(target):
        number += 1
        target = f"{stem}-{number}{dot}{ending}"
    with disk.explain_errors("renaming a file"):
        disk.make_folder(os.path.dirname(target))
        os.rename(path, target)
        disk.sync_folder(os.path.dirname(target))
        disk.sync_folder(os.path.dirname(path))


def _folder_of(paths: Sequence[str]) -> str:
    return os.path.commonpath([os.path.dirname(path) for path in paths])


def _remove_empty(folder: str) -> None:
    """Remove a folder and those below it, as far as they have no files."""
    for here, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(here)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        discard(path)
