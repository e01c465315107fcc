"""The outcome of each part of a command line.

A step has one exit code, which belongs to the last part that ran: behind a pipe it is that of the
filter, behind `;` that of the last command. Where neither the exit code nor the output shows how a
part ended, its outcome is unknown.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctx.capture import shell_line
from ctx.capture.shell_line import CommandPart
from ctx.capture.steps import Step
from ctx.synthesis.check_commands import MOST_PARTS, Check, checks_by_part

_LONGEST = 2_000
_LONGEST_OUTPUT = 4_000
_TIMED_OUT = frozenset({124, 137, 143})
_PREPARES = frozenset(
    "cd pushd popd export set source . unset alias umask ulimit sleep wait true : mkdir echo printf"
    " touch chmod rm cp mv pwd date clear kill pkill git".split()
)
"""Commands that hardly ever fail, or whose failure the output shows."""
_STOPS_AT_FAILURES = re.compile(r"\bset -[a-z]*e")
_IN_BACKGROUND = re.compile(r"(?<![&>0-9])&\Z")
_NOT_RUN = "Sibling tool call errored"
_GIT_FAILED = re.compile(
    r"(?m)^(?:fatal: |nothing (?:added )?to commit|error: failed to push| ! \[)|Changes not staged"
)
_FAILED_NAMES = tuple(
    re.compile(pattern)
    for pattern in (
        r'error: script "(?P<name>[^"]{1,80})" exited with code',
        r"\[(?P<name>[\w:.-]{1,80})\] ERROR task failed",
        r"make(?:\[\d+\])?: \*\*\* \[(?:[^\]]*: )?(?P<name>[^\]\s]{1,80})\]",
        r"error: Recipe `(?P<name>[^`]{1,80})` failed",
        r'Failed to run task "(?P<name>[^"]{1,80})"',
        r"Execution failed for task '(?P<name>[^']{1,80})'",
        r"command not found: (?P<name>[\w./@-]{1,80})",
        r"(?P<name>[\w./@-]{1,80}): (?:command )?not found",
        r"(?m)^npm (?:ERR!|error) Missing script: \"(?P<name>[^\"]{1,80})\"",
        r"(?m)^(?P<name>[\w.-]{2,40}): \S",
    )
)


class PartOutcome(NamedTuple):
    part: CommandPart
    check: Check | None
    passed: bool | None
    """None: it is not known, or it was still running."""


def outcomes(step: Step) -> list[PartOutcome]:
    """The parts of a command that may have run, each with its outcome."""
    if step.kind != "command" or _NOT_RUN in step.output[:100]:
        return []
    parts = shell_line.read(step.text[:_LONGEST]).parts[:MOST_PARTS]
    asked = checks_by_part(step.text)
    ended = _by_exit_code(step, parts, asked)
    count = sum(check is not None for check in asked)
    found: list[PartOutcome] = []
    for part, check, passed in zip(parts, asked, ended, strict=False):
        if check and count == 1 and step.passed is not None and not _runs_on(part):
            # The output shows it, also behind a pipe.
            passed = step.passed and passed is not False
        found.append(PartOutcome(part, check, passed))
    return found


def _by_exit_code(
    step: Step, parts: Sequence[CommandPart], asked: Sequence[Check | None]
) -> list[bool | None]:
    ended: list[bool | None] = [None] * len(parts)
    if step.exit_code is None or step.exit_code in _TIMED_OUT:
        return ended
    is_good = step.ok and step.exit_code == 0
    keeps = "pipefail" in step.text
    stops = _STOPS_AT_FAILURES.search(step.text[:_LONGEST]) is not None
    group = _last_group(parts, stops=stops)
    heads = [index for index in group if parts[index].joint != "|"]
    is_piped = {
        index: index + 1 < len(parts) and parts[index + 1].joint == "|" and not keeps
        for index in heads
    }
    joints = {parts[index].joint for index in heads[1:]}
    if is_good and "||" not in joints:
        for index in heads:
            ended[index] = None if is_piped[index] or _runs_on(parts[index]) else True
    elif not is_good and joints <= {"||"} and not any(is_piped.values()):
        for index in heads:
            ended[index] = False
    elif not is_good and "||" not in joints:
        failed = _failed_part(step, parts, asked, heads)
        for index in heads:
            if failed is not None and index <= failed and not is_piped[index]:
                ended[index] = index < failed
    return ended


def _last_group(parts: Sequence[CommandPart], *, stops: bool) -> list[int]:
    """The indexes of the parts that the exit code is about."""
    start = 0
    for index, part in enumerate(parts):
        if part.joint in (";", "\n") and not stops and not _only_follows(parts[:index]):
            start = index
    return list(range(start, len(parts)))


def _only_follows(before: Sequence[CommandPart]) -> bool:
    """Whether everything before only prepares the command: `cd x; make test`."""
    return all(part.verb in _PREPARES or part.text.startswith("#") for part in before)


def _failed_part(
    step: Step, parts: Sequence[CommandPart], asked: Sequence[Check | None], heads: Sequence[int]
) -> int | None:
    """The part of a chain with `&&` that failed, if the output shows which."""
    able = [index for index in heads if parts[index].verb not in _PREPARES]
    output = step.output[-_LONGEST_OUTPUT:]
    if len(able) == 1:
        shown = _GIT_FAILED.sub("git: ", output)
        said = [index for index in heads if index != able[0] and f"{parts[index].verb}:" in shown]
        return said[-1] if said and not step.findings else able[0]
    for pattern in _FAILED_NAMES:
        for match in pattern.finditer(output):
            name = match["name"].rpartition(":")[2] or match["name"]
            named = [
                index for index in able if {name, match["name"]} & set(parts[index].text.split())
            ]
            if len(named) == 1:
                return named[0]
    tests = [index for index in able if (check := asked[index]) and check.goal == "test"]
    if len(tests) == 1 and step.findings and all(each.test for each in step.findings):
        return tests[0]
    return None


def _runs_on(part: CommandPart) -> bool:
    """Whether a part was started in the background."""
    return _IN_BACKGROUND.search(part.text.rstrip()) is not None


_CANNOT_RUN = re.compile(
    # The command does not exist here.
    r"command not found|: not found\b|unrecogni[sz]ed (?:sub)?command|unknown (?:sub)?command"
    r"|no such command|missing script|script not found|command \"\S+\" not found|is not recognized"
    r"|no rule to make target|does not contain recipe|no tasks? (?:named|matching|found)"
    r"|could not determine executable|task \S+ not found|unknown task|no such target"
    # It lacks something: a module, a file, an option, a server, a permission.
    r"|no module named|modulenotfounderror|cannot find (?:module|package)|unknown (?:option"
    r"|argument|flag)|unrecognized (?:option|argument)|no such (?:option|file or directory)"
    r"|not installed|permission denied|not permitted|no match(?:es)? found|econnrefused"
    r"|connection refused|can't open file|externally-managed|no test files? found|err_pnpm_\w+"
    r"|enoent|does not exist|environment variable|is not set\b|missing required|enotfound"
    r"|getaddrinfo|eperm\b|eacces|eaddrinuse|already in use|not a valid",
    re.IGNORECASE,
)


def cannot_run(text: str) -> bool:
    """Whether a line of output says that the command could not run at all."""
    return _CANNOT_RUN.search(text[:300]) is not None
