"""JSON reports of rustc, cargo, clippy, ruff, eslint, mypy and go test.

A truncated report is read as far as possible.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ctx.code.diagnostics import go_test
from ctx.code.diagnostics.diagnostic_model import SEVERITIES, ToolDiagnostic, ToolSpan
from ctx.code.diagnostics.findings import MOST_DIAGNOSTICS, Findings, OutputReader, number

_ESLINT = '[{"filePath"'
_MOST_OF_OBJECT = 200
_MOST_OUTPUT = 200_000
_DECODER = json.JSONDecoder()
_CUT = "A report in JSON is cut or damaged."


class JsonReader(OutputReader):
    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self._tests: dict[str, list[str]] = {}
        """The output of `go test -json` by package: several may run in parallel."""
        self._tests_told = 0

    def read(self, lines: Sequence[str], at: int) -> int:
        line = lines[at]
        if line.startswith("{"):
            return self._line(line, at)
        if line.startswith(_ESLINT):
            self._eslint(line)
            return at + 1
        if line == "  {":
            return self._ruff(lines, at)
        return at

    def _line(self, line: str, at: int) -> int:
        value = _decoded(line) if line.endswith("}") else None
        if not isinstance(value, dict):
            if '"compiler-message"' in line[:200]:
                self._findings.problems[_CUT] = None
            return at
        if value.get("reason") == "compiler-message" and isinstance(value.get("message"), dict):
            self._rustc(value["message"])
        elif value.get("$message_type") == "diagnostic":
            self._rustc(value)
        elif value.get("reason") == "build-finished":
            self._findings.says_of_part("cargo", "passed" if value.get("success") else "failed")
        elif "Action" in value and ("Package" in value or "ImportPath" in value):
            self._go(value)
        elif "severity" in value and "file" in value and "line" in value:
            self._mypy(value)
        elif "location" in value and "filename" in value:
            self._ruff_object(value)
        elif "reason" not in value:
            return at
        return at + 1

    def _rustc(self, value: dict[str, Any]) -> None:
        message, level = _text(value, "message"), _text(value, "level")
        severity = SEVERITIES.get(level, "error" if level.startswith("error") else "info")
        entry = value.get("code")
        code = _text(entry, "code") if isinstance(entry, dict) else ""
        spans = [*_rust_spans(value)]
        if message.startswith("aborting due to") or not message:
            return
        if not spans and (level == "failure-note" or message.endswith(" emitted")):
            return
        tool = "clippy" if code.startswith("clippy::") else "rustc"
        diagnostic = ToolDiagnostic(tool, severity, message, code, tuple(spans))
        self._findings.add(diagnostic, decides=True)

    def _mypy(self, value: dict[str, Any]) -> None:
        end_column = number(value.get("end_column"))
        column = number(value.get("column"))
        span = ToolSpan(
            _text(value, "file"),
            number(value.get("line")),
            # These count from 0.
            None if column is None else column + 1,
            number(value.get("end_line")) or number(value.get("line")),
            None if end_column is None else end_column + 1,
        )
        severity = SEVERITIES.get(_text(value, "severity"), "error")
        diagnostic = ToolDiagnostic(
            "mypy", severity, _text(value, "message"), _text(value, "code"), (span,)
        )
        self._findings.add(diagnostic, decides=True)

    def _ruff(self, lines: Sequence[str], at: int) -> int:
        """One object of ruff's report, with one line per field."""
        last = min(at + _MOST_OF_OBJECT, len(lines))
        end = at + 1
        while end < last and lines[end].startswith("   "):
            end += 1
        if end >= last or lines[end] not in ("  }", "  },"):
            return at
        value = _decoded("\n".join(lines[at:end]) + "}")
        if not (isinstance(value, dict) and "location" in value and "filename" in value):
            return at
        self._ruff_object(value)
        return end + 1

    def _ruff_object(self, value: dict[str, Any]) -> None:
        ends = (*_row(value.get("location")), *_row(value.get("end_location")))
        span = ToolSpan(_text(value, "filename"), *ends)
        severity = SEVERITIES.get(_text(value, "severity"), "error")
        diagnostic = ToolDiagnostic(
            "ruff", severity, _text(value, "message"), _text(value, "code"), (span,)
        )
        self._findings.add(diagnostic)
        self._findings.fails()

    def _eslint(self, line: str) -> None:
        """One object per file; the last one may be truncated."""
        errors = 0
        for file in _elements(line):
            messages = file.get("messages")
            for message in messages if isinstance(messages, list) else []:
                if not isinstance(message, dict):
                    continue
                severity = "error" if message.get("severity") == 2 else "warning"
                errors += severity == "error"
                shown = number(message.get("line"))
                span = ToolSpan(
                    _text(file, "filePath"),
                    shown,
                    number(message.get("column")),
                    number(message.get("endLine")) or shown,
                    number(message.get("endColumn")),
                )
                self._findings.add(
                    ToolDiagnostic(
                        "eslint",
                        SEVERITIES[severity],
                        _text(message, "message"),
                        _text(message, "ruleId"),
                        (span,),
                    )
                )
        if not line.rstrip().endswith("]"):
            self._findings.problems[_CUT] = None
        self._findings.says("eslint", "failed" if errors else "passed")

    def _go(self, value: dict[str, Any]) -> None:
        package = _text(value, "Package") or _text(value, "ImportPath")
        output = _text(value, "Output")
        self._tests_told += 1
        if len(self._tests) < MOST_DIAGNOSTICS or package in self._tests:
            self._tests.setdefault(package, []).append(output)
        if output.startswith("FAIL\t"):
            self._findings.says_of_part(go_test.TESTS, "failed")

    def close(self) -> None:
        for parts in self._tests.values():
            # Lines may arrive in pieces.
            lines = "".join(parts).split("\n")[:_MOST_OUTPUT]
            reader = go_test.GoTestReader(self._findings)
            at = 0
            while at < len(lines):
                at = max(reader.read(lines, at), at + 1)
            reader.close()


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _elements(line: str) -> Iterator[dict[str, Any]]:
    at = 1
    while True:
        try:
            value, at = _DECODER.raw_decode(line, at)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            yield value
        if line[at : at + 1] != ",":
            return
        at += 1


def _text(value: Any, name: str) -> str:
    text = value.get(name) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def _row(place: object) -> tuple[int | None, int | None]:
    if not isinstance(place, dict):
        return None, None
    return number(place.get("row")), number(place.get("column"))


def _rust_spans(value: dict[str, Any]) -> Iterator[ToolSpan]:
    """The primary places first, then others, then those of the notes."""
    places = value.get("spans")
    here = [span for span in places if isinstance(span, dict)] if isinstance(places, list) else []
    here.sort(key=lambda span: not span.get("is_primary"))
    for span in here:
        yield _rust_span(span, _text(span, "label"))
    children = value.get("children")
    for child in children if isinstance(children, list) else []:
        below = child.get("spans") if isinstance(child, dict) else None
        if _text(child, "level") == "note" and isinstance(below, list):
            for span in below:
                if isinstance(span, dict):
                    yield _rust_span(span, _text(child, "message"))


def _rust_span(value: dict[str, Any], label: str) -> ToolSpan:
    return ToolSpan(
        _text(value, "file_name"),
        number(value.get("line_start")),
        number(value.get("column_start")),
        number(value.get("line_end")),
        number(value.get("column_end")),
        label,
    )
