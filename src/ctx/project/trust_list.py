"""The list of trusted project stores, `CTX_HOME/trusted.json`, as hooks read it.

Until a cloned repository is trusted, hooks only report that it has memory. Trust belongs to a
repository at a path and covers all of its working trees: the key is their common git folder. That
folder must list the working tree, because a `.git` file from an archive can point to any repository
and would inherit its trust. If it does not, and outside of git, trust covers only the one folder.

The path alone is not enough: something else may be cloned there later. `ctx trust` writes a random
marker to the list and to a file in the git folder, which no clone and no archive contains. A hook
compares the markers and the owner of the folder without starting a process. Processes that have
time to run git check whether it is still the same repository (`project/trust_check.py`); if not,
they remove the file.

A list that cannot be read trusts nobody. Hooks load this module, so it imports little and only
reads.
"""

import json
import os
from typing import NamedTuple

from ctx import disk, layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctx.checkouts import Checkout
    from ctx.layout import Project

NAME = "trusted.json"
_KEY_NAME = "trust.json"

_LARGEST = 4 * 1024 * 1024
_LARGEST_KEY = 64 * 1024


class TrustEntry(NamedTuple):
    """A trusted project store and the identity of its repository."""

    key: str
    root: str
    """The project's folder when it was trusted; a working tree of the repository, if in git."""
    at: str
    identity: str
    """Who trusts it, as git names them."""
    marker: str = ""
    """The marker in the git folder; empty in an entry of an old ctx that stored only paths."""
    roots: tuple[str, ...] = ()
    """The root commits of its history; empty: not known."""
    remotes: tuple[tuple[str, str], ...] = ()
    """The remotes whose branches are given to agents: names, and URLs as
    `repository_identity.comparable` writes them. Empty: it had none."""
    owner: int | None = None
    """The user id that owns the git folder; None: not known."""
    has_given: bool = True
    """Whether what was in the tree when it was trusted was recorded (`project/given.py`). An older
    ctx did not do that."""


def is_trusted(home: str, project: "Project") -> bool:
    """Whether a project is trusted according to plain files."""
    known = find(home, project)
    if known is None:
        return False
    if not known.marker:
        # The identity of its repository has not been determined yet.
        return True
    is_same_owner = known.owner in (None, owner_of(project))
    return is_same_owner and read_key(project, known.key).get("marker") == known.marker


def find(home: str, project: "Project") -> TrustEntry | None:
    """The entry of a project; None if there is none.

    A project that was trusted before it became a git repository has the entry of a folder.
    """
    entries = _valid_entries(read_list(home) or {})
    return entries.get(key_of(project)) or entries.get(folder_of(project))


def all_entries(home: str) -> list[TrustEntry]:
    """All entries, sorted by folder."""
    known = _valid_entries(read_list(home) or {})
    return sorted(known.values(), key=lambda trusted: (trusted.root, trusted.key))


def is_broken(home: str) -> bool:
    """Whether there is a list that cannot be read."""
    return os.path.lexists(path_of(home)) and read_list(home) is None


def path_of(home: str) -> str:
    return os.path.join(home, NAME)


def key_of(project: "Project") -> str:
    """The key of a project in the list. No real path contains `//`."""
    checkout = project.checkout
    if checkout is None or not _is_at_home(checkout):
        return folder_of(project)
    inside = os.path.relpath(project.root, checkout.top)
    common = os.path.realpath(checkout.common_dir)
    return common if inside == os.curdir else f"{common}//{inside}"


def folder_of(project: "Project") -> str:
    return os.path.realpath(project.root)


def _is_at_home(checkout: "Checkout") -> bool:
    """Whether the repository also lists this working tree as its own.

    The main working tree contains the git folder. For a linked one, the git folder stores its path.
    """
    link = os.path.join(checkout.top, ".git")
    if checkout.git_dir == checkout.common_dir:
        return checkout.git_dir == link and not os.path.islink(link)
    git_dir, common_dir = map(os.path.realpath, (checkout.git_dir, checkout.common_dir))
    if os.path.dirname(git_dir) != os.path.join(common_dir, "worktrees"):
        return False
    try:
        pointer = disk.read_plain(os.path.join(git_dir, "gitdir"), _LARGEST)
    except OSError:
        return False
    known = os.path.join(git_dir, os.fsdecode(pointer).rstrip("\n"))
    return os.path.realpath(os.path.dirname(known)) == os.path.realpath(checkout.top)


def key_file(project: "Project", key: str) -> str:
    """The file with the marker, which distinguishes the trusted repository from another one."""
    if key == folder_of(project):
        moved = os.path.join(project.local, _KEY_NAME)
        is_moved = _can_have_moved(project) and os.path.lexists(moved)
        return moved if is_moved else os.path.join(project.store, "local", _KEY_NAME)
    assert project.checkout is not None
    # One repository may hold several project stores.
    name = f"trust-{layout.digest(os.fsencode(key), 8)}.json"
    return os.path.join(project.checkout.common_dir, "ctx", name)


def _can_have_moved(project: "Project") -> bool:
    """Whether the local files of a trusted folder may be in a git folder that was made in it later.

    As with the key, another repository's git folder does not count.
    """
    checkout, local = project.checkout, project.local
    return (
        checkout is not None
        and _is_at_home(checkout)
        and not os.path.islink(local)
        and not os.path.islink(os.path.dirname(local))
    )


def read_key(project: "Project", key: str) -> "dict[str, Any]":
    """The contents of that file; empty if it is missing or unreadable."""
    try:
        parsed = json.loads(disk.read_plain(key_file(project, key), _LARGEST_KEY))
    except (OSError, ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def owner_of(project: "Project") -> int | None:
    """The user id that owns the git folder; without git, the store."""
    try:
        return os.stat(project.checkout.common_dir if project.checkout else project.store).st_uid
    except OSError:
        return None


def read_list(home: str) -> "dict[str, Any] | None":
    """The raw list, including fields of a newer ctx; None if it is missing or unreadable."""
    try:
        data = disk.read_plain(path_of(home), _LARGEST)
        entries = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return None
    return entries if isinstance(entries, dict) else None


def _valid_entries(entries: "dict[str, Any]") -> dict[str, TrustEntry]:
    """The valid entries. An invalid one is kept in the file but grants no trust."""
    by_key = {}
    for key, entry in entries.items():
        if not isinstance(entry, dict):
            continue
        texts = [entry.get(name, "") for name in ("root", "at", "identity", "marker")]
        roots, owner = entry.get("roots", []), entry.get("owner")
        # An older ctx compared only `origin`.
        remotes = entry.get("remotes", {"origin": entry.get("remote") or ""})
        if (
            isinstance(roots, list)
            and isinstance(remotes, dict)
            and all(isinstance(value, str) for value in (*texts, *roots, *remotes.values()))
            and (owner is None or isinstance(owner, int))
        ):
            root, at, identity, marker = texts
            by_key[key] = TrustEntry(
                key=key,
                root=root,
                at=at,
                identity=identity,
                marker=marker,
                roots=tuple(roots),
                remotes=tuple(sorted((name, url) for name, url in remotes.items() if url)),
                owner=owner,
                has_given="remotes" in entry,
            )
    return by_key
