"""A llama.cpp server, by its own protocol: `/completion`, `/tokenize`, `/slots`.

A prompt is sent as the tokens that the server itself made of it (`prompt_tokens`), so their number
is known before sending, and `slots` knows which prefix is cached.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from ctx import clock
from ctx.errors import BudgetExceeded, ModelFailure
from ctx.llm.event_stream import AnswerCollector, ThinkFilter, as_count, as_object, as_text, shorten
from ctx.llm.http_client import HttpClient, RequestRefused
from ctx.llm.llama_cpp import slots
from ctx.llm.llama_cpp.prompt_tokens import Prompt, Prompts
from ctx.llm.llama_cpp.slots import RecalledSlot, Slots
from ctx.llm.protocol import (
    Answer,
    BackendName,
    Cache,
    Capabilities,
    Meter,
    OnToken,
    Request,
    Reservation,
    Stop,
    Usage,
    ignore,
)
from ctx.llm.retry import RetryPolicy
from ctx.tokens import estimate

_SLOT_S = 30.0
"""A short limit: saving or restoring a slot only saves time."""
_LOADING_S = 0.25
_RESPONSE_FIELDS = (
    "content",
    "stop",
    "stop_type",
    "model",
    "id_slot",
    "tokens_evaluated",
    "tokens_predicted",
)
"""The fields of the last event, besides timings; by default it repeats the whole prompt."""
_ABANDONED: Mapping[str, Any] = {"stop_type": "limit"}
"""Stands for the last event of an answer that exceeds its limit."""


class _Server(NamedTuple):
    """What a server reports about itself."""

    model: str
    context_tokens: int | None
    identity: str
    """Identifies everything that a slot's state depends on."""
    detail: str


