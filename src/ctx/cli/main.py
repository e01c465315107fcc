"""From the words on the command line to a command, and from an error to a message.

This module is on the path of every start, so it imports nothing that `ctx --version` does not
need. The table below is what `ctx --help` shows; a command's own file is imported when the
command is named.
"""

import sys

from ctx import __version__, interrupts
from ctx.errors import CtxError, DeserializationFailed, UsageError

# Type checkers know this name from anywhere; importing it from `typing` costs 15 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from types import ModuleType

    from ctx.cli.output import Output
    from ctx.cli.settings import Settings

# What `ctx --help` shows, under these headings.
GROUPS = {
    "nodes": {
        "add": "add a node, a note, a task, a decision, a command's output, or files",
        "show": "show a node, with its edges and its history",
        "list": "list nodes, the newest first",
        "update": "change a node's content, type, summary or metadata",
        "edit": "change a node's content in your editor",
        "delete": "delete nodes",
        "forget": "find nodes by words or filters, and delete them",
        "restore": "bring deleted nodes back, or the whole store from a backup",
        "undo": "take back a change",
        "pin": "make nodes part of every context",
        "unpin": "take nodes' pins away",
        "tag": "give a node tags",
        "untag": "take tags from a node",
        "tags": "list tags",
        "link": "relate two nodes by an edge",
        "unlink": "remove edges between two nodes",
        "relate": "relate files, code, tasks and nodes by what they are called",
        "edges": "list a node's edges",
        "move": "bring nodes to the project's store, or to your own",
        "task": "start, end or show the current task",
    },
    "ask": {
        "search": "find nodes by words",
        "query": "what to read for a task, within a budget; or the nodes that filters match",
        "recall": "what memory, history and files have to say to a question, in short",
        "trace": "show what a node was made from",
        "related": "show what is near a node",
        "why": "show what an agent was given, at what cost, and why",
    },
    "compose": {
        "compose": "put the right nodes together, within a budget",
        "context": "show what a session that starts here would be given",
        "view": "named queries: create, list, render, update, delete",
        "summarize": "make one node out of several",
    },
    "project": {
        "init": "make a project store in this folder",
        "commit": "turn what is staged into a commit",
        "stage": "sessions and what is staged: start, flush, compact, abort, status, recover",
        "log": "show the commits and what each changed, newest first",
        "diff": "show how the memory of two commits differs",
        "review": "decide what agents propose, and what two branches changed at once",
        "rebuild": "make the index of the project anew",
        "trust": "trust a project store, so that agents are given what it holds",
        "scrub": "take a word or a secret out of everything that was stored",
        "gc": "delete objects that nothing refers to",
        "debug": "look inside: cat, refs, history, verify, index, graph",
    },
    "code": {
        "code": "what the code is made of: outline, callers, callees, imports, cycles, changed",
    },
    "sessions": {
        "sessions": "what agents have worked on: list, show, replay, delete",
        "pause": "take in nothing of what agents do, for a while",
        "resume": "take in what agents do again",
        "learnings": "what several sessions have shown: list, add, confirm, reject",
        "worker": "the process that makes memory of sessions: start, stop, status, logs",
    },
    "exchange": {
        "export": "write nodes, edges and views as JSON",
        "import": "read what ctx or another program has written",
        "ingest": "keep files as source nodes",
        "store": "look after the store's file: check, backup, restore, recover",
    },
    "models": {
        "llm": "ask a model about a pack, and keep what it answers",
        "cost": "what models were asked, and what that cost",
    },
    "setting up": {
        "install": "register hooks and the skill with Claude Code",
        "uninstall": "take hooks and skill out of Claude Code again",
        "doctor": "check that everything works, and say what to do",
        "hook": "what Claude Code calls: session-start, stop, …, and apply",
        "status": "how much there is in memory",
        "config": "read and change settings: get, set, unset, list, explain",
        "completion": "print the completion script for a shell",
        "help": "show help for a command",
    },
}
# What other programs call a command of ours.
_ELSEWHERE = {
    "find": "`ctx search`",
    "get": "`ctx show`",
    "ls": "`ctx list`",
    "new": "`ctx add`",
    "redo": "`ctx undo CHANGE`, which also takes back an undoing",
    "remember": "`ctx add`",
    "remove": "`ctx delete`",
    "rm": "`ctx delete`",
    "supersede": "`ctx link NEW-ID OLD-ID --type=SUPERSEDES`",
}

COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}

_VERSION = f"ctx {__version__}\n"
_RARELY = 100_000
"""Objects made before the first look for garbage: a command makes a third of that."""


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if words in (["--version"], ["-V"]) and _print_version():
        return 0
    if arguments is None:
        import gc

        # Most commands end before there is anything worth collecting.
        gc.set_threshold(_RARELY)
        if words[:1] == ["hook"]:
            _run_hook(words[1:])

    from ctx.cli.output import Output
    from ctx.cli.settings import Settings

    settings = Settings.from_environment()
    output = Output.for_words(words, settings.screen)
    # Everything that a signal may interrupt stands inside.
    try:
        interrupts.begin()
        code = _run_and_report(words, settings, output)
        output.close()
        return interrupts.end(code)
    except KeyboardInterrupt:
        code = interrupts.exit_code()
        output.interrupted(interrupts.message())
        output.close()
        return interrupts.end(code)
    except SystemExit:
        # The worker has handlers of its own, and was told to go.
        output.close()
        return interrupts.end(0)


