"""Add to a session what only its transcript has.

A hook that was off or killed reports nothing, and no hook reports the agent's messages. A missing
event is stored as if a hook had just reported it; the pipeline does the rest.

Every event is captured once. An event of a transcript has the same id whenever it is read; a tool
call is identified by its id, whoever reports it, and a prompt by its words. A prompt that a hook
left in the spool is in the transcript too: it waits until the spool has been read.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.capture import (
    capture_off,
    event_store,
    prompt_authors,
    session_state,
    session_table,
    team_table,
)
from ctx.capture.capture_places import CapturePlaces
from ctx.capture.session_state import Session
from ctx.capture.steps import NEW
from ctx.hook_files import spool
from ctx.hosts.events import Event, Heading
from ctx.hosts.host_adapter import Transcripts
from ctx.hosts.host_registry import FIRST, Hosts
from ctx.memory import pending
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory

# A hook and the transcript record a prompt at different moments.
_SAME_PROMPT_MS = 600_000
_SAME_CALL_MS = 5_000
_MINUTE_MS = 60_000
_BATCH = 64


class TranscriptPiece(NamedTuple):
    """A part of a transcript that was captured."""

    events: int
    """How many of them no hook had reported."""
    size: int
    """Bytes."""
    problem: str


class _Origin(NamedTuple):
    """The transcript that events are read from, and its session."""

    session: str
    path: str
    transcripts: Transcripts
    known: Session | None
    is_main: bool
    after: str = ""
    """Earlier events are ignored: those before the session was deleted, or all that are stored of a
    file that is written anew."""


def reconcile(
    memory: Memory, home: str, session_id: str, goes_on: Callable[[], bool] = lambda: True
) -> int:
    """Capture the missing events of a session; how many there were.

    `goes_on` returns False to stop early: the rest is captured next time.
    """
    session = session_state.find(memory.local, session_id)
    if session is None or not session.transcript:
        return 0
    news = 0
    for piece in ingest_transcript(memory, home, session_id, session.transcript):
        news += piece.events
        if not goes_on():
            break
    return news


def ingest_transcript(
    memory: Memory, home: str, session_id: str, path: str, host: str = FIRST
) -> Iterator[TranscriptPiece]:
    """Capture a transcript and those of its subagents, each piece durable by itself.

    `host` is the host of a session that is not known yet.
    """
    known = session_state.find(memory.local, session_id)
    transcripts = memory.environment.hosts.named(known.client if known else host).transcripts
    began = (clock.parse_iso(known.started_at) or 0) if known else 0
    gone_ms = session_table.at_ms(home, session_id)
    after = clock.iso(gone_ms) if gone_ms else ""
    if known and transcripts.is_rewritten:
        after = max(after, known.last_at)
    main = _Origin(session_id, path, transcripts, known, is_main=True, after=after)
    yield from _pieces(memory, home, main)
    for each in transcripts.of_subagents(path, began - _MINUTE_MS):
        yield from _pieces(memory, home, main._replace(path=each, is_main=False))


def learn_authors(memory: Memory, session: Session) -> None:
    """Take over what the transcripts of a session show about the authors of its prompts. No event
    is captured."""
    if not session.transcript or session.client not in memory.environment.hosts.names:
        return
    transcripts = memory.environment.hosts.named(session.client).transcripts
    main = session.transcript
    for path in (main, *transcripts.of_subagents(main, 0)):
        start = -1
        found = transcripts.events(path, 0)
        while found.next_offset > start:
            start = found.next_offset
            with transaction(memory.local):
                for event in found.events:
                    if event.agent == session.id != event.session:
                        prompt_authors.learn_session(memory.local, session.id, event.session)
                    elif event.session == session.id:
                        _learn_author(memory, event)
            found = transcripts.events(path, start)


def learn_subagent(memory: Memory, session: str, lead: str) -> bool:
    """Inside a transaction: record that a session is a subagent of another one; whether that is
    new. One with a transcript of its own is none, whatever the other one's says."""
    known = session_state.find(memory.local, session)
    if known is None or known.client not in memory.environment.hosts.names:
        return False
    transcripts = memory.environment.hosts.named(known.client).transcripts
    is_own = transcripts.session_of(known.transcript) == session
    return not is_own and prompt_authors.learn_session(memory.local, session, lead)


def _pieces(memory: Memory, home: str, origin: _Origin) -> Iterator[TranscriptPiece]:
    start = _read_position(memory.local, origin)
    while True:
        found = origin.transcripts.events(origin.path, start)
        news, is_whole = _store_missing_events(memory, home, found.events, origin)
        if is_whole and found.next_offset != start:
            with transaction(memory.local):
                _set_read_position(memory.local, origin, found.next_offset)
        if news or found.problem or found.next_offset > start:
            yield TranscriptPiece(news, max(0, found.next_offset - start), found.problem)
        if not is_whole or found.next_offset == start:
            return
        if origin.known is None:
            # The caller has made the session from the piece.
            with transaction(memory.local):
                _set_read_position(memory.local, origin, found.next_offset)
        start = found.next_offset


