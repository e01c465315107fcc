"""Parse one source file. It never fails: it returns what it found, and the problems.

Thousands of files are parsed, so this is written for speed: one query finds all that matters, each
node is visited once, and occurrences of names are searched in the bytes rather than in the tree.
"""

import functools
import re
import warnings
from bisect import bisect_right
from collections.abc import Callable
from hashlib import blake2b
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from ctx.code.language import ItemDescription, Language, SourceText, load
from ctx.code.source_model import (
    CALL,
    REFERENCE,
    TYPE,
    Binding,
    NameMention,
    ParsedFile,
    ParseProblem,
    SourceImport,
    SourceItem,
)
from ctx.code.vocabulary import CONTAINERS

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

LONGEST_SIGNATURE = 600

_MOST_ITEMS = 20_000
_MOST_PROBLEMS = 20
_MOST_HANDED_ON = 5
_LONGEST_DOC = 4_000
_LONGEST_NAME = 500
_LONGEST_CALLED = 300
_LONGEST_TYPE = 10_000
_DEEPEST = 1_000
"""Levels of the tree. Nobody nests code deeper, and a query takes time quadratic in the depth;
beyond 65,535 levels it never ends."""
_MOST_MICROS = 10_000_000
"""The time limit for the grammar, and for the query, on one file. Half a second is a lot, but for
an unclosed string or thousands of unclosed brackets, some grammars take quadratic time."""

T = TypeVar("T")
Captures = dict[str, list["Node"]]


def parse(path: str, content: bytes, language_name: str, lines: int | None = None) -> ParsedFile:
    """Parse a file. This never raises.

    It ends in time. But a grammar is third-party C code: a caller that must survive a crash uses
    another process (`process_pool`).
    """
    return _parse(path, content, language_name, lines, _SourceReader.parsed)


def parse_items(path: str, content: bytes, language_name: str) -> ParsedFile:
    """The same without the names that a file imports and mentions: only its items and problems."""
    return _parse(path, content, language_name, None, _SourceReader.parsed_items)


def _parse(
    path: str,
    content: bytes,
    language_name: str,
    lines: int | None,
    read: "Callable[[_SourceReader], ParsedFile]",
) -> ParsedFile:
    if lines is None:
        lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
    grammars, parser = load(language_name), _parser(language_name)
    try:
        tree = parser.parse(grammars.language.readable(content))
    except ValueError:
        # It was stopped, and would otherwise continue there with the next file.
        parser.reset()
        problem = ParseProblem(1, "it takes too long to read")
        module = _module(path, len(content), lines)
        return ParsedFile(language_name, "", lines, (module,), problems=(problem,))
    root = tree.root_node
    captures = _captured(grammars.query, root)
    if root.has_error:
        # Searching for missing nodes takes time at every node, and hardly any file needs it.
        captures |= _captured(grammars.problems, root)
    return read(_SourceReader(grammars.language, SourceText(path, content), captures, lines))


def _captured(query: "Query", root: "Node") -> Captures:
    from tree_sitter import QueryCursor

    cursor = QueryCursor(query, timeout_micros=_MOST_MICROS)
    cursor.set_max_start_depth(_DEEPEST)
    return cursor.captures(root)


def _module(path: str, size: int, lines: int) -> SourceItem:
    """The item of the file itself."""
    stem = path.rpartition("/")[2].partition(".")[0]
    return SourceItem("module", stem, -1, "public", 0, size, 1, max(1, lines))


@functools.cache
def _parser(name: str) -> "Parser":
    import tree_sitter

    with warnings.catch_warnings():
        # Its replacement calls Python from within the grammar, and crashes.
        warnings.simplefilter("ignore", DeprecationWarning)
        return tree_sitter.Parser(load(name).grammar, timeout_micros=_MOST_MICROS)


