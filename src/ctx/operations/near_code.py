"""The index of the code for commands that are about something else, and must not wait for it.

It is brought up to date if that takes a moment. In a large repository it is made by who asks for it
(`ctx code index`, `ctx add code`); until then these commands do without.
"""

import os
from contextlib import suppress

from ctx import clock
from ctx.code import listing
from ctx.code.lookup import Code
from ctx.code.vocabulary import LARGEST_FILE
from ctx.errors import CtxError
from ctx.operations import code_index
from ctx.operations.code_index import Codebase
from ctx.workspace import Workspace

MOST_FILES = 2_000
"""Of these an index is made in passing: it takes a second or two."""

_WAIT_SECONDS = 2.0
_MOST_SECONDS = 10.0


class _TimeIsUp(Exception):
    """More has changed than can be read in passing. What was read stays read."""


def of(workspace: Workspace) -> Codebase:
    """The code of a project that is open already."""
    config = workspace.config
    return Codebase(
        workspace.project.code,
        "",
        tuple(config.texts("ingestion.ignore_globs")),
        min(config.integer("ingestion.max_file_bytes"), LARGEST_FILE),
    )


def glanced(codebase: Codebase) -> Code | None:
    """The index, as fresh as it gets in a moment; None where there is none. To be closed."""
    place = codebase.place
    if not os.path.isfile(place.database):
        found = listing.belonging(place.root, place.checkout, codebase.ignore_globs)
        if len(found.files) > MOST_FILES:
            return None
    is_in_time = clock.deadline(_MOST_SECONDS)

    def tick(_done: int, _total: int) -> None:
        if not is_in_time():
            raise _TimeIsUp

    # Another process may be at it, or nothing can be written here: then it is what it is.
    with suppress(_TimeIsUp, CtxError):
        code_index.refresh(codebase, tick, wait_seconds=_WAIT_SECONDS)
    return code_index.readable(codebase)
