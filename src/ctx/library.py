"""ctx for programs: one project, asked and told from Python.

    from ctx.library import open_project

    with open_project("~/src/shop") as project:
        pack = project.query("Retry failed payments with a backoff", budget=8000)
        texts = [chunk.snippet for chunk in pack.retrieved]

        project.observe_file_read("src/payments.py")
        project.observe_command("pytest -q", output, exit_code=1)
        project.observe_note("The gateway answers 429 after ten calls a second.")
        project.flush_step()

What is observed is kept when `flush_step` returns, all of it as one work commit of the session;
until then it is in memory alone. `close`, and the end of a `with` block, flush what is left.

A project may be used by several threads: one call is done at a time. Nothing is held open between
calls, so other processes see what was kept, and this one sees what they keep. Whatever goes wrong
is a `ctx.errors.CtxError`, with a sentence and a hint.
"""

import os
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager

from ctx import layout, workspace
from ctx.clock import Tick, no_tick
from ctx.code.coverage import Coverage
from ctx.codebase import indexing
from ctx.errors import ContentRefused, CtxError, PathRefused, UsageError
from ctx.ids import SessionId, session_id
from ctx.layout import UserStore
from ctx.operations import observe
from ctx.operations import pack as packing
from ctx.operations.commit import CommitResult as Committed
from ctx.operations.keep_answer import ModelResponse
from ctx.operations.link import CONFIDENCE
from ctx.operations.observe import (
    Observation,
    ObservedCommand,
    ObservedFile,
    ObservedNote,
)
from ctx.operations.observe import ObserveResult as Kept
from ctx.operations.observe import RejectedObservation as NotKept
from ctx.operations.relate import Relation
from ctx.packs.prompt_pack import Chunk, PromptPack, Signal
from ctx.project import trust_check
from ctx.workspace import Environment, Memory, Workspace

__all__ = [
    "Chunk",
    "Committed",
    "Coverage",
    "CtxError",
    "Kept",
    "NotKept",
    "Project",
    "PromptPack",
    "Relation",
    "Signal",
    "open_project",
]

_AUTHOR = "library"
_ENDS_AND_LABEL = ("from", "label", "to")


def open_project(
    path: str | os.PathLike[str] = ".",
    *,
    environment: Mapping[str, str] | None = None,
    session: str | None = None,
) -> "Project":
    """A project by any folder in it.

    Of the environment nothing is read but what is handed in: with that of the process the variables
    hold that hold for the command line (`CTX_HOME`, `CTX_SESSION`, those of settings); without, the
    user store is `~/.ctx`. What is observed belongs to a `session`, a new one if none is named.
    """
    folder = os.path.abspath(os.path.expanduser(os.fspath(path)))
    if not os.path.isdir(folder):
        raise PathRefused(f"{folder} is not a folder.", hint="A project is opened by its folder.")
    given = {
        name: value
        for name, value in (environment or {}).items()
        if name == "HOME" or name.startswith("CTX_")
    }
    home = given.get("CTX_HOME") or os.path.join(given.get("HOME") or "~", ".ctx")
    store = UserStore(os.path.abspath(os.path.expanduser(home)))
    named = session or given.get("CTX_SESSION") or f"{_AUTHOR}-{secrets.token_hex(4)}"
    database = given.get("CTX_DB", "")
    server = database if layout.is_server(database) else ""
    return Project(Environment(folder, store, given, (), session_id(named), server))


