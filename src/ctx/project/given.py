"""Which objects and documents of a trusted project are given to agents.

Anybody can write any author into a commit, and git does not record who fetched what. So a commit, a
batch or a document is given if it was written here, if it is in a fetched branch of a trusted
remote, if it was in the working tree when `ctx trust` ran, or if the user accepted it with
`ctx review`. Everything else, such as a pull request that is checked out, is a proposal.

What was given once stays given: its id is kept in `CTX_HOME/given.db`, whatever git forgets. This
is decided when an index is written. Hooks only read indexes.

A fetched branch is a ref that a refspec of the remote maps from `refs/heads/*`. A pull request of a
fork is not: it comes from `refs/pull/*`, from another remote, or is a branch of this clone.
"""

import contextlib
import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from sqlite3 import Connection, DatabaseError

from ctx import disk, git, layout
from ctx.errors import CtxError, DatabaseFailure, GitFailure
from ctx.git import Remote
from ctx.ids import ObjectId, is_object_id
from ctx.layout import Project
from ctx.narrative import narrative_scan
from ctx.objects.replaced_objects import ReplacedObjects
from ctx.project import trust_list
from ctx.project.project_index_state import Withheld
from ctx.project.trust_list import TrustEntry
from ctx.sqlite.connection import explain_errors, transaction
from ctx.sqlite.truth import check_truth, connect_for_reading, open_truth

_BRANCHES = "refs/heads/"


_OBJECTS_AT_ONCE = 20


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
        for start in range(0, len(trees), _OBJECTS_AT_ONCE):
            yield trees[start : start + _OBJECTS_AT_ONCE]

    def _blobs(self, trees: Sequence[str], paths: Iterable[str]) -> Iterator[tuple[str, str]]:
        assert self._project.checkout is not None
        # A name with a line break cannot be asked for.
        pairs = [(f"{tree}:{path}", path) for path in paths if "\n" not in path for tree in trees]
        blobs = git.ids_of(self._project.checkout, [name for name, _ in pairs])
        return ((path, blob) for (_, path), blob in zip(pairs, blobs, strict=True))


NAME = "given.db"
BROKEN = ".broken"
"""The suffix of a damaged list, which was put aside."""

_APPLICATION_ID = int.from_bytes(b"ctxg", "big")
_GIVEN, _REJECTED = 1, 0
_AT_ONCE = 500
_BUSY_MS = 30_000


