"""`ctx debug`"""

import argparse
import json
import os
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock, locks
from ctx.cli import arguments, opening
from ctx.cli import options as shared
from ctx.cli.opening import open_workspace
from ctx.cli.output import Block, Line, Output, Table, VerbatimText, count, plain
from ctx.cli.settings import Settings
from ctx.errors import CtxError, DiskFailure, LockConflict, NotAProject, PathRefused, UsageError
from ctx.ids import ObjectId, SessionId, short
from ctx.objects import codec, object_index, verify
from ctx.objects.object_store import decode
from ctx.objects.object_types import Commit, WorkCommit
from ctx.objects.refs import MAIN, session_of
from ctx.objects.repository import Repository
from ctx.project.project_repository import WITHHELD, ProjectRepository

if TYPE_CHECKING:
    from ctx.operations.debug_object import ObjectDetails

EXAMPLES = """
ctx debug verify                  read and check every object, ref, head and index
ctx debug history --limit 5       the last commits
ctx debug refs                    heads, refs and staged sessions
ctx debug cat 3f2a91c0            an object, by its id or the beginning of it
ctx debug index path:src/app.py   what the index knows about a path
ctx debug graph --format dot      memory and code as a picture: | dot -Tsvg > graph.svg
"""

_GRAPH = """
ctx debug graph                                     memory, and which file imports which
ctx debug graph --around Client.connect --depth 2   what is near something
ctx debug graph --format dot | dot -Tsvg > g.svg    a picture by Graphviz
ctx debug graph --format mermaid --limit 40         for a page that draws Mermaid
"""
_PICTURES = ("dot", "mermaid")
_MOST_DRAWN = 200
_MOST_EVER = 100_000
_MOST_DAMAGES = 100
_DEEPEST = 20


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    cat = shared.add_subcommand(
        group,
        "cat",
        "print an object",
        "ctx debug cat 3f2a91c0\nctx debug cat 3f2a91c0 --format json",
    )
    cat.add_argument(
        "object",
        metavar="ID",
        help="an object id, or the `object_id` of a file in a pack; 4 characters are enough",
    )
    shared.add_subcommand(
        group, "refs", "show heads and refs and what they point to", "ctx debug refs"
    )
    history = shared.add_subcommand(
        group,
        "history",
        "show the commits, newest first",
        "ctx debug history\nctx debug history --limit 3 --format json",
    )
    history.add_argument("--limit", type=int, default=20, metavar="N", help="(default: 20)")
    shared.add_subcommand(
        group,
        "verify",
        "read and check every object, ref, head and index file",
        "ctx debug verify\nctx debug verify --format json",
    )
    looked_up = shared.add_subcommand(
        group,
        "index",
        "query the index, which is derived from the objects",
        "ctx debug index\nctx debug index path:src/app.py\nctx debug index commit:3f2a91c0\n"
        "ctx debug index file:9b1d\nctx debug index name:connect\n"
        "ctx debug index item:core::net::Client\nctx debug index package:netcore",
    )
    looked_up.add_argument(
        "key",
        nargs="?",
        help="path:PATH, file:ID, commit:ID, narrative:PATH, and for the code name:NAME,"
        " item:QUALIFIED-NAME or package:NAME; without it: a summary",
    )
    graph = shared.add_subcommand(
        group, "graph", "print memory and code as a graph, for programs that draw it", _GRAPH
    )
    graph.add_argument(
        "--around", metavar="NAME", help="only what is near a node, a file, or an item of the code"
    )
    arguments.number(graph, "--depth", "steps (default: 1)", default=1)
    limit = f"the most nodes to draw (default: {_MOST_DRAWN})"
    arguments.number(graph, "--limit", limit, default=_MOST_DRAWN)
    shared.flag(graph, "--no-refresh", "use the code index as it is, however old")
    for each in (parser, graph):
        # Options of the whole command come before the subcommand: `ctx --format dot debug …`.
        shared.also_formats(each, *_PICTURES)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    form = getattr(options, "format", "text")
    if options.subcommand == "graph":
        _graph(options, form, settings, output)
        return 0
    if form in _PICTURES:
        raise UsageError(f"Only `ctx debug graph` has --format {form}.")
    if options.subcommand == "index":
        from ctx.cli import index_answers

        index_answers.show(options.key, settings, output)
        return 0
    if options.subcommand == "verify":
        return _verify(settings, output)
    if options.subcommand == "cat":
        _cat(options.object, settings, output)
        return 0
    repository = open_workspace(settings, output).repository
    match options.subcommand:
        case "refs":
            output.show(refs(repository), render_refs)
        case _:
            if options.limit < 1:
                raise UsageError("--limit must be at least 1.")
            output.show(history(repository, options.limit), render_history)
    return 0


