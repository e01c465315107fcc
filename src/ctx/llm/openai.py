"""Whatever speaks OpenAI's chat protocol: Ollama, vLLM, LM Studio, llama.cpp, services.

Servers differ in what they take. What one refuses is left out from then on: how to tell what was
used, a temperature, a schema for the answer.
"""

import re
from typing import Any

from ctx import tokens
from ctx.errors import ModelFailure
from ctx.llm.addresses import checked
from ctx.llm.model import Answer, BackendName, Hear, Meter, Request, Seen, Stop, Usage
from ctx.llm.stream import Event, Heard, Stream, count, name, text
from ctx.llm.thoughts import Aloud
from ctx.llm.tries import Patience
from ctx.llm.wire import Refused, Wire

_STOPS: dict[str, Stop] = {"length": "length", "content_filter": "refused"}
_MOST_NAMES = 20


class OpenAi:
    name: BackendName = "openai"

    def __init__(self, url: str, model: str, api_key: str, patience: Patience) -> None:
        """`model` may be `default`: the first that the server has."""
        headers = {"Authorization": f"Bearer {api_key.strip()}"} if api_key.strip() else {}
        self._wire = Wire("The model's server", _base(url), headers, patience)
        self._model = "" if model == "default" else model
        self._limit = "max_tokens"
        self._formats = ["json_schema", "json_object", "none"]
        self._left_out: set[str] = set()

    @property
    def where(self) -> str:
        return self._wire.shown

    @property
    def model(self) -> str:
        return self._model or "default"

    @property
    def is_free(self) -> bool:
        return self._wire.is_local

    def ask(self, request: Request, meter: Meter, hear: Hear) -> Answer:
        if not self._model:
            self._model = self.look().model
        while True:
            try:
                return self._answer(request, meter, hear)
            except Refused as refused:
                if refused.status not in (400, 422) or not self._follow(refused.said, request):
                    raise

    def look(self) -> Seen:
        models = _list(_field(self._wire.get("/models"), "data"))
        named = {known: each for each in models if (known := name(_field(each, "id")))}
        wanted = self._model
        # Those that make vectors cannot talk.
        for known, model in sorted(named.items(), key=lambda each: "embed" in each[0]):
            # Ollama's names have a version behind a colon, which may be left out.
            if not wanted or known == wanted or known.startswith(f"{wanted}:"):
                return Seen(wanted or known, _context_tokens(model))
        if not named:
            raise ModelFailure(
                f"The model's server at {self.where} has no model.",
                hint="Load one there; `ctx config set llm.model NAME` says which is asked.",
            )
        raise ModelFailure(
            f"The model's server at {self.where} has no model `{wanted}`.",
            detail=f"It has {', '.join([*named][:_MOST_NAMES])}.",
            hint="`ctx config set llm.model NAME` says which is asked.",
        )

    def close(self) -> None:
        self._wire.close()

    def _answer(self, request: Request, meter: Meter, hear: Hear) -> Answer:
        # Servers that do not know that a model thinks aloud send its thoughts as its answer.
        aloud = Aloud(hear, is_thinking=False)
        told = _Told(Heard(request.max_tokens, aloud.say))
        estimate = tokens.estimate(request.system) + tokens.estimate(request.prompt)
        body = self._body(request)
        with self._wire.stream(
            "/chat/completions", body, meter, request.max_tokens, estimate, _speaks
        ) as stream:
            with stream.counting(told.heard):
                told.take_all(stream)
            model = told.model or self._model
            answer = stream.answer(told.heard, model, told.usage, told.stop)
            return answer._replace(text=aloud.end())

    def _body(self, request: Request) -> dict[str, Any]:
        messages = [{"role": "user", "content": request.prompt}]
        if request.system:
            messages.insert(0, {"role": "system", "content": request.system})
        body: dict[str, Any] = {"model": self._model, "messages": messages, "stream": True}
        body[self._limit] = request.max_tokens
        if "stream_options" not in self._left_out:
            body["stream_options"] = {"include_usage": True}
        if request.temperature is not None and "temperature" not in self._left_out:
            body["temperature"] = request.temperature
        if request.schema is not None:
            if self._formats[0] == "json_schema":
                schema = {"name": "answer", "schema": dict(request.schema), "strict": True}
                body["response_format"] = {"type": "json_schema", "json_schema": schema}
            elif self._formats[0] == "json_object":
                body["response_format"] = {"type": "json_object"}
        return body

    def _follow(self, said: str, request: Request) -> bool:
        """Whether something can be left out, or named otherwise, that the server complains of."""
        if (
            self._limit == "max_tokens"
            and "max_completion_tokens" in said
            and re.search("(?i)instead|supported", said)
        ):
            self._limit = "max_completion_tokens"
            return True
        is_asked_for_a_form = request.schema is not None and self._formats[0] != "none"
        if is_asked_for_a_form and re.search("(?i)response_format|json|schema|grammar", said):
            self._formats.pop(0)
            return True
        for option in ("stream_options", "temperature"):
            if option in said.lower() and option not in self._left_out:
                self._left_out.add(option)
                return option != "temperature" or request.temperature is not None
        return False


