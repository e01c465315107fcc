"""HTTP for backends: failures are reported, counted correctly, and end in time."""

import os
import signal
from email.utils import formatdate
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from ctx.errors import BudgetExceeded, ConfigInvalid, ModelFailure
from ctx.llm.http_client import HttpClient, RequestRefused
from ctx.llm.protocol import Usage
from ctx.llm.retry import RetryPolicy
from tests.contract.llm_backends import Metered
from tests.llm import model_server
from tests.llm.model_server import (
    Body,
    Cut,
    Drips,
    Drops,
    Hangs,
    Planned,
    Raw,
    Says,
    ServedCall,
    Server,
    Status,
)
from tests.llm.protocols import PROTOCOLS

KEY = "sk-wire-0123456789"
PATIENCE = RetryPolicy(silence_s=10, retries=2, pause_s=0.005)
IMPATIENT = PATIENCE._replace(silence_s=0.2)
BODY = {"messages": [{"role": "user", "content": "Wie heißt das?"}], "max_tokens": 50}
PATH = "/v1/chat/completions"
SOME = Says("Das", " heißt", " so", ".")

DOCTOR = "`ctx doctor` checks the model; `ctx config list` shows the settings."
ADDRESS = "`ctx config set llm.server_url URL` sets the address of the API."
PAGE = (
    "That may be a page for people; an API is at an address such as http://127.0.0.1:8080."
    " `ctx config set llm.server_url URL` changes it."
)


def wire_to(url: str, patience: RetryPolicy = PATIENCE) -> HttpClient:
    return HttpClient("The server", url, {"Authorization": f"Bearer {KEY}"}, patience)


def stream_events(wire: HttpClient, meter: Metered) -> tuple[list[dict[str, Any]], str]:
    with wire.stream(PATH, BODY, meter, bound=50, estimate=9) as stream:
        return list(stream.events()), stream.problem


def text(events: list[dict[str, Any]]) -> str:
    """The text of an OpenAI stream."""
    choices = [choice for event in events for choice in event["choices"]]
    return "".join(choice["delta"].get("content", "") for choice in choices)


def upto(mark: bytes) -> int:
    """The number of bytes of `SOME` up to the end of a part."""
    begin, piece, _ = PROTOCOLS["/chat/completions"]
    stream = b"".join((*begin(0), *map(piece, SOME.pieces)))
    return stream.index(mark) + len(mark)


def test_an_answer_is_streamed_event_by_event(server: Server) -> None:
    server.plan(SOME)
    meter = Metered()
    wire = wire_to(f"{server.url}/")
    with wire.stream(PATH, BODY, meter, bound=50, estimate=9) as stream:
        assert text(list(stream.events())) == "Das heißt so."
        stream.settle(Usage(15, 4), "scripted-1")
    assert stream.problem == ""
    [call] = meter.calls
    [question] = server.received
    assert question.body == BODY
    assert question.headers["authorization"] == f"Bearer {KEY}"
    assert (call.tokens, call.estimate) == (question.size + 50, 9)
    assert (call.settled, call.model) == (Usage(15, 4), "scripted-1")
    wire.close()


# What goes wrong before an answer has begun

REFUSED = [
    (
        Status(400, {"error": {"message": "No such\x1b[31m\n field."}}),
        "(400): No such [31m field.",
        DOCTOR,
    ),
    (Status(422, "What?"), "(422): What?.", DOCTOR),
    (Status(413), "(413).", DOCTOR),
    (
        Status(401, {"error": {"message": f"Wrong key: {KEY}"}}),
        "(401): Wrong key: ….",
        "`llm.api_key_env` names the environment variable that holds the key.",
    ),
    (Status(404, "<html>Not found"), "(404): an HTML page.", ADDRESS),
    (
        Status(404, {"error": {"message": 'model "foo" not found'}}),
        '(404): model "foo" not found.',
        "`ctx config set llm.model NAME`, or --model NAME, sets the model.",
    ),
    (
        Status(429, "Slow down", {"Retry-After": "3600"}),
        "(429): Slow down.",
        "It asks to wait 3600 s.",
    ),
]


@pytest.mark.parametrize(("step", "message", "hint"), REFUSED)
def test_a_refusal_is_reported_and_not_counted(
    server: Server, step: Planned, message: str, hint: str
) -> None:
    assert failure(server, step) == (f"refused {message}", hint, [False])


