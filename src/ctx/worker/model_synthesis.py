"""The thread of a worker that asks a model what sessions did, where one is configured.

Nobody waits for it. It asks one question at a time, with a connection of its own that is closed
while it waits for an answer. When an answer was kept, it rings, and the next round tells the
session anew. Without a configured model there is no such thread, and nothing of `ctx.llm` is
loaded.

Before each question the settings are read anew: whoever says `off` is heard after the question that
is under way. A server that is away or broken is asked again later, each time after twice as long,
and about another session first. What it refuses to answer is not asked again. Where a cap is
reached, the session is not asked about any more, or nothing is before tomorrow. Each is told once:
in the log, and to whoever looks at `ctx doctor`.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock
from ctx.errors import BudgetExceeded, CtxError, ModelFailure
from ctx.hook_files import spool
from ctx.workspace import Memory, Surroundings

if TYPE_CHECKING:
    from ctx.capture.state import Session
    from ctx.config.resolve import Config
    from ctx.operations.model_questions import SynthesisModel
    from ctx.synthesis.by_model.questions import Name, Question, Voice

_SOONEST_S = 60.0
_LATEST_S = 3_600.0
_LONGEST_S = 600.0
"""So long a worker stays for an answer."""
_SESSION_CAP = "llm.session_token_cap"
_ITS_OWN_FAULT = (400, 413, 422)
"""What a server answers where it is well, and will not have the question."""
_MOST_REFUSED = 3
"""One after the other: then it is not the questions."""


class _Due(NamedTuple):
    """What is to be asked next."""

    session: "Session"
    question: "Question"
    scrub: int
    """The last one before the question was made."""


class ModelSynthesis:
    def __init__(
        self,
        surroundings: Surroundings,
        variables: Mapping[str, str],
        opened: Callable[[], AbstractContextManager[Memory]],
        guard: Callable[[str], AbstractContextManager[None]],
        log: Callable[[str], None],
    ) -> None:
        self._surroundings = surroundings
        self._variables = variables
        self._opened = opened
        self._guard = guard
        self._log = log
        self._thread: Thread | None = None
        self._rung = Event()
        self._is_stopping = False
        self._asking: SynthesisModel | None = None
        self._asked_at: float | None = None
        self._looked_at: dict[str, tuple[str, ...]] = {}
        """How sessions stood when there was nothing to ask about them."""
        self._spent: dict[tuple[str, str], int] = {}
        """For what of which session a cap was reached, and which one that was."""
        self._failed: dict[str, int] = {}
        """How often asking about a session failed."""
        self._refused: set[Name] = set()
        self._refused_in_a_row = 0
        self._settings: tuple[object, ...] = ()
        self._day_spent = ("", 0)
        """On which day the cap of the day was reached, and which one that was."""
        self._not_before = 0.0
        self._patience_s = _SOONEST_S
        self._told: set[str] = set()

    def look(self) -> None:
        """After a round: see whether there is something to ask, in the thread."""
        if not _is_wanted(self._surroundings.person_config):
            return
        self._rung.set()
        if self._thread is None:
            self._thread = Thread(target=self._run, name="model synthesis", daemon=True)
            self._thread.start()

    @property
    def is_asking(self) -> bool:
        """Whether an answer is waited for, and not for too long already."""
        since = self._asked_at
        return since is not None and clock.monotonic() - since < _LONGEST_S

    def stop(self) -> None:
        """Leave a model alone that is being asked. Nobody waits for the thread."""
        self._is_stopping = True
        self._rung.set()
        if (asking := self._asking) is not None:
            asking.backend.close()

    def _run(self) -> None:
        while self._rung.wait() and not self._is_stopping:
            self._rung.clear()
            with self._guard("what a model tells"):
                self._tell()

    def _tell(self) -> None:
        """Ask whatever is due, one question after the other."""
        config = self._surroundings.person_config
        settings = _settings(config)
        if settings != self._settings:
            self._settings = settings
            # What was no use with other settings may be of use with these.
            self._not_before = 0.0
            self._looked_at.clear()
            self._refused.clear()
        is_early = clock.monotonic() < self._not_before or self._day_spent == _day(config)
        if not _is_wanted(config) or is_early:
            return
        from ctx.operations import model_questions

        if (found := self._next(config, model_questions.voice(config))) is None:
            return
        is_well = False
        try:
            store = self._surroundings.user_store
            with model_questions.configured(config, self._variables, store) as asking:
                self._asking = asking
                voice = asking.voice() if asking else None
                while asking and voice and not self._is_stopping:
                    if _settings(self._surroundings.person_config) != settings:
                        # With the others, from the beginning.
                        self._rung.set()
                        break
                    if (found := self._next(config, voice)) is None:
                        break
                    self._ask(asking, config, found)
                is_well = asking is not None
        except CtxError as error:
            # Where the day's cap is reached, the day is known; the server is well.
            is_well = isinstance(error, BudgetExceeded)
            if found and not self._is_stopping:
                self._failed[found.session.id] = self._failed.get(found.session.id, 0) + 1
                self._say(found.session.id, error)
        finally:
            self._asking = None
            if not is_well:
                # Also after an error that nobody expected: it must not come with every round.
                self._not_before = clock.monotonic() + self._patience_s
                self._patience_s = min(2 * self._patience_s, _LATEST_S)

    def _ask(self, asking: "SynthesisModel", config: "Config", due: _Due) -> None:
        from ctx.llm.ledger import DaySpent, SessionSpent
        from ctx.operations import model_questions

        session, question, scrub = due
        self._asked_at = clock.monotonic()
        try:
            answer = asking.ask(question, session.project)
        except DaySpent:
            self._day_spent = _day(config)
            raise
        except SessionSpent as error:
            self._spent[session.id, question.kind] = config.integer(_SESSION_CAP)
            self._say(session.id, error)
            return
        except (BudgetExceeded, ModelFailure) as error:
            if not _is_its_own_fault(error):
                raise
            self._refused.add(question.name)
            self._refused_in_a_row += 1
            if self._refused_in_a_row % _MOST_REFUSED == 0:
                raise
            self._say(session.id, error)
            return
        finally:
            self._asked_at = None
        if answer.problem and self._is_stopping:
            # Nobody waited for a better one.
            return
        with self._opened() as memory:
            model_questions.keep(memory, answer, scrub)
        self._patience_s = _SOONEST_S
        self._refused_in_a_row = 0
        self._failed.pop(session.id, None)
        self._told.clear()
        if answer.problem:
            self._log(f"what a model tells of {session.id}: {answer.problem}")
        spool.wake(self._surroundings.user_store.home)

    def _next(self, config: "Config", voice: "Voice") -> _Due | None:
        """The first question about the newest session that there is one about.

        A session that failed comes after the others: they may be well.
        """
        from ctx.operations import model_questions

        cap = config.integer(_SESSION_CAP)
        with self._opened() as memory:
            connection = memory.user.connection
            scrub = model_questions.last_scrub(connection)
            recent = model_questions.recent(connection)
            for session in sorted(recent, key=lambda each: self._failed.get(each.id, 0)):
                stands = (*model_questions.progress_key(connection, session), str(cap))
                if self._looked_at.get(session.id) == stands:
                    continue
                for question in model_questions.due(connection, session, voice):
                    is_spent = cap <= self._spent.get((session.id, question.kind), -1)
                    if not is_spent and question.name not in self._refused:
                        return _Due(session, question, scrub)
                self._looked_at[session.id] = stands
        return None

    def _say(self, session: str, error: CtxError) -> None:
        """Once for each thing that is wrong."""
        if error.message in self._told:
            return
        from ctx.operations import model_questions

        self._told.add(error.message)
        self._log(f"what a model tells of {session}: {error.message}")
        with self._opened() as memory:
            model_questions.note(memory.user.connection, session, error)


def _is_wanted(config: "Config") -> bool:
    """Whether a person wants sessions to be told by a model."""
    return config.choice("llm.backend") != "off" and config.flag("llm.synthesis")


def _settings(config: "Config") -> tuple[object, ...]:
    """Everything that is set about models."""
    return tuple(value for name, value in config.values.items() if name.startswith("llm."))


def _is_its_own_fault(error: CtxError) -> bool:
    """Whether another question may well be answered: this one is too large, or not wanted."""
    from ctx.llm.wire import Refused

    is_refused = isinstance(error, Refused) and error.status in _ITS_OWN_FAULT
    return is_refused or isinstance(error, BudgetExceeded)


def _day(config: "Config") -> tuple[str, int]:
    return clock.iso(clock.now_ms())[:10], config.integer("llm.daily_token_cap")
