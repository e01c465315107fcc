"""From the words on the command line to a command, and from an error to a message.

This module is on the path of every start, so it imports nothing that `ctx --version` does not
need. A command's own file is imported when the command is named.
"""

import sys

from ctx import __version__, interrupts
from ctx.errors import CtxError, DatabaseFailure, DeserializationFailed, UsageError

# Type checkers know this name from anywhere; importing it from `typing` costs 15 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.cli.output import Output
    from ctx.cli.settings import Settings

_VERSION = f"ctx {__version__}\n"
_RARELY = 100_000
"""Objects before the first garbage collection; a command creates a third of that."""


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if words in (["--version"], ["-V"], ["-v"]) and _print_version():
        return 0
    if arguments is None:
        import gc

        # Most commands end before a collection is worth its time.
        gc.set_threshold(_RARELY)
        if words[:1] == ["hook"]:
            _run_hook(words[1:])

    from ctx.cli.output import Output
    from ctx.cli.settings import Settings

    settings = Settings.from_environment()
    output = Output.for_words(words, settings.screen)
    # Everything that a signal may interrupt is inside.
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
        # The worker has its own handlers, and was asked to stop.
        output.close()
        return interrupts.end(0)


def _run_and_report(words: list[str], settings: "Settings", output: "Output") -> int:
    """Run a command; every error becomes a message and an exit code."""
    from ctx.cli.output import Declined, ReaderGone

    try:
        return _run(words, settings, output)
    except Declined:
        output.note("Nothing changed.")
        return 1
    except ReaderGone:
        # The reader has closed the pipe, as with `| head`.
        return 0
    except Exception as error:  # noqa: BLE001 - the last resort: a message instead of a traceback
        # SQLite and others report an interruption as an error of theirs.
        interrupts.check()
        match error:
            case CtxError():
                report = error
            case UnicodeEncodeError():
                # A path may be any bytes; everything else that is stored is text.
                hint = "Convert it first, for example with `iconv -t utf-8`."
                report = UsageError("An argument is not valid UTF-8.", hint=hint)
            case RecursionError():
                report = DeserializationFailed("Something is nested too deeply to be read.")
            case _:
                output.unexpected(error, debugging=bool(settings.environment.get("CTX_DEBUG")))
                return 1
        output.error(report)
        return report.exit_code


def _run_hook(words: list[str]) -> None:
    """Run a hook without loading the other commands, unless its help is requested."""
    from ctx.agents.runtime import hook
    from ctx.hook_files import spool

    if not words or words[0] not in spool.EVENTS or {"-h", "--help"}.intersection(words):
        return
    from ctx.agents.known_hosts import hooks_of
    from ctx.hosts.host_registry import FIRST

    if words[1:2] == ["--host"]:
        words, host = [words[0], *words[3:]], "".join(words[2:3])
    elif any(word == "--host" or word.startswith("--host=") for word in words):
        return
    else:
        host = FIRST
    if hooks := hooks_of(host):
        hook.main_of_project(words, hooks)


def _print_version() -> bool:
    """Print the version without loading the other commands: agents use it to detect ctx.

    Returns whether it worked. If not, the normal path reports the problem.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.write(_VERSION)
            sys.stdout.flush()
    except OSError:
        return False
    return True


def _run(words: list[str], settings: "Settings", output: "Output") -> int:
    from ctx.cli import commands, options

    if words[:1] == ["__complete"]:
        from ctx.cli import completion

        return completion.answer(words[1:], settings, output)
    leading, name, rest = options.split(words)
    if name is None and options.wants_version(leading):
        output.result(_VERSION)
        output.flush()
        return 0
    try:
        if name is None:
            from ctx.cli import help_texts

            if not leading:
                raise options.HelpRequested(help_texts.overview(commands.EVERYDAY))
            help_texts.short_parser(commands.EVERYDAY).parse_args(leading)
            raise UsageError("No command given.", hint="See `ctx --help`.")
        if name == "help":
            from ctx.cli import help_texts

            words = [word for word in leading + rest if word not in ("-h", "--help")]
            parsed = help_texts.help_parser().parse_intermixed_args(words)
            output.configure(parsed)
            if parsed.man:
                from ctx.cli import man_pages

                raise options.HelpRequested(man_pages.page(parsed.words))
            raise options.HelpRequested(help_texts.text_for(parsed.words, all_commands=parsed.all))
        command, parser = commands.command_named(name)
        # Add a first word that may be left out.
        words = commands.completed(command, rest)
        parsed = options.parse(parser, leading, words)
    except options.HelpRequested as request:
        output.help(str(request))
        output.flush()
        return 0
    output.configure(parsed)
    if output.has_reader:
        for hint in getattr(parsed, "hints", ()):
            output.note(hint)
    settings = settings.with_options(parsed)
    if settings.untrusted and not output.is_on_a_terminal:
        raise UsageError(
            "--untrusted shows a store on a terminal only, because agents read pipes.",
            hint="To review and trust the store: `ctx trust`",
        )
    try:
        returned = command.run(parsed, settings, output)
    except DatabaseFailure as error:
        from ctx.cli import damaged_store

        returned = damaged_store.offer(error, name, settings, output)
        if returned is None:
            raise
    output.flush()
    return int(returned or 0)