def _cat(text: str, settings: Settings, output: Output) -> None:
    from ctx.cli import code
    from ctx.operations import debug_object

    repository = None
    with suppress(NotAProject):
        # The code index works without a store.
        repository = open_workspace(settings, output).repository
    output.show(
        debug_object.find(repository, code.codebase_for_command(settings), text), render_object
    )


def _verify(settings: Settings, output: Output) -> int:
    """An untrusted store can be checked before it is trusted; its content is not shown, and its
    size is limited."""
    is_shown = opening.trusted_project(settings, output) is not None
    is_trusted = is_shown and not settings.untrusted
    workspace = (opening.open_workspace if is_trusted else opening.open_to_verify)(settings, output)
    with output.progress("Checking objects") as tick:
        report = verified(workspace.repository, tick)
    if not is_shown:
        report = _without_names(report)
    output.show(report, render_report)
    return 1 if report.damages else 0


def _without_names(report: verify.Report) -> verify.Report:
    """How much is damaged, but not where: file names are untrusted too."""
    return report._replace(
        damages=tuple(item._replace(where="", message="") for item in report.damages),
        leftovers=tuple("" for _ in report.leftovers),
    )


def _graph(options: argparse.Namespace, form: str, settings: Settings, output: Output) -> None:
    from ctx.cli import code, graph_pictures
    from ctx.operations import debug_graph

    if not 1 <= options.limit <= _MOST_EVER or options.depth > _DEEPEST:
        raise UsageError(f"--limit takes 1 to {_MOST_EVER:,}, --depth at most {_DEEPEST}.")
    render = {
        "dot": graph_pictures.dot,
        "mermaid": graph_pictures.mermaid,
        "markdown": graph_pictures.markdown,
    }.get(form, graph_pictures.text)
    with opening.reading(settings, output) as memory, ExitStack() as stack:
        opened = None
        # If a node is named, the code is not read, and neither is a whole home folder.
        with suppress(PathRefused):
            if not memory.environment.is_single_store:
                codebase = code.codebase_for_command(settings)
                tick = stack.enter_context(output.progress("Reading the code"))
                code_index = code.open_index(codebase, tick, refresh=not options.no_refresh)
                opened = stack.enter_context(code_index)
        known = (opened.code, opened.folder, opened.age) if opened else (None, "", None)
        drawable = debug_graph.GraphSources(memory.graph, known[0], memory.project)
        if options.around:
            wanted = debug_graph.AroundOptions(
                options.around, known[1], options.depth, options.limit
            )
            drawn = debug_graph.draw_around(drawable, wanted, known[2])
        else:
            drawn = debug_graph.draw_everything(drawable, options.limit, known[2])
        if opened:
            drawn = drawn._replace(age=opened.age)
    output.show(drawn, render)
    if drawn.left_out and form in ("json", *_PICTURES):
        output.note(f"{drawn.left_out:,} more left out (--limit).")
    if drawn.age:
        code.print_index_age(drawn.age, output)


def render_object(shown: "ObjectDetails") -> list[Block]:
    if shown.text is not None:
        return [VerbatimText(shown.text)]
    fields = json.dumps(plain(shown.fields), ensure_ascii=False, indent=2, default=repr)
    return [Line(f"{shown.type} {shown.id}"), VerbatimText(fields + "\n")]


class Pointer(NamedTuple):
    kind: str
    """`head`, `ref` or `session`."""
    name: str
    target: ObjectId | None
    summary: str
    """The message of a commit, the last step of a session, or the problem of the pointer."""


class PointerList(NamedTuple):
    pointers: tuple[Pointer, ...]


_PAST = " (has a newer child; the next commit removes it)"
_OTHER_CHECKOUT = "the last commit made here; not in the current checkout"


def refs(repository: ProjectRepository) -> PointerList:
    current = {head.id for head in repository.current()}
    pointers = [
        Pointer("head", short(id), id, _summary(repository, id) + ("" if id in current else _PAST))
        for id in repository.heads.named()
    ]
    for name in repository.refs.names():
        session = session_of(name)
        kind, shown = ("session", session) if session else ("ref", name)
        try:
            target = repository.refs.require(name)
        except CtxError as error:
            pointers.append(Pointer(kind, shown, None, str(error)))
        else:
            away = name == MAIN and target not in repository.objects
            summary = _OTHER_CHECKOUT if away else _summary(repository, target)
            pointers.append(Pointer(kind, shown, target, summary))
    return PointerList(tuple(pointers))


