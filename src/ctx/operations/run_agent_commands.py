"""Run the commands in an agent's answer: `<ctx:remember …>` and others.

Each command runs once. Its change and the record that it ran are one transaction; its result waits
in `pending` for the next prompt of the session, and so do problems.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ctx import tokens
from ctx.agent_commands.command_parser import Command, CommandProblem, command_start, right_form
from ctx.context import layers
from ctx.errors import (
    CtxError,
    DatabaseFailure,
    DiskFailure,
    LockConflict,
    QueryInvalid,
    UsageError,
)
from ctx.ids import NodeId
from ctx.memory import idempotency_keys, pending
from ctx.memory.graph import PROJECT, USER
from ctx.memory.graphs import Graphs
from ctx.memory.idempotency_keys import AlreadyDone, Claim
from ctx.memory.model import (
    KNOWLEDGE_TYPES,
    NODE_TYPES,
    PINNED,
    Redaction,
)
from ctx.operations import (
    add,
    agent_proposals,
    link,
    recall,
    remember,
    status,
    summarize,
    task,
    trace,
)
from ctx.operations.agent_proposals import NO_PROPOSED_CHANGE, ProposedChange
from ctx.operations.recall_index import find_visible
from ctx.operations.visible_nodes import visible_to_agent
from ctx.redaction import redact
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory

_RECALLED = 10
_RECALL_BUDGET = 2_500


class CommandOutcome(NamedTuple):
    """What became of the commands of one answer."""

    done: int = 0
    failed: int = 0
    repeated: int = 0
    """Those that were done before."""
    proposed: int = 0
    """Those of what was done that the user has to decide about."""


class _CommandResult(NamedTuple):
    redacted: Sequence[Redaction] = ()
    """The secrets that were not kept."""
    wish: ProposedChange = NO_PROPOSED_CHANGE
    """What only the user may decide."""


def execute(
    memory: Memory, found: Command | CommandProblem, claim_id: str, *, may_pin: bool = False
) -> CommandOutcome:
    """Do one command, unless it was done before. What is wrong with it is for the agent.

    Whether it `may_pin`, and write for all projects, the user says; otherwise it is proposed.
    """
    name = found.name if isinstance(found, Command) else "?"
    claim = Claim(claim_id, memory.session, name)
    try:
        if isinstance(found, CommandProblem):
            _report(memory, claim, found)
            return CommandOutcome(failed=1)
        try:
            done = _DOING[found.name](memory, found, claim, may_pin)
        except (DatabaseFailure, DiskFailure, LockConflict):
            # It is not the command that is wrong.
            raise
        except CtxError as error:
            right = right_form(found.name)
            _report(
                memory,
                claim,
                CommandProblem(command_start(found), _sentence(error), right, found.position),
            )
            return CommandOutcome(failed=1)
    except AlreadyDone:
        return CommandOutcome(repeated=1)
    if done.redacted:
        with transaction(memory.local):
            notice = _secrets_note(done.redacted)
            pending.append(memory.local, pending.notices(memory.session), notice)
    return CommandOutcome(done=1, proposed=bool(done.wish.words()))


def _remember(memory: Memory, command: Command, claim: Claim, may_pin: bool) -> _CommandResult:
    given = command.attributes
    options = remember.Options(
        command.content,
        given.get("type"),
        _list(given.get("tags", "")),
        given.get("summary"),
        given.get("rationale", ""),
        _nodes(memory.graph, given.get("supersedes", "")),
        given.get("scope", ""),
    )
    placed = remember.place(memory, options, may_pin=may_pin)
    added = add.add(memory, placed.options, _claim_with_proposal(claim, placed.wish))
    return _CommandResult(added.redacted, placed.wish)


def _summarize(memory: Memory, command: Command, claim: Claim, may_pin: bool) -> _CommandResult:
    given = command.attributes
    node_ids = _nodes(memory.graph, given["nodes"])
    tags = _list(given.get("tags", ""))
    archive = given.get("archive") == "true"
    wish = NO_PROPOSED_CHANGE
    if not may_pin:
        sources = list(memory.graph.nodes(node_ids))
        scope = PROJECT if all(each.scope == PROJECT for each in sources) else USER
        held = [each for each in sources if agent_proposals.is_protected(memory, each)]
        archives = [each.id for each in held if archive and PINNED not in each.tags]
        if sources:
            tags = [*tags, *summarize.inherited_tags(sources, tags)]
        if scope == USER and len(held) < len(sources):
            tags = agent_proposals.in_project(memory, tags)
        tags, wish = agent_proposals.place_node(
            memory, scope, tags, ProposedChange(archives=tuple(archives))
        )
    options = summarize.Options(
        node_ids, command.content, tags, archive, wish.archives, wish.metadata(), may_pin
    )
    done = summarize.summarize(memory, options, _claim_with_proposal(claim, wish))
    return _CommandResult(done.redacted, wish)


def _link(memory: Memory, command: Command, claim: Claim, may_pin: bool) -> _CommandResult:
    given = command.attributes
    from_id, to_id = (memory.graph.find(given[end]) for end in ("from", "to"))
    return _link_nodes(memory, claim, from_id, to_id, given["type"], may_pin)


def _supersede(memory: Memory, command: Command, claim: Claim, may_pin: bool) -> _CommandResult:
    given = command.attributes
    new, old = (memory.graph.find(given[end]) for end in ("new", "old"))
    return _link_nodes(memory, claim, new, old, "SUPERSEDES", may_pin)


def _link_nodes(
    memory: Memory, claim: Claim, from_id: NodeId, to_id: NodeId, kind: str, may_pin: bool
) -> _CommandResult:
    wish = remember.proposed_link(memory, to_id, kind, may_pin=may_pin)
    if not wish.supersedes:
        return _CommandResult(link.link(memory, from_id, to_id, kind, claim=claim).redacted)
    agent_proposals.propose_superseding(memory, from_id, to_id, _claim_with_proposal(claim, wish))
    return _CommandResult(wish=wish)


def _claim_with_proposal(claim: Claim, wish: ProposedChange) -> Claim:
    """A claim that also tells the agent what the user has to decide."""
    asked = ", ".join(wish.words())
    if not asked:
        return claim
    notice = (
        f"## Proposed to the user\n\n`{claim.name}` asked for: {asked}. It is stored without"
        " that; the user decides with `ctx review`.\n\n"
    )
    return claim._replace(notice=notice)


def _task(memory: Memory, command: Command, claim: Claim, may_pin: bool) -> _CommandResult:
    given = command.attributes
    if remember.is_outside_projects(memory) and not may_pin:
        raise UsageError(
            "There is no project here, so every project would see the task.",
            hint="The user can run `ctx task`.",
        )
    if given["action"] == "start":
        return _CommandResult(task.start(memory, given["name"], claim).redacted)
    task.end(memory, given["name"], summarize=given.get("summarize") == "true", claim=claim)
    return _CommandResult()


def _recall(memory: Memory, command: Command, claim: Claim, _may_pin: bool) -> _CommandResult:
    query = command.attributes["query"]
    options = recall.Options(query, _RECALLED, _RECALL_BUDGET, visible_to_agent(memory))
    recalled = recall.recall(memory, options)
    head, tail = recall.frame(recalled._replace(query=redact(recalled.query).text))
    shown = [node.id for node in recalled.nodes]
    given = layers.items_of(memory.graph.connections, shown)
    items = [
        (item._replace(tokens=tokens.estimate(text)), f"{text}\n\n")
        for (item, _), text in zip(given, recall.items(recalled), strict=True)
    ]
    _leave(memory, claim, "recall_results", {"head": head, "items": items, "tail": f"{tail}\n"})
    return _CommandResult()


def _status(memory: Memory, _command: Command, claim: Claim, _may_pin: bool) -> _CommandResult:
    told = status.as_text(status.status(memory, new=False))
    with transaction(memory.local):
        idempotency_keys.claim_command(memory.local, claim)
        pending.put(memory.local, f"status_output:{memory.session}", told)
    return _CommandResult()


def _expand(memory: Memory, command: Command, claim: Claim, _may_pin: bool) -> _CommandResult:
    graph = memory.graph
    node = graph.node(find_visible(memory, command.attributes["node"]))
    sources = [edge.to_id for edge in graph.edges(node.id, "out", "DERIVED_FROM")]
    # The sentences behind a summary are those of its observations, which have their own.
    behind = [node] if node.type == "summary" else [node, *graph.nodes(sources)]
    said, _ = trace.steps_behind(memory, behind)
    if not sources and not said:
        if node.type == "summary":
            raise UsageError("The sources of the summary no longer exist.")
        raise UsageError(
            f"The node is of type {node.type}, and nothing is stored that it was derived from."
        )
    with transaction(memory.local):
        idempotency_keys.claim_command(memory.local, claim)
        if said:
            text = {"head": trace.as_markdown(said), "items": [], "tail": ""}
            pending.append(memory.local, f"recall_results:{memory.session}", text)
        if sources:
            pending.append(memory.local, f"expand_nodes:{memory.session}", *sources)
    return _CommandResult()


_DOING: Mapping[str, Callable[[Memory, Command, Claim, bool], _CommandResult]] = {
    "remember": _remember,
    "recall": _recall,
    "summarize": _summarize,
    "link": _link,
    "status": _status,
    "task": _task,
    "expand": _expand,
    "supersede": _supersede,
}


def _report(memory: Memory, claim: Claim, wrong: CommandProblem) -> None:
    # Nodes that stand for code are not an agent's to write.
    problem = wrong.problem.replace(", ".join(NODE_TYPES), ", ".join(KNOWLEDGE_TYPES))
    # What it wrote may hold a secret.
    clean = wrong._replace(written=redact(wrong.written).text, problem=redact(problem).text)
    _leave(memory, claim, "command_problems", _error_message(clean), problem=clean.problem)


def _leave(memory: Memory, claim: Claim, kind: str, *more: Any, problem: str | None = None) -> None:
    """Add to what waits for the session."""
    key = f"{kind}:{memory.session}"
    with transaction(memory.local):
        idempotency_keys.claim_command(memory.local, claim, problem)
        pending.append(memory.local, key, *more)


def _secrets_note(redacted: Sequence[Redaction]) -> str:
    where = "; ".join(f"{each.where}, line {each.line} ({each.rule})" for each in redacted[:5])
    return f"## A secret was not stored\n\nMemory does not store secrets. Removed: {where}.\n\n"


def _error_message(wrong: CommandProblem) -> str:
    """As the agent reads it."""
    fence = "`" * 3
    right = f"Write this instead, outside of code:\n\n{fence}\n{wrong.right}\n{fence}\n\n"
    return (
        f"## A memory command failed\n\n{fence}\n{wrong.written.replace(fence, '')}\n{fence}\n\n"
        f"{wrong.problem}\n\n{right if wrong.right else ''}"
    )


def _sentence(error: CtxError) -> str:
    # The details of a query error point at a position, which needs separate lines and a fixed-width
    # font.
    detail = "" if isinstance(error, QueryInvalid) else error.detail
    return " ".join(filter(None, (error.message, detail, error.hint)))


def _list(text: str) -> list[str]:
    return [word for word in (each.strip() for each in text.split(",")) if word]


def _nodes(graph: Graphs, text: str) -> list[NodeId]:
    return [graph.find(each) for each in _list(text)]
