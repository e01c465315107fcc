"""Checks of the store and of the files that hooks write beside it. They change nothing."""

import os
import shlex
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from sqlite3 import Connection
from typing import Literal, NamedTuple, TypeVar

import ctx
from ctx import clock, disk, layout
from ctx.capture import event_table
from ctx.config.resolve import survey
from ctx.context import layers, project_store_context
from ctx.context.context_page import MOST_PINNED
from ctx.errors import CtxError, DatabaseFailure
from ctx.exchange.foreign import go_ctx
from ctx.hook_files import hook_log, spool
from ctx.memory import conflicts, records, replicas, stats, user_store
from ctx.memory.migrations import MIGRATIONS
from ctx.objects.object_store import read_typed
from ctx.objects.object_types import Commit
from ctx.objects.repository import Repository
from ctx.operations import review, store_backups
from ctx.operations.capture_status import capture_stops
from ctx.project import given, trust_check, trust_list
from ctx.sqlite import truth
from ctx.sqlite.connection import JOURNALS, explain_errors, path_text, size_of
from ctx.sync import target_settings
from ctx.workspace import Environment, open_memory

_LITTLE_ROOM = 200 * 1024 * 1024
_NO_ROOM = 20 * 1024 * 1024
_DAY_MS = 86_400_000
_LONG_MS = 10 * 60_000
"""Events are processed within minutes; older ones mean that nothing processes them."""
_MOST_REASONS = 5
_Answer = TypeVar("_Answer")


class DoctorCheck(NamedTuple):
    name: str
    state: Literal["ok", "warning", "problem"]
    seen: str
    advice: str
    """What to do; empty if nothing is needed."""


def store_checks(environment: Environment) -> Iterator[DoctorCheck]:
    """All checks of the store and its folder."""
    checks: dict[str, Callable[[Environment], Iterator[DoctorCheck]]] = {
        "ctx": _program,
        "clock": _clock,
        "store": _store,
        "permissions": _permissions,
        "disk space": _disk_space,
        "settings": _configuration,
        "project store": _project_store,
        "conflicts": _conflicts,
        "pinned nodes": _pinned,
        "capture": _capture,
        "hook errors": _hook_errors,
        "sync": _sync,
    }
    if blocks_folder(environment.user_store.home):
        checks = {"ctx": _program, "clock": _clock, "store": _no_folder, "disk space": _disk_space}
    for name, check in checks.items():
        yield from guard_check(name, check(environment))


def blocks_folder(folder: str) -> bool:
    """Whether a file or a broken link is in place of a folder."""
    return os.path.lexists(folder) and not os.path.isdir(folder)


