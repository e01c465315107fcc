"""The machines of the people of a team."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import Ctx, Ran
from tests.postgres_server import PostgresServer

On = Callable[..., Ran]


@pytest.fixture
def on(
    ctx: Ctx,
    postgres: PostgresServer,
    team: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> On:
    """Run a command on the machine of somebody: `anna`, or `anna-desktop`. The first one adds the
    target."""
    known: set[str] = set()

    def run(machine: str, *words: str, code: int = 0) -> Ran:
        monkeypatch.setenv("CTX_HOME", str(tmp_path / machine))
        monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename=f"the-{machine}"))
        if machine not in known:
            known.add(machine)
            added = ctx("sync", "add", "team", postgres.url(machine.partition("-")[0], team))
            assert added.code == 0, added.err
        ran = ctx(*words)
        assert ran.code == code, ran.err
        return ran

    return run