class LlamaCpp:
    """One server. One request at a time."""

    name: BackendName = "llama_cpp"

    def __init__(
        self, url: str, model: str, api_key: str, policy: RetryPolicy, states: str
    ) -> None:
        """`states` is the folder for the known states of the server's slots."""
        url = url.rstrip("/").removesuffix("/v1")
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = HttpClient("The llama.cpp server", url, headers, policy)
        quick = RetryPolicy(min(_SLOT_S, policy.silence_s), 0, policy.connect_s)
        self._slot_http = HttpClient("The llama.cpp server", url, headers, quick)
        self._policy = policy
        self._states = states
        self._model_fields = {} if model in ("", "default") else {"model": model}
        self._prompts = Prompts(self._http, self._model_fields)
        self._identity = ""

    @property
    def where(self) -> str:
        return self._http.display_url

    @property
    def model(self) -> str:
        return self._model_fields.get("model", "default")

    @property
    def is_free(self) -> bool:
        return self._http.is_local

    def ask(self, request: Request, meter: Meter, on_token: OnToken) -> Answer:
        began = clock.monotonic()
        server = self._server()
        if server.identity != self._identity:
            # The server may have been restarted with another model and template.
            self._prompts, self._identity = Prompts(self._http, self._model_fields), server.identity
        prompt = self._prompts.build(request)
        room = _room(server, len(prompt.tokens), request, self.where)
        known = Slots(self._slot_http, self._model_fields, self._states, server.identity)
        recalled = known.recall(prompt.boundaries)
        body = self._body(request, prompt, room, recalled)
        bounded = _BoundedMeter(meter, _most_tokens(request, prompt, room))
        filter_ = ThinkFilter(on_token, is_thinking=prompt.starts_thinking)
        collector = AnswerCollector(room, ignore)
        last: Mapping[str, Any] = {}
        try:
            with self._http.stream("/completion", body, bounded, room, request.estimate) as stream:
                with stream.counting_excess(collector):
                    for event in stream.events():
                        piece = as_text(event.get("content"))
                        filter_.feed(piece)
                        collector.add_thinking(piece)
                        if collector.is_too_much:
                            # Closing the connection stops the server.
                            last = _ABANDONED
                            break
                        if event.get("stop") is True:
                            last = event
                usage = _usage(last)
                if usage and collector.contradicts(usage):
                    usage = None
                name = _model_name(as_text(last.get("model"))) or server.model
                if usage is not None:
                    stream.settle(usage, name)
        except RequestRefused as refused:
            explained = _too_large_or_refused(refused, request, self.where)
            if request.schema is None or refused.status != 400 or explained is not refused:
                raise explained from refused
            # No server supports every schema. The caller validates the answer in any case.
            return self.ask(request._replace(schema=None), meter, on_token)
        text = filter_.finish()
        problem = "" if last else stream.problem or self._cut_short
        if problem and not text:
            raise ModelFailure(problem, hint="What the server itself prints may say why.")
        cache = self._cache_state(known, prompt, recalled, last, usage) if usage else None
        took_ms = round((clock.monotonic() - began) * 1000)
        return Answer(text, name, usage, _stop(last), problem, took_ms, cache)

    @property
    def _cut_short(self) -> str:
        return f"The llama.cpp server at {self.where} ended before its answer did."

    def probe(self) -> Capabilities:
        self._wait_for_model("/health")
        server = self._server()
        return Capabilities(server.model, server.context_tokens, server.detail)

    def count(self, text: str) -> int:
        """The number of tokens of a text for the server's model."""
        return len(self._prompts.tokenize(text))

    def close(self) -> None:
        self._http.close()
        self._slot_http.close()

    # The server

    def _server(self) -> _Server:
        query = "".join(f"?model={quote(name, safe='')}" for name in self._model_fields.values())
        props = self._wait_for_model(f"/props{query}")
        if not isinstance(props, dict) or "default_generation_settings" not in props:
            raise ModelFailure(
                f"The server at {self.where} is not a llama.cpp server.",
                hint="For other servers: `ctx config set llm.backend openai`.",
            )
        settings = as_object(props["default_generation_settings"])
        context = settings.get("n_ctx")
        adapters = str(as_object(settings.get("params")).get("lora"))
        path, alias, ftype, build = (
            as_text(props.get(key))
            for key in ("model_path", "model_alias", "model_ftype", "build_info")
        )
        return _Server(
            _model_name(alias or path),
            context if isinstance(context, int) and context > 0 else None,
            "\0".join((path, alias, ftype, build, str(context), adapters, self._stamp(path))),
            build,
        )

    def _stamp(self, path: str) -> str:
        """The size and time of a local model file. They show whether another model has the same
        path."""
        try:
            status = os.stat(path) if self._http.is_local else None
        except (OSError, ValueError):
            status = None
        return f"{status.st_size} {status.st_mtime_ns}" if status else ""

    def _wait_for_model(self, path: str) -> Any:
        """The server's answer once its model is loaded."""
        is_in_time = clock.deadline(self._policy.silence_s)
        while True:
            try:
                return self._http.get(path)
            except RequestRefused as refused:
                if refused.status == 404:
                    return None
                if refused.status != 503 or "load" not in refused.reason.lower():
                    raise
                if not is_in_time():
                    raise ModelFailure(
                        f"The llama.cpp server at {self.where} is still loading its model.",
                        hint="Ask again in a moment; `llm.timeout_seconds` says how long to wait.",
                    ) from refused
            clock.sleep(min(_LOADING_S, self._policy.silence_s))

    # The request and the answer

    def _body(
        self, request: Request, prompt: Prompt, room: int, recalled: RecalledSlot
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "prompt": prompt.tokens,
            "n_predict": room,
            "stream": True,
            "cache_prompt": True,
            # Progress events show that a server that reads for minutes is alive.
            "return_progress": True,
            "response_fields": [*_RESPONSE_FIELDS, "timings"],
            **self._model_fields,
        }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.schema is not None:
            body["json_schema"] = request.schema
        if recalled.slot is not None:
            body["id_slot"] = recalled.slot
        return body

    def _cache_state(
        self,
        known: Slots,
        prompt: Prompt,
        recalled: RecalledSlot,
        last: Mapping[str, Any],
        usage: Usage,
    ) -> Cache:
        cached = usage.cached_tokens
        slot = last.get("id_slot")
        read = slots.SlotUsage(cached, usage.output_tokens)
        is_ours = isinstance(slot, int) and usage.input_tokens == len(prompt.tokens)
        saved = is_ours and known.keep(int(slot or 0), prompt.boundaries, recalled, read)
        state: Literal["fresh", "kept", "restored"] = "restored" if recalled.is_restored else "kept"
        if not cached:
            state = "fresh"
        prefix = slots.known_part(prompt.boundaries, cached)
        return Cache(
            state,
            prefix,
            cached,
            _milliseconds(as_object(last.get("timings")).get("prompt_ms")),
            saved,
        )


