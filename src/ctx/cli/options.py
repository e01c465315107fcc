"""Parsing of options: those that every command takes, and how a command's help looks."""

import argparse
import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any, Literal, NoReturn

from ctx.cli.terminal import fitted_example
from ctx.errors import UsageError

# The output is English. argparse would search the file system for translations at every start.
setattr(argparse, "_", str)  # noqa: B010

FORMATS = ("text", "json", "markdown")
COLOURS = ("auto", "always", "never")

Completes = Literal[
    "node", "tag", "task", "view", "node-type", "edge-type", "setting", "host", "file", "folder"
]
"""The kinds of arguments, for shell completion. Only the first four are read from stores."""

READ_ONLY = ("recall", "search", "show", "status", "trace")
"""Commands that a user may allow an agent to run without asking, with any arguments.

They change only derived files in CTX_HOME and in the git folder, run only git, and connect only to
servers in the user's own settings. A rule such as `Bash(ctx recall:*)` covers everything after the
command, so options that choose a folder, a store or a setting must come before it:
`--set search.url=…` would send memory to any server. The texts that recommend such rules are
checked against this list.
"""

# The options that take a value, to find the name of the command.
_WITH_VALUE = {"--format", "--color", "-C", "--set", "--db"}
EVERYWHERE = "everywhere"
_SIMILAR = 0.7
"""How similar a word must be to be suggested: `lsit` and `list` are, `push` and `pause` are not."""
_VERSION = ("-V", "-v", "--version")
_WITHOUT_VALUE = ("--json", "--no-pager", "--untrusted", "-q", "--quiet", "-h", "--help")
_ANYWHERE = (*_WITH_VALUE, *_WITHOUT_VALUE, *_VERSION)
# What other programs call these options, or what does the same here.
_ELSEWHERE = {
    "-v": "There is no verbose mode. `ctx why` explains contexts, `ctx --version` is the version.",
    "--verbose": "There is no verbose mode. `ctx why` explains what agents were given.",
    "--colour": "Did you mean `--color`?",
    "--no-color": "Did you mean `--color never`?",
    "--debug": "Set CTX_DEBUG=1 to see the traceback of an error.",
}


class HelpRequested(Exception):
    """Raised if help is requested; the message is the help text."""