def nearest_folder(path: str) -> str:
    """The folder itself, or the nearest existing one above it."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def guard_check(name: str, checks: Iterator[DoctorCheck]) -> Iterator[DoctorCheck]:
    """The results of a check; if it fails, the error as a problem."""
    try:
        with disk.explain_errors("looking at it"):
            yield from checks
    except CtxError as error:
        yield DoctorCheck(name, "problem", error.message, error.hint or "")


def ok(name: str, seen: str) -> DoctorCheck:
    return DoctorCheck(name, "ok", seen, "")


def _program(_environment: Environment) -> Iterator[DoctorCheck]:
    python = ".".join(map(str, sys.version_info[:3]))
    where = os.path.dirname(os.path.abspath(ctx.__file__))
    description = (
        f"{ctx.__version__}, Python {python}, SQLite {sqlite3.sqlite_version}: {path_text(where)}"
    )
    yield ok("ctx", description)


def _clock(environment: Environment) -> Iterator[DoctorCheck]:
    """Whether the wall clock is plausible, and whether an earlier one was not."""
    wall_ms = clock.wall_ms()
    wall_time = clock.iso(wall_ms)
    if clock.is_wrong():
        seen = f"The clock of this machine says {wall_time}, which is wrong."
        advice = "Set it. Changes made meanwhile have wrong times."
        yield DoctorCheck("clock", "problem", seen, advice)
    elif (newest_ms := _newest_ms(environment)) > wall_ms + _DAY_MS:
        seen = (
            f"It says {wall_time}, and the newest change in memory is from {clock.iso(newest_ms)}."
        )
        advice = (
            "Set it if it is wrong. Otherwise another clock was ahead; later changes still win."
        )
        yield DoctorCheck("clock", "warning", seen, advice)
    else:
        yield ok("clock", wall_time)


def _newest_ms(environment: Environment) -> int:
    """The time of the newest record in the user store, or of the newest commit of the project."""
    last = _ask_store(environment.graph_file, records.last_stamp)
    times_ms = [clock.stamp_ms(last)] if last else []
    if project := layout.find_project(environment.folder, environment.user_store.home):
        repository = Repository(project)
        with suppress(CtxError):
            for head in repository.named_heads():
                with suppress(CtxError):
                    commit = read_typed(repository.objects, head, Commit)
                    times_ms.append(commit.timestamp_unix * 1000)
    return max(times_ms, default=0)


def _no_folder(environment: Environment) -> Iterator[DoctorCheck]:
    seen = (
        f"{path_text(environment.user_store.home)} is not a folder, so it cannot be the user store."
    )
    yield DoctorCheck("store", "problem", seen, "Move it away, or set CTX_HOME to a folder.")


def _store(environment: Environment) -> Iterator[DoctorCheck]:
    path = environment.graph_file
    if not size_of(path):
        folder = nearest_folder(os.path.dirname(path))
        advice = "`ctx install` or the first `ctx add` creates it."
        if not os.access(folder, os.W_OK | os.X_OK):
            advice = f"It cannot be created: `ls -ld {shlex.quote(path_text(folder))}` shows why."
        seen = f"{path_text(path)} does not exist yet."
        if environment.is_single_store:
            advice = f"Check --db or CTX_DB. {advice}"
            yield DoctorCheck("store", "problem", seen, advice)
        else:
            yield DoctorCheck("store", "warning", seen, advice)
        yield from _check_lost_nodes(path)
    elif go_ctx.is_go_store(path):
        seen = f"{path_text(path)} is a store of the Go program `ctx`."
        yield DoctorCheck("store", "warning", seen, "`ctx status` imports it, and keeps a copy.")
    elif truth.application_id_of(path) not in (None, user_store.APPLICATION_ID):
        seen = f"{path_text(path)} is a database of another program."
        yield DoctorCheck("store", "problem", seen, "Move it elsewhere, or set CTX_DB or CTX_HOME.")
    elif problems := truth.check_truth(path):
        advice = "See `ctx store recover --dry-run`."
        yield DoctorCheck("store", "problem", f"{path_text(path)}: {problems[0]}", advice)
    else:
        yield _contents(path)
        if _ask_store(path, stats.has_nodes) is False:
            yield from _check_lost_nodes(path)


def _check_lost_nodes(path: str) -> Iterator[DoctorCheck]:
    """If memory is empty, whether a backup has nodes."""
    full = [each for each in store_backups.list_backups(path).backups if each.nodes]
    if full:
        nodes, at = full[0].nodes or 0, full[0].at
        seen = f"It is empty, and the backup from {at} has {nodes:,} {_nodes(nodes)}."
        advice = f"`ctx restore --backup {full[0].name}` restores them."
        yield DoctorCheck("store", "warning", seen, advice)


def _nodes(count: int) -> str:
    return "node" if count == 1 else "nodes"


def _contents(path: str) -> DoctorCheck:
    try:
        with (
            explain_errors(path),
            closing(
                truth.read_truth(
                    path, application_id=user_store.APPLICATION_ID, migrations=MIGRATIONS
                )
            ) as connection,
        ):
            nodes = stats.count_nodes(connection)
    except DatabaseFailure as error:
        return DoctorCheck("store", "warning", error.message, "`ctx status` updates it.")
    size = (size_of(path) + size_of(f"{path}-wal")) / 1_000_000
    contents = f"{nodes:,} {_nodes(nodes)}, {size:,.1f} MB, whole"
    return ok("store", f"{path_text(path)}: {contents}")


def _permissions(environment: Environment) -> Iterator[DoctorCheck]:
    """Whether only the owner can read the store."""
    home, database = environment.user_store.home, environment.graph_file
    folder = nearest_folder(home)
    needed = os.W_OK | os.X_OK | (os.R_OK if folder == home else 0)
    if not os.access(folder, needed):
        seen = f"{path_text(folder)} is not writable."
        quoted = shlex.quote(path_text(folder))
        advice = f"`ls -ld {quoted}` shows its owner; CTX_HOME sets another folder."
        yield DoctorCheck("permissions", "problem", seen, advice)
        return
    if folder != home:
        return
    paths = [home, *(os.path.join(home, name) for name in disk.names(home))]
    paths += [f"{database}{suffix}" for suffix in ("", *JOURNALS)]
    open_ones = [path for path in dict.fromkeys(paths) if _is_open(path)]
    if open_ones:
        more = f" and {len(open_ones) - 1:,} more" if len(open_ones) > 1 else ""
        wide = home if open_ones[0].startswith(home) else database
        advice = f"`chmod -R go= {shlex.quote(path_text(wide))}` makes it private."
        seen = f"Others can read {path_text(open_ones[0])}{more}."
        yield DoctorCheck("permissions", "warning", seen, advice)
    else:
        yield ok("permissions", f"{path_text(home)} is private")


def _is_open(path: str) -> bool:
    try:
        return not os.path.islink(path) and bool(os.stat(path).st_mode & 0o077)
    except FileNotFoundError:
        return False


def _disk_space(environment: Environment) -> Iterator[DoctorCheck]:
    folder = nearest_folder(environment.user_store.home)
    disk_there = os.statvfs(folder)
    free = disk_there.f_bavail * disk_there.f_frsize
    seen = f"{free / 1_000_000:,.0f} MB free on the disk of {path_text(folder)}"
    if free < _LITTLE_ROOM:
        state: Literal["warning", "problem"] = "problem" if free < _NO_ROOM else "warning"
        yield DoctorCheck(
            "disk space", state, seen, "Free disk space, or nothing more can be stored."
        )
    else:
        yield ok("disk space", seen)


def _configuration(environment: Environment) -> Iterator[DoctorCheck]:
    home = environment.user_store.home
    project = trust_check.trusted_project(home, environment.folder)
    config = survey(
        environment.user_store.config_file,
        project.config_file if project else None,
        environment.variables,
        environment.overrides,
    )
    for problem in config.problems:
        yield DoctorCheck("settings", "problem", problem.message, problem.hint or "")
    for warning in config.warnings:
        yield DoctorCheck("settings", "warning", warning, "See `ctx config list`.")
    if not config.problems and not config.warnings:
        set_ones = len(config.mentions)
        yield ok("settings", f"{set_ones:,} set" if set_ones else "all defaults")
    if environment.variables.get("CTX_OFF", "") not in ("", "0"):
        seen = "CTX_OFF is set: hooks do nothing."
        yield DoctorCheck("switched off", "warning", seen, "To turn them on: `unset CTX_OFF`")


def _project_store(environment: Environment) -> Iterator[DoctorCheck]:
    """Whether the project store is trusted, so that agents see it."""
    home = environment.user_store.home
    if trust_list.is_broken(home):
        seen = f"{path_text(trust_list.path_of(home))} cannot be read, so no project is trusted."
        advice = "`ctx trust` moves it aside, and starts a new one."
        yield DoctorCheck("project store", "warning", seen, advice)
    project = layout.find_project(environment.folder, home)
    if project is None:
        return
    verdict, known = trust_check.verify(home, project), trust_list.find(home, project)
    aside = os.path.join(home, f"{given.NAME}{given.BROKEN}")
    if os.path.exists(aside):
        seen = f"The list of what agents are given was damaged, and is now {path_text(aside)}."
        advice = "`ctx review` lists what they are not given any more. Then remove the file."
        yield DoctorCheck("given", "warning", seen, advice)
    if not layout.names_repo(project.config_file):
        yield _incomplete_config(project, environment.folder)
    if verdict.is_trusted and known:
        yield ok("project store", f"{path_text(project.store)}, trusted since {known.at[:10]}")
        return
    why = f" any more: {' and '.join(verdict.differs)}" if verdict.differs else ""
    seen = f"{path_text(project.store)} is not trusted{why}. Agents are told only that it exists."
    advice = "To review and trust it: `ctx trust`"
    yield DoctorCheck("project store", "warning", seen, advice)


def _incomplete_config(project: layout.Project, folder: str) -> DoctorCheck:
    """What to do about a project store whose configuration file is missing or lacks `[repo]`."""
    path = project.config_file
    is_there = os.path.lexists(path)
    what = "has no section [repo], so its" if is_there else "is missing, so the"
    here = os.path.realpath(folder)
    above = [] if here == project.root else [os.path.relpath(project.root, here)]
    advice = f"`{shlex.join(['ctx', 'init', *above])}` completes it."
    if project.checkout:
        restore = f"git checkout -- {shlex.quote(os.path.relpath(path, here))}"
        advice = f"If git has it, `{restore}` restores it. Otherwise {advice}"
    return DoctorCheck(
        "project store", "warning", f"{path_text(path)} {what} defaults apply.", advice
    )


def _conflicts(environment: Environment) -> Iterator[DoctorCheck]:
    """Whether two branches changed the same node, and nobody has decided yet."""
    home = environment.user_store.home
    project = layout.find_project(environment.folder, home)
    is_readable = project and trust_check.verify(home, project).is_trusted
    if not is_readable or not os.path.exists(environment.user_store.database):
        return
    with open_memory(environment, writing=False) as memory:
        here = memory.project_memory
        found = conflicts.find_conflicts(here.graph) if here else []
    if found:
        seen = f"{review.conflicts_text(len(found))} after a merge."
        yield DoctorCheck("conflicts", "warning", seen, "To decide: `ctx review`")


def _pinned(environment: Environment) -> Iterator[DoctorCheck]:
    """Whether the pinned nodes are so long that agents do not get them whole."""
    home, folder = environment.user_store.home, environment.folder
    place = layout.place(folder, home, partial(trust_list.is_trusted, home))
    project = None if environment.is_single_store else layout.find_project(folder, home)
    with ExitStack() as opened:
        own = project_store_context.read(home, project).connection if project else None
        stores = [opened.enter_context(closing(own))] if own else []
        size = _ask_store(
            environment.graph_file,
            lambda user: layers.pinned_tokens([*stores, user], place.project),
        )
    if size and size > MOST_PINNED:
        seen = f"They take {size:,} tokens. Agents get them shortened, to {MOST_PINNED:,}."
        advice = "`ctx list --tag tier:pinned` lists them. Shorten some, or `ctx unpin ID`."
        yield DoctorCheck("pinned nodes", "warning", seen, advice)


def _capture(environment: Environment) -> Iterator[DoctorCheck]:
    """When hooks last reported an event, and which events wait or failed."""
    home, now = environment.user_store.home, clock.now_ms()
    waiting = spool.pending_names(home)
    made = [spool.made_ms(spool.id_of(name)) for name in waiting]
    last = max([*made, _last_event(environment.graph_file)])
    seen = (
        f"the last event came {clock.age(max(0, now - last) / 1000)} ago"
        if last
        else "no event has come yet"
    )
    seen += f", {len(waiting):,} waiting" if waiting else ""
    if waiting and now - min(made) > _LONG_MS:
        seen_with_age = f"{seen}, the oldest for {clock.age((now - min(made)) / 1000)}."
        yield DoctorCheck("capture", "warning", seen_with_age, "To process them: `ctx hook apply`")
    else:
        yield ok("capture", seen)
    for each in capture_stops(environment):
        yield DoctorCheck("capture", "warning", f"Nothing is recorded: {each.why}.", each.advice)
    if failed := spool.failed_names(home):
        folder = path_text(spool.path_of(home, spool.FAILED))
        seen = f"Unreadable events set aside: {len(failed):,}."
        advice = f"They are in {folder}: inspect them, then delete them."
        yield DoctorCheck("capture", "warning", seen, advice)
    yield from _check_skipped_events(environment.graph_file)


def _check_skipped_events(path: str) -> Iterator[DoctorCheck]:
    """Stored events that could not be processed. Old ones are not a warning."""
    since = clock.iso(clock.now_ms() - _DAY_MS)
    reasons = _ask_store(path, lambda store: event_table.skip_reasons(store, _MOST_REASONS)) or ()
    for reason, count, at, session, event, tool in reasons:
        what = f"{event} of {tool}" if tool else event
        many = "1 event was" if count == 1 else f"{count:,} events were"
        seen = f"{many} skipped, the last at {at} ({what}, session {session}): {reason}"
        if at >= since:
            yield DoctorCheck(
                "capture", "warning", seen, "The rest was recorded. Please report this."
            )
        else:
            yield ok("capture", seen)


def _last_event(path: str) -> int:
    """The time of the newest event in the store; 0 if there is none."""
    return (
        clock.parse_iso(_ask_store(path, lambda store: event_table.last_at(store) or "") or "") or 0
    )


def _ask_store(path: str, question: Callable[[Connection], _Answer]) -> _Answer | None:
    """The result of a query on the store, or None if it cannot be read; other checks report why."""
    if truth.application_id_of(path) != user_store.APPLICATION_ID:
        return None
    try:
        with explain_errors(path), closing(truth.connect_for_reading(path)) as connection:
            return question(connection)
    except CtxError:
        return None


def _hook_errors(environment: Environment) -> Iterator[DoctorCheck]:
    """Errors of hooks in the last day, from their log."""
    path = os.path.join(environment.user_store.home, hook_log.NAME)
    since = clock.iso(clock.now_ms() - _DAY_MS)
    lines = [line for line in hook_log.tail(environment.user_store.home) if line[:20] >= since]
    if lines:
        seen = f"{len(lines):,} in the last day; the last one: {lines[-1]}"
        yield DoctorCheck(
            "hook errors", "warning", seen, f"`tail {shlex.quote(path_text(path))}` shows more."
        )
    else:
        yield ok("hook errors", "none in the last day")


def _sync(environment: Environment) -> Iterator[DoctorCheck]:
    """Whether the last sync with each target failed."""
    store = environment.user_store
    if not os.path.isdir(store.sync):
        return
    for target in target_settings.targets(store):
        state = _ask_store(store.database, partial(replicas.target_state, target=target.replica))
        if state and state.problem:
            seen = f"{target.name}: {state.problem}"
            advice = f"To try again: `ctx sync {target.name}`"
            yield DoctorCheck("sync", "warning", seen, advice)
