"""A real browser, and the page of a project."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.cli.conftest import add, project
from tests.installed import program
from tests.page.served import PATIENCE_MS, Served
from tests.warm_process import WarmProcess

__all__ = ["add", "project"]

_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


# While Playwright runs, this thread has an event loop: tests of other packages need their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = program("chromium")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="package", autouse=True)
def warm() -> Iterator[None]:
    """Start every server of these tests in the same way and much faster: see `WarmProcess`."""
    with (
        WarmProcess("ctx.cli.serve", "ctx.page.foreground", "uvicorn") as process,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(Served, "warm", process)
        yield


@pytest.fixture
def served(project: Path) -> Iterator[Served]:
    with Served(project) as serving:
        yield serving
