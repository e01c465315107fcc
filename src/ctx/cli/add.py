"""`ctx add`"""

import argparse
import os
from typing import NamedTuple

from ctx.cli import arguments, editor, opening
from ctx.cli import options as shared
from ctx.cli import settings as surroundings
from ctx.cli.nodes import note_tier, warn_of_redaction
from ctx.cli.output import Block, Line, Output, count
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.model import KNOWLEDGE_TYPES, LARGE_CONTENT
from ctx.operations.add import AddResult, Options, add

EXAMPLES = """
ctx add "The API speaks OAuth 2.0"                     a fact, which agents are shown
ctx add pattern "Errors carry a hint"                  also: question, hypothesis, observation
ctx add decision "We use SQLite" --body "No servers to run."
make test 2>&1 | ctx add --type=observation --stdin    the output of a command
ctx add file src README.md                             snapshot files
ctx add task "Retry with jitter"                       a task; also: note, command
ctx add code                                           read the code; also: rust, cargo
"""

NODE_EXAMPLES = """
ctx add "Deploys run on Fridays"                      a fact, which agents are shown
ctx add question "Who may deploy?" --no-tier          not given at the start
ctx add --type=decision --tag=project:shop --tag=tier:pinned "We use SQLite"
ctx add --type=decision --meta rationale="no servers to run" "We use SQLite"
ctx add --type=fact --supersedes 01M7ESYZ1SB4 "Deploys run on Mondays"
git log -3 | ctx add --type=observation --summary "The last commits" --stdin
"""


FILE_EXAMPLES = """
ctx add file src/app.py README.md      snapshot two files
ctx add file src                       every file that git would add
ctx add file 'src/**/*.py'             by a glob
ctx add file src -m "Before the move"  and commit them
ctx add file src/app.py --extract-semantics    also its definitions, imports and calls
"""


NOTE_EXAMPLES = """
ctx add note "The timeout came from the proxy, not from us"
ctx add note "Load test" --body "p99 went from 80 to 45 ms" --tag area:net
git log -3 --oneline | ctx add note "What went in" --stdin
ctx add note "Ready for review" -m "Retry with jitter"    and commit
"""

TASK_EXAMPLES = """
ctx add task                                              on a terminal, your editor opens
ctx add task "Retry" --body "At most 5 times." --mention src/net/client.rs
ctx add task "Retry" --stdin < plan.md
ctx task start task_0001                                  start it
"""

DECISION_EXAMPLES = """
ctx add decision "Retry with jitter" --body "All clients at once would bring it down again."
ctx add decision "Use SQLite" --stdin --tag area:storage < why.md
ctx add decision "Retry with jitter" --mention core::net::Client --mention src/net/client.rs
"""

COMMAND_EXAMPLES = """
make lint > out 2>&1; ctx add command --name "make lint" --exit-code $? --stdin < out
make lint 2>&1 | ctx add command --stdin --name "make lint"    without the exit code
"""

CARGO_EXAMPLES = """
ctx add cargo                          packages, targets and dependencies of the cargo workspace
ctx add cargo -m "Before the update"   and commit them
"""

CODE_EXAMPLES = """
ctx add {0}                            update the code index
ctx add {0} --files "{1}"
ctx add {0} --snapshot                 also stage a snapshot of it
ctx add {0} --snapshot -m "Before the rewrite"
"""

_SHOWN = 40
"""Characters of the text in an error."""
_DOCUMENTS = ("note", "task", "decision")
_CODE = ("code", "rust")
_NAMED = ("file", *_DOCUMENTS, "cargo", *_CODE, "command")
_TYPES = {name: name for name in KNOWLEDGE_TYPES} | {"question": "open-question"}
"""What `ctx add` calls the types of nodes."""


