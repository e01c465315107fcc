"""`ctx remember`: `ctx add` for agents."""

import argparse

from ctx.cli import arguments, opening
from ctx.cli import options as shared
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.operations import agent_proposals
from ctx.operations.remember import LinkTarget, Options, RememberResult, remember

EXAMPLES = """
ctx remember "The gateway answers 429 after ten calls a second"
ctx remember --type=decision --rationale "no servers to run" "We use SQLite"
ctx remember "Deploys run on Mondays" --supersedes 01M7ESYZ1SB4
ctx remember --id 01M7ESYZ1SB4 --link DEPENDS_ON:01M7ESZ0AAAA    link two nodes
ctx remember --tag=tier:pinned "Never force-push"    the user decides: `ctx review`
"""


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.content(parser)
    arguments.node_type(parser, "its type (default: that of the node it supersedes, else fact)")
    arguments.tags(parser, "a tag; repeat for several")
    parser.add_argument("--rationale", default="", metavar="TEXT", help="why it was decided")
    parser.add_argument("--summary", metavar="TEXT", help="the text shown in lists")
    old = parser.add_argument(
        "--supersedes",
        action="append",
        default=[],
        metavar="ID",
        help="the node that this one replaces; repeat for several",
    )
    shared.complete_with(old, "node")
    parser.add_argument(
        "--link",
        action="append",
        default=[],
        metavar="TYPE:ID",
        help="add an edge to another node; repeat for several",
    )
    existing = parser.add_argument(
        "--id", metavar="ID", help="link this node, instead of adding one"
    )
    shared.complete_with(existing, "node")
    shared.flag(parser, "--user", "for all projects, if the user agrees")
    shared.session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    content = ""
    if options.content or options.stdin:
        content = arguments.content_of(options)
    elif options.id is None:
        raise UsageError("The text is missing.", hint='`ctx remember "…"`, or --stdin')
    with opening.adding(settings, output) as memory:
        wanted = Options(
            content,
            options.type,
            options.tag,
            options.summary,
            options.rationale,
            [memory.graph.find(name) for name in options.supersedes],
            "user" if options.user else "",
            [LinkTarget(kind, memory.graph.find(name)) for kind, name in map(_link, options.link)],
            memory.graph.find(options.id) if options.id else None,
        )
        done = remember(memory, wanted, may_pin=agent_proposals.may_pin(memory))
    output.show(done, render)
    warn_of_redaction(done.redacted, output)
    if done.proposed:
        output.note("To decide about it: `ctx review`")


def render(done: RememberResult) -> list[Block]:
    tags = f" ({', '.join(done.added_tags)})" if done.added_tags else ""
    verb = "Remembered" if done.is_new else "Linked"
    lines = [Line(f"{verb}: {done.short_id}{tags}")]
    if done.proposed:
        lines.append(Line(f"Proposed to the user: {', '.join(done.proposed)}"))
    return [*lines]


def _link(text: str) -> tuple[str, str]:
    kind, colon, node = text.rpartition(":")
    if not colon or not kind or not node:
        raise UsageError(f"{text[:60]!r} is not a link.", hint="Write `--link DEPENDS_ON:ID`.")
    return kind, node
