"""What `ctx`, `ctx --help` and `ctx help` show, and the parsers behind them."""

import argparse
from collections.abc import Mapping

from ctx.cli.options import Help, Parser, global_options

_ABOUT = "Durable, inspectable memory for coding agents."


def overview(groups: Mapping[str, Mapping[str, str]]) -> str:
    """What `ctx` alone prints: the commands that most people need."""
    names = [name for group in groups.values() for name in group]
    first, second = max(map(len, groups)), max(map(len, names))
    lines = [_ABOUT, ""]
    for heading, group in groups.items():
        for number, (name, summary) in enumerate(group.items()):
            shown = "" if number else heading
            lines.append(f"{shown:<{first}}  {name:<{second}}  {summary}")
    lines += [
        "",
        "`ctx help COMMAND` shows options and examples, `ctx help --all` all commands.",
        "`ctx help TOPIC` explains tiers, scopes, sessions, packs, filters or trust.",
    ]
    return "\n".join(lines) + "\n"


def short_parser(groups: Mapping[str, Mapping[str, str]]) -> argparse.ArgumentParser:
    """What `ctx --help` describes: the overview, and the options of every command."""
    return _top_parser(overview(groups).rstrip(), None)


def top_parser(groups: Mapping[str, Mapping[str, str]]) -> argparse.ArgumentParser:
    """What `ctx help --all` describes: all commands."""
    width = max(len(name) for group in groups.values() for name in group)
    listing = ""
    for heading, group in groups.items():
        listing += f"\n{heading}:\n"
        listing += "".join(f"  {name:<{width}}  {summary}\n" for name, summary in group.items())
    epilog = (
        "examples:\n"
        '  ctx add "Deploys run on Mondays"\n'
        "  ctx search deploy              find it again\n"
        "  ctx compose                    a context for an agent\n"
        "  ctx init                       a project store, in git\n\n"
        "`ctx help COMMAND` shows the options and examples of a command.\n"
        "`ctx help TOPIC` explains tiers, scopes, sessions, packs, filters or trust.\n"
        "`ctx help --man COMMAND` prints a manual page."
    )
    return _top_parser(f"{_ABOUT}\n{listing.rstrip()}", epilog)


def _top_parser(description: str, epilog: str | None) -> argparse.ArgumentParser:
    parser = Parser(
        prog="ctx",
        usage="ctx [options] COMMAND ...",
        description=description,
        epilog=epilog,
        formatter_class=Help,
        parents=[global_options()],
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version and exit")
    return parser


def help_parser() -> argparse.ArgumentParser:
    """The parser of `ctx help`: the words of a command, with options between them."""
    parser = Parser(prog="ctx help", parents=[global_options()], add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="*", metavar="COMMAND|TOPIC", help="what to explain")
    parser.add_argument("--all", action="store_true", help="all commands")
    parser.add_argument("--man", action="store_true", help="a manual page, for `man -l`")
    return parser
