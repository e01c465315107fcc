"""Describes what a session changed in memory, one line for each change.

The lines are in the narrative log of the commit, so that a review of a pull request shows them.
They describe the net result: what was added and removed again is not listed.

    + decision 01M7ESYZ1SB4: Retry with jitter (tier:reference)
    ~ fact 01M7ESZ11A3B: content
    - hypothesis 01M7ET0C9D4F: The cache is cold
    # fact 01M7ESZ11A3B: +area:net -draft
    > task 01M7ET2K8P1Q MENTIONS src/net/client.rs
"""

from collections.abc import Container, Sequence, Set
from typing import NamedTuple

from ctx.ids import NodeId, short
from ctx.memory import records, replay
from ctx.memory.graph import Graph
from ctx.memory.model import ANCHOR_TYPES
from ctx.memory.records import Record

_LONGEST = 120
_MOST_NAMED = 3
# Metadata that is of no use to a reader or is in the commit anyway.
_HIDDEN = frozenset({"ended", "file", "slug", "started"})
_REMOVALS = frozenset({"tag.remove", "edge.delete"})


class ChangeLines(NamedTuple):
    lines: tuple[str, ...]
    decisions: tuple[str, ...]
    """The titles of new decisions."""
    commands: tuple[str, ...]
    """The commands that were run and their results."""
    nodes: int
    """The number of new nodes."""


def describe_changes(
    graph: Graph, change_records: Sequence[Record], unseen: Set[str] = frozenset()
) -> ChangeLines:
    """Describe the effect of records, without `unseen` ones, on the graph."""
    about: dict[str, list[Record]] = {}
    for record in change_records:
        about.setdefault(record.subject, []).append(record)
    last = max((record.order for record in change_records), default=(0, ""))
    subjects = [_Subject(graph, subject, part, last, unseen) for subject, part in about.items()]
    new = [subject for subject in subjects if subject.is_new and not subject.is_deleted]
    return ChangeLines(
        tuple(line for subject in subjects for line in subject.lines()),
        tuple(subject.title for subject in new if subject.type == "decision"),
        tuple(line for subject in new if (line := subject.command)),
        len([subject for subject in new if subject.type not in ANCHOR_TYPES]),
    )


def default_message(changes: ChangeLines, files: int, survey: str = "") -> str:
    """The default message of a commit; `survey` names the tool snapshots in it."""
    if changes.decisions:
        named = "; ".join(changes.decisions[:_MOST_NAMED])
        more = len(changes.decisions) - _MOST_NAMED
        return f"Decide: {named}" + (f"; and {more} more" if more > 0 else "")
    parts = []
    if changes.nodes:
        parts.append("1 node" if changes.nodes == 1 else f"{changes.nodes:,} nodes")
    elif changes.lines:
        count = len(changes.lines)
        parts.append("1 change" if count == 1 else f"{count:,} changes")
    if files:
        parts.append("1 file" if files == 1 else f"{files:,} files")
    if parts:
        return f"Keep {' and '.join(parts)}"
    return f"Keep {survey or 'what changed in the narrative'}"


