"""Change a node's fields."""

from collections.abc import Mapping
from typing import NamedTuple

from ctx.errors import UsageError
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
    *("ended", "uncommitted"),
)
"""Metadata of an observation or a summary that repeats parts of its content."""


class EditConflict(UsageError):
    """The node was changed while it was edited."""


class Options(NamedTuple):
    """None keeps a field; an empty summary or metadata value removes it."""

    content: str | None = None
    type: str | None = None
    summary: str | None = None
    metadata: Mapping[str, str] = {}
    in_document: bool = False
    """Whether to write the content to the document of the node even if other branches have it.
    Otherwise such a document is unchanged, and the recorded content takes precedence."""
    based_on: str | None = None
    """The content that was edited. The change is refused if the node has another one by now."""


class UpdateResult(NamedTuple):
    """The answer of `ctx update` and `ctx edit`."""

    node: Node
    short_id: str
    changed: tuple[str, ...]
    """The fields that changed."""
    redacted: tuple[Redaction, ...]
    document: str | None = None
    """The path of the document if its text now differs from the node."""


def update(memory: Memory, node_id: NodeId, options: Options) -> UpdateResult:
    """Set some fields. The content of a document is changed in its file.

    A file that other branches may have is not changed: if commands changed it on two branches, git
    could not merge it.
    """
    node = memory.graph.node(node_id)
    over = path = None
    if options.content is not None and "file" in node.metadata:
        from ctx.operations import document

        if doc := document.edited_by_people(memory, node):
            if options.in_document or not document.is_shared(memory, doc):
                return _update_document(memory, node_id, doc, options)
            over, path = doc.digest, document.shown_path(doc.path)
    metadata = {key: value or None for key, value in options.metadata.items()}
    if options.content is not None and {"key", "session"} <= node.metadata.keys():
        # Nodes of a session also have their content in parts, which readers prefer: remove them.
        metadata = {**{name: None for name in _PARTS if name in node.metadata}, **metadata}
    if options.content is not None and sources.stated_source(node.type, node.metadata):
        # The new content is attributed to whoever changes it.
        metadata = {sources.KEY: sources.USER, **memory.source_metadata, **metadata}
    with memory.transaction("update", node.scope) as change:
        # Under the lock: another editor may close at the same time.
        _check_base(change.graph.node(node_id).content, node_id, options)
        changed = change.update_node(
            node_id,
            node_type=options.type,
            content=options.content,
            summary=options.summary,
            metadata=metadata,
            over=over,
        )
    graph = memory.graph
    short = graph.shown([node_id])[node_id]
    differs = path if "content" in changed else None
    return UpdateResult(graph.node(node_id), short, changed, tuple(change.redacted), differs)


def _check_base(content: str, node_id: NodeId, options: Options) -> None:
    known = (options.based_on, (options.content or "").strip())
    if options.based_on is not None and content not in known:
        raise EditConflict(f"The node {node_id} was changed while you edited it.")


def _update_document(
    memory: Memory, node_id: NodeId, doc: NodeDocument, options: Options
) -> UpdateResult:
    """Write the content to the document, and record the other changes."""
    from ctx.operations import document
    from ctx.project.document_nodes import content_of

    wanted = redact(model.content(options.content or ""))
    text = redact(document.with_content(doc.text, wanted.text)).text
    before, after = content_of(doc.data), content_of(text.encode("utf-8", "surrogateescape"))
    _check_base(before, node_id, options)
    with (
        document.rewrite_with_node(doc) as rewrite,
        memory.transaction("update", PROJECT) as change,
    ):
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
    # If the document was empty, no record may tell that it has changed, so the index is closed.
    memory.project_memory.close()
    if document_roles.place(doc.path).role == "decision":
        document.project_decisions(memory)
    graph = memory.graph
    secrets = [Redaction("content", each.rule, each.line) for each in wanted.findings]
    short = graph.shown([node_id])[node_id]
    return UpdateResult(graph.node(node_id), short, changed, (*secrets, *change.redacted))
