"""One run of a hook: it stores the host's event, answers it, and never blocks the host.

Most events need no answer. Their bytes are written to the spool unchanged: no JSON is parsed, and
only this module and `hook_files.spool` are loaded. `hook_answers` answers SessionStart,
UserPromptSubmit, PreCompact, and a Stop that contains commands. After each event the hook wakes the
worker, or starts one. Only the `host`, the part of an adapter that the entry point passes, knows
what payloads and answers look like.

Whatever happens, the process exits with 0 within its time limit and prints nothing or one JSON
object on stdout. Errors are logged to `CTX_HOME/hook.log`.
"""

import os
import stat
import time
from _thread import allocate_lock, start_new_thread

from ctx import clock
from ctx.hook_files import hook_log, live, spool

# Type checkers know this name from anywhere; importing it from `typing` costs more than the hook.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import NoReturn

    from ctx.config.resolve import Config
    from ctx.hosts.host_adapter import Hooks
else:
    import _signal as signal

ANSWERED = ("session-start", "prompt-submit", "pre-compact")

CAPTURE_S = 0.25
ANSWER_S = 1.0
WORK_S = 3.5
"""How long a hook may take: to keep an event, to answer one, and to do what an agent asked for."""

_LARGEST_INPUT = 64 * 1024 * 1024
_MUCH = 4 * 1024 * 1024
_LARGEST_CONFIG = 256 * 1024
_LARGEST_TAIL = 4 * 1024 * 1024
_AT_ONCE_S = 0.1
_OPTIONS = ("--response", "--part")
_COMMAND = (b"<ctx:", b"\\u003cctx:", b"\\u003Cctx:")


class Hook:
    """One run of a hook: where it works, and until when."""

    WORK_S = WORK_S

    def __init__(
        self, word: str, options: "list[str]", environment: "dict[str, str]", host: "Hooks"
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
        self.is_looked_after = False
        """Whether somebody was woken or started who looks after the spool."""
        self.refused = ""
        """Why something could not be written down, in the words of the system."""
        self._has_logged = False

    @property
    def has_response(self) -> bool:
        """Whether the answer is given on the command line, for whoever tries it by hand."""
        return self.word == "stop" and self.options[:1] == ["--response"]

    @property
    def part(self) -> int:
        """Which part of an answer is wanted, where a large one is given in several."""
        number = self.options[1] if self.options[:1] == ["--part"] and self.options[1:] else "1"
        return int(number) if number.isdecimal() and len(number) < 3 and int(number) else 1

    @property
    def database(self) -> str:
        """Where the store is: what `CTX_DB` says, else in its home."""
        chosen = self.environment.get("CTX_DB", "")
        if not chosen or "://" in chosen:
            return f"{self.home}/store.db"
        return os.path.abspath(os.path.expanduser(chosen))

    @property
    def is_alone(self) -> bool:
        """Whether a file was named: then nothing else is read, and no worker knows of it."""
        return self.database != f"{self.home}/store.db"

    def put(self, event_id: str, kind: str, data: bytes, *, durable: bool = False) -> None:
        """Leave an event for whoever looks after the store."""
        name = spool.kind_for(self.host.spool_name, kind)
        mark = spool.mark_of(self.home, self.database)
        spool.put(self.home, event_id, f"{name}{mark}", data, durable=durable)

    def waiting(self) -> "list[str]":
        return spool.waiting(self.home, spool.mark_of(self.home, self.database))

    def look_after(self) -> bool:
        """Wake the worker, or start one. Whether there is one then, or will be."""
        if not self.is_looked_after and not self.is_alone:
            if spool.wake(self.home):
                self.is_looked_after = True
            elif self.flag("worker.autostart", default=True):
                from ctx.worker import spawn

                try:
                    environment = self.host.without_session(self.environment)
                    spawn.start_worker(self.home, environment, clock.wall_s())
                    self.is_looked_after = True
                except OSError as error:
                    # No more processes may be started, or nothing may be written there.
                    self.log(f"no worker was started: {error}")
        return self.is_looked_after

    def flag(self, name: str, *, default: bool) -> bool:
        """A setting that hardly anybody sets: settings are read only where it may be set."""
        value = self.environment.get(f"CTX_{name.replace('.', '_').upper()}", "")
        if value in ("0", "false"):
            return False
        if not value and not _mentions(self.home, name.partition(".")[0].encode()):
            return default
        return self.config().flag(name)

    def config(self) -> "Config":
        """The settings. Reading them takes time, so callers look first whether there are any."""
        from ctx.config.resolve import survey

        return survey(f"{self.home}/config.toml", None, self.environment, ())

    def is_paused(self, data: bytes) -> bool:
        """Whether nothing is to be taken in here, because a person said so."""
        if not os.path.lexists(f"{self.home}/paused"):
            return False
        from ctx.capture import capture_pauses

        return capture_pauses.is_paused(self.home, self.host.folder(data), self.now_ms())

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.began + self.limit * clock.patience - time.monotonic()

    def now_ms(self) -> int:
        return clock.now_ms()

    def log(self, message: str) -> None:
        """A line for `ctx doctor`. What follows from the first trouble is not worth another."""
        if not self._has_logged:
            self._has_logged = True
            hook_log.add(self.home, self.word, message)


def main(arguments: "list[str]", host: "Hooks") -> "NoReturn":
    """Run the hook that a user's settings register, as a process of its own, and end it."""
    word = arguments[0] if arguments else ""
    _run(Hook(word, arguments[1:], dict(os.environ), host))


def main_of_project(arguments: "list[str]", host: "Hooks") -> "NoReturn":
    """Run `ctx hook …`: as settings or a plugin register it, or as a person types it."""
    words: list[str] = []
    for word in arguments[1:]:
        name, sign, value = word.partition("=")
        words += [name, value] if sign and name in _OPTIONS else [word]
    _run(Hook(arguments[0], words, dict(os.environ), host))


def _run(hook: Hook) -> "NoReturn":
    # Whoever stops the client stops its hooks too; that is no failure of theirs.
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(0))
    answering = allocate_lock()

    def end(answer: bytes) -> None:
        # Of the two threads, one answers.
        if answering.acquire(False):
            _write(answer)
            os._exit(0)

    def keep_time() -> None:
        while (left := hook.left) > 0:
            time.sleep(left)
        if answering.acquire(False):
            _write(hook.host.nothing)
        # What hangs may be the disk that the log is on.
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
    # The other one has said something already, and ends the process.
    time.sleep(2 * CAPTURE_S * clock.patience)
    os._exit(0)


