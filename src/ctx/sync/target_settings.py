"""The targets that the user has added: `sync/NAME.json`, and the keys in `sync/NAME.key`.

The key is derived from the passphrase, which is not stored. So the worker can sync without asking.
`sync/NAME/` is the private clone of a git target.
"""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Literal, NamedTuple

import msgspec

from ctx import disk, locks
from ctx.errors import SyncFailure, UsageError
from ctx.layout import UserStore
from ctx.sync import team_connection
from ctx.sync.batch_files import Keys
from ctx.sync.batch_target import BatchTarget
from ctx.sync.folder_target import FolderTarget
from ctx.sync.git_target import GitTarget, shown
from ctx.sync.team_target import TeamTarget

TargetKind = Literal["folder", "git-remote", "postgresql"]

NEVER = "never"
COMMANDS = ("run", "add", "status", "remove")
"""Names that a target cannot have."""

_LOCK = "lock"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_SCP_LIKE = re.compile(r"[^/:]+:[^:]")
_EVERY = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class SyncTarget(msgspec.Struct, frozen=True):
    name: str
    kind: TargetKind
    place: str
    """A folder, the URL or path of a git repository, or the URL of a PostgreSQL server."""
    replica: str
    """The id of this machine in the target."""
    encrypted: bool
    every: str = ""
    """How often the worker syncs; empty for the setting `sync.every`."""


class TargetPlace(NamedTuple):
    kind: TargetKind
    place: str


def seconds_of(every: str) -> int | None:
    """`10m` in seconds; None for `never`."""
    match = _EVERY.fullmatch(every)
    return int(match[1]) * _SECONDS[match[2]] if match else None


def place_of(text: str, folder: str) -> TargetPlace:
    """Tell a folder, a git repository and a server apart. Paths are relative to a folder."""
    if team_connection.is_team(text):
        team_connection.connection_options(text)
        return TargetPlace("postgresql", text)
    mark = "://" in text
    if not text or text.startswith("-"):
        raise UsageError(f"{text!r} is neither a folder nor a git repository.")
    path = os.path.abspath(os.path.join(folder, text))
    if mark or (_SCP_LIKE.match(text) and not os.path.exists(path)):
        return TargetPlace("git-remote", text)
    return TargetPlace("git-remote" if text.endswith(".git") or _is_bare(path) else "folder", path)


def _is_bare(path: str) -> bool:
    return all(os.path.exists(os.path.join(path, name)) for name in ("HEAD", "objects", "refs"))


def targets(store: UserStore) -> list[SyncTarget]:
    """All targets, by name."""
    names = [name for name in disk.names(store.sync) if name.endswith(".json")]
    return [_read(store, name.removesuffix(".json")) for name in names]


def target_named(store: UserStore, name: str) -> SyncTarget | None:
    if not _NAME.fullmatch(name) or name in COMMANDS:
        raise UsageError(
            f"{name!r} cannot be the name of a target.",
            hint="Use lowercase letters, digits, - and _, such as `home`.",
        )
    return _read(store, name) if os.path.exists(_path(store, name, "json")) else None


def add_command(target: SyncTarget) -> str:
    """The command that adds a target, which also renews its keys."""
    return f"`ctx sync add {target.name} {shlex.quote(shown(target.place))}`"


def keys_of(store: UserStore, target: SyncTarget) -> Keys:
    keys = stored_keys(store, target)
    if keys is None:
        path = _path(store, target.name, "key")
        raise SyncFailure(
            f"The key of the target {target.name} is missing ({path}).",
            hint=f"`ctx sync add {target.name} PLACE` asks for the passphrase again.",
        )
    return keys


def stored_keys(store: UserStore, target: SyncTarget) -> Keys | None:
    """The keys of a target, none if it is not encrypted; None if they cannot be read."""
    if not target.encrypted:
        return {}
    try:
        lines = disk.read(_path(store, target.name, "key")).decode("ascii").splitlines()
        pairs = [line.split() for line in lines]
        return {bytes.fromhex(salt): bytes.fromhex(key) for salt, key in pairs} or None
    except (OSError, ValueError):
        return None


def keep(store: UserStore, target: SyncTarget, keys: Keys) -> None:
    """Store a target and its keys."""
    with disk.explain_errors("storing a sync target"):
        disk.make_folder(store.sync)
        if target.encrypted:
            lines = [f"{salt.hex()} {key.hex()}\n" for salt, key in keys.items()]
            disk.replace(_path(store, target.name, "key"), "".join(lines).encode())
        settings = msgspec.json.format(msgspec.json.encode(target), indent=2)
        disk.replace(_path(store, target.name, "json"), settings + b"\n")


def forget(store: UserStore, name: str) -> None:
    with disk.explain_errors("removing a sync target"):
        disk.discard(_path(store, name, "json"))
        disk.discard(_path(store, name, "key"))
    GitTarget("", _clone(store, name)).purge()


@contextmanager
def try_hold(store: UserStore, seconds: float = 0) -> Iterator[bool]:
    """Hold the lock of all targets; yields False if another process holds it."""
    with ExitStack() as stack:
        with disk.explain_errors("taking the lock of sync targets"):
            path = os.path.join(store.sync, _LOCK)
            fd = stack.enter_context(locks.try_hold(path, seconds))
        yield fd is not None


@contextmanager
def open_target(store: UserStore, target: SyncTarget) -> Iterator[BatchTarget]:
    match target.kind:
        case "postgresql":
            with closing(TeamTarget(target.place)) as team:
                yield team
        case "git-remote":
            yield GitTarget(target.place, _clone(store, target.name))
        case "folder":
            yield FolderTarget(target.place)


def _read(store: UserStore, name: str) -> SyncTarget:
    path = _path(store, name, "json")
    try:
        return msgspec.json.decode(disk.read(path), type=SyncTarget)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SyncFailure(
            f"The settings of the target {name} cannot be read ({path}).",
            hint="Delete this file, and add the target again with `ctx sync add`.",
        ) from error


def _path(store: UserStore, name: str, suffix: str) -> str:
    return os.path.join(store.sync, f"{name}.{suffix}")


def _clone(store: UserStore, name: str) -> str:
    return os.path.join(store.sync, name)
