"""The outcome of a command, for its step.

Whether tests passed is read from their output, because the exit code may be lost in a pipe. For a
command that succeeded only the success is stored; for one that failed, the diagnostics and the
beginning and end of the output. The message of a `git commit` often says why a change was made.
"""

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ctx.capture import shell_line
from ctx.capture.injected_text import without_injected
from ctx.capture.private_text import without_private
from ctx.capture.shell_line import CommandLine
from ctx.capture.steps import StepFinding
from ctx.hosts.tool_calls import Outcome

if TYPE_CHECKING:
    from ctx.code.diagnostics.diagnostic_model import ToolDiagnostic, ToolReport

_MOST_FINDINGS = 10
_LONGEST_OUTPUT = 4_000
_LONGEST_MESSAGE = 400
_LONGEST_NAME = 200
_DEEPEST_MODULE = 12
_OF_MODULE = re.compile(r"(?!.*\.\.)[\w-]+(?:\.[\w-]+)+/.{1,300}\.go\Z")
STEERING = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
"""Escape sequences for colours and cursor movement."""


class CommandPlace(NamedTuple):
    folder: str
    """Where it was run."""
    root: str
    """The project's root."""


class FinishedCommand(NamedTuple):
    line: CommandLine
    ok: bool
    exit_code: int | None
    passed: bool | None
    findings: tuple[StepFinding, ...]
    output: str


def read(
    outcome: Outcome, command: str, place: CommandPlace, most_lines: int
) -> FinishedCommand | str:
    """How a command ended, or why it makes no step."""
    line = shell_line.read(command)
    if not line.parts:
        return "it is empty"
    if line.is_own:
        return "it calls ctx itself"
    ok, exit_code, output, was_run = outcome
    if not was_run:
        return "it was not run"
    if line.has_own:
        return FinishedCommand(line, ok, exit_code, None, (), "")
    plain = _terminal_text(output)
    report = None
    if plain.strip() and (not line.only_reads or (not ok and line.may_check_first)):
        from ctx.code.diagnostics import tool_output as diagnostics

        report = diagnostics.read(plain, command)
    passed = _has_passed(report, line, exit_code)
    if ok and passed is not False:
        return FinishedCommand(line, ok, exit_code, passed, (), _test_counts_text(report))
    findings = _findings(report, place, line.folder)
    return FinishedCommand(line, ok, exit_code, passed, findings, _ends(plain, most_lines))


def _has_passed(
    report: "ToolReport | None", line: CommandLine, exit_code: int | None
) -> bool | None:
    if report and report.outcome:
        return report.outcome == "passed"
    # Checkers that print nothing on success.
    return True if exit_code == 0 and line.checks else None


def _test_counts_text(report: "ToolReport | None") -> str:
    """`12 passed, 1 skipped`."""
    tests = report.tests if report else None
    if tests is None:
        return ""
    every = (tests.failed, "failed"), (tests.errors, "errors"), (tests.passed, "passed")
    skipped = tests.skipped, "skipped"
    return ", ".join(f"{count:,} {word}" for count, word in (*every, skipped) if count)


def _findings(
    report: "ToolReport | None", place: CommandPlace, into: str
) -> tuple[StepFinding, ...]:
    if report is None:
        return ()
    errors = [each for each in report.diagnostics if each.severity == "error"]
    folders = [place.folder, place.root]
    if into:
        folders.insert(0, os.path.join(place.folder, into))
    return tuple(_step_finding(each, folders, place.root) for each in errors[:_MOST_FINDINGS])


def _step_finding(found: "ToolDiagnostic", folders: Sequence[str], root: str) -> StepFinding:
    from ctx.code.diagnostics.diagnostic_model import is_foreign

    path, line = "", None
    for span in found.spans:
        if not is_foreign(span.path) and (inside := _project_path(span.path, folders, root)):
            path, line = inside, span.start_line
            break
    message = "\n".join(found.message.split("\n")[:3])
    return StepFinding(
        path,
        line,
        found.code[:_LONGEST_NAME],
        without_injected(message)[:_LONGEST_MESSAGE],
        found.test[:_LONGEST_NAME],
    )


def _project_path(path: str, folders: Sequence[str], root: str) -> str:
    """A path that a tool printed, relative to the project's root; empty if it is outside."""
    if "\0" in path or not root:
        return ""
    top = root.rstrip("/")
    every = [os.path.normpath(os.path.join(folder, path)) for folder in folders]
    inside = [each[len(top) + 1 :] for each in every if each.startswith(f"{top}/")]
    there = (each for each in inside if os.path.lexists(os.path.join(top, each)))
    found = next(there, "")
    if not found and _OF_MODULE.match(path):
        return _in_module(path, top)
    return (found or (inside[0] if inside else "")).replace(os.sep, "/")


def _in_module(path: str, top: str) -> str:
    """A Go path that begins with a module name: only the end of it is a path here."""
    parts = path.split("/")[:_DEEPEST_MODULE]
    every = ("/".join(parts[count:]) for count in range(1, len(parts)))
    return next((each for each in every if os.path.lexists(os.path.join(top, each))), "")


def _terminal_text(output: str) -> str:
    """An output as a terminal displays it."""
    text = without_private(output)
    if "\x1b" in text:
        text = STEERING.sub("", text)
    if "\r" in text:
        lines = text.replace("\r\n", "\n").split("\n")
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return text


def _ends(text: str, most_lines: int) -> str:
    """The end of an output, and a little of its beginning."""
    lines = text.strip("\n").split("\n")
    short = "\n".join(lines[-most_lines:] if most_lines else [])
    if len(short) <= _LONGEST_OUTPUT:
        return short
    first = _LONGEST_OUTPUT // 4
    return f"{short[:first].rstrip()}\n…\n{short[first - _LONGEST_OUTPUT + 3 :].lstrip()}"


LONGEST = 2_000

_COMMIT = re.compile(r"\bgit\b[^|;&\n]{0,60}\bcommit\b")
_HEREDOC = re.compile(r"<<-?[ \t]*['\"]?(\w{1,40})['\"]?[ \t]*\n")
_MESSAGE = re.compile(
    r"\s(?:-[a-z]{0,4}m|--message)[ =]?(?:\"((?:[^\"\\]|\\.){0,4000})\"|'([^']{0,4000})')",
    re.DOTALL,
)
_TRAILER = re.compile(r"[A-Z][\w-]{2,40}: \S.*|.{0,4}Generated with .*")


def commit_message(command: str) -> str:
    """The message without its trailers; empty if the command has none."""
    commit = _COMMIT.search(command)
    if commit is None:
        return ""
    heredoc = _HEREDOC.search(command, commit.end())
    if heredoc:
        message = command[heredoc.end() :].partition(f"\n{heredoc[1]}")[0]
    else:
        options = _MESSAGE.finditer(command, commit.end() - 1)
        message = "\n\n".join(option[1] or option[2] or "" for option in options)
    lines = message[: 2 * LONGEST].strip().splitlines()
    while len(lines) > 1 and (not lines[-1].strip() or _TRAILER.fullmatch(lines[-1].strip())):
        lines.pop()
    return "\n".join(lines)[:LONGEST].strip()
