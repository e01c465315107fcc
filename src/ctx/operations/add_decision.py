"""Write down a decision, and why."""

from contextlib import ExitStack

from ctx.memory import model
from ctx.memory.graph import USER
from ctx.memory.model import REFERENCE
from ctx.operations import document
from ctx.operations.document import AddDocumentResult, Options
from ctx.workspace import Memory


def add_decision(memory: Memory, options: Options) -> AddDocumentResult:
    """Add a decision. Its tier is reference, unless another is given."""
    drafted = document.named(memory, options)
    has_file = memory.project_memory is not None and not options.everywhere
    path = new_id = None
    with ExitStack() as stack:
        create = stack.enter_context(document.new_files(memory)) if has_file else None
        change = stack.enter_context(memory.transaction("add decision", None if has_file else USER))
        content, tags = drafted.content, drafted.recorded
        if create:
            placed = document.placed(memory, "decision", drafted, options.stream)
            create(placed.path, placed.text)
            path, content, new_id = placed.path, placed.content, placed.node_id
        else:
            tags += drafted.tags
        has_tier = model.tier(drafted.recorded) or options.default_tier == "none"
        given = [] if has_tier else [REFERENCE]
        if memory.project_tag and not options.everywhere:
            given.append(memory.project_tag)
        metadata = {**memory.source_metadata, **({"file": path} if path else {})}
        node_id = change.add_node("decision", content, metadata=metadata, node_id=new_id)
        for tag in dict.fromkeys((*tags, *given)):
            change.tag(node_id, tag)
        if path is None:
            document.mention(memory, change, node_id, drafted.mentions)
    document.project_decisions(memory)
    graph = memory.graph
    return AddDocumentResult(
        graph.node(node_id),
        graph.shown([node_id])[node_id],
        document.called(path) if path else None,
        document.shown_path(path) if path else None,
        tuple(tag for tag in given if tag not in tags),
        (*drafted.redacted, *change.redacted),
        drafted.unknown,
        drafted.unclear,
    )
