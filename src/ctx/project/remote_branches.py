"""What the branches of a project's trusted remotes contain, as far as they were fetched.

A fetched branch is a ref that a refspec of the remote maps from `refs/heads/*`. A pull request of a
fork is not: it comes from `refs/pull/*`, from another remote, or is a branch of this clone.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ctx import git, layout
from ctx.errors import GitFailure
from ctx.git import Remote
from ctx.layout import Project

_BRANCHES = "refs/heads/"
_AT_ONCE = 20


class RemoteBranches:
    """The branches of some remotes."""

    def __init__(self, project: Project, names: Collection[str]) -> None:
        self._project = project
        self._refs = _branches_of(project, names) if names else {}

    @property
    def stamp(self) -> str:
        """A digest of the commits of these branches; empty if there are none."""
        lines = "\n".join(sorted(set(self._refs.values())))
        return layout.digest(lines.encode(), 16) if lines else ""

    def has(self, paths: Iterable[str]) -> set[str]:
        """Those of the paths below `.ctx/` that one of these branches has."""
        wanted = set(paths)
        missing = set(wanted)
        for trees in self._stores():
            missing -= {path for path, blob in self._blobs(trees, missing) if blob}
        return wanted - missing

    def blobs(self, paths: Iterable[str]) -> dict[str, set[str]]:
        """The git blobs that these branches have at paths below `.ctx/`."""
        wanted = set(paths)
        found: dict[str, set[str]] = {}
        for trees in self._stores():
            for path, blob in self._blobs(trees, wanted):
                found.setdefault(path, set()).add(blob)
        return found

    def _stores(self) -> Iterator[list[str]]:
        """The different trees of `.ctx/`, a few at a time."""
        checkout = self._project.checkout
        if checkout is None or not self._refs:
            return
        inside = os.path.relpath(self._project.store, checkout.top)
        names = [f"{commit}:{inside}" for commit in dict.fromkeys(self._refs.values())]
        trees = list(dict.fromkeys(filter(None, git.ids_of(checkout, names))))
        for start in range(0, len(trees), _AT_ONCE):
            yield trees[start : start + _AT_ONCE]

    def _blobs(self, trees: Sequence[str], paths: Iterable[str]) -> Iterator[tuple[str, str]]:
        assert self._project.checkout is not None
        # A name with a line break cannot be asked for.
        pairs = [(f"{tree}:{path}", path) for path in paths if "\n" not in path for tree in trees]
        blobs = git.ids_of(self._project.checkout, [name for name, _ in pairs])
        return ((path, blob) for (_, path), blob in zip(pairs, blobs, strict=True))


def _branches_of(project: Project, names: Collection[str]) -> dict[str, str]:
    if project.checkout is None:
        return {}
    try:
        known = git.remotes(project.checkout)
        refs = git.remote_refs(project.checkout)
    except GitFailure:
        return {}
    return {ref: commit for ref, commit in refs.items() if _is_branch(ref, known, names)}


def _is_branch(ref: str, known: Mapping[str, Remote], names: Collection[str]) -> bool:
    """Whether every refspec that writes a ref takes it from a branch of one of these remotes."""
    sources = [
        name in names and source.startswith(_BRANCHES)
        for name, remote in known.items()
        for refspec in remote.fetch
        for source in _sources(refspec, ref)
    ]
    return bool(sources) and all(sources)


def _sources(refspec: str, ref: str) -> Iterator[str]:
    """The ref of the remote that a refspec writes to `ref`."""
    source, colon, target = refspec.removeprefix("+").partition(":")
    if refspec.startswith("^") or not colon:
        return
    before, star, after = target.partition("*")
    if not star:
        if ref == target:
            yield source
    elif ref.startswith(before) and ref.endswith(after) and len(ref) >= len(before) + len(after):
        yield source.replace("*", ref[len(before) : len(ref) - len(after)])
