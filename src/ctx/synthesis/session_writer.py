"""Writes the observations and the summary of a session to memory.

Writing is idempotent: node ids derive from the session and the subject, and a node is written only
if its content changes. Nodes that a user changed or deleted stay as they are. Observations that are
no longer true, such as a fix that did not hold, are withdrawn.

An observation that another session already made is not written again; the existing node is counted
once more. Stored model answers about the session are merged in; no model is called here.

A past session can be rebuilt by newer rules. Then a node with other text is not overwritten: a new
node supersedes it.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import ids, terms
from ctx.capture import prompt_authors, session_state, session_table
from ctx.capture.session_state import Session
from ctx.capture.steps import Step
from ctx.hook_files import spool
from ctx.ids import NodeId
from ctx.memory import model, records, sources
from ctx.memory.changes import Change
from ctx.memory.graph import PROJECT, USER
from ctx.memory.model import Evidence, Node
from ctx.project import anchors
from ctx.project.anchors import Anchor
from ctx.redaction import redact
from ctx.sqlite.connection import transaction
from ctx.synthesis import (
    author_standing,
    excerpt_table,
    existing_observations,
    project_commands,
    provenance,
)
from ctx.synthesis import synthesise as extractive
from ctx.synthesis.by_model import merge_answers, model_answers
from ctx.synthesis.by_model.model_answers import ModelAnswer
from ctx.synthesis.decisions import contradicts
from ctx.synthesis.existing_observations import KnownNode
from ctx.synthesis.observations import (
    MOST_EVIDENCE,
    MOST_FILES,
    Observation,
    Summary,
    Synthesis,
)
from ctx.synthesis.session_excerpts import Excerpt, excerpts
from ctx.synthesis.session_stores import AUTHOR, SUMMARY, scopes, session_memory
from ctx.synthesis.statements import with_statements
from ctx.synthesis.summary import markdown
from ctx.workspace import Memory

RULES = 3
"""The version of the rules. Increase it if the same steps give other nodes or excerpts: the worker
rebuilds the sessions of earlier versions (`operations/background_rebuild.py`)."""

_ACTION = "synthesise"
_MOST_MENTIONS = 5
_MOST_SESSIONS = 50
_CONFIDENCE_STEP = 50
_MAX_CONFIDENCE = 950
_REBUILT = "Rebuilt by newer rules."
_BY_MODEL = "A model says that it is replaced."
_COUNTED = frozenset({"evidence", "confidence", "last_seen"})


class SessionWriteResult(NamedTuple):
    """The nodes that were written for a session."""

    session: str
    new: tuple[NodeId, ...]
    changed: tuple[NodeId, ...]
    seen_again: tuple[NodeId, ...]
    """Observations that other sessions had already made."""
    withdrawn: tuple[NodeId, ...]
    summary: NodeId | None


class PreparedSession(NamedTuple):
    """What the steps of a session give, before it is written."""

    session: Session
    steps: list[Step]
    synthesis: Synthesis
    passages: list[Excerpt]
    answers: dict[str, ModelAnswer]
    """The model answers that it contains."""
    is_over: bool


def synthesise(memory: Memory, session_id: str, *, is_over: bool) -> SessionWriteResult:
    """Update memory to match the steps of a session."""
    session = session_state.find(memory.local, session_id)
    prepared = prepare(memory.local, session, is_over=is_over) if session else None
    if session is None or prepared is None:
        return SessionWriteResult(session_id, (), (), (), (), None)
    with session_memory(memory, session) as there:
        observed, summarised = scopes(there, session)
        with there.transaction(_ACTION, observed, summarised) as change:
            written = write(change, change.in_scope(summarised), prepared)
            if others := prompt_authors.alike(memory.local, prepared.steps):
                change.write()
                author_standing.correct(change, memory.local, others)
    store_rows(memory.local, prepared, written.summary)
    for other in others - {session_id}:
        if (known := session_state.find(memory.local, other)) is not None:
            fill_rows(memory.local, known)
    return written


def prepare(connection: Connection, session: Session, *, is_over: bool) -> PreparedSession | None:
    """Compute what memory should have about a session; None if no steps are stored."""
    steps = prompt_authors.steps_of(connection, session.id)
    if not steps:
        return None
    found = extractive.synthesise(session, steps, is_over=is_over)
    answers = model_answers.of_session(connection, session.id)
    found = merge_answers.merge_summary(found, steps, answers)
    passages = excerpts(steps)
    choices = merge_answers.choices(answers)
    found = with_statements(found, steps, passages, is_over=is_over, choices=choices)
    return PreparedSession(session, steps, found, passages, answers, is_over)


def write(
    change: Change, summary_change: Change, prepared: PreparedSession, *, is_rebuilt: bool = False
) -> SessionWriteResult:
    """Inside a change: write the nodes of a session.

    When a session is rebuilt, nodes stay as they are if anyone else ever edited, tagged or linked
    them, and new nodes supersede those with other text.
    """
    steps, is_over = prepared.steps, prepared.is_over
    writing = _SessionWriter(change, prepared.session, steps, is_rebuilt=is_rebuilt)
    is_idle = is_over or extractive.is_at_rest(steps)
    writing.observations(prepared.synthesis.observations, is_idle=is_idle, is_over=is_over)
    if summary_change is not change:
        writing = writing.elsewhere(summary_change)
    writing.summary(prepared.synthesis.summary)
    writing.derive_summary()
    return writing.written()


def store_rows(connection: Connection, prepared: PreparedSession, summary: NodeId | None) -> None:
    """Store what else a session gives: its commands, its excerpts and how far it is processed."""
    session, steps = prepared.session, prepared.steps
    project_commands.renew(connection, session, steps[-extractive.MOST_STEPS :])
    with transaction(connection):
        # A model answer that arrived in the meantime is used in the next run.
        answers = model_answers.of_session(connection, session.id)
        upto = steps[-1].id if answers == prepared.answers else ""
        session_table.set_synthesised(connection, session.id, upto, summary)
        excerpt_table.replace(
            connection, session.id, session.project, prepared.passages, steps[0].id
        )


def without_texts(prepared: PreparedSession) -> PreparedSession:
    """The part that `write` needs, to keep many sessions in memory."""
    steps = [Step(each.id, each.session, each.at, each.kind) for each in prepared.steps]
    return prepared._replace(steps=steps, passages=[])


def sessions_without_rows(connection: Connection) -> list[Session]:
    """The synthesised sessions that have neither commands nor excerpts, newest first.

    An older version of ctx stored none.
    """
    known = excerpt_table.sessions(connection) | project_commands.sessions(connection)
    every = session_state.all_of(connection)
    return [each for each in every if each.synthesised and each.id not in known]


def fill_rows(connection: Connection, session: Session) -> None:
    """Store the commands and excerpts of a session. Nodes do not change."""
    steps = prompt_authors.steps_of(connection, session.id)
    if not steps:
        return
    project_commands.renew(connection, session, steps[-extractive.MOST_STEPS :])
    with transaction(connection):
        excerpt_table.replace(connection, session.id, session.project, excerpts(steps), steps[0].id)


class _SessionWriter:
    """Writes to one store, in one change."""

    def __init__(
        self, change: Change, session: Session, steps: Sequence[Step], *, is_rebuilt: bool
    ) -> None:
        self._change = change
        self._is_rebuilt = is_rebuilt
        self._session = session
        self._steps = steps
        self._tag = (
            "" if change.graph.scope == PROJECT else model.project_tag(session.project) or ""
        )
        self._known = {
            each.key: each for each in existing_observations.of_session(change.graph, session.id)
        }
        self._new: list[NodeId] = []
        self._changed: list[NodeId] = []
        self._again: list[NodeId] = []
        self._withdrawn: list[NodeId] = []
        self._deleted: list[Observation] = []
        """Observations that the user deleted."""
        self.node: NodeId | None = None

    def written(self) -> SessionWriteResult:
        return SessionWriteResult(
            self._session.id,
            tuple(self._new),
            tuple(self._changed),
            tuple(self._again),
            tuple(self._withdrawn),
            self.node,
        )

    def elsewhere(self, change: Change) -> "_SessionWriter":
        """A writer that continues in another store."""
        other = _SessionWriter(change, self._session, self._steps, is_rebuilt=self._is_rebuilt)
        other._new, other._changed = self._new, self._changed
        other._again, other._withdrawn = self._again, self._withdrawn
        other._deleted = self._deleted
        return other

    def observations(self, found: Sequence[Observation], *, is_idle: bool, is_over: bool) -> None:
        fresh = [each for each in found if each.key not in self._known]
        keys = [each.key for each in fresh]
        # Nodes of the project from other sessions: the newest, and those with one of the keys.
        others = (
            existing_observations.of_project(self._change.graph, self._tag, keys, self._known)
            if fresh
            else []
        )
        for each in found:
            known = self._known.get(each.key)
            if known is not None:
                self._keep(known, each)
            elif same := existing_observations.find_same(each, others):
                self._count_again(same, each)
            elif not existing_observations.is_stated(each, others):
                self._add(each)
        if fresh:
            self._supersede([each for each in fresh if each.kind == "decision"], others)
        self._supersede_replaced(found)
        if is_idle:
            self._withdraw({each.key for each in found}, is_over=is_over)

    def summary(self, found: Summary | None) -> None:
        known = self._known.get(SUMMARY)
        self.node = known.id if known else None
        if found is None:
            return
        found = existing_observations.without_deleted(found, self._deleted)
        first = self._steps[0].id
        if known and str(known.metadata.get("first", "")) < first:
            # The first steps are deleted; keep what the old summary has about them.
            found = _extend_summary(known, found)
            first = str(known.metadata.get("first", ""))
        metadata = {
            "key": SUMMARY,
            "session": self._session.id,
            "first": first,
            sources.KEY: sources.AGENT,
            **_sections(found),
        }
        content = markdown(found)
        if known is not None:
            self._update(known, content, metadata, found.at)
            return
        made_at = self._steps[0].at
        tags = [f"session:{self._session.id}", self._tag]
        node_id = self._node_id(SUMMARY, first)
        times = made_at, found.at
        self.node = self._put_node(node_id, SUMMARY, content, metadata, times, tags)
        if self.node is not None:
            self._new.append(self.node)

    def derive_summary(self) -> None:
        """Link the summary to the observations of its session in the same store."""
        known = [each.id for key, each in self._known.items() if key != SUMMARY]
        again = [each for each in self._again if self._change.graph.has(each)]
        there = [each for each in (*known, *again) if each not in self._withdrawn]
        if self.node is not None and not self._is_protected(self.node):
            provenance.derive_summary(self._change, self.node, there, AUTHOR)

    def _add(self, found: Observation) -> None:
        tags = [f"kind:{found.kind}", f"session:{self._session.id}", self._tag]
        metadata = {**self._metadata(found), "times_seen": 1, "sessions": [self._session.id]}
        times = (found.at, found.at)
        derived = self._node_id(found.key, found.evidence[0])
        node_id = self._put_node(derived, "observation", _content(found), metadata, times, tags)
        if node_id is not None:
            self._new.append(node_id)
            self._known[found.key] = KnownNode(node_id, metadata, found.title, found.kind)
            self._mention(node_id, found.files)
        else:
            self._deleted.append(found)

    def _node_id(self, key: str, first_step: str, version: str = "") -> NodeId:
        """The id of a node, which derives from its subject."""
        name = f"synthesis\0{self._session.id}\0{key}{version}"
        return NodeId(ids.derived_ulid(spool.made_ms(first_step), name))

    def _put_node(
        self,
        node_id: NodeId,
        node_type: str,
        content: str,
        metadata: Mapping[str, Any],
        times: tuple[str, str],
        tags: Iterable[str],
    ) -> NodeId | None:
        """Add a node; None if the user deleted it."""
        change = self._change
        if change.graph.was_deleted(node_id):
            if not self._is_ours(node_id, "node.delete"):
                return None
            change.restore_node(node_id)
        change.add_node(node_type, content, metadata=metadata, node_id=node_id, times=times)
        for tag in filter(None, tags):
            change.tag(node_id, tag, times[0])
        return node_id

    def _keep(self, known: KnownNode, found: Observation) -> None:
        """Update a node of this session to the new observation."""
        if known.metadata.get("session") != self._session.id:
            # Another session owns it, and this one is already counted.
            return
        metadata = self._metadata(found)
        if len(known.texts("sessions")) > 1:
            # Keep the counts of the other sessions.
            metadata = {k: v for k, v in metadata.items() if k not in _COUNTED}
        if self._is_rebuilt and self._replace(known, found, metadata):
            return
        is_updated = self._update(known, _content(found), metadata, found.at)
        if is_updated:
            self._mention(known.id, found.files)
        if (
            known.kind != found.kind
            and (is_updated or not self._is_touched(known.id))
            and self._change.untag(known.id, f"kind:{known.kind}")
        ):
            self._change.tag(known.id, f"kind:{found.kind}")
            if not is_updated:
                self._changed.append(known.id)

    def _replace(self, known: KnownNode, found: Observation, metadata: Mapping[str, Any]) -> bool:
        """Supersede a node whose text is made by earlier rules; False if the text is the same."""
        graph = self._change.graph
        node_id = self._node_id(found.key, found.evidence[0], f"\0{RULES}")
        is_same = graph.node(known.id).content == redact(_content(found)).text
        if is_same or node_id == known.id or not self._is_ours(known.id, "node."):
            return False
        merged = {**known.metadata, **metadata}
        tags = [tag for tag in graph.tags_of(known.id) if not tag.startswith("kind:")]
        times = found.at, found.at
        tags.append(f"kind:{found.kind}")
        if self._put_node(node_id, "observation", _content(found), merged, times, tags) is not None:
            self._supersede_old(node_id, known.id)
            self._changed.append(node_id)
            self._known[found.key] = KnownNode(node_id, merged, found.title, found.kind)
            self._mention(node_id, found.files)
        return True

    def _supersede_old(self, newer: NodeId, older: NodeId) -> None:
        """Agents are not given the older node, even if the user deletes the newer one."""
        self._change.write()
        self._change.link(newer, older, "SUPERSEDES", Evidence(AUTHOR, reason=_REBUILT))
        self._change.tag(older, "tier:off-context")

    def _update(
        self, known: KnownNode, content: str, metadata: Mapping[str, Any], updated_at: str
    ) -> bool:
        if not self._is_ours(known.id, "node."):
            return False
        changed = self._change.update_node(
            known.id, content=content, metadata=metadata, updated_at=updated_at
        )
        if changed:
            self._changed.append(known.id)
        return bool(changed)

    def _is_ours(self, node_id: NodeId, kind: str) -> bool:
        """Whether synthesis made the last change to a node."""
        if self._is_protected(node_id):
            return False
        about = records.records_about(self._change.graph.connection, node_id, kind)
        return not about or max(about, key=lambda record: record.order).author == AUTHOR

    def _is_protected(self, node_id: NodeId) -> bool:
        """Whether anyone else edited, tagged or linked a node that only its author may change."""
        return self._is_rebuilt and self._is_touched(node_id)

    def _is_touched(self, node_id: NodeId) -> bool:
        """Whether anyone but synthesis edited, tagged or linked a node."""
        connection = self._change.graph.connection
        about = [
            *records.records_about(connection, node_id),
            *records.records_of_edges_to(connection, node_id),
        ]
        return any(record.author != AUTHOR for record in about)

    def _count_again(self, same: KnownNode, found: Observation) -> None:
        sessions = same.texts("sessions")
        if self._session.id in sessions or self._is_protected(same.id):
            return
        counted = same.metadata.get("times_seen")
        sure = same.metadata.get("confidence")
        evidence = [*same.texts("evidence"), *found.evidence][-MOST_EVIDENCE:]
        self._change.update_node(
            same.id,
            metadata={
                "times_seen": (counted if isinstance(counted, int) else 1) + 1,
                "sessions": [*sessions, self._session.id][-_MOST_SESSIONS:],
                "evidence": evidence,
                "last_seen": found.at,
                "confidence": max(
                    min(_MAX_CONFIDENCE, (sure if isinstance(sure, int) else 0) + _CONFIDENCE_STEP),
                    found.confidence,
                ),
            },
            updated_at=found.at,
        )
        self._change.tag(same.id, f"session:{self._session.id}")
        self._again.append(same.id)

    def _supersede(self, fresh: Sequence[Observation], others: Sequence[KnownNode]) -> None:
        """Link each new decision to the earlier ones that it clearly contradicts."""
        decided = [each for each in (*others, *self._known.values()) if each.kind == "decision"]
        for each in fresh:
            own = self._known.get(each.key)
            if own is None:
                continue
            for earlier in decided:
                sure = earlier.metadata.get("confidence")
                if (
                    earlier.id != own.id
                    and str(earlier.metadata.get("last_seen", "")) < each.at
                    and (not isinstance(sure, int) or sure <= each.confidence)
                    and contradicts(each.title, earlier.title)
                    and not self._is_protected(earlier.id)
                ):
                    evidence = Evidence(AUTHOR, each.confidence, reason=each.title)
                    self._change.link(own.id, earlier.id, "SUPERSEDES", evidence)

    def _supersede_replaced(self, found: Sequence[Observation]) -> None:
        """Link observations to the earlier ones that they replace according to a model."""
        graph = self._change.graph
        for each in found:
            own = self._known.get(each.key)
            for node_id in filter(graph.has, each.replaces):
                if own and node_id != own.id and self._may_replace(each, graph.node(node_id)):
                    evidence = Evidence(AUTHOR, each.confidence, reason=_BY_MODEL)
                    self._change.link(own.id, node_id, "SUPERSEDES", evidence)

    def _may_replace(self, found: Observation, earlier: Node) -> bool:
        """Whether a model may say so: both are about the same, and only synthesis touched the old.

        So it is nothing that a user or agent stated. What the user said, only the user can replace.
        """
        graph = self._change.graph
        # Of a decision, the text says who made it.
        words = terms.significant(found.text if found.said_as else found.title)
        return (
            earlier.superseded_by is None
            and str(earlier.metadata.get("last_seen", "")) < found.at
            and (graph.scope == PROJECT or self._tag in earlier.tags)
            and (found.said_by == "user" or earlier.metadata.get(sources.KEY) != sources.USER)
            and not words.isdisjoint(terms.significant(earlier.content))
            and not self._is_touched(earlier.id)
        )

    def _withdraw(self, keys: set[str], *, is_over: bool) -> None:
        """Delete observations of this session that its steps no longer support.

        Which statements are the best is known at the end of the session.
        """
        there = {step.id for step in self._steps}
        for key, known in self._known.items():
            is_repeated = key in keys or key == SUMMARY
            is_repeated = is_repeated or (known.kind == "statement" and not is_over)
            is_shared = known.metadata.get("session") != self._session.id
            evidence = known.texts("evidence")
            if is_repeated or is_shared or len(known.texts("sessions")) > 1:
                continue
            if not evidence or not there.issuperset(evidence):
                # Some of its steps are deleted, so it cannot be checked.
                continue
            tags = self._change.graph.tags_of(known.id)
            is_kept = any(tag.startswith("tier:") for tag in tags)
            if not is_kept and self._is_ours(known.id, "node."):
                if newer := self._replacement(known):
                    self._supersede_old(newer, known.id)
                else:
                    self._change.delete_node(known.id)
                self._withdrawn.append(known.id)

    def _replacement(self, old: KnownNode) -> NodeId | None:
        """When a session is rebuilt: the new node of the same kind that rests on the same steps."""
        if not self._is_rebuilt:
            return None
        evidence = set(old.texts("evidence"))
        for each in self._known.values():
            is_alike = each.id in self._new and each.kind == old.kind
            if is_alike and not evidence.isdisjoint(each.texts("evidence")):
                return each.id
        return None

    def _mention(self, node_id: NodeId, files: Sequence[str]) -> None:
        if not self._tag and self._change.graph.scope == USER:
            # Without a project, the same path can mean a different file.
            return
        inside = [path for path in files if not os.path.isabs(path) and not path.startswith("..")]
        for path in inside[:_MOST_MENTIONS]:
            anchor = Anchor("file", path, self._tag)
            if self._change.graph.edge(node_id, anchor.id, "MENTIONS") is None:
                anchors.put(self._change, anchor)
                self._change.link(node_id, anchor.id, "MENTIONS", Evidence(AUTHOR))

    def _metadata(self, found: Observation) -> dict[str, Any]:
        return {
            "key": found.key,
            "title": found.title,
            "files": list(found.files),
            "symbols": list(found.symbols),
            "evidence": list(found.evidence),
            "session": self._session.id,
            "confidence": found.confidence,
            "last_seen": found.at,
            **({"said_by": found.said_by} if found.said_by else {}),
            **({"worth": found.worth} if found.worth is not None else {}),
            **({"said_as": found.said_as} if found.said_as else {}),
            **({"lasting": True} if found.is_lasting else {}),
            sources.KEY: sources.USER if found.said_by == "user" else sources.AGENT,
        }


def _content(found: Observation) -> str:
    """Title and text; the title is left out if the text begins with it."""
    if found.said_as or found.text.startswith(found.title.rstrip("….")):
        return found.text
    return f"{found.title}\n\n{found.text}" if found.text else found.title


def _sections(found: Summary) -> dict[str, Any]:
    fields = found._asdict()
    del fields["at"]
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()
    }


def _extend_summary(known: KnownNode, found: Summary) -> Summary:
    """The old summary extended by the new one, when the first steps are deleted."""
    request, title = known.metadata.get("request"), known.metadata.get("title")

    def both(name: str, now: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*known.texts(name), *now]))[:MOST_FILES]

    return found._replace(
        title=title if isinstance(title, str) else found.title,
        request=request if isinstance(request, str) else found.request,
        investigated=both("investigated", found.investigated),
        learned=both("learned", found.learned),
        completed=both("completed", found.completed),
        files_read=both("files_read", found.files_read),
        files_edited=both("files_edited", found.files_edited),
        notes=both("notes", found.notes),
    )
