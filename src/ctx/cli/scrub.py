"""`ctx scrub`"""

import argparse

from ctx.cli import arguments, opening
from ctx.cli import options as shared
from ctx.cli import settings as surroundings
from ctx.cli.output import Block, Line, Output, Table, count, listing
from ctx.cli.settings import Settings
from ctx.errors import UsageError
from ctx.memory.graph import PROJECT, USER
from ctx.operations.scrub import ScrubResult, ScrubScope, preview_scrub, scrub_all, settle
from ctx.redaction import needle
from ctx.redaction.needle import Needle

EXAMPLES = """
ctx scrub acme-internal --dry-run    show where a word is stored
ctx scrub acme-internal              remove it everywhere, after confirmation
ctx scrub --regex 'ACME-\\d{4}' --yes
ctx scrub                            secrets that older rules missed
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pattern",
        nargs="?",
        metavar="PATTERN",
        help="a word or a text; - reads it from stdin, which keeps it out of the shell"
        " history (default: every secret that the redaction rules find)",
    )
    shared.flag(parser, "--regex", "PATTERN is a regular expression")
    arguments.scope(parser)
    arguments.dry_run(parser)
    shared.yes_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    wanted = _needle(options)
    scope = _scope(options, settings, output)
    # A pattern that takes too long ends the command before anything is changed.
    if options.dry_run or options.regex or not options.yes:
        with output.progress("Looking") as tick:
            result = preview_scrub(scope, wanted, tick)
        if options.dry_run or not (result.places or options.yes):
            output.show(result, render)
            return 1 if result.left and not options.dry_run else 0
        if not options.yes:
            output.preview(render(result))
        output.confirm("Remove it from all these places? This cannot be undone.", yes=options.yes)
    if scope.home:
        with opening.open_for_staging(settings, output) as memory:
            settle(memory, scope.home)
    with output.progress("Scrubbing") as tick:
        done = scrub_all(scope, wanted, tick)
    output.show(done, render)
    return 1 if done.left else 0


def _needle(options: argparse.Namespace) -> Needle:
    if options.pattern is None:
        if options.regex:
            raise UsageError("--regex needs a PATTERN.")
        return needle.RULES
    regex = options.pattern
    pattern = surroundings.read_stdin().rstrip("\r\n") if regex == "-" else regex
    return needle.regex(pattern) if options.regex else needle.word(pattern)


def _scope(options: argparse.Namespace, settings: Settings, output: Output) -> ScrubScope:
    """Both stores, unless one was chosen; with `--db`, only that file."""
    home = settings.user_store.home
    is_alone = settings.database != settings.user_store.database
    requested = options.scope
    repository = None
    is_here = requested is None and not is_alone
    if requested == PROJECT or (is_here and opening.trusted_project(settings, output) is not None):
        repository = opening.open_workspace(settings, output).repository
    if requested == PROJECT:
        return ScrubScope(None, None, repository, settings.folder)
    kept = None if requested == USER else repository
    return ScrubScope(None if is_alone else home, settings.database, kept, settings.folder)


def render(result: ScrubResult) -> list[Block]:
    if not result.places and not result.left:
        blocks: list[Block] = [Line("Not found in anything ctx stores.")]
    else:
        verb = "Would remove it from" if result.dry_run else "Removed it from"
        places = count(len(result.places), "place")
        nothing = "Nothing can be removed." if result.dry_run else "Nothing could be removed."
        blocks = [Line(f"{verb} {places}:" if result.places else nothing)]
        blocks += listing(
            ("where", "how many", "what"),
            [(place.where, f"{place.found:,}", place.done) for place in result.places],
        )
    if result.left:
        blocks.append(Line("Still there:"))
        blocks.append(Table(("where", "why"), result.left))
    if result.in_git:
        blocks.append(
            Line(
                "git history still contains it in earlier commits, here and in every clone. "
                "Replace a secret that was pushed. To search the history:"
            )
        )
        blocks += [Line(f"  {command}") for command in result.in_git]
    if result.replicas:
        blocks.append(
            Line(
                "Other machines have it until they sync, and sync targets until you do:"
                " run `ctx sync`. Not confirmed yet:"
            )
        )
        blocks += [
            Line(f"  {each.machine}{' (this machine)' * each.this}, target {each.target}")
            for each in result.replicas
        ]
    if result.transcripts:
        blocks.append(Line("Transcripts of the agent contain it; ctx does not change them:"))
        blocks += [Line(f"  {path}") for path in result.transcripts]
    if result.folders:
        blocks.append(
            Line(
                "Folders in which agents work have it in their names: the next session"
                " there stores it again, unless you rename them. Memory still belongs to"
                " its project after that."
            )
        )
        blocks += [Line(f"  {path}") for path in result.folders]
    return blocks
