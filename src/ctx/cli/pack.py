"""`ctx pack`: a pack by its own name. `ctx query` with words builds the same."""

import argparse

from ctx.cli import arguments, query
from ctx.cli.options import also_formats
from ctx.cli.output import Output
from ctx.cli.settings import Settings
from ctx.memory.query.query_parser import parse

EXAMPLES = """
ctx pack "Fix the connection timeout in Client.connect"      what to read for a task
ctx pack "why do retries fail" --budget 4000 --explain       at most 4,000 tokens, with reasons
ctx pack - < issue.md                                        a long task, from stdin
ctx pack "timeout path:src/net" --output pack.json           only this folder; into a file
ctx pack "Show me the Client struct" --format markdown       as markdown for a prompt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "query", nargs="+", metavar="TASK", help="a task, with filters if you like (- reads stdin)"
    )
    parser.add_argument(
        "-n",
        "--limit",
        type=arguments.whole_number,
        metavar="N",
        help="at most N chunks (default: what fits)",
    )
    query.pack_options(parser)
    arguments.superseded(parser)
    arguments.scope(parser)
    also_formats(parser, "yaml", default="text; json in a pipe")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    task = parse(arguments.query_of(options) or "")
    query.show_pack(task, options, settings, output)
