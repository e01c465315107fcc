"""A backend that answers from a script."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx import tokens
from ctx.errors import ModelFailure
from ctx.llm.protocol import Answer, Capabilities, Request, Usage, ignore
from ctx.llm.scripted_backend import ScriptedBackend
from tests.contract.llm_backends import QUESTION, BackendContract, Metered, RequestCount


class TestScripted(BackendContract):
    @pytest.fixture
    def backend(self) -> ScriptedBackend:
        return ScriptedBackend(["Blue, as ever it was.", "It is blue.", "Blue."])

    @pytest.fixture
    def request_count(self, backend: ScriptedBackend) -> RequestCount:
        return lambda: len(backend.requests)


def test_replies_are_given_in_order_until_there_are_none_left() -> None:
    broken = ModelFailure("The server is gone.")
    cut = Answer("Half of", "real-1", None, "cut", "The server broke off.")
    backend = ScriptedBackend(["One.", broken, cut], model="real-1")
    meter = Metered()
    assert backend.probe() == Capabilities("real-1", detail="3 replies left")
    read = tokens.estimate(QUESTION.system + QUESTION.prompt)
    assert backend.ask(QUESTION, meter, ignore) == Answer("One.", "real-1", Usage(read, 2), "end")
    with pytest.raises(ModelFailure, match="The server is gone"):
        backend.ask(QUESTION, meter, ignore)
    assert backend.ask(QUESTION, meter, ignore) == cut
    with pytest.raises(ModelFailure, match="no more replies"):
        backend.ask(QUESTION, meter, ignore)
    # What was lost, and what nobody told the use of, counts in full; what was refused does not.
    assert [call.is_open for call in meter.calls] == [False, True, True, False]
    assert [call.is_released for call in meter.calls] == [False, False, False, True]
    assert backend.requests == [QUESTION] * 4


@settings(deadline=None)
@given(st.text(), st.integers(1, 50))
def test_an_answer_stays_within_its_limit(reply: str, most: int) -> None:
    heard: list[str] = []
    answer = ScriptedBackend([reply]).ask(Request("", ("?",), most), Metered(), heard.append)
    assert "".join(heard) == answer.text
    assert reply.startswith(answer.text)
    assert (answer.stop == "end") == (answer.text == reply)
    assert answer.usage is not None
    assert answer.usage.output_tokens <= most
