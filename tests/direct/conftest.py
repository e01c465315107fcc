"""Containers without a store, which work on a team's server."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import Ctx, Ran
from tests.postgres_server import PostgresServer

Container = Callable[..., Ran]


@pytest.fixture
def container(
    ctx: Ctx, postgres: PostgresServer, team: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Container:
    """Run a command as somebody, on the server itself."""
    monkeypatch.setenv("CTX_HOME", str(tmp_path / "container"))
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="container"))

    def run(person: str, *words: str, code: int = 0) -> Ran:
        monkeypatch.setenv("CTX_DB", postgres.url(person, team))
        ran = ctx(*words)
        monkeypatch.delenv("CTX_DB")
        assert ran.code == code, ran.err
        assert not os.path.exists(tmp_path / "container" / "store.db")
        return ran

    return run
