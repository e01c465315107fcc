"""`ctx recall`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.compose import budget, note_other_projects, projects, visible
from ctx.cli.nodes import place
from ctx.cli.output import Block, Line, Markdown, Output, Table
from ctx.cli.settings import Settings
from ctx.operations.recall import DEFAULT_LIMIT, Options, Recalled, as_markdown, recall

EXAMPLES = """
ctx recall how do we refresh tokens           the best matches first
ctx recall "type:decision AND tag:auth"       all that match, the newest first
ctx recall "type:decision refresh token"      both
ctx recall tokens --budget=400 --format markdown    as an agent is given it
"""

LONGEST_LINE = 400
"""Characters of a node's content: enough to work with it."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", metavar="QUERY", help="words, filters, or both")
    arguments.limit(parser, default=DEFAULT_LIMIT)
    budget(parser)
    projects(parser)
    arguments.superseded(parser)
    arguments.named_scope(parser, "only what is yours, or only what the project's store holds")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    wanted = Options(" ".join(options.query), options.limit, options.budget, visible(options))
    with opening.reading_for_agents(settings, output) as memory:
        found = recall(arguments.within(memory, options), wanted)
    as_given = getattr(options, "format", "text") == "markdown"
    output.show(found, render_markdown if as_given else render)
    if found.partial and found.nodes and not as_given:
        output.note("No node has all of these words; these have some.")
    note_other_projects(found.other_projects, found.more_other_projects, output)


def render_markdown(found: Recalled) -> list[Block]:
    return [Markdown(as_markdown(found))]


def render(found: Recalled) -> list[Block]:
    if not found.nodes:
        told = "No matching nodes." if not found.total else "Nothing of it fits into the budget."
        return [Line(told)]
    rows = []
    for node in found.nodes:
        text = " ".join(node.content[: LONGEST_LINE * 4].split())
        if len(text) > LONGEST_LINE or len(node.content) > LONGEST_LINE * 4:
            text = f"{text[: LONGEST_LINE - 1].rstrip()}…"
        if where := place(node, found.scopes):
            text = f"{text} ({where})"
        if author := found.authors.get(node.id):
            text = f"(by {author}) {text}"
        rows.append((found.short_ids[node.id], node.type, text))
    blocks: list[Block] = [Table(("id", "type", "content"), rows, ("id", "type", ""))]
    more = found.total - len(found.nodes)
    if more > 0:
        blocks.append(Line(f"  … and {more:,} more (--limit)", "dim"))
    return blocks
