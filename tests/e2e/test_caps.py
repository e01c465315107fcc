"""The token caps hold, counted at the server, whatever the server does."""

import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.llm import model_server
from tests.llm.model_server import Cut, Drops, Hangs, Says, ServedCall, ServerRequest, Status, Step

CAP = 300_000
PROCESSES = 4
_TIME_S = 300.0
"""It takes a few seconds; on a machine that is busy otherwise, more."""
_ROOT = Path(__file__).parents[2]


class Lies(Says):
    """An answer with different usage in every place."""

    def __init__(self, lie: Any) -> None:
        super().__init__("It", " is", " fine", ".")
        self.lie = lie

    def parts(self, call: ServedCall) -> Iterator[bytes]:
        for part in super().parts(call):
            yield b"\n".join(map(self._changed, part.split(b"\n")))

    def _changed(self, line: bytes) -> bytes:
        mark, colon, text = line.partition(b": ")
        if mark != b"data" or text == b"[DONE]":
            return line
        value = json.loads(text)
        for holder in (value, value.get("message", {})):
            if isinstance(holder.get("usage"), dict):
                holder["usage"] = dict.fromkeys(holder["usage"], self.lie)
        return mark + colon + json.dumps(value).encode()


LIES: list[Any] = [-5, 10**9, 10**40, "12", None, True, [], {"a": 1}, 1.5]
GOOD = Says("It", " is", " fine", ".")
FAULTS: list[Step] = [
    *[GOOD] * 10,
    Says(*["long "] * 100),
    Says("No", " usage", tells_usage=False),
    *map(Lies, LIES),
    # Nothing was used.
    Status(400, {"error": {"message": "no"}}),
    *[Status(429, {"error": {"message": "slow down"}}, {"Retry-After": "0"})] * 2,
    # The prompt was read, and nobody says so.
    *[Status(500, "<html>oops</html>")] * 3,
    *[Status(503, {"error": "busy"})] * 3,
    *[Drops()] * 3,
    *[Cut(GOOD, 30)] * 3,
    Status(529, {"error": {"type": "overloaded_error", "message": "overloaded"}}),
    Cut(GOOD, 400),
    Cut(GOOD, 700),
    Hangs(),
    Hangs("It", " is"),
]


def counted(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT sum(counted) FROM calls").fetchone()[0])


@pytest.fixture
def server() -> Iterator[model_server.Server]:
    with model_server.serve() as started:
        yield started


def test_a_hundred_sessions_with_a_failing_server_stay_within_the_cap(
    server: model_server.Server, tmp_path: Path
) -> None:
    """Four processes with 25 sessions each; two of them are killed on the way."""
    path = tmp_path / "ledger.db"
    chance = random.Random(9)
    some = Event()

    def fault(_asked: ServerRequest) -> Step:
        if len(server.received) > 60:
            some.set()
        return chance.choice(FAULTS)

    server.otherwise = fault
    words = [sys.executable, "-m", "tests.e2e.model_sessions", server.url, str(path), str(CAP)]
    crew = [
        subprocess.Popen(
            words, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(PROCESSES)
    ]
    try:
        assert some.wait(_TIME_S)
        for killed in crew[:2]:
            killed.kill()
        told = [each.communicate(timeout=_TIME_S) for each in crew]
    finally:
        for each in crew:
            each.kill()
            each.wait()
    assert [each.returncode for each in crew] == [-9, -9, 0, 0]
    assert [err for _, err in told[2:]] == ["", ""]
    ended = dict(word.split("=") for out, _ in told[2:] for word in out.split())
    assert {"capped", "end"} <= ended.keys()
    # What counts is never less than what was used, and nobody was kept from asking too early.
    assert CAP // 3 < server.spent <= counted(path) <= CAP
