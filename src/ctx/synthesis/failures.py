"""Failures of checks, from the first failing run to the one that passes.

A failure is a failing test, a compiler error, or a command that failed without details. It is open
until a check that covers the same target passes. If it comes back later, it is the same failure:
only the last success counts.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctx.capture.steps import Step, StepFinding
from ctx.synthesis import part_outcomes, wording
from ctx.synthesis.check_commands import Check, check_covers, covers, is_run_by
from ctx.synthesis.part_outcomes import outcomes

_MOST_FINDINGS = 20
_MOST_OPEN = 100
# The number of findings in a truncated report.
_MOST_REPORTED = 10
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[0-9]+")
_LONGEST_MESSAGE = 160
_TIMED_OUT = 124
# Frames, bullets and prefixes that tools put before each line.
_DECORATION = re.compile(
    r"\A(?:\s|[│┃╷╵|>*✖✗●•]|\[ERROR\] ?|npm (?:ERR!|error) |#\d+ (?:[\d.]+ )?)+"
)
_CLOSES = re.compile(
    r"\Amake(?:\[\d+\])?: \*\*\*|ELIFECYCLE|Please refer|For more information|re-run Maven|\ATotal "
    r"|To see the full|\[Help \d\]|\A(?:Failed examples|Failures|Failed tests|Errors):?\s*\Z"
    r"|A complete log of this|could not compile|Command failed with exit code|did not complete succ"
    r"|\b\d+ (?:failed|failures?|errors?|problems?|passed)\b|BUILD FAILURE|\ATests run:"
    r"|There are test failures|\A(?:ERROR: )?usage:",
    re.IGNORECASE,
)
_NAMES_ERROR = re.compile(
    r"\b\w+(?:Error|Exception)\b|\b(?:[Ee]rror|ERROR|[Ff]atal|[Pp]anic(?:ked)?)\b(?:\[\w+\])?"
    r" ?[:!(]|\btimed out\b|: not found\b|\bIssue:"
)
_ERROR_TEXT = re.compile(
    r"\berrors?\b|exception|\bfail|panic|cannot|could not|not found|undefined|denied|refused"
    r"|no such|unable to|expected|invalid",
    re.IGNORECASE,
)
# Errors of the TypeScript compiler about its options and project files.
_ABOUT_OPTIONS = re.compile(r"TS(?:5\d{3}|63\d{2})\Z")
_TEST_FILE = re.compile(r"\.(?:py|[cm]?[jt]sx?|rs|go|rb|java|kt|php)\Z")


class Failure(NamedTuple):
    check: Check
    finding: StepFinding | None
    """The latest finding; None if only the command failed."""
    fails: tuple[int, ...]
    """The indexes of the steps with this failure."""
    messages: tuple[str, ...]
    """The message at each of these steps."""
    passes: tuple[int, ...] = ()
    """The indexes of the steps at which it was gone, temporarily or for good."""
    gone: int | None = None
    """The index of the step at which a check passed; None while it is open."""
    passing: Check | None = None
    """The check that passed."""
    first: StepFinding | None = None
    """The first finding; later ones may be about an attempted fix."""
    first_message: str = ""
    """The message of the first finding, on one line."""
    is_unclear: bool = False
    """Whether the check ran again since, with an unknown outcome."""

    @property
    def could_not_run(self) -> bool:
        """Whether the command lacked something, so that the check says nothing about the code."""
        if self.finding and _ABOUT_OPTIONS.match(self.finding.code):
            return True
        return not self.test and not self.path and part_outcomes.cannot_run(self.messages[-1])

    @property
    def is_other_command(self) -> bool:
        """Whether another command passed than the one that failed: other settings or wrappers."""
        passing = self.passing
        return passing is not None and (
            passing.prefix != self.check.prefix
            or passing.tool != self.check.tool
            or passing.left_out != self.check.left_out
        )

    @property
    def test(self) -> str:
        return self.finding.test if self.finding else ""

    @property
    def path(self) -> str:
        return self.finding.path if self.finding else ""


def is_failing(step: Step) -> bool:
    if step.kind != "command":
        return False
    if step.passed is not None:
        return not step.passed
    return not step.ok or step.exit_code not in (None, 0)


def message(finding: StepFinding | None, step: Step) -> str:
    """The message of a finding on one line, with its error code."""
    if finding is None:
        said = _error_line(step.output)
        if not said and step.exit_code == _TIMED_OUT:
            said = "timed out"
        return wording.shortened(said, _LONGEST_MESSAGE)
    lines = [line.strip() for line in finding.message[:2_000].splitlines() if line.strip()]
    first = lines[0] if lines else ""
    if first.endswith(":"):
        # The next line has the details, unless it only explains the diff.
        below = [line for line in lines[1:] if not line.startswith("+ actual")]
        first = " ".join([first, *below[:1]]).rstrip(":")
    if first.startswith("expect("):
        # `expect(…)` is always the same; the expected and received values are not.
        values = [line for line in lines[1:] if line.startswith(("Expected", "Received"))]
        first = ", ".join(values).replace(", Received", ", received") or first
    if finding.code and finding.code not in first:
        first = f"{finding.code}: {first}" if first else finding.code
    return wording.shortened(first, _LONGEST_MESSAGE)


def name_of_test(test: str) -> str:
    """`test_once` for `tests/test_auth.py::TestAuth::test_once[2]`, or the last part of a title."""
    name = test.partition("[")[0].partition(" (")[0]
    name = name.split("::")[-1].split(" > ")[-1].split(" › ")[-1].strip()
    if "::" not in test and _TEST_FILE.search(name):
        # The whole test file failed to load.
        return name.rpartition("/")[2]
    return name if " " in name else name.rpartition(".")[2]


def failures_in(steps: Sequence[Step]) -> list[Failure]:
    """All failures, in order of their first occurrence."""
    ledger = _FailureLog()
    for index, step in enumerate(steps):
        ended = [(each.check, each.passed) for each in outcomes(step) if each.check]
        passed = [check for check, is_good in ended if is_good]
        failed = [check for check, is_good in ended if is_good is False]
        unknown = [check for check, is_good in ended if is_good is None]
        ledger.succeed(index, passed)
        if is_failing(step) and (failed or (unknown and step.findings)):
            ledger.fail(index, step, failed or unknown)
        elif unknown:
            ledger.run_again(unknown)
    return ledger.everything()


class _FailureLog:
    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Failure] = {}
        self._open: dict[tuple[str, ...], None] = {}

    def everything(self) -> list[Failure]:
        return list(self._known.values())

    def fail(self, index: int, step: Step, asked: Sequence[Check]) -> None:
        now: set[tuple[str, ...]] = set()
        said: Sequence[StepFinding | None] = step.findings[:_MOST_FINDINGS] or (None,)
        for finding in said:
            check = _failing_check(finding, asked)
            key = _key(check, finding)
            if key in now:
                continue
            now.add(key)
            words = message(finding, step)
            new = Failure(check, finding, (index,), (words,), first=finding, first_message=words)
            self._add(key, new)
        self._close_absent(index, step, asked, now)

    def succeed(self, index: int, asked: Sequence[Check]) -> None:
        for key in list(self._open):
            failure = self._known[key]
            for check in asked:
                if _confirms_fix(check, failure):
                    self._close(key, index, check)
                    break

    def run_again(self, asked: Sequence[Check]) -> None:
        """Note that checks ran with an unknown outcome."""
        for key in self._open:
            if any(_confirms_fix(check, self._known[key]) for check in asked):
                self._known[key] = self._known[key]._replace(is_unclear=True)

    def _add(self, key: tuple[str, ...], new: Failure) -> None:
        known = self._known.get(key)
        if known is None:
            self._known[key] = new
        else:
            self._known[key] = known._replace(
                check=new.check,
                fails=(*known.fails, *new.fails)[-_MOST_FINDINGS:],
                messages=(*known.messages, *new.messages)[-_MOST_FINDINGS:],
                finding=new.finding,
                gone=None,
                passing=None,
                is_unclear=False,
                first=known.first if known.gone is None else new.first,
                first_message=known.first_message
                if known.gone is None and known.first_message
                else new.first_message,
            )
        self._open[key] = None
        if len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]

    def _close_absent(
        self, index: int, step: Step, asked: Sequence[Check], now: set[tuple[str, ...]]
    ) -> None:
        """Close the open failures that a failing test run covers but does not report."""
        ran = [check for check in asked if check.goal == "test" and not check.stops_early]
        tests = [finding for finding in step.findings if finding.test]
        # A truncated report says nothing about the remaining tests.
        if not ran or not tests or len(tests) < len(step.findings) or len(tests) >= _MOST_REPORTED:
            return
        for key in list(self._open):
            failure = self._known[key]
            if (
                key not in now
                and failure.finding
                and failure.check.tool == ran[0].tool
                and check_covers(ran[0], failure.path, failure.test)
            ):
                self._close(key, index, ran[0])

    def _close(self, key: tuple[str, ...], index: int, check: Check) -> None:
        known = self._known[key]
        passes = (*known.passes, index)[-_MOST_FINDINGS:]
        self._known[key] = known._replace(passes=passes, gone=index, passing=check)
        del self._open[key]


def _confirms_fix(check: Check, failure: Failure) -> bool:
    """Whether a passing check shows that a failure is fixed."""
    asked = failure.check
    if covers(check, asked) or is_run_by(asked, check) or asked.is_fixed_by(check):
        return True
    is_same_tool = check.tool == asked.tool or is_run_by(check, asked)
    return (
        is_same_tool
        and failure.finding is not None
        and check_covers(check, failure.path, failure.test)
        and (check.goal == asked.goal or not failure.test)
    )


def _failing_check(finding: StepFinding | None, asked: Sequence[Check]) -> Check:
    """The check of a command line that most likely reported a finding."""
    if finding is None:
        return asked[-1]
    wanted = ("test",) if finding.test else ("build", "lint", "test", "run")
    return min(asked, key=lambda check: wanted.index(check.goal) if check.goal in wanted else 9)


def _key(check: Check, finding: StepFinding | None) -> tuple[str, ...]:
    if finding is None:
        return (*check.prefix, check.tool, check.goal, *check.targets)
    if finding.test:
        # The same test, whichever command ran it.
        return ("test", finding.test)
    said = _NUMBER.sub("0", finding.message[:_LONGEST_MESSAGE])
    return (check.tool, finding.code, finding.path, said)


def _error_line(output: str) -> str:
    """The output line that most likely describes the error: the first that mentions one.

    Many tools end with counts or links to documentation; these lines are skipped.
    """
    lines = [_DECORATION.sub("", line).strip() for line in output[-4_000:].splitlines()]
    lines = [line for line in lines if line and not _CLOSES.search(line[:400])]
    for speaks in (_NAMES_ERROR, _ERROR_TEXT):
        found = next((line for line in lines if speaks.search(line[:400])), "")
        if found:
            return found
    return ""
