"""Show an object by its id, or a file by the hash that packs and the code index know it by."""

import os
from contextlib import suppress
from typing import Any, NamedTuple

from ctx import disk
from ctx.code import code_snapshots
from ctx.codebase import indexing
from ctx.codebase.indexing import Codebase
from ctx.errors import ObjectNotFound, UsageError
from ctx.ids import ObjectId, object_prefix
from ctx.objects import codec
from ctx.objects.object_store import blob, decode
from ctx.objects.repository import Repository


class ObjectDetails(NamedTuple):
    """An object as `debug cat` shows it: a blob has text, a typed object has fields."""

    id: ObjectId
    kind: str
    type: str
    bytes: int
    text: str | None
    fields: Any
    path: str | None = None
    """The file that has this content, if the object is not stored."""


def find(repository: Repository | None, codebase: Codebase, text: str) -> ObjectDetails:
    """An object of the project's store, else a file of the code index."""
    if repository is not None:
        with suppress(ObjectNotFound):
            return _stored_object(repository, text)
    if (found := _file(codebase, object_prefix(text))) is not None:
        return found
    raise ObjectNotFound(
        f"No object begins with {object_prefix(text)}.",
        hint="`ctx debug history` and `ctx debug refs` show ids. A file that a pack names by its"
        " `object_id` is found as long as it has not changed.",
    )


def _stored_object(repository: Repository, text: str) -> ObjectDetails:
    id = repository.resolve(text)
    found = repository.everything.read(id)
    value = decode(found)
    if value is None:
        content = found.payload.decode("utf-8", "backslashreplace")
        return ObjectDetails(id, "blob", "blob", len(found.payload), content, None)
    fields = codec.raw_fields(found.payload)
    return ObjectDetails(id, "typed", codec.type_name(value), len(found.payload), None, fields)


def _file(codebase: Codebase, prefix: str) -> ObjectDetails | None:
    """The file whose content has a hash with this prefix, if it still has that content."""
    code = indexing.open_readable(codebase)
    if code is None:
        return None
    with code:
        known = code.files_with_hash(prefix)
    if len({hash for _, hash in known}) > 1:
        listed = ", ".join(path for path, _ in known[:8])
        raise UsageError(
            f"{len(known)} files begin with {prefix}: {listed}.", hint="Give more of the id."
        )
    for path, hash in known:
        with suppress(OSError):
            content = disk.read(os.path.join(codebase.place.root, path))
            if code_snapshots.digest(content) == hash:
                text = content.decode("utf-8", "backslashreplace")
                id = blob(content).id
                return ObjectDetails(id, "blob", "blob", len(content), text, None, path)
    return None
