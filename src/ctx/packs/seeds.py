"""Look up what a task names: files, items, tasks and decisions.

A name that one item has refers to it with certainty. A name of several items is less certain, and a
very common name is left to the text search.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ctx import terms
from ctx.code import file_roles
from ctx.code.lookup import Code, LocatedItem, name_parts, without_impls
from ctx.errors import CtxError
from ctx.ids import NodeId
from ctx.memory import documents_by_number
from ctx.memory.graphs import Graphs
from ctx.search import trace_frames
from ctx.search.entities import Entities
from ctx.search.trace_frames import CodeFrame

_MOST_NAMESAKES = 12
_MOST_CHECKED = 100
_MOST_NAMES = 20
_MOST_PATHS = 20
_MOST_FRAMES = 12
_MOST_FRAME_FILES = 5
"""Files further out in a stack trace are not mentioned for their own sake."""
_MOST_SCANS = 3
_FRAME_FADES = 0.85
"""The factor per stack frame: a caller is less related to a failure than the function it calls."""
_PLUMBING = 0.4
"""The factor for entry points and wrappers, which are in most stack traces of a program."""
_MOST_COMMANDS = 5
_MOST_OF_NAME = 1_000
_MOST_LIKELY = 3
_LEAST_SHARED = 3
"""The components of an absolute path that must match if it is from another machine."""
_MOST_WRAPPED = 2
_LIBRARY = re.compile(
    r".*/(?:(?:site|dist)-packages/|node_modules/(?:@[^/]{1,100}/)?[^/]{1,100}/"
    r"|gems/[^/]{1,100}-\d[^/]{0,50}/|pkg/mod/.{1,200}@[^/]{1,100}/"
    r"|registry/src/[^/]{1,100}/[^/]{1,100}/|vendor/[^/]{1,100}/[^/]{1,100}/)"
)
"""The folder of an installed library: what follows is a path in its project."""
_VERSION_AT_END = re.compile(r"/v\d{1,3}$")
_IN_TRACE = 0.5
"""The confidence that the file of the innermost frame is meant: a failure passes through files that
are right."""
_WRAPPED = 0.5
"""The confidence for a name whose owner is another one than in the task."""


class NamedSeeds(NamedTuple):
    """Items and files that a task names."""

    items: dict[int, float]
    """The confidence that each is meant, up to 1."""
    in_order: tuple[LocatedItem, ...]
    """The same items in the order in which they are named."""
    files: dict[str, float]
    """The confidence that each is meant: less for a stack frame than for a path in the text."""


def in_code(code: Code, mentioned: Entities) -> NamedSeeds:
    files = _Files(code)
    items: dict[int, float] = {}
    located: dict[int, LocatedItem] = {}
    paths = {
        path: 1.0
        for word in mentioned.paths[:_MOST_PATHS]
        for path in files.meant(word) or files.not_parsed(word)
    }

    def take(meant: Sequence[LocatedItem], sure: float) -> None:
        for item in meant:
            items[item.id] = max(items.get(item.id, 0.0), sure)
            located.setdefault(item.id, item)

    in_trace: dict[str, float] = {}
    for path, meant, sure in _of_frames(code, files, mentioned.frames):
        take(meant, sure)
        if sure > _PLUMBING and len(in_trace) < _MOST_FRAME_FILES:
            in_trace.setdefault(path, _IN_TRACE * sure)
    paths = in_trace | paths
    for name in mentioned.names[:_MOST_NAMES]:
        meant = items_named(code, name)
        if meant:
            take(meant, 1.0 / len(meant))
        elif meant := _wrapped(code, name):
            take(meant, _WRAPPED / len(meant))
    for command in mentioned.commands[:_MOST_COMMANDS]:
        # Its file is not mentioned: the change is as often in what the command calls.
        if meant := _implementing(code, command):
            take(meant, _WRAPPED / len(meant))
    return NamedSeeds(items, tuple(located.values()), paths)


def project_words(code: Code) -> frozenset[str]:
    """The term for the name of the project, as its manifests in the root folder write it.

    It is rare among the names that files define, but a task that contains it says nothing about
    the file, unless a file has that name. The parts of a name of several words are kept:
    `shop-orders` is about orders.
    """
    rows = code.connection.execute("SELECT name FROM packages WHERE root = '.'").fetchall()
    # The last part of `github.com/acme/shop/v2`, `@acme/shop` and `com.acme:shop`.
    names = (re.split(r"[/:]", _VERSION_AT_END.sub("", name))[-1] for (name,) in rows)
    return frozenset(
        own[-1] for name in names if (own := terms.extract(name)) and not _names_a_file(code, name)
    )


def _names_a_file(code: Code, name: str) -> bool:
    spellings = name, name.lower(), name.capitalize()
    row = code.connection.execute(
        "SELECT 1 FROM items WHERE name IN (?, ?, ?) AND parent IS NULL LIMIT 1", spellings
    ).fetchone()
    return row is not None


def in_memory(graphs: Graphs, mentioned: Entities) -> list[NodeId]:
    """The tasks and decisions that are named."""
    node_ids: dict[NodeId, None] = {}
    for name in mentioned.tasks[:_MOST_NAMES]:
        for connection in graphs.connections:
            try:
                node_ids.setdefault(documents_by_number.find(connection, name))
            except CtxError:
                # There is no such document, or there are two.
                continue
    return list(node_ids)


def items_named(code: Code, name: str) -> list[LocatedItem]:
    """The items with a name, if it is specific enough."""
    wanted = name_parts(name)
    if not wanted:
        return []
    rows = code.connection.execute(
        "SELECT id FROM items WHERE name = ? LIMIT ?", (wanted[-1], _MOST_CHECKED + 1)
    ).fetchall()
    if len(rows) > (_MOST_CHECKED if len(wanted) > 1 else _MOST_NAMESAKES):
        return []
    every = code.located([item for (item,) in rows])
    meant = [item for item in every if name_parts(item.name)[-len(wanted) :] == wanted]
    if not meant and len(wanted) > 1:
        # Names in the middle may be missing, or the item is re-exported: only the owner must match.
        meant = [item for item in every if name_parts(item.name)[-2:] == wanted[-2:]]
    meant = without_impls(meant)
    return meant if len(meant) <= _MOST_NAMESAKES else []


def _wrapped(code: Code, name: str) -> list[LocatedItem]:
    """The items that a qualified name may mean if they are defined elsewhere: a call on a variable,
    or a name that a package re-exports."""
    *owners, last = name_parts(name) or [""]
    if not owners:
        return []
    meant = [item for item in items_named(code, last) if not file_roles.is_test(item.path)]
    exported = [item for item in meant if owners[0] in name_parts(item.name)]
    if not exported and len(terms.split_identifier(last)) == 1:
        # `os.kill` is another function than the `kill` of this project.
        return []
    meant = exported or meant
    return meant if len(meant) <= _MOST_WRAPPED else []


def _of_frames(
    code: Code, files: "_Files", frames: Iterable[CodeFrame]
) -> Iterator[tuple[str, list[LocatedItem], float]]:
    """The paths and items of stack frames in this project, innermost first, with confidence."""
    own = [
        (frame, *place) for frame in frames if (place := _of_frame(code, files, frame)) is not None
    ]
    sure = 1.0
    for number, (frame, path, meant) in enumerate(own[:_MOST_FRAMES]):
        # The innermost frame counts, whatever its name is. Outside of functions, the others only
        # import the next one.
        if number and (not meant or trace_frames.is_plumbing(frame)):
            yield path, meant, min(sure, _PLUMBING)
        else:
            yield path, meant, sure
            sure *= _FRAME_FADES


def _of_frame(
    code: Code, files: "_Files", frame: CodeFrame
) -> tuple[str, list[LocatedItem]] | None:
    for path in files.meant(frame.path)[:1]:
        items = code.find(f"{path}:{frame.line}")
        return path, [item for item in items if item.kind != "module"]
    if not frame.name or trace_frames.is_of_others(frame):
        return None
    meant = items_named(code, frame.name)
    return (meant[0].path, meant) if len(meant) == 1 else None


class _Files:
    """Finds files by paths that may begin elsewhere or be only a suffix."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._known: dict[str, list[str]] = {}
        self._scans = 0

    def meant(self, path: str) -> list[str]:
        if path not in self._known:
            self._known[path] = self._paths_ending(path)
        return self._known[path]

    def _paths_ending(self, path: str) -> list[str]:
        whole = path.replace("\\", "/")
        if "\0" in whole or len(whole) > 1_000:
            return []
        library = _LIBRARY.search(whole)
        for end in () if library else _ends(whole):
            if file := self._code.file(end):
                return [file.path]
        pieces = _components(whole[library.end() if library else 0 :])
        if not pieces or whole.startswith("../"):
            return []
        is_absolute = whole.startswith(("/", "~")) or whole[1:2] == ":"
        return self._parsed_ending(pieces, bool(library) or not is_absolute)

    def _parsed_ending(self, pieces: Sequence[str], is_whole: bool) -> list[str]:
        """The parsed files that share most of the end of a path. The path of a file that was
        elsewhere on another machine need not match whole."""
        # The item of a file has the name of the file.
        rows = self._code.connection.execute(
            "SELECT path FROM items JOIN files ON files.id = items.id >> 16"
            " WHERE items.name = ? AND parent IS NULL LIMIT ?",
            (pieces[-1].partition(".")[0], _MOST_OF_NAME),
        )
        shared = {path: _shared_end(path.split("/"), pieces) for (path,) in rows}
        best = max(shared.values(), default=0)
        if best < (len(pieces) if is_whole else _LEAST_SHARED):
            return []
        likely = [path for path, count in shared.items() if count == best]
        return sorted(likely, key=len) if len(likely) <= _MOST_LIKELY else []

    def not_parsed(self, path: str) -> list[str]:
        """The files of any kind whose path ends like this, which requires a scan of all paths."""
        pieces = _components(path.replace("\\", "/"))
        if self._scans >= _MOST_SCANS or not pieces or ".." in path or len(path) > 1_000:
            return []
        self._scans += 1
        escaped = re.sub(r"([%_\\])", r"\\\1", "/".join(pieces))
        rows = self._code.connection.execute(
            "SELECT path FROM files WHERE path LIKE ? ESCAPE '\\' ORDER BY length(path) LIMIT ?",
            (f"%/{escaped}", _MOST_LIKELY + 1),
        ).fetchall()
        return [other for (other,) in rows] if len(rows) <= _MOST_LIKELY else []


