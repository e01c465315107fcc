"""`ctx query` and `ctx pack`. A query with words builds the same pack."""

import argparse
from typing import TYPE_CHECKING

from ctx.cli import arguments, opening
from ctx.cli.nodes import table
from ctx.cli.options import also_formats, flag
from ctx.cli.output import Block, Line, Output, beyond_limit, count
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.graph import USER
from ctx.memory.query.query_parser import Query, parse
from ctx.memory.query.syntax import tokens
from ctx.operations import output_file
from ctx.operations.query import QueryResult, find
from ctx.operations.visible_nodes import list_scope

if TYPE_CHECKING:
    from ctx.packs.prompt_pack import PromptPack

EXAMPLES = {
    "query": """
ctx query "Fix the connection timeout in Client.connect"      what to read, like `ctx pack`
ctx query "why do retries fail" --budget 8000 --explain       at most 8,000 tokens, with reasons
ctx query "Show me the Client struct" --depth 1 --format markdown
ctx query - < issue.md                                        a long task, from stdin
ctx query "timeout path:src/net" --output pack.json           only this folder; into a file
ctx query "type:fact AND tag:project:shop"                    only filters: lists nodes
ctx query "(type:decision OR type:pattern) AND created:>7d"
ctx query "tag:tier:working AND NOT has:summary"
ctx query "tag:task:* AND tokens:<500"
ctx query "type:decision refresh token" --as nodes            filters select, words rank
""",
    "pack": """
ctx pack "Fix the connection timeout in Client.connect"      what to read for a task
ctx pack "why do retries fail" --budget 8000 --explain       at most 8,000 tokens, with reasons
ctx pack "why do retries fail" --more                        also what is unlikely to help
ctx pack - < issue.md                                        a long task, from stdin
ctx pack "timeout path:src/net" --output pack.json           only this folder; into a file
ctx pack "Show me the Client struct" --format markdown       as markdown for a prompt
""",
}

LANGUAGE = """
A query of filters alone lists the nodes that match. A query with words is a
task: ctx builds a pack of what to read for it, as `ctx pack` does. In a pipe,
a pack is JSON. `ctx help filters` and `ctx help packs` explain more.

filters:    type: tag: created: updated: tokens: has: from: to: session:
            project: path: id:
operators:  AND OR NOT ( ); filters beside each other are joined by AND
"""

_NODES = 20
_FEW_FOR_VECTORS = 20_000
"""Above this, loading the vectors takes longer than the rest of a search."""
_DEEPEST = 10


def configure(parser: argparse.ArgumentParser) -> None:
    is_pack = parser.get_default("command") == "pack"
    limit = "at most N chunks (default: what fits)"
    if is_pack:
        words = "a task, with filters if you like (- reads stdin)"
        parser.add_argument("query", nargs="+", metavar="TASK", help=words)
    else:
        parser.description = f"{parser.description}\n{LANGUAGE.rstrip()}"
        arguments.query(parser, "a task, filters, or both")
        parser.add_argument(
            "--as", dest="answer", choices=("nodes", "pack"), help="list nodes, or build a pack"
        )
        limit = f"at most N nodes (default: {_NODES}; 0: all), or chunks (default: what fits)"
    parser.add_argument("-n", "--limit", type=arguments.whole_number, metavar="N", help=limit)
    if is_pack:
        _pack_options(parser)
    arguments.superseded(parser)
    arguments.all_projects(parser)
    arguments.scope(parser)
    if not is_pack:
        _pack_options(parser.add_argument_group("packs"))
    in_a_pipe = "json in a pipe" if is_pack else "json for a pack in a pipe"
    also_formats(parser, "yaml", default=f"text; {in_a_pipe}")


def _pack_options(group: "argparse._ActionsContainer") -> None:
    arguments.number(group, "--budget", "tokens (default: 4,000)")
    flag(group, "--more", "also include code that the task is unlikely to change")
    graph = group.add_mutually_exclusive_group()
    graph.add_argument(
        "--depth", type=_depth, metavar="N", help="steps along the graph (default: 2)"
    )
    graph.add_argument(
        "--no-graph", dest="depth", action="store_const", const=0, help="do not follow the graph"
    )
    narrative = group.add_mutually_exclusive_group()
    narrative.add_argument(
        "--include-narrative",
        dest="narrative",
        action="store_const",
        const=True,
        help="include the recent log",
    )
    narrative.add_argument(
        "--no-narrative",
        dest="narrative",
        action="store_const",
        const=False,
        help="leave out the recent log",
    )
    flag(group, "--explain", "show why each chunk is included, and what was left out")
    arguments.output_file(group)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    query = parse(arguments.query_of(options) or "")
    if options.command == "pack":
        _show_pack(query, options, settings, output)
        return
    wanted = options.answer or ("nodes" if query.mode == "filters" else "pack")
    if wanted == "pack":
        if _show_pack(query, options, settings, output).retrieved:
            output.note("A query with words is a pack, see `ctx pack`. For nodes: `ctx search`")
        return
    if about_packs := _about_packs(options):
        raise UsageError(
            f"{about_packs[0]} applies to packs, and filters alone list nodes.",
            hint="Add words, or `--as pack`.",
        )
    options.limit = _NODES if options.limit is None else options.limit
    answer(query, options, settings, output)


