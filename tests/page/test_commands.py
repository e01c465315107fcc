"""`ctx serve` and `ctx ui`."""

import json
import os
import socket
import threading
from pathlib import Path

import httpx
import pytest

from tests.conftest import Ctx
from tests.page.served import Served


def test_serve_prints_one_line_and_stays(project: Path) -> None:
    with Served(project) as served:
        assert served.address.startswith("http://127.0.0.1:")
        assert "/?token=" in served.address
        assert served.stop() == 0


def test_a_port_that_is_taken_is_an_error(project: Path, ctx: Ctx) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = ctx("serve", "--port", str(taken.getsockname()[1]))
    assert (ran.code, "is in use" in ran.err) == (2, True)
    assert "not a port" in ctx("serve", "--port", "70000").err


def test_the_port_can_be_chosen(project: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Served(project, "--port", str(port)) as served:
        assert served.origin == f"http://127.0.0.1:{port}"


def test_the_worker_serves_the_page_and_stays_while_it_is_open(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTX_WORKER_IDLE_SECONDS", "2")
    ran = ctx("ui", "--no-open", "--format=json")
    assert ran.code == 0, ran.err
    try:
        answer = json.loads(ran.out)
        assert os.stat(answer["token_file"]).st_mode & 0o777 == 0o600
        again = ctx("ui", "--no-open").out.strip()
        with httpx.Client() as client:
            client.cookies.update(httpx.get(again).cookies)
            origin = again.partition("/?")[0]
            base = client.get(f"{origin}/").headers["location"].removesuffix("/now")
            received = threading.Event()

            def listen() -> None:
                try:
                    with client.stream("GET", f"{origin}{base}/live", timeout=600) as stream:
                        for _ in stream.iter_raw():
                            received.set()
                except httpx.TransportError:
                    pass

            thread = threading.Thread(target=listen)
            thread.start()
            assert received.wait(60)
            # Twice as long as a worker stays that nobody needs.
            thread.join(4)
            assert thread.is_alive()
            assert json.loads(ctx("worker", "status", "--format=json").out)["running"]
    finally:
        ctx("worker", "stop")
    thread.join(60)
    assert not thread.is_alive()


def test_another_store_is_served_in_the_foreground(project: Path, ctx: Ctx) -> None:
    ran = ctx("ui", "--no-open", "--db", "other.db")
    assert (ran.code, "ctx --db other.db serve" in ran.err) == (2, True)
