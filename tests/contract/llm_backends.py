"""The contract of every backend of a model."""

from collections.abc import Callable

import pytest

from ctx.errors import BudgetExceeded, ModelFailure
from ctx.llm.protocol import Backend, Request, Usage, ignore

QUESTION = Request("Answer in one word.", ("The sky is blue.\n", "Which colour has the sky?"), 12)
UNICODE = Request("日本語で。", ('naïve — “quoted” 👩‍👩‍👧 \\ " \x00\n', "更新令牌 обновить?"), 12)
BLANKS = Request("", ("", "Say something.", "", " \n"), 12)
HALF_A_CHARACTER = Request("Be brief.", ("broken \ud800 surrogate",), 12)

RequestCount = Callable[[], int | None]
"""How many questions have reached the model; None if they are not counted."""


class Reserved:
    """The reservation of one request."""

    def __init__(self, tokens: int, estimate: int) -> None:
        self.tokens = tokens
        self.estimate = estimate
        self.settled: Usage | None = None
        self.model = ""
        self.is_released = False
        self.excess = 0

    def settle(self, usage: Usage, model: str) -> None:
        assert self.is_open, "what becomes of it is said once"
        self.settled = usage
        self.model = model

    def exceed(self, tokens: int) -> None:
        assert self.is_open, "it is said before what becomes of it"
        self.excess = tokens

    def release(self) -> None:
        assert self.is_open, "what becomes of it is said once"
        self.is_released = True

    @property
    def is_open(self) -> bool:
        return self.settled is None and not self.is_released

    @property
    def counted(self) -> int:
        if self.is_released:
            return 0
        return self.settled.tokens if self.settled is not None else self.tokens + self.excess


class Metered:
    """A meter that records its calls, with a cap like that of the ledger."""

    def __init__(self, cap: int = 1_000_000) -> None:
        self.cap = cap
        self.calls: list[Reserved] = []

    @property
    def counted(self) -> int:
        return sum(call.counted for call in self.calls)

    def reserve(self, tokens: int, estimate: int) -> Reserved:
        if self.counted + tokens > self.cap:
            raise BudgetExceeded("That would be too much.", hint="Ask for less.")
        call = Reserved(tokens, estimate)
        self.calls.append(call)
        return call


class BackendContract:
    """A subclass provides a backend that answers, and counts its requests to the model."""

    KEY = "sk-contract-0123456789"
    """A key that a backend is made with, where it takes one."""

    @pytest.fixture
    def backend(self) -> Backend:
        raise NotImplementedError

    @pytest.fixture
    def request_count(self) -> RequestCount:
        raise NotImplementedError

    def test_it_describes_itself_without_its_key(self, backend: Backend) -> None:
        assert backend.name in ("llama_cpp", "openai", "anthropic", "claude_cli", "scripted")
        assert backend.where
        assert backend.model
        assert isinstance(backend.is_free, bool)
        for shown in (backend.where, backend.model, repr(backend), str(backend.probe())):
            assert self.KEY not in shown

    def test_a_probe_sends_no_request(self, backend: Backend, request_count: RequestCount) -> None:
        before = request_count()
        backend.probe()
        assert request_count() == before

    @pytest.mark.parametrize("request_", [QUESTION, UNICODE, BLANKS, HALF_A_CHARACTER])
    def test_the_streamed_pieces_are_the_answer(self, backend: Backend, request_: Request) -> None:
        heard: list[str] = []
        answer = backend.ask(request_, Metered(), heard.append)
        assert "".join(heard) == answer.text
        assert all(heard), "an empty piece is none"
        assert answer.stop in ("end", "length")
        assert answer.problem == ""
        assert answer.model
        assert answer.duration_ms >= 0
        answer.text.encode()

    def test_it_reserves_before_and_settles_after_a_request(self, backend: Backend) -> None:
        meter = Metered()
        seen: list[tuple[int, bool]] = []
        answer = backend.ask(
            QUESTION, meter, lambda _: seen.append((len(meter.calls), meter.calls[-1].is_open))
        )
        assert seen
        assert all(count and is_open for count, is_open in seen), "reserved, and not yet settled"
        call = meter.calls[-1]
        asked = len((QUESTION.system + QUESTION.prompt).encode())
        assert call.tokens >= asked + QUESTION.max_tokens
        assert 0 < call.estimate <= call.tokens
        assert answer.usage is not None
        assert call.settled == answer.usage
        assert call.model == answer.model
        assert 0 < answer.usage.tokens <= call.tokens
        assert 0 <= answer.usage.cached_tokens <= answer.usage.input_tokens

    def test_no_request_is_sent_if_the_meter_refuses(
        self, backend: Backend, request_count: RequestCount
    ) -> None:
        before = request_count()
        meter = Metered(cap=5)
        with pytest.raises(BudgetExceeded, match="too much"):
            backend.ask(QUESTION, meter, ignore)
        assert meter.calls == []
        assert request_count() == before

    def test_an_interruption_is_raised_and_counted(self, backend: Backend) -> None:
        heard: list[str] = []

        def interrupt(piece: str) -> None:
            heard.append(piece)
            raise KeyboardInterrupt

        meter = Metered()
        with pytest.raises(KeyboardInterrupt):
            backend.ask(QUESTION, meter, interrupt)
        assert len(heard) == 1
        assert meter.calls[-1].is_open, "it counts in full"
        # Who was interrupted can be asked again.
        assert backend.ask(QUESTION, Metered(), ignore).stop in ("end", "length")

    def test_several_questions_can_follow_each_other(self, backend: Backend) -> None:
        meter = Metered()
        for _ in range(3):
            assert backend.ask(QUESTION, meter, ignore).usage is not None
        assert [call.is_open for call in meter.calls] == [False] * len(meter.calls)

    def test_a_closed_backend_sends_no_request(
        self, backend: Backend, request_count: RequestCount
    ) -> None:
        before = request_count()
        backend.close()
        backend.close()
        with pytest.raises(ModelFailure) as raised:
            backend.ask(QUESTION, Metered(), ignore)
        assert raised.value.hint
        assert request_count() == before
