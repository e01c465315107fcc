"""What `ctx status` says about the health of ctx, and how it was over the last days.

Nothing here is measured for the report: receipts, the event log and the log of hooks have it.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from ctx import clock, layout
from ctx.capture import event_table
from ctx.capture.event_table import SkipReason
from ctx.hook_files import hook_log, spool
from ctx.layout import Project, UserStore
from ctx.memory import event_log, receipts
from ctx.operations.health import Health, health, size_of
from ctx.workspace import Environment, Memory


class StoreSize(NamedTuple):
    """The files of one part of a store."""

    store: str
    """`user` or `project`."""
    what: str
    path: str
    size: int
    """Bytes."""
    is_derived: bool
    """Whether it can be deleted and is made again."""


DEFAULT_DAYS = 30

_DAY_MS = 86_400_000
_MOST_ERRORS = 20
_MOST_REASONS = 5
_AT_START = "SessionStart"
_WITH_PROMPT = "UserPromptSubmit"
_TIME_LENGTH = 20
"""Characters of the time at the beginning of a line in the log of hooks."""


class DayUse(NamedTuple):
    """The tokens that agents were given on a day (UTC)."""

    day: str
    at_start: int
    """With the start of sessions."""
    with_prompts: int
    on_request: int
    """Packs and answers that agents asked for."""

    @property
    def total(self) -> int:
        return self.at_start + self.with_prompts + self.on_request


class ContextTimes(NamedTuple):
    """How long hooks took to prepare the context at the start of a session."""

    contexts: int
    median_ms: int
    p95_ms: int
    slowest_ms: int


class HookError(NamedTuple):
    at: str
    text: str


class HealthReport(NamedTuple):
    health: Health
    budget: int
    """The most tokens that a session may be given at its start."""
    days: tuple[DayUse, ...]
    """All days up to today, also those without sessions."""
    context_times: ContextTimes | None
    """None if no session was given a context."""
    hook_errors: tuple[HookError, ...]
    """The last ones, newest first."""
    errors_today: int
    """How many in the last 24 hours."""
    skipped: tuple[SkipReason, ...]
    """Why events were given up."""
    sizes: tuple[StoreSize, ...]
    disk_free: int
    """Bytes that are free on the disk of the user store."""


def health_report(memory: Memory, days: int = DEFAULT_DAYS) -> HealthReport:
    now_ms = clock.now_ms()
    listed = [clock.iso(now_ms - ago * _DAY_MS)[:10] for ago in reversed(range(days))]
    since = f"{listed[0]}T00:00:00Z"
    errors = [
        HookError(line[:_TIME_LENGTH], line[_TIME_LENGTH:].strip())
        for line in _log(memory.environment.user_store.home)
    ]
    day_ago = clock.iso(now_ms - _DAY_MS)
    return HealthReport(
        health(memory),
        memory.environment.user_config.integer("context.budget"),
        _days(memory, listed, since),
        _context_times(event_log.durations(memory.local, event_log.CONTEXT, since)),
        tuple(reversed(errors[-_MOST_ERRORS:])),
        sum(each.at >= day_ago for each in errors),
        tuple(event_table.skip_reasons(memory.local, _MOST_REASONS)),
        disk_use(memory.environment),
        _disk_free(memory.environment.user_store.home),
    )


def _days(memory: Memory, listed: list[str], since: str) -> tuple[DayUse, ...]:
    found = {day: DayUse(day, 0, 0, 0) for day in listed}
    for day, event, tokens in receipts.tokens_by_day(memory.local, since, None):
        known = found.get(day, DayUse(day, 0, 0, 0))
        if event == _AT_START:
            known = known._replace(at_start=known.at_start + tokens)
        elif event == _WITH_PROMPT:
            known = known._replace(with_prompts=known.with_prompts + tokens)
        else:
            known = known._replace(on_request=known.on_request + tokens)
        found[day] = known
    return tuple(found[day] for day in sorted(found))


def _context_times(took: list[int]) -> ContextTimes | None:
    if not took:
        return None
    return ContextTimes(
        len(took), took[len(took) // 2], took[(len(took) * 95 - 1) // 100], took[-1]
    )


def _log(home: str) -> list[str]:
    with suppress(OSError):
        return hook_log.tail(home)
    return []


def _disk_free(home: str) -> int:
    with suppress(OSError):
        found = os.statvfs(home)
        return found.f_bavail * found.f_frsize
    return 0


def disk_use(environment: Environment) -> tuple[StoreSize, ...]:
    """All parts that exist: those of the user store, then those of the project in this folder."""
    project = layout.find_project(environment.folder, environment.user_store.home)
    found = [*_user_store(environment), *(_project_store(project) if project else ())]
    return tuple(each for each in found if each.size)


def _user_store(environment: Environment) -> Iterator[StoreSize]:
    store: UserStore = environment.user_store
    parts = (
        ("memory and captured sessions", environment.graph_file, False),
        ("backups", os.path.join(store.home, "backups"), False),
        ("model ledger", store.ledger, False),
        ("events that wait", os.path.join(store.home, spool.FOLDER), False),
        ("code indexes", store.code, True),
        ("vectors", store.vectors, True),
        ("worker log", store.worker_log, False),
        ("hook log", os.path.join(store.home, hook_log.NAME), False),
    )
    for what, path, is_derived in parts:
        yield StoreSize("user", what, path, size_of(path), is_derived)


def _project_store(project: Project) -> Iterator[StoreSize]:
    parts = (
        ("objects", project.objects, False),
        ("narrative", project.narrative, False),
        ("staged work", os.path.join(project.local, "stage"), False),
        ("indexes", project.indexes, True),
    )
    for what, path, is_derived in parts:
        yield StoreSize("project", what, path, size_of(path), is_derived)
