"""Write down what happened, what to do, and what was decided: notes, tasks and decisions."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from ctx import clock
from ctx.errors import ContentRefused
from ctx.memory import model, pending
from ctx.memory.graph import PROJECT, USER
from ctx.memory.model import REFERENCE, WORKING, Redaction
from ctx.narrative import document_format, document_names, document_roles, log_files, streams
from ctx.operations import document, task
from ctx.operations.add import DefaultTier, tier_for_agents
from ctx.operations.document import AddDocumentResult, Options
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
    default_tier: DefaultTier = "inherited"


def add_note(memory: Memory, options: NoteOptions) -> AddDocumentResult:
    """A note: in a project also a file of the log, which is written once."""
    parts = (options.text.strip(), document_format.tidy(options.body))
    text = redact(model.content("\n\n".join(filter(None, parts))))
    tags = model.tags([NOTE, *options.tags])
    for tag in tags:
        if redact(tag).findings:
            raise ContentRefused("A tag contains a secret.", hint="Secrets are not stored.")
    has_file = not options.everywhere and memory.home == PROJECT
    path = None
    with ExitStack() as stack:
        create = stack.enter_context(document.new_files(memory)) if has_file else None
        change = stack.enter_context(memory.transaction("add note", None if has_file else USER))
        given = of_task_and_project(memory, tags, everywhere=options.everywhere)
        if options.default_tier == "none":
            given = [tag for tag in given if tag != WORKING]
        elif options.default_tier == "shown":
            given = [*tier_for_agents(memory, (*tags, *given)), *given]
        if create:
            at = clock.now_ms()
            path = document_names.log_path(
                at, within=streams.folder_of(options.stream, memory.session)
            )
            shared = [tag for tag in tags if tag != NOTE]
            said = log_files.note(text.text, at, memory.author, memory.session, shared)
            create(path, document.require_fitting(redact(said).text))
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


def add_task(memory: Memory, options: Options) -> AddDocumentResult:
    """Add a task that is not started; `ctx task start` starts it."""
    drafted = document.resolve_mentions(memory, options)
    has_file = not options.everywhere and memory.home == PROJECT
    with ExitStack() as stack:
        create = stack.enter_context(document.new_files(memory)) if has_file else None
        change = stack.enter_context(memory.transaction("add task", None if has_file else USER))
        status = {"status": task.OPEN}
        made = task.make(memory, change, drafted, status, create, options.stream)
        given = [memory.project_tag] if memory.project_tag and not options.everywhere else []
        for tag in given:
            change.tag(made.id, tag)
    graph = memory.graph
    return AddDocumentResult(
        graph.node(made.id),
        graph.shown([made.id])[made.id],
        document.document_name(made.path) if made.path else None,
        document.shown_path(made.path) if made.path else None,
        tuple(given),
        (*drafted.redacted, *change.redacted),
        drafted.unknown,
        drafted.unclear,
    )


def add_decision(memory: Memory, options: Options) -> AddDocumentResult:
    """Add a decision. Its tier is reference, unless another is given."""
    drafted = document.resolve_mentions(memory, options)
    has_file = not options.everywhere and memory.home == PROJECT
    path = new_id = times = None
    with ExitStack() as stack:
        create = stack.enter_context(document.new_files(memory)) if has_file else None
        change = stack.enter_context(memory.transaction("add decision", None if has_file else USER))
        content, tags = drafted.content, drafted.recorded
        if create:
            placed = document.place_document(memory, "decision", drafted, options.stream)
            create(placed.path, placed.text)
            path, content, new_id = placed.path, placed.content, placed.node_id
            times = (placed.created, placed.created)
        else:
            tags += drafted.tags
        has_tier = model.tier(drafted.recorded) or options.default_tier == "none"
        given = [] if has_tier else [REFERENCE]
        if memory.project_tag and not options.everywhere:
            given.append(memory.project_tag)
        metadata = {**memory.source_metadata, **({"file": path} if path else {})}
        node_id = change.add_node(
            "decision", content, metadata=metadata, node_id=new_id, times=times
        )
        for tag in dict.fromkeys((*tags, *given)):
            change.tag(node_id, tag)
        if path is None:
            document.mention(memory, change, node_id, drafted.mentions)
    document.project_decisions(memory)
    graph = memory.graph
    return AddDocumentResult(
        graph.node(node_id),
        graph.shown([node_id])[node_id],
        document.document_name(path) if path else None,
        document.shown_path(path) if path else None,
        tuple(tag for tag in given if tag not in tags),
        (*drafted.redacted, *change.redacted),
        drafted.unknown,
        drafted.unclear,
    )
