"""`ctx summarize`"""

import argparse
import re

from ctx.cli import arguments, opening
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.options import flag, session_option
from ctx.cli.output import Block, Line, Output
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.operations.summarize import Options, SummarizeResult, summarize

EXAMPLES = """
ctx summarize 01M7ESYZ1SB4 01M7ESZ2K9QD "The parser is done"
ctx summarize 01M7ESYZ1SB4 "It is done" --archive-sources    and archive the source
fold -s notes.txt | ctx summarize 01M7ESYZ1SB4 --stdin
"""


# ULIDs begin with 0 until the year 3084.
_LIKE_AN_ID = re.compile(r"0[0-9a-z]*|(task|decision)_[0-9]+", re.IGNORECASE)


def configure(parser: argparse.ArgumentParser) -> None:
    arguments.node(parser, "sources", several=True)
    arguments.stdin(parser, "read the summary from stdin")
    flag(parser, "--archive-sources", "archive the nodes, except pinned ones")
    arguments.tags(parser, "a tag for it (default: the tier, task and project of its sources)")
    session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    ids, words = _split_ids_and_text(options.sources)
    content = arguments.text_of(options, words)
    if content is None:
        hint = "Give it as the last argument, in quotes, or with --stdin."
        raise UsageError("The summary is missing.", hint=hint)
    with opening.adding(settings, output) as memory:
        sources = [memory.graph.find(text) for text in ids]
        wanted = Options(sources, content, options.tag, options.archive_sources)
        made = summarize(memory, wanted)
    output.show(made, render)
    warn_of_redaction(made.redacted, output)


def _split_ids_and_text(words: list[str]) -> tuple[list[str], list[str]]:
    """The ids, and the text if it is the last argument: anything that cannot be an id."""
    *ids, last = words
    return (ids, [last]) if ids and not _LIKE_AN_ID.fullmatch(last) else (words, [])


def render(made: SummarizeResult) -> list[Block]:
    blocks: list[Block] = [Line(f"Created summary: {made.short_id}")]
    blocks += [Line(f"Archived: {made.short_ids[each]}") for each in made.archived]
    blocks += [Line(f"Kept, because pinned: {made.short_ids[each]}") for each in made.pinned]
    return blocks
