"""The worker thread that sends sessions to a model, with a real server on this machine."""

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctx.agents.known_hosts import HOSTS
from ctx.hook_files import spool
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.llm import backends
from ctx.operations.worker_round import WorkerRounds
from ctx.worker.model_thread import ModelThread
from ctx.workspace import Environment
from tests.capture.conversations import SESSION, Client, Conversation
from tests.conftest import Ctx
from tests.llm import model_server
from tests.llm.model_server import Hangs, Says, Server, ServerRequest, Status
from tests.worker.worker_processes import Workers, until

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
TITLE = "Retries wait for a second before they try again"
DONE = "The payment service counts requests, which is why invoices were charged twice."


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(backends, "_RETRIES", 0)
    with model_server.serve() as server:
        server.otherwise = answer
        yield server


@pytest.fixture
def talk(repo: Path, surroundings: Path, ctx: Ctx) -> Conversation:
    assert ctx("status").code == 0
    found = Client(surroundings / ".ctx", repo).talk()
    found.start()
    return found


def answer(asked: ServerRequest) -> Says:
    """A valid answer of a model."""
    if "Sum it up" in asked.prompt:
        sections = {"investigated": [], "next_steps": [], "notes": [], "completed": [TITLE]}
        said: dict[str, Any] = {
            "title": "Patient retries",
            "request": "Make retries wait",
            **sections,
        }
        return Says(json.dumps({**said, "learned": ["A retry came at once"]}))
    kept = {"number": 2, "speaker": "agent", "kind": "discovery", "object": "", "replaces": []}
    return Says(json.dumps({"kept": [kept]}))


def configure_model(server_url: str, ctx: Ctx, **more: str) -> None:
    settings = {"backend": "openai", "server_url": server_url, **more}
    for name, value in settings.items():
        assert ctx("config", "set", f"llm.{name}", value).code == 0


def use_tool(talk: Conversation, tool: str, use: str, given: Any, response: Any) -> None:
    said = talk.payload("PostToolUse", tool_name=tool, tool_use_id=use, tool_input=given)
    talk.client.hook("post-tool-use", {**said, "tool_response": response})


def work_one_turn(talk: Conversation) -> None:
    """One complete turn in which a file is written."""
    talk.submit("Make the retries wait for a second.")
    path = talk.client.folder / "retry.py"
    made = "def wait() -> int:\n    return 1\n"
    path.write_text(made)
    given = {"file_path": str(path), "content": made}
    use_tool(talk, "Write", "toolu_1", given, {"type": "create", "filePath": str(path)})
    talk.answer(DONE)
    spool.wake(talk.client.home)


