"""`ctx init`"""

import argparse
import os

from ctx import layout
from ctx.cli import opening
from ctx.cli import options as shared
from ctx.cli.nodes import table
from ctx.cli.output import MOST_ROWS, Block, Line, Output, count
from ctx.cli.settings import Settings
from ctx.errors import CtxError, PathRefused
from ctx.ids import short
from ctx.memory import sources
from ctx.memory.graph import PROJECT, USER
from ctx.operations.init import InitResult, Options, Template, contents, init

EXAMPLES = """
ctx init                       a project store here, added to git
ctx init --template team       with narrative scaffolds and a review note
ctx init --template private    kept out of git by .git/info/exclude
ctx init --no-git ../api       in another folder, git's index left alone
ctx init --force --yes         delete the store and create a new one
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", help="the project's folder (default: this one)")
    parser.add_argument(
        "--template",
        choices=[template.value for template in Template],
        default=Template.MINIMAL.value,
        help="initial content (default: minimal)",
    )
    shared.flag(parser, "--no-git", "do not add .ctx to git")
    shared.flag(parser, "--force", "replace an existing store")
    shared.yes_option(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    folder = os.path.join(settings.folder, options.path or "")
    if not os.path.isdir(folder):
        raise PathRefused(f"{folder} is not a folder.", hint="Create it first.")
    project = layout.project_at(folder)
    if options.force and os.path.lexists(project.store):
        lost = contents(project)
        if not lost.is_empty:
            output.confirm(
                f"{project.store} would be lost: {count(lost.objects, 'object')}, "
                f"{count(lost.heads, 'head')}, {count(lost.documents, 'narrative file')}, "
                f"{count(lost.sessions, 'session')} with staged work, and its settings. Continue?",
                yes=options.yes,
            )
    made = init(
        project,
        Options(
            settings.user_store.home,
            Template(options.template),
            force=options.force,
            use_git=not options.no_git,
        ),
    )
    output.show(made, render)
    if made.git == "refused":
        output.warn(f"{made.git_message} Add .ctx yourself, or use --template private.")
    if made.git == "tracked":
        output.warn("git already tracks .ctx. To stop that: `git rm -r --cached .ctx`")
    if made.created:
        output.note('Next: `ctx add decision "…"` records a decision.')
    if made.created and project.checkout:
        output.note("      `ctx install --git` adds memory to each git commit.")
    if made.created and not made.trusted:
        home = settings.user_store.home
        reason = "" if _is_writable(home) else f", because {home} cannot be written to"
        output.note(f"The store is not trusted yet{reason}. To review and trust it: `ctx trust`")
    if made.created and project.checkout and project.checkout.top != project.root:
        output.note(f"The top folder of this git repository is {project.checkout.top}.")
    if made.created and made.outer:
        output.note(f"This project is inside another one: {made.outer}")
    if made.created and made.trusted and output.is_interactive and output.is_for_people:
        _offer_to_move(settings._replace(folder=folder), output, is_in_git=made.git == "added")


def _is_writable(folder: str) -> bool:
    """Whether a folder can be changed, or created."""
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK)


def _offer_to_move(settings: Settings, output: Output, *, is_in_git: bool) -> None:
    """List what the user noted about this project before, and move it if they want."""
    from ctx.cli import move as moving
    from ctx.operations.list import Options as ListOptions
    from ctx.operations.list import list_nodes
    from ctx.operations.move import move

    with opening.adding(settings, output) as memory:
        if memory.own_tag is None:
            return
        wanted = ListOptions(tags=[memory.own_tag], limit=0)
        listed = list_nodes(memory.only(USER), wanted)
        # What was captured is about sessions, which stay on this machine.
        nodes = [node for node in listed.nodes if node.source == sources.USER]
        if not nodes:
            return
        output.preview([Line(""), Line("You noted this about the project before:")])
        output.preview([table(nodes[:MOST_ROWS], listed.short_ids)])
        if len(nodes) > MOST_ROWS:
            output.preview([Line(f"  … and {len(nodes) - MOST_ROWS:,} more")])
        shared = ", which is in git" if is_in_git else ""
        question = f"Move {count(len(nodes), 'node')} to the project store{shared}? [y/N]"
        if output.ask(question).lower() not in ("y", "yes"):
            output.note("They stay in your own store. To move one: `ctx move ID --project`")
            return
        try:
            moved = move(memory, [node.id for node in nodes], PROJECT)
        except CtxError as error:
            # The store was created, whatever becomes of the nodes.
            output.warn(f"{error.message} {error.hint or ''}".rstrip())
            return
    output.show(moved, moving.render)


def render(made: InitResult) -> list[Block]:
    if not made.created:
        return [Line(f"{made.store} already exists; nothing changed.")]
    if made.commit:
        first = f"first commit {short(made.commit)}"
        lines = [Line(f"Created a project store for {made.name} in {made.store}, {first}.")]
    else:
        lines = [Line(f"Completed the project store in {made.store}.")]
    match made.git:
        case "added":
            lines.append(Line("Added to git: commit it with your next git commit."))
        case "excluded":
            lines.append(Line("Kept out of git by .git/info/exclude."))
        case _:
            pass
    return [*lines]