class Project:
    """A project that is asked, and told what an agent saw and did. To be closed, or used as a
    context."""

    def __init__(self, environment: Environment) -> None:
        """Use `open_project`."""
        self._environment = environment
        self._lock = threading.RLock()
        self._observed: list[Observation] = []
        self._is_open = True

    def __enter__(self) -> "Project":
        return self

    def __exit__(self, *_: object) -> None:
        # Also after a failure: what was observed was observed.
        self.close()

    def close(self) -> None:
        """Flush what is left. A closed project is of no more use; closing it again is fine."""
        with self._lock:
            if self._is_open:
                try:
                    if self._observed:
                        self.flush_step()
                finally:
                    self._is_open = False

    @property
    def session(self) -> SessionId:
        """The session that observations belong to."""
        return self._environment.session

    # Asking

    def query(self, task: str, budget: int | None = None) -> PromptPack:
        """What is worth reading for a task, from code and memory, within a budget of tokens.

        Without one, the budget of the settings holds. E010 where nothing useful fits into it. The
        memory of a project that is not trusted is not in it: `withheld` says so.
        """
        with self._memory(writing=False) as memory:
            return packing.pack(memory, packing.Options(task, budget))

    @property
    def is_trusted(self) -> bool:
        """Whether the project's own memory is in what `query` gives: `ctx trust` says yes to it."""
        with self._memory(writing=False) as memory:
            return memory.withheld is None

    def build_pack(self, query: str, budget: int | None = None) -> PromptPack:
        """The same as `query`."""
        return self.query(query, budget)

    # Telling

    def observe_file_read(self, path: str | os.PathLike[str]) -> NotKept | None:
        """A file was read. It is kept as it is now; what is told is why it will not be.

        Paths are relative to the folder that the project was opened by. E012 where the project has
        no store (`ctx init` makes one), E015 for what is no file of the project.
        """
        with self._project() as project:
            seen = observe.observe_file(project, self._environment.folder, os.fspath(path))
            return self._note(seen)

    def observe_file_write(
        self, path: str | os.PathLike[str], content: str | bytes
    ) -> NotKept | None:
        """A file was written, with this content. Nothing is written here, and the rest is as with
        `observe_file_read`."""
        with self._project() as project:
            data = _bytes(content)
            seen = observe.take(project, self._environment.folder, os.fspath(path), data)
            return self._note(seen)

    def observe_command(
        self, cmd: str, output: str | bytes = "", exit_code: int | None = None
    ) -> None:
        """A command was run. What compilers and tests reported is read out of its output."""
        with self._open():
            if not _storable(cmd).strip():
                raise UsageError("The command has no name.", hint="Name the command that ran.")
            self._observed.append(ObservedCommand(cmd, _bytes(output), exit_code))

    def observe_note(self, text: str) -> None:
        """Something to be kept in mind."""
        with self._open():
            if not _storable(text).strip():
                raise UsageError("The note is empty.")
            self._observed.append(ObservedNote(text))

    def observe_response(self, text: str, *, task: str = "", model: str = "") -> None:
        """A model answered. What it speaks of is linked to it when the step is flushed: files and
        items of the code that are there."""
        with self._open():
            if not _storable(text).strip():
                raise UsageError("The answer is empty.")
            self._observed.append(ModelResponse(text, _storable(task), _storable(model)))

    def observe_relations(self, edges: Iterable[Relation | tuple[str, str, str]]) -> None:
        """Things have to do with each other: `(from, label, to)`, or `Relation` with a reason.

        An end is a file, an item of the code, a task, a decision or a node, by what it is called.
        What it means is looked up when the step is flushed.
        """
        with self._open():
            self._observed += [_relation(each) for each in edges]

    def flush_step(self) -> Kept:
        """Keep what was observed since the last time, as one work commit of the session.

        When this returns it is durable. Should it fail, nothing of it was kept, and all of it is
        there for the next time; what is wrong with a single observation is told instead.
        """
        with self._open():
            if not self._observed:
                return Kept(self.session, None, (), (), 0, (), (), ())
            with self._memory(writing=True) as memory:
                kept = observe.keep(memory, self._observed)
            self._observed.clear()
            return kept

    def compact_session(self, message: str | None = None) -> Committed | None:
        """Turn the session into one commit of the project's memory; None where it has no work.

        The message is made of what was done, if none is given. It flushes before.
        """
        from ctx.operations import stage
        from ctx.project import staging_chains

        if message is not None and not message.strip():
            raise UsageError(
                "A commit needs a message.", hint="Leave it out, and ctx generates one."
            )
        with self._project() as project:
            self.flush_step()
            if not staging_chains.has_work(project.repository, self.session):
                return None
            return stage.compact(project, message)

    def rebuild_index(self, tick: Tick = no_tick) -> Coverage:
        """Bring all indexes to what the project is now, and make damaged ones anew. What is known
        of the code then."""
        from ctx.operations import rebuild

        with self._open():
            home = self._environment.user_store.home
            # Of a store that is not trusted there is no index.
            if trust_check.trusted_project(home, self._environment.folder) is None:
                return indexing.update(indexing.codebase_at(self._environment), tick).coverage
            with self._project() as project:
                code = rebuild.incremental(project, tick).code
                assert code is not None
                return code

    # What a call works with

    def _note(self, seen: ObservedFile | NotKept) -> NotKept | None:
        if isinstance(seen, NotKept):
            return seen
        self._observed.append(seen)
        return None

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if not self._is_open:
                raise UsageError("This project was closed.", hint="Open it again: open_project().")
            yield

    @contextmanager
    def _memory(self, *, writing: bool) -> Iterator[Memory]:
        with (
            self._open(),
            workspace.open_agent_memory(
                self._environment, writing=writing, author=_AUTHOR
            ) as memory,
        ):
            yield memory

    @contextmanager
    def _project(self) -> Iterator[Workspace]:
        """The project store. E012 where there is none."""
        with self._open():
            project = workspace.open_project(self._environment)
            with closing(project.memory):
                yield project


def _relation(said: Relation | tuple[str, str, str]) -> Relation:
    if not isinstance(said, Relation):
        if len(said) != len(_ENDS_AND_LABEL):
            raise UsageError("A relation has three parts.", hint=f"({', '.join(_ENDS_AND_LABEL)})")
        said = Relation(*said)
    for text in said:
        _storable(text)
    if said.confidence not in CONFIDENCE:
        raise UsageError(
            f"{said.confidence[:40]!r} is not a confidence.",
            hint=f"Use one of: {', '.join(CONFIDENCE)}.",
        )
    return said


def _storable(text: str) -> str:
    """A text that can be kept: what cannot be would be in the way of everything else."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ContentRefused("A text contains characters that are not valid Unicode.") from None
    if "\0" in text:
        raise ContentRefused("A text contains a NUL character.")
    return text


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "replace") if isinstance(text, str) else text
