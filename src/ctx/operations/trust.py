"""Trust a project store, so that agents see its content.

Before trusting, the user sees a summary: the size, the authors and the time of the last commit.
"""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Literal, NamedTuple

from ctx import clock, git, layout, redaction
from ctx.errors import GitFailure, StoreTooLarge, UsageError
from ctx.layout import Project
from ctx.objects import commits
from ctx.objects.read_limits import WorkLimit
from ctx.objects.repository import Repository
from ctx.project import repository_identity, trust_check
from ctx.project import trust_list as trusted

_LONGEST_NAME = 100
_MOST_AUTHORS = 20


class CommitAuthor(NamedTuple):
    name: str
    """One line, shortened, because the text is untrusted."""
    commits: int


class TrustContents(NamedTuple):
    """The content of a project store, for the decision to trust it."""

    commits: int
    authors: tuple[CommitAuthor, ...]
    """The authors of the commits, those with the most commits first; at most 20."""
    author_count: int
    last_commit: str
    """The time of the newest commit; empty if there is none."""
    narrative_files: int
    complete: bool = True
    """False if the store is too large to read completely; the numbers are then minimums."""


class TrustResult(NamedTuple):
    """The answer of `ctx trust`, and with `--revoke`."""

    root: str
    """The project's folder."""
    state: Literal["trusted", "already trusted", "revoked", "not trusted"]
    """The result; `not trusted` means that there was nothing to revoke."""
    at: str = ""
    """Since when it is trusted."""
    identity: str = ""
    """Who trusts it, as git names them."""
    contents: TrustContents | None = None
    put_aside: str = ""
    """Where an unreadable trust list was moved to."""
    differed: tuple[str, ...] = ()
    """What had changed since it was trusted the last time."""
    remotes: Mapping[str, str] = MappingProxyType({})
    """The remotes whose branches are given to agents: names, and URLs without protocol and user."""


class TrustedProject(NamedTuple):
    """A project store that was trusted, and whether it still is."""

    key: str
    """The git folder that its working trees share; without git, the folder of the project."""
    root: str
    """The project's folder when it was trusted."""
    at: str
    identity: str
    """Who trusts it, as git names them."""
    state: Literal["trusted", "not trusted", "gone"]
    """`not trusted`: something differs; `gone`: the folder has no project store."""
    differs: tuple[str, ...]
    """What has changed since it was trusted."""
    roots: tuple[str, ...]
    """The first commits of its history; empty if unknown."""
    remotes: Mapping[str, str]
    """The remotes whose branches are given to agents: names, and URLs without protocol and user."""
    owner: int | None
    """The user id that owns the git folder; null if unknown."""


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


def remotes(project: Project) -> dict[str, str]:
    """The remotes of a project, with their URLs as they are shown."""
    with suppress(GitFailure):
        return dict(repository_identity.remotes_of(project))
    return {}


def trust(home: str, project: Project, named: Collection[str] | None = None) -> TrustResult:
    """Trust a project store, with the name that git uses for commits here.

    `named` are the remotes whose branches are given to agents; None: `origin`, or the only one.
    """
    for name in named or ():
        if name not in (there := remotes(project)):
            listed = f"There are {', '.join(map(repr, there))}." if there else "There are none."
            raise UsageError(f"There is no remote {name[:80]!r}.", hint=listed)
    is_broken = trusted.is_broken(home)
    differs = trust_check.verify(home, project).differs
    who = redaction.redact(git.identity(project.checkout)).text
    is_new = trust_check.trust_project(home, project, who, clock.iso(clock.now_ms()), named)
    known = trusted.find(home, project)
    return TrustResult(
        project.root,
        "trusted" if is_new else "already trusted",
        known.at if known else "",
        known.identity if known else "",
        put_aside=os.path.join(home, trust_check.BROKEN) if is_broken and is_new else "",
        differed=differs,
        remotes=dict(known.remotes) if known else {},
    )


def revoke(home: str, project: Project) -> TrustResult:
    was_trusted = trust_check.revoke(home, project)
    return TrustResult(project.root, "revoked" if was_trusted else "not trusted")


def revoke_folder(home: str, root: str) -> TrustResult:
    """Revoke trust for a folder that no longer has a project store."""
    was_trusted = trust_check.revoke_folder(home, root)
    return TrustResult(root, "revoked" if was_trusted else "not trusted")


def trusted_projects(home: str) -> TrustedProjects:
    trust_check.adopt(home)
    projects = []
    for known in trusted.all_entries(home):
        project = layout.find_project(known.root, home)
        state: Literal["trusted", "not trusted", "gone"] = "gone"
        differs: tuple[str, ...] = ()
        if project and known.key in (trusted.key_of(project), trusted.folder_of(project)):
            verdict = trust_check.verify(home, project)
            state, differs = "trusted" if verdict.is_trusted else "not trusted", verdict.differs
        projects.append(
            TrustedProject(
                known.key,
                known.root,
                known.at,
                known.identity,
                state,
                differs,
                known.roots,
                dict(known.remotes),
                known.owner,
            )
        )
    return TrustedProjects(tuple(projects))
