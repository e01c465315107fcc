"""A streamed answer: bytes, lines, events.

A server sends either server-sent events with a JSON object each, or a single JSON object. The first
character decides which, whatever the headers say.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from ctx import clock, tokens
from ctx.errors import ModelFailure
from ctx.llm.protocol import Answer, OnToken, Reservation, Stop, Usage

_LONGEST_LINE = 1024 * 1024
_BOM_AND_BLANKS = b"\xef\xbb\xbf \t\r\n"
_FIELDS = (b"data", b"error", b"event", b"id", b"retry", b"")
"""Valid field names. Old llama.cpp servers send errors in a field of their own; a line that starts
with a colon is a comment."""
_HTML_HINT = (
    "That may be a page for people; an API is at an address such as http://127.0.0.1:8080."
    " `ctx config set llm.server_url URL` changes it."
)
_MOST_TOKENS = 10**12
_USUAL_TOKEN, _LONGEST_TOKEN = 4, 16
"""Bytes per token in any language: typical, and the highest average of a text."""
_LONGEST_QUOTE = 200
"""The longest quote of a server's text in a message, in characters."""
BUSY_STATUSES = (408, 429, 500, 502, 503, 504, 529)
"""Status codes after which a retry may succeed."""

Event = dict[str, Any]


class StreamError(Exception):
    """The answer cannot be read further. The text completes a sentence about the server."""

    def __init__(self, what: str, *, may_repeat: bool = False, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.may_repeat = may_repeat
        """Whether a retry may succeed."""
        self.hint = hint


class AnswerStream:
    """The events of one answer; the first ones have arrived."""

    def __init__(
        self,
        begun: list[Event],
        rest: Iterator[Event],
        reservation: Reservation,
        began: float,
        sentence: Callable[[str], str],
    ) -> None:
        self._begun = begun
        self._rest = rest
        self._reservation = reservation
        self._began = began
        self._sentence = sentence
        self.problem = ""
        """Why the stream ended early, as a sentence."""

    def events(self) -> Iterator[Event]:
        """All events until the answer is complete, or until `problem` is set."""
        try:
            yield from self._begun
            yield from self._rest
        except StreamError as broken:
            self.problem = self._sentence(broken.what)

    def settle(self, usage: Usage, model: str) -> None:
        """Settle the reservation with the reported usage."""
        self._reservation.settle(usage, model)

    @contextmanager
    def counting_excess(self, collector: "AnswerCollector") -> Iterator[None]:
        """While an answer is collected: on exit, tokens beyond its limit are counted."""
        try:
            yield
        finally:
            if collector.excess:
                self._reservation.exceed(collector.excess)

    def answer(self, reader: "EventReader", model: str) -> Answer:
        """Read the whole answer. `model` is the requested one.

        Usage is settled only for a complete answer and if it is plausible. Raises `ModelFailure` if
        nothing arrived.
        """
        collector = reader.collector
        with self.counting_excess(collector):
            for event in self.events():
                reader.read(event)
                if collector.is_too_much:
                    # Closing the connection stops the server.
                    reader.stop = "length"
                    break
        text, model, stop, usage = collector.text, reader.model or model, reader.stop, reader.usage
        took_ms = round((clock.monotonic() - self._began) * 1000)
        if stop is None:
            problem = self.problem or self._sentence("ended its answer before it was done")
            if not text:
                raise ModelFailure(problem)
            return Answer(text, model, None, "cut", problem, took_ms)
        if self.problem or collector.is_too_much or (usage and collector.contradicts(usage)):
            usage = None
        if usage is not None:
            self.settle(usage, model)
        return Answer(text, model, usage, stop, "", took_ms)


class AnswerCollector:
    """Collects the text of an answer and checks its length limit.

    Servers that do not know the limit parameter ignore it. Only the server knows the real token
    count, and some send single letters: so both the number of pieces and the text must be far over
    the limit. Other servers send many tokens per piece: then the text alone must be longer than any
    tokenizer could encode in that many tokens.
    """

    def __init__(self, most: int, on_token: OnToken) -> None:
        self.pieces: list[str] = []
        self._most = most
        self._hear = on_token
        self._count = 0
        self._size = 0
        self._bytes = 0

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_too_much(self) -> bool:
        is_far_too_much = self._count > self._most and self._size > 2 * self._most
        return is_far_too_much or self._bytes > self._most * _LONGEST_TOKEN

    @property
    def excess(self) -> int:
        """How many tokens the answer is over its limit, as far as we can tell.

        A piece is at least one token, except for single letters; a token has about four bytes.
        """
        return max(0, max(self._count, self._bytes // _USUAL_TOKEN) - self._most)

    def contradicts(self, usage: Usage) -> bool:
        """Whether the answer is over its limit and longer than the reported usage can be."""
        return self.excess > 0 and self._bytes > usage.output_tokens * _LONGEST_TOKEN

    def add_text(self, piece: str) -> None:
        if piece:
            self.pieces.append(piece)
            self.add_thinking(piece)
            self._hear(piece)

    def add_thinking(self, piece: str) -> None:
        """Count text that is not part of the answer."""
        if piece:
            self._count += 1
            self._size += tokens.estimate(piece)
            self._bytes += len(piece.encode("utf-8", "replace"))


class EventReader:
    """Reads the events of an answer."""

    def __init__(self, collector: AnswerCollector) -> None:
        self.collector = collector
        self.model = ""
        self.stop: Stop | None = None
        """Why the answer ended, if the server gave a reason."""

    @property
    def usage(self) -> Usage | None:
        raise NotImplementedError

    def read(self, event: Event) -> None:
        raise NotImplementedError


def read_events(chunks: Iterable[bytes], largest: int) -> Iterator[Event]:
    """The JSON objects in an answer of at most `largest` bytes; `StreamError` if invalid."""
    coming = _limit_size(chunks, largest)
    first = b""
    for chunk in coming:
        first = chunk.lstrip(_BOM_AND_BLANKS)
        if first:
            break
    if not first:
        raise StreamError("answered with nothing")
    if first[:1] in b"{[":
        yield _parse_object(b"".join((first, *coming)))
    else:
        yield from _parse_sse(_lines(chain((first,), coming)))


def parse_json(body: bytes) -> Any:
    """Parse a whole answer as JSON; `StreamError` if it is not."""
    try:
        return json.loads(body.lstrip(_BOM_AND_BLANKS).decode())
    except UnicodeDecodeError as error:
        raise StreamError(f"answered with text that is not UTF-8: {one_line(body)}") from error
    except (ValueError, RecursionError) as error:
        if is_html(body):
            raise StreamError(
                f"answered with HTML, not JSON: {one_line(body)}", hint=_HTML_HINT
            ) from error
        if not body.strip():
            raise StreamError("answered with nothing") from error
        raise StreamError(f"answered with invalid JSON: {one_line(body)}") from error


def is_html(body: bytes) -> bool:
    head = body.lstrip(_BOM_AND_BLANKS)[:20].lower()
    return head.startswith((b"<!doctype", b"<html", b"<head", b"<body"))


def one_line(text: str | bytes) -> str:
    """The start of a text from outside, on one line and without control characters."""
    if isinstance(text, bytes):
        text = text[: _LONGEST_QUOTE * 4].decode("utf-8", "replace")
    words = "".join(
        char if char.isprintable() else " " for char in text[: _LONGEST_QUOTE * 4]
    ).split()
    return " ".join(words)


def shorten(text: str) -> str:
    """The text on one line, shortened for a message."""
    line = one_line(text)
    return line if len(line) <= _LONGEST_QUOTE else f"{line[: _LONGEST_QUOTE - 1]}…"


def as_text(value: Any) -> str:
    """A string that the server sent; empty for any other type."""
    # JSON can contain lone surrogates, which cannot be stored or shown.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def as_name(value: Any) -> str:
    """A name that the server sent, shortened."""
    return shorten(as_text(value))


def as_object(value: Any) -> Event:
    """A JSON object; empty if it is something else."""
    return value if isinstance(value, dict) else {}


def as_count(value: Any) -> int | None:
    """A token count, if the value is valid."""
    # Exact: JSON's `true` is an int to isinstance.
    return value if type(value) is int and 0 <= value < _MOST_TOKENS else None


def error_message(event: Event) -> str:
    """The message of an error event; empty for other events."""
    error = event.get("error")
    if not error:
        return ""
    return one_line(error_reason(error)) or "no words"


def is_retryable(event: Event) -> bool:
    """Whether the error means that the server is overloaded or failed."""
    error = event.get("error")
    if not isinstance(error, dict):
        return False
    busy = (
        "overloaded_error",
        "rate_limit_error",
        "api_error",
        "unavailable_error",
        *BUSY_STATUSES,
    )
    return error.get("type") in busy or error.get("code") in busy


def error_reason(value: Any) -> str:
    """The message in an error response, whichever field holds it."""
    for _ in range(3):
        if not isinstance(value, dict):
            break
        for word in ("error", "message", "detail"):
            if value.get(word):
                value = value[word]
                break
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _limit_size(chunks: Iterable[bytes], largest: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > largest:
            raise StreamError(f"sent an answer of more than {largest // 1_000_000} MB")
        yield chunk


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Complete lines as they arrive, and the rest after the last line end."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        for number, piece in enumerate(chunk.split(b"\n")):
            if number:
                yield b"".join(held).removesuffix(b"\r")
                held, size = [], 0
            held.append(piece)
            size += len(piece)
            if size > _LONGEST_LINE:
                raise StreamError("sent a line of more than 1 MB")
    yield b"".join(held)


def _parse_sse(lines: Iterator[bytes]) -> Iterator[Event]:
    first = next(lines)
    if first.partition(b":")[0] not in _FIELDS:
        # Parsing it gives the better error message.
        parse_json(first)
        raise StreamError(f"answered with something that is no answer: {one_line(first)}")
    data: list[bytes] = []
    for line in chain((first,), lines):
        if line:
            field, _, value = line.partition(b":")
            if field in (b"data", b"error"):
                data.append(value.removeprefix(b" "))
        elif data:
            if data == [b"[DONE]"]:
                return
            yield _parse_object(b"\n".join(data))
            data = []
    if data and data != [b"[DONE]"]:
        # Not every server terminates its last event; a truncated one is not valid JSON.
        try:
            last = _parse_object(b"\n".join(data))
        except StreamError as broken:
            raise StreamError(
                "ended its answer in the middle of a line", may_repeat=True
            ) from broken
        yield last


def _parse_object(body: bytes) -> Event:
    value = parse_json(body)
    if not isinstance(value, dict):
        raise StreamError(f"answered with JSON that is no object: {one_line(body)}")
    return value


_BEGIN, _END = "<think>", "</think>"


class ThinkFilter:
    """Passes on the pieces of an answer without the thinking before it."""

    def __init__(self, on_token: OnToken, *, is_thinking: bool) -> None:
        """`is_thinking`: the prompt ends with an open `<think>`."""
        self._hear = on_token
        self._pieces: list[str] = []
        self._held = ""
        self._is_thinking = is_thinking
        self._has_begun = False

    def feed(self, piece: str) -> None:
        if self._has_begun:
            self._pass_on(piece)
        elif self._is_thinking:
            self._think(piece)
        else:
            # Wait while the text may still become the tag.
            self._held += piece
            bare = self._held.lstrip()
            if bare.startswith(_BEGIN):
                self._is_thinking, self._held = True, ""
                self._think(bare.removeprefix(_BEGIN))
            elif not _BEGIN.startswith(bare):
                self._begin(self._held)

    def finish(self) -> str:
        """The whole answer; empty if only thinking arrived."""
        if not self._has_begun and not self._is_thinking:
            self._begin(self._held)
        return "".join(self._pieces)

    def _think(self, piece: str) -> None:
        # Keep just enough text to recognise a tag that spans two pieces.
        thought = self._held + piece
        _, end_tag, rest = thought.partition(_END)
        if not end_tag:
            self._held = thought[-len(_END) :]
        elif rest.strip():
            self._begin(rest.lstrip())
        else:
            # Blanks between the thinking and the answer belong to neither.
            self._held = f"{_END}{rest}"[: len(_END) + 1]

    def _begin(self, text: str) -> None:
        self._has_begun, self._is_thinking, self._held = True, False, ""
        self._pass_on(text)

    def _pass_on(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)
            self._hear(piece)