class Worker:
    """The rounds and the thread of a worker in this process; a test starts each round."""

    def __init__(self, client: Client) -> None:
        self.log: list[str] = []
        self._client = client
        store = UserStore(client.home)
        place = Environment(client.home, store, {}, (), CLI_SESSION, load_hosts=lambda: HOSTS)
        self._tending = WorkerRounds(client.home, self._guard)
        self._asking = ModelThread(place, {}, client.memory, self._guard, self.log.append)

    @contextmanager
    def _guard(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - as the worker does
            self.log.append(f"{doing}: {type(error).__name__}: {error}")

    def round(self) -> None:
        with self._client.memory() as memory:
            self._tending.round(memory)
        self._asking.wake()

    def rounds_until(self, holds: Any) -> None:
        """Run rounds as if the worker were woken after each answer."""

        def around() -> bool:
            self.round()
            return bool(holds())

        until(around)

    def stop(self) -> None:
        self._asking.stop()


@pytest.fixture
def worker(talk: Conversation) -> Iterator[Worker]:
    found = Worker(talk.client)
    yield found
    found.stop()


def rows(talk: Conversation, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(UserStore(talk.client.home).database)) as connection:
        return connection.execute(query).fetchall()


def titles(talk: Conversation) -> list[str]:
    query = "SELECT json_extract(metadata, '$.title') FROM nodes WHERE type <> 'file'"
    return [row[0] for row in rows(talk, query)]


def failures(talk: Conversation) -> list[str]:
    query = "SELECT data FROM event_log WHERE type = 'llm.failed'"
    return [json.loads(row[0])["message"] for row in rows(talk, query)]


def is_chosen(talk: Conversation) -> bool:
    """Whether the kind of an observation comes from the model."""
    said = (
        "SELECT 1 FROM tags JOIN nodes ON id = node_id WHERE tag = 'kind:discovery' AND content = ?"
    )
    with closing(sqlite3.connect(UserStore(talk.client.home).database)) as connection:
        return bool(connection.execute(said, (DONE,)).fetchall())


def has_summary(talk: Conversation) -> bool:
    return bool(rows(talk, "SELECT 1 FROM sessions WHERE summary IS NOT NULL"))


def test_nothing_private_is_sent(
    worker: Worker, talk: Conversation, server: Server, ctx: Ctx
) -> None:
    """From the hook to the server."""
    configure_model(server.url, ctx)
    folder = talk.client.folder
    (folder / ".ctxignore").write_text("hidden/\n")
    (folder / "hidden").mkdir()
    talk.submit(f"Use {SECRET} here. <private>The merger is called Bluebird.</private> Go on.")
    for number, name in enumerate(("hidden/plans.py", ".env", "open.py")):
        made = f"PLAN = 'magpie {number}'\nTOKEN = '{SECRET}'\n"
        given = {"file_path": str(folder / name), "content": made}
        answered = {"type": "create", "filePath": str(folder / name)}
        use_tool(talk, "Write", f"toolu_w{number}", given, answered)
    printed = {"stdout": f"{SECRET}\n<private>Bluebird</private>", "stderr": ""}
    use_tool(talk, "Bash", "toolu_b", {"command": f"curl -H 'Authorization: {SECRET}' x"}, printed)
    talk.answer(f"Done with {SECRET}. <private>Bluebird is near.</private> All is well.")
    talk.end()
    worker.rounds_until(lambda: len(server.questions) == 2)
    sent = json.dumps([asked.body for asked in server.received], ensure_ascii=False)
    assert "open.py" in sent
    for word in (SECRET, SECRET[4:], "Bluebird", "hidden", "magpie 0", "magpie 1"):
        assert word not in sent


def test_a_server_error_is_reported_once_and_memory_is_complete(
    worker: Worker, talk: Conversation, server: Server, ctx: Ctx
) -> None:
    server.otherwise = Status(500, {"error": {"message": "out of memory"}})
    configure_model(server.url, ctx)
    work_one_turn(talk)
    talk.end()
    worker.rounds_until(lambda: failures(talk))
    worker.rounds_until(lambda: has_summary(talk))
    # It is left alone for a minute.
    assert len(server.questions) == 1
    [problem] = failures(talk)
    assert server.url in problem
    assert worker.log == [f"model synthesis of {SESSION}: {problem}"]
    assert rows(talk, "SELECT 1 FROM model_answers") == []
    assert "out of memory" in ctx("status").out
    # The next worker asks again.
    server.otherwise = answer
    next_one = Worker(talk.client)
    next_one.rounds_until(lambda: "Patient retries" in titles(talk))
    next_one.stop()
    assert next_one.log == []
    assert "out of memory" not in ctx("status").out


def test_the_daily_cap_is_enforced(
    worker: Worker, talk: Conversation, server: Server, ctx: Ctx
) -> None:
    configure_model(server.url, ctx, daily_token_cap="2000")
    work_one_turn(talk)
    talk.end()
    worker.rounds_until(lambda: failures(talk))
    assert "2,000 tokens a day" in failures(talk)[0]
    worker.round()
    assert server.questions == []
    # Whoever allows more is heard at once.
    assert ctx("config", "set", "llm.daily_token_cap", "100000").code == 0
    worker.rounds_until(lambda: is_chosen(talk))
    assert len(worker.log) == 1


def test_the_session_cap_is_enforced(
    worker: Worker, talk: Conversation, server: Server, ctx: Ctx
) -> None:
    configure_model(server.url, ctx, session_token_cap="2000")
    work_one_turn(talk)
    talk.end()
    worker.rounds_until(lambda: len(failures(talk)) == 2)
    assert server.questions == []
    # Another one has a cap of its own.
    assert ctx("config", "set", "llm.session_token_cap", "30000").code == 0
    worker.rounds_until(lambda: "Patient retries" in titles(talk))
    assert len(server.questions) == 2


def test_several_sessions_are_sent_one_after_the_other(
    worker: Worker, talk: Conversation, server: Server, ctx: Ctx
) -> None:
    configure_model(server.url, ctx)
    for number in range(5):
        other = talk.client.talk(f"{number:08}-e3b0-4b25-afae-79ee4238d2da")
        work_one_turn(other)
        other.end()
    worker.rounds_until(lambda: titles(talk).count("Patient retries") == 5)
    assert len(server.questions) == 10
    assert worker.log == []


def test_with_a_damaged_ledger_no_request_is_sent(
    worker: Worker, talk: Conversation, server: Server, ctx: Ctx
) -> None:
    configure_model(server.url, ctx)
    Path(talk.client.home, "ledger.db").write_bytes(b"This is no database." * 500)
    work_one_turn(talk)
    talk.end()
    worker.rounds_until(lambda: failures(talk))
    assert "without it, ctx sends no requests" in failures(talk)[0]
    assert server.questions == []


@pytest.mark.parametrize(
    ("setting", "value"), [("backend", "off"), ("synthesis", "false"), ("daily_token_cap", "0")]
)
def test_turning_the_model_off_stops_the_next_question(
    worker: Worker, talk: Conversation, server: Server, ctx: Ctx, setting: str, value: str
) -> None:
    configure_model(server.url, ctx)

    def answer_and_stop(asked: ServerRequest) -> Says:
        assert ctx("config", "set", f"llm.{setting}", value).code == 0
        return answer(asked)

    server.otherwise = answer_and_stop
    for number in range(3):
        other = talk.client.talk(f"{number:08}-e3b0-4b25-afae-79ee4238d2da")
        work_one_turn(other)
        other.end()
    worker.rounds_until(lambda: is_chosen(talk))
    for _ in range(5):
        worker.round()
    assert len(server.questions) == 1


def test_a_refused_question_does_not_block_other_sessions(
    worker: Worker, talk: Conversation, server: Server, ctx: Ctx
) -> None:
    configure_model(server.url, ctx)
    refusal = Status(400, {"error": {"message": "content policy"}})
    server.otherwise = lambda asked: refusal if "Poison" in asked.prompt else answer(asked)
    for number in range(3):
        other = talk.client.talk(f"{number:08}-e3b0-4b25-afae-79ee4238d2da")
        work_one_turn(other)
        other.end()
    talk.submit("Poison the well of the village.")
    work_one_turn(talk)
    talk.end()
    worker.rounds_until(lambda: titles(talk).count("Patient retries") == 3)
    assert len([asked for asked in server.questions if "Poison" in asked.prompt]) == 2
    assert "content policy" in failures(talk)[0]


def test_a_failing_session_is_retried_after_the_others(
    worker: Worker, talk: Conversation, server: Server, ctx: Ctx
) -> None:
    configure_model(server.url, ctx)
    trouble = Status(500, {"error": {"message": "out of memory"}})
    server.otherwise = lambda asked: trouble if "Poison" in asked.prompt else answer(asked)
    other = talk.client.talk("00000000-e3b0-4b25-afae-79ee4238d2da")
    work_one_turn(other)
    other.end()
    talk.submit("Poison the well of the village.")
    work_one_turn(talk)
    talk.end()
    worker.rounds_until(lambda: failures(talk))
    # Whoever changes a setting is heard at once, not in a minute.
    assert ctx("config", "set", "llm.temperature", "0.5").code == 0
    worker.rounds_until(lambda: "Patient retries" in titles(talk))


def test_a_session_is_sent_at_its_end(
    worker: Worker, talk: Conversation, server: Server, ctx: Ctx
) -> None:
    configure_model(server.url, ctx)
    work_one_turn(talk)
    for _ in range(5):
        worker.round()
    assert server.questions == []
    talk.end()
    worker.rounds_until(lambda: "Patient retries" in titles(talk))
    assert len(server.questions) == 2
    assert is_chosen(talk)
    assert TITLE in ctx("sessions", "show", SESSION[:4]).out
    assert rows(talk, "SELECT kind FROM model_answers WHERE problem = '' ORDER BY 1") == [
        ("excerpts",),
        ("summary",),
    ]


def test_no_request_is_sent_if_the_backend_is_off(
    worker: Worker, talk: Conversation, server: Server, ctx: Ctx
) -> None:
    configure_model(server.url, ctx, backend="off")
    work_one_turn(talk)
    talk.end()
    worker.rounds_until(lambda: has_summary(talk))
    assert ctx("sessions", "synthesise", SESSION[:4]).code == 1
    ctx("doctor")
    worker.round()
    assert server.received == []
    assert not os.path.exists(UserStore(talk.client.home).ledger)


# As a process


def test_the_worker_does_not_wait_for_a_model(
    workers: Workers, talk: Conversation, server: Server, ctx: Ctx
) -> None:
    server.otherwise = Hangs()
    configure_model(server.url, ctx)
    workers.environment["CTX_WORKER_IDLE_SECONDS"] = "0.2"
    other = talk.client.talk("00000000-e3b0-4b25-afae-79ee4238d2da")
    other.start()
    process = workers.start()
    work_one_turn(talk)
    talk.end()
    spool.wake(talk.client.home)
    until(lambda: server.questions)
    # It stays for the answer, and goes on with all else.
    other.submit("And now something else.")
    spool.wake(talk.client.home)
    until(lambda: rows(talk, "SELECT 1 FROM events WHERE body LIKE '%something else%'"))
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0
    assert workers.log()[-1] == "gone: stopped"