def answer(hook: Hook, read: "Callable[[], bytes]") -> bytes:
    """What is printed. Nothing that is read or found can make it fail."""
    try:
        if not hook.home:
            return b""
        if hook.environment.get("CTX_OFF", "") not in ("", "0"):
            _stay_off(hook, read)
            return b""
        return _answer(hook, read())
    except Exception as error:  # noqa: BLE001 - a hook never hurts, whatever happened to it
        hook.log(f"{type(error).__name__}: {error}")
        return hook.host.nothing


def _stay_off(hook: Hook, read: "Callable[[], bytes]") -> None:
    """Do nothing; but whoever reads the transcript later has to know that it was so."""
    if not os.path.isdir(hook.home):
        return
    session = hook.host.session(read())
    if live.is_session(session):
        from ctx.capture import capture_off

        try:
            capture_off.off(hook.home, session, hook.now_ms())
        except OSError as error:
            hook.log(f"{type(error).__name__}: {error}")


def _go_on(hook: Hook, data: bytes) -> None:
    """What a session does counts again. What its agent asked for before then is not done late."""
    session = hook.host.session(data)
    if not live.is_session(session) or not os.path.lexists(f"{hook.home}/off/{session}"):
        return
    from ctx.capture import capture_off

    try:
        if capture_off.on(hook.home, session, hook.now_ms()) and hook.word != "stop":
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
    if not hook.host.process(hook.environment):
        live.touch(hook.home, hook.host.session(data))
    _go_on(hook, data)
    if hook.word in ANSWERED:
        from ctx.agents.runtime import hook_answers

        return hook_answers.answer(hook, data)
    is_paused = hook.is_paused(data)
    event_id = spool.new_id(hook.now_ms())
    if hook.word == "stop":
        return _stop(hook, data, event_id, is_paused=is_paused)
    if not is_paused:
        hook.put(event_id, hook.word, data)
    if hook.word == "session-end":
        from ctx.agents.runtime import hook_answers

        hook_answers.end(hook, data)
    elif not is_paused:
        hook.look_after()
    return b""


