"""Sessions: the timeline, and one session as a story."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, expect

from ctx.memory.lookups import with_tag
from ctx.page import page_app
from ctx.page.requests import Answer, PageRequest, PageRoute
from ctx.page.sessions_view import timeline
from ctx.sqlite.connection import transaction
from ctx.synthesis.session_writer import synthesise
from ctx.workspace import Memory
from tests.agents.claude_code.hook_processes import command
from tests.capture.conversations import Client
from tests.conftest import Ctx
from tests.operations.test_session_story import FIXING
from tests.page.form_visitor import FormVisitor
from tests.page.served import Served, visitor
from tests.page.served_here import served_here
from tests.page.visits import HOSTILE, base_of, press, watch
from tests.synthesis.test_session_writer import add_steps, open_writable
from tests.worker.worker_processes import until


@pytest.fixture
def memory(surroundings: Path, project: Path) -> Iterator[Memory]:
    with open_writable(surroundings, project) as memory:
        yield memory


@pytest.fixture
def session(memory: Memory) -> str:
    """A session that fixed a test, and what was made of it."""
    add_steps(memory, FIXING, "s0ab")
    synthesise(memory, "s0ab", is_over=True)
    return "s0ab"


def step_ids(memory: Memory, session: str) -> list[str]:
    rows = memory.local.execute("SELECT id FROM events WHERE session = ? ORDER BY id", (session,))
    return [row[0] for row in rows]


def test_no_sessions_yet(served: Served) -> None:
    with served.visitor() as visitor:
        page = visitor.get(f"{base_of(visitor)}/sessions").text
    assert "ctx import --from claude-code --transcripts" in page


def test_the_timeline_without_javascript(memory: Memory, session: str, served: Served) -> None:
    with transaction(memory.local):
        for host, project in (("codex", memory.project), ("gemini", "other")):
            memory.local.execute(
                "INSERT INTO sessions (id, project, folder, client, request, started_at, last_at)"
                " VALUES (?, ?, '/', ?, ?, '2026-11-14T10:00:00Z', '2026-11-14T11:05:00Z')",
                (f"s-{host}", project, host, f"Ask {host} & co"),
            )
    with served.visitor() as visitor:
        address = f"{base_of(visitor)}/sessions"
        page = visitor.get(address).text
        assert page.index('id="day-2026-11-15"') < page.index('id="day-2026-11-14"')
        assert f'{address}/{session}"' in page
        assert "2 prompts" in page
        assert "1 failure<" in page
        assert "1 bugfix" in page
        assert "Ask codex &amp; co" in page
        assert "gemini" not in page
        everywhere = visitor.get(address, params={"all": "1", "host": "gemini"}).text
        assert "Ask gemini" in everywhere
        assert "Ask codex" not in everywhere
        assert "No session matches." in visitor.get(address, params={"q": "nowhere"}).text
        assert "Ask codex" in visitor.get(address, params={"until": "2026-11-14"}).text
        since = visitor.get(address, params={"since": "2026-11-15"}).text
        assert "Ask codex" not in since
        assert session in since
        wrong = visitor.get(address, params={"until": "soon"})
        assert (wrong.status_code, "is not a day" in wrong.text) == (400, True)


def test_the_story_without_javascript(memory: Memory, session: str, served: Served) -> None:
    steps = step_ids(memory, session)
    with served.visitor() as visitor:
        base = base_of(visitor)
        address = f"{base}/sessions/{session}"
        page = visitor.get(address).text
        assert all(f'id="step-{step}"' in page for step in steps)
        assert "2 files read" in page
        assert "AssertionError: assert 2 == 1" in page
        # Each line leads to its evidence, and each node exists.
        for link in set(re.findall(r"\?step=([^#\"]+)#step-([^\"]+)\"", page)):
            assert link[0] == link[1]
            assert link[0] in steps
        nodes = set(re.findall(rf"{base}/node/(\w+)", page))
        assert nodes
        assert all(visitor.get(f"{base}/node/{node}").status_code == 200 for node in nodes)
        one = visitor.get(address, params={"step": steps[5]}).text
        assert re.search(rf'<details class="step[^>]*id="step-{steps[5]}" open', one)
        found = visitor.get(address, params={"q": "REFRESH"}).text
        assert found.count("<mark>refresh</mark>") > 3
        assert "4 steps with" in found
        assert f'id="step-{steps[-1]}"' not in found
        assert "No step contains this." in visitor.get(address, params={"q": "<b>"}).text
        assert visitor.get(f"{base}/sessions/nowhere").status_code == 404
        assert f'{address}/markdown?page=1"' in page
        downloaded = visitor.get(f"{address}/markdown")
        assert "- 2 commands (1 failed): pytest -q" in downloaded.text
        assert "attachment" in downloaded.headers["content-disposition"]


def test_what_a_session_was_given(memory: Memory, session: str, served: Served) -> None:
    node = with_tag(memory.local, f"session:{session}")[0]
    item = [node, "summary:x", "2026-11-15T00:00:00Z", 40, "memory"]
    with transaction(memory.local):
        memory.local.execute(
            "INSERT INTO receipts VALUES ('1794700800000-1-r', ?, 'SessionStart',"
            " '2026-11-15T00:00:00Z', 'app', 90, ?)",
            (session, json.dumps([item])),
        )
    with served.visitor() as visitor:
        address = f"{base_of(visitor)}/sessions/{session}"
        assert "90 tokens" in visitor.get(address).text
        page = visitor.get(address, params={"receipt": "1794700800000-1-r"}).text
        assert "50 tokens of headings" in page
        assert "1 node<" in page
        assert "node, 40 tokens, changed since: in the view <code>default</code>" in page


def test_what_it_was_given_is_marked_and_taken_back(
    repo: Path, surroundings: Path, ctx: Ctx, browser: Browser
) -> None:
    wrong = "The API listens on port 8080."
    for text in (wrong, "The exporter runs as the user app."):
        assert ctx("add", "--type=fact", "--tag=tier:reference", text).code == 0
    client = Client(surroundings / ".ctx", repo)
    conversation = client.talk("s0ab")
    conversation.start()
    conversation.submit("Where does the API listen?")
    assert ctx("hook", "apply").code == 0
    receipt = ctx("why", "--format=json").json["receipt"]
    with Served(repo) as served, FormVisitor(served) as visitor:
        address = f"/sessions/s0ab?receipt={receipt}"
        number = "1" if "8080" in ctx("why").out.splitlines()[3] else "2"
        item = {"receipt": receipt, "item": number}
        for fields in ({**item, "verdict": "nonsense"}, {**item, "item": "9", "verdict": "wrong"}):
            assert visitor.send("/sessions/s0ab/verdict", **fields).status_code in (400, 404)
        posted = {"csrf": "x", **item, "verdict": "wrong"}
        headers = {"Origin": visitor.origin}
        refused = visitor.client.post(
            f"{visitor.base}/sessions/s0ab/verdict", data=posted, headers=headers
        )
        assert refused.status_code == 403
    with Served(repo) as served:
        page = served.open(browser)
        trouble = watch(page)
        page.goto(page.url.removesuffix("/now") + address)
        given = page.locator(".given > li", has_text="8080")
        given.get_by_role("button", name="Wrong").click()
        expect(page.locator(".messages")).to_contain_text("Marked as wrong.")
        expect(given).to_contain_text("You marked this as wrong")
        given.get_by_label("The right text").fill("The API listens on port 9090.")
        given.get_by_label("The right text").press("Enter")
        expect(given).to_contain_text("The right text")
        start = ctx("context").out
        assert "9090" in start
        assert "8080" not in start
        for _ in range(2):
            given.get_by_role("button", name="Undo").click()
            expect(page.locator(".messages")).to_contain_text("Taken back.")
        start = ctx("context").out
        assert "9090" not in start
        assert "8080" in start
        given.get_by_role("button", name="Useless").click()
        expect(given).to_contain_text("You marked this as useless")
        assert "8080" not in ctx("context").out
        page.locator(".messages").get_by_role("button", name="Undo").click()
        expect(given.get_by_role("button", name="Useless")).to_be_visible()
        assert trouble == []


def test_hostile_text_is_shown_and_runs_nothing(
    memory: Memory, served: Served, browser: Browser
) -> None:
    script = f"prompt: {HOSTILE}\nsay: {HOSTILE}\nread: {HOSTILE}\nrun: {HOSTILE}\n  failed 1\n"
    script += f"  printed {HOSTILE}\nwrite: <svg/onload=alert(4)> +1 -0\n  + {HOSTILE}\n"
    script += f"say: {HOSTILE} again\n"
    add_steps(memory, script, "s0ab")
    with transaction(memory.local):
        memory.local.execute(
            "UPDATE sessions SET branch = ?, request = ?, client = ?, transcript = ?",
            (HOSTILE, HOSTILE, "<b>host", f"/tmp/{HOSTILE}"),
        )
    synthesise(memory, "s0ab", is_over=True)
    page = served.open(browser)
    trouble = watch(page)
    base = page.url.removesuffix("/now")
    for path in ("/sessions", "/sessions/s0ab", "/sessions/s0ab?q=script", "/sessions/s0ab/delete"):
        page.goto(f"{base}{path}")
        assert page.locator("main script, main img, main b, main [onerror]").count() == 0
        assert page.locator("main a[href^='javascript']").count() == 0
        assert "\u202e" not in page.content()
    page.goto(f"{base}/sessions/s0ab")
    for group in page.locator("main details.group > summary").all():
        group.click()
    expect(page.locator("main")).to_contain_text("<script>alert(1)</script>")
    expect(page.locator("main")).to_contain_text("\\u202eevil")
    assert trouble == []
    page.context.close()


def hook(folder: Path, word: str, **said: object) -> None:
    """A hook as a client runs it, and then what hooks start where there is no worker."""
    payload = {"session_id": "live-0001", "cwd": str(folder), **said}
    subprocess.run(
        command(word), input=json.dumps(payload).encode(), check=True, stdout=subprocess.DEVNULL
    )
    subprocess.run(
        [sys.executable, "-m", "ctx", "hook", "apply"],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def test_a_running_session_grows_on_the_page(
    project: Path, served: Served, browser: Browser
) -> None:
    page = served.open(browser)
    base = page.url.removesuffix("/now")
    page.goto(f"{base}/sessions")
    expect(page.locator("main")).to_contain_text("No sessions yet.")
    hook(project, "prompt-submit", hook_event_name="UserPromptSubmit", prompt="Count the lines.")
    line = page.locator("li[data-item]", has_text="Count the lines.")
    expect(line).to_be_visible()
    expect(line).to_contain_text("active")
    line.get_by_role("link").first.click()
    expect(page.locator(".prompt")).to_contain_text("Count the lines.")
    use = {"tool_name": "Bash", "tool_input": {"command": "wc -l notes.txt"}}
    hook(
        project,
        "post-tool-use",
        hook_event_name="PostToolUse",
        tool_use_id="toolu_1",
        tool_response={"stdout": "3 notes.txt", "stderr": "", "interrupted": False},
        **use,
    )
    group = page.locator("details.group", has_text="1 command")
    expect(group).to_be_visible()
    group.locator("summary").first.click()
    expect(group.locator(".step")).to_contain_text("wc -l notes.txt")
    hook(project, "prompt-submit", hook_event_name="UserPromptSubmit", prompt="And the words?")
    expect(page.locator(".prompt", has_text="And the words?")).to_be_visible()
    # What was open stays open.
    expect(group.locator(".step")).to_be_visible()
    page.context.close()


def test_delete_asks_first_and_undo_restores_the_nodes(
    memory: Memory, session: str, served: Served, browser: Browser, ctx: Ctx
) -> None:
    before = len(with_tag(memory.local, f"session:{session}"))
    page = served.open(browser)
    page.goto(f"{page.url.removesuffix('/now')}/sessions/{session}")
    page.get_by_role("link", name="Delete…").click()
    expect(page.locator("h1")).to_have_text("Delete this session?")
    expect(page.locator("main")).to_contain_text(f"deletes {before} nodes")
    assert ctx("sessions", "show", session).code == 0
    page.get_by_role("button", name="Delete the session").click()
    expect(page.locator(".messages")).to_contain_text("Deleted the session")
    assert ctx("sessions", "show", session).code != 0
    assert with_tag(memory.local, f"session:{session}") == []
    press(page, "u")
    expect(page.locator(".messages")).to_contain_text("Undone")
    assert len(with_tag(memory.local, f"session:{session}")) == before
    page.context.close()


def test_keys_copy_and_a_narrow_window(session: str, served: Served, browser: Browser) -> None:
    page = served.open(browser, viewport={"width": 390, "height": 844})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    base = page.url.removesuffix("/now")
    page.goto(f"{base}/sessions")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/sessions/{session}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    press(page, "y")
    expect(page.locator(".messages")).to_contain_text("Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "## Failures and fixes" in copied
    page.evaluate("navigator.clipboard.writeText('')")
    page.get_by_role("button", name="Copy as markdown").click()
    until(lambda: page.evaluate("navigator.clipboard.readText()") == copied)
    page.context.close()


def test_the_times_of_a_long_session_do_not_cover_its_title(
    memory: Memory, session: str, served: Served, browser: Browser
) -> None:
    with transaction(memory.local):
        memory.local.execute("UPDATE sessions SET started_at = '2026-11-01T10:00:00Z'")
    page = served.open(browser, viewport={"width": 800, "height": 600})
    page.goto(page.url.replace("/now", "/sessions"))
    when, title = page.locator(".session-line .when"), page.locator(".session-line .what")
    ends = when.evaluate("each => each.getBoundingClientRect().left + each.scrollWidth")
    assert ends <= title.evaluate("each => each.getBoundingClientRect().left")
    page.context.close()


def test_no_view_shows_the_marks_of_markdown(
    memory: Memory, served: Served, browser: Browser, ctx: Ctx
) -> None:
    text = "**Never** use `floats` in __init__, see [the docs](https://e.org)"
    add_steps(memory, f"prompt: {text}\nsay: {text}: they lose *cents*.\n", "s0ab")
    synthesise(memory, "s0ab", is_over=True)
    with transaction(memory.local):
        memory.local.execute("UPDATE sessions SET request = ?", (text,))
    node = ctx("add", "--type=decision", f"{text}\n\n- **one**\n\n```\nx = 1\n```").out.split()[1]
    ctx("add", "--type=fact", "--tag=tier:off-context", text)
    page = served.open(browser)
    base = page.url.removesuffix("/now")
    sessions = ("sessions", "sessions/s0ab", "sessions/s0ab?q=floats", "sessions/s0ab/delete")
    for view in ("now", "now?prompt=floats", *sessions, "search?q=floats", "review", "graph"):
        page.goto(f"{base}/{view}")
        page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        page.evaluate("document.querySelectorAll('.given-text').forEach((each) => each.remove())")
        shown = page.inner_text("main") + page.title()
        lines = [line for line in shown.splitlines() if re.search(r"\*\*|`|\]\(", line)]
        assert lines == [], view
        assert view == "review" or "floats" in shown, view
    page.goto(f"{base}/node/{node}")
    expect(page.locator(".node > .content li strong")).to_have_text("one")
    expect(page.locator(".node > .content")).to_contain_text("in __init__, see the docs")
    page.context.close()


def test_times_are_in_the_zone_of_the_browser(
    memory: Memory, session: str, served: Served, browser: Browser
) -> None:
    with transaction(memory.local):
        memory.local.execute(
            "UPDATE sessions SET started_at = '2026-07-02T01:10:00Z',"
            " last_at = '2026-07-02T02:05:07Z'"
        )
    page = served.open(browser, timezone_id="America/New_York")
    expect(page.locator(".bottom")).to_contain_text("Times: America/New_York")
    page.goto(page.url.replace("/now", "/sessions?since=2026-07-01&until=2026-07-01"))
    expect(page.locator(".day h2")).to_have_text("2026-07-01")
    when = page.locator(".session-line .when")
    expect(when).to_have_text("21:10–22:05")
    expect(when.locator("time").last).to_have_attribute("title", "2026-07-01 22:05:07-04:00")
    page.goto(page.url.partition("?")[0] + f"/{session}")
    expect(page.locator(".session > .about")).to_contain_text("2026-07-01 21:10 – 22:05")
    page.context.close()


def test_a_zone_that_comes_while_a_page_is_made(
    surroundings: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page names the zone of its days, so that the script reads it again."""

    def told_late(request: PageRequest) -> Answer:
        answer = timeline(request)
        assert request.browser is not None
        request.browser.zone = ZoneInfo("America/New_York")
        return answer

    monkeypatch.setattr(page_app, "ROUTES", [PageRoute("GET", "/now", told_late)])
    with (
        served_here(surroundings / ".ctx", project) as here,
        visitor(here.new_link().address) as client,
    ):
        for zone in ("UTC", "America/New_York"):
            assert f'data-zone="{zone}"' in client.get(f"{base_of(client)}/now").text


