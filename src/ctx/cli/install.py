"""`ctx install`"""

import argparse
import json
import os
from functools import partial
from typing import Any, NamedTuple

from ctx import disk, layout
from ctx.agents.claude_code import clients, install, registration, settings_file, skill
from ctx.agents.claude_code.clients import Client
from ctx.agents.claude_code.foreign_file import Change
from ctx.agents.claude_code.install import Part, Place
from ctx.agents.claude_code.registration import Group
from ctx.cli import opening
from ctx.cli import options as shared
from ctx.cli import settings as surroundings
from ctx.cli.output import Block, Line, Output, Table, Verbatim, count
from ctx.cli.settings import Settings
from ctx.errors import HookFailed, UsageError

EXAMPLES = """
ctx install                          the store, the skill and the hooks, for yourself
ctx install --dry-run                show what would change
ctx install --print                  show what to add by hand
ctx install --project                in this project's own settings, for everybody there
ctx install --plugin ~/ctx-plugin    write a plugin, with /ctx:remember and more
ctx install --projection             a block in AGENTS.md, for agents without hooks
"""

_STATES = {"there": "there already", "current": "up to date"}


class Installed(NamedTuple):
    """What was set up, or what would be."""

    dry_run: bool
    parts: tuple[Part, ...]
    settings: dict[str, Any]
    """What settings.json says of our hooks."""
    backup: str = ""
    """Where the settings lie as they were before; empty where there was nothing to keep."""
    diff: str = ""
    """What would change in a file, line by line."""
    without_effect: str = ""
    """Why the client will not run the hooks, such as a comment in its settings, if it will not."""
    clients: tuple[Client, ...] = ()
    tried: tuple[str, ...] = ()
    """The hooks that were run, as the client will."""


class _Asked(NamedTuple):
    """What is to be set up, and where."""

    place: Place
    entries: dict[str, Group]
    clients: tuple[Client, ...]
    store: Part
    skill: bool
    hooks: bool


def configure(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--project",
        action="store_true",
        help="in this project's .claude, which is committed, rather than in your own",
    )
    plugin = place.add_argument(
        "--plugin", metavar="DIR", help="only write a plugin, into a folder"
    )
    shared.completing(plugin, "folder")
    projection_option(place, "only write what this project knows into AGENTS.md, or another file")
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--print", dest="only_print", action="store_true", help="only print what to add by hand"
    )
    only.add_argument("--dry-run", action="store_true", help="only show what would change")
    parser.add_argument("--no-skill", action="store_true", help="leave the skill out")
    parser.add_argument("--no-hooks", action="store_true", help="leave the hooks out")


def projection_option(group: "argparse._ActionsContainer", told: str) -> None:
    projection = group.add_argument("--projection", nargs="?", const="", metavar="FILE", help=told)
    shared.completing(projection, "file")


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    home = settings.expanded("~")
    if options.plugin is not None or options.projection is not None:
        alone = "--plugin" if options.plugin is not None else "--projection"
        if options.only_print or options.no_skill or options.no_hooks:
            raise UsageError(f"{alone} stands alone: it writes that and nothing else.")
        write = _plugin if options.plugin is not None else _projection
        output.show(write(options, settings, output), partial(render, home=home))
        return
    variables = surroundings.variables()
    asked = _asked(options, settings, variables.get("PATH", ""), output)
    if options.only_print:
        output.show(_printed(asked), partial(render_by_hand, home=home))
        return
    answer = _planned(asked) if options.dry_run else _installed(asked, settings, variables, output)
    output.show(answer, partial(render, home=home))
    if answer.without_effect:
        output.warn(f"{asked.place.settings}, {answer.without_effect}.")
    if not options.dry_run:
        output.note(
            "Start a new conversation to use it. `ctx doctor` checks everything; "
            f"`ctx uninstall{' --project' if options.project else ''}` takes it out again."
        )