def _components(path: str) -> list[str]:
    return [piece for piece in path.split("/") if piece not in ("", ".", "..")]


def _shared_end(own: Sequence[str], other: Sequence[str]) -> int:
    """How many components at the end of two paths are the same."""
    count = 0
    for one, two in zip(reversed(own), reversed(other), strict=False):
        if one != two:
            break
        count += 1
    return count


def _ends(path: str) -> Iterable[str]:
    """The path, and its suffixes without the first folders; a bare name is too little."""
    pieces = [piece for piece in path.split("/") if piece not in ("", ".")]
    if path.startswith("/"):
        yield path
    for first in range(max(1, len(pieces) - 1) if len(pieces) > 1 else 1):
        if rest := "/".join(pieces[first:]):
            yield rest


# The code that implements a command that a task names, such as `shop place-order --gift`.

_MOST_IMPLEMENTING = 3
"""A name that more items have is not the name of a command."""
_MOST_COMMAND_NAMES = 60
_SEPARATORS = re.compile(r"[-_:]")
_COMMAND_FOLDERS = frozenset(
    "__main__ actions bin cli cmd cmds command commands console main subcommand subcommands"
    " tasks verbs".split()
)
# The functions and files of commands are named alike in most projects: `place_order` in
# `cli/orders.py`, `cmd_place_order`, `NewPlaceOrderCmd`, `PlaceOrderCommand` in
# `commands/placeOrder.ts`.
_SNAKE = ("cmd_{}", "{}_cmd", "command_{}", "{}_command", "do_{}", "run_{}", "handle_{}")
_CAMEL = ("{}Cmd", "{}Command", "{}Action")
_PASCAL = tuple("{}Cmd {}Command Cmd{} New{}Cmd New{}Command NewCmd{} new{}Cmd run{}".split())


