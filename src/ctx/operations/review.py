"""Decide about what waits for the user: see `review_queue`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctx import ids, layout
from ctx.errors import NodeNotFound, UsageError
from ctx.ids import NodeId
from ctx.memory.changes import Change
from ctx.memory.conflicts import LIFE, METADATA, Conflict
from ctx.memory.graph import USER
from ctx.memory.model import Redaction
from ctx.operations import agent_proposals, branch_proposals, review_queue, visibility
from ctx.operations.agent_proposals import Proposal
from ctx.operations.branch_proposals import BranchProposal
from ctx.operations.learnings import Learning
from ctx.operations.review_queue import (
    ImportedNode,
    OpenDecisions,
    OpenField,
    ReviewCounts,
    UntrustedStore,
)
from ctx.project import project_index_state
from ctx.workspace import Memory

ACTION = "review"
PAGE = 50
_LONGEST_TITLE = 200


class DecidedNode(NamedTuple):
    """A learning or an import that was accepted or rejected."""

    id: NodeId
    kind: str
    """`learning` or `import`."""
    title: str
    """The beginning of its text."""


class Review(NamedTuple):
    """The answer of `ctx review`: what is open, and what this command has decided."""

    open: tuple[OpenField, ...]
    """What two branches or machines changed at once."""
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
    learnings: tuple[Learning, ...] = ()
    """What was inferred from sessions: one page of it."""
    imports: tuple[ImportedNode, ...] = ()
    """Imported text: one page of it."""
    accepted_nodes: tuple[DecidedNode, ...] = ()
    rejected_nodes: tuple[DecidedNode, ...] = ()
    untrusted: UntrustedStore | None = None
    total: int = 0
    """How much is open, of all kinds and on all pages."""
    proposal_count: int = 0
    learning_count: int = 0
    import_count: int = 0

    @property
    def without_foreign_text(self) -> "Review":
        """Without the text of a branch and of an untrusted store, where an agent may read it."""
        untrusted = self.untrusted
        if untrusted:
            untrusted = untrusted._replace(contents=untrusted.contents._replace(authors=()))
        return self._replace(
            untrusted=untrusted,
            branch=tuple(each.without_text for each in self.branch),
            accepted_branch=tuple(each.without_text for each in self.accepted_branch),
            rejected_branch=tuple(each.without_text for each in self.rejected_branch),
        )


def review(
    memory: Memory, *, most: int = PAGE, learnings_after: int = 0, imports_after: int = 0
) -> Review:
    """What is open here. Of learnings and imports, a page begins after so many."""
    found = review_queue.find_open(memory)
    imported = found.imports[imports_after : imports_after + most]
    return Review(
        tuple(review_queue.open_field(graph, each) for graph, each in found.conflicts),
        proposals=tuple(found.proposals),
        branch=tuple(found.branch),
        learnings=tuple(found.learnings[learnings_after : learnings_after + most]),
        imports=review_queue.imported_nodes(memory, imported),
        untrusted=review_queue.untrusted_store(memory),
        total=found.counts.total,
        proposal_count=len(found.proposals),
        learning_count=len(found.learnings),
        import_count=len(found.imports),
    )


def decide(memory: Memory, names: Sequence[str] | None, *, accepting: bool) -> Review:
    """Accept or reject what is open, by ids; None: all that agents and this branch propose."""
    # All of them are looked up before anything is decided.
    found = review_queue.find_open(memory)
    here = memory.project_memory
    branch = dict.fromkeys(found.branch if names is None else ())
    agents = dict.fromkeys(found.proposals if names is None else ())
    others: dict[NodeId, None] = {}
    for name in names or ():
        if here and (proposed := branch_proposals.find(here, name)):
            branch[proposed] = None
            continue
        node_id = _find_node(found, name)
        asked = [each for each in found.proposals if each.id == node_id]
        agents.update(dict.fromkeys(asked))
        if not asked:
            others[node_id] = None
    inferred = {each.node.id for each in found.learnings}
    nodes = tuple(
        DecidedNode(
            node.id,
            "learning" if node.id in inferred else "import",
            " ".join(node.content[:_LONGEST_TITLE].split()),
        )
        for node in memory.graph.nodes(others)
    )
    for each in agents:
        (agent_proposals.accept if accepting else agent_proposals.reject)(memory, each)
    if here and branch:
        (branch_proposals.accept if accepting else branch_proposals.reject)(here, list(branch))
    (visibility.accept if accepting else visibility.hide)(memory, list(others))
    left = review(memory)
    if accepting:
        return left._replace(
            accepted=tuple(agents), accepted_branch=tuple(branch), accepted_nodes=nodes
        )
    return left._replace(
        rejected=tuple(agents), rejected_branch=tuple(branch), rejected_nodes=nodes
    )


def _find_node(found: OpenDecisions, text: str) -> NodeId:
    """The node that a person means, of those that are proposed, inferred or imported."""
    prefix = text.strip().upper()
    every = [
        *(each.id for each in found.proposals),
        *(each.node.id for each in found.learnings),
        *(each.id for each in found.imports),
    ]
    named = {node_id for node_id in every if node_id.startswith(prefix)}
    if len(named) != 1 or len(prefix) < ids.SHORTEST_PREFIX:
        raise NodeNotFound(
            f"Nothing to review has the id {text[:40]!r}.",
            hint="`ctx review` lists what is open. For a conflict: `ctx review --accept ID`",
        )
    return named.pop()


def count_withheld(memory: Memory) -> int:
    """How many nodes and documents of this branch are not given to agents."""
    if memory.project_memory is None:
        return 0
    return project_index_state.withheld_by(memory.project_memory.graph.connection).items


def conflicts_text(number: int) -> str:
    return "1 conflicting change" if number == 1 else f"{number:,} conflicting changes"


def pending_text(counts: ReviewCounts) -> str:
    """What waits for the user, in words; empty if nothing does."""
    words = []
    for number, one, many in (
        (counts.conflicts, "conflicting change", "conflicting changes"),
        (
            counts.branch,
            "commit or document of this branch",
            "commits and documents of this branch",
        ),
        (counts.proposals, "proposal of agents", "proposals of agents"),
        (counts.learnings, "learning", "learnings"),
        (counts.imports, "imported text", "imported texts"),
    ):
        if number:
            words.append(f"{number:,} {one if number == 1 else many}")
    words += ["a project store that is not trusted"] if counts.untrusted else []
    listed = ", ".join(words)
    return f"{counts.total:,} open decisions ({listed})" if len(words) > 1 else listed


def accept(memory: Memory, node_id: NodeId, field: str | None) -> Review:
    """Let what holds hold, in one field of a node or in all that are in conflict."""
    settled = []
    with memory.transaction(ACTION, _scope(memory, node_id)) as change:
        for dispute in _disputes_of(memory, node_id, field):
            settled.append(review_queue.open_field(change.graph, dispute))
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
        shown = review_queue.open_field(change.graph, dispute)
        if not _put_value(change, dispute, value):
            _settle(change, dispute)
    return review(memory)._replace(
        settled=(shown,), current=(value,), redacted=tuple(change.redacted)
    )


def _scope(memory: Memory, node_id: NodeId) -> str:
    """The store with a disputed node."""
    disputes = review_queue.disputes(memory)
    return next((graph.scope for graph, each in disputes if each.node_id == node_id), USER)


def find(memory: Memory, text: str) -> NodeId:
    """The disputed node that a person means; it may be one that was deleted."""
    known = dict.fromkeys(dispute.node_id for _, dispute in review_queue.disputes(memory))
    named = [node_id for node_id in known if node_id.startswith(text.strip().upper())]
    if not named:
        # Explain why nothing of a project is in conflict, if there is none. E012.
        memory.require_trust()
        if memory.project_memory is None:
            layout.require_project(memory.folder, memory.environment.user_store.home)
            raise UsageError("With --db there is no project.", hint="Leave --db out.")
    if len(named) != 1 or len(text.strip()) < ids.SHORTEST_PREFIX:
        raise NodeNotFound(
            f"There is no conflict about {text[:40]!r}.", hint="`ctx review` lists the conflicts."
        )
    return named[0]


def _disputes_of(memory: Memory, node_id: NodeId, field: str | None) -> list[Conflict]:
    chosen = [
        dispute
        for _, dispute in review_queue.disputes(memory)
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
