"""From the settings of a command line to what the command works on."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ctx.cli.output import Output, count
from ctx.cli.settings import Settings
from ctx.errors import DatabaseFailure
from ctx.workspace import Memory, Surroundings, Workspace, open_memory, open_project


@contextmanager
def reading(settings: Settings, output: Output) -> Iterator[Memory]:
    """The memory, for a command that only looks at it."""
    with ExitStack() as stack:
        memory = _enter(stack, settings, output, writing=False)
        yield memory
        _warn_of_settings(memory, output)


@contextmanager
def writing(settings: Settings, output: Output) -> Iterator[Memory]:
    """The memory, for a command that changes it."""
    with ExitStack() as stack:
        memory = _enter(stack, settings, output, writing=True)
        yield memory
        _warn_of_settings(memory, output)


def _enter(stack: ExitStack, settings: Settings, output: Output, *, writing: bool) -> Memory:
    surroundings = _surroundings(settings)
    try:
        return stack.enter_context(open_memory(surroundings, writing=writing))
    except DatabaseFailure:
        if not _took_over(settings, output):
            raise
    return stack.enter_context(open_memory(surroundings, writing=writing))


def _warn_of_settings(memory: Memory, output: Output) -> None:
    """Say what is wrong with the settings, if the command has looked at any."""
    if "config" in vars(memory):
        for warning in memory.config.warnings:
            output.warn(warning)


def _took_over(settings: Settings, output: Output) -> bool:
    """Make a store of ours out of one that the Go program left at our place, if it is one."""
    from ctx.memory.foreign import go_ctx

    path = settings.database
    if not go_ctx.is_go_store(path):
        return False
    if path != settings.user_store.database:
        raise DatabaseFailure(
            f"{path} is a store of the Go program `ctx`; it was not touched.",
            hint=f"`ctx import --from ctx {path}` takes over what is in it.",
        )
    from ctx.operations.adopt import adopt

    with output.progress("Taking over") as tick:
        adopted = adopt(path, tick)
    if adopted is not None:
        output.note(
            f"Took over {count(adopted.nodes, 'node')} and {count(adopted.edges, 'edge')} from the "
            f"Go program's store, which is now {adopted.backup}."
        )
        if adopted.skipped:
            output.warn(f"{count(len(adopted.skipped), 'item')} could not be taken over.")
        if adopted.secrets:
            output.warn(f"{count(adopted.secrets, 'secret')} not kept; the old store has them.")
    return True


def open_workspace(settings: Settings, output: Output) -> Workspace:
    """The project that the command works on; what its configuration ignores is said once."""
    workspace = open_project(_surroundings(settings))
    for warning in workspace.config.warnings:
        output.warn(warning)
    return workspace


def _surroundings(settings: Settings) -> Surroundings:
    return Surroundings(
        settings.folder,
        settings.user_store,
        settings.environment,
        settings.overrides,
        settings.joined_session,
        settings.database,
    )
