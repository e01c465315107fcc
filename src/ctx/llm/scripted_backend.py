"""A backend for tests that returns scripted answers and counts tokens like a real one."""

import re
from collections.abc import Sequence

from ctx import tokens
from ctx.errors import ModelFailure
from ctx.llm.protocol import Answer, BackendName, Capabilities, Meter, OnToken, Request, Stop, Usage

_FEW_WORDS = re.compile(r"\s*(?:\S+\s*){1,3}")


class ScriptedBackend:
    """Returns its replies in order: a text, an `Answer`, or an exception to raise."""

    name: BackendName = "scripted"
    where = "a script"
    is_free = True

    def __init__(
        self, replies: Sequence[str | Answer | Exception], model: str = "scripted"
    ) -> None:
        self.requests: list[Request] = []
        """Every request that was allowed."""
        self.model = model
        self._replies = list(replies)
        self._is_closed = False

    def ask(self, request: Request, meter: Meter, on_token: OnToken) -> Answer:
        if self._is_closed:
            raise ModelFailure("The script was closed and cannot be asked any more.")
        texts = request.system + request.prompt
        read = tokens.estimate(texts)
        size = len(texts.encode("utf-8", "replace"))
        reservation = meter.reserve(size + request.max_tokens, read)
        self.requests.append(request)
        if not self._replies:
            reservation.release()
            raise ModelFailure(
                "The script has no more replies.", hint=f"It was asked {len(self.requests)} times."
            )
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        answer = reply if isinstance(reply, Answer) else self._make_answer(reply, request, read)
        for piece in _pieces(answer.text):
            on_token(piece)
        if answer.usage is not None:
            reservation.settle(answer.usage, answer.model)
        return answer

    def probe(self) -> Capabilities:
        return Capabilities(self.model, detail=f"{len(self._replies)} replies left")

    def close(self) -> None:
        self._is_closed = True

    def _make_answer(self, text: str, request: Request, read: int) -> Answer:
        stop: Stop = "end"
        if tokens.estimate(text) > request.max_tokens:
            # No character takes more than one token.
            text, stop = text[: request.max_tokens], "length"
        usage = Usage(read, tokens.estimate(text))
        return Answer(text, self.model, usage, stop)


def _pieces(text: str) -> list[str]:
    """The text in pieces of a few words."""
    if not text.strip():
        return [text] if text else []
    return _FEW_WORDS.findall(text)
