"""One run of a hook: it stores the host's event, answers it, and never blocks the host.

Most events need no answer. Their bytes are written to the spool without known tokens, and otherwise
unchanged: no JSON is parsed, and only a few modules are loaded (`tests/test_hook_imports.py` lists
them). `hook_answers` answers SessionStart, UserPromptSubmit, PreCompact, and a Stop that contains
commands. After each event the hook wakes the worker, or starts one. Only the `host`, which the
entry point passes, knows what payloads and answers look like.

Whatever happens, the process exits with 0 within its time limit and prints nothing or one JSON
object on stdout. Errors are logged to `CTX_HOME/hook.log`.
"""

import os
import stat
import time
from _thread import allocate_lock, start_new_thread

from ctx import clock
from ctx.hook_files import known_tokens, live, spool

# Type checkers treat this name specially wherever it is defined. Importing it from `typing` takes
# longer than the rest of the hook.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import NoReturn

    from ctx.agents.runtime.host_hooks import HostHooks
    from ctx.config.resolve import Config
else:
    import _signal as signal

ANSWERED = ("session-start", "prompt-submit", "pre-compact")

CAPTURE_S = 0.25
ANSWER_S = 1.0
WORK_S = 3.5
"""Time limits of a hook in seconds: to store an event, to answer one, to run an agent's
commands."""

_LARGEST_INPUT = 64 * 1024 * 1024
_MUCH = 4 * 1024 * 1024
_LARGEST_CONFIG = 256 * 1024
_LARGEST_TAIL = 4 * 1024 * 1024
_AT_ONCE_S = 0.1
_AGAIN_S = 0.01
_OPTIONS = ("--response", "--part")
_COMMAND = (b"<ctx:", b"\\u003cctx:", b"\\u003Cctx:", b"&lt;ctx:")


class Hook:
    """One run of a hook: its environment and its time limit."""

    WORK_S = WORK_S

    def __init__(
        self, word: str, options: "list[str]", environment: "dict[str, str]", host: "HostHooks"
    ) -> None:
        self.word = word
        self.options = options
        self.environment = environment
        self.host = host
        self.began = time.monotonic()
        clock.be_patient(environment.get("CTX_PATIENCE", ""))
        self.limit = ANSWER_S if word in ANSWERED else CAPTURE_S
        if self.has_response:
            self.limit = WORK_S
        self.home = _home(environment)
        self.is_worker_awake = False
        """Whether a worker was woken or started to process the spool."""
        self.refused = ""
        """Why the last write failed, as the system reports it."""
        self._has_logged = False

    @property
    def has_response(self) -> bool:
        """Whether the agent's response is an argument of the command, which helps to try it by
        hand."""
        return self.word == "stop" and self.options[:1] == ["--response"]

    @property
    def part(self) -> int:
        """The number of the part to return. A large answer is split into several parts."""
        number = self.options[1] if self.options[:1] == ["--part"] and self.options[1:] else "1"
        return int(number) if number.isdecimal() and len(number) < 3 and int(number) else 1

    @property
    def database(self) -> str:
        """The path of the store: `CTX_DB`, or the file in the user's folder."""
        chosen = self.environment.get("CTX_DB", "")
        if not chosen or "://" in chosen:
            return f"{self.home}/store.db"
        return os.path.abspath(os.path.expanduser(chosen))

    @property
    def is_alone(self) -> bool:
        """Whether `CTX_DB` names a file. Then no other store is read, and the worker is not
        used."""
        return self.database != f"{self.home}/store.db"

    def files(self, data: bytes) -> "list[str]":
        """The files that the agent has read, or is about to read or edit, as absolute paths."""
        is_read = self.word == spool.POST_TOOL
        named = self.host.read_files(data) if is_read else self.host.edited_files(data)
        return [file for file in named if os.path.isabs(file)]

    def put(self, event_id: str, kind: str, data: bytes, *, durable: bool = False) -> None:
        """Write an event to the spool, without known tokens.

        Commands are compared with the transcript, which has the tokens too.
        """
        if kind != spool.RECEIPT and not kind.startswith(f"{spool.STOP}."):
            data = known_tokens.redact(data)
        name = spool.kind_for(self.host.spool_name, kind)
        mark = spool.mark_of(self.home, self.database)
        spool.put(self.home, event_id, f"{name}{mark}", data, durable=durable)

    def waiting(self) -> "list[str]":
        return spool.pending_names(self.home, spool.mark_of(self.home, self.database))

    def wake_worker(self) -> bool:
        """Wake the worker, or start one. Returns whether a worker runs or is about to run."""
        if not self.is_worker_awake and not self.is_alone:
            if spool.wake(self.home):
                self.is_worker_awake = True
            elif self.flag("worker.autostart", default=True):
                from ctx.worker import spawn

                try:
                    environment = self.host.without_session(self.environment)
                    spawn.start_worker(self.home, environment, clock.wall_s())
                    self.is_worker_awake = True
                except OSError as error:
                    # The system allows no more processes, or the folder is read-only.
                    self.log(f"no worker was started: {error}")
        return self.is_worker_awake

    def flag(self, name: str, *, default: bool) -> bool:
        """A setting that is rarely set. The configuration is parsed only if it may contain the
        setting."""
        value = self.environment.get(f"CTX_{name.replace('.', '_').upper()}", "")
        if value in ("0", "false"):
            return False
        if not value and not _mentions(self.home, name.partition(".")[0].encode()):
            return default
        return self.config().flag(name)

    def config(self) -> "Config":
        """The settings. Parsing them takes time, so callers check first whether they are needed."""
        from ctx.config.resolve import survey

        return survey(f"{self.home}/config.toml", None, self.environment, ())

    def is_paused(self, data: bytes) -> bool:
        """Whether the user paused capture in this folder."""
        if not os.path.lexists(f"{self.home}/paused"):
            return False
        from ctx.capture import capture_pauses

        return capture_pauses.is_paused(self.home, self.host.folder(data), self.now_ms())

    @property
    def left(self) -> float:
        """The remaining seconds."""
        return self.began + self.limit * clock.patience - time.monotonic()

    def now_ms(self) -> int:
        return clock.now_ms()

    def log(self, message: str) -> None:
        """Write a line to the log that `ctx doctor` shows. Only the first error of a run is logged:
        the others usually follow from it."""
        if not self._has_logged:
            self._has_logged = True
            from ctx.hook_files import hook_log

            hook_log.add(self.home, self.word, message)


