"""`ctx edit`"""

import argparse

from ctx.cli import arguments, editor, opening
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.options import session_option
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.cli.update import render
from ctx.operations.update import Options, update

EXAMPLES = """
ctx edit 01M7ESYZ1SB4             in $VISUAL or $EDITOR, else vi
EDITOR=nano ctx edit 01M7ESYZ1SB4
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
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
            updated = update(memory, node_id, wanted)
    output.show(updated, render)
    warn_of_redaction(updated.redacted, output)
