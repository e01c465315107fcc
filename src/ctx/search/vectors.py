"""The file of vectors: embeddings of texts by key, and a search for the nearest.

It is derived data beside a store: deleting it costs only time. A vector is stored as signed bytes
with its model and a hash of the text, so a text is embedded once and again when it changes. Several
processes may read and write at once.

The search compares all vectors: up to a million rows, no index is faster. Above `_MANY` rows, the
signs alone select the candidates.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from itertools import islice
from sqlite3 import Connection, OperationalError
from typing import TYPE_CHECKING, NamedTuple

from ctx import disk
from ctx.errors import IndexCorrupt
from ctx.search.embedders import Embedder
from ctx.sqlite.connection import (
    closed_on_failure,
    connect,
    discard,
    execute_script,
    expect_mark,
    explain_errors,
    folder_of,
    mark,
    pragma,
    temporary_file,
    transaction,
)

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from ctx.search.embedders import Matrix

APPLICATION_ID = 0x63747876  # "ctxv"
VERSION = 2
"""Increased when the tables or their meaning change."""

_SCHEMA = """
CREATE TABLE models (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    UNIQUE (name, version, dimensions)
);
CREATE TABLE vectors (
    model INTEGER NOT NULL,
    key TEXT NOT NULL,
    hash BLOB NOT NULL,
    stamp TEXT NOT NULL,
    scale REAL NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (model, key)
) WITHOUT ROWID;
"""
_NOTHING = (b"", "")
_BATCH = 32
"""Texts that are embedded together and written in one transaction."""
_MANY = 20_000
_CLOSELY = 4_000
_SCANNED = 8_192
"""Rows that are converted at once, so that they fit into a processor cache."""


class _LoadedVectors(NamedTuple):
    """All vectors of one model, in memory."""

    model: int
    data_version: int
    keys: Sequence[str]
    stamps: Sequence[str]
    places: dict[str, int]
    scales: "NDArray[numpy.float32]"
    rows: "NDArray[numpy.int8]"
    signs: "NDArray[numpy.uint64] | None"


class Vectors:
    def __init__(self, path: str) -> None:
        self.path = path
        self._connection: Connection | None = None
        self._loaded: _LoadedVectors | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._loaded = None

    # Writing

    def fill(
        self,
        embedder: Embedder,
        texts: Iterable[tuple[str, str]],
        stamps: Mapping[str, str] | None = None,
        *,
        limit: int = 10_000,
        go_on: Callable[[], bool] = lambda: True,
    ) -> int:
        """Embed the texts that are missing or have changed, and return their number.

        `stamps` has the version of each text by key. It is stored for callers that have too many
        texts to compare all of them. The call ends after `limit` texts or when `go_on` returns
        false. The next call continues, because written batches are kept.
        """
        waiting = iter(texts)
        done = 0
        while done < limit and go_on() and (batch := dict(islice(waiting, _BATCH))):
            try:
                done += self._fill(embedder, batch, stamps or {}, limit - done)
            except IndexCorrupt:
                # The damaged file has been removed by now.
                done += self._fill(embedder, batch, stamps or {}, limit - done)
        return done

    def _fill(
        self, embedder: Embedder, texts: Mapping[str, str], stamps: Mapping[str, str], limit: int
    ) -> int:
        now = {key: (_hash(text), stamps.get(key, "")) for key, text in texts.items()}
        known = self._stored_vectors(embedder, list(texts))
        missing = [key for key in texts if known.get(key, _NOTHING)[0] != now[key][0]][:limit]
        same = [key for key in texts if key in known and known[key][0] == now[key][0]]
        stamped = [key for key in same if known[key][1] != now[key][1]]
        if missing or stamped:
            rows = _quantise(embedder.embed([texts[key] for key in missing])) if missing else ()
            with self._write_connection() as connection:
                model = _model(connection, embedder)
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?, ?)",
                    [(model, key, *now[key], *row) for key, row in zip(missing, rows, strict=True)],
                )
                connection.executemany(
                    "UPDATE vectors SET stamp = ? WHERE model = ? AND key = ?",
                    [(now[key][1], model, key) for key in stamped],
                )
                # A vector of another model belongs to an older text.
                connection.executemany(
                    "DELETE FROM vectors WHERE model IN (SELECT id FROM models WHERE id <> ?)"
                    " AND key = ? AND hash <> ?",
                    [(model, key, now[key][0]) for key in missing],
                )
        return len(missing)

    def forget(self, keys: Iterable[str]) -> int:
        """Remove vectors of every model, so that nothing of them remains in the file."""
        if not os.path.exists(self.path):
            return 0
        with self._write_connection() as connection:
            before = connection.total_changes
            connection.executemany(
                "DELETE FROM vectors WHERE key = ?", [(key,) for key in set(keys)]
            )
            forgotten = connection.total_changes - before
        with suppress(OperationalError):
            # There is a reader. The rest is checkpointed when it has finished.
            self._open_database().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return forgotten

    def keep_only(self, keys: Collection[str]) -> int:
        """Remove all vectors whose key is not listed."""
        wanted = keys if isinstance(keys, set | frozenset | dict) else frozenset(keys)
        return self.forget(key for key in self.keys() if key not in wanted)

    # Reading

    def nearest(
        self, embedder: Embedder, text: str, keys: Collection[str] | None = None, limit: int = 50
    ) -> list[tuple[str, float]]:
        """The keys of the nearest texts with their cosines, the best first.

        With `keys`, only those are compared. Texts without a vector are not found.
        """
        import numpy

        loaded = self._load(embedder)
        if loaded is None or limit <= 0:
            return []
        if keys is None:
            places = numpy.arange(len(loaded.keys))
        else:
            among = [loaded.places[key] for key in keys if key in loaded.places]
            places = numpy.array(sorted(set(among)), numpy.intp)
        query_vector = embedder.embed([text])[0]
        if not len(places) or not query_vector.any():
            return []
        if loaded.signs is not None and len(places) > _MANY:
            places = _nearest_by_signs(loaded.signs, query_vector, places, max(_CLOSELY, 2 * limit))
        cosines = _cosines(loaded, query_vector, places)
        best = numpy.argsort(-cosines, kind="stable")[:limit]
        return [(loaded.keys[places[place]], float(cosines[place])) for place in best]

    def count(self, embedder: Embedder) -> int:
        """The number of texts with a vector of this embedder."""
        loaded = self._load(embedder)
        return len(loaded.keys) if loaded else 0

    def stamps(self, embedder: Embedder) -> dict[str, str]:
        """The version of each text that this embedder has embedded."""
        loaded = self._load(embedder)
        return dict(zip(loaded.keys, loaded.stamps, strict=True)) if loaded else {}

    def keys(self, embedder: Embedder | None = None) -> list[str]:
        """The keys of all embedded texts, of one model or of any."""
        if not os.path.exists(self.path):
            return []
        sql, by = "SELECT DISTINCT key FROM vectors", ""
        if embedder is not None:
            by = " JOIN models ON model = id WHERE name = ? AND version = ? AND dimensions = ?"
        identity = (embedder.name, embedder.version, embedder.dimensions) if embedder else ()
        with self._read_connection() as connection:
            return [key for (key,) in connection.execute(sql + by, identity)]

    def _stored_vectors(
        self, embedder: Embedder, keys: Sequence[str]
    ) -> dict[str, tuple[bytes, str]]:
        with self._read_connection() as connection:
            marks = ", ".join("?" * len(keys))
            rows = connection.execute(
                "SELECT key, hash, stamp FROM vectors JOIN models ON model = id"
                f" WHERE name = ? AND version = ? AND dimensions = ? AND key IN ({marks})",
                (embedder.name, embedder.version, embedder.dimensions, *keys),
            )
            return {key: (digest, stamp) for key, digest, stamp in rows}

    def _load(self, embedder: Embedder) -> _LoadedVectors | None:
        """The vectors in the file; None if the file is missing or damaged."""
        if not os.path.exists(self.path):
            return None
        with suppress(IndexCorrupt), self._read_connection() as connection:
            row = connection.execute(
                "SELECT id FROM models WHERE name = ? AND version = ? AND dimensions = ?",
                (embedder.name, embedder.version, embedder.dimensions),
            ).fetchone()
            if row is None:
                return None
            # Read before the rows: a write in between is noticed next time.
            data_version = pragma(connection, "data_version")
            known = self._loaded
            if known is None or (known.model, known.data_version) != (row[0], data_version):
                self._loaded = _load_vectors(connection, row[0], data_version, embedder.dimensions)
            return self._loaded
        return None

    # The file

    @contextmanager
    def _read_connection(self) -> Iterator[Connection]:
        connection = self._open_database()
        try:
            with explain_errors(self.path, IndexCorrupt):
                yield connection
        except IndexCorrupt:
            # The next writer creates it again.
            self._remove()
            raise

    @contextmanager
    def _write_connection(self) -> Iterator[Connection]:
        with self._read_connection() as connection, transaction(connection):
            self._loaded = None
            yield connection

    def _open_database(self) -> Connection:
        if self._connection is None:
            if not os.path.exists(self.path):
                _make(self.path)
            try:
                self._connection = _open(self.path)
            except IndexCorrupt:
                self._remove()
                _make(self.path)
                self._connection = _open(self.path)
        return self._connection

    def _remove(self) -> None:
        self.close()
        discard(self.path)


def _open(path: str) -> Connection:
    with (
        explain_errors(path, IndexCorrupt),
        closed_on_failure(connect(path, "mode=rw")) as connection,
    ):
        expect_mark(connection, path, APPLICATION_ID, VERSION)
        connection.execute("SELECT count(*) FROM models").fetchone()
        # A power failure may lose the last batches, but never the file; they are computed again.
        connection.execute("PRAGMA synchronous = NORMAL")
        # A vector reveals something about its text, so deleted vectors are overwritten.
        connection.execute("PRAGMA secure_delete = ON")
        return connection


def _make(path: str) -> None:
    """Create an empty file, unless another process is first. It gets its name when it is
    complete."""
    with explain_errors(path, IndexCorrupt), disk.explain_errors("making the file of vectors"):
        disk.make_folder(folder_of(path))
        with temporary_file(path) as temporary:
            with closing(connect(temporary, "mode=rw")) as connection:
                with transaction(connection):
                    execute_script(connection, _SCHEMA)
                    mark(connection, APPLICATION_ID, VERSION)
                connection.execute("PRAGMA journal_mode = WAL")
            try:
                os.link(temporary, path)
            except FileExistsError:
                pass
            except OSError as error:
                if error.errno not in disk.NO_LINKS:
                    raise
                os.replace(temporary, path)


def _model(connection: Connection, embedder: Embedder) -> int:
    identity = (embedder.name, embedder.version, embedder.dimensions)
    connection.execute(
        "INSERT OR IGNORE INTO models (name, version, dimensions) VALUES (?, ?, ?)", identity
    )
    number: int = connection.execute(
        "SELECT id FROM models WHERE name = ? AND version = ? AND dimensions = ?", identity
    ).fetchone()[0]
    return number


def _load_vectors(
    connection: Connection, model: int, data_version: int, dimensions: int
) -> _LoadedVectors:
    import numpy

    stored = connection.execute(
        "SELECT key, stamp, scale, bytes FROM vectors WHERE model = ? AND length(bytes) = ?",
        (model, dimensions),
    ).fetchall()
    keys = [key for key, _, _, _ in stored]
    rows = numpy.frombuffer(b"".join(row for _, _, _, row in stored), numpy.int8)
    rows = rows.reshape(len(keys), dimensions)
    signs = None
    if len(keys) > _MANY:
        signs = _signs(rows)
    return _LoadedVectors(
        model,
        data_version,
        keys,
        [stamp for _, stamp, _, _ in stored],
        {key: place for place, key in enumerate(keys)},
        numpy.array([scale for _, _, scale, _ in stored], numpy.float32),
        rows,
        signs,
    )


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _quantise(matrix: "Matrix") -> Iterator[tuple[float, bytes]]:
    """Each row as signed bytes, with the factor that restores its length."""
    import numpy

    for vector in matrix:
        largest = float(numpy.abs(vector).max()) or 1.0
        row = numpy.rint(vector * (127 / largest)).astype(numpy.int8)
        length = float(numpy.linalg.norm(row.astype(numpy.float32)))
        yield (1 / length if length else 0.0), row.tobytes()


def _signs(rows: "NDArray[numpy.int8] | Matrix") -> "NDArray[numpy.uint64]":
    """One bit per number, in 64-bit words."""
    import numpy

    bits = numpy.packbits(rows > 0, axis=-1)
    missing = -bits.shape[-1] % 8
    padded = numpy.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)])
    return numpy.ascontiguousarray(padded).view(numpy.uint64)


def _nearest_by_signs(
    signs: "NDArray[numpy.uint64]",
    query_vector: "Matrix",
    places: "NDArray[numpy.intp]",
    count: int,
) -> "NDArray[numpy.intp]":
    """The positions whose signs differ least from the query's: `count` of them, and ties."""
    import numpy

    among = signs if len(places) == len(signs) else signs[places]
    differing = numpy.einsum(
        "ij->i", numpy.bitwise_count(among ^ _signs(query_vector)), dtype=numpy.intp
    )
    enough = numpy.searchsorted(numpy.bincount(differing).cumsum(), count)
    alike: NDArray[numpy.intp] = places[differing <= enough]
    return alike


def _cosines(
    loaded: _LoadedVectors, query_vector: "Matrix", places: "NDArray[numpy.intp]"
) -> "NDArray[numpy.float32]":
    import numpy

    cosines = numpy.empty(len(places), numpy.float32)
    is_all = len(places) == len(loaded.keys)
    for begin in range(0, len(places), _SCANNED):
        # A slice of all rows need not be copied first.
        part = slice(begin, begin + _SCANNED) if is_all else places[begin : begin + _SCANNED]
        # Not `@`: the threads of its library would stay busy long after the product is done.
        cosines[begin : begin + _SCANNED] = numpy.einsum("ij,j->i", loaded.rows[part], query_vector)
    return cosines * loaded.scales[places]
