"""Write down something to do."""

from contextlib import ExitStack

from ctx.memory.graph import USER
from ctx.operations import document, task
from ctx.operations.document import AddDocumentResult, Options
from ctx.workspace import Memory


def add_task(memory: Memory, options: Options) -> AddDocumentResult:
    """Add a task that is not started; `ctx task start` starts it."""
    drafted = document.named(memory, options)
    has_file = memory.project_memory is not None and not options.everywhere
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
        document.called(made.path) if made.path else None,
        document.shown_path(made.path) if made.path else None,
        tuple(given),
        (*drafted.redacted, *change.redacted),
        drafted.unknown,
        drafted.unclear,
    )
