"""Ask a model about a pack: fit the prompt, stream the answer, and count the cost.

`keep_answer` stores the answer. No store is open while a model works, so this has three parts:
`prepare` reads, `ask` waits, `keep_answer` writes.
"""

from typing import NamedTuple

from ctx import clock, interrupts
from ctx.errors import BudgetExceeded, ModelFailure, UsageError
from ctx.ids import NodeId, SessionId, Ulid
from ctx.llm import backends
from ctx.llm.http_client import RequestRefused
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.prices import Prices, prices
from ctx.llm.protocol import Answer, Backend, Capabilities, Meter, OnToken, Request, ignore
from ctx.memory.query.query_parser import parse
from ctx.operations import keep_answer
from ctx.operations.pack import Options as PackOptions
from ctx.operations.pack import pack as packing
from ctx.packs import prompt, recent_work
from ctx.packs.prompt import PromptFrame
from ctx.packs.prompt_pack import Chunk, PromptPack
from ctx.workspace import Memory

PURPOSE = "llm"

PREFIX = (
    "You are a careful software engineer. Answer from the context that you are given, and say"
    " so where it does not tell."
)
INSTRUCTION = (
    "Answer the task. Name files and symbols as the context does. Put each decision on a line"
    " of its own that begins with `Decision:`."
)

_TEMPLATE = 64
"""Tokens that a server adds to a prompt."""
_ANSWERS_SHARE = 2
"""Half of the context of a small model is for the answer, unless a limit is given."""
_KEPT_FREE = 20
"""Tokens are estimated: a twentieth of the room is not planned with."""
_NOT_FOUND = 404
_LEAST = 200
_SHORTEST_ANSWER = 50
"""The fewest tokens for a useful answer."""
_TRIES = 3


class LlmOptions(NamedTuple):
    """What is to be asked, and how: about a pack that is there, or one that a query builds."""

    pack: PromptPack | None = None
    query: str = ""
    budget: int | None = None
    """Of the pack that is built; None: as the settings and the model say."""
    max_tokens: int | None = None
    temperature: float | None = None


class LlmQuestion(NamedTuple):
    """What is ready to be asked."""

    task: str
    request: Request
    model: str
    """Who will be asked, as far as that is known."""
    estimate: int
    """Tokens of the request, by our own count."""
    files: tuple[str, ...]
    """Those that the pack has parts of."""
    receipt: str | None
    session: SessionId
    project: str | None
    caps: Caps
    prices: Prices


def prepare(memory: Memory, backend: Backend, options: LlmOptions) -> LlmQuestion:
    """The question that fits the model. E010 where the pack, or any pack, does not."""
    seen = _capabilities(backend)
    config = memory.config
    room = _ContextWindow(
        seen.context_tokens, _answer_limit(options, seen, config.integer("llm.max_response_tokens"))
    )
    temperature = options.temperature
    frame = PromptFrame(
        PREFIX,
        INSTRUCTION,
        room.answer,
        config.number("llm.temperature") if temperature is None else temperature,
    )
    if options.pack is None:
        pack, request = _build_pack(memory, options, frame, room)
    else:
        pack = _without_answers(memory, options.pack)
        request = prompt.compose(pack, frame)
        if not room.holds(request):
            raise _too_large(request, room)
    return LlmQuestion(
        pack.task,
        request,
        seen.model or backend.model,
        _tokens(request),
        tuple(dict.fromkeys(chunk.path for chunk in pack.retrieved if chunk.path)),
        pack.receipt,
        memory.session,
        memory.project,
        Caps(config.integer("llm.daily_token_cap")),
        prices(config.texts("llm.prices")),
    )


def meter(ledger: Ledger, backend: Backend, question: LlmQuestion) -> Meter:
    """What allows and counts the call."""
    purpose = Purpose(PURPOSE, question.session, question.project)
    to = ModelTarget(backend.name, backend.where, question.model)
    return ledger.meter(purpose, to, question.caps, question.prices)


def ask(
    backend: Backend, question: LlmQuestion, meter: Meter, on_token: OnToken = ignore
) -> Answer:
    """The answer of the model; if it is interrupted, the part that has arrived.

    `ModelFailure` if there is no answer at all.
    """
    heard: list[str] = []
    began = clock.monotonic()

    def hearing(piece: str) -> None:
        heard.append(piece)
        on_token(piece)

    try:
        answer = backends.ask(backend, question.request, meter, hearing)
    except RequestRefused as refused:
        if refused.status == _NOT_FOUND:
            refused.detail = _available_models(backend)
        raise
    except KeyboardInterrupt:
        if not "".join(heard).strip():
            raise
        interrupts.accept()
        took_ms = round((clock.monotonic() - began) * 1000)
        return Answer("".join(heard), question.model, None, "interrupted", duration_ms=took_ms)
    if not answer.text.strip():
        raise _no_answer_error(backend, answer)
    return answer


def cost_micros(question: LlmQuestion, answer: Answer) -> int | None:
    """Millionths of a dollar; None if unknown."""
    if answer.usage is None or answer.usage.cost_micros is not None:
        return answer.usage.cost_micros if answer.usage else None
    return question.prices.cost_micros(answer.model, answer.usage)


def _capabilities(backend: Backend) -> Capabilities:
    """What a model on this machine says about itself; others are asked nothing but the question."""
    if not backend.is_free:
        return Capabilities("")
    try:
        return backend.probe()
    except ModelFailure:
        if backend.name == "llama_cpp":
            raise
        # Some servers answer questions and nothing else.
        return Capabilities("")


