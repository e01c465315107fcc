"""Commands that work in a project: what a session ran to test, lint, build and start.

A row is a command in a normal form, without what only affects its output, with its runs and their
outcomes. A command that could not run, or that failed where another command for the same check
passed without an edit in between, also has the error and the command that replaced it.
"""

import posixpath
import re
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Literal, NamedTuple

from ctx.capture.session_state import Session
from ctx.capture.steps import Step
from ctx.sqlite.connection import transaction
from ctx.synthesis import command_words, part_outcomes, wording
from ctx.synthesis.check_commands import Check, covers
from ctx.synthesis.failures import message
from ctx.synthesis.part_outcomes import PartOutcome, outcomes
from ctx.synthesis.timeline import Timeline

Purpose = Literal["test", "lint", "build", "start", "other"]
PASSED, FAILED = "passed", "failed"

_MISSING = "command not found"
_MOST_ROWS = 24
_LONGEST = 140
_LONGEST_PROBLEM = 90
_MOST_BETWEEN = 60
"""The number of runs after a failing one in which its replacement is searched."""
_STARTS = re.compile(r"(?:\A|[:._/-])(?:dev|start|serve|server|watch|preview|up|runserver)\Z")
_STARTERS = frozenset(
    "uvicorn gunicorn hypercorn flask vite next nuxt astro expo wrangler vercel streamlit"
    " storybook http-server nodemon air foreman overmind".split()
)
_PACKAGE_RUNNERS = frozenset("npm pnpm yarn bun deno".split())
_OTHER_SCRIPTS = _PACKAGE_RUNNERS | frozenset(
    "make gmake just task rake mise nx turbo moon poe invoke inv gradle gradlew mvn mvnw".split()
)
_INTERPRETERS = frozenset("python python3 node ruby php bash sh deno bun tsx ts-node".split())
_NO_RUN = re.compile(
    r"\s(?:--version|--help|-h|-V|--list|--listTests|--collect-only|--dry-run|--init|install"
    r"|--show-config)(?=\s|\Z)"
)
_MANAGES = frozenset(
    "install i add remove uninstall update upgrade init create link publish info view why outdated"
    " use ls list config login pack audit dlx tidy mod get trust exec x plugins which".split()
)
_CHANGES_FILES = re.compile(
    r"(?:fix|format|fmt|write|update|generate|migrate)\b|\s-[uw]\b", re.IGNORECASE
)
_LEADS = re.compile(
    r"\A(?:error|fatal|npm err!|err!?|\(eval\):\d+|\w+: line \d+)[:!]?\s+", re.IGNORECASE
)
_NOT_FOUND = (
    re.compile(r"command not found: ([\w.@-]{1,40})"),
    re.compile(r"(?:\A|[\s:])([\w.@-]{1,40}): (?:command )?not found"),
)


class SessionCommand(NamedTuple):
    command: str
    purpose: Purpose
    runs: int
    passes: int
    failures: int
    last_at: str
    last: str
    """The last known outcome: `passed`, `failed`, or empty."""
    problem: str = ""
    """Why it failed, if it cannot be run or another command replaced it."""
    replaced_by: str = ""
    """The command that passed instead."""


class _Run(NamedTuple):
    at: int
    """The index of its step."""
    command: str
    purpose: Purpose
    check: Check | None
    passed: bool | None
    problem: str = ""
    """The error, if it failed."""
    cannot_run: bool = False


def session_commands(timeline: Timeline, folder: str) -> list[SessionCommand]:
    """The commands of a session; `folder` is its working folder."""
    runs = [
        run for index, step in enumerate(timeline.steps) for run in _runs_of(index, step, folder)
    ]
    found: dict[str, list[_Run]] = {}
    for run in runs:
        found.setdefault(run.command, []).append(run)
    rows = [_row(timeline, each, runs) for each in found.values()]
    ran = {each.part.verb for step in timeline.steps for each in outcomes(step) if each.passed}
    rows = [row for row in rows if not (row.problem == _MISSING and row.command in ran)]
    rows.sort(key=lambda row: (not row.replaced_by, not row.problem, -row.runs, row.command))
    return rows[:_MOST_ROWS]