def prepare(words: list[str]) -> list[str]:
    """`ctx add …` is `ctx add node …`, and `ctx add fact …` is `ctx add node --type=fact …`.

    A word selects a subcommand or a type only if it comes first and there is no `--type`;
    otherwise it is content.
    """
    has_type = any(word == "--type" or word.startswith("--type=") for word in words)
    first = words[0] if words and not has_type else ""
    if first in _NAMED or words[:1] == ["node"]:
        return words
    if first in _TYPES:
        return ["node", f"--type={_TYPES[first]}", *words[1:]]
    return ["node", *words]


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    node = shared.add_subcommand(
        group,
        "node",
        "add a node (`node` is optional); others: `ctx add decision|task|note|file -h`",
        NODE_EXAMPLES,
    )
    arguments.content(node)
    arguments.node_type(node, "its type (default: that of the node it supersedes, else fact)")
    arguments.tags(node, "a tag; repeat for several")
    arguments.metadata(node, "metadata, such as the rationale of a decision")
    node.add_argument("--summary", metavar="TEXT", help="the text shown in lists")
    old = node.add_argument(
        "--supersedes",
        action="append",
        default=[],
        metavar="ID",
        help="the node that this one replaces",
    )
    shared.complete_with(old, "node")
    shared.flag(node, "--user", "write to your own store, for all projects")
    arguments.no_tier(node)
    shared.session_option(node)
    file = shared.add_subcommand(group, "file", "stage a snapshot of files", FILE_EXAMPLES)
    file.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, or a glob")
    shared.flag(file, "--commit", "commit at once")
    file.add_argument("-m", "--message", help="the commit message (implies --commit)")
    file.add_argument("-f", "--force", action="store_true", help="also add ignored files")
    shared.flag(file, "--allow-secrets", "also add files that contain a secret")
    shared.flag(file, "--extract-semantics", "also record their definitions, imports and calls")
    shared.session_option(file)
    _configure_documents(group)
    command = shared.add_subcommand(
        group, "command", "add the output of a command and its exit code", COMMAND_EXAMPLES
    )
    command.add_argument("--name", required=True, metavar="COMMAND", help="the command that ran")
    shared.flag(command, "--stdin", "read its output from stdin")
    command.add_argument("--body", metavar="TEXT", help="its output (- reads stdin)")
    command.add_argument("--exit-code", type=_exit_code, metavar="N", help="its exit code")
    _add_options(command)
    cargo = shared.add_subcommand(
        group, "cargo", "stage a snapshot of the cargo workspace", CARGO_EXAMPLES
    )
    shared.flag(cargo, "--commit", "commit at once")
    cargo.add_argument("-m", "--message", help="the commit message (implies --commit)")
    shared.session_option(cargo)
    _configure_code(group)


def _configure_code(group: "argparse._SubParsersAction[shared.Parser]") -> None:
    for word, summary, example in (
        ("code", "update the code index", "src/**/*.py"),
        ("rust", "update the code index for Rust files only", "crates/core/src/**/*.rs"),
    ):
        code = shared.add_subcommand(group, word, summary, CODE_EXAMPLES.format(word, example))
        code.add_argument(
            "--files",
            nargs="+",
            action="extend",
            default=[],
            metavar="GLOB",
            help="only these files, folders or globs",
        )
        shared.flag(code, "--snapshot", "stage a snapshot for the next commit")
        shared.flag(code, "--commit", "commit the snapshot at once")
        code.add_argument("-m", "--message", help="the commit message (implies --commit)")
        shared.session_option(code)


def _configure_documents(group: "argparse._SubParsersAction[shared.Parser]") -> None:
    note = shared.add_subcommand(
        group, "note", "add a note; in a project also to its log", NOTE_EXAMPLES
    )
    note.add_argument("text", nargs="*", metavar="TEXT", help="the note (- reads stdin)")
    task = shared.add_subcommand(group, "task", "add a task; in a project as a file", TASK_EXAMPLES)
    title = "the title, in one line (-: the whole text from stdin)"
    task.add_argument("text", nargs="*", metavar="TITLE", help=title)
    decision = shared.add_subcommand(
        group, "decision", "add a decision; in a project as a file", DECISION_EXAMPLES
    )
    decision.add_argument("text", nargs="*", metavar="TITLE", help=title)
    for document in (note, task, decision):
        document.add_argument("--body", metavar="TEXT", help="the body (- reads stdin)")
        shared.flag(document, "--stdin", "read the body from stdin")
        document.add_argument(
            "--stream",
            default="main",
            metavar="NAME",
            help="the narrative stream: main, work, or a feature (default: main)",
        )
        _add_options(document)
    for document in (note, decision):
        arguments.no_tier(document)
    for document in (task, decision):
        mention = document.add_argument(
            "--mention",
            action="append",
            default=[],
            metavar="NAME",
            help="a file or a name in the code that it is about; repeat for several",
        )
        shared.complete_with(mention, "file")


