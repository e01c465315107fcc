"""The one place that prints. Results go to stdout, everything else to stderr.

A result is a value. As JSON it is printed as it is; for people it is turned into blocks (lines
and tables) by the value's renderer, and the blocks are laid out as plain text or markdown.
"""

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ctx import clock, disk
from ctx.cli import settings
from ctx.errors import ConfirmationNeeded, CtxError, DiskFailure

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

MOST_ROWS = 20


def listing(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Block]:
    """A table that says how many rows it leaves out, rather than filling the screen."""
    more = len(rows) - MOST_ROWS
    left_out: list[Block] = [Line(f"  … and {more:,} more")] if more > 0 else []
    return [Table(headings, rows[:MOST_ROWS]), *left_out]


class ReaderGone(Exception):
    """Nobody reads our output any more."""


class Output:
    def __init__(
        self, stdout: "TextIO | None", stderr: "TextIO | None", form: str = "text"
    ) -> None:
        self._stdout = _lenient(stdout)
        self._stderr = _lenient(stderr)
        self._form = form
        self._quiet = False

    @classmethod
    def for_words(cls, words: list[str]) -> "Output":
        """Know the format before the options are parsed: an error in them has one too."""
        joined = " ".join(words)
        wants_json = "--format json" in joined or "--format=json" in joined
        return cls(sys.stdout, sys.stderr, "json" if wants_json else "text")

    def configure(self, options: "argparse.Namespace") -> None:
        self._form = getattr(options, "format", "text")
        self._quiet = getattr(options, "quiet", False)

    def show(self, value: Any, render: Callable[[Any], list[Block]]) -> None:
        """Print a command's answer in the format that was asked for."""
        if self._form == "json":
            self.result(self._json(value, indent=2))
            return
        blocks = [self._shown(block) for block in render(value)]
        lay_out = _as_markdown if self._form == "markdown" else _as_text
        self.result("".join(map(lay_out, blocks)))

    def result(self, text: str) -> None:
        self._write(self._stdout, text)

    def _shown(self, block: Block) -> Block:
        """A block without control characters: a stranger's text could steer the terminal."""
        match block:
            case Line(text):
                return Line(_visible(text))
            case Table(headings, rows):
                return Table(headings, [[_visible(cell) for cell in row] for row in rows])
            case Verbatim(text):
                return Verbatim(_visible(text, "\n\t")) if self._stdout.isatty() else block

    def _json(self, value: Any, indent: int | None = None) -> str:
        import json

        # Where the stream cannot carry every character, JSON's own escapes can.
        encoding = getattr(self._stdout, "encoding", None) or "utf-8"
        escaped = encoding.lower().replace("-", "") != "utf8"
        return json.dumps(plain(value), ensure_ascii=escaped, indent=indent) + "\n"

    def _write(self, stream: "TextIO", text: str) -> None:
        try:
            stream.write(_text(text))
        except BrokenPipeError:
            _abandon(stream)
            raise ReaderGone from None
        except OSError as error:
            raise disk.failure("printing the answer", error) from error

    def note(self, text: str) -> None:
        """Something worth knowing beside the result; for people, so not beside JSON."""
        if not self._quiet and self._form != "json":
            self._say(_visible(text))

    def warn(self, text: str) -> None:
        if self._form == "json":
            self._say(self._json({"warning": text}).rstrip())
        else:
            self._say(f"warning: {_visible(text)}")

    def error(self, error: CtxError) -> None:
        if self._form == "json":
            told = {"code": error.code, "message": error.message, "hint": error.hint}
            self._say(self._json({"error": told}).rstrip())
            return
        self._say(f"error {error.code}: {_visible(error.message)}")
        if error.hint:
            self._say(f"  {_visible(error.hint)}")

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
        try:
            self._stdout.flush()
        except BrokenPipeError:
            _abandon(self._stdout)
            raise ReaderGone from None
        except OSError as error:
            _abandon(self._stdout)
            raise disk.failure("printing the answer", error) from error

    def _say(self, text: str) -> None:
        # What is said beside the answer comes after it, and must not decide over its success.
        with suppress(OSError, ReaderGone, DiskFailure):
            self._stdout.flush()
            self._write(self._stderr, text + "\n")


def _lenient(stream: "TextIO | None") -> "TextIO":
    """A stream that takes any character; one that takes everything where there is none."""
    if stream is None:
        return io.StringIO()
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _abandon(stream: "TextIO") -> None:
    """Keep the interpreter from complaining about a closed pipe when it exits."""
    with suppress(OSError, io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _visible(text: str, but: str = "") -> str:
    """Control characters as escapes. Line ends count too: a file's name could forge a row."""
    if text.isprintable():
        return text
    return "".join(f"\\x{ord(c):02x}" if _steers(c) and c not in but else c for c in text)


def _steers(character: str) -> bool:
    """Whether a character moves the cursor, ends a line, or turns the direction of writing."""
    return (
        character < " "
        or "\x7f" <= character < "\xa0"
        or "\u2028" <= character <= "\u202e"
        or "\u2066" <= character <= "\u2069"
    )


def _text(text: str) -> str:
    """Text that any stream of ours takes: bytes of a name that are not UTF-8 as escapes."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _width(text: str) -> int:
    """Columns on a terminal: the characters of East Asian scripts take two."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in text)


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
        return _text(value)
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, int | float) else str(value)


def _as_text(block: Block) -> str:
    match block:
        case Line(text):
            return f"{text}\n"
        case Verbatim(text):
            return text
        case Table(_, rows):
            if not rows:
                return ""
            widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
            padded = (
                [cell + " " * (w - _width(cell)) for cell, w in zip(row, widths, strict=True)]
                for row in rows
            )
            return "".join(f"  {'  '.join(cells)}".rstrip() + "\n" for cells in padded)


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
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


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
