"""The server as a process: what it does not know, several at once, and its end."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import effort
from tests.conftest import Ctx
from tests.mcp.processes import CTX, SECONDS, ServerProcess, environment

CLIENTS = 8
METHOD_NOT_FOUND = -32601

LAUNCHER = """
import subprocess, sys, time
server = subprocess.Popen(sys.argv[1:], stdin=0, stdout=1)
print(server.pid, file=sys.stderr, flush=True)
time.sleep(1000)
"""

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
known = st.sampled_from(
    "query ids limit cursor text type tags rationale supersedes links id scope task budget around"
    " to".split()
)
likely = st.sampled_from(["payments", "01M7ESYZ1SB4", "type:fact", "../../etc", "\0", "user", "-1"])
arguments = (
    st.dictionaries(known, likely | st.lists(likely, max_size=3) | anything, max_size=5) | anything
)


def test_a_host_that_probes_for_the_newer_protocol_is_told_no(
    project: Path, surroundings: Path
) -> None:
    newer = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    with ServerProcess(surroundings, project) as server:
        for params in ({}, {"_meta": newer}):
            assert server.ask("server/discover", params)["error"]["code"] == METHOD_NOT_FOUND
        assert server.initialize()["serverInfo"]["name"] == "ctx"
        assert server.ask("no/such/method")["error"]["code"] == METHOD_NOT_FOUND
        for line, code in (
            (b"not JSON\n", -32700),
            (b"\xff\xfe\n", -32700),
            (b"[]\n", -32600),
            (b'\n{"jsonrpc": "2.0"}\n', -32600),
        ):
            server.write(line)
            answer = server.read()
            assert (answer["id"], answer["error"]["code"]) == (None, code)
        assert server.ask("ping")["result"] == {}
        # Codex names the session in each call.
        turn = {"x-codex-turn-metadata": json.dumps({"session_id": "codex-session-9"})}
        kept = server.call("remember", {"text": "Codex was here"}, **turn)
        assert kept["result"]["isError"] is False
        assert server.close_input() == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""
    shown = subprocess.run(
        [CTX, "show", kept["result"]["structuredContent"]["id"], "--history", "--json"],
        cwd=project,
        env=environment(surroundings),
        check=True,
        capture_output=True,
    )
    history = json.loads(shown.stdout)["history"]
    assert {each["session"] for each in history} == {"codex-session-9"}


@pytest.mark.parametrize("client", ["copilot-cli", "qwen-cli-mcp-client-ctx"])
def test_a_host_that_shows_a_model_both_forms_gets_the_text(
    project: Path, surroundings: Path, ctx: Ctx, client: str
) -> None:
    assert ctx("add", "The canary sings at noon").code == 0
    with ServerProcess(surroundings, project) as server:
        server.initialize(client=client)
        listed = server.ask("tools/list")["result"]["tools"]
        assert not any("outputSchema" in tool for tool in listed)
        for asked, said in (({"query": "canary"}, "sings at noon"), ({}, "E011: ")):
            answer = server.call("recall", asked)["result"]
            assert "structuredContent" not in answer
            assert said in answer["content"][0]["text"]


def test_a_host_names_the_folder_in_which_it_works(
    project: Path, surroundings: Path, ctx: Ctx
) -> None:
    """Some hosts start servers in the home folder."""
    assert ctx("add", "The canary sings at noon").code == 0
    with ServerProcess(surroundings, surroundings) as server:
        server.initialize({"roots": {}})
        params = {"name": "recall", "arguments": {"query": "canary"}}
        server.write_message({"id": "call", "method": "tools/call", "params": params})
        asked = server.read()
        assert asked["method"] == "roots/list"
        roots = [{"uri": "file:///no/such/folder"}, {"uri": project.as_uri()}]
        server.write_message({"id": asked["id"], "result": {"roots": roots}})
        answer = server.read()
        assert answer["id"] == "call"
        assert "sings at noon" in answer["result"]["content"][0]["text"]
        again = server.call("recall", {"query": "canary"})
        assert again["result"]["structuredContent"]["total"] == 1
        wrong = server.call("recall", {"query": "typ:x"})["result"]
        detail = wrong["structuredContent"]["error"]["detail"]
        assert "^^^" in detail
        assert detail in wrong["content"][0]["text"]


def test_no_arguments_end_the_server(project: Path, surroundings: Path) -> None:
    with ServerProcess(surroundings, project) as server:
        server.initialize()

        @settings(
            max_examples=effort.times(100), suppress_health_check=list(HealthCheck), database=None
        )
        @given(
            tool=st.sampled_from(["recall", "remember", "pack", "timeline", "forget"]),
            sent=arguments,
        )
        def check(tool: str, sent: object) -> None:
            answer = server.call(tool, sent)
            if "error" in answer:
                assert answer["error"]["code"] == -32602
            elif answer["result"]["isError"]:
                assert answer["result"]["structuredContent"]["error"]["code"].startswith("E")

        check()
        assert server.ask("ping")["result"] == {}
        assert server.close_input() == 0


def test_no_read_waits_for_a_write(project: Path, surroundings: Path, ctx: Ctx) -> None:
    """Neither for one of the same server, nor for another program's."""
    node = ctx("add", "The canary sings at noon", "--json").json["node"]["id"]
    with ServerProcess(surroundings, project, CTX_SESSION="agent-7") as server:
        server.initialize()
        with closing(sqlite3.connect(surroundings / ".ctx" / "store.db")) as other:
            other.execute("BEGIN IMMEDIATE")
            remember = {"text": "Here it is remembered", "scope": "user"}
            params = {"name": "remember", "arguments": remember}
            server.write_message({"id": "write", "method": "tools/call", "params": params})
            for _ in range(3):
                found = server.call("recall", {"query": "canary sings"})
                assert found["result"]["structuredContent"]["total"] == 1
            other.rollback()
        assert server.read()["id"] == "write"
        assert server.close_input() == 0
    given = ctx("why", "agent-7", "--json").json
    assert [item["label"] for item in given["items"]] == [f"fact:{node[:12]}"]