def _store_missing_events(
    memory: Memory, home: str, found: Sequence[Event], origin: _Origin
) -> tuple[int, bool]:
    """How many events were missing, and whether all of them could be checked."""
    connection, places = memory.local, CapturePlaces(memory, home)
    lead = next((each.session for each in found if each.agent == origin.session), "")
    if lead:
        # An older version of ctx took the transcript of a subagent for that of a session.
        with transaction(connection):
            if prompt_authors.learn_session(connection, origin.session, lead):
                session_table.request_synthesis(connection, origin.session)
    ours = [
        event
        for event in found
        if event.session == origin.session
        and event.at > origin.after
        and not _is_copied(event, origin.known)
    ]
    news = 0
    for first in range(0, len(ours), _BATCH):
        # In small transactions, so that other writers do not wait for long.
        with transaction(connection):
            for event in ours[first : first + _BATCH]:
                if subagent := _learn_author(memory, event):
                    session_table.request_synthesis(connection, subagent)
                if event.agent and event.name == session_state.PROMPT:
                    # It is in the call that started the subagent.
                    continue
                if _is_known(connection, event, memory.environment.hosts):
                    # An older version of ctx did not record teams.
                    team_table.record_event(connection, event)
                    if event.agent and event_store.learn_agent(connection, event):
                        session_table.request_synthesis(connection, event.session)
                    continue
                made_ms = spool.made_ms(event.id)
                if places.is_paused(event.folder, made_ms):
                    continue
                if capture_off.was_off(home, event.session, made_ms):
                    continue
                if event.name == session_state.PROMPT and _may_wait(memory, home, event):
                    return news, False
                news += event_store.keep(connection, places.allowed(event))
    return news, True


def _learn_author(memory: Memory, event: Event) -> str:
    """Take over what an event shows about the authors of prompts that hooks reported: the session
    that it shows to be a subagent, if any."""
    if event.name == session_state.PROMPT:
        prompt_authors.learn(memory.local, event)
    elif event.agent and event.agent != event.session:
        known = session_state.find(memory.local, event.agent)
        is_same_host = known is not None and known.client == event.host
        if is_same_host and learn_subagent(memory, event.agent, event.session):
            return event.agent
    return ""


def _is_copied(event: Event, session: Session | None) -> bool:
    """Whether it happened in the session that this one continues: its transcript is copied."""
    return bool(session and session.goes_on_from and event.at < session.started_at)


def _is_known(connection: Connection, event: Event, hosts: Hosts) -> bool:
    if connection.execute("SELECT 1 FROM events WHERE id = ?", (event.id,)).fetchone():
        return True
    if event.tool_use:
        return _is_known_call(connection, event)
    return event.name == session_state.PROMPT and _is_known_prompt(connection, event, hosts)


def _is_known_call(connection: Connection, event: Event) -> bool:
    """Whether a call was reported, also by the session that this one was copied from."""
    rows = connection.execute(
        "SELECT id, session, folder FROM events WHERE tool_use = ?", (event.tool_use,)
    )
    made_ms = spool.made_ms(event.id)
    return any(
        session == event.session
        or (folder == event.folder and abs(spool.made_ms(known) - made_ms) < _SAME_CALL_MS)
        for known, session, folder in rows
    )


def _is_known_prompt(connection: Connection, event: Event, hosts: Hosts) -> bool:
    asked = session_state.request_of(event)
    made_ms = spool.made_ms(event.id)
    rows = connection.execute(
        "SELECT id, session, event, at, folder, tool, tool_use, status, body FROM events"
        " WHERE session = ? AND event = ? AND id BETWEEN ? AND ?",
        (
            *(event.session, session_state.PROMPT),
            *(f"{made_ms - _SAME_PROMPT_MS:013d}", f"{made_ms + _SAME_PROMPT_MS:013d}"),
        ),
    )
    # Another line of the transcript is another prompt, even with the same text.
    reported = (row for row in rows if "-t-" not in row[0])
    return not asked or any(_request(row, hosts) == asked for row in reported)


def _request(row: Sequence[str], hosts: Hosts) -> str:
    """The request of a stored prompt: from its payload, or from its step."""
    *columns, status, body = row
    if status == NEW:
        return session_state.request_of(event_store.restore(Heading._make(columns), body, hosts))
    try:
        text = json.loads(body).get("text")
    except (ValueError, AttributeError):
        return ""
    return session_state.line_of(text) if isinstance(text, str) else ""


def _may_wait(memory: Memory, home: str, event: Event) -> bool:
    """Whether the spool may hold this prompt, not captured yet."""
    if clock.now_ms() - spool.made_ms(event.id) > _SAME_PROMPT_MS:
        return False
    waiting = spool.pending_names(home, spool.mark_of(home, memory.environment.graph_file))
    return any(spool.EVENTS.get(spool.kind_of(name)) == event.name for name in waiting)


def _read_position(connection: Connection, origin: _Origin) -> int:
    if origin.is_main:
        known = session_state.find(connection, origin.session)
        return known.transcript_read if known and known.transcript == origin.path else 0
    found = pending.read(connection, _key(origin)) or ""
    return int(found) if found.isdecimal() else 0


def _set_read_position(connection: Connection, origin: _Origin, seen: int) -> None:
    if origin.is_main:
        session_state.set_transcript_position(connection, origin.session, seen)
    else:
        pending.write(connection, _key(origin), str(seen), clock.iso(clock.now_ms()))


def _key(origin: _Origin) -> str:
    """The key in `pending` for how much of a subagent's transcript has been read."""
    agent = os.path.splitext(os.path.basename(origin.path))[0]
    return f"seen:{origin.session}:{agent}"
