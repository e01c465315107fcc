"""Checks whether a project is the trusted one: the same repository at the same path.

A repository with the marker is the trusted one, also after its history was rewritten (an amended
first commit, an orphan branch). Only the URLs of its trusted remotes and the owner of its git
folder are compared then. The marker file has a stamp of the config, so that mostly no process is
needed.

Without the marker it may be a new clone: then its root commits must match as well. What was unknown
when it was trusted (no commit, a shallow clone) is not compared, and is stored once it is known:
trust only narrows. A repository without a remote is recognised by its marker alone: a remote that
is added to it is stored, but a clone at its path does not have the marker and is not trusted. If
another repository is at the path, the file is removed, so that hooks do not trust it either.
"""

import contextlib
import json
import os
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from ctx import disk, interrupts, layout
from ctx.errors import DiskFailure, GitFailure, LockConflict
from ctx.layout import Project
from ctx.project import repository_identity, trust_list
from ctx.project.repository_identity import Identity, IdentitySnapshot, owner_differs, roots_differ
from ctx.project.trust_list import TrustEntry

BROKEN = f"{trust_list.NAME}.broken"
NOTICE = f"{trust_list.NAME}.adopted"
"""The file with the number of entries that got an identity, until the user was told."""

_WAIT_S = 10.0


class Verdict(NamedTuple):
    """Whether a project store is trusted, and what has changed since it was trusted."""

    is_trusted: bool
    differs: tuple[str, ...] = ()
    """Clauses such as `its remote is now "a", was "b"`; empty if it was never trusted."""

    @property
    def reason(self) -> str:
        if self.differs:
            return f"This project's store is not trusted any more: {' and '.join(self.differs)}"
        return "This project has a store that is not trusted"

    @property
    def sentence(self) -> str:
        """Why nothing of the store is shown, and what to do about it."""
        return f"{self.reason}. Nothing of it is shown. To review and trust it: `ctx trust`"


TRUSTED = Verdict(True)
NEVER_TRUSTED = Verdict(False)


def verify(home: str, project: Project) -> Verdict:
    """Whether this is the repository that was trusted at this path.

    A new clone of the same repository gets its marker back; another repository loses it.
    """
    known = trust_list.find(home, project)
    if known is not None and not known.marker:
        adopt(home, project)
        known = trust_list.find(home, project)
    if known is None:
        return NEVER_TRUSTED
    if not known.marker:
        # The list cannot be written, so it is unchanged.
        return TRUSTED
    kept = trust_list.read_key(project, known.key)
    if kept.get("marker") != known.marker:
        return _without_marker(home, project, known, kept)
    owner = trust_list.owner_of(project)
    if known.owner not in (None, owner):
        return _refuse_project(home, project, known, (owner_differs(known, owner),))
    try:
        return _with_marker(home, project, known, kept)
    except GitFailure:
        # Without git nothing can be compared: the marker alone decides, as in a hook.
        return TRUSTED


def _with_marker(home: str, project: Project, known: TrustEntry, kept: dict[str, Any]) -> Verdict:
    """Check a project with the marker: its history may have been rewritten, its remotes not."""
    stamp, head = repository_identity.stamp_of(project), repository_identity.head_of(project)
    is_same_config = kept.get("stamp") == stamp
    is_learned = known.has_given and (known.roots or kept.get("head") == head)
    if is_same_config and is_learned:
        return TRUSTED
    remotes = known.remotes if is_same_config else repository_identity.remotes_of(project)
    roots = known.roots or repository_identity.roots_of(project, head)
    identity = Identity(roots, remotes, known.owner)
    if differs := repository_identity.differences(known, identity):
        return _refuse_project(home, project, known, differs)
    _learn(home, project, known, identity)
    with contextlib.suppress(OSError):
        _write_key(project, known, head, stamp)
    return TRUSTED


def _without_marker(
    home: str, project: Project, known: TrustEntry, kept: dict[str, Any]
) -> Verdict:
    """Check a project at a trusted path without the marker: it may be a new clone of the same
    repository."""
    # A commit id stands for its whole history: a refused history is not walked again.
    is_refused = bool(known.roots) and kept.get("refused") == _refusal(project)
    snapshot = repository_identity.take_identity(project, walking=not is_refused)
    differs = repository_identity.differences(known, snapshot.identity)
    if not known.remotes:
        # Anybody's clone of a repository without a remote has the same first commits.
        differs = (*differs, _NO_MARKER)
    if differs:
        if is_refused or roots_differ(known) not in differs:
            return Verdict(False, differs)
        return _refuse_project(home, project, known, differs, snapshot)
    try:
        _discard_indexes(project, known.key)
    except OSError:
        return Verdict(False, (_OLD_INDEXES,))
    _learn(home, project, known, snapshot.identity)
    with contextlib.suppress(OSError):
        _write_key(project, known, snapshot.head, snapshot.stamp)
    return TRUSTED


