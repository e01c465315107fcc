"""Asking a model about a pack, within the limits of the model."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctx import tokens
from ctx.errors import BudgetExceeded, ModelFailure, UsageError
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.llm.ledger import Caps, Ledger
from ctx.llm.protocol import Answer, Capabilities, Meter, OnToken, Request, Usage, ignore
from ctx.llm.scripted_backend import ScriptedBackend
from ctx.operations import keep_answer, llm
from ctx.operations.keep_answer import ModelResponse
from ctx.operations.llm import LlmOptions, LlmQuestion
from ctx.packs import prompt
from ctx.workspace import Environment, Memory, open_memory
from tests.conftest import git
from tests.packs.test_pack_text import PACK

SECRET = "ghp" + "_" + "k9Xw2Lq7Rt4Vb8Nz3Mf6Hj1Pd5Sc0YgTuAeQ"


class Small(ScriptedBackend):
    """A model with a small context."""

    def __init__(self, context_tokens: int, *replies: str) -> None:
        super().__init__(replies, "small")
        self.context_tokens = context_tokens

    def probe(self) -> Capabilities:
        return Capabilities("Small 1", self.context_tokens)


class Interrupted(ScriptedBackend):
    """Ctrl-C is pressed after the first pieces."""

    def ask(self, request: Request, meter: Meter, on_token: OnToken) -> Answer:
        super().ask(request, meter, on_token)
        raise KeyboardInterrupt


@pytest.fixture
def shop(repo: Path) -> Path:
    (repo / "src").mkdir()
    for number in range(12):
        body = "\n".join(f"    total += charge(card, {line})" for line in range(40))
        text = f"def retry_payment_{number}(card):\n    total = 0\n{body}\n    return total\n"
        (repo / "src" / f"payments_{number}.py").write_text(text)
    git("add", "-A")
    git("commit", "-qm", "Retry payments")
    return repo


@contextmanager
def open_memory_in(folder: Path, *overrides: str) -> Iterator[Memory]:
    store = UserStore(os.environ["CTX_HOME"])
    surroundings = Environment(str(folder), store, {}, overrides, CLI_SESSION)
    with open_memory(surroundings, writing=True) as memory:
        yield memory


def ask(
    memory: Memory, backend: ScriptedBackend, options: LlmOptions, on_token: Any = None
) -> Answer:
    question = llm.prepare(memory, backend, options)
    with Ledger(memory.environment.user_store.ledger) as ledger:
        meter = llm.meter(ledger, backend, question)
        return llm.ask(backend, question, meter, on_token or ignore)


def test_an_existing_pack_is_sent(shop: Path) -> None:
    backend = ScriptedBackend(["In two words: it hangs."], "tiny-1")
    heard: list[str] = []
    with open_memory_in(shop, "llm.temperature=1", "llm.max_response_tokens=77") as memory:
        request = llm.prepare(memory, backend, LlmOptions(PACK)).request
        assert (request.temperature, request.max_tokens) == (1, 77)
        assert request.system.startswith("You are a careful software engineer.")
    options = LlmOptions(PACK._replace(receipt="r-1"), max_tokens=300, temperature=0.5)
    with open_memory_in(shop) as memory:
        question = llm.prepare(memory, backend, options)
        assert ask(memory, backend, options, heard.append).text == "In two words: it hangs."
    assert "".join(heard) == "In two words: it hangs."
    assert len(heard) > 1
    (request,) = backend.requests
    assert request == prompt.compose(
        PACK, prompt.PromptFrame(llm.PREFIX, llm.INSTRUCTION, 300, 0.5)
    )
    assert question._replace(prices=None) == LlmQuestion(  # type: ignore[arg-type]
        PACK.task,
        request,
        "tiny-1",
        tokens.estimate(request.system) + tokens.estimate(request.prompt) + 64,
        ("src/net.py",),
        "r-1",
        CLI_SESSION,
        "app",
        Caps(200_000),
        None,  # type: ignore[arg-type]
    )


def test_a_pack_is_built_for_a_task(shop: Path) -> None:
    backend = ScriptedBackend(["Yes."])
    with open_memory_in(shop) as memory:
        wanted = LlmOptions(query="retry_payment_3", budget=3_000)
        question = llm.prepare(memory, backend, wanted)
        # What models answered is not part of a pack.
        keep_answer.keep_answer(memory, ModelResponse("retry_payment_3 is fine.", "Is it?", "m"))
        assert llm.prepare(memory, backend, wanted).request == question.request
        log = "error in retry_payment_3\n" * 2_000
        pasted = llm.prepare(memory, backend, LlmOptions(query=f"{log} path:src"))
    assert pasted.request.parts[0] == f"## Task\n\n{log.strip()}\n\n"
    assert "src/payments_3.py" in question.files
    assert "def retry_payment_3(card):" in question.request.parts[1]
    assert question.receipt
    assert question.estimate < 3_300


@pytest.mark.parametrize("context", [1_200, 8_192])
def test_a_pack_fits_into_the_context_of_the_model(shop: Path, context: int) -> None:
    backend = Small(context)
    with open_memory_in(shop) as memory:
        question = llm.prepare(memory, backend, LlmOptions(query="retry payments"))
        assert question.model == "Small 1"
        assert question.request.max_tokens == min(2_048, context // 2)
        assert question.estimate + question.request.max_tokens <= context
        assert question.files
        given = llm.prepare(memory, backend, LlmOptions(query="retry payments", max_tokens=50))
    assert given.request.max_tokens == 50
    assert given.estimate + 50 <= context


def test_a_pack_that_does_not_fit_is_refused(shop: Path) -> None:
    small, big = Small(1_000), "x " * 4_000
    pack = PACK._replace(retrieved=(PACK.retrieved[0]._replace(snippet=big),))
    with open_memory_in(shop) as memory:
        with pytest.raises(BudgetExceeded) as too_large:
            llm.prepare(memory, small, LlmOptions(pack))
        with pytest.raises(BudgetExceeded) as over:
            llm.prepare(memory, small, LlmOptions(query="retry payments", budget=900))
        with pytest.raises(BudgetExceeded) as no_room:
            llm.prepare(memory, small, LlmOptions(query="retry payments", max_tokens=900))
        with pytest.raises(BudgetExceeded) as long:
            llm.prepare(memory, small, LlmOptions(query=big))
        with pytest.raises(UsageError):
            llm.prepare(memory, small, LlmOptions(PACK, max_tokens=0))
    for raised, message, hint in (
        (too_large, "about 2,494 tokens and the answer up to 500", "ctx query … --budget 305"),
        (over, "A pack of 900 tokens does not fit", "--budget 2"),
        (no_room, "takes 1,000 tokens at once, and 900 of them are", "--max-tokens 250"),
        (long, "takes about 2,435 tokens without a pack", "Give a shorter task"),
    ):
        assert message in raised.value.message
        assert hint in str(raised.value.hint)


def test_the_daily_cap_is_enforced(shop: Path) -> None:
    backend = ScriptedBackend(["Yes.", "Yes."])
    with open_memory_in(shop, "llm.daily_token_cap=2000") as memory:
        with pytest.raises(BudgetExceeded, match="2,000 tokens a day"):
            ask(memory, backend, LlmOptions(PACK))
        assert ask(memory, backend, LlmOptions(PACK, max_tokens=100)).text == "Yes."
        with Ledger(memory.environment.user_store.ledger) as ledger:
            rows = ledger.connection.execute("SELECT purpose, session, project FROM calls")
            assert rows.fetchall() == [("llm", "cli", "app")]
    assert len(backend.requests) == 1


def test_secrets_are_not_sent(shop: Path) -> None:
    backend = ScriptedBackend(["Yes."])
    chunk = PACK.retrieved[0]._replace(snippet=f"token = {SECRET}")
    with open_memory_in(shop) as memory:
        ask(memory, backend, LlmOptions(PACK._replace(task=f"Is {SECRET} ok?", retrieved=(chunk,))))
    assert SECRET not in str(backend.requests)


def test_the_text_before_an_interruption_is_kept(shop: Path) -> None:
    with open_memory_in(shop) as memory:
        answer = ask(memory, Interrupted(["It is because"], "tiny-1"), LlmOptions(PACK))
        assert (answer.text, answer.stop, answer.usage) == ("It is because", "interrupted", None)
        with pytest.raises(KeyboardInterrupt):
            ask(memory, Interrupted([" \n"], "tiny-1"), LlmOptions(PACK))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            Answer(" \n", "tiny-1", Usage(1, 0), "end"),
            "The model tiny-1 at a script gave no answer.",
        ),
        (
            Answer("", "tiny-1", None, "cut", "It broke off."),
            "The model tiny-1 at a script gave no answer: It broke off.",
        ),
        (Answer("", "tiny-1", Usage(1, 0), "refused"), "The model tiny-1 refused to answer."),
    ],
)
def test_an_empty_answer_is_an_error(shop: Path, answer: Answer, told: str) -> None:
    with open_memory_in(shop) as memory, pytest.raises(ModelFailure) as failure:
        ask(memory, ScriptedBackend([answer]), LlmOptions(PACK))
    assert failure.value.message == told


def test_the_cost_of_an_answer_is_computed(shop: Path) -> None:
    with open_memory_in(shop, 'llm.prices=["tiny=1.00/5.00"]') as memory:
        question = llm.prepare(memory, ScriptedBackend([]), LlmOptions(PACK))
    usage = Usage(1_000, 100)
    assert llm.cost_micros(question, Answer("x", "tiny-1", usage, "end")) == 1_500
    assert llm.cost_micros(question, Answer("x", "large-1", usage, "end")) is None
    assert llm.cost_micros(question, Answer("x", "tiny-1", None, "cut")) is None
    told = usage._replace(cost_micros=7)
    assert llm.cost_micros(question, Answer("x", "tiny-1", told, "end")) == 7
