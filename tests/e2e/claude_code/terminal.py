"""The client on a terminal, with simulated keyboard input and screen output."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.claude_code.api import Reply, Request, Script, serving
from tests.e2e.claude_code.client import API_KEY, SECONDS, Person

_ROWS, _COLUMNS = 50, 160
_MOVES = re.compile(r"\x1b(\[[0-9;?<>=]*[A-Za-z]|\][^\x07\x1b]*\x07?|.)")
"""Control sequences of a terminal: cursor moves and colours."""


class Terminal:
    """A screen and a keyboard."""

    def __init__(self, keyboard: int, script: Script) -> None:
        self._keyboard = keyboard
        self._script = script
        self._written = b""
        self._looked_at = 0

    def types(self, text: str) -> None:
        """Type something, and Enter once it is there."""
        os.write(self._keyboard, text.encode())
        self.shows(text)
        os.write(self._keyboard, b"\r")

    def shows(self, text: str) -> None:
        """Wait until the text is on the screen. Earlier output is not searched again."""
        wanted = "".join(text.split())
        until = time.monotonic() + SECONDS
        while (found := (seen := self._screen_text()).find(wanted, self._looked_at)) < 0:
            left = until - time.monotonic()
            if left < 0 or not select.select([self._keyboard], [], [], left)[0]:
                raise AssertionError(f"{text!r} is not on the screen: {seen[self._looked_at :]}")
            self._written += os.read(self._keyboard, 65536)
        self._looked_at = found + len(wanted)

    def _screen_text(self) -> str:
        """Everything that was on the screen, without spaces, because cursor moves replace them."""
        return "".join(_MOVES.sub("", self._written.decode("utf-8", "ignore")).split())

    @property
    def requests(self) -> list[Request]:
        """The requests to the model."""
        return [request for request in self._script.requests if request.tools]


@contextmanager
def at_terminal(person: Person, *replies: str | Reply) -> Iterator[Terminal]:
    """A conversation in the project; the model answers with the replies."""
    # What a client asks somebody who uses it for the first time is settled.
    answered = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [API_KEY]},
        "projects": {str(person.project): {"hasTrustDialogAccepted": True}},
    }
    (person.home / ".claude.json").write_text(json.dumps(answered))
    script = Script(replies, ())
    keyboard, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    with serving(script) as address:
        process = subprocess.Popen(
            person.client.command,
            cwd=person.project,
            env=person.environment_at(address) | {"TERM": "xterm-256color"},
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
        )
        os.close(screen)
        try:
            yield Terminal(keyboard, script)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(keyboard)
