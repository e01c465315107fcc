"""From the settings of a command line to what the command works on."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING

from ctx import layout
from ctx.cli.output import Output, count
from ctx.cli.settings import Settings
from ctx.clock import age, wall_s
from ctx.errors import (
    CtxError,
    DatabaseFailure,
    NodeNotFound,
    StoreNotTrusted,
    UsageError,
    ViewNotFound,
)
from ctx.ids import SessionId, short
from ctx.layout import Project
from ctx.workspace import Environment, Memory, Workspace, open_memory, open_project

if TYPE_CHECKING:
    from ctx.hosts.host_registry import Hosts
    from ctx.operations.compact import CompactResult
    from ctx.project.project_memory import ProjectMemory
    from ctx.project.staged_sessions import StaleSession
    from ctx.project.trust_check import Verdict

_MOST_NAMED = 4


def reading(settings: Settings, output: Output) -> AbstractContextManager[Memory]:
    """The memory, for a command that only reads it."""
    return _open_memory(settings, output, writing=False)


def trusted_project(settings: Settings, output: Output) -> Project | None:
    """The project here, if its store is trusted or shown with `--untrusted` on a terminal."""
    home = settings.user_store.home
    project = layout.find_project(settings.folder, home)
    if project is None or settings.untrusted:
        return project
    from ctx.project import trust_check

    verdict = trust_check.verify(home, project)
    note_new_identity(settings, output)
    if verdict.is_trusted:
        return project
    output.withhold()
    output.warn(verdict.sentence)
    return None


def refuse_untrusted(settings: Settings, what: str) -> None:
    """Refuse `--untrusted` for output that does not go to the terminal."""
    if settings.untrusted:
        raise UsageError(
            f"--untrusted cannot be used with {what}: it shows a store on the terminal only.",
            hint="To review and trust the store: `ctx trust`",
        )


def writing(settings: Settings, output: Output) -> AbstractContextManager[Memory]:
    """The memory, for a command that changes it.

    Staging that is too old or too large is compacted first.
    """
    return _open_memory(settings, output, writing=True)


def adding(settings: Settings, output: Output) -> AbstractContextManager[Memory]:
    """The same for a command that can begin a store."""
    return _open_memory(settings, output, writing=True, adding=True)


def open_for_staging(settings: Settings, output: Output) -> AbstractContextManager[Memory]:
    """The memory, for a command about staging: nothing is compacted automatically."""
    return _open_memory(settings, output, writing=True, compacting=False)


@contextmanager
def _open_memory(
    settings: Settings,
    output: Output,
    *,
    writing: bool,
    adding: bool = False,
    compacting: bool = True,
) -> Iterator[Memory]:
    with ExitStack() as stack:
        memory = _enter(stack, settings, output, writing=writing, adding=adding)
        if memory.withheld:
            with _without_project_store(memory.withheld, output):
                yield memory
            _warn_of_settings(memory, output)
            return
        if memory.project_memory:
            _warn_of_thrown_away(memory.project_memory.project, output)
        if writing and compacting:
            _compact_old(memory, output)
        try:
            yield memory
        finally:
            # Also if the command fails: the damage may be the reason.
            if memory.project_memory:
                warn_of_damage(memory.project_memory, output)
        if writing and compacting and memory.project_memory and memory.project_memory.stepped:
            from ctx.operations import compact

            for compacted in compact.compact_due(memory):
                note_compaction(compacted, output)
        _mention_stale(memory, output)
        _warn_of_settings(memory, output)


@contextmanager
def _without_project_store(withheld: "Verdict", output: Output) -> Iterator[None]:
    """Continue without the project's store, and warn once."""
    output.withhold()
    try:
        yield
    except StoreNotTrusted:
        raise
    except (NodeNotFound, ViewNotFound) as error:
        # It may be in the store that was not read.
        error.hint = withheld.sentence
        raise
    except CtxError:
        output.warn(withheld.sentence)
        raise
    output.warn(withheld.sentence)


