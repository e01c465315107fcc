"""The protocol: what the SDK is told, and errors as answers.

A tool error is an answer with `isError`, which the model reads: it has our code, one sentence and a
hint. Everything else that fails is an error of the protocol.

An answer has a text and a JSON object. Claude Code and Codex show a model the object, most others
the text. A host that shows both gets the text alone, and tools without a schema for the object.

Only the handshake with `initialize` is served. Hosts that know the newer protocol without one ask
for `server/discover` first, and use the handshake if a server does not know that method.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_connection
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import WriteStream
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from pydantic import ValidationError

from ctx import __version__, layout
from ctx.errors import CtxError, UsageError
from ctx.markdown import visible
from ctx.mcp import prompts, resources
from ctx.mcp.agent_place import AgentPlace, agent_place
from ctx.mcp.call_thread import CallThread, RunningCall
from ctx.mcp.lifetime import Lifetime
from ctx.mcp.tools import TOOLS, Tool, ToolAnswer
from ctx.workspace import Environment

NAME = "ctx"
INSTRUCTIONS = (
    "Durable memory of this project: decisions, rules, past failures and earlier sessions. Call"
    " recall before you decide something or ask the user, pack at the start of a task, remember for"
    " what later sessions need, timeline for what happened to a file."
)
"""Hosts that load tools later show a model little more than the first sentence."""

_NOT_FOUND = -32002
_ROOTS_SECONDS = 5.0
"""How long a host may take to name its folders."""
_Context = ServerRequestContext[Any, Any]


class MemoryServer:
    def __init__(
        self,
        environment: Environment,
        session_in_call: Callable[[Mapping[str, Any]], str],
        is_doubling_client: Callable[[str], bool],
    ) -> None:
        self.reads, self.writes = CallThread(), CallThread()
        self._environment = environment._replace(
            keep_later=lambda write: self.writes.begin(lambda _call: write())
        )
        self._session_in_call = session_in_call
        self._is_doubling_client = is_doubling_client
        self._asks_for_folder = not _is_in_project(environment)
        self.protocol: Server[Any] = Server(
            NAME,
            version=__version__,
            title="ctx memory",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )
        self.protocol.middleware.append(self._after_initialising)

    async def run(self) -> None:
        """Serve until the input ends."""
        async with stdio_server() as (reading, writing):
            try:
                # As the SDK's `serve_loop`, which drops lines that cannot be read.
                dispatcher = JSONRPCDispatcher[TransportContext](
                    reading,
                    writing,
                    inline_methods=frozenset({"initialize"}),
                    on_stream_exception=partial(_answer_unreadable, writing),
                )
                await serve_connection(
                    self.protocol,
                    dispatcher,
                    connection=Connection.for_loop(dispatcher),
                    lifespan_state={},
                    init_options=self.protocol.create_initialization_options(),
                )
            finally:
                await writing.aclose()

    # Tools

    async def _list_tools(self, context: _Context, _params: object) -> types.ListToolsResult:
        is_typed = not self._wants_text_alone(context)
        tools = [_described(tool, is_typed=is_typed) for tool in TOOLS.values()]
        return types.ListToolsResult(tools=tools)

    async def _call_tool(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:40]!r}.")
        place = await self._place(context)

        def work(call: RunningCall) -> ToolAnswer:
            return tool.answer(place, tool.parse(params.arguments), call)

        try:
            thread = self.reads if tool.is_read_only else self.writes
            answer = await self._run(work, context, thread)
        except CtxError as error:
            answer, is_error = _tool_error(error), True
        else:
            is_error = False
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)],
            structured_content=None if self._wants_text_alone(context) else answer.data,
            is_error=is_error,
        )

    # Resources

    async def _list_resources(
        self, _context: _Context, _params: object
    ) -> types.ListResourcesResult:
        context = types.Resource(
            uri=resources.CONTEXT,
            name="context",
            description="What is known about this project",
            mime_type=resources.MARKDOWN,
        )
        return types.ListResourcesResult(resources=[context])

    async def _list_templates(
        self, _context: _Context, _params: object
    ) -> types.ListResourceTemplatesResult:
        described = {
            "node": (resources.NODE, "A node with its edges"),
            "session": (resources.SESSION, "The summary of a session"),
        }
        templates = [
            types.ResourceTemplate(
                uri_template=f"{start}{{id}}",
                name=name,
                description=description,
                mime_type=resources.MARKDOWN,
            )
            for name, (start, description) in described.items()
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def _read_resource(
        self, context: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        address, place = str(params.uri), await self._place(context)
        try:
            text = await self._run(lambda call: resources.read(place, address, call), context)
        except CtxError as error:
            raise MCPError(_NOT_FOUND, _sentence(error), {"code": error.code}) from None
        contents = types.TextResourceContents(
            uri=params.uri, mime_type=resources.MARKDOWN, text=text
        )
        return types.ReadResourceResult(contents=[contents])

    # Prompts

    async def _list_prompts(self, _context: _Context, _params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=each.name,
                    description=each.description,
                    arguments=[types.PromptArgument(name=each.argument, required=True)]
                    if each.argument
                    else [],
                )
                for each in prompts.PROMPTS.values()
            ]
        )

    async def _get_prompt(
        self, context: _Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        place = await self._place(context)
        argument = next(iter((params.arguments or {}).values()), "")
        try:
            text = await self._run(
                lambda call: prompts.text(place, params.name, argument, call), context
            )
        except CtxError as error:
            data = {"code": error.code}
            raise MCPError(types.INVALID_PARAMS, _sentence(error), data) from None
        message = types.PromptMessage(
            role="user", content=types.TextContent(type="text", text=text)
        )
        description = prompts.PROMPTS[params.name].description
        return types.GetPromptResult(description=description, messages=[message])

    # What a call works with

    def _wants_text_alone(self, context: _Context) -> bool:
        params = context.session.client_params
        return params is not None and self._is_doubling_client(params.client_info.name)

    async def _place(self, context: _Context) -> AgentPlace:
        if self._asks_for_folder:
            self._asks_for_folder = False
            folder = await _folder_of_host(context)
            self._environment = self._environment._replace(
                folder=folder or self._environment.folder
            )
        return agent_place(self._environment, self._session_in_call, context.meta or {})

    async def _run(
        self,
        work: Callable[[RunningCall], Any],
        context: _Context,
        thread: CallThread | None = None,
    ) -> Any:
        async def report(seconds: float) -> None:
            await context.session.report_progress(seconds, None, f"{seconds:.0f} s")

        return await (thread or self.reads).run(work, report)

    def finish(self, seconds: float) -> None:
        """Wait for the calls that are running, and for the receipts of those that have ended."""
        for thread in (self.reads, self.writes):
            thread.finish(seconds)

    async def _after_initialising(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        """Load what calls need as soon as the client knows the server."""
        answer = await call_next(ctx)
        if ctx.method == "notifications/initialized":
            self.reads.begin(lambda call: _warm_up(AgentPlace(self._environment), call))
        return answer


def serve(
    environment: Environment,
    session_in_call: Callable[[Mapping[str, Any]], str],
    is_doubling_client: Callable[[str], bool],
) -> None:
    """Serve one host on stdin and stdout, until it closes them, ends, or a signal arrives."""
    if sys.stdin is None:
        raise UsageError("`ctx mcp` needs stdin.", hint="A host starts it.")
    # The SDK logs to stderr, which hosts show as errors of the server.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    server = MemoryServer(environment, session_in_call, is_doubling_client)
    lifetime = Lifetime(server.finish)
    lifetime.watch()
    try:
        anyio.run(server.run)
    except* OSError:
        # The host has closed the pipe, or its output cannot be written.
        lifetime.end(1)
    lifetime.end(0)


def _warm_up(place: AgentPlace, call: RunningCall) -> None:
    from ctx.operations import recall, recall_index
    from ctx.operations.passages import KINDS
    from ctx.packs import node_vectors

    # A store that cannot be read is reported by the call that needs it.
    with suppress(CtxError), place.open(writing=False) as memory:
        nearness = node_vectors.nearness(memory, NAME, call.vectors)
        limit = recall_index.DEFAULT_LIMIT
        recall.recall_everything(memory, recall.Options(NAME, limit), KINDS, nearness)


async def _answer_unreadable(writing: WriteStream[SessionMessage], problem: Exception) -> None:
    """Answer a line that is no message. Whose answer that is cannot be known: it has no id."""
    errors = problem.errors() if isinstance(problem, ValidationError) else []
    unparsed = [error["input"] for error in errors if error["type"] == "json_invalid"]
    if unparsed and not unparsed[0].strip():
        return
    if unparsed:
        data = types.ErrorData(code=types.PARSE_ERROR, message="This line is not valid JSON.")
    else:
        data = types.ErrorData(
            code=types.INVALID_REQUEST, message="This is not a message of JSON-RPC 2.0."
        )
    answer = types.JSONRPCError(jsonrpc="2.0", id=None, error=data)
    await writing.send(SessionMessage(answer))


def _is_in_project(environment: Environment) -> bool:
    home = environment.user_store.home
    return layout.place(environment.folder, home, lambda _: False).project is not None


async def _folder_of_host(context: _Context) -> str:
    """The folder in which the host works, for hosts that start servers in another one; empty if the
    host does not tell."""
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return ""
    try:
        answer = await context.session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, _ROOTS_SECONDS
        )
    except (MCPError, ValueError):
        # The host refuses, takes too long, or answers with something else.
        return ""
    paths = [urlsplit(str(root.uri)) for root in answer.roots]
    folders = [unquote(each.path) for each in paths if each.scheme == "file"]
    return next((folder for folder in folders if os.path.isdir(folder)), "")


def _described(tool: Tool, *, is_typed: bool = True) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema if is_typed else None,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            open_world_hint=False,
        ),
    )


def _tool_error(error: CtxError) -> ToolAnswer:
    data = {"code": error.code, "message": error.message, "hint": error.hint or ""}
    if error.detail:
        data["detail"] = error.detail
    shown = {name: visible(text) for name, text in data.items()}
    return ToolAnswer({"error": shown}, _sentence(error))


def _sentence(error: CtxError) -> str:
    lines = [f"{error.code}: {error.message}", error.detail]
    return visible("\n".join(filter(None, [*lines, f"Hint: {error.hint}" if error.hint else ""])))
