"""`ctx update`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.options import session_option
from ctx.cli.output import Block, Line, Output, count
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.model import LARGE_CONTENT
from ctx.operations.update import Options, UpdateResult, update

EXAMPLES = """
ctx update 01M7ESYZ1SB4 "Deploys run on Mondays"
ctx update 01M7ESYZ1SB4 --type=decision --meta=confidence=high
ctx update 01M7ESYZ1SB4 --meta=confidence=    remove it
ctx update 01M7ESYZ1SB4 --stdin < note.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    parser.add_argument("text", nargs="*", metavar="TEXT", help="the new content (- reads stdin)")
    arguments.stdin(parser, "read the new content from stdin")
    arguments.node_type(parser, "the new type")
    parser.add_argument("--summary", metavar="TEXT", help="the text shown in lists")
    arguments.metadata(parser, "set a value; an empty one removes it")
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    wanted = Options(
        arguments.text_of(options, options.text),
        options.type,
        options.summary,
        arguments.metadata_of(options),
    )
    if wanted == Options():
        raise UsageError(
            "Nothing to change.",
            hint="Give a text, --type, --summary or --meta; for tags, `ctx tag`.",
        )
    if wanted.content and len(wanted.content) > LARGE_CONTENT:
        output.warn(f"Large node: {count(len(wanted.content), 'character')}.")
    with opening.writing(settings, output) as memory:
        updated = update(memory, memory.graph.find(options.id), wanted)
    output.show(updated, render)
    warn_of_redaction(updated.redacted, output)
    if updated.document:
        output.note(
            f"{updated.document} is in git and keeps its text; your change holds until"
            f" somebody edits the file. `ctx edit {updated.short_id}` edits the file."
        )


def render(updated: UpdateResult) -> list[Block]:
    if not updated.changed:
        return [Line(f"Unchanged: {updated.short_id}")]
    return [Line(f"Updated: {updated.short_id} ({', '.join(updated.changed)})")]
