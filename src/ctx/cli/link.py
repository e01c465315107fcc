"""`ctx link` and `ctx unlink`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.options import session_option
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.memory.model import Evidence
from ctx.operations.link import CONFIDENCE, LinkResult, UnlinkResult, link, unlink

EXAMPLES = {
    "link": """
ctx link 01M7ESYZ1ZB1 01M7ESYZ1SB4 --type=DEPENDS_ON
ctx link 01M7ESYZ1ZB1 01M7ESYZ1SB4 --type=SUPERSEDES    the first replaces the second
ctx link 01M7ESYZ1ZB1 01M7ESYZ1SB4 --confidence=low --reason="same trace"
""",
    "unlink": """
ctx unlink 01M7ESYZ1ZB1 01M7ESYZ1SB4                      every edge from the first to the second
ctx unlink 01M7ESYZ1ZB1 01M7ESYZ1SB4 --type=DEPENDS_ON    one of them
""",
}


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser, "from_id")
    arguments.node(parser, "to_id")
    if parser.get_default("command") == "unlink":
        arguments.edge_type(parser, "only edges of this type")
    else:
        arguments.edge_type(parser, "how they relate (default: RELATES_TO)", default="RELATES_TO")
        parser.add_argument(
            "--confidence", choices=tuple(CONFIDENCE), help="the confidence (default: high)"
        )
        parser.add_argument("--reason", default="", metavar="TEXT", help="the reason")
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    with opening.writing(settings, output) as memory:
        ends = memory.graph.find(options.from_id), memory.graph.find(options.to_id)
        if options.command == "unlink":
            output.show(unlink(memory, *ends, options.type), render_unlinked)
            return
        evidence = None
        if options.confidence or options.reason:
            sure = CONFIDENCE[options.confidence or "high"]
            evidence = Evidence(memory.author, sure, options.reason)
        linked = link(memory, *ends, options.type, evidence)
    output.show(linked, render_linked)
    warn_of_redaction(linked.redacted, output)


def render_linked(linked: LinkResult) -> list[Block]:
    verb = "Linked" if linked.new else "Already linked"
    return [Line(f"{verb}: {linked.from_short} ── {linked.edge.type} → {linked.to_short}")]


def render_unlinked(unlinked: UnlinkResult) -> list[Block]:
    if not unlinked.removed:
        return [Line(f"Not linked: {unlinked.from_short} and {unlinked.to_short}")]
    return [
        Line(f"Unlinked: {unlinked.from_short} ── {edge.type} → {unlinked.to_short}")
        for edge in unlinked.removed
    ]
