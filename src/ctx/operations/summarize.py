"""Make one node out of several, and put those away."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctx.errors import UsageError
from ctx.ids import NodeId
from ctx.memory import model
from ctx.memory.changes import changing
from ctx.memory.model import OFF_CONTEXT, REFERENCE, WORKING, Evidence, Node, Redaction
from ctx.workspace import Memory


class Options(NamedTuple):
    sources: Sequence[NodeId]
    content: str
    tags: Sequence[str] = ()
    archive_sources: bool = False


class Summarized(NamedTuple):
    """The answer of `ctx summarize`."""

    summary: Node
    short_id: str
    sources: tuple[NodeId, ...]
    archived: tuple[NodeId, ...]
    pinned: tuple[NodeId, ...]
    """Sources that stay where they are, because they are pinned."""
    short_ids: Mapping[NodeId, str]
    redacted: tuple[Redaction, ...]


def summarize(memory: Memory, options: Options) -> Summarized:
    """A summary, derived from its sources. It takes their place in contexts.

    So it has the tags that say where the sources are seen: the project and the task that they
    have in common, and the strongest of their tiers below the pin, unless tags name others.
    """
    graph = memory.graph
    given = model.tags(options.tags)
    archived: list[NodeId] = []
    pinned: list[NodeId] = []
    with changing(graph, "summarize", memory.who) as change:
        sources = list(graph.nodes(dict.fromkeys(options.sources)))
        if not sources:
            raise UsageError("There is nothing to summarize.", hint="Name at least one node.")
        node_id = change.add_node("summary", options.content)
        for tag in [*given, *_inherited(sources, given)]:
            change.tag(node_id, tag)
        for source in sources:
            change.link(node_id, source.id, "DERIVED_FROM", Evidence(memory.who.author))
            if options.archive_sources:
                if model.PINNED in source.tags:
                    pinned.append(source.id)
                    continue
                change.set_tier(source.id, OFF_CONTEXT)
                archived.append(source.id)
    short = graph.shown([node_id, *(source.id for source in sources)])
    return Summarized(
        graph.node(node_id),
        short[node_id],
        tuple(source.id for source in sources),
        tuple(archived),
        tuple(pinned),
        short,
        tuple(change.redacted),
    )


def _inherited(sources: Sequence[Node], given: Sequence[str]) -> list[str]:
    taken = {tag.partition(":")[0] for tag in given}
    shared = set(sources[0].tags).intersection(*(source.tags for source in sources))
    found = sorted(
        tag
        for tag in shared
        if tag.startswith(("project:", "task:")) and tag.partition(":")[0] not in taken
    )
    if "tier" not in taken:
        tiers = {tag for source in sources for tag in source.tags}
        found += [tier for tier in (WORKING, REFERENCE) if tier in tiers][:1]
    return found
