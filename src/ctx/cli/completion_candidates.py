"""Candidates for a word on the command line: ids, tags, settings.

Stores are only read, and an unreadable one offers nothing. The index of a project is used as it is:
completion does not wait for an update.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock, layout
from ctx.cli.terminal import one_line, shortened, visible
from ctx.errors import CtxError

if TYPE_CHECKING:
    from sqlite3 import Connection

    from ctx.cli.options import Completes
    from ctx.cli.settings import Settings
    from ctx.layout import Project

MOST = 50

_BUSY_MS = 100
_DESCRIPTION = 60
_PREVIEW_LENGTH = 400
"""Characters of a content that are used for its description."""
_BEHIND_ALL = "\U0010ffff"
# For a long history, only recent changes are offered, because the user waits. The stamps of
# documents are in the far future: they are not changes made by commands.
_RECENT = (
    "(SELECT * FROM records WHERE stamp > 0 AND stamp < 1 << 62 ORDER BY stamp DESC LIMIT 20000)"
)


class CompletionCandidate(NamedTuple):
    value: str
    description: str = ""


class CompletionOffer(NamedTuple):
    """The answer to the shell."""

    candidates: tuple[CompletionCandidate, ...] = ()
    how: str = "words"
    """`words`; `open` adds no space after a word; the shell completes `files` and `folders`."""


def offer(
    candidates: Iterable[CompletionCandidate], typed: str, how: str = "words"
) -> CompletionOffer:
    """The candidates that begin with the typed text, ignoring case, as a shell can show them."""
    beginning = typed.lower()
    return CompletionOffer(
        tuple(
            CompletionCandidate(value, shortened(visible(one_line(description)), _DESCRIPTION))
            for value, description in candidates
            if value.isprintable() and value.lower().startswith(beginning)
        ),
        how,
    )


def candidates_for(
    what: "Completes", typed: str, settings: "Settings", node: str = ""
) -> CompletionOffer:
    """Candidates for an argument of a kind, on a line that may name a node before it."""
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
        case "assignment":
            return _assignments(typed)
        case "target":
            return offer(_targets(settings), typed)
        case "own-tag":
            return offer(_store_candidates(what, node, settings), typed)
        case "untracked" | "discarded":
            return offer(_commits(what, settings), typed)
        case "session" | "chain":
            return offer(_sessions(what, settings), typed)
        case "end":
            named = offer(_store_candidates(what, typed, settings), typed)
            return named if named.candidates else CompletionOffer(how="files")
        case "code":
            named = offer(_code(typed, settings), typed)
            return named if named.candidates else CompletionOffer(how="files")
        case "past-session":
            return offer(_store_candidates(what, typed, settings), typed)
        case "node" | "deleted" | "change" | "receipt" | "tag" | "project" | "view" | "task":
            return offer(_store_candidates(what, typed, settings), typed)


def _targets(settings: "Settings") -> list[CompletionCandidate]:
    from ctx.sync import git_target, target_settings

    try:
        targets = target_settings.targets(settings.user_store)
    except (CtxError, OSError):
        return []
    return [CompletionCandidate(each.name, git_target.shown(each.place)) for each in targets]


def _assignments(typed: str) -> CompletionOffer:
    """`KEY=`, followed by the values of a setting if they are few."""
    from ctx.config.schema import SETTINGS

    key, equals, _ = typed.partition("=")
    if not equals:
        keys = (CompletionCandidate(f"{known.name}=", known.doc) for known in SETTINGS.values())
        return offer(keys, typed, "open")
    known = SETTINGS.get(key)
    if known is None:
        return CompletionOffer()
    values = ("true", "false") if known.kind == "flag" else known.choices
    return offer((CompletionCandidate(f"{key}={value}") for value in values), typed)


def _store_candidates(what: str, typed: str, settings: "Settings") -> list[CompletionCandidate]:
    """Candidates from the project store and the user store, the project's first."""
    import sqlite3

    queries = {
        "end": _documents,
        "node": _nodes,
        "deleted": _deleted_nodes,
        "change": _changes,
        "receipt": _receipts,
        "past-session": _past_sessions,
        "tag": _tags,
        "own-tag": _own_tags,
        "project": _projects,
        "view": _views,
        "task": _tasks,
    }
    candidates: dict[str, CompletionCandidate] = {}
    openings: tuple[Callable[[Settings], Connection | None], ...] = (_index, _user_store)
    for opening in openings:
        try:
            opened = opening(settings)
            if opened is None:
                continue
            with closing(opened) as store:
                for candidate in queries[what](store, typed):
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
    if layout.is_server(path):
        # A completion does not wait for a server.
        return None
    # Even reading another program's database would leave files beside it.
    if application_id_of(path) != APPLICATION_ID:
        return None
    return read_truth(path, application_id=APPLICATION_ID, migrations=MIGRATIONS, busy_ms=_BUSY_MS)


def _index(settings: "Settings") -> "Connection | None":
    """The index of the current heads, else the last used one; none is built."""
    project = _project(settings)
    if project is None:
        return None
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


