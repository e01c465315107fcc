"""The health of ctx at a glance: what it captured, what it gave, what it costs, and problems."""

import os
from collections import Counter
from contextlib import suppress
from typing import NamedTuple

from ctx import clock, disk, locks
from ctx.capture import event_table, session_table
from ctx.errors import CtxError
from ctx.hook_files import spool
from ctx.memory import receipts
from ctx.operations.capture_status import CaptureQueue, CaptureStop, capture_queue, capture_stops
from ctx.workspace import Memory

NOTE = "health"
"""In `CTX_HOME`: one line for agents, there only while something is wrong."""

_DAY_MS = 86_400_000
_DAYS = 7
_MANY = 1_000
_DATABASE_FILES = ("", "-wal", "-shm")
_NO_ROOM = 20 * 1024 * 1024


class Sizes(NamedTuple):
    """Bytes on disk."""

    store: int
    backups: int
    indexes: int
    spool: int


class Health(NamedTuple):
    """How capture and what is given to agents stand."""

    sessions: int
    queue: CaptureQueue
    worker: int | None
    """Its process, 0 if unknown; null if none runs, which is fine while no session is active."""
    tokens_today: int
    """What agents were given today."""
    tokens_a_day: int
    """The same, the mean of the last seven days."""
    model_tokens_today: int
    """What counts of what models were asked today (UTC): nothing, unless one is configured."""
    model_tokens_cap: int | None
    """What may; null where no model is configured, and none was asked today."""
    model_problem: str | None
    """Why no model summarises sessions, if one was tried in the last day."""
    sizes: Sizes
    paused: tuple[CaptureStop, ...]
    """Why capture is off, if it is."""
    problems: tuple[str, ...]


def health(memory: Memory) -> Health:
    store, graph_file = memory.environment.user_store, memory.environment.graph_file
    waits = capture_queue(memory)
    today = clock.iso(clock.now_ms())[:10]
    since = f"{clock.iso(clock.now_ms() - (_DAYS - 1) * _DAY_MS)[:10]}T00:00:00Z"
    given: Counter[str] = Counter()
    for day, _, tokens in receipts.tokens_by_day(memory.local, since, None):
        given[day] += tokens
    worker = _worker(store.worker_lock)
    models = _models(memory, today)
    return Health(
        sessions=session_table.count(memory.local),
        queue=waits,
        worker=worker,
        tokens_today=given[today],
        tokens_a_day=round(given.total() / _DAYS),
        model_tokens_today=models.tokens,
        model_tokens_cap=models.cap,
        model_problem=models.problem,
        sizes=Sizes(
            store=size_of(graph_file),
            backups=size_of(os.path.join(store.home, "backups")),
            indexes=size_of(store.code) + size_of(store.vectors),
            spool=size_of(os.path.join(store.home, spool.FOLDER)),
        ),
        paused=capture_stops(memory.environment),
        problems=tuple(_problems(memory, waits, worker)),
    )


class _Models(NamedTuple):
    tokens: int
    cap: int | None
    problem: str | None


def _models(memory: Memory, today: str) -> _Models:
    """How models stand. Where one is wanted and the ledger cannot be read, none is asked."""
    used, trouble = 0, None
    path = memory.environment.user_store.ledger
    if os.path.exists(path):
        from ctx.llm import ledger

        try:
            with ledger.reading(path) as connection:
                used = ledger.counted_on(connection, today) if connection else 0
        except CtxError as error:
            trouble = error.message
    config = memory.environment.user_config
    is_off = config.choice("llm.backend") == "off"
    if is_off and not used:
        return _Models(0, None, None)
    cap = config.integer("llm.daily_token_cap")
    return _Models(used, cap, None if is_off else trouble or _model_problem(memory))


def _model_problem(memory: Memory) -> str | None:
    """The last one, if it is the last that was heard of a model."""
    from ctx.operations import model_questions

    last = model_questions.last_problem(memory.local)
    if last is None or last.at < clock.iso(clock.now_ms() - _DAY_MS):
        return None
    return f"{last.at}: {last.data.get('message', '')}"


