"""Remove a word, or every secret that the rules find, from everything stored.

Each part can be repeated, and a file marks a scrub in progress: the next scrub completes an
interrupted one, including free pages. Hooks continue meanwhile, so at the end everything is checked
again, byte by byte, and what is left is reported. Locks are taken in one order: sessions, the
spool, the store, the project.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from sqlite3 import Connection
from typing import NamedTuple

from ctx import checkouts, clock, disk, interrupts, layout, repository_names
from ctx.capture import session_table
from ctx.errors import CtxError, LockConflict
from ctx.exchange import scrub_files, scrub_store
from ctx.exchange.scrub_files import RemainingPlace, ScrubbedPlace, holds
from ctx.exchange.scrub_project import ScrubbedProject
from ctx.llm import ledger
from ctx.llm.llama_cpp import slots
from ctx.memory import user_store
from ctx.objects.repository import Repository
from ctx.operations import apply, projection, sync_scrubs, worker_round
from ctx.operations.sync_scrubs import UnconfirmedReplica
from ctx.redaction.needle import Needle
from ctx.sqlite.connection import JOURNALS, discard
from ctx.workspace import Memory

MARK = "scrubbing"
"""Beside the store: a scrub was begun, and has not come to its end."""

_TURNS = 3
_PATIENCE_S = 30.0
_POLL_S = 0.05
_MOST_TRANSCRIPTS = 500


class ScrubScope(NamedTuple):
    """What is to be looked through. None: not that one."""

    home: str | None
    """The folder of the user store, with everything in it."""
    database: str | None
    project: Repository | None
    folder: str = ""
    """Where agents work that have no hooks, and read of memory in a file."""


class ScrubResult(NamedTuple):
    """The answer of `ctx scrub`."""

    dry_run: bool
    looked_for: str
    """What was removed, in words that do not reveal it."""
    places: tuple[ScrubbedPlace, ...]
    left: tuple[RemainingPlace, ...]
    """What holds it still, and why."""
    in_git: tuple[str, ...]
    """Commands that show what git's own history holds."""
    transcripts: tuple[str, ...]
    """Files of the agent's own that hold it. They are not ctx's to change."""
    folders: tuple[str, ...]
    """Folders in which agents work and that are called so: what is done there brings it back."""
    replicas: tuple[UnconfirmedReplica, ...] = ()
    """Machines that may still have it: they have not synced since."""


def settle(memory: Memory, home: str) -> None:
    """Process what is waiting first: an answer in the spool is read from the agent's transcript.

    A problem in one part is no reason to leave a secret in another.
    """
    for part in (worker_round.drain, _remember):
        with suppress(CtxError, sqlite3.Error, OSError):
            part(memory, home)


def _remember(memory: Memory, home: str) -> object:
    tending = worker_round.WorkerRounds(home, lambda _: suppress(CtxError, sqlite3.Error, OSError))
    return tending.remember(memory)


def preview_scrub(
    scope: ScrubScope, needle: Needle, tick: clock.Tick = clock.no_tick
) -> ScrubResult:
    """What would be taken out, and where, and what would be left. Nothing is changed."""
    places: list[ScrubbedPlace] = []
    transcripts: tuple[str, ...] = ()
    if scope.database and user_store.store_exists(scope.database):
        with user_store.reading(scope.database) as opened:
            places += _rows(scrub_store.find(opened, needle, tick))
            transcripts = _transcripts(opened, needle)
    left = [*_out_of_reach(scope, needle)]
    if scope.database and not (places or left) and _in_free_pages(scope, needle):
        places.append(ScrubbedPlace(os.path.basename(scope.database), 1, "rewritten"))
    if scope.home and scope.database:
        places += _files(scope.home, scope.database, needle, acting=False)
    in_git: tuple[str, ...] = ()
    if scope.project:
        project = ScrubbedProject(scope.project, needle)
        places += project.look(tick)
        left += project.out_of_reach()
        in_git = project.in_git()
    if not places and not left:
        left += _remaining_places(scope, needle)
    folders = _folders(scope, needle)
    return ScrubResult(
        True, needle.description, _merge_places(places), tuple(left), in_git, transcripts, folders
    )


