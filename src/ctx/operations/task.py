"""Start, end and name the current task.

A task is a node, and a word that its working nodes carry as a tag: `Implement OAuth` is
`task:implement-oauth`. While a task is current, working nodes of other tasks are hidden.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from ctx import clock, ids, tokens
from ctx.errors import NodeNotFound, UsageError
from ctx.ids import NodeId
from ctx.memory import model, pending
from ctx.memory.changes import Change
from ctx.memory.graph import PROJECT, USER, Graph
from ctx.memory.graphs import Graphs
from ctx.memory.idempotency_keys import Claim
from ctx.memory.model import OFF_CONTEXT, REFERENCE, WORKING, Evidence, Node, Redaction
from ctx.memory.query import execute
from ctx.memory.query.compile import Scope
from ctx.memory.query.query_parser import parse
from ctx.narrative.document_roles import MAIN_STREAM
from ctx.operations import compact, document
from ctx.operations.compact import CompactResult
from ctx.redaction import redact
from ctx.workspace import Memory

OPEN = "open"
ACTIVE = "active"
DONE = "done"

_LONGEST_WORD = 60
_NUMBER = re.compile(r"task_\d+(?:-.*)?", re.IGNORECASE | re.ASCII)
# Types of nodes that are kept after the task ends.
_LASTING = ("decision", "open-question")
_SUMMARY_BUDGET = 400
_SUMMARY_LINE = 200
# The sections of a summary with their node types, the most lasting first.
_EXTRACTED = (
    ("Decisions", ("decision",)),
    ("Facts and patterns", ("fact", "pattern", "summary")),
    ("Open questions", ("open-question", "hypothesis")),
    ("Last observations", ("observation", "source")),
)


class Task(NamedTuple):
    task: str
    """The word in the tag of its nodes: `task:<word>`."""
    name: str
    id: NodeId | None
    """Its node; None if only other nodes have the tag."""
    short_id: str | None
    status: str
    started: str | None
    ended: str | None


class StartTaskResult(NamedTuple):
    """The answer of `ctx task start`."""

    task: Task
    new: bool
    replaced: str | None
    """The task that was the current one."""
    joined: tuple[NodeId, ...]
    """Working nodes that belonged to no task before."""
    redacted: tuple[Redaction, ...]
    compacted: CompactResult | None = None
    """The commit of the work that was staged for the previous task."""


class EndTaskResult(NamedTuple):
    """The answer of `ctx task end`."""

    task: Task
    archived: tuple[NodeId, ...]
    promoted: tuple[NodeId, ...]
    """Decisions and open questions, which are now in the tier reference."""
    summary: Node | None
    summary_short_id: str | None
    compacted: CompactResult | None = None
    """The commit of the staged work."""


class CurrentTask(NamedTuple):
    """The answer of `ctx task current`."""

    task: Task | None
    working: int
    """How many working nodes it has."""


def start(memory: Memory, name: str, claim: Claim | None = None) -> StartTaskResult:
    """Make a task the current one. It is found by name or id, or created."""
    graph = memory.graph
    # The name becomes a tag, so secrets are removed first.
    title = redact(name.strip())
    found_task = _find(memory, title.text)
    compacted = _commit_other_task(memory, found_task)
    with ExitStack() as stack:
        create = stack.enter_context(document.new_files(memory)) if memory.project_memory else None
        here = found_task.scope if found_task else memory.home
        # The current task is private, so it is recorded in the user store. That can be repeated, so
        # it comes first.
        whole = stack.enter_context(memory.transaction("task start", USER, here, claim=claim))
        change = whole.in_scope(here)
        node = _find(memory, title.text)
        if node is None:
            drafted = document.draft(document.Options(title.text))
            begun = {"status": ACTIVE, "started": _now()}
            node_id, word, _ = make(memory, change, drafted, begun, create)
        else:
            node_id, word = node.id, word_of(node)
            if node.metadata.get("status") != ACTIVE:
                again = {"status": ACTIVE, "started": _now(), "ended": None, "slug": word}
                change.update_node(node_id, metadata=again)
        if node is None or model.tier(node.tags) in (None, OFF_CONTEXT):
            change.set_tier(node_id, WORKING)
        joined = [each for each in _without_task(change.graph, memory.project) if each != node_id]
        for each in (node_id, *joined):
            change.tag(each, f"task:{word}")
            # Another project may have a task of this name.
            if memory.project_tag:
                change.tag(each, memory.project_tag)
        before = pending.current_task(memory.user, memory.place.task_key)
        if before != word:
            change.in_scope(USER).set_current_task(memory.place.task_key, word)
    graph = memory.graph
    task = _task(graph, word, graph.node(node_id))
    replaced = None if before == word else before
    redactions = tuple(Redaction("name", each.rule, each.line) for each in title.findings)
    return StartTaskResult(task, node is None, replaced, tuple(joined), redactions, compacted)


def _commit_other_task(memory: Memory, to: Node | None) -> CompactResult | None:
    """Commit the work that is staged for another task before this one begins."""
    before = pending.current_task(memory.user, memory.place.task_key)
    if before is None or (to and word_of(to) == before):
        return None
    return compact.at_task_switch(memory)


class NewTask(NamedTuple):
    """A new task, inside a change; its file is named from `narrative/` on."""

    id: NodeId
    word: str
    path: str | None


def make(
    memory: Memory,
    change: Change,
    drafted: document.DocumentDraft,
    status: Mapping[str, str],
    create: Callable[[str, str], None] | None,
    stream: str = MAIN_STREAM,
) -> NewTask:
    """Create a task; in a project store also its file, with `create`.

    The status is only recorded, and never written to the file, which a person may be editing.
    """
    word = _free_word(memory, drafted.title)
    metadata = {**status, "slug": word}
    if create and change.graph.scope == PROJECT:
        placed = document.place_document(memory, "task", drafted, stream)
        create(placed.path, placed.text)
        metadata["file"] = placed.path
        node_id = change.add_node(
            "task",
            placed.content,
            metadata=metadata,
            node_id=placed.node_id,
            times=(placed.created, placed.created),
        )
        tags = drafted.recorded
    else:
        node_id = change.add_node("task", drafted.content, metadata=metadata)
        tags = (*drafted.recorded, *drafted.tags)
        document.mention(memory, change, node_id, drafted.mentions)
    for tag in tags:
        change.tag(node_id, tag)
    return NewTask(node_id, word, metadata.get("file"))


def end(
    memory: Memory, name: str | None, *, summarize: bool, claim: Claim | None = None
) -> EndTaskResult:
    """Archive the working nodes of a task; its decisions and open questions become reference."""
    current = pending.current_task(memory.user, memory.place.task_key)
    if name is None and current is None:
        raise UsageError("No current task.", hint="Name it: `ctx task end NAME`")
    task_name = redact(name).text if name else current or ""
    node = _find(memory, task_name)
    word = word_of(node) if node else task_word(task_name)
    here = node.scope if node else memory.home
    summary_id = None
    # In a project, the task can have working nodes in both stores. Changes outside of the store of
    # the task can be repeated, so they come first.
    other_scope = USER if here == PROJECT else memory.home
    with memory.transaction("task end", other_scope, here, claim=claim) as whole:
        change = whole.in_scope(here)
        working = _working_nodes(memory.graph, word, memory.project)
        if node is None and not working and word != current:
            raise NodeNotFound(
                f"There is no task {name!r}.", hint="`ctx list --type=task` shows them."
            )
        promoted = [each.id for each in working if each.type in _LASTING and _holds(each)]
        archived = [each.id for each in working if each.id not in promoted]
        for each in working:
            tier = REFERENCE if each.id in promoted else OFF_CONTEXT
            change.in_scope(each.scope).set_tier(each.id, tier)
        if node and node.metadata.get("status") != DONE:
            change.update_node(node.id, metadata={"status": DONE, "ended": _now()})
        sources = [each for each in working if each.type != "task" and _holds(each)]
        mine = [each for each in sources if each.scope == here or here == USER]
        if summarize and mine:
            title = name_of(node) if node else word
            summary_id = _summarize(change, memory, f"Task: {title}", word, mine)
        if word == current:
            change.in_scope(USER).set_current_task(memory.place.task_key, None)
    compacted = compact.at_task_end(memory)
    graph = memory.graph
    notes = tuple(each for each in archived if node is None or each != node.id)
    task = _task(graph, word, graph.node(node.id) if node else None)
    summary = graph.node(summary_id) if summary_id else None
    short = graph.shown([summary_id])[summary_id] if summary_id else None
    return EndTaskResult(task, notes, tuple(promoted), summary, short, compacted)


def current(memory: Memory) -> CurrentTask:
    word = pending.current_task(memory.user, memory.place.task_key)
    if word is None:
        return CurrentTask(None, 0)
    node = _find(memory, word)
    working = _working_nodes(memory.graph, word, memory.project)
    notes = [each for each in working if node is None or each.id != node.id]
    return CurrentTask(_task(memory.graph, word, node), len(notes))


def task_word(name: str) -> str:
    """The word in the tag of a task: letters and digits of any script, and dashes."""
    word = "".join(
        character if character.isalnum() or unicodedata.category(character)[0] == "M" else " "
        for character in unicodedata.normalize("NFC", name).lower()
    )
    slug = "-".join(word.split())[:_LONGEST_WORD].strip("-")
    if not slug:
        raise UsageError(
            f"{name[:80]!r} cannot name a task.", hint="A name has at least one letter or digit."
        )
    return slug


def _find(memory: Memory, text: str) -> Node | None:
    """The task with a name, a tag word, a number or an id."""
    graph = memory.graph
    for node in graph.nodes(graph.of_type("task")):
        is_meant = text in (word_of(node), f"task:{word_of(node)}") or _is_same_name(
            text, name_of(node)
        )
        if is_meant and belongs(node.tags, memory.project):
            return node
    try:
        node = graph.node(graph.find(text))
    except NodeNotFound:
        looks_like_id = text[:1] == "0" and text.isascii() and text.isalnum()
        if (looks_like_id and len(text) >= ids.SHOWN_LENGTH) or _NUMBER.fullmatch(text):
            raise
        return None
    if node.type != "task":
        raise UsageError(
            f"The node {ids.short(node.id)} is of type {node.type}, not a task.",
            hint="`ctx list --type=task` shows tasks.",
        )
    return node


def _is_same_name(name: str, other: str) -> bool:
    return " ".join(name.split()).casefold() == " ".join(other.split()).casefold()


def _free_word(memory: Memory, name: str) -> str:
    """An unused word for a new task: `C++` and `C#` get different ones."""
    word = task_word(name)
    graph = memory.graph
    tasks = graph.nodes(graph.of_type("task"))
    taken = {word_of(node) for node in tasks if belongs(node.tags, memory.project)}
    number = 2
    while (free := word if number == 2 else f"{word}-{number - 1}") in taken:
        number += 1
    return free


def word_of(node: Node) -> str:
    known = node.metadata.get("slug")
    return known if isinstance(known, str) and known else task_word(name_of(node))


def name_of(node: Node) -> str:
    return node.content.partition("\n")[0]


def _task(graph: Graphs, word: str, node: Node | None) -> Task:
    if node is None:
        return Task(word, word, None, None, "", None, None)
    return Task(
        word,
        name_of(node),
        node.id,
        graph.shown([node.id])[node.id],
        str(node.metadata.get("status", "")),
        node.metadata.get("started"),
        node.metadata.get("ended"),
    )


def belongs(tags: Sequence[str], project: str | None) -> bool:
    """Whether a node belongs to this project or to none."""
    named = [tag for tag in tags if tag.startswith("project:")]
    return not named or f"project:{project}" in named


def _without_task(graph: Graph, project: str | None) -> list[NodeId]:
    """The working nodes of a project that belong to no task, oldest first."""
    return _matching_nodes(Graphs([graph]), f"tag:{WORKING} AND NOT tag:task:*", project)


def _working_nodes(graph: Graphs, word: str, project: str | None) -> list[Node]:
    """The working nodes of a task, oldest first."""
    return list(
        graph.nodes(_matching_nodes(graph, f'tag:{WORKING} AND tag:"task:{word}"', project))
    )


def _matching_nodes(graph: Graphs, query: str, project: str | None) -> list[NodeId]:
    """The matching nodes in a project; outside of projects, those without a project."""
    parsed = parse(query if project else f"{query} AND NOT tag:project:*")
    scope = Scope(include_superseded=True, project=project)
    return sorted(execute.matching(graph.connections, parsed, scope, clock.now_ms()).ids)


def _holds(node: Node) -> bool:
    return node.superseded_by is None


def _summarize(
    change: Change, memory: Memory, title: str, word: str, sources: Sequence[Node]
) -> NodeId:
    node_id = change.add_node("summary", extract(title, sources), metadata={"task": word})
    change.tag(node_id, REFERENCE)
    change.tag(node_id, f"task:{word}")
    if memory.project_tag:
        change.tag(node_id, memory.project_tag)
    for source in sources:
        outside = source.scope != change.graph.scope
        evidence = Evidence(memory.author)
        change.link(node_id, source.id, "DERIVED_FROM", evidence, outside=outside)
    return node_id


def extract(title: str, nodes: Sequence[Node]) -> str:
    """Summarize several nodes without a model: the beginning of each, the most lasting first.

    Nodes that do not fit are only counted.
    """
    left = _SUMMARY_BUDGET - tokens.estimate(f"{title}\n\n… and {len(nodes):,} more")
    lines, listed = [title], 0
    for heading, types in _EXTRACTED:
        chosen: list[str] = []
        # The newest nodes are preferred, and listed in chronological order.
        for node in reversed([node for node in nodes if node.type in types]):
            text = " ".join((node.summary or node.content).split())
            short = text if len(text) <= _SUMMARY_LINE else f"{text[:_SUMMARY_LINE].rstrip()}..."
            cost = tokens.estimate(f"- {short}\n")
            cost += 0 if chosen else tokens.estimate(f"\n{heading}:\n")
            if cost <= left:
                left -= cost
                chosen.insert(0, f"- {short}")
        if chosen:
            lines += ["", f"{heading}:", *chosen]
            listed += len(chosen)
    if listed < len(nodes):
        lines += ["", f"… and {len(nodes) - listed:,} more"]
    return "\n".join(lines)


def _now() -> str:
    return clock.iso(clock.now_ms())
