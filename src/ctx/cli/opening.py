"""From the settings of a command line to what the command works on."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from ctx.cli.output import Output, count
from ctx.cli.settings import Settings
from ctx.errors import DatabaseFailure
from ctx.workspace import Memory, Surroundings, Workspace, open_memory, open_project


def reading(settings: Settings, output: Output) -> AbstractContextManager[Memory]:
    """The memory, for a command that only looks at it."""
    return _opened(settings, output, writing=False)


def writing(settings: Settings, output: Output) -> AbstractContextManager[Memory]:
    """The memory, for a command that changes it."""
    return _opened(settings, output, writing=True)


@contextmanager
def _opened(settings: Settings, output: Output, *, writing: bool) -> Iterator[Memory]:
    with ExitStack() as stack:
        memory = _enter(stack, settings, output, writing=writing)
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
    import shlex

    if path != settings.user_store.database:
        ours = f"{path.removesuffix('.db')}.ctx.db"
        command = shlex.join(["ctx", "--db", ours, "import", "--from", "ctx", path])
        raise DatabaseFailure(
            f"{path} is a store of the Go program `ctx`; it was not touched.",
            hint=f"`{command}` makes a store of ours out of it; name that one from then on.",
        )
    from ctx.cli.nodes import warn_of_redaction
    from ctx.operations.adopt import adopt

    with output.progress("Taking over") as tick:
        adopted = adopt(path, tick)
    if adopted is not None:
        # It happens once and unasked, so it is said to whoever reads: also beside JSON.
        output.warn(
            f"Took over {count(adopted.nodes, 'node')} and {count(adopted.edges, 'edge')} from the "
            f"Go program's store, which is now {adopted.backup}."
        )
        if adopted.skipped:
            some = "; ".join(f"{what}: {reason}" for what, reason in adopted.skipped[:5])
            more = "; …" if len(adopted.skipped) > 5 else "."
            command = shlex.join(["ctx", "import", "--from", "ctx", adopted.backup, "--dry-run"])
            output.warn(
                f"{count(len(adopted.skipped), 'item')} could not be taken over: {some}{more} "
                f"`{command}` shows all."
            )
        if adopted.redacted:
            warn_of_redaction(adopted.redacted, output)
            output.warn(f"What was not kept is still in {adopted.backup}.")
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
