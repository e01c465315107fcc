"""What every way to a model promises, whatever it is a way to."""

from collections.abc import Callable

import pytest

from ctx.errors import BudgetExceeded, ModelFailure
from ctx.llm.protocol import Backend, Request, Usage, ignore

QUESTION = Request("Answer in one word.", ("The sky is blue.\n", "Which colour has the sky?"), 12)
UNICODE = Request("日本語で。", ('naïve — “quoted” 👩‍👩‍👧 \\ " \x00\n', "更新令牌 обновить?"), 12)
BLANKS = Request("", ("", "Say something.", "", " \n"), 12)
HALF_A_CHARACTER = Request("Be brief.", ("broken \ud800 surrogate",), 12)

TimesAsked = Callable[[], int | None]
"""How many questions have reached the model; None where nobody counts them."""


class Reserved:
    """What became of one request."""

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
    """A meter that remembers, with a cap as the ledger has one."""

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
    """A subclass gives a backend that answers, and says how often its model was asked."""

    KEY = "sk-contract-0123456789"
    """A key that a backend is made with, where it takes one."""

    @pytest.fixture
    def backend(self) -> Backend:
        raise NotImplementedError

    @pytest.fixture
    def times_asked(self) -> TimesAsked:
        raise NotImplementedError

    def test_it_says_what_it_is_and_keeps_its_key(self, backend: Backend) -> None:
        assert backend.name in ("llama_cpp", "openai", "anthropic", "claude_cli", "scripted")
        assert backend.where
        assert backend.model
        assert isinstance(backend.is_free, bool)
        for shown in (backend.where, backend.model, repr(backend), str(backend.probe())):
            assert self.KEY not in shown

    def test_a_look_spends_nothing(self, backend: Backend, times_asked: TimesAsked) -> None:
        before = times_asked()
        backend.probe()
        assert times_asked() == before

    @pytest.mark.parametrize("request_", [QUESTION, UNICODE, BLANKS, HALF_A_CHARACTER])
    def test_it_answers_and_its_pieces_are_the_answer(
        self, backend: Backend, request_: Request
    ) -> None:
        heard: list[str] = []
        answer = backend.ask(request_, Metered(), heard.append)
        assert "".join(heard) == answer.text
        assert all(heard), "an empty piece is none"
        assert answer.stop in ("end", "length")
        assert answer.problem == ""
        assert answer.model
        assert answer.duration_ms >= 0
        answer.text.encode()

    def test_it_reserves_before_and_settles_after(self, backend: Backend) -> None:
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

    def test_a_meter_that_refuses_keeps_it_from_asking(
        self, backend: Backend, times_asked: TimesAsked
    ) -> None:
        before = times_asked()
        meter = Metered(cap=5)
        with pytest.raises(BudgetExceeded, match="too much"):
            backend.ask(QUESTION, meter, ignore)
        assert meter.calls == []
        assert times_asked() == before

    def test_an_interruption_passes_through_and_counts(self, backend: Backend) -> None:
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

    def test_one_question_after_the_other(self, backend: Backend) -> None:
        meter = Metered()
        for _ in range(3):
            assert backend.ask(QUESTION, meter, ignore).usage is not None
        assert [call.is_open for call in meter.calls] == [False] * len(meter.calls)

    def test_once_closed_it_is_not_asked(self, backend: Backend, times_asked: TimesAsked) -> None:
        before = times_asked()
        backend.close()
        backend.close()
        with pytest.raises(ModelFailure) as raised:
            backend.ask(QUESTION, Metered(), ignore)
        assert raised.value.hint
        assert times_asked() == before
