"""What a summary and a learning rest on, as edges `DERIVED_FROM`.

A learning is derived from observations, or from the summaries of the sessions that showed it. A
summary is derived from the observations of its session. An observation names the steps that support
it in its metadata `evidence`; steps are not nodes.
"""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from ctx.capture import session_table
from ctx.ids import NodeId, Ulid
from ctx.memory.changes import Change
from ctx.memory.model import Evidence
from ctx.synthesis.learnings import LearningCandidate

_DERIVED = "DERIVED_FROM"
_MOST = 5
"""A learning is derived from at most so many nodes: a few show where it comes from."""


def derive_summary(
    change: Change, summary: NodeId, observations: Iterable[NodeId], author: str
) -> None:
    """Link a summary to the observations of its session that are in the same store."""
    known = {edge.to_id for edge in change.graph.edges(summary, "out", _DERIVED)}
    for node_id in dict.fromkeys(observations):
        if node_id not in known and node_id != summary:
            change.link(summary, node_id, _DERIVED, Evidence(author))


def derive_learning(
    change: Change, learning: NodeId, candidate: LearningCandidate, author: str
) -> None:
    """Link a learning to the latest nodes that it rests on, unless it has enough."""
    known = {edge.to_id for edge in change.graph.edges(learning, "out", _DERIVED)}
    rests_on = dict.fromkeys(reversed(_rests_on(change.graph.connection, candidate)))
    wanted = [each for each in rests_on if each not in known and change.graph.has(each)]
    for node_id in wanted[: max(0, _MOST - len(known))]:
        change.link(learning, node_id, _DERIVED, Evidence(author))


def _rests_on(connection: Connection, candidate: LearningCandidate) -> list[NodeId]:
    """The observations behind a learning, else the summaries of its sessions, oldest first."""
    found: Sequence[str] = candidate.rests_on
    if not found:
        summaries = session_table.summaries(connection, candidate.sessions)
        found = [summaries[each] for each in candidate.sessions if each in summaries]
    return [NodeId(Ulid(each)) for each in found]
