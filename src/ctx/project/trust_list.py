"""Which project stores a person trusts, in `CTX_HOME/trusted.json`, as far as hooks ask.

A cloned repository is a stranger: until it is trusted, hooks say of its memory only that it
exists. Trust is given to a repository at a path, and so to all of its working trees: the name under
which it is kept is the git folder that they share. It must be that folder which knows the working
tree: a `.git` that came out of an archive can point to any repository, and would be trusted
like that one. Where it does not, and outside of git, trust is for the one folder.

The path alone is not enough: something else may be cloned there later. `ctx trust` puts a random
marker into the list and into a file in the git folder, which no clone and no archive brings along.
A hook compares the two and who owns the folder, which takes no process. Whether it is still the
same repository (`project/trust_check.py`) is for processes that have the time to ask git; they
remove the file where it is not.

A list that cannot be read trusts nobody. Hooks load this module: it imports little, and they
only read.
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

_LARGEST = 4 * 1024 * 1024
_LARGEST_KEY = 64 * 1024


class TrustEntry(NamedTuple):
    """A project store that is trusted, and what its repository is known by."""

    key: str
    root: str
    """The project's folder when it was trusted; a working tree of the repository, if in git."""
    at: str
    identity: str
    """Who trusts it, as git names them."""
    marker: str = ""
    """What the file in the git folder holds; empty in an entry of a ctx that knew only paths."""
    roots: tuple[str, ...] = ()
    """The commits that its history begins with; none: not known."""
    remote: str = ""
    """The URL of `origin`, as `repository_identity.comparable` writes it; empty: not known."""
    owner: int | None = None
    """The user id that owns the git folder; None: not known."""


def is_trusted(home: str, project: "Project") -> bool:
    """Whether a project is trusted, as far as plain files say so."""
    known = find(home, project)
    if known is None:
        return False
    if not known.marker:
        # Nobody has had the time yet to find out what its repository is known by.
        return True
    is_same_owner = known.owner in (None, owner_of(project))
    return is_same_owner and read_key(project, known.key).get("marker") == known.marker


def find(home: str, project: "Project") -> TrustEntry | None:
    """The entry of a project; None where there is none.

    It may have been trusted before it became a git repository, then as a folder.
    """
    entries = _understood(read_list(home) or {})
    return entries.get(key_of(project)) or entries.get(folder_of(project))


def everything(home: str) -> list[TrustEntry]:
    """All that is trusted, by the folder."""
    known = _understood(read_list(home) or {})
    return sorted(known.values(), key=lambda trusted: (trusted.root, trusted.key))


def is_broken(home: str) -> bool:
    """Whether there is a list that cannot be read."""
    return os.path.lexists(path_of(home)) and read_list(home) is None


def path_of(home: str) -> str:
    return os.path.join(home, NAME)


def key_of(project: "Project") -> str:
    """Under which name a project is trusted. No real path has `//` in it."""
    checkout = project.checkout
    if checkout is None or not _is_at_home(checkout):
        return folder_of(project)
    inside = os.path.relpath(project.root, checkout.top)
    common = os.path.realpath(checkout.common_dir)
    return common if inside == os.curdir else f"{common}//{inside}"


def folder_of(project: "Project") -> str:
    return os.path.realpath(project.root)


def _is_at_home(checkout: "Checkout") -> bool:
    """Whether a working tree belongs to its repository also as the repository sees it.

    The first working tree holds the git folder itself. Of a further one, the git folder knows
    where it lies.
    """
    link = os.path.join(checkout.top, ".git")
    if checkout.git_dir == checkout.common_dir:
        return checkout.git_dir == link and not os.path.islink(link)
    git_dir, common_dir = map(os.path.realpath, (checkout.git_dir, checkout.common_dir))
    if os.path.dirname(git_dir) != os.path.join(common_dir, "worktrees"):
        return False
    try:
        said = disk.read_plain(os.path.join(git_dir, "gitdir"), _LARGEST)
    except OSError:
        return False
    known = os.path.join(git_dir, os.fsdecode(said).rstrip("\n"))
    return os.path.realpath(os.path.dirname(known)) == os.path.realpath(checkout.top)


def key_file(project: "Project", key: str) -> str:
    """Where the marker lies that tells the trusted repository from another one at its path."""
    if key == folder_of(project):
        return os.path.join(project.store, "local", "trust.json")
    assert project.checkout is not None
    # One repository may hold several project stores.
    name = f"trust-{layout.digest(os.fsencode(key), 8)}.json"
    return os.path.join(project.checkout.common_dir, "ctx", name)


def read_key(project: "Project", key: str) -> "dict[str, Any]":
    """What that file says; nothing where there is none, or it cannot be read."""
    try:
        found = json.loads(disk.read_plain(key_file(project, key), _LARGEST_KEY))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def owner_of(project: "Project") -> int | None:
    """The user id that owns the git folder; without git, the store."""
    try:
        return os.stat(project.checkout.common_dir if project.checkout else project.store).st_uid
    except OSError:
        return None


def read_list(home: str) -> "dict[str, Any] | None":
    """The list as it is written, with whatever a newer ctx keeps in it; None: there is none."""
    try:
        data = disk.read_plain(path_of(home), _LARGEST)
        entries = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return None
    return entries if isinstance(entries, dict) else None


def _understood(entries: "dict[str, Any]") -> dict[str, TrustEntry]:
    """The entries that can be understood. One that cannot be trusts nobody, and is kept."""
    found = {}
    for key, entry in entries.items():
        if not isinstance(entry, dict):
            continue
        texts = [entry.get(name, "") for name in ("root", "at", "identity", "marker", "remote")]
        roots, owner = entry.get("roots", []), entry.get("owner")
        if (
            isinstance(roots, list)
            and all(isinstance(each, str) for each in (*texts, *roots))
            and (owner is None or isinstance(owner, int))
        ):
            root, at, identity, marker, remote = texts
            found[key] = TrustEntry(key, root, at, identity, marker, tuple(roots), remote, owner)
    return found