def test_eight_agents_at_once(project: Path, surroundings: Path, ctx: Ctx) -> None:
    def work(number: int) -> int:
        with ServerProcess(surroundings, project, CTX_SESSION=f"agent-{number}") as server:
            server.initialize()
            for place in range(3):
                text = f"Agent {number} measured {place}"
                kept = server.call("remember", {"text": text, "type": "observation"})
                assert kept["result"]["isError"] is False, kept
                found = server.call("recall", {"query": "what agents measured"})
                assert found["result"]["isError"] is False, found
            return server.close_input()

    with ThreadPoolExecutor(CLIENTS) as hosts:
        assert list(hosts.map(work, range(CLIENTS))) == [0] * CLIENTS
    nodes = ctx("list", "--type=observation", "--limit=0", "--format", "json").json["nodes"]
    assert len({node["content"] for node in nodes}) == 3 * CLIENTS


def test_the_server_ends_with_its_parent(project: Path, surroundings: Path) -> None:
    """Also if somebody else holds its input open."""
    reading, writing = os.pipe()
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(CTX), "mcp"],
        cwd=project,
        env=environment(surroundings),
        stdin=reading,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert launcher.stderr is not None
    assert launcher.stdout is not None
    server = int(launcher.stderr.readline())
    params = {"protocolVersion": "2025-06-18", "capabilities": {}}
    params["clientInfo"] = {"name": "test", "version": "1"}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    os.write(writing, json.dumps(request).encode() + b"\n")
    assert b"serverInfo" in launcher.stdout.readline()
    launcher.kill()
    try:
        assert ends(server)
    finally:
        launcher.communicate()
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server(
    project: Path, surroundings: Path, number: signal.Signals
) -> None:
    with ServerProcess(surroundings, project) as server:
        server.initialize()
        server.process.send_signal(number)
        assert server.process.wait(SECONDS) == 128 + number


def ends(process: int) -> bool:
    """Whether a process that is not our child ends."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{process}/stat") as status:
                if status.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.2)
    return False
