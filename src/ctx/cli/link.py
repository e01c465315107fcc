"""`ctx link`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.options import session_option
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.memory.model import Evidence
from ctx.operations.link import CONFIDENCE, LinkResult, link

EXAMPLES = """
ctx link 01M7ESYZ1ZB1 01M7ESYZ1SB4 --type=DEPENDS_ON
ctx link 01M7ESYZ1ZB1 01M7ESYZ1SB4 --type=SUPERSEDES    the first replaces the second
ctx link 01M7ESYZ1ZB1 01M7ESYZ1SB4 --confidence=low --reason="same trace"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser, "from_id")
    arguments.node(parser, "to_id")
    arguments.edge_type(parser, "how they relate (default: RELATES_TO)", default="RELATES_TO")
    parser.add_argument(
        "--confidence", choices=tuple(CONFIDENCE), help="the confidence (default: high)"
    )
    parser.add_argument("--reason", default="", metavar="TEXT", help="the reason")
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.writing(settings, output) as memory:
        from_id, to_id = memory.graph.find(options.from_id), memory.graph.find(options.to_id)
        evidence = None
        if options.confidence or options.reason:
            sure = CONFIDENCE[options.confidence or "high"]
            evidence = Evidence(memory.author, sure, options.reason)
        linked = link(memory, from_id, to_id, options.type, evidence)
    output.show(linked, render)
    warn_of_redaction(linked.redacted, output)


def render(linked: LinkResult) -> list[Block]:
    verb = "Linked" if linked.new else "Already linked"
    return [Line(f"{verb}: {linked.from_short} ── {linked.edge.type} → {linked.to_short}")]
