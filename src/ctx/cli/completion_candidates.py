"""Candidates for a word on the command line.

Only ids, tags, tasks and views are read from stores. An unreadable store offers nothing, and the
index of a project is used as it is: completion does not wait for an update.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Literal, NamedTuple

from ctx import layout
from ctx.cli.terminal import shortened, visible
from ctx.errors import CtxError

if TYPE_CHECKING:
    from sqlite3 import Connection

    from ctx.cli.options import Completes
    from ctx.cli.settings import Settings

MOST = 50

_BUSY_MS = 100
_DESCRIPTION = 60
_PREVIEW_LENGTH = 400
"""Characters of a content that are used for its description."""
_BEHIND_ALL = "\U0010ffff"


class CompletionCandidate(NamedTuple):
    value: str
    description: str = ""


class CompletionOffer(NamedTuple):
    """The answer to the shell, which itself completes `files` and `folders`."""

    candidates: tuple[CompletionCandidate, ...] = ()
    how: Literal["words", "files", "folders"] = "words"


def offer(candidates: Iterable[CompletionCandidate], typed: str) -> CompletionOffer:
    """The candidates that begin with the typed text, ignoring case, as a shell can show them."""
    beginning = typed.lower()
    return CompletionOffer(
        tuple(
            CompletionCandidate(
                value, shortened(visible(" ".join(description.split())), _DESCRIPTION)
            )
            for value, description in candidates
            if value.isprintable() and value.lower().startswith(beginning)
        )
    )


def candidates_for(what: "Completes", typed: str, settings: "Settings") -> CompletionOffer:
    """Candidates for an argument of a kind."""
    match what:
        case "file":
            return CompletionOffer(how="files")
        case "folder":
            return CompletionOffer(how="folders")
        case "node-type":
            from ctx.memory.model import NODE_TYPES

            return offer(map(CompletionCandidate, NODE_TYPES), typed)
        case "edge-type":
            from ctx.memory.model import EDGE_TYPES

            return offer(map(CompletionCandidate, EDGE_TYPES), typed)
        case "setting":
            from ctx.config.schema import SETTINGS

            return offer(
                (CompletionCandidate(known.name, known.doc) for known in SETTINGS.values()), typed
            )
        case "host":
            from ctx.agents.host_setup.known_setups import NAMES

            # Several names are separated by commas.
            before = typed[: typed.rfind(",") + 1]
            return offer((CompletionCandidate(before + name) for name in NAMES), typed)
        case "node":
            return offer(_from_stores(_nodes, typed, settings), typed)
        case "tag":
            return offer(_from_stores(_tags, typed, settings), typed)
        case "task":
            return offer(_from_stores(_tasks, typed, settings), typed)
        case "view":
            return offer(_from_stores(_views, typed, settings), typed)


def _from_stores(
    query: "Callable[[Connection, str], Iterable[CompletionCandidate]]",
    typed: str,
    settings: "Settings",
) -> list[CompletionCandidate]:
    """Candidates from the project store and the user store, the project's first."""
    import sqlite3

    candidates: dict[str, CompletionCandidate] = {}
    for opening in (_index, _user_store):
        try:
            opened = opening(settings)
            if opened is None:
                continue
            with closing(opened) as store:
                for candidate in query(store, typed):
                    known = candidates.get(candidate.value)
                    if known is None or not known.description:
                        candidates[candidate.value] = candidate
        except (CtxError, OSError, UnicodeError, sqlite3.Error):
            continue
    # The shell would take a name that looks like an option for one.
    return [candidate for candidate in candidates.values() if not candidate.value.startswith("-")]


def _user_store(settings: "Settings") -> "Connection | None":
    from ctx.memory.migrations import MIGRATIONS
    from ctx.memory.user_store import APPLICATION_ID
    from ctx.sqlite.truth import application_id_of, read_truth

    path = settings.graph_database
    # A completion does not wait for a server. Even reading another program's database would leave
    # files beside it.
    if layout.is_server(path) or application_id_of(path) != APPLICATION_ID:
        return None
    return read_truth(path, application_id=APPLICATION_ID, migrations=MIGRATIONS, busy_ms=_BUSY_MS)