def _asked(options: argparse.Namespace, settings: Settings, path: str, output: Output) -> _Asked:
    place = place_of(options, settings)
    found = clients.installed(path, settings.expanded("~"), settings.claude_folder)
    return _Asked(
        place,
        _entries(place, found, settings, output),
        found,
        Part("store", settings.database, "there" if os.path.exists(settings.database) else "made"),
        skill=not options.no_skill,
        hooks=not options.no_hooks,
    )


def _printed(asked: _Asked) -> Installed:
    """Without a look at the settings: this is for those that cannot be read, too."""
    skill_part = Part("skill", asked.place.skill, "written")
    parts = (asked.store, skill_part, Part("hooks", asked.place.settings, "added"))
    said = settings_file.as_settings(asked.entries)
    return Installed(True, parts, said, clients=asked.clients)


def _planned(asked: _Asked) -> Installed:
    parts = [asked.store]
    if asked.skill:
        parts.append(install.planned_skill(asked.place))
    change = install.planned_hooks(asked.place, asked.entries) if asked.hooks else None
    return _answer(asked, parts, change)._replace(dry_run=True, diff=change.diff if change else "")


def _installed(
    asked: _Asked, settings: Settings, variables: dict[str, str], output: Output
) -> Installed:
    tried: tuple[str, ...] = ()
    if asked.hooks:
        # Settings that cannot be read, and hooks that do not work, are found out before anything
        # is written.
        install.planned_hooks(asked.place, asked.entries)
        _require_ctx(asked.place, variables.get("PATH", ""))
        install.compile_bytecode()
        tried = install.try_hooks(asked.entries, variables)
    with opening.writing(settings, output):
        # Who opens a store that is not there makes it.
        parts = [asked.store]
    if asked.skill:
        parts.append(_write_skill(asked.place, output))
    change = install.register(asked.place, asked.entries) if asked.hooks else None
    return _answer(asked, parts, change)._replace(tried=tried)


def _require_ctx(place: Place, path: str) -> None:
    """A project's settings travel: they name `ctx` as a shell finds it."""
    import shutil

    if place.level == "project" and shutil.which("ctx", path=path) is None:
        raise HookFailed(
            "There is no `ctx` on the PATH, by which a project's settings call it.",
            hint="Put it there and try again; nothing was registered.",
        )


def _answer(asked: _Asked, parts: list[Part], change: Change | None) -> Installed:
    if change is None:
        return Installed(False, tuple(parts), {}, clients=asked.clients)
    return Installed(
        False,
        (*parts, install.hooks_part(change)),
        settings_file.as_settings(asked.entries),
        change.backup,
        without_effect=settings_file.without_effect(change.after or ""),
        clients=asked.clients,
    )


def place_of(options: argparse.Namespace, settings: Settings) -> Place:
    """Whose settings are meant: the user's, or those of the project that the command works in."""
    ctx_home = settings.user_store.home
    if not options.project:
        return install.user_place(settings.claude_folder, ctx_home)
    root = layout.place(settings.folder, ctx_home).folder
    place = install.project_place(root, ctx_home)
    if os.path.realpath(place.folder) == os.path.realpath(settings.claude_folder):
        raise UsageError(
            f"{place.folder} is no project's: your own settings are there.",
            hint="Leave --project out, or go to the project.",
        )
    return place


def _entries(
    place: Place, found: tuple[Client, ...], settings: Settings, output: Output
) -> dict[str, Group]:
    """The hooks for a place. Nobody knows which clients will read a project's settings."""
    if place.level == "project":
        return registration.project_entries()
    from ctx.config import resolve

    config = resolve.load(
        settings.user_store.config_file, None, settings.environment, settings.overrides
    )
    for warning in config.warnings:
        output.warn(warning)
    return registration.user_entries(
        [client.version for client in found],
        interpreter=registration.interpreter(),
        budget=config.integer("context.budget"),
    )


def _write_skill(place: Place, output: Output) -> Part:
    changed = skill.edited(place.skill)
    part = install.write_skill(place)
    for path in changed if part.state == "updated" else ():
        output.warn(f"{path} was not as ctx writes it; what was there is kept beside it.")
    return part


