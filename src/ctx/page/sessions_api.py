"""Sessions over the HTTP API: a page of the list, and one session as a story."""

from typing import Annotated

import msgspec

from ctx.operations import session_story, session_timeline
from ctx.operations.session_story import SessionStory, StoryOptions
from ctx.operations.session_timeline import SessionPage
from ctx.page.api import PlaceQuery
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import PageRequest

_Limit = Annotated[int, msgspec.Meta(ge=1, le=200)]
_Page = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class SessionsQuery(PlaceQuery, frozen=True):
    all: bool = False
    """Those of every project."""
    host: str = ""
    text: str = ""
    since: str = ""
    """A day, in UTC, as `until` is."""
    until: str = ""
    before: str = ""
    after: str = ""
    limit: _Limit = session_timeline.DEFAULT_LIMIT


class StoryQuery(PlaceQuery, frozen=True):
    page: _Page = 0
    step: str = ""
    text: str = ""
    receipt: str = ""


def list_sessions(request: PageRequest, query: SessionsQuery) -> SessionPage:
    """List sessions, the most recently active first."""
    with request.reading() as memory:
        project = None if query.all else memory.project
        options = session_timeline.Options(
            *(project, query.host, query.text, query.until, query.before, query.after),
            limit=query.limit,
            since=query.since,
        )
        return session_timeline.list_page(memory, options)


def show_session(request: PageRequest, query: StoryQuery) -> SessionStory:
    """Show a session as a story, with the steps behind each line."""
    options = StoryOptions(query.page, query.step, query.text, query.receipt)
    with request.reading() as memory:
        return session_story.story(memory, request.path["session"], options)


ENDPOINTS = [
    ApiEndpoint("GET", "/sessions", list_sessions),
    ApiEndpoint("GET", "/sessions/{session}", show_session),
]
