"""The routes of the app: their answers, and their errors for invalid requests."""

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
from ctx.server.app import AppServices, PageLink, ProcessInfo
from ctx.workspace import Environment
from tests.capture.conversations import Client
from tests.conftest import Ctx

ABOUT = ProcessInfo(4242, "0.1.0", 31.5, "2026-01-20T10:00:00Z", 7)


class Answer(NamedTuple):
    status: int
    value: Any


Ask = Callable[..., Answer]


@pytest.fixture
def wake_calls() -> list[str]:
    return []


@pytest.fixture
def ask(surroundings: Path, ctx: Ctx, wake_calls: list[str]) -> Ask:
    assert ctx("status").code == 0
    home = str(surroundings / ".ctx")
    place = Environment(home, UserStore(home), {}, (), CLI_SESSION, load_hosts=lambda: HOSTS)

    async def open_page(folder: str, with_file: bool) -> PageLink:
        return PageLink(f"http://127.0.0.1:1/?token={folder}", "page-1.html" if with_file else "")

    services = AppServices(place, {}, lambda: wake_calls.append("!"), lambda: ABOUT, open_page)
    served = server.app(services)

    async def request(method: str, path: str, **options: Any) -> Answer:
        transport = httpx.ASGITransport(served, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://ctx") as client:
            answer = await client.request(method, path, **options)
        assert answer.headers["content-type"] == "application/json"
        return Answer(answer.status_code, answer.json())

    def run(path: str, method: str = "GET", **options: Any) -> Answer:
        return asyncio.run(request(method, path, **options))

    return run


def error(answer: Answer) -> tuple[int, str, str]:
    return answer.status, answer.value["error"]["code"], answer.value["error"]["message"]


def test_health_describes_the_process(ask: Ask) -> None:
    queue = {"waiting": 0, "failed": 0, "new": 0, "skipped": 0, "last_stored": None, "live": 0}
    assert ask("/api/health") == (200, {"status": "ok", **ABOUT._asdict(), **queue})


def test_nodes_are_searched(ask: Ask, ctx: Ctx) -> None:
    assert ctx("add", "--type=decision", "--tag=area:net", "Retries wait a second.").code == 0
    assert ctx("add", "--type=fact", "Retries cost money.").code == 0

    def contents(path: str) -> list[str]:
        answer = ask(path)
        assert answer.status == 200
        return [node["content"] for node in answer.value["nodes"]]

    assert sorted(contents("/api/search?q=retry")) == [
        "Retries cost money.",
        "Retries wait a second.",
    ]
    assert len(contents("/api/search?q=retry&limit=1")) == 1
    assert contents("/api/search?q=type:fact") == []


def test_an_agent_searches_its_own_project(ask: Ask, ctx: Ctx, repo: Path) -> None:
    assert ctx("add", "--type=fact", "--tag=project:shop", "Theirs alone.").code == 0
    assert ask("/api/search?q=alone").value["total"] == 1
    assert ask(f"/api/search?q=alone&project_path={repo}").value["nodes"] == []


def test_the_context_of_a_project_is_returned(ask: Ask, ctx: Ctx, repo: Path) -> None:
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Money is in cents.").code == 0
    answer = ask("/api/context", params={"project_path": str(repo), "session_id": "a-session"})
    assert answer.status == 200
    assert set(answer.value) == {"context", "tokens", "layers", "build_ms"}
    assert "Money is in cents." in answer.value["context"]
    assert answer.value["layers"] == ["memory"]
    assert answer.value["tokens"] > 0


def test_agent_commands_are_run(ask: Ask, surroundings: Path, repo: Path, ctx: Ctx) -> None:
    conversation = Client(surroundings / ".ctx", repo).talk("a-session")
    conversation.answer('<ctx:remember type="fact">Deploys run on Mondays.</ctx:remember>')
    answer = ask("/api/apply", "POST")
    assert answer.status == 200
    assert [(each["session"], each["done"]) for each in answer.value["stops"]] == [("a-session", 1)]
    assert ask("/api/apply", "POST").value["stops"] == []
    assert "Deploys run on Mondays." in ctx("list").out


def test_hints_for_a_prompt_are_returned(ask: Ask, repo: Path) -> None:
    said = {"folder": str(repo), "session": "a-session", "prompt": "Why do retries fail?"}
    assert ask("/api/prompt", "POST", json=said) == (200, {"text": "", "items": [], "tokens": 0})


def test_the_worker_is_woken(ask: Ask, wake_calls: list[str]) -> None:
    assert ask("/api/wake", "POST") == (200, {"status": "ok"})
    assert wake_calls == ["!"]


def test_invalid_requests_are_refused(ask: Ask) -> None:
    assert error(ask("/api/search")) == (400, "E011", "`q` is missing.")
    assert error(ask("/api/search?q=x&limit=many")) == (
        *(400, "E011"),
        "`limit` is not a whole number: 'many'.",
    )
    assert error(ask("/api/context?project_path=here"))[:2] == (400, "E011")
    assert error(ask("/api/context")) == (400, "E011", "`project_path` is missing.")
    assert error(ask("/api/page", "POST", content=b'{"folder": "here"}'))[:2] == (400, "E011")
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


def test_a_damaged_store_is_an_error(ask: Ask, surroundings: Path) -> None:
    (surroundings / ".ctx" / "store.db").write_bytes(b"This is no database." * 1000)
    status, code, message = error(ask("/api/search?q=x"))
    assert (status, code) == (500, "E018")
    assert "is not a database" in message


def test_an_untrusted_project_is_not_shown(ask: Ask, repo: Path, ctx: Ctx) -> None:
    """Until it is trusted, an agent gets nothing of its memory."""
    assert ctx("init").code == 0
    assert ctx("add", "--type=fact", "--tag=tier:pinned", "Ours alone.").code == 0
    assert "Ours alone." in str(ask(f"/api/search?q=alone&project_path={repo}").value)
    assert ctx("trust", "--revoke").code == 0
    assert "Ours alone." not in str(ask(f"/api/search?q=alone&project_path={repo}").value)
    assert "Ours alone." not in str(ask(f"/api/context?project_path={repo}").value)
