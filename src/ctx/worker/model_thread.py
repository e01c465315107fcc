"""The worker's thread that asks the configured model to summarise sessions.

Nothing waits for it. It sends one request at a time and holds no database connection while it waits
for the answer. After an answer is stored, it wakes the worker, and the next round updates the
session's summary. Without a configured model the thread does not exist, and nothing of `ctx.llm` is
loaded.

The settings are read before each request, so `off` takes effect after the current one. If the
server is down or fails, the next attempt waits twice as long and tries another session first.
Refused requests are not repeated. When a cap is reached, that session, or all requests until
tomorrow, are skipped. Each problem is reported once, in the log and in `ctx doctor`.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock
from ctx.capture.session_state import Session
from ctx.config.resolve import Config
from ctx.errors import BudgetExceeded, CtxError, ModelFailure
from ctx.hook_files import spool
from ctx.workspace import Environment, Memory

if TYPE_CHECKING:
    from ctx.operations.model_questions import SynthesisModel
    from ctx.synthesis.by_model.questions import ModelQuestion, QuestionName, QuestionOptions

_SHORTEST_PAUSE_S = 60.0
_LONGEST_PAUSE_S = 3_600.0
_LONGEST_ANSWER_S = 600.0
"""The longest time that the worker stays alive for an answer."""
_SESSION_CAP = "llm.session_token_cap"
_QUESTION_REFUSED = (400, 413, 422)
"""Status codes of a working server that rejects this request."""
_MOST_REFUSED = 3
"""After this many refusals in a row, the server is the problem, not the requests."""


class _DueQuestion(NamedTuple):
    """The next question to ask."""

    session: Session
    question: "ModelQuestion"
    scrub: int
    """The last scrub before the question was made."""


class ModelThread:
    def __init__(
        self,
        environment: Environment,
        variables: Mapping[str, str],
        open_memory: Callable[[], AbstractContextManager[Memory]],
        guard: Callable[[str], AbstractContextManager[None]],
        log: Callable[[str], None],
    ) -> None:
        self._environment = environment
        self._variables = variables
        self._open_memory = open_memory
        self._guard = guard
        self._log = log
        self._thread: Thread | None = None
        self._woken = Event()
        self._is_stopping = False
        self._asking: SynthesisModel | None = None
        self._asking_since: float | None = None
        self._settled: dict[str, tuple[str, ...]] = {}
        """The state of sessions when there was nothing to ask about them."""
        self._spent: dict[tuple[str, str], int] = {}
        """The session cap that was reached, by session and kind of question."""
        self._failed: dict[str, int] = {}
        """Failed attempts per session."""
        self._refused: set[QuestionName] = set()
        self._refused_in_a_row = 0
        self._settings: tuple[object, ...] = ()
        self._day_spent = ("", 0)
        """The day on which the daily cap was reached, and that cap."""
        self._not_before = 0.0
        self._pause_s = _SHORTEST_PAUSE_S
        self._reported: set[str] = set()

    def wake(self) -> None:
        """After a round: let the thread check for questions."""
        if not _is_enabled(self._environment.user_config):
            return
        self._woken.set()
        if self._thread is None:
            self._thread = Thread(target=self._run, name="model synthesis", daemon=True)
            self._thread.start()

    @property
    def is_asking(self) -> bool:
        """Whether an answer is pending, and not for too long."""
        since = self._asking_since
        return since is not None and clock.monotonic() - since < _LONGEST_ANSWER_S

    def stop(self) -> None:
        """Abort the current request. Nothing waits for the thread."""
        self._is_stopping = True
        self._woken.set()
        if (asking := self._asking) is not None:
            asking.backend.close()

    def _run(self) -> None:
        while self._woken.wait() and not self._is_stopping:
            self._woken.clear()
            with self._guard("model synthesis"):
                self._ask_all_due()

    def _ask_all_due(self) -> None:
        """Ask all due questions, one after the other."""
        config = self._environment.user_config
        settings = _settings(config)
        if settings != self._settings:
            self._settings = settings
            # What failed with the old settings may work with the new ones.
            self._not_before = 0.0
            self._settled.clear()
            self._refused.clear()
        is_early = clock.monotonic() < self._not_before or self._day_spent == _day(config)
        if not _is_enabled(config) or is_early:
            return
        from ctx.operations import model_questions

        if (question := self._next_question(config, model_questions.voice(config))) is None:
            return
        is_well = False
        try:
            store = self._environment.user_store
            with model_questions.configured_model(config, self._variables, store) as asking:
                self._asking = asking
                voice = asking.voice() if asking else None
                while asking and voice and not self._is_stopping:
                    if _settings(self._environment.user_config) != settings:
                        # Start over with the new settings.
                        self._woken.set()
                        break
                    if (question := self._next_question(config, voice)) is None:
                        break
                    self._ask(asking, config, question)
                is_well = asking is not None
        except CtxError as error:
            # A daily cap is recorded by its day; the server works.
            is_well = isinstance(error, BudgetExceeded)
            if question and not self._is_stopping:
                self._failed[question.session.id] = self._failed.get(question.session.id, 0) + 1
                self._report(question.session.id, error)
        finally:
            self._asking = None
            if not is_well:
                # Also after an unexpected error, so that it does not recur in every round.
                self._not_before = clock.monotonic() + self._pause_s
                self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def _ask(self, asking: "SynthesisModel", config: Config, due: _DueQuestion) -> None:
        from ctx.llm.ledger import DailyCapReached, SessionCapReached
        from ctx.operations import model_questions

        session, question, scrub = due
        self._asking_since = clock.monotonic()
        try:
            answer = asking.ask(question, session.project)
        except DailyCapReached:
            self._day_spent = _day(config)
            raise
        except SessionCapReached as error:
            self._spent[session.id, question.kind] = config.integer(_SESSION_CAP)
            self._report(session.id, error)
            return
        except (BudgetExceeded, ModelFailure) as error:
            if not _is_question_refused(error):
                raise
            self._refused.add(question.name)
            self._refused_in_a_row += 1
            if self._refused_in_a_row % _MOST_REFUSED == 0:
                raise
            self._report(session.id, error)
            return
        finally:
            self._asking_since = None
        if answer.problem and self._is_stopping:
            # The worker is stopping; a cut-off answer is not stored.
            return
        with self._open_memory() as memory:
            model_questions.keep(memory, answer, scrub)
        self._pause_s = _SHORTEST_PAUSE_S
        self._refused_in_a_row = 0
        self._failed.pop(session.id, None)
        self._reported.clear()
        if answer.problem:
            self._log(f"model synthesis of {session.id}: {answer.problem}")
        spool.wake(self._environment.user_store.home)

    def _next_question(self, config: Config, voice: "QuestionOptions") -> _DueQuestion | None:
        """The first question about the newest session that has one.

        Sessions with failures come last.
        """
        from ctx.operations import model_questions

        cap = config.integer(_SESSION_CAP)
        with self._open_memory() as memory:
            scrub = model_questions.last_scrub(memory.local)
            recent = model_questions.recent(memory.local)
            for session in sorted(recent, key=lambda candidate: self._failed.get(candidate.id, 0)):
                stands = (*model_questions.progress_key(memory.local, session), str(cap))
                if self._settled.get(session.id) == stands:
                    continue
                for question in model_questions.due_questions(memory.local, session, voice):
                    is_spent = cap <= self._spent.get((session.id, question.kind), -1)
                    if not is_spent and question.name not in self._refused:
                        return _DueQuestion(session, question, scrub)
                self._settled[session.id] = stands
        return None

    def _report(self, session: str, error: CtxError) -> None:
        """Report each problem once."""
        if error.message in self._reported:
            return
        from ctx.operations import model_questions

        self._reported.add(error.message)
        self._log(f"model synthesis of {session}: {error.message}")
        with self._open_memory() as memory:
            model_questions.note(memory.local, session, error)


def _is_enabled(config: Config) -> bool:
    """Whether the user wants a model to summarise sessions."""
    return config.choice("llm.backend") != "off" and config.flag("llm.synthesis")


def _settings(config: Config) -> tuple[object, ...]:
    """All settings about models."""
    return tuple(value for name, value in config.values.items() if name.startswith("llm."))


def _is_question_refused(error: CtxError) -> bool:
    """Whether only this request was rejected: it is too large, or refused."""
    from ctx.llm.http_client import RequestRefused

    is_refused = isinstance(error, RequestRefused) and error.status in _QUESTION_REFUSED
    return is_refused or isinstance(error, BudgetExceeded)


def _day(config: Config) -> tuple[str, int]:
    return clock.iso(clock.now_ms())[:10], config.integer("llm.daily_token_cap")
