"""`ctx completion`, and the answers to its scripts: which words could come next.

    ctx __complete bash BREAKS LINE      the line up to the cursor; see `split`
    ctx __complete zsh|fish WORD...      the words up to the cursor, the last perhaps empty

The first line of the answer is the kind of completion (see `CompletionOffer`); then each line has a
word, a tab, and a description. The commands are read from their own parsers, so nothing here has to
be kept in sync with them.
"""

import argparse
import os
from collections.abc import Iterable
from typing import NamedTuple

from ctx.cli import commands, completion_candidates, help_texts, options
from ctx.cli.completion_candidates import CompletionCandidate, CompletionOffer
from ctx.cli.output import Block, Output, VerbatimText
from ctx.cli.settings import Settings
from ctx.errors import CtxError

EXAMPLES = """
ctx completion bash   put into ~/.bashrc: eval "$(ctx completion bash)"
ctx completion zsh    put into a folder of your fpath: ctx completion zsh > ~/.zfunc/_ctx
ctx completion fish   once: ctx completion fish > ~/.config/fish/completions/ctx.fish
"""

SHELLS = ("bash", "zsh", "fish")


class CompletionScript(NamedTuple):
    """What makes a shell complete the words of ctx."""

    shell: str
    script: str


# What an argument contains, by its placeholder in the help.
_PLACEHOLDERS: "dict[str, options.Completes]" = {
    **dict.fromkeys(("FILE", "FROM", "GLOB", "PATH", "TO", "ID|PATH"), "file"),
    **dict.fromkeys(("DIR", "DIR|URL"), "folder"),
    "KEY": "setting",
}
_REPEATED = (argparse._AppendAction, argparse._CountAction)
_SPACE = " \t\n"
_PLAIN = frozenset("_-./:=@%+,")
_SPECIAL_IN_DOUBLE_QUOTES = '$`"\\'


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(options: argparse.Namespace, _settings: Settings, output: Output) -> None:
    output.show(CompletionScript(options.shell, script(options.shell)), render)


def script(shell: str) -> str:
    path = os.path.join(os.path.dirname(__file__), "shells", f"ctx.{shell}")
    with open(path, encoding="utf-8") as file:
        return file.read()


def render(made: CompletionScript) -> list[Block]:
    return [VerbatimText(made.script)]


def answer(words: list[str], settings: Settings, output: Output) -> int:
    """Answer the shell. It shows only candidates, so every failure means that there are none."""
    if words[:1] == ["bash"] and len(words) == 3:
        output.result(_for_bash(split(words[2], words[1]), settings))
    elif len(words) > 2:
        offered = _offer(words[2:-1], words[-1], settings)
        output.result(_as_lines(offered, offered.candidates))
    output.flush()
    return 0


def _for_bash(typed: "TypedLine", settings: Settings) -> str:
    if typed.redirects:
        return _as_lines(CompletionOffer(how="files"), ())
    offered = _offer(typed.words[1:], typed.current, settings)
    written = []
    for candidate in offered.candidates:
        inserted = insertion(candidate.value, typed)
        if inserted is not None:
            written.append(CompletionCandidate(inserted, candidate.description))
    return _as_lines(offered, written)


def _as_lines(offered: CompletionOffer, written: Iterable[CompletionCandidate]) -> str:
    lines = [f"{value}\t{description}".rstrip("\t") for value, description in written]
    return "\n".join([offered.how, *lines]) + "\n"


def _offer(words: list[str], typed: str, settings: Settings) -> CompletionOffer:
    try:
        return _offer_for_command(words, typed, settings)
    except CtxError:
        return CompletionOffer()


def _offer_for_command(words: list[str], typed: str, settings: Settings) -> CompletionOffer:
    leading, name, rest = options.split(words)
    top = help_texts.top_parser(commands.GROUPS)
    if name is None:
        reached = _reach(top, leading)
        if reached.expected is None and not typed.startswith("-"):
            return completion_candidates.offer(
                map(CompletionCandidate._make, commands.COMMANDS.items()), typed
            )
        return _offer_at(reached, typed, settings)
    if name == "help":
        return _offer_help(rest, typed)
    command, parser = commands.command_named(name)
    if rest or typed.startswith("-"):
        rest = commands.completed(command, [*rest, typed])[:-1]
    reached = _reach(parser, rest, _reach(top, leading).values)
    return _offer_at(reached, typed, settings)


