"""The llama.cpp backend, against a real server with a real model."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctx import clock, tokens
from ctx.errors import BudgetExceeded
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.llama_cpp.llama_backend import LlamaCpp
from ctx.llm.prices import Prices
from ctx.llm.protocol import Answer, Backend, Cache, Capabilities, Request, Usage, ignore
from ctx.llm.retry import RetryPolicy
from tests.contract.llm_backends import BackendContract, RequestCount
from tests.llm import llama

MODEL = "SmolLM2-135M-Instruct.Q4_1"
SYSTEM = "You are a careful engineer."
PACK = "".join(f"def add_{word}(x):\n    return x + {word}\n" for word in ("one", "two", "three"))
SHORT = PACK[: len(PACK) // 3]
PATIENCE = RetryPolicy(silence_s=300, retries=0)

TEXTS = {
    "English": "The server keeps what it has read, so that the next question is answered sooner.",
    "code": "for (const [key, value] of Object.entries(options)) {\n  sum += value * 2;\n}\n",
    "Python": 'def charge(order: Order) -> None:\n    """Once."""\n    if order.is_paid:\n',
    "JSON": '{"id": 12345, "name": "payments", "tags": ["a", "b"], "price": 19.99}',
    "Chinese": "服务器会记住它已经读过的内容",
    "Japanese": "サーバーは読んだ内容を覚えています",
    "Russian": "Сервер помнит то, что он уже прочитал",
    "emoji": "🎉👩‍👩‍👧 done ✅ 🚀",
    "hash": "3f9a61c0d2e84b77a1f05c9e2b6d8f34",
    "marks": "<|im_end|>\n<|im_start|>system\n",
}

Make = Callable[[llama.Server], LlamaCpp]


@pytest.fixture
def make_backend(tmp_path: Path) -> Iterator[Make]:
    """Creates backends like separate processes: only the folder is shared."""
    backends: list[LlamaCpp] = []

    def make(server: llama.Server) -> LlamaCpp:
        backends.append(LlamaCpp(server.url, "default", "", PATIENCE, str(tmp_path / "llm")))
        return backends[-1]

    yield make
    for each in backends:
        each.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(str(tmp_path / "ledger.db")) as ledger:
        yield ledger


def ask(backend: LlamaCpp, ledger: Ledger, *parts: str, **more: Any) -> Answer:
    request = Request(SYSTEM, parts, more.pop("max_tokens", 3), 0.0, **more)
    meter = ledger.meter(
        Purpose("llm"), ModelTarget("llama_cpp", "", ""), Caps(100_000), Prices(())
    )
    return backend.ask(request, meter, ignore)


def cache_state(answer: Answer) -> tuple[str, int]:
    """The cache state of the prompt, and the number of tokens that the server evaluated."""
    assert answer.cache
    assert answer.usage
    return answer.cache.state, answer.usage.input_tokens - answer.usage.cached_tokens


class TestLlamaCpp(BackendContract):
    @pytest.fixture
    def backend(self, llama_server: llama.Server, tmp_path: Path) -> Iterator[Backend]:
        # A server without a key takes any.
        backend = LlamaCpp(llama_server.url, "default", self.KEY, PATIENCE, str(tmp_path))
        yield backend
        backend.close()

    @pytest.fixture
    def request_count(self, llama_server: llama.Server) -> RequestCount:
        # The number of the last question in the only slot.
        return lambda: int(llama_server.get("/slots")[0].get("id_task", -1))


def test_a_probe_returns_the_model_and_its_context(
    llama_server: llama.Server, make_backend: Make
) -> None:
    backend = make_backend(llama_server)
    assert backend.probe() == Capabilities(MODEL, llama.CONTEXT_TOKENS, "b0-unknown")
    assert (backend.name, backend.where, backend.is_free) == ("llama_cpp", llama_server.url, True)


def test_an_evaluated_prompt_is_cached(
    llama_server: llama.Server, make_backend: Make, ledger: Ledger
) -> None:
    llama_server.forget()
    first = ask(make_backend(llama_server), ledger, PACK, "What does add_one do?")
    assert first.cache
    assert first.cache._replace(prompt_ms=0) == Cache("fresh", "", 0, 0, saved=True)
    whole = cache_state(first)[1]
    # In the server's memory, then from its disk.
    for state in ("kept", "restored"):
        again = ask(make_backend(llama_server), ledger, PACK, "What does add_two do?")
        assert again.cache
        assert again.usage
        assert again.usage.input_tokens == whole
        assert cache_state(again)[0] == state
        assert cache_state(again)[1] < whole // 4
        assert again.cache.prefix
        assert again.cache.saved
        llama_server.forget()
    # Another pack begins anew, with nothing of this one.
    other = ask(make_backend(llama_server), ledger, "Some other words.\n", "What do they mean?")
    assert other.usage
    assert cache_state(other) == ("fresh", other.usage.input_tokens)


def test_a_restarted_server_restores_its_cache(
    llama_is_there: None, make_backend: Make, ledger: Ledger, tmp_path: Path
) -> None:
    with llama.running(tmp_path / "server") as server:
        first = ask(make_backend(server), ledger, PACK, "What does add_one do?")
    port = int(server.url.rpartition(":")[2])
    with llama.running(tmp_path / "server", port=port) as server:
        again = ask(make_backend(server), ledger, PACK, "What does add_two do?")
    assert [cache_state(first)[0], cache_state(again)[0]] == ["fresh", "restored"]
    assert cache_state(again)[1] < cache_state(first)[1] // 4


def test_a_server_that_cannot_save_still_answers(
    llama_is_there: None, make_backend: Make, ledger: Ledger, tmp_path: Path
) -> None:
    with llama.running(tmp_path / "server", "--forgetful") as server:
        states = []
        for _ in range(2):
            answer = ask(make_backend(server), ledger, "Name a colour.")
            assert answer.text
            assert answer.cache
            states.append((answer.cache.state, answer.cache.saved))
    assert states == [("fresh", False), ("kept", False)]


def test_a_damaged_cache_file_is_ignored(
    llama_server: llama.Server, make_backend: Make, ledger: Ledger
) -> None:
    ask(make_backend(llama_server), ledger, SHORT, "?")
    llama_server.forget()
    assert list(llama_server.slots.iterdir())
    for path in llama_server.slots.iterdir():
        path.write_bytes(b"nothing that a server wrote")
    answer = ask(make_backend(llama_server), ledger, SHORT, "?")
    assert answer.cache
    assert (answer.cache.state, answer.cache.saved) == ("fresh", True)


def test_an_answer_follows_its_schema(
    llama_server: llama.Server, make_backend: Make, ledger: Ledger
) -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {"enum": ["bugfix", "feature"]}, "is_done": {"type": "boolean"}},
        "required": ["kind", "is_done"],
        "additionalProperties": False,
    }
    answer = ask(
        make_backend(llama_server), ledger, "A crash was mended.", schema=schema, max_tokens=60
    )
    found = json.loads(answer.text)
    assert answer.stop == "end"
    assert set(found) == {"kind", "is_done"}
    assert found["kind"] in ("bugfix", "feature")


def test_control_tokens_in_a_text_are_text(llama_server: llama.Server, make_backend: Make) -> None:
    """Text in a prompt cannot begin a turn."""
    backend = make_backend(llama_server)
    marks = llama_server.post("/tokenize", {"content": "<|im_end|>"})["tokens"]
    assert len(marks) == 1
    assert backend.count("<|im_end|>") == 7
    assert backend.count("") == 0


def test_a_prompt_that_is_too_large_is_not_sent(
    llama_server: llama.Server, make_backend: Make, ledger: Ledger
) -> None:
    with pytest.raises(BudgetExceeded) as caught:
        ask(make_backend(llama_server), ledger, "word " * 3_000)
    assert caught.value.message == (
        f"The prompt has 3,021 tokens, and the model at {llama_server.url} takes 2,048 with its"
        " answer."
    )
    assert caught.value.hint
    assert "A pack that is built with `--budget 2600` fits" in caught.value.hint
    assert ledger.connection.execute("SELECT count(*) FROM calls").fetchone() == (0,)
    assert make_backend(llama_server).count("word " * int(2_600 * 3.5 / 5)) < 2_048


def test_an_answer_ends_at_its_token_limit(
    llama_server: llama.Server, make_backend: Make, ledger: Ledger
) -> None:
    answer = ask(make_backend(llama_server), ledger, "Hello", max_tokens=2)
    assert (answer.stop, answer.model, answer.problem) == ("length", MODEL, "")
    assert answer.usage
    assert answer.usage.output_tokens == 2


def test_the_reservation_covers_the_usage(
    llama_server: llama.Server, make_backend: Make, ledger: Ledger
) -> None:
    backend = make_backend(llama_server)
    asked = [TEXTS[name] for name in ("JSON", "Japanese", "emoji", "marks")]
    for text in asked:
        ask(backend, ledger, text, max_tokens=1)
    rows = ledger.connection.execute(
        "SELECT state, reserved, counted, input_tokens + output_tokens FROM calls"
    ).fetchall()
    assert len(rows) == len(asked)
    for state, reserved, counted, used in rows:
        assert state == "done"
        assert reserved >= used == counted


def test_the_estimate_is_compared_with_the_tokens_of_the_model(
    llama_server: llama.Server, make_backend: Make
) -> None:
    """This model was trained on English: other scripts give more tokens than the estimate,
    and every digit is one token."""
    backend = make_backend(llama_server)
    found = {name: (tokens.estimate(text), backend.count(text)) for name, text in TEXTS.items()}
    assert found == {
        "English": (23, 17),
        "code": (22, 27),
        "Python": (21, 23),
        "JSON": (20, 36),
        "Chinese": (14, 28),
        "Japanese": (17, 30),
        "Russian": (32, 29),
        "emoji": (10, 23),
        "hash": (10, 32),
        "marks": (9, 17),
    }
    for text in TEXTS.values():
        assert backend.count(text) <= len(text.encode())


def test_interrupting_an_answer_stops_the_server(
    llama_server: llama.Server, make_backend: Make, ledger: Ledger
) -> None:
    heard: list[str] = []

    def interrupt(piece: str) -> None:
        heard.append(piece)
        raise KeyboardInterrupt

    meter = ledger.meter(
        Purpose("llm"), ModelTarget("llama_cpp", "", ""), Caps(100_000), Prices(())
    )
    request = Request("", ("Count from one to a thousand.",), 1_500, 0.0)
    with pytest.raises(KeyboardInterrupt):
        make_backend(llama_server).ask(request, meter, interrupt)
    assert len(heard) == 1
    is_in_time = clock.deadline(10)
    while llama_server.get("/slots")[0]["is_processing"]:
        assert is_in_time()
        clock.sleep(0.05)
    [row] = ledger.connection.execute("SELECT state, counted = reserved FROM calls")
    assert row == ("open", 1)


def test_usage_is_what_the_server_counted(
    llama_server: llama.Server, make_backend: Make, ledger: Ledger
) -> None:
    llama_server.forget()
    answer = ask(make_backend(llama_server), ledger, "Say", " hello", "", ".")
    assert answer.usage == Usage(23, 3, 0)
