"""Which project stores a person trusts, in `CTX_HOME/trusted.json`.

A cloned repository is a stranger: until it is trusted, hooks say of its memory only that it
exists. Trust is given to a repository, and so to all of its working trees: the name under which
it is kept is the git folder that they share. It must be that folder which knows the working
tree: a `.git` that came out of an archive can point to any repository, and would be trusted
like that one. Where it does not, and outside of git, trust is for the one folder.

A list that cannot be read trusts nobody. Hooks load this module: it imports little, and they
only read.
"""

import json
import os
from typing import NamedTuple

from ctx import disk, interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from ctx.checkouts import Checkout
    from ctx.layout import Project

NAME = "trusted.json"
BROKEN = f"{NAME}.broken"

_LARGEST = 4 * 1024 * 1024
_WAIT_S = 10.0


class Trusted(NamedTuple):
    """A project store that is trusted."""

    key: str
    root: str
    """The project's folder when it was trusted; a working tree of the repository, if in git."""
    at: str
    identity: str
    """Who trusts it, as git names them."""


def is_trusted(home: str, project: "Project") -> bool:
    return find(home, project) is not None


def find(home: str, project: "Project") -> Trusted | None:
    """How a project is trusted; None where it is not.

    It may have been trusted before it became a git repository, then as a folder.
    """
    entries = _read(home)
    return entries.get(key_of(project)) or entries.get(_folder_of(project))


def everything(home: str) -> list[Trusted]:
    """All that is trusted, by the folder."""
    return sorted(_read(home).values(), key=lambda trusted: (trusted.root, trusted.key))


def is_broken(home: str) -> bool:
    """Whether there is a list that cannot be read."""
    return os.path.lexists(path_of(home)) and _entries(home) is None


def trust(home: str, project: "Project", identity: str, at: str) -> bool:
    """Trust a project from now on. False: it is trusted already, and nothing was changed.

    A list that cannot be read is put aside first, under the name of `BROKEN`.
    """
    with _locked(home, "ctx trust"), disk.explained("writing down what is trusted"):
        if is_trusted(home, project):
            return False
        entries = _entries(home)
        if entries is None:
            entries = {}
            if os.path.lexists(path_of(home)):
                os.replace(path_of(home), os.path.join(home, BROKEN))
        entries[key_of(project)] = {"root": project.root, "at": at, "identity": identity}
        _write(home, entries)
    return True


def revoke(home: str, project: "Project") -> bool:
    """Trust a project no longer; whether it was trusted."""
    return _remove(home, {key_of(project), _folder_of(project)})


def revoke_folder(home: str, root: str) -> bool:
    """The same for a project that may be gone: what stands in its place later is another one."""
    return _remove(home, {trusted.key for trusted in everything(home) if trusted.root == root})


def _remove(home: str, keys: set[str]) -> bool:
    if not keys.intersection(_read(home)):
        return False
    with _locked(home, "ctx trust --revoke"), disk.explained("writing down what is trusted"):
        # A list that broke in the meantime trusts nobody, and stays as it is.
        entries = _entries(home) or {}
        left = {key: entry for key, entry in entries.items() if key not in keys}
        if left != entries:
            _write(home, left)
    return True


def path_of(home: str) -> str:
    return os.path.join(home, NAME)


def key_of(project: "Project") -> str:
    """Under which name a project is trusted. No real path has `//` in it."""
    checkout = project.checkout
    if checkout is None or not _is_at_home(checkout):
        return _folder_of(project)
    inside = os.path.relpath(project.root, checkout.top)
    common = os.path.realpath(checkout.common_dir)
    return common if inside == os.curdir else f"{common}//{inside}"


def _folder_of(project: "Project") -> str:
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


def _read(home: str) -> dict[str, Trusted]:
    """What is trusted, as far as it can be understood."""
    found = {}
    for key, entry in (_entries(home) or {}).items():
        if isinstance(entry, dict):
            said = [entry.get(name, "") for name in ("root", "at", "identity")]
            if all(isinstance(each, str) for each in said):
                found[key] = Trusted(key, *said)
    return found


def _entries(home: str) -> "dict[str, Any] | None":
    """The list as it is written, with whatever a newer ctx keeps in it; None: there is none."""
    try:
        data = disk.read_plain(path_of(home), _LARGEST)
        entries = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return None
    return entries if isinstance(entries, dict) else None


def _write(home: str, entries: "dict[str, Any]") -> None:
    # A path may be any bytes: what is no text is escaped, and comes back as it was.
    text = json.dumps(entries, indent=2, sort_keys=True)
    interrupts.defer()
    disk.replace(path_of(home), f"{text}\n".encode())


def _locked(home: str, doing: str) -> "AbstractContextManager[None]":
    """One writer at a time, so that nobody's trust is lost."""
    from ctx.objects import lock

    return lock.held(f"{path_of(home)}.lock", doing, _WAIT_S)
