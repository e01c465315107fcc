"""`ctx forget`"""

import argparse
from collections.abc import Sequence

from ctx.cli import arguments, opening
from ctx.cli.delete import dependents_text, note_kept_files, note_restoring, render
from ctx.cli.nodes import table
from ctx.cli.options import session_option, yes_option
from ctx.cli.output import Line, Output, count
from ctx.cli.settings import Settings
from ctx.ids import NodeId
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import parse
from ctx.operations.delete import DeleteResult, delete, deletion, files_of, is_kept_until_commit
from ctx.operations.forget import forget
from ctx.operations.query import find
from ctx.workspace import Memory

EXAMPLES = """
ctx forget "staging password"                  find, show, ask, delete
ctx forget "tag:task:spike created:<30d" -y    without a prompt
ctx forget "tag:task:spike" --dry-run          only list them
ctx undo                                       undo it
"""

_SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.query(parser, "words, filters, or both")
    arguments.dry_run(parser)
    yes_option(parser)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    query = parse(arguments.query_of(options) or "")
    with opening.writing(settings, output) as memory:
        matches = find(memory.graph, query, Scope(include_superseded=True), 0)
        # Partial matches are not deleted.
        node_ids = [] if matches.partial else [node.id for node in matches.nodes]
        if node_ids and memory.environment.in_agents_shell and not options.dry_run:
            _forget_as_agent(memory, node_ids, output)
            return
        nodes = deletion(memory.graph, node_ids, cascade=False)
        deleted = DeleteResult(nodes.nodes, nodes.short_ids, nodes.dependents, options.dry_run)
        if node_ids and not options.dry_run:
            if not options.yes:
                output.preview([table(nodes.nodes[:_SHOWN], nodes.short_ids)])
                if len(node_ids) > _SHOWN:
                    output.preview([Line(f"  … and {len(node_ids) - _SHOWN:,} more")])
            resting = dependents_text(nodes)
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
        note_restoring(len(deleted.deleted), until_commit, output)


def _forget_as_agent(memory: Memory, node_ids: Sequence[NodeId], output: Output) -> None:
    """Delete what agents said. What the user said is only proposed, so nobody is asked here."""
    done = forget(memory, node_ids)
    output.show(DeleteResult(done.forgotten, done.short_ids, done.dependents, False), render)
    if done.proposed:
        named = ", ".join(done.short_ids[node.id] for node in done.proposed)
        output.warn(f"Only the user can delete {named}. They decide with `ctx review`.")