def warn_of_damage(memory: "ProjectMemory", output: Output) -> None:
    if damaged := memory.damaged:
        shown = ", ".join(map(short, damaged[:_MOST_NAMED]))
        more = ", …" if len(damaged) > _MOST_NAMED else ""
        output.warn(
            f"{count(len(damaged), 'object')} of the project's memory cannot be read ({shown}"
            f"{more}): `ctx debug verify` says why."
        )


def _compact_old(memory: Memory, output: Output) -> None:
    if any(each.is_old for each in _stale_sessions(memory)):
        from ctx.operations import compact

        for compacted in compact.compact_old(memory):
            note_compaction(compacted, output)


def note_compaction(compacted: "CompactResult", output: Output) -> None:
    """Say that a session was compacted automatically."""
    if compacted.problem:
        output.warn(f"{compacted.summary} See `ctx stage status`.")
    else:
        output.note(compacted.summary)
        note_deleted_for_good(compacted.deleted_for_good, output)


def note_deleted_for_good(number: int, output: Output) -> None:
    """Say how many deleted nodes a commit has left out."""
    if number:
        nodes = count(number, "deleted node was", "deleted nodes were")
        output.note(f"{nodes} never committed and can no longer be restored.")


def _mention_stale(memory: Memory, output: Output) -> None:
    """Remind people of stale sessions. Programs cannot act on it."""
    if memory.project_memory is None or not output.has_reader:
        return
    stale = [each for each in _stale_sessions(memory) if not each.is_old]
    if not stale:
        return
    from ctx.project import staged_sessions

    known = staged_sessions.sessions(memory.project_memory.graph.connection)
    parked = {each.session for each in known if each.is_parked}
    named = [
        f"{each.session} ({age(each.seconds)})" for each in stale if each.session not in parked
    ]
    if named:
        output.note(f"Staged, not committed: {', '.join(named)}. See `ctx stage`.")


def _stale_sessions(memory: Memory) -> "Sequence[StaleSession]":
    if memory.project_memory is None:
        return ()
    from ctx.project import staged_sessions

    return staged_sessions.stale_sessions(
        memory.project_memory.project, memory.environment.user_store.home, wall_s()
    )


def _enter(
    stack: ExitStack, settings: Settings, output: Output, *, writing: bool, adding: bool
) -> Memory:
    environment = _environment(settings, output)
    if writing:
        # Reading only: commands that change a store need trust.
        environment = environment._replace(untrusted=False)
    try:
        memory = stack.enter_context(open_memory(environment, writing=writing, adding=adding))
    except DatabaseFailure:
        if not _convert_go_store(settings, output):
            raise
        memory = stack.enter_context(open_memory(environment, writing=writing, adding=adding))
    if memory.project_memory or memory.withheld:
        note_new_identity(settings, output)
    return memory


def note_new_identity(settings: Settings, output: Output) -> None:
    """Say once that trusted projects are now identified by more than their paths."""
    from ctx.project import trust_check

    if adopted := trust_check.take_adopted_count(settings.user_store.home):
        output.warn(
            f"{count(adopted, 'trusted project is', 'trusted projects are')} now identified"
            " by first commits, remote and owner too. If these change, ctx asks again. `ctx"
            " trust --list` shows them."
        )


def _warn_of_settings(memory: Memory, output: Output) -> None:
    """Warn about the settings, if the command has read any."""
    if "config" in vars(memory):
        for warning in memory.config.warnings:
            output.warn(warning)


