"""Everything that waits for a decision of the user: `ctx review`, `ctx status` and the page have it
from here.

That is what two branches or machines changed at once, what agents and this branch propose,
learnings that were inferred, imported text that nobody has vouched for, and a project store that is
not trusted.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ctx import layout
from ctx.ids import NodeId
from ctx.memory import conflicts, lookups, records, replay, replicas
from ctx.memory.conflicts import Conflict
from ctx.memory.graph import USER, Graph
from ctx.memory.learning_confidence import INFERRED
from ctx.memory.lookups import ImportRow
from ctx.memory.model import Node
from ctx.operations import agent_proposals, branch_proposals, learnings, trust
from ctx.operations.agent_proposals import Proposal
from ctx.operations.branch_proposals import BranchProposal
from ctx.operations.learnings import Learning
from ctx.operations.trust import TrustContents
from ctx.workspace import Memory


class FieldVersion(NamedTuple):
    """What one side says. The first of them is what holds."""

    number: int
    value: Any
    """For a whole node: false if it was deleted."""
    at: str
    author: str
    """The author of the commit; the source of the change, if it is staged."""
    session: str
    commit: str | None
    """None if it is staged."""
    record: str
    machine: str | None = None
    """The machine that made it, in the user store."""


class OpenField(NamedTuple):
    """A field that two sides set to different values, neither knowing of the other."""

    id: NodeId
    short_id: str
    type: str
    title: str
    field: str
    """`type`, `content`, `summary`, `metadata KEY`, or `node` for the node as a whole."""
    versions: tuple[FieldVersion, ...]


class ImportedNode(NamedTuple):
    """A node with the text of another program or of a file, which nobody has vouched for."""

    node: Node
    short_id: str
    program: str
    """The format that it was imported from."""


class UntrustedStore(NamedTuple):
    """The store of the project here, if it is not trusted."""

    root: str
    reason: str
    contents: TrustContents


class ReviewCounts(NamedTuple):
    """How much is open."""

    total: int
    conflicts: int
    branch: int
    """Commits and documents of this branch that agents are not given."""
    proposals: int
    learnings: int
    imports: int
    untrusted: int
    """1 if the store of the project here is not trusted."""


class OpenDecisions(NamedTuple):
    """What is open, before more is read about it."""

    conflicts: list[tuple[Graph, Conflict]]
    branch: list[BranchProposal]
    proposals: list[Proposal]
    learnings: list[Learning]
    imports: list[ImportRow]
    is_untrusted: bool

    @property
    def counts(self) -> ReviewCounts:
        numbers = (
            *(len(self.conflicts), len(self.branch), len(self.proposals)),
            *(len(self.learnings), len(self.imports), int(self.is_untrusted)),
        )
        return ReviewCounts(sum(numbers), *numbers)


def counts(memory: Memory) -> ReviewCounts:
    """How much is open here."""
    return find_open(memory).counts


def find_open(memory: Memory) -> OpenDecisions:
    here = memory.project_memory
    return OpenDecisions(
        disputes(memory),
        branch_proposals.proposals(here) if here else [],
        agent_proposals.proposals(memory),
        [each for each in learnings.list_learnings(memory).learnings if each.origin == INFERRED],
        _imports(memory),
        memory.withheld is not None,
    )


def _imports(memory: Memory) -> list[ImportRow]:
    """Imported nodes of this place, newest first."""
    found = [
        row
        for graph in memory.graph.graphs
        for row in lookups.imported(
            graph.connection, memory.own_tag, everywhere=graph.scope != USER
        )
    ]
    return sorted(found, key=lambda row: row.id, reverse=True)


def imported_nodes(memory: Memory, rows: Iterable[ImportRow]) -> tuple[ImportedNode, ...]:
    programs = {row.id: row.author.removeprefix("import:") for row in rows}
    short = memory.graph.shown(programs)
    return tuple(
        ImportedNode(node, short[node.id], programs[node.id])
        for node in memory.graph.nodes(programs)
    )


def untrusted_store(memory: Memory) -> UntrustedStore | None:
    if memory.withheld is None:
        return None
    home = memory.environment.user_store.home
    project = layout.require_project(memory.folder, home)
    return UntrustedStore(project.root, memory.withheld.reason, trust.contents(project))


def disputes(memory: Memory) -> list[tuple[Graph, Conflict]]:
    """What two sides changed at once. On a server, everybody sees each change."""
    graphs = [] if memory.environment.is_on_server else [memory.user]
    graphs += [memory.project_memory.graph] if memory.project_memory else []
    return [(graph, each) for graph in graphs for each in conflicts.find_conflicts(graph)]


def open_field(graph: Graph, dispute: Conflict) -> OpenField:
    state = replay.node(records.records_about(graph.connection, dispute.node_id, "node."))
    lines: Sequence[str] = state.content.splitlines() if state else ()
    return OpenField(
        dispute.node_id,
        graph.shown([dispute.node_id])[dispute.node_id],
        state.type if state else "",
        " ".join(lines[0].split()) if lines else "",
        dispute.field,
        tuple(
            FieldVersion(
                number,
                version.value,
                replay.wall_time(version.record),
                version.commit.author if version.commit else version.record.author,
                version.record.session,
                version.commit.id if version.commit else None,
                version.record.id,
                replicas.machine_of(graph.connection, version.record)
                if graph.scope == USER
                else None,
            )
            for number, version in enumerate(dispute.versions, 1)
        ),
    )
