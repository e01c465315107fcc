"""The llama.cpp backend, against a real server with a real model."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.llama_cpp.llama_backend import LlamaCpp
from ctx.llm.prices import Prices
from ctx.llm.protocol import Answer, Backend, Cache, Capabilities, Request, Usage, ignore
from ctx.llm.retry import RetryPolicy
from ctx.operations.prompt_order import order_by_model
from ctx.synthesis.by_model import merge_answers, model_answers, parse_answer, questions
from ctx.synthesis.by_model.questions import QuestionOptions
from ctx.synthesis.observations import NOTHING
from ctx.synthesis.session_excerpts import excerpts
from ctx.synthesis.statements import with_statements
from ctx.workspace import Environment
from tests.contract.llm_backends import BackendContract, RequestCount
from tests.llm import llama
from tests.synthesis import session_scripts

MODEL = "SmolLM2-135M-Instruct.Q4_1"
SYSTEM = "You are a careful engineer."
PACK = "".join(f"def add_{word}(x):\n    return x + {word}\n" for word in ("one", "two", "three"))
PATIENCE = RetryPolicy(silence_s=300, retries=0)

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


def test_control_tokens_in_a_text_are_text(llama_server: llama.Server, make_backend: Make) -> None:
    """Text in a prompt cannot begin a turn."""
    backend = make_backend(llama_server)
    marks = llama_server.post("/tokenize", {"content": "<|im_end|>"})["tokens"]
    assert len(marks) == 1
    assert backend.count("<|im_end|>") == 7
    assert backend.count("") == 0


def test_usage_is_what_the_server_counted(
    llama_server: llama.Server, make_backend: Make, ledger: Ledger
) -> None:
    llama_server.forget()
    answer = ask(make_backend(llama_server), ledger, "Say", " hello", "", ".")
    assert answer.usage == Usage(23, 3, 0)


def test_the_questions_about_a_session_are_answered_in_form(
    llama_server: llama.Server, make_backend: Make, ledger: Ledger
) -> None:
    """Only the form: so small a model chooses by chance."""
    taken = session_scripts.steps(
        "prompt: Never wait longer than a minute between two payments.\n"
        "say: The client waits for a second now because the service counts requests.\n"
    )
    voice = QuestionOptions(120).within(llama.CONTEXT_TOKENS)
    question = questions.excerpts_question("s1", taken, excerpts(taken), [], voice)
    meter = ledger.meter(
        Purpose("synthesis"), ModelTarget("llama_cpp", "", ""), Caps(100_000), Prices(())
    )
    answer = make_backend(llama_server).ask(question.request, meter, ignore)
    found = parse_answer.read(answer.text, question)
    # It is cut off where the model repeats itself.
    assert (answer.stop, found.problem) == ("end", "") or answer.stop == "length"
    said = excerpts(taken)
    rows = {"excerpts": model_answers.new_answer(question, "", "", found.body, found.problem)}
    choices = merge_answers.choices(rows)
    assert set(choices.kept) <= {(each.step, each.part) for each in said}
    given = with_statements(NOTHING, taken, said, is_over=True, choices=choices)
    assert any(each.title.startswith("Never wait longer") for each in given.observations)


def test_the_order_of_texts_is_answered_in_form(
    llama_server: llama.Server, surroundings: Path
) -> None:
    settings = {
        "CTX_LLM_RERANK": "true",
        "CTX_LLM_BACKEND": "llama_cpp",
        "CTX_LLM_SERVER_URL": llama_server.url,
    }
    (surroundings / ".ctx").mkdir()
    store = UserStore(str(surroundings / ".ctx"))
    place = Environment(str(surroundings), store, settings, (), CLI_SESSION)
    texts = ["Money is in cents.", "Retries wait."]
    assert set(order_by_model(place, {}, "s1", "shop", "Fix the invoice", texts)) <= {0, 1}
    with Ledger(place.user_store.ledger) as ledger:
        assert ledger.connection.execute("SELECT purpose FROM calls").fetchall() == [("rerank",)]
