"""What is known of sessions: which there were, what became of one, and what happened in it.

And how to be rid of one, with all that memory keeps of it alone.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock, disk
from ctx.capture import event_table, session_state, session_table, steps, team_table
from ctx.capture.session_state import STATUSES, Session, Status
from ctx.capture.steps import DROPPED, NEW, SKIPPED, STEP, Step
from ctx.capture.team_table import Teammate, TeammateResult
from ctx.context import contexts
from ctx.errors import CtxError, UsageError
from ctx.hook_files import live
from ctx.ids import NodeId, short
from ctx.memory import event_log, lookups, pending, receipts
from ctx.memory.graph import PROJECT
from ctx.memory.model import JUDGED, Node
from ctx.memory.query import time_filters
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory

SECTIONS = (
    *("request", "investigated", "learned", "completed", "next_steps"),
    *("files_read", "files_edited", "notes"),
)
"""Of a session summary, in the order in which they are read."""

_TAG = "session:"
_LARGEST_PAGE = 4 * 1024 * 1024


class SessionLine(NamedTuple):
    """A session as a list shows it."""

    id: str
    project: str | None
    branch: str | None
    status: Status
    started_at: str
    last_at: str
    steps: int
    """As far as they are kept."""
    what: str
    """What it was about: its title, or the beginning of the first prompt."""
    lead: str | None
    """The session that it works for as a teammate."""
    teammate: str
    """What it is called in its team; empty: it is no teammate."""
    host: str
    """The program that the agent ran in: `claude-code`, `codex`, …"""


class SessionList(NamedTuple):
    """The answer of `ctx sessions list`."""

    sessions: tuple[SessionLine, ...]
    project: str | None
    """Whose they are; None: everybody's."""
    more: int
    """How many more there are beyond the limit."""


class SessionNode(NamedTuple):
    """Something that memory keeps of a session."""

    id: NodeId
    short_id: str
    kind: str
    title: str
    files: tuple[str, ...]


class TouchedFile(NamedTuple):
    """What a session did to a file, as far as steps are kept."""

    path: str
    reads: int
    writes: int
    added: int
    removed: int
    """Lines."""


class SessionReceipt(NamedTuple):
    """What the agent was given by ctx."""

    receipt: str
    event: str
    at: str
    tokens: int


class SessionDetails(NamedTuple):
    """The answer of `ctx sessions show`."""

    session: Session
    summary: Mapping[str, Any]
    """The sections of its summary, those that there are."""
    summary_id: str | None
    title: str
    """Empty: it has none."""
    lead: str | None
    """The session that it works for as a teammate."""
    teammates: tuple[TeammateResult, ...]
    observations: tuple[SessionNode, ...]
    files: tuple[TouchedFile, ...]
    changes: tuple[event_table.ChangedItem, ...]
    steps: Mapping[str, int]
    """By kind."""
    events: Mapping[str, int]
    """By what became of them: step, dropped, skipped, new."""
    given: tuple[SessionReceipt, ...]
    tokens: int
    """All that was given."""
    forgotten: bool
    """Whether its first steps are not kept any more."""


class SessionReplay(NamedTuple):
    """The answer of `ctx sessions replay`."""

    session: Session
    steps: tuple[Step, ...]
    forgotten: bool


class DeleteSessionResult(NamedTuple):
    """The answer of `ctx sessions delete`."""

    session: str
    what: str
    dry_run: bool
    change: str | None
    """What `ctx undo` takes to bring the nodes back."""
    nodes: tuple[SessionNode, ...]
    """What memory kept of this session alone."""
    kept: int
    """Nodes that other sessions share, or that somebody stated: they stay."""
    events: int
    symbol_changes: int
    receipts: int
    logs: tuple[str, ...]
    """Pages of the project's log, from its root, that tell of it and stay."""


def list_sessions(
    memory: Memory,
    project: str | None,
    *,
    statuses: Sequence[Status] = STATUSES,
    since: str | None = None,
    limit: int = 0,
) -> SessionList:
    """The sessions of a project (None: of all), the one that was heard of last first."""
    after = clock.iso(time_filters.moment(since, clock.now_ms())) if since else ""
    found = session_state.all_of(memory.local, project=project, statuses=statuses, since=after)
    of_leads = team_table.teammates(memory.local)
    shown = team_table.sort_below_leads(found, of_leads)[: limit or None]
    return SessionList(
        tuple(_line(memory, each, of_leads.get(each.id)) for each in shown),
        project,
        len(found) - len(shown),
    )


