"""`ctx update` and `ctx edit`"""

import argparse

from ctx.cli import arguments, editor, opening
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.options import session_option
from ctx.cli.output import Block, Line, Output, count
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.model import LARGE_CONTENT
from ctx.operations.update import Options, UpdateResult, update

EXAMPLES = {
    "update": """
ctx update 01M7ESYZ1SB4 "Deploys run on Mondays"
ctx update 01M7ESYZ1SB4 --type=decision --meta=confidence=high
ctx update 01M7ESYZ1SB4 --meta=confidence=    remove it
ctx update 01M7ESYZ1SB4 --stdin < note.md
""",
    "edit": """
ctx edit 01M7ESYZ1SB4             in $VISUAL or $EDITOR, else vi
EDITOR=nano ctx edit 01M7ESYZ1SB4
""",
}


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    if parser.get_default("command") == "update":
        new = "the new content (- reads stdin)"
        parser.add_argument("text", nargs="*", metavar="TEXT", help=new)
        arguments.stdin(parser, "read the new content from stdin")
        arguments.node_type(parser, "the new type")
        parser.add_argument("--summary", metavar="TEXT", help="the text shown in lists")
        arguments.metadata(parser, "set a value; an empty one removes it")
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    updated = (_edit if options.command == "edit" else _update)(options, settings, output)
    output.show(updated, render)
    warn_of_redaction(updated.redacted, output)
    if updated.document and options.command == "update":
        output.note(
            f"{updated.document} is in git and keeps its text; your change holds until"
            f" somebody edits the file. `ctx edit {updated.short_id}` edits the file."
        )


def _update(options: argparse.Namespace, settings: Settings, output: Output) -> UpdateResult:
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
        return update(memory, memory.graph.find(options.id), wanted)


def _edit(options: argparse.Namespace, settings: Settings, output: Output) -> UpdateResult:
    program = editor.program(settings, output)
    with opening.reading(settings, output) as memory:
        node_id = memory.graph.find(options.id)
        before = memory.graph.node(node_id).content
    # The editor may be open for hours: nothing is locked meanwhile.
    file = editor.edit_text(before, node_id, program)
    with editor.keep_on_failure(file):
        text = editor.read_back(file)
        with opening.writing(settings, output) as memory:
            wanted = Options(content=text, in_document=True, based_on=before)
            return update(memory, node_id, wanted)


def render(updated: UpdateResult) -> list[Block]:
    if not updated.changed:
        return [Line(f"Unchanged: {updated.short_id}")]
    return [Line(f"Updated: {updated.short_id} ({', '.join(updated.changed)})")]
