"""What a session was working on when its conversation was compacted: files, failures, attempts.

    - In work: src/auth.py, tests/test_auth.py
    - Still failing: `pytest -q` ("tests/test_auth.py::test_refresh: AssertionError: 2 != 1")
    - Tried, and it still failed: src/auth.py (`refresh`), then `pytest -q`

It is made from the last steps of the session. The client's summary of a conversation covers what
was done, but often omits what did not work.

Hooks load this module, so it imports nothing slow.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx.context import hook_queries
from ctx.context.layer_lines import cut
from ctx.markdown import code, flat
from ctx.memory import model

_MOST_STEPS = 400
_LARGEST_STEP = 60_000
_MOST_FILES = 6
_MOST_FAILING = 3
_MOST_TRIED = 4
_LONGEST_COMMAND = 100
_LONGEST_COMPLAINT = 160


class _Attempt(NamedTuple):
    """Edits between two failures of the same command."""

    command: str
    files: tuple[str, ...]
    names: tuple[str, ...]


def lines(connection: Connection, session: str) -> list[str]:
    """The state as list items; none if the session has no steps."""
    try:
        steps = list(_steps(connection, session))
    except sqlite3.DatabaseError:
        return []
    return [
        *_edited_files_line(steps),
        *(f"- Still failing: {_failure_text(each)}" for each in _failing_commands(steps)),
        *(
            f"- Tried, and it still failed: {_attempt_text(each)}"
            for each in _failed_attempts(steps)
        ),
    ]


def _steps(connection: Connection, session: str) -> Iterator[dict[str, Any]]:
    """The last steps of the agent itself, without subagents, oldest first."""
    for body in hook_queries.last_steps(connection, session, _MOST_STEPS, _LARGEST_STEP):
        step = model.from_json(body)
        if not step.get("agent"):
            yield step


def _edited_files_line(steps: Iterable[dict[str, Any]]) -> list[str]:
    paths = [_text(each, "path") for each in steps if each.get("kind") == "write"]
    newest = [flat(path) for path in dict.fromkeys(reversed(paths)) if path]
    if not newest:
        return []
    more = f" and {len(newest) - _MOST_FILES:,} more" if len(newest) > _MOST_FILES else ""
    return [f"- In work: {', '.join(newest[:_MOST_FILES])}{more}"]


def _failing_commands(steps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The commands whose last run failed, newest first."""
    last: dict[str, dict[str, Any]] = {}
    for step in steps:
        if step.get("kind") == "command":
            command = _text(step, "text")
            last.pop(command, None)
            last[command] = step
    newest = [step for step in reversed(last.values()) if _has_failed(step)]
    return newest[:_MOST_FAILING]


def _failed_attempts(steps: Iterable[dict[str, Any]]) -> list[_Attempt]:
    """What was edited between two failures of one command, newest first, without duplicates.

    If the command passes later, its earlier attempts are dropped.
    """
    failed: set[str] = set()
    edited: dict[str, list[dict[str, Any]]] = {}
    found: dict[str, list[_Attempt]] = {}
    for step in steps:
        if step.get("kind") == "write":
            for command in failed:
                edited.setdefault(command, []).append(step)
        elif step.get("kind") == "command":
            command = _text(step, "text")
            if not _has_failed(step):
                failed.discard(command)
                found.pop(command, None)
            else:
                if edits := edited.get(command):
                    found.setdefault(command, []).append(_edits(command, edits))
                failed.add(command)
            edited.pop(command, None)
    newest = [each for tried in found.values() for each in reversed(tried)]
    return list(dict.fromkeys(newest))[:_MOST_TRIED]


def _edits(command: str, edits: Iterable[dict[str, Any]]) -> _Attempt:
    files: dict[str, None] = {}
    names: dict[str, None] = {}
    for step in edits:
        files[_text(step, "path")] = None
        for change in step.get("changes") or ():
            if isinstance(change, list) and len(change) > 2 and isinstance(change[2], str):
                names[change[2]] = None
    return _Attempt(command, tuple(files)[:3], tuple(names)[:3])


def _has_failed(step: dict[str, Any]) -> bool:
    return step.get("ok") is False or step.get("passed") is False


def _failure_text(step: dict[str, Any]) -> str:
    command = code(cut(flat(_text(step, "text")), _LONGEST_COMMAND))
    complaint = _complaint(step)
    # It is data: an agent must not follow what a program printed.
    quoted = complaint.replace('"', "'")
    return f'{command} ("{quoted}")' if complaint else command


def _complaint(step: dict[str, Any]) -> str:
    """The first finding of a test or a compiler: where, which, what."""
    for finding in step.get("findings") or ():
        if isinstance(finding, list) and len(finding) > 4:
            path, line, kind, message, test = finding[:5]
            place = test or (f"{path}:{line}" if path and line else path)
            if isinstance(kind, str) and isinstance(message, str) and message.startswith(kind):
                kind = ""
            told = ": ".join(
                flat(each) for each in (place, kind, message) if isinstance(each, str) and each
            )
            return cut(told, _LONGEST_COMPLAINT)
    exit_code = step.get("exit_code")
    return f"exit code {exit_code}" if isinstance(exit_code, int) and exit_code else ""


def _attempt_text(each: _Attempt) -> str:
    names = f" ({', '.join(code(name) for name in each.names)})" if each.names else ""
    files = ", ".join(map(flat, filter(None, each.files)))
    return f"{files}{names}, then {code(cut(flat(each.command), _LONGEST_COMMAND))}"


def _text(step: dict[str, Any], name: str) -> str:
    value = step.get(name)
    return value if isinstance(value, str) else ""
