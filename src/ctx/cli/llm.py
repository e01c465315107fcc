"""`ctx llm`"""

import argparse
import os
from contextlib import ExitStack
from typing import NamedTuple

from ctx.cli import arguments, opening
from ctx.cli import commit as commit_command
from ctx.cli import settings as surroundings
from ctx.cli.add_document import workspace_to_commit
from ctx.cli.nodes import warn_of_redaction
from ctx.cli.options import flag, session_option
from ctx.cli.output import Block, Markdown, Output, ReaderGone, count
from ctx.cli.settings import Settings
from ctx.config.resolve import Config
from ctx.errors import ContentRefused, CtxError, ModelFailure, UsageError
from ctx.ids import short
from ctx.llm import backends
from ctx.llm.ledger import Ledger
from ctx.llm.protocol import Backend, Cache, Stop, Usage
from ctx.operations import commit, keep_answer, llm
from ctx.operations.commit import CommitResult
from ctx.operations.keep_answer import KeptAnswer, ModelResponse
from ctx.operations.llm import LlmOptions, LlmQuestion
from ctx.packs import prompt
from ctx.workspace import Workspace

EXAMPLES = """
ctx llm "Why are payments charged twice?"                  build a pack and ask
ctx query "Why are payments charged twice?" | ctx llm      ask about an existing pack
ctx llm --pack pack.json --max-tokens 500 --temperature 0
ctx llm "Explain the Client struct" --server http://127.0.0.1:8080
ctx llm - --backend claude_cli < issue.md                  a long one, from stdin
ctx llm "Which retry limit is right?" --commit             also into the log, and a commit
"""

_INTERRUPTED = 130
_HIGHEST_TEMPERATURE = 2.0
_MOST_NAMED = 5
_MICROS = 1_000_000
_WAYS = 'Use `ctx llm "…"`, `ctx query "…" | ctx llm` or `ctx llm --pack FILE`.'
_NO_MODEL = (
    "To ask one now: `ctx llm --backend llama_cpp --server http://127.0.0.1:8080 …`."
    " To configure one: `ctx config set llm.backend llama_cpp`"
)


class LlmResult(NamedTuple):
    """The answer of a model, its cost, and where it is stored."""

    answer: str
    task: str
    model: str
    backend: str
    where: str
    stop: Stop
    problem: str
    usage: Usage | None
    """None if unknown."""
    cost_micros: int | None
    """Millionths of a dollar; None if unknown."""
    cache: Cache | None
    duration_ms: int
    receipt: str | None
    """The receipt of the pack, for `ctx why`."""
    kept: KeptAnswer | None
    """None if it could not be stored."""
    note: str | None = None
    """With `--commit`: the log file."""
    commit: CommitResult | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "question",
        nargs="*",
        metavar="QUESTION",
        help="build a pack for it, and ask (- reads stdin)",
    )
    source = parser.add_mutually_exclusive_group()
    instead = "give the question as an argument, in quotes."
    arguments.older_option(source, "--query", instead, metavar="TASK")
    source.add_argument(
        "--pack", metavar="FILE", help="a pack, as JSON (default: what comes on stdin)"
    )
    arguments.number(parser, "--budget", "tokens of the pack that is built")
    parser.add_argument(
        "--backend", choices=backends.NAMES, help="the backend (default: `llm.backend`)"
    )
    parser.add_argument("--server", metavar="URL", help="the server (default: `llm.server_url`)")
    parser.add_argument("--model", metavar="NAME", help="the model (default: `llm.model`)")
    arguments.number(parser, "--max-tokens", "the token limit of the answer")
    parser.add_argument(
        "--temperature", type=_temperature, metavar="F", help="the sampling temperature, 0 to 2"
    )
    flag(parser, "--commit", "write the answer to the log too, and commit it")
    parser.add_argument("-m", "--message", help="the commit's message (implies --commit)")
    session_option(parser)
    # A question asked in a project belongs to the project.
    parser.set_defaults(user=False)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> int:
    if options.question:
        if options.query is not None or options.pack is not None:
            raise UsageError("Give the question or --pack, not both.")
        options.query = " ".join(options.question)
    opening.refuse_untrusted(settings, "`ctx llm`")
    # Check what `--commit` commits before spending anything.
    committing = workspace_to_commit(options, settings, output)
    if options.model is not None:
        if not (model := options.model.strip()):
            raise UsageError("--model needs a name.", hint="Leave it out for `llm.model`.")
        settings = settings._replace(overrides=(*settings.overrides, f"llm.model={model}"))
    wanted = _llm_options(options, settings)
    appearing = _StreamedAnswer(output)
    with ExitStack() as stack:
        with opening.reading(settings, output) as memory:
            backend = _backend(memory.config, options, settings)
            stack.callback(backend.close)
            question = llm.prepare(memory, backend, wanted)
        output.note(_request_summary(backend, question))
        ledger = stack.enter_context(Ledger(settings.user_store.ledger))
        meter = llm.meter(ledger, backend, question)
        answer = llm.ask(backend, question, meter, appearing.add)
    appearing.add("" if answer.text.endswith("\n") else "\n")
    answered = LlmResult(
        answer.text,
        question.task,
        answer.model or question.model,
        backend.name,
        backend.where,
        answer.stop,
        answer.problem,
        answer.usage,
        llm.cost_micros(question, answer),
        answer.cache,
        answer.duration_ms,
        question.receipt,
        None,
    )
    try:
        answered = _keep(answered, question, committing, options, settings, output)
    except (CtxError, KeyboardInterrupt) as error:
        # It has cost something, and there is no other copy.
        _show(answered, output)
        if isinstance(error, CtxError):
            error.message += " The answer was not stored."
        else:
            output.warn("The answer was not stored.")
        raise
    try:
        appearing.check()
        _show(answered, output)
    except CtxError as error:
        # Do not make the user pay for it again.
        if answered.kept:
            error.hint = _kept_summary(answered.kept)
        raise
    return _print_details(answered, output)