def scrub_all(scope: ScrubScope, needle: Needle, tick: clock.Tick = clock.no_tick) -> ScrubResult:
    """Take it out, and tell what is left."""
    places: list[ScrubbedPlace] = []
    in_git: tuple[str, ...] = ()
    transcripts: tuple[str, ...] = ()
    left: list[RemainingPlace] = []
    folders = _folders(scope, needle)
    # A secret that is taken out here and not there is no use to anybody.
    interrupts.defer()
    _keep_name(scope, needle)
    for _ in range(_TURNS):
        done: list[ScrubbedPlace] = []
        if scope.database and user_store.store_exists(scope.database):
            with _hold_spool_and_sessions(scope.home):
                found, transcripts = _scrub_store(scope, needle, tick, transcripts)
                done += found
        if scope.project:
            project = ScrubbedProject(scope.project, needle)
            with scope.project.locked("ctx scrub"):
                # Asked before files go: git knows them by their names.
                done += project.scrub(tick)
            in_git = in_git or project.in_git()
        places += done
        before, left = left, list(_remaining_places(scope, needle))
        if not done or not left or left == before:
            break
    summed = _merge_places(places)
    if summed and scope.home:
        left += _at_models(scope.home)
    return ScrubResult(
        False, needle.description, summed, tuple(left), in_git, transcripts, folders,
        _replicas(scope),
    )  # fmt: skip


def _scrub_store(
    scope: ScrubScope, needle: Needle, tick: clock.Tick, known: tuple[str, ...]
) -> tuple[list[ScrubbedPlace], tuple[str, ...]]:
    assert scope.database
    mark = os.path.join(os.path.dirname(os.path.realpath(scope.database)), MARK)
    was_begun = os.path.exists(mark)
    with user_store.writing(scope.database) as opened:
        transcripts = known or _transcripts(opened, needle)
        in_free_pages = _in_free_pages(scope, needle)
        with disk.explain_errors("noting that a scrub was begun"):
            disk.replace(mark, b"")
        found = scrub_store.scrub(opened, needle, tick)
        places = _rows(found)
        is_needed = bool(found) or was_begun or in_free_pages
        # In free pages and text indexes, neither rules nor all forms of a word can be recognised.
        is_wiped = scrub_store.wipe(opened)
        if is_needed and not places:
            places.append(ScrubbedPlace(os.path.basename(scope.database), 1, "rewritten"))
    if scope.home:
        if found["nodes"] or was_begun:
            discard(os.path.join(scope.home, "vectors.db"))
        places += _files(scope.home, scope.database, needle, acting=True)
    if is_wiped:
        disk.discard(mark)
    return places, transcripts


def _files(home: str, database: str, needle: Needle, *, acting: bool) -> list[ScrubbedPlace]:
    """What the other files of the user store hold."""
    places: list[ScrubbedPlace] = []
    for path in list(scrub_files.files_beside(home, database)):
        inside = needle.name(os.path.relpath(path, home))
        where = inside.split(os.sep)[0] if os.sep in inside else inside
        if scrub_files.is_user_file(home, path) or inside == MARK:
            continue
        if scrub_files.is_ledger(path):
            # What belongs to it goes with it.
            if not path.endswith(JOURNALS) and (rows := scrub_files.ledger_holds(path, needle)):
                if acting:
                    ledger.scrub(path, needle)
                places.append(ScrubbedPlace(inside, rows, "rewritten"))
        elif scrub_files.is_derived(home, path):
            if os.path.exists(path) and scrub_files.derived_holds(path, needle):
                if acting:
                    scrub_files.remove_derived(home, path)
                places.append(ScrubbedPlace(where, 1, "made anew"))
        elif scrub_files.is_copy(path):
            rows = scrub_files.copy_holds(path, needle)
            if rows is None or rows:
                done = scrub_files.scrub_copy(path, needle) if acting else "rewritten"
                places.append(ScrubbedPlace(inside, rows or 1, done))
        elif scrub_files.is_set_aside(path, database):
            if needle.is_rules or holds(path, needle):
                if acting:
                    disk.discard(path)
                places.append(ScrubbedPlace(inside, 1, "removed"))
        elif scrub_files.scrub_text(home, path, needle, acting=acting):
            places.append(ScrubbedPlace(where, 1, "rewritten"))
    return places