def show(memory: Memory, text: str) -> SessionDetails:
    session = session_state.get(memory.local, text)
    nodes = _session_nodes(memory, session)
    short_ids = memory.graph.shown([node.id for node in nodes])
    summaries = [node for node in nodes if node.type == "summary"]
    told = summaries[-1].metadata if summaries else {}
    sections = {name: told[name] for name in SECTIONS if told.get(name)}
    if summaries and not sections:
        # A person has put it into their own words.
        sections = {"notes": [summaries[-1].content]}
    kept = steps.of_session(memory.local, session.id)
    given = _receipts(memory.local, session.id)
    return SessionDetails(
        session,
        sections,
        short_ids[summaries[-1].id] if summaries else None,
        str(told.get("title") or steps.title_of(kept).text),
        next((each.lead for each in team_table.of_session(memory.local, session.id)), None),
        team_table.results(memory.local, session.id),
        tuple(session_node(each, short_ids) for each in nodes if each.type == "observation"),
        _files(kept),
        event_table.changed_items(memory.local, session.id),
        dict(Counter(step.kind for step in kept)),
        _events(memory.local, session.id),
        given,
        sum(each.tokens for each in given),
        _is_forgotten(memory.local, session),
    )


def replay(memory: Memory, text: str) -> SessionReplay:
    """What happened, in the order in which it did."""
    session = session_state.get(memory.local, text)
    kept = tuple(steps.of_session(memory.local, session.id))
    return SessionReplay(session, kept, _is_forgotten(memory.local, session))


def delete(memory: Memory, text: str, *, dry_run: bool) -> DeleteSessionResult:
    """Take a session out of memory, with what memory keeps of it alone.

    The nodes go by a change, which can be undone; what was heard of the session is gone for good.
    """
    home = memory.environment.user_store.home
    session = session_state.get(memory.local, text)
    if live.is_live(home, session.id, clock.wall_s()):
        raise UsageError(
            f"The session {session.id} is still active.",
            hint="End it first; `ctx pause` pauses capture.",
        )
    marked = [*tagged_nodes(memory, session.id), *_judged_passages(memory, session.id)]
    nodes = [node for node in marked if _is_only_from_session(node, session.id)]
    short_ids = memory.graph.shown([node.id for node in nodes])
    done = DeleteSessionResult(
        session.id,
        _line(memory, session, None).what,
        dry_run,
        None,
        tuple(session_node(node, short_ids) for node in nodes),
        len(marked) - len(nodes),
        sum(_events(memory.local, session.id).values()),
        len(event_table.changed_items(memory.local, session.id)),
        len(_receipts(memory.local, session.id)),
        _logs(memory, nodes),
    )
    if dry_run:
        return done
    # First: whatever happens now, its transcript does not bring it back.
    session_table.add(home, session.id, clock.now_ms())
    change = _delete_nodes(memory, nodes)
    forget_captured(memory, session.id)
    return done._replace(change=change)


def forget_captured(memory: Memory, session: str) -> None:
    """Delete everything about a session that is not memory."""
    from ctx.synthesis import excerpt_table, project_commands
    from ctx.synthesis.by_model import model_answers

    with transaction(memory.local):
        tables = (event_table, receipts, event_log, model_answers, excerpt_table, project_commands)
        for table in (*tables, pending, team_table, session_table):
            table.forget_session(memory.local, session)
        # Some of them tell of it.
        contexts.forget(memory.local)
    home = memory.environment.user_store.home
    for name in disk.names(live.path_of(home, "")):
        if name == session or name.startswith(f"{session}."):
            live.remove(home, name)


def _line(memory: Memory, session: Session, teammate: Teammate | None) -> SessionLine:
    number = event_table.by_status(memory.local, session.id).get(STEP, 0)
    title = title_of(memory, session, teammate)
    return SessionLine(
        *(session.id, session.project, session.branch, session.status),
        *(session.started_at, session.last_at, number, title),
        teammate.lead if teammate else None,
        teammate.name if teammate else "",
        session.client,
    )


def title_of(memory: Memory, session: Session, teammate: Teammate | None) -> str:
    """What a session was about, in a line."""
    title = lookups.title_of(memory.user.connection, session.summary)
    title = title or steps.stored_title(memory.local, session.id).text or session.request
    if not title and teammate:
        # Nobody prompts a teammate but its lead.
        title = session_state.line_of(steps.last_message(memory.local, session.id))
    return title


