"""The commands that a session ran to test, lint, build and start, and the traps that it met.

A row is a command in a normal form, without what only affects its output, with its runs and their
outcomes. A trap is a command that failed because of its environment or of the way it was typed. Its
row also has the reason, without what differs each time, and the command that worked then. A command
that was a trap in another session has a row too, so that its success is known.
"""

import posixpath
import re
from collections.abc import Collection, Sequence
from sqlite3 import Connection
from typing import Literal, NamedTuple

from ctx.capture import session_table, shell_line
from ctx.capture.session_state import Session
from ctx.capture.steps import Step
from ctx.sqlite.connection import transaction
from ctx.synthesis import command_words, part_outcomes, wording
from ctx.synthesis.check_commands import Check
from ctx.synthesis.command_words import ShellEdit, shell_edit
from ctx.synthesis.failures import is_failing, message
from ctx.synthesis.part_outcomes import PartOutcome, outcomes
from ctx.synthesis.timeline import Timeline

Purpose = Literal["test", "lint", "build", "start", "other", "trap"]
"""`trap`: nothing of these, but it failed as a trap, here or in another session."""
PASSED, FAILED = "passed", "failed"

_MOST_ROWS = 24
_MOST_SESSIONS = 60
"""The number of sessions whose traps are looked for."""
_LONGEST = 140
_LONGEST_PROBLEM = 90
_MOST_BETWEEN = 20
"""The number of steps after a failure in which the command that worked is searched."""
_FEWEST_SHARED = 0.6
"""The part of the words of a command that another form of it has."""
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
_EXPECTS_FAILURE = re.compile(
    r"non-?exist|does-?not-?exist|definitely-not|\b(?:invalid|bogus)\b", re.IGNORECASE
)
"""It is run to see an error."""
_ELSEWHERE = re.compile(
    r"(?:\A|[\s=/\\])\.?worktrees?[/\\]"
    r"|(?<!cd)\s(?:--?[\w-]+=)?['\"]?(?:~|/(?!dev/)|[A-Za-z]:\\)|\$\w"
)
"""A path in a worktree, which is deleted after its use, outside of the folder, or in a variable."""
_LEADS = re.compile(r"\A(?:(?:error|fatal|npm (?:err!|error)|err!?)[:!]?\s+)+", re.IGNORECASE)
_SHELL = re.compile(r"(?:/\S*/|(?<!\w))([a-z]+|\(eval\)):(?: ?line)? ?\d+: ")
_NO_REASON = re.compile(
    r"\s*(?:[✓✔√×✗✕]|throw\b|raise\b|npm (?:err!|error) (?:code|errno|syscall|path)\b)"
    r"|/\S+\.sh: line|.*\bdump_\w+_state\b|.*[:{]\s*\Z",
    re.IGNORECASE,
)
"""The name of a test, the code that raises an error, a line that the next one explains, or an error
of what a shell or Cursor runs around each command."""
_PATH = re.compile(r"(?<![^\s'\"`(=])(?!@)[^\s'\"`]*[/\\][^\s'\"`]*")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_NO_FILE = re.compile(r"no such file|cannot access|i/?o error", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d]+(?:\.[^\W\d]+)*")
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
    """The reason, if it is a trap."""
    replaced_by: str = ""
    """The command that worked then."""


class _Run(NamedTuple):
    at: int
    """The index of its step."""
    command: str
    """Empty: it cannot be shown."""
    purpose: Purpose | None
    passed: bool | None
    part: shell_line.CommandPart
    reason: str = ""
    """The reason, if it failed as a trap."""

    def works(self, command: str, reason: str) -> bool:
        """Whether it shows that a trap is gone: the command passed, or a missing program."""
        is_program = self.part.verb == command and command in _missing(reason)
        return self.passed is True and (self.command == command or is_program)


def session_commands(
    timeline: Timeline, folder: str, traps: Collection[tuple[str, str]] = ()
) -> list[SessionCommand]:
    """The commands of a session; `traps` are commands that failed in others, with their reasons."""
    runs = [
        run for index, step in enumerate(timeline.steps) for run in _runs_of(index, step, folder)
    ]
    found: dict[str, list[_Run]] = {}
    for run in runs:
        if run.purpose:
            found.setdefault(run.command, []).append(run)
        for command, reason in traps if not run.purpose else ():
            if run.works(command, reason):
                found.setdefault(command, []).append(run._replace(purpose="trap"))
    rows = [_row(timeline.steps, command, each, runs) for command, each in found.items()]
    rows.sort(key=lambda row: (not row.replaced_by, not row.problem, -row.runs, row.command))
    # Of the traps of a session with the same reason, one is enough.
    kept = {(row.purpose == "trap" and row.problem) or row.command: row for row in reversed(rows)}
    return list(reversed(kept.values()))[:_MOST_ROWS]


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
    ended = outcomes(step)
    reason, failed = _trap(step, ended, folder) if is_failing(step) else ("", None)
    found: list[_Run] = []
    inside: str | None = ""
    for each in ended:
        part, is_trap = each.part, each is failed
        is_expected = _EXPECTS_FAILURE.search(part.text) is not None
        command = _normal(each, folder, inside or "")
        if len(command) > _LONGEST or is_expected:
            command = ""
        purpose: Purpose | None = None
        is_own = part.joint != "|" and inside is not None and not _ELSEWHERE.search(command)
        if command and is_own and each.check and not _NO_RUN.search(part.text):
            purpose = purpose_of(each.check)
        if is_trap and not is_expected:
            is_missing = part.verb in _missing(reason)
            command, purpose = (part.verb, "trap") if is_missing else (command, purpose or "trap")
        found.append(_Run(index, command, purpose if command else None, each.passed, part))
        if is_trap and command:
            found[-1] = found[-1]._replace(passed=False, reason=reason)
        if part.verb == "cd":
            inside = _folder(part.text, folder)
    return found


