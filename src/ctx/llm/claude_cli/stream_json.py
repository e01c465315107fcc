"""What Claude Code's program prints while it is asked something: one JSON object a line."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from ctx.llm.event_stream import AnswerCollector, Event, as_count, as_name, as_text, shorten
from ctx.llm.protocol import Stop, Usage

_OVER_BUDGET = "error_max_budget_usd"
"""What the client calls it that it is not to go on."""
_SYNTHETIC = "<synthetic>"
"""The model of what the client says itself."""
_STOPS: Mapping[str, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
_STATUS = re.compile(r"API Error: (\d{3})\b", re.ASCII)
_LOGGED_OUT = ("Please run /login", "Not logged in")
_UNREACHABLE = ("ECONNREFUSED", "ENOTFOUND")
_MOST_DOLLARS = 10**9
# Read anew, written to a cache, read from it; written.
_BY_MODEL = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")
_BY_MESSAGE = (
    *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    "output_tokens",
)


class Reply:
    """An answer as it comes. The first message of the model is the answer; there is to be one."""

    def __init__(self, collector: AnswerCollector) -> None:
        self.collector = collector
        self.model = ""
        self.noise = ""
        """The last line that was no JSON."""
        self._begun = 0
        self._is_done = False
        self._stop_reason = ""
        self._used: Event = {}
        self._result: Event | None = None

    def take(self, line: bytes) -> bool:
        """Take note of a line; whether it is a sign that the model is at work."""
        try:
            line_json = json.loads(line)
        except (ValueError, RecursionError):
            line_json = None
        match line_json:
            case {"type": "stream_event", "event": dict(event)}:
                return not line_json.get("parent_tool_use_id") and self._take_event(event)
            case {"type": "assistant", "message": dict(message)}:
                self._take_whole(message)
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
                self._used |= _object(message.get("usage"))
            case {"type": "content_block_delta", "delta": {"text": piece}}:
                self.collector.add_text(as_text(piece))
            case {"type": "content_block_delta", "delta": {"thinking": piece}}:
                self.collector.add_thinking(as_text(piece))
            case {"type": "message_delta", "delta": dict(delta)}:
                self._stop_reason = as_text(delta.get("stop_reason"))
                self._used |= _object(event.get("usage"))
            case {"type": "message_stop"}:
                self._is_done = True
            case {"type": "ping"}:
                return False
        return True

    def _take_whole(self, message: Event) -> None:
        """A message may come without its pieces before: the client did not get it in pieces."""
        if self._begun or message.get("model") == _SYNTHETIC:
            return
        match message:
            case {"content": [*blocks]}:
                self.model = as_name(message.get("model"))
                for block in blocks:
                    self.collector.add_text(as_text(_object(block).get("text")))

    @property
    def is_enough(self) -> bool:
        """Whether the client asks its model for more than was asked for, or the model says more."""
        return self._begun > 1 or self.collector.is_too_much

    @property
    def has_ended(self) -> bool:
        return self._result is not None

    @property
    def is_whole(self) -> bool:
        """Whether the model has line_json all it had to say, or all that it may."""
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
        """What was used, where that is known: for one message, of which every piece came.

        That is what the client says that all models used, or else what the model itself line_json.
        """
        if self._begun != 1 or not self._is_done or not self.is_whole:
            return None
        result = self._result or {}
        models = _object(result.get("modelUsage")).values()
        sums = [sum(_count(each, word) for each in models) for word in _BY_MODEL]
        if not any(sums):
            sums = [_count(self._used, word) for word in _BY_MESSAGE]
        fresh, written, cached, output = sums
        if not any(sums):
            return None
        return Usage(fresh + written + cached, output, cached, _micros(result))

    # Where it went wrong

    @property
    def complaint(self) -> str:
        """Why the client has no answer, in its own words."""
        result = self._result or {}
        kind = result.get("subtype")
        if kind == _OVER_BUDGET or (kind == "success" and not result.get("is_error")):
            return ""
        errors = result.get("errors")
        last = errors[-1] if isinstance(errors, list) and errors else ""
        return shorten(as_text(result.get("result")) or as_text(last) or as_text(kind))

    @property
    def status(self) -> int | None:
        """What the server answered, where it was that."""
        status = (self._result or {}).get("api_error_status")
        if isinstance(status, int):
            return status
        found = _STATUS.search(self.complaint)
        return int(found[1]) if found else None

    @property
    def is_logged_out(self) -> bool:
        """Whether the client had nobody's name to ask in, so that it did not ask."""
        return self.status is None and any(words in self.complaint for words in _LOGGED_OUT)

    @property
    def is_unreachable(self) -> bool:
        """Whether the client found nobody to ask."""
        return any(word in self.complaint for word in _UNREACHABLE)


def _object(value: Any) -> Event:
    return value if isinstance(value, dict) else {}


def _count(usage: Any, word: str) -> int:
    return as_count(_object(usage).get(word)) or 0


def _micros(result: Event) -> int | None:
    """Millionths of a dollar."""
    dollars = result.get("total_cost_usd")
    if not isinstance(dollars, int | float) or not math.isfinite(dollars):
        return None
    return round(dollars * 1e6) if 0 <= dollars < _MOST_DOLLARS else None
