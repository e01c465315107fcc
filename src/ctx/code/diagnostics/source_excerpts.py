"""Diagnostics with the source drawn beneath them, as rustc, clippy and ruff print them.

error[E0308]: mismatched types
 --> src/lib.rs:8:22
  |
8 |     let count: u32 = items.len();
  |                ---   ^^^^^^^^^^^ expected `u32`, found `usize`
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctx.code.diagnostics.diagnostic_model import ToolSpan
from ctx.code.diagnostics.findings import number

_ARROW = re.compile(r" {0,12}(-->|:::) (.{1,400}?):(\d{1,9}):(\d{1,9})\s*")
_SOURCE = re.compile(r" {0,12}(\d{1,9}) [|]")
_GUTTER = re.compile(r" {0,12}\d{0,9} [|+-]| {0,12}[=.]|(?:note|help|warning|error): ")
_ASIDE = re.compile(r"(?: {0,12}= )?(note|help): (.*)")
_MOST_CONTINUED = 8


class SourceExcerpt(NamedTuple):
    spans: tuple[ToolSpan, ...]
    asides: tuple[str, ...]
    """The notes and help texts below the excerpt, each with its label."""


def begins(lines: Sequence[str], at: int) -> int:
    """The line of the arrow below a heading; 0 if there is none. Messages may have several
    lines."""
    for below in range(at + 1, min(at + _MOST_CONTINUED, len(lines))):
        line = lines[below]
        if _ARROW.fullmatch(line):
            return below
        if not line.startswith("  "):
            return 0
    return 0


def read_excerpt(lines: Sequence[str], arrow: int) -> tuple[SourceExcerpt, int]:
    """Read an excerpt from its first arrow on. Returns it and the line after it."""
    spans: list[ToolSpan] = []
    asides: list[str] = []
    label = ""
    shown: int | None = None
    at = arrow
    while at < len(lines):
        line = lines[at]
        if match := _ARROW.fullmatch(line):
            line_number = number(match[3])
            place = (match[2], line_number, number(match[4]), line_number)
            spans.append(ToolSpan(*place, label=label))
        elif not _GUTTER.match(line):
            break
        elif source := _SOURCE.match(line):
            shown = number(source[1])
        elif aside := _ASIDE.match(line):
            label = aside[2]
            asides.append(f"{aside[1]}: {label}")
        elif len(spans) == 1 and not asides and "^" in line:
            spans[0] = _span_with_underline(spans[0], line, shown)
        at += 1
    return SourceExcerpt(tuple(spans), tuple(asides)), at


def _span_with_underline(span: ToolSpan, line: str, shown: int | None) -> ToolSpan:
    """A span with its end, which the carets below the source mark, and with their label."""
    if span.end_column is not None or shown is None or span.start_line is None:
        return span
    first = line.index("^")
    last = first
    while last < len(line) and line[last] == "^":
        last += 1
    label = line[last:].strip(" -^|")
    if span.label:
        label = span.label
    if shown != span.start_line:
        return span._replace(end_line=max(shown, span.start_line), label=label)
    column = first - line.index("|") - 1
    if column != span.start_column:
        return span
    return span._replace(end_column=column + last - first, label=label)
