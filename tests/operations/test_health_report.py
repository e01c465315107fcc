"""How ctx was over the last days: what agents were given, times and errors of hooks, disk."""

from pathlib import Path

from ctx import clock
from ctx.hook_files import hook_log
from ctx.ids import CLI_SESSION
from ctx.memory import event_log, receipts
from ctx.memory.receipts import Receipt
from ctx.operations.health_report import ContextTimes, DayUse, HealthReport, disk_use, health_report
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory
from tests.cli.conftest import add, project
from tests.synthesis.test_session_writer import open_writable

__all__ = ["add", "project"]

DAY_MS = 86_400_000


def report(surroundings: Path, folder: Path) -> HealthReport:
    with open_writable(surroundings, folder) as memory:
        return health_report(memory, days=3)


def give(
    memory: Memory,
    event: str,
    tokens: int,
    days_ago: int,
    took_ms: int | None,
    session: str = "s1",
) -> None:
    at_ms = clock.now_ms() - days_ago * DAY_MS
    at = clock.iso(at_ms)
    with transaction(memory.local):
        name = f"{at_ms:013d}-1-{event}{tokens}"
        receipts.keep(memory.local, Receipt(name, session, event, at, "app", tokens, ()))
        entry = event_log.EventLogEntry(at, session, event_log.CONTEXT, {}, took_ms, tokens)
        event_log.put(memory.local, entry)


def test_tokens_by_day_and_times(surroundings: Path, repo: Path) -> None:
    with open_writable(surroundings, repo) as memory:
        give(memory, "SessionStart", 900, 0, 40)
        give(memory, "UserPromptSubmit", 50, 0, None)
        give(memory, "query", 7, 0, None)
        # A person asked for this one.
        give(memory, "query", 5, 0, None, CLI_SESSION)
        give(memory, "SessionStart", 800, 2, 20)
        give(memory, "SessionStart", 999, 3, 500)
    found = report(surroundings, repo)
    today = clock.iso(clock.now_ms())[:10]
    assert found.days[-1] == DayUse(today, 900, 50, 7)
    assert found.days[-1].total == found.health.tokens_today == 957
    assert found.health.tokens_a_day == round((957 + 800 + 999) / 7)
    assert [day.at_start for day in found.days] == [800, 0, 900]
    assert found.context_times == ContextTimes(2, 40, 40, 40)


def test_errors_of_hooks_newest_first(surroundings: Path, repo: Path) -> None:
    home = str(surroundings / ".ctx")
    for number in range(25):
        hook_log.add(home, "stop", f"failed {number}")
    found = report(surroundings, repo)
    assert found.hook_errors[0].text == "stop failed 24"
    assert (len(found.hook_errors), found.errors_today) == (20, 25)


def test_sizes_of_both_stores(surroundings: Path, project: Path) -> None:
    with open_writable(surroundings, project) as memory:
        assert memory.graph.connections
        found = {(each.store, each.what): each for each in disk_use(memory.environment)}
    assert found["user", "memory and captured sessions"].size > 10_000
    assert found["project", "objects"].size > 0
    assert not found["project", "objects"].is_derived
    assert found["project", "indexes"].is_derived
    assert ("user", "backups") not in found
