"""The path that is the session: whom it lets in, when it ends, and where it never stands."""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, expect

from ctx import clock
from ctx.page import access, page_app
from ctx.page.access import Access
from ctx.page.requests import Answer, PageRequest, PageRoute
from tests.conftest import Ctx
from tests.page.form_visitor import FormVisitor, field
from tests.page.served import PATIENCE_MS, Served, visitor
from tests.page.served_here import served_here
from tests.page.test_attacks import connect
from tests.page.visits import base_of


def home() -> Path:
    return Path(os.environ["HOME"], ".ctx")


def key_of(client: httpx.Client) -> str:
    return client.base_url.path.split("/")[2]


def status_of(served: Served, path: str, method: str = "GET", *lines: str) -> int:
    """The path goes over the wire as it is: clients would shorten it."""
    head = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(served.origin).netloc}", *lines]
    with connect(served) as connection:
        connection.sendall("\r\n".join([*head, "Connection: close", "", ""]).encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return int(answer.split()[1])


def test_each_exchange_gives_another_path(project: Path) -> None:
    with served_here(home(), project) as here:
        keys = []
        for _ in range(3):
            answer = httpx.get(here.new_link().address)
            assert answer.status_code == 303
            found = re.fullmatch(r"s/([A-Za-z0-9_-]{22})/", answer.headers["location"])
            assert found, "16 random bytes"
            assert "set-cookie" not in answer.headers
            keys.append(found[1])
        assert len(set(keys)) == 3


def test_only_a_browser_that_opens_it_uses_the_token(served: Served) -> None:
    """A program that looks at a link before somebody opens it does not use it up."""
    assert httpx.head(served.address).status_code == 401
    assert httpx.options(served.address).status_code == 401
    assert httpx.post(served.address, headers={"Origin": served.origin}).status_code == 401
    assert httpx.get(served.address.replace("/?", "/p?")).status_code == 401
    assert httpx.get(served.address).status_code == 303


def test_a_dead_link_says_how_to_open_another(served: Served) -> None:
    with served.visitor() as client:
        key = key_of(client)
    for path in (
        f"/?{urlsplit(served.address).query}",
        "/?token=",
        f"/s/{key[:-1]}/",
        f"/s/{key}x/p/app/now",
        f"/s/{key.swapcase()}/",
        "/s/x/",
    ):
        answer = httpx.get(served.origin + path)
        assert answer.status_code == 404, path
        assert "<h1>This link has ended.</h1>" in answer.text
        assert "Run <code>ctx ui</code>" in answer.text
        assert "Start page" not in answer.text
        style = re.search(r'href="([^"]*static/page\.css)"', answer.text)
        assert style
        assert httpx.get(answer.url.join(style[1])).status_code == 200
    program = httpx.get(f"{served.origin}/s/{key[:-1]}/api/v1/nodes")
    assert program.status_code == 404
    assert "ctx ui" in program.json()["error"]["hint"]


def test_other_spellings_of_the_path_lead_nowhere(served: Served) -> None:
    with served.visitor() as client:
        key, base = key_of(client), base_of(client)
    own = f"/s/{key}/{base}/now"
    assert status_of(served, own) == 200
    assert status_of(served, own, "HEAD") == 200
    assert status_of(served, own, "OPTIONS") == 405
    for path, status in (
        (f"/s/{key}", 401),
        (f"/S/{key}/", 401),
        (f"//s/{key}/", 401),
        (f"/s%2F{key}/", 401),
        (f"/./s/{key}/", 401),
        (f"/x/../s/{key}/", 401),
        (f"{served.origin}/s/{key}/", 401),
        (f"/s/{key}%2F{base}/now", 404),
        (f"/s//{key}/", 404),
        (f"/s/./{key}/", 404),
        (f"/s/x/../{key}/", 404),
        (f"/s/{key}//{base}/now", 404),
        (f"/s/{key}/s/{key}/", 404),
        (f"/s/{key}/../../etc/passwd", 404),
        (f"/s/{key}/{base}/now/", 404),
        (f"/s/{key}/static/../access.py", 404),
        (f"/s/{key}/static/%2e%2e/access.py", 404),
        (f"/s/{key}/static/..%2faccess.py", 404),
        (f"/s/{key}/static//etc/passwd", 404),
        (f"/s/{key}/static", 404),
        (f"/s/{key}/static/", 404),
    ):
        assert status_of(served, path) == status, path


def test_links_lead_back_from_every_depth(served: Served) -> None:
    """An encoded slash is part of a name for a browser, and a separator for the server."""
    with served.visitor() as client:
        base = base_of(client)
        for path in (f"{base}/now", base.replace("/", "%2F") + "/now", f"{base}/nowhere/at/all"):
            answer = client.get(path)
            found = re.search(r'href="([^"]*static/page\.css)"', answer.text)
            assert found
            assert answer.url.join(found[1]).path == f"{client.base_url.path}static/page.css"
        page = client.get(f"{base}/nowhere").text
        assert '<a href="../../">Start page</a>' in page
        api = client.get("api/v1/nodes")
        assert api.status_code == 200
        openapi = client.get("api/v1/openapi.json").json()
        assert openapi["servers"] == [{"url": "/api/v1"}], "programs have no session"


def test_nothing_that_is_sent_contains_the_path(served: Served, ctx: Ctx) -> None:
    """All addresses are relative, so a page that is saved or copied does not contain it."""
    ctx("add", "--type=fact", "Tea.")
    with FormVisitor(served) as person:
        key = key_of(person.client)
        for view in ("now", "sessions", "search", "review", "graph", "code", "health", "none"):
            answer = person.get(f"/{view}")
            assert key not in answer.text + str(answer.headers), view
            assert not re.findall(r'(?:href|action|src|data-\w+)="/', answer.text), view
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["referrer-policy"] == "same-origin"
        answer = person.send("/undo", change="")
        assert key not in str(answer.headers)
    with served.program() as program:
        assert program.get("/static/page.css").headers["cache-control"] == "no-store"


def test_a_form_of_another_session_is_refused(project: Path) -> None:
    with served_here(home(), project) as here:
        origin = f"http://{urlsplit(here.new_link().address).netloc}"
        with visitor(here.new_link().address) as one, visitor(here.new_link().address) as other:
            base = base_of(one)
            page = one.get(f"{base}/search").text
            csrf = field(page, "csrf")
            fields = {"csrf": csrf, "content": "Tea.", "type": "fact"}

            def send(client: httpx.Client, sender: dict[str, str]) -> int:
                return client.post(f"{base}/nodes", headers=sender, data=fields).status_code

            own = {"Origin": origin}
            assert send(other, own) == 403, "the form is of another session"
            # A frame in a sandbox, another site, and a server on another port.
            for sender in ("null", "http://evil.example", "http://127.0.0.1:1"):
                assert send(one, {"Origin": sender}) == 403, sender
            assert send(one, own) == 303
            # What is said after a change is said in its own tab.
            assert "message" not in re.findall(r'class="(message)"', other.get(f"{base}/now").text)


def test_two_tabs_of_two_sessions(browser: Browser, project: Path) -> None:
    with served_here(home(), project) as here:
        context = browser.new_context()
        context.set_default_timeout(PATIENCE_MS)
        tabs = [context.new_page() for _ in range(2)]
        for tab in tabs:
            tab.goto(here.new_link().address)
        paths = {urlsplit(tab.url).path.split("/")[2] for tab in tabs}
        assert len(paths) == 2
        for number, tab in enumerate(tabs):
            tab.locator("nav a", has_text="Search").click()
            tab.locator("summary", has_text="New node").click()
            tab.locator("textarea[name=content]").fill(f"Fact {number}.")
            tab.get_by_role("button", name="Add", exact=True).click()
            expect(tab.get_by_text(f"Fact {number}.").first).to_be_visible()
        assert {urlsplit(tab.url).path.split("/")[2] for tab in tabs} == paths
        assert context.cookies() == []
        context.close()


@pytest.mark.parametrize("name", ["monotonic", "wall_s"])
def test_a_session_ends_after_twelve_hours_without_use(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By either clock: one stops while the machine sleeps, the other can be set."""
    now, later = getattr(clock, name), [0.0]
    monkeypatch.setattr(clock, name, lambda: now() + later[0])
    hours = 3600
    with served_here(home(), project) as here:
        unused = here.new_link().address
        with visitor(here.new_link().address) as client:
            base = base_of(client)
            for _ in range(3):
                later[0] += 11 * hours
                assert client.get(f"{base}/now").status_code == 200
            with client.stream("GET", f"{base}/live", timeout=60) as stream:
                received = stream.iter_raw()
                assert next(received) == b": listening\n\n"
                later[0] += 12 * hours + 60
                assert list(received) == [], "an open page does not hold it"
            assert client.get(f"{base}/now").status_code == 404
            assert client.get("api/v1/nodes").status_code == 404
        assert httpx.get(unused).status_code == 404


def test_a_tab_after_the_end(
    project: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Back, reload, a bookmark, and a form."""
    now, later = clock.monotonic, [0.0]
    monkeypatch.setattr(clock, "monotonic", lambda: now() + later[0])
    with served_here(home(), project) as here:
        context = browser.new_context()
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.goto(here.new_link().address)
        bookmark = page.url
        page.locator("nav a", has_text="Health").click()
        expect(page.locator(".live")).to_have_text("live")
        later[0] += access.ENDS_S + 60
        expect(page.locator(".live")).to_contain_text("ctx ui")
        ended = page.get_by_role("heading", name="This link has ended.")
        page.go_back()
        expect(ended).to_be_visible()
        page.reload()
        expect(ended).to_be_visible()
        page.goto(bookmark)
        expect(ended).to_be_visible()
        context.close()


def test_the_session_that_was_not_used_for_the_longest_time_goes(project: Path) -> None:
    gate = Access(1, "")

    def open_one() -> str:
        path = gate.exchange(gate.new_address("/").partition("token=")[2])
        assert path is not None
        return path.split("/")[1]

    first, second = open_one(), open_one()
    assert gate.use(first)
    others = [open_one() for _ in range(63)]
    assert gate.use(second) is None
    assert all(map(gate.use, (first, *others)))


def test_a_bug_does_not_write_the_path_anywhere(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: PageRequest) -> Answer:
        raise ZeroDivisionError

    monkeypatch.setattr(page_app, "ROUTES", [PageRoute("GET", "/now", broken)])
    with served_here(home(), project) as here, visitor(here.new_link().address) as client:
        answer = client.get(f"{base_of(client)}/now")
        assert answer.status_code == 500
        assert "ZeroDivisionError" in here.log[0]
        out, err = capsys.readouterr()
        for text in (answer.text, str(answer.headers), *here.log, out, err):
            assert key_of(client) not in text


def test_no_file_contains_the_path(project: Path, ctx: Ctx) -> None:
    """Nor the token, once it was used."""
    with served_here(home(), project) as here, visitor((link := here.new_link()).address) as client:
        token = link.address.partition("token=")[2]
        base = base_of(client)
        csrf = field(client.get(f"{base}/search").text, "csrf")
        sender = {"Origin": f"http://{urlsplit(link.address).netloc}"}
        fields = {"csrf": csrf, "content": "Tea.", "type": "fact", "back": str(client.base_url)}
        assert client.post(f"{base}/nodes", headers=sender, data=fields).status_code == 303
        assert client.get(f"{base}/now", params={"prompt": "tea"}).status_code == 200
        assert client.get(f"{base}/nowhere").status_code == 404
        secrets = key_of(client).encode(), token.encode()
    assert ctx("worker", "stop").code == 0
    for path in [*home().rglob("*"), *project.rglob("*")]:
        if path.is_file():
            assert not any(secret in path.read_bytes() for secret in secrets), path
