"""Removes a text from the files of a user store other than its database.

Text files are rewritten, and files that are named after a session are renamed. Copies of the
database are scrubbed like the database, or deleted if that fails. Derived files are deleted and
rebuilt when needed. Files that a person wrote are reported and left unchanged.
"""

import json
import os
import re
import shutil
import sqlite3
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Literal, NamedTuple

from ctx import disk, layout, repository_names
from ctx.code.history import history_tables
from ctx.errors import CtxError
from ctx.exchange import scrub_store
from ctx.hook_files import live
from ctx.llm import ledger
from ctx.memory import user_store
from ctx.memory.records import Record
from ctx.redaction.needle import Needle
from ctx.sqlite import truth
from ctx.sqlite.connection import JOURNALS, connect, discard

_CHUNK = 8 * 1024 * 1024
_OVERLAP = 64 * 1024
_BEING_WRITTEN = "tmp-"
_LARGEST_TEXT = 256 * 1024 * 1024

SESSION_FOLDERS = (live.FOLDER, "off")
"""Folders whose files are named after sessions (see `capture/capture_off.py`)."""
_ABOUT_SESSION = re.compile(
    r"\.(?:before|stop|state|prompted|source|closed|tmp|receipt(?:-\d+)?|(?:start|edit)-[^.]*)\Z"
)
_OF_NAMES = (*SESSION_FOLDERS, repository_names.FOLDER, "deleted")
"""Files with names, which must match those in the database."""

MEANWHILE = "it changed meanwhile: run the command again"
OURS = "in a name that ctx uses itself: of a session, a type or a key"
OF_USER = "it is your file: edit it"
NAMED_SO = "the name of a file contains it"
LINKED = "a link to a path that contains it"

Done = Literal["rewritten", "removed", "made anew"]


class ScrubbedPlace(NamedTuple):
    """Where the text was found, and what was done."""

    where: str
    found: int
    """The number of rows, objects or files."""
    done: Done


class RemainingPlace(NamedTuple):
    where: str
    why: str


def plain_files(folder: str) -> Iterator[str]:
    """All plain files below a folder. Links are not followed."""
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(here, name)
            with suppress(OSError):
                if stat.S_ISREG(os.lstat(path).st_mode):
                    yield path


def holds(path: str, needle: Needle) -> bool:
    """Whether the bytes of a file of any size contain it."""
    if needle.is_rules:
        return False
    tail = b""
    try:
        with open(path, "rb") as file:
            while part := file.read(_CHUNK):
                if needle.is_in_bytes(tail + part):
                    return True
                tail = part[-_OVERLAP:]
    except OSError:
        return False
    return False


def named_so(folder: str, needle: Needle) -> Iterator[str]:
    """The files and folders below one whose own names contain it."""
    for here, folders, names in os.walk(folder):
        for name in sorted((*folders, *names)):
            if needle.name(name) != name:
                yield os.path.join(here, name)


def linked_so(folder: str, needle: Needle) -> Iterator[str]:
    """The links below a folder that lead to a path with it."""
    for here, folders, names in os.walk(folder):
        for path in (os.path.join(here, name) for name in sorted((*folders, *names))):
            with suppress(OSError):
                if os.path.islink(path) and needle.is_in(os.readlink(path)):
                    yield path


def every_file_beside(home: str, database: str) -> Iterator[str]:
    """The files of a user store except the database."""
    own = {os.path.realpath(database) + suffix for suffix in ("", *JOURNALS)}
    return (path for path in plain_files(home) if os.path.realpath(path) not in own)


def files_beside(home: str, database: str) -> Iterator[str]:
    """The same without locks, temporary files, and the random keys of sync targets."""
    keys = os.path.join(home, layout.SYNC, "")
    for path in every_file_beside(home, database):
        name = os.path.basename(path)
        is_key = name.endswith(".key") and path == keys + name
        if not (name.lower().endswith("lock") or name.startswith(_BEING_WRITTEN) or is_key):
            yield path


def new_name(home: str, path: str, needle: Needle) -> str | None:
    """The new path of a file that is named after a session; None if the name can stay."""
    folder, name = os.path.split(path)
    if os.path.relpath(folder, home) not in SESSION_FOLDERS:
        return None
    about = _ABOUT_SESSION.search(name)
    ending = about.group() if about else ""
    after = needle.name(name.removesuffix(ending)) + ending
    return None if after == name else os.path.join(folder, after)


def is_copy(path: str) -> bool:
    """Whether a file is a copy of the store: a backup or a set-aside database."""
    with suppress(OSError):
        with open(path, "rb") as file:
            if not file.read(16).startswith(b"SQLite format 3"):
                return False
        return truth.application_id_of(path) == user_store.APPLICATION_ID
    return False


def is_ledger(path: str) -> bool:
    """Whether a file is the model ledger, a backup of it, or a journal of one."""
    for suffix in JOURNALS:
        path = path.removesuffix(suffix)
    return truth.application_id_of(path) == ledger.APPLICATION_ID


def ledger_holds(path: str, needle: Needle) -> int | None:
    """How often a ledger contains it, in rows or free pages; None if it cannot be read."""
    rows = ledger_rows_hold(path, needle)
    return rows if rows != 0 else int(any(holds(path + end, needle) for end in ("", *JOURNALS)))


def ledger_rows_hold(path: str, needle: Needle) -> int | None:
    """How many rows of a ledger contain it; None if it cannot be read."""
    try:
        return ledger.count_matching(path, needle)
    except CtxError:
        return None


