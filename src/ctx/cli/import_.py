"""`ctx import`"""

import argparse
import os
import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ctx import layout
from ctx.agents.known_hosts import HOSTS, NAMES
from ctx.cli import arguments, install_questions, opening
from ctx.cli import options as shared
from ctx.cli import settings as surroundings
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.output import MOST_ROWS, Block, Line, Output, Table, count, listing, size
from ctx.cli.settings import Settings
from ctx.cli.terminal import cut
from ctx.errors import UsageError
from ctx.exchange.foreign import claude_mem, detect_format
from ctx.exchange.foreign.detect_format import Kind
from ctx.hosts.host_registry import FIRST
from ctx.memory.graph import PROJECT, USER
from ctx.operations.import_ import ImportResult, ImportSource, Options, import_
from ctx.workspace import Memory

if TYPE_CHECKING:
    from ctx.operations.backfill import BackfillResult

EXAMPLES = """
ctx import < backup.json                     what `ctx export` wrote
ctx import --merge other.json                where both differ, the newer one wins
ctx import --from claude-mem --dry-run       what would be imported
ctx import --from claude-code                CLAUDE.md files, and what Claude Code noted
ctx import --from claude-code --transcripts  past sessions
ctx import --from instructions               AGENTS.md, .cursorrules and the like
ctx import --from basic-memory ~/notes       a folder of Basic Memory
ctx import memory.json                       the graph of the MCP memory server
ctx import --from codex --since 90d          past sessions of another host
ctx import --from specstory                  past sessions in .specstory/history
ctx import notes.jsonl --project-name shop   one JSON object per line
ctx import notes.jsonl --project             into the store of this project
ctx import --from ctx /old/.ctx/store.db     a store of the Go program ctx
"""

_FILES_ONLY = ("claude-mem", "claude-code", "instructions", "basic-memory", "mcp-memory")
PROGRAMS = ("ctx", *_FILES_ONLY, "jsonl")
HOSTS_WITH_SESSIONS = tuple(name for name in HOSTS.names if name not in PROGRAMS)
"""Hosts and recorders of which only past sessions can be imported."""


_SOURCES = (*PROGRAMS, *HOSTS_WITH_SESSIONS)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a file or a folder (default: stdin, or the usual place of --from)",
    )
    parser.add_argument(
        "--from",
        dest="program",
        choices=_SOURCES,
        metavar="PROGRAM",
        help=f"the program that wrote it (default: detected): {', '.join(_SOURCES)}",
    )
    parser.add_argument(
        "--merge",
        action="store_true",
        help="where nodes differ, keep the newer one",
    )
    arguments.dry_run(parser)
    arguments.project_name(parser, "only what belongs to it, or the project to set")
    arguments.scope(
        parser,
        "into your own store (the default, except for exports of ctx)",
        "into the project store; with --transcripts, only sessions of this project",
    )
    parser.add_argument(
        "--since", metavar="TIME", help="only what changed since: 1h, 7d, 2w, 2026-01-20"
    )
    parser.add_argument(
        "--with-prompts", action="store_true", help="also import the prompts that claude-mem stored"
    )
    parser.add_argument(
        "--transcripts",
        action="store_true",
        help="import the past sessions of Claude Code, instead of CLAUDE.md files",
    )
    shared.session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    name = options.after_project
    path = os.path.join(settings.folder, settings.expanded(name))
    if name in options.paths and not os.path.lexists(path):
        raise shared.project_takes_no_name(name)
    if options.transcripts or options.program in HOSTS_WITH_SESSIONS:
        import_transcripts(options, settings, output)
        return
    sources = _sources(options, settings)
    wanted = Options(
        options.merge,
        options.dry_run,
        options.project,
        options.since,
        options.with_prompts,
        settings.claude_folder,
        options.scope,
    )
    with ExitStack() as stack:
        memory = _open_memory(stack, options, settings, output)
        if options.scope == PROJECT:
            memory.only(PROJECT)
        tick = stack.enter_context(output.progress("Importing"))
        imported = import_(memory, sources, wanted, tick)
    output.show(imported, render)
    _print_details(imported, output)


def _open_memory(
    stack: ExitStack, options: argparse.Namespace, settings: Settings, output: Output
) -> Memory:
    database = settings.graph_database
    if options.dry_run and not layout.is_server(database) and not os.path.exists(database):
        # Opening creates a store, and a dry run must not leave one.
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        settings = settings._replace(chosen_database=os.path.join(folder, "store.db"))
    return stack.enter_context(opening.adding(settings, output))


