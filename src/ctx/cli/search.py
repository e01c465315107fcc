"""`ctx search`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.options import complete_with
from ctx.cli.output import Output, count
from ctx.cli.query import answer
from ctx.cli.settings import Settings
from ctx.errors import QueryInvalid
from ctx.memory import model
from ctx.memory.query.query_parser import parse_words

EXAMPLES = """
ctx search "auth pattern"                       the best match first
ctx search refreshToken --type=decision         also finds "refresh token"
ctx search リフレッシュ --tag=project:shop
"""


_FEW = 3
"""Nodes; with fewer, another command may have the answer."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "query", nargs="+", metavar="WORDS", help="what it is about (- reads stdin)"
    )
    arguments.node_type(parser, "only nodes of this type")
    tag = parser.add_argument(
        "--tag", action="append", default=[], metavar="TAG", help="only nodes with this tag"
    )
    complete_with(tag, "tag")
    arguments.limit(parser)
    arguments.superseded(parser)
    arguments.all_projects(parser)
    arguments.scope(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    filters = [f"type:{options.type}"] if options.type else []
    filters += [f"tag:{model.tag(tag)}" for tag in options.tag]
    words = arguments.query_of(options) or ""
    if not words.strip():
        raise QueryInvalid(
            "There are no words to search for.",
            hint="`ctx list` lists nodes, also by `--type` and `--tag`.",
        )
    found = answer(parse_words(words, filters), options, settings, output)
    has_few = found.partial or found.total < _FEW
    # `recall` reads filters, which are words here.
    is_plain = not filters and ":" not in words and options.scope is None
    if has_few and is_plain and output.is_for_people:
        _mention_recall(words, options, found.total, settings, output)


def _mention_recall(
    words: str, options: argparse.Namespace, total: int, settings: Settings, output: Output
) -> None:
    """Say what `ctx recall` finds beside nodes with these words."""
    from ctx.operations.passages import KINDS
    from ctx.operations.recall import Options, recall_everything

    with opening.reading(settings, output) as memory:
        if memory.withheld:
            return
        _, visible = arguments.visible_within(memory, options)
        found = recall_everything(memory, Options(words, visible=visible), KINDS)
    more = {
        "node": max(found.total - total, 0),
        "section": len([each for each in found.beside if each.kind == "narrative"]),
        "commit": len([each for each in found.beside if each.kind == "commit"]),
        "file": len([each for each in found.beside if each.kind == "file"]),
    }
    if any(more.values()):
        told = ", ".join(count(number, noun) for noun, number in more.items() if number)
        output.note(f"`ctx recall` finds more: {told}.")
