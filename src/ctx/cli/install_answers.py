"""What `ctx install` and `ctx uninstall` answer."""

import json
import os
from typing import Any, NamedTuple

from ctx.agents.claude_code.clients import Client
from ctx.agents.host_setup.installed_parts import InstalledPart
from ctx.cli.output import Block, Line, Table, VerbatimText, count

_STATES = {"there": "there already", "current": "up to date"}


class InstallResult(NamedTuple):
    """What was installed, or would be."""

    dry_run: bool
    parts: tuple[InstalledPart, ...]
    settings: dict[str, Any]
    """The state of our hooks in settings.json."""
    backup: str = ""
    """The backup of the settings; empty if there was nothing to back up."""
    diff: str = ""
    """The changes of a file, line by line."""
    without_effect: str = ""
    """Why the client does not run the hooks, such as a comment in its settings."""
    clients: tuple[Client, ...] = ()
    tried: tuple[str, ...] = ()
    """The hooks that were run as the client runs them."""


def render(installed: InstallResult, *, home: str) -> list[Block]:
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
        blocks.append(Line(f"Tried {count(len(installed.tried), 'hook')}: all work."))
    return [*dry(installed.dry_run, installed.diff), *blocks]


def dry(dry_run: bool, diff: str) -> list[Block]:
    """The heading of a dry run."""
    if not dry_run:
        return []
    shown: list[Block] = [VerbatimText(diff), Line("")] if diff else []
    return [*shown, Line("Nothing changed. Planned changes:")]


def rows_of(parts: tuple[InstalledPart, ...], hooks: int, home: str) -> list[tuple[str, str, str]]:
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


def render_by_hand(printed: InstallResult, *, home: str, project: str) -> list[Block]:
    where = {part.what: short(part.path, home) for part in printed.parts}
    blocks: list[Block] = [Line(f"Store: {where['store']}")]
    steps = []
    if "skill" in where:
        blocks.append(Line(f"Skill: {where['skill']}/SKILL.md"))
        steps = [f"`ctx install{project} --no-hooks` writes the skill."]
    if "hooks" in where:
        settings_json = json.dumps(printed.settings, indent=2, ensure_ascii=False)
        head = Line(f"To enable the hooks, add to {where['hooks']}:")
        blocks += [Line(""), head, Line(""), VerbatimText(f"{settings_json}\n")]
        steps.insert(0, "Then start a new conversation.")
    return [*blocks, Line(""), Line(" ".join(steps))] if steps else blocks