def _offer_help(words: list[str], typed: str) -> CompletionOffer:
    if typed.startswith("-"):
        own = help_texts.help_parser()._option_string_actions
        described = ((name, own[name].help or "") for name in ("--all", "--man"))
        return completion_candidates.offer(map(CompletionCandidate._make, described), typed)
    words = [word for word in words if not word.startswith("-")]
    if not words:
        topics = {name: summary for name, (summary, _) in help_texts.TOPICS.items()}
        named = {**topics, **commands.COMMANDS}
        return completion_candidates.offer(map(CompletionCandidate._make, named.items()), typed)
    reached = _reach(commands.command_named(words[0])[1], words[1:])
    expected = reached.expected
    return _subcommands(expected, typed) if isinstance(expected, _Subparsers) else CompletionOffer()


_Subparsers = argparse._SubParsersAction


class CursorPosition(NamedTuple):
    """The state of the parser before the cursor."""

    parser: argparse.ArgumentParser
    expected: argparse.Action | None
    """The argument that comes next, or the option whose value the cursor is at."""
    values: dict[argparse.Action, str]
    only_arguments: bool
    """After `--` nothing is an option."""


def _reach(
    parser: argparse.ArgumentParser,
    words: list[str],
    values: dict[argparse.Action, str] | None = None,
) -> CursorPosition:
    """Follow the words as argparse would, but ignore errors."""
    values = dict(values or {})
    arguments = _arguments(parser)
    option: argparse.Action | None = None
    only_arguments = False
    for word in words:
        if word.startswith("-") and len(word) > 1 and not only_arguments:
            only_arguments = word == "--"
            name, equals, value = word.partition("=")
            option = parser._option_string_actions.get(name)
            if option is not None:
                values[option] = value
            # An option without a value, or one that already has it, expects nothing.
            if option is not None and (equals or option.nargs == 0):
                option = None
        elif option is not None:
            values[option] = word
            option = option if option.nargs in ("*", "+") else None
        elif arguments:
            argument = arguments[0]
            values[argument] = word
            if isinstance(argument, _Subparsers):
                if word not in argument.choices:
                    return CursorPosition(parser, None, values, True)
                parser = argument.choices[word]
                arguments = _arguments(parser)
            elif argument.nargs not in ("*", "+", argparse.REMAINDER):
                arguments = arguments[1:]
    expected = option or (arguments[0] if arguments else None)
    return CursorPosition(parser, expected, values, only_arguments)