def main(arguments: "list[str]", host: "HostHooks") -> "NoReturn":
    """Run a hook that is registered in a user's settings, and exit."""
    word = arguments[0] if arguments else ""
    _run(Hook(word, arguments[1:], dict(os.environ), host))


def main_of_project(arguments: "list[str]", host: "HostHooks") -> "NoReturn":
    """Run `ctx hook …`, from a project's settings, from a plugin, or typed by hand."""
    words: list[str] = []
    for word in arguments[1:]:
        name, sign, value = word.partition("=")
        words += [name, value] if sign and name in _OPTIONS else [word]
    _run(Hook(arguments[0], words, dict(os.environ), host))


def _run(hook: Hook) -> "NoReturn":
    # Ctrl-C in the client also reaches its hooks. It is not an error.
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(0))
    answering = allocate_lock()

    def end(answer: bytes) -> None:
        # Two threads may try to answer. Only the first one does.
        if answering.acquire(False):
            _write(answer)
            os._exit(0)

    def keep_time() -> None:
        while (left := hook.left) > 0:
            time.sleep(left)
        if answering.acquire(False):
            _write(hook.host.nothing)
        # The disk with the log may be what hangs.
        start_new_thread(note, ())
        noted.acquire(timeout=CAPTURE_S * clock.patience)
        os._exit(0)

    noted = allocate_lock()
    noted.acquire()

    def note() -> None:
        hook.log(f"took longer than {hook.limit * clock.patience} s")
        noted.release()

    start_new_thread(keep_time, ())
    end(answer(hook, lambda: read_stdin(hook)))
    # The other thread has answered and exits the process.
    time.sleep(2 * CAPTURE_S * clock.patience)
    os._exit(0)


def answer(hook: Hook, read: "Callable[[], bytes]") -> bytes:
    """The bytes to print. No input and no state can make this fail."""
    try:
        if not hook.home:
            return b""
        if hook.environment.get("CTX_OFF", "") not in ("", "0"):
            _note_capture_off(hook, read)
            return b""
        return _answer(hook, read())
    except Exception as error:  # noqa: BLE001 - a hook never hurts, whatever happened to it
        hook.log(f"{type(error).__name__}: {error}")
        return hook.host.nothing


