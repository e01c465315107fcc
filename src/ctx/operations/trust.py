"""Trust a project store, so that agents are given what it holds.

Whoever is asked to trust sees first what there is: how much, by whom, since when.
"""

import os
from contextlib import suppress
from typing import Literal, NamedTuple

from ctx import clock, git, layout, redaction
from ctx.errors import StoreTooLarge
from ctx.layout import Project
from ctx.objects import commits
from ctx.objects.read_limits import WorkLimit
from ctx.objects.repository import Repository
from ctx.project import trust_check
from ctx.project import trust_list as trusted

_LONGEST_NAME = 100
_MOST_AUTHORS = 20


class CommitAuthor(NamedTuple):
    name: str
    """In one line and cut: it is a stranger's text."""
    commits: int


class TrustContents(NamedTuple):
    """What somebody who trusts a project store lets in."""

    commits: int
    authors: tuple[CommitAuthor, ...]
    """Who made the commits, the busiest first; 20 at most."""
    author_count: int
    last_commit: str
    """When the newest commit was made; empty where there is none."""
    narrative_files: int
    complete: bool = True
    """False where there is too much to look at all of it: then these are the least there is."""


class TrustResult(NamedTuple):
    """The answer of `ctx trust`, and with `--revoke`."""

    root: str
    """The project's folder."""
    state: Literal["trusted", "already trusted", "revoked", "not trusted"]
    """What it came to; `not trusted`: there was nothing to revoke."""
    at: str = ""
    """Since when it is trusted."""
    identity: str = ""
    """Who trusts it, as git names them."""
    contents: TrustContents | None = None
    put_aside: str = ""
    """Where a list of what is trusted was put that could not be read."""
    differed: tuple[str, ...] = ()
    """What was not as it had been when it was trusted the last time."""


class TrustedProject(NamedTuple):
    """A project store that was trusted, and whether it still is."""

    key: str
    """The git folder that its working trees share; the project's folder where there is none."""
    root: str
    """The project's folder when it was trusted."""
    at: str
    identity: str
    """Who trusts it, as git names them."""
    state: Literal["trusted", "not trusted", "gone"]
    """`not trusted`: something differs; `gone`: there is no project store in the folder now."""
    differs: tuple[str, ...]
    """What is not as it was when it was trusted."""
    roots: tuple[str, ...]
    """The commits that its history begins with; none: not known."""
    remote: str
    """The remote `origin` without its protocol and user; empty: not known."""
    owner: int | None
    """The user id that owns the git folder; null: not known."""


class TrustedProjects(NamedTuple):
    """The answer of `ctx trust --list`."""

    projects: tuple[TrustedProject, ...]


def contents(project: Project) -> TrustContents:
    repository = Repository(project, limit=WorkLimit())
    made: dict[str, int] = {}
    last = 0
    is_complete = False
    with suppress(StoreTooLarge):
        heads = [head.id for head in repository.current()]
        for _, commit in commits.walk(repository.objects, heads):
            if commit is not None:
                author = " ".join(commit.author[: 4 * _LONGEST_NAME].split())[:_LONGEST_NAME]
                made[author] = made.get(author, 0) + 1
                last = max(last, commit.timestamp_unix)
        is_complete = True
    busiest = sorted(made.items(), key=lambda each: (-each[1], each[0]))
    return TrustContents(
        commits=sum(made.values()),
        authors=tuple(CommitAuthor(*each) for each in busiest[:_MOST_AUTHORS]),
        author_count=len(made),
        last_commit=clock.iso(last * 1000) if made else "",
        narrative_files=sum(len(names) for _, _, names in os.walk(project.narrative)),
        complete=is_complete,
    )


def trust(home: str, project: Project) -> TrustResult:
    """Trust a project store from now on, in the name that its commits carry here."""
    is_broken = trusted.is_broken(home)
    differs = trust_check.verify(home, project).differs
    who = redaction.redact(git.identity(project.checkout)).text
    is_new = trust_check.trust_project(home, project, who, clock.iso(clock.now_ms()))
    known = trusted.find(home, project)
    return TrustResult(
        project.root,
        "trusted" if is_new else "already trusted",
        known.at if known else "",
        known.identity if known else "",
        put_aside=os.path.join(home, trust_check.BROKEN) if is_broken and is_new else "",
        differed=differs,
    )


def revoke(home: str, project: Project) -> TrustResult:
    was_trusted = trust_check.revoke(home, project)
    return TrustResult(project.root, "revoked" if was_trusted else "not trusted")


def revoke_folder(home: str, root: str) -> TrustResult:
    """The same for a folder that holds no project store any more."""
    was_trusted = trust_check.revoke_folder(home, root)
    return TrustResult(root, "revoked" if was_trusted else "not trusted")


def everything(home: str) -> TrustedProjects:
    trust_check.adopt(home)
    found = []
    for known in trusted.everything(home):
        project = layout.find_project(known.root, home)
        state: Literal["trusted", "not trusted", "gone"] = "gone"
        differs: tuple[str, ...] = ()
        if project and known.key in (trusted.key_of(project), trusted.folder_of(project)):
            verdict = trust_check.verify(home, project)
            state, differs = "trusted" if verdict.is_trusted else "not trusted", verdict.differs
        found.append(
            TrustedProject(
                known.key,
                known.root,
                known.at,
                known.identity,
                state,
                differs,
                known.roots,
                known.remote,
                known.owner,
            )
        )
    return TrustedProjects(tuple(found))
