"""Remove a word, or every secret that the rules find, from everything stored.

Each part can be repeated, and a file marks a scrub in progress: the next scrub completes an
interrupted one, including free pages. Hooks continue meanwhile, so at the end everything is checked
again, byte by byte, and what is left is reported. Locks are taken in one order: sessions, the
spool, the store, the project.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
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
from ctx.operations import apply, worker_round
from ctx.redaction.needle import Needle
from ctx.sqlite.connection import JOURNALS, discard, explain_errors
from ctx.workspace import Memory

MARK = "scrubbing"
"""Beside the store: a scrub was begun, and has not come to its end."""

_PROJECTIONS = ("AGENTS.md", "CLAUDE.md")
_PROJECTED = b"<!-- ctx:projection"
_CHANGED_MEANWHILE = "it changed meanwhile: run the command again"
_OURS = "in a name that ctx uses itself: of a session, a type or a key"
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
    """What would be taken out, and where. Nothing is changed."""
    places: list[ScrubbedPlace] = []
    transcripts: tuple[str, ...] = ()
    if scope.database and user_store.store_exists(scope.database):
        with (
            explain_errors(scope.database),
            closing(user_store.open_for_reading(scope.database)) as opened,
        ):
            places += _rows(scrub_store.find(opened, needle, tick))
            transcripts = _transcripts(opened, needle)
        if not places and _in_free_pages(scope, needle):
            places.append(ScrubbedPlace(os.path.basename(scope.database), 1, "rewritten"))
    if scope.home and scope.database:
        places += _files(scope.home, scope.database, needle, acting=False)
    in_git: tuple[str, ...] = ()
    if scope.project:
        project = ScrubbedProject(scope.project, needle)
        places += project.look(tick)
        in_git = project.in_git()
    folders = _folders(scope, needle)
    return ScrubResult(
        True, needle.description, _merge_places(places), (), in_git, transcripts, folders
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
    return ScrubResult(False, needle.description, summed, tuple(left), in_git, transcripts, folders)


def _scrub_store(
    scope: ScrubScope, needle: Needle, tick: clock.Tick, known: tuple[str, ...]
) -> tuple[list[ScrubbedPlace], tuple[str, ...]]:
    assert scope.database
    mark = os.path.join(os.path.dirname(os.path.realpath(scope.database)), MARK)
    was_begun = os.path.exists(mark)
    with (
        explain_errors(scope.database),
        closing(user_store.open_for_writing(scope.database)) as opened,
    ):
        transcripts = known or _transcripts(opened, needle)
        in_free_pages = _in_free_pages(scope, needle)
        with disk.explain_errors("noting that a scrub was begun"):
            disk.replace(mark, b"")
        found = scrub_store.scrub(opened, needle, tick)
        places = _rows(found)
        is_needed = bool(found) or was_begun or in_free_pages
        # Rules cannot be applied to free pages.
        is_wiped = not (is_needed or needle.is_rules) or scrub_store.wipe(opened)
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
            if os.path.exists(path) and holds(path, needle):
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
        elif (after := scrub_files.rewritten(path, needle)) is not None:
            if acting:
                with disk.explain_errors("writing a file without what is to go"):
                    scrub_files.write(path, after)
            places.append(ScrubbedPlace(where, 1, "rewritten"))
    return places


def _remaining_places(scope: ScrubScope, needle: Needle) -> Iterator[RemainingPlace]:
    """What holds it after all, byte by byte."""
    if scope.database and user_store.store_exists(scope.database):
        name = os.path.basename(scope.database)
        with (
            explain_errors(scope.database),
            closing(user_store.open_for_reading(scope.database)) as opened,
        ):
            if scrub_store.find(opened, needle):
                yield RemainingPlace(name, _CHANGED_MEANWHILE)
        for suffix in JOURNALS[:1]:
            if holds(scope.database + suffix, needle):
                why = "another process reads the store: run the command again when it has ended"
                yield RemainingPlace(name + suffix, why)
        if holds(scope.database, needle):
            yield RemainingPlace(name, _OURS)
    if scope.home and scope.database:
        for path in scrub_files.files_beside(scope.home, scope.database):
            inside = needle.name(os.path.relpath(path, scope.home))
            if scrub_files.is_user_file(scope.home, path):
                if holds(path, needle) or (
                    needle.is_rules and scrub_files.rewritten(path, needle) is not None
                ):
                    yield RemainingPlace(inside, "it is your file: edit it")
            elif holds(path, needle):
                is_named = scrub_files.only_in_schema(path, needle)
                yield RemainingPlace(inside, _OURS if is_named else _CHANGED_MEANWHILE)
    if scope.project:
        yield from ScrubbedProject(scope.project, needle).left()
    for name in _PROJECTIONS:
        path = os.path.join(scope.folder, name)
        if scope.folder and holds(path, needle) and _PROJECTED in disk.read(path):
            yield RemainingPlace(
                name, "`ctx install --projection` rewrites the block of memory in it"
            )


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
        with (
            explain_errors(scope.database),
            closing(user_store.open_for_reading(scope.database)) as opened,
        ):
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
