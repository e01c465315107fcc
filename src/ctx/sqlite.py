"""What every SQLite file here rests on. It knows nothing about their tables.

There are two kinds, and they live differently:

- **Truth** is migrated and never rebuilt. `open_truth` brings it to the present version after
  a backup, and what was committed survives a power cut.
- **Derived** files are rebuilt and never migrated. They are built under a temporary name,
  sealed with a checksum, renamed into place and never written again; to extend one,
  `build_derived` changes a copy. So a reader keeps what it opened, and a changed byte shows.

A file of truth is opened by SQLite alone, even to look at its first bytes: closing any other
handle on it would drop the locks of every connection that this process has to it.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from sqlite3 import Connection
from typing import BinaryIO

from ctx import clock, disk
from ctx.errors import CtxError, DatabaseFailure, DiskFailure, IndexCorrupt, NewerFormat

Change = Callable[[Connection], object]
"""A migration, or the making of a derived file. It runs inside a transaction."""

BUSY_MS = 5000
BACKUPS_KEPT = 5

_IMMUTABLE = "mode=ro&immutable=1"
_JOURNALS = ("-wal", "-shm", "-journal")
_STALE_S = 86400


def open_truth(
    path: str, *, application_id: int, migrations: Sequence[Change], busy_ms: int = BUSY_MS
) -> Connection:
    """Open a database of truth, made or migrated as needed.

    `migrations[0]` makes version 1. All that are missing run in one transaction: an upgrade
    happens as a whole or not at all, and in one process.
    """
    with explained(path), disk.explained("opening a database"):
        disk.make_folder(_folder(path))
        try:
            return _opened(path, application_id, migrations, busy_ms)
        except sqlite3.OperationalError as error:
            if not _lacks_shared_memory(error):
                raise
            # Give up WAL for good. With exclusive locking SQLite can read it all the same.
            with closing(_connect(path, "mode=rw", busy_ms)) as connection:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA journal_mode = DELETE")
            return _opened(path, application_id, migrations, busy_ms)


def read_truth(
    path: str, *, application_id: int, migrations: Sequence[Change], busy_ms: int = BUSY_MS
) -> Connection:
    """Open a database of truth without ever writing, also where nothing can be written."""
    with explained(path), _closed_on_failure(_connect_for_reading(path, busy_ms)) as connection:
        if _version(connection, path, application_id, len(migrations)) < len(migrations):
            raise DatabaseFailure(
                f"The database {_shown(path)} was written by an older ctx.",
                hint="Run a command that may write to it; that brings it up to date.",
            )
        return connection


def open_derived(path: str, *, application_id: int, version: int, build: Change) -> Connection:
    """Open a derived file for reading; build it if it is missing, damaged or of another kind."""
    try:
        return read_derived(path, application_id=application_id, version=version)
    except IndexCorrupt:
        return build_derived(path, application_id=application_id, version=version, build=build)


def read_derived(path: str, *, application_id: int, version: int) -> Connection:
    """Open a derived file for reading, or raise `IndexCorrupt`."""
    with explained(path, IndexCorrupt):
        _verify_seal(path)
        with _closed_on_failure(_connect(path, _IMMUTABLE)) as connection:
            found = _pragma(connection, "application_id"), _pragma(connection, "user_version")
            if found != (application_id, version):
                raise IndexCorrupt(f"The index {_shown(path)} has another layout.")
            return connection


def build_derived(
    path: str, *, application_id: int, version: int, build: Change, source: str | None = None
) -> Connection:
    """Build a derived file, put it in place, and open it for reading.

    With a source, `build` changes a copy of that derived file; damage in it raises
    `IndexCorrupt` and is not passed on. Several processes may build one file at once: each
    gets its own, all are whole, and the last one stays.
    """
    with explained(path, IndexCorrupt), disk.explained("building an index"):
        disk.make_folder(_folder(path))
        with _temporary(path) as temporary:
            if source is not None:
                with open(temporary, "wb") as copy:
                    copy.writelines(_unsealed(source))
            with closing(_connect(temporary, "mode=rw")) as building:
                # Nobody else sees the file until it is sealed, and after a crash nobody will.
                building.execute("PRAGMA journal_mode = MEMORY")
                building.execute("PRAGMA synchronous = OFF")
                with transaction(building):
                    building.execute(f"PRAGMA application_id = {application_id:d}")
                    building.execute(f"PRAGMA user_version = {version:d}")
                    build(building)
            seal(temporary)
            # Opened before it has its name, the connection is to this file and no other's.
            with _closed_on_failure(_connect(temporary, _IMMUTABLE)) as connection:
                # We read it as immutable, which ignores journals. Other programs would apply
                # those that an earlier file left behind.
                for suffix in _JOURNALS:
                    disk.discard(path + suffix)
                os.replace(temporary, path)
                disk.sync_folder(_folder(path))
                return connection


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """All of the block or nothing, and durable at its end.

    So there is no nesting: an inner block would end without being durable. What writes as a
    part of something takes a connection that is in a transaction already.
    """
    nested: bool = connection.in_transaction
    if nested:
        raise RuntimeError("a transaction is open already")
    try:
        # Only the write lock can be waited for; a reader that turns writer is refused at once.
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself where the disk was full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def execute_script(connection: Connection, script: str) -> None:
    """Run several statements. `executescript` would commit an open transaction first."""
    statement = ""
    for part in script.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    connection.execute(statement)


@contextmanager
def explained(path: str, damage: type[CtxError] = DatabaseFailure) -> Iterator[None]:
    """Turn what SQLite says into a sentence with the next step.

    For a derived file, the damage is `IndexCorrupt`. Violated constraints, misuse and
    interruption are the caller's business and stay as they are.
    """
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.DatabaseError as error:
        if _code(error) == sqlite3.SQLITE_INTERRUPT:
            raise
        raise _failure(path, error, damage) from error
    except UnicodeDecodeError as error:
        # Python cannot read SQLite's own message, because it quotes a damaged name.
        raise _failure(path, sqlite3.DatabaseError(str(error)), damage) from error


def application_id_of(path: str) -> int | None:
    """The application id in a database's header; None where there is no database.

    Nothing is locked, made or recovered, so it is safe to ask about another program's file.
    Ours have their id in the file, not only in the write-ahead log, from the first commit on.
    """
    try:
        with closing(_connect(path, _IMMUTABLE)) as connection:
            # SQLite takes an empty file for an empty database.
            return _pragma(connection, "application_id") if _size(path) else None
    except sqlite3.DatabaseError:
        return None


def backups(path: str) -> list[str]:
    """The backups that migrations made of a database, oldest first."""
    prefix = os.path.basename(path) + ".backup-v"
    found = [name for name in disk.names(_folder(path)) if name.startswith(prefix)]
    found.sort(key=lambda name: name.rsplit("-", 1)[1])
    return [os.path.join(_folder(path), name) for name in found]


def check_truth(path: str) -> list[str]:
    """What is wrong with a database of truth; empty where nothing is. Never raises.

    SQLite has no checksums: a byte that changed inside a text is not found.
    """
    try:
        with explained(path), closing(_connect_for_reading(path, BUSY_MS)) as connection:
            rows = connection.execute("PRAGMA foreign_key_check").fetchall()
            orphans = [f"Row {row[1]} of {row[0]} has no row in {row[2]}." for row in rows]
            return _integrity_problems(connection) + orphans
    except CtxError as error:
        return [error.message]


def check_derived(path: str) -> list[str]:
    """What is wrong with a derived file, in any byte; empty where nothing is. Never raises."""
    try:
        with explained(path, IndexCorrupt):
            for _ in _unsealed(path):
                pass
            with closing(_connect(path, _IMMUTABLE)) as connection:
                return _integrity_problems(connection)
    except CtxError as error:
        return [error.message]


# Truth


def _opened(
    path: str, application_id: int, migrations: Sequence[Change], busy_ms: int
) -> Connection:
    # Another program's file is refused before SQLite might recover or checkpoint it. Where
    # the header cannot be read, a journal may still mend it, which SQLite finds out.
    if application_id_of(path) not in (None, application_id):
        raise _foreign(path)
    fresh, alone = not _size(path), not _size(path + "-wal")
    with _closed_on_failure(_connect(path, "mode=rwc", busy_ms)) as connection:
        if fresh:
            # The journals that SQLite makes beside it take over its permissions.
            os.chmod(path, disk.FILE_MODE)
        # What is committed must be durable, not merely whole: one sync for each commit.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        # A migration may replace a table, and dropping the old one must not cascade.
        connection.execute("PRAGMA foreign_keys = OFF")
        _migrate(connection, path, application_id, migrations)
        connection.execute("PRAGMA foreign_keys = ON")
        if fresh:
            # With WAL readers go on while one process writes. It is tried once: to try at each
            # opening would show other processes a mode that this file system may not have.
            connection.execute("PRAGMA journal_mode = WAL")
            disk.sync_folder(_folder(path))
        if alone:
            _prove_wal(connection)
        return connection


def _prove_wal(connection: Connection) -> None:
    """Raise what a write would. SQLite says "wal" also where its shared memory is of no use."""
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        try:
            with transaction(connection):
                pass
        except sqlite3.OperationalError as error:
            # Whoever holds the lock has proved it.
            if _code(error) != sqlite3.SQLITE_BUSY:
                raise


def _migrate(
    connection: Connection, path: str, application_id: int, migrations: Sequence[Change]
) -> None:
    newest = len(migrations)
    if _version(connection, path, application_id, newest) == newest:
        return
    with transaction(connection):
        # Another process may have migrated while this one waited for the lock.
        version = _version(connection, path, application_id, newest)
        if version == newest:
            return
        if version:
            _back_up(path, version)
        else:
            connection.execute(f"PRAGMA application_id = {application_id:d}")
            connection.execute(
                "CREATE TABLE schema_version"
                " (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)"
            )
        for number, migration in enumerate(migrations[version:], version + 1):
            name = getattr(migration, "__name__", f"to version {number}")
            try:
                migration(connection)
            except sqlite3.Error as error:
                what = f"The migration {name} of {_shown(path)} failed and was undone: {error}."
                full = _code(error) == sqlite3.SQLITE_FULL
                raise (DiskFailure(what) if full else DatabaseFailure(what)) from error
            if not connection.in_transaction:
                raise RuntimeError(f"{name} ended the transaction, as executescript() does")
            now = clock.iso(clock.now_ms())
            connection.execute("INSERT INTO schema_version VALUES (?, ?)", (number, now))
        if row := connection.execute("PRAGMA foreign_key_check").fetchone():
            what = f"leaves row {row[1]} of {row[0]} without its row in {row[2]}, and was undone"
            raise DatabaseFailure(f"Migrating {_shown(path)} {what}.")


def _version(connection: Connection, path: str, application_id: int, newest: int) -> int:
    """The version of a database of ours; 0 for an empty one."""
    if _pragma(connection, "application_id") != application_id:
        if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise _foreign(path)
        return 0
    version = connection.execute("SELECT max(version) FROM schema_version").fetchone()[0] or 0
    if version > newest:
        what = f"has version {version}, and this ctx knows only {newest}"
        raise NewerFormat(f"The database {_shown(path)} {what}.")
    return int(version)


def _back_up(path: str, version: int) -> None:
    """Copy a database whose write lock is held, under a name that says which and when."""
    now = clock.iso(clock.now_ms()).replace("-", "").replace(":", "")
    with _temporary(path) as temporary:
        # SQLite does not copy from the connection that holds the write lock.
        with (
            closing(_connect(path, "mode=ro")) as source,
            closing(_connect(temporary, "mode=rw")) as target,
        ):
            # Python's backup() waits for the read lock without end, so it is taken before.
            source.execute("BEGIN")
            source.execute("SELECT 1 FROM sqlite_master").fetchone()
            source.backup(target)
        with open(temporary, "rb") as file:
            disk.sync(file.fileno())
        os.replace(temporary, f"{path}.backup-v{version:03d}-{now}")
        disk.sync_folder(_folder(path))
    for old in backups(path)[:-BACKUPS_KEPT]:
        disk.discard(old)


def _connect_for_reading(path: str, busy_ms: int) -> Connection:
    try:
        with _closed_on_failure(_connect(path, "mode=ro", busy_ms)) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            return connection
    except sqlite3.OperationalError as error:
        # Reading in WAL mode needs a file for shared memory, which a read-only folder refuses.
        # Where no log is left, the database itself is everything there is.
        if _size(path + "-wal") or not _lacks_shared_memory(error):
            raise
    return _connect(path, _IMMUTABLE, busy_ms)


# Derived

_SEAL_MARK = b"CTXSEAL1"
_SEAL_SIZE = len(_SEAL_MARK) + 8 + 32
_SECTOR = 512  # The size of an SQLite file is a multiple of it; the seal comes after.
_READ_SIZE = 1 << 20
_SMALL = 1 << 20  # Hashed in less than a millisecond, so at each opening.


def seal(path: str) -> None:
    """Append a checksum of all its bytes to a closed SQLite file, and sync it.

    The seal is behind the last page, where SQLite does not look, so that one rename moves
    both. It holds the file's modification time too, set one second back: whatever is written
    later, even at once, leaves another one.
    """
    import hashlib

    sealed_at = clock.now_s() - 1
    with open(path, "r+b") as file:
        size = os.fstat(file.fileno()).st_size
        file.truncate(size - size % _SECTOR)
        digest = hashlib.sha256()
        while part := file.read(_READ_SIZE):
            digest.update(part)
        head = _SEAL_MARK + sealed_at.to_bytes(8, "big")
        digest.update(head)
        file.write(head + digest.digest())
        file.flush()
        os.utime(file.fileno(), (sealed_at, sealed_at))
        disk.sync(file.fileno())


def _verify_seal(path: str) -> None:
    """Raise `IndexCorrupt` if a derived file is not what was sealed.

    A large file whose time is the seal's was neither written nor copied since, and is not
    read: only a failing disk could have changed it, and `check_derived` finds that.
    """
    with _reading(path) as file:
        status = os.fstat(file.fileno())
        sealed_at = int.from_bytes(_seal_head(path, file)[len(_SEAL_MARK) :], "big")
    if status.st_size <= _SMALL or status.st_mtime_ns != sealed_at * 1_000_000_000:
        for _ in _unsealed(path):
            pass


def _unsealed(path: str) -> Iterator[bytes]:
    """The bytes before the seal; raises `IndexCorrupt` after the last one if they differ."""
    import hashlib

    with _reading(path) as file:
        head = _seal_head(path, file)
        left = file.tell() - len(head)
        file.seek(0)
        digest = hashlib.sha256()
        while part := file.read(min(left, _READ_SIZE)):
            left -= len(part)
            digest.update(part)
            yield part
        digest.update(head)
        file.seek(len(head), os.SEEK_CUR)
        if file.read() != digest.digest():
            raise IndexCorrupt(f"The index {_shown(path)} is damaged: its checksum is wrong.")


def _seal_head(path: str, file: BinaryIO) -> bytes:
    size = os.fstat(file.fileno()).st_size
    if size % _SECTOR == _SEAL_SIZE:
        file.seek(size - _SEAL_SIZE)
        head = file.read(len(_SEAL_MARK) + 8)
        if head.startswith(_SEAL_MARK):
            return head
    raise IndexCorrupt(f"The index {_shown(path)} is damaged: it has no seal.")


@contextmanager
def _reading(path: str) -> Iterator[BinaryIO]:
    with disk.explained("reading an index"):
        try:
            file = open(path, "rb")  # noqa: SIM115
        except FileNotFoundError as error:
            raise IndexCorrupt(f"There is no index {_shown(path)}.") from error
        with file:
            yield file


# Connections and files


def _connect(path: str, options: str, busy_ms: int = BUSY_MS) -> Connection:
    name = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    # Without an isolation level Python begins no transactions of its own.
    return sqlite3.connect(
        f"file://{name}?{options}", uri=True, isolation_level=None, timeout=busy_ms / 1000
    )


@contextmanager
def _closed_on_failure(connection: Connection) -> Iterator[Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


@contextmanager
def _temporary(path: str) -> Iterator[str]:
    """An empty file beside `path`, which the block renames or which is removed.

    What a killed process left there a day ago is removed too.
    """
    for name in disk.names(_folder(path)):
        if name.startswith(os.path.basename(path) + ".") and disk.TEMPORARY_SUFFIX in name:
            old = os.path.join(_folder(path), name)
            with suppress(FileNotFoundError):
                if os.path.getmtime(old) < clock.now_s() - _STALE_S:
                    disk.discard(old)
    temporary = f"{path}.{os.urandom(8).hex()}{disk.TEMPORARY_SUFFIX}"
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, disk.FILE_MODE))
    try:
        yield temporary
    finally:
        for suffix in ("", *_JOURNALS):
            disk.discard(temporary + suffix)


def _folder(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def _pragma(connection: Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _integrity_problems(connection: Connection) -> list[str]:
    rows = connection.execute("PRAGMA integrity_check").fetchall()
    return [row[0] for row in rows if row[0] != "ok"]


# Errors

_RESTORE = "Put the newest backup beside it in its place; `ctx debug verify` lists the damage."


def _failure(path: str, error: sqlite3.DatabaseError, damage: type[CtxError]) -> CtxError:
    name = _shown(path)
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            what = f"Another process is writing to {name} and did not finish in time."
            return DatabaseFailure(what, hint="Wait for it to finish and try again.")
        case sqlite3.SQLITE_FULL:
            what = f"The disk is full while writing to {name}."
            return DiskFailure(what, hint="Free some space and run the command again.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR:
            hint = "Check that it is there, who owns it and its folder, and the disk itself."
            return DiskFailure(f"{name} cannot be used: {error}.", hint=hint)
        case _:
            return damage(
                f"{name} is damaged: {error}.", hint=_RESTORE if damage is DatabaseFailure else None
            )


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary code. Python's own errors have none: they say that text is not UTF-8."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


def _lacks_shared_memory(error: sqlite3.DatabaseError) -> bool:
    """Whether this may be a file system that cannot do WAL, and not the database itself."""
    return _code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or getattr(
        error, "sqlite_errorname", ""
    ).startswith("SQLITE_IOERR_SHM")


def _foreign(path: str) -> DatabaseFailure:
    return DatabaseFailure(
        f"{_shown(path)} is a database of another program; it was not touched.",
        hint="Move it elsewhere, or choose another place for the store.",
    )


def _shown(path: str) -> str:
    # A name that is not UTF-8 must not break the message that complains about it.
    return os.fsencode(path).decode("utf-8", "backslashreplace")
