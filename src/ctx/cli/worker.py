"""`ctx worker`"""

import argparse
import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ctx import clock, disk, interrupts
from ctx.agents import known_hosts
from ctx.cli import arguments, opening
from ctx.cli import options as shared
from ctx.cli.output import Block, Line, Output, Table, VerbatimText, count
from ctx.cli.settings import Settings, variables
from ctx.config.resolve import survey
from ctx.errors import CtxError, ProgramFailure
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.locks import is_held
from ctx.operations.capture_status import CaptureStop, capture_queue, capture_stops, without_store
from ctx.worker import process_lock, spawn, worker
from ctx.worker.process_lock import WorkerProcess
from ctx.workspace import Environment

if TYPE_CHECKING:
    from ctx.operations.store_checks import DoctorCheck
    from ctx.page.doctor_runs import Doctor

EXAMPLES = """
ctx worker status            whether it runs, and what is waiting
ctx worker start             start it now; hooks start it automatically
ctx worker stop              stop it; new events wait
ctx worker logs -n 50        the last log lines
ctx worker logs --follow     follow the log
"""

ALONE = "status"

_PATIENCE_S = 10.0
_STOP_WAIT_S = 3.0
"""How long the worker may take to stop."""
_POLL_S = 0.02
_LINES = 20
_FOLLOW_S = 0.25


class WorkerStatus(NamedTuple):
    """The answer of `ctx worker start`, `stop` and `status`, and of `run` when it has ended."""

    running: bool
    changed: bool
    """Whether this command started, stopped or ran it."""
    answering: bool
    """Whether it responds on its socket."""
    pid: int | None
    version: str | None
    since: str | None
    memory_mb: float | None
    """Its memory, if it reports it."""
    live: int
    """Sessions whose client runs."""
    waiting: int
    """Files in the spool."""
    failed: int
    """Files that could not be processed."""
    new: int
    """Events that are not processed yet."""
    skipped: int
    """Events that failed and are skipped."""
    last_stored: str | None
    socket: str
    autostart: bool
    """Whether hooks start it."""
    paused: tuple[CaptureStop, ...]
    """Why capture is off, if it is."""
    problem: str | None
    """The problem of the store, if it cannot be read."""


class WorkerLog(NamedTuple):
    """The answer of `ctx worker logs`."""

    path: str
    lines: tuple[str, ...]


