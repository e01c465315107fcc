"""What a tool reported, whichever tool it was."""

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

# Whose code it is can be told by where it lies.
_OF_OTHERS = (
    *("site-packages/", "dist-packages/", "lib/python", "<", "node_modules/", "node:", "/rustc/"),
    *("/.cargo/registry/", "/go/pkg/mod/", "/usr/lib/", "/usr/local/go/", "/usr/include/"),
    "/usr/local/lib/",
)


class ToolSpan(NamedTuple):
    """A stretch of a file. Lines and columns count from 1; the end column is behind the last."""

    path: str
    """As it was printed."""
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
    """The place that is meant first, then those that have to do with it."""
    test: str = ""
    """The test that failed, where it is one."""

    @property
    def line(self) -> str:
        """In one line: `src/lib.rs:3  error[E0433]: could not find …`."""
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
        """Those of two runs together."""
        assert isinstance(other, TestCounts)
        return TestCounts(*(one + another for one, another in zip(self, other, strict=True)))


class ToolReport(NamedTuple):
    """All that an output says."""

    tool: str
    """The one with most to say; empty where none was recognised."""
    diagnostics: tuple[ToolDiagnostic, ...]
    tests: TestCounts | None
    outcome: Outcome | None
    """None where nothing says how it ended."""
    problems: tuple[str, ...]
    """What could not be read, or was too much."""


def is_foreign(path: str) -> bool:
    """Whether a path leads into a library or the language itself."""
    return any(part in path for part in _OF_OTHERS)


def own(spans: list[ToolSpan]) -> list[ToolSpan]:
    """The places in code of one's own; all of them where there are none."""
    return [span for span in spans if not is_foreign(span.path)] or spans
