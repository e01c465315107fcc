"""`ctx commit`"""

import argparse

from ctx.cli import options as shared
from ctx.cli.opening import open_workspace
from ctx.cli.output import MOST_ROWS, Block, Line, Output, Table, count
from ctx.cli.settings import Settings
from ctx.ids import short
from ctx.operations.commit import Committed, Options, commit

EXAMPLES = """
ctx commit -m "Retry with jitter"         keep what session cli has staged
ctx commit -m "Step 3" --session s-42     the staging of another session
ctx commit --amend -m "Better words"      replace the commit made last
ctx commit -m "Code only" --no-narrative  without snapshots of narrative files
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m", "--message", help="what this commit is about (needed but for --amend)"
    )
    parser.add_argument("--amend", action="store_true", help="replace the commit made last")
    parser.add_argument(
        "--no-narrative", action="store_true", help="do not snapshot narrative files"
    )
    shared.session_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    workspace = open_workspace(settings, output)
    made = commit(
        workspace,
        Options(options.message, amend=options.amend, narrative=not options.no_narrative),
    )
    output.show(made, render)
    say_more(made, output)


def say_more(made: Committed, output: Output) -> None:
    """What is worth knowing beside the commit itself."""
    for secret in made.secrets:
        output.warn(f"{secret.where}, line {secret.line}: a secret was left out ({secret.rule}).")
    for path, reason in made.skipped:
        output.warn(f"narrative/{path} is not kept: {reason}.")
    still_there = sorted({item.where for item in made.secrets if item.where != "message"})
    if still_there:
        files = ", ".join(f".ctx/{path}" for path in still_there)
        output.warn(f"{files} still has it: take it out before you run git add .ctx.")
    elif made.unknown_to_git:
        files = count(made.unknown_to_git, "changed file")
        output.note(f"git does not know {files} under .ctx yet: git add .ctx")


def render(made: Committed) -> list[Block]:
    if made.commit is None:
        lines: list[Block] = [Line(f"Nothing to commit in session {made.session}.")]
        if made.other_sessions:
            sessions = ", ".join(made.other_sessions)
            lines.append(Line(f"There is staged work in: {sessions} (commit it with --session)."))
        return lines
    title = made.message.splitlines()[0]
    verb = f"Amended {short(made.amends)}:" if made.amends else "Committed"
    parts = [count(len(made.files), "file")]
    if made.documents:
        parts.append(count(len(made.documents), "narrative file"))
    if len(made.parents) > 1:
        parts.append(f"joins {len(made.parents)} heads")
    rows = [("file", path) for path in made.files[:MOST_ROWS]]
    rows += [("narrative", path) for path in made.documents[:MOST_ROWS]]
    left = len(made.files) + len(made.documents) - len(rows)
    blocks: list[Block] = [
        Line(f"{verb} {short(made.commit)} {title} ({', '.join(parts)})"),
        Table(("what", "path"), rows),
    ]
    return blocks + ([Line(f"  … and {left:,} more")] if left else [])
