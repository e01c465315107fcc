"""The layer of commands: what is run in a project to test, lint, build and start, and its traps.

    ## Commands that work here
    - test: `pnpm vitest run` (14 runs in 6 sessions)
    - `pytest` fails ("No module named app"); `PYTHONPATH=src python -m pytest` works

The newest session that shows the outcome of a command decides whether it works. A trap is listed if
two sessions failed for the same reason, in the last 60 days, and no later one ran the same command
with success.

Hooks load this module.
"""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.context import hook_queries
from ctx.context.layer_lines import LayerLine, cut, digest
from ctx.markdown import code, flat

_PURPOSES = ("test", "lint", "build", "start", "other")
_MOST_OF_A_PURPOSE = {"test": 3, "lint": 2, "build": 2, "start": 2, "other": 1}
_MOST_TRAPS = 4
_FEWEST_SESSIONS = 2
_TRAP_EXPIRES_DAYS = 60
_LENGTHS = (140, 100)


class _ShownCommand(NamedTuple):
    """One command over several sessions."""

    command: str
    purpose: str
    runs: int
    sessions: int
    is_newest: bool
    """Whether the newest session ran it."""
    last_at: str
    last: str
    """The newest known outcome."""
    problem: str = ""
    """Why it fails, if it is a trap."""
    replaced_by: str = ""


def lines(connection: Connection, project: str | None, without: str) -> list[LayerLine]:
    """The commands of a project, most useful first."""
    removed = hook_queries.removed_commands(connection, project)
    every = hook_queries.session_commands(connection, project, without)
    rows = [row for row in every if flat(row[1]) not in removed]
    by_command: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        by_command.setdefault(row[1], []).append(row)
    shown = [_command_of_rows(each, every[0][0]) for each in by_command.values()]
    working = {purpose: _working_commands(shown, purpose) for purpose in _PURPOSES}
    first = [each for name in _PURPOSES[1:4] for each in working[name][:1]]
    rest = [each for name in _PURPOSES for each in working[name][name != "other" :]]
    rest.sort(key=lambda each: -each.sessions)
    return [_line(each) for each in (*working["test"][:1], *_traps(rows, removed), *first, *rest)]


def _command_of_rows(rows: Sequence[Sequence[Any]], newest: str) -> _ShownCommand:
    """The rows of one command, newest session first."""
    return _ShownCommand(
        rows[0][1],
        rows[0][2],
        runs=sum(row[3] for row in rows),
        sessions=len(rows),
        is_newest=rows[0][0] == newest,
        last_at=rows[0][6],
        last=next((row[7] for row in rows if row[7]), ""),
    )


def _traps(rows: Sequence[Sequence[Any]], removed: set[str]) -> list[_ShownCommand]:
    """What fails here, each reason once."""
    sessions = list(dict.fromkeys(row[0] for row in rows))
    last: dict[str, str] = {}
    worked: dict[str, int] = {}
    by_reason: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        last.setdefault(row[1], row[7])
        if row[7] == "passed":
            worked.setdefault(row[1], sessions.index(row[0]))
        if row[8]:
            by_reason.setdefault(row[8], []).append(row)
    today = clock.day_number(clock.now_ms())
    found: list[_ShownCommand] = []
    for reason, failed in by_reason.items():
        newest = sessions.index(failed[0][0])
        count = len({row[0] for row in failed})
        is_gone = any(worked.get(row[1], newest) < newest for row in failed)
        age = today - clock.day_number(clock.parse_iso(failed[0][6]) or 0)
        if count >= _FEWEST_SESSIONS and age <= _TRAP_EXPIRES_DAYS and not is_gone:
            # The newest one that shows what worked then.
            shows = (
                row
                for row in failed
                if row[9] and last.get(row[9]) != "failed" and flat(row[9]) not in removed
            )
            row = next(shows, [*failed[0][:9], ""])
            shown = _command_of_rows([row], "")
            found.append(shown._replace(sessions=count, problem=reason, replaced_by=row[9]))
    found.sort(key=lambda each: -each.sessions)
    return found[:_MOST_TRAPS]


def _working_commands(shown: Iterable[_ShownCommand], purpose: str) -> list[_ShownCommand]:
    """The commands of one purpose, those of most sessions first."""
    found = [
        each
        for each in shown
        if each.purpose == purpose
        and each.last != "failed"
        and (each.sessions >= _FEWEST_SESSIONS or (each.is_newest and each.last == "passed"))
    ]
    found.sort(key=lambda each: (-each.sessions, -each.runs, len(each.command), each.command))
    kept: list[_ShownCommand] = []
    for each in found:
        # A run of one test tells nothing that the run of all does not.
        if not any(each.command.startswith(f"{wider.command} ") for wider in kept):
            kept.append(each)
    return kept[: _MOST_OF_A_PURPOSE[purpose]]


def _line(each: _ShownCommand) -> LayerLine:
    texts = tuple(dict.fromkeys(f"- {_command_text(each, length)}" for length in _LENGTHS))
    state = f"{each.command} {each.last} {each.problem} {each.replaced_by}"
    label = f"command:{flat(each.command)}"
    return LayerLine("", label, each.last_at, digest(state), texts)


def _command_text(each: _ShownCommand, length: int) -> str:
    if each.problem:
        command, worked = (cut(flat(one), length // 2) for one in (each.command, each.replaced_by))
        fails = f'{code(command)} fails ("{flat(each.problem)}")'
        return f"{fails}; {code(worked)} works" if worked else fails
    command = code(cut(flat(each.command), length))
    runs = f"{each.runs:,} run{'s' * (each.runs != 1)}"
    often = f"{runs} in {each.sessions:,} session{'s' * (each.sessions != 1)}"
    lead = f"{each.purpose}: " if each.purpose != "other" else ""
    return f"{lead}{command} ({often})"