def _implementing(code: Code, command: str) -> list[LocatedItem]:
    """The items that implement a command of this project: a program, and the words after it."""
    program, *words = command.split()
    if not words or not _is_own(code, program):
        return []
    for count in range(len(words), 0, -1):
        if meant := _named_like(code, "-".join(words[:count])):
            return meant
    return []


def _named_like(code: Code, name: str) -> list[LocatedItem]:
    first, *others = parts = [part for part in _SEPARATORS.split(name) if part]
    snake = "_".join(parts)
    pascal = "".join(part.capitalize() for part in parts)
    camel = first + "".join(part.capitalize() for part in others)
    plain = {name, snake, "-".join(parts), camel, pascal}
    telling = {
        *(form.format(snake) for form in _SNAKE),
        *(form.format(camel) for form in _CAMEL),
        *(form.format(pascal) for form in _PASCAL),
    }
    rows = code.connection.execute(
        "SELECT id FROM items WHERE name IN (SELECT value FROM json_each(?)) LIMIT ?",
        (json.dumps([*telling, *plain]), _MOST_COMMAND_NAMES),
    )
    meant = []
    for item in code.located(id for (id,) in rows):
        folders = re.split(r"[/.]", item.path.lower())
        own = re.split(r"::|[.#/]", item.name)[-1]
        if file_roles.role_of(item.path) == file_roles.BESIDE:
            continue
        if own in telling or not _COMMAND_FOLDERS.isdisjoint(folders):
            meant.append(item)
    # A function in a file of the same name is more specific than the file.
    paths = {item.path for item in meant if item.kind != "module"}
    meant = [item for item in meant if item.kind != "module" or item.path not in paths]
    return meant if len(meant) <= _MOST_IMPLEMENTING else []


def _is_own(code: Code, program: str) -> bool:
    """Whether a program is part of this project: a file or a folder has its name."""
    names = program, program.replace("-", "_")
    return any(
        code.connection.execute(query, names).fetchone()
        for query in (
            "SELECT 1 FROM items WHERE name IN (?, ?) AND parent IS NULL LIMIT 1",
            (
                "SELECT 1 FROM files WHERE instr('/' || path, '/' || ? || '/')"
                " OR instr('/' || path, '/' || ? || '/') LIMIT 1"
            ),
        )
    )
