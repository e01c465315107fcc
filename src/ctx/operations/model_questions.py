"""Ask a model what a session did: what is due, one question at a time, and the answers.

Synthesis without a model comes first, and stays if there is no answer. A question is built while
the store is open, sent while nothing is held, and its answer is stored in `model_answers`; then
`synthesise`, which never asks a model, updates the session.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from sqlite3 import Connection
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock
from ctx.capture import event_table, prompt_authors, session_state, session_table
from ctx.capture.session_state import Session
from ctx.config.resolve import Config
from ctx.errors import BudgetExceeded, CtxError, ModelFailure
from ctx.layout import UserStore
from ctx.llm.protocol import Answer, Backend, Meter
from ctx.memory import event_log, lookups, model, sources
from ctx.redaction import redact
from ctx.sqlite.connection import transaction
from ctx.synthesis import session_excerpts
from ctx.synthesis import synthesise as extractive
from ctx.synthesis.by_model import merge_answers, model_answers, parse_answer, questions
from ctx.synthesis.by_model.model_answers import ModelAnswer
from ctx.synthesis.by_model.parse_answer import ParsedAnswer
from ctx.synthesis.by_model.questions import ModelQuestion, QuestionOptions, Stated
from ctx.synthesis.statements import with_statements
from ctx.workspace import Memory

if TYPE_CHECKING:
    from ctx.llm.ledger import Ledger, Purpose
    from ctx.llm.protocol import Answer, Backend, Meter

PURPOSE = "synthesis"

_RECENT_MS = 2 * 86_400_000
"""Older sessions are sent only on request: months of imported transcripts would use up every
cap."""
_LONGEST_PROBLEM = 300
_FEWEST_TOKENS = 300
_MOST_STATED = 200
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
    """What to ask about a session that is over, in order; `again`: also what was asked before."""
    steps = prompt_authors.steps_of(connection, session.id)
    is_over = session.status != session_state.ACTIVE
    if not is_over or not any(step.kind in ("prompt", "write") for step in steps):
        return []
    known = model_answers.of_session(connection, session.id)
    last = questions.last_step_id(steps)
    done = {kind for kind, answer in known.items() if answer.last >= last and not again}
    if len(done) == 2:
        return []
    # The summary is last: it uses the answer about the excerpts.
    found = []
    said = session_excerpts.excerpts(steps)
    if said and "excerpts" not in done:
        stated = _stated(connection, session)
        found.append(questions.excerpts_question(session.id, steps, said, stated, voice))
    summarised = extractive.synthesise(session, steps, is_over=True)
    if summarised.summary is not None and "summary" not in done:
        # The model does not get its own earlier summary.
        choices = merge_answers.choices(known)
        told = with_statements(summarised, steps, said, is_over=True, choices=choices)
        found.append(questions.summary_question(session.id, steps, told, voice))
    return found


def _stated(connection: Connection, session: Session) -> list[Stated]:
    """What other sessions of the project stated, the newest first."""
    tag = model.project_tag(session.project)
    rows = lookups.newest_statements(connection, tag, _MOST_STATED) if tag else []
    about = [(row, model.from_json(row.metadata)) for row in rows]
    return [
        Stated(row.id, str(metadata.get(sources.KEY, sources.AGENT)), row.content)
        for row, metadata in about
        if metadata.get("key") and metadata.get("session") != session.id
    ]


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
    """Delete the answers about sessions that have no steps any more."""
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
