"""Parses the output of Claude Code: one JSON object per line."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from ctx.llm.event_stream import (
    AnswerCollector,
    Event,
    as_count,
    as_name,
    as_object,
    as_text,
    shorten,
)
from ctx.llm.protocol import Stop, Usage

_OVER_BUDGET = "error_max_budget_usd"
"""The client's subtype for a reached budget."""
_SYNTHETIC = "<synthetic>"
"""The model name of messages that the client itself writes."""
_STOPS: Mapping[str, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
_STATUS = re.compile(r"API Error: (\d{3})\b", re.ASCII)
_LOGGED_OUT = ("Please run /login", "Not logged in")
_UNREACHABLE = ("ECONNREFUSED", "ENOTFOUND")
_MOST_DOLLARS = 10**9
# Fresh input, cache writes, cache reads; output.
_BY_MODEL = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")
_BY_MESSAGE = (
    *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    "output_tokens",
)


class Reply:
    """An answer in progress. The model's first message is the answer; there should be only one."""

    def __init__(self, collector: AnswerCollector) -> None:
        self.collector = collector
        self.model = ""
        self.noise = ""
        """The last line that was not JSON."""
        self._begun = 0
        self._is_done = False
        self._stop_reason = ""
        self._used: Event = {}
        self._result: Event | None = None

    def take(self, line: bytes) -> bool:
        """Process a line; whether it shows that the model is working."""
        try:
            line_json = json.loads(line)
        except (ValueError, RecursionError):
            line_json = None
        match line_json:
            case {"type": "stream_event", "event": dict(event)}:
                return not line_json.get("parent_tool_use_id") and self._take_event(event)
            case {"type": "assistant", "message": dict(message)}:
                self._read_whole_message(message)
            case {"type": "result"}:
                self._result = line_json
            case dict():
                return False
            case _:
                self.noise = as_name(line.decode("utf-8", "replace")) or self.noise
                return False
        return True

    def _take_event(self, event: Event) -> bool:
        if event.get("type") == "message_start":
            self._begun += 1
        if self._begun != 1:
            return False
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self.model = as_name(message.get("model"))
                self._used |= as_object(message.get("usage"))
            case {"type": "content_block_delta", "delta": {"text": piece}}:
                self.collector.add_text(as_text(piece))
            case {"type": "content_block_delta", "delta": {"thinking": piece}}:
                self.collector.add_thinking(as_text(piece))
            case {"type": "message_delta", "delta": dict(delta)}:
                self._stop_reason = as_text(delta.get("stop_reason"))
                self._used |= as_object(event.get("usage"))
            case {"type": "message_stop"}:
                self._is_done = True
            case {"type": "ping"}:
                return False
        return True

    def _read_whole_message(self, message: Event) -> None:
        """A whole message without pieces before it: the client did not stream it."""
        if self._begun or message.get("model") == _SYNTHETIC:
            return
        match message:
            case {"content": [*blocks]}:
                self.model = as_name(message.get("model"))
                for block in blocks:
                    self.collector.add_text(as_text(as_object(block).get("text")))

    @property
    def is_enough(self) -> bool:
        """Whether to stop: the client sends a second request, or the answer is too long."""
        return self._begun > 1 or self.collector.is_too_much

    @property
    def has_ended(self) -> bool:
        return self._result is not None

    @property
    def is_whole(self) -> bool:
        """Whether the answer is complete, or as long as allowed."""
        if self.collector.is_too_much:
            return True
        if self._begun > 1:
            return self._is_done
        if self._begun and not self._is_done:
            return False
        return self.has_ended and not self.complaint and bool(self._begun or self.collector.text)

    @property
    def stop(self) -> Stop:
        return "length" if self.collector.is_too_much else _STOPS.get(self._stop_reason, "end")

    @property
    def usage(self) -> Usage | None:
        """The usage, if it is known: for a single message that arrived completely.

        The client's sum over all models, or else the model's own report.
        """
        if self._begun != 1 or not self._is_done or not self.is_whole:
            return None
        result = self._result or {}
        models = as_object(result.get("modelUsage")).values()
        sums = [sum(_count(model, word) for model in models) for word in _BY_MODEL]
        if not any(sums):
            sums = [_count(self._used, word) for word in _BY_MESSAGE]
        fresh, written, cached, output = sums
        if not any(sums):
            return None
        return Usage(fresh + written + cached, output, cached, _micros(result))

    # Errors

    @property
    def complaint(self) -> str:
        """The client's reason why there is no answer."""
        result = self._result or {}
        kind = result.get("subtype")
        if kind == _OVER_BUDGET or (kind == "success" and not result.get("is_error")):
            return ""
        errors = result.get("errors")
        last = errors[-1] if isinstance(errors, list) and errors else ""
        return shorten(as_text(result.get("result")) or as_text(last) or as_text(kind))

    @property
    def status(self) -> int | None:
        """The HTTP status of the server, if that is the error."""
        status = (self._result or {}).get("api_error_status")
        if isinstance(status, int):
            return status
        match = _STATUS.search(self.complaint)
        return int(match[1]) if match else None

    @property
    def is_logged_out(self) -> bool:
        """Whether the client is logged out and sent nothing."""
        return self.status is None and any(words in self.complaint for words in _LOGGED_OUT)

    @property
    def is_unreachable(self) -> bool:
        """Whether the client could not reach the server."""
        return any(word in self.complaint for word in _UNREACHABLE)


def _count(usage: Any, word: str) -> int:
    return as_count(as_object(usage).get(word)) or 0


def _micros(result: Event) -> int | None:
    """Millionths of a dollar."""
    dollars = result.get("total_cost_usd")
    if not isinstance(dollars, int | float) or not math.isfinite(dollars):
        return None
    return round(dollars * 1e6) if 0 <= dollars < _MOST_DOLLARS else None
