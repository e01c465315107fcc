"""What `ctx install` and `ctx uninstall` answer."""

import json
import os
from typing import Any, NamedTuple

from ctx.agents.claude_code.clients import Client
from ctx.agents.host_setup.host_setups import InstalledPart
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
    by_hand: tuple["ByHand", ...] = ()


class UninstallResult(NamedTuple):
    """What was removed, or would be."""

    dry_run: bool
    parts: tuple[InstalledPart, ...]
    backup: str
    """The backup of the settings; empty if nothing was changed."""
    diff: str
    """The changes of a file, line by line."""
    store: str
    """The folder of the user store, which stays."""


class ByHand(NamedTuple):
    """What to add to a file manually."""

    path: str
    text: str


class HostResult(NamedTuple):
    """What was installed or removed for a host other than Claude Code, or would be."""

    host: str
    title: str
    parts: tuple[InstalledPart, ...]
    backups: tuple[str, ...] = ()
    hooks: int = 0
    diff: str = ""
    tried: tuple[str, ...] = ()
    """The hooks that were run as the host runs them."""
    by_hand: tuple[ByHand, ...] = ()


class HostsResult(NamedTuple):
    """The answer for several hosts, or for one other than Claude Code."""

    dry_run: bool
    parts: tuple[InstalledPart, ...]
    """What hosts share: the store and the skill."""
    hosts: tuple[HostResult, ...]
    claude_code: InstallResult | UninstallResult | None = None
    """The answer for Claude Code, if it is one of them."""


def render_hosts(answer: HostsResult, *, home: str) -> list[Block]:
    """The same table for every host, under its name."""
    rows = rows_of(answer.parts, 0, home)
    head: list[Block] = [Table(("part", "where", "state"), rows, ("field", "", ""))]
    blocks = head if rows else []
    for host in answer.hosts:
        rows = rows_of(host.parts, host.hooks, home)
        rows += [("Backup", short(path, home), "") for path in host.backups]
        table = Table(("part", "where", "state"), rows, ("field", "", ""))
        blocks += [Line(f"{host.title}:"), table]
        if host.tried:
            blocks.append(Line(f"  Tried {count(len(host.tried), 'hook')}: all work."))
    diff = "".join(host.diff for host in answer.hosts)
    if answer.claude_code is not None:
        first = answer.claude_code
        diff = first.diff + diff
        parts = first.parts[1:] if answer.parts[:1] == first.parts[:1] else first.parts
        if isinstance(first, InstallResult):
            shown = render(first._replace(parts=parts, dry_run=False), home=home)
        else:
            shown = render_removed(first._replace(dry_run=False), home=home)
        blocks += [Line("Claude Code:"), *shown]
    return [*dry(answer.dry_run, diff), *blocks]


def render_hosts_by_hand(answer: HostsResult, *, home: str) -> list[Block]:
    blocks: list[Block] = [
        Line(f"{part.what.capitalize()}: {short(part.path, home)}") for part in answer.parts
    ]
    for host in answer.hosts:
        for path, text in host.by_hand:
            head = Line(f"{host.title}: add to {short(path, home)}:")
            blocks += [Line(""), head, Line(""), VerbatimText(text)]
    if isinstance(answer.claude_code, InstallResult):
        blocks += render_by_hand(answer.claude_code, home=home, project="")[1:]
    return blocks


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
        what = "MCP" if part.what == "mcp" else part.what.capitalize()
        rows.append((what, short(path, home), state))
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
    for path, text in printed.by_hand:
        head = Line(f"For the MCP server, add to {short(path, home)}:")
        blocks += [Line(""), head, Line(""), VerbatimText(text)]
    return [*blocks, Line(""), Line(" ".join(steps))] if steps else blocks


def render_removed(uninstalled: UninstallResult, *, home: str) -> list[Block]:
    rows = rows_of(uninstalled.parts, 0, home)
    if uninstalled.backup:
        rows.append(("Backup", short(uninstalled.backup, home), ""))
    if all(part.state == "missing" for part in uninstalled.parts):
        return [Line("Nothing to remove.")]
    table = Table(("part", "where", "state"), rows, ("field", "", ""))
    return [*dry(uninstalled.dry_run, uninstalled.diff), table]
