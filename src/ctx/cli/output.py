"""The one place that prints. Results go to stdout, everything else to stderr.

A result is a value. As JSON it is printed as it is; for people it is turned into blocks (lines
and tables) by the value's renderer, and the blocks are laid out as plain text or markdown.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ctx import clock
from ctx.cli import settings
from ctx.errors import ConfirmationNeeded, CtxError

if TYPE_CHECKING:
    import argparse
    from typing import TextIO


class Line(NamedTuple):
    """A sentence, or a line of a listing."""

    text: str


class Table(NamedTuple):
    """Rows under headings. An empty table prints nothing."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


class Verbatim(NamedTuple):
    """Text that must not be touched: file contents, configuration."""

    text: str


Block = Line | Table | Verbatim


class Output:
    def __init__(self, stdout: "TextIO", stderr: "TextIO", form: str = "text") -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._form = form
        self._quiet = False

    @classmethod
    def for_words(cls, words: list[str], _settings: "settings.Settings") -> "Output":
        """Know the format before the options are parsed: an error in them has one too."""
        joined = " ".join(words)
        wants_json = "--format json" in joined or "--format=json" in joined
        return cls(sys.stdout, sys.stderr, "json" if wants_json else "text")

    def configure(self, options: "argparse.Namespace") -> None:
        self._form = getattr(options, "format", "text")
        self._quiet = getattr(options, "quiet", False)

    @property
    def is_json(self) -> bool:
        return self._form == "json"

    def show(self, value: Any, render: Callable[[Any], list[Block]]) -> None:
        """Print a command's answer in the format that was asked for."""
        if self._form == "json":
            import json

            self.result(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")
        else:
            lay_out = _as_markdown if self._form == "markdown" else _as_text
            self.result("".join(map(lay_out, render(value))))

    def result(self, text: str) -> None:
        # Names that are not UTF-8 reach us as lone surrogates, which no terminal can print.
        self._stdout.write(text.encode("utf-8", "backslashreplace").decode("utf-8"))

    def note(self, text: str) -> None:
        """Something worth knowing beside the result."""
        if not self._quiet:
            self._say(text)

    def warn(self, text: str) -> None:
        self._say(f"warning: {text}")

    def error(self, error: CtxError) -> None:
        if self._form == "json":
            import json

            told = {"code": error.code, "message": error.message, "hint": error.hint}
            self._say(json.dumps({"error": told}, ensure_ascii=False))
            return
        self._say(f"error {error.code}: {error.message}")
        if error.hint:
            self._say(f"  {error.hint}")

    def unexpected(self, error: Exception) -> None:
        """A mistake of ours: say so, and how to see more, without a screen of traceback."""
        import traceback

        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename}:{place.lineno}"
        self.error(CtxError(f"Unexpected {type(error).__name__}: {error} ({where})"))

    def confirm(self, question: str, *, yes: bool) -> None:
        """Go on only if the user agrees; without a terminal only with `--yes`."""
        if yes:
            return
        if not settings.stdin_is_terminal():
            raise ConfirmationNeeded(question)
        self._stderr.write(f"{question} [y/N] ")
        self._stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise ConfirmationNeeded("Nothing was changed.", hint="")

    @contextmanager
    def progress(self, doing: str) -> Iterator[clock.Tick]:
        """Show how far long work is, on a terminal and only if it really takes long."""
        if self._quiet or not self._stderr.isatty():
            yield clock.no_tick
            return
        shown_at = clock.monotonic() + 0.3
        width = 0

        def tick(done: int, total: int) -> None:
            nonlocal shown_at, width
            if clock.monotonic() >= shown_at:
                shown_at = clock.monotonic() + 0.1
                share = 20 * done // max(total, 1)
                line = f"{doing} [{'#' * share:<20}] {done:,}/{total:,}"
                self._stderr.write(f"\r{line:<{width}}")
                self._stderr.flush()
                width = len(line)

        try:
            yield tick
        finally:
            if width:
                self._stderr.write(f"\r{'':<{width}}\r")

    def flush(self) -> None:
        self._stdout.flush()

    def abandon(self) -> None:
        """Keep the interpreter from complaining about a closed pipe when it exits."""
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stdout.fileno())

    def _say(self, text: str) -> None:
        self._stderr.write(text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")


def plain(value: Any) -> Any:
    """A value as JSON has it: named tuples and structs become objects."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(getattr(value, name)) for name in value._fields}
    if hasattr(value, "__struct_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value


def _as_text(block: Block) -> str:
    match block:
        case Line(text):
            return f"{text}\n"
        case Verbatim(text):
            return text
        case Table(_, rows):
            if not rows:
                return ""
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            return "".join(
                "  "
                + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
                + "\n"
                for row in rows
            )


def _as_markdown(block: Block) -> str:
    match block:
        case Line(text):
            return f"{text}\n\n"
        case Verbatim(text):
            fence = "```"
            while fence in text:
                fence += "`"
            return f"{fence}\n{text.rstrip()}\n{fence}\n\n"
        case Table(headings, rows):
            if not rows:
                return ""
            lines = [_row(headings), _row(["---"] * len(headings)), *map(_row, rows)]
            return "\n".join(lines) + "\n\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def size(count: int) -> str:
    """`312 B`, `4.1 KiB`, `2.0 MiB`."""
    if count < 1024:
        return f"{count} B"
    amount = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= 1024
        if amount < 1024:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:.1f} TiB"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `3 files`, `2 copies`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
