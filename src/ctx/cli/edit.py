"""`ctx edit`"""

import argparse
import os

from ctx import disk
from ctx.cli import arguments, opening
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.options import session_option
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.cli.update import render
from ctx.errors import ContentRefused, CtxError, UsageError
from ctx.operations.update import Options, update

EXAMPLES = """
ctx edit 01M7ESYZ1SB4             in $VISUAL or $EDITOR, else vi
EDITOR=nano ctx edit 01M7ESYZ1SB4
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser)
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.reading(settings, output) as memory:
        node_id = memory.graph.find(options.id)
        before = memory.graph.node(node_id).content
    # The editor may be open for hours: nothing is held meanwhile.
    file = edited(before, node_id, settings)
    try:
        text = _read(file)
        with opening.writing(settings, output) as memory:
            if memory.graph.node(node_id).content not in (before, text.strip()):
                raise UsageError(f"The node {node_id} was changed while you edited it.")
            updated = update(memory, node_id, Options(content=text))
    except CtxError as error:
        raise type(error)(error.message, hint=f"Your text is in {file}.") from None
    disk.discard(file)
    os.rmdir(os.path.dirname(file))
    output.show(updated, render)
    warn_of_redaction(updated.redacted, output)


def edited(text: str, name: str, settings: Settings) -> str:
    """Let the person's editor have the text; the file that it lies in then."""
    import shlex
    import subprocess
    import tempfile

    environment = settings.environment
    editor = environment.get("VISUAL") or environment.get("EDITOR") or "vi"
    folder = tempfile.mkdtemp(prefix="ctx-")
    file = os.path.join(folder, f"{name}.md")
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
        handle.write(text + "\n")
    try:
        code = subprocess.run([*shlex.split(editor), file], check=False).returncode
    except (OSError, ValueError) as error:
        code, reason = 1, str(error)
    else:
        reason = f"it ended with code {code}"
    if code:
        disk.discard(file)
        os.rmdir(folder)
        raise UsageError(
            f"The editor {editor!r} failed: {reason}. Nothing was changed.",
            hint="Set EDITOR to the one you like.",
        )
    return file


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as handle:
            return handle.read()
    except UnicodeDecodeError:
        raise ContentRefused("The edited text is not UTF-8.") from None
