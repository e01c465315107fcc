"""Do what an agent wrote into its answer: `<ctx:remember …>` and its like.

Each command is done once. What it changes and the note that it was done are one transaction; what
it asks for waits in `pending` for the next prompt of the session, and so does what was wrong.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ctx import tokens
from ctx.errors import (
    CtxError,
    DatabaseFailure,
    DiskFailure,
    LockConflict,
    QueryInvalid,
    UsageError,
)
from ctx.ids import NodeId
from ctx.memory import claims, pending
from ctx.memory.claims import AlreadyDone, Claim
from ctx.memory.graphs import Graphs
from ctx.memory.model import KNOWLEDGE_TYPES, NODE_TYPES, Redaction
from ctx.operations import add, link, recall, status, summarize, task
from ctx.operations.compose import Visible
from ctx.redaction import redact
from ctx.retrieval import layers
from ctx.sessions.commands import Command, Wrong, right_form
from ctx.sqlite.connection import transaction
from ctx.workspace import Memory

_RECALLED = 10
_RECALL_BUDGET = 2_500
_MOST_WAITING = 50


Redacted = Sequence[Redaction]
"""The secrets that were not kept."""


class Outcome(NamedTuple):
    """What became of the commands of one answer."""

    done: int = 0
    failed: int = 0
    repeated: int = 0
    """Those that were done before."""


def execute(memory: Memory, found: Command | Wrong, claim_id: str) -> Outcome:
    """Do one command, unless it was done before. What is wrong with it is for the agent."""
    name = found.name if isinstance(found, Command) else "?"
    claim = Claim(claim_id, memory.session, name)
    try:
        if isinstance(found, Wrong):
            _report(memory, claim, found)
            return Outcome(failed=1)
        try:
            redacted = _DOING[found.name](memory.once(claim), found, claim)
        except (DatabaseFailure, DiskFailure, LockConflict):
            # It is not the command that is wrong.
            raise
        except CtxError as error:
            right = right_form(found.name)
            _report(memory, claim, Wrong(_written(found), _sentence(error), right, found.position))
            return Outcome(failed=1)
    except AlreadyDone:
        return Outcome(repeated=1)
    if redacted:
        _tell_of_secrets(memory, redacted)
    return Outcome(done=1)


def _remember(memory: Memory, command: Command, _claim: Claim) -> Redacted:
    given = command.attributes
    is_nowhere = memory.beside is None and memory.project_tag is None
    if given.get("scope") == "project" and is_nowhere:
        raise UsageError("There is no project here that it could belong to.")
    rationale = given.get("rationale")
    added = add.add(
        memory,
        add.Options(
            command.content,
            given.get("type"),
            _list(given.get("tags", "")),
            given.get("summary"),
            {"rationale": rationale} if rationale else {},
            _nodes(memory.graph, given.get("supersedes", "")),
            everywhere=given.get("scope") == "user",
        ),
    )
    return added.redacted


def _summarize(memory: Memory, command: Command, _claim: Claim) -> Redacted:
    given = command.attributes
    made = summarize.summarize(
        memory,
        summarize.Options(
            _nodes(memory.graph, given["nodes"]),
            command.content,
            _list(given.get("tags", "")),
            given.get("archive") == "true",
        ),
    )
    return made.redacted


def _link(memory: Memory, command: Command, _claim: Claim) -> Redacted:
    given = command.attributes
    from_id, to_id = (memory.graph.find(given[end]) for end in ("from", "to"))
    return link.link(memory, from_id, to_id, given["type"]).redacted


def _supersede(memory: Memory, command: Command, _claim: Claim) -> Redacted:
    given = command.attributes
    new, old = (memory.graph.find(given[end]) for end in ("new", "old"))
    return link.link(memory, new, old, "SUPERSEDES").redacted


def _task(memory: Memory, command: Command, _claim: Claim) -> Redacted:
    given = command.attributes
    if given["action"] == "start":
        return task.start(memory, given["name"]).redacted
    task.end(memory, given["name"], summarize=given.get("summarize") == "true")
    return ()


def _recall(memory: Memory, command: Command, claim: Claim) -> Redacted:
    # An agent sees nothing of other projects, also where it works in none.
    visible = Visible(project=memory.project or "")
    query = command.attributes["query"]
    options = recall.Options(query, _RECALLED, _RECALL_BUDGET, visible)
    recalled = recall.recall(memory, options)
    head, tail = recall.frame(recalled._replace(query=redact(recalled.query).text))
    shown = [node.id for node in recalled.nodes]
    given = layers.items_of(memory.graph.connections, shown)
    items = [
        (item._replace(tokens=tokens.estimate(text)), f"{text}\n\n")
        for (item, _), text in zip(given, recall.items(recalled), strict=True)
    ]
    _leave(memory, claim, "recall_results", {"head": head, "items": items, "tail": f"{tail}\n"})
    return ()


def _status(memory: Memory, _command: Command, claim: Claim) -> Redacted:
    told = status.as_text(status.status(memory, new=False))
    with transaction(memory.user.connection):
        claims.take(memory.user.connection, claim)
        pending.put(memory.user, f"status_output:{memory.session}", told)
    return ()


def _expand(memory: Memory, command: Command, claim: Claim) -> Redacted:
    graph = memory.graph
    node = graph.node(graph.find(command.attributes["node"]))
    if node.type != "summary":
        raise UsageError(f"The node is of type {node.type}; only a summary can be expanded.")
    sources = [edge.to_id for edge in graph.edges(node.id, "out", "DERIVED_FROM")]
    if not sources:
        raise UsageError("The summary has no sources any more.")
    _leave(memory, claim, "expand_nodes", *sources)
    return ()


_DOING: Mapping[str, Callable[[Memory, Command, Claim], Redacted]] = {
    "remember": _remember,
    "recall": _recall,
    "summarize": _summarize,
    "link": _link,
    "status": _status,
    "task": _task,
    "expand": _expand,
    "supersede": _supersede,
}


def _report(memory: Memory, claim: Claim, wrong: Wrong) -> None:
    # Nodes that stand for code are not an agent's to write.
    problem = wrong.problem.replace(", ".join(NODE_TYPES), ", ".join(KNOWLEDGE_TYPES))
    # What it wrote may hold a secret.
    clean = wrong._replace(written=redact(wrong.written).text, problem=redact(problem).text)
    _leave(memory, claim, "command_problems", _told(clean), problem=clean.problem)


def _leave(memory: Memory, claim: Claim, kind: str, *more: Any, problem: str | None = None) -> None:
    """Add to what waits for the session."""
    key = f"{kind}:{memory.session}"
    with transaction(memory.user.connection):
        claims.take(memory.user.connection, claim, problem)
        _add_waiting(memory, key, *more)


def _add_waiting(memory: Memory, key: str, *more: Any) -> None:
    waiting = json.loads(pending.get(memory.user, key) or "[]")
    # As it will be read: what was asked for twice is given once.
    told = [each for each in json.loads(json.dumps(more)) if each not in waiting]
    # More than this nobody could be given.
    if told and len(waiting) < _MOST_WAITING:
        pending.put(memory.user, key, json.dumps(waiting + told))


def _tell_of_secrets(memory: Memory, redacted: Redacted) -> None:
    """The agent should know that what it said is not what is kept."""
    where = "; ".join(f"{each.where}, line {each.line} ({each.rule})" for each in redacted[:5])
    told = f"## A secret was not kept\n\nMemory holds none. Left out of what you said: {where}.\n\n"
    with transaction(memory.user.connection):
        _add_waiting(memory, f"command_problems:{memory.session}", told)


def _told(wrong: Wrong) -> str:
    """As the agent reads it."""
    fence = "`" * 3
    return (
        "## A memory command was not done\n\n"
        f"{fence}\n{wrong.written.replace(fence, '')}\n{fence}\n\n{wrong.problem}\n\n"
        f"Right would be, outside of code:\n\n{fence}\n{wrong.right}\n{fence}\n\n"
    )


def _sentence(error: CtxError) -> str:
    # A query's details point at a place in it, which needs lines of its own and even letters.
    detail = "" if isinstance(error, QueryInvalid) else error.detail
    return " ".join(filter(None, (error.message, detail, error.hint)))


def _written(command: Command) -> str:
    values = {name: text.replace('"', "&quot;") for name, text in command.attributes.items()}
    given = "".join(f' {name}="{value}"' for name, value in values.items())
    content = " ".join(command.content.split())
    text = f"<ctx:{command.name}{given}" + (f">{content}" if content else "/>")
    return text if len(text) <= 120 else f"{text[:119]}…"


def _list(text: str) -> list[str]:
    return [word for word in (each.strip() for each in text.split(",")) if word]


def _nodes(graph: Graphs, text: str) -> list[NodeId]:
    return [graph.find(each) for each in _list(text)]