def _out_of_reach(scope: ScrubScope, needle: Needle) -> Iterator[RemainingPlace]:
    """What a scrub does not change: tables and files of the user, and names."""
    blocks = {name: os.path.join(scope.folder, name) for name in projection.FILES if scope.folder}
    if scope.database and user_store.store_exists(scope.database):
        with user_store.reading(scope.database) as opened:
            tables = scrub_store.foreign_tables(opened, needle)
            blocks |= {
                path: path for path in projection.named_files(opened) if path not in blocks.values()
            }
        for table in tables:
            where = f"{os.path.basename(scope.database)}: {needle.name(table)}"
            yield RemainingPlace(where, "a table that ctx did not create: edit it")
    if scope.home and scope.database:
        for path in scrub_files.files_beside(scope.home, scope.database):
            if scrub_files.is_user_file(scope.home, path) and (
                holds(path, needle)
                or (needle.is_rules and scrub_files.rewritten(path, needle) is not None)
            ):
                inside = needle.name(os.path.relpath(path, scope.home))
                yield RemainingPlace(inside, scrub_files.OF_USER)
        for path in scrub_files.linked_so(scope.home, needle):
            inside = needle.name(os.path.relpath(path, scope.home))
            yield RemainingPlace(inside, scrub_files.LINKED)
        if not needle.is_rules:
            for path in scrub_files.named_so(scope.home, needle):
                if scrub_files.new_name(scope.home, path, needle) is None:
                    folder = os.path.relpath(os.path.dirname(path), scope.home)
                    yield RemainingPlace(needle.name(folder), scrub_files.NAMED_SO)
    for name, path in blocks.items():
        if projection.has_block(path) and holds(path, needle):
            yield RemainingPlace(
                needle.name(name), "`ctx install --projection` rewrites the block of memory in it"
            )


def _remaining_places(scope: ScrubScope, needle: Needle) -> Iterator[RemainingPlace]:
    """What holds it after all, byte by byte."""
    if scope.database and user_store.store_exists(scope.database):
        yield from _left_in_store(scope.database, needle)
    if scope.home and scope.database:
        for path in scrub_files.every_file_beside(scope.home, scope.database):
            if scrub_files.is_user_file(scope.home, path):
                continue
            inside = needle.name(os.path.relpath(path, scope.home))
            if scrub_files.new_name(scope.home, path, needle):
                yield RemainingPlace(inside, scrub_files.MEANWHILE)
            elif scrub_files.derived_holds(path, needle):
                is_named = scrub_files.only_in_schema(path, needle)
                why = scrub_files.OURS if is_named else scrub_files.MEANWHILE
                yield RemainingPlace(inside, why)
    yield from _out_of_reach(scope, needle)
    if scope.project:
        yield from ScrubbedProject(scope.project, needle).left()


def _left_in_store(database: str, needle: Needle) -> Iterator[RemainingPlace]:
    name = os.path.basename(database)
    with user_store.reading(database) as opened:
        if scrub_store.find(opened, needle):
            yield RemainingPlace(name, scrub_files.MEANWHILE)
    for suffix in JOURNALS[:1]:
        if holds(database + suffix, needle):
            why = "another process reads the store: run the command again when it has ended"
            yield RemainingPlace(name + suffix, why)
    if holds(database, needle):
        yield RemainingPlace(name, scrub_files.OURS)