_NO_MARKER = "the marker that `ctx trust` left in it is not there"
_OLD_INDEXES = "the indexes that lie in its git folder cannot be removed"


def trusted_project(home: str, folder: str) -> Project | None:
    """The project here, if it has a trusted store."""
    project = layout.find_project(folder, home)
    return project if project and verify(home, project).is_trusted else None


def trust_project(
    home: str, project: Project, who: str, at: str, remotes: Collection[str] | None = None
) -> bool:
    """Trust a project from now on. False if it is trusted already; nothing is changed then.

    `remotes` names those whose branches are given to agents. What is in the working tree now is
    given too. A list that cannot be read is renamed to `BROKEN` first. Existing indexes are
    removed, because anybody may have written them.
    """
    is_trusted = verify(home, project).is_trusted
    before, snapshot = trust_list.find(home, project), repository_identity.take_identity(project)
    chosen = repository_identity.default_remotes(snapshot.identity.remotes)
    if remotes is not None:
        chosen = tuple(each for each in snapshot.identity.remotes if each[0] in remotes)
    if is_trusted and (remotes is None or (before and before.remotes == chosen)):
        return False
    key, folder = trust_list.key_of(project), trust_list.folder_of(project)
    known = TrustEntry(
        key=key,
        root=project.root,
        at=at,
        identity=who,
        marker=os.urandom(16).hex(),
        roots=snapshot.identity.roots,
        remotes=chosen,
        owner=snapshot.identity.owner,
    )
    with _lock_list(home, "ctx trust"), disk.explain_errors("writing down what is trusted"):
        if trust_list.find(home, project) != before and trust_list.is_trusted(home, project):
            # Another process was faster.
            return False
        entries = trust_list.read_list(home)
        if entries is None:
            entries = {}
            if os.path.lexists(trust_list.path_of(home)):
                os.replace(trust_list.path_of(home), os.path.join(home, BROKEN))
        _discard_indexes(project, key)
        _give_tree(home, project, known)
        _write_key(project, known, snapshot.head, snapshot.stamp)
        if key != folder:
            entries.pop(folder, None)
        interrupts.defer()
        _write_list(home, _with_entry(entries, known))
    return True


def revoke(home: str, project: Project) -> bool:
    """Revoke the trust of a project; whether it was trusted."""
    from ctx.project.given import GivenObjects

    keys = {trust_list.key_of(project), trust_list.folder_of(project)}
    for key in keys:
        with contextlib.suppress(OSError):
            disk.discard(trust_list.key_file(project, key))
    GivenObjects(home, project).forget()
    return _remove(home, keys)


def revoke_folder(home: str, root: str) -> bool:
    """Revoke the trust of a folder whose project may be gone."""
    keys = {trusted.key for trusted in trust_list.all_entries(home) if trusted.root == root}
    return _remove(home, keys)


def _remove(home: str, keys: set[str]) -> bool:
    if keys.isdisjoint(trust_list.read_list(home) or {}):
        return False
    with (
        _lock_list(home, "ctx trust --revoke"),
        disk.explain_errors("writing down what is trusted"),
    ):
        # A list that became unreadable in the meantime is left as it is.
        entries = trust_list.read_list(home) or {}
        left = {key: entry for key, entry in entries.items() if key not in keys}
        if left != entries:
            interrupts.defer()
            _write_list(home, left)
    return True


def adopt(home: str, here: Project | None = None) -> None:
    """Add the current identity to entries of an old ctx that stored only paths.

    An entry whose folder is gone gets a marker that matches nothing.
    """
    by_key: dict[str, tuple[Project | None, IdentitySnapshot]] = {}
    for known in trust_list.all_entries(home):
        if known.marker:
            continue
        is_here = here is not None and known.key in (
            trust_list.key_of(here),
            trust_list.folder_of(here),
        )
        project = here if is_here else _project_of_entry(home, known)
        if project is not None:
            by_key[known.key] = (project, repository_identity.take_identity(project))
        elif not os.path.exists(known.key.partition("//")[0]):
            by_key[known.key] = (None, IdentitySnapshot(Identity((), (), None), "", ""))
    if not by_key:
        return
    # If the list cannot be written, the next process tries again.
    with (
        contextlib.suppress(DiskFailure, LockConflict),
        _lock_list(home, "ctx trust"),
        disk.explain_errors("writing down what is trusted"),
    ):
        entries = trust_list.read_list(home) or {}
        # Another process may have been faster.
        left = [known for known in trust_list.all_entries(home) if not known.marker]
        adopted = [known for known in left if known.key in by_key]
        for known in adopted:
            project, snapshot = by_key[known.key]
            known = known._replace(
                marker=os.urandom(16).hex(),
                roots=snapshot.identity.roots,
                remotes=repository_identity.default_remotes(snapshot.identity.remotes),
                owner=snapshot.identity.owner,
            )
            if project is not None:
                _give_tree(home, project, known)
                with contextlib.suppress(OSError):
                    _write_key(project, known, snapshot.head, snapshot.stamp)
            entries = _with_entry(entries, known)
        if adopted:
            _write_list(home, entries)
            disk.replace(os.path.join(home, NOTICE), b"%d\n" % len(adopted))


