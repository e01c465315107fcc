"""Ask a model what a session did: what is due, one question at a time, and the answers.

Synthesis without a model comes first, and stays if there is no answer. A question is built while
the store is open, sent while nothing is held, and its answer is stored in `model_answers`; then
`synthesise`, which never asks a model, updates the session.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from sqlite3 import Connection
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock
from ctx.capture import event_table, prompt_authors, session_state, session_table
from ctx.capture.session_state import Session
from ctx.capture.steps import Step
from ctx.config.resolve import Config
from ctx.errors import BudgetExceeded, CtxError, ModelFailure
from ctx.layout import UserStore
from ctx.llm.protocol import Answer, Backend, Meter
from ctx.memory import event_log
from ctx.redaction import redact
from ctx.sqlite.connection import transaction
from ctx.synthesis import synthesise as extractive
from ctx.synthesis.by_model import (
    merge_answers,
    model_answers,
    parse_answer,
    questions,
    step_batches,
)
from ctx.synthesis.by_model.model_answers import ModelAnswer
from ctx.synthesis.by_model.parse_answer import ParsedAnswer
from ctx.synthesis.by_model.questions import ModelQuestion, QuestionOptions
from ctx.workspace import Memory

if TYPE_CHECKING:
    from ctx.llm.ledger import Ledger, Purpose
    from ctx.llm.protocol import Answer, Backend, Meter

PURPOSE = "synthesis"

_RECENT_MS = 2 * 86_400_000
"""Older sessions are sent only on request: months of imported transcripts would use up every
cap."""
_FOR_THE_SUMMARY = 3
"""A third of what may be used for a session is left for the summary of it."""
_LONGEST_PROBLEM = 300
_FEWEST_TOKENS = 300
_SUFFICIENT_CONTEXT = 8_192


class TokensLeft(NamedTuple):
    """Tokens that may still be used."""

    today: int
    in_session: int


class SynthesisModel:
    """The model that is configured, and what may be used of it."""

    def __init__(self, backend: Backend, ledger: "Ledger", config: Config) -> None:
        from ctx.llm.prices import prices

        self.backend = backend
        self._ledger = ledger
        self._prices = prices(config.texts("llm.prices"))
        self._day = config.integer("llm.daily_token_cap")
        self._session = config.integer("llm.session_token_cap")
        self._voice = voice(config)

    def voice(self) -> QuestionOptions:
        """The limits of the model: the prompt must fit into its context.

        Reading them costs nothing. `ModelFailure` if there is no model, or if its context is too
        small for our own text.
        """
        size = self.backend.probe().context_tokens
        if size is None:
            return self._voice
        found = self._voice.within(size)
        if found.most_tokens < _FEWEST_TOKENS:
            raise ModelFailure(
                f"The model at {self.backend.where} takes {size:,} tokens at once, which is"
                " too few to summarise a session.",
                hint=f"Give its server a context of {_SUFFICIENT_CONTEXT:,} tokens or more, or"
                " `ctx config set llm.synthesis false`.",
            )
        return found

    def ask(self, question: ModelQuestion, project: str | None) -> ModelAnswer:
        """The parsed answer of the model, with one retry if it has the wrong form.

        Nothing is stored. `ModelFailure` if there is no answer, `BudgetExceeded` if it would exceed
        a cap.
        """
        from ctx.llm import backends

        self._leave_room(question)
        meter = self._meter(question, project)
        said = _require_complete(backends.ask(self.backend, question.request, meter))
        found = _parse_answer(said, question)
        if found.can_be_repaired and said.stop != "refused":
            request = questions.repair_request(question, said.text, found.problem)
            try:
                said = _require_complete(backends.ask(self.backend, request, meter))
                found = _parse_answer(said, question)
            except (BudgetExceeded, ModelFailure):
                # The first try is paid for, and a second one is not to be had.
                pass
        problem = f"The answer could not be used: {found.problem}" if found.problem else ""
        at = clock.iso(clock.now_ms())
        model = said.model or self.backend.model
        return model_answers.new_answer(question, at, model, found.body, problem)

    def left(self, session: str) -> TokensLeft:
        today = clock.iso(clock.now_ms())[:10]
        used = self._ledger.counted_in(_purpose(session, None))
        return TokensLeft(self._day - self._ledger.counted_on(today), self._session - used)

    def _meter(self, question: ModelQuestion, project: str | None) -> Meter:
        from ctx.llm.ledger import Caps, ModelTarget

        to = ModelTarget(self.backend.name, self.backend.where, self.backend.model)
        purpose = _purpose(question.session, project)
        return self._ledger.meter(purpose, to, Caps(self._day, self._session), self._prices)

    def _leave_room(self, question: ModelQuestion) -> None:
        """The summary comes last, and is worth more than one more stretch of steps."""
        from ctx.llm.ledger import SessionCapReached

        kept = self._session // _FOR_THE_SUMMARY
        room = self.left(question.session).in_session - kept
        wanted = questions.max_first_try_tokens(question)
        if question.kind == "steps" and room < wanted:
            raise SessionCapReached(
                f"A model may use {max(0, room):,} more tokens for the steps of this"
                f" session, because {kept:,} are reserved for its summary. This request may"
                f" take {wanted:,}.",
                hint="`ctx config set llm.session_token_cap N` allows more.",
            )


@contextmanager
def configured_model(
    config: Config, variables: Mapping[str, str], store: UserStore
) -> Iterator[SynthesisModel | None]:
    """The model that the user has configured; None if there is none.

    `variables` is the whole environment: a key may be in it.
    """
    from ctx.llm import backends
    from ctx.llm.ledger import Ledger

    backend = backends.configured_backend(config, variables, store.home)
    if backend is None:
        yield None
        return
    with closing(backend), Ledger(store.ledger) as ledger:
        yield SynthesisModel(backend, ledger, config)


def voice(config: Config) -> QuestionOptions:
    return QuestionOptions(
        config.integer("llm.max_response_tokens"), config.number("llm.temperature")
    )


def recent(connection: Connection) -> list[Session]:
    """The sessions to send to the model automatically, the newest first.

    They are summarised without a model first.
    """
    found = session_state.all_of(connection, since=clock.iso(clock.now_ms() - _RECENT_MS))
    return [
        each
        for each in found
        if not each.synthesised
        or event_table.first_step(connection, each.id, each.synthesised) is None
    ]


def progress_key(connection: Connection, session: Session) -> tuple[str, ...]:
    """Changes whenever there may be something new to ask about a session.

    Events count once they are steps. Those that still wait would count twice: a late one leaves
    `synthesised` as it was, so nothing would differ when its step is there.
    """
    steps = event_table.count_steps(connection, session.id)
    answered = model_answers.count_and_last(connection, session.id)
    return session.status, session.synthesised, str(steps), *map(str, answered)


def due_questions(
    connection: Connection, session: Session, voice: QuestionOptions, *, again: bool = False
) -> list[ModelQuestion]:
    """What to ask about a session now, in order; `again`: also what was asked before.

    Batches of steps while the agent is idle or gone, and the whole session when it is over.
    """
    steps = prompt_authors.steps_of(connection, session.id)[-extractive.MOST_STEPS :]
    is_over = session.status != session_state.ACTIVE
    if not any(step.kind in ("prompt", "write") for step in steps):
        return []
    if not is_over and not extractive.is_at_rest(steps):
        return []
    known = model_answers.of_session(connection, session.id)
    asked = set() if again else model_answers.asked_step_ids(known)
    found = [
        questions.batch_question(session.id, batch, _last_request(steps, batch.first), voice)
        for batch in step_batches.due_batches(
            steps, asked, is_over=is_over, most_tokens=voice.most_tokens
        )
    ]
    before = model_answers.summary_of(known)
    is_new = again or before is None or _last(before) < questions.last_step_id(steps)
    summary = _summary(session, steps, known, voice) if is_over and is_new else None
    return [*found, summary] if summary else found


def _last_request(steps: Sequence[Step], first: str) -> Step | None:
    """The last request of the user, if it is not among the steps themselves."""
    until = [step for step in steps if step.id <= first]
    asked = [step for step in until if step.kind == "prompt" and not step.agent]
    return asked[-1] if asked and asked[-1].id < first else None


def _summary(
    session: Session, steps: Sequence[Step], known: Sequence[ModelAnswer], voice: QuestionOptions
) -> ModelQuestion | None:
    found = extractive.synthesise(session, steps, is_over=True)
    if found.summary is None:
        return None
    # The model does not get its own earlier summary.
    of_steps = [each for each in known if each.kind == "steps"]
    told = merge_answers.merge_synthesis(found, steps, of_steps, is_whole=True)
    return questions.summary_question(session.id, steps, told, voice)


def _last(summary: ModelAnswer) -> str:
    """The last step that a summary is about."""
    return summary.steps[-1] if summary.steps else ""


def last_scrub(connection: Connection) -> int:
    """Changes whenever something was taken out of the store. Read it before a question is made."""
    return event_log.last_id(connection, event_log.SCRUBBED)


def keep(memory: Memory, answer: ModelAnswer, scrub: int) -> bool:
    """Store an answer, and synthesise the session again; `scrub` is the last scrub before the
    question.

    False if the session was deleted, or if something was scrubbed during the request: the answer
    could bring it back.
    """
    with transaction(memory.local):
        is_there = session_state.find(memory.local, answer.session) is not None
        if not is_there or last_scrub(memory.local) != scrub:
            return False
        model_answers.put(memory.local, answer)
        session_table.request_synthesis(memory.local, answer.session)
    return True


def note(connection: Connection, session: str, error: CtxError) -> None:
    """Keep for `ctx doctor` and `ctx status` that a model could not be asked, and why."""
    message = redact(error.message).text[:_LONGEST_PROBLEM]
    event_log.add(
        connection, event_log.MODEL_FAILED, session, {"code": error.code, "message": message}
    )


def forget(connection: Connection) -> None:
    """Answers about steps are dated by the last of them."""
    with transaction(connection):
        for session in model_answers.sessions(connection):
            if not event_table.last(connection, session):
                model_answers.forget_session(connection, session)


def last_problem(connection: Connection) -> event_log.EventLogEntry | None:
    """Why a model could not be asked, if that is the last that was heard of one."""
    answered = model_answers.last_at(connection)
    found = event_log.since(connection, "", event_log.MODEL_FAILED, limit=1)
    return found[0] if found and found[0].at > answered else None


def _purpose(session: str, project: str | None) -> "Purpose":
    from ctx.llm.ledger import Purpose

    return Purpose(PURPOSE, session, project)


def _require_complete(said: Answer) -> Answer:
    """An answer that came to its end, one way or the other."""
    if said.stop in ("cut", "interrupted"):
        raise ModelFailure(said.problem or "The model's answer was cut off.")
    return said


def _parse_answer(said: Answer, question: ModelQuestion) -> ParsedAnswer:
    found = parse_answer.read(said.text, question)
    if found.problem and said.stop == "length":
        return found._replace(problem="it is too long, and was cut off.")
    if found.problem and said.stop == "refused":
        return ParsedAnswer({}, "the model refused to answer.")
    return found