class _Subject:
    """A node or another subject, and the records about it."""

    def __init__(
        self,
        graph: Graph,
        subject: str,
        own_records: Sequence[Record],
        last: tuple[int, str],
        unseen: Set[str],
    ) -> None:
        self._graph = graph
        self._subject = subject
        self._records = sorted(own_records, key=lambda record: record.order)
        own_ids = {record.id for record in own_records}
        # Later records belong to another commit; records from documents have no time.
        about = [
            record
            for record in records.records_about(graph.connection, subject)
            if (record.order <= last or record.stamp >= records.BEYOND) and record.id not in unseen
        ]
        state = replay.node(about)
        self.type = state.type if state else ""
        self.title = _line(state.content.partition("\n")[0]) if state else ""
        self._metadata = state.metadata if state else {}
        self._before = [record for record in about if record.order < self._records[0].order]
        self._node_before = replay.node(self._before)
        kinds = {record.kind for record in own_records}
        self.is_deleted = "node.delete" in kinds and not (state and state.alive)
        self.is_new = any(
            r.kind == "node.put" and "content" in r.body for r in own_records
        ) and all(
            r.id in own_ids
            for r in about
            if r.kind == "node.put" and "type" in r.body and r.stamp < records.BEYOND
        )

    @property
    def command(self) -> str:
        if self.type != "observation" or "command" not in self._metadata:
            return ""
        outcome = _outcome(self._metadata.get("exit_code"), self._metadata.get("outcome"))
        return f"{_line(str(self._metadata['command']))}: {outcome}"

    def lines(self) -> list[str]:
        name = f"{self.type} {short(self._subject)}"
        lines: list[str] = []
        if self.is_deleted:
            # A node that no record creates, or that these records create, is not reported.
            return [f"- {name}: {self.title}"] if self.type and not self.is_new else []
        changed = self._net_records("tag.", replay.tags(self._before))
        added = [r.key for r in changed if r.kind == "tag.add"]
        if self.is_new:
            tags_added = f" ({', '.join(added)})" if added else ""
            if self.type not in ANCHOR_TYPES:
                lines.append(f"+ {name}: {self.title}{tags_added}")
        else:
            was_alive = self._node_before is not None and self._node_before.alive
            if "node.restore" in {r.kind for r in self._records} and not was_alive:
                lines.append(f"+ {name}: {self.title} (restored)")
            if fields := self._fields():
                lines.append(f"~ {name}: {', '.join(fields)}: {self.title}")
            removed = [r.key for r in changed if r.kind == "tag.remove"]
            tags = [f"+{tag}" for tag in added] + [f"-{tag}" for tag in removed]
            if tags:
                lines.append(f"# {name}: {' '.join(tags)}")
        return [*lines, *self._edge_lines(name), *self._settled_lines(name), *self._view_lines()]

    def _net_records(self, family: str, before: Container[str]) -> list[Record]:
        """The last record of each key that was added or removed, compared with the state before."""
        by_key: dict[str, list[Record]] = {}
        for record in self._records:
            if record.kind.startswith(family):
                by_key.setdefault(record.key, []).append(record)
        return [
            own[-1]
            for key, own in by_key.items()
            # Only what exists can be removed, even if the history here is incomplete.
            if (key in before or own[0].kind in _REMOVALS) == (own[-1].kind in _REMOVALS)
        ]

    def _fields(self) -> list[str]:
        """The fields and metadata that have another value than before."""
        before = self._node_before
        fields: dict[str, str] = {}
        for put in self._records:
            if put.kind != "node.put":
                continue
            for name in replay.FIELDS:
                if name in put.body:
                    is_same = before and getattr(before, name) == put.body[name]
                    fields[name] = "" if is_same else name
            for key, value in put.body.get("metadata", {}).items():
                is_same = before and before.metadata.get(key) == value
                shown = "" if is_same or key in _HIDDEN else f"{key} = {_line(str(value))}"
                fields[f"metadata {key}"] = shown
        return [shown for shown in fields.values() if shown]

    def _edge_lines(self, name: str) -> list[str]:
        last = {r.key: r for r in self._records if r.kind == "edge.put"}
        before = {
            key
            for (_, key), edge in replay.edges(self._before).items()
            # An edge with new evidence is listed again.
            if key not in last or edge.metadata == last[key].body.get("metadata", {})
        }
        lines = []
        for record in self._net_records("edge.", before):
            edge_type, _, to_id = record.key.partition(" ")
            sign = ">" if record.kind == "edge.put" else "x"
            lines.append(f"{sign} {name} {edge_type} {self._target(NodeId(to_id))}")  # type: ignore[arg-type]
        return lines

    def _settled_lines(self, name: str) -> list[str]:
        settled = (r.body.get("fields", ()) for r in self._records if r.kind == "node.settle")
        return [
            f"! {name}: {_line(', '.join(map(str, fields)))} settled: {self.title}"
            for fields in settled
        ]

    def _view_lines(self) -> list[str]:
        own = [r for r in self._records if r.kind in ("view.put", "view.delete")]
        if not own:
            return []
        before, after = replay.view(self._before), replay.view(own)
        name = _line(self._subject)
        if after is None:
            was_there = before is not None or own[0].kind == "view.delete"
            return [f"- view {name}"] if was_there else []
        if before and (before.query, before.budget) == (after.query, after.budget):
            return []
        return [f"{'~' if before else '+'} view {name}: {_line(after.query)}"]

    def _target(self, to_id: NodeId) -> str:
        for node in self._graph.nodes([to_id]):
            if node.type in ANCHOR_TYPES:
                return _line(node.content)
            return f"{node.type} {short(to_id)}"
        return short(to_id)


def _outcome(code: object, outcome: object) -> str:
    if code is None:
        return str(outcome) if outcome in ("passed", "failed") else "no exit code"
    return "passed" if code == 0 else f"failed with exit code {code}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"
