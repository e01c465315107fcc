"""The origin of a node: the nodes that it is derived from, and the quoted steps."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ctx import terms
from ctx.capture import steps
from ctx.capture.steps import Step
from ctx.ids import NodeId
from ctx.markdown import flat
from ctx.memory import walk
from ctx.memory.model import Node
from ctx.memory.walk import ReachedNode, graph_walk
from ctx.synthesis.sentences import split_sentences
from ctx.workspace import Memory

LONGEST_QUOTE = 200
"""The maximum number of steps that are read for one answer."""

_LONGEST = 400
_MOST_LISTED_STEPS = 10
_SPEAKERS = {"prompt": "user", "say": "agent", "plan": "agent", "agent": "subagent"}


class SourceStep(NamedTuple):
    """A step that a node is based on, with the matching sentence."""

    node: NodeId
    step: str
    session: str
    at: str
    by: str
    """`user`, `agent`, `subagent` or `program` for messages, else the kind: `command`, `write`,
    `read`."""
    text: str


class TraceResult(NamedTuple):
    """The answer of `ctx trace`."""

    start: NodeId
    steps: tuple[ReachedNode, ...]
    nodes: tuple[Node, ...]
    short_ids: Mapping[NodeId, str]
    left_out: int
    evidence: tuple[SourceStep, ...] = ()
    """The steps that these nodes are based on, as far as they are stored."""
    forgotten: int = 0
    """How many of the steps are no longer stored."""


def trace(
    memory: Memory, start: NodeId, *, reverse: bool, edge_types: Sequence[str], depth: int | None
) -> TraceResult:
    reached = walk.trace(memory.graph, start, reverse=reverse, edge_types=edge_types, depth=depth)
    result = TraceResult(*graph_walk(memory.graph, start, reached))
    if reverse:
        return result
    evidence, forgotten = steps_behind(memory, result.nodes)
    return result._replace(evidence=evidence, forgotten=forgotten)


def steps_behind(memory: Memory, nodes: Iterable[Node]) -> tuple[tuple[SourceStep, ...], int]:
    """The steps that nodes are based on, in the order of the nodes, and how many are not stored."""
    named = [(node, step) for node in nodes for step in evidence_of(node.metadata)]
    wanted = dict.fromkeys(step for _, step in named[:LONGEST_QUOTE])
    stored = {each.id: each for each in steps.with_ids(memory.local, list(wanted))}
    quoted = [_quoted_step(node, stored[step]) for node, step in named if step in stored]
    return tuple(quoted), len(wanted) - len(stored)


def as_markdown(steps_said: Sequence[SourceStep]) -> str:
    """The steps as markdown for an agent."""
    lines = [
        f'- {each.at[:10]} {each.by}: "{flat(each.text)}"'
        for each in steps_said[:_MOST_LISTED_STEPS]
    ]
    return "\n".join(["## What was said", "", *dict.fromkeys(lines)]) + "\n\n"


def evidence_of(metadata: Mapping[str, Any]) -> list[str]:
    """The ids of the steps that a node is based on."""
    evidence = metadata.get("evidence")
    return (
        [each for each in evidence if isinstance(each, str)] if isinstance(evidence, list) else []
    )


def _quoted_step(node: Node, step: Step) -> SourceStep:
    by = _SPEAKERS.get(step.kind, step.kind)
    if step.kind == "prompt" and not step.is_by_person:
        by = step.author or steps.SUBAGENT
    text = _sentence(step.text, node) if step.kind in _SPEAKERS else step.text or step.path
    return SourceStep(node.id, step.id, step.session, step.at, by, _shortened(text))


def _sentence(text: str, node: Node) -> str:
    """The sentence of a message with the most words of the node, or the whole message."""
    title = node.metadata.get("title")
    about = set(terms.extract(title if isinstance(title, str) else node.content[:_LONGEST]))
    best, most = "", 0
    for each in split_sentences(text):
        shared = len(about.intersection(terms.extract(each.text)))
        if shared > most:
            best, most = each.text, shared
    return best or text


def _shortened(text: str) -> str:
    line = " ".join(text[: _LONGEST * 4].split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"