class Parser(argparse.ArgumentParser):
    """Raises our own errors, and passes help to the main function, which prints it."""

    def __init__(self, **described: Any) -> None:
        super().__init__(**described)
        # From 3.14 on, Python would colour the help, even where `output.py` prints it.
        self.color = False

    def error(self, message: str) -> NoReturn:
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if choice:
            known = [word.strip(" '") for word in choice[2].split(",")]
            raise UsageError(
                f"{choice[1]!r} is not one of: {', '.join(known)}.",
                hint=nearest(choice[1], known, self.prog),
            )
        name = re.search(r"argument --project: ignored explicit argument '(.*)'", message)
        if name and self._option_string_actions["--project"].dest == "scope":
            raise project_takes_no_name(name[1])
        if missing := re.search(r"argument (?:-\w/)?(\S+): expected one argument", message):
            action = self._option_string_actions.get(missing[1])
            raise UsageError(f"{missing[1]} needs a value.", hint=_value_hint(missing[1], action))
        words = message.removeprefix("unrecognized arguments: ").split()
        hint = next((_ELSEWHERE[word] for word in words if word in _ELSEWHERE), "")
        raise UsageError(
            f"{message[:1].upper()}{message[1:]}.",
            hint=hint or f"`{self.prog} --help` shows examples.",
        )

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Words after an option belong to the last argument too, if it takes several.

        Before 3.13, argparse gives `ctx update ID --type=fact "text"` no text.
        """
        parsed, rest = super().parse_known_args(args, namespace)
        positionals = [action for action in self._actions if not action.option_strings]
        last = positionals[-1] if positionals else None
        are_words = not any(word.startswith("-") and word != "-" for word in rest)
        parsed.after_project = name = _after_project(args or ())
        if last and last.nargs in ("*", "+") and are_words:
            words: list[str] = getattr(parsed, last.dest, None) or []
            setattr(parsed, last.dest, [*words, *rest])
            return parsed, []
        if name and name in rest and hasattr(parsed, "scope"):
            raise project_takes_no_name(name)
        return parsed, rest

    def print_help(self, _file: object = None) -> NoReturn:
        raise HelpRequested(self.format_help())


def project_takes_no_name(name: str, or_else: str = "") -> UsageError:
    """For `--project NAME` where another project is meant."""
    import shlex

    typed = f"--project-name {shlex.quote(name)}"
    return UsageError(
        "--project is the project you are in, and takes no name.",
        hint=f"For another project, write {typed}, as in `ctx recall {typed} …`.{or_else}",
    )


def _after_project(words: Sequence[str]) -> str:
    """The word after `--project`, which may be meant as the name of a project."""
    for word, following in pairwise(words):
        if word == "--":
            break
        if word == "--project" and not following.startswith("-"):
            return following
    return ""


def _value_hint(option: str, action: argparse.Action | None) -> str:
    """`--color auto|always|never`, or with the placeholder of the value."""
    if action is None:
        return ""
    value = "|".join(map(str, action.choices)) if action.choices else action.metavar or "VALUE"
    return f"Write `{option} {value}`."


class Help(argparse.RawDescriptionHelpFormatter):
    """Help that looks the same under every Python version: `-m, --message MESSAGE`."""

    def __init__(self, prog: str) -> None:
        # argparse creates one of these for each argument, and would import a module to get the
        # width of the terminal each time.
        super().__init__(prog, width=_width())

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


@cache
def _width() -> int:
    try:
        return max((os.get_terminal_size().columns or 80) - 2, 40)
    except OSError:
        return 78


def split(words: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Options before the command, the command, and what follows it.

    `ctx --format json gc` and `ctx gc --format json` are the same: options before and after the
    command are parsed together. In `ctx -- gc`, the dashes only end the options before the
    command.
    """
    position = 0
    while position < len(words) and words[position].startswith("-"):
        if words[position] == "--":
            return words[:position], *_first_and_rest(words[position + 1 :])
        option = words[position].partition("=")[0]
        if option not in _ANYWHERE and not option.startswith("-C"):
            hint = _ELSEWHERE.get(option) or nearest(option, _ANYWHERE)
            raise UsageError(f"There is no option {option}.", hint=hint)
        position += 2 if words[position] in _WITH_VALUE else 1
    return words[:position], *_first_and_rest(words[position:])


def wants_version(leading: list[str]) -> bool:
    """Whether the options without a command ask for the version."""
    return bool(set(_VERSION).intersection(leading))


def with_subcommand(words: list[str], default: str) -> list[str]:
    """The words after a command, with the subcommand that may be left out."""
    position = 0
    while position < len(words) and words[position].startswith("-"):
        option = words[position].partition("=")[0]
        if option in ("-h", "--help"):
            return words
        if option not in _ANYWHERE and not option.startswith("-C"):
            break
        position += 2 if words[position] in _WITH_VALUE else 1
    else:
        if position < len(words):
            return words
    return [default, *words]


def _first_and_rest(words: list[str]) -> tuple[str | None, list[str]]:
    return (words[0], words[1:]) if words else (None, [])


def global_options(level: int = 0, *, read_only: bool = False) -> Parser:
    """The options of every command; `level` is 1 after a subcommand.

    The parser of a subcommand overwrites the values of its parent: so there are no defaults, and
    options that add up have a name for each level. After a `read_only` command, some are refused.
    """
    parser = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = parser.add_argument_group(EVERYWHERE)
    group.add_argument("--format", choices=FORMATS, help="the output format (default: text)")
    group.add_argument(
        "--json", dest="format", action="store_const", const="json", help="short for --format json"
    )
    group.add_argument("--color", choices=COLOURS, help="colours and headings (default: auto)")
    flag(group, "--no-pager", "print long answers as they are")
    if read_only:
        group.description = "-C, --set and --db must come before the command"
        group.add_argument("-C", "--set", "--db", action=_MisplacedOption, help=argparse.SUPPRESS)
    else:
        group.add_argument("-C", dest="in_folder", metavar="DIR", help="work as if started in DIR")
        group.add_argument(
            "--set",
            action="append",
            metavar="KEY=VALUE",
            dest=f"overrides_{level}",
            help="override a setting for this command",
        )
        group.add_argument(
            "--db",
            metavar="FILE",
            help="the store file, or postgresql://USER@HOST/DATABASE (default:"
            " CTX_DB, else ~/.ctx/store.db)",
        )
    flag(group, "--untrusted", "include an untrusted project store, on a terminal only")
    group.add_argument("-q", "--quiet", action="store_true", help="print only errors and results")
    return parser