def _arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The positional arguments, one for each word they take."""
    positionals: list[argparse.Action] = []
    for action in parser._actions:
        if not action.option_strings:
            positionals += [action] * (action.nargs if isinstance(action.nargs, int) else 1)
    return positionals


def _offer_at(reached: CursorPosition, typed: str, settings: Settings) -> CompletionOffer:
    # A store or a folder that is named on this line is used. The shell has not expanded `~` yet.
    settings = settings.with_options(
        argparse.Namespace(
            **{
                action.dest: settings.expanded(word)
                for action, word in reached.values.items()
                if action.dest in ("db", "in_folder") and word
            }
        )
    )
    if typed.startswith("-") and not reached.only_arguments:
        name, equals, value = typed.partition("=")
        option = reached.parser._option_string_actions.get(name)
        if not equals:
            return _options(reached, typed)
        if option is None or option.nargs == 0:
            return CompletionOffer()
        offered = _values(option, value, settings)
        return offered._replace(
            candidates=tuple(
                CompletionCandidate(f"{name}={value}", description)
                for value, description in offered.candidates
            )
        )
    if reached.expected is None:
        return CompletionOffer()
    return _values(reached.expected, typed, settings)


def _options(reached: CursorPosition, typed: str) -> CompletionOffer:
    """The options of a command: its own first, then those of every command."""
    groups = reached.parser._action_groups
    general = [a for group in groups if group.title == "everywhere" for a in group._group_actions]
    offered = []
    for action in reached.parser._actions:
        spent = action in reached.values and not isinstance(action, _REPEATED)
        if not action.option_strings or action.help == argparse.SUPPRESS or spent:
            continue
        # A short name is offered if there is no long one, or to confirm it.
        long = [name for name in action.option_strings if name.startswith("--")]
        names = [typed] if typed in action.option_strings else long or action.option_strings
        last = action in general or action.dest == "help"
        # A percent sign is doubled in argparse's help.
        description = (action.help or "").replace("%%", "%")
        offered += [(last, CompletionCandidate(name, description)) for name in names]
    offered.sort(key=lambda each: each[0])
    return completion_candidates.offer((candidate for _, candidate in offered), typed)


def _values(action: argparse.Action, typed: str, settings: Settings) -> CompletionOffer:
    if isinstance(action, _Subparsers):
        return _subcommands(action, typed)
    if action.choices is not None:
        return completion_candidates.offer(
            (CompletionCandidate(str(choice)) for choice in action.choices), typed
        )
    placeholder = action.metavar if isinstance(action.metavar, str) else ""
    what = getattr(action, "completes", _PLACEHOLDERS.get(placeholder))
    if what is None:
        return CompletionOffer()
    return completion_candidates.candidates_for(what, typed, settings)


def _subcommands(
    action: "argparse._SubParsersAction[options.Parser]", typed: str
) -> CompletionOffer:
    shown = action._choices_actions
    return completion_candidates.offer(
        (CompletionCandidate(each.dest, each.help or "") for each in shown), typed
    )


class TypedLine(NamedTuple):
    """A command line up to the cursor."""

    words: list[str]
    """The words before the cursor, without quotes."""
    current: str
    """The word at the cursor, without quotes."""
    quote: str
    """The open quote in it."""
    kept: int
    """How many of its characters bash keeps: the chosen word is put after them."""
    redirects: bool
    """The word is a file that the command reads from or writes to."""


def split(line: str, breaks: str) -> TypedLine:
    """Split a line as bash does; invalid parts are taken literally.

    `breaks` is bash's COMP_WORDBREAKS: bash also splits a line at characters such as `:` and `=`,
    and passes words with their quotes. zsh and fish do neither. So the line itself is parsed here.
    """
    words: list[str] = []
    current, quote, kept = "", "", 0
    begun = redirects = False
    characters = iter(line)
    for character in characters:
        if quote:
            if character == quote:
                quote = ""
            elif character == "\\" and quote == '"':
                following = next(characters, "")
                escaped = following in _SPECIAL_IN_DOUBLE_QUOTES
                current += following if escaped else f"\\{following}"
            else:
                current += character
        elif character in _SPACE or character in "<>":
            if begun and not redirects:
                words.append(current)
            redirects = character in "<>" or (redirects and not begun)
            current, kept, begun = "", 0, False
        else:
            begun = True
            if character in "\"'":
                quote, kept = character, len(current)
            elif character == "\\":
                current += next(characters, "")
            else:
                current += character
                kept = len(current) if character in breaks else kept
    return TypedLine(words, current, quote, kept, redirects)


def insertion(value: str, typed: TypedLine) -> str | None:
    """The text that bash inserts for a value, quoted so that it means exactly the value.

    None if that is not possible after what is already typed.
    """
    if value[: typed.kept] != typed.current[: typed.kept]:
        return None
    rest = value[typed.kept :]
    match typed.quote:
        case "":
            return "".join(c if c.isalnum() or c in _PLAIN else f"\\{c}" for c in rest)
        case "'":
            return None if "'" in rest else rest
        case _:
            # Inside these quotes, bash would expand `!` from its history.
            special = _SPECIAL_IN_DOUBLE_QUOTES
            escaped = "".join(f"\\{c}" if c in special else c for c in rest)
            return None if "!" in rest else escaped
