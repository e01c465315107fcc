"""Ask a model about one session now, because a person wants it; or say what that would take."""

from typing import NamedTuple

from ctx import clock, interrupts
from ctx.capture import session_state
from ctx.capture.session_state import Session
from ctx.llm.ledger import SessionCapReached
from ctx.operations import apply, model_questions, worker_round
from ctx.operations.model_questions import SynthesisModel, TokensLeft
from ctx.synthesis import session_writer
from ctx.synthesis.by_model import questions
from ctx.synthesis.by_model.model_answers import ModelAnswer
from ctx.synthesis.by_model.questions import ModelQuestion, QuestionOptions
from ctx.synthesis.session_writer import SessionWriteResult
from ctx.workspace import Memory

_CHANGED_MEANWHILE = (
    "The session was deleted or something was scrubbed during the request, so the answer"
    " was not stored."
)


class QuestionResult(NamedTuple):
    """One question, and what became of it."""

    kind: str
    """`excerpts` or `summary`."""
    passages: int
    """The number of passages that are shown."""
    most_tokens: int
    """What it can take at most."""
    most_mended: int
    """The same, where the answer has to be mended."""
    kept: int
    """The number of passages that the model keeps."""
    problem: str
    """Why nothing came of it."""


class SynthesisResult(NamedTuple):
    """The answer of `ctx sessions synthesise`."""

    session: str
    dry_run: bool
    backend: str
    where: str
    model: str
    asked: tuple[QuestionResult, ...]
    most_tokens: int
    """What all of it can take at most."""
    most_mended: int
    """The same, where every answer has to be mended."""
    left_today: int
    left_in_session: int
    """Tokens that the caps still allow, when it is done."""
    problem: str
    """Why some of it was not asked."""
    new: int
    changed: int
    withdrawn: int
    """Nodes, if memory has been updated by now."""


def plan_synthesis(
    memory: Memory, text: str, asking: SynthesisModel, voice: QuestionOptions, *, again: bool
) -> SynthesisResult:
    """What would be asked. This sends nothing."""
    session = session_state.get(memory.local, text)
    due = model_questions.due_questions(memory.local, session, voice, again=again)
    asked = [_question_result(each, None) for each in due]
    if asked and asked[-1].kind == "summary":
        more = questions.MOST_MORE_FOR_SUMMARY if len(asked) > 1 else 0
        most, mended = asked[-1].most_tokens + more, asked[-1].most_mended + more
        asked[-1] = asked[-1]._replace(most_tokens=most, most_mended=mended)
    return _result(session, asking, asked, asking.left(session.id))._replace(dry_run=True)


def synthesise_now(
    memory: Memory,
    text: str,
    asking: SynthesisModel,
    voice: QuestionOptions,
    *,
    again: bool,
    tick: clock.Tick = clock.no_tick,
) -> SynthesisResult:
    """Ask about a session, and synthesise it again; `again`: also what was asked before.

    If a request fails, the answers before it are stored.
    """
    session = session_state.get(memory.local, text)
    asked: list[QuestionResult] = []
    problem = ""
    written: SessionWriteResult | None = None
    names = [
        each.name
        for each in model_questions.due_questions(memory.local, session, voice, again=again)
    ]
    try:
        for number, name in enumerate(names):
            interrupts.next_part()
            tick(number, len(names))
            scrub = model_questions.last_scrub(memory.local)
            # The summary uses the new answers, and scrubbed text is not sent.
            due = model_questions.due_questions(memory.local, session, voice, again=again)
            question = next((each for each in due if each.name == name), None)
            if question is None:
                continue
            try:
                answer = asking.ask(question, session.project)
            except SessionCapReached as error:
                if question.kind == "summary":
                    raise
                # There may be enough left for the summary.
                problem = error.message
                continue
            interrupts.defer()
            if not model_questions.keep(memory, answer, scrub):
                problem = _CHANGED_MEANWHILE
                break
            asked.append(_question_result(question, answer))
    finally:
        if asked:
            written = _synthesise_again(memory, session)
    done = _result(session, asking, asked, asking.left(session.id))._replace(problem=problem)
    if written is None:
        return done
    counts = len(written.new), len(written.changed), len(written.withdrawn)
    return done._replace(new=counts[0], changed=counts[1], withdrawn=counts[2])


def _synthesise_again(memory: Memory, session: Session) -> SessionWriteResult | None:
    """Where another process is at it, that one does it in a moment."""
    home = memory.environment.user_store.home
    with worker_round.hold_sessions(home) as held:
        if not held:
            return None
        is_over = session.status != session_state.ACTIVE
        written = session_writer.synthesise(memory, session.id, is_over=is_over)
    apply.refresh(memory, [session.folder], home)
    return written


def _question_result(question: ModelQuestion, answer: ModelAnswer | None) -> QuestionResult:
    told = answer.body.get("kept", ()) if answer else ()
    return QuestionResult(
        question.kind,
        len(question.excerpts),
        questions.max_first_try_tokens(question),
        questions.most_tokens(question),
        len(told),
        answer.problem if answer else "",
    )


def _result(
    session: Session, asking: SynthesisModel, asked: list[QuestionResult], left: TokensLeft
) -> SynthesisResult:
    backend = asking.backend
    return SynthesisResult(
        *(session.id, False, backend.name, backend.where, backend.model, tuple(asked)),
        sum(each.most_tokens for each in asked),
        sum(each.most_mended for each in asked),
        max(0, left.today),
        max(0, left.in_session),
        problem="",
        new=0,
        changed=0,
        withdrawn=0,
    )
