"""The clients that the tests run, where they are installed (`make clients`)."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import effort, installed
from tests.conftest import git
from tests.e2e.claude_code.client import Client, Person

NEWEST = "2.1.325"
OLDER = "2.0.47"

OLDER_CLIENT = pytest.mark.parametrize("client", [OLDER], indirect=True)
BOTH_CLIENTS = pytest.mark.parametrize("client", [NEWEST, OLDER], indirect=True)
ANY_CLIENT = pytest.mark.parametrize(
    "client", [NEWEST, OLDER] if effort.IS_THOROUGH else [NEWEST], indirect=True
)
"""Of what does not differ between clients: both, if there is time."""

# Every test clears what begins with CTX_, so this is read before the first one.
NAMED = {
    NEWEST: os.environ.get("CTX_TEST_CLAUDE"),
    OLDER: os.environ.get("CTX_TEST_CLAUDE_OLD"),
}


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Client:
    """The newest client, or the one that the test names."""
    name = getattr(request, "param", NEWEST)
    command = _command(name)
    if command is None:
        installed.skip_without(f"Claude Code {name}")
    return Client(command, _version(command))


@cache
def _version(command: tuple[str, ...]) -> str:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def _command(name: str) -> tuple[str, ...] | None:
    path = NAMED[name] or (_in_wheel() if name == NEWEST else _from_npm(name))
    if path is None or not Path(path).exists():
        return None
    if not path.endswith(".js"):
        return (path,)
    node = shutil.which("node")
    return (node, path) if node else None


def _in_wheel() -> str | None:
    """The program that the PyPI package `claude-agent-sdk` carries."""
    found = find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        return None
    return str(Path(found.origin).with_name("_bundled") / "claude")


def _from_npm(version: str) -> str:
    checkout = Path(__file__).parents[3]
    modules = checkout / ".cache" / f"claude-{version}" / "node_modules"
    return str(modules / "@anthropic-ai" / "claude-code" / "cli.js")


@pytest.fixture
def newcomer(client: Client, surroundings: Path, tmp_path: Path) -> Iterator[Person]:
    """A user with a client and a project, without ctx."""
    project = tmp_path / "shop"
    project.mkdir()
    git("init", "-q", "-b", "main", cwd=project)
    person = Person(surroundings, project, client)
    yield person
    person.leaves()


@pytest.fixture(scope="session")
def installations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `ctx install` wrote to a home, in a folder for each client."""
    return tmp_path_factory.mktemp("installations")


@pytest.fixture
def person(newcomer: Person, installations: Path) -> Iterator[Person]:
    """The same user after `ctx install`. The test fails if a hook logs an error."""
    kept = installations / newcomer.client.version
    if kept.exists():
        shutil.copytree(kept, newcomer.home, dirs_exist_ok=True)
    else:
        newcomer.ctx("install")
        for name in (".ctx", ".claude"):
            shutil.copytree(newcomer.home / name, kept / name)
    yield newcomer
    assert newcomer.complaints() == []
