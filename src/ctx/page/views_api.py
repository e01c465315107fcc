"""What the views of the page show, for programs: context, sessions, graph, code, health, cost."""

from typing import Annotated

import msgspec

from ctx.llm.ledger_totals import GroupBy
from ctx.operations import code_file, code_folder, context, session_story, session_timeline
from ctx.operations.code_file import CodeFile
from ctx.operations.code_folder import CodeFolder
from ctx.operations.context import ContextResult
from ctx.operations.cost import CostReport, cost
from ctx.operations.health_report import DEFAULT_DAYS, HealthReport, health_report
from ctx.operations.session_story import SessionStory, StoryOptions
from ctx.operations.session_timeline import SessionPage
from ctx.page import drawn_graph
from ctx.page.api import PlaceQuery
from ctx.page.drawn_graph import DrawnGraph
from ctx.page.endpoints import ApiEndpoint
from ctx.page.requests import AUTHOR, PageRequest
from ctx.workspace import for_agents

_SessionLimit = Annotated[int, msgspec.Meta(ge=1, le=200)]
_GraphLimit = Annotated[int, msgspec.Meta(ge=1, le=drawn_graph.MOST)]
_Depth = Annotated[int, msgspec.Meta(ge=1, le=drawn_graph.DEEPEST)]
_GraphDays = Annotated[int, msgspec.Meta(ge=0, le=drawn_graph.MOST_DAYS)]
_Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
_Days = Annotated[int, msgspec.Meta(ge=1, le=90)]


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
    limit: _SessionLimit = session_timeline.DEFAULT_LIMIT


class StoryQuery(PlaceQuery, frozen=True):
    page: _Number = 0
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


class GraphQuery(PlaceQuery, frozen=True):
    node: str = ""
    """A node, an item or a file to begin with; empty for the whole project."""
    depth: _Depth = 2
    type: str = ""
    """Types of nodes, separated by commas."""
    tag: str = ""
    days: _GraphDays = 0
    """Only nodes of the last days; 0: all."""
    limit: _GraphLimit = drawn_graph.DEFAULT_LIMIT


def show_graph(request: PageRequest, query: GraphQuery) -> DrawnGraph:
    """Show memory and code as a graph, with the place of each vertex in a drawing."""
    wanted = drawn_graph.options(
        query.node, query.depth, query.limit, query.type, query.tag, query.days
    )
    return drawn_graph.drawn_graph(request, wanted)


class FolderQuery(PlaceQuery, frozen=True):
    path: str = ""
    """A folder; empty for the root of the project."""
    first: _Number = 0
    limit: _Limit = 50


class FileQuery(PlaceQuery, frozen=True):
    path: str = ""
    line: _Number = 1
    """The first line of the text."""
    limit: _Limit = 400
    """Lines of the text."""


def list_code_files(request: PageRequest, query: FolderQuery) -> CodeFolder:
    """List a folder of the code, with what memory knows about its files."""
    with request.reading() as memory:
        return code_folder.code_folder(memory, query.path, query.first, query.limit)


def show_code_file(request: PageRequest, query: FileQuery) -> CodeFile:
    """Show a file of the code: items with callers, imports, text, and what memory knows."""
    with request.reading() as memory:
        return code_file.code_file(memory, query.path, query.line, query.limit)


class HealthQuery(PlaceQuery, frozen=True):
    days: _Days = DEFAULT_DAYS


class CostQuery(PlaceQuery, frozen=True):
    since: str = "30d"
    by: GroupBy = "model"


def show_health(request: PageRequest, query: HealthQuery) -> HealthReport:
    """Show what capture does, what agents are given, and what is on disk."""
    with request.reading() as memory:
        return health_report(memory, query.days)


def show_cost(request: PageRequest, query: CostQuery) -> CostReport:
    """Show what models were asked, and what that cost."""
    with request.reading() as memory:
        environment = memory.environment
    return cost(environment.user_store, environment.user_config, query.since, query.by)


ENDPOINTS = [
    ApiEndpoint("GET", "/context", show_context),
    ApiEndpoint("GET", "/sessions", list_sessions),
    ApiEndpoint("GET", "/sessions/{session}", show_session),
    ApiEndpoint("GET", "/graph", show_graph),
    ApiEndpoint("GET", "/code/files", list_code_files),
    ApiEndpoint("GET", "/code/file", show_code_file),
    ApiEndpoint("GET", "/health", show_health),
    ApiEndpoint("GET", "/cost", show_cost),
]