class _Told:
    """What the events of an answer have told so far."""

    def __init__(self, heard: Heard) -> None:
        self.heard = heard
        self.model = ""
        self.stop: Stop | None = None
        self.usage: Usage | None = None

    def take_all(self, stream: Stream) -> None:
        for event in stream.events():
            self._take(event)
            if self.heard.is_too_much:
                # Leaving makes it stop.
                self.stop, self.usage = "length", None
                return

    def _take(self, event: Event) -> None:
        self.model = self.model or name(event.get("model"))
        self.usage = _usage(event.get("usage")) or self.usage
        choice = _choice(event)
        delta = _delta(choice)
        refusal = _content(_field(delta, "refusal"))
        self.heard.think(_reasoning(delta))
        self.heard.say(_content(_field(delta, "content")) or refusal)
        reason = text(_field(choice, "finish_reason"))
        if refusal:
            self.stop = "refused"
        elif reason and self.stop is None:
            self.stop = _STOPS.get(reason, "end")


def _speaks(event: Event) -> bool:
    choice = _choice(event)
    delta = _delta(choice)
    said = _content(_field(delta, "content")) or _content(_field(delta, "refusal"))
    return bool(said or _reasoning(delta) or _field(choice, "finish_reason"))


def _base(url: str) -> str:
    """The address of the API, whatever part of it was given."""
    address, mark, query = checked(url).partition("?")
    address = address.rstrip("/")
    if address.endswith("/chat/completions"):
        address = address.removesuffix("/chat/completions")
    elif not re.search(r"/v\d+$", address):
        address += "/v1"
    return address + mark + query


def _choice(event: Event) -> Any:
    """The first choice. Where several come, they are answers that nobody asked for."""
    for choice in _list(event.get("choices")):
        if _field(choice, "index") in (0, None):
            return choice
    return None


def _delta(choice: Any) -> Any:
    """What is new in it; all of it, where a server does not stream."""
    return _field(choice, "delta") or _field(choice, "message")


def _content(value: Any) -> str:
    """A text, which some servers send in parts."""
    return text(value) or "".join(text(_field(each, "text")) for each in _list(value))


def _reasoning(delta: Any) -> str:
    """What a model thinks before it answers, which is no part of the answer."""
    return text(_field(delta, "reasoning_content")) or text(_field(delta, "reasoning"))


def _usage(value: Any) -> Usage | None:
    read, wrote = count(_field(value, "prompt_tokens")), count(_field(value, "completion_tokens"))
    if not read or wrote is None:
        # Who has read nothing has not counted.
        return None
    cached = count(_field(_field(value, "prompt_tokens_details"), "cached_tokens"))
    return Usage(read, wrote, min(cached or 0, read))


def _context_tokens(model: Any) -> int | None:
    """How much a model takes, where the server says: each has a word of its own for it."""
    words = ("max_model_len", "context_length", "context_window", "max_context_length")
    for word in words:
        if found := count(_field(model, word)):
            return found
    return None


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
