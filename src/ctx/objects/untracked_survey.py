"""The state of commits that git did not have when they were made.

A commit belongs to the current branch if its parents do: git carries uncommitted files to another
branch under the same condition. Otherwise it is parked until its branch is checked out again. If
its files are missing and no git ref reaches a commit with them, git removed them, and only the
staging store has them.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ctx import git
from ctx.checkouts import Checkout
from ctx.errors import CtxError, DiskFailure, GitFailure, StoreTooLarge
from ctx.ids import ObjectId
from ctx.objects import commits, parked_commits, references, refs, untracked_commits
from ctx.objects.object_store import Reader, decode, read_typed
from ctx.objects.object_types import Commit, WorkCommit
from ctx.objects.refs import Heads
from ctx.objects.untracked_commits import (
    BEHIND,
    HELD,
    HERE,
    PARKED,
    RETURNED,
    UntrackedCommit,
    committed_path,
)

if TYPE_CHECKING:
    from ctx.objects.git_history import GitHistory
    from ctx.objects.repository import Repository

STASHED = "stashed"
DISCARDED_STATE = "thrown away"
DROPPED = "dropped"
"""git had it, and no ref has it now."""


_NONE: Mapping[ObjectId, UntrackedCommit] = MappingProxyType({})


class SurveyedCommit(NamedTuple):
    """A commit made here that no git commit contains."""

    commit: ObjectId
    state: str
    """here, parked, stashed, thrown away or dropped."""
    message: str
    branch: str | None
    """The branch that was checked out when it was made."""
    is_tip: bool = True
    """Whether no other commit in the same state follows it."""


def entries(
    repository: "Repository", dropped: Mapping[ObjectId, UntrackedCommit] = _NONE
) -> dict[ObjectId, UntrackedCommit]:
    """Every commit that git may not have, and `dropped` ones, parents before their children."""
    project = repository.project
    if project.checkout is None:
        return {}
    if os.path.isdir(untracked_commits.folder(project)):
        known = {}
        for id in untracked_commits.ids(project):
            # An unreadable entry is recreated if its commit can be read.
            with suppress(CtxError):
                known[id] = untracked_commits.read(project, id) or entry_of(repository, id)
    else:
        known = _without_entries(repository)
    known = {**dropped, **known}
    # A crash may leave the entry of an amended commit.
    for entry in list(known.values()):
        for old in entry.replaces:
            known.pop(old, None)
    ordered: dict[ObjectId, UntrackedCommit] = {}
    for start in known:
        waiting = [start]
        while waiting:
            entry = known[waiting[-1]]
            before = [id for id in entry.parents if id in known and id not in ordered]
            if before:
                waiting += before
            else:
                ordered.setdefault(entry.commit, entry)
                waiting.pop()
    return ordered


def _without_entries(repository: "Repository") -> dict[ObjectId, UntrackedCommit]:
    """The same for a store of earlier versions: the commit made here last and its ancestors, as far
    as the staging store has copies."""
    with suppress(CtxError):
        last = repository.refs.read(refs.MAIN)
        if last is not None:
            walked = commits.walk_past_damage(repository.staged, [last])
            return {id: entry_of(repository, id) for id, commit in walked if commit is not None}
    return {}


def entry_of(repository: "Repository", commit: ObjectId) -> UntrackedCommit:
    """An entry made from the commit and from the copies in the staging store."""
    value = read_typed(repository.everything, commit, Commit)
    ids: dict[ObjectId, None] = {commit: None}
    waiting = list(references.required_ids(value))
    while waiting:
        id = waiting.pop()
        if id in ids or id not in repository.staged:
            continue
        ids[id] = None
        with suppress(CtxError):
            waiting += references.required_ids(decode(repository.staged.read(id)))
    return UntrackedCommit(commit, value.parents, tuple(ids))


class _GitState(NamedTuple):
    """The result of comparing git and the working tree."""

    known: dict[ObjectId, UntrackedCommit]
    """The commits that git does not contain, parents before their children."""
    places: dict[ObjectId, str]
    """Where every commit with an entry belongs."""
    headless: set[ObjectId]
    """Those that should be heads of this branch but have no head file."""


def _survey_git(
    repository: "Repository",
    checkout: Checkout,
    dropped: Mapping[ObjectId, UntrackedCommit] = _NONE,
) -> _GitState:
    project, reader = repository.project, repository.everything
    every = entries(repository, dropped)
    made = {id: entry for id, entry in every.items() if id not in dropped}
    held = commits_in_git(repository, made)
    known = {id: entry for id, entry in every.items() if id not in held}
    names = set(Heads(project.heads).counted())
    # A commit removes the head files of its parents from the working tree, but not from git.
    last = git.rev_parse_head(checkout)
    tracked = git.names_in(checkout, last, project.heads) if last else []
    base = {*names.difference(known), *map(ObjectId, tracked)}
    places = dict.fromkeys(untracked_commits.ids(project), HELD)
    earlier: set[ObjectId] | None = None
    for id, entry in known.items():
        before = [parent for parent in entry.parents if places.get(parent) != HERE]
        belongs = not before or commits.contain(reader, base, before)
        if not belongs:
            # Its parent may once have been a head of this branch. git no longer has that head file
            # if `git clean` removed the head after it and somebody committed then.
            if earlier is None:
                added = git.branch_adders(checkout, project.heads) if last else {}
                earlier = {ObjectId(os.path.basename(path)) for path in added}
            belongs = commits.contain(reader, base | earlier, before)
        places[id] = HERE if belongs else PARKED
    here = [entry for entry in known.values() if places[entry.commit] == HERE]
    followed = {parent for entry in here for parent in entry.parents}
    tips = {entry.commit for entry in here if entry.commit not in followed}
    # A later commit may have arrived through git.
    tips = {id for id in tips if not commits.contain(reader, base, [id])}
    for entry in here:
        if entry.is_parked:
            places[entry.commit] = RETURNED if entry.commit in tips else BEHIND
    return _GitState(known, places, tips.difference(names))


def survey(repository: "Repository", history: "GitHistory | None" = None) -> list[SurveyedCommit]:
    """Every commit that no git commit contains, and its state, children first.

    This asks git each time. With `history`, it includes the commits that git dropped. Those on
    which staged work or another commit is built count as thrown away.
    """
    project = repository.project
    checkout = project.checkout
    if checkout is None:
        return []
    dropped = history.dropped if history else _NONE
    known, places, headless = _survey_git(repository, checkout, dropped)
    states: dict[ObjectId, str] = {}
    for id, entry in known.items():
        is_gone = id in headless | dropped.keys() or any(
            object_id not in repository.objects for object_id in entry.objects
        )
        here = DISCARDED_STATE if is_gone and not entry.is_parked else HERE
        states[id] = PARKED if places[id] == PARKED else here
    if PARKED in states.values():
        branches = git.adders(checkout, project.heads)
        for id in states:
            before = (os.path.join(project.heads, parent) for parent in base(known, id))
            if states[id] == PARKED and branches.keys().isdisjoint(before):
                states[id] = DISCARDED_STATE
    if DISCARDED_STATE in states.values():
        stashed = git.stash_adders(checkout, project.objects)
        for id in states:
            if states[id] == DISCARDED_STATE and committed_path(project, id) in stashed:
                states[id] = STASHED
    bases = set(_bases_of_chains(repository))
    below = {id for id, entry in known.items() if not bases.isdisjoint((id, *entry.replaces))}
    needed = line(known, below | (known.keys() - dropped.keys()))
    for id in dropped.keys() - needed.keys():
        if states.get(id) == DISCARDED_STATE:
            states[id] = DROPPED
    reader = history.reader if history and dropped else repository.everything
    followed = {(parent, states[id]) for id in states for parent in known[id].parents}
    return [
        SurveyedCommit(
            id, state, message_of(reader, id), known[id].branch, (id, state) not in followed
        )
        for id, state in reversed(list(states.items()))
    ]


def line(
    known: Mapping[ObjectId, UntrackedCommit], commits: Iterable[ObjectId]
) -> dict[ObjectId, UntrackedCommit]:
    """Some commits and their ancestors, as far as these are known, children first."""
    found: dict[ObjectId, UntrackedCommit] = {}
    waiting = list(commits)
    while waiting:
        id = waiting.pop()
        if id in known and id not in found:
            found[id] = known[id]
            waiting += known[id].parents
    return found


def _bases_of_chains(repository: "Repository") -> Iterator[ObjectId]:
    """The commits on which staged work was begun."""
    for name in repository.refs.names():
        if refs.session_of(name):
            # `ctx stage recover` repairs a damaged chain.
            with suppress(CtxError):
                tip = repository.refs.require(name)
                yield from read_typed(repository.everything, tip, WorkCommit).bases


def message_of(reader: Reader, commit: ObjectId) -> str:
    """The content of a commit; empty if it cannot be read."""
    try:
        return read_typed(reader, commit, Commit).message
    except CtxError:
        return ""


def base(known: Mapping[ObjectId, UntrackedCommit], commit: ObjectId) -> set[ObjectId]:
    """The ancestors of a commit that git has, past those that it does not have."""
    base: set[ObjectId] = set()
    waiting, visited = [commit], {commit}
    while waiting:
        for parent in known[waiting.pop()].parents:
            if parent not in known:
                base.add(parent)
            elif parent not in visited:
                visited.add(parent)
                waiting.append(parent)
    return base


def commits_in_git(
    repository: "Repository", known: Mapping[ObjectId, UntrackedCommit], *, in_refs: bool = False
) -> dict[ObjectId, str]:
    """The commits that are complete in a git commit that a ref other than the stash reaches, or,
    without `in_refs`, that a working tree without a branch has; each with that git commit.

    Of several commits made before one git commit, git has only the head file of the last; a commit
    with that file may contain the earlier ones too.
    """
    project = repository.project
    if project.checkout is None or not known:
        return {}
    first = min(known.values(), key=lambda entry: entry.number)
    holders = git.adders(project.checkout, project.heads, first.git_commit, in_refs=in_refs)
    holder_of: dict[ObjectId, str] = {}
    for id in reversed(list(known)):
        holder = holders.get(os.path.join(project.heads, id)) or holder_of.get(id)
        if holder is not None:
            holder_of[id] = holder
            for parent in known[id].parents:
                holder_of.setdefault(parent, holder)
    now = repository.replaced.current
    files = {
        id: [(holder, committed_path(project, now(object_id))) for object_id in known[id].objects]
        for id, holder in holder_of.items()
        if id in known
    }
    missing = git.missing_files(
        project.checkout, [pair for pairs in files.values() for pair in pairs]
    )
    return {id: holder_of[id] for id, pairs in files.items() if missing.isdisjoint(pairs)}


def refresh(repository: "Repository") -> None:
    """Determine again where each commit belongs, if the branch has changed."""
    project = repository.project
    if project.checkout is not None and untracked_commits.are_places_stale(project):
        at = untracked_commits.position(project.checkout)
        # Without git, on a read-only disk, or with too many heads, head files count as they are.
        with suppress(DiskFailure, GitFailure, StoreTooLarge):
            places = _survey_git(repository, project.checkout).places
            untracked_commits.write_places(project, at, places)


def discarded_by_git(repository: "Repository") -> list[ObjectId]:
    """The commits that git removed, the last of each line.

    It asks git only if files are missing; if git has them, it does not ask again until the branch
    changes.
    """
    project = repository.project
    refresh(repository)
    gone = untracked_commits.missing(project)
    if project.checkout is None or not gone:
        return []
    try:
        by_commit = {entry.commit: entry for entry in survey(repository)}
    except GitFailure:
        return []
    safe = [id for id in gone if id not in by_commit or by_commit[id].state == STASHED]
    at = untracked_commits.position(project.checkout)
    if safe and (places := untracked_commits.read_places(project)):
        with suppress(DiskFailure):
            untracked_commits.write_places(project, at, {**places, **dict.fromkeys(safe, HELD)})
    return [
        entry.commit
        for entry in by_commit.values()
        if entry.state == DISCARDED_STATE and entry.is_tip
    ]


# Only for holders of the project's lock


def settle(repository: "Repository") -> None:
    """Make the working tree contain what belongs to this branch, for `git add .ctx`."""
    project = repository.project
    if project.checkout is None:
        return
    if not os.path.isdir(untracked_commits.folder(project)):
        for entry in entries(repository).values():
            untracked_commits.write(project, entry)
    if not untracked_commits.ids(project):
        return
    refresh(repository)
    places = untracked_commits.read_places(project) or {}
    if {PARKED, RETURNED, BEHIND}.isdisjoint(places.values()):
        return
    known = entries(repository)
    here = [
        entry for entry in known.values() if places.get(entry.commit) in (HERE, RETURNED, BEHIND)
    ]
    elsewhere = [entry for entry in known.values() if places.get(entry.commit) == PARKED]
    if to_park := [entry for entry in elsewhere if parked_commits.has_files(project, entry)]:
        listed = git.tracked_files(project.checkout, project.store)
        kept = {os.path.join(project.checkout.top, path) for path in listed}
        kept.update(committed_path(project, id) for entry in here for id in entry.objects)
        for entry in to_park:
            parked_commits.park(repository, entry, kept)
    for entry in here:
        if places[entry.commit] != HERE:
            parked_commits.unpark(repository, entry, is_head=places[entry.commit] == RETURNED)


def prune(repository: "Repository") -> None:
    """Remove the entries of commits that git has; none if git cannot be asked.

    git drops a commit without a branch when its working tree is removed. A removed working tree
    takes its reflog with it, so after `git branch -D` only the noted git commit leads to the rest.
    """
    checkout = repository.project.checkout
    if checkout is None:
        return
    with suppress(GitFailure):
        if held := commits_in_git(repository, entries(repository), in_refs=True):
            tracked = git.ids_of(checkout, ["main-worktree/HEAD"])
            outside = git.commits_outside(checkout, held.values(), *filter(None, tracked))
            repository.note_git_commits(outside)
        for id in held:
            untracked_commits.remove(repository.project, id)


def objects_to_keep(repository: "Repository") -> set[ObjectId]:
    """What the staging store must keep for these commits."""
    project = repository.project
    given_up = (
        untracked_commits.read(project, id) for id in untracked_commits.discarded_commits(project)
    )
    known = [*entries(repository).values(), *(entry for entry in given_up if entry)]
    kept = {id for entry in known for id in entry.objects}
    return kept.union(map(repository.replaced.current, kept))
