"""Anthropic's Messages API.

The service caches prompts for a few minutes, up to the marks in the request: after the system
prompt, and after the first parts.
"""

from typing import Any
from urllib.parse import quote

from ctx.errors import ModelFailure
from ctx.llm.event_stream import AnswerCollector, Event, EventReader, as_count, as_name, as_text
from ctx.llm.http_client import HttpClient, RequestRefused
from ctx.llm.protocol import Answer, BackendName, Capabilities, Meter, OnToken, Request, Stop, Usage
from ctx.llm.retry import RetryPolicy
from ctx.llm.server_url import check

_URL = "https://api.anthropic.com"
_VERSION = "2023-06-01"
_STOPS: dict[str, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
_MOST_MARKS = 4
_MARK = {"type": "ephemeral"}


class Anthropic:
    name: BackendName = "anthropic"

    def __init__(self, url: str, model: str, api_key: str, policy: RetryPolicy) -> None:
        headers = {"anthropic-version": _VERSION}
        if api_key.strip():
            headers["x-api-key"] = api_key.strip()
        self._http = HttpClient("Anthropic", _api_base(url or _URL), headers, policy)
        self._model = model
        self._takes_temperature = True

    @property
    def where(self) -> str:
        return self._http.display_url

    @property
    def model(self) -> str:
        return self._model

    @property
    def is_free(self) -> bool:
        return False

    def ask(self, request: Request, meter: Meter, on_token: OnToken) -> Answer:
        self._check_model()
        try:
            return self._answer(request, meter, on_token)
        except RequestRefused as refused:
            # Some models do not accept a temperature.
            if (
                refused.status != 400
                or "temperature" not in refused.reason
                or (request.temperature is None or not self._takes_temperature)
            ):
                raise
        self._takes_temperature = False
        return self._answer(request, meter, on_token)

    def probe(self) -> Capabilities:
        self._check_model()
        try:
            answer = self._http.get(f"/models/{quote(self._model, safe='')}")
        except RequestRefused as refused:
            if refused.status != 404:
                raise
            raise ModelFailure(
                f"Anthropic at {self.where} has no model `{self._model}`.",
                hint="`ctx config set llm.model NAME` sets the model.",
            ) from refused
        known: Event = answer if isinstance(answer, dict) else {}
        return Capabilities(
            as_name(known.get("id")) or self._model, detail=as_name(known.get("display_name"))
        )

    def close(self) -> None:
        self._http.close()

    def _check_model(self) -> None:
        if self._model in ("", "default"):
            raise ModelFailure(
                "Anthropic has no default model.",
                hint="`ctx config set llm.model NAME` sets the model.",
            )

    def _answer(self, request: Request, meter: Meter, on_token: OnToken) -> Answer:
        reader = _EventReader(AnswerCollector(request.max_tokens, on_token))
        body = self._body(request)
        with self._http.stream(
            "/messages", body, meter, request.max_tokens, request.estimate, _is_progress
        ) as stream:
            return stream.answer(reader, self._model)

    def _body(self, request: Request) -> dict[str, Any]:
        parts = _merge_blank_parts(request.parts)
        blocks: list[dict[str, Any]] = [{"type": "text", "text": part} for part in parts]
        for block in blocks[:-1][-(_MOST_MARKS - 1) :]:
            block["cache_control"] = _MARK
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": request.max_tokens,
            "messages": [{"role": "user", "content": blocks}],
            "stream": True,
        }
        if request.system.strip():
            system = {"type": "text", "text": request.system, "cache_control": _MARK}
            body["system"] = [system]
        if request.temperature is not None and self._takes_temperature:
            # The maximum is 1 here and 2 elsewhere.
            body["temperature"] = min(request.temperature, 1.0)
        return body


class _EventReader(EventReader):
    def __init__(self, collector: AnswerCollector) -> None:
        super().__init__(collector)
        self._counts: dict[str, int] = {}

    @property
    def usage(self) -> Usage | None:
        counts = self._counts
        if "input_tokens" not in counts or "output_tokens" not in counts:
            return None
        cached = counts.get("cache_read_input_tokens", 0)
        read = counts["input_tokens"] + counts.get("cache_creation_input_tokens", 0) + cached
        return Usage(read, counts["output_tokens"], cached)

    def read(self, event: Event) -> None:
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self._note(message)
                # The output count at the start is not the final one.
                self._counts.pop("output_tokens", None)
            case {"type": "content_block_delta", "delta": {"text": piece}}:
                self.collector.add_text(as_text(piece))
            case {"type": "content_block_delta", "delta": {"thinking": piece}}:
                self.collector.add_thinking(as_text(piece))
            case {"type": "message_delta", "delta": dict(delta)}:
                self._note({**delta, "usage": event.get("usage")})
            case {"type": "message", "content": [*blocks]}:
                # The whole message from a server that does not stream.
                for block in blocks:
                    match block:
                        case {"type": "text", "text": piece}:
                            self.collector.add_text(as_text(piece))
                self._note(event)

    def _note(self, message: Event) -> None:
        self.model = as_name(message.get("model")) or self.model
        if reason := as_text(message.get("stop_reason")):
            self.stop = _STOPS.get(reason, "end")
        usage = message.get("usage")
        for word, value in usage.items() if isinstance(usage, dict) else ():
            if (count := as_count(value)) is not None:
                self._counts[word] = count


def _is_progress(event: Event) -> bool:
    return event.get("type") in ("content_block_delta", "message_delta", "message_stop", "message")


def _api_base(url: str) -> str:
    """The base URL of the API, from any part of it."""
    address, mark, query = check(url).partition("?")
    address = address.rstrip("/").removesuffix("/messages").removesuffix("/v1")
    return f"{address}/v1{mark}{query}"


def _merge_blank_parts(parts: tuple[str, ...]) -> list[str]:
    """Merge blank parts into their neighbours: the service rejects blank parts."""
    merged: list[str] = []
    for part in parts:
        if merged and not (part.strip() and merged[-1].strip()):
            merged[-1] += part
        else:
            merged.append(part)
    return merged
