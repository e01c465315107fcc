"""The events of an answer in the protocols of model servers."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

MODEL = "scripted-1"

Used = tuple[int, int]
"""Tokens read and written."""


class Spelling(NamedTuple):
    begin: Callable[[int], Iterator[bytes]]
    """The events before the first piece, from the tokens of the prompt."""
    piece: Callable[[str], bytes]
    end: Callable[[str, Used | None], Iterator[bytes]]
    """The last events: the stop reason (end, length, refused), and the usage, if reported."""


def _data(value: Any, event: str = "") -> bytes:
    line = f"event: {event}\n" if event else ""
    return f"{line}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


# OpenAI


def _openai_chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _data({"object": "chat.completion.chunk", "model": MODEL, "choices": [choice]})


def _openai_begin(read: int) -> Iterator[bytes]:
    yield _openai_chunk({"role": "assistant", "content": ""})


def _openai_piece(text: str) -> bytes:
    return _openai_chunk({"content": text})


def _openai_end(stop: str, used: Used | None) -> Iterator[bytes]:
    reason = {"end": "stop", "length": "length", "refused": "content_filter"}[stop]
    yield _openai_chunk({}, reason)
    if used is not None:
        usage = {"prompt_tokens": used[0], "completion_tokens": used[1]}
        usage["total_tokens"] = sum(used)
        yield _data({"model": MODEL, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


# Anthropic


def _anthropic(kind: str, **more: Any) -> bytes:
    return _data({"type": kind, **more}, kind)


def _anthropic_begin(read: int) -> Iterator[bytes]:
    """Half of the prompt comes from the service's cache."""
    usage = {"input_tokens": read - read // 2, "cache_read_input_tokens": read // 2}
    usage |= {"cache_creation_input_tokens": 0, "output_tokens": 1}
    message = {"id": "msg_1", "role": "assistant", "model": MODEL, "content": [], "usage": usage}
    block = {"type": "text", "text": ""}
    yield _anthropic("message_start", message=message)
    yield _anthropic("content_block_start", index=0, content_block=block)
    yield _anthropic("ping")


def _anthropic_piece(text: str) -> bytes:
    return _anthropic("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def _anthropic_end(stop: str, used: Used | None) -> Iterator[bytes]:
    reason = {"end": "end_turn", "length": "max_tokens", "refused": "refusal"}[stop]
    usage = {"usage": {"output_tokens": used[1]}} if used is not None else {}
    yield _anthropic("content_block_stop", index=0)
    yield _anthropic("message_delta", delta={"stop_reason": reason}, **usage)
    yield _anthropic("message_stop")


# llama.cpp


def _llama_begin(read: int) -> Iterator[bytes]:
    yield from ()


def _llama_piece(text: str) -> bytes:
    return _data({"index": 0, "content": text, "stop": False, "id_slot": 0})


def _llama_end(stop: str, used: Used | None) -> Iterator[bytes]:
    last: dict[str, Any] = {"index": 0, "content": "", "stop": True, "id_slot": 0, "model": MODEL}
    last["stop_type"] = {"end": "eos", "length": "limit", "refused": "eos"}[stop]
    if used is not None:
        read, wrote = used
        last |= {"tokens_evaluated": read, "tokens_predicted": wrote, "tokens_cached": 0}
        last["timings"] = {"prompt_n": read, "prompt_ms": 1.0, "predicted_n": wrote}
    yield _data(last)


PROTOCOLS = {
    "/chat/completions": Spelling(_openai_begin, _openai_piece, _openai_end),
    "/messages": Spelling(_anthropic_begin, _anthropic_piece, _anthropic_end),
    "/completion": Spelling(_llama_begin, _llama_piece, _llama_end),
}
"""By the end of the requested path."""
