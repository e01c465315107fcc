"""The client of the SDK talks to the real process over its pipes."""

import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, InitializeResult, TextContent

from tests.mcp.processes import CTX, environment

T = TypeVar("T")

SENTENCE = "Payments are retried three times, because banks are slow."


class SdkClient:
    """A session of the SDK's client, for tests that are not asynchronous."""

    def __init__(self, portal: BlockingPortal, session: ClientSession, home: Path) -> None:
        self._portal = portal
        self.session = session
        self.home = home
        self.initialized: InitializeResult

    def run(self, work: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        return self._portal.call(work, *arguments)

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        answer = self.run(self.session.call_tool, tool, arguments)
        assert isinstance(answer, CallToolResult)
        return answer


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SdkClient]:
    """One server for all tests here: starting one takes seconds."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "shop"
    folder.mkdir()
    variables = environment(home, CTX_SESSION="agent-7")
    for words in (
        ["git", "init", "-q"],
        [str(CTX), "init"],
        [str(CTX), "add", "decision", SENTENCE],
    ):
        subprocess.run(words, cwd=folder, env=variables, check=True, capture_output=True)
    server = StdioServerParameters(command=str(CTX), args=["mcp"], cwd=folder, env=variables)
    with start_blocking_portal() as portal:
        pipes = portal.wrap_async_context_manager(stdio_client(server))
        with pipes as (reading, writing):
            session = ClientSession(reading, writing)
            with portal.wrap_async_context_manager(session):
                client = SdkClient(portal, session, home)
                client.initialized = client.run(session.initialize)
                yield client


def text(answer: CallToolResult) -> str:
    [content] = answer.content
    assert isinstance(content, TextContent)
    return content.text


def test_it_introduces_itself(client: SdkClient) -> None:
    told = client.initialized
    assert told.server_info.name == "ctx"
    assert told.instructions is not None
    assert told.instructions.startswith("Durable memory of this project")
    assert told.capabilities.tools is not None
    assert told.capabilities.resources is not None
    assert told.capabilities.prompts is not None


def test_tools_have_schemas_and_hints(client: SdkClient) -> None:
    tools = client.run(client.session.list_tools).tools
    assert [tool.name for tool in tools] == ["recall", "remember", "pack", "timeline", "forget"]
    for tool in tools:
        assert tool.description
        assert tool.input_schema["type"] == "object"
        assert tool.output_schema is not None
        assert tool.annotations is not None
        assert tool.annotations.open_world_hint is False
        assert tool.annotations.read_only_hint is (tool.name in ("recall", "pack", "timeline"))


def test_every_tool_answers_in_both_forms(client: SdkClient) -> None:
    """The client checks the structured form against the schema of the tool."""
    client.run(client.session.list_tools)
    index = client.call("recall", query="how often are payments retried")
    assert index.structured_content["results"][0]["kind"] == "decision"
    node = index.structured_content["results"][0]["id"]
    assert node in text(index)
    assert "banks are slow" in text(client.call("recall", ids=[node]))
    kept = client.call("remember", text="The gateway answers 429", type="fact")
    assert kept.structured_content["id"] in text(kept)
    assert "banks are slow" in text(client.call("pack", task="how payments are retried"))
    assert client.call("timeline", around=node).structured_content["entries"]
    gone = client.call("forget", ids=[kept.structured_content["id"]])
    assert gone.structured_content["forgotten"] == [kept.structured_content["id"]]


def test_a_tool_error_is_an_answer_with_a_code_and_a_hint(client: SdkClient) -> None:
    answer = client.call("recall", ids=["x"] * 51)
    assert answer.is_error
    assert answer.structured_content["error"]["code"] == "E011"
    assert answer.structured_content["error"]["hint"]
    assert text(answer).startswith("E011: ")


def test_an_unknown_tool_is_an_error_of_the_protocol(client: SdkClient) -> None:
    with pytest.raises(MCPError, match="There is no tool"):
        client.call("reboot")


def test_resources_are_listed_and_read(client: SdkClient) -> None:
    session = client.session
    [context] = client.run(session.list_resources).resources
    templates = client.run(session.list_resource_templates).resource_templates
    assert [each.uri_template for each in templates] == ["ctx://node/{id}", "ctx://session/{id}"]

    def read(address: str) -> str:
        [content] = client.run(session.read_resource, address).contents
        return str(getattr(content, "text", ""))

    assert "Payments are retried" in read(str(context.uri))
    node = client.call("recall", query="payments").structured_content["results"][0]["id"]
    assert SENTENCE in read(f"ctx://node/{node}")
    with pytest.raises(MCPError, match="E020"):
        read("ctx://node/nope")
    with pytest.raises(MCPError, match="E030"):
        read("ctx://session/no-such-session")
    with pytest.raises(MCPError, match="There is no resource"):
        read("ctx://everything")


def test_prompts_are_listed_and_filled_in(client: SdkClient) -> None:
    session = client.session
    names = [each.name for each in client.run(session.list_prompts).prompts]
    assert names == ["context", "recall", "wrap-up"]
    asked = client.run(session.get_prompt, "recall", {"question": "Why SQLite?"})
    assert "Why SQLite?" in str(asked.messages[0].content)
    given = client.run(session.get_prompt, "context")
    assert "Payments are retried" in str(given.messages[0].content)
    with pytest.raises(MCPError, match="needs the argument"):
        client.run(session.get_prompt, "recall", {})


def test_a_cancelled_call_leaves_a_server_that_answers(client: SdkClient) -> None:
    async def give_up() -> None:
        with anyio.move_on_after(0.01):
            await client.session.call_tool("pack", {"task": "how payments are retried"})

    client.run(give_up)
    assert client.call("recall", query="payments").structured_content["total"] == 1


def test_what_was_given_has_receipts_of_the_session(client: SdkClient) -> None:
    client.call("recall", query="payments retried")
    # Receipts are written after the answer, before the next call that writes.
    client.call("forget", ids=["nope"])
    done = subprocess.run(
        [CTX, "why", "agent-7"],
        cwd=client.home / "shop",
        env=environment(client.home),
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("recall for shop")
    assert "Payments are retried" in done.stdout