def purpose_of(check: Check) -> Purpose | None:
    """What a command is run for; None if it is not specific to the project."""
    words = check.shown.split()
    if check.goal == "test":
        compiles_only = check.tool in ("go", "cargo") and {"-c", "--no-run"} & set(words)
        return "build" if compiles_only else "test"
    if check.goal == "lint" or {"clippy", "vet"} & set(words):
        return "lint"
    if check.goal == "build":
        return "build"
    plain = [word for word in words[1:] if not word.startswith("-")]
    is_script = check.tool in _OTHER_SCRIPTS and bool(plain) and not _MANAGES & set(plain[:1])
    if check.tool in _STARTERS:
        kinds: dict[str, Purpose] = {"build": "build", "lint": "lint", "check": "lint"}
        return kinds.get("".join(plain[:1]), "start")
    if is_script and any(map(_STARTS.search, plain)):
        return "start"
    if check.tool in ("cargo", "go", "dotnet", "swift", "flutter"):
        return "start" if "run" in words else None
    is_file = check.tool in _INTERPRETERS and _is_project_file("".join(words[1:2]))
    is_own = words[0].startswith(("./", "scripts/", "bin/")) and check.tool not in _OTHER_SCRIPTS
    return "other" if is_script or is_file or is_own else None


def _is_project_file(path: str) -> bool:
    return "." in posixpath.basename(path) and not path.startswith(("/", "~", "..", "$", "-"))


def _runs_of(index: int, step: Step, folder: str) -> list[_Run]:
    found: list[_Run] = []
    inside: str | None = ""
    for each in outcomes(step):
        if each.part.verb == "cd":
            inside = _folder(each.part.text, folder)
        elif each.part.joint != "|" and inside is not None:
            run = _command_run(index, step, each, folder, inside)
            found += [run] if run else []
    return found


def _command_run(
    index: int, step: Step, each: PartOutcome, folder: str, inside: str
) -> _Run | None:
    missing = _missing_program(step, each)
    if missing:
        return _Run(index, missing, "other", None, False, _MISSING, True)
    purpose = purpose_of(each.check) if each.check else None
    if each.check is None or purpose is None or _NO_RUN.search(each.part.text):
        return None
    command = _normal(each, folder, inside)
    if not command or len(command) > _LONGEST:
        return None
    if each.passed is not False:
        return _Run(index, command, purpose, each.check, each.passed)
    problem, cannot_run = _problem(step)
    return _Run(index, command, purpose, each.check, False, problem, cannot_run)


def _missing_program(step: Step, each: PartOutcome) -> str:
    """The program of a part that is not installed."""
    if each.passed is not False:
        return ""
    output = step.output[-2_000:]
    named = {name for pattern in _NOT_FOUND for name in pattern.findall(output)}
    return each.part.verb if each.part.verb in named else ""


def _folder(text: str, root: str) -> str | None:
    """The folder that `cd` leads to, relative to the root; None if it is outside or unknown."""
    words = command_words.unquoted(command_words.raw_words(text))
    if len(words) != 2:
        return None
    path, top = words[1].rstrip("/"), root.rstrip("/")
    if path in (top, ".") or "rev-parse --show-toplevel" in text:
        return ""
    if path.startswith(f"{top}/") and top:
        return path[len(top) + 1 :]
    is_inside = not path.startswith(("/", "~", "$", "-", "..")) and "`" not in path
    return path.removeprefix("./") if is_inside else None


def _normal(each: PartOutcome, folder: str, inside: str) -> str:
    """A command without what only affects its output, with paths relative to the folder."""
    words = command_words.raw_words(each.part.text)
    start = command_words.program_index(words)
    tool = each.check.tool if each.check else ""
    kept = command_words.without_print_options(tool, words[start:])
    line = " ".join([*command_words.prefix(words[:start]), *kept])
    if folder:
        line = line.replace(f"{folder.rstrip('/')}/", "")
    if "\n" in line or "…" in line or "$(" in line:
        # It was cut, or depends on another command.
        return ""
    return f"cd {inside} && {line}" if inside else line


