"""Arguments that several commands about nodes take."""

import argparse
import os
from collections.abc import Sequence
from typing import Any

from ctx.cli import settings as surroundings
from ctx.cli.options import complete_with, flag, project_takes_no_name
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory import model
from ctx.memory.graph import PROJECT, USER
from ctx.workspace import Memory

# Type checkers know this name from anywhere; importing it from `typing` costs 15 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctx.cli.output import Output
    from ctx.operations.add import DefaultTier
    from ctx.operations.visible_nodes import VisibleNodes

_DIGITS = 15
"""The digits of a number that are shown in an error."""
_STDOUT = ("-", "/dev/stdout")


def node(parser: argparse.ArgumentParser, name: str = "id", *, several: bool = False) -> None:
    help_text = (
        "node ids, or the beginning of them" if several else "a node id, or the beginning of it"
    )
    added = (
        parser.add_argument(name, nargs="+", metavar="ID", help=help_text)
        if several
        else parser.add_argument(name, metavar=name.upper().replace("_", "-"), help=help_text)
    )
    complete_with(added, "node")


def content(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("content", nargs="*", metavar="CONTENT", help="the text (- reads stdin)")
    flag(parser, "--stdin", "read the content from stdin")


def stdin(parser: argparse.ArgumentParser, help_text: str) -> None:
    """`--stdin`, beside a text that is an argument, and its older form as an option."""
    flag(parser, "--stdin", help_text)
    older_option(parser, "--content", "give the text as an argument, in quotes.", metavar="TEXT")


def text_of(options: argparse.Namespace, words: Sequence[str]) -> str | None:
    """The text from an argument or from stdin; None if there is none."""
    content: str | None = getattr(options, "content", None)
    if bool(words) + (content is not None) + options.stdin > 1:
        raise UsageError("Give the text as an argument, or with --stdin.")
    text = " ".join(words) if words else content
    return surroundings.read_stdin() if options.stdin or text == "-" else text


def query(parser: argparse.ArgumentParser, help_text: str, *, required: bool = True) -> None:
    """A query is an argument. Where it was an option, `--query` still works."""
    nargs = "+" if required else "*"
    parser.add_argument("query", nargs=nargs, metavar="QUERY", help=f"{help_text} (- reads stdin)")
    if not required:
        instead = "give the query as an argument, in quotes."
        older_option(parser, "--query", instead, dest="older_query", metavar="QUERY")


def query_of(options: argparse.Namespace) -> str | None:
    """The query from an argument or from stdin; None if there is none."""
    older: str | None = getattr(options, "older_query", None)
    if options.query and older is not None:
        raise UsageError("Give the query once, as an argument.")
    text = " ".join(options.query) if options.query else older
    return surroundings.read_stdin().strip() if text == "-" else text


def content_of(options: argparse.Namespace) -> str:
    """The text from an argument or from stdin."""
    words = " ".join(options.content)
    if options.stdin or words == "-":
        if options.stdin and words:
            raise UsageError("Give the content as an argument or with --stdin, not both.")
        return surroundings.read_stdin()
    return words


def tags(parser: argparse.ArgumentParser, help_text: str) -> None:
    added = parser.add_argument("--tag", action="append", default=[], metavar="TAG", help=help_text)
    complete_with(added, "tag")


def metadata(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("--meta", action="append", default=[], metavar="KEY=VALUE", help=help_text)


def metadata_of(options: argparse.Namespace) -> dict[str, str]:
    values: dict[str, str] = {}
    for word in options.meta:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--meta {word[:80]} has no value.", hint="Write --meta KEY=VALUE.")
        values[key.strip()] = value
    return values


def node_type(parser: argparse.ArgumentParser, help_text: str, default: str | None = None) -> None:
    option = parser.add_argument(
        "--type", type=model.node_type, default=default, metavar="TYPE", help=help_text
    )
    complete_with(option, "node-type")


def edge_type(parser: argparse.ArgumentParser, help_text: str, default: str | None = None) -> None:
    option = parser.add_argument(
        "--type", type=model.edge_type, default=default, metavar="TYPE", help=help_text
    )
    complete_with(option, "edge-type")


def no_tier(parser: argparse.ArgumentParser) -> None:
    flag(parser, "--no-tier", "agents are not given it at the start, see `help tiers`")


def default_tier(
    options: argparse.Namespace, settings: Settings, *, typed: bool = True
) -> "DefaultTier":
    """What a person types is shown to agents. What an agent adds in its shell gets no tier."""
    if options.no_tier:
        if any(tag.startswith("tier:") for tag in options.tag):
            raise UsageError("--no-tier and a tag for a tier exclude each other.")
        return "none"
    return "shown" if typed and not settings.is_in_agents_shell else "inherited"


def superseded(parser: argparse.ArgumentParser) -> None:
    flag(parser, "--include-superseded", "include superseded nodes")


def scope(
    parser: argparse.ArgumentParser,
    yours: str = "only your own store",
    its: str = "only what belongs to this project",
) -> None:
    """Which store counts: `--project` is the project you are in, in every command."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--user", dest="scope", action="store_const", const=USER, help=yours)
    this_project(group, its)


def this_project(group: "argparse._ActionsContainer", help_text: str) -> None:
    group.add_argument(
        "--project", dest="scope", action="store_const", const=PROJECT, help=help_text
    )


def project_name(group: "argparse._ActionsContainer", help_text: str) -> None:
    """Another project by its name."""
    group.add_argument("--project-name", metavar="NAME", dest="project", help=help_text)


def whose(parser: argparse.ArgumentParser) -> None:
    """Of which project something is listed."""
    group = parser.add_mutually_exclusive_group()
    project_name(group, "those of another project")
    this_project(group, "those of this project (the default)")
    group.add_argument(
        "--all-projects", "--all", dest="all", action="store_true", help="those of every project"
    )


def check_project(memory: Memory, options: argparse.Namespace) -> None:
    """Refuse `--project` outside of any project."""
    if options.scope == PROJECT and memory.project is None:
        raise UsageError("You are not in a project.", hint="To name one: --project-name NAME")


def within(memory: Memory, options: argparse.Namespace) -> Memory:
    """The memory, limited to the requested store.

    `ctx search --project shop wal` means another project, and would search for "shop wal" here.
    """
    name = options.after_project
    if name and f"project:{name}" in dict(memory.graph.tag_counts(f"project:{name}")):
        raise project_takes_no_name(name, " A word to search for comes before --project.")
    return memory.only(options.scope) if options.scope else memory


def visible_within(memory: Memory, options: argparse.Namespace) -> "tuple[Memory, VisibleNodes]":
    """The same for a command that reads nodes, with what it may see of them.

    Where a project has no store, `--project` means the nodes that are tagged with it.
    """
    has_store = memory.project_memory is not None or memory.withheld is not None
    if options.scope == PROJECT and not has_store and memory.project is not None:
        return memory.only(USER), visible(options)._replace(only_project=True)
    return within(memory, options), visible(options)


def visible(options: argparse.Namespace) -> "VisibleNodes":
    from ctx.operations.visible_nodes import VisibleNodes

    return VisibleNodes(
        getattr(options, "project", None),
        options.all_projects,
        getattr(options, "include_superseded", False),
    )


def all_projects(parser: "argparse._ActionsContainer") -> None:
    flag(parser, "--all-projects", "include nodes of other projects")


def note_other_projects(left_out: int, output: "Output", *, or_more: bool = False) -> None:
    if left_out:
        more = f"More than {left_out:,}" if or_more else f"{left_out:,} more"
        output.note(f"{more} in other projects: --all-projects")


def limit(parser: argparse.ArgumentParser, default: int = 20) -> None:
    parser.add_argument(
        "-n",
        "--limit",
        type=whole_number,
        default=default,
        metavar="N",
        help=f"at most N (default: {default}; 0: all)",
    )


def number(
    parser: "argparse._ActionsContainer", name: str, help_text: str, default: int | None = None
) -> None:
    parser.add_argument(name, type=whole_number, default=default, metavar="N", help=help_text)


def whole_number(word: str) -> int:
    if word.startswith("-") and word[1:].isdigit():
        raise argparse.ArgumentTypeError("must be 0 or more")
    if not word.isascii() or not word.isdigit():
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number")
    if len(word) > _DIGITS:
        raise argparse.ArgumentTypeError(f"{word[:_DIGITS]}… is too large")
    return int(word)


def positive_number(word: str) -> int:
    if number := whole_number(word):
        return number
    raise argparse.ArgumentTypeError("must be 1 or more")


def output_file(parser: "argparse._ActionsContainer") -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file (-: stdout)")
    flag(parser, "--force", "overwrite a file that ctx did not write")


def output_path(options: argparse.Namespace, settings: Settings) -> str | None:
    """The file to write the answer to; None for stdout."""
    if not options.output or options.output in _STDOUT:
        return None
    return os.path.join(settings.folder, settings.expanded(options.output))


def dry_run(parser: argparse.ArgumentParser) -> None:
    flag(parser, "--dry-run", "show what would change, without changing it")


def older_option(
    parser: "argparse._ActionsContainer", name: str, instead: str, **described: Any
) -> None:
    """An option that help no longer shows. `instead` says what to write, for a person at a
    terminal."""
    action = parser.add_argument(name, action=_OlderOption, help=argparse.SUPPRESS, **described)
    action.instead = instead  # type: ignore[attr-defined]


class _OlderOption(argparse.Action):
    instead = ""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        value: object,
        option: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, value)
        namespace.hints = [*getattr(namespace, "hints", ()), f"{option}: {self.instead}"]