def _summary(repository: ProjectRepository, id: ObjectId) -> str:
    try:
        value = decode(repository.everything.read(id))
    except CtxError as error:
        return str(error)
    match value:
        case Commit():
            title = value.message.partition("\n")[0]
            return title if id in repository.given.objects([id]) else WITHHELD
        case WorkCommit():
            return f"{value.step_kind} at {clock.iso(value.created_at * 1000)}"
        case _:
            return f"is a {codec.type_name(value) if value else 'blob'}"


def render_refs(refs: PointerList) -> list[Block]:
    rows = [
        (item.kind, item.name, short(item.target or "-"), item.summary) for item in refs.pointers
    ]
    return [Table(("kind", "name", "target", "what"), rows)] if rows else [Line("No refs yet.")]


class HistoryCommit(NamedTuple):
    """One commit of the history."""

    commit: ObjectId
    parents: tuple[ObjectId, ...]
    time: str
    author: str
    session: SessionId
    message: str
    is_head: bool
    boundaries: tuple[ObjectId, ...]
    """Missing parents."""


class ObjectHistory(NamedTuple):
    commits: tuple[HistoryCommit, ...]
    more: bool


def history(repository: ProjectRepository, limit: int) -> ObjectHistory:
    heads = [id for id, _ in repository.current()]
    commits: list[HistoryCommit] = []
    for id, commit in repository.history(heads):
        if len(commits) == limit:
            return ObjectHistory(tuple(commits), more=True)
        commits.append(
            HistoryCommit(
                id,
                commit.parents,
                clock.iso(commit.timestamp_unix * 1000),
                commit.author,
                commit.session_id,
                commit.message,
                id in heads,
                tuple(parent for parent in commit.parents if parent not in repository.objects),
            )
        )
    return ObjectHistory(tuple(commits), more=False)


def render_history(history: ObjectHistory) -> list[Block]:
    blocks: list[Block] = []
    for past in history.commits:
        mark = " (head)" if past.is_head else ""
        blocks.append(Line(f"commit {past.commit}{mark}"))
        if len(past.parents) > 1:
            blocks.append(Line(f"joins:   {' '.join(map(short, past.parents))}"))
        if past.author:
            blocks.append(Line(f"author:  {past.author}"))
        blocks.append(Line(f"date:    {past.time}"))
        blocks.append(Line(f"session: {past.session}"))
        blocks += [Line(f"    {line}".rstrip()) for line in past.message.splitlines()]
        blocks += [
            Line(f"    (history ends here: {short(id)} is missing)") for id in past.boundaries
        ]
        blocks.append(Line(""))
    if history.more:
        blocks.append(Line("… older commits are not shown; see --limit."))
    return blocks or [Line("No commits yet.")]


def verified(repository: Repository, tick: clock.Tick) -> verify.Report:
    """The whole check: the objects, and what is derived from them."""
    report = verify.verify(repository, tick)
    if report.damages:
        # Another process may have been writing or collecting: check again under the lock.
        with suppress(DiskFailure, LockConflict), locks.hold(repository.project.lock, "verify", 5):
            report = verify.verify(repository, tick)
    root = repository.project.root
    damages = [*report.damages, *object_index.damages(repository.project)]
    return report._replace(
        damages=tuple(item._replace(where=os.path.relpath(item.where, root)) for item in damages),
        leftovers=tuple(os.path.relpath(path, root) for path in report.leftovers),
    )


def render_report(report: verify.Report) -> list[Block]:
    checked = (
        f"Checked {count(report.objects, 'object')}, {count(report.commits, 'commit')}, "
        f"{count(report.heads, 'head')}, {count(report.refs, 'ref')}"
    )
    blocks: list[Block] = []
    if report.damages:
        blocks.append(Line(f"{checked}: {count(len(report.damages), 'damage')}."))
        blocks.append(
            Table(
                ("code", "where", "what"),
                [tuple(item) for item in report.damages[:_MOST_DAMAGES]],
            )
        )
        if len(report.damages) > _MOST_DAMAGES:
            more = len(report.damages) - _MOST_DAMAGES
            blocks.append(Line(f"… and {more:,} more. --format json lists all of them."))
    else:
        blocks.append(Line(f"{checked}: no damage found."))
    if report.boundaries:
        objects = count(len(report.boundaries), "object")
        blocks.append(
            Line(f"History ends before {objects} that are not in this store. This is not damage.")
        )
    if report.newer:
        blocks.append(Line(f"{count(report.newer, 'object')} of a newer ctx version, unchanged."))
    if report.leftovers:
        files = count(len(report.leftovers), "file")
        what = "left by a stopped process, or stray among the heads"
        blocks.append(Line(f"{files} that are not needed: {what}. `ctx gc` removes old ones."))
    return blocks
