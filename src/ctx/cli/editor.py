"""The user's editor, for a text that is not given on the command line."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from ctx import disk, interrupts
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.errors import ContentRefused, CtxError, UsageError


@contextmanager
def keep_on_failure(file: str | None) -> Iterator[None]:
    """Keep the edited text in its file if it cannot be stored, and say where it is."""
    try:
        yield
    except CtxError as error:
        if file:
            error.hint = f"{error.hint or ''} Your text is in {file}.".lstrip()
        raise
    if file:
        discard(file)


def discard(file: str) -> None:
    """Remove the file, with any that the editor left beside it."""
    shutil.rmtree(os.path.dirname(file), ignore_errors=True)


def program(settings: Settings, output: Output) -> str:
    named = (settings.environment.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    chosen = next(filter(None, named), "")
    if not chosen and not output.is_interactive:
        raise UsageError(
            "There is no terminal to edit on.",
            hint="`ctx update ID --stdin` takes the new content; or set EDITOR to a program.",
        )
    return chosen or "vi"


def edit_text(text: str, name: str, editor: str) -> str:
    """Open the text in the user's editor, and return the file."""
    import shlex
    import signal
    import subprocess
    import tempfile

    with disk.explain_errors("writing the text for the editor"):
        folder = tempfile.mkdtemp(prefix="ctx-")
        file = os.path.join(folder, f"{name}.md")
        # Keep line endings: a text that is only viewed must not change.
        with open(file, "w", encoding="utf-8", newline="") as handle:
            handle.write(text + "\n")
    try:
        with interrupts.TerminalOwnedByChild():
            code = subprocess.run([*shlex.split(editor), file], check=False).returncode
        if code in (-signal.SIGINT, 128 + signal.SIGINT) and not _is_changed(file, text):
            shutil.rmtree(folder, ignore_errors=True)
            raise KeyboardInterrupt
        reason = f"it ended with code {code}" if code else ""
    except (OSError, ValueError) as error:
        reason = str(error)
    if not reason and not os.path.isfile(file):
        reason = "it deleted the file"
    if not reason:
        return file
    hint = "Set EDITOR to another program."
    if _is_changed(file, text):
        hint = f"Your text is in {file}."
    else:
        shutil.rmtree(folder, ignore_errors=True)
    raise UsageError(f"The editor {editor!r} failed: {reason}. Nothing changed.", hint=hint)


def _is_changed(file: str, text: str) -> bool:
    """Whether somebody typed something. A file that cannot be read is kept."""
    try:
        with open(file, "rb") as handle:
            return handle.read() != f"{text}\n".encode()
    except OSError:
        return os.path.isfile(file)


def read_back(file: str) -> str:
    try:
        with (
            disk.explain_errors("reading the edited text"),
            open(file, encoding="utf-8", newline="") as handle,
        ):
            return handle.read()
    except UnicodeDecodeError:
        raise ContentRefused("The edited text is not UTF-8.") from None