def _problem(step: Step) -> tuple[str, bool]:
    """The error of a failing step in short, and whether the command could not run at all."""
    finding = step.findings[0] if step.findings else None
    said = message(finding, step)
    if finding is None or not finding.test:
        for line in step.output[-4_000:].splitlines():
            if part_outcomes.cannot_run(line):
                said = line.strip()
                break
    cannot_run = part_outcomes.cannot_run(said)
    said = _LEADS.sub("", _LEADS.sub("", said.strip()))
    return wording.shortened(said, _LONGEST_PROBLEM), cannot_run


def _row(timeline: Timeline, runs: Sequence[_Run], every: Sequence[_Run]) -> SessionCommand:
    known = [run for run in runs if run.passed is not None]
    last = known[-1] if known else None
    problem = replaced_by = ""
    if last is not None and not last.passed:
        replacement = _replacement(timeline, runs, every)
        replaced_by = replacement.command if replacement else ""
        is_missing = last.cannot_run and part_outcomes.no_such_command(last.problem)
        problem = last.problem if replacement or is_missing else ""
    return SessionCommand(
        runs[0].command,
        runs[0].purpose,
        len(runs),
        sum(run.passed is True for run in runs),
        sum(run.passed is False for run in runs),
        timeline.steps[runs[-1].at].at,
        "" if last is None else PASSED if last.passed else FAILED,
        problem,
        replaced_by,
    )


def _replacement(timeline: Timeline, runs: Sequence[_Run], every: Sequence[_Run]) -> _Run | None:
    """The run that passed after a command failed, for the same check in another way."""
    failed = [run for run in runs if run.passed is False]
    for run in failed:
        after = [each for each in every if each.at > run.at][:_MOST_BETWEEN]
        for each in after:
            # Findings of a linter concern the code, whichever way it is called.
            is_difference = run.purpose != "lint" and not _is_edited(timeline, run.at, each.at)
            if each.passed and _replaces(each, run) and (run.cannot_run or is_difference):
                return each
    return None


def _replaces(later: _Run, run: _Run) -> bool:
    if later.command == run.command or _CHANGES_FILES.search(later.command):
        return False
    if later.check is None or run.check is None or later.purpose != run.purpose:
        return False
    one, other = later.check, run.check
    if one.tool == other.tool:
        same_goal = one.goal == other.goal or set(one.targets) == set(other.targets)
        return same_goal and (covers(one, other) or set(one.targets) == set(other.targets))
    # Another tool for the same purpose counts only if the first does not exist.
    is_whole = not one.targets and not one.left_out
    return (
        run.cannot_run
        and run.purpose in ("test", "lint", "build")
        and (is_whole or set(one.targets) == set(other.targets))
    )


def _is_edited(timeline: Timeline, after: int, before: int) -> bool:
    return bool(
        timeline.edits_between(after, before + 1) or timeline.remedies_between(after, before + 1)
    )


_COLUMNS = ", ".join(SessionCommand._fields)


def renew(connection: Connection, session: Session, steps: Sequence[Step]) -> None:
    """Replace the commands of a session by those of its steps."""
    rows = session_commands(Timeline(steps), session.folder)
    if of_session(connection, session.id) == sorted(rows):
        return
    places = ", ".join("?" * len(SessionCommand._fields))
    with transaction(connection):
        forget_session(connection, session.id)
        connection.executemany(
            f"INSERT INTO session_commands (session, {_COLUMNS}) VALUES (?, {places})",
            [(session.id, *row) for row in rows],
        )


def of_session(connection: Connection, session: str) -> list[SessionCommand]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM session_commands WHERE session = ? ORDER BY command", (session,)
    )
    return [SessionCommand._make(row) for row in rows]


def sessions(connection: Connection) -> set[str]:
    """The sessions that have commands."""
    return {row[0] for row in connection.execute("SELECT DISTINCT session FROM session_commands")}


def forget_session(connection: Connection, session: str) -> None:
    """Inside a transaction."""
    connection.execute("DELETE FROM session_commands WHERE session = ?", (session,))