def _project(settings: "Settings") -> "Project | None":
    """The project here, if it is trusted."""
    from ctx import layout
    from ctx.project import trust_list

    project = layout.find_project(settings.folder, settings.user_store.home)
    # The user waits at every key: do not run git.
    if project is None or not trust_list.is_trusted(settings.user_store.home, project):
        return None
    layout.refuse_links(project)
    return project


def _sessions(what: str, settings: "Settings") -> list[CompletionCandidate]:
    """Sessions with staged work; for `chain` also those that were aborted."""
    from ctx.objects import refs

    try:
        project = _project(settings)
        names = list(refs.Refs(project.refs).names()) if project else []
    except (CtxError, OSError, UnicodeError):
        return []
    staged = [
        CompletionCandidate(session, "staged")
        for name in names
        if (session := refs.session_of(name))
    ]
    aborted = [
        CompletionCandidate(gone, "aborted") for name in names if (gone := refs.aborted_name(name))
    ]
    return [*staged, *aborted] if what == "chain" else staged


def _commits(what: str, settings: "Settings") -> list[CompletionCandidate]:
    """Commits that no git commit may contain; discarded ones."""
    from ctx.ids import short
    from ctx.objects import untracked_commits

    try:
        project = _project(settings)
        listed = (
            untracked_commits.ids if what == "untracked" else untracked_commits.discarded_commits
        )
        return (
            [CompletionCandidate(short(id), "commit") for id in listed(project)] if project else []
        )
    except (CtxError, OSError):
        return []


def _code(typed: str, settings: "Settings") -> list[CompletionCandidate]:
    """Names in the code, as of the last refresh of the index."""
    if not typed or "/" in typed:
        return []
    import sqlite3

    from ctx import layout
    from ctx.code import lookup

    try:
        place = layout.code_at(settings.folder, settings.user_store)
        opened = lookup.open_index(place.database, place.root)
        if opened is None:
            return []
        with opened as code:
            return [CompletionCandidate(name, kind) for name, kind in code.beginning(typed, MOST)]
    except (CtxError, OSError, UnicodeError, sqlite3.Error):
        return []


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
        yield CompletionCandidate(value, f"{node_type}: {' '.join(text.split())}")
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
        yield CompletionCandidate(name, f"{row[0]}: {' '.join(row[1].split())}")


def _deleted_nodes(store: "Connection", typed: str) -> Iterator[CompletionCandidate]:
    """Deleted nodes, the last deleted first."""
    from ctx.memory import records, replay

    beginning = typed.upper()
    rows = store.execute(
        f"SELECT subject FROM {_RECENT} WHERE kind = 'node.delete'"
        " AND subject >= ? AND subject < ? AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = subject)"
        " GROUP BY subject ORDER BY max(stamp) DESC LIMIT ?",
        (beginning, beginning + _BEHIND_ALL, MOST),
    ).fetchall()
    for (node_id,) in rows:
        state = replay.node(records.records_about(store, node_id, "node."))
        if state is not None:
            text = (state.summary or state.content)[:_PREVIEW_LENGTH]
            yield CompletionCandidate(node_id, f"{state.type}: {' '.join(text.split())}")


def _changes(store: "Connection", typed: str) -> Iterator[CompletionCandidate]:
    """Changes, the newest first, as `ctx undo --list` shows them."""
    beginning = typed.upper()
    for change, action, stamp in store.execute(
        f"SELECT change, action, max(stamp) FROM {_RECENT} WHERE change >= ? AND change < ?"
        " GROUP BY change ORDER BY max(stamp) DESC LIMIT ?",
        (beginning, beginning + _BEHIND_ALL, MOST),
    ):
        yield CompletionCandidate(change, f"{action} at {clock.iso(clock.stamp_ms(stamp))}")


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


def _own_tags(store: "Connection", node: str) -> Iterator[CompletionCandidate]:
    from ctx.memory.graph import Graph

    graph = Graph(store)
    yield from map(CompletionCandidate, graph.tags_of(graph.find(node)))


def _receipts(store: "Connection", typed: str) -> Iterator[CompletionCandidate]:
    """Receipts, the newest first."""
    for receipt, event, at in store.execute(
        "SELECT id, event, at FROM receipts WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?",
        (typed, typed + _BEHIND_ALL, MOST),
    ):
        yield CompletionCandidate(receipt, f"{event}, {at}")


def _past_sessions(store: "Connection", typed: str) -> Iterator[CompletionCandidate]:
    """Sessions, the last active first."""
    for session, at, request in store.execute(
        "SELECT id, last_at, request FROM sessions WHERE id >= ? AND id < ?"
        " ORDER BY last_at DESC LIMIT ?",
        (typed, typed + _BEHIND_ALL, MOST),
    ):
        yield CompletionCandidate(session, f"{at[:10]}: {request}")


def _projects(store: "Connection", typed: str) -> Iterator[CompletionCandidate]:
    for tag, nodes in _tags(store, f"project:{typed}"):
        if tag.startswith("project:"):
            yield CompletionCandidate(tag.removeprefix("project:"), nodes)


def _views(store: "Connection", typed: str) -> Iterator[CompletionCandidate]:
    yield from map(
        CompletionCandidate._make,
        store.execute(
            "SELECT name, query FROM views WHERE name >= ? AND name < ? ORDER BY name LIMIT ?",
            (typed, typed + _BEHIND_ALL, MOST),
        ),
    )


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
