"""What an agent wants and only the user may decide: to pin, to write for all projects, to forget.

A command of an agent never pins a node, and never changes what other projects see: it makes a node
without the pin, in its own project, and writes what it asked for beside it, in the metadata
`proposed`. `ctx review` lists that. If the user accepts, the node becomes what was asked for;
otherwise it stays as it is. Both are changes of the user's, which can be undone, and the history of
the node says who proposed and who decided.

Pins that agents have made before are listed in the same way, until the user keeps or removes them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ctx import ids
from ctx.ids import NodeId
from ctx.memory import model, records, replay, sources
from ctx.memory.graph import USER
from ctx.memory.idempotency_keys import Claim
from ctx.memory.model import OFF_CONTEXT, PINNED, REFERENCE, TIERS, Evidence, Node
from ctx.operations import link
from ctx.operations.add import inherited_tags
from ctx.operations.delete import delete, deletion, is_kept_until_commit
from ctx.workspace import Memory


class ForgetResult(NamedTuple):
    """What became of nodes that an agent wanted to forget."""

    forgotten: tuple[Node, ...]
    proposed: tuple[Node, ...]
    """What only the user may delete: they said or pinned it, or other projects see it."""
    short_ids: Mapping[NodeId, str]
    dependents: tuple[Node, ...]
    """Nodes that stay, although they were made from these or rest on them."""
    change: str | None
    """What `ctx undo` takes to bring the nodes back; None if nothing was deleted."""
    until_commit: bool
    """Whether one of them was never committed, so that the next commit leaves it out for good."""


MCP = "mcp"
"""Through whom the calls of MCP tools are recorded."""
PROGRAM = "api"
"""The author of what a program changes through the HTTP API: it counts as an agent."""
PROPOSED = "proposed"
"""The key of the metadata."""

_ACTION = "review"
_PROJECT = "project:"


class ProposedChange(NamedTuple):
    """What an agent requested and was not allowed to do."""

    everywhere: bool = False
    """Whether the node is to belong to no project."""
    tags: tuple[str, ...] = ()
    supersedes: tuple[NodeId, ...] = ()
    archives: tuple[NodeId, ...] = ()
    forget: bool = False
    """Whether the node is to be deleted."""

    def metadata(self) -> dict[str, Any]:
        """As it is kept: what is empty is left out."""
        found: dict[str, Any] = {"scope": USER} if self.everywhere else {}
        found |= {"tags": list(self.tags)} if self.tags else {}
        found |= {"supersedes": list(self.supersedes)} if self.supersedes else {}
        found |= {"archives": list(self.archives)} if self.archives else {}
        found |= {"forget": True} if self.forget else {}
        return {PROPOSED: found} if found else {}

    def words(self) -> list[str]:
        """As a person reads it."""
        return [
            *(["pin"] if PINNED in self.tags else []),
            *(["all projects"] if self.everywhere else []),
            *(f"tag {tag}" for tag in self.tags if tag != PINNED),
            *(f"supersede {ids.short(node_id)}" for node_id in self.supersedes),
            *(f"archive {ids.short(node_id)}" for node_id in self.archives),
            *(["forget"] if self.forget else []),
        ]


NO_PROPOSED_CHANGE = ProposedChange()


class Proposal(NamedTuple):
    """Something for the user to decide."""

    id: NodeId
    short_id: str
    type: str
    title: str
    scope: str
    asked: tuple[str, ...]
    """What happens to the node if it is accepted: `pin`, `all projects`, `supersede ID`, `forget`,
    …"""
    is_done: bool
    """Whether the agent has done it already, before this was asked about."""
    author: str
    session: str
    at: str


class Placement(NamedTuple):
    """The part of a request that an agent may write, and the part that it may not."""

    tags: list[str]
    wish: ProposedChange


def may_pin(memory: Memory) -> bool:
    """Whether the user lets agents do all of it without being asked."""
    return memory.environment.user_config.flag("agents.may_pin")


def is_protected(memory: Memory, node: Node) -> bool:
    """Whether only the user may take a node out of sight: it is pinned, or not this project's."""
    is_elsewhere = node.scope == USER and memory.own_tag not in node.tags
    return PINNED in node.tags or is_elsewhere


