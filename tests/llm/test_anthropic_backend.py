"""Anthropic's Messages, against a server over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ctx.errors import ModelFailure
from ctx.llm.anthropic_backend import Anthropic
from ctx.llm.http_client import RequestRefused
from ctx.llm.protocol import Answer, Backend, Capabilities, Request, Usage, ignore
from ctx.llm.retry import RetryPolicy
from tests.contract.llm_backends import QUESTION, BackendContract, Metered, RequestCount
from tests.llm import model_server
from tests.llm.model_server import Body, Cut, Says, Server, ServerRequest, Status

PATIENCE = RetryPolicy(silence_s=10, retries=2, pause_s=0.01)
MARK = {"type": "ephemeral"}


@pytest.fixture
def backend(server: Server) -> Iterator[Anthropic]:
    backend = Anthropic(server.url, "scripted-1", "sk-ant-key", PATIENCE)
    yield backend
    backend.close()


class TestAnthropic(BackendContract):
    @pytest.fixture
    def backend(self, server: Server) -> Iterator[Backend]:
        backend = Anthropic(server.url, "scripted-1", self.KEY, PATIENCE)
        yield backend
        backend.close()

    @pytest.fixture
    def request_count(self, server: Server) -> RequestCount:
        return lambda: len(server.questions)


def events(*values: dict[str, Any]) -> Body:
    """A stream of these events."""
    lines = [f"event: {value['type']}\ndata: {json.dumps(value)}\n\n" for value in values]
    return Body("".join(lines).encode(), "text/event-stream")


START = {
    "type": "message_start",
    "message": {
        "model": "m",
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 100,
            "output_tokens": 1,
        },
    },
}
STOP = {"type": "message_stop"}


def block(**delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": delta}


def end(reason: str = "end_turn", **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def test_a_request_and_its_answer_are_complete(server: Server, backend: Anthropic) -> None:
    server.plan(Says("Blue", "."))
    meter = Metered()
    request = Request("Be brief.", ("The pack.", "The map.", "Which colour?"), 9, temperature=1.7)
    answer = backend.ask(request, meter, ignore)
    [asked] = server.received
    assert (asked.path, asked.body) == (
        "/v1/messages",
        {
            "model": "scripted-1",
            "max_tokens": 9,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "The pack.", "cache_control": MARK},
                        {"type": "text", "text": "The map.", "cache_control": MARK},
                        {"type": "text", "text": "Which colour?"},
                    ],
                }
            ],
            "stream": True,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
            "temperature": 1.0,
        },
    )
    assert asked.headers["x-api-key"] == "sk-ant-key"
    assert asked.headers["anthropic-version"] == "2023-06-01"
    [call] = meter.calls
    assert call.tokens == asked.size + 9
    assert answer._replace(duration_ms=0) == Answer("Blue.", "scripted-1", Usage(39, 2, 19), "end")
    assert server.spent == meter.counted == 41
    assert not backend.is_free


def test_the_number_of_cache_marks_is_limited_and_blank_parts_are_joined(
    server: Server, backend: Anthropic
) -> None:
    request = Request(" ", ("", "1", "\n", "2", "3", "4", "5", " "), 9)
    backend.ask(request, Metered(), ignore)
    body = server.received[-1].body
    content = body["messages"][0]["content"]
    assert [block["text"] for block in content] == ["1\n", "2", "3", "4", "5 "]
    assert ["cache_control" in block for block in content] == [False, True, True, True, False]
    assert "system" not in body
    assert "temperature" not in body


@pytest.mark.parametrize("given", ["", "/", "/v1", "/v1/messages"])
def test_an_incomplete_address_is_completed(server: Server, given: str) -> None:
    backend = Anthropic(server.url + given, "scripted-1", "", PATIENCE)
    backend.ask(QUESTION, Metered(), ignore)
    assert server.received[-1].path == "/v1/messages"
    assert "x-api-key" not in server.received[-1].headers
    backend.close()


def test_the_default_address_is_the_service() -> None:
    assert Anthropic("", "m", "k", PATIENCE).where == "https://api.anthropic.com/v1"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            [START, block(text="Blue"), end(output_tokens=3), STOP],
            Answer("Blue", "m", Usage(125, 3, 100), "end"),
        ),
        (
            [START, block(text="Blu"), end("max_tokens", output_tokens=2), STOP],
            Answer("Blu", "m", Usage(125, 2, 100), "length"),
        ),
        (
            [START, end("refusal", output_tokens=1), STOP],
            Answer("", "m", Usage(125, 1, 100), "refused"),
        ),
        # It thinks first; it writes something that is no text.
        (
            [
                START,
                block(type="thinking_delta", thinking="Hm."),
                block(text="Blue"),
                block(partial_json="{"),
                block(text=7),
                end(output_tokens=9),
                STOP,
            ],
            Answer("Blue", "m", Usage(125, 9, 100), "end"),
        ),
        # It does not say what it wrote.
        ([START, block(text="Blue"), end(), STOP], Answer("Blue", "m", None, "end")),
        (
            [block(text="Blue"), end(output_tokens=3), STOP],
            Answer("Blue", "scripted-1", None, "end"),
        ),
        # All at once.
        (
            [
                {
                    "type": "message",
                    "model": "m",
                    "content": [{"type": "thinking"}, {"type": "text", "text": "Blue"}],
                    "stop_reason": "end_turn",
                    "usage": {"input_tokens": 5, "output_tokens": 2},
                }
            ],
            Answer("Blue", "m", Usage(5, 2), "end"),
        ),
    ],
)
def test_the_events_of_an_answer_are_read(
    server: Server, backend: Anthropic, told: list[Any], expected: Answer
) -> None:
    server.plan(events(*told))
    heard: list[str] = []
    meter = Metered()
    answer = backend.ask(QUESTION, meter, heard.append)
    assert answer._replace(duration_ms=0) == expected
    assert "".join(heard) == expected.text
    assert meter.calls[-1].settled == expected.usage


def test_overload_is_retried_before_the_first_piece(server: Server, backend: Anthropic) -> None:
    overloaded = error("overloaded_error", "Overloaded")
    server.plan(Status(529), events(START, {"type": "ping"}, overloaded), Says("Blue"))
    meter = Metered()
    assert backend.ask(QUESTION, meter, ignore).text == "Blue"
    assert [call.is_open for call in meter.calls] == [True, True, False]
    server.plan(events(START, block(text="The sky"), overloaded))
    answer = backend.ask(QUESTION, meter, ignore)
    assert answer._replace(duration_ms=0) == Answer(
        "The sky",
        "m",
        None,
        "cut",
        f"Anthropic at {server.url}/v1 broke off with an error: Overloaded.",
    )
    assert len(server.questions) == 4


def test_a_permanent_error_is_raised_at_once(server: Server, backend: Anthropic) -> None:
    server.otherwise = events(error("invalid_request_error", "That is no request."))
    with pytest.raises(ModelFailure) as raised:
        backend.ask(QUESTION, Metered(), ignore)
    assert raised.value.message == (
        f"Anthropic at {server.url}/v1 broke off with an error: That is no request."
    )
    assert len(server.questions) == 1


def test_usage_of_a_broken_connection_is_not_settled(server: Server, backend: Anthropic) -> None:
    server.plan(Cut(Says("The sky", " is", " blue"), 700))
    meter = Metered()
    answer = backend.ask(QUESTION, meter, ignore)
    assert (answer.text, answer.stop, answer.usage) == ("The sky is", "cut", None)
    assert [call.is_open for call in meter.calls] == [True]


def test_a_model_without_temperature_is_asked_without_it(
    server: Server, backend: Anthropic
) -> None:
    def step(asked: ServerRequest) -> model_server.Step:
        if "temperature" in asked.body:
            return Status(400, error("invalid_request_error", "`temperature` is deprecated."))
        return Says("Blue")

    server.otherwise = step
    request = QUESTION._replace(temperature=0.2)
    for _ in range(2):
        assert backend.ask(request, Metered(), ignore).text == "Blue"
    assert len(server.questions) == 3
    server.otherwise = Status(400, error("invalid_request_error", "`temperature`?"))
    with pytest.raises(RequestRefused, match="temperature"):
        backend.ask(request, Metered(), ignore)


def test_a_wrong_key_is_an_error(server: Server, backend: Anthropic) -> None:
    server.otherwise = Status(401, error("authentication_error", "invalid x-api-key sk-ant-key"))
    with pytest.raises(RequestRefused) as raised:
        backend.ask(QUESTION, Metered(), ignore)
    assert (
        raised.value.message == f"Anthropic at {server.url}/v1 refused (401): invalid x-api-key …."
    )
    assert (
        raised.value.hint == "`llm.api_key_env` names the environment variable that holds the key."
    )


# Looking


def test_a_probe_requests_only_the_model(server: Server, backend: Anthropic) -> None:
    assert backend.probe() == Capabilities("scripted-1", detail="Scripted")
    assert [asked.path for asked in server.received] == ["/v1/models/scripted-1"]
    server.pages["GET /v1/models/scripted-1"] = ["?"]
    assert backend.probe() == Capabilities("scripted-1")


@pytest.mark.parametrize(
    ("model", "message"),
    [("default", "Anthropic has no default model."), ("other", "has no model `other`")],
)
def test_the_model_must_be_configured_and_exist(server: Server, model: str, message: str) -> None:
    backend = Anthropic(server.url, model, "", PATIENCE)
    with pytest.raises(ModelFailure) as raised:
        backend.probe()
    if model == "default":
        meter = Metered()
        with pytest.raises(ModelFailure, match="no default model"):
            backend.ask(QUESTION, meter, ignore)
        assert (server.received, meter.calls) == ([], [])
    assert message in raised.value.message
    assert raised.value.hint == "`ctx config set llm.model NAME` sets the model."
    backend.close()
