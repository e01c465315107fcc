"""Trust a project store, so that agents are given what it holds.

Whoever is asked to trust sees first what there is: how much, by whom, since when.
"""

import os
from typing import Literal, NamedTuple

from ctx import clock, git, redaction
from ctx.layout import Project
from ctx.objects import commits
from ctx.objects.repository import Repository
from ctx.sessions import trust as trusting
from ctx.sessions.trust import Trusted


class Author(NamedTuple):
    name: str
    commits: int


class Contents(NamedTuple):
    """What somebody who trusts a project store lets in."""

    commits: int
    authors: tuple[Author, ...]
    """Who made the commits, the busiest first."""
    last_commit: str
    """When the newest commit was made; empty where there is none."""
    narrative_files: int


class Trust(NamedTuple):
    """The answer of `ctx trust`, and with `--revoke`."""

    root: str
    """The project's folder."""
    state: Literal["trusted", "already trusted", "revoked", "not trusted"]
    """What it came to; `not trusted`: there was nothing to revoke."""
    at: str = ""
    """Since when it is trusted."""
    identity: str = ""
    """Who trusts it, as git names them."""
    contents: Contents | None = None
    put_aside: str = ""
    """Where a list of what is trusted was put that could not be read."""


class TrustedProjects(NamedTuple):
    """The answer of `ctx trust --list`."""

    projects: tuple[Trusted, ...]


def contents(project: Project) -> Contents:
    repository = Repository(project)
    made: dict[str, int] = {}
    last = 0
    for _, commit in commits.walk(repository.objects, [head.id for head in repository.current()]):
        if commit is not None:
            made[commit.author] = made.get(commit.author, 0) + 1
            last = max(last, commit.timestamp_unix)
    return Contents(
        commits=sum(made.values()),
        authors=tuple(sorted((Author(*each) for each in made.items()), key=_busiest_first)),
        last_commit=clock.iso(last * 1000) if made else "",
        narrative_files=sum(len(names) for _, _, names in os.walk(project.narrative)),
    )


def _busiest_first(author: Author) -> tuple[int, str]:
    return -author.commits, author.name


def trust(home: str, project: Project) -> Trust:
    """Trust a project store from now on, in the name that its commits carry here."""
    is_broken = trusting.is_broken(home)
    who = redaction.redact(git.identity(project.checkout)).text
    is_new = trusting.trust(home, project, who, clock.iso(clock.now_ms()))
    known = trusting.find(home, project)
    return Trust(
        project.root,
        "trusted" if is_new else "already trusted",
        known.at if known else "",
        known.identity if known else "",
        put_aside=os.path.join(home, trusting.BROKEN) if is_broken and is_new else "",
    )


def revoke(home: str, project: Project) -> Trust:
    was_trusted = trusting.revoke(home, project)
    return Trust(project.root, "revoked" if was_trusted else "not trusted")


def revoke_folder(home: str, root: str) -> Trust:
    """The same for a folder that holds no project store any more."""
    was_trusted = trusting.revoke_folder(home, root)
    return Trust(root, "revoked" if was_trusted else "not trusted")


def everything(home: str) -> TrustedProjects:
    return TrustedProjects(tuple(trusting.everything(home)))