def place_node(
    memory: Memory, scope: str, tags: Sequence[str], wish: ProposedChange = NO_PROPOSED_CHANGE
) -> Placement:
    """Where a node goes that is to have some tags, in a store.

    It is in its own project, below the pin. Outside of any project everybody would see it, so it
    waits without a tier; without one it is found only by who looks for it.
    """
    withheld = [tag for tag in tags if tag == PINNED or _is_foreign(memory, tag)]
    kept = [tag for tag in tags if tag not in withheld]
    if PINNED in withheld and not set(kept).intersection(TIERS):
        kept.append(REFERENCE)
    everywhere = scope == USER and not any(tag.startswith(_PROJECT) for tag in tags)
    if scope == USER and memory.own_tag is None:
        withheld += [tag for tag in kept if tag in TIERS and tag != OFF_CONTEXT]
        kept = [tag for tag in kept if tag not in withheld]
        everywhere = everywhere and bool(withheld)
    elif scope == USER and memory.own_tag not in kept:
        kept.append(str(memory.own_tag))
    return Placement(kept, wish._replace(everywhere=everywhere, tags=tuple(withheld)))


def in_project(memory: Memory, tags: Sequence[str]) -> list[str]:
    """The tags of a node of the user store that belongs to this project, unless they name one."""
    if memory.own_tag is None or any(tag.startswith(_PROJECT) for tag in tags):
        return list(tags)
    return [*tags, memory.own_tag]


def protected_tags(memory: Memory, tags: Sequence[str], old: Sequence[Node]) -> list[str]:
    """The tags of a node that takes the place of others, as far as those are protected."""
    held = [node for node in old if is_protected(memory, node)]
    return [*tags, *inherited_tags(held, tags)]


def propose_superseding(
    memory: Memory, new: NodeId, old: NodeId, claim: Claim | None = None
) -> None:
    """Note that a node is to take the place of another one, which is protected."""
    graph = memory.graph
    scope = graph.holding(new).scope
    if graph.holding(old).scope != scope:
        link.refuse_way_out(scope, "SUPERSEDES", new, old)
    with memory.transaction("propose", scope, claim=claim) as change:
        wish = proposed_change(change.graph.node(new))
        if old not in wish.supersedes:
            wish = wish._replace(supersedes=(*wish.supersedes, old))
        change.update_node(new, metadata=wish.metadata())


def forget(memory: Memory, node_ids: Sequence[NodeId]) -> ForgetResult:
    """Forget nodes for an agent: what agents said is deleted, what the user said only proposed.

    A deletion can be undone with `ctx undo` or `ctx restore`.
    """
    found = deletion(memory.graph, node_ids, cascade=False)
    held = tuple(
        node for node in found.nodes if node.source == sources.USER or is_protected(memory, node)
    )
    free = tuple(node for node in found.nodes if node not in held)
    propose_forgetting(memory, [node.id for node in held])
    change = delete(memory, [node.id for node in free], "forget") if free else None
    until_commit = is_kept_until_commit(memory, free)
    return ForgetResult(free, held, found.short_ids, found.dependents, change, until_commit)


def propose_forgetting(memory: Memory, node_ids: Sequence[NodeId]) -> None:
    """Note that nodes are to be deleted."""
    by_scope = memory.graph.by_scope(node_ids)
    if not by_scope:
        return
    with memory.transaction("propose", *by_scope) as change:
        for here, node_id in change.by_node(by_scope):
            wish = proposed_change(here.graph.node(node_id))._replace(forget=True)
            here.update_node(node_id, metadata=wish.metadata())


