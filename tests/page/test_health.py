"""Health and cost: what capture does, what agents are given, disk, the doctor."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from ctx import clock
from ctx.agents.host_setup import hook_trials
from ctx.hook_files import hook_log
from ctx.llm.ledger import Caps, Ledger, ModelTarget, Purpose
from ctx.llm.prices import prices
from ctx.llm.protocol import Usage
from ctx.sqlite.connection import transaction
from tests.conftest import Ctx
from tests.page.form_visitor import FormVisitor
from tests.page.served import Served
from tests.page.visits import HOSTILE, base_of, watch
from tests.synthesis.test_session_writer import open_writable


def give(surroundings: Path, project: Path, event: str, tokens: int) -> None:
    at_ms = clock.now_ms()
    with open_writable(surroundings, project) as memory, transaction(memory.local):
        memory.local.execute(
            "INSERT INTO receipts VALUES (?, 's1', ?, ?, 'app', ?, '[]')",
            (f"{at_ms}-1-{event}", event, clock.iso(at_ms), tokens),
        )


def test_health_without_javascript(surroundings: Path, project: Path, served: Served) -> None:
    give(surroundings, project, "SessionStart", 1234)
    give(surroundings, project, "query", 66)
    with served.visitor() as visitor:
        address = f"{base_of(visitor)}/health"
        page = visitor.get(address).text
        assert "Nothing is recorded: no agent has the hooks of ctx here." in page
        assert "1,300 tokens in 30 days" in page
        assert page.count('class="use-ground"') == 30
        assert page.count('<rect class="use-start"') == 1
        assert "No model is configured" in page
        assert "memory and captured sessions" in page
        assert "Run the doctor" in page
        hook_log.add(str(surroundings / ".ctx"), "stop", HOSTILE)
        troubled = visitor.get(address).text
        assert "1 hook error in the last 24 hours" in troubled
        assert "<script>alert" not in troubled
        assert "stop &lt;script&gt;alert(1)" in troubled


def test_which_agents_record_is_one_answer(
    surroundings: Path, served: Served, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Trying the hooks takes a process for each.
    monkeypatch.setattr(hook_trials, "_trial", lambda *_: "")
    ctx("install", "--host", "codex,gemini")
    with served.visitor() as visitor:
        page = visitor.get(f"{base_of(visitor)}/health").text
    assert "Capture works with Codex, Gemini CLI. No problems." in page
    assert ctx("status", "--json").json["hooks"] == ["Codex", "Gemini CLI"]
    checks = {each["name"]: each["seen"] for each in ctx("doctor", "--json").json["checks"]}
    assert checks["capture"] == "with Codex, Gemini CLI"


def test_pause_and_resume(project: Path, served: Served, ctx: Ctx) -> None:
    with FormVisitor(served) as visitor:
        assert visitor.client.post(f"{visitor.base}/health/pause").status_code == 403
        paused = visitor.follow("/health/pause", where="everywhere")
        assert "Capture is paused everywhere." in paused
        assert "paused everywhere since" in paused
        assert "Resume everywhere" in paused
        assert "paused everywhere" in ctx("status").out
        again = visitor.follow("/health/resume", where="everywhere")
        assert "Capture is on again." in again
        assert "Pause everywhere" in again


def test_the_doctor_runs_when_asked(served: Served, browser: Browser) -> None:
    page = served.open(browser)
    trouble = watch(page)
    page.goto(f"{page.url.removesuffix('/now')}/health")
    assert page.locator("table.doctor").count() == 0
    page.get_by_role("button", name="Run the doctor").click(no_wait_after=True)
    expect(page.locator("table.doctor")).to_be_visible()
    names = page.locator("table.doctor tbody th").all_inner_texts()
    assert {"ctx", "store", "hooks"} <= set(names)
    assert page.url.endswith("/health#doctor")
    page.reload()
    expect(page.locator("table.doctor")).to_be_visible()
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
    assert trouble == []
    page.context.close()


def test_model_spending(surroundings: Path, served: Served) -> None:
    target = ModelTarget("claude_cli", "claude", "<b>default")
    with Ledger(str(surroundings / ".ctx" / "ledger.db")) as ledger:
        meter = ledger.meter(Purpose("llm"), target, Caps(999_999), prices([]))
        meter.reserve(900, 9).settle(Usage(700, 50, cost_micros=1_250_000), "<b>haiku")
    with served.visitor() as visitor:
        page = visitor.get(f"{base_of(visitor)}/health").text
    assert "750 of 200,000 tokens" in page
    assert "$1.25, 1 request" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_health_and_cost_over_the_api(surroundings: Path, project: Path, served: Served) -> None:
    give(surroundings, project, "SessionStart", 1234)
    with served.program() as program:
        health = program.get("/api/v1/health", params={"days": 2}).json()
        assert health["days"][-1]["at_start"] == 1234
        assert len(health["days"]) == 2
        assert health["health"]["queue"]["waiting"] == 0
        cost = program.get("/api/v1/cost", params={"by": "day", "since": "7d"}).json()
        assert (cost["by"], cost["ever"], cost["spent"]) == ("day", False, [])
        for path, wrong in (
            ("health", {"days": "0"}),
            ("cost", {"by": "mood"}),
            ("cost", {"since": "x"}),
        ):
            assert program.get(f"/api/v1/{path}", params=wrong).status_code == 400
        assert json.dumps(health).isascii()