def code_holds(path: str, needle: Needle) -> bool:
    """Whether the index of some code contains it, also in compressed commit messages."""
    if any(holds(path + suffix, needle) for suffix in ("", *JOURNALS)):
        return True
    if needle.is_rules or not os.path.exists(path):
        return False
    try:
        with closing(connect(path, "mode=ro")) as connection:
            return any(map(needle.is_in, history_tables.messages(connection)))
    except (sqlite3.Error, CtxError, ValueError, zlib.error):
        # What cannot be read is rebuilt.
        return True


def derived_holds(path: str, needle: Needle) -> bool:
    is_code = os.path.basename(path) == layout.CODE_INDEX
    return code_holds(path, needle) if is_code else holds(path, needle)


def is_set_aside(path: str, database: str) -> bool:
    """Whether a file is a set-aside store, readable or not."""
    name, base = os.path.basename(path), os.path.basename(database)
    return name.startswith((f"{base}.damaged-", f"{base}.replaced-", f"{base}.backup-"))


def is_derived(home: str, path: str) -> bool:
    inside = os.path.relpath(path, home)
    # The private clone of a sync target is fetched again.
    is_clone = inside.split(os.sep)[0] == layout.SYNC and inside.count(os.sep) > 1
    return is_clone or inside.startswith((layout.VECTORS, "code" + os.sep))


def remove_derived(home: str, path: str) -> None:
    """Delete an index with its journals: a leftover journal would be applied to the next one."""
    inside = os.path.relpath(path, home).split(os.sep)
    if len(inside) > 2:
        shutil.rmtree(os.path.join(home, *inside[:2]), ignore_errors=True)
    else:
        discard(os.path.join(home, layout.VECTORS))


def is_user_file(home: str, path: str) -> bool:
    """Whether a person wrote the file or made the decision it stores."""
    inside = os.path.relpath(path, home)
    is_sync = os.path.dirname(inside) == layout.SYNC
    return is_sync or inside in (layout.CONFIG_NAME, "trusted.json")


def copy_holds(path: str, needle: Needle) -> int | None:
    """How often a copy contains it, in rows or free pages; None if it cannot be read."""
    rows = rows_hold(path, needle)
    return rows if rows != 0 else int(any(holds(path + end, needle) for end in ("", *JOURNALS)))


def rows_hold(path: str, needle: Needle) -> int | None:
    """How many rows of a copy contain it; None if the copy cannot be read."""
    try:
        with closing(truth.connect_for_reading(path)) as connection:
            return scrub_store.find(connection, needle).total()
    except (sqlite3.Error, CtxError, UnicodeDecodeError, ValueError):
        return None


def only_in_schema(path: str, needle: Needle) -> bool:
    """Whether a database contains it in no row, so only in names that ctx itself uses."""
    if is_ledger(path):
        return not path.endswith(JOURNALS) and ledger_rows_hold(path, needle) == 0
    return is_copy(path) and rows_hold(path, needle) == 0


def scrub_copy(path: str, needle: Needle) -> Done:
    """Scrub a copy; delete it if that fails."""
    return _change_copy(path, lambda connection: scrub_store.scrub_copy(connection, needle))


def replace_in_copy(path: str, scrubbed: Sequence[Record]) -> Done:
    """Replace records that were scrubbed elsewhere in a copy; delete it if that fails."""
    return _change_copy(path, lambda connection: scrub_store.replace_in_copy(connection, scrubbed))


def _change_copy(path: str, change: Callable[[sqlite3.Connection], object]) -> Done:
    try:
        with closing(connect(path, "mode=rw")) as connection:
            change(connection)
    except (sqlite3.Error, CtxError, UnicodeDecodeError, ValueError):
        discard(path)
        return "removed"
    for suffix in JOURNALS:
        disk.discard(path + suffix)
    return "rewritten"


def rewritten(path: str, needle: Needle) -> bytes | None:
    """The contents of a text file without it; None if the file does not contain it."""
    try:
        if os.path.getsize(path) > _LARGEST_TEXT:
            return None
        data = disk.read_plain(path, _LARGEST_TEXT)
    except OSError:
        return None
    text = data.decode("utf-8", "surrogateescape")
    if text.lstrip()[:1] in ("{", "[") and not path.endswith(".md"):
        with suppress(ValueError, RecursionError):
            before = json.loads(text)
            after = _with_names(before, needle.scrubbed_json(before, keys=True), needle)
            if after == before:
                return None
            return json.dumps(after).encode("utf-8", "surrogatepass")
    is_name = not set(_OF_NAMES).isdisjoint(path.split(os.sep)[-2:])
    after_text = needle.name(text) if is_name else needle.scrubbed(text)
    return after_text.encode("utf-8", "surrogateescape") if after_text != text else None


def scrub_text(home: str, path: str, needle: Needle, *, acting: bool) -> bool:
    """Remove it from a text file and from its name; whether it was there."""
    after, target = rewritten(path, needle), new_name(home, path, needle)
    if acting:
        with disk.explain_errors("writing a file without what is to go"):
            if after is not None:
                write(path, after)
            if target is not None:
                os.replace(path, target)
                disk.sync_folder(os.path.dirname(target))
    return after is not None or target is not None


def _with_names(before: Any, after: Any, needle: Needle) -> Any:
    """An event whose names are the same as in the database: of its session, paths and branch."""
    if not isinstance(before, dict):
        return after
    names = {
        key: needle.name(value)
        for key, value in before.items()
        if isinstance(value, str) and not value.partition(" ")[1]
    }
    return {**after, **names}


def write(path: str, data: bytes) -> None:
    """Replace the contents of a file; a log in place, since another process may have it open."""
    if ".log" not in os.path.basename(path):
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        temporary = disk.write_temporary(path, data)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
        disk.sync_folder(os.path.dirname(path))
        return
    fd = os.open(path, os.O_RDWR)
    try:
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
        disk.sync(fd)
    finally:
        os.close(fd)
