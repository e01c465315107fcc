"""What waits for the user's decision: what two branches or machines changed at once, what
agents propose."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctx import ids, layout
from ctx.errors import NodeNotFound, UsageError
from ctx.ids import NodeId
from ctx.memory import conflicts as found
from ctx.memory import records, replay, replicas
from ctx.memory.changes import Change
from ctx.memory.conflicts import LIFE, METADATA, Conflict
from ctx.memory.graph import USER, Graph
from ctx.memory.model import Redaction
from ctx.operations import agent_proposals, branch_proposals
from ctx.operations.agent_proposals import Proposal
from ctx.operations.branch_proposals import BranchProposal
from ctx.project import project_index_state
from ctx.workspace import Memory

ACTION = "review"


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


class Review(NamedTuple):
    """The answer of `ctx review`."""

    open: tuple[OpenField, ...]
    settled: tuple[OpenField, ...] = ()
    """What this command has settled, as it was."""
    redacted: tuple[Redaction, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    """What agents ask for: pins, and nodes for all projects."""
    accepted: tuple[Proposal, ...] = ()
    rejected: tuple[Proposal, ...] = ()
    branch: tuple[BranchProposal, ...] = ()
    """What this branch contains and agents are not given, such as a pull request."""
    accepted_branch: tuple[BranchProposal, ...] = ()
    rejected_branch: tuple[BranchProposal, ...] = ()
    current: tuple[Any, ...] = ()
    """The values that the settled fields have now, in the same order; for a whole node, false if it
    is deleted."""


def review(memory: Memory) -> Review:
    """What is open: in the user store from other machines, in a project from other branches."""
    return Review(
        tuple(_open_field(graph, each) for graph, each in _disputes(memory)),
        proposals=tuple(agent_proposals.proposals(memory)),
        branch=tuple(branch_proposals.proposals(memory.project_memory))
        if memory.project_memory
        else (),
    )


def decide(memory: Memory, names: Sequence[str] | None, *, accepting: bool) -> Review:
    """Accept or reject what agents or this branch propose; None: all of it."""
    # All of them are looked up before anything is decided.
    here = memory.project_memory
    of_branch = branch_proposals.proposals(here) if here and names is None else []
    of_agents = agent_proposals.proposals(memory) if names is None else []
    for name in names or ():
        if here and (found := branch_proposals.find(here, name)):
            of_branch.append(found)
        else:
            of_agents.append(agent_proposals.find(memory, name))
    agents, branch = tuple(dict.fromkeys(of_agents)), tuple(dict.fromkeys(of_branch))
    for each in agents:
        (agent_proposals.accept if accepting else agent_proposals.reject)(memory, each)
    if here and branch:
        (branch_proposals.accept if accepting else branch_proposals.reject)(here, branch)
    if accepting:
        return review(memory)._replace(accepted=agents, accepted_branch=branch)
    return review(memory)._replace(rejected=agents, rejected_branch=branch)


def count(graph: Graph) -> int:
    """How many are open."""
    return len(found.find_conflicts(graph))


def count_conflicts(memory: Memory) -> int:
    """How many are open here."""
    return sum(map(count, _graphs(memory)))


def count_withheld(memory: Memory) -> int:
    """How many nodes and documents of this branch are not given to agents."""
    if memory.project_memory is None:
        return 0
    return project_index_state.withheld_by(memory.project_memory.graph.connection).items


def pending_text(conflicts: int, proposals: int = 0, withheld: int = 0) -> str:
    """What waits for the user, in words; empty if nothing does."""
    changes = "1 conflicting change" if conflicts == 1 else f"{conflicts:,} conflicting changes"
    asked = "1 proposal of agents" if proposals == 1 else f"{proposals:,} proposals of agents"
    items = "1 item" if withheld == 1 else f"{withheld:,} items"
    words = [
        *([changes] if conflicts else []),
        *([asked] if proposals else []),
        *([f"{items} of this branch that agents are not given"] if withheld else []),
    ]
    return ", ".join(words)


def accept(memory: Memory, node_id: NodeId, field: str | None) -> Review:
    """Let what holds hold, in one field of a node or in all that are in conflict."""
    settled = []
    with memory.transaction(ACTION, _scope(memory, node_id)) as change:
        for dispute in _disputes_of(memory, node_id, field):
            settled.append(_open_field(change.graph, dispute))
            _settle(change, dispute)
    current = tuple(each.versions[0].value for each in settled)
    return review(memory)._replace(settled=tuple(settled), current=current)


def pick(memory: Memory, node_id: NodeId, field: str | None, number: int) -> Review:
    """Let one of the versions hold."""
    chosen = _disputes_of(memory, node_id, field)
    if len(chosen) > 1:
        names = ", ".join(f"--field={each.field!r}" for each in chosen)
        raise UsageError(
            f"{len(chosen)} fields of {ids.short(node_id)} are in conflict.",
            hint=f"Choose one with --field: {names}.",
        )
    versions = chosen[0].versions
    if not 1 <= number <= len(versions):
        raise UsageError(
            f"There are versions 1 to {len(versions)}.", hint="`ctx review` shows them."
        )
    return replace(memory, node_id, chosen[0].field, versions[number - 1].value)


def replace(memory: Memory, node_id: NodeId, field: str, value: Any) -> Review:
    """Let a field be what a person says it is, whatever the versions were."""
    if field == LIFE and not isinstance(value, bool):
        raise UsageError("Whether the node stays is not a text.", hint="Pick a version.")
    with memory.transaction(ACTION, _scope(memory, node_id)) as change:
        [dispute] = _disputes_of(memory, node_id, field)
        shown = _open_field(change.graph, dispute)
        if not _put_value(change, dispute, value):
            _settle(change, dispute)
    return review(memory)._replace(
        settled=(shown,), current=(value,), redacted=tuple(change.redacted)
    )


def _graphs(memory: Memory) -> list[Graph]:
    """The stores in which several can change things at once. On a server, everybody sees each
    change."""
    graphs = [] if memory.environment.is_on_server else [memory.user]
    return [*graphs, memory.project_memory.graph] if memory.project_memory else graphs


def _scope(memory: Memory, node_id: NodeId) -> str:
    """The store with a disputed node."""
    return next((graph.scope for graph, each in _disputes(memory) if each.node_id == node_id), USER)


def _require_project(memory: Memory) -> None:
    """Explain why nothing of a project is in conflict, if there is none. E012."""
    memory.require_trust()
    if memory.project_memory is None:
        layout.require_project(memory.folder, memory.environment.user_store.home)
        raise UsageError("With --db there is no project.", hint="Leave --db out.")


def find(memory: Memory, text: str) -> NodeId:
    """The disputed node that a person means; it may be one that was deleted."""
    known = dict.fromkeys(dispute.node_id for _, dispute in _disputes(memory))
    named = [node_id for node_id in known if node_id.startswith(text.strip().upper())]
    if not named:
        _require_project(memory)
    if len(named) != 1 or len(text.strip()) < ids.SHORTEST_PREFIX:
        raise NodeNotFound(
            f"There is no conflict about {text[:40]!r}.", hint="`ctx review` lists the conflicts."
        )
    return named[0]


def _disputes(memory: Memory) -> list[tuple[Graph, Conflict]]:
    return [(graph, each) for graph in _graphs(memory) for each in found.find_conflicts(graph)]


def _disputes_of(memory: Memory, node_id: NodeId, field: str | None) -> list[Conflict]:
    chosen = [
        dispute
        for _, dispute in _disputes(memory)
        if dispute.node_id == node_id and field in (None, dispute.field)
    ]
    if not chosen:
        raise NodeNotFound(
            f"Nothing about {ids.short(node_id)} is disputed{f' in {field}' if field else ''}.",
            hint="`ctx review` lists the conflicts.",
        )
    return chosen


def _settle(change: Change, dispute: Conflict) -> None:
    change.settle(dispute.node_id, [dispute.field], dispute.records[1:])


def _put_value(change: Change, dispute: Conflict, value: Any) -> bool:
    """Record a value; whether it was not what holds already."""
    node_id, field = dispute.node_id, dispute.field
    if field == LIFE:
        if value:
            change.restore_node(node_id)
        return bool(value)
    metadata = None
    if field.startswith(METADATA):
        metadata = {field.removeprefix(METADATA): value}
    changed = change.update_node(
        node_id,
        node_type=value if field == "type" else None,
        content=value if field == "content" else None,
        summary=(value or "") if field == "summary" else None,
        metadata=metadata,
    )
    return bool(changed)


def _open_field(graph: Graph, dispute: Conflict) -> OpenField:
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
