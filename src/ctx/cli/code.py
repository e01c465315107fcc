"""`ctx code`: its subcommands, and how each is run. What they print is in `code_answers.py`."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ctx import clock
from ctx.cli import arguments, code_answers
from ctx.cli import options as shared
from ctx.cli.output import Output, age_text
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.ids import CLI_SESSION
from ctx.workspace import Environment

if TYPE_CHECKING:
    from ctx.codebase.indexing import Codebase, IndexAge, OpenIndex
    from ctx.operations.code_cycles import Between

EXAMPLES = """
ctx code outline src/net.py           what is in a file
ctx code callers Client.connect       its callers, with confidence
ctx code imports src/net.py           what a file imports, and who imports it
ctx code changed main                 functions and classes that differ from a branch
ctx code cycles                       import and call cycles
ctx code packages                     what is built here, and what it depends on
ctx code history src/net.py           the commits of a file, and what changed with it
ctx code                              the state of the code index
"""

ALONE = "status"

_CALLERS = """
ctx code callers Client.connect               any suffix of the qualified name works
ctx code callers src/net.py:42                the item in that line
ctx code callers connect --depth 3            also who calls the callers
ctx code callers connect --confidence high    only certain calls
"""

_CALLEES = """
ctx code callees shop.app.run
ctx code callees Client               all that its methods call
"""

_IMPORTS = """
ctx code imports src/net.py           a file
ctx code imports Client               a class: who imports it
"""

_CHANGED = """
ctx code changed                      since the last commit, with untracked files
ctx code changed HEAD~5
ctx code changed --since v1.2 --format json
"""

_PACKAGES = """
ctx code packages                     of every manifest: Cargo.toml, package.json, pyproject.toml …
ctx code packages netcore             what it builds, what it needs, and who needs it
ctx code packages serde               of one from elsewhere: who needs it
"""

_HISTORY = """
ctx code history src/net.py                  its commits, and what changed in the same ones
ctx code history --search "retry timeout"    commits about it
"""

_DEEPEST = 20
_STALE_NOTES = {
    "as it was": "",
    "busy": "Another process is updating the index. ",
    "not writable": "The index cannot be written here. ",
}


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    outline = shared.add_subcommand(
        group,
        "outline",
        "show what is in a file",
        "ctx code outline src/net.py\nctx code outline src/net.py --docs",
    )
    outline.add_argument("file", metavar="FILE", help="a file of the project")
    shared.flag(outline, "--docs", "with the first sentence of each docstring")
    _no_refresh(outline)
    for word, summary, examples in (
        ("callers", "show who calls something", _CALLERS),
        ("callees", "show what something calls", _CALLEES),
    ):
        calls = shared.add_subcommand(group, word, summary, examples)
        _name(calls)
        calls.add_argument(
            "--depth", type=_depth, default=1, metavar="N", help="levels of calls (default: 1)"
        )
        calls.add_argument(
            "--confidence",
            choices=("high", "medium", "low"),
            default="low",
            help="the lowest confidence to show (default: low)",
        )
        arguments.limit(calls, 50)
        _no_refresh(calls)
    imports = shared.add_subcommand(
        group, "imports", "show what something imports, and who imports it", _IMPORTS
    )
    _name(imports)
    arguments.limit(imports, 50)
    _no_refresh(imports)
    cycles = shared.add_subcommand(
        group,
        "cycles",
        "show files that import each other, and functions that call each other",
        "ctx code cycles\nctx code cycles --files",
    )
    which = cycles.add_mutually_exclusive_group()
    shared.flag(which, "--files", "only import cycles")
    shared.flag(which, "--items", "only call cycles")
    _no_refresh(cycles)
    packages = shared.add_subcommand(
        group, "packages", "show the packages of the project, and what they depend on", _PACKAGES
    )
    packages.add_argument(
        "name", nargs="?", default="", metavar="NAME", help="a package, its folder or manifest"
    )
    _no_refresh(packages)
    changed = shared.add_subcommand(
        group, "changed", "show new, modified and deleted items", _CHANGED
    )
    changed.add_argument(
        "ref", nargs="?", metavar="REF", help="a commit, branch or tag (default: HEAD)"
    )
    changed.add_argument("--since", metavar="REF", help="the same, as an option")
    history = shared.add_subcommand(
        group, "history", "show the commits of a file, and what changed with it", _HISTORY
    )
    history.add_argument("file", nargs="?", default="", metavar="FILE", help="a file or a folder")
    history.add_argument("--search", default="", metavar="WORDS", help="search commit messages")
    arguments.limit(history, 10)
    status = shared.add_subcommand(
        group, "status", "show the coverage and age of the code index", "ctx code status"
    )
    _no_refresh(status)
    index = shared.add_subcommand(
        group,
        "index",
        "update the code index",
        "ctx code index\nctx code index --full    from scratch",
    )
    shared.flag(index, "--full", "rebuild the index from scratch")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    from ctx.codebase import indexing

    codebase = codebase_for_command(settings)
    match options.subcommand:
        case "index":
            make = indexing.rebuild if options.full else indexing.update
            with output.progress("Reading the code") as tick:
                done = make(codebase, tick)
            output.show(done, code_answers.index_blocks)
        case "history":
            from ctx.operations import code_history

            history_options = code_history.Options(options.file, options.search, options.limit)
            with output.progress("Reading the history") as tick:
                history = code_history.code_history(codebase, history_options, tick)
            output.show(history, code_answers.history)
        case "changed":
            from ctx.operations import code_changed

            given = [each for each in (options.ref, options.since) if each is not None]
            if len(given) > 1:
                raise UsageError("Give REF or --since REF, not both.")
            since_ref = given[0] if given else "HEAD"
            with output.progress("Comparing") as tick:
                changes = code_changed.code_changes(codebase, since_ref, tick)
            output.show(changes, code_answers.changed_blocks)
        case _:
            with (
                output.progress("Reading the code") as tick,
                open_index(codebase, tick, refresh=not options.no_refresh) as code,
            ):
                answer, render = _answer(options, codebase, code)
            output.show(answer, render)
            print_index_age(code.age, output)


def codebase_for_command(settings: Settings) -> "Codebase":
    """The project whose code a command uses."""
    from ctx.codebase import indexing

    return indexing.codebase_at(
        Environment(
            settings.folder,
            settings.user_store,
            settings.environment,
            settings.overrides,
            CLI_SESSION,
        )
    )


def open_index(codebase: "Codebase", tick: clock.Tick, *, refresh: bool) -> "OpenIndex":
    """The index, updated if wanted."""
    from ctx.codebase import indexing

    return (
        indexing.open_refreshed(codebase, tick)
        if refresh
        else indexing.open_unrefreshed(codebase, tick)
    )


def print_index_age(age: "IndexAge", output: Output) -> None:
    """Say how old an answer is if the index is not up to date."""
    if age.state != "fresh":
        when = f"{age_text(age.refreshed_at)} old" if age.refreshed_at else "not complete yet"
        output.note(f"{_STALE_NOTES[age.state]}The code index is {when}.")


def _answer(
    options: argparse.Namespace, codebase: "Codebase", code: "OpenIndex"
) -> tuple[Any, Callable[[Any], list[Any]]]:
    from ctx.codebase import indexing
    from ctx.operations import code_queries

    match options.subcommand:
        case "outline":
            show = code_answers.outline_with_docs if options.docs else code_answers.outline
            return code_queries.outline(code, options.file), show
        case "callers" | "callees":
            wanted = code_queries.CallOptions(
                options.name, options.depth, options.confidence, options.limit
            )
            ask = code_queries.callers if options.subcommand == "callers" else code_queries.callees
            return ask(code, wanted), code_answers.calls
        case "imports":
            return code_queries.imports(code, options.name, options.limit), code_answers.imports
        case "cycles":
            from ctx.operations import code_cycles

            of: list[Between] = []
            if not options.items:
                of.append("files")
            if not options.files:
                of.append("items")
            answer = code_cycles.cycles(code, codebase, of)
            return answer, code_answers.cycles
        case "packages":
            return code_queries.packages(code, options.name), code_answers.packages
        case _:
            return indexing.status(codebase, code), code_answers.status


def _name(parser: argparse.ArgumentParser) -> None:
    named = parser.add_argument(
        "name", metavar="NAME", help="a name, a file, FILE:LINE or FILE#NAME"
    )
    shared.complete_with(named, "file")


def _no_refresh(parser: argparse.ArgumentParser) -> None:
    shared.flag(parser, "--no-refresh", "use the index as it is, without updating it")


def _depth(word: str) -> int:
    number = arguments.whole_number(word)
    if not 1 <= number <= _DEEPEST:
        raise UsageError(f"--depth must be between 1 and {_DEEPEST}.")
    return number
