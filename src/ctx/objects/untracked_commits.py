"""Commits made here that no git commit contains yet.

`ctx commit` writes files that git does not track. Until they are in a git commit, `git clean`,
`reset --hard`, `stash` or `checkout -f` can remove them, and `git switch` moves them to another
branch. So every such commit has an entry in the git folder, `untracked/<commit id>`, and copies of
its objects in the staging store. Both stay until a git ref reaches a commit with the files, or
until the user discards the commit.

`untracked_survey` determines which of them belong to the current branch when the branch changes,
and stores the result in the file `untracked.places`. Hooks load this module: it reads small files
and starts no process.
"""

import json
import os
from typing import NamedTuple

from ctx import checkouts, disk
from ctx.checkouts import Checkout
from ctx.ids import ObjectId, is_object_id
from ctx.layout import Project
from ctx.objects.refs import Heads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = "here"
"""It belongs to the current branch."""
RETURNED = "returned"
"""It belongs to the current branch and is a head, but its files were moved out of the working tree.
"""
BEHIND = "behind"
"""The same, but it is not a head."""
PARKED = "parked"
"""It belongs to another branch."""
HELD = "held"
"""Its files are missing in the working tree, and git has them."""

IN_GIT = "git:"
"""In the file of what was made here, before a git commit with such a commit of memory."""

_FOLDER = "untracked"
_DISCARDED = "discarded"
_PLACES = "untracked.places"
# The content of HEAD in a repository whose refs are not plain files.
_REFTABLE = ".invalid"


class UntrackedCommit(NamedTuple):
    """A commit that git may not have."""

    commit: ObjectId
    parents: tuple[ObjectId, ...]
    objects: tuple[ObjectId, ...]
    """The objects that the commit added, including itself."""
    git_commit: str | None = None
    """The git commit that was checked out when this one was made: it cannot contain it."""
    branch: str | None = None
    number: int = 0
    """Increases with every entry. The clock may go back."""
    replaces: tuple[ObjectId, ...] = ()
    """The commits that it amends."""
    is_parked: bool = False
    """Whether its files were moved out of the working tree (see `parked_commits`)."""


def folder(project: Project) -> str:
    return os.path.join(project.local, _FOLDER)


def ids(project: Project) -> list[ObjectId]:
    """The commits that have an entry."""
    return [ObjectId(name) for name in disk.names(folder(project)) if is_object_id(name)]


