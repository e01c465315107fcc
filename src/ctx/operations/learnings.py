"""Learnings: make them of what recurs, list them, and hear what people say about them.

A learning is a node `pattern` with a tag `learning:<category>`. What was inferred stays in the user
store, as all that capture infers; what a person says goes where what is stated goes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ctx import clock
from ctx.capture import session_table, steps
from ctx.errors import NodeNotFound
from ctx.ids import NodeId
from ctx.memory import learning_confidence, lookups, model, sources
from ctx.memory.changes import Change
from ctx.memory.graph import USER
from ctx.memory.learning_confidence import CERTAIN, HUMAN, INFERRED
from ctx.memory.lookups import ObservationRow
from ctx.memory.model import OFF_CONTEXT, Evidence, Node
from ctx.project import anchors
from ctx.project.anchors import Anchor
from ctx.synthesis import dedupe, provenance
from ctx.synthesis import learnings as recurring
from ctx.synthesis.learnings import LearningCandidate, ObservedStatement, SessionWork
from ctx.workspace import Memory

TAG = "learning:"
_KINDS = ("decision", "discovery", "bugfix")
_MOST_SESSIONS = 50
_MOST_STATEMENTS = 400
_VERIFIED = "bugfix:"
"""The key of a bug fix that a check confirmed; others are only reported."""
_BROKE = "broke "
_AUTHOR = "learnings"
# Recording every small change would write a record per day for each learning.
_STEP = 50
_GONE = 50
"""What is less certain than this is put away."""


class Learning(NamedTuple):
    node: Node
    short_id: str
    category: str
    confidence: float
    times_seen: int
    last_seen: str
    origin: str
    """`inferred`, or `human`: somebody stated or confirmed it."""
    rejected: bool


class LearningList(NamedTuple):
    """The answer of `ctx learnings list`."""

    learnings: tuple[Learning, ...]
    project: str | None
    left_out: int
    """Learnings of another category, below the requested confidence, or rejected."""
    rejected: int
    """How many of these were rejected."""


class LearnResult(NamedTuple):
    """What became of the learnings of a project."""

    new: int
    changed: int
    contradicted: int


def list_learnings(
    memory: Memory,
    *,
    project: str | None = None,
    everywhere: bool = False,
    category: str | None = None,
    least: float = 0.0,
    rejected: bool = False,
) -> LearningList:
    """The learnings of this project, or of another that is named, the most certain first."""
    if project is None:
        nodes = _nodes(memory, memory.own_tag, everywhere=everywhere)
    else:
        nodes = _nodes(memory.only(USER), f"project:{project}")
    whose = None if everywhere else project or memory.project
    short = memory.graph.shown([node.id for node in nodes])
    every = [_learning(node, short[node.id]) for node in nodes]
    shown = [
        each
        for each in every
        if (category is None or each.category == category)
        and each.confidence >= least
        and (rejected or not each.rejected)
    ]
    shown.sort(key=lambda each: (-each.confidence, -each.times_seen, each.node.id))
    gone = 0 if rejected else sum(each.rejected for each in every)
    return LearningList(tuple(shown), whose, len(every) - len(shown), gone)


def add(memory: Memory, text: str, category: str | None) -> Learning:
    """A person's word: it is certain."""
    return _add(memory, text, category, _nodes(memory, memory.own_tag), memory.project_tag)


def add_everywhere(memory: Memory, text: str, category: str | None) -> Learning:
    """The same for all projects: it stays in the person's own store."""
    mine = memory.only(USER)
    return _add(mine, text, category, _nodes(mine, None), None)


def _add(
    memory: Memory, text: str, category: str | None, known: Iterable[Node], project_tag: str | None
) -> Learning:
    chosen = category or recurring.category_of(text)
    words = model.content(text)
    for node in known:
        if _category(node) == chosen and " ".join(node.content.split()) == " ".join(words.split()):
            return confirm(memory, node.id)
    with memory.transaction("learnings add") as change:
        node_id = change.add_node("pattern", words, metadata=_user_metadata())
        for tag in filter(None, (f"{TAG}{chosen}", project_tag)):
            change.tag(node_id, tag)
    return _learning_by_id(memory, node_id)


def confirm(memory: Memory, node_id: NodeId) -> Learning:
    node = _require_learning(memory, node_id)
    with memory.transaction("learnings confirm", memory.graph.holding(node_id).scope) as change:
        change.update_node(
            node_id,
            metadata={
                "confidence": CERTAIN,
                "origin": HUMAN,
                "rejected": None,
                sources.KEY: sources.USER,
            },
        )
        if node.metadata.get("rejected"):
            change.untag(node_id, OFF_CONTEXT)
    return _learning_by_id(memory, node_id)