def note(home: str, found: Health) -> None:
    """Leave a line for agents where something is wrong, and take it away where nothing is."""
    path = os.path.join(home, NOTE)
    line = found.problems[0] if found.problems else ""
    with suppress(OSError):
        if not line:
            disk.discard(path)
        elif disk.read_or_none(path) != line.encode():
            disk.replace(path, line.encode())


def _problems(memory: Memory, waits: CaptureQueue, worker: int | None) -> list[str]:
    home = memory.environment.user_store.home
    found = []
    with suppress(OSError):
        room = os.statvfs(home)
        if room.f_bavail * room.f_frsize < _NO_ROOM:
            found.append("The disk is full: nothing more can be stored.")
    if given_up := _recently_failed_events(memory, waits):
        what = _events(given_up)
        found.append(f"{what} could not be processed; see `ctx doctor`.")
    names = spool.pending_names(home) if waits.waiting else []
    if waits.waiting > _MANY or spool.waits_long(names, clock.now_ms()):
        waiting = _events(waits.waiting)
        if worker is None:
            found.append(
                f"Events are not processed ({waiting}); start the worker: `ctx worker start`"
            )
        else:
            advice = "stop it with `ctx worker stop`, and hooks start a new one"
            found.append(f"The worker does not process events ({waiting} waiting); {advice}.")
    return found


def _recently_failed_events(memory: Memory, waits: CaptureQueue) -> int:
    """What is older than a day is no news: the doctor knows it, and agents need not."""
    since_ms = clock.now_ms() - _DAY_MS
    home = memory.environment.user_store.home
    failed = spool.failed_names(home) if waits.failed else []
    lately = sum(spool.made_ms(spool.id_of(name)) >= since_ms for name in failed)
    if waits.skipped:
        lately += event_table.count_skipped(memory.local, clock.iso(since_ms))
    return lately


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count:,} events"


def _worker(path: str) -> int | None:
    if not locks.is_held(path):
        return None
    with suppress(OSError, ValueError, IndexError):
        return int(disk.read_plain(path, 200).split()[0])
    # It started on a full disk, and could not write down which process it is.
    return 0


def as_text(found: Health) -> list[str]:
    """The lines of `ctx status`; none if nothing was ever captured."""
    models = _of_models(found)
    paused = [f"Not recorded: {each.why}; {each.advice}" for each in found.paused]
    problems = [*paused, *(f"Problem: {each}" for each in found.problems)]
    waits, sizes = found.queue, found.sizes
    if not found.sessions and not waits.waiting:
        return [*models, *problems]
    live = f" ({waits.live:,} live)" if waits.live else ""
    last = f", last stored {waits.last_stored}" if waits.last_stored else ""
    worker = "not running" if found.worker is None else f"running (pid {found.worker or '?'})"
    skipped = waits.skipped + waits.failed
    given = f"{found.tokens_today:,} tokens today, {found.tokens_a_day:,} a day over a week"
    on_disk = zip(("store", "backups", "indexes", "spool"), sizes, strict=True)
    return [
        f"Sessions: {found.sessions:,}{live}{last}",
        f"Capture: {waits.waiting + waits.new:,} waiting, {skipped:,} skipped; worker {worker}",
        f"Given to agents: {given}",
        *models,
        f"On disk: {', '.join(f'{what} {size / 1_000_000:,.1f} MB' for what, size in on_disk)}",
        *problems,
    ]


def _of_models(found: Health) -> list[str]:
    if found.model_tokens_cap is None:
        return []
    told = f"{found.model_tokens_today:,} of {found.model_tokens_cap:,} tokens used today"
    problem = f"; last problem {found.model_problem}" if found.model_problem else ""
    return [f"Models: {told}{problem}"]


def size_of(path: str) -> int:
    """The bytes of a folder, or of a file with what SQLite keeps beside it.

    Files that come and go while they are counted do not matter.
    """
    if os.path.isdir(path):
        return sum(
            _size(os.path.join(place, name)) for place, _, names in os.walk(path) for name in names
        )
    return sum(_size(f"{path}{end}") for end in _DATABASE_FILES)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
