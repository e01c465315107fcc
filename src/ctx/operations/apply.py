"""Process what hooks have left in the spool.

`commands` comes first, because a hook may be waiting for it: it runs the commands of agents.
`events` processes the rest, stores receipts, and prepares contexts. Both can be interrupted
anywhere and run again. The caller holds a lock, which the kernel releases when the process ends.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock, disk, ids, locks
from ctx.agent_commands import command_parser as grammar
from ctx.agent_commands.command_parser import Command, CommandProblem
from ctx.capture import capture_off, capture_pauses, repeated_commands, session_state, session_table
from ctx.capture import event_store as kept
from ctx.capture.capture_places import CapturePlaces
from ctx.capture.repeated_commands import ReadCommands
from ctx.context import contexts, default_view, layers
from ctx.context.contexts import ProjectStoreState
from ctx.errors import ContentRefused, CtxError
from ctx.hook_files import live, spool
from ctx.hosts.events import Event
from ctx.hosts.host_registry import FIRST, Hosts
from ctx.layout import Place
from ctx.memory import event_log, pending, receipts
from ctx.memory.receipts import HookReceipt, Receipt
from ctx.operations import agent_proposals, compact
from ctx.operations import run_agent_commands as doing
from ctx.operations.context import own_store
from ctx.operations.list_anchored import list_anchored
from ctx.operations.read_agent_commands import commands_in_answer
from ctx.operations.run_agent_commands import CommandOutcome
from ctx.operations.why import read_receipt
from ctx.project import trust_check
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory, for_agents

AUTHOR = FIRST

_LOCK = "LOCK"
_LOCK_S = 2.5
_LARGEST_FILE = 64 * 1024 * 1024 + 1
# Characters that no node should have.
_LARGE = 50_000
# A file of a session that did not continue.
_OLD_S = 30 * 86_400
_HOUR_S = 3_600
# By then a client has no transcript of it any more.
_FORGOTTEN_S = 400 * 86_400
# So many events are processed in one transaction.
_BATCH = 64


_REPEATED = (
    "It repeats a command from a prompt or from the output of a tool, so it counts as a"
    " quotation. The user can add it with `ctx add`."
)


class StopCommands(NamedTuple):
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
    proposed: int = 0
    """Those of what was done that the user has to decide about."""


class RefusedEvent(NamedTuple):
    event: str
    kind: str
    reason: str


class ApplyResult(NamedTuple):
    """The answer of `ctx hook apply`."""

    stops: tuple[StopCommands, ...]
    events: int
    receipts: int
    refused: tuple[RefusedEvent, ...]
    waiting: int
    """What is left: another process is at it, or the store could not be written to."""


NOTHING = ApplyResult((), 0, 0, (), 0)


@contextmanager
def hold_spool(home: str) -> Iterator[bool]:
    """Whether this process holds the spool, until the block ends."""
    with locks.try_hold(spool.path_of(home, _LOCK), _LOCK_S) as fd:
        yield fd is not None


def pending_events(memory: Memory, home: str) -> list[str]:
    """What waits in the spool for this store."""
    return spool.pending_names(home, _mark(memory, home))


def _mark(memory: Memory, home: str) -> str:
    return spool.mark_of(home, memory.environment.graph_file)


def commands(memory: Memory, home: str, timeout_s: float) -> ApplyResult:
    """Run the commands of agents in the answers that are waiting."""
    stops: list[StopCommands] = []
    refused: list[RefusedEvent] = []
    for name in spool.pending_commands(home, _mark(memory, home)):
        with _attempt_event(home, name) as tried:
            try:
                event = kept.read(name, _spool_content(home, tried), memory.environment.hosts)
            except ContentRefused as error:
                refused.append(_refusal(home, tried, error.message))
            else:
                stops.append(_stop(memory, event, name, clock.monotonic() + timeout_s))
                allowed = CapturePlaces(memory, home).allowed(event)
                with transaction(memory.local):
                    # While ctx is paused, commands run, but nothing else is stored.
                    made_ms = spool.made_ms(event.id)
                    was_paused = capture_pauses.is_paused(home, event.folder, made_ms)
                    if not was_paused and not _is_deleted(home, event):
                        kept.keep(memory.local, allowed)
                disk.discard(spool.path_of(home, tried))
    return NOTHING._replace(stops=tuple(stops), refused=tuple(refused))


def _stop(memory: Memory, event: Event, name: str, deadline: float) -> StopCommands:
    """Do the commands of one answer, each once."""
    folder = event.folder if os.path.isabs(event.folder) else memory.folder
    with for_agents(memory, folder, ids.session_id(event.session), event.host) as there:
        asked, problem = commands_in_answer(there, event, name, deadline)
        hosts = memory.environment.hosts
        read = _commands_in_read_text(hosts, event, name, [found for _, found in asked], deadline)
        # What could not be checked must not be visible to all sessions.
        may_pin = read.is_complete and agent_proposals.may_pin(there)
        outcome = CommandOutcome()
        longest = 0
        for claim, found in asked:
            checked = _unless_repeated(found, read)
            done = doing.execute(there, checked, claim, may_pin=may_pin)
            outcome = CommandOutcome(*map(sum, zip(outcome, done, strict=True)))
            longest = max(longest, len(found.content) if isinstance(found, Command) else 0)
        compact.compact_due(there)
    large = longest if longest > _LARGE else 0
    return StopCommands(event.id, event.session, *outcome[:3], large, problem, outcome.proposed)


def _commands_in_read_text(
    hosts: Hosts,
    event: Event,
    name: str,
    asked: Sequence[Command | CommandProblem],
    deadline: float,
) -> ReadCommands:
    """The commands in what the agent has read, if its own commands change memory."""
    writes = any(
        isinstance(each, Command) and each.name in repeated_commands.WRITING for each in asked
    )
    if not writes or not event.transcript:
        return repeated_commands.NOTHING_KNOWN
    transcripts, end = hosts.named(event.host).transcripts, spool.span_of(name)[1]
    return repeated_commands.in_transcript(transcripts, event.transcript, end, deadline)


def _unless_repeated(
    found: Command | CommandProblem, read: ReadCommands
) -> Command | CommandProblem:
    """A command, or why it is not carried out: it repeats what the agent has read."""
    if not isinstance(found, Command) or found.name not in repeated_commands.WRITING:
        return found
    if repeated_commands.digest(found) not in read.digests:
        return found
    return CommandProblem(grammar.command_start(found), _REPEATED, "", found.position)


def events(memory: Memory, home: str, timeout_s: float) -> ApplyResult:
    """Process the events of hooks, and prepare contexts.

    Commands that arrive meanwhile are run first: their hooks wait for our lock.
    """
    taken = NOTHING
    folders: dict[str, None] = {}
    names = [name for name in pending_events(memory, home) if not spool.has_commands(name)]
    for batch in _batches(names):
        taken = _sum(taken, _keep(memory, home, batch, folders))
        taken = _sum(taken, commands(memory, home, timeout_s))
    refresh(memory, folders, home)
    with transaction(memory.local):
        receipts.forget_old(memory.local)
        contexts.forget_old(memory.local)
        event_log.forget_old(memory.local)
    _forget_old_files(home)
    taken = _sum(taken, commands(memory, home, timeout_s))
    compact_ended(memory, folders, home)
    return taken


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """The events of one transaction. An event that failed before is processed alone: it may be the
    cause."""
    batch: list[str] = []
    for name in names:
        is_tried = name != spool.without_attempt_mark(name)
        if batch and (is_tried or len(batch) == _BATCH):
            yield batch
            batch = []
        batch.append(name)
        if is_tried:
            yield batch
            batch = []
    if batch:
        yield batch


def refresh(memory: Memory, folders: Iterable[str], home: str) -> None:
    """Make the contexts of some places anew, after memory has changed."""
    for folder in filter(os.path.isabs, folders):
        # What is wrong with one project is no harm to another.
        with suppress(CtxError):
            _refresh(memory, folder, home)


def compact_ended(memory: Memory, folders: Iterable[str], home: str) -> None:
    """Commit what is staged of agents in some places, once their sessions are over.

    Whether a session is over is read from the store, so that nothing is forgotten if a process was
    killed in between. A session that is resumed later starts a new chain.
    """
    for folder in filter(os.path.isabs, folders):
        _compact_ended(memory, folder, home)


def _compact_ended(memory: Memory, folder: str, home: str) -> None:
    if memory.environment.is_single_store:
        return
    project = trust_check.trusted_project(home, folder)
    if project is None:
        return
    for name in disk.names(os.path.join(project.refs, "work")):
        is_over = kept.is_over(memory.local, name)
        if is_over and not live.is_live(home, name, clock.wall_s()):
            known = session_state.find(memory.local, name)
            author = known.client if known else AUTHOR
            with for_agents(memory, folder, ids.session_id(name), author) as there:
                if there.project_memory is not None:
                    compact.compact(
                        there.project_memory, there.session, "the agent's session has ended"
                    )


def _sum(one: ApplyResult, other: ApplyResult) -> ApplyResult:
    return ApplyResult(
        (*one.stops, *other.stops),
        one.events + other.events,
        one.receipts + other.receipts,
        (*one.refused, *other.refused),
        one.waiting + other.waiting,
    )


def _keep(memory: Memory, home: str, names: Sequence[str], folders: dict[str, None]) -> ApplyResult:
    """Take in some events and receipts at once: all of them are durable together."""
    refused: list[RefusedEvent] = []
    found: list[tuple[str, Event | HookReceipt]] = []
    with ExitStack() as stack:
        for name in names:
            tried = stack.enter_context(_attempt_event(home, name))
            try:
                said = _spool_content(home, tried)
                is_receipt = spool.kind_of(name) == spool.RECEIPT
                hosts = memory.environment.hosts
                found.append(
                    (tried, read_receipt(name, said))
                    if is_receipt
                    else (tried, kept.read(name, said, hosts))
                )
            except ContentRefused as error:
                refused.append(_refusal(home, tried, error.message))
        places = CapturePlaces(memory, home)
        with transaction(memory.local):
            for _, each in found:
                if _is_deleted(home, each.receipt if isinstance(each, HookReceipt) else each):
                    continue
                if isinstance(each, HookReceipt):
                    if receipts.keep(memory.local, each.receipt):
                        _log(memory, each)
                else:
                    for event in (each, *each.further):
                        kept.keep(memory.local, places.allowed(event))
                    folders[each.folder] = None
    for tried, _ in found:
        disk.discard(spool.path_of(home, tried))
    given = sum(isinstance(each, HookReceipt) for _, each in found)
    return NOTHING._replace(events=len(found) - given, receipts=given, refused=tuple(refused))


def _is_deleted(home: str, said: Event | Receipt) -> bool:
    """Whether its session was deleted while this waited in the spool."""
    gone_ms = session_table.at_ms(home, said.session)
    return gone_ms > 0 and spool.made_ms(said.id) <= gone_ms


def _log(memory: Memory, handed: HookReceipt) -> None:
    """Record the cost of what an agent was given."""
    receipt, made = handed
    data: dict[str, object] = {"tokens": receipt.tokens, "items": len(receipt.items)}
    kind, took_ms = event_log.RELEVANT, None
    if receipt.event == "SessionStart":
        config = memory.environment.user_config
        kind, took_ms = event_log.CONTEXT, made.get("build_ms")
        data |= {**made, "budget": config.integer("context.budget")}
    took_ms = took_ms if isinstance(took_ms, int) else None
    event_log.put(
        memory.local,
        event_log.EventLogEntry(receipt.at, receipt.session, kind, data, took_ms, receipt.tokens),
    )


@contextmanager
def _attempt_event(home: str, name: str) -> Iterator[str]:
    """The event under the name that it has while it is being handled."""
    tried = spool.attempt(home, name)
    try:
        yield tried
    except (CtxError, OSError, sqlite3.DatabaseError) as error:
        # The store or the disk failed, and the event is tried later. If SQLite rejected the
        # statement, the event itself is the cause.
        is_misuse = isinstance(error, sqlite3.ProgrammingError | sqlite3.IntegrityError)
        if not is_misuse and os.path.lexists(spool.path_of(home, tried)):
            spool.leave(home, tried)
        raise


def _spool_content(home: str, name: str) -> bytes:
    """What a file of the spool says. `ContentRefused` where that cannot be found out."""
    if spool.is_hopeless(name):
        raise ContentRefused("It was tried three times.")
    try:
        return disk.read_plain(spool.path_of(home, name), _LARGEST_FILE)
    except OSError as error:
        raise ContentRefused(f"It cannot be read: {error.strerror}.") from error


def _refusal(home: str, name: str, reason: str) -> RefusedEvent:
    """Set aside an event that cannot be stored: that it arrived, and the problem.

    Its content may be secret or private, which cannot be checked in something unreadable: it is
    dropped.
    """
    path = spool.path_of(home, name)
    if os.path.isfile(path) and not os.path.islink(path):
        disk.replace(path, f"{reason}\n".encode())
    spool.give_up(home, name)
    return RefusedEvent(spool.id_of(name), spool.kind_of(name), reason)


def _refresh(memory: Memory, folder: str, home: str) -> None:
    """Make the contexts of a place anew, if they are not what memory is now."""
    with for_agents(memory, folder, memory.session, AUTHOR) as there:
        own, stores = own_store(there), there.graph.connections
        is_timeless = default_view.is_timeless(stores)
        if not is_timeless or _keep_contexts(memory, stores, own, there.place, home):
            list_anchored(there, home)


def _keep_contexts(
    memory: Memory, stores: Sequence[Connection], own: ProjectStoreState, place: Place, home: str
) -> bool:
    """Whether one of them was out of date."""
    is_made = False
    environment = memory.environment.variables
    # Hooks use these contexts. They have no `--set`, whatever this process was started with.
    config = memory.environment._replace(overrides=()).user_config
    budget = config.integer("context.budget")
    task = pending.current_task(memory.user, place.task_key)
    for part in range(1, layers.parts(budget) + 1):
        key = contexts.key_of(place, home, environment, part, own)
        if contexts.valid_context(memory.local, key) is None:
            is_made = True
            # No hook waits while it is composed; whether it is still valid is checked again.
            before = contexts.current_state(memory.local, key)
            notice = contexts.notice(key, own)
            wanted = layers.ContextRequest(place.project, task, budget, part, notice)
            made = layers.context(stores, wanted)
            with transaction(memory.local):
                if contexts.current_state(memory.local, key) == before:
                    contexts.keep(memory.local, key, made, clock.iso(clock.now_ms()))
    return is_made


def _forget_old_files(home: str) -> None:
    """Small files of sessions long ago, what was given up, what killed hooks did not finish."""
    now_s, year_s = clock.wall_s(), clock.YEAR_MS / 1000
    places = (
        (live.path_of(home, ""), _OLD_S, ""),
        (f"{spool.path_of(home, spool.FAILED)}/", _OLD_S, ""),
        (f"{home}/{capture_off.FOLDER}/", _FORGOTTEN_S, ""),
        (spool.path_of(home, ""), _HOUR_S, "tmp-"),
    )
    for folder, age_s, prefix in places:
        for name in disk.names(folder):
            path = f"{folder}{name}"
            with suppress(OSError):
                overdue_s = now_s - age_s - os.stat(path).st_mtime
                # More than a year: the clock has leapt ahead, see `clock.expired_range`.
                if name.startswith(prefix) and 0 < overdue_s < year_s:
                    os.unlink(path)