def test_times_are_utc_without_javascript(session: str, served: Served, browser: Browser) -> None:
    page = served.open(browser, java_script_enabled=False, timezone_id="America/New_York")
    page.goto(page.url.replace("/now", "/sessions"))
    exact = page.locator(".when time").last.get_attribute("title")
    assert exact is not None
    assert exact.endswith("+00:00")
    expect(page.locator(".bottom")).to_contain_text("Times: UTC")
    page.context.close()


def test_ten_thousand_sessions(memory: Memory, served: Served) -> None:
    with transaction(memory.local):
        memory.local.executemany(
            "INSERT INTO sessions (id, project, folder, client, request, started_at, last_at)"
            " VALUES (?, ?, '/', 'codex', ?, ?, ?)",
            (
                (f"s{each:05}", memory.project, f"Task {each}", *(day_of(each),) * 2)
                for each in range(10_000)
            ),
        )
    with served.visitor() as visitor:
        address = f"{base_of(visitor)}/sessions"
        for params in ({}, {"q": "task 99"}, {"until": "2026-03-01"}):
            assert len(visitor.get(address, params=params).content) < 150_000
        listed: set[str] = set()
        next_page = address
        for _ in range(3):
            page = visitor.get(next_page)
            found = set(re.findall(rf'{address}/(s\d+)"', page.text))
            assert len(found) == 50
            assert not found & listed
            listed |= found
            older = re.search(r'rel="next" href="([^"]+)"', page.text)
            assert older
            next_page = str(page.url.join(older[1].replace("&amp;", "&")))


def day_of(number: int) -> str:
    return f"2026-{1 + number // 1000:02}-{1 + number // 40 % 25:02}T10:{number % 40:02}:00Z"


def test_sessions_over_the_api(session: str, served: Served) -> None:
    with served.program() as program:
        listed = program.get("/api/v1/sessions", params={"limit": 5}).json()
        assert [each["id"] for each in listed["sessions"]] == [session]
        assert listed["sessions"][0]["counts"]["failures"] == 1
        answer = program.get(f"/api/v1/sessions/{session}", params={"text": "refresh"})
        assert answer.json()["hit_count"] == 4
        again = program.get(
            f"/api/v1/sessions/{session}",
            params={"text": "refresh"},
            headers={"If-None-Match": answer.headers["etag"]},
        )
        assert again.status_code == 304
        missing = program.get("/api/v1/sessions/nowhere")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "E030")
        for wrong in ({"limit": "0"}, {"until": "x"}, {"before": "x"}, {"unknown": "1"}):
            assert program.get("/api/v1/sessions", params=wrong).status_code == 400
        paths = program.get("/api/v1/openapi.json").json()["paths"]
    assert {"/sessions", "/sessions/{session}", "/health", "/cost"} <= set(paths)