UNUSABLE: list[tuple[Planned, str]] = [
    (Status(501, {"error": "Not implemented"}), "failed (501): Not implemented."),
    (Body(b'{"choices": ['), 'answered with invalid JSON: {"choices": [.'),
    (Body(b"data: {what}\n\n", "text/event-stream"), "answered with invalid JSON: {what}."),
    (Body(b"[" * 100_000), f"answered with invalid JSON: {'[' * 171}…."),
    (Body(b"[1]"), "answered with JSON that is no object: [1]."),
    (Body(b"7"), "answered with something that is no answer: 7."),
    (Body(b""), "answered with nothing."),
    (Body(b" \r\n\n"), "answered with nothing."),
    (
        Body('data: {"a": "ß"}\n\n'.encode("latin-1")),
        'answered with text that is not UTF-8: {"a": "�"}.',
    ),
    (Body(b"\x89PNG\r\n\x1a\n", "image/png"), "answered with text that is not UTF-8: �PNG."),
    (
        Body(b'{"a": 1}', encoding="gzip"),
        "answered in an encoding that it was not asked for: gzip.",
    ),
    (Body(b"data: " + b"x" * 2_000_000), "sent a line of more than 1 MB."),
    (Body(b"{" + b" " * 10_000_000), "sent an answer of more than 8 MB."),
    (Raw(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 500_000), "does not speak HTTP: Receive buffer"),
    (Raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "does not speak HTTP: illegal status line: "),
    (
        Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n"),
        "does not speak HTTP: illegal chunk header: ",
    ),
    (
        Body(b'{"error": {"message": "No model is loaded.", "code": 7}}'),
        "broke off with an error: No model is loaded.",
    ),
    (Body(b'data: {"error": {"": []}}\n\n'), 'broke off with an error: {"": []}.'),
]


@pytest.mark.parametrize(("step", "message"), UNUSABLE)
def test_an_unusable_answer_is_reported_and_counted(
    server: Server, step: Planned, message: str
) -> None:
    found, hint, counts = failure(server, step)
    assert found.startswith(message)
    assert (hint, counts) == (DOCTOR, [True])


def test_other_failures_are_reported_and_counted(server: Server) -> None:
    elsewhere = Status(307, "", {"Location": "http://127.0.0.1:9/v1"})
    expected = "redirects elsewhere (307): http://127.0.0.1:9/v1."
    assert failure(server, elsewhere) == (expected, ADDRESS, [False])
    page = Body(b"\n<!DOCTYPE html>\n<title>Welcome</title>", "text/html")
    expected = "answered with HTML, not JSON: <!DOCTYPE html>."
    assert failure(server, page) == (expected, PAGE, [True])
    busy = Status(500), Status(503, {"error": {"message": "Loading model"}}), Status(529, "Busy")
    assert failure(server, *busy) == ("failed (529): Busy.", DOCTOR, [True] * 3)
    found, *rest = failure(server, Drops(), Cut(SOME, 0), Raw(b""))
    assert found.startswith("broke the connection off: Server disconnected")
    assert rest == [DOCTOR, [True] * 3]


def failure(server: Server, *steps: Planned) -> tuple[str, str | None, list[bool]]:
    """The message and hint of a failure after these tries, and which of them count."""
    before = len(server.received)
    server.plan(*steps)
    server.otherwise = Says("nobody", " asked", " for", " this")
    wire = wire_to(server.url)
    meter = Metered()
    with pytest.raises(ModelFailure) as raised:
        stream_events(wire, meter)
    wire.close()
    assert len(server.received) - before == len(steps)
    message = raised.value.message.removeprefix(f"The server at {server.url} ")
    return message, raised.value.hint, [call.is_open for call in meter.calls]


@pytest.mark.parametrize("step", [Hangs(), Drips(b": wait\n\n", 0.05), Drips(b"\n", 0.05)])
def test_a_silent_server_is_not_retried(server: Server, step: model_server.Step) -> None:
    """Comments and blank lines count as silence."""
    server.plan(step)
    wire = wire_to(server.url, IMPATIENT)
    meter = Metered()
    with pytest.raises(ModelFailure) as raised:
        stream_events(wire, meter)
    wire.close()
    assert raised.value.message == f"The server at {server.url} was silent for 0.2 s."
    assert raised.value.hint == "`ctx config set llm.timeout_seconds N` waits longer."
    assert [call.is_open for call in meter.calls] == [True]
    assert len(server.received) == 1