class _BoundedMeter:
    """A meter for a prompt that is sent as token numbers: reserves the bytes of its text."""

    def __init__(self, meter: Meter, most: int) -> None:
        self._meter = meter
        self._most = most

    def reserve(self, tokens: int, estimate: int) -> Reservation:
        return self._meter.reserve(min(tokens, self._most), estimate)


def _most_tokens(request: Request, prompt: Prompt, room: int) -> int:
    """The most tokens a request can use: outside the frame a token has at least one byte."""
    words = f"{request.system}{request.prompt}".encode("utf-8", "replace")
    return max(len(words), len(prompt.tokens)) + room


def _room(server: _Server, tokens: int, request: Request, where: str) -> int:
    """The most tokens of the answer; an error if the prompt leaves no room."""
    if server.context_tokens is None:
        return request.max_tokens
    if tokens >= server.context_tokens:
        raise _too_large(tokens, server.context_tokens, request, where)
    return min(request.max_tokens, server.context_tokens - tokens)


def _too_large(tokens: int, context: int, request: Request, where: str) -> BudgetExceeded:
    # Budgets use our own estimate, and the answer needs room too.
    answer = min(request.max_tokens, context // 4)
    budget = int(estimate(request.prompt) * (context - answer) / max(tokens, 1) * 0.9)
    return BudgetExceeded(
        f"The prompt has {tokens:,} tokens, and the model at {where} takes {context:,} with its"
        " answer.",
        hint=f"A pack that is built with `--budget {budget // 50 * 50}` fits; the server takes more"
        " if it is started with a larger `--ctx-size`.",
    )


def _too_large_or_refused(refused: RequestRefused, request: Request, where: str) -> Exception:
    """`BudgetExceeded` if the server refused because the prompt is too large."""
    numbers = [int(word) for word in re.findall(r"\d{1,9}", refused.reason)]
    if refused.status == 400 and "context" in refused.reason and len(numbers) >= 2:
        return _too_large(numbers[0], numbers[1], request, where)
    return refused


def _usage(last: Mapping[str, Any]) -> Usage | None:
    read, answered = as_count(last.get("tokens_evaluated")), as_count(last.get("tokens_predicted"))
    if read is None or answered is None:
        return None
    timings = as_object(last.get("timings"))
    known = as_count(timings.get("cache_n"))
    if known is None:
        # Older servers report only evaluated tokens.
        known = read - (as_count(timings.get("prompt_n")) or read)
    return Usage(read, answered, max(0, min(known, read)))


def _stop(last: Mapping[str, Any]) -> Stop:
    if not last:
        return "cut"
    is_limit = last.get("stop_type") == "limit" or last.get("stopped_limit") is True
    return "length" if is_limit else "end"


def _milliseconds(value: Any) -> int:
    return round(value) if isinstance(value, int | float) and 0 <= value < 1e9 else 0


def _model_name(name: str) -> str:
    """A model's name without folder and extension."""
    return shorten(name.replace("\\", "/").rpartition("/")[2].removesuffix(".gguf"))