def _convert_go_store(settings: Settings, output: Output) -> bool:
    """Convert a store that the Go program left at our path, if there is one."""
    from ctx.exchange.foreign import go_ctx

    path = settings.database
    if not go_ctx.is_go_store(path):
        return False
    import shlex

    if path != settings.user_store.database:
        ours = f"{path.removesuffix('.db')}.ctx.db"
        command = shlex.join(["ctx", "--db", ours, "import", "--from", "ctx", path])
        raise DatabaseFailure(
            f"{path} is a store of the Go program `ctx`; it was not touched.",
            hint=f"`{command}` converts a copy of it; use that copy from then on.",
        )
    from ctx.cli.nodes import warn_of_redaction
    from ctx.operations.convert_go_store import convert_go_store

    with output.progress("Converting") as tick:
        adopted = convert_go_store(path, tick)
    if adopted is not None:
        # It happens once and unasked, so it is reported even beside JSON.
        output.warn(
            f"Imported {count(adopted.nodes, 'node')} and {count(adopted.edges, 'edge')} from the "
            f"Go program's store, which is now {adopted.backup}."
        )
        if adopted.skipped:
            some = "; ".join(f"{what}: {reason}" for what, reason in adopted.skipped[:5])
            more = "; …" if len(adopted.skipped) > 5 else "."
            command = shlex.join(["ctx", "import", "--from", "ctx", adopted.backup, "--dry-run"])
            output.warn(
                f"{count(len(adopted.skipped), 'item')} could not be imported: {some}{more} "
                f"`{command}` shows all."
            )
        if adopted.redacted:
            warn_of_redaction(adopted.redacted, output)
            output.warn(f"What was not imported is still in {adopted.backup}.")
    return True


def open_workspace(settings: Settings, output: Output) -> Workspace:
    """The project that the command uses; its ignored settings are reported once.

    E032 if its store is not trusted.
    """
    workspace = open_for_repair(settings, output)
    _warn_of_thrown_away(workspace.project, output)
    return workspace


def open_for_repair(settings: Settings, output: Output) -> Workspace:
    """The same, for the command that restores what the warning is about."""
    workspace = open_project(_environment(settings, output))
    note_new_identity(settings, output)
    for warning in workspace.config.warnings:
        output.warn(warning)
    return workspace


def open_to_verify(settings: Settings, output: Output) -> Workspace:
    """The project, trusted or not, for a command that shows nothing of an untrusted one."""
    return open_project(_environment(settings, output)._replace(untrusted=True))


def open_to_write(settings: Settings, output: Output) -> Workspace:
    """The same, for a command that adds something: --untrusted is for reading."""
    return open_workspace(settings._replace(untrusted=False), output)


def _warn_of_thrown_away(project: Project, output: Output) -> None:
    """Report commits that git removed before they were in a git commit."""
    from ctx.objects import untracked_commits

    if untracked_commits.missing(project) == []:
        return
    from ctx.objects.repository import Repository
    from ctx.objects.untracked_survey import discarded_by_git

    if lost := discarded_by_git(Repository(project)):
        named = ", ".join(short(id) for id in lost)
        output.warn(
            f"git removed {count(len(lost), 'commit')} of memory before a git commit had "
            f"{'it' if len(lost) == 1 else 'them'}: {named}. `ctx stage recover` brings "
            f"{'it' if len(lost) == 1 else 'them'} back."
        )


def note_conflicts(memory: Memory, output: Output) -> None:
    """Say that two branches changed the same node, until somebody decides."""
    if memory.project_memory is None:
        return
    from ctx.memory import history

    if history.is_linear(memory.project_memory.graph.connection):
        return
    from ctx.memory import conflicts

    if found := conflicts.find_conflicts(memory.project_memory.graph):
        from ctx.operations import review

        output.warn(f"{review.conflicts_text(len(found))} after a merge: `ctx review`")


def load_hosts() -> "Hosts":
    """The hosts that ctx supports. Most commands need none."""
    from ctx.agents.known_hosts import HOSTS

    return HOSTS


def _environment(settings: Settings, output: Output) -> Environment:
    session, problem = settings.joining
    if problem:
        output.warn(f"{problem} Session {session} is used instead; `ctx stage recover` fixes it.")
    found = environment(settings, session, settings.graph_database)
    return found._replace(untrusted=settings.untrusted, progress=output.progress)


def environment(settings: Settings, session: SessionId, database: str) -> Environment:
    """What a command that opens memory itself passes on."""
    return Environment(
        *(settings.folder, settings.user_store, settings.environment, settings.overrides),
        *(session, database),
        load_hosts=load_hosts,
        in_agents_shell=settings.is_in_agents_shell,
    )