def test_a_very_slow_response_head_is_given_up(server: Server) -> None:
    server.plan(Drips(b"x", 0.02, head=b"HTTP/1.1 200 OK\r\nX-Slow: "))
    wire = wire_to(server.url, PATIENCE._replace(silence_s=0.1))
    meter = Metered()
    # A machine that is busy may take longer for a drop, which is silence.
    with pytest.raises(ModelFailure, match=r"took more than 1 s|was silent for 0\.1 s"):
        stream_events(wire, meter)
    wire.close()
    assert [call.is_open for call in meter.calls] == [True]


def test_an_unreachable_server_is_an_error(server: Server) -> None:
    url = model_server.closed_url()
    wire = wire_to(url)
    meter = Metered()
    with pytest.raises(ModelFailure) as raised:
        stream_events(wire, meter)
    assert raised.value.message.startswith(f"The server at {url} cannot be reached: ")
    assert raised.value.hint == "Start it, or set its address: `ctx config set llm.server_url URL`."
    assert [call.is_released for call in meter.calls] == [True], "asked once, and nothing counts"
    wire.close()


# Tries


@pytest.mark.parametrize(
    "step",
    [
        Status(408),
        Status(429, "", {"Retry-After": "0.01"}),
        Status(429, "", {"Retry-After": formatdate(0, usegmt=True)}),
        Status(429, "", {"Retry-After": "soon"}),
        Status(500),
        Status(502),
        Status(503, {"error": {"code": 503, "message": "Loading model"}}),
        Status(504),
        Status(529),
        Drops(),
        Cut(SOME, 40),
        Cut(Says("ß"), 0),
        Body(b'data: {"error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'),
        Body(b'error: {"error": {"code": 503, "message": "Loading model"}}\n\n'),
    ],
)
def test_a_busy_server_is_retried(server: Server, step: Planned) -> None:
    server.plan(step, step, SOME)
    wire = wire_to(server.url)
    meter = Metered()
    events, problem = stream_events(wire, meter)
    wire.close()
    assert (text(events), problem) == ("Das heißt so.", "")
    assert len(server.received) == len(meter.calls) == 3
    assert server.spent <= meter.counted


def test_a_retry_date_is_waited_for_only_if_it_is_near(server: Server) -> None:
    server.plan(Status(429, "", {"Retry-After": "Wed, 21 Oct 2065 07:28:00 GMT"}))
    wire = wire_to(server.url)
    with pytest.raises(RequestRefused) as raised:
        stream_events(wire, Metered())
    wire.close()
    assert "It asks to wait " in str(raised.value.hint)
    assert (raised.value.status, raised.value.reason) == (429, "")


def test_a_budget_that_ends_between_retries_reports_the_last_failure(server: Server) -> None:
    server.otherwise = Status(503, {"error": {"message": "Loading model"}})
    wire = wire_to(server.url)
    meter = Metered(cap=300)
    with pytest.raises(BudgetExceeded) as raised:
        stream_events(wire, meter)
    wire.close()
    assert raised.value.message == "That would be too much."
    assert raised.value.detail == f"The server at {server.url} failed (503): Loading model."
    assert len(server.received) == len(meter.calls) == 2


# What goes wrong in the middle


@pytest.mark.parametrize(
    ("step", "said", "problem"),
    [
        (Cut(SOME, upto(b" hei\xc3\x9ft") + 60), "Das heißt", "broke the connection off: "),
        (Cut(SOME, upto(b" hei\xc3")), "Das", "broke the connection off: "),
        (
            Body(b'data: {"choices": []}\n\ndata: {"error": "Out of memory."}\n\n'),
            "",
            "broke off with an error: Out of memory.",
        ),
    ],
)
def test_the_text_before_a_failure_is_kept(
    server: Server, step: Planned, said: str, problem: str
) -> None:
    server.plan(step)
    wire = wire_to(server.url)
    meter = Metered()
    events, told = stream_events(wire, meter)
    wire.close()
    assert text(events) == said
    assert told.startswith(f"The server at {server.url} {problem}")
    assert len(server.received) == 1
    assert [call.is_open for call in meter.calls] == [True]


def test_silence_in_the_middle_ends_an_answer(server: Server) -> None:
    server.plan(Hangs("Das", " heißt"))
    wire = wire_to(server.url, PATIENCE._replace(silence_s=0.5))
    events, problem = stream_events(wire, Metered())
    wire.close()
    assert text(events) == "Das heißt"
    assert problem == f"The server at {server.url} was silent for 0.5 s."


def test_pings_do_not_break_the_silence(server: Server) -> None:
    server.plan(Drips(b'data: {"type": "ping"}\n\n', 0.05))
    wire = wire_to(server.url, IMPATIENT)
    with (
        pytest.raises(ModelFailure, match=r"was silent for 0\.2 s"),
        wire.stream(PATH, BODY, Metered(), 50, 9, lambda event: event["type"] != "ping"),
    ):
        pytest.fail("nothing has come")
    wire.close()