def _about_packs(options: argparse.Namespace) -> list[str]:
    """The given options that apply only to packs."""
    options_given = {
        "--budget": options.budget is not None,
        "--more": options.more,
        "--depth": bool(options.depth),
        "--no-graph": options.depth == 0,
        "--include-narrative": options.narrative is True,
        "--no-narrative": options.narrative is False,
        "--explain": options.explain,
        "--output": options.output is not None,
        "--force": options.force,
    }
    return [name for name, is_given in options_given.items() if is_given]


def _depth(word: str) -> int:
    number = arguments.whole_number(word)
    if number > _DEEPEST:
        raise argparse.ArgumentTypeError(f"must be at most {_DEEPEST}")
    return number


def _show_pack(
    query: Query, options: argparse.Namespace, settings: Settings, output: Output
) -> "PromptPack":
    from ctx.cli import pack_answers
    from ctx.operations.pack import Options, pack

    wanted = Options(
        query.text,
        options.budget,
        options.depth,
        options.narrative,
        options.limit or 0,
        code=options.scope != USER,
        more=options.more,
    )
    with opening.reading(settings, output) as memory:
        chosen, visible = arguments.visible_within(memory, options)
        built = pack(chosen, wanted._replace(visible=visible))
        is_in_project = memory.project is not None
    if getattr(options, "format", "text") == "markdown":
        explained, plain = pack_answers.render_markdown_explained, pack_answers.render_markdown
    else:
        explained, plain = pack_answers.render_explained, pack_answers.render
    render = explained if options.explain else plain
    if path := arguments.output_path(options, settings):
        opening.refuse_untrusted(settings, "--output")
        with output_file.writing(settings.user_store.home, path, force=options.force) as file:
            file.write(output.file_text(built, render))
        output.note(f"{pack_answers.saved_text(built, options.output)}{_receipt(built)}")
        return built
    if not output.is_on_a_terminal:
        output.prefer("json")
    output.show_long(built, render)
    if not built.retrieved:
        output.note(_next_step(query, is_in_project=is_in_project or options.scope == USER))
    elif built.receipt:
        output.note(_receipt(built).strip())
    return built


def _next_step(query: Query, *, is_in_project: bool) -> str:
    """What to do if nothing was found."""
    if query.tree is not None:
        filters = [each for each in tokens(query.text) if each.kind == "filter"]
        listed = ", ".join(f"`{query.text[each.start : each.end]}`" for each in filters[:3])
        return f"{listed} limits the search. To search for it as words, put it in quotes."
    if not is_in_project:
        return "Searched memory only: this folder is not a project. To make it one: `ctx init`"
    return "Try other words, or names from the code."


def _receipt(built: "PromptPack") -> str:
    return f" To see why: `ctx why {built.receipt}`" if built.receipt else ""


def answer(
    query: Query, options: argparse.Namespace, settings: Settings, output: Output
) -> QueryResult:
    """Show the matches; `ctx search` uses this too."""
    with opening.reading(settings, output) as opened:
        memory, visible = arguments.visible_within(opened, options)
        scope = list_scope(memory, visible)
        near = None
        if query.mode == "text":
            from ctx.memory import stats
            from ctx.packs import node_vectors

            if sum(map(stats.count_nodes, memory.graph.connections)) <= _FEW_FOR_VECTORS:
                near = node_vectors.nearness(memory, query.words)
        result = find(memory.graph, query, scope, options.limit, nearness=near)
        output.show(result, render)
        # If nothing is found, say whether superseded nodes match.
        if not result.nodes and not scope.include_superseded:
            hidden = find(memory.graph, query, scope._replace(include_superseded=True), 1)
            if hidden.nodes and not hidden.partial:
                matching = count(hidden.total, "superseded node matches", "superseded nodes match")
                output.note(f"{matching}: --include-superseded.")
    if result.partial and result.nodes:
        which = "words that begin with them" if result.beginnings else "some"
        none = "any" if result.beginnings else "all"
        output.note(f"No node has {none} of these words; these have {which}.")
    arguments.note_other_projects(result.other_projects, output)
    return result


def render(result: QueryResult) -> list[Block]:
    if not result.nodes:
        return [Line("No matching nodes.")]
    blocks: list[Block] = [table(result.nodes, result.short_ids, result.scopes)]
    blocks += beyond_limit(result.total - len(result.nodes), "")
    return blocks
