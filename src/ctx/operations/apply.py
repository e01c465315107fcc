"""Look after what hooks have left in the spool.

`commands` comes first, because a hook may be waiting for it: it does what agents asked for.
`events` takes in the rest, keeps receipts, and makes the contexts of the places anew.

Both may be interrupted anywhere and run again. Whoever runs holds a lock; the kernel lets go of it
when the process ends, however it ends.
"""

import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ctx import clock, disk, ids, layout
from ctx.config.resolve import survey
from ctx.errors import ContentRefused, CtxError
from ctx.layout import Place
from ctx.memory import pending, receipts
from ctx.operations import commands as doing
from ctx.operations.asked import asked_in
from ctx.operations.commands import Outcome
from ctx.operations.why import read_receipt
from ctx.retrieval import contexts, layers
from ctx.sessions import commands as grammar
from ctx.sessions import events as kept
from ctx.sessions import live, spool
from ctx.sessions.events import Event
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory

AUTHOR = "claude-code"

_LOCK = "LOCK"
_LOCK_S = 2.5
_POLL_S = 0.02
_LARGEST_FILE = 64 * 1024 * 1024 + 1
# Characters that no node should have.
_LARGE = 50_000
# A file that belongs to a session nobody came back to.
_OLD_MS = 30 * 86_400_000


class Stop(NamedTuple):
    """The commands of one answer, and what became of them."""

    event: str
    session: str
    done: int
    failed: int
    repeated: int
    large: int
    """The length of the longest content, where that is longer than anybody wants to read."""
    problem: str
    """Why the answer could not be read as a whole, if so."""


class Refused(NamedTuple):
    event: str
    kind: str
    reason: str


class Applied(NamedTuple):
    """The answer of `ctx hook apply`."""

    stops: tuple[Stop, ...]
    events: int
    receipts: int
    refused: tuple[Refused, ...]
    waiting: int
    """What is left: another process is at it, or the store could not be written to."""


NOTHING = Applied((), 0, 0, (), 0)


@contextmanager
def alone(home: str) -> Iterator[bool]:
    """Whether nobody else looks after the spool, until the block ends."""
    folder = spool.path_of(home, "")
    disk.make_folder(folder.rstrip("/"))
    fd = os.open(f"{folder}{_LOCK}", os.O_RDWR | os.O_CREAT, disk.FILE_MODE)
    deadline = clock.monotonic() + _LOCK_S
    try:
        while not (held := _locked(fd)) and clock.monotonic() < deadline:
            clock.sleep(_POLL_S)
        yield held
    finally:
        os.close(fd)


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True


def commands(memory: Memory, home: str, timeout_s: float) -> Applied:
    """Do what agents asked for in the answers that are waiting."""
    stops: list[Stop] = []
    refused: list[Refused] = []
    for name in filter(spool.has_commands, spool.waiting(home)):
        with _attempted(home, name) as tried:
            if tried is None:
                refused.append(_refusal(name, "It was tried three times."))
                continue
            try:
                event = kept.read(name, _said(home, tried))
            except ContentRefused as error:
                refused.append(_refusal(name, error.message))
            else:
                stops.append(_stop(memory, event, name, clock.monotonic() + timeout_s))
                with transaction(memory.graph.connection):
                    kept.keep(memory.graph.connection, event)
            disk.discard(spool.path_of(home, tried))
    return NOTHING._replace(stops=tuple(stops), refused=tuple(refused))


def _stop(memory: Memory, event: Event, name: str, deadline: float) -> Stop:
    """Do the commands of one answer, each once."""
    there = _memory_of(memory, event)
    asked, problem = asked_in(there, event, name, deadline)
    outcome = Outcome()
    longest = 0
    for claim, found in asked:
        done = doing.execute(there, found, claim)
        outcome = Outcome(*map(sum, zip(outcome, done, strict=True)))
        longest = max(longest, len(found.content) if isinstance(found, grammar.Command) else 0)
    large = longest if longest > _LARGE else 0
    return Stop(event.id, event.session, *outcome, large, problem)


