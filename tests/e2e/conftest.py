"""A project without git, and a way to see whether a command left anything in it."""

from pathlib import Path

import pytest

from tests.conftest import Ctx


@pytest.fixture
def project(folder: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    return folder


def state(folder: Path) -> set[str]:
    return {str(path) for path in (folder / ".ctx").rglob("*")}
