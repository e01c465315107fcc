"""Remember something for an agent: add a node, or link one that exists, as far as agents may.

What an agent may not do (pin a node, write for all projects, supersede what is protected) is stored
beside the node as a proposal, and the user decides with `ctx review`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ctx.errors import UsageError
from ctx.ids import NodeId
from ctx.memory import model, sources
from ctx.memory.graph import PROJECT, USER
from ctx.memory.model import Edge, Node, Redaction
from ctx.operations import add, agent_proposals, link
from ctx.operations.agent_proposals import NO_PROPOSED_CHANGE, ProposedChange
from ctx.workspace import Memory

SUPERSEDES = "SUPERSEDES"
SCOPES = ("project", "user")


class LinkTarget(NamedTuple):
    """A node that another one is linked to."""

    type: str
    id: NodeId


class Options(NamedTuple):
    content: str = ""
    """Empty: nothing is added, and `id` is linked."""
    type: str | None = None
    tags: Sequence[str] = ()
    summary: str | None = None
    rationale: str = ""
    supersedes: Sequence[NodeId] = ()
    scope: str = ""
    """`project`, `user` for all projects, or empty: the project, if there is one."""
    links: Sequence[LinkTarget] = ()
    """Edges from the node."""
    id: NodeId | None = None
    """The node that is linked, if no text is given."""


class RememberResult(NamedTuple):
    """The answer of `ctx remember`."""

    node: Node
    short_id: str
    is_new: bool
    """False if an existing node was linked."""
    added_tags: tuple[str, ...]
    """Tags that were added to the requested ones."""
    linked: tuple[Edge, ...]
    proposed: tuple[str, ...]
    """What the user decides with `ctx review`: `pin`, `all projects`, `supersede ID`."""
    redacted: tuple[Redaction, ...]


class PlacedNode(NamedTuple):
    """What is added, and what is proposed for it."""

    options: add.Options
    wish: ProposedChange


def remember(memory: Memory, options: Options, *, may_pin: bool) -> RememberResult:
    """Add a node and link it, or link an existing one."""
    targets = [
        *(LinkTarget(model.edge_type(kind), node_id) for kind, node_id in options.links),
        *(LinkTarget(SUPERSEDES, node_id) for node_id in options.supersedes if options.id),
    ]
    if options.id is not None:
        if options.content.strip():
            raise UsageError(
                "A text and an id were given.",
                hint="Give a text to add a node, or an id to link an existing one.",
            )
        if not targets:
            raise UsageError("Nothing to link.", hint="Name what it supersedes or is linked to.")
        return _link(memory, options.id, targets, may_pin=may_pin)
    placed = place(memory, _with_tier(memory, options), may_pin=may_pin)
    _refuse_links_out(memory, placed, targets)
    added = add.add(memory, placed.options)
    found = _link(memory, added.node.id, targets, may_pin=may_pin)
    return found._replace(
        is_new=True,
        added_tags=tuple(tag for tag in found.node.tags if tag not in options.tags),
        proposed=(*placed.wish.words(), *found.proposed),
        redacted=(*added.redacted, *found.redacted),
    )


def place(memory: Memory, options: Options, *, may_pin: bool) -> PlacedNode:
    """Where a node of an agent goes, and what of it needs the user's approval."""
    if options.scope == PROJECT and is_outside_projects(memory):
        raise UsageError("There is no project here.")
    tags, supersedes = list(options.tags), list(options.supersedes)
    everywhere = options.scope == USER
    wish = NO_PROPOSED_CHANGE
    if not may_pin:
        scope = memory.graph.shared_scope(supersedes, "superseding")
        scope = scope or (USER if everywhere or memory.project_memory is None else PROJECT)
        old = list(memory.graph.nodes(supersedes))
        held = tuple(node.id for node in old if agent_proposals.is_protected(memory, node))
        tags = agent_proposals.protected_tags(memory, tags, old)
        if not everywhere and scope == USER:
            tags = agent_proposals.in_project(memory, tags)
        tags, wish = agent_proposals.place_node(
            memory, scope, tags, ProposedChange(supersedes=held)
        )
        supersedes = [each for each in supersedes if each not in held]
        everywhere = scope == USER
    stated = {sources.KEY: sources.AGENT, "rationale": options.rationale}
    wanted = add.Options(
        options.content,
        options.type,
        tags,
        options.summary,
        {**{key: value for key, value in stated.items() if value}, **wish.metadata()},
        supersedes,
        everywhere=everywhere,
    )
    return PlacedNode(wanted, wish)


def proposed_link(
    memory: Memory, to_id: NodeId, edge_type: str, *, may_pin: bool
) -> ProposedChange:
    """What an edge of an agent needs the user's approval for: to supersede what is protected."""
    is_free = may_pin or edge_type != SUPERSEDES
    if is_free or not agent_proposals.is_protected(memory, memory.graph.node(to_id)):
        return NO_PROPOSED_CHANGE
    return ProposedChange(supersedes=(to_id,))


def is_outside_projects(memory: Memory) -> bool:
    """Whether what is stated here belongs to no project."""
    return memory.project_memory is None and memory.project_tag is None


def _with_tier(memory: Memory, options: Options) -> Options:
    """With the tier in which later sessions are shown a node, unless it has one."""
    inherited = add.inherited_tags(list(memory.graph.nodes(options.supersedes)), options.tags)
    if options.type == "task" or model.tier((*options.tags, *inherited)):
        return options
    return options._replace(tags=[*options.tags, *add.tier_for_agents(memory, options.tags)])


def _refuse_links_out(memory: Memory, placed: PlacedNode, targets: Sequence[LinkTarget]) -> None:
    """Refuse edges out of the project before anything is added."""
    scope = memory.graph.shared_scope(placed.options.supersedes, "superseding")
    scope = scope or (USER if placed.options.everywhere else memory.home)
    for kind, node_id in targets:
        if scope == PROJECT and memory.graph.holding(node_id).scope != PROJECT:
            link.refuse_way_out(scope, kind, node_id, node_id)


def _link(
    memory: Memory, node_id: NodeId, targets: Sequence[LinkTarget], *, may_pin: bool
) -> RememberResult:
    linked: list[Edge] = []
    proposed: list[str] = []
    redacted: list[Redaction] = []
    for kind, to_id in targets:
        wish = proposed_link(memory, to_id, kind, may_pin=may_pin)
        if wish.supersedes:
            agent_proposals.propose_superseding(memory, node_id, to_id)
            proposed += wish.words()
        else:
            done = link.link(memory, node_id, to_id, kind)
            linked.append(done.edge)
            redacted += done.redacted
    node = memory.graph.node(node_id)
    shown = memory.graph.shown([node_id])[node_id]
    return RememberResult(node, shown, False, (), tuple(linked), tuple(proposed), tuple(redacted))