def _memory_of(memory: Memory, event: Event) -> Memory:
    """The same store, from where the agent works."""
    folder = event.folder if os.path.isabs(event.folder) else memory.folder
    surroundings = memory.surroundings._replace(
        folder=folder, session=ids.session_id(event.session)
    )
    return Memory(memory.graph, surroundings, AUTHOR)


def events(memory: Memory, home: str) -> Applied:
    """Take in what hooks have reported, and make contexts anew."""
    taken_in = 0
    given = 0
    refused: list[Refused] = []
    folders: dict[str, None] = {}
    for name in spool.waiting(home):
        if spool.has_commands(name):
            continue
        with _attempted(home, name) as tried:
            if tried is None:
                refused.append(_refusal(name, "It was tried three times."))
                continue
            try:
                if spool.kind_of(name) == spool.RECEIPT:
                    _keep_receipt(memory, name, _said(home, tried))
                    given += 1
                else:
                    folders[_keep_event(memory, name, _said(home, tried))] = None
                    taken_in += 1
            except ContentRefused as error:
                refused.append(_refusal(name, error.message))
            disk.discard(spool.path_of(home, tried))
    for folder in filter(os.path.isabs, folders):
        _refresh(memory, layout.place(folder, home), home)
    with transaction(memory.graph.connection):
        kept.forget_old(memory.graph.connection)
        receipts.forget_old(memory.graph.connection)
    _forget_old_files(home)
    return NOTHING._replace(events=taken_in, receipts=given, refused=tuple(refused))


def _keep_receipt(memory: Memory, name: str, said: bytes) -> None:
    receipt = read_receipt(name, said)
    with transaction(memory.graph.connection):
        receipts.keep(memory.graph.connection, receipt)


def _keep_event(memory: Memory, name: str, said: bytes) -> str:
    """Keep an event; the folder that it happened in."""
    event = kept.read(name, said)
    with transaction(memory.graph.connection):
        kept.keep(memory.graph.connection, event)
    return event.folder


@contextmanager
def _attempted(home: str, name: str) -> Iterator[str | None]:
    """The event under the name that it has while it is being handled."""
    tried = spool.attempt(home, name)
    try:
        yield tried
    except (CtxError, OSError, sqlite3.DatabaseError) as error:
        # The store or the disk refused, and the event waits for a better moment. Where SQLite was
        # asked for something that makes no sense, it is the event's fault after all.
        is_misuse = isinstance(error, sqlite3.ProgrammingError | sqlite3.IntegrityError)
        if tried is not None and not is_misuse:
            spool.leave(home, tried)
        raise


def _said(home: str, name: str) -> bytes:
    return disk.read_plain(spool.path_of(home, name), _LARGEST_FILE)


def _refusal(name: str, reason: str) -> Refused:
    return Refused(spool.id_of(name), spool.kind_of(name), reason)


def _refresh(memory: Memory, place: Place, home: str) -> None:
    connection = memory.graph.connection
    environment = memory.surroundings.environment
    settings = contexts.settings(home, environment)
    if not layers.is_timeless(connection):
        return
    config = survey(memory.surroundings.user_store.config_file, None, environment, ())
    budget = config.integer("context.budget")
    with transaction(connection):
        task = pending.get(memory.graph, place.task_key)
        for part in range(1, layers.parts(budget) + 1):
            key = contexts.Key(place, settings, part)
            if contexts.ready(connection, key) is None:
                wanted = layers.Wanted(place.project, task, budget, part)
                made = layers.context(connection, wanted)
                contexts.keep(connection, key, made, clock.iso(clock.now_ms()))


def _forget_old_files(home: str) -> None:
    folder = live.path_of(home, "")
    before = (clock.now_ms() - _OLD_MS) / 1000
    for name in disk.names(folder):
        path = f"{folder}{name}"
        try:
            if os.stat(path).st_mtime < before:
                disk.discard(path)
        except FileNotFoundError:
            pass
