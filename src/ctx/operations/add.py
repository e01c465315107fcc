"""Add a node."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ctx.ids import NodeId
from ctx.memory import model, pending
from ctx.memory.graph import PROJECT, USER
from ctx.memory.idempotency_keys import Claim
from ctx.memory.model import Evidence, Node, Redaction
from ctx.workspace import Memory

_INHERITED = ("tier:", "project:", "task:")
_SHOWN = [type for type in model.KNOWLEDGE_TYPES if type != "task"]
"""Types that get a tier. A task gets one when it is started, and contexts show no anchors."""

DefaultTier = Literal["inherited", "shown", "none"]
"""The tier of a node for which none is named.

`inherited` is that of the node it supersedes. `shown` is the same, but never none, so that agents
are shown the node: working during a task, else reference. A task is shown once it is started.
"""


class Options(NamedTuple):
    content: str
    type: str | None = None
    """None: the type of the node it supersedes, else a fact."""
    tags: Sequence[str] = ()
    summary: str | None = None
    metadata: Mapping[str, Any] = {}
    supersedes: Sequence[NodeId] = ()
    everywhere: bool = False
    """Whether it belongs to no project, whatever the folder."""
    default_tier: DefaultTier = "inherited"


class AddResult(NamedTuple):
    """The answer of `ctx add`."""

    node: Node
    short_id: str
    given: tuple[str, ...]
    """Tags that were added to the requested ones."""
    redacted: tuple[Redaction, ...]


def add(memory: Memory, options: Options, claim: Claim | None = None) -> AddResult:
    """Add a node; a command of an agent adds it once.

    It gets the type and the store of the node it supersedes, unless others are named: a corrected
    decision is a decision. In a project it belongs to the project, and working notes belong to the
    current task.
    """
    tags = model.tags(options.tags)
    replaced_in = memory.graph.shared_scope(options.supersedes, "superseding")
    scope = replaced_in or (USER if options.everywhere else None)
    with memory.transaction("add", scope, claim=claim) as change:
        # Not before: to change a project's memory may mean to open its index anew.
        replaced = list(memory.graph.nodes(options.supersedes))
        given = inherited_tags(replaced, tags)
        type = model.node_type(options.type or (replaced[0].type if replaced else "fact"))
        if options.default_tier == "none":
            given = [tag for tag in given if tag not in model.TIERS]
        elif options.default_tier == "shown" and type in _SHOWN:
            given += tier_for_agents(memory, (*tags, *given))
        if model.WORKING in (*tags, *given) and not _names("task:", (*tags, *given)):
            task = pending.current_task(memory.user, memory.place.task_key)
            given += [f"task:{task}"] if task else []
        if not options.everywhere and not _names("project:", (*tags, *given)):
            given += [memory.project_tag] if memory.project_tag else []
        node_id = change.add_node(
            type,
            options.content,
            summary=options.summary,
            metadata={**memory.source_metadata, **options.metadata},
        )
        for tag in (*tags, *given):
            change.tag(node_id, tag)
        for old in replaced:
            change.link(node_id, old.id, "SUPERSEDES", Evidence(memory.author))
        # What is answered is read before anybody else can change it, or restore a backup.
        change.write()
        node = change.graph.node(node_id)
        if node.scope == PROJECT:
            # The transaction stages it at its end.
            node = node._replace(staged=memory.session)
        short = memory.graph.shown([node_id])[node_id]
    return AddResult(node, short, tuple(given), tuple(change.redacted))


def tier_for_agents(memory: Memory, tags: Sequence[str]) -> list[str]:
    """The tier with which agents are shown a node, if it has none."""
    if model.tier(tags):
        return []
    task = pending.current_task(memory.user, memory.place.task_key)
    return [model.WORKING if task else model.REFERENCE]


def inherited_tags(replaced: Sequence[Node], tags: Sequence[str]) -> list[str]:
    """What a node takes over from those that it supersedes, beside the tags that it is given."""
    found = dict.fromkeys(
        tag
        for node in replaced
        for tag in node.tags
        for namespace in _INHERITED
        if tag.startswith(namespace) and not _names(namespace, tags)
    )
    # Several that are superseded may have had different tiers: the strongest is enough.
    beside = [tier for tier in model.TIERS[1:] if tier in found][1:]
    return [tag for tag in found if tag not in beside]


def _names(namespace: str, tags: Sequence[str]) -> bool:
    return any(tag.startswith(namespace) for tag in tags)