class _StreamedAnswer:
    """An answer that is printed as it arrives. Errors are raised after it is stored."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._problem: CtxError | ReaderGone | None = None

    def add(self, piece: str) -> None:
        if self._output.appears and self._problem is None:
            try:
                self._output.appear(piece)
            except (CtxError, ReaderGone) as problem:
                self._problem = problem

    def check(self) -> None:
        if self._problem is not None:
            raise self._problem


# Input


def _llm_options(options: argparse.Namespace, settings: Settings) -> LlmOptions:
    wanted = LlmOptions(max_tokens=options.max_tokens, temperature=options.temperature)
    if options.query is not None:
        task = surroundings.read_stdin() if options.query == "-" else options.query
        if not task.strip():
            raise UsageError("There is no task.", hint=_WAYS)
        return wanted._replace(query=task, budget=options.budget)
    if options.budget is not None:
        raise UsageError("--budget needs a question.", hint=_WAYS)
    return wanted._replace(pack=prompt.parse_pack(_pack_bytes(options, settings)))


def _pack_bytes(options: argparse.Namespace, settings: Settings) -> bytes:
    """The bytes of a pack, from a file, a pipe or stdin."""
    if options.pack not in (None, "-"):
        path = os.path.join(settings.folder, settings.expanded(options.pack))
        try:
            with open(path, "rb") as file:
                return file.read(prompt.LARGEST_PACK + 1)
        except OSError as error:
            raise UsageError(
                f"{options.pack} cannot be read: {error.strerror}.", hint=_WAYS
            ) from None
    if surroundings.stdin_is_terminal():
        raise UsageError("No pack to ask about.", hint=_WAYS)
    data = bytearray()
    for part in surroundings.stdin_in_parts():
        data += part
        if len(data) > prompt.LARGEST_PACK:
            break
    if not data.strip():
        raise ContentRefused("No pack on stdin.", hint=_WAYS)
    return bytes(data)


def _backend(config: Config, options: argparse.Namespace, settings: Settings) -> Backend:
    place = surroundings.variables(), settings.user_store.home
    if options.backend or options.server:
        if options.server is not None and not options.server.strip():
            raise UsageError("--server needs an address.", hint=_NO_MODEL)
        return backends.named_backend(options.backend or "", options.server or "", config, *place)
    backend = backends.configured_backend(config, *place)
    if backend is None:
        what = ", and `auto` found none" if config.choice("llm.backend") == "auto" else ""
        raise ModelFailure(f"No model is configured{what}.", hint=_NO_MODEL)
    return backend


def _temperature(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word[:20]!r} is not a number") from None
    if not 0 <= number <= _HIGHEST_TEMPERATURE:
        raise argparse.ArgumentTypeError("must be from 0 to 2")
    return number


def _request_summary(backend: Backend, question: LlmQuestion) -> str:
    model = question.model if question.model not in ("", "default") else "the model"
    return (
        f"Asking {model} at {backend.where}: about {question.estimate:,} tokens, and at most"
        f" {question.request.max_tokens:,} for the answer."
    )


# Output


def _keep(
    answered: LlmResult,
    question: LlmQuestion,
    committing: Workspace | None,
    options: argparse.Namespace,
    settings: Settings,
    output: Output,
) -> LlmResult:
    """Store the answer; with `--commit`, also log and commit a complete one."""
    response = ModelResponse(
        answered.answer,
        question.task,
        answered.model,
        answered.backend,
        answered.usage,
        answered.stop,
        question.receipt,
        question.files,
    )
    is_to_commit = committing is not None and answered.stop not in ("cut", "interrupted")
    note = None
    with opening.adding(settings, output) as memory:
        kept = keep_answer.keep_answer(memory, response)
        # An answer that was stored earlier without a commit has no note yet.
        if is_to_commit and (kept.new or kept.node.staged):
            note = keep_answer.write_to_log(memory, kept)
    answered = answered._replace(kept=kept, note=note)
    if committing is None or not is_to_commit:
        return answered
    message = options.message or kept.node.content.partition("\n")[0]
    return answered._replace(commit=commit.commit(committing, commit.Options(message)))


def _show(answered: LlmResult, output: Output) -> None:
    if not output.appears:
        output.show(answered, render)


def render(answered: LlmResult) -> list[Block]:
    return [Markdown(answered.answer)]


def _print_details(answered: LlmResult, output: Output) -> int:
    output.note(_figures(answered))
    kept = answered.kept
    assert kept is not None
    output.note(_kept_summary(kept))
    warn_of_redaction(kept.redacted, output)
    if kept.cut:
        output.warn(f"The answer is too long: the last {kept.cut:,} characters were not stored.")
    if (made := answered.commit) and made.commit:
        noted = f", with {answered.note}" if answered.note else ""
        output.note(f"Committed {short(made.commit)}{noted}.")
        commit_command.print_details(made, output)
    shown = f"`ctx show {kept.short_id}`"
    match answered.stop:
        case "interrupted":
            output.note(f"Interrupted. The partial answer is stored: {shown}")
            return _INTERRUPTED
        case "cut":
            reason = answered.problem or "The answer is incomplete."
            raise ModelFailure(
                reason, hint=f"The partial answer is stored: {shown}. Ask again for the rest."
            )
        case "length":
            output.note("The answer reached the token limit: raise --max-tokens.")
        case "refused":
            output.note("The model refused to continue.")
    return 0


def _figures(answered: LlmResult) -> str:
    """`1,364 tokens in (1,280 known), 96 out, 3.2 s, $0.0012.`"""
    figures = []
    if usage := answered.usage:
        known = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        figures += [f"{usage.input_tokens:,} tokens in{known}", f"{usage.output_tokens:,} out"]
    else:
        figures.append("token usage unknown")
    figures.append(f"{answered.duration_ms / 1000:.1f} s")
    if answered.cost_micros is not None:
        figures.append(f"${answered.cost_micros / _MICROS:.4f}")
    cache = answered.cache
    # Another question has a short common beginning.
    if cache and cache.state != "fresh" and usage and usage.cached_tokens * 2 > usage.input_tokens:
        figures.append(f"the prompt was {cache.state}")
    line = ", ".join(figures)
    return f"{line[0].upper()}{line[1:]}."


def _kept_summary(kept: KeptAnswer) -> str:
    if not kept.new:
        return f"The same answer is already stored: `ctx show {kept.short_id}`."
    names = [each.name for each in kept.mentions[:_MOST_NAMED]]
    more = f" and {len(kept.mentions) - len(names)} more" if len(kept.mentions) > len(names) else ""
    parts = []
    if kept.code_blocks:
        parts.append(count(len(kept.code_blocks), "block of code", "blocks of code"))
    if kept.decisions:
        parts.append(count(len(kept.decisions), "decision"))
    details = f" with {' and '.join(parts)}" if parts else ""
    linked = f", linked to {', '.join(names)}{more}" if names else ""
    return f"Stored as {kept.short_id}{details}{linked}: `ctx show {kept.short_id}`."