def test_the_time_of_the_reader_is_not_silence_of_the_server(server: Server) -> None:
    server.plan(Says(*["so "] * 5))
    wire = wire_to(server.url, PATIENCE._replace(silence_s=1.0))
    heard = []
    with wire.stream(PATH, BODY, Metered(), 50, 9) as stream:
        for event in stream.events():
            heard.append(event)
            if len(heard) == 2:
                Event().wait(1.1)
    wire.close()
    assert stream.problem == ""
    assert text(heard) == "so so so so so "


# Leaving


class Watched:
    """Sends some pieces or none, and signals when it began and when the client leaves."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces
        self.began = Event()
        self.left = Event()

    def play(self, call: ServedCall) -> None:
        if self.pieces:
            call.head("text/event-stream")
            for part in list(Says(*self.pieces).parts(call))[: len(self.pieces) + 1]:
                call.chunk(part)
        self.began.set()
        if call.wait(300):
            self.left.set()


def test_ctrl_c_before_the_first_piece_ends_the_connection(server: Server) -> None:
    step = Watched()
    server.plan(step)
    wire = wire_to(server.url)
    meter = Metered()

    def press() -> None:
        step.began.wait(300)
        os.kill(os.getpid(), signal.SIGINT)

    thread = Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        stream_events(wire, meter)
    thread.join()
    assert step.left.wait(300)
    assert [call.is_open for call in meter.calls] == [True]
    assert len(server.received) == 1
    wire.close()


def test_leaving_a_stream_ends_the_connection(server: Server) -> None:
    step = Watched("Das")
    server.plan(step)
    wire = wire_to(server.url)
    with wire.stream(PATH, BODY, Metered(), 50, 9) as stream:
        next(stream.events())
    assert step.left.wait(300)
    wire.close()


@pytest.mark.parametrize("step", [Watched(), Watched("Das")])
def test_closing_ends_the_request_of_another_thread(server: Server, step: Watched) -> None:
    server.plan(step)
    wire = wire_to(server.url)
    ended: list[Any] = []

    def ask() -> None:
        try:
            ended.append(stream_events(wire, Metered())[1])
        except ModelFailure as failure:
            ended.append(failure.message)

    thread = Thread(target=ask)
    thread.start()
    assert step.began.wait(300)
    wire.close()
    thread.join(300)
    assert step.left.wait(300)
    assert [told.partition(" broke ")[0] for told in ended] == [f"The server at {server.url}"]
    with pytest.raises(ModelFailure, match="was closed"):
        stream_events(wire, Metered())
    with pytest.raises(ModelFailure, match="was closed"):
        wire.get("/health")
    assert len(server.received) == 1


# Addresses and keys


@pytest.mark.parametrize(
    "url", ["", "nowhere", "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999", "http://[::1"]
)
def test_invalid_addresses_are_refused(url: str) -> None:
    with pytest.raises(ConfigInvalid, match="not the address of a server"):
        wire_to(url)


@pytest.mark.parametrize(
    ("url", "is_local"),
    [
        ("http://127.0.0.1:8080", True),
        ("http://127.8.8.8", True),
        ("http://localhost:1/v1", True),
        ("http://[::1]:8080", True),
        ("https://api.example.com", False),
        ("http://10.0.0.7:8080", False),
        ("http://localhost.example.com", False),
        ("http://127.0.0.1.example.com", False),
    ],
)
def test_local_addresses_are_recognised(url: str, is_local: bool) -> None:
    assert wire_to(url).is_local == is_local


def test_a_password_in_an_address_is_sent_and_never_shown(server: Server) -> None:
    place = server.url.removeprefix("http://")
    wire = HttpClient("The server", f"http://me:p%40ss-word@{place}/a?key=k123#x", {}, PATIENCE)
    server.plan(Status(403, "me p@ss-word p%40ss-word"))
    assert wire.display_url == f"{server.url}/a"
    with pytest.raises(RequestRefused) as raised:
        stream_events(wire, Metered())
    wire.close()
    assert raised.value.message == f"The server at {server.url}/a refused (403): me … …."
    assert server.received[0].path == f"/a{PATH}?key=k123"
    assert server.received[0].headers["authorization"] == "Basic bWU6cEBzcy13b3Jk"


def test_secrets_in_an_address_are_removed_from_errors(server: Server) -> None:
    place = server.url.removeprefix("http://")
    wire = HttpClient(
        "The server", f"http://me:hunter2pw@{place}/?key=Q%2BSECRET&v=1", {}, PATIENCE
    )
    server.plan(
        lambda asked: Status(404, f"no {asked.path} for {asked.headers['authorization']}"),
        Status(301, "", {"Location": f"https://me:hunter2pw@{place}/?key=Q%2BSECRET&v=1"}),
        Status(400, "What is Q+SECRET?"),
    )
    told = []
    for _ in range(3):
        with pytest.raises(RequestRefused) as raised:
            stream_events(wire, Metered())
        told.append(raised.value.message.removeprefix(f"The server at {server.url} "))
    wire.close()
    assert told == [
        f"refused (404): no {PATH}?…&v=1 for Basic ….",
        f"redirects elsewhere (301): https://me:…@{place}/?…&v=1.",
        "refused (400): What is …?.",
    ]


@pytest.mark.parametrize("name", ["....", "a" * 70 + ".invalid", "a..invalid"])
def test_an_invalid_host_name_is_an_error(name: str) -> None:
    wire = wire_to(f"http://{name}:8080")
    meter = Metered()
    with pytest.raises(ModelFailure) as raised:
        stream_events(wire, meter)
    wire.close()
    assert raised.value.message.startswith(f"The server at http://{name}:8080 cannot be ")
    assert [call.is_released for call in meter.calls] == [True]


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_unreadable_certificates_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    file = tmp_path / "own.pem"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    wire = wire_to("https://model.invalid")
    meter = Metered()
    with pytest.raises(ModelFailure) as raised:
        stream_events(wire, meter)
    wire.close()
    assert raised.value.message.startswith(
        "The server at https://model.invalid cannot be used: the certificates cannot be read: "
    )
    assert "SSL_CERT_FILE" in (raised.value.hint or "")
    assert [call.is_released for call in meter.calls] == [True]


@pytest.mark.parametrize("key", ["sk-secret\nX-Evil: 1", "sk-sécret-key", "sk-secret\x00"])
def test_an_invalid_key_is_not_sent_and_not_shown(server: Server, key: str) -> None:
    wire = HttpClient("The server", server.url, {"Authorization": f"Bearer {key}"}, PATIENCE)
    meter = Metered()
    with pytest.raises(ModelFailure) as raised:
        stream_events(wire, meter)
    wire.close()
    assert raised.value.message == (
        f"The server at {server.url} cannot be used: the key contains invalid characters."
    )
    assert meter.counted == 0
    assert server.received == []


def test_a_proxy_is_used_except_for_local_addresses(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("HTTP_PROXY", model_server.closed_url())
    wire = wire_to(server.url)
    assert text(stream_events(wire, Metered())[0]) == "Hello, you."
    wire.close()
    monkeypatch.setenv("HTTP_PROXY", server.url)
    wire = wire_to("http://model.invalid")
    assert text(stream_events(wire, Metered())[0]) == "Hello, you."
    wire.close()
    assert server.received[1].path == f"http://model.invalid{PATH}"


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "nonsense://127.0.0.1:9"])
def test_an_invalid_proxy_is_an_error(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    wire = wire_to("http://model.invalid")
    meter = Metered()
    with pytest.raises(ModelFailure, match=r"http://model\.invalid cannot be used: "):
        stream_events(wire, meter)
    wire.close()
    assert meter.counted == 0


# Small calls


def test_small_requests_return_json(server: Server) -> None:
    server.pages["POST /slots/0?action=save"] = lambda asked: {"saved": asked.body}
    wire = wire_to(server.url)
    assert wire.get("/health") == {"status": "ok"}
    assert wire.post("/slots/0?action=save", {"filename": "ä"}) == {"saved": {"filename": "ä"}}
    with pytest.raises(RequestRefused) as raised:
        wire.get("/nowhere")
    assert (raised.value.status, raised.value.reason) == (404, "no such page")
    server.pages["GET /health"] = "ok"
    assert wire.get("/health") == "ok"
    # Whatever is asked of a model fails here as it does elsewhere, at once.
    server.plan(Body(b"<html>"), Drops(), Body(b""), Body(b" " * 9_000_000))
    for message in (
        "answered with HTML, not JSON: <html>.",
        "broke the connection off: ",
        "answered with nothing.",
        "sent an answer of more than 8 MB.",
    ):
        with pytest.raises(ModelFailure) as failed:
            wire.post(PATH, {})
        assert failed.value.message.startswith(f"The server at {server.url} {message}")
    wire.close()
    assert len(server.questions) == 4
