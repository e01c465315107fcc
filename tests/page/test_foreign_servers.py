"""What other servers on this machine learn from the browser of somebody who uses the page."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Browser, expect

from tests.conftest import Ctx
from tests.page.foreign_server import ForeignServer
from tests.page.served import Served

SECRET = re.compile(r"cookie|token|/s/|/p/", re.IGNORECASE)
"""What the page has, and another server must not get."""


def test_another_port_learns_nothing(served: Served, browser: Browser, ctx: Ctx) -> None:
    """Browsers send the cookies of a host to all of its ports."""
    with ForeignServer() as foreign:
        node = ctx("add", f"See [their page]({foreign.origin}/by-link)", "--format=json").json
        page = served.open(browser)
        base = page.url.removesuffix("/now")
        other = page.context.new_page()
        other.goto(f"{foreign.origin}/by-hand")
        other.close()
        page.goto(f"{base}/node/{node['node']['id']}")
        page.get_by_role("link", name="their page").click()
        page.wait_for_url(f"{foreign.origin}/by-link")
        page.go_back()
        page.goto(f"{foreign.origin}/from-the-page")
        page.context.close()
    asked = [each.partition("\n")[0] for each in foreign.requests]
    for way in ("by-hand", "by-link", "from-the-page"):
        assert f"GET /{way} HTTP/1.1" in asked
    assert SECRET.search(foreign.received) is None, foreign.received
    assert served.origin not in foreign.received, "the page is no referrer"


def test_the_next_server_on_the_port_learns_nothing(served: Served, browser: Browser) -> None:
    """An open page tells nothing to whoever takes the port after ctx."""
    page = served.open(browser)
    expect(page.locator(".live")).to_have_text("live")
    port = urlsplit(served.origin).port
    assert served.stop() == 0
    with ForeignServer(port or 0) as foreign:
        expect(page.locator(".live")).to_contain_text("ctx ui")
        # A stream that connects again does so after a few seconds.
        assert not foreign.was_asked.wait(6), foreign.received
        other = page.context.new_page()
        other.goto(foreign.origin)
        assert SECRET.search(foreign.received) is None, foreign.received
        # The open page still holds its lock, whose name is known to every page of the origin.
        names = other.evaluate("async () => JSON.stringify(await navigator.locks.query())")
        assert "ctx " in names
        assert SECRET.search(names) is None, names
    page.context.close()


def test_what_a_reload_tells_the_next_server_has_ended(
    served: Served, browser: Browser, project: Path
) -> None:
    """The address of an open page goes to whoever has the port, and is of no use."""
    page = served.open(browser)
    expect(page.locator(".live")).to_have_text("live")
    port = urlsplit(served.origin).port or 0
    assert served.stop() == 0
    with ForeignServer(port) as foreign:
        page.reload()
    page.context.close()
    line, *headers = foreign.requests[0].splitlines()
    stolen = dict(each.split(": ", 1) for each in headers if ": " in each)
    with Served(project, "--port", str(port)) as again:
        answer = httpx.get(f"{again.origin}{line.split()[1]}", headers=stolen)
        assert answer.status_code == 404
        assert "ctx ui" in answer.text
