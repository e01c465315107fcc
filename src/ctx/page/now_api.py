"""What a session would be given, for programs."""

from typing import Annotated

import msgspec

from ctx.operations import context
from ctx.operations.context import ContextResult
from ctx.page.api import PlaceQuery
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import AUTHOR, PageRequest
from ctx.workspace import for_agents


class ContextQuery(PlaceQuery, frozen=True):
    prompt: Annotated[str, msgspec.Meta(max_length=6_000)] = ""


def show_context(request: PageRequest, query: ContextQuery) -> ContextResult:
    """What a session gets that starts now, or with `prompt` as its first prompt."""
    with (
        request.reading() as memory,
        for_agents(memory, request.environment.folder, memory.session, AUTHOR) as there,
    ):
        if query.prompt.strip():
            return context.prompt_context(there, query.prompt)
        return context.context(there)


ENDPOINTS = [ApiEndpoint("GET", "/context", show_context)]
