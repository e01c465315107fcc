"""Everything that waits for a decision of the user, in one place.

`ctx review` lists proposals and conflicting changes. This adds what other commands decide:
learnings that were inferred, imported text that nobody has vouched for, and a project store that is
not trusted.
"""

from typing import NamedTuple

from ctx import layout
from ctx.memory import lookups
from ctx.memory.graph import USER
from ctx.memory.learning_confidence import INFERRED
from ctx.memory.model import Node
from ctx.operations import learnings, review, trust
from ctx.operations.agent_proposals import Proposal
from ctx.operations.branch_proposals import BranchProposal
from ctx.operations.learnings import Learning
from ctx.operations.review import OpenField
from ctx.operations.trust import TrustContents
from ctx.workspace import Memory

PAGE = 50


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


class ReviewQueue(NamedTuple):
    """What is open. The lists are pages of at most 50; the counts are of all."""

    total: int
    untrusted: UntrustedStore | None
    conflicts: tuple[OpenField, ...]
    proposals: tuple[Proposal, ...]
    proposal_count: int
    learnings: tuple[Learning, ...]
    learning_count: int
    imports: tuple[ImportedNode, ...]
    import_count: int
    branch: tuple[BranchProposal, ...]
    """What this branch contains and agents are not given. Programs get no text of it."""


def queue(memory: Memory, *, learnings_after: int = 0, imports_after: int = 0) -> ReviewQueue:
    """What is open here. The later pages begin after so many learnings or imports."""
    waiting = review.review(memory)
    inferred = [
        each for each in learnings.list_learnings(memory).learnings if each.origin == INFERRED
    ]
    imported = _imports(memory)
    untrusted = _untrusted(memory)
    return ReviewQueue(
        len(waiting.open)
        + len(waiting.proposals)
        + len(inferred)
        + len(imported)
        + len(waiting.branch)
        + bool(untrusted),
        untrusted,
        waiting.open,
        waiting.proposals[:PAGE],
        len(waiting.proposals),
        tuple(inferred[learnings_after : learnings_after + PAGE]),
        len(inferred),
        _nodes(memory, imported[imports_after : imports_after + PAGE]),
        len(imported),
        waiting.branch,
    )


def _imports(memory: Memory) -> list[lookups.ImportRow]:
    """Imported nodes of this place, newest first."""
    found = [
        row
        for graph in memory.graph.graphs
        for row in lookups.imported(
            graph.connection, memory.own_tag, everywhere=graph.scope != USER
        )
    ]
    return sorted(found, key=lambda row: row.id, reverse=True)


def _nodes(memory: Memory, rows: list[lookups.ImportRow]) -> tuple[ImportedNode, ...]:
    programs = {row.id: row.author.removeprefix("import:") for row in rows}
    short = memory.graph.shown(programs)
    return tuple(
        ImportedNode(node, short[node.id], programs[node.id])
        for node in memory.graph.nodes(programs)
    )


def _untrusted(memory: Memory) -> UntrustedStore | None:
    if memory.withheld is None:
        return None
    home = memory.environment.user_store.home
    project = layout.require_project(memory.folder, home)
    return UntrustedStore(project.root, memory.withheld.reason, trust.contents(project))
