"""The identity of a repository: its root commits, the URLs of its remotes, and the owner of its git
folder.

A path shows where a repository is; the identity shows which one it is.
"""

import contextlib
import os
import re
from typing import NamedTuple

from ctx import git
from ctx.errors import GitFailure
from ctx.layout import Project
from ctx.project import trust_list
from ctx.project.trust_list import TrustEntry

_LONGEST_REMOTE = 120
_DEFAULT_PORTS = dict(pair.split(":") for pair in "https:443 http:80 ssh:22 git:9418".split())
_SCP = re.compile(r"(?:[^/:@]+@)?(\[[^\]/]+\]|[^/:@]+):(?!//)(.+)", re.DOTALL)
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_NOT_IN_REMOTES = re.compile(r"[^A-Za-z0-9._~/:@+%=&?,\[\]-]")


class Identity(NamedTuple):
    """The identity of a repository."""

    roots: tuple[str, ...]
    """The root commits of its history; empty: not known."""
    remotes: tuple[tuple[str, str], ...]
    """The names and URLs of all remotes; of a trusted one, those that were named."""
    owner: int | None


class IdentitySnapshot(NamedTuple):
    """The identity at one moment, and data that shows whether it may have changed."""

    identity: Identity
    head: str
    """The commit that was checked out; empty: none."""
    stamp: str
    """The result of `stamp_of`."""


def take_identity(project: Project, *, walking: bool = True) -> IdentitySnapshot:
    """The current identity of a project's repository, as far as git reports it.

    Without `walking`, the root commits are not searched.
    """
    stamp, head = stamp_of(project), ""
    remotes: tuple[tuple[str, str], ...] = ()
    roots: tuple[str, ...] = ()
    with contextlib.suppress(GitFailure):
        head = head_of(project)
        remotes = remotes_of(project)
        roots = roots_of(project, head) if walking else ()
    return IdentitySnapshot(Identity(roots, remotes, trust_list.owner_of(project)), head, stamp)


def comparable(url: str) -> str:
    """A remote URL in canonical form, `host/path`, so that URLs of the same place are equal.

    Scheme, user and password are left out.
    """
    url = url.strip()
    if match := _URL.fullmatch(url):
        scheme, rest = match[1].lower(), match[2]
        host, slash, path = rest.partition("/")
        host = host.rpartition("@")[2].lower()
        host = host.removesuffix(f":{_DEFAULT_PORTS.get(scheme, '')}")
        # A `file:` URL has no host.
        place = f"{host}{slash}{path.lstrip('/')}" if host else f"/{path.lstrip('/')}"
    elif match := _SCP.fullmatch(url):
        place = f"{match[1].lower()}/{match[2].lstrip('/')}"
    else:
        place = url
    from ctx import redaction

    place = place.rstrip("/").removesuffix(".git").rstrip("/")
    return redaction.redact(place).text


def head_of(project: Project) -> str:
    """The commit that is checked out; empty before the first commit and without git."""
    return git.head_commit(project.checkout) or "" if project.checkout else ""


def remotes_of(project: Project) -> tuple[tuple[str, str], ...]:
    known = git.remotes(project.checkout) if project.checkout else {}
    return tuple(sorted((name, comparable(remote.url)) for name, remote in known.items()))


def default_remotes(remotes: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The remotes that are trusted if none is named: `origin`, or the only one."""
    return tuple(each for each in remotes if each[0] == "origin" or len(remotes) == 1)


def roots_of(project: Project, head: str) -> tuple[str, ...]:
    return git.root_commits(project.checkout, head) if project.checkout and head else ()


def differences(known: TrustEntry, now: Identity) -> tuple[str, ...]:
    """How the identity differs from the trusted one."""
    differs = []
    remotes = dict(now.remotes)
    for name, url in known.remotes:
        if remotes.get(name) != url:
            whose = "its remote" if name == "origin" else f"its remote {_quoted(name)}"
            is_now = f"is now {_quoted(remotes[name])}" if name in remotes else "is gone"
            differs.append(f"{whose} {is_now}, was {_quoted(url)}")
    if not set(known.roots) <= set(now.roots):
        differs.append(roots_differ(known))
    if known.owner not in (None, now.owner):
        differs.append(owner_differs(known, now.owner))
    return tuple(differs)


def roots_differ(known: TrustEntry) -> str:
    first = f" {known.roots[0][:12]!r}" if known.roots else ""
    return f"its history cannot be followed to its first commit{first}"


def owner_differs(known: TrustEntry, owner: int | None) -> str:
    return f"its git folder belongs to user {owner} now, was {known.owner}"


def _quoted(remote: str) -> str:
    """A remote that is safe to show: one from an archive may contain any text."""
    safe = _NOT_IN_REMOTES.sub("?", remote)
    return f'"{safe if len(safe) <= _LONGEST_REMOTE else f"{safe[:_LONGEST_REMOTE]}…"}"'


def stamp_of(project: Project) -> str:
    """A text that changes if the remote or the depth of the clone may have changed."""
    if project.checkout is None:
        return ""
    stamps = []
    for name in ("config", "shallow"):
        try:
            status = os.stat(os.path.join(project.checkout.common_dir, name))
        except OSError:
            stamps.append("none")
        else:
            stamps.append(f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}")
    return " ".join(stamps)