def _index(settings: "Settings") -> "Connection | None":
    """The index of the current heads, else the last used one, if the project here is trusted."""
    from ctx.project import trust_list

    home = settings.user_store.home
    project = layout.find_project(settings.folder, home)
    # The user waits at every key: do not run git.
    if project is None or not trust_list.is_trusted(home, project):
        return None
    layout.refuse_links(project)

    from ctx.project import project_index_state
    from ctx.sqlite.truth import application_id_of, connect_for_reading

    path = project_index_state.path_for(project, project_index_state.state(project))
    if not os.path.exists(path):
        with os.scandir(project.indexes) as folders:
            others = [os.path.join(folder.path, project_index_state.FILE) for folder in folders]
        path = max(filter(os.path.exists, others), key=os.path.getmtime, default=path)
    if application_id_of(path) != project_index_state.APPLICATION_ID:
        return None
    return project_index_state.if_fit(lambda: connect_for_reading(path, _BUSY_MS), lambda _: True)


def _nodes(store: "Connection", typed: str) -> Iterator[CompletionCandidate]:
    from ctx.memory.graph import Graph

    beginning = typed.upper()
    rows = store.execute(
        "SELECT id, type, substr(coalesce(summary, content), 1, ?) FROM nodes"
        " WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?",
        (_PREVIEW_LENGTH, beginning, beginning + _BEHIND_ALL, MOST),
    ).fetchall()
    shown = Graph(store).shown([row[0] for row in rows])
    for node_id, node_type, text in rows:
        short = shown[node_id]
        value = short if short.startswith(beginning) else node_id
        yield CompletionCandidate(value, f"{node_type}: {text}")
    yield from _documents(store, typed)


def _documents(store: "Connection", typed: str) -> Iterator[CompletionCandidate]:
    """Tasks and decisions by number, if the word begins like one."""
    from ctx.memory import documents_by_number

    if not typed.isidentifier():
        return
    begun = [
        item
        for item in documents_by_number.names(store).items()
        if item[0].startswith(typed.lower())
    ]
    for name, node_id in begun[:MOST]:
        row = store.execute(
            "SELECT type, substr(coalesce(summary, content), 1, ?) FROM nodes WHERE id = ?",
            (_PREVIEW_LENGTH, node_id),
        ).fetchone()
        yield CompletionCandidate(name, f"{row[0]}: {row[1]}")


def _tags(store: "Connection", typed: str) -> Iterator[CompletionCandidate]:
    from ctx.memory.model import TIERS

    rows = store.execute(
        "SELECT tag, count(*) FROM tags WHERE tag >= ? AND tag < ?"
        " GROUP BY tag ORDER BY count(*) DESC, tag LIMIT ?",
        (typed, typed + _BEHIND_ALL, MOST),
    ).fetchall()
    for tag, nodes in rows:
        yield CompletionCandidate(tag, f"{nodes:,} {'node' if nodes == 1 else 'nodes'}")
    used = {tag for tag, _ in rows}
    yield from (CompletionCandidate(tier) for tier in TIERS if tier not in used)


def _tasks(store: "Connection", typed: str) -> Iterator[CompletionCandidate]:
    """Names of tasks, the last used first."""
    beginning = f"task:{typed}"
    for tag, name in store.execute(
        "SELECT tag, (SELECT substr(content, 1, ?) FROM nodes WHERE type = 'task' AND EXISTS"
        "   (SELECT 1 FROM tags AS its WHERE its.node_id = nodes.id AND its.tag = tags.tag)"
        "   ORDER BY id DESC LIMIT 1)"
        " FROM tags WHERE tag >= ? AND tag < ?"
        " GROUP BY tag ORDER BY max(node_id) DESC LIMIT ?",
        (_PREVIEW_LENGTH, beginning, beginning + _BEHIND_ALL, MOST),
    ):
        yield CompletionCandidate(tag.removeprefix("task:"), name or "")
    for numbered in _documents(store, typed):
        if numbered.value.startswith("task_"):
            yield numbered


def _views(store: "Connection", typed: str) -> Iterator[CompletionCandidate]:
    yield from map(
        CompletionCandidate._make,
        store.execute(
            "SELECT name, query FROM views WHERE name >= ? AND name < ? ORDER BY name LIMIT ?",
            (typed, typed + _BEHIND_ALL, MOST),
        ),
    )