def read(project: Project, commit: ObjectId) -> UntrackedCommit | None:
    """None if there is no entry, or if it cannot be read."""
    for place in (_FOLDER, _DISCARDED):
        try:
            fields = json.loads(disk.read(os.path.join(project.local, place, commit)))
            return UntrackedCommit(
                commit,
                tuple(map(ObjectId, fields["parents"])),
                tuple(map(ObjectId, fields["objects"])),
                fields["git_commit"],
                fields["branch"],
                int(fields["number"]),
                tuple(map(ObjectId, fields["replaces"])),
                bool(fields["is_parked"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def entry_files(project: Project) -> list[str]:
    """The files of all entries, of discarded commits too."""
    folders = [os.path.join(project.local, name) for name in (_FOLDER, _DISCARDED)]
    return [os.path.join(folder, name) for folder in folders for name in disk.names(folder)]


def write(project: Project, entry: UntrackedCommit) -> None:
    """Add an entry. The caller holds the project's lock."""
    text = json.dumps(entry._asdict())
    with disk.explain_errors("noting a commit that git does not have yet"):
        disk.make_folder(folder(project))
        disk.replace(os.path.join(folder(project), entry.commit), text.encode())
        forget_places(project)


def remove(project: Project, commit: ObjectId) -> None:
    """Remove an entry: git has the commit, or another commit replaced it."""
    with disk.explain_errors("dropping the note of a commit"):
        disk.discard(os.path.join(folder(project), commit))


def discard(project: Project, commit: ObjectId) -> None:
    """Discard a commit. Its entry is kept until garbage collection."""
    target = os.path.join(project.local, _DISCARDED)
    with disk.explain_errors("giving up a commit"):
        disk.make_folder(target)
        os.rename(os.path.join(folder(project), commit), os.path.join(target, commit))
        disk.sync_folder(target)


def discarded_commits(project: Project) -> list[ObjectId]:
    """The discarded commits that can still be restored."""
    names = disk.names(os.path.join(project.local, _DISCARDED))
    return [ObjectId(name) for name in names if is_object_id(name)]


def remove_discarded(project: Project, commit: ObjectId) -> None:
    disk.discard(discarded_file(project, commit))


def discarded_file(project: Project, commit: ObjectId) -> str:
    return os.path.join(project.local, _DISCARDED, commit)


# Which of them count as heads


def current_heads(project: Project) -> list[ObjectId]:
    """The head files of the current branch, and heads without a file.

    If the branch changed since the last survey, these are the head files as they are.
    """
    return _with_returned(project, Heads(project.heads).counted())


def every_head(project: Project) -> list[ObjectId]:
    """The same, however many there are."""
    return _with_returned(project, Heads(project.heads).named())


def _with_returned(project: Project, names: list[ObjectId]) -> list[ObjectId]:
    places = read_places(project) if ids(project) else None
    if not places:
        return names
    returned = {id for id, place in places.items() if place == RETURNED}
    return sorted(returned.union(name for name in names if places.get(name) != PARKED))


def returned_objects(project: Project) -> set[ObjectId]:
    """The commits of the current branch whose files are only in the staging store."""
    if project.checkout is None or not (waiting := ids(project)):
        return set()
    places = read_places(project) or {}
    if RETURNED not in places.values():
        return set()
    back = (read(project, id) for id in waiting if places.get(id) in (RETURNED, BEHIND))
    return {object for entry in back if entry for object in entry.objects}


def read_places(project: Project) -> "dict[ObjectId, str] | None":
    """Where each commit belongs; None if a new survey is needed."""
    assert project.checkout is not None
    try:
        lines = disk.read(places_file(project)).decode("utf-8", "replace").splitlines()
        pairs = (line.partition(" ") for line in lines[1:])
        places = {ObjectId(id): place for id, _, place in pairs}
    except OSError:
        return None
    if not lines or lines[0] != position(project.checkout) or places.keys() != set(ids(project)):
        return None
    return places


def write_places(project: Project, at: str, places: "Mapping[ObjectId, str]") -> None:
    lines = [at, *(f"{id} {place}" for id, place in sorted(places.items()))]
    try:
        disk.replace(places_file(project), "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise disk.failure("noting which commits belong to this branch", error) from error


def forget_places(project: Project) -> None:
    disk.discard(places_file(project))


def position(checkout: Checkout) -> str:
    """The current branch, as far as plain files show it."""
    branch, commit = checkouts.branch_and_commit(checkout)
    if branch == _REFTABLE:
        from ctx import git

        commit = git.rev_parse_head(checkout)
    return f"{branch or '-'} {commit or '-'}"


def places_file(project: Project) -> str:
    return os.path.join(project.local, _PLACES)


def are_places_stale(project: Project) -> bool:
    """Whether the branch or the commits have changed since the last survey."""
    return project.checkout is not None and bool(ids(project)) and read_places(project) is None


def missing(project: Project) -> list[ObjectId] | None:
    """The commits of the current branch whose files are missing; None if a new survey is needed."""
    if project.checkout is None or not ids(project):
        return []
    if (places := read_places(project)) is None:
        return None
    here = (id for id, place in places.items() if place == HERE)
    return [id for id in here if not os.path.exists(committed_path(project, id))]


def committed_path(project: Project, id: ObjectId) -> str:
    """The path of a committed object, while it exists."""
    return f"{project.objects}/{id[:2]}/{id}"
