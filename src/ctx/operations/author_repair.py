"""Correct, once, the nodes that an older version of ctx stored as the user's words.

It took prompts of subagents, and those of programs, for prompts of the user. The transcripts, and
what is stored of other sessions, still show who wrote them. The worker calls `AuthorRepair.advance`
when it is idle: it reads the transcripts again, for a few seconds at a time, and then corrects all
nodes of the user store in one change, which `ctx undo` reverts. A file says that it is done:

    authors.json    {"version": 1}

`ctx status` shows the result for some weeks. Without positive evidence nothing changes
(`synthesis/author_standing.py`).
"""

import json
import os
from typing import NamedTuple

from ctx import clock, disk, ids
from ctx.capture import prompt_authors, reconcile, session_state
from ctx.memory import event_log
from ctx.memory.graph import USER
from ctx.operations import apply
from ctx.operations.worker_round import IdleJob
from ctx.sqlite.connection import transaction
from ctx.synthesis import author_standing, session_stores, session_writer
from ctx.workspace import Memory

STATE = "authors.json"
VERSION = 1
ACTION = "correct authors"
SESSION = "repair"
"""The session of the change. It is not that of the user's commands, so that `ctx undo` without the
id of a change does not revert it."""

_SLICE_S = 3.0


class RepairResult(NamedTuple):
    """What the repair did."""

    change: str = ""
    """To undo it; empty: it changed nothing."""
    nodes: int = 0


class AuthorRepair(IdleJob):
    """The repair of one worker: reads a few transcripts at a time, then corrects the nodes."""

    @property
    def is_under_way(self) -> bool:
        return bool(self._waiting)

    def _advance(self, memory: Memory) -> bool:
        if self._waiting is None:
            if _version(self._home) >= VERSION:
                return True
            self._waiting = session_state.all_of(memory.local)
        until_s = clock.monotonic() + _SLICE_S
        while self._waiting:
            if self._is_wanted() or clock.monotonic() > until_s:
                return False
            session = self._waiting.pop()
            with self._guard(f"the authors of {session.id}"):
                reconcile.learn_authors(memory, session)
        done = repair(memory)
        disk.replace(
            os.path.join(self._home, STATE),
            json.dumps({"version": VERSION}).encode(),
        )
        if done.change:
            nodes = "1 node is an agent's" if done.nodes == 1 else f"{done.nodes} nodes are agents'"
            self._log(
                f"{nodes} now: a subagent or a program wrote what was stored as the user's words;"
                f" to revert it: ctx undo {done.change}"
            )
        return True


def repair(memory: Memory) -> RepairResult:
    """Correct all nodes of the user store, by what is known about the authors of prompts."""
    local = memory.local
    with transaction(local):
        for session, lead in prompt_authors.agents_of(local).items():
            reconcile.learn_subagent(memory, session, lead)
    sessions = [each.id for each in session_state.all_of(local)]
    environment = memory.environment._replace(session=ids.session_id(SESSION))
    there = Memory(memory.user, None, environment, session_stores.AUTHOR, local=local)
    with there.transaction(ACTION, USER, author=session_stores.AUTHOR) as change:
        change_id = change.id
        corrected = author_standing.correct(change, local, sessions)
    if not corrected:
        return RepairResult()
    event_log.add(local, event_log.AUTHORS, SESSION, {"change": change_id, "nodes": len(corrected)})
    for each in session_state.all_of(local):
        session_writer.fill_rows(local, each)
    home = memory.environment.user_store.home
    apply.refresh(memory, dict.fromkeys(each.folder for each in session_state.all_of(local)), home)
    return RepairResult(change_id, len(corrected))


def _version(home: str) -> int:
    """The last repair that ran; 0: none did."""
    try:
        return int(json.loads(disk.read_or_none(os.path.join(home, STATE)) or b"{}")["version"])
    except (ValueError, TypeError, LookupError):
        return 0
