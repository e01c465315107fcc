"""Change a node's fields."""

from collections.abc import Mapping
from typing import NamedTuple

from ctx.ids import NodeId
from ctx.memory import model, sources
from ctx.memory.graph import PROJECT
from ctx.memory.model import Node, Redaction
from ctx.narrative import document_roles
from ctx.operations.document import NodeDocument
from ctx.redaction import redact
from ctx.workspace import Memory

_PARTS = (
    *("title", "request", "investigated", "learned", "completed", "next_steps"),
    *("files_read", "files_edited", "more_read", "more_edited", "notes"),
)
"""Of an observation or a summary: they say what its content says."""


class Options(NamedTuple):
    """What is None stays as it is; an empty summary or metadata value takes it away."""

    content: str | None = None
    type: str | None = None
    summary: str | None = None
    metadata: Mapping[str, str] = {}
    in_document: bool = False
    """Whether the words are a person's, for the node's document, also where other branches have it
    too. Otherwise those of such a document stay, and what is said holds instead of them."""


class UpdateResult(NamedTuple):
    """The answer of `ctx update` and `ctx edit`."""

    node: Node
    short_id: str
    changed: tuple[str, ...]
    """The fields that are not what they were."""
    redacted: tuple[Redaction, ...]
    document: str | None = None
    """The node's document, from the project's root, where it says something else now."""


def update(memory: Memory, node_id: NodeId, options: Options) -> UpdateResult:
    """Set some fields. What a document says is changed in its file, where people read it.

    A file that other branches may have is left to people: what a command wrote there on two
    branches, git could not merge.
    """
    node = memory.graph.node(node_id)
    over = path = None
    if options.content is not None and "file" in node.metadata:
        from ctx.operations import document

        if found := document.edited_by_people(memory, node):
            if options.in_document or not document.is_shared(memory, found):
                return _update_document(memory, node_id, found, options)
            over, path = found.digest, document.shown_path(found.path)
    given = {key: value or None for key, value in options.metadata.items()}
    if options.content is not None and {"key", "session"} <= node.metadata.keys():
        # What a session left behind says itself in parts, which are read instead of the whole.
        given = {**{name: None for name in _PARTS if name in node.metadata}, **given}
    if options.content is not None and sources.stated_source(node.type, node.metadata):
        # The words are those of whoever changes them.
        given = {sources.KEY: sources.USER, **memory.source_metadata, **given}
    with memory.transaction("update", node.scope) as change:
        changed = change.update_node(
            node_id,
            node_type=options.type,
            content=options.content,
            summary=options.summary,
            metadata=given,
            over=over,
        )
    graph = memory.graph
    short = graph.shown([node_id])[node_id]
    differs = path if "content" in changed else None
    return UpdateResult(graph.node(node_id), short, changed, tuple(change.redacted), differs)


def _update_document(
    memory: Memory, node_id: NodeId, found: NodeDocument, options: Options
) -> UpdateResult:
    """Write the words into the document, and record what else is to be changed."""
    from ctx.operations import document
    from ctx.project.document_nodes import content_of

    wanted = redact(model.content(options.content or ""))
    text = redact(document.with_content(found.text, wanted.text)).text
    before, after = content_of(found.data), content_of(text.encode("utf-8", "surrogateescape"))
    with document.rewriting(found) as rewrite, memory.transaction("update", PROJECT) as change:
        changed = change.update_node(
            node_id,
            node_type=options.type,
            content=after,
            summary=options.summary,
            metadata={key: value or None for key, value in options.metadata.items()},
            before=before or None,
        )
        if before != after:
            rewrite(text)
    assert memory.project_memory is not None
    # Where the document was empty, there may be no record that says that it is not any more.
    memory.project_memory.close()
    if document_roles.place(found.path).role == "decision":
        document.project_decisions(memory)
    graph = memory.graph
    secrets = [Redaction("content", each.rule, each.line) for each in wanted.findings]
    short = graph.shown([node_id])[node_id]
    return UpdateResult(graph.node(node_id), short, changed, (*secrets, *change.redacted))
