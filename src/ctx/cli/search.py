"""`ctx search`"""

import argparse

from ctx.cli import arguments
from ctx.cli.options import completing
from ctx.cli.output import Output
from ctx.cli.query import answer
from ctx.cli.settings import Settings
from ctx.memory import model
from ctx.memory.query.query_parser import parse_words

EXAMPLES = """
ctx search "auth pattern"                       the best match first
ctx search refreshToken --type=decision         also finds "refresh token"
ctx search リフレッシュ --tag=project:shop
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="WORDS", help="what it is about")
    arguments.node_type(parser, "only nodes of this type")
    tag = parser.add_argument(
        "--tag", action="append", default=[], metavar="TAG", help="only nodes with this tag"
    )
    completing(tag, "tag")
    arguments.limit(parser)
    arguments.superseded(parser)
    arguments.scope(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    filters = [f"type:{model.node_type(options.type)}"] if options.type else []
    filters += [f"tag:{model.tag(tag)}" for tag in options.tag]
    answer(parse_words(" ".join(options.words), filters), options, settings, output)
