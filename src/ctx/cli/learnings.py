"""`ctx learnings`"""

import argparse

from ctx import clock
from ctx.cli import arguments, opening
from ctx.cli import options as shared
from ctx.cli.output import Block, Line, Output, Table, age_text, count
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.learning_confidence import HUMAN
from ctx.operations import learnings
from ctx.operations.learnings import Learning, LearningList
from ctx.synthesis.learnings import CATEGORIES

EXAMPLES = """
ctx learnings list                                     the learnings of this project
ctx learnings add "Migrations are never edited"        add a learning
ctx learnings confirm 01M7ESYZ1SB4                     mark it as true
ctx learnings reject 01M7ESYZ1SB4                      mark it as wrong; it is not learned again
"""

ALONE = "list"

_LIST = """
ctx learnings list                        those of this project, the most certain first
ctx learnings list --category gotcha      what went wrong repeatedly
ctx learnings list --all --rejected       of every project, also those that were rejected
ctx learnings list --project-name shop    those of another project, in your own store
"""
_ADD = """
ctx learnings add "Migrations are never edited" --category convention    with its category
ctx learnings add "httpx is pinned below 1.0"                            the category is detected
ctx learnings add "Tests come first" --user                              for all projects
"""
_JUDGED = """
ctx learnings {0} 01M7ESYZ1SB4                 one that `ctx learnings list` shows
ctx learnings {0} 01M7ESYZ1SB4 01M7EV2Q9K3D    several
"""


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    listing = shared.add_subcommand(group, "list", "list learnings", _LIST)
    arguments.whose(listing)
    _category(listing, "only those of a category")
    listing.add_argument(
        "--least",
        type=_from_0_to_1,
        default=0.0,
        metavar="CONFIDENCE",
        help="the lowest confidence to show, from 0 to 1",
    )
    shared.flag(listing, "--rejected", "also those that were rejected")
    adding = shared.add_subcommand(group, "add", "add a learning", _ADD)
    adding.add_argument("text", nargs="*", metavar="TEXT", help="one sentence (- reads stdin)")
    shared.flag(adding, "--stdin", "read it from stdin")
    _category(adding, "what kind of learning it is")
    shared.flag(adding, "--user", "for all projects, not only for the one you are in")
    for word, does in (
        ("confirm", "confirm a learning"),
        ("reject", "reject a learning: it is hidden and not learned again"),
    ):
        examples = _JUDGED.format(word)
        each = shared.add_subcommand(group, word, does, examples)
        arguments.node(each, "ids", several=True)


def _from_0_to_1(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number from 0 to 1")
    return number


def _category(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("--category", choices=CATEGORIES, help=help_text)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    if options.subcommand == "list":
        with opening.reading(settings, output) as memory:
            arguments.check_project(memory, options)
            listed = learnings.list_learnings(
                memory,
                project=options.project,
                everywhere=options.all,
                category=options.category,
                least=options.least,
                rejected=options.rejected,
            )
        output.show(listed, render)
        return
    text = None
    if options.subcommand == "add":
        text = arguments.text_of(options, options.text)
        if text is None:
            raise UsageError("The text is missing.", hint='`ctx learnings add "…"`, or --stdin')
    with opening.adding(settings, output) as memory:
        if text is not None:
            say = learnings.add_everywhere if options.user else learnings.add
            changed = [say(memory, text, options.category)]
        else:
            judge = learnings.confirm if options.subcommand == "confirm" else learnings.reject
            changed = [judge(memory, memory.graph.find(text)) for text in options.ids]
        result = LearningList(tuple(changed), memory.project, 0, 0)
    output.show(result, lambda value: _decision_lines(value, options.subcommand))


def render(result: LearningList) -> list[Block]:
    if not result.learnings:
        return [Line(_no_learnings_text(result))]
    now = clock.now_ms()
    rows = [
        (
            each.short_id,
            _confidence_text(each),
            f"{each.times_seen:,}",
            age_text(each.last_seen, now),
            each.category,
            " ".join(each.node.content.split()),
        )
        for each in result.learnings
    ]
    headings = ("id", "confidence", "seen", "last", "category", "learning")
    blocks: list[Block] = [Table(headings, rows, ("id", "", "", "age", "type", "text"))]
    if result.left_out:
        blocks.append(Line(f"  … and {_others_text(result)}", "dim"))
    return blocks


def _no_learnings_text(result: LearningList) -> str:
    if result.left_out:
        are = "is" if result.left_out == 1 else "are"
        return f"No matching learnings; there {are} {_others_text(result)}."
    where = f" in {result.project}" if result.project else ""
    return f"No learnings{where} yet."


def _others_text(result: LearningList) -> str:
    """`3 others, 1 of them rejected`."""
    others = count(result.left_out, "other")
    if not result.rejected:
        return others
    if result.rejected == result.left_out:
        return f"{result.rejected:,} rejected"
    return f"{others}, {result.rejected:,} of them rejected"


def _confidence_text(each: Learning) -> str:
    if each.rejected:
        return "rejected"
    return f"{each.confidence:.2f}{' (confirmed)' if each.origin == HUMAN else ''}"


def _decision_lines(result: LearningList, word: str) -> list[Block]:
    done = {"add": "Added", "confirm": "Confirmed", "reject": "Rejected"}[word]
    return [
        Line(f"{done}: {each.short_id} [{each.category}] {' '.join(each.node.content.split())}")
        for each in result.learnings
    ]
