"""`ctx relate`"""

import argparse

from ctx.cli import opening
from ctx.cli.nodes import note_unknown, short_name, warn_of_redaction
from ctx.cli.options import complete_with, session_option
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.operations.link import CONFIDENCE
from ctx.operations.relate import RelateResult, Relation, relate

EXAMPLES = """
ctx relate task_0042 Mentions src/net/client.rs
ctx relate src/main.rs imports src/lib.rs --span 3:3
ctx relate core::net::Client Calls core::timeout::sleep
ctx relate Client::connect Calls src/net/retry.rs:42      the item in that line
ctx relate decision_0007 depends-on 01M7ESYZ1SB4
ctx relate src/a.py RelatesTo src/b.py --evidence "change together"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    help_text = "a file, a task or decision by number, a node's id, or a name in the code"
    parser.add_argument("from_", metavar="FROM", help=help_text)
    label = parser.add_argument("label", metavar="LABEL", help="how they relate, in any spelling")
    complete_with(label, "edge-type")
    parser.add_argument("to", metavar="TO", help=help_text)
    parser.add_argument(
        "--confidence", choices=tuple(CONFIDENCE), default="high", help="how sure (default: high)"
    )
    parser.add_argument("--evidence", "--reason", default="", metavar="TEXT", help="the reason")
    parser.add_argument(
        "--span",
        default="",
        metavar="START:END",
        help="the lines that show it, in TO if that is a file, else in FROM",
    )
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    wanted = Relation(
        options.from_,
        options.label,
        options.to,
        options.confidence,
        options.evidence,
        options.span,
    )
    with opening.adding(settings, output) as memory:
        related = relate(memory, wanted)
    output.show(related, render)
    warn_of_redaction(related.redacted, output)
    note_unknown(related.unknown, output)


def render(related: RelateResult) -> list[Block]:
    verb = "Related" if related.new else "Already related"
    first = f"{related.from_short} {short_name(related.from_name)}"
    second = f"{related.to_short} {short_name(related.to_name)}"
    return [Line(f"{verb}: {first} ── {related.edge.type} → {second}")]
