"""`ctx add note`, `ctx add task`, `ctx add decision`: their options are in `add.py`."""

import argparse
from typing import NamedTuple

from ctx.cli import arguments, editor, opening
from ctx.cli import commit as commit_command
from ctx.cli import settings as surroundings
from ctx.cli.nodes import note_tier, note_unclear, note_unknown, warn_of_redaction
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.model import tier
from ctx.narrative import document_format, streams
from ctx.operations import add_document, commit
from ctx.operations.add import DefaultTier
from ctx.operations.document import AddDocumentResult, Options
from ctx.workspace import Memory, Workspace


class AddDocumentCommitResult(NamedTuple):
    """The answer with `--commit`."""

    added: AddDocumentResult
    commit: commit.CommitResult


class _DocumentText(NamedTuple):
    title: str
    body: str
    file: str | None = None
    """The file in which the editor left the text."""
    is_typed: bool = True
    """Whether a person typed it, and it did not come through a pipe."""


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    stream = streams.stream_named(options.stream)
    committing = workspace_to_commit(options, settings, output)
    words = _words(options, settings, output)
    with editor.keep_on_failure(words.file), opening.adding(settings, output) as memory:
        written = _add(memory, options, words, stream, _tier(options, settings, words))
        has_project = memory.project_memory is not None
    if committing:
        message = options.message or written.node.content.partition("\n")[0]
        made = commit.commit(committing, commit.Options(message))
        output.show(AddDocumentCommitResult(written, made), render_both)
        commit_command.print_details(made, output)
    else:
        output.show(written, render)
    warn_of_redaction(written.redacted, output)
    note_unknown(written.unknown, output)
    note_unclear(written.unclear, output)
    if not has_project:
        output.note("Added to your own store. `ctx init` creates a project store, with files.")
    if options.subcommand == "note":
        note_tier(written.node, written.short_id, written.given, output)
    elif tier(written.node.tags) is None and options.subcommand == "task":
        output.note(f"To start it: `ctx task start {written.number or written.short_id}`")


def workspace_to_commit(
    options: argparse.Namespace, settings: Settings, output: Output
) -> Workspace | None:
    """What `--commit` commits. Checked before anything is written."""
    if options.message is not None:
        commit.require_message(options.message)
    if not options.commit and options.message is None:
        return None
    if options.user:
        raise UsageError("--user and --commit exclude each other.", hint="Leave out one.")
    return opening.open_to_write(settings, output)


def _words(options: argparse.Namespace, settings: Settings, output: Output) -> _DocumentText:
    text = " ".join(options.text)
    if (options.body is not None) + (text == "-") + options.stdin > 1:
        raise UsageError("Give the body with --body or with --stdin, not both.")
    if text == "-" and options.subcommand == "note":
        is_typed = surroundings.stdin_is_terminal()
        return _DocumentText(surroundings.read_stdin(), "", is_typed=is_typed)
    if options.body not in (None, "-"):
        body = options.body
        return _DocumentText(text or _first_line(body), body if text else _text_after_title(body))
    if options.stdin or "-" in (text, options.body):
        body = surroundings.read_stdin()
        if text not in ("", "-"):
            return _DocumentText(text, body)
        is_typed = surroundings.stdin_is_terminal()
        return _DocumentText(_first_line(body), _text_after_title(body), is_typed=is_typed)
    if not text and output.is_interactive:
        return _edit_document(options.subcommand, settings, output)
    if not text:
        raise UsageError(
            "The text is missing.", hint=f'`ctx add {options.subcommand} "…"`, or --stdin'
        )
    return _DocumentText(text, "")


def _edit_document(kind: str, settings: Settings, output: Output) -> _DocumentText:
    file = editor.edit_text("# ", kind, editor.program(settings, output))
    parsed = document_format.parse(editor.read_back(file))
    body = parsed.body
    title = parsed.title or _first_line(body)
    if not title:
        editor.discard(file)
        raise UsageError("The text is empty; nothing added.")
    return _DocumentText(title, body if parsed.title else _text_after_title(body), file)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _text_after_title(text: str) -> str:
    return text.strip().partition("\n")[2]


def _tier(options: argparse.Namespace, settings: Settings, words: _DocumentText) -> DefaultTier:
    """A note that a person typed is shown to agents; a decision is shown whoever adds it."""
    if options.subcommand == "task":
        return "inherited"
    return arguments.default_tier(options, settings, typed=words.is_typed)


def _add(
    memory: Memory,
    options: argparse.Namespace,
    words: _DocumentText,
    stream: str,
    default_tier: DefaultTier,
) -> AddDocumentResult:
    title, body = words.title, words.body
    if options.subcommand == "note":
        return add_document.add_note(
            memory,
            add_document.NoteOptions(title, body, options.tag, stream, options.user, default_tier),
        )
    wanted = Options(title, body, options.tag, options.mention, stream, options.user, default_tier)
    if options.subcommand == "task":
        return add_document.add_task(memory, wanted)
    return add_document.add_decision(memory, wanted)


def render_both(both: AddDocumentCommitResult) -> list[Block]:
    return [*render(both.added), *commit_command.render(both.commit)]


def render(written: AddDocumentResult) -> list[Block]:
    called = f" {written.number}" if written.number else ""
    tags = f" ({', '.join(written.given)})" if written.given else ""
    blocks: list[Block] = [Line(f"Added: {written.short_id}{called}{tags}")]
    if written.path:
        blocks.append(Line(f"  {written.path}"))
    return blocks
