"""A command that users are advised to allow changes nothing, runs nothing and opens no connection.

An agent that was led astray may run `ctx recall` with any words behind it. Each command of
`READ_ONLY` is run in a sandbox with every option of every command, with values that name files,
servers and programs. Before and after, all files outside CTX_HOME and the git folder's `ctx/` are
compared. Programs on the PATH and in the environment leave a line in a log when they are run.
"""

import argparse
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from ctx.cli.commands import COMMANDS, command_named
from ctx.cli.options import READ_ONLY, subcommands_of
from tests import effort
from tests.conftest import Ctx, git

PROGRAMS = "bash cargo cat claude code cp ctx curl env less man more nano node npm open perl python"
PROGRAMS += " python3 rg sed sh sqlite3 ssh tee vi vim wget xdg-open"
EDITORS = "BROWSER EDITOR GIT_EDITOR GIT_PAGER GIT_SEQUENCE_EDITOR MANPAGER PAGER SHELL VISUAL"

RUN_EACH = """
import json, sys
from ctx.cli.main import main
for words in json.load(sys.stdin):
    if main(words) not in (0, 1, 2):
        sys.exit(f"{words} ended in a way of its own")
"""


class Sandbox(NamedTuple):
    base: Path
    app: Path
    address: str
    connections: list[object]
    variables: dict[str, str]
    node: str

    @property
    def log(self) -> Path:
        return self.base / "log"

    def files(self) -> dict[str, str]:
        """Everything outside of CTX_HOME and the git folder's `ctx/`."""
        own = {self.base / "home" / ".ctx", self.app / ".git" / "ctx", self.log}
        found = {}
        for folder, folders, names in os.walk(self.base):
            folders[:] = [name for name in folders if Path(folder, name) not in own]
            for name in (*folders, *names):
                path = Path(folder, name)
                if path not in own:
                    found[str(path)] = _state(path)
        return found

    def run(self, commands: list[list[str]]) -> None:
        done = subprocess.run(
            [sys.executable, "-c", RUN_EACH],
            input=json.dumps(commands).encode(),
            cwd=self.app,
            env=self.variables,
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        assert b"E000" not in done.stderr, done.stderr.decode()[-2000:]


def _state(path: Path) -> str:
    status = path.lstat()
    if path.is_symlink():
        return f"{status.st_mode:o} -> {os.readlink(path)}"
    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return f"{status.st_mode:o} {content}"


@pytest.fixture
def sandbox(repo: Path, ctx: Ctx, tmp_path: Path) -> Iterator[Sandbox]:
    (repo / "pkg").mkdir()
    (repo / "pkg" / "__init__.py").write_text("")
    (repo / "pkg" / "client.py").write_text("def connect(timeout):\n    return timeout\n")
    assert ctx("init").code == 0
    assert ctx("trust").code == 0
    node = ctx("add", "--type=fact", "The client connects once", "--format=json").json["node"]["id"]
    ctx("add", "--type=fact", "--user", "Deploys run on Mondays")
    git("add", "-A")
    git("commit", "-qm", "Begin")
    assert ctx("commit", "-m", "first").code == 0
    shims = _programs(tmp_path)
    marker = str(shims / "marker")
    for name in ("core.pager", "core.editor", "core.sshCommand", "core.askPass", "diff.external"):
        git("config", name, marker)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "log").touch()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        connections: list[object] = []
        threading.Thread(target=_count, args=(server, connections), daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        with (repo / ".ctx" / "config.toml").open("a") as config:
            config.write(f'\n[search]\nembedder = "openai"\nurl = "{address}"\n')
        variables = {
            **os.environ,
            **dict.fromkeys(EDITORS.split(), marker),
            "PATH": str(shims),
            "TMPDIR": str(tmp_path / "tmp"),
            "SECRET_API_KEY": "secret",
        }
        yield Sandbox(tmp_path, repo, address, connections, variables, node)


def _programs(base: Path) -> Path:
    shims = base / "shims"
    shims.mkdir()
    real = shutil.which("git")
    for name in ("marker", *PROGRAMS.split()):
        _program(shims / name, f'echo "{name} $*" >> {base}/log')
    _program(shims / "git", f'echo "git $*" >> {base}/log\nexec {real} "$@"')
    return shims


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _count(server: socket.socket, connections: list[object]) -> None:
    while True:
        try:
            connected, _ = server.accept()
        except OSError:
            return
        connections.append(connected.recv(100))
        connected.close()


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for inner in subcommands_of(parser).values():
        yield from parsers(inner)


def options_of(name: str) -> set[str]:
    _, parser = command_named(name)
    actions = (action for each in parsers(parser) for action in each._actions)
    return {option for action in actions for option in action.option_strings}


def attacks(name: str, sandbox: Sandbox) -> Iterator[list[str]]:
    """The command with every option, and values that point to other places."""
    new = str(sandbox.base / "new")
    values = [
        "pkg/__init__.py",
        "pkg/client.py",
        new,
        f"@{sandbox.app}/pkg/client.py",
        sandbox.address,
        f"search.url={sandbox.address}",
        f"llm.command={sandbox.base}/shims/marker",
        f"$(touch {new})",
    ]
    usual = sandbox.node if name in ("show", "trace") else "client"
    positional = [] if name == "status" else [usual]
    yield [name, *positional]
    for value in ["-", "/dev/stdin", "path:pkg/client.py", *values]:
        yield [name, value]
        yield [name, "--", value]
    for number, option in enumerate(sorted(options_of(name))):
        yield [name, *positional, option]
        for value in effort.share(values, 3, number):
            yield [name, *positional, option, value]
            yield [name, *positional, f"{option}={value}"]
            yield [name, f"{option}{value}", *positional]
    every = {option for each in COMMANDS if each != "help" for option in options_of(each)}
    for option in sorted(every - options_of(name)):
        yield [name, *positional, option]
        yield [name, *positional, option, new]
    server = ["--set", "search.embedder=openai", "--set", f"search.url={sandbox.address}"]
    yield [name, *positional, *server, "--set", "search.api_key_env=SECRET_API_KEY"]
    yield [name, *server, *positional]
    yield [name, *positional, "-qC", str(sandbox.base)]


@pytest.mark.parametrize("name", READ_ONLY)
def test_nothing_is_changed_run_or_sent(name: str, sandbox: Sandbox) -> None:
    before = sandbox.files()
    sandbox.run(list(attacks(name, sandbox)))
    assert sandbox.files() == before
    ran = {line.split()[0] for line in sandbox.log.read_text().splitlines()}
    assert ran <= {"git"}
    assert sandbox.connections == []


def test_global_options_must_come_before_the_command(sandbox: Sandbox, ctx: Ctx) -> None:
    for name in READ_ONLY:
        for option in (["-C", "."], ["--db", "x.db"], ["--set", "gc.keep_days=3"]):
            refused = ctx(name, *option, "word")
            assert refused.code == 2
            assert f"{option[0]} must come before `{name}`." in refused.err
    assert ctx("-C", str(sandbox.app), "recall", "client").code == 0
    assert ctx("--set", "gc.keep_days=3", "recall", "client").code == 0
    assert not Path("x.db").exists()


def test_reading_a_named_empty_file_leaves_it_empty(ctx: Ctx, folder: Path) -> None:
    (folder / "__init__.py").write_text("")
    assert ctx("--db", "__init__.py", "list").code == 0
    assert ctx("--db", "__init__.py", "recall", "word").code == 0
    assert os.listdir(folder) == ["__init__.py"]
    assert (folder / "__init__.py").read_bytes() == b""