def _replicas(scope: ScrubScope) -> tuple[UnconfirmedReplica, ...]:
    """The machines that have not confirmed what was scrubbed, now or earlier.

    Private clones of sync targets are discarded: their files are compressed.
    """
    if not (scope.home and scope.database and user_store.store_exists(scope.database)):
        return ()
    store = layout.UserStore(scope.home)
    behind = sync_scrubs.unconfirmed_replicas(store)
    if behind:
        sync_scrubs.discard_clones(store)
    return tuple(behind)


def _at_models(home: str) -> Iterator[RemainingPlace]:
    """Prompts that model servers keep. ctx cannot read or delete them there."""
    for each in slots.forget(os.path.join(home, "llm")):
        why = f"the llama.cpp server at {each.where} keeps a prompt in it, which may contain it"
        yield RemainingPlace(each.file, f"{why}: delete it in that server's --slot-save-path")


@contextmanager
def _hold_spool_and_sessions(home: str | None) -> Iterator[None]:
    """No other process works on the spool or on sessions meanwhile."""
    if home is None:
        yield
        return
    deadline = clock.monotonic() + _PATIENCE_S
    while clock.monotonic() < deadline:
        with worker_round.hold_sessions(home) as is_idle:
            if is_idle:
                with apply.hold_spool(home) as is_alone:
                    if is_alone:
                        yield
                        return
        clock.sleep(_POLL_S)
    raise LockConflict("Another process has been processing events for a while.")


def _in_free_pages(scope: ScrubScope, needle: Needle) -> bool:
    """Whether the bytes of the database hold it, also where no row does."""
    assert scope.database
    return any(holds(scope.database + suffix, needle) for suffix in ("", "-wal", "-journal"))


def _transcripts(opened: Connection, needle: Needle) -> tuple[str, ...]:
    """The transcripts of sessions that hold it. A rule is not asked: it would find much."""
    known = session_table.transcripts(opened, _MOST_TRANSCRIPTS)
    found = [path for path in known if os.path.isabs(path) and holds(path, needle)]
    return tuple(map(needle.name, found))


def _folders(scope: ScrubScope, needle: Needle) -> tuple[str, ...]:
    """Where agents work, as far as these folders are there and are called so."""
    every = [scope.folder]
    if scope.database and user_store.store_exists(scope.database):
        with user_store.reading(scope.database) as opened:
            every += session_table.folders(opened)
    found = [path for path in every if os.path.isabs(path) and os.path.isdir(path)]
    return tuple(dict.fromkeys(needle.name(path) for path in found if needle.is_in(path)))


def _keep_name(scope: ScrubScope, needle: Needle) -> None:
    """Let the project go on under the name that its tags will have, so that its memory stays its.

    One that is written down already is renamed with all the rest.
    """
    checkout = checkouts.find_checkout(scope.folder) if scope.home and scope.folder else None
    if scope.home and checkout and not repository_names.name_of(scope.home, checkout.common_dir):
        name = layout.new_name(scope.home, checkout)
        if needle.is_in(name):
            with suppress(OSError):
                repository_names.record(scope.home, checkout.common_dir, needle.name(name))


def _rows(found: dict[str, int]) -> list[ScrubbedPlace]:
    return [ScrubbedPlace(f"store.db: {table}", rows, "rewritten") for table, rows in found.items()]


def _merge_places(places: list[ScrubbedPlace]) -> tuple[ScrubbedPlace, ...]:
    """Each place once."""
    summed: dict[tuple[str, str], ScrubbedPlace] = {}
    for place in places:
        before = summed.get((place.where, place.done))
        found = place.found + (before.found if before else 0)
        summed[place.where, place.done] = place._replace(found=found)
    return tuple(summed.values())
