"""What checks complained about, from the first time until it was gone for good.

A complaint is a failing test, an error of a compiler, or a command that failed without saying why.
It stands until a check that has looked at the same thing is content. Where it comes back later, it
is the same complaint: only the last success counts.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctx.capture.steps import Step, StepFinding
from ctx.synthesis import wording
from ctx.synthesis.checks import Check, checks, covers, is_run_by, looks_at

_MOST_FINDINGS = 20
_MOST_OPEN = 100
# A report that was cut has so many.
_MOST_REPORTED = 10
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[0-9]+")
_LONGEST_MESSAGE = 160
_TIMED_OUT = 124
# Frames, bullets, and what a tool puts before each of its lines.
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
_SPEAKS_OF_ERROR = re.compile(
    r"\berrors?\b|exception|\bfail|panic|cannot|could not|not found|undefined|denied|refused"
    r"|no such|unable to|expected|invalid",
    re.IGNORECASE,
)
_TEST_FILE = re.compile(r"\.(?:py|[cm]?[jt]sx?|rs|go|rb|java|kt|php)\Z")


class Complaint(NamedTuple):
    check: Check
    finding: StepFinding | None
    """What was said last; None where only the command failed."""
    fails: tuple[int, ...]
    """At which steps it was there, by their places in the session."""
    messages: tuple[str, ...]
    """What was said then."""
    passes: tuple[int, ...] = ()
    """At which steps it was gone, for a while or for good."""
    gone: int | None = None
    """The step at which a check was content; None: it stands."""
    passing: Check | None = None
    """Which check that was."""
    first: StepFinding | None = None
    """What was said when it came up; what it says later may be about an attempt to settle it."""
    said: str = ""
    """That in one line."""

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
    """What was complained about, in one line, with its code."""
    if finding is None:
        said = _telling(step.output)
        if not said and step.exit_code == _TIMED_OUT:
            said = "timed out"
        return wording.shortened(said, _LONGEST_MESSAGE)
    lines = [line.strip() for line in finding.message[:2_000].splitlines() if line.strip()]
    first = lines[0] if lines else ""
    if first.endswith(":"):
        # What is wrong stands below, unless that is only how to read it.
        below = [line for line in lines[1:] if not line.startswith("+ actual")]
        first = " ".join([first, *below[:1]]).rstrip(":")
    if first.startswith("expect("):
        # How it was asked is the same for all; what was there instead is not.
        values = [line for line in lines[1:] if line.startswith(("Expected", "Received"))]
        first = ", ".join(values).replace(", Received", ", received") or first
    if finding.code and finding.code not in first:
        first = f"{finding.code}: {first}" if first else finding.code
    return wording.shortened(first, _LONGEST_MESSAGE)


def name_of_test(test: str) -> str:
    """`test_once` of `tests/test_auth.py::TestAuth::test_once[2]`, or the last of what it says."""
    name = test.partition("[")[0].partition(" (")[0]
    name = name.split("::")[-1].split(" > ")[-1].split(" › ")[-1].strip()
    if "::" not in test and _TEST_FILE.search(name):
        # A file that could not even be read.
        return name.rpartition("/")[2]
    return name if " " in name else name.rpartition(".")[2]


def complaints(steps: Sequence[Step]) -> list[Complaint]:
    """Everything that was complained about, in the order in which it came up."""
    ledger = _Ledger()
    for index, step in enumerate(steps):
        if step.kind != "command":
            continue
        asked = checks(step.text)
        if not asked:
            continue
        if is_failing(step):
            ledger.fail(index, step, asked)
        else:
            ledger.succeed(index, asked)
    return ledger.everything()


class _Ledger:
    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Complaint] = {}
        self._open: dict[tuple[str, ...], None] = {}

    def everything(self) -> list[Complaint]:
        return list(self._known.values())

    def fail(self, index: int, step: Step, asked: Sequence[Check]) -> None:
        now: set[tuple[str, ...]] = set()
        said: Sequence[StepFinding | None] = step.findings[:_MOST_FINDINGS] or (None,)
        for finding in said:
            check = _asked_for(finding, asked)
            key = _key(check, finding)
            if key in now:
                continue
            now.add(key)
            words = message(finding, step)
            new = Complaint(check, finding, (index,), (words,), first=finding, said=words)
            self._add(key, new)
        self._see_what_is_gone(index, step, asked, now)

    def succeed(self, index: int, asked: Sequence[Check]) -> None:
        for key in list(self._open):
            complaint = self._known[key]
            for check in asked:
                if _answers(check, complaint):
                    self._close(key, index, check)
                    break

    def _add(self, key: tuple[str, ...], new: Complaint) -> None:
        known = self._known.get(key)
        if known is None:
            self._known[key] = new
        else:
            self._known[key] = known._replace(
                fails=(*known.fails, *new.fails)[-_MOST_FINDINGS:],
                messages=(*known.messages, *new.messages)[-_MOST_FINDINGS:],
                finding=new.finding,
                gone=None,
                passing=None,
                first=known.first if known.gone is None else new.first,
                said=known.said if known.gone is None and known.said else new.said,
            )
        self._open[key] = None
        if len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]

    def _see_what_is_gone(
        self, index: int, step: Step, asked: Sequence[Check], now: set[tuple[str, ...]]
    ) -> None:
        """Tests ran and some failed: what was looked at and is not among them is well."""
        ran = [check for check in asked if check.goal == "test" and not check.stops_early]
        tests = [finding for finding in step.findings if finding.test]
        # A report that is cut short says nothing about the rest.
        if not ran or not tests or len(tests) < len(step.findings) or len(tests) >= _MOST_REPORTED:
            return
        for key in list(self._open):
            complaint = self._known[key]
            if (
                key not in now
                and complaint.finding
                and complaint.check.tool == ran[0].tool
                and looks_at(ran[0], complaint.path, complaint.test)
            ):
                self._close(key, index, ran[0])

    def _close(self, key: tuple[str, ...], index: int, check: Check) -> None:
        known = self._known[key]
        passes = (*known.passes, index)[-_MOST_FINDINGS:]
        self._known[key] = known._replace(passes=passes, gone=index, passing=check)
        del self._open[key]


def _answers(check: Check, complaint: Complaint) -> bool:
    """Whether a check that is content says that a complaint is settled."""
    asked = complaint.check
    if covers(check, asked) or is_run_by(asked, check):
        return True
    is_same_tool = check.tool == asked.tool or is_run_by(check, asked)
    return (
        is_same_tool
        and complaint.finding is not None
        and looks_at(check, complaint.path, complaint.test)
        and (check.goal == asked.goal or not complaint.test)
    )


def _asked_for(finding: StepFinding | None, asked: Sequence[Check]) -> Check:
    """Which of the checks of a command line it was that complained."""
    if finding is None:
        return asked[-1]
    wanted = ("test",) if finding.test else ("build", "lint", "test", "run")
    return min(asked, key=lambda check: wanted.index(check.goal) if check.goal in wanted else 9)


def _key(check: Check, finding: StepFinding | None) -> tuple[str, ...]:
    if finding is None:
        return (check.tool, check.goal, *check.targets)
    if finding.test:
        return (check.tool, "test", finding.test)
    said = _NUMBER.sub("0", finding.message[:_LONGEST_MESSAGE])
    return (check.tool, finding.code, finding.path, said)


def _telling(output: str) -> str:
    """The line that says what went wrong, most likely: the first that speaks of an error.

    Many tools end with how often it happened, or where to read more: that says nothing.
    """
    lines = [_DECORATION.sub("", line).strip() for line in output[-4_000:].splitlines()]
    lines = [line for line in lines if line and not _CLOSES.search(line[:400])]
    for speaks in (_NAMES_ERROR, _SPEAKS_OF_ERROR):
        found = next((line for line in lines if speaks.search(line[:400])), "")
        if found:
            return found
    return ""