def reject(memory: Memory, node_id: NodeId) -> Learning:
    """Reject a learning. It stays hidden, so that it is not learned again.

    Statements of sessions to the same effect are no longer shown to agents either.
    """
    node = _require_learning(memory, node_id)
    scope = memory.graph.holding(node_id).scope
    with memory.transaction("learnings reject", scope) as change:
        change.update_node(node_id, metadata={"confidence": 0, "origin": HUMAN, "rejected": True})
        change.set_tier(node_id, OFF_CONTEXT)
        for said in _same_statements(memory, node) if scope == USER else ():
            change.set_tier(said, OFF_CONTEXT)
    return _learning_by_id(memory, node_id)


def learn(memory: Memory, project: str | None) -> LearnResult:
    """Update the learnings of a project from its sessions.

    The same sessions give the same learnings, however often this runs.
    """
    tag = f"project:{project}" if project else None
    worked, told = _recent_sessions(memory, project), _recurring_observations(memory, tag)
    wanted = recurring.candidates(worked, told)
    known = {node.id: node for node in _in_user_store(memory, tag)}
    now_ms = clock.now_ms()
    new = changed = contradicted = 0
    with memory.transaction("learn", USER) as change:
        for candidate in wanted:
            node = _existing_learning(known, candidate)
            if node is None:
                node_id = _put_learning(change, candidate, tag, now_ms)
                provenance.derive_learning(change, node_id, candidate, memory.author)
                new += 1
                continue
            provenance.derive_learning(change, node.id, candidate, memory.author)
            del known[node.id]
            against = _contradicting_statements(node, told)
            contradicted += len(against) > node.metadata.get("contradicted", 0)
            changed += _renew(change, node, candidate, len(against), now_ms)
        for node in known.values():
            # No stored steps show it any more: it fades, or was contradicted.
            against = _contradicting_statements(node, told)
            contradicted += len(against) > node.metadata.get("contradicted", 0)
            changed += _renew(change, node, None, len(against), now_ms)
            if _is_refuted(node):
                change.set_tier(node.id, OFF_CONTEXT)
    return LearnResult(new, changed, contradicted)


# What sessions have shown


def _recent_sessions(memory: Memory, project: str | None) -> list[SessionWork]:
    """The newest sessions of a project, the oldest of them first."""
    found = session_table.newest(memory.local, project, _MOST_SESSIONS)
    return [_session(memory, session, at) for session, at in reversed(found)]


def _session(memory: Memory, session: str, at: str) -> SessionWork:
    checks: list[str] = []
    ran: list[str] = []
    edited: list[str] = []
    for step in steps.successful_steps(memory.local, session):
        if step.kind == "command":
            ran.append(step.text)
            if step.passed:
                checks.append(step.text)
        elif step.path:
            edited.append(step.path)
    return SessionWork(session, at, tuple(checks), tuple(ran), tuple(edited))


def _recurring_observations(memory: Memory, tag: str | None) -> list[ObservedStatement]:
    """The newest observations that can recur, the oldest of them first."""
    return [_observation(each) for each in reversed(_observations(memory, tag))]


def _same_statements(memory: Memory, node: Node) -> list[NodeId]:
    """The observations that say what a learning says."""
    tag = next((each for each in node.tags if each.startswith("project:")), None)
    return [
        each.id
        for each in _observations(memory, tag)
        if dedupe.is_similar(_observation(each).text, node.content)
    ]


def _observations(memory: Memory, tag: str | None) -> list[ObservationRow]:
    return lookups.observations(memory.user.connection, _KINDS, tag, _MOST_STATEMENTS)


def _observation(found: ObservationRow) -> ObservedStatement:
    metadata: dict[str, Any] = json.loads(found.metadata)
    sessions = _texts(metadata.get("sessions")) or _texts([metadata.get("session")])
    said = metadata.get("title")
    return ObservedStatement(
        found.kind.removeprefix("kind:"),
        said if isinstance(said, str) and said else found.content.partition("\n")[0],
        sessions,
        found.created_at,
        _texts(metadata.get("files")),
        metadata.get("said_by") == "user",
        found.id,
        str(metadata.get("key", "")).startswith(_VERIFIED),
    )


def _contradicting_statements(
    node: Node, told: Iterable[ObservedStatement]
) -> list[ObservedStatement]:
    """Statements against a learning since it was last seen."""
    since = str(node.metadata.get("last_seen", ""))
    return [
        each
        for each in told
        if each.kind == "decision"
        and each.at > since
        and dedupe.contradicts(each.text, node.content)
    ]


def _is_refuted(node: Node) -> bool:
    """Whether a learning has no evidence any more. That something broke is read from observations,
    which do not expire as steps do."""
    is_inferred = node.metadata.get("origin") == INFERRED
    key = str(node.metadata.get("key", ""))
    return is_inferred and key.startswith(_BROKE) and OFF_CONTEXT not in node.tags


# What is written


