"""Ctrl-C and SIGTERM: when they stop a command, and when they wait for it to finish.

The process `ctx` is in one of these stages:

    starting    a signal ends the process at once
    working     a signal raises `KeyboardInterrupt`, and what is open is rolled back
    storing     from the moment a change becomes durable: a signal waits, the command finishes;
                a signal at a question ends the command
    ended       the exit code is known: signals are ignored

So the exit code tells whether the change was stored: 0 if it was, 128 + the number of the signal if
not. A command that stores many parts, one after the other, may be stopped between two of them.

Whoever makes a change durable calls `defer` first. In a program that uses ctx as a library no
handler is installed, and all of this does nothing.
"""

import os
import sys

# Type checkers know this name from anywhere; importing it from `typing` costs 15 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import FrameType
else:
    # `signal` itself only adds names for the numbers, and takes 7 ms.
    import _signal as signal

NOTHING_STORED = "Interrupted. Nothing was stored."
PARTLY_STORED = "Interrupted. What was done so far is stored; run the command again for the rest."

_SIGNALS = (int(signal.SIGINT), int(signal.SIGTERM))
_ENOUGH = 3
"""After this many signals, a process ends even if its clean-up is not done."""


class _Process:
    """The signal state of this process."""

    is_handling = False
    """Whether our handlers are installed."""
    is_working = False
    is_deferring = False
    is_printing = False
    """Whether output is being written to a reader that may have stopped reading."""
    is_asking = False
    """Whether the user is being asked. Only an answer or a signal ends that."""
    has_stored_parts = False
    has_raised = False
    number = 0
    """The received signal; 0 for none."""
    count = 0


_process = _Process()


def install() -> None:
    """Install the handlers. Signals that were ignored stay ignored."""
    _process.is_handling = True
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _handle)
    sys.unraisablehook = _report_unraisable


def _handle(number: int, _frame: "FrameType | None") -> None:
    _process.number = number
    _process.count += 1
    if not _process.is_working:
        _end_at_once(NOTHING_STORED)
    if _process.is_deferring and not (_process.is_printing or _process.is_asking):
        return
    if not _process.has_raised:
        _process.has_raised = True
        raise KeyboardInterrupt
    # The first signal is being handled.
    if _process.count >= _ENOUGH:
        _end_at_once("")


def _end_at_once(message: str) -> None:
    try:
        os.write(2, f"{message}\n".encode() if message else b"")
    except OSError:
        pass
    os._exit(exit_code())


def _report_unraisable(unraisable: "sys.UnraisableHookArgs", /) -> None:
    """Suppress an interruption where Python cannot raise it: `defer` raises it again."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def begin() -> None:
    """A command starts: from now on `KeyboardInterrupt` is caught."""
    _process.is_deferring = _process.has_stored_parts = False
    accept()
    _process.is_working = True


def defer() -> None:
    """Postpone signals until the command ends: the next step cannot be undone.

    An interruption that was lost, as in an SQLite callback, stops the command here.
    """
    if _process.is_deferring:
        return
    if isinstance(sys.exc_info()[1], KeyboardInterrupt):
        # The clean-up of an interrupted command keeps a part of its work.
        _process.has_stored_parts = True
        return
    check()
    _process.is_deferring = True


def check() -> None:
    """Raise a pending interruption."""
    if _process.number and not _process.is_deferring:
        raise KeyboardInterrupt


def next_part() -> None:
    """Between the parts of a command that stores them one by one: it may be stopped here."""
    if _process.is_deferring:
        _process.has_stored_parts = True
        _process.is_deferring = False
    check()


def accept() -> None:
    """Continue after an interruption with the results so far."""
    _process.has_raised = False
    _process.number = 0


def has_stored() -> bool:
    """Whether a change is durable, or about to be."""
    return _process.is_deferring


def exit_code() -> int:
    """The exit code of an interrupted command."""
    return 0 if _process.is_deferring else 128 + (_process.number or int(signal.SIGINT))


def message() -> str:
    """The message about an interrupted command; empty if everything was stored."""
    if _process.is_deferring:
        return ""
    return PARTLY_STORED if _process.has_stored_parts else NOTHING_STORED


def end(code: int) -> int:
    """Ignore signals from here on: the exit code is known, and all output is written.

    A process that got a signal ends here. If `KeyboardInterrupt` was raised while Python ran code
    from a string, as `NamedTuple` does, Python ends the process by SIGINT, whatever its exit code.
    """
    _process.is_deferring, _process.is_printing, _process.is_asking = True, False, False
    if _process.is_handling:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        if _process.count:
            os._exit(code)
    return code


class InterruptibleOutput:
    """While output is written, even about a stored change: its reader may have stopped."""

    def __enter__(self) -> None:
        _process.is_printing = True

    def __exit__(self, *_: object) -> None:
        _process.is_printing = False


class InterruptibleQuestion:
    """While a question waits for its answer, even after a stored change: a signal ends it."""

    def __enter__(self) -> None:
        _process.is_asking = True
        # A signal that came just before the question is an answer to it too.
        if _process.number and not _process.has_raised:
            _process.has_raised, _process.is_asking = True, False
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        _process.is_asking = False


def wait_for_input(stream: int) -> None:
    """Wait until a terminal has a line to read, or raise for a signal.

    A plain read misses a signal that arrives just before it blocks: Python calls the handler only
    after the read, which waits for a line that nobody types any more.
    """
    import select

    woken, waking = os.pipe()
    try:
        os.set_blocking(waking, False)
        before = signal.set_wakeup_fd(waking)
        try:
            select.select([stream, woken], [], [])
        finally:
            signal.set_wakeup_fd(before)
    finally:
        os.close(woken)
        os.close(waking)


class TimeLimit:
    """Raises `TimeoutError` in the block after some seconds, even inside a regular expression.

    Only the main thread gets signals: in another thread there is no limit.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._is_limited = True
        try:
            self._before = signal.signal(signal.SIGALRM, _time_out)
        except ValueError:
            self._is_limited = False
            return
        self._timer_before = signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        if self._is_limited:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            signal.setitimer(signal.ITIMER_REAL, *self._timer_before)


def _time_out(_number: int, _frame: "FrameType | None") -> None:
    raise TimeoutError


class TerminalOwnedByChild:
    """While another program has the terminal: Ctrl-C is meant for that program."""

    def __enter__(self) -> None:
        self._before = signal.getsignal(signal.SIGINT)
        if self._before == _handle:
            signal.signal(signal.SIGINT, _ignore)

    def __exit__(self, *_: object) -> None:
        if self._before == _handle:
            signal.signal(signal.SIGINT, _handle)


def _ignore(_number: int, _frame: "FrameType | None") -> None:
    """A handler rather than `SIG_IGN`, which the other program would inherit."""