class GivenObjects:
    """The objects and documents of one project that agents are given."""

    def __init__(self, home: str, project: Project, known: TrustEntry | None = None) -> None:
        """`known` is the entry of the project, if it is not in the list yet."""
        self._path = os.path.join(home, NAME)
        self._home = home
        self._project = project
        self._entry = known
        self._replaced = ReplacedObjects(project.replaced)

    @cached_property
    def _known(self) -> TrustEntry | None:
        return self._entry or trust_list.find(self._home, self._project)

    @cached_property
    def _key(self) -> bytes:
        key = self._known.key if self._known else trust_list.key_of(self._project)
        return hashlib.blake2b(os.fsencode(key), digest_size=16).digest()

    @cached_property
    def _branches(self) -> RemoteBranches:
        names = [name for name, _ in self._known.remotes] if self._known else []
        return RemoteBranches(self._project, names)

    @property
    def branches_stamp(self) -> str:
        """Changes when a branch of a trusted remote was fetched or pushed."""
        return self._branches.stamp

    def objects(self, ids: Collection[str]) -> set[str]:
        """Those of the objects that are given."""
        given = self._written_or_fetched(set(ids))
        return given - self.replaced(given)

    def replaced(self, ids: Collection[str]) -> set[str]:
        """Those of the objects that somebody replaced with one that is not given."""
        successors = self._replaced.successors()
        new = {
            id: set(self._replaced.standing_in(ObjectId(id)))
            for id in (successors.keys() & ids if successors else ())
        }
        given = self._written_or_fetched(set().union(*new.values()))
        return {id for id, others in new.items() if not others <= given}

    def _written_or_fetched(self, ids: set[str]) -> set[str]:
        given = self._kept(ids)
        paths = {f"objects/{id[:2]}/{id}": id for id in ids - given}
        try:
            fetched = {paths[path] for path in self._branches.has(paths)}
        except GitFailure:
            fetched = set()
        self._keep(fetched)
        return given | fetched

    def documents(self, documents: Mapping[str, bytes]) -> set[str]:
        """The paths of those documents, with this content, that are given.

        What git does not know was written here, and so was what only commits made here contain.
        """
        ids = {document_id(path, data): path for path, data in documents.items()}
        kept = self._kept(ids.keys())
        given = {ids[id] for id in kept}
        unknown = {path: data for path, data in documents.items() if path not in given}
        if unknown:
            try:
                found = self._fetched_or_new(unknown)
            except GitFailure:
                found = set()
            self.add_documents({path: unknown[path] for path in found})
            given |= found
        return given

    def _fetched_or_new(self, documents: Mapping[str, bytes]) -> set[str]:
        """The documents that a trusted branch has, those that git does not know at all, and those
        that only commits of this clone brought."""
        checkout = self._project.checkout
        if checkout is None:
            return set(documents)
        blobs = {path: _git_blobs(data) for path, data in documents.items()}
        fetched = self._branches.blobs(f"narrative/{path}" for path in documents)
        names = [(path, blob) for path, of_path in blobs.items() for blob in of_path]
        ids = git.ids_of(checkout, [blob for _, blob in names])
        known = {path for (path, _), id in zip(names, ids, strict=True) if id}
        found = {
            path
            for path, of_path in blobs.items()
            if path not in known or not fetched.get(f"narrative/{path}", set()).isdisjoint(of_path)
        }
        here = git.commits_made_here(checkout) if known - found else set()
        for path in known - found:
            full = os.path.join(self._project.narrative, path)
            made = git.introducing(checkout, full, blobs[path])
            if made and made <= here:
                found.add(path)
        return found

    def has_more(self, withheld: Withheld) -> bool:
        """Whether something that an index leaves out is given by now."""
        if withheld.is_nothing:
            return False
        if withheld.branches != self.branches_stamp or self._kept(withheld.objects):
            return True
        return bool(self._kept(self.ids_of_documents(withheld.documents).values()))

    def ids_of_documents(self, paths: Iterable[str]) -> dict[str, str]:
        """The ids of documents as they are now, by path."""
        read = ((path, self._read(path)) for path in paths)
        return {path: document_id(path, data) for path, data in read if data is not None}

    def _read(self, path: str) -> bytes | None:
        with contextlib.suppress(CtxError):
            return narrative_scan.read(self._project.narrative, path)
        return None

    def add(self, ids: Iterable[str]) -> None:
        """Give objects that were written here."""
        self._keep(ids)

    def add_documents(self, documents: Mapping[str, bytes]) -> None:
        self._keep(document_id(path, data) for path, data in documents.items())

    def accept(self, ids: Iterable[str]) -> None:
        """Give objects or documents because the user wants it."""
        self._write(ids, _GIVEN)

    def reject(self, ids: Iterable[str]) -> None:
        """Do not list objects or documents as proposals any more."""
        self._write(ids, _REJECTED)

    def rejected(self, ids: Collection[str]) -> set[str]:
        return self._kept(ids, state=_REJECTED)

    def add_tree(self) -> None:
        """Give everything that is in the working tree now."""
        project = self._project
        shards = (os.path.join(project.objects, name) for name in disk.names(project.objects))
        self._keep(name for shard in shards for name in disk.names(shard) if len(name) == 64)
        files = (
            file.path for file, why_not in narrative_scan.files(project.narrative) if not why_not
        )
        read = {path: data for path in files if (data := self._read(path)) is not None}
        self.add_documents(read)

    def forget(self) -> None:
        """Give nothing any more: the project is not trusted."""
        if not os.path.exists(self._path):
            return
        with contextlib.suppress(CtxError), self._writing() as connection:
            connection.execute("DELETE FROM given WHERE project = ?", (self._key,))

    def _kept(self, ids: Collection[str], state: int = _GIVEN) -> set[str]:
        """Those of the ids that were given before."""
        if not os.path.exists(self._path):
            return set()
        found: set[str] = set()
        keys = [bytes.fromhex(id) for id in ids]
        # A file that cannot be read gives nothing.
        with (
            contextlib.suppress(DatabaseError),
            contextlib.closing(connect_for_reading(self._path)) as connection,
        ):
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                places = ", ".join("?" * len(part))
                sql = f"SELECT id FROM given WHERE project = ? AND state = ? AND id IN ({places})"
                rows = connection.execute(sql, (self._key, state, *part))
                found.update(row[0].hex() for row in rows)
        return found

    def _keep(self, ids: Iterable[str]) -> None:
        # Where it cannot be written, the user is asked about it.
        with contextlib.suppress(CtxError):
            self._write(ids, _GIVEN)

    def _write(self, ids: Iterable[str], state: int) -> None:
        rows = [(self._key, bytes.fromhex(id), state) for id in ids if is_object_id(id)]
        if rows:
            with self._writing() as connection:
                connection.executemany("INSERT OR REPLACE INTO given VALUES (?, ?, ?)", rows)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        try:
            opened = self._open()
        except DatabaseFailure:
            if not check_truth(self._path):
                raise
            with disk.explain_errors("moving a damaged file aside"):
                os.replace(self._path, f"{self._path}{BROKEN}")
            opened = self._open()
        with (
            contextlib.closing(opened) as connection,
            explain_errors(self._path),
            transaction(connection),
        ):
            yield connection

    def _open(self) -> Connection:
        return open_truth(
            self._path, application_id=_APPLICATION_ID, migrations=[_create], busy_ms=_BUSY_MS
        )


class EverythingGiven(GivenObjects):
    """For a store that the user looks at without trusting it: nothing is left out."""

    def objects(self, ids: Collection[str]) -> set[str]:
        return set(ids)

    def replaced(self, ids: Collection[str]) -> set[str]:  # noqa: ARG002
        return set()

    def documents(self, documents: Mapping[str, bytes]) -> set[str]:
        return set(documents)


def document_id(path: str, data: bytes) -> str:
    """The id of a document at its path. Its name is shown too, so it belongs to it."""
    content = _as_stored(data)
    return hashlib.blake2b(
        path.encode("utf-8", "surrogateescape") + b"\0" + content, digest_size=32
    ).hexdigest()


def _git_blobs(data: bytes) -> tuple[str, str]:
    """The names that git gives to this content, by either of its hashes."""
    content = _as_stored(data)
    blob = b"blob %d\0%b" % (len(content), content)
    return hashlib.sha1(blob, usedforsecurity=False).hexdigest(), hashlib.sha256(blob).hexdigest()


def _as_stored(data: bytes) -> bytes:
    """As git stores a document, whose line ends are those of Unix."""
    return data.replace(b"\r\n", b"\n")


def _create(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE given (project BLOB NOT NULL, id BLOB NOT NULL, state INTEGER NOT NULL,"
        " PRIMARY KEY (project, id)) WITHOUT ROWID"
    )


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
