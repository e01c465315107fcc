"""The app by its routes: what each answers, and what it says to who asks in a wrong way."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from ctx.agents.known_hosts import HOSTS
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.server import app as server
from ctx.server.app import AppServices, ProcessInfo
from ctx.workspace import Environment
from tests.capture.conversations import Client
from tests.conftest import Ctx

ABOUT = ProcessInfo(4242, "0.1.0", 31.5, "2026-01-20T10:00:00Z", 7)


class Told(NamedTuple):
    status: int
    value: Any


Ask = Callable[..., Told]


@pytest.fixture
def woken() -> list[str]:
    return []


@pytest.fixture
def ask(surroundings: Path, ctx: Ctx, woken: list[str]) -> Ask:
    assert ctx("status").code == 0
    home = str(surroundings / ".ctx")
    place = Environment(home, UserStore(home), {}, (), CLI_SESSION, load_hosts=lambda: HOSTS)
    served = server.app(AppServices(place, lambda: woken.append("!"), lambda: ABOUT))

    async def asked(method: str, path: str, **options: Any) -> Told:
        transport = httpx.ASGITransport(served, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://ctx") as client:
            answer = await client.request(method, path, **options)
        assert answer.headers["content-type"] == "application/json"
        return Told(answer.status_code, answer.json())

    def run(path: str, method: str = "GET", **options: Any) -> Told:
        return asyncio.run(asked(method, path, **options))

    return run


def error(told: Told) -> tuple[int, str, str]:
    return told.status, told.value["error"]["code"], told.value["error"]["message"]


def test_health(ask: Ask) -> None:
    queue = {"waiting": 0, "failed": 0, "new": 0, "skipped": 0, "last_stored": None, "live": 0}
    assert ask("/api/health") == (200, {"status": "ok", **ABOUT._asdict(), **queue})


def test_nodes_and_words(ask: Ask, ctx: Ctx) -> None:
    assert ctx("add", "--type=decision", "--tag=area:net", "Retries wait a second.").code == 0
    assert ctx("add", "--type=fact", "Money is in cents.").code == 0

    def contents(path: str) -> list[str]:
        told = ask(path)
        assert told.status == 200
        return [node["content"] for node in told.value["nodes"]]

    assert contents("/api/nodes") == ["Money is in cents.", "Retries wait a second."]
    assert contents("/api/nodes?limit=1") == ["Money is in cents."]
    assert contents("/api/nodes?type=decision") == ["Retries wait a second."]
    assert contents("/api/nodes?tag=area:net") == ["Retries wait a second."]
    assert contents("/api/search?q=retry") == ["Retries wait a second."]
    assert contents("/api/search?q=type:fact") == []


def test_a_task(ask: Ask, ctx: Ctx, repo: Path) -> None:
    assert ctx("add", "--type=decision", "Retries wait a second.").code == 0
    told = ask("/api/query", params={"q": "retries", "budget": "500", "project_path": str(repo)})
    assert told.status == 200
    assert told.value["task"] == "retries"


def test_the_context_of_a_place(ask: Ask, ctx: Ctx, repo: Path) -> None:
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Money is in cents.").code == 0
    told = ask("/api/context", params={"project_path": str(repo), "session_id": "a-session"})
    assert told.status == 200
    assert set(told.value) == {"context", "tokens", "layers", "build_ms"}
    assert "Money is in cents." in told.value["context"]
    assert told.value["layers"] == ["memory"]
    assert told.value["tokens"] > 0


def test_sessions_and_events(ask: Ask, surroundings: Path, repo: Path, ctx: Ctx) -> None:
    conversation = Client(surroundings / ".ctx", repo).talk("a-session")
    conversation.start()
    assert ctx("hook", "apply").code == 0
    told = ask("/api/sessions").value["sessions"]
    assert [(each["id"], each["project"], each["status"]) for each in told] == [
        ("a-session", "app", "active")
    ]
    assert ask("/api/sessions?project=other").value == {"sessions": []}
    found = ask("/api/events?session=a-session").value
    assert found["total"] == 1
    assert [(each["event"], each["status"]) for each in found["events"]] == [
        ("SessionStart", "step")
    ]
    assert ask("/api/events?status=skipped").value == {"events": [], "total": 0}


def test_commands_are_done(ask: Ask, surroundings: Path, repo: Path, ctx: Ctx) -> None:
    conversation = Client(surroundings / ".ctx", repo).talk("a-session")
    conversation.answer('<ctx:remember type="fact">Deploys run on Mondays.</ctx:remember>')
    told = ask("/api/apply", "POST")
    assert told.status == 200
    assert [(each["session"], each["done"]) for each in told.value["stops"]] == [("a-session", 1)]
    assert ask("/api/apply", "POST").value["stops"] == []
    assert "Deploys run on Mondays." in ctx("list").out


def test_a_prompt(ask: Ask, repo: Path) -> None:
    said = {"folder": str(repo), "session": "a-session", "prompt": "Why do retries fail?"}
    assert ask("/api/prompt", "POST", json=said) == (200, {"text": "", "items": [], "tokens": 0})


def test_waking(ask: Ask, woken: list[str]) -> None:
    assert ask("/api/wake", "POST") == (200, {"status": "ok"})
    assert woken == ["!"]


def test_what_makes_no_sense(ask: Ask) -> None:
    assert error(ask("/api/search")) == (400, "E011", "`q` is missing.")
    assert error(ask("/api/nodes?limit=many")) == (
        *(400, "E011"),
        "`limit` is not a whole number: 'many'.",
    )
    assert error(ask("/api/nodes?type=nonsense"))[:2] == (400, "E011")
    assert error(ask("/api/context?project_path=here"))[:2] == (400, "E011")
    assert error(ask("/api/context")) == (400, "E011", "`project_path` is missing.")
    assert error(ask("/api/query?q=x&budget=1"))[:2] == (400, "E010")
    assert error(ask("/api/nowhere")) == (404, "E011", "Not Found")
    assert error(ask("/api/apply")) == (405, "E011", "Method Not Allowed")
    assert error(ask("/api/prompt", "POST", content=b"{")) == (
        *(400, "E011"),
        "The body is not JSON.",
    )
    assert error(ask("/api/prompt", "POST", content=b"[]"))[2] == "The body is not a JSON object."
    deep = b"[" * 100_000
    assert error(ask("/api/prompt", "POST", content=deep))[2] == "The body is not JSON."
    large = json.dumps({"prompt": "x" * 1_100_000}).encode()
    assert error(ask("/api/prompt", "POST", content=large)) == (
        *(413, "E011"),
        "There are more than 1,048,576 bytes.",
    )


def test_a_store_that_is_damaged(ask: Ask, surroundings: Path) -> None:
    (surroundings / ".ctx" / "store.db").write_bytes(b"This is no database." * 1000)
    status, code, message = error(ask("/api/nodes"))
    assert (status, code) == (500, "E018")
    assert "is not a database" in message


def test_a_strangers_project_is_not_told(ask: Ask, repo: Path, ctx: Ctx) -> None:
    """Until it is trusted, an agent that works there is given nothing of it."""
    assert ctx("init").code == 0
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Ours alone.").code == 0
    assert "Ours alone." in str(ask(f"/api/nodes?project_path={repo}").value)
    assert ctx("trust", "--revoke").code == 0
    assert "Ours alone." not in str(ask(f"/api/nodes?project_path={repo}").value)
    assert "Ours alone." not in str(ask(f"/api/context?project_path={repo}").value)
