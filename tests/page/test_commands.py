"""`ctx serve` and `ctx ui`."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Ctx
from tests.page.served import Served, visitor
from tests.page.visits import base_of


@pytest.fixture(autouse=True)
def new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the command itself is tested: each server is a process of its own."""
    monkeypatch.setattr(Served, "warm", None)


def test_serve_prints_one_line_and_stays(project: Path) -> None:
    with Served(project) as served:
        assert served.address.startswith("http://127.0.0.1:")
        assert "/?token=" in served.address
        assert served.stop() == 0


def refused(*words: str) -> str:
    """The error of a server that does not start."""
    ran = subprocess.run(
        [sys.executable, "-m", "ctx", "serve", *words], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    return ran.stderr


def test_a_port_that_is_taken_is_an_error(project: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "is in use" in refused("--port", str(taken.getsockname()[1]))
    assert "not a port" in refused("--port", "70000")


def test_the_port_can_be_chosen(project: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Served(project, "--port", str(port)) as served:
        assert served.origin == f"http://127.0.0.1:{port}"


def test_the_worker_serves_the_page(project: Path, ctx: Ctx) -> None:
    ran = ctx("ui", "--no-open", "--format=json")
    assert ran.code == 0, ran.err
    try:
        answer = json.loads(ran.out)
        assert os.stat(answer["token_file"]).st_mode & 0o777 == 0o600
        again = ctx("ui", "--no-open").out.strip()
        assert again.partition("?")[0] == answer["address"].partition("?")[0]
        with visitor(again) as client:
            base = base_of(client)
            assert "What a session here gets" in client.get(f"{base}/now").text
            with client.stream("GET", f"{base}/live", timeout=600) as stream:
                received = stream.iter_raw()
                assert next(received) == b": listening\n\n"
                # A page that listens does not keep the worker from stopping.
                assert ctx("worker", "stop").code == 0
                assert b"still" not in b"".join(received)
    finally:
        ctx("worker", "stop")


def test_another_store_is_served_in_the_foreground(project: Path, ctx: Ctx) -> None:
    ran = ctx("ui", "--no-open", "--db", "other.db")
    assert (ran.code, "ctx --db other.db serve" in ran.err) == (2, True)


def test_a_folder_whose_name_is_not_utf_8(project: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(project) + b"/x\xff"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has no such names")
    with Served(folder) as served, served.visitor() as client:
        base = base_of(client)
        for view in ("now", "sessions", "search", "review", "graph", "code", "health"):
            assert client.get(f"{base}/{view}").status_code == 200, view
