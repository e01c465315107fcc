"""The code index of a checkout, as the product builds it: files, names, history with fingerprints.

The index is carried along from commit to commit of a repository. With a folder for indexes, that of
each task is kept there, and a later run opens it without a refresh. Such a folder is for comparing
versions of ctx that index alike.
"""

import os
from contextlib import closing

from bench.checkouts import Checkout
from ctx import clock
from ctx.code import index_file
from ctx.code.lookup import Code
from ctx.codebase import indexing
from ctx.ids import session_id
from ctx.layout import UserStore
from ctx.workspace import Environment

_PATIENT_SECONDS = 600.0


def open_index(checkout: Checkout, home: str, *, with_edges: bool, kept: str | None = None) -> Code:
    """The index of the current commit, with every edge or with what a ranking of files needs."""
    environment = Environment(checkout.root, UserStore(home), {}, (), session_id("bench"))
    codebase = indexing.codebase_at(environment)
    if kept and os.path.exists(kept):
        known = codebase._replace(place=codebase.place._replace(database=kept))
        if code := indexing.open_readable(known):
            return code
    if with_edges:
        indexing.update(codebase, clock.no_tick)
    else:
        indexing.refresh(codebase)
        indexing.read_history(codebase, clock.no_tick, _PATIENT_SECONDS)
    if kept:
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        with closing(index_file.open_existing(codebase.place.database)) as opened:
            opened.execute("VACUUM INTO ?", (f"{kept}.part",))
        os.replace(f"{kept}.part", kept)
    code = indexing.open_readable(codebase)
    assert code is not None
    return code