def _put_learning(
    change: Change, candidate: LearningCandidate, tag: str | None, now_ms: int
) -> NodeId:
    node_id = change.add_node(
        "pattern",
        candidate.text,
        metadata={
            "key": candidate.key,
            "confidence": _confidence(candidate.sessions, candidate.last_seen, 0, now_ms),
            "times_seen": len(candidate.sessions),
            "sessions": list(candidate.sessions[-_MOST_SESSIONS:]),
            "last_seen": candidate.last_seen,
            "origin": INFERRED,
            sources.KEY: sources.USER if candidate.human else sources.AGENT,
        },
    )
    for word in (f"{TAG}{candidate.category}", *((tag,) if tag else ())):
        change.tag(node_id, word)
    for path in candidate.files if tag else ():
        anchor = Anchor("file", path, tag or "")
        anchors.put(change, anchor)
        change.link(node_id, anchor.id, "MENTIONS", Evidence(_AUTHOR))
    return node_id


def _user_metadata() -> dict[str, Any]:
    now = clock.iso(clock.now_ms())
    return {
        "confidence": CERTAIN,
        "times_seen": 1,
        "last_seen": now,
        "origin": HUMAN,
        sources.KEY: sources.USER,
    }


def _renew(
    change: Change, node: Node, candidate: LearningCandidate | None, against: int, now_ms: int
) -> bool:
    """Whether anything about it is new."""
    if node.metadata.get("rejected"):
        return False
    known = _texts(node.metadata.get("sessions"))
    sessions = tuple(dict.fromkeys((*known, *(candidate.sessions if candidate else ()))))
    times = max(int(node.metadata.get("times_seen", 0)), 0) + len(sessions) - len(known)
    last = max(str(node.metadata.get("last_seen", "")), candidate.last_seen if candidate else "")
    against = max(against, int(node.metadata.get("contradicted", 0)))
    is_human = node.metadata.get("origin") == HUMAN
    sure = CERTAIN if is_human else _confidence(range(times), last, against, now_ms)
    before = int(node.metadata.get("confidence", 0))
    told: dict[str, Any] = {}
    if len(sessions) > len(known) or against > node.metadata.get("contradicted", 0):
        told = {
            "times_seen": times,
            "sessions": list(sessions[-_MOST_SESSIONS:]),
            "last_seen": last,
            "contradicted": against or None,
        }
    if told or abs(sure - before) >= _STEP:
        told["confidence"] = sure
    if not told:
        return False
    changed = change.update_node(
        node.id,
        content=candidate.text if candidate and not is_human else None,
        metadata=told,
    )
    if not is_human and sure < _GONE:
        change.set_tier(node.id, OFF_CONTEXT)
    elif OFF_CONTEXT in node.tags and sure >= _GONE:
        change.untag(node.id, OFF_CONTEXT)
    return bool(changed)


def _confidence(sessions: Sequence[object], last_seen: str, against: int, now_ms: int) -> int:
    days = learning_confidence.silent_days(last_seen, now_ms)
    return learning_confidence.confidence(len(sessions), days, against)


def _existing_learning(known: Mapping[NodeId, Node], candidate: LearningCandidate) -> Node | None:
    """The learning that there is of it: by its key, else what says the same in other words."""
    nodes = known.values()
    by_key = (node for node in nodes if node.metadata.get("key") == candidate.key)
    alike = (node for node in nodes if dedupe.is_similar(node.content, candidate.text))
    return next(by_key, None) or next(alike, None)


# Which there are


def _in_user_store(memory: Memory, tag: str | None) -> list[Node]:
    mine = memory.only(USER)
    return [node for node in _nodes(mine, tag) if node.scope == USER]


def _nodes(memory: Memory, tag: str | None, *, everywhere: bool = False) -> list[Node]:
    """Learnings: of all projects, or of one with those that belong to none."""
    found: list[Node] = []
    for graph in memory.graph.graphs:
        everything = everywhere or graph.scope != USER
        there = lookups.learnings(graph.connection, tag, everywhere=everything)
        found += [node for node in graph.nodes(there) if node.superseded_by is None]
    return found


def _require_learning(memory: Memory, node_id: NodeId) -> Node:
    node = memory.graph.node(node_id)
    if _category(node) is None:
        raise NodeNotFound(
            f"The node {node_id[:12]} is not a learning.", hint="`ctx learnings list` shows them."
        )
    return node


def _learning_by_id(memory: Memory, node_id: NodeId) -> Learning:
    return _learning(memory.graph.node(node_id), memory.graph.shown([node_id])[node_id])


def _learning(node: Node, short_id: str) -> Learning:
    metadata = node.metadata
    confidence = learning_confidence.confidence_at(metadata, clock.now_ms())
    times = metadata.get("times_seen", 1)
    return Learning(
        node,
        short_id,
        _category(node) or "pattern",
        confidence / CERTAIN,
        times if isinstance(times, int) else 1,
        str(metadata.get("last_seen") or node.updated_at),
        str(metadata.get("origin") or HUMAN),
        bool(metadata.get("rejected")),
    )


def _category(node: Node) -> str | None:
    return next((tag[len(TAG) :] for tag in node.tags if tag.startswith(TAG)), None)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        return ()
    return tuple(each for each in value if isinstance(each, str) and each)
