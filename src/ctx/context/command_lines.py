"""The layer of commands: what is run in a project to test, lint, build and start.

    ## Commands that work here
    - test: `pnpm vitest run` (14 runs in 6 sessions)
    - `pytest` fails ("No module named app"); `PYTHONPATH=src python -m pytest` works

The newest session that shows the outcome of a command decides whether it works. A command that
fails and its replacement are listed if two sessions show the same, the newest one does, or the
replacement works in two sessions.

Hooks load this module.
"""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.context import hook_queries
from ctx.context.layer_lines import LayerLine, cut, digest
from ctx.markdown import code, flat

_PURPOSES = ("test", "lint", "build", "start", "other")
_MOST_OF_A_PURPOSE = {"test": 3, "lint": 2, "build": 2, "start": 2, "other": 1}
_MOST_FAILING = 3
_FEWEST_SESSIONS = 2
_NEWEST = 5
"""A program that is missing is listed if one of so many newest sessions missed it."""
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
    problem: str
    replaced_by: str
    agreeing: int
    """The number of sessions in which it failed in the same way."""
    age: int
    """The number of sessions since it was run."""


def lines(connection: Connection, project: str | None, without: str) -> list[LayerLine]:
    """The commands of a project, most useful first."""
    rows = hook_queries.session_commands(connection, project, without)
    newest = list(dict.fromkeys(row[0] for row in rows))
    by_command: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        by_command.setdefault(row[1], []).append(row)
    removed = hook_queries.removed_commands(connection, project)
    shown = [
        _command_of_rows(each, newest)
        for command, each in by_command.items()
        if flat(command) not in removed
    ]
    failing = _failing_commands(shown)
    working = {purpose: _working_commands(shown, purpose) for purpose in _PURPOSES}
    test = working["test"][:1]
    first = [each for name in _PURPOSES[1:4] for each in working[name][:1]]
    rest = [each for name in _PURPOSES for each in working[name][name != "other" :]]
    rest.sort(key=lambda each: -each.sessions)
    return [_line(each) for each in (*test, *failing, *first, *rest)]


def _command_of_rows(rows: Sequence[Sequence[Any]], newest: Sequence[str]) -> _ShownCommand:
    """The rows of one command, newest session first."""
    known = [row for row in rows if row[7]]
    latest = known[0] if known else rows[0]
    replaced = [row[9] for row in known if row[9]]
    agreeing = 0
    for row in known:
        if row[7] == "passed":
            break
        agreeing += bool(row[8])
    problem = next((row[8] for row in known if row[8]), "")
    is_failing = latest[7] == "failed"
    return _ShownCommand(
        rows[0][1],
        rows[0][2],
        sum(row[3] for row in rows),
        len(rows),
        rows[0][0] == newest[0],
        rows[0][6],
        latest[7],
        problem if is_failing and agreeing else "",
        max(replaced, key=replaced.count) if is_failing and agreeing and replaced else "",
        agreeing,
        newest.index(rows[0][0]),
    )


def _failing_commands(shown: Iterable[_ShownCommand]) -> list[_ShownCommand]:
    """Commands that cannot be run here, each kind of error once."""
    works = {each.command: each.sessions for each in shown if each.last != "failed"}
    found: dict[tuple[str, str], _ShownCommand] = {}
    for each in sorted(shown, key=lambda each: (-each.agreeing, each.age, each.command)):
        seen = max(each.agreeing, works.get(each.replaced_by, 0) if each.agreeing else 0)
        is_sure = seen >= _FEWEST_SESSIONS or (each.agreeing and each.age == 0)
        is_recent = each.replaced_by or each.age < _NEWEST
        if each.problem and is_sure and is_recent:
            if each.replaced_by and each.replaced_by not in works:
                each = each._replace(replaced_by="")
            found.setdefault((each.command.split()[0], each.problem), each)
    return list(found.values())[:_MOST_FAILING]


def _working_commands(shown: Iterable[_ShownCommand], purpose: str) -> list[_ShownCommand]:
    """The commands of one purpose, those of most sessions first."""
    found = [
        each
        for each in shown
        if each.purpose == purpose
        and not each.problem
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
    command = code(cut(flat(each.command), length))
    if each.problem:
        fails = f'{command} fails ("{flat(each.problem)}")'
        if each.problem == "command not found":
            fails = f"{command} is not installed"
        works = code(cut(flat(each.replaced_by), length))
        return f"{fails}; {works} works" if each.replaced_by else fails
    runs = f"{each.runs:,} run{'s' * (each.runs != 1)}"
    often = f"{runs} in {each.sessions:,} session{'s' * (each.sessions != 1)}"
    now = "; the last one failed" if each.last == "failed" else ""
    lead = f"{each.purpose}: " if each.purpose != "other" else ""
    return f"{lead}{command} ({often}{now})"
