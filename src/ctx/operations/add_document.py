"""Write down what happened, or what was noticed."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from ctx import clock
from ctx.errors import ContentRefused
from ctx.memory import model, pending
from ctx.memory.graph import USER
from ctx.memory.model import WORKING, Redaction
from ctx.narrative import document_format, document_names, document_roles, log_files, streams
from ctx.operations import document
from ctx.operations.document import AddDocumentResult
from ctx.redaction import redact
from ctx.workspace import Memory

NOTE = "note"


class NoteOptions(NamedTuple):
    text: str
    body: str = ""
    tags: Sequence[str] = ()
    stream: str = document_roles.MAIN_STREAM
    everywhere: bool = False
    """Whether it belongs to no project, whatever the folder."""


def add_note(memory: Memory, options: NoteOptions) -> AddDocumentResult:
    """A note: in a project also a file of the log, which is written once."""
    text = redact(model.content(_joined(options.text, options.body)))
    tags = model.tags([NOTE, *options.tags])
    for tag in tags:
        if redact(tag).findings:
            raise ContentRefused("A tag contains a secret.", hint="Secrets are not stored.")
    has_file = memory.project_memory is not None and not options.everywhere
    path = None
    with ExitStack() as stack:
        create = stack.enter_context(document.new_files(memory)) if has_file else None
        change = stack.enter_context(memory.transaction("add note", None if has_file else USER))
        given = of_task_and_project(memory, tags, everywhere=options.everywhere)
        if create:
            at = clock.now_ms()
            path = document_names.log_path(
                at, within=streams.folder_of(options.stream, memory.session)
            )
            shared = [tag for tag in tags if tag != NOTE]
            said = log_files.note(text.text, at, memory.author, memory.session, shared)
            create(path, document.fitting(redact(said).text))
        metadata = {**memory.source_metadata, **({"file": path} if path else {})}
        node_id = change.add_node("observation", text.text, metadata=metadata)
        for tag in (*tags, *given):
            change.tag(node_id, tag)
    graph = memory.graph
    found = tuple(Redaction("content", each.rule, each.line) for each in text.findings)
    return AddDocumentResult(
        graph.node(node_id),
        graph.shown([node_id])[node_id],
        None,
        document.shown_path(path) if path else None,
        tuple(given),
        (*found, *change.redacted),
    )


def of_task_and_project(
    memory: Memory, tags: Sequence[str], *, everywhere: bool = False
) -> list[str]:
    """The tags of a note in a project or during a task.

    It is then a working node, unless it has another tier.
    """
    given: list[str] = []
    task = pending.current_task(memory.user, memory.place.task_key)
    if task and model.tier(tags) in (None, WORKING):
        named = any(tag.startswith("task:") for tag in tags)
        given += [WORKING, *([] if named else [f"task:{task}"])]
    if memory.project_tag and not everywhere:
        given.append(memory.project_tag)
    return [tag for tag in given if tag not in tags]


def _joined(text: str, body: str) -> str:
    return "\n\n".join(part for part in (text.strip(), document_format.tidy(body)) if part)
