"""Which captured sessions are staged in their project, and in which staging session.

A session is staged if `ctx stage start` opened it: its agent ran the command, or a person ran it in
the same working tree. Its work is staged from that moment until `ctx stage abort`. The user store
remembers it, because a commit removes the chain.
"""

import json
from sqlite3 import Connection
from typing import NamedTuple

from ctx import clock
from ctx.ids import SessionId
from ctx.memory import pending
from ctx.objects import refs
from ctx.objects.repository import Repository
from ctx.project import current_session, staged_sessions


class SessionStaging(NamedTuple):
    chain: SessionId
    """The staging session that its work goes to."""
    since_ms: int
    """What it did before is not staged."""


def start(local: Connection, session: SessionId) -> None:
    """Stage what captured sessions of this name do, and those that join it."""
    _store(local, session, SessionStaging(session, clock.now_ms()))


def abort(local: Connection, chain: SessionId) -> None:
    """No longer stage what the captured sessions of an aborted chain do."""
    for session, value in pending.stagings(local):
        if _read(value).chain == chain:
            _store(local, session, SessionStaging(SessionId(""), clock.now_ms()))


def find(
    local: Connection, repository: Repository, session: SessionId, last_ms: int
) -> SessionStaging | None:
    """How a session with a last event at a time is staged, by the latest command that says so."""
    known = _known(local, session)
    every = [known, _current(local, repository)]
    possible = [each for each in every if each is not None and each.since_ms <= last_ms]
    found = max(possible, key=lambda each: each.since_ms, default=None)
    if found is not None and found != known:
        _store(local, session, found)
    return found if found is not None and found.chain else None


def _current(local: Connection, repository: Repository) -> SessionStaging | None:
    """The session that commands join here, unless nothing was added to it for a day."""
    session = current_session.read(repository.project).session
    found = _known(local, session) if session else None
    if session is None or found is None:
        return None
    name = refs.work(session)
    is_there = repository.refs.read(name) is not None
    last_s = repository.refs.moved_at(name) if is_there else found.since_ms // 1000
    return found if clock.wall_s() - last_s <= staged_sessions.STALE_S else None


def _known(local: Connection, session: SessionId) -> SessionStaging | None:
    stored = pending.read(local, pending.staging(session))
    return _read(stored) if stored else None


def _read(stored: str) -> SessionStaging:
    chain, since_ms = json.loads(stored)
    return SessionStaging(SessionId(chain), since_ms)


def _store(local: Connection, session: str, staging: SessionStaging) -> None:
    pending.put(local, pending.staging(session), json.dumps(staging))