def proposed_change(node: Node) -> ProposedChange:
    """The proposals for a node. The metadata may be untrusted: invalid ones are ignored."""
    found = node.metadata.get(PROPOSED)
    if not isinstance(found, Mapping):
        return NO_PROPOSED_CHANGE
    tags = [tag for tag in _texts(found.get("tags")) if model.is_tag(tag)]
    supersedes, archives = (
        tuple(NodeId(ids.Ulid(each)) for each in _texts(found.get(key)) if ids.is_ulid(each))
        for key in ("supersedes", "archives")
    )
    forget = found.get("forget") is True
    return ProposedChange(found.get("scope") == USER, tuple(tags), supersedes, archives, forget)


def proposals(memory: Memory) -> list[Proposal]:
    """What waits for the user, oldest first."""
    found: dict[NodeId, Proposal] = {}
    agents = (*memory.environment.hosts.names, MCP, PROGRAM)
    for graph in memory.graph.graphs:
        for node in graph.nodes(graph.with_proposals()):
            if words := proposed_change(node).words():
                about = records.records_about(graph.connection, node.id, "node.")
                said = [record for record in about if PROPOSED in _metadata(record)]
                found[node.id] = _proposal(memory, node, words, (said or about)[-1], is_done=False)
        # Who lets agents pin need not decide about each pin.
        pinned = [] if may_pin(memory) else graph.tagged(PINNED)
        for node in graph.nodes(pinned):
            last = records.about_key(graph.connection, node.id, "tag.", PINNED)[-1:]
            if last and last[0].author in agents and node.superseded_by is None:
                found.setdefault(node.id, _proposal(memory, node, ["pin"], last[0], is_done=True))
    return [found[node_id] for node_id in sorted(found)]


def accept(memory: Memory, proposal: Proposal) -> None:
    """Apply the proposal of an agent to a node."""
    node = memory.graph.node(proposal.id)
    if proposal.is_done:
        with memory.transaction(_ACTION, node.scope) as change:
            # The last word about the pin is the user's then.
            [*_, last] = records.about_key(change.graph.connection, node.id, "tag.", PINNED)
            change.repeat(last, "tag.add", dict(last.body))
        return
    wish = proposed_change(node)
    archived = memory.graph.by_scope(each for each in wish.archives if memory.graph.has(each))
    with memory.transaction(_ACTION, node.scope, *archived) as change:
        change.update_node(node.id, metadata={PROPOSED: None})
        moves = wish.everywhere or any(tag.startswith(_PROJECT) for tag in wish.tags)
        for tag in node.tags if moves else ():
            if tag.startswith(_PROJECT) and tag not in wish.tags:
                change.untag(node.id, tag)
        for tag in wish.tags:
            if tag in TIERS:
                change.set_tier(node.id, tag)
            else:
                change.tag(node.id, tag)
        for old in wish.supersedes:
            if change.graph.has(old):
                link.draw(change, node.id, old, "SUPERSEDES", Evidence(_ACTION), outside=False)
        for here, node_id in change.by_node(archived):
            here.set_tier(node_id, OFF_CONTEXT)
    if wish.forget:
        delete(memory, [node.id], _ACTION)


def reject(memory: Memory, proposal: Proposal) -> None:
    """Let a node stay as it is; where an agent has pinned it, without the pin."""
    with memory.transaction(_ACTION, proposal.scope) as change:
        if proposal.is_done:
            change.untag(proposal.id, PINNED)
        else:
            change.update_node(proposal.id, metadata={PROPOSED: None})


def _is_foreign(memory: Memory, tag: str) -> bool:
    return tag.startswith(_PROJECT) and tag != memory.own_tag


def _proposal(
    memory: Memory, node: Node, words: Sequence[str], said: records.Record, *, is_done: bool
) -> Proposal:
    return Proposal(
        node.id,
        memory.graph.shown([node.id])[node.id],
        node.type,
        " ".join(node.content.split())[:200],
        node.scope,
        tuple(words),
        is_done,
        said.author,
        said.session,
        replay.wall_time(said),
    )


def _metadata(record: records.Record) -> Mapping[str, Any]:
    found = record.body.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
