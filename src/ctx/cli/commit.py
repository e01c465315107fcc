"""`ctx commit`"""

import argparse

from ctx.cli import options as shared
from ctx.cli.opening import note_deleted_for_good, open_to_write
from ctx.cli.output import MOST_ROWS, Block, Line, Output, Table, count
from ctx.cli.settings import Settings
from ctx.ids import short
from ctx.operations.commit import CommitResult, Options, commit, commit_for_git

EXAMPLES = """
ctx commit -m "Retry with jitter"         commit what session cli has staged
ctx commit -m "Step 3" --session s-42     the staging of another session
ctx commit --amend -m "Better words"      replace the last commit
ctx commit -m "Code only" --no-narrative  without snapshots of narrative files
ctx commit --auto                         with a generated message; silent if nothing is staged
"""


def configure(parser: argparse.ArgumentParser) -> None:
    words = parser.add_mutually_exclusive_group()
    words.add_argument("-m", "--message", help="the message (required without --amend or --auto)")
    shared.flag(words, "--auto", "generate the message, for git hooks")
    shared.flag(parser, "--amend", "replace the last commit")
    shared.flag(parser, "--no-narrative", "do not snapshot narrative files")
    shared.session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    workspace = open_to_write(settings, output)
    wanted = Options(
        options.message, options.auto, amend=options.amend, narrative=not options.no_narrative
    )
    made = commit_for_git(workspace) if options.auto else commit(workspace, wanted)
    output.show(made, render_quietly if options.auto else render)
    print_details(made, output)
    # A hook with nothing to commit does not run `git add`.
    return 1 if options.auto and made.exposed else 0


def print_details(made: CommitResult, output: Output) -> None:
    """Warnings and notes about the commit."""
    for secret in made.secrets:
        output.warn(f"{secret.where}, line {secret.line}: secret removed ({secret.rule}).")
    for path, reason in made.skipped:
        output.warn(f"narrative/{path} not committed: {reason}.")
    note_deleted_for_good(made.deleted_for_good, output)
    if made.disputes:
        fields = count(made.disputes, "field")
        output.note(f"{fields} changed on both branches; resolve with `ctx review`")
    still_there = sorted({item.where for item in (*made.secrets, *made.exposed)} - {"message"})
    if still_there:
        files = ", ".join(f".ctx/{path}" for path in still_there)
        verb = "contains a secret" if len(still_there) == 1 else "contain secrets"
        output.warn(f"{files} {verb}: remove it before `git add .ctx`.")
    elif made.unknown_to_git:
        files = count(made.unknown_to_git, "file")
        output.note(f"{files} to add to git: `git add .ctx`")


def render_quietly(made: CommitResult) -> list[Block]:
    """One line beside the output of git; nothing if there is nothing to report."""
    return [_headline(made)] if made.commit else []


def render(made: CommitResult) -> list[Block]:
    if made.commit is None:
        lines: list[Block] = [Line(f"Nothing to commit in session {made.session}.")]
        if made.other_sessions:
            sessions = ", ".join(made.other_sessions)
            lines.append(
                Line(f"Other sessions with staged work: {sessions}. Commit one with --session.")
            )
        return lines
    blocks: list[Block] = [_headline(made)]
    blocks += [Line(f"  {line}") for line in made.changes[:MOST_ROWS]]
    rows = [("file", path) for path in made.files[:MOST_ROWS]]
    rows += [("narrative", path) for path in made.documents[:MOST_ROWS]]
    shown = len(rows) + min(len(made.changes), MOST_ROWS)
    left = len(made.changes) + len(made.files) + len(made.documents) - shown
    blocks.append(Table(("what", "path"), rows))
    return blocks + ([Line(f"  … and {left:,} more")] if left else [])


def _headline(made: CommitResult) -> Line:
    verb = f"Amended {short(made.amends)}:" if made.amends else "Committed"
    counted = [
        (made.nodes, "node"),
        (made.edges, "edge"),
        (len(made.files), "file"),
        (len(made.documents), "narrative file"),
    ]
    parts = [count(number, noun) for number, noun in counted if number]
    if not parts and made.changes:
        parts.append(count(len(made.changes), "change"))
    if len(made.parents) > 1:
        parts.append(f"joins {len(made.parents)} heads")
    details = f" ({', '.join(parts)})" if parts else ""
    return Line(f"{verb} {short(made.commit or '')} {made.message.partition(chr(10))[0]}{details}")
