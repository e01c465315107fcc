"""The diagnostics of any tool."""

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "info", "hint"]
Outcome = Literal["passed", "failed"]

SEVERITIES: dict[str, Severity] = {
    "error": "error",
    "fatal error": "error",
    "fatal": "error",
    "failure-note": "info",
    "warning": "warning",
    "info": "info",
    "information": "info",
    "note": "info",
    "remark": "info",
    "message": "info",
    "suggestion": "hint",
    "help": "hint",
    "hint": "hint",
}

# Folders that contain code of others.
_OF_OTHERS = (
    *("site-packages/", "dist-packages/", "lib/python", "<", "node_modules/", "node:", "/rustc/"),
    *("/.cargo/registry/", "/go/pkg/mod/", "/usr/lib/", "/usr/local/go/", "/usr/include/"),
    "/usr/local/lib/",
)


class ToolSpan(NamedTuple):
    """A range in a file. Lines and columns count from 1; the end column is exclusive."""

    path: str
    """As printed."""
    start_line: int | None = None
    start_column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    label: str = ""
    """What the tool says about this place."""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.start_line}" if self.start_line else self.path


class ToolDiagnostic(NamedTuple):
    tool: str
    severity: Severity
    message: str
    code: str = ""
    spans: tuple[ToolSpan, ...] = ()
    """The primary place first, then related ones."""
    test: str = ""
    """The failed test, if it is one."""

    @property
    def line(self) -> str:
        """One line: `src/lib.rs:3  error[E0433]: could not find …`."""
        place = f"{self.spans[0].place}  " if self.spans else ""
        code = f"[{self.code}]" if self.code else ""
        first = self.message.partition("\n")[0]
        return f"{place}{self.test or f'{self.severity}{code}'}: {first}"


class TestCounts(NamedTuple):
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    errors: int = 0

    def __add__(self, other: object) -> "TestCounts":
        """The sum of two runs."""
        assert isinstance(other, TestCounts)
        return TestCounts(*(one + another for one, another in zip(self, other, strict=True)))


class ToolReport(NamedTuple):
    """Everything that an output contains."""

    tool: str
    """The tool with the most to report; empty if none was recognised."""
    diagnostics: tuple[ToolDiagnostic, ...]
    tests: TestCounts | None
    outcome: Outcome | None
    """None if it is unknown."""
    problems: tuple[str, ...]
    """What could not be read, or exceeded a limit."""


def is_foreign(path: str) -> bool:
    """Whether a path belongs to a library or to the language itself."""
    return any(part in path for part in _OF_OTHERS)


def own(spans: list[ToolSpan]) -> list[ToolSpan]:
    """The places in the project's own code; all places if there are none."""
    return [span for span in spans if not is_foreign(span.path)] or spans
