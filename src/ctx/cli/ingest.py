"""`ctx ingest`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli import options as shared
from ctx.cli import settings as surroundings
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.output import Block, Line, Output, count, listing
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.graph import USER
from ctx.operations.ingest import IngestResult, Options, ingest

EXAMPLES = """
ctx ingest README.md --tag=project:shop --tag=type:documentation
ctx ingest docs/api.md docs/errors.md --tag=tier:reference
curl -s https://example.org/api.txt | ctx ingest - --name=api.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a text file (- reads stdin)")
    arguments.tags(parser, "a tag for each; repeat for several")
    parser.add_argument("--summary", metavar="TEXT", help="the text shown in lists")
    parser.add_argument("--name", metavar="NAME", help="the name of text from stdin")
    shared.session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    text = None
    if "-" in options.files:
        if not options.name:
            raise UsageError("Text from stdin needs a name.", hint="Add --name.")
        text = surroundings.read_stdin()
    elif options.name:
        raise UsageError(
            "--name is only for text from stdin.",
            hint="Leave it out, or use - instead of the file.",
        )
    paths = [path for path in options.files if path != "-"]
    wanted = Options(paths, text, options.name or "", options.tag, options.summary)
    with opening.writing(settings, output) as memory:
        ingested = ingest(memory, wanted)
        is_project = memory.project_memory is not None
    output.show(ingested, render)
    outside = [each for each in ingested.files if each.scope == USER] if is_project else []
    if outside:
        files = count(len(outside), "file is", "files are")
        output.note(f"{files} outside this project: added to your own store.")
    warn_of_redaction(ingested.redacted, output)
    return 1 if ingested.refused else 0


def render(ingested: IngestResult) -> list[Block]:
    blocks: list[Block] = []
    for state, label in (("new", "Ingested"), ("changed", "Ingested again")):
        files = [each for each in ingested.files if each.state == state]
        if files:
            blocks.append(Line(f"{label}:"))
            rows = [(e.short_id, e.path, count(e.token_estimate, "token")) for e in files]
            blocks += listing(("id", "path", "tokens"), rows, ("id", "", "dim"))
    unchanged = [each for each in ingested.files if each.state == "unchanged"]
    if unchanged:
        blocks.append(Line(f"{count(len(unchanged), 'file')} unchanged."))
    if ingested.refused:
        blocks.append(Line(f"Refused {count(len(ingested.refused), 'file')}:"))
        blocks += listing(("path", "reason"), [tuple(each) for each in ingested.refused])
    return blocks
