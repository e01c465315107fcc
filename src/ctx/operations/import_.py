"""Take in what ctx or another program has written."""

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import NamedTuple

from ctx import clock, disk
from ctx.errors import ContentRefused
from ctx.exchange import graph_document, graph_json, graph_stream
from ctx.exchange.foreign import (
    basic_memory,
    claude_code,
    claude_mem,
    foreign_database,
    foreign_items,
    go_ctx,
    instruction_files,
    jsonl,
    mcp_memory,
)
from ctx.exchange.foreign.claude_code import ClaudeFolders
from ctx.exchange.foreign.detect_format import Kind
from ctx.exchange.foreign.foreign_items import (
    CompletePage,
    ForeignSource,
    Item,
    LocatedDraft,
    SkippedItem,
)
from ctx.exchange.graph_document import GraphDocument, Items
from ctx.exchange.importer import ACTION, ItemImporter
from ctx.ids import NodeId
from ctx.memory.changes import Change
from ctx.memory.graph import USER, Graph
from ctx.memory.model import Draft, Edge, Redaction, View
from ctx.sqlite.connection import path_text
from ctx.workspace import Memory

_LARGEST_DOCUMENT = 1 << 30
_PREVIEW = 100


class ImportSource(NamedTuple):
    """Something to import."""

    kind: Kind
    paths: Sequence[str] = ()
    text: str | None = None
    """What came on stdin, instead of a path."""


class Options(NamedTuple):
    merge: bool = False
    """Of a document of our own, let the newer one win instead of refusing what differs."""
    dry_run: bool = False
    project: str | None = None
    since: str | None = None
    with_prompts: bool = False
    config_folder: str = ""
    """Where Claude Code keeps its files."""
    scope: str | None = None
    """The store that takes it in.

    None: what ctx itself has written goes where what is stated goes. What another program knew is
    the person's, and does not travel with a project.
    """


class NewNode(NamedTuple):
    """A node that would be added."""

    type: str
    preview: str
    """Its summary or the beginning of its content, in one line."""
    tags: tuple[str, ...]


class ImportResult(NamedTuple):
    """The answer of `ctx import`."""

    programs: tuple[str, ...]
    dry_run: bool
    scope: str
    """Whose store took it in: `project` or `user`."""
    change: str | None
    """What `ctx undo` takes to take it back; None where nothing was new."""
    added: Mapping[str, int]
    """New nodes, by type."""
    updated: int
    unchanged: int
    kept: int
    """Nodes that are newer here, and stay as they are."""
    left_out: int
    """What --since or --project-name asked to leave out."""
    tags: int
    """Tags that nodes here were given; those of new nodes are not counted."""
    edges: int
    views: int
    archived: int
    """Nodes that the pages they came from say no more: they are in no context."""
    cleaned: int
    """Characters that no text may hold, each replaced by U+FFFD."""
    redacted: tuple[Redaction, ...]
    """Secrets that were not written down."""
    skipped: tuple[SkippedItem, ...]
    new: tuple[NewNode, ...]
    """What a dry run would add: the first 1,000."""


class _DryRun(Exception):
    """Ends the transaction of a dry run."""


def import_(
    memory: Memory,
    sources: Sequence[ImportSource],
    options: Options,
    tick: clock.Tick = clock.no_tick,
) -> ImportResult:
    """All of the sources in one change. A document is looked at as a whole before it."""
    with ExitStack() as closing:
        opened = [
            closing.enter_context(_open_source(source, options, memory.folder))
            for source in sources
        ]
        programs = tuple(dict.fromkeys(each.reading.program for each in opened))
        author = f"{ACTION}:{','.join(programs)}"
        done: list[ImportResult] = []
        try:
            scope = _scope(sources, options)
            with memory.transaction(ACTION, scope, author=author) as change:
                done.append(
                    _import_items(change, opened, options, tick)._replace(programs=programs)
                )
                if options.dry_run:
                    raise _DryRun
        except _DryRun:
            pass
    return done[0]


def _scope(sources: Sequence[ImportSource], options: Options) -> str | None:
    is_ours = all(source.kind == "graph" for source in sources)
    return options.scope or (None if is_ours else USER)


def _import_items(
    change: Change, opened: Sequence["_OpenSource"], options: Options, tick: clock.Tick
) -> ImportResult:
    for each in opened:
        if each.must_agree:
            graph_json.require_no_conflict(change.graph, each.must_agree)
    total = sum(each.reading.total for each in opened)
    intake = ItemImporter(change, total)
    chosen = _ImportFilter(options)
    numbers = count(1)
    for each in opened:
        intake.take_all(_chosen_items(each, chosen, tick, total, numbers), each.reading.program)
    counts = intake.finish()
    return ImportResult(
        programs=(),
        dry_run=options.dry_run,
        scope=change.graph.scope,
        change=change.id if intake.has_written and not options.dry_run else None,
        **counts._asdict(),
        left_out=chosen.left_out,
        redacted=tuple(change.redacted),
        skipped=tuple(intake.skipped),
        new=_new_nodes(change.graph, intake.new) if options.dry_run else (),
    )


def _chosen_items(
    source: "_OpenSource",
    chosen: "_ImportFilter",
    tick: clock.Tick,
    total: int,
    numbers: Iterator[int],
) -> Iterator[Item]:
    for item, number in zip(source.reading.items, numbers, strict=False):
        tick(number, max(number, total))
        if wanted := chosen.from_(item, source.is_filtered):
            yield wanted