def _sources(options: argparse.Namespace, settings: Settings) -> list[ImportSource]:
    """What to import. Detected before our own store is opened: the file may be that store."""
    paths = [os.path.join(settings.folder, settings.expanded(path)) for path in options.paths]
    if options.paths == ["-"]:
        paths = []
    elif not paths:
        paths = _usual_places(options.program, settings)
    if not paths:
        return [_from_stdin(options.program)]
    sources = [_source(path, options.program) for path in paths]
    # Opening converts a store of the Go program at our own path.
    sources = [source for source in sources if not _is_our_place(source, settings)]
    pages = [path for source in sources if source.kind == "claude-code" for path in source.paths]
    others = [source for source in sources if source.kind != "claude-code"]
    return [*others, ImportSource("claude-code", pages)] if pages else others


def _usual_places(program: str | None, settings: Settings) -> list[str]:
    match program:
        case "ctx":
            return [settings.user_store.database]
        case "claude-mem":
            return [settings.claude_mem_database]
        case "claude-code":
            folders = (settings.claude_folder, settings.folder)
            return [folder for folder in folders if os.path.isdir(folder)]
        case "instructions":
            return [settings.folder]
        case "basic-memory":
            return [settings.expanded(os.path.join("~", "basic-memory"))]
        case _:
            return []


def _source(path: str, program: Kind | None) -> ImportSource:
    if program is not None and program != "ctx":
        return ImportSource(program, [path])
    kind = detect_format.kind(path)
    if program == "ctx" and kind not in ("ctx", "graph"):
        raise UsageError(
            f"{path} was not written by ctx: it looks like {kind}.",
            hint=f"Use --from {kind}, or leave it out.",
        )
    return ImportSource(kind, [path])


def _is_our_place(source: ImportSource, settings: Settings) -> bool:
    place = os.path.realpath(settings.graph_database)
    return source.kind == "ctx" and os.path.realpath(source.paths[0]) == place


def _from_stdin(program: str | None) -> ImportSource:
    _refuse_stdin(program)
    if surroundings.stdin_is_terminal():
        raise UsageError(
            "Nothing to import.",
            hint="Name a file, pipe one in, or use `ctx import --from claude-mem`.",
        )
    text = surroundings.read_stdin()
    if program == "jsonl":
        return ImportSource("jsonl", text=text)
    if program == "ctx":
        return ImportSource("graph", text=text)
    start = text.lstrip().encode("utf-8", "surrogateescape")
    kind = detect_format.of_text(start, "stdin")
    _refuse_stdin(kind)
    return ImportSource(kind, text=text)


def _refuse_stdin(program: str | None) -> None:
    if program in _FILES_ONLY:
        raise UsageError(f"{program} cannot be read from stdin.", hint="Give the path of a file.")


def render(imported: ImportResult) -> list[Block]:
    nodes = sum(imported.added.values())
    source = f" from {' and '.join(imported.programs)}" if imported.programs else ""
    source += " into the project" if imported.scope == PROJECT else ""
    counts = {
        "updated": (imported.updated, "node"),
        "given": (imported.tags, "tag"),
        "linked": (imported.edges, "edge"),
        "added": (imported.views, "view"),
    }
    would_be = "would be " if imported.dry_run else ""
    more = [f"{count(n, noun)} {would_be}{verb}" for verb, (n, noun) in counts.items() if n]
    blocks: list[Block] = []
    if nodes:
        verb = "Would import" if imported.dry_run else "Imported"
        blocks.append(Line(f"{verb} {count(nodes, 'node')}{source}:"))
        rows = [(kind, f"{number:,}") for kind, number in imported.added.items()]
        blocks.append(Table(("type", "nodes"), rows, ("type",)))
    elif more or imported.archived:
        verb = "Would change existing nodes" if imported.dry_run else "Changed existing nodes"
        blocks.append(Line(f"{verb},{source}:"))
    else:
        blocks.append(Line(f"Nothing new{source}."))
    if more:
        blocks.append(Line(f"{', '.join(more)}."))
    if imported.archived:
        is_told = (
            "1 section is" if imported.archived == 1 else f"{imported.archived:,} sections are"
        )
        blocks.append(Line(f"{is_told} no longer in their files: {would_be}archived."))
    blocks += [
        Line(f"{count(number, 'node')} {what}.")
        for number, what in (
            (imported.unchanged, "already here"),
            (imported.kept, "newer here, and kept"),
            (imported.left_out, "left out by --since or --project-name"),
        )
        if number
    ]
    if imported.new:
        shown = imported.new[:MOST_ROWS]
        first = f"The first {len(shown)}" if nodes > len(shown) else "The new nodes"
        blocks.append(Line(f"{first}:"))
        listed = [(each.type, each.preview, " ".join(each.tags)) for each in shown]
        blocks.append(Table(("type", "content", "tags"), listed, ("type", "text", "tags")))
    if imported.skipped:
        blocks.append(Line(f"Skipped {len(imported.skipped):,}:"))
        blocks += listing(("what", "reason"), [tuple(each) for each in imported.skipped])
    return blocks