def _available_models(backend: Backend) -> str:
    """The models of a server, if it does not have the requested one."""
    try:
        backend.probe()
    except ModelFailure as failure:
        return failure.detail
    return ""


def _no_answer_error(backend: Backend, answer: Answer) -> ModelFailure:
    if answer.stop == "refused":
        return ModelFailure(
            f"The model {answer.model or backend.model} refused to answer.",
            hint="Ask in other words, or another model: --model NAME.",
        )
    return ModelFailure(
        f"The model {answer.model or backend.model} at {backend.where} gave no"
        f" answer{f': {answer.problem}' if answer.problem else '.'}",
        hint="Ask again, or with more --max-tokens; `ctx doctor` looks at the model.",
    )


# How much fits


class _ContextWindow(NamedTuple):
    """What a model takes at once."""

    context: int | None
    """None if it does not report it."""
    answer: int
    """Tokens of it that are kept for the answer."""

    @property
    def question(self) -> int | None:
        if self.context is None:
            return None
        return self.context - self.context // _KEPT_FREE - self.answer

    def holds(self, request: Request) -> bool:
        return self.question is None or _tokens(request) <= self.question


def _answer_limit(options: LlmOptions, seen: Capabilities, configured: int) -> int:
    if options.max_tokens is not None:
        if options.max_tokens < 1:
            raise UsageError(
                "--max-tokens must be at least 1.", hint="For example: --max-tokens 500"
            )
        return options.max_tokens
    if seen.context_tokens is None:
        return configured
    return max(1, min(configured, seen.context_tokens // _ANSWERS_SHARE))


def _build_pack(
    memory: Memory, options: LlmOptions, frame: PromptFrame, room: _ContextWindow
) -> tuple[PromptPack, Request]:
    """The pack for a query, as large as the model and the settings allow."""
    query = parse(options.query)
    # A pack shortens a long task, because its reader has the task. A model does not.
    task = query.words.strip() or query.text
    budget = options.budget
    if budget is None:
        budget = memory.config.integer("retrieval.default_budget")
    if room.question is not None:
        free = room.question - _tokens(prompt.compose(prompt.empty_pack(task), frame))
        if free < _LEAST:
            raise _no_room_error(room, free)
        if options.budget is not None and options.budget > free:
            raise _pack_too_large_error(options.budget, free, room)
        budget = min(budget, free)
    for _ in range(_TRIES):
        pack = packing(memory, PackOptions(options.query, budget))
        pack = _without_answers(memory, pack._replace(task=task))
        request = prompt.compose(pack, frame)
        if room.question is None or room.holds(request):
            return pack, request
        # A question has other words around its chunks than a pack has.
        budget -= _tokens(request) - room.question
    raise _too_large(request, room)


def _without_answers(memory: Memory, pack: PromptPack) -> PromptPack:
    """A pack without earlier answers of models: a model would take its own words for facts, and the
    same question would differ each time."""
    nodes = [NodeId(Ulid(chunk.object_id)) for chunk in pack.retrieved if chunk.path is None]
    answers = {node.id for node in memory.graph.nodes(nodes) if keep_answer.TAG in node.tags}
    return pack._replace(
        retrieved=tuple(
            chunk
            for chunk in pack.retrieved
            if chunk.object_id not in answers and not _is_noted_answer(chunk)
        ),
        recent_narrative=recent_work.without_entries(pack.recent_narrative, keep_answer.TITLE),
    )


def _is_noted_answer(chunk: Chunk) -> bool:
    """Whether it is an answer as `--commit` has it written to the log."""
    is_of_the_log = chunk.path is not None and "/log/" in f"/{chunk.path}"
    return is_of_the_log and chunk.title.removeprefix("Narrative: ").startswith(keep_answer.TITLE)


def _no_room_error(room: _ContextWindow, free: int) -> BudgetExceeded:
    """There is no room for a pack: because of the answer, or of the task itself."""
    context = room.context or 0
    shorter = min(context // 4, room.answer + free - _LEAST)
    if shorter >= _SHORTEST_ANSWER:
        return BudgetExceeded(
            f"The model takes {context:,} tokens at once, and {room.answer:,} of them are for the"
            " answer: nothing is left for a pack.",
            hint=f"--max-tokens {shorter} leaves more.",
        )
    taken = (room.question or 0) - free
    return BudgetExceeded(
        f"The question takes about {taken:,} tokens without a pack, and the model takes {context:,}"
        f" at once, with {room.answer:,} for the answer.",
        hint="Give a shorter task, or ask a model that takes more.",
    )


def _pack_too_large_error(budget: int, free: int, room: _ContextWindow) -> BudgetExceeded:
    return BudgetExceeded(
        f"A pack of {budget:,} tokens does not fit: the model takes {room.context:,} at once, and"
        f" {room.answer:,} are for the answer.",
        hint=f"--budget {free} fits.",
    )


def _too_large(request: Request, room: _ContextWindow) -> BudgetExceeded:
    taken = _tokens(request)
    without_pack = request._replace(parts=(request.parts[0], request.parts[-1]))
    fitting = (room.question or 0) - _tokens(without_pack)
    return BudgetExceeded(
        f"The question takes about {taken:,} tokens and the answer up to {room.answer:,}, and the"
        f" model takes {room.context:,} at once.",
        hint=f"Build a smaller pack: `ctx query … --budget {fitting}`."
        if fitting >= _LEAST
        else "Give fewer --max-tokens, or ask a model that takes more.",
    )


def _tokens(request: Request) -> int:
    return request.estimate + _TEMPLATE
