"""Keep what a command printed, and how it ended.

Output may be endless, and no text at all. It is read as it comes, and what is kept of it is
bounded: its beginning and its end, and the first lines that tell of an error.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctx.errors import UsageError
from ctx.ids import ObjectId
from ctx.memory import model
from ctx.memory.graph import PROJECT, USER
from ctx.memory.model import Node, Redaction
from ctx.operations.add_note import of_task_and_project
from ctx.redaction import redact
from ctx.workspace import Memory

TAG = "command"

_LONGEST_LINE = 2_000
_MOST_BYTES = 1024 * 1024
_MOST_TELLING = 20
_LAST_LINES = 10
_LONGEST_TOLD = 300
_LONGEST_NAME = 500

# Colours and the movements of a cursor say nothing about what was printed.
_STEERING = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1f]"
)
_TELLING = re.compile(
    r"\b(?:error|errors|failed|failure|fatal|panicked|panic|exception|traceback|undefined"
    r"|unresolved|assert\w*|segmentation fault|not found|cannot|denied|fail)\b",
    re.IGNORECASE,
)
_HINTS = (
    *(b"error", b"fail", b"fatal", b"panic", b"exception", b"traceback", b"undefined"),
    *(b"unresolved", b"assert", b"segmentation", b"not found", b"cannot", b"denied"),
)
_KEY_BEGINS = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_INSIDE_KEY = re.compile(rb"[\s>|#*+-]*(?:[A-Za-z0-9+/=]{16,}|[A-Za-z-]{4,12}: [^\n]{0,100})?\s*")


class Options(NamedTuple):
    name: str
    """What was run: `cargo test`."""
    output: Iterable[bytes]
    """What it printed, as it comes."""
    exit_code: int | None = None
    tags: Sequence[str] = ()
    everywhere: bool = False
    """Whether it belongs to no project, wherever it is said."""


class Kept(NamedTuple):
    """The answer of `ctx add command`."""

    node: Node
    short_id: str
    command: str
    exit_code: int | None
    """None: nobody said how it ended."""
    lines: int
    """How many lines were printed."""
    cut: int
    """How many of them were not kept."""
    blob: ObjectId | None
    """The object that holds the output, in a project."""
    given: tuple[str, ...]
    redacted: tuple[Redaction, ...]


class Printed(NamedTuple):
    """What is left of the output of a command."""

    head: tuple[str, ...]
    tail: tuple[str, ...]
    telling: tuple[str, ...]
    """The first lines that tell of an error, wherever they stood."""
    lines: int

    @property
    def cut(self) -> int:
        return self.lines - len(self.head) - len(self.tail)

    @property
    def text(self) -> str:
        gap = [f"… {self.cut:,} lines left out …"] if self.cut else []
        return "\n".join([*self.head, *gap, *self.tail])


def add_command(memory: Memory, options: Options) -> Kept:
    """An observation: what was run, how it ended, and what it printed."""
    name = " ".join(options.name.split())
    if not name or len(name) > _LONGEST_NAME:
        problem = "has no name" if not name else f"is named in {len(name):,} characters"
        raise UsageError(f"The command {problem}.", hint='Say what was run: --name "cargo test".')
    tags = model.tags([TAG, *options.tags])
    printed = read(options.output, memory.config.integer("ingestion.max_log_lines"))
    clean = redact(printed.text)
    metadata: dict[str, str | int] = {"command": name, "lines": printed.lines}
    if options.exit_code is not None:
        metadata["exit_code"] = options.exit_code
    scope = USER if options.everywhere else None
    blob = None
    with memory.changing("add command", scope) as change:
        given = of_task_and_project(memory, tags, everywhere=options.everywhere)
        content = _headline(name, options.exit_code, printed)
        if change.graph.scope == PROJECT:
            if clean.text:
                from ctx.objects import store

                kept = store.blob(f"{clean.text}\n".encode())
                change.objects.append(kept)
                metadata["blob"] = blob = kept.id
            content = "\n".join([content, *_told(printed, options.exit_code)])
        elif clean.text:
            content = f"{content}\n\n{clean.text}"
        node_id = change.add_node("observation", content, metadata=metadata)
        for tag in (*tags, *given):
            change.tag(node_id, tag)
    graph = memory.graph
    found = [Redaction("output", each.rule, each.line) for each in clean.findings]
    others = [each for each in change.redacted if each.where != "content"]
    return Kept(
        graph.node(node_id),
        graph.shown([node_id])[node_id],
        redact(name).text,
        options.exit_code,
        printed.lines,
        printed.cut,
        blob,
        tuple(given),
        (*found, *others),
    )


def read(output: Iterable[bytes], most_lines: int) -> Printed:
    """Read all of an output, and keep as much of it as is wanted."""
    reading = _Reading(most_lines)
    rest = b""
    for part in output:
        *whole, rest = (rest + part).split(b"\n")
        reading.take(whole)
        # A line without end, such as a binary file, must not fill the memory.
        rest = rest[: 4 * _LONGEST_LINE]
    if rest:
        reading.take([rest])
    return reading.printed()


class _Reading:
    """What is kept while lines come in. Only what is kept is looked at closely."""

    def __init__(self, most_lines: int) -> None:
        self._most_first = most_lines // 2
        self._most_last = most_lines - self._most_first
        self._first: list[bytes] = []
        self._last: deque[bytes] = deque()
        self._telling: list[str] = []
        self._count = self._first_size = self._last_size = 0
        self._in_key = False

    def take(self, lines: list[bytes]) -> None:
        self._count += len(lines)
        whole = b"\n".join(lines)
        if self._in_key or b"PRIVATE KEY" in whole:
            lines = self._without_keys(lines)
            whole = b"\n".join(lines)
        if len(self._telling) < _MOST_TELLING and _may_tell(whole):
            shown = (_shown(line) for line in lines)
            self._telling += (line for line in shown if _TELLING.search(line))
            del self._telling[_MOST_TELLING:]
        self._keep_last(lines[self._keep_first(lines) :])

    def _keep_first(self, lines: list[bytes]) -> int:
        """Keep lines of the beginning; how many."""
        kept = 0
        while (
            kept < len(lines)
            and len(self._first) < self._most_first
            and self._first_size <= _MOST_BYTES // 2
        ):
            self._first.append(lines[kept])
            self._first_size += len(lines[kept])
            kept += 1
        return kept

    def _keep_last(self, lines: list[bytes]) -> None:
        recent = lines[-self._most_last :] if self._most_last else []
        self._last.extend(recent)
        self._last_size += sum(map(len, recent))
        while self._last and (
            len(self._last) > self._most_last or self._last_size > _MOST_BYTES // 2
        ):
            self._last_size -= len(self._last.popleft())

    def _without_keys(self, lines: list[bytes]) -> list[bytes]:
        """Without the inside of private keys: after a cut nobody would know what they are."""
        found = []
        for line in lines:
            self._in_key = self._in_key and _INSIDE_KEY.fullmatch(line) is not None
            found.append(b"" if self._in_key else line)
            self._in_key = self._in_key or _KEY_BEGINS.search(line) is not None
        return found

    def printed(self) -> Printed:
        head, tail = (tuple(map(_shown, lines)) for lines in (self._first, self._last))
        return Printed(head, tail, tuple(self._telling), self._count)


def _may_tell(text: bytes) -> bool:
    """Whether it is worth a closer look; most output is not."""
    lower = text.lower()
    return any(word in lower for word in _HINTS)


def _shown(line: bytes) -> str:
    """A line as a terminal would show it, cut where it is too long to be read."""
    # A progress bar writes over itself: what it said last is what was to be seen.
    seen = _STEERING.sub(b"", line.rstrip(b"\r")).rpartition(b"\r")[2]
    text = seen[:_LONGEST_LINE].decode("utf-8", "replace")
    return text if len(seen) <= _LONGEST_LINE else f"{text} …"


def _headline(name: str, code: int | None, printed: Printed) -> str:
    lines = "1 line" if printed.lines == 1 else f"{printed.lines:,} lines"
    ended = "ended" if code is None else "passed" if code == 0 else f"failed with exit code {code}"
    return f"{name} {ended} ({lines} of output)"


def _told(printed: Printed, code: int | None) -> list[str]:
    """The lines that tell most: the first errors, unless all went well, and how it ended."""
    last = [line for line in (*printed.head, *printed.tail) if line.strip()][-_LAST_LINES:]
    telling = [line for line in printed.telling if line not in last] if code != 0 else []
    chosen = [*telling, "…", *last] if telling else last
    return [
        line if len(line) <= _LONGEST_TOLD else f"{line[:_LONGEST_TOLD].rstrip()}…"
        for line in chosen
    ]
