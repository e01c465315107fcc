"""Undo the import of past sessions: their nodes, what was captured of them, and their learnings.

An import makes one change for each session, so that it can be interrupted. Together they are listed
and undone as one. What was captured is deleted, and only importing again brings it back.
"""

from typing import NamedTuple

from ctx import clock
from ctx.capture import session_state
from ctx.capture.session_state import Session
from ctx.errors import UsageError
from ctx.hook_files import live
from ctx.memory import event_log, inverse_changes, records
from ctx.memory.inverse_changes import ChangeSummary, KeptField
from ctx.operations import backfill, sessions
from ctx.synthesis.session_stores import AUTHOR
from ctx.workspace import Memory

_MOST = 100_000


class SessionImport(NamedTuple):
    """An import of past sessions."""

    id: str
    at: str
    by: str
    """The session in which a person ran it; empty if it was automatic."""
    host: str
    sessions: tuple[str, ...]
    """Those that were not known before."""
    changes: tuple[str, ...]
    times: tuple[str, ...] = ()
    """When each of the sessions was imported."""

    @property
    def again(self) -> str:
        return f"ctx import --from {self.host} --transcripts"


class UndoneImport(NamedTuple):
    change: str
    what: tuple[str, ...]
    kept: tuple[KeptField, ...]


def imports(memory: Memory) -> list[SessionImport]:
    """The imports that the log has, newest first."""
    found: dict[str, SessionImport] = {}
    for entry in event_log.since(memory.local, "", event_log.IMPORTED, _MOST):
        data = entry.data
        if not data:
            # It is damaged.
            continue
        known = found.get(entry.session)
        known = known or SessionImport(entry.session, entry.at, data["by"], data["host"], (), ())
        found[entry.session] = known._replace(
            sessions=(*known.sessions, *filter(None, [data["session"]])),
            times=(*known.times, *([entry.at] if data["session"] else ())),
            changes=(*known.changes, *data["changes"]),
        )
    return [each for each in found.values() if each.sessions and each.changes]


def summary(memory: Memory, made: SessionImport) -> ChangeSummary:
    described = [
        inverse_changes.describe_change(graph, change)
        for change in made.changes
        for graph in memory.graph.graphs
        if records.has_change(graph.connection, change)
    ]
    number = len(made.sessions)
    return ChangeSummary(
        *(made.id, made.at, "import", made.by, described[0].author if described else ""),
        sum(each.records for each in described),
        all(each.undone for each in described),
        f"{number:,} session{'s' * (number != 1)} of {made.host}",
    )


def chosen(memory: Memory, text: str | None) -> SessionImport | None:
    """The import that is to be undone: the named one, or the last of this session."""
    if text is None:
        own = (each for each in imports(memory) if each.by == memory.session)
        return next((each for each in own if unchanged_sessions(memory, each)), None)
    prefix = text.strip().upper()
    found = [each for each in imports(memory) if prefix and each.id.startswith(prefix)]
    if len(found) != 1:
        return None
    others = {
        each
        for graph in memory.graph.graphs
        for each in records.changes_beginning_with(graph.connection, prefix)
    }
    if prefix != found[0].id and not others <= {found[0].id, *found[0].changes}:
        # It may mean another change, which can be redone.
        return None
    if not unchanged_sessions(memory, found[0]):
        raise UsageError(
            f"The import {found[0].id} is already undone, or its sessions have continued since.",
            hint=f"`{found[0].again}` imports these sessions again.",
        )
    return found[0]


def unchanged_sessions(memory: Memory, made: SessionImport) -> list[Session]:
    """The sessions of an import that are still there and have not continued since.

    They go last, so an undo that was interrupted can be repeated.
    """
    home, now_s = memory.environment.user_store.home, clock.wall_s()
    newest = {name: each.id for each in reversed(imports(memory)) for name in each.sessions}
    imported_at = dict(zip(made.sessions, made.times, strict=True))
    own = (each for each in made.sessions if newest[each] == made.id)
    return [
        each
        for each in filter(None, (session_state.find(memory.local, each) for each in own))
        if each.last_at <= imported_at[each.id] and not live.is_live(home, each.id, now_s)
    ]


def refuse_redo(memory: Memory, change_id: str) -> None:
    """Refuse to bring back the nodes of an import without its sessions."""
    for made in imports(memory):
        roots = {inverse_changes.origin(graph, change_id) for graph in memory.graph.graphs}
        if roots.intersection(made.changes) and summary(memory, made).undone:
            raise UsageError(
                f"The change {change_id} undid an import.",
                hint=f"`{made.again}` imports these sessions again.",
            )


def undo_import(memory: Memory, made: SessionImport) -> UndoneImport:
    """Undo the changes of an import, and delete what was captured of its sessions.

    A session that has continued since stays as it is.
    """
    home = memory.environment.user_store.home
    with backfill.hold_sessions(home):
        gone = unchanged_sessions(memory, made)
        deleted = {each.id for each in gone}
        others = [each for each in made.sessions if each not in deleted]
        stays = {each for each in others if session_state.find(memory.local, each)}
        kept = [KeptField(each, "the session") for each in others if each in stays]
        graphs = [
            graph
            for graph in memory.graph.graphs
            if any(records.has_change(graph.connection, each) for each in made.changes)
        ]
        scopes = [graph.scope for graph in graphs]
        # An import makes only such nodes again as synthesis itself has deleted.
        with memory.transaction(inverse_changes.ACTION, *scopes, author=AUTHOR) as change:
            for change_id in sorted(made.changes, reverse=True):
                for scope in scopes:
                    here = change.in_scope(scope)
                    about = records.of_change(here.graph.connection, change_id)
                    if not about or about[0].session in stays:
                        continue
                    if not inverse_changes.is_undone(here.graph, change_id):
                        kept += inverse_changes.take_back(here, change_id)
                        here.write()
        for each in gone:
            sessions.forget_captured(memory, each.id)
    what = [f"session {each.id[:12]} {each.request}" for each in gone]
    return UndoneImport(change.id, tuple(what), tuple(kept))
