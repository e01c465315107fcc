"""Fixtures that more than one folder of tests uses."""

import gc
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from psycopg import errors

from ctx import clock
from ctx.cli.main import main
from ctx.sync.team_target import TeamTarget
from tests import effort, engines, installed
from tests.postgres_server import PostgresServer

# How long an example takes says how busy the machine is.
settings.register_profile("ctx", max_examples=effort.times(60), deadline=None)
settings.load_profile("ctx")


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Ctx = Callable[..., Ran]
Sql = Callable[..., list[tuple[Any, ...]]]
PEOPLE = ("anna", "ben", "cleo", "dora")


_MEMORY = "/dev/shm"
_ENOUGH = 4 * 1024**3


def pytest_configure() -> None:
    # Where a script runs the tests in the background, they ignore Ctrl-C, and so would every
    # program that they start.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # A third of the time was spent in waiting for the disk. No test is about a real one.
    if _has_room(_MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)


def _has_room(folder: str) -> bool:
    """Whether files can be stored and programs run there."""
    if not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    can_run = not found.f_flag & getattr(os, "ST_NOEXEC", 0)
    return can_run and found.f_bavail * found.f_frsize >= _ENOUGH


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import test modules in a different order in each process.

    The first process to import a module compiles it for all of them. In the same order, each
    process would compile each module.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    root = session.config.rootpath
    paths = [root / each.partition("::")[0] for each in session.config.args]
    files = [file for path in paths for file in sorted(path.rglob("test_*.py"))]
    start = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[start:] + files[:start]:
        if "golden" not in file.parts:
            # What cannot be imported is reported when it is collected.
            with suppress(Exception, pytest.skip.Exception):
                import_module(".".join(file.relative_to(root).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `make quick` leaves out: whole programs, and many processes."""
    here = Path(__file__).parent
    for item in items:
        path = item.path.relative_to(here)
        is_slow = path.parts[0] == "e2e" or str(path.with_suffix("")) in effort.SLOW
        if is_slow or "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Leave what was loaded so far out of garbage collection, which some tests ask for often."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the programs that tests were skipped without, and how to install them."""
    skipped = terminalreporter.stats.get("skipped", [])
    if lines := installed.missing(str(report.longrepr[2]) for report in skipped):
        terminalreporter.section("not tested here")
        terminalreporter.write_line("\n".join(lines))


@pytest.fixture(scope="session", autouse=True)
def no_shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What runs outside of a single test must not use the store of the person who runs the tests:
    it is given another one, which stays empty if each fixture has a home of its own."""
    shared = tmp_path_factory.mktemp("shared") / ".ctx"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CTX_HOME", str(shared))
        yield
    written = sorted(str(path.relative_to(shared)) for path in shared.rglob("*"))
    assert not written, f"a fixture ran ctx without a home of its own: {written[:5]}"


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary home outside of any project, and git without the settings of a user."""
    home = tmp_path / "home"
    home.mkdir()
    use_home(home, monkeypatch)
    return home


@pytest.fixture(autouse=True)
def kept_signal_handlers() -> Iterator[None]:
    """A worker that runs inside the process of the tests handles Ctrl-C in its own way."""
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


def use_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment of a test. Fixtures that several tests share have a home of their own."""
    for name in list(os.environ):
        if name.startswith(("CTX_", "GIT_", "CLAUDE")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CTX_HOME", str(home / ".ctx"))
    # A busy machine takes longer than anything may: only tests of a limit have it.
    monkeypatch.setattr(clock, "patience", 40)
    monkeypatch.setenv("CTX_PATIENCE", "40")
    # A test that wants a worker starts it, and ends it.
    monkeypatch.setenv("CTX_WORKER_AUTOSTART", "0")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "person@example.org")


@pytest.fixture
def impatient(surroundings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short default time limits, for a test that waits for one."""
    monkeypatch.setattr(clock, "patience", 1)
    monkeypatch.setenv("CTX_PATIENCE", "1")


@pytest.fixture
def ctx(capsys: pytest.CaptureFixture[str]) -> Ctx:
    """The command line, in this process."""

    def run(*words: str) -> Ran:
        capsys.readouterr()
        code = main(list(words))
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, outside any repository, that commands run in."""
    path = tmp_path / "app"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


def git(*words: str, cwd: Path | None = None) -> str:
    done = subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"git {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def repo(folder: Path) -> Path:
    """The same folder as a git repository without a commit."""
    git("init", "-q", "-b", "main")
    return folder


_NUMBERS = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    # Not under pytest's own folder, which only its user may enter.
    memory = _MEMORY if _has_room(_MEMORY) else None
    folder = Path(tempfile.mkdtemp(prefix="ctx-postgres-", dir=memory))
    try:
        server = PostgresServer(folder, "max_wal_size=128MB")
        server.start()
        try:
            yield server
        finally:
            # Its files are deleted: nothing has to be written to them any more.
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    """The name of a new, empty database."""
    name = f"memory_{os.getpid()}_{next(_NUMBERS)}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return name


@pytest.fixture(scope="session")
def team_template(postgres: PostgresServer) -> str:
    """A prepared database with four people; shop: anna owns it, ben writes, cleo reads."""
    name = f"team_{os.getpid()}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    with closing(TeamTarget(postgres.url(database=name))) as target:
        target.listing()
    with postgres.connect(database=name) as connection:
        for person in PEOPLE:
            with suppress(errors.DuplicateObject):
                connection.execute(f"CREATE ROLE {person} LOGIN IN ROLE ctx_member".encode())
    with postgres.connect("anna", name) as connection:
        connection.execute("INSERT INTO ctx.projects (name) VALUES ('shop')")
        connection.execute(
            "INSERT INTO ctx.members (project, member, role)"
            " VALUES ('shop', 'ben', 'writer'), ('shop', 'cleo', 'reader')"
        )
    with postgres.connect("dora", name) as connection:
        connection.execute("INSERT INTO ctx.projects (name) VALUES ('garden')")
    return name


@pytest.fixture
def team(postgres: PostgresServer, team_template: str) -> str:
    """The name of a new database with the people of `team_template`."""
    name = f"memory_{os.getpid()}_{next(_NUMBERS)}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {team_template}".encode())
    return name


@pytest.fixture
def sql(postgres: PostgresServer, team: str) -> Sql:
    """Run a statement as somebody."""

    def run(person: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with postgres.connect(person, team) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else [(cursor.rowcount,)]

    return run


@pytest.fixture(scope="session")
def server_engine(postgres: PostgresServer) -> Iterator[engines.ServerEngine]:
    name = f"engine_{os.getpid()}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    with closing(engines.ServerEngine(postgres, name)) as server:
        yield server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests about SQLite alone, such as about its query plans, are marked `sqlite`."""
    if "engine" in metafunc.fixturenames:
        is_general = metafunc.definition.get_closest_marker("sqlite") is None
        engines_to_run = ["sqlite", "postgresql"] if is_general else ["sqlite"]
        metafunc.parametrize("engine", engines_to_run, indirect=True, scope="module")


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the tests of a module on SQLite, then on a team's server."""
    if request.param == "postgresql":
        engines.server = request.getfixturevalue("server_engine")
    try:
        yield request.param
    finally:
        engines.server = None