def _add_options(parser: argparse.ArgumentParser) -> None:
    arguments.tags(parser, "a tag; repeat for several")
    shared.flag(parser, "--user", "write to your own store, for all projects")
    shared.flag(parser, "--commit", "commit at once")
    parser.add_argument("-m", "--message", help="the commit message (implies --commit)")
    shared.session_option(parser)


def _exit_code(word: str) -> int:
    digits = word.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number")
    return int(word)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    if options.subcommand == "file":
        from ctx.cli import add_file

        return add_file.run(options, settings, output)
    if options.subcommand in _DOCUMENTS:
        from ctx.cli import add_document

        add_document.run(options, settings, output)
        return 0
    if options.subcommand == "command":
        from ctx.cli import add_command

        add_command.run(options, settings, output)
        return 0
    if options.subcommand in _CODE:
        from ctx.cli import add_code

        add_code.run(options, settings, output)
        return 0
    if options.subcommand == "cargo":
        from ctx.cli import add_cargo

        add_cargo.run(options, settings, output)
        return 0
    _refuse_typing_mistakes(options)
    text = _text(options, settings, output)
    content = text.content
    if len(content) > LARGE_CONTENT:
        output.warn(f"Large node: {count(len(content), 'character')}.")
    with editor.keep_on_failure(text.file), opening.adding(settings, output) as memory:
        wanted = Options(
            content,
            options.type,
            options.tag,
            options.summary,
            arguments.metadata_of(options),
            [memory.graph.find(name) for name in options.supersedes],
            options.user,
            arguments.default_tier(options, settings, typed=text.is_typed),
        )
        added = add(memory, wanted)
    output.show(added, render)
    warn_of_redaction(added.redacted, output)
    note_tier(added.node, added.short_id, added.given, output)
    return 0


class _TypedText(NamedTuple):
    content: str
    is_typed: bool
    """Whether a person typed it: as an argument, in the editor, or on a terminal."""
    file: str | None = None
    """The file in which the editor left it."""


def _text(options: argparse.Namespace, settings: Settings, output: Output) -> _TypedText:
    if options.content or options.stdin:
        piped = options.stdin or options.content == ["-"]
        is_typed = not piped or surroundings.stdin_is_terminal()
        return _TypedText(arguments.content_of(options), is_typed)
    if not output.is_interactive:
        if options.type or options.tag or options.meta or options.summary or options.supersedes:
            # As for any other text that is empty.
            return _TypedText("", True)
        raise UsageError("The text is missing.", hint='`ctx add "…"`, or --stdin')
    file = editor.edit_text("", options.type or "fact", editor.program(settings, output))
    content = editor.read_back(file)
    if not content.strip():
        editor.discard(file)
        raise UsageError("The text is empty; nothing added.")
    return _TypedText(content, True, file)


def _refuse_typing_mistakes(options: argparse.Namespace) -> None:
    """Refuse `ctx add flie src`, which is a mistyped `file`, not a fact."""
    words = options.content
    text = " ".join(words)
    if options.type or options.stdin or words == ["-"] or not text.strip():
        return
    if len(words) == 1 and any(character.isspace() for character in text):
        return
    word = words[0][:_SHOWN]
    near = shared.nearest(word, [*_NAMED, *_TYPES]) or ""
    if "Did you" in near:
        raise UsageError(f"`ctx add` has no subcommand {word!r}.", hint=near)
    if os.path.exists(words[0]):
        hint = f"`ctx add file {word}` snapshots a file; `ctx add fact {word}` adds the word."
        raise UsageError(f"{word!r} is a file.", hint=hint)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    if len(words) > 1:
        raise UsageError("The text is not in quotes.", hint=f'Write `ctx add "{shown}"`.')
    raise UsageError(
        f"{word!r} is one word, and no subcommand of `ctx add`.",
        hint=f'To add it: `ctx add fact "{shown}"`',
    )


def render(added: AddResult) -> list[Block]:
    tags = f" ({', '.join(added.given)})" if added.given else ""
    return [Line(f"Added: {added.short_id}{tags}")]
