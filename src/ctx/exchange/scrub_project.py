"""Removes a text from a project's store: documents, objects and derived files.

Objects do not change; a replacement is read in their place (`objects/replaced_objects.py`), so
that commit ids stay valid. The replacement keeps ids, unknown records and fields of newer versions;
an object that would become unreadable is left unchanged. The indexes are deleted and rebuilt.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from ctx import clock, disk, git
from ctx.errors import CtxError
from ctx.exchange import scrub_files
from ctx.exchange.scrub_files import RemainingPlace, ScrubbedPlace, holds, plain_files
from ctx.exchange.scrub_store import changed_record
from ctx.ids import ObjectId
from ctx.layout import CONFIG_NAME, INDEX_KEY
from ctx.objects import codec
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import Kind, Object, blob, from_payload
from ctx.objects.repository import Repository
from ctx.objects.staged_objects import StagedStore
from ctx.redaction.needle import Needle
from ctx.sqlite.connection import JOURNALS, discard

_Rewrite = Callable[[Object], Object | None]
"""The replacement of an object; None if it can stay."""


class _MatchingObjects(NamedTuple):
    """The objects that match, and unreadable files."""

    objects: dict[ObjectId, Object]
    """The replacement of each."""
    files: tuple[str, ...]
    """All files that contain them, including second copies."""
    unreadable: tuple[str, ...]


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
        return [*places, *self._scrub_derived(acting=False, any_found=bool(places))]

    def scrub(self, tick: clock.Tick) -> list[ScrubbedPlace]:
        """Remove the text. The caller holds the project's lock."""
        places = [*self._documents(acting=True), *self._objects(acting=True, tick=tick)]
        return [*places, *self._scrub_derived(acting=True, any_found=bool(places))]

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

    def _objects(self, *, acting: bool, tick: clock.Tick) -> Iterator[ScrubbedPlace]:
        repository = self._repository
        for store in (repository.objects, repository.staged):
            held = _find_objects(store, self._rewritten, tick)
            if store is repository.objects:
                self.touched += held.files
            if acting:
                _replace_objects(repository, store, held)
            if held.objects:
                yield ScrubbedPlace(
                    self._scrubbed_path(store.folder), len(held.objects), "rewritten"
                )

    def _rewritten(self, stored: Object) -> Object | None:
        return rewritten_object(stored, self._needle)

    def _scrub_derived(self, *, acting: bool, any_found: bool) -> Iterator[ScrubbedPlace]:
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
            yield ScrubbedPlace(self._scrubbed_path(project.indexes), len(memory), "made anew")
        if of_code:
            yield ScrubbedPlace(self._scrubbed_path(code.database), 1, "made anew")

    def _is_below(self, path: str) -> bool:
        if os.path.isdir(path):
            return any(holds(file, self._needle) for file in plain_files(path))
        return any(holds(path + suffix, self._needle) for suffix in ("", *JOURNALS))

    def left(self) -> Iterator[RemainingPlace]:
        """Places that still contain it: settings, other working trees, unreadable objects."""
        project = self._project
        local = os.path.join(project.store, "local")
        yield from self._remaining_in_folder(project.store, (project.objects, local))
        if project.checkout is not None:
            yield from self._left_in_other_trees(os.path.dirname(project.local))
        yield from self._remaining_in_folder(project.local, (project.staged_objects,))
        for store in (self._repository.objects, self._repository.staged):
            held = _find_objects(store, self._rewritten)
            for path in held.files:
                yield RemainingPlace(
                    self._scrubbed_path(path), "it changed meanwhile: run the command again"
                )
            for path in held.unreadable:
                yield RemainingPlace(self._scrubbed_path(path), "it cannot be read")

    def _left_in_other_trees(self, together: str) -> Iterator[RemainingPlace]:
        """Check the other working trees: each has its own staged work and indexes."""
        for name in disk.names(together):
            folder = os.path.join(together, name)
            staged = StagedStore(os.path.join(folder, "stage", "objects"))
            if folder != self._project.local and (
                any(holds(path, self._needle) for path in plain_files(folder))
                or _find_objects(staged, self._rewritten).objects
            ):
                why = "another working tree of this repository: run `ctx scrub` there too"
                yield RemainingPlace(self._scrubbed_path(folder), why)

    def _remaining_in_folder(self, folder: str, but: tuple[str, ...]) -> Iterator[RemainingPlace]:
        for path in plain_files(folder):
            if path.startswith(tuple(excluded + os.sep for excluded in but)):
                continue
            if holds(path, self._needle):
                is_settings = os.path.basename(path) == CONFIG_NAME
                why = "it is your file: edit it" if is_settings else "it was not expected there"
                yield RemainingPlace(self._scrubbed_path(path), why)
            elif self._needle.name(name := os.path.basename(path)) != name:
                yield RemainingPlace(
                    self._scrubbed_path(os.path.dirname(path)), "the name of a file contains it"
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

    def _scrubbed_path(self, path: str) -> str:
        """A path without the scrubbed text."""
        return self._needle.name(os.path.relpath(path, self._project.root))


def _find_objects(
    store: LooseStore, rewritten: _Rewrite, tick: clock.Tick = clock.no_tick
) -> _MatchingObjects:
    """Find the objects of a store that must be replaced."""
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
    return _MatchingObjects(found, tuple(files), tuple(unreadable))


def _replace_objects(repository: Repository, store: LooseStore, held: _MatchingObjects) -> None:
    """Replace the objects. The caller holds the project's lock.

    The replacement is made durable first, then the name that leads to it, and then the old file is
    removed. A crash leaves one object too many, which the next scrub removes.
    """
    if not held.objects:
        return
    store.write(held.objects.values())
    repository.replaced.note((old, new.id) for old, new in held.objects.items())
    repository.note_as_own(new.id for new in held.objects.values())
    with disk.explain_errors("removing objects"):
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


_SHOWN = 5
_RECORD_LENGTH = 11
_FIXED = frozenset(
    {"session_id", "kind", "step_kind", "role", "stream", "label", "tool", "language", "severity"}
)
"""Fields that are not free text, or that identify the object."""
_ENCODER = msgspec.msgpack.Encoder()


def _rename(path: str, target: str) -> None:
    """Rename a document; an existing file is never overwritten."""
    stem, dot, ending = target.rpartition(".")
    number = 1
    while os.path.lexists(target):
        number += 1
        target = f"{stem}-{number}{dot}{ending}"
    with disk.explain_errors("renaming a document"):
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


def rewritten_object(stored: Object, needle: Needle) -> Object | None:
    """The object without the text; None if it does not contain it."""
    if stored.kind is Kind.BLOB:
        text = stored.payload.decode("utf-8", "surrogateescape")
        after = needle.scrubbed(text)
        return blob(after.encode("utf-8", "surrogateescape")) if after != text else None
    try:
        name, version, fields = msgspec.msgpack.decode(stored.payload)
        changed = _scrubbed_fields(name, fields, needle)
        if changed == fields:
            return None
        payload = _ENCODER.encode((name, version, changed))
        before, after_value = codec.decode(stored.payload), codec.decode(payload)
    except (msgspec.MsgspecError, CtxError, UnicodeError, RecursionError, ValueError, TypeError):
        return None
    # The text may be a word of the format itself.
    return from_payload(Kind.TYPED, payload) if type(before) is type(after_value) else None


def _scrubbed_fields(name: str, fields: Any, needle: Needle) -> Any:
    if name == "record_batch" and isinstance(fields, dict):
        records = fields.get("records", ())
        return {**fields, "records": [_scrubbed_record(record, needle) for record in records]}
    if name == "tree" and isinstance(fields, dict):
        return {**fields, "entries": _renamed_entries(fields.get("entries", ()), needle)}
    return _scrubbed_value(fields, needle)


def _scrubbed_record(record: Any, needle: Needle) -> Any:
    if isinstance(record, list) and len(record) >= _RECORD_LENGTH:
        texts = [field for n, field in enumerate(record[:_RECORD_LENGTH]) if n not in (1, 7)]
        if all(isinstance(text, str) for text in texts):
            return changed_record(record, needle) or record
    # Readers skip an invalid record, but it is kept, so it is scrubbed too.
    return _scrubbed_value(record, needle)


def _renamed_entries(entries: Any, needle: Needle) -> Any:
    """The entries of a tree under their new names, sorted and without duplicates."""
    named: dict[str, Any] = {}
    for entry in entries:
        name = after = needle.name(entry["name"])
        number = 1
        while after in named:
            number += 1
            after = f"{name}-{number}"
        named[after] = {**entry, "name": after}
    return [named[name] for name in sorted(named)]


def _scrubbed_value(value: Any, needle: Needle, key: str = "") -> Any:
    match value:
        case str() if key not in _FIXED:
            return needle.name(value) if key == "path" else needle.scrubbed(value)
        case list():
            return [_scrubbed_value(nested, needle, key) for nested in value]
        case dict():
            return {
                name: _scrubbed_value(nested, needle, str(name)) for name, nested in value.items()
            }
        case _:
            return value