class _MisplacedOption(argparse.Action):
    """An option that must come before the command."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        _namespace: argparse.Namespace,
        value: object,
        option: str | None = None,
    ) -> NoReturn:
        import shlex

        command = parser.prog.removeprefix("ctx ")
        raise UsageError(
            f"{option} must come before `{command}`.",
            hint=f"`ctx {shlex.join([str(option), str(value)])} {command} …`: a permission to run"
            f" `ctx {command}` does not cover it.",
        )


def parse(
    parser: argparse.ArgumentParser, leading: list[str], words: list[str]
) -> argparse.Namespace:
    """The options before and after a command, combined."""
    if parser.prog.removeprefix("ctx ") not in READ_ONLY:
        return parser.parse_args(leading + words)
    before = Parser(
        prog=parser.prog, parents=[global_options()], add_help=False, allow_abbrev=False
    )
    before.add_argument("-h", "--help", action="store_true", dest="wants_help")
    chosen = before.parse_args(leading)
    return parser.parse_args(["--help"] if chosen.wants_help else words, chosen)


def command_parser(name: str, summary: str, module: ModuleType) -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"ctx {name}",
        description=f"{summary[:1].upper()}{summary[1:]}.",
        epilog=examples(_examples_of(name, module)),
        formatter_class=Help,
        parents=[global_options(read_only=name in READ_ONLY)],
        allow_abbrev=False,
    )
    # Two commands may share a file: `pin` and `unpin`.
    parser.set_defaults(command=name)
    module.configure(parser)
    # A command's own options come before those of every command.
    parser._action_groups.sort(key=lambda group: group.title == EVERYWHERE)
    return parser


def _examples_of(name: str, module: ModuleType) -> str:
    shown: str | dict[str, str] = module.EXAMPLES
    return shown if isinstance(shown, str) else shown[name]


def add_subcommand(
    group: "argparse._SubParsersAction[Parser]", name: str, summary: str, shown: str
) -> argparse.ArgumentParser:
    """A word after the command, with help and examples of its own."""
    return group.add_parser(
        name,
        help=summary,
        description=f"{summary[:1].upper()}{summary[1:]}.",
        epilog=examples(shown),
        formatter_class=Help,
        parents=[global_options(level=1)],
        allow_abbrev=False,
    )


def also_formats(parser: argparse.ArgumentParser, *formats: str, default: str = "text") -> None:
    """Add output formats to a command. `default` is the default format, for the help."""
    for action in parser._actions:
        if action.dest == "format" and action.choices:
            action.choices = (*FORMATS, *formats)
            action.help = f"the output format (default: {default})"


def subcommands(parser: argparse.ArgumentParser) -> "argparse._SubParsersAction[Parser]":
    return parser.add_subparsers(
        dest="subcommand", metavar="SUBCOMMAND", required=True, parser_class=Parser
    )


def subcommands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def complete_with(action: argparse.Action, what: Completes) -> argparse.Action:
    """Mark what an argument contains, for completion; `cli/complete.py` reads it."""
    action.completes = what  # type: ignore[attr-defined]
    return action


def session_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--session",
        metavar="ID",
        help="the session (default: CTX_SESSION, the one you started, else `cli`)",
    )


def flag(
    parser: "argparse._ActionsContainer", name: str, help_text: str, dest: str | None = None
) -> None:
    """An option without a value."""
    parser.add_argument(name, action="store_true", help=help_text, dest=dest)


def yes_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def examples(lines: str) -> str:
    indented = (f"  {line}" for line in lines.strip().splitlines())
    body = "\n".join(fitted_example(line, _width() + 2) for line in indented)
    return f"examples:\n{body}"


def nearest(word: str, known: Iterable[str], program: str = "ctx") -> str:
    """`Did you mean …?` if there is a similar word, else which help to read."""
    import difflib

    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=_SIMILAR)
    listing = program if " help" in program else f"{program} --help"
    return f"Did you mean `{matches[0]}`?" if matches else f"`{listing}` lists them."
