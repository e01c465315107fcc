"""What is asked of a model, and what it answers: one shape for every backend."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

BackendName = Literal["llama_cpp", "openai", "anthropic", "claude_cli", "scripted"]

OnToken = Callable[[str], None]
"""Is told every piece of an answer as it comes."""

Stop = Literal["end", "length", "cut", "interrupted", "refused"]
"""Why an answer ended: the model was done; it had no more tokens; the connection broke; somebody
interrupted it; the model would not."""


class Request(NamedTuple):
    system: str
    """What holds for every question: who the model is to be, and the form of its answers."""
    parts: tuple[str, ...]
    """The question, in parts that stand one behind the other. What may be the same the next time
    comes first: caches compare part by part."""
    max_tokens: int
    temperature: float | None = None
    schema: Mapping[str, Any] | None = None
    """A JSON schema that the answer is to follow. A server that can enforce it is given it; whoever
    asks looks at the answer all the same."""

    @property
    def prompt(self) -> str:
        return "".join(self.parts)


class Usage(NamedTuple):
    """What a server says that it used."""

    input_tokens: int
    """All of the request, also what a cache had."""
    output_tokens: int
    cached_tokens: int = 0
    """Of the input, what was not evaluated anew."""
    cost_micros: int | None = None
    """Millionths of a dollar, where the backend knows."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Cache(NamedTuple):
    """What became of the part of a prompt that was asked before."""

    state: Literal["fresh", "kept", "restored"]
    """Evaluated anew; still in the server's memory; read back from its disk."""
    prefix: str
    """A hash of the part that was known."""
    known_tokens: int
    """Tokens that were in the cache before the question came."""
    prompt_ms: int
    """How long the server took to read the prompt."""
    saved: bool
    """Whether it can be restored the next time."""


class Answer(NamedTuple):
    text: str
    model: str
    """As the server calls it."""
    usage: Usage | None
    """None where nobody said: the answer was cut short, or the server does not tell."""
    stop: Stop
    problem: str = ""
    """Why it was cut, in a sentence."""
    duration_ms: int = 0
    cache: Cache | None = None


class Capabilities(NamedTuple):
    """What a look at a backend showed. Nothing is spent by looking."""

    model: str
    """The one it would use, as far as it says; may be empty."""
    context_tokens: int | None = None
    """How much it takes in one request, with the answer."""
    detail: str = ""
    """Its version, or whatever else tells it from others."""


class Reservation(Protocol):
    """Tokens that are set aside for one request. What becomes of it is said once.

    Where nothing is said, all of them count as spent: the request may have been carried out.
    """

    def settle(self, usage: Usage, model: str) -> None:
        """It was answered, and the server said what it used."""

    def exceed(self, tokens: int) -> None:
        """So many more have come than an answer was allowed to have."""

    def release(self) -> None:
        """It was not carried out: nothing was sent, or the server refused it."""


class Meter(Protocol):
    def reserve(self, tokens: int, estimate: int) -> Reservation:
        """Set aside what one request may use at most, before it is sent.

        `estimate` is our own guess at its input, which is compared with what the server says. Each
        try is a request of its own. `BudgetExceeded` where that would be more than is allowed.
        """


class Backend(Protocol):
    """A way to a model. One question at a time; `close` it when done.

    `ask` raises `ModelFailure` where there is no answer at all, with a hint at the next step; what
    had come when a connection broke is an answer that was `cut`. A `KeyboardInterrupt` passes
    through: whoever hears the pieces has them.
    """

    @property
    def name(self) -> BackendName: ...
    @property
    def where(self) -> str:
        """The address or the program, for people; without a password."""

    @property
    def model(self) -> str:
        """The model that is asked for."""

    @property
    def is_free(self) -> bool:
        """Whether it costs nobody money, as far as can be told: a model on this machine."""

    def ask(self, request: Request, meter: Meter, on_token: OnToken) -> Answer: ...
    def probe(self) -> Capabilities: ...
    def close(self) -> None: ...


def ignore(_piece: str) -> None:
    """For those who wait for the whole answer."""