def _note_capture_off(hook: Hook, read: "Callable[[], bytes]") -> None:
    """Do nothing except record that ctx was off, for the process that reads the transcript
    later."""
    if not os.path.isdir(hook.home):
        return
    session = hook.host.session(read())
    if live.is_session(session):
        from ctx.capture import capture_off

        try:
            capture_off.note_off(hook.home, session, hook.now_ms())
        except OSError as error:
            hook.log(f"{type(error).__name__}: {error}")


def _resume_capture(hook: Hook, data: bytes) -> None:
    """Resume capture of a session after `CTX_OFF`. Commands from before that are not executed."""
    session = hook.host.session(data)
    if not live.is_session(session) or not os.path.lexists(f"{hook.home}/off/{session}"):
        return
    from ctx.capture import capture_off

    try:
        if capture_off.note_on(hook.home, session, hook.now_ms()) and hook.word != "stop":
            size = _size(hook.host.transcript(data))
            live.write(hook.home, f"{session}.stop", str(size))
    except OSError as error:
        hook.log(f"{type(error).__name__}: {error}")


def _answer(hook: Hook, data: bytes) -> bytes:
    if hook.word not in spool.EVENTS:
        hook.log(f"there is no hook {hook.word[:40]!r}")
        return hook.host.nothing
    if hook.has_response:
        from ctx.agents.runtime import hook_answers

        return hook_answers.respond(hook, data, " ".join(hook.options[1:2]))
    if not (data.startswith(b"{") and data.rstrip().endswith(b"}")):
        reason = "is too large" if len(data) > _LARGEST_INPUT else "is not a JSON object"
        hook.log(f"the input of the hook {reason} ({len(data):,} bytes)")
        return hook.host.nothing
    if hook.host.is_noise(hook.word, data, hook.environment):
        return hook.host.nothing
    if hook.word == spool.PRE_EDIT:
        return _about_files(hook, data)
    is_of_subagent = hook.host.is_of_subagent(data)
    if not is_of_subagent and not hook.host.process(hook.environment):
        live.touch(hook.home, hook.host.session(data))
    _resume_capture(hook, data)
    # What waits for the session is for its main agent, and only that one gives commands.
    if hook.word in ANSWERED and not is_of_subagent:
        from ctx.agents.runtime import hook_answers

        return hook_answers.answer(hook, data)
    is_paused = hook.is_paused(data)
    event_id = spool.new_id(hook.now_ms())
    if hook.word == "stop" and not is_of_subagent:
        return _stop(hook, data, event_id, is_paused=is_paused)
    if not is_paused:
        hook.put(event_id, hook.word, data)
    if hook.word == "session-end":
        from ctx.agents.runtime import hook_answers

        hook_answers.end(hook, data)
    elif not is_paused:
        hook.wake_worker()
    if hook.word != spool.POST_TOOL:
        return b""
    if not is_of_subagent and _has_compacted(hook, data):
        from ctx.agents.runtime import hook_answers

        hook.limit = ANSWER_S
        return hook_answers.answer(hook, data)
    return _about_files(hook, data)


def _has_compacted(hook: Hook, data: bytes) -> bool:
    """Whether the conversation was compacted, and the agent has not received a context since."""
    if not hook.host.compacts_silently:
        return False
    session = hook.host.session(data)
    return live.is_session(session) and os.path.exists(live.path_of(hook.home, f"{session}.source"))


def _about_files(hook: Hook, data: bytes) -> bytes:
    """Memory knows nothing about most files, so most of these hooks end here."""
    files = hook.files(data)
    if not files:
        return b""
    from ctx.hook_files import anchored_files

    if not any(anchored_files.find(hook.home, file) for file in files):
        return b""
    from ctx.agents.runtime import hook_answers

    hook.limit = ANSWER_S
    return hook_answers.answer(hook, data)


