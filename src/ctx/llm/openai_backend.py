"""Servers with OpenAI's chat protocol: Ollama, vLLM, LM Studio, llama.cpp, services.

Servers support different options. After a refusal, the option is no longer sent: usage in streams,
temperature, or an answer schema.
"""

import re
from typing import Any

from ctx.errors import ModelFailure
from ctx.llm.event_stream import (
    AnswerCollector,
    Event,
    EventReader,
    ThinkFilter,
    as_count,
    as_name,
    as_text,
)
from ctx.llm.http_client import HttpClient, RequestRefused
from ctx.llm.protocol import Answer, BackendName, Capabilities, Meter, OnToken, Request, Stop, Usage
from ctx.llm.retry import RetryPolicy
from ctx.llm.server_url import check

_STOPS: dict[str, Stop] = {"length": "length", "content_filter": "refused"}
_MOST_NAMES = 20


class OpenAi:
    name: BackendName = "openai"

    def __init__(self, url: str, model: str, api_key: str, policy: RetryPolicy) -> None:
        """`model` may be `default`: the first model of the server."""
        headers = {"Authorization": f"Bearer {api_key.strip()}"} if api_key.strip() else {}
        self._http = HttpClient("The model's server", _api_base(url), headers, policy)
        self._model = "" if model == "default" else model
        self._limit = "max_tokens"
        self._formats = ["json_schema", "json_object", "none"]
        self._unsupported: set[str] = set()

    @property
    def where(self) -> str:
        return self._http.display_url

    @property
    def model(self) -> str:
        return self._model or "default"

    @property
    def is_free(self) -> bool:
        return self._http.is_local

    def ask(self, request: Request, meter: Meter, on_token: OnToken) -> Answer:
        if not self._model:
            self._model = self.probe().model
        while True:
            try:
                return self._answer(request, meter, on_token)
            except RequestRefused as refused:
                if refused.status not in (400, 422) or not self._adapt_to(refused.reason, request):
                    raise

    def probe(self) -> Capabilities:
        models = _list(_field(self._http.get("/models"), "data"))
        named = {known: model for model in models if (known := as_name(_field(model, "id")))}
        wanted = self._model
        # Embedding models cannot chat.
        for known, model in sorted(named.items(), key=lambda pair: "embed" in pair[0]):
            # Ollama names end with a version after a colon, which may be omitted.
            if not wanted or known == wanted or known.startswith(f"{wanted}:"):
                return Capabilities(wanted or known, _context_tokens(model))
        if not named:
            raise ModelFailure(
                f"The model's server at {self.where} has no model.",
                hint="Load one there; `ctx config set llm.model NAME` chooses it.",
            )
        raise ModelFailure(
            f"The model's server at {self.where} has no model `{wanted}`.",
            detail=f"It has {', '.join([*named][:_MOST_NAMES])}.",
            hint="`ctx config set llm.model NAME` sets the model.",
        )

    def close(self) -> None:
        self._http.close()

    def _answer(self, request: Request, meter: Meter, on_token: OnToken) -> Answer:
        # Servers that do not recognise thinking send it as part of the answer.
        filter_ = ThinkFilter(on_token, is_thinking=False)
        reader = _EventReader(AnswerCollector(request.max_tokens, filter_.feed))
        body = self._body(request)
        with self._http.stream(
            "/chat/completions", body, meter, request.max_tokens, request.estimate, _is_progress
        ) as stream:
            answer = stream.answer(reader, self._model)
            return answer._replace(text=filter_.finish())

    def _body(self, request: Request) -> dict[str, Any]:
        messages = [{"role": "user", "content": request.prompt}]
        if request.system:
            messages.insert(0, {"role": "system", "content": request.system})
        body: dict[str, Any] = {"model": self._model, "messages": messages, "stream": True}
        body[self._limit] = request.max_tokens
        if "stream_options" not in self._unsupported:
            body["stream_options"] = {"include_usage": True}
        if request.temperature is not None and "temperature" not in self._unsupported:
            body["temperature"] = request.temperature
        if request.schema is not None:
            if self._formats[0] == "json_schema":
                schema = {"name": "answer", "schema": dict(request.schema), "strict": True}
                body["response_format"] = {"type": "json_schema", "json_schema": schema}
            elif self._formats[0] == "json_object":
                body["response_format"] = {"type": "json_object"}
        return body

    def _adapt_to(self, complaint: str, request: Request) -> bool:
        """Drop or rename the option that the server complains about; whether there is one."""
        if (
            self._limit == "max_tokens"
            and "max_completion_tokens" in complaint
            and re.search("(?i)instead|supported", complaint)
        ):
            self._limit = "max_completion_tokens"
            return True
        wants_format = request.schema is not None and self._formats[0] != "none"
        if wants_format and re.search("(?i)response_format|json|schema|grammar", complaint):
            self._formats.pop(0)
            return True
        for option in ("stream_options", "temperature"):
            if option in complaint.lower() and option not in self._unsupported:
                self._unsupported.add(option)
                return option != "temperature" or request.temperature is not None
        return False


class _EventReader(EventReader):
    usage: Usage | None = None

    def read(self, event: Event) -> None:
        self.model = self.model or as_name(event.get("model"))
        self.usage = _usage(event.get("usage")) or self.usage
        choice = _choice(event)
        delta = _delta(choice)
        refusal = _content(_field(delta, "refusal"))
        self.collector.add_thinking(_reasoning(delta))
        self.collector.add_text(_content(_field(delta, "content")) or refusal)
        reason = as_text(_field(choice, "finish_reason"))
        if refusal:
            self.stop = "refused"
        elif reason and self.stop is None:
            self.stop = _STOPS.get(reason, "end")


def _is_progress(event: Event) -> bool:
    choice = _choice(event)
    delta = _delta(choice)
    text = _content(_field(delta, "content")) or _content(_field(delta, "refusal"))
    return bool(text or _reasoning(delta) or _field(choice, "finish_reason"))


def _api_base(url: str) -> str:
    """The base URL of the API, from any part of it."""
    address, mark, query = check(url).partition("?")
    address = address.rstrip("/")
    if address.endswith("/chat/completions"):
        address = address.removesuffix("/chat/completions")
    elif not re.search(r"/v\d+$", address):
        address += "/v1"
    return address + mark + query


def _choice(event: Event) -> Any:
    """The first choice; others were not requested."""
    for choice in _list(event.get("choices")):
        if _field(choice, "index") in (0, None):
            return choice
    return None


def _delta(choice: Any) -> Any:
    """The new part of a choice, or all of it from a server that does not stream."""
    return _field(choice, "delta") or _field(choice, "message")


def _content(value: Any) -> str:
    """A string, which some servers send in parts."""
    return as_text(value) or "".join(as_text(_field(part, "text")) for part in _list(value))


def _reasoning(delta: Any) -> str:
    """Reasoning text, which is not part of the answer."""
    return as_text(_field(delta, "reasoning_content")) or as_text(_field(delta, "reasoning"))


def _usage(value: Any) -> Usage | None:
    read, wrote = (
        as_count(_field(value, "prompt_tokens")),
        as_count(_field(value, "completion_tokens")),
    )
    if not read or wrote is None:
        # No input tokens means that the server does not count.
        return None
    cached = as_count(_field(_field(value, "prompt_tokens_details"), "cached_tokens"))
    return Usage(read, wrote, min(cached or 0, read))


def _context_tokens(model: Any) -> int | None:
    """The context window, under any of the names that servers use."""
    words = ("max_model_len", "context_length", "context_window", "max_context_length")
    for word in words:
        if count := as_count(_field(model, word)):
            return count
    return None


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
