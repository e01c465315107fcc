"""The one place that prints. Results go to stdout, everything else to stderr.

A result is a value. As JSON it is printed as it is; for people it is turned into blocks (lines
and tables) by the value's renderer, and the blocks are laid out as plain text or markdown.
On a terminal plain text has headings and colours; in a pipe it is bare.
"""

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ctx import clock, interrupts
from ctx.cli import settings
from ctx.cli.settings import Screen
from ctx.cli.table_layout import table_text
from ctx.cli.terminal import (
    KINDS,
    colour_text,
    one_line,
    shortened_in_the_middle,
    visible,
    visible_json,
    visible_lines,
    wrapped,
)
from ctx.errors import ConfirmationNeeded, CtxError, DiskFailure

if TYPE_CHECKING:
    from typing import TextIO


class Line(NamedTuple):
    """A sentence, a line of a listing, or (by its kind) a heading.

    An empty line separates blocks; markdown does so anyway.
    """

    text: str
    kind: str = ""


class Table(NamedTuple):
    """Rows under headings. An empty table prints nothing."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    kinds: Sequence[str] = ()
    """The kinds of the columns, from the left; columns without a kind are plain."""


class VerbatimText(NamedTuple):
    """Text that is printed as it is, except for hidden characters: file contents, configuration."""

    text: str


class Markdown(NamedTuple):
    """Text that is already markdown, as an agent gets it."""

    text: str


Block = Line | Table | VerbatimText | Markdown

MOST_ROWS = 20

_FOR_PROGRAMS = ("json", "yaml")

_PLAIN = Screen()
_RECENT_MS = 60 * 86_400_000
_SKEW_MS = 60_000


def listing(
    headings: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[str] = ()
) -> list[Block]:
    """A table with a limited number of rows, and the number of the others."""
    more = len(rows) - MOST_ROWS
    left_out: list[Block] = [Line(f"  … and {more:,} more", "dim")] if more > 0 else []
    return [Table(headings, rows[:MOST_ROWS], kinds), *left_out]


def beyond_limit(more: int, kind: str = "dim") -> list[Block]:
    """The line below a list that `--limit` has cut, if it has."""
    return [Line(f"  … and {more:,} more (--limit)", kind)] if more > 0 else []


class ReaderGone(Exception):
    """The reader has closed our output."""


class Declined(Exception):
    """The user answered no."""


class Output:
    def __init__(
        self,
        stdout: "TextIO | None",
        stderr: "TextIO | None",
        form: str = "text",
        screen: Screen = _PLAIN,
    ) -> None:
        self.is_closed = stdout is None
        """Whether the process was started without an output."""
        self._stdout = _lenient(stdout)
        self._stderr = _lenient(stderr)
        self._form = form
        self._screen = screen
        self._is_form_given = False
        self._quiet = False
        self._colours = "auto"
        self._chosen = ""
        self._warned: set[str] = set()
        self._withholds = False

    @classmethod
    def for_words(cls, words: list[str], screen: Screen) -> "Output":
        """Detect the format before the options are parsed: errors in them use it too."""
        before_dashes = words[: words.index("--")] if "--" in words else words
        wants_json = "--format=json" in before_dashes or "--json" in before_dashes
        wants_json = wants_json or ("--format", "json") in pairwise(before_dashes)
        return cls(sys.stdout, sys.stderr, "json" if wants_json else "text", screen)

    def configure(self, options: argparse.Namespace) -> None:
        self._form = getattr(options, "format", "text")
        self._is_form_given = hasattr(options, "format")
        self._quiet = getattr(options, "quiet", False)
        if getattr(options, "no_pager", False):
            self._screen = self._screen._replace(pager="")
        self._colours = getattr(options, "color", "auto")
        if self._colours != "auto":
            self._screen = self._screen._replace(colours=self._colours == "always")
        for name, word in (("-C", "in_folder"), ("--db", "db")):
            if value := getattr(options, word, None):
                import shlex

                self._chosen += f"{name} {shlex.quote(value)} "

    def show(self, value: Any, render: Callable[[Any], list[Block]]) -> None:
        """Print the answer of a command in the chosen format."""
        if self._form in _FOR_PROGRAMS:
            self._write(self._data(value, self._form))
            return
        self._write(self._for_people(value, render))

    def show_long(self, value: Any, render: Callable[[Any], list[Block]]) -> None:
        """The same for an answer that may be long: on a terminal, a pager shows it then."""
        if self._form in _FOR_PROGRAMS or not (self._screen.pager and self.is_interactive):
            self.show(value, render)
            return
        text = self._for_people(value, render)
        if self._screen.rows and text.count("\n") >= self._screen.rows:
            from ctx.cli import pager

            self.flush()
            if pager.show(self._screen.pager, text):
                return
        self._write(text)

    def _for_people(self, value: Any, render: Callable[[Any], list[Block]]) -> str:
        blocks = [self._visible_block(block) for block in render(value)]
        is_screen = self._stdout.isatty() or self._colours == "always"
        return _format_blocks(blocks, self._form, self._screen if is_screen else None)

    def file_text(self, value: Any, render: Callable[[Any], list[Block]]) -> str:
        """An answer for a file: JSON unless a format was given."""
        form = self._form if self._is_form_given else "json"
        if form in _FOR_PROGRAMS:
            return _text(self._data(value, form))
        return _text(
            _format_blocks([self._visible_block(block) for block in render(value)], form, None)
        )

    def prefer(self, form: str) -> None:
        """The format if none was given."""
        if not self._is_form_given:
            self._form = form

    def _data(self, value: Any, form: str) -> str:
        """An answer for programs."""
        if self._withholds:
            value = {**plain(value), "withheld": True}
        if form == "json":
            return self._json(value, indent=2)
        from ctx.cli.yaml_text import as_yaml

        return as_yaml(plain(value))

    def help(self, text: str) -> None:
        self.show({"help": text}, lambda _: [VerbatimText(text)])

    def preview(self, blocks: list[Block]) -> None:
        """Show what a confirmation is about before asking."""
        if self._form != "json":
            screen = self._screen if self._stderr.isatty() else None
            text = "".join(_as_text(self._visible_block(block), screen) for block in blocks)
            self._print_message(text.rstrip("\n"))

    def result(self, text: str) -> None:
        """Print an answer that is already text."""
        self._write(visible_lines(text))

    @property
    def appears(self) -> bool:
        """Whether a long answer is printed as it arrives. Other formats are printed at once."""
        return self._form == "text"

    def appear(self, piece: str) -> None:
        """Print a part of such an answer, without carriage returns."""
        self._write(visible_lines(piece.replace("\r", "")))

    def _visible_block(self, block: Block) -> Block:
        """A block without hidden characters: foreign text could control the terminal.

        Also in a pipe: its reader may be a terminal or an agent.
        """
        match block:
            case Line(text, kind):
                return Line(visible(text), kind)
            case Table(headings, rows, kinds):
                known = [*kinds, *[""] * (len(headings) - len(kinds))]
                assert KINDS.keys() >= set(known), f"{known} are not all kinds of columns"
                in_one_line = [self._form == "markdown" or kind == "text" for kind in known]
                cells = [
                    [
                        visible(one_line(cell) if flat else cell)
                        for cell, flat in zip(row, in_one_line, strict=True)
                    ]
                    for row in rows
                ]
                return Table(headings, cells, known)
            case VerbatimText(text):
                return VerbatimText(visible_lines(text))
            case Markdown(text):
                return Markdown(visible_lines(text))

    def _json(self, value: Any, indent: int | None = None) -> str:
        import json

        # If the stream cannot encode every character, JSON escapes are used.
        encoding = getattr(self._stdout, "encoding", None) or "utf-8"
        escaped = encoding.lower().replace("-", "") != "utf8"
        return visible_json(json.dumps(plain(value), ensure_ascii=escaped, indent=indent)) + "\n"

    def _write(self, text: str) -> None:
        """Write a part of the answer and flush it."""
        with self._report_write_errors():
            self._stdout.write(_text(text))
            self._stdout.flush()

    def flush(self) -> None:
        with self._report_write_errors():
            self._stdout.flush()

    @contextmanager
    def _report_write_errors(self) -> Iterator[None]:
        """Errors in writing the answer are reported once, and not again at exit."""
        try:
            with interrupts.InterruptibleOutput():
                yield
        except BrokenPipeError:
            _abandon(self._stdout)
            raise ReaderGone from None
        except OSError as error:
            _abandon(self._stdout)
            reason = error.strerror or type(error).__name__
            hint = "The change is stored." if interrupts.has_stored() else None
            raise DiskFailure(f"Cannot print the answer: {reason}.", hint=hint) from error

    def withhold(self) -> None:
        """Tell programs that an untrusted project store is not part of the answer."""
        self._withholds = True

    def note(self, text: str) -> None:
        """A note for people, not printed beside JSON."""
        if not self._quiet and self._form != "json":
            self._print_message(self._prose(self._runnable_hint(text)))

    def interrupted(self, text: str) -> None:
        """The message about an interruption, below the `^C` of a terminal."""
        if text and not self._quiet and self._form != "json":
            self._print_message(f"\n{text}" if self._stderr.isatty() else text)

    def warn(self, text: str) -> None:
        """A warning; printed once, even if several parts of a command report it."""
        text = self._runnable_hint(text)
        if text in self._warned:
            return
        self._warned.add(text)
        if self._form == "json":
            self._print_message(self._json({"warning": text}).rstrip())
        else:
            label = self._label("warning:", "warning")
            self._print_message(f"{label} {self._prose(text, 9)}")

    def error(self, error: CtxError) -> None:
        if self._withholds and error.quotes_store:
            error = error.unquoted()
        hint = self._runnable_hint(error.hint or "")
        if self._form == "json":
            fields = {"code": error.code, "message": error.message, "hint": hint or None}
            if error.detail:
                fields["detail"] = error.detail
            self._print_message(self._json({"error": fields}).rstrip())
            return
        label = f"error {error.code}:"
        message = self._prose(error.message, len(label) + 1)
        self._print_message(f"{self._label(label, 'error')} {message}")
        if error.detail:
            self._print_message(visible_lines(error.detail))
        if hint:
            self._print_message(self._prose(f"  {hint}"))

    def _runnable_hint(self, text: str) -> str:
        """A hint whose commands can be typed as they are, for the chosen store."""
        if not self._chosen:
            return text
        # A command that names a store already means another one.
        typed = text.replace("`ctx ", f"`ctx {self._chosen}")
        return typed.replace(f"`ctx {self._chosen}--db ", "`ctx --db ")

    def unexpected(self, error: Exception, *, debugging: bool) -> None:
        """An internal error: report it, and say how to see the traceback."""
        import traceback

        place = traceback.extract_tb(error.__traceback__)[-1]
        message = f"Unexpected {type(error).__name__}: {error} ({place.filename}:{place.lineno})"
        hint = "This is a bug in ctx. "
        if debugging:
            lines = "".join(traceback.format_exception(error)).rstrip()
            self.error(
                CtxError(message, detail=lines, hint=hint + "Please report the lines above.")
            )
        else:
            self.error(CtxError(message, hint=hint + "Set CTX_DEBUG=1 to see the traceback."))

    @property
    def is_on_a_terminal(self) -> bool:
        """Whether the answer goes to a terminal."""
        return self._stdout.isatty()

    @property
    def is_for_people(self) -> bool:
        """Whether the answer is read by a person, not by a program."""
        return self._form == "text"

    @property
    def is_interactive(self) -> bool:
        """Whether a program that we start can use the terminal."""
        return settings.stdin_is_terminal() and self._stdout.isatty()

    @property
    def has_reader(self) -> bool:
        """Whether a person reads the messages beside the answer."""
        return self._stderr.isatty() and self._form != "json" and not self._quiet

    def ask(self, question: str) -> str:
        """The input of the user; empty at the end of the input."""
        self._print_message(f"{self._prose(question)} ", end="")
        line = settings.read_line()
        if line is None:
            # The cursor is still behind the question.
            self._print_message("")
        return line or ""

    def confirm(self, question: str, *, yes: bool) -> None:
        """Continue only if the user agrees; without a terminal only with `--yes`."""
        if yes:
            return
        if not settings.stdin_is_terminal():
            raise ConfirmationNeeded(f"Confirmation needed: {question}")
        if self.ask(f"{question} [y/N]").lower() not in ("y", "yes"):
            raise Declined

    @contextmanager
    def progress(self, doing: str) -> Iterator[clock.Tick]:
        """Show the progress of long work, on a terminal, and only if it takes long."""
        if self._quiet or not self._stderr.isatty():
            yield clock.no_tick
            return
        shown_at = clock.monotonic() + 0.3
        longest = 0

        def tick(done: int, total: int) -> None:
            nonlocal shown_at, longest
            if clock.monotonic() >= shown_at:
                shown_at = clock.monotonic() + 0.1
                share = 20 * done // max(total, 1)
                line = f"{visible(doing)} [{'#' * share:<20}] {done:,}/{total:,}"
                # A line that wraps could not be cleared.
                line = line[: self._screen.columns - 1]
                self._print_message(f"\r{line:<{longest}}", end="")
                longest = len(line)

        try:
            yield tick
        finally:
            if longest:
                self._print_message(f"\r{'':<{longest}}\r", end="")

    def close(self) -> None:
        """Flush before the process ends; later, Python would report the error."""
        for stream in (self._stdout, self._stderr):
            try:
                stream.flush()
            except OSError:
                _abandon(stream)

    def _prose(self, text: str, before: int = 0) -> str:
        """A message as the terminal shows it, after so many columns of its first line."""
        shown = visible(text)
        if not self._stderr.isatty():
            return shown
        return wrapped(f"{'.' * before}{shown}", self._screen.columns)[before:]

    def _label(self, text: str, kind: str) -> str:
        is_screen = self._stderr.isatty() or self._colours == "always"
        return colour_text(text, kind) if self._screen.colours and is_screen else text

    def _print_message(self, text: str, end: str = "\n") -> None:
        """Print a message beside the answer. A failure must not affect the result."""
        try:
            self._stderr.write(_text(text + end))
            self._stderr.flush()
        except OSError:
            _abandon(self._stderr)


def _lenient(stream: "TextIO | None") -> "TextIO":
    """A stream that accepts any character; one that discards everything if there is none."""
    if stream is None:
        return io.StringIO()
    if isinstance(stream, io.TextIOWrapper):
        # This flushes the stream first. The next write reports what could not be written.
        with suppress(OSError):
            stream.reconfigure(errors="backslashreplace")
    return stream


def _abandon(stream: "TextIO") -> None:
    """Keep the interpreter from reporting a closed pipe at exit."""
    with suppress(OSError, io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _text(text: str) -> str:
    """Text that all our streams accept: invalid UTF-8 in names becomes escapes."""
    if text.isascii():
        return str(text)
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def plain(value: Any) -> Any:
    """A value as JSON has it: named tuples and structs become objects."""
    # Most values are one of these.
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(getattr(value, name)) for name in value._fields}
    if hasattr(value, "__struct_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else str(value)


def _format_blocks(blocks: Sequence[Block], form: str, screen: Screen | None) -> str:
    """An answer for people and agents."""
    if form == "markdown":
        text = "".join(map(_as_markdown, blocks)).rstrip("\n")
        return f"{text}\n" if text else ""
    return "".join(_as_text(block, screen) for block in blocks)


def _as_text(block: Block, screen: Screen | None) -> str:
    """A block as plain text; with the screen if a terminal shows it."""
    match block:
        case Line(text, kind):
            shown = text
            if screen and kind in ("", "dim"):
                shown = wrapped(text, screen.columns)
            elif screen and kind == "heading":
                shown = shortened_in_the_middle(text, screen.columns)
            return f"{colour_text(shown, kind) if screen and screen.colours else shown}\n"
        case VerbatimText(text):
            return text
        case Markdown(text):
            return text if text.endswith("\n") else f"{text}\n"
        case Table(_, [], _):
            return ""
        case Table(headings, rows, kinds):
            return table_text(headings, rows, kinds, screen)


def _as_markdown(block: Block) -> str:
    match block:
        case Line("", _):
            return ""
        case Line(text, kind):
            return f"{'## ' if kind == 'heading' else ''}{text}\n\n"
        case VerbatimText(text):
            fence = "```"
            while fence in text:
                fence += "`"
            return f"{fence}\n{text.rstrip()}\n{fence}\n\n"
        case Markdown(text):
            return text.strip("\n") + "\n\n"
        case Table(headings, rows):
            if not rows:
                return ""
            lines = [_row(headings), _row(["---"] * len(headings)), *map(_row, rows)]
            return "\n".join(lines) + "\n\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    """A cell that stays in its column, whatever it contains."""
    for special in "\\|<":
        text = text.replace(special, f"\\{special}")
    # Some renderers let code extend over the end of a cell: only paired backticks are code.
    if "``" in text or text.count("`") % 2:
        text = text.replace("`", "\\`")
    return text


def age_text(text: str, now_ms: int | None = None) -> str:
    """How long ago an ISO time was: `2 h`; the date if that is more than 60 days, or in the
    future."""
    ms = clock.parse_iso(text)
    if ms is None:
        return text
    passed = (clock.now_ms() if now_ms is None else now_ms) - ms
    return clock.age(passed / 1000) if -_SKEW_MS <= passed <= _RECENT_MS else clock.iso(ms)[:10]


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