def _missing(reason: str) -> set[str]:
    """The programs that do not exist."""
    return {name for pattern in _NOT_FOUND for name in pattern.findall(reason)}


def _trap(step: Step, ended: Sequence[PartOutcome], folder: str) -> tuple[str, PartOutcome | None]:
    """Why a failing step is a trap, and the part that failed; nothing if it is none."""
    finding = step.findings[0] if step.findings else None
    lines = [message(finding, step)] if finding else step.output[-4_000:].splitlines()
    could_not = (line for line in lines if part_outcomes.cannot_run(line))
    said = next((line for line in could_not if not _NO_REASON.match(line)), "")
    if not said and all(each.check is None or each.check.goal == "run" for each in ended):
        # No test and no compiler ran, so it is not their finding.
        said = message(finding, step)
    if not said or _NO_REASON.match(said) or not ended:
        return "", None
    words = _words(said)

    def likelihood(index: int) -> tuple[int, bool, bool, int]:
        part, _, passed = ended[index]
        named = sum(map(len, words & _words(part.text)))
        return named, part.joint != "|", passed is False, index

    failed = ended[max(range(len(ended)), key=likelihood)]
    is_file = _NO_FILE.search(said) is not None
    if is_file and shell_line.CommandLine((failed.part,), "").only_reads:
        # It was run to see whether there is such a file.
        return "", None
    said = _LEADS.sub("", _SHELL.sub(r"\1: ", said.strip()))
    said = said.replace(f"{folder.rstrip('/')}/", "") if folder else said
    # Without what differs each time. But a missing file is the same only if its path is.
    said = said if is_file else _NUMBER.sub("…", _PATH.sub("…", said))
    return wording.shortened(said, _LONGEST_PROBLEM), failed


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
    if "<<" in each.part.text:
        # Capture left out the here-document.
        kept = [word for word in kept if word != "…"]
    line = " ".join([*command_words.prefix(words[:start]), *kept])
    if folder:
        line = line.replace(f"{folder.rstrip('/')}/", "")
    if "\n" in line or "…" in line or "$(" in line:
        # It was cut, or depends on another command.
        return ""
    return f"cd {inside} && {line}" if inside else line


def _row(
    steps: Sequence[Step], command: str, runs: Sequence[_Run], every: Sequence[_Run]
) -> SessionCommand:
    known = [run for run in runs if run.passed is not None]
    trap = next((run for run in reversed(runs) if run.reason), None)
    return SessionCommand(
        command,
        runs[0].purpose or "trap",
        len(runs),
        sum(run.passed is True for run in runs),
        sum(run.passed is False for run in runs),
        steps[runs[-1].at].at,
        "" if not known else PASSED if known[-1].passed else FAILED,
        trap.reason if trap else "",
        _worked(trap, every) if trap else "",
    )


def _worked(trap: _Run, every: Sequence[_Run]) -> str:
    """What worked after a trap: the same after an install, or another form of the command."""
    after = [run for run in every if run.at > trap.at and run.passed is not False]
    near = [run for run in after if run.command and run.at <= trap.at + _MOST_BETWEEN]
    again = next((run for run in after if run.works(trap.command, trap.reason)), None)
    if again:
        installs = [
            run.command
            for run in near
            if run.at < again.at and run.passed and shell_edit(run.part.text) == ShellEdit(())
        ]
        return f"{installs[-1]} && {trap.command}" if installs else ""
    words = _words(trap.part.text)
    worked, most = "", _FEWEST_SHARED * len(words)
    for run in near:
        shared = words & _words(run.part.text)
        is_like = shared & _words(f"{trap.part.verb} {run.part.verb}") or _missing(trap.reason)
        if is_like and len(shared) >= most and run.command != trap.command:
            worked, most = run.command, len(shared) + 1
    return worked


def _words(text: str) -> set[str]:
    """The words of a text without digits: `python` of `python3`."""
    return set(_WORD.findall(text))


_COLUMNS = ", ".join(SessionCommand._fields)


def renew(connection: Connection, session: Session, steps: Sequence[Step]) -> None:
    """Replace the commands of a session by those of its steps."""
    newest = session_table.newest(connection, session.project, _MOST_SESSIONS)
    others = [name for name, _ in newest if name != session.id]
    traps = connection.execute(
        "SELECT DISTINCT command, problem FROM session_commands WHERE problem <> ''"
        f" AND session IN ({', '.join('?' * len(others))})",
        others,
    ).fetchall()
    rows = session_commands(Timeline(steps), session.folder, traps)
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