def _stop(hook: Hook, data: bytes, event_id: str, *, is_paused: bool) -> bytes:
    """Look for commands: in what the client says, and in its transcript since the last Stop.

    Also while ctx is paused: what an agent is told to remember is not what is observed.
    """
    session = hook.host.session(data)
    stop_file = f"{session}.stop" if live.is_session(session) else ""
    path = hook.host.transcript(data)
    size = _size(path)
    start = _offset_of_last_stop(hook.home, stop_file, size)
    # Where nothing was seen yet, the last megabytes hold the last turn.
    tail = _tail(path, start or 0, size)
    kind = spool.STOP
    if any(mark in data for mark in _COMMAND) or _has_command(hook, tail):
        hook.limit = WORK_S
        kind = f"{spool.STOP}.{'' if start is None else start}-{size or ''}"
    if kind != spool.STOP or not is_paused:
        hook.put(event_id, kind, data, durable=kind != spool.STOP)
    if stop_file and size:
        # A line that is half written is looked at again.
        whole = tail.rfind(b"\n") + 1
        live.write(hook.home, stop_file, str(size - len(tail) + whole if whole else start or size))
    if kind != spool.STOP:
        from ctx.agents.runtime import hook_answers

        return hook_answers.work(hook, event_id, session)
    if is_paused:
        return b""
    if not hook.look_after() and len(hook.waiting()) > spool.MANY:
        from ctx.agents.runtime import run_apply

        run_apply.start(hook)
    return b""


def _has_command(hook: Hook, tail: bytes) -> bool:
    """Whether there is something like a command in an entry of the agent.

    What we gave it ourselves speaks of commands too, and stands in other entries.
    """
    for mark in _COMMAND:
        at = tail.find(mark)
        while at >= 0:
            start = tail.rfind(b"\n", 0, at) + 1
            end = tail.find(b"\n", at)
            line = tail[start:] if end < 0 else tail[start:end]
            # Of the first line the beginning may be missing.
            if not start or hook.host.is_by_agent(line):
                return True
            at = tail.find(mark, end) if end >= 0 else -1
    return False


def field(data: bytes, name: bytes) -> str:
    """A text of the outermost object, found without parsing all of it.

    Inside of texts, quotes have a backslash before them: what is found stands for itself. The
    client names what is common to all events first.
    """
    at = data.find(b'"%s"' % name)
    rest = data[at + len(name) + 2 : at + len(name) + 4200].lstrip() if at >= 0 else b""
    rest = rest[1:].lstrip() if rest.startswith(b":") else b""
    end = rest.find(b'"', 1)
    if not rest.startswith(b'"') or end < 0:
        return ""
    value = rest[1:end]
    if b"\\" in value:
        import json

        try:
            payload = json.loads(data)
        except (ValueError, RecursionError):
            return ""
        field_value = payload.get(name.decode()) if isinstance(payload, dict) else None
        return field_value if isinstance(field_value, str) else ""
    return value.decode("utf-8", "replace")


def _home(environment: "dict[str, str]") -> str:
    """The user store's folder; empty where there is no telling."""
    home = environment.get("CTX_HOME", "")
    if home:
        try:
            return os.path.abspath(os.path.expanduser(home))
        except FileNotFoundError:
            # It is told from a folder that is gone.
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
    """Whether a word stands in the settings: a hook has no time to read what is not set."""
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
    """All of it. What is far too much is read too, because the client waits for that."""
    if os.isatty(0):
        return b""
    if hook.has_response:
        import select

        # Whoever types it may have nothing to say there.
        if not select.select([0], [], [], _AT_ONCE_S)[0]:
            return b""
    parts: list[bytes] = []
    size = 0
    while part := os.read(0, 1 << 20):
        size += len(part)
        if size > _MUCH:
            # It takes longer to keep as well, and the client waits for far longer than this.
            hook.limit = max(hook.limit, ANSWER_S)
        if size <= _LARGEST_INPUT + 1:
            parts.append(part)
    return b"".join(parts) if size <= _LARGEST_INPUT else b"x" * (_LARGEST_INPUT + 1)


def _write(answer: bytes) -> None:
    try:
        while answer:
            answer = answer[os.write(1, answer) :]
    except OSError:
        # Whoever asked has gone.
        pass


def _size(path: str) -> int:
    """Of a plain file; anything else would keep us waiting, or has no end."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _offset_of_last_stop(home: str, name: str, size: int) -> "int | None":
    """How much of the transcript was there at the last Stop; None where that is not known."""
    text = live.read(home, name) if name else ""
    return int(text) if text.isdecimal() and len(text) < 16 and int(text) <= size else None


def _tail(path: str, start: int, size: int) -> bytes:
    """The bytes since then, at most the last megabytes of them."""
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
