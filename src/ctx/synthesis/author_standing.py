"""Takes the standing of the user's words from nodes that rest on prompts of somebody else.

What a subagent was told, or what a program sent, may have been stored as the user's before that was
known. Such a node keeps its text, but it is an agent's from then on: no rule, no correction, less
certain, and without a tier, unless a person gave it one. A node stays as it is if a step that it
rests on is not stored any more, if any of its prompts is a person's, or if a person edited it.
"""

from collections.abc import Iterable, Mapping
from sqlite3 import Connection

from ctx.capture import prompt_authors, steps
from ctx.capture.steps import Author
from ctx.ids import NodeId
from ctx.memory import lookups, model, records, sources
from ctx.memory.changes import Change
from ctx.memory.learning_confidence import INFERRED
from ctx.memory.lookups import NodeStatement
from ctx.synthesis.statements import BY_AGENT

_RULES = ("kind:rule", "kind:correction")
_NAMED = ("Said by the user.", "Proposed by the agent, agreed to by the user.")
_DERIVED = "DERIVED_FROM"


def correct(change: Change, local: Connection, sessions: Iterable[str]) -> list[NodeId]:
    """Inside a change: correct the nodes of some sessions; which ones were."""
    graph = change.graph
    nodes = {
        node.id: node
        for session in sessions
        for node in lookups.of_session(graph.connection, session)
        if _is_by_user(node)
    }
    evidence = {node.id: _evidence(node) for node in nodes.values()}
    authors = prompt_authors.of_steps(
        local, list(dict.fromkeys(step for each in evidence.values() for step in each))
    )
    kinds = {step.id: step.kind for step in steps.with_ids(local, list(authors))}
    corrected = [
        node.id
        for node in nodes.values()
        if _is_by_others(evidence[node.id], authors, kinds)
        and not _is_edited_by_person(change, node.id)
    ]
    for node_id in corrected:
        _correct(change, nodes[node_id])
    if corrected:
        change.write()
        corrected += _correct_learnings(change)
    return corrected


def _is_by_user(node: NodeStatement) -> bool:
    return model.from_json(node.metadata).get("said_by") == sources.USER


def _evidence(node: NodeStatement) -> list[str]:
    found = model.from_json(node.metadata).get("evidence")
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _is_by_others(
    evidence: list[str], authors: Mapping[str, Author], kinds: Mapping[str, str]
) -> bool:
    """Whether all prompts and answers behind a node are known, and somebody else's."""
    said = [step for step in evidence if kinds.get(step) in ("prompt", "plan", None)]
    return bool(said) and all(authors.get(step) in (steps.SUBAGENT, steps.PROGRAM) for step in said)


def _is_edited_by_person(change: Change, node_id: NodeId) -> bool:
    about = records.records_about(change.graph.connection, node_id, "node.")
    return any(sources.source_of_author(record.author) == sources.USER for record in about)


def _correct(change: Change, node: NodeStatement) -> None:
    confidence = model.from_json(node.metadata).get("confidence")
    sure = min(confidence, BY_AGENT) if isinstance(confidence, int) else BY_AGENT
    content = node.content
    for named in _NAMED:
        content = content.removesuffix(named).rstrip()
    change.update_node(
        node.id,
        content=content,
        metadata={
            "said_by": sources.AGENT,
            sources.KEY: sources.AGENT,
            "confidence": sure,
            "lasting": None,
        },
    )
    for tag in _RULES:
        if change.untag(node.id, tag):
            change.tag(node.id, "kind:statement")
    for tier in model.TIERS:
        if change.has_tag(node.id, tier) and not _is_tagged_by_person(change, node.id, tier):
            change.untag(node.id, tier)


def _is_tagged_by_person(change: Change, node_id: NodeId, tag: str) -> bool:
    about = records.records_about(change.graph.connection, node_id, "tag.add")
    given = [record for record in about if record.key == tag]
    newest = max(given, key=lambda record: record.order, default=None)
    return newest is not None and sources.source_of_author(newest.author) == sources.USER


def _correct_learnings(change: Change) -> list[NodeId]:
    """The learnings that rest on no words of the user any more."""
    graph, found = change.graph, []
    for node_id in lookups.learnings(graph.connection, None, everywhere=True):
        about = graph.node(node_id).metadata
        if about.get("origin") != INFERRED or about.get(sources.KEY) != sources.USER:
            continue
        rests_on = [edge.to_id for edge in graph.edges(node_id, "out", _DERIVED)]
        said_by = [graph.node(each).metadata.get("said_by") for each in rests_on]
        if said_by and sources.USER not in said_by:
            change.update_node(node_id, metadata={sources.KEY: sources.AGENT})
            found.append(node_id)
    return found
