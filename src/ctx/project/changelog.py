"""Describes what a session changed in memory, one line for each change.

The lines are in the narrative log of the commit, so that a review of a pull request shows them.

    + decision 01M7ESYZ1SB4: Retry with jitter (tier:reference)
    ~ fact 01M7ESZ11A3B: content
    - hypothesis 01M7ET0C9D4F: The cache is cold
    # fact 01M7ESZ11A3B: +area:net -draft
    > task 01M7ET2K8P1Q MENTIONS src/net/client.rs
"""

from collections.abc import Sequence, Set
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
        self._records = own_records
        # Later records belong to another commit; records from documents have no time.
        about = [
            record
            for record in records.records_about(graph.connection, subject, "node.")
            if (record.order <= last or record.stamp >= records.BEYOND) and record.id not in unseen
        ]
        state = replay.node(about)
        self.type = state.type if state else ""
        self.title = _line(state.content.partition("\n")[0]) if state else ""
        self._metadata = state.metadata if state else {}
        kinds = {record.kind for record in own_records}
        self.is_deleted = "node.delete" in kinds and not (state and state.alive)
        self.is_new = any(
            r.kind == "node.put" and "content" in r.body for r in own_records
        ) and all(
            r.id in {record.id for record in own_records}
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
        puts = [r for r in self._records if r.kind == "node.put"]
        added = [r.key for r in self._records if r.kind == "tag.add"]
        if self.is_deleted:
            # A node that no record creates is not reported.
            return [f"- {name}: {self.title}"] if self.type else []
        if self.is_new:
            tags_added = f" ({', '.join(added)})" if added else ""
            if self.type not in ANCHOR_TYPES:
                lines.append(f"+ {name}: {self.title}{tags_added}")
        else:
            if "node.restore" in {r.kind for r in self._records}:
                lines.append(f"+ {name}: {self.title} (restored)")
            fields = dict.fromkeys(field for put in puts for field in _fields(put))
            if fields:
                lines.append(f"~ {name}: {', '.join(fields)}: {self.title}")
            removed = [r.key for r in self._records if r.kind == "tag.remove"]
            tags = [f"+{tag}" for tag in added] + [f"-{tag}" for tag in removed]
            if tags:
                lines.append(f"# {name}: {' '.join(tags)}")
        lines += [line for r in self._records if (line := self._describe_other(r, name))]
        return lines

    def _describe_other(self, record: Record, name: str) -> str:
        match record.kind:
            case "edge.put" | "edge.delete":
                edge_type, _, to_id = record.key.partition(" ")
                sign = ">" if record.kind == "edge.put" else "x"
                return f"{sign} {name} {edge_type} {self._target(NodeId(to_id))}"  # type: ignore[arg-type]
            case "node.settle":
                fields = map(str, record.body.get("fields", ()))
                return f"! {name}: {_line(', '.join(fields))} settled: {self.title}"
            case "view.put":
                return f"+ view {_line(record.subject)}: {_line(str(record.body.get('query', '')))}"
            case "view.delete":
                return f"- view {_line(record.subject)}"
            case _:
                return ""

    def _target(self, to_id: NodeId) -> str:
        for node in self._graph.nodes([to_id]):
            if node.type in ANCHOR_TYPES:
                return _line(node.content)
            return f"{node.type} {short(to_id)}"
        return short(to_id)


def _fields(put: Record) -> list[str]:
    named = [name for name in replay.FIELDS if name in put.body]
    return named + [f"{key} = {_line(str(value))}" for key, value in _metadata(put)]


def _metadata(put: Record) -> list[tuple[str, object]]:
    metadata = put.body.get("metadata", {})
    return [(key, value) for key, value in metadata.items() if key not in _HIDDEN]


def _outcome(code: object, outcome: object) -> str:
    if code is None:
        return str(outcome) if outcome in ("passed", "failed") else "no exit code"
    return "passed" if code == 0 else f"failed with exit code {code}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"