def _new_nodes(graph: Graph, node_ids: Sequence[NodeId]) -> tuple[NewNode, ...]:
    found = []
    for node in graph.nodes(node_ids):
        line = " ".join((node.summary or node.content)[: 4 * _PREVIEW].split())
        short = line if len(line) <= _PREVIEW else f"{line[: _PREVIEW - 1].rstrip()}…"
        found.append(NewNode(node.type, short, node.tags))
    return tuple(found)


class _OpenSource(NamedTuple):
    """A source, open, and what must hold for it."""

    reading: ForeignSource
    is_filtered: bool = True
    """Whether --project-name chooses among its nodes, which have projects of their own."""
    must_agree: Items = ()
    """What may not differ from what is here."""


@contextmanager
def _open_source(source: ImportSource, options: Options, folder: str) -> Iterator[_OpenSource]:
    match source.kind:
        case "graph":
            with _document(source) as document:
                agree = document.items if document.is_ours and not options.merge else ()
                reading = ForeignSource("ctx", len(document.items), iter(document.items))
                yield _OpenSource(reading, must_agree=agree)
        case "ctx":
            with go_ctx.reading(source.paths[0]) as reading:
                yield _OpenSource(reading)
        case "claude-mem":
            with claude_mem.reading(source.paths[0], with_prompts=options.with_prompts) as reading:
                yield _OpenSource(reading)
        case "claude-code":
            folders = ClaudeFolders(options.config_folder, (folder,))
            with claude_code.reading(source.paths, folders, options.project) as reading:
                yield _OpenSource(reading, is_filtered=False)
        case "instructions":
            with instruction_files.reading(source.paths[0], options.project) as reading:
                yield _OpenSource(reading, is_filtered=False)
        case "basic-memory":
            with basic_memory.reading(source.paths[0], options.project) as reading:
                yield _OpenSource(reading, is_filtered=False)
        case "mcp-memory":
            with mcp_memory.reading(source.paths[0]) as reading:
                yield _OpenSource(reading, is_filtered=False)
        case "jsonl" if source.text is not None:
            lines = source.text.encode("utf-8", "surrogateescape").split(b"\n")
            yield _OpenSource(
                ForeignSource(jsonl.PROGRAM, len(lines), jsonl.items(lines)), is_filtered=False
            )
        case "jsonl":
            with jsonl.reading(source.paths[0]) as reading:
                yield _OpenSource(reading, is_filtered=False)


@contextmanager
def _document(source: ImportSource) -> Iterator[GraphDocument]:
    """A document in parts, if it can be read so; else as a whole."""
    if (text := source.text) is not None:
        items = graph_stream.open_stream(lambda: io.StringIO(text))
        yield GraphDocument(items, is_ours=True) if items else graph_document.parse(text)
        return
    (path,) = source.paths
    foreign_database.require_file(path)
    with ExitStack() as closing:
        with disk.explain_errors("reading what to import"):
            fd = disk.open_plain(os.path.realpath(path))
            closing.callback(os.close, fd)
            size = os.fstat(fd).st_size
        if size > _LARGEST_DOCUMENT:
            raise ContentRefused(f"{path_text(path)} has more than {_LARGEST_DOCUMENT:,} bytes.")
        items = graph_stream.open_stream(lambda: graph_stream.lines_of_file(fd))
        if items:
            yield GraphDocument(items, is_ours=True)
        else:
            yield graph_document.parse(_text(path))


def _text(path: str) -> str:
    with disk.explain_errors("reading what to import"):
        data = disk.read_plain(os.path.realpath(path), _LARGEST_DOCUMENT)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ContentRefused(
            f"{path_text(path)} is not UTF-8: byte {data[error.start]:#04x} at {error.start:,}.",
            hint="Nothing was changed. Check that the file is complete.",
        ) from None


class _ImportFilter:
    """What --since and --project-name ask for."""

    def __init__(self, options: Options) -> None:
        self._left_out: set[NodeId] = set()
        self._tag = foreign_items.tag(f"project:{options.project}") if options.project else None
        self._since = ""
        if options.since:
            from ctx.memory.query.time_filters import moment

            self._since = clock.iso(moment(options.since, clock.now_ms()))

    @property
    def left_out(self) -> int:
        return len(self._left_out)

    def from_(self, item: Item, is_filtered: bool) -> Item | None:
        """The item to import, or None if it is excluded.

        Items without a project get the tag, unless they come from a program that knows projects.
        """
        if isinstance(item, View):
            return None if self._tag or self._since else item
        if isinstance(item, Edge):
            left_out = self._left_out
            return None if item.from_id in left_out or item.to_id in left_out else item
        if isinstance(item, LocatedDraft):
            draft = self.from_(item.draft, is_filtered)
            return item._replace(draft=draft) if isinstance(draft, Draft) else None
        if isinstance(item, CompletePage):
            return None if self._left_out.intersection(item.node_ids) else item
        if isinstance(item, SkippedItem):
            return item
        too_old = bool(item.updated_at) and item.updated_at < self._since
        elsewhere = self._tag is not None and self._tag not in item.tags
        placed = any(tag.startswith("project:") for tag in item.tags)
        if too_old or (elsewhere and (is_filtered or placed)):
            self._left_out.add(item.id)
            return None
        if not (item.edges or elsewhere):
            return item
        edges = tuple(edge for edge in item.edges if edge[1] not in self._left_out)
        tags = (*item.tags, self._tag) if elsewhere and self._tag else item.tags
        return item._replace(tags=tags, edges=edges)