def tagged_nodes(memory: Memory, session: str) -> list[Node]:
    """The nodes that carry the tag of a session."""
    found = [lookups.with_tag(each, f"{_TAG}{session}") for each in memory.graph.connections]
    return list(memory.graph.nodes([node_id for ids in found for node_id in ids]))


def _judged_passages(memory: Memory, session: str) -> list[Node]:
    """The nodes with the text of passages that the user called wrong or useless."""
    nodes = memory.user.nodes([each.id for each in lookups.judged(memory.user.connection)])
    return [
        node
        for node in nodes
        if JUDGED in node.metadata and node.metadata.get("session") == session
    ]


def _session_nodes(memory: Memory, session: Session) -> list[Node]:
    """What memory keeps of a session, in the order of its time."""
    made = [
        each for each in tagged_nodes(memory, session.id) if each.type in ("observation", "summary")
    ]
    return sorted(made, key=lambda node: (node.created_at, node.id))


def _is_only_from_session(node: Node, session: str) -> bool:
    """Whether a node was made of a session, and no other session has shown the same."""
    sessions = {tag for tag in node.tags if tag.startswith(_TAG)}
    return JUDGED in node.metadata or (
        node.type in ("observation", "summary")
        and sessions == {f"{_TAG}{session}"}
        and ("session" in node.metadata or node.type == "summary")
    )


def _delete_nodes(memory: Memory, nodes: Sequence[Node]) -> str | None:
    """The id of the change; None where there is nothing to delete."""
    if not nodes:
        return None
    there = [node.id for node in nodes]
    by_scope = memory.graph.by_scope(there)
    with memory.transaction("sessions delete", *by_scope) as change:
        for here, node_id in change.by_node(by_scope):
            here.delete_node(node_id)
    from ctx.packs import node_vectors

    # They are deleted anyway: the next index update does what failed now.
    with suppress(CtxError):
        node_vectors.forget(memory, there)
    return change.id


def _logs(memory: Memory, nodes: Sequence[Node]) -> tuple[str, ...]:
    """The log, which people and git have, still mentions shared nodes that were committed."""
    names = [short(node.id).encode() for node in nodes if node.scope == PROJECT]
    if memory.project_memory is None or not names:
        return ()
    project, found = memory.project_memory.project, []
    folder = os.path.join(project.narrative, "log")
    for path in (os.path.join(folder, each) for each in disk.names(folder)):
        with suppress(OSError):
            page = disk.read_plain(path, _LARGEST_PAGE)
            if any(name in page for name in names):
                found.append(os.path.relpath(path, project.root))
    return tuple(found)


def session_node(node: Node, short_ids: Mapping[NodeId, str]) -> SessionNode:
    kind = next((tag for tag in node.tags if tag.startswith("kind:")), "")
    title = node.metadata.get("title")
    first = node.content.strip().partition("\n")[0]
    files = node.metadata.get("files", ())
    return SessionNode(
        node.id,
        short_ids[node.id],
        kind.removeprefix("kind:") or node.type,
        title if isinstance(title, str) and title else " ".join(first.split()),
        tuple(each for each in files if isinstance(each, str))
        if isinstance(files, list | tuple)
        else (),
    )


def _files(kept: Sequence[Step]) -> tuple[TouchedFile, ...]:
    """What was written first, then what was only read."""
    found: dict[str, TouchedFile] = {}
    for step in kept:
        if step.path and step.kind in ("read", "write"):
            known = found.get(step.path, TouchedFile(step.path, 0, 0, 0, 0))
            if step.kind == "read":
                known = known._replace(reads=known.reads + 1)
            else:
                added, removed = known.added + step.added, known.removed + step.removed
                known = known._replace(writes=known.writes + 1, added=added, removed=removed)
            found[step.path] = known
    return tuple(sorted(found.values(), key=lambda each: (not each.writes, each.path)))


def _events(connection: Connection, session: str) -> dict[str, int]:
    found = event_table.by_status(connection, session)
    return {status: found.get(status, 0) for status in (STEP, DROPPED, SKIPPED, NEW)}


def _receipts(connection: Connection, session: str) -> tuple[SessionReceipt, ...]:
    return tuple(SessionReceipt._make(head) for head in receipts.heads(connection, session))


def _is_forgotten(connection: Connection, session: Session) -> bool:
    first = event_table.first_at(connection, session.id)
    return first is None or first > session.started_at
