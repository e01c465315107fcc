"""`ctx uninstall`"""

import argparse
import os
import shlex
from functools import partial
from typing import NamedTuple

from ctx.agents.claude_code import install, skill
from ctx.agents.claude_code.foreign_file import Change
from ctx.agents.claude_code.install import Part, Place
from ctx.cli import arguments
from ctx.cli.install import dry, place_of, projection_file, projection_option, rows_of, short
from ctx.cli.output import Block, Line, Output, Table
from ctx.cli.settings import Settings

EXAMPLES = """
ctx uninstall                 take out the hooks and the skill, and keep the store
ctx uninstall --dry-run       show what would change
ctx uninstall --project       out of this project's own settings
ctx uninstall --force         also pages of the skill that you have changed
ctx uninstall --projection    only the block in AGENTS.md
"""


class Uninstalled(NamedTuple):
    """What was taken out, or what would be."""

    dry_run: bool
    parts: tuple[Part, ...]
    backup: str
    """Where the settings lie as they were before; empty where nothing was changed."""
    diff: str
    """What changes in a file, line by line."""
    store: str
    """The folder of the user store, which stays."""


def configure(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--project", action="store_true", help="out of this project's .claude, not your own"
    )
    projection_option(place, "only the block in AGENTS.md, or in another file")
    parser.add_argument(
        "--force", action="store_true", help="also remove pages of the skill that you have changed"
    )
    arguments.dry_run(parser)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    home, store = settings.expanded("~"), settings.user_store.home
    if options.projection is not None:
        answer = _projection(options, settings)
    else:
        place = place_of(options, settings)
        removed = _planned if options.dry_run else _removed
        change, part = removed(place, force=options.force)
        hooks = Part("hooks", place.settings, "removed" if change.is_one else "missing")
        diff = change.diff if options.dry_run else ""
        answer = Uninstalled(options.dry_run, (part, hooks), change.backup, diff, store)
        if part.state == "kept":
            changed = ", ".join(short(path, home) for path in skill.edited(place.skill))
            output.warn(f"You have changed {changed}: kept. --force removes it too.")
    output.show(answer, partial(render, home=home))
    if not options.dry_run and not options.project and os.path.isdir(store):
        output.note(
            f"What is remembered stays in {short(store, home)}; "
            f"`rm -r {shlex.quote(store)}` deletes all of it."
        )


def _planned(place: Place, *, force: bool) -> tuple[Change, Part]:
    change = install.planned_removal_of_hooks(place)
    return change, install.planned_removal_of_skill(place, force=force)


def _removed(place: Place, *, force: bool) -> tuple[Change, Part]:
    # The settings first: where they cannot be read, nothing is taken out.
    install.planned_removal_of_hooks(place)
    part = install.remove_skill(place, force=force)
    return install.unregister(place), part


def _projection(options: argparse.Namespace, settings: Settings) -> Uninstalled:
    from ctx.agents.claude_code import projection

    path, store, diff = projection_file(options, settings), settings.user_store.home, ""
    if options.dry_run:
        before = projection.read(path)
        after = None if before is None else projection.without_block(before, path)
        texts = [None if data is None else data.decode() for data in (before, after)]
        change = Change(path, texts[0], texts[1])
        part = Part("projection", path, "removed" if change.is_one else "missing")
        diff = change.diff
    else:
        part = Part("projection", path, projection.remove(path))
    return Uninstalled(options.dry_run, (part,), "", diff, store)


def render(uninstalled: Uninstalled, *, home: str) -> list[Block]:
    rows = rows_of(uninstalled.parts, 0, home)
    if uninstalled.backup:
        rows.append(("Backup", short(uninstalled.backup, home), ""))
    if all(part.state == "missing" for part in uninstalled.parts):
        return [Line("There is nothing to take out.")]
    table = Table(("part", "where", "state"), rows, ("field", "", ""))
    return [*dry(uninstalled.dry_run, uninstalled.diff), table]
