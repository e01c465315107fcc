"""`ctx sync`"""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from sqlite3 import Connection

from ctx import disk
from ctx.cli import arguments
from ctx.cli import options as shared
from ctx.cli import settings as surroundings
from ctx.cli.output import Block, Line, Output, Table, age_text, count, listing
from ctx.cli.settings import Settings
from ctx.config.resolve import survey
from ctx.errors import ConfirmationNeeded, UsageError
from ctx.memory import user_store
from ctx.operations import sync
from ctx.operations.status import from_home
from ctx.operations.sync import (
    SyncAddResult,
    SyncRemoveResult,
    SyncResult,
    SyncStatus,
    TargetResult,
    TargetStatus,
    TeamStatus,
)
from ctx.sync import target_settings, team_connection
from ctx.sync.target_settings import TargetKind

EXAMPLES = """
ctx sync add home ~/Sync/ctx           a folder that several machines share
ctx sync add home git@host:memory.git  a branch of a git repository
ctx sync                               send and receive
ctx sync home --dry-run                show what would be sent and received
ctx sync status                        targets, machines, what is waiting
"""

_PASSPHRASE = "CTX_SYNC_PASSPHRASE"
_LARGEST_SECRET = 64 * 1024
_ROLES = {"owner": "an owner", "writer": "a writer", "reader": "a reader"}


def prepare(words: list[str]) -> list[str]:
    """`ctx sync` alone and `ctx sync NAME` are `ctx sync run`."""
    known = {*target_settings.COMMANDS, "-h", "--help"}
    return words if known & set(words) else ["run", *words]


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    run = shared.add_subcommand(
        group,
        "run",
        "send and receive; `run` may be left out",
        "ctx sync\nctx sync home\nctx sync --dry-run",
    )
    run.add_argument("name", nargs="?", metavar="NAME", help="the target (default: all)")
    arguments.dry_run(run)
    add = shared.add_subcommand(
        group,
        "add",
        "add a folder, a git repository or a PostgreSQL server to sync with",
        "ctx sync add home ~/Sync/ctx --every 10m\n"
        "ctx sync add home git@host:memory.git --key-file ~/.config/ctx-sync.key\n"
        "ctx sync add usb /media/usb/ctx --plain\n"
        "ctx sync add team postgresql://anna@db.example.com/memory",
    )
    add.add_argument("name", metavar="NAME", help="what to call it")
    add.add_argument(
        "place",
        metavar="DIR|URL",
        help="a folder, the URL or path of a git repository, or the URL of a PostgreSQL server",
    )
    secret = add.add_mutually_exclusive_group()
    for option, does in (
        (
            "--passphrase-file",
            f"read the passphrase from FILE (default: {_PASSPHRASE}, else asked)",
        ),
        ("--key-file", "use the content of FILE as the key"),
    ):
        secret.add_argument(option, metavar="FILE", help=does)
    shared.flag(secret, "--plain", "do not encrypt")
    add.add_argument(
        "--every",
        type=_interval,
        metavar="10m",
        help="how often the worker syncs, or `never` (default: the setting sync.every)",
    )
    shared.add_subcommand(
        group, "status", "show targets and machines", "ctx sync status\nctx sync status --json"
    )
    remove = shared.add_subcommand(
        group,
        "remove",
        "stop syncing with a target; what it contains stays",
        "ctx sync remove home",
    )
    remove.add_argument("name", metavar="NAME", help="the target")


