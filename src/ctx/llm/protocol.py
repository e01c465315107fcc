"""Requests, answers, and the protocols that every backend and meter implements."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from ctx import tokens

BackendName = Literal["llama_cpp", "openai", "anthropic", "claude_cli", "scripted"]

OnToken = Callable[[str], None]
"""A callback that receives each piece of an answer as it arrives."""

Stop = Literal["end", "length", "cut", "interrupted", "refused"]
"""Why an answer ended: the model finished; it ran out of tokens; the connection broke; the user
interrupted it; the model refused."""


class Request(NamedTuple):
    system: str
    """The system prompt: the model's role and the format of its answers."""
    parts: tuple[str, ...]
    """The prompt, in parts that are concatenated. Parts that may repeat in the next request come
    first, because caches compare part by part."""
    max_tokens: int
    temperature: float | None = None
    schema: Mapping[str, Any] | None = None
    """A JSON schema for the answer. Servers that can enforce it receive it; the caller validates
    the answer in any case."""

    @property
    def prompt(self) -> str:
        return "".join(self.parts)

    @property
    def estimate(self) -> int:
        """Its tokens, estimated."""
        return tokens.estimate(self.system) + tokens.estimate(self.prompt)


class Usage(NamedTuple):
    """Token usage as the server reports it."""

    input_tokens: int
    """All tokens of the request, including cached ones."""
    output_tokens: int
    cached_tokens: int = 0
    """Input tokens that came from the cache."""
    cost_micros: int | None = None
    """Millionths of a dollar, if the backend knows the cost."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Cache(NamedTuple):
    """How the cache served the prompt's prefix."""

    state: Literal["fresh", "kept", "restored"]
    """Evaluated again; still in the server's memory; restored from its disk."""
    prefix: str
    """A hash of the cached prefix."""
    known_tokens: int
    """Tokens that were cached before the request."""
    prompt_ms: int
    """How long the server took to process the prompt."""
    saved: bool
    """Whether the next request can restore it."""


class Answer(NamedTuple):
    text: str
    model: str
    """The model's name as the server reports it."""
    usage: Usage | None
    """None if unknown: the answer was cut off, or the server does not report usage."""
    stop: Stop
    problem: str = ""
    """Why the answer was cut off, as a sentence."""
    duration_ms: int = 0
    cache: Cache | None = None


class Capabilities(NamedTuple):
    """What a probe of a backend found. Probing costs nothing."""

    model: str
    """The model that the backend would use; may be empty."""
    context_tokens: int | None = None
    """The context window: the most tokens of a request and its answer."""
    detail: str = ""
    """The server's version or similar."""


class Reservation(Protocol):
    """Tokens reserved for one request. It is settled, exceeded or released once.

    Without such a call all reserved tokens count as spent: the server may have processed the
    request.
    """

    def settle(self, usage: Usage, model: str) -> None:
        """The request was answered, and the server reported its usage."""

    def exceed(self, tokens: int) -> None:
        """The answer is longer than allowed by this many tokens."""

    def release(self) -> None:
        """The request was not processed: it was never sent, or the server refused it."""


class Meter(Protocol):
    def reserve(self, tokens: int, estimate: int) -> Reservation:
        """Reserve the most that one request may use, before it is sent.

        `estimate` is our estimate of its input tokens, to compare with what the server reports.
        Each retry reserves again. Raises `BudgetExceeded` above a cap.
        """


class Backend(Protocol):
    """A connection to a model. It handles one request at a time; call `close` when done.

    `ask` raises `ModelFailure`, with a hint, if there is no answer at all. If the connection
    breaks, the text so far is returned with stop `cut`. A `KeyboardInterrupt` passes through;
    `on_token` has received the text so far.
    """

    @property
    def name(self) -> BackendName: ...
    @property
    def where(self) -> str:
        """The URL or the program, for display; without a password."""

    @property
    def model(self) -> str:
        """The requested model."""

    @property
    def is_free(self) -> bool:
        """Whether the model is free to use, as far as ctx can tell: it runs on this machine."""

    def ask(self, request: Request, meter: Meter, on_token: OnToken) -> Answer: ...
    def probe(self) -> Capabilities: ...
    def close(self) -> None: ...


def ignore(_piece: str) -> None:
    """A callback for callers that wait for the whole answer."""
