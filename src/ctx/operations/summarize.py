"""Summarize several nodes in one, and optionally archive them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ctx.errors import UsageError
from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.graph import PROJECT, USER
from ctx.memory.idempotency_keys import Claim
from ctx.memory.model import OFF_CONTEXT, REFERENCE, WORKING, Evidence, Node, Redaction
from ctx.workspace import Memory


class Options(NamedTuple):
    sources: Sequence[NodeId]
    content: str
    tags: Sequence[str] = ()
    archive_sources: bool = False
    spared: Collection[NodeId] = ()
    """Sources that are not archived."""
    metadata: Mapping[str, Any] = {}
    inherits: bool = True
    """Whether it also gets tags of its sources."""


class SummarizeResult(NamedTuple):
    """The answer of `ctx summarize`."""

    summary: Node
    short_id: str
    sources: tuple[NodeId, ...]
    archived: tuple[NodeId, ...]
    pinned: tuple[NodeId, ...]
    """Sources that are not archived, because they are pinned."""
    short_ids: Mapping[NodeId, str]
    redacted: tuple[Redaction, ...]


def summarize(memory: Memory, options: Options, claim: Claim | None = None) -> SummarizeResult:
    """Add a summary that is derived from its sources and replaces them in contexts.

    It gets the tags that decide where the sources are visible: their common project and task, and
    the strongest of their tiers below pinned, unless the tags contain others.
    """
    graph = memory.graph
    tags = model.tags(options.tags)
    archived: list[NodeId] = []
    pinned: list[NodeId] = []
    sources = list(graph.nodes(dict.fromkeys(options.sources)))
    if not sources:
        raise UsageError("There is nothing to summarize.", hint="Name at least one node.")
    # A summary of any node in the user store belongs to the user store.
    scope = PROJECT if all(source.scope == PROJECT for source in sources) else USER
    # Archiving in the other store can be repeated, so it comes first.
    others = {source.scope for source in sources if options.archive_sources} - {scope}
    with memory.transaction("summarize", *others, scope, claim=claim) as whole:
        change = whole.in_scope(scope)
        metadata = {**memory.source_metadata, **options.metadata}
        node_id = change.add_node("summary", options.content, metadata=metadata)
        inherited = inherited_tags(sources, tags) if options.inherits else []
        for tag in [*tags, *inherited]:
            change.tag(node_id, tag)
        for source in sources:
            outside = source.scope != scope
            evidence = Evidence(memory.author)
            change.link(node_id, source.id, "DERIVED_FROM", evidence, outside=outside)
            if options.archive_sources and model.PINNED in source.tags:
                pinned.append(source.id)
            elif options.archive_sources and source.id not in options.spared:
                archived.append(source.id)
                change.in_scope(source.scope).set_tier(source.id, OFF_CONTEXT)
    graph = memory.graph
    short = graph.shown([node_id, *(source.id for source in sources)])
    return SummarizeResult(
        graph.node(node_id),
        short[node_id],
        tuple(source.id for source in sources),
        tuple(archived),
        tuple(pinned),
        short,
        tuple(change.redacted),
    )


def inherited_tags(sources: Sequence[Node], own_tags: Sequence[str]) -> list[str]:
    """The tags that a summary gets from its sources, in addition to its own."""
    taken = {tag.partition(":")[0] for tag in own_tags}
    shared = set(sources[0].tags).intersection(*(source.tags for source in sources))
    inherited = sorted(
        tag
        for tag in shared
        if tag.startswith(("project:", "task:")) and tag.partition(":")[0] not in taken
    )
    if "tier" not in taken:
        tiers = {tag for source in sources for tag in source.tags}
        inherited += [tier for tier in (WORKING, REFERENCE) if tier in tiers][:1]
    return inherited
