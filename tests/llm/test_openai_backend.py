"""The backend for the OpenAI chat protocol, with a server over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ctx.errors import ConfigInvalid, ModelFailure
from ctx.llm.http_client import RequestRefused
from ctx.llm.openai_backend import OpenAi
from ctx.llm.protocol import Answer, Backend, Capabilities, Request, Usage, ignore
from ctx.llm.retry import RetryPolicy
from tests.contract.llm_backends import QUESTION, BackendContract, Metered, RequestCount
from tests.llm import model_server
from tests.llm.model_server import Body, Cut, Says, Server, ServerRequest, Status, Whole

PATIENCE = RetryPolicy(silence_s=10, retries=1, pause_s=0.01)
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}


@pytest.fixture
def backend(server: Server) -> Iterator[OpenAi]:
    backend = OpenAi(server.url, "scripted-1", "", PATIENCE)
    yield backend
    backend.close()


class TestOpenAi(BackendContract):
    @pytest.fixture
    def backend(self, server: Server) -> Iterator[Backend]:
        backend = OpenAi(f"{server.url}/v1/", "scripted-1", self.KEY, PATIENCE)
        yield backend
        backend.close()

    @pytest.fixture
    def request_count(self, server: Server) -> RequestCount:
        return lambda: len(server.questions)


def events(*values: Any) -> Body:
    """A stream of these events."""
    lines = [f"data: {json.dumps(value)}\n\n" for value in values]
    return Body("".join([*lines, "data: [DONE]\n\n"]).encode(), "text/event-stream")


def choice(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_a_request_and_its_answer_are_complete(server: Server, backend: OpenAi) -> None:
    server.plan(Says("Blue", ".", stop="end"))
    meter = Metered()
    request = Request("Be brief.", ("The sky.", " Which colour?"), 9, temperature=0.2)
    answer = backend.ask(request, meter, ignore)
    [asked] = server.received
    assert (asked.path, asked.body) == (
        "/v1/chat/completions",
        {
            "model": "scripted-1",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "The sky. Which colour?"},
            ],
            "stream": True,
            "max_tokens": 9,
            "stream_options": {"include_usage": True},
            "temperature": 0.2,
        },
    )
    assert "authorization" not in asked.headers
    [call] = meter.calls
    assert call.tokens == asked.size + 9
    assert answer._replace(duration_ms=0) == Answer("Blue.", "scripted-1", Usage(31, 2), "end")
    assert server.spent == meter.counted == 33


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/openai/v4/", "/openai/v4/chat/completions"),
        ("/v1beta/chat/completions", "/v1beta/chat/completions"),
        ("/deep?api-version=7", "/deep/v1/chat/completions?api-version=7"),
    ],
)
def test_an_incomplete_address_is_completed(server: Server, given: str, path: str) -> None:
    backend = OpenAi(server.url + given, "m", "a key\n", PATIENCE)
    backend.ask(QUESTION, Metered(), ignore)
    assert server.received[-1].path == path
    assert server.received[-1].headers["authorization"] == "Bearer a key"
    assert backend.is_free
    backend.close()


def test_an_invalid_address_is_refused_at_once() -> None:
    with pytest.raises(ConfigInvalid, match="not the address of a server"):
        OpenAi("127.0.0.1:8080", "m", "", PATIENCE)
    assert not OpenAi("https://api.example.com/v1", "m", "", PATIENCE).is_free


@pytest.mark.parametrize(("stop", "expected"), [("length", "length"), ("refused", "refused")])
def test_the_reason_for_the_end_is_read(
    server: Server, backend: OpenAi, stop: str, expected: str
) -> None:
    server.plan(Says("I", " can", stop=stop))
    assert backend.ask(QUESTION, Metered(), ignore).stop == expected


def test_an_answer_without_usage_is_counted_in_full(server: Server, backend: OpenAi) -> None:
    server.plan(Says("Blue", tells_usage=False), events(choice("stop", content="Blue")))
    server.plan(events({**choice("stop", content="B"), "usage": {"prompt_tokens": 0}}))
    server.plan(events({**choice("stop", content="B"), "usage": {"prompt_tokens": 10**40}}))
    used = {"prompt_tokens": True, "completion_tokens": True}
    server.plan(events(choice("stop", content="Blue."), {"usage": used}))
    meter = Metered()
    for _ in range(5):
        answer = backend.ask(QUESTION, meter, ignore)
        assert (answer.usage, answer.stop) == (None, "end")
    assert all(call.is_open for call in meter.calls)


def test_a_server_without_streaming_works(server: Server, backend: OpenAi) -> None:
    server.plan(Whole("All at once."))
    heard: list[str] = []
    answer = backend.ask(QUESTION, Metered(), heard.append)
    assert (answer.text, answer.stop, heard) == ("All at once.", "end", ["All at once."])
    assert answer.usage is not None


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        # A model that thinks first, in vLLM's and in Ollama's words.
        (
            [
                choice(reasoning_content="Hm, the sky"),
                choice(reasoning="… blue?"),
                choice(content="Blue."),
                choice("stop"),
            ],
            Answer("Blue.", "m", None, "end"),
        ),
        # One whose server takes its thoughts for the answer.
        (
            [
                choice(content="<thi"),
                choice(content="nk>Hm, the sky …</think>"),
                choice(content="\n\nBlue."),
                choice("stop"),
            ],
            Answer("Blue.", "m", None, "end"),
        ),
        # Text in parts; what was cached; use in every event.
        (
            [
                {**choice(content=[{"type": "text", "text": "Bl"}]), "usage": None},
                {
                    **choice("stop", content="ue"),
                    "usage": {
                        "prompt_tokens": 40,
                        "completion_tokens": 2,
                        "prompt_tokens_details": {"cached_tokens": 32},
                    },
                },
            ],
            Answer("Blue", "m", Usage(40, 2, 32), "end"),
        ),
        (
            [choice(refusal="I will not."), choice("stop")],
            Answer("I will not.", "m", None, "refused"),
        ),
        # Nothing to say, and nothing but nonsense before.
        (
            [{"choices": None}, {"choices": ["?"]}, {"choices": [{"delta": 7}]}, choice("stop")],
            Answer("", "m", None, "end"),
        ),
        # A second answer, that nobody asked for; half a character.
        (
            [
                {"choices": [{"index": 1, "delta": {"content": "Red"}}]},
                choice("stop", content="Blue\ud83d"),
            ],
            Answer("Blue?", "m", None, "end"),
        ),
    ],
)
def test_variants_of_servers_are_read(
    server: Server, backend: OpenAi, told: list[Any], expected: Answer
) -> None:
    server.plan(events(*told))
    heard: list[str] = []
    answer = backend.ask(QUESTION, Metered(), heard.append)
    assert answer._replace(duration_ms=0) == expected
    assert "".join(heard) == expected.text


def picky(refused: str, said: str) -> model_server.Planned:
    """A server that refuses some parameters."""

    def step(asked: ServerRequest) -> model_server.Step:
        if refused in json.dumps(asked.body):
            return Status(400, {"error": {"message": said}})
        return Says("Fine", ".")

    return step


@pytest.mark.parametrize(
    ("refused", "said", "without"),
    [
        (
            "stream_options",
            "Unrecognized request argument supplied: stream_options",
            "include_usage",
        ),
        (
            '"max_tokens"',
            "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            '"max_tokens"',
        ),
        ("temperature", "'temperature' does not support 0.2 with this model.", "temperature"),
        ('"json_schema"', "response_format.type: unknown value", "json_schema"),
        ("response_format", "response_format is not supported", "response_format"),
    ],
)
def test_a_refused_parameter_is_left_out_from_then_on(
    server: Server, backend: OpenAi, refused: str, said: str, without: str
) -> None:
    server.otherwise = picky(refused, said)
    meter = Metered()
    request = QUESTION._replace(temperature=0.2, schema=SCHEMA)
    assert backend.ask(request, meter, ignore).text == "Fine."
    refusals = len(server.questions) - 1
    assert 1 <= refusals <= 2
    assert [call.is_released for call in meter.calls] == [True] * refusals + [False]
    assert backend.ask(request, meter, ignore).text == "Fine."
    assert len(server.questions) == refusals + 2, "it remembers"
    assert without not in json.dumps(server.questions[-1].body)


def test_a_server_that_refuses_everything_is_given_up(server: Server, backend: OpenAi) -> None:
    said = "stream_options temperature response_format max_completion_tokens instead"
    server.otherwise = Status(400, {"error": said})
    with pytest.raises(RequestRefused) as raised:
        backend.ask(QUESTION._replace(temperature=0.2, schema=SCHEMA), Metered(), ignore)
    assert said in raised.value.message
    assert len(server.questions) == 6


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 8192 tokens.",
        "max_tokens is too large: 99999. This model supports at most 4096 completion tokens.",
    ],
)
def test_other_refusals_are_errors(server: Server, backend: OpenAi, said: str) -> None:
    server.otherwise = Status(400, {"error": {"message": said, "type": "invalid_request_error"}})
    with pytest.raises(RequestRefused) as raised:
        backend.ask(QUESTION, Metered(), ignore)
    assert raised.value.message == (
        f"The model's server at {server.url}/v1 refused (400): {said.rstrip('.')}."
    )
    assert len(server.questions) == 1


def test_an_answer_beyond_its_limit_is_stopped(server: Server, backend: OpenAi) -> None:
    # It thinks that it may say as much as it likes.
    server.otherwise = lambda asked: (
        Says(*["and on "] * 5_000) if asked.body.pop("max_tokens") else Says()
    )
    meter = Metered()
    answer = backend.ask(QUESTION, meter, ignore)
    assert answer.stop == "length"
    assert answer.usage is None
    heard = answer.text.count("and on ")
    assert QUESTION.max_tokens < heard < 50
    assert [(call.is_open, call.excess) for call in meter.calls] == [(True, heard * 7 // 4 - 12)]


def test_the_limit_holds_for_large_pieces(server: Server, backend: OpenAi) -> None:
    at_once = "some words of the answer " * 20
    server.plan(
        events(*[choice(content=at_once)] * 40, choice("stop")),
        events(*[choice(reasoning_content=at_once)] * 40, choice("stop")),
        Whole(at_once * 40),
    )
    meter = Metered()
    for times in (1, 0, 40):
        answer = backend.ask(QUESTION, meter, ignore)
        assert answer.text == at_once * times
        assert (answer.stop, answer.usage) == ("length", None)
    assert [call.excess for call in meter.calls] == [500 // 4 - 12, 500 // 4 - 12, 20_000 // 4 - 12]


def test_languages_with_long_tokens_are_not_cut(server: Server, backend: OpenAi) -> None:
    said = ["проверка " * 3] * 3
    used = {"prompt_tokens": 60, "completion_tokens": 12}
    server.plan(events(*[choice(content=each) for each in said], choice("stop"), {"usage": used}))
    meter = Metered()
    assert backend.ask(QUESTION, meter, ignore).text == "".join(said)
    assert meter.counted == 72


def test_implausible_usage_is_ignored(server: Server, backend: OpenAi) -> None:
    server.plan(
        *(
            events(choice("stop", content="word " * 30), {"usage": {**used, "prompt_tokens": 60}})
            for used in ({"completion_tokens": 9}, {"completion_tokens": 10})
        )
    )
    meter = Metered()
    assert backend.ask(QUESTION, meter, ignore).usage is None
    assert backend.ask(QUESTION, meter, ignore).usage == Usage(60, 10)
    first, second = meter.calls
    assert first.counted == first.tokens + 150 // 4 - 12
    assert second.counted == 70


def test_an_interrupted_answer_beyond_its_limit_is_counted_in_full(
    server: Server, backend: OpenAi
) -> None:
    def interrupt(_piece: str) -> None:
        raise KeyboardInterrupt

    server.plan(events(choice(content="word " * 1_000)))
    meter = Metered()
    with pytest.raises(KeyboardInterrupt):
        backend.ask(QUESTION, meter, interrupt)
    assert [call.excess for call in meter.calls] == [5_000 // 4 - 12]


def test_the_text_before_a_broken_connection_is_an_answer(server: Server, backend: OpenAi) -> None:
    server.plan(Cut(Says("The sky", " is", " blue", " today"), 520))
    meter = Metered()
    heard: list[str] = []
    answer = backend.ask(QUESTION, meter, heard.append)
    assert answer.text == "".join(heard) == "The sky is"
    assert (answer.stop, answer.usage) == ("cut", None)
    assert answer.problem.startswith(
        f"The model's server at {server.url}/v1 broke the connection off: "
    )
    assert [call.is_open for call in meter.calls] == [True]


def test_a_stream_without_an_end_event_was_cut(server: Server, backend: OpenAi) -> None:
    server.plan(events(choice(content="The sky is")), events(choice(role="assistant")))
    answer = backend.ask(QUESTION, Metered(), ignore)
    expected = f"The model's server at {server.url}/v1 ended its answer before it was done."
    assert answer._replace(duration_ms=0) == Answer("The sky is", "m", None, "cut", expected)
    with pytest.raises(ModelFailure) as raised:
        backend.ask(QUESTION, Metered(), ignore)
    assert raised.value.message == expected


# Looking


def listed(*models: Any) -> dict[str, Any]:
    return {
        "object": "list",
        "data": [{"id": each} if isinstance(each, str) else each for each in models],
    }


def test_the_default_model_is_the_first_chat_model(server: Server) -> None:
    server.pages["GET /v1/models"] = listed(
        "text-embedding-nomic", {"id": "qwen3", "max_model_len": 40_960}, "other"
    )
    backend = OpenAi(server.url, "default", "", PATIENCE)
    assert backend.model == "default"
    assert backend.probe() == Capabilities("qwen3", 40_960)
    backend.ask(QUESTION, Metered(), ignore)
    assert server.questions[-1].body["model"] == "qwen3" == backend.model
    backend.close()


def test_a_model_name_can_omit_its_version(server: Server) -> None:
    server.pages["GET /v1/models"] = listed("phi:3", "llama3:latest")
    backend = OpenAi(server.url, "llama3", "", PATIENCE)
    assert backend.probe() == Capabilities("llama3")
    backend.close()


@pytest.mark.parametrize(
    ("page", "message", "detail"),
    [
        (listed("a", "b\x1b[31m"), "has no model `missing`.", "It has a, b [31m."),
        (listed(), "has no model.", ""),
        ({"data": [{}, 7, {"id": 7}]}, "has no model.", ""),
        ([], "has no model.", ""),
    ],
)
def test_a_missing_model_is_an_error(server: Server, page: Any, message: str, detail: str) -> None:
    server.pages["GET /v1/models"] = page
    backend = OpenAi(server.url, "missing", "", PATIENCE)
    with pytest.raises(ModelFailure) as raised:
        backend.probe()
    assert raised.value.message == f"The model's server at {server.url}/v1 {message}"
    assert raised.value.detail == detail
    assert "llm.model" in str(raised.value.hint)
    backend.close()
