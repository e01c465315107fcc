"""What waits for a decision of the user, for programs. Each decision answers with what is left."""

from typing import Annotated, Literal

import msgspec

from ctx.errors import UsageError
from ctx.operations import learnings, review, visibility
from ctx.operations.review import Review
from ctx.page.api import PlaceQuery
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import PageRequest

_Offset = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
_Ids = Annotated[list[str], msgspec.Meta(min_length=1, max_length=200)]


class ReviewQuery(PlaceQuery, frozen=True):
    learnings_after: _Offset = 0
    imports_after: _Offset = 0


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Accept or reject some nodes."""

    decision: Literal["accept", "reject"]
    ids: _Ids


class ProposalDecision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Accept or reject proposals of agents; without `ids`, all of them."""

    decision: Literal["accept", "reject"]
    ids: _Ids | None = None


class ConflictDecision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settle a field with one of its versions, or with another value."""

    id: str
    field: str
    version: int | None = None
    value: str | None = None


def open_decisions(request: PageRequest, query: ReviewQuery) -> Review:
    """List what waits for a decision."""
    with request.reading() as memory:
        queue = review.review(
            memory, learnings_after=query.learnings_after, imports_after=query.imports_after
        )
    if request.browser:
        return queue
    # An agent may read what a program is sent.
    return queue.without_foreign_text


def decide_proposals(
    request: PageRequest,
    query: PlaceQuery,  # noqa: ARG001
    body: ProposalDecision,
) -> Review:
    """Accept or reject what agents propose."""
    _require_person(request)
    with request.writing() as memory:
        review.decide(memory, body.ids, accepting=body.decision == "accept")
        return review.review(memory)


def decide_learnings(
    request: PageRequest,
    query: PlaceQuery,  # noqa: ARG001
    body: Decision,
) -> Review:
    """Confirm or reject learnings."""
    _require_person(request)
    decide = learnings.confirm if body.decision == "accept" else learnings.reject
    with request.writing() as memory:
        for node_id in [memory.graph.find(name) for name in body.ids]:
            decide(memory, node_id)
        return review.review(memory)


def decide_imports(
    request: PageRequest,
    query: PlaceQuery,  # noqa: ARG001
    body: Decision,
) -> Review:
    """Accept imported nodes as said by the user, or hide them from agents."""
    _require_person(request)
    decide = visibility.accept if body.decision == "accept" else visibility.hide
    with request.writing() as memory:
        decide(memory, [memory.graph.find(name) for name in body.ids])
        return review.review(memory)


def settle_conflict(
    request: PageRequest,
    query: PlaceQuery,  # noqa: ARG001
    body: ConflictDecision,
) -> Review:
    """Settle a field that two branches changed."""
    _require_person(request)
    if (body.version is None) == (body.value is None):
        raise UsageError("Give either `version` or `value`.")
    with request.writing() as memory:
        node_id = review.find(memory, body.id)
        if body.version is not None:
            review.pick(memory, node_id, body.field, body.version)
        else:
            review.replace(memory, node_id, body.field, body.value)
        return review.review(memory)


def _require_person(request: PageRequest) -> None:
    if request.browser is None:
        raise UsageError("Only a person can decide this.", hint="Open the page: `ctx ui`")


ENDPOINTS = [
    ApiEndpoint("GET", "/review", open_decisions),
    ApiEndpoint("POST", "/review/proposals", decide_proposals),
    ApiEndpoint("POST", "/review/learnings", decide_learnings),
    ApiEndpoint("POST", "/review/imports", decide_imports),
    ApiEndpoint("POST", "/review/conflicts", settle_conflict),
]
