"""`ctx serve` as a process, and what a program and a browser do with it."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Browser, BrowserContext, Page

from tests.warm_process import ForkedProcess, WarmProcess

_STOP_S = 120
PATIENCE_MS = 120_000
"""A busy machine takes long."""


def visitor(address: str) -> httpx.Client:
    """Who has exchanged the token of an address for a session."""
    answer = httpx.get(address)
    assert answer.status_code == 303, answer.text
    return httpx.Client(base_url=answer.url.join(answer.headers["location"]), timeout=60)


class Served:
    """The page of a folder."""

    warm: WarmProcess | None = None
    """What starts the servers, so that they start faster. Without it each is a new process."""

    def __init__(self, folder: Path, *words: str, **variables: str) -> None:
        self.folder = folder
        environment = {**os.environ, **variables}
        self._process: subprocess.Popen[str] | ForkedProcess
        if Served.warm is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ctx", "serve", *words],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
        else:
            self._process = Served.warm.start(["serve", *words], folder, environment)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        """The first line: an address that works once."""
        parts = urlsplit(self.address)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.pid = self._process.pid

    def __enter__(self) -> "Served":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> int:
        """End it as Ctrl-C does; its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            code = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def program(self) -> httpx.Client:
        """A program with the bearer token."""
        home = os.environ.get("CTX_HOME") or os.path.join(os.environ["HOME"], ".ctx")
        token = Path(home, "page.token").read_text().strip()
        return httpx.Client(
            base_url=self.origin, headers={"Authorization": f"Bearer {token}"}, timeout=60
        )

    def visitor(self) -> httpx.Client:
        """A browser without JavaScript, as a program: its addresses are below the session."""
        return visitor(self.address)

    def open(self, browser: Browser, **options: Any) -> Page:
        """The first view in a new browser context."""
        context: BrowserContext = browser.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.goto(self.address)
        return page
