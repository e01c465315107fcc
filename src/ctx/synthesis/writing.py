"""Write down what a session leaves behind: observations, and its summary.

Whoever asks again changes nothing: the ids of the nodes follow from the session and from what they
are about, and a node is only written where it would say something else. What a person has changed
or deleted stays as they left it. What was true when it was written and is not any more, such as a
fix that did not hold, is withdrawn.

A thing that another session has found already is not told twice: the node that is there has been
seen once more. What a model was asked about a session, and has answered, is told in its words;
nobody is asked by this.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from ctx import ids
from ctx.capture import session_state, session_table
from ctx.capture import steps as taken
from ctx.capture.session_state import Session
from ctx.capture.steps import Step
from ctx.errors import UsageError
from ctx.hook_files import spool
from ctx.ids import NodeId
from ctx.memory import model, records
from ctx.memory.changes import Change
from ctx.memory.graph import PROJECT, USER
from ctx.memory.model import Evidence
from ctx.project import anchors
from ctx.project.anchors import Anchor
from ctx.sqlite.connection import transaction
from ctx.synthesis import junk, previous, unwanted
from ctx.synthesis import synthesise as extractive
from ctx.synthesis.decisions import contradicts
from ctx.synthesis.observations import (
    MODEL,
    MOST_EVIDENCE,
    MOST_FILES,
    Observation,
    Summary,
)
from ctx.synthesis.previous import Told
from ctx.synthesis.summary import markdown
from ctx.workspace import Memory, for_agents

AUTHOR = "synthesis"

_ACTION = "synthesise"
_SUMMARY = "summary"
_MOST_MENTIONS = 5
_MOST_SESSIONS = 50
_SURER = 50
_SUREST = 950
_COUNTED = frozenset({"evidence", "confidence", "last_seen"})


class Written(NamedTuple):
    """What became of a session."""

    session: str
    new: tuple[NodeId, ...]
    changed: tuple[NodeId, ...]
    seen_again: tuple[NodeId, ...]
    """What other sessions had found already."""
    withdrawn: tuple[NodeId, ...]
    summary: NodeId | None


def synthesise(memory: Memory, session_id: str, *, is_over: bool) -> Written:
    """Bring what is remembered of a session to what its steps say."""
    connection = memory.user.connection
    session = session_state.find(connection, session_id)
    steps = taken.of_session(connection, session_id) if session else []
    if session is None or not steps:
        return Written(session_id, (), (), (), (), None)
    found = extractive.synthesise(session, steps, is_over=is_over)
    said = previous.by_models(connection, session_id)
    is_whole = is_over or extractive.is_at_rest(steps)
    found = previous.with_models(found, steps, said, is_whole=is_whole)
    with _there(memory, session) as there:
        observed, summarised = _scopes(there)
        with there.transaction(_ACTION, observed, summarised) as change:
            writing = _Writing(change, session, steps)
            writing.observations(found.observations, is_whole=found.summary is not None)
            if observed != summarised:
                writing = writing.elsewhere(change.in_scope(summarised))
            writing.summary(found.summary)
    with transaction(connection):
        # What a model said meanwhile is told the next time.
        is_all = previous.by_models(connection, session_id) == said
        upto = steps[-1].id if is_all else ""
        session_table.set_synthesised(connection, session_id, upto, writing.node)
    return writing.written()


def _there(memory: Memory, session: Session) -> AbstractContextManager[Memory]:
    """Memory from where the session worked."""
    name = ids.session_id(session.id)
    if os.path.isabs(session.folder):
        return for_agents(memory, session.folder, name, AUTHOR)
    environment = memory.environment._replace(session=name)
    return nullcontext(Memory(memory.user, None, environment, AUTHOR))


def _scopes(there: Memory) -> tuple[str, str]:
    """Where observations go, and where summaries go."""
    config = there.environment.user_config
    shared = config.text("share.sessions") if there.project_memory is not None else "none"
    return PROJECT if shared == "all" else USER, USER if shared == "none" else PROJECT


class _Writing:
    """What is written to one store, in one change."""

    def __init__(self, change: Change, session: Session, steps: Sequence[Step]) -> None:
        self._change = change
        self._session = session
        self._steps = steps
        self._tag = "" if change.graph.scope == PROJECT else _project_tag(session.project)
        self._known = {each.key: each for each in previous.of_session(change.graph, session.id)}
        self._new: list[NodeId] = []
        self._changed: list[NodeId] = []
        self._again: list[NodeId] = []
        self._withdrawn: list[NodeId] = []
        self._unwanted: list[Observation] = []
        """What a person has deleted."""
        self.node: NodeId | None = None

    def written(self) -> Written:
        return Written(
            self._session.id,
            tuple(self._new),
            tuple(self._changed),
            tuple(self._again),
            tuple(self._withdrawn),
            self.node,
        )

    def elsewhere(self, change: Change) -> "_Writing":
        """Go on in another store."""
        other = _Writing(change, self._session, self._steps)
        other._new, other._changed = self._new, self._changed
        other._again, other._withdrawn = self._again, self._withdrawn
        other._unwanted = self._unwanted
        return other

    def observations(self, found: Sequence[Observation], *, is_whole: bool) -> None:
        fresh = [each for each in found if each.key not in self._known]
        others = self._others([each.key for each in fresh]) if fresh else []
        is_by_model = any(each.said_by == MODEL for each in fresh)
        settled = (
            previous.settled(self._change.graph, self._session.id, AUTHOR) if is_by_model else []
        )
        for each in found:
            known = self._known.get(each.key)
            if known is not None:
                self._keep(known, each)
            elif each.said_by == MODEL and any(junk.is_same(each.title, it) for it in settled):
                # A model says it in other words the next time. What a person did to it holds.
                self._unwanted.append(each)
            elif same := previous.same(each, others):
                self._see_again(same, each)
            elif not previous.is_stated(each, others):
                self._add(each)
        if fresh:
            self._supersede([each for each in fresh if each.kind == "decision"], others)
        if is_whole:
            self._withdraw({each.key for each in found})

    def summary(self, found: Summary | None) -> None:
        known = self._known.get(_SUMMARY)
        self.node = known.id if known else None
        if found is None:
            return
        found = unwanted.without(found, self._unwanted)
        first = self._steps[0].id
        if known and str(known.metadata.get("first", "")) < first:
            # The beginning of the session is forgotten. What was told of it is not.
            found = _joined(known, found)
            first = str(known.metadata.get("first", ""))
        metadata = {
            "key": _SUMMARY,
            "session": self._session.id,
            "first": first,
            **_sections(found),
        }
        content = markdown(found)
        if known is not None:
            self._update(known, content, metadata, found.at)
            return
        made_at = self._steps[0].at
        tags = [f"session:{self._session.id}", self._tag]
        self.node = self._put(
            _SUMMARY, first, _SUMMARY, content, metadata, (made_at, found.at), tags
        )

    def _add(self, found: Observation) -> None:
        tags = [f"kind:{found.kind}", f"session:{self._session.id}", self._tag]
        metadata = {**self._metadata(found), "times_seen": 1, "sessions": [self._session.id]}
        times = (found.at, found.at)
        node_id = self._put(
            "observation", found.evidence[0], found.key, _content(found), metadata, times, tags
        )
        if node_id is not None:
            self._known[found.key] = Told(node_id, metadata, found.title, found.kind)
            self._mention(node_id, found.files)
        else:
            self._unwanted.append(found)

    def _put(
        self,
        node_type: str,
        first_step: str,
        key: str,
        content: str,
        metadata: Mapping[str, Any],
        times: tuple[str, str],
        tags: Sequence[str],
    ) -> NodeId | None:
        """A node under the id that follows from what it is about; None: somebody deleted it."""
        name = f"synthesis\0{self._session.id}\0{key}"
        node_id = NodeId(ids.derived_ulid(spool.made_ms(first_step), name))
        change = self._change
        if change.graph.was_deleted(node_id):
            if not self._is_ours(node_id, "node.delete"):
                return None
            change.restore_node(node_id)
        change.add_node(node_type, content, metadata=metadata, node_id=node_id, times=times)
        for tag in filter(None, tags):
            change.tag(node_id, tag, times[0])
        self._new.append(node_id)
        return node_id

    def _keep(self, known: Told, found: Observation) -> None:
        """Let a node of this session say what is found now."""
        if known.metadata.get("session") != self._session.id:
            # Another session told it, and this one was counted.
            return
        metadata = self._metadata(found)
        if len(known.texts("sessions")) > 1:
            # What the others have added to it stays.
            metadata = {k: v for k, v in metadata.items() if k not in _COUNTED}
        if self._update(known, _content(found), metadata, found.at):
            if known.kind != found.kind and self._change.untag(known.id, f"kind:{known.kind}"):
                self._change.tag(known.id, f"kind:{found.kind}")
            self._mention(known.id, found.files)

    def _update(
        self, known: Told, content: str, metadata: Mapping[str, Any], updated_at: str
    ) -> bool:
        if not self._is_ours(known.id, "node.put"):
            return False
        changed = self._change.update_node(
            known.id, content=content, metadata=metadata, updated_at=updated_at
        )
        if changed:
            self._changed.append(known.id)
        return bool(changed)

    def _is_ours(self, node_id: NodeId, kind: str) -> bool:
        """Whether nobody else had the last word about a node."""
        about = records.about(self._change.graph.connection, node_id, kind)
        return not about or max(about, key=lambda record: record.order).author == AUTHOR

    def _see_again(self, same: Told, found: Observation) -> None:
        sessions = same.texts("sessions")
        if self._session.id in sessions:
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
                    min(_SUREST, (sure if isinstance(sure, int) else 0) + _SURER),
                    found.confidence,
                ),
            },
            updated_at=found.at,
        )
        self._change.tag(same.id, f"session:{self._session.id}")
        self._again.append(same.id)

    def _supersede(self, fresh: Sequence[Observation], others: Sequence[Told]) -> None:
        """Let a decision take the place of those that it contradicts outright."""
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
                ):
                    evidence = Evidence(AUTHOR, each.confidence, reason=each.title)
                    self._change.link(own.id, earlier.id, "SUPERSEDES", evidence)

    def _withdraw(self, keys: set[str]) -> None:
        """Delete what this session told of itself, and its steps do not say any more."""
        there = {step.id for step in self._steps}
        for key, known in self._known.items():
            is_told = key in keys or key == _SUMMARY
            is_shared = known.metadata.get("session") != self._session.id
            evidence = known.texts("evidence")
            if is_told or is_shared or len(known.texts("sessions")) > 1:
                continue
            if not evidence or not there.issuperset(evidence):
                # Its steps are forgotten, so nobody can tell.
                continue
            tags = self._change.graph.tags_of(known.id)
            is_kept = any(tag.startswith("tier:") for tag in tags)
            if not is_kept and self._is_ours(known.id, "node.put"):
                self._change.delete_node(known.id)
                self._withdrawn.append(known.id)

    def _mention(self, node_id: NodeId, files: Sequence[str]) -> None:
        if not self._tag and self._change.graph.scope == USER:
            # The same path means another file elsewhere.
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
        }

    def _others(self, keys: Sequence[str]) -> list[Told]:
        """What the project knows beside this session: the newest, and what has the same key."""
        return previous.of_project(self._change.graph, self._tag, keys, set(self._known))


def _content(found: Observation) -> str:
    """A title that is the beginning of what follows is not said twice."""
    if found.text.startswith(found.title.rstrip("….")):
        return found.text
    return f"{found.title}\n\n{found.text}" if found.text else found.title


def _sections(found: Summary) -> dict[str, Any]:
    fields = found._asdict()
    del fields["at"]
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()
    }


def _joined(known: Told, found: Summary) -> Summary:
    """A summary of which only the end can be made anew."""
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


def _project_tag(project: str | None) -> str:
    """A folder may have a name that no tag can have: then what is told is everybody's."""
    try:
        return model.tag(f"project:{project}") if project else ""
    except UsageError:
        return ""