def _plugin(options: argparse.Namespace, settings: Settings, _output: Output) -> Installed:
    from ctx.agents.claude_code import plugin

    folder = os.path.abspath(os.path.join(settings.folder, settings.expanded(options.plugin)))
    known = os.path.isdir(os.path.join(folder, ".claude-plugin"))
    if options.dry_run:
        texts = {os.path.join(folder, name): text for name, text in plugin.files().items()}
        written = [path for path, text in texts.items() if disk.read_or_none(path) != text.encode()]
    else:
        written = [*plugin.write(folder)]
    part = Part("plugin", folder, "current" if not written else "updated" if known else "written")
    return Installed(options.dry_run, (part,), {})


def _projection(options: argparse.Namespace, settings: Settings, output: Output) -> Installed:
    from ctx.agents.claude_code import projection

    path = projection_file(options, settings)
    with opening.reading(settings, output) as memory:
        if not options.dry_run:
            part = Part("projection", path, projection.write(memory, path))
            return Installed(False, (part,), {})
        before = projection.read(path)
        after = projection.with_block(before, projection.text(memory), path)
    change = Change(path, None if before is None else before.decode(), after.decode())
    part = Part("projection", path, "updated" if change.is_one else "current")
    return Installed(True, (part,), {}, diff=change.diff)


def projection_file(options: argparse.Namespace, settings: Settings) -> str:
    """The file that was named, else the one of the project that agents read."""
    if options.projection:
        named = settings.expanded(options.projection)
        return os.path.abspath(os.path.join(settings.folder, named))
    root = layout.place(settings.folder, settings.user_store.home).folder
    paths = [os.path.join(root, name) for name in ("AGENTS.md", "CLAUDE.md")]
    return next((path for path in paths if os.path.lexists(path)), paths[0])


def render(installed: Installed, *, home: str) -> list[Block]:
    rows = rows_of(installed.parts, len(installed.settings.get("hooks", ())), home)
    if installed.backup:
        rows.append(("Backup", short(installed.backup, home), ""))
    rows += [
        ("Client", short(client.path, home), client.version or "version unknown")
        for client in installed.clients
    ]
    if not installed.clients and any(part.what == "hooks" for part in installed.parts):
        rows.append(("Client", "Claude Code is not on the PATH", ""))
    blocks: list[Block] = [Table(("part", "where", "state"), rows, ("field", "", ""))]
    if installed.tried:
        blocks.append(Line(f"Tried {count(len(installed.tried), 'hook')}: all of them work."))
    return [*dry(installed.dry_run, installed.diff), *blocks]


def dry(dry_run: bool, diff: str) -> list[Block]:
    """What stands above an answer that says what would be."""
    if not dry_run:
        return []
    shown: list[Block] = [Verbatim(diff), Line("")] if diff else []
    return [*shown, Line("Nothing was changed. This is what would be:")]


def rows_of(parts: tuple[Part, ...], hooks: int, home: str) -> list[tuple[str, str, str]]:
    rows = []
    for part in parts:
        state: str = _STATES.get(part.state, part.state)
        if part.what == "hooks" and part.state == "added":
            state = f"{hooks} added"
        path = os.path.join(part.path, "SKILL.md") if part.what == "skill" else part.path
        rows.append((part.what.capitalize(), short(path, home), state))
    return rows


def short(path: str, home: str) -> str:
    """A path with `~` for the home folder."""
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def render_by_hand(printed: Installed, *, home: str) -> list[Block]:
    where = {part.what: short(part.path, home) for part in printed.parts}
    return [
        Line(f"Store: {where['store']}"),
        Line(f"Skill: {where['skill']}/SKILL.md"),
        Line(""),
        Line(f"To enable the hooks, add to {where['hooks']}:"),
        Line(""),
        Verbatim(json.dumps(printed.settings, indent=2, ensure_ascii=False) + "\n"),
        Line(""),
        Line("Then start a new conversation. `ctx install --no-hooks` writes the skill."),
    ]