def _stop(hook: Hook, data: bytes, event_id: str, *, is_paused: bool) -> bytes:
    """Look for commands in the payload, and in the transcript since the last Stop.

    This also happens while capture is paused, because a command is an explicit request.
    """
    session = hook.host.session(data)
    stop_file = f"{session}.stop" if live.is_session(session) else ""
    path = hook.host.transcript(data)
    size = _size(path)
    start = _offset_of_last_stop(hook.home, stop_file, size)
    # If no Stop is known, the last megabytes contain the last turn.
    tail = _tail(path, start or 0, size)
    while size and not hook.host.has_turn(data, tail) and _can_wait(hook):
        time.sleep(_AGAIN_S)
        if (now := _size(path)) != size:
            size, tail = now, _tail(path, start or 0, now)
    kind = spool.STOP
    if any(mark in data for mark in _COMMAND) or _has_command(hook, tail):
        hook.limit = WORK_S
        kind = f"{spool.STOP}.{'' if start is None else start}-{size or ''}"
    if kind != spool.STOP or not is_paused:
        hook.put(event_id, kind, data, durable=kind != spool.STOP)
    if stop_file and size:
        # An incomplete line is read again next time.
        whole = tail.rfind(b"\n") + 1
        live.write(hook.home, stop_file, str(size - len(tail) + whole if whole else start or size))
    if kind != spool.STOP:
        from ctx.agents.runtime import hook_answers

        return hook_answers.work(hook, event_id, session)
    if is_paused:
        return b""
    if not hook.wake_worker() and len(hook.waiting()) > spool.MANY:
        from ctx.agents.runtime import run_apply

        run_apply.start(hook)
    return b""


def _can_wait(hook: Hook) -> bool:
    """Whether there is time to wait until the host has written the end of the turn."""
    hook.limit = ANSWER_S
    return hook.left > ANSWER_S / 2 * clock.patience


def _has_command(hook: Hook, tail: bytes) -> bool:
    """Whether a message of the agent may contain a command.

    The context from ctx also mentions commands, but in entries of other types.
    """
    marks = [mark for mark in _COMMAND if mark in tail]
    return bool(marks) and any(
        # The beginning of the first line may be missing.
        number == 0 or hook.host.is_by_agent(line)
        for number, line in enumerate(tail.split(b"\n"))
        if any(mark in line for mark in marks)
    )


def _home(environment: "dict[str, str]") -> str:
    """The user store's folder; empty if it is unknown."""
    home = environment.get("CTX_HOME", "")
    if home:
        try:
            return os.path.abspath(os.path.expanduser(home))
        except FileNotFoundError:
            # The path is relative, and the current folder no longer exists.
            return ""
    person = environment.get("HOME", "")
    if not os.path.isabs(person):
        import pwd

        try:
            person = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return ""
    return f"{person}/.ctx"


def _mentions(home: str, name: bytes) -> bool:
    """Whether the configuration contains a word. This is much faster than parsing it."""
    try:
        fd = os.open(f"{home}/config.toml", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return name in os.read(fd, _LARGEST_CONFIG)
    except OSError:
        return False
    finally:
        os.close(fd)


def read_stdin(hook: Hook) -> bytes:
    """All of stdin. Input beyond the limit is read and dropped, because the client waits until it
    is read."""
    if os.isatty(0):
        return b""
    if hook.has_response:
        import select

        # Without a pipe, there may be no input at all.
        if not select.select([0], [], [], _AT_ONCE_S)[0]:
            return b""
    parts: list[bytes] = []
    size = 0
    while part := os.read(0, 1 << 20):
        size += len(part)
        if size > _MUCH:
            # A large input also takes longer to store, and the client waits much longer than this.
            hook.limit = max(hook.limit, ANSWER_S)
        if size <= _LARGEST_INPUT + 1:
            parts.append(part)
    return b"".join(parts) if size <= _LARGEST_INPUT else b"x" * (_LARGEST_INPUT + 1)


def _write(answer: bytes) -> None:
    try:
        while answer:
            answer = answer[os.write(1, answer) :]
    except OSError:
        # The client has closed the pipe.
        pass


def _size(path: str) -> int:
    """The size of a regular file, else 0: reading a pipe or a device could block or never end."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _offset_of_last_stop(home: str, name: str, size: int) -> "int | None":
    """The size of the transcript at the last Stop; None if it is unknown."""
    text = live.read(home, name) if name else ""
    return int(text) if text.isdecimal() and len(text) < 16 and int(text) <= size else None


def _tail(path: str, start: int, size: int) -> bytes:
    """The bytes from `start` on, but at most the last megabytes."""
    if size <= start:
        return b""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        start = max(start, size - _LARGEST_TAIL)
        os.lseek(fd, start, os.SEEK_SET)
        return os.read(fd, size - start)
    finally:
        os.close(fd)