def _interval(text: str) -> str:
    if text != target_settings.NEVER and target_settings.seconds_of(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an interval, such as 10m or 1h")
    return text


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    store = settings.user_store
    if settings.database != store.database:
        raise UsageError(
            "`ctx sync` works with the user store.", hint="Leave out --db, and unset CTX_DB."
        )
    if options.subcommand == "add" and settings.is_in_agents_shell:
        raise UsageError(
            "Only you decide where your memory is sent, not an agent.",
            hint="Run this command in your own terminal.",
        )
    with _opened(settings) as connection:
        match options.subcommand:
            case "add":
                _check_secret_is_used(options)
                place = options.name, settings.expanded(options.place), settings.folder
                added = sync.add(
                    store,
                    connection,
                    place,
                    options.every or "",
                    lambda new: _secret(options, settings, new),
                    is_stated=bool(options.plain or options.key_file or options.passphrase_file),
                    default_every=_default_every(settings),
                )
                output.show(added, render_add)
            case "status":
                every = _default_every(settings)
                output.show(sync.status(store, connection, every), render_status)
            case "remove":
                output.show(sync.remove(store, connection, options.name), render_remove)
            case _:
                with output.progress("Syncing") as tick:
                    done = sync.sync(
                        store, connection, options.name, dry_run=options.dry_run, tick=tick
                    )
                output.show(done, render)
                return 1 if any(target.problem for target in done.targets) else 0
    return 0


def _default_every(settings: Settings) -> str:
    file = settings.user_store.config_file
    return survey(file, None, settings.environment, settings.overrides).text("sync.every")


@contextmanager
def _opened(settings: Settings) -> Iterator[Connection]:
    path = settings.database
    with disk.explain_errors("making the user store's folder"):
        disk.make_folder(settings.user_store.home)
    with user_store.writing(path) as connection:
        yield connection


def _check_secret_is_used(options: argparse.Namespace) -> None:
    option = "--key-file" if options.key_file else "--passphrase-file"
    is_given = options.key_file or options.passphrase_file
    if is_given and team_connection.is_team(options.place):
        raise UsageError(
            f"ctx does not encrypt what it stores on a PostgreSQL server: {option} has no use.",
            hint="Leave it out. The roles of the server decide who may read the memory.",
        )


def _secret(options: argparse.Namespace, settings: Settings, is_new: bool) -> bytes | None:
    """The passphrase or key, in the order of the help; None for no encryption."""
    if options.plain:
        return None
    if file := options.key_file or options.passphrase_file:
        path = os.path.abspath(os.path.join(settings.folder, settings.expanded(file)))
        hint = "To make a key: `openssl rand -base64 32 > FILE`" if options.key_file else None
        try:
            data = disk.read_plain(path, _LARGEST_SECRET).strip(b"\r\n")
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.", hint=hint) from error
        return data if options.key_file else data.partition(b"\n")[0].strip(b"\r")
    if given := settings.environment.get(_PASSPHRASE):
        return given.encode("utf-8", "surrogateescape")
    if not surroundings.stdin_is_terminal():
        raise ConfirmationNeeded(
            "The target is to be encrypted, and there is no terminal to ask for a passphrase.",
            hint=f"Set {_PASSPHRASE}, or use --passphrase-file, --key-file or --plain.",
        )
    secret = surroundings.read_secret("Passphrase: ")
    if is_new and secret != surroundings.read_secret("Again: "):
        raise UsageError("The passphrases differ.", hint="Try again.")
    return secret.encode("utf-8", "surrogateescape")


def render_add(added: SyncAddResult) -> list[Block]:
    how = _protection(added.kind, added.encrypted)
    what = {
        "folder": "the folder",
        "git-remote": "the git repository",
        "postgresql": "the PostgreSQL server",
    }[added.kind]
    verb = "Added" if added.added else "Changed" if added.changed else "Unchanged"
    blocks: list[Block] = [Line(f"{verb} {added.name}: {what} {from_home(added.place)}, {how}.")]
    if added.batches:
        blocks.append(Line(f"It already has {count(added.batches, 'batch', 'batches')}."))
    if added.unopened:
        batches = count(len(added.unopened), "batch", "batches")
        names = ", ".join(added.unopened[:3]) + ", …" * (len(added.unopened) > 3)
        blocks += [
            Line(f"Encrypted with another passphrase or key: {batches} ({names})."),
            Line("If none of your machines wrote that, delete it."),
        ]
    return [*blocks, Line(f"To send and receive now: `ctx sync {added.name}`")]


def _protection(kind: TargetKind, encrypted: bool) -> str:
    """Who can read what is in a target."""
    if kind == "postgresql":
        return "readable by its members"
    return "encrypted" if encrypted else "not encrypted"


def render(done: SyncResult) -> list[Block]:
    blocks: list[Block] = []
    for target in done.targets:
        blocks += [
            Line(f"{target.name}: {_exchanged(target, dry_run=done.dry_run)}"),
            *listing(("left alone", "why"), target.unread),
            *([Line(target.problem)] if target.problem and target.locked else []),
        ]
    if done.conflicts:
        edits = count(done.conflicts, "text")
        blocks.append(Line(f"{edits} edited on two machines at once: `ctx review`"))
    return blocks


def _exchanged(target: TargetResult, *, dry_run: bool) -> str:
    if target.problem and not target.locked:
        return target.problem
    would = "would have " if dry_run else ""
    parts = []
    if target.received_records:
        parts.append(f"{would}received {count(target.received_records, 'record')}")
    if target.sent_records:
        parts.append(f"{would}sent {count(target.sent_records, 'record')}")
    if target.scrubbed_records:
        parts.append(f"{would}scrubbed {count(target.scrubbed_records, 'record')}")
    if target.rewritten_batches:
        batches = count(target.rewritten_batches, "batch", "batches")
        parts.append(f"{would}removed what was scrubbed from {batches}")
    return f"{', '.join(parts)}." if parts else "nothing to send or receive."


def render_status(status: SyncStatus) -> list[Block]:
    if not status.targets:
        return [Line("No targets. To add one: `ctx sync add NAME DIR`")]
    blocks: list[Block] = []
    for target in status.targets:
        blocks += _status_blocks(target)
    return blocks


def _status_blocks(target: TargetStatus) -> list[Block]:
    how = _protection(target.kind, target.encrypted)
    synced = f"{age_text(target.synced_at)} ago" if target.synced_at else "never"
    by_worker = (
        "" if target.every == target_settings.NEVER else f", by the worker every {target.every}"
    )
    rows = [
        ("target", f"{target.name}: {from_home(target.place)} ({target.kind}, {how})"),
        ("last sync", f"{synced}{by_worker}"),
        ("to send", count(target.team.to_send if target.team else target.unsent, "record")),
    ]
    if target.team:
        rows += _team_rows(target.team)
    if target.unconfirmed:
        machines = f"{target.unconfirmed:,} of {count(len(target.machines), 'machine')}"
        rows.append(("scrubs", f"not confirmed by {machines}"))
    if target.problem:
        rows.append(("problem", target.problem))
    for each in target.machines:
        notes = ["this machine"] if each.this else [f"sent {age_text(each.sent_at)} ago"]
        if not each.confirmed:
            notes.append("has not confirmed a scrub")
        rows.append(("machine", f"{each.machine} ({', '.join(notes)})"))
    return [Table(("what", "value"), rows, ("field", ""))]


def _team_rows(team: TeamStatus) -> list[tuple[str, str]]:
    rows = [("to receive", count(team.to_receive, "record"))]
    if team.staying:
        rows.append(("stays here", f"{count(team.staying, 'record')} that you may not send"))
    for each in team.projects:
        members = count(each.members, "member")
        rows.append(("project", f"{each.project} (you are {_ROLES[each.role]}, {members})"))
    return rows


def render_remove(removed: SyncRemoveResult) -> list[Block]:
    blocks: list[Block] = [
        Line(f"Removed {removed.name}. {from_home(removed.place)} keeps what it contains.")
    ]
    if not removed.announced:
        blocks.append(Line("It could not be reached, so other machines still list this one."))
    return blocks
