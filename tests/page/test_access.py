"""Who may use the page."""

import os
import stat
from pathlib import Path

import httpx
import pytest

from ctx.page.access import BrowserSession, Notice
from tests.conftest import Ctx
from tests.page.served import Served
from tests.page.visits import base_of
from tests.thread_locks import waits


@pytest.mark.parametrize("path", ["/", "/p/app/now", "/api/v1/nodes", "/api/v1/openapi.json"])
def test_without_a_token_nothing_is_shown(served: Served, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer x"}, {"Cookie": "ctx-1=x"}):
        answer = httpx.get(served.origin + path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "ctx ui" in answer.text


def test_the_token_of_programs_is_this_users_alone(served: Served) -> None:
    path = Path(os.environ["HOME"], ".ctx", "page.token")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with served.program() as client:
        assert client.get("/api/v1/nodes").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:PORT"]
)
def test_another_host_is_refused(served: Served, host: str) -> None:
    """DNS rebinding: a foreign name that resolves to this machine."""
    port = served.origin.rpartition(":")[2]
    with served.program() as client:
        answer = client.get("/api/v1/nodes", headers={"Host": host.replace("PORT", port)})
    assert answer.status_code == 421


def test_a_page_of_another_site_can_change_nothing(served: Served, ctx: Ctx) -> None:
    with served.visitor() as visitor:
        base = base_of(visitor)
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": f"{served.origin}.evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {},
        ):
            answer = visitor.post(f"{base}/undo", headers=headers, data={"change": ""})
            assert answer.status_code == 403, headers
        own = {"Origin": served.origin}
        assert visitor.post(f"{base}/undo", headers=own, data={"csrf": "x"}).status_code == 403


def test_no_frame_and_no_script_from_elsewhere(served: Served) -> None:
    for path in ("/", "/static/page.css", "/static/../app.py", "/static/%2e%2e/app.py"):
        headers = httpx.get(served.origin + path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
    assert httpx.get(f"{served.origin}/static/%2e%2e/app.py").status_code == 404


def test_a_notice_is_shown_once_also_in_two_tabs() -> None:
    session = BrowserSession("/app")
    assert waits(session, lambda: session.tell("Saved."))
    shown: list[Notice] = []
    assert waits(session, lambda: shown.extend(session.take_messages()))
    assert shown == [Notice("Saved.")]
    assert session.take_messages() == []