def _print_details(imported: ImportResult, output: Output) -> None:
    warn_of_redaction(imported.redacted, output)
    if imported.cleaned:
        characters = count(imported.cleaned, "character")
        output.warn(f"{characters} replaced by U+FFFD: not allowed in a text.")
    if imported.dry_run:
        output.note("Nothing changed.")
    elif imported.change:
        if claude_mem.PROGRAM in imported.programs:
            output.note(
                "Agents get the relevant ones in their projects. To list them: "
                f"ctx list --tag={claude_mem.SOURCE}"
            )
        output.note(f"To undo: `ctx undo {imported.change}`")


def import_host(host: str, settings: Settings, output: Output) -> None:
    """Import all past sessions of a host."""
    parser = argparse.ArgumentParser()
    parser.set_defaults(after_project="")
    configure(parser)
    words = ["--from", host, "--transcripts"]
    import_transcripts(parser.parse_args(words), settings, output)


def import_transcripts(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    # It loads everything that turns a transcript into memory.
    from ctx.operations import backfill

    settings.refuse_server()
    host = options.program or FIRST
    _refuse_other_options(options, host)
    host_folder = HOSTS.named(host).folder(settings.environment, settings.expanded("~"))
    paths = [os.path.join(settings.folder, settings.expanded(path)) for path in options.paths]
    with ExitStack() as stack:
        memory = _open_memory(stack, options, settings, output)
        # A recorder keeps its files in the project.
        paths = paths or ([] if host in NAMES else [memory.place.folder])
        project = (
            memory.place.folder if options.scope else _project_or_folder(options.project, settings)
        )
        wanted = backfill.Options(
            os.path.abspath(settings.expanded(host_folder)),
            tuple(map(os.path.abspath, paths)),
            options.since,
            project,
            options.dry_run,
            host,
        )
        tick = stack.enter_context(output.progress("Sessions"))
        done = backfill.backfill(memory, wanted, tick)
    output.show(done, render_sessions)
    if not (done.dry_run or paths or options.since or project):
        install_questions.remember(settings, [host])
    if done.dry_run:
        output.note("Nothing changed.")
    elif done.sessions:
        output.note("See `ctx sessions list` and `ctx context`.")
        if done.change:
            output.note(f"To undo: `ctx undo {done.change}`")


def _refuse_other_options(options: argparse.Namespace, host: str) -> None:
    if host not in HOSTS.names:
        raise UsageError(
            f"{host} has no transcripts.",
            hint="`ctx import --from claude-code --transcripts` reads those of Claude Code.",
        )
    refused = {
        "--merge": options.merge,
        "--user": options.scope == USER,
        "--with-prompts": options.with_prompts,
    }
    for name, is_given in refused.items():
        if is_given:
            mode = "--transcripts" if options.transcripts else f"--from {host}"
            raise UsageError(f"{name} cannot be used with {mode}.")


def _project_or_folder(text: str | None, settings: Settings) -> str | None:
    """A name as it is, and a folder as an absolute path."""
    if text and ("/" in text or text.startswith(("~", "."))):
        return os.path.abspath(os.path.join(settings.folder, settings.expanded(text)))
    return text


def render_sessions(done: "BackfillResult") -> list[Block]:
    blocks: list[Block] = []
    if done.sessions:
        verb = "Would import" if done.dry_run else "Imported"
        blocks.append(Line(f"{verb} {count(len(done.sessions), 'session')}:"))
        rows = [
            (
                each.session[:12],
                each.project or "",
                each.began[:10],
                cut(each.what, 80),
            )
            for each in done.sessions
        ]
        newest_first = rows[::-1]
        blocks += listing(
            ("id", "project", "began", "what"), newest_first, ("id", "tags", "age", "text")
        )
    else:
        blocks.append(Line("Nothing new in the transcripts."))
    if not done.dry_run and done.sessions:
        made = {
            "step": done.steps,
            "observation": done.observations,
            "new learning": done.learnings,
        }
        counts = ", ".join(count(number, noun) for noun, number in made.items())
        blocks.append(Line(f"{counts}; {size(done.size)} read in {done.seconds:.1f} s."))
    blocks += [
        Line(f"{count(number, 'session')} {what}.")
        for number, what in (
            (done.unchanged, "already here"),
            (
                done.left_out,
                "left out: by --since, --project or a setting, deleted, switched off, or going on",
            ),
        )
        if number
    ]
    if done.skipped:
        blocks.append(Line(f"Not fully read: {len(done.skipped):,}"))
        blocks.append(Table(("transcript", "reason"), [tuple(each) for each in done.skipped[:20]]))
    return blocks
