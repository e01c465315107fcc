"""From the words on the command line to a command, and from an error to a message.

This module is on the path of every start, so it imports nothing that `ctx --version` does not
need. The table below is what `ctx --help` shows; a command's own file is imported when the
command is named.
"""

import os
import sys

from ctx import __version__
from ctx.errors import CtxError, DeserializationFailed, UsageError

# Type checkers know this name from anywhere; importing it from `typing` costs 15 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from types import ModuleType

    from ctx.cli.output import Output
    from ctx.cli.settings import Settings

COMMANDS = {
    "init": "make a project store in this folder",
    "add": "add files to the project store",
    "commit": "turn what is staged into a commit",
    "gc": "delete objects that nothing refers to",
    "debug": "look inside the store: cat, refs, history, verify, index",
    "config": "read and change settings: get, set, unset, list, explain",
    "help": "show help for a command",
}

_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if words in (["--version"], ["-V"]):
        return _print_version()

    from ctx.cli.output import Output, ReaderGone
    from ctx.cli.settings import Settings

    settings = Settings.from_environment()
    output = Output.for_words(words)
    try:
        return _run(words, settings, output)
    except CtxError as error:
        output.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        output.note("Interrupted.")
        return _INTERRUPTED
    except UnicodeEncodeError:
        # A path may be any bytes; everything else that is kept is text.
        output.error(UsageError("An argument is not valid UTF-8."))
        return UsageError.exit_code
    except RecursionError:
        output.error(DeserializationFailed("Something is nested too deeply to be read."))
        return 1
    except ReaderGone:
        # Whoever read our output has seen enough, as with `| head`.
        return 0
    except Exception as error:  # noqa: BLE001 - the last resort: a message instead of a traceback
        output.unexpected(error)
        return 1


def _print_version() -> int:
    """Without the machinery of the other commands: agents ask this to see whether ctx is there."""
    try:
        if sys.stdout is not None:
            sys.stdout.write(f"ctx {__version__}\n")
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except OSError:
        return 1
    return 0


def _run(words: list[str], settings: "Settings", output: "Output") -> int:
    from ctx.cli import options

    leading, name, rest = options.split(words)
    if name is None or name == "help":
        if name is None and {"--version", "-V"}.intersection(leading):
            return _print_version()
        if name is None and not {"-h", "--help"}.intersection(leading):
            options.top_parser(COMMANDS).parse_args(leading)
        output.result(_help([word for word in rest if not word.startswith("-")]))
        output.flush()
        return 0
    command, parser = _command(name)
    parsed = parser.parse_args(leading + rest)
    settings = settings.with_options(parsed)
    output.configure(parsed)
    returned = command.run(parsed, settings, output)
    output.flush()
    return int(returned or 0)


def _help(words: list[str]) -> str:
    """The help of a command, of a subcommand, or of ctx as a whole."""
    from ctx.cli import options

    if not words or words == ["help"]:
        return options.top_parser(COMMANDS).format_help()
    name, *inner = words
    parser = _command(name)[1]
    for word in inner:
        known = options.subcommands_of(parser)
        if word not in known:
            raise UsageError(
                f"There is no command 'ctx {name} {word}'.", hint=options.nearest(word, known)
            )
        parser = known[word]
    return parser.format_help()


def _command(name: str) -> "tuple[ModuleType, argparse.ArgumentParser]":
    from importlib import import_module

    from ctx.cli import options

    if name not in COMMANDS or name == "help":
        raise UsageError(f"There is no command {name!r}.", hint=options.nearest(name, COMMANDS))
    module = import_module(f"ctx.cli.{name}")
    return module, options.command_parser(name, COMMANDS[name], module)
