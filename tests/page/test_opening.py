"""`ctx ui` opens the page in a browser: the real one, and those that cannot."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ctx.page import opening_files
from tests.conftest import Ctx
from tests.installed import another_user, program
from tests.page.served import visitor
from tests.page.served_here import served_here

_STARTING = """#!/bin/sh
setsid {chromium} --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \\
  --user-data-dir={profile} --remote-debugging-port=0 "$1" > /dev/null 2>&1 &
echo $! > {pid}
"""
_START_S = 120


@pytest.fixture
def open_page(ctx: Ctx) -> Iterator[None]:
    yield
    ctx("worker", "stop")


def ui(
    folder: Path, script: str, tmp_path: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """`ctx ui` where a script is the browser."""
    path = tmp_path / "browser"
    path.write_text(script)
    path.chmod(0o755)
    return subprocess.run(
        [sys.executable, "-m", "ctx", "ui"],
        cwd=folder,
        env={**os.environ, "BROWSER": str(path), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def opening(home: Path) -> list[Path]:
    return list((home / ".ctx").glob("page-*.html"))


@pytest.mark.usefixtures("open_page")
def test_other_users_do_not_see_the_token(
    project: Path, surroundings: Path, tmp_path: Path
) -> None:
    """Every user of the machine can list what programs were started with."""
    other = another_user()
    chromium, profile, pid = program("chromium"), tmp_path / "profile", tmp_path / "pid"
    script = _STARTING.format(chromium=chromium, profile=profile, pid=pid)
    ran = ui(project, script, tmp_path)
    try:
        assert (ran.returncode, ran.stdout) == (0, "")
        assert "The page is open in your browser." in ran.stderr
        assert opening(surroundings) == []
        seen = subprocess.run(
            ["/bin/sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"],
            capture_output=True,
            text=True,
            check=False,
            user=other,
            group=other,
            extra_groups=[],
        ).stdout
        assert str(profile) in seen, "the browser is among them"
        assert "/.ctx/page-" in seen
        assert "token=" not in seen
        assert "http://127.0.0.1" not in seen
        assert "/s/" in shown(profile)
    finally:
        os.killpg(int(pid.read_text()), signal.SIGKILL)


def shown(profile: Path) -> str:
    """The address that the browser shows."""
    port = (profile / "DevToolsActivePort").read_text().split()[0]
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        tabs = httpx.get(f"http://127.0.0.1:{port}/json/list").json()
        found = [tab["url"] for tab in tabs if tab["url"].endswith("/now")]
        if found:
            return str(found[0])
        time.sleep(0.1)
    raise AssertionError(json.dumps(tabs))


@pytest.mark.usefixtures("open_page")
def test_a_browser_that_cannot_read_the_file(
    project: Path, surroundings: Path, tmp_path: Path, ctx: Ctx
) -> None:
    """One in a sandbox has a home of its own, and shows an error."""
    # The worker may take long to start.
    assert ctx("ui", "--no-open").code == 0
    ran = ui(project, "#!/bin/sh\n", tmp_path, CTX_PATIENCE="1")
    assert ran.returncode == 0
    assert "The browser did not open the page." in ran.stderr
    (file,) = opening(surroundings)
    assert file.stat().st_mode & 0o777 == 0o600
    assert ran.stdout.strip() in file.read_text()
    with visitor(ran.stdout.strip()) as client:
        assert client.get("/").status_code == 303
    assert opening(surroundings) == []


def test_files_that_nobody_uses_are_removed(
    project: Path, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = surroundings / ".ctx"
    home.mkdir(exist_ok=True)
    old, new = home / "page-0.html", home / "page-1.html"
    for path in (old, new):
        path.write_text("")
    os.utime(old, (0, 0))
    with served_here(home, project) as here:
        here.new_link()
        assert not old.exists(), "a server that was killed has left it"
        assert new.exists(), "another server has just written it"
        new.unlink()
        assert len(opening(surroundings)) == 1
        monkeypatch.setattr(opening_files, "_KEPT_S", 0.0)
        here.new_link()
        deadline = time.monotonic() + _START_S
        while len(opening(surroundings)) > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(opening(surroundings)) == 1
    assert opening(surroundings) == [], "none is left when the server ends"
