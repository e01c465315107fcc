"""`ctx add`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli import options as shared
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.output import Block, Line, Output, count
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.model import KNOWLEDGE_TYPES, LARGE_CONTENT, tier
from ctx.operations.add import Added, Options, add

EXAMPLES = """
ctx add --type=fact --tag=tier:reference "The API speaks OAuth 2.0"    a node
ctx add --type=decision --meta rationale="no servers to run" "We use SQLite"
make test 2>&1 | ctx add --type=observation --stdin    what a command printed
ctx add file src README.md                             snapshot files
"""

NODE_EXAMPLES = """
ctx add --type=fact "Deploys run on Fridays"
ctx add --type=decision --tag=project:shop --tag=tier:reference "We use SQLite"
ctx add --type=decision --meta rationale="no servers to run" "We use SQLite"
ctx add --type=fact --supersedes 01M7ESYZ1SB4 "Deploys run on Mondays"
git log -3 | ctx add --type=observation --summary "The last commits" --stdin
"""


FILE_EXAMPLES = """
ctx add file src/app.py README.md      snapshot two files
ctx add file src                       every file in a folder that git would add
ctx add file 'src/**/*.py'             by a glob
ctx add file src -m "Before the move"  and commit them
"""


def prepare(words: list[str]) -> list[str]:
    """`ctx add --type fact …` is `ctx add node --type fact …`.

    A word names what is added only if it is the first one and no type is given: otherwise it
    is the content.
    """
    typed = any(word == "--type" or word.startswith("--type=") for word in words)
    named = words[:1] == ["node"] or (words[:1] == ["file"] and not typed)
    return words if named or not words else ["node", *words]


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    node = shared.add_subcommand(
        group,
        "node",
        "add a node to memory (the word `node` may be left out; see also `ctx add file --help`)",
        NODE_EXAMPLES,
    )
    arguments.content(node)
    arguments.node_type(node, "what it is (default: that of what it supersedes, else fact)")
    arguments.tags(node, "a tag for it; may be given several times")
    arguments.metadata(node, "more about it, such as a decision's rationale")
    node.add_argument("--summary", metavar="TEXT", help="what stands for it in lists")
    old = node.add_argument(
        "--supersedes",
        action="append",
        default=[],
        metavar="ID",
        help="the node that this one takes the place of",
    )
    shared.completing(old, "node")
    node.add_argument(
        "--user", action="store_true", help="for all projects, not only for the one you are in"
    )
    shared.session_option(node)
    file = shared.add_subcommand(
        group, "file", "snapshot files into the session's staging", FILE_EXAMPLES
    )
    file.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, or a glob")
    file.add_argument("--commit", action="store_true", help="make a commit right away")
    file.add_argument("-m", "--message", help="the commit's message (implies --commit)")
    file.add_argument("-f", "--force", action="store_true", help="also add ignored files")
    file.add_argument(
        "--allow-secrets", action="store_true", help="also add files that hold a secret"
    )
    shared.session_option(file)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    if options.subcommand == "file":
        from ctx.cli import add_file

        return add_file.run(options, settings, output)
    _refuse_typing_mistakes(options)
    content = arguments.content_of(options)
    if len(content) > LARGE_CONTENT:
        output.warn(f"This is a large node: {count(len(content), 'character')}.")
    with opening.writing(settings, output) as memory:
        wanted = Options(
            content,
            options.type,
            options.tag,
            options.summary,
            arguments.metadata_of(options),
            [memory.graph.find(text) for text in options.supersedes],
            options.user,
        )
        added = add(memory, wanted)
    output.show(added, render)
    warn_of_redaction(added.redacted, output)
    if tier(added.node.tags) is None:
        output.note(
            "It has no tier: search finds it, no context shows it. "
            f"`ctx tag {added.short_id} tier:reference` changes that."
        )
    return 0


def _refuse_typing_mistakes(options: argparse.Namespace) -> None:
    """`ctx add flie src` is not meant to be a fact about flies."""
    words = options.content
    if options.type or options.stdin or not words or words == ["-"]:
        return
    if len(words) > 1 or not any(character.isspace() for character in words[0]):
        word = words[0][:40]
        near = shared.nearest(word, ("file",)) or ""
        kind = word if word in KNOWLEDGE_TYPES else "fact"
        raise UsageError(
            f"{word!r} is neither a sentence nor something that can be added.",
            hint=near if "Did you" in near else f'For a node: ctx add --type={kind} "…".',
        )


def render(added: Added) -> list[Block]:
    given = f" ({', '.join(added.given)})" if added.given else ""
    return [Line(f"Added: {added.short_id}{given}")]