def take_adopted_count(home: str) -> int:
    """How many entries got an identity since the last call."""
    path = os.path.join(home, NOTICE)
    try:
        count = int(disk.read_plain(path, 100))
        os.unlink(path)
    except (OSError, ValueError):
        return 0
    return count


def _project_of_entry(home: str, known: TrustEntry) -> Project | None:
    """The project of an entry, if it still exists."""
    project = layout.find_project(known.root, home)
    keys = (trust_list.key_of(project), trust_list.folder_of(project)) if project else ()
    return project if known.key in keys else None


def _learn(home: str, project: Project, known: TrustEntry, now: Identity) -> None:
    """Store parts of the identity that were unknown before, so that they must match later."""
    roots = known.roots or now.roots
    remotes = known.remotes or repository_identity.default_remotes(now.remotes)
    if known.has_given and (roots, remotes) == (known.roots, known.remotes):
        return
    if not known.has_given:
        # An older ctx gave everything that was in the tree.
        _give_tree(home, project, known)
    with (
        contextlib.suppress(DiskFailure, LockConflict),
        _lock_list(home, "ctx trust"),
        disk.explain_errors("writing down what is trusted"),
    ):
        entries = trust_list.read_list(home) or {}
        entry = entries.get(known.key)
        if isinstance(entry, dict) and entry.get("marker") == known.marker:
            # Another process may have learned it first.
            entry["roots"] = entry.get("roots") or list(roots)
            entry["remotes"] = entry.get("remotes") or dict(remotes)
            _write_list(home, entries)


def _give_tree(home: str, project: Project, known: TrustEntry) -> None:
    from ctx.project.given import GivenObjects

    GivenObjects(home, project, known).add_tree()


def _refuse_project(
    home: str,
    project: Project,
    known: TrustEntry,
    differs: tuple[str, ...],
    snapshot: "IdentitySnapshot | None" = None,
) -> Verdict:
    """Remove the marker, so that hooks do not trust it either. If the root commits differ, that is
    stored in its place, because finding it out is slow."""
    path = trust_list.key_file(project, known.key)
    with contextlib.suppress(DiskFailure, LockConflict, OSError), _lock_list(home, "ctx trust"):
        if trust_list.find(home, project) != known:
            # It was trusted again in the meantime.
            pass
        elif snapshot and roots_differ(known) in differs:
            _write(path, {"refused": f"{snapshot.head} {snapshot.stamp}"})
        else:
            disk.discard(path)
    return Verdict(False, differs)


def _refusal(project: Project) -> str:
    """What `_refuse_project` would keep about this project now."""
    with contextlib.suppress(GitFailure):
        head = repository_identity.head_of(project)
        return f"{head} {repository_identity.stamp_of(project)}"
    return ""


def _discard_indexes(project: Project, key: str) -> None:
    """Remove the memory indexes of every working tree, but not the code index."""
    import shutil

    local = project.local
    others = os.path.dirname(local)
    is_alone = key == trust_list.folder_of(project)
    folders = [local] if is_alone else [os.path.join(others, name) for name in disk.names(others)]
    for folder in folders:
        indexes = os.path.join(folder, "index")
        if os.path.islink(folder) or os.path.islink(indexes):
            continue
        for name in disk.names(indexes):
            if not name.startswith(layout.CODE_INDEX):
                path = os.path.join(indexes, name)
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                else:
                    disk.discard(path)


def _with_entry(entries: dict[str, Any], known: TrustEntry) -> dict[str, Any]:
    """The list with an entry added; fields of a newer ctx are kept."""
    before = entries.get(known.key)
    derived = ("key", "has_given")
    entry = {name: value for name, value in known._asdict().items() if name not in derived}
    entry["remotes"] = dict(known.remotes)
    return {**entries, known.key: {**(before if isinstance(before, dict) else {}), **entry}}


def _write_key(project: Project, known: TrustEntry, head: str, stamp: str) -> None:
    path = trust_list.key_file(project, known.key)
    _write(path, {"marker": known.marker, "head": head, "stamp": stamp})


def _write(path: str, value: dict[str, Any]) -> None:
    disk.make_folder(os.path.dirname(path))
    disk.replace(path, f"{json.dumps(value)}\n".encode())


def _write_list(home: str, entries: dict[str, Any]) -> None:
    # A path may be any bytes: what is not text is escaped and restored when read.
    text = json.dumps(entries, indent=2, sort_keys=True)
    disk.replace(trust_list.path_of(home), f"{text}\n".encode())


def _lock_list(home: str, doing: str) -> AbstractContextManager[None]:
    """A lock for one writer at a time, so that no entry is lost."""
    from ctx import locks

    return locks.hold(f"{trust_list.path_of(home)}.lock", doing, _WAIT_S)