def configure(parser: argparse.ArgumentParser) -> None:
    group = shared.subcommands(parser)
    for name, does in (
        ("start", "start the worker"),
        ("stop", "stop the worker"),
        ("status", "show whether the worker runs"),
    ):
        examples = f"ctx worker {name}\nctx worker {name} --format json"
        shared.add_subcommand(group, name, does, examples)
    logs = shared.add_subcommand(
        group, "logs", "show the log", "ctx worker logs -n 50\nctx worker logs --follow"
    )
    logs.add_argument(
        "-n",
        dest="lines",
        type=arguments.whole_number,
        default=_LINES,
        metavar="N",
        help=f"the number of lines (default: {_LINES}; 0: all)",
    )
    shared.flag(logs, "--follow", "wait for new lines")
    run = shared.add_subcommand(
        group,
        "run",
        "run the worker in this terminal",
        "ctx worker run\nctx worker run --set worker.idle_seconds=3600",
    )
    run.add_argument("--detached", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    match options.subcommand:
        case "start":
            changed = start(settings)
            output.show(_status(settings, output, changed=changed), render)
        case "stop":
            changed = stop(settings)
            output.show(_status(settings, output, changed=changed), render)
        case "status":
            output.show(_status(settings, output, changed=False), render)
        case "logs":
            _logs(options, settings, output)
        case _:
            _run(options, settings, output)


def _run(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    from ctx.worker import run
    from ctx.worker.worker import WorkerLimits

    if options.detached:
        run.detach()
    store = _home_of(settings)
    config = survey(store.config_file, None, settings.environment, settings.overrides)
    limits = WorkerLimits(config.number("worker.idle_seconds"))
    ours, place = _in_home(settings), _place(settings)
    if not options.detached and _owner(settings) is None:
        output.note(f"The worker is process {os.getpid()}; stop it with Ctrl-C.")
    # A worker that a user starts does not wait for the old one to stop.
    patience_s = _STOP_WAIT_S if options.detached else 0.0

    with disk.explain_errors("running the worker"):
        reason = run.run(
            place,
            lambda: opening.adding(ours, output),
            limits,
            variables(),
            patience_s,
            page_doctor(settings),
        )
    if reason in ("large", "replaced") and options.detached:
        run.restart(store)
    if reason is None and (owner := process_lock.running_worker(store.worker_lock)):
        output.note(f"Already running as process {owner.pid}.")
    # If its home was removed, there is nothing to report.
    if not options.detached and os.path.isdir(store.home):
        output.show(_status(settings, output, changed=reason is not None), render)


def page_doctor(settings: Settings) -> "Doctor":
    """Only who asks for it pays for its libraries."""
    from ctx.page.doctor_runs import Doctor

    def examine(folder: str) -> Sequence["DoctorCheck"]:
        from ctx.cli import doctor

        return doctor.checks_in(settings, folder)

    def recording(folder: str) -> Sequence[str]:
        from ctx.cli.recording_hosts import recording_hosts

        return recording_hosts(settings._replace(folder=folder))

    return Doctor(examine, recording)


def _home_of(settings: Settings) -> UserStore:
    """The user store; its folder is created if it is missing."""
    with disk.explain_errors("making the user store's folder"):
        disk.make_folder(settings.user_store.home)
    return settings.user_store


def _place(settings: Settings) -> Environment:
    store, ours = settings.user_store, _in_home(settings)
    return Environment(
        *(store.home, store, ours.environment, ours.overrides, CLI_SESSION),
        load_hosts=opening.load_hosts,
    )


def _in_home(settings: Settings) -> Settings:
    """The environment of the worker: the user store, no project and no session."""
    home = settings.user_store.home
    aside = ("CTX_DB", "CTX_SESSION", "CLAUDE_CODE_SESSION_ID")
    kept = {name: value for name, value in settings.environment.items() if name not in aside}
    return settings._replace(
        environment=kept,
        folder=home if os.path.isdir(home) else os.sep,
        session=None,
        chosen_database=None,
    )


def start(settings: Settings) -> bool:
    """Start it, and return whether it was not running."""
    store = _home_of(settings)
    if _owner(settings):
        return False
    with disk.explain_errors("starting the worker"):
        disk.discard(os.path.join(store.home, spawn.MARK))
        interrupts.defer()
        environment = known_hosts.without_sessions(variables())
        spawn.start_worker(store.home, environment, clock.wall_s())
    if not _wait_until(_PATIENCE_S, lambda: _answer(settings) is not None):
        raise ProgramFailure(
            f"The worker did not answer within {_PATIENCE_S:.0f} s.",
            hint="See `ctx worker logs`, or run it here: `ctx worker run`",
        )
    return True


def stop(settings: Settings) -> bool:
    """Stop it, and return whether it was running."""
    home, is_in_time = settings.user_store.home, clock.deadline(_PATIENCE_S)
    starting_s = spawn.STARTING_S * clock.patience
    is_stopped = False
    while is_in_time():
        if owner := _owner(settings):
            _end(settings, owner)
            is_stopped = True
        elif not spawn.is_starting(home, clock.wall_s(), starting_s):
            break
        else:
            clock.sleep(_POLL_S)
    return is_stopped


def _end(settings: Settings, owner: WorkerProcess) -> None:
    interrupts.defer()
    with suppress(ProcessLookupError):
        os.kill(owner.pid, signal.SIGTERM)
    if not _wait_until(_STOP_WAIT_S, lambda: _owner(settings) != owner):
        # Nothing is lost: its state is on disk.
        with suppress(ProcessLookupError):
            os.kill(owner.pid, signal.SIGKILL)
        _wait_until(_STOP_WAIT_S, lambda: _owner(settings) != owner)


def _owner(settings: Settings) -> WorkerProcess | None:
    path = settings.user_store.worker_lock
    if (
        (owner := process_lock.running_worker(path))
        or not is_held(path)
        or not (answer := _answer(settings))
    ):
        return owner
    # On a full disk it could not record its process id.
    return WorkerProcess(int(str(answer["pid"])), str(answer.get("version", "")), 0)


def _wait_until(seconds: float, holds: Callable[[], bool]) -> bool:
    is_in_time = clock.deadline(seconds)
    while not holds():
        if not is_in_time():
            return False
        clock.sleep(_POLL_S)
    return True


def _answer(settings: Settings) -> dict[str, object] | None:
    """Its own status, if it responds."""
    answer = ask(settings, "GET /api/health", b"", 1.0)
    return answer if answer and "pid" in answer else None


def ask(settings: Settings, what: str, body: bytes, seconds: float) -> dict[str, object] | None:
    """The answer of the worker to a request, such as `GET /api/health`; None if it gives none."""
    import socket

    head = f"{what} HTTP/1.1\r\nHost: ctx\r\nContent-Length: {len(body)}\r\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            connection.connect(settings.user_store.worker_socket)
            connection.sendall(f"{head}Connection: close\r\n\r\n".encode() + body)
            response = b""
            while part := connection.recv(65536):
                response += part
        answer = json.loads(response.partition(b"\r\n\r\n")[2])
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def _status(settings: Settings, output: Output, *, changed: bool) -> WorkerStatus:
    store = settings.user_store
    owner = _owner(settings)
    answer = _answer(settings) if owner else None
    memory_mb = answer.get("memory_mb") if answer else None
    config = survey(store.config_file, None, settings.environment, settings.overrides)
    problem = None
    try:
        with opening.reading(_in_home(settings), output) as memory:
            queue = capture_queue(memory)
    except CtxError as error:
        queue, problem = without_store(store.home), error.message
    return WorkerStatus(
        running=owner is not None,
        changed=changed,
        answering=answer is not None,
        pid=owner.pid if owner else None,
        version=owner.version if owner else None,
        since=clock.iso(owner.since_ms) if owner else None,
        memory_mb=memory_mb if isinstance(memory_mb, float) else None,
        live=queue.live,
        waiting=queue.waiting,
        failed=queue.failed,
        new=queue.new,
        skipped=queue.skipped,
        last_stored=queue.last_stored,
        socket=store.worker_socket,
        autostart=config.flag("worker.autostart"),
        paused=capture_stops(_place(settings)),
        problem=problem,
    )


def _logs(options: argparse.Namespace, settings: Settings, output: Output) -> None:
    path = settings.user_store.worker_log
    lines = worker.log_tail(path, options.lines)
    if not options.follow:
        output.show(WorkerLog(path, tuple(lines)), render_log)
        return
    while True:
        for line in lines:
            output.result(f"{line}\n")
        output.flush()
        known = worker.log_tail(path, 1)
        while (now := worker.log_tail(path, 0)) == [] or now[-1:] == known:
            clock.sleep(_FOLLOW_S)
        lines = now[now.index(known[0]) + 1 :] if known and known[0] in now else now


def render(status: WorkerStatus) -> list[Block]:
    if status.running:
        used = f", {status.memory_mb:.0f} MB" if status.memory_mb else ""
        how = "running" if status.answering else "running, but not responding"
        first = f"{how} (pid {status.pid}{used}, version {status.version}, since {status.since})"
    elif status.autostart:
        first = "not running; hooks start it when needed"
    else:
        first = "not running; `worker.autostart` is off, so only `ctx worker start` starts it"
    rows = [
        ("sessions", f"{status.live:,} live"),
        ("waiting", f"{count(status.waiting, 'event')} in the spool, {status.new:,} not processed"),
        ("last event", status.last_stored or "none yet"),
        ("socket", status.socket),
    ]
    if status.failed or status.skipped:
        skipped = f"{status.failed:,} unreadable, {status.skipped:,} given up"
        rows.insert(2, ("skipped", skipped))
    rows += [("not recorded", f"{each.why}; {each.advice}") for each in status.paused]
    rows += [("problem", status.problem)] if status.problem else []
    return [Line(first), Table(("", ""), rows, ())]


def render_log(logged: WorkerLog) -> list[Block]:
    if not logged.lines:
        return [Line("No log yet.")]
    return [VerbatimText("".join(f"{line}\n" for line in logged.lines))]
