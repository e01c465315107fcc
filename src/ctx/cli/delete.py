"""`ctx delete` and `ctx forget`"""

import argparse
from collections.abc import Sequence

from ctx.cli import arguments, opening
from ctx.cli import settings as surroundings
from ctx.cli.nodes import preview, table
from ctx.cli.options import flag, session_option, yes_option
from ctx.cli.output import Block, Line, Output, count
from ctx.cli.settings import Settings
from ctx.ids import NodeId
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import parse
from ctx.operations.agent_proposals import forget
from ctx.operations.delete import (
    DeleteResult,
    Deletion,
    delete,
    deletion,
    files_of,
    is_kept_until_commit,
)
from ctx.operations.query import find
from ctx.workspace import Memory

EXAMPLES = {
    "delete": """
ctx delete 01M7ESYZ1SB4
ctx delete 01M7ESYZ1SB4 --cascade     and what was derived from it
ctx delete 01M7ESYZ1SB4 --dry-run     show what would be deleted
ctx restore 01M7ESYZ1SB4              restore it
""",
    "forget": """
ctx forget "staging password"                  find, show, ask, delete
ctx forget "tag:task:spike created:<30d" -y    without a prompt
ctx forget "tag:task:spike" --dry-run          only list them
ctx undo                                       undo it
""",
}

_FILES_NAMED = 3
_SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    if parser.get_default("command") == "forget":
        arguments.query(parser, "words, filters, or both")
    else:
        arguments.node(parser, "ids", several=True)
        flag(parser, "--cascade", "also delete nodes derived from these")
    arguments.dry_run(parser)
    yes_option(parser)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.command == "forget":
        _forget(options, settings, output)
        return
    with opening.writing(settings, output) as memory:
        named = [memory.graph.find(text) for text in options.ids]
        planned = deletion(memory.graph, named, cascade=options.cascade)
        deleted = DeleteResult(*planned, options.dry_run)
        if planned.dependents and not options.dry_run:
            if surroundings.stdin_is_terminal():
                output.confirm(f"{_dependents_text(planned)} Continue?", yes=options.yes)
            else:
                output.warn(_dependents_text(planned))
        if not options.dry_run:
            delete(memory, [node.id for node in planned.nodes])
        files = files_of(memory, planned.nodes)
        until_commit = is_kept_until_commit(memory, planned.nodes)
    output.show(deleted, render)
    if not options.dry_run:
        note_kept_files(files, output)
        if deleted.deleted:
            _note_restoring(len(deleted.deleted), until_commit, output)


def _forget(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    query = parse(arguments.query_of(options) or "")
    with opening.writing(settings, output) as memory:
        matches = find(memory.graph, query, Scope(include_superseded=True), 0)
        # Partial matches are not deleted.
        node_ids = [] if matches.partial else [node.id for node in matches.nodes]
        if node_ids and memory.environment.in_agents_shell and not options.dry_run:
            _forget_as_agent(memory, node_ids, output)
            return
        nodes = deletion(memory.graph, node_ids, cascade=False)
        deleted = DeleteResult(*nodes, options.dry_run)
        if node_ids and not options.dry_run:
            if not options.yes:
                output.preview([table(nodes.nodes[:_SHOWN], nodes.short_ids)])
                if len(node_ids) > _SHOWN:
                    output.preview([Line(f"  … and {len(node_ids) - _SHOWN:,} more")])
            resting = _dependents_text(nodes)
            question = f"Delete {count(len(node_ids), 'node')}?"
            output.confirm(f"{resting} {question}" if resting else question, yes=options.yes)
            if resting and options.yes:
                output.warn(resting)
            delete(memory, node_ids, "forget")
        files = files_of(memory, nodes.nodes)
        until_commit = is_kept_until_commit(memory, nodes.nodes)
    output.show(deleted, render)
    if not options.dry_run:
        note_kept_files(files, output)
    if deleted.deleted and not options.dry_run:
        _note_restoring(len(deleted.deleted), until_commit, output)


def _forget_as_agent(memory: Memory, node_ids: Sequence[NodeId], output: Output) -> None:
    """Delete what agents said. What the user said is only proposed, so nobody is asked here."""
    done = forget(memory, node_ids)
    output.show(DeleteResult(done.forgotten, done.short_ids, done.dependents, False), render)
    if done.proposed:
        named = ", ".join(done.short_ids[node.id] for node in done.proposed)
        output.warn(f"Only the user can delete {named}. They decide with `ctx review`.")


def _dependents_text(deletion: Deletion) -> str:
    """The nodes that depend on deleted ones; empty if there are none."""
    if not deletion.dependents:
        return ""
    names = ", ".join(deletion.short_ids[node.id] for node in deletion.dependents[:5])
    rest = "" if len(deletion.dependents) <= 5 else ", …"
    resting = count(len(deletion.dependents), "node depends", "nodes depend")
    return f"{resting} on deleted nodes: {names}{rest}."


def note_kept_files(files: Sequence[str], output: Output) -> None:
    """Note that the files of deleted nodes are not deleted."""
    if files:
        names = ", ".join(files[:_FILES_NAMED])
        more = f" and {len(files) - _FILES_NAMED:,} more" if len(files) > _FILES_NAMED else ""
        stay = "stays" if len(files) == 1 else "stay"
        output.note(f"{names}{more} {stay} on disk; delete what you no longer need with `git rm`.")


def _note_restoring(number: int, until_commit: bool, output: Output) -> None:
    them = "it" if number == 1 else "them"
    until = " until the next commit" if until_commit else ""
    output.note(f"To restore {them}{until}: `ctx undo`")


def render(deleted: DeleteResult) -> list[Block]:
    verb = "Would delete" if deleted.dry_run else "Deleted"
    if not deleted.deleted:
        return [Line("Nothing to delete.")]
    if len(deleted.deleted) == 1:
        node = deleted.deleted[0]
        return [Line(f"{verb}: {deleted.short_ids[node.id]} {node.type}: {preview(node)}")]
    return [
        Line(f"{verb} {count(len(deleted.deleted), 'node')}:"),
        table(deleted.deleted, deleted.short_ids),
    ]
