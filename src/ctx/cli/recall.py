"""`ctx recall`"""

import argparse
from collections.abc import Iterator, Sequence

from ctx import tokens
from ctx.cli import arguments, opening, pack_answers
from ctx.cli.compose import budget, projects
from ctx.cli.nodes import place
from ctx.cli.output import Block, Line, Markdown, Output, Table, beyond_limit
from ctx.cli.settings import Settings
from ctx.cli.terminal import cut
from ctx.markdown import code, contained
from ctx.memory import sources
from ctx.operations.passages import Kind, Passage
from ctx.operations.recall import (
    DEFAULT_LIMIT,
    NODES,
    Options,
    RecallResult,
    as_markdown,
    recall_everything,
)
from ctx.packs import node_vectors

EXAMPLES = """
ctx recall how do we refresh tokens           the best matches first
ctx recall what did we decide last week       what happened then
ctx recall "type:decision AND tag:auth"       all that match, the newest first
ctx recall "type:decision refresh token"      both
ctx recall retry timeout --only commits       only commits
ctx recall tokens --budget=400 --format markdown    as an agent sees it
"""

LONGEST_LINE = 400
"""Characters of a node's content: enough to work with it."""

_HASH = 12
_KINDS: tuple[Kind, ...] = ("narrative", "commits", "files")
_CALLED = {"narrative": "sections of the narrative"}
_HEADINGS = {"narrative": "Narrative", "commit": "Commits", "file": "Files"}


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.query(parser, "words, filters, or both")
    parser.add_argument(
        "--only",
        action="append",
        choices=(NODES, *_KINDS),
        help="search only there; repeat for several (default: everywhere)",
    )
    parser.add_argument(
        "-n",
        "--limit",
        type=arguments.whole_number,
        metavar="N",
        help=f"at most N results (default: {DEFAULT_LIMIT} nodes, 5 of each other kind; 0: all)",
    )
    budget(parser)
    projects(parser)
    arguments.superseded(parser)
    arguments.scope(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    limit = DEFAULT_LIMIT if options.limit is None else options.limit
    wanted = Options(arguments.query_of(options) or "", limit, options.budget)
    kinds = [kind for kind in _KINDS if kind in (options.only or _KINDS)]
    with opening.reading(settings, output) as opened:
        memory, visible = arguments.visible_within(opened, options)
        wanted = wanted._replace(visible=visible)
        result = recall_everything(
            memory, wanted, kinds, node_vectors.nearness(memory, wanted.query)
        )
    if options.only and NODES not in options.only:
        result = _without_nodes(result)
    if options.limit:
        # The first of the whole answer, in which nodes come first.
        result = result._replace(beside=result.beside[: options.limit - len(result.nodes)])
    if wanted.budget is not None:
        result = result._replace(beside=tuple(_passages_in_budget(result, wanted.budget)))
    as_given = getattr(options, "format", "text") == "markdown"
    output.show(result, render_markdown if as_given else render)
    if result.partial and result.nodes and not as_given:
        output.note("No node has all of these words; these have some.")
    arguments.note_other_projects(result.other_projects, output, or_more=result.more_other_projects)


def _without_nodes(result: RecallResult) -> RecallResult:
    """Other results, without nodes."""
    without = result._replace(nodes=(), short_ids={}, authors={}, scores={}, signals={})
    return without._replace(
        total=0,
        partial=False,
        other_projects=0,
        more_other_projects=False,
        kinds=tuple(kind for kind in result.kinds if kind != NODES),
    )


def _passages_in_budget(result: RecallResult, budget: int) -> Iterator[Passage]:
    """As many passages as fit after the nodes."""
    left = budget - tokens.estimate(as_markdown(result))
    for passage in result.beside:
        left -= tokens.estimate(f"{_as_item(passage)}\n\n")
        if left < 0:
            return
        yield passage


def render_markdown(result: RecallResult) -> list[Block]:
    return [Markdown(as_markdown(result, [_as_item(each) for each in result.beside]))]


def _as_item(passage: Passage) -> str:
    """Passages that are not nodes, as an agent sees them."""
    texts = [passage.text] if passage.kind == "file" else [passage.title, passage.text]
    first, *more = contained("\n\n".join(part.strip() for part in texts if part.strip()))
    return "\n".join(
        [f"- [{passage.kind}] {code(_passage_location(passage))} {first}".rstrip(), *more]
    )


def render(result: RecallResult) -> list[Block]:
    blocks = [*_nodes(result), *_other_results(result.beside)]
    if not blocks:
        blocks.append(Line(_no_results_text(result)))
    if result.code_index and (note := pack_answers.state(result.code_index)):
        blocks.append(Line(note, "dim"))
    return blocks


def _no_results_text(result: RecallResult) -> str:
    if result.total:
        return "No result fits into the budget."
    if NODES in result.kinds:
        return "No matching nodes."
    return f"No matching {' or '.join(_CALLED.get(kind, kind) for kind in result.kinds)}."


def _nodes(result: RecallResult) -> list[Block]:
    if not result.nodes:
        return []
    rows = []
    for node in result.nodes:
        text = cut(node.content, LONGEST_LINE)
        if where := place(node, result.scopes):
            text = f"{text} ({where})"
        if author := result.authors.get(node.id):
            text = f"(by {author}) {text}"
        if node.source != sources.USER:
            text = f"({node.source}) {text}"
        rows.append((result.short_ids[node.id], node.type, text))
    blocks: list[Block] = [Table(("id", "type", "content"), rows, ("id", "type", ""))]
    blocks += beyond_limit(result.total - len(result.nodes))
    return blocks


def _other_results(passages: Sequence[Passage]) -> list[Block]:
    """Everything else, by kind."""
    blocks: list[Block] = []
    for kind, heading in _HEADINGS.items():
        rows = [
            (_passage_location(each), cut(_passage_text(each)))
            for each in passages
            if each.kind == kind
        ]
        if rows:
            blocks += [Line(heading, "heading"), Table(("where", "what"), rows, ("id", "text"))]
    return blocks


def _passage_location(passage: Passage) -> str:
    if passage.path is None:
        return passage.id[:_HASH]
    return passage.path if passage.first_line is None else f"{passage.path}:{passage.first_line}"


def _passage_text(passage: Passage) -> str:
    match passage.kind:
        case "narrative":
            return f"{passage.title}: {passage.text}"
        case "commit":
            return f"{(passage.at or '')[:10]} {passage.title}"
        case _:
            return ", ".join(signal.name for signal in passage.signals)