class _SourceReader:
    """One file, from the captures of its query to the result."""

    def __init__(
        self, language: Language, source: SourceText, captures: Captures, lines: int
    ) -> None:
        self._language = language
        self._source = source
        self._captures = captures
        self._lines = lines
        self._line_ends = _line_ends(source.content)
        self._items: list[SourceItem] = []
        self._marks: list[int] = []
        self._scopes: list[int] = []
        self._names_at: set[int] = set()
        """Positions of names that are handled already, so that they do not count as references
        too."""
        self._containers: list[tuple[int, int]] = []
        self._begins: dict[int, int] = {}
        self._mentions: dict[tuple[int, str, str], list[int]] = {}

    def parsed(self) -> ParsedFile:
        self._read_items()
        imports = self._imports()
        bindings = self._bindings()
        self._read_calls()
        self._read_types()
        self._read_references(imports)
        namespace = self._captures.get("namespace")
        return ParsedFile(
            self._language.name,
            self._source.text(namespace[0]) if namespace else "",
            self._lines,
            tuple(self._items),
            tuple(imports),
            tuple(bindings),
            tuple(
                NameMention(
                    scope, kind, expression, bisect_right(self._line_ends, place) + 1, times
                )
                for (scope, kind, expression), (place, times) in self._mentions.items()
                # A grammar may insert an empty name where one is missing.
                if expression
            ),
            self._problems(),
        )

    def parsed_items(self) -> ParsedFile:
        self._read_items()
        items = tuple(self._items)
        return ParsedFile(self._language.name, "", self._lines, items, problems=self._problems())

    def _problems(self) -> tuple[ParseProblem, ...]:
        return tuple(
            # What is missing at the end is reported on the last line.
            ParseProblem(min(self._line(node.start_byte), max(1, self._lines)), "not understood")
            for node in sorted(self._captures.get("problem", ()), key=_START)[:_MOST_PROBLEMS]
        )

    def _line(self, place: int) -> int:
        return bisect_right(self._line_ends, place) + 1

    def _scope(self, place: int) -> int:
        """The innermost item around a byte."""
        return self._scopes[bisect_right(self._marks, place) - 1]

    def _mark_scopes(self) -> None:
        """Record from which byte on which item is the innermost."""
        items, marks, scopes = self._items, self._marks, self._scopes
        around: list[int] = []
        for number, item in enumerate(items):
            while around and items[around[-1]].end <= item.start:
                marks.append(items[around.pop()].end)
                scopes.append(around[-1] if around else 0)
            marks.append(item.start)
            scopes.append(number)
            around.append(number)
        while around:
            marks.append(items[around.pop()].end)
            scopes.append(around[-1] if around else 0)

    # Items

    def _read_items(self) -> None:
        self._find_begins()
        begins = self._begins
        captured: list[tuple[int, int, int, str, Node]] = []
        for name, nodes in self._captures.items():
            if name.startswith("item."):
                kind = name[5:]
                for node in nodes:
                    start = node.start_byte
                    start = begins.get(start, start)
                    # The counter decides between two with the same span.
                    captured.append((start, -node.end_byte, len(captured), kind, node))
        captured.sort()
        comments = self._comments() if captured else {}
        size = len(self._source.content)
        items, describe, source = self._items, self._language.item, self._source
        items.append(_module(source.path, size, self._lines))
        items[0].doc = self._language.file_doc(source.content)[:_LONGEST_DOC]
        # The items around the current position, outermost first.
        around = [0]
        ends = [size + 1]
        for start, _, _, kind, node in captured[:_MOST_ITEMS]:
            while ends[-1] <= start:
                around.pop()
                ends.pop()
            parent = around[-1]
            description = describe(node, kind, items[parent], source)
            if description is None:
                continue
            for described in (
                (description,) if isinstance(description, ItemDescription) else description
            ):
                # In broken code a name may be missing, or be the whole rest.
                if 0 < len(described.name) <= _LONGEST_NAME:
                    self._add(described, node, parent, comments)
            around.append(len(items) - 1)
            ends.append(items[-1].end)
        self._digest_containers()
        self._mark_scopes()

    def _find_begins(self) -> None:
        """Find the first bytes of definitions that have an outer node, such as decorators."""
        begins = [(node.start_byte, False) for node in self._captures.get("outer", ())]
        begins += [(node.start_byte, True) for node in self._captures.get("inner", ())]
        begins.sort()
        # They correspond one to one and nest: the last one opened is closed first.
        opened: list[int] = []
        for place, is_inner in begins:
            if not is_inner:
                opened.append(place)
            elif opened:
                self._begins[place] = opened.pop()

    def _add(
        self,
        described: ItemDescription,
        node: "Node",
        parent: int,
        comments: dict[int, list[bytes]],
    ) -> None:
        content, line_ends = self._source.content, self._line_ends
        own_start, end = node.start_byte, node.end_byte
        name, at, kind, visibility, body, type_, bases, doc, promise = described
        start = self._begins.get(own_start, own_start)
        line = bisect_right(line_ends, start) + 1
        # The name in a definition is not a mention.
        self._names_at.add(at)
        promise = (promise or content[start:body])[:LONGEST_SIGNATURE]
        if b"#" in promise or b"//" in promise or b"/*" in promise:
            promise = self._language.comment.sub(rb"\1", promise)
        promise = b" ".join(promise.split())
        if doc is None:
            before = comments.get(line - 1)
            doc = self._language.doc(before) if before else ""
        if kind in CONTAINERS:
            self._containers.append((len(self._items), body))
            digest = b""
        else:
            digest = self._digest(start, content[body:end])
        self._items.append(
            SourceItem(
                kind,
                name,
                parent,
                visibility,
                start,
                end,
                line,
                bisect_right(line_ends, end - 1) + 1,
                promise.rstrip(b" :={").decode("utf-8", "replace"),
                doc[:_LONGEST_DOC],
                digest,
                type_,
                bases,
            )
        )

    def _digest(self, start: int, text: bytes) -> bytes:
        """A digest that does not depend on layout and position."""
        if self._language.indentation_matters:
            content = self._source.content
            before = content[content.rfind(b"\n", 0, start) + 1 : start]
            if before.isspace():
                text = text.replace(b"\n" + before, b"\n")
        else:
            text = b" ".join(text.split())
        return blake2b(text, digest_size=8).digest()

    def _digest_containers(self) -> None:
        """A container's digest covers the text outside of its items, which have their own
        digests."""
        items, content = self._items, self._source.content
        inside: dict[int, list[SourceItem]] = {place: [] for place, _ in self._containers}
        for item in items:
            if item.parent in inside:
                inside[item.parent].append(item)
        for place, begin in self._containers:
            parts = []
            for child in inside[place]:
                parts.append(content[begin : child.start])
                begin = child.end
            parts.append(content[begin : items[place].end])
            items[place].body_hash = self._digest(items[place].start, b"".join(parts))

    def _comments(self) -> dict[int, list[bytes]]:
        """Adjacent comments, by the line on which the last one ends."""
        content = self._source.content
        by_line: dict[int, list[bytes]] = {}
        for node in sorted(self._captures.get("comment", ()), key=_START):
            start = node.start_byte
            text = content[start : node.end_byte]
            first, last = self._line(start), self._line(node.end_byte)
            # A comment after code belongs to that code.
            if content[content.rfind(b"\n", 0, start) + 1 : start].strip():
                continue
            if text.endswith(b"\n"):
                last -= 1
            together = by_line.pop(first - 1, None) or []
            together.append(text)
            by_line[last] = together
        return by_line

    # Names

    def _imports(self) -> list[SourceImport]:
        imports: list[SourceImport] = []
        for node in sorted(self._captures.get("import", ()), key=_START):
            start = node.start_byte
            scope, line = self._scope(start), self._line(start)
            imports += self._language.imports(node, scope, line, self._source)
        return imports

    def _bindings(self) -> list[Binding]:
        types: dict[tuple[int, str], str] = {}
        for node in sorted(self._captures.get("bind", ()), key=_START):
            here = self._scope(node.start_byte)
            for name, type_ in self._language.bindings(node, self._source):
                scope, own = here, name
                if name.startswith(("self.", "this.")):
                    own = name[5:]
                    scope = self._class_around(here)
                    # A value assigned to a field is known in the method: it is a name of its scope.
                    for _ in range(_MOST_HANDED_ON):
                        if type_[:1] != "=":
                            break
                        type_ = types.get((here, type_[1:]), "")
                if type_ and "." not in own and own != type_:
                    types.setdefault((scope, own), type_)
        return [Binding(scope, name, type_) for (scope, name), type_ in types.items()]

    def _class_around(self, scope: int) -> int:
        while scope > 0 and self._items[scope].kind not in CONTAINERS:
            scope = self._items[scope].parent
        return scope

    # Mentions. These loops run for every name in a file, so they call as little as possible.

    def _read_calls(self) -> None:
        content, known = self._source.content, self._language.known_expressions
        names_at, mentions = self._names_at, self._mentions
        marks, scopes = self._marks, self._scopes
        for start, end in map(_SPAN, self._captures.get("call", ())):
            names_at.add(start)
            text = content[start:end]
            if end - start > _LONGEST_CALLED:
                # Each part of a chain repeats all parts before it: the end is enough.
                text = b"?" + text[-_LONGEST_CALLED:]
            called = known.get(text)
            if called is None:
                called = self._language.expression(text) or ""
                _remember(known, text, called)
            if called:
                key = (scopes[bisect_right(marks, start) - 1], CALL, called)
                if key in mentions:
                    _count_again(mentions[key], start)
                else:
                    mentions[key] = [start, 1]

    def _read_types(self) -> None:
        content, known = self._source.content, self._language.known_types
        names_at, mentions = self._names_at, self._mentions
        marks, scopes = self._marks, self._scopes
        for start, end in map(_SPAN, self._captures.get("type", ())):
            text = content[start : min(end, start + _LONGEST_TYPE)]
            names = known.get(text)
            if names is None:
                names = tuple(self._language.types(text))
                _remember(known, text, names)
            for offset, name in names:
                place = start + offset
                if place not in names_at:
                    names_at.add(place)
                    key = (scopes[bisect_right(marks, place) - 1], TYPE, name)
                    if key in mentions:
                        _count_again(mentions[key], place)
                    else:
                        mentions[key] = [place, 1]

    def _read_references(self, imports: list[SourceImport]) -> None:
        """Find the uses of names that the file imports, and of its own names that it exports. Local
        variables do not concern other files."""
        content, names_at, mentions = self._source.content, self._names_at, self._mentions
        names = {import_.bound.encode() for import_ in imports}
        names.update(
            item.name.encode()
            for item in self._items
            if item.parent == 0 and item.kind not in _VARIABLES
        )
        for place, end in map(_SPAN, self._captures.get("reference", ())):
            if content[place:end] in names and place not in names_at:
                chain = _CHAIN.match(content, place)
                if chain:
                    expression = chain.group().decode("utf-8", "replace")
                    key = (self._scope(place), REFERENCE, expression)
                    if key in mentions:
                        _count_again(mentions[key], place)
                    else:
                        mentions[key] = [place, 1]


def _count_again(mention: list[int], place: int) -> None:
    """Count a mention at another byte. Captures are unordered."""
    if place < mention[0]:
        mention[0] = place
    mention[1] += 1


_VARIABLES = frozenset({"const", "static"})


def _line_ends(content: bytes) -> list[int]:
    """The byte after each line. A lone carriage return does not end a line, as in git and most
    tools."""
    if b"\r" in content:
        return list(accumulate(len(line) + 1 for line in content.split(b"\n")))
    return list(accumulate(map(len, content.splitlines(keepends=True))))


_START = attrgetter("start_byte")
"""The captures of a query are unordered."""
_SPAN = attrgetter("byte_range")
"""Start and end in one step."""
_MOST_REMEMBERED = 50_000


def _remember(known: dict[bytes, T], text: bytes, value: T) -> None:
    """Cache a value: a few words make up most of the code of a repository."""
    if len(known) >= _MOST_REMEMBERED:
        known.clear()
    known[text] = value


_CHAIN = re.compile(rb"[\w$\x80-\xff]+(?:(?:\.|::)[A-Za-z_$\x80-\xff][\w$\x80-\xff]*){0,40}")