def _run_and_report(words: list[str], settings: "Settings", output: "Output") -> int:
    """Run a command; whatever goes wrong becomes a message and an exit code."""
    from ctx.cli.output import Declined, ReaderGone

    try:
        return _run(words, settings, output)
    except Declined:
        output.note("Nothing was changed.")
        return 1
    except ReaderGone:
        # Whoever read our output has seen enough, as with `| head`.
        return 0
    except Exception as error:  # noqa: BLE001 - the last resort: a message instead of a traceback
        # SQLite and others report an interruption as an error of theirs.
        interrupts.check()
        match error:
            case CtxError():
                told = error
            case UnicodeEncodeError():
                # A path may be any bytes; everything else that is kept is text.
                hint = "Convert it first, for example with `iconv -t utf-8`."
                told = UsageError("An argument is not valid UTF-8.", hint=hint)
            case RecursionError():
                told = DeserializationFailed("Something is nested too deeply to be read.")
            case _:
                output.unexpected(error, debugging=bool(settings.environment.get("CTX_DEBUG")))
                return 1
        output.error(told)
        return told.exit_code


def _run_hook(words: list[str]) -> None:
    """Run a hook without the machinery of the other commands, unless it is asked about."""
    from ctx.agents.claude_code import hook
    from ctx.sessions import spool

    if words and words[0] in spool.EVENTS and not {"-h", "--help"}.intersection(words):
        hook.main_of_project(words)


def _print_version() -> bool:
    """Without the machinery of the other commands: agents ask this to see whether ctx is there.

    Whether it worked. Where it did not, the ordinary way says why.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.write(_VERSION)
            sys.stdout.flush()
    except OSError:
        return False
    return True


def _run(words: list[str], settings: "Settings", output: "Output") -> int:
    from ctx.cli import options

    if words[:1] == ["__complete"]:
        from ctx.cli import complete

        return complete.run(words[1:], settings, output)
    leading, name, rest = options.split(words)
    if name is None and {"--version", "-V"}.intersection(leading):
        output.result(_VERSION)
        output.flush()
        return 0
    try:
        if name is None:
            options.top_parser(GROUPS).parse_args(leading or ["--help"])
            raise UsageError("There is no command.", hint="`ctx --help` lists them.")
        if name == "help":
            words = [word for word in leading + rest if word not in ("-h", "--help")]
            asked = options.help_parser().parse_intermixed_args(words)
            output.configure(asked)
            raise options.HelpAsked(_help(asked.words))
        command, parser = command_named(name)
        # A command whose first word may be left out puts it back.
        words = command.prepare(rest) if hasattr(command, "prepare") else rest
        parsed = options.parse(parser, leading, words)
    except options.HelpAsked as asked_for:
        output.help(str(asked_for))
        output.flush()
        return 0
    output.configure(parsed)
    settings = settings.with_options(parsed)
    if settings.untrusted and not output.is_on_a_terminal:
        raise UsageError(
            "--untrusted shows a store on a terminal only, because agents read pipes.",
            hint="`ctx trust` says what the store holds, and trusts it.",
        )
    returned = command.run(parsed, settings, output)
    output.flush()
    return int(returned or 0)


def _help(words: list[str]) -> str:
    """The help of a command, of a subcommand, or of ctx as a whole."""
    from ctx.cli import options

    if not words or words == ["help"]:
        return options.top_parser(GROUPS).format_help()
    name, *inner = words
    command, parser = command_named(name)
    if not inner and hasattr(command, "prepare"):
        inner = command.prepare(["--help"])[:-1]
    for word in inner:
        known = options.subcommands_of(parser)
        if word not in known:
            raise UsageError(
                f"There is no command 'ctx {name} {word}'.",
                hint=options.nearest(word, known, f"ctx {name}"),
            )
        parser = known[word]
    return parser.format_help()


def command_named(name: str) -> "tuple[ModuleType, argparse.ArgumentParser]":
    from ctx.cli import options

    if name not in COMMANDS or name == "help":
        meant = _ELSEWHERE.get(name)
        hint = f"Did you mean {meant}?" if meant else options.nearest(name, COMMANDS)
        raise UsageError(f"There is no command {name!r}.", hint=hint)
    module = module_of(name)
    return module, options.command_parser(name, COMMANDS[name], module)


def module_of(name: str) -> "ModuleType":
    """The file of a command."""
    from importlib import import_module

    # Python keeps the word `import` for itself.
    return import_module("ctx.cli.import_" if name == "import" else f"ctx.cli.{name}")
