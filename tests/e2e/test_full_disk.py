"""What happened while the disk was full or read-only is captured from transcripts afterwards."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctx.agents.claude_code.registration import ENTRY
from tests import installed
from tests.capture.conversations import Client, Conversation, context_of
from tests.conftest import Ctx

MOUNTS = {
    "read-only": 'mount --bind "$CTX_HOME" "$CTX_HOME"; mount -o remount,ro,bind "$CTX_HOME"',
    "full": 'cp -R "$CTX_HOME" "$HOME/copy"; mount -t tmpfs -o size=1m,mode=700 none "$CTX_HOME";'
    ' cp -R "$HOME/copy/." "$CTX_HOME"; cat /dev/zero > "$CTX_HOME/ballast" 2> /dev/null || true',
}
LOST = "0c0c0c0c-e3b0-4b25-afae-79ee4238d2da"
BROKEN = "ctx: this session cannot be recorded"
AGO_S = 3600
QUIET_S = 120

MOUNTS = {
    "read-only": 'mount --bind "$CTX_HOME" "$CTX_HOME"; mount -o remount,ro,bind "$CTX_HOME"',
    "full": 'cp -R "$CTX_HOME" "$HOME/copy"; mount -t tmpfs -o size=1m,mode=700 none "$CTX_HOME";'
    ' cp -R "$HOME/copy/." "$CTX_HOME"; cat /dev/zero > "$CTX_HOME/ballast" 2> /dev/null || true',
}


class OnBadDisk:
    """Runs the registered hook with a `CTX_HOME` on a file system that cannot be written."""

    def __init__(self, client: Client, alone: list[str], mount: str) -> None:
        self._client = client
        self._alone = alone
        self._mount = mount

    def __call__(self, word: str, payload: dict[str, object], *_: str) -> dict[str, object]:
        shutil.rmtree(Path(self._client.home).parent / "copy", ignore_errors=True)
        wait_for_other_processes(Path(self._client.home))
        environment = {
            "HOME": os.path.dirname(self._client.home),
            "CTX_HOME": self._client.home,
            "PATH": os.environ["PATH"],
            "CTX_WORKER_AUTOSTART": "0",
            "CTX_PATIENCE": "40",
        }
        hook = [sys.executable, "-I", "-S", str(ENTRY), word]
        ran = subprocess.run(
            [*self._alone, "sh", "-c", f'set -e; {self._mount}; exec "$@"', "sh", *hook],
            input=json.dumps(payload).encode() + b"\n",
            capture_output=True,
            env=environment,
            check=True,
        )
        return json.loads(ran.stdout) if ran.stdout.strip() else {}


def wait_for_other_processes(home: Path) -> None:
    """A store whose log is in use cannot be read on a full disk. The last process removes it."""
    for _ in range(6_000):
        if not (home / "store.db-wal").exists():
            return
        time.sleep(0.01)
    pytest.fail("A process still uses the store.")


@pytest.fixture
def client(ctx: Ctx, surroundings: Path, repo: Path) -> Client:
    client = Client(surroundings / ".ctx", repo)
    assert ctx("add", "--user", "--type=fact", "--tag=tier:pinned", "Money is in cents.").code == 0
    talk = client.talk()
    talk.start()
    talk.submit("Begin.")
    talk.end()
    assert ctx("hook", "apply").code == 0
    return client


def stamped(talk: Conversation, ago_s: float = AGO_S) -> None:
    """Give the entries of a transcript the time and folder that the client writes."""
    lines = [json.loads(line) for line in talk.path.read_text().splitlines()]
    began = time.time() - ago_s
    for number, line in enumerate(lines):
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(began + number))
        line.update(timestamp=at, uuid=f"u{number}", cwd=str(talk.client.folder))
    talk.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(talk.path, (time.time() - QUIET_S,) * 2)


def converse(talk: Conversation, ago_s: float = AGO_S) -> dict[str, object]:
    answer = talk.start()
    talk.prompt("Please mend the tariff table.")
    talk.submit("Please mend the tariff table.")
    talk.reply("I have decided to round half up, because the ledger does so. All tests pass now.")
    talk.stop()
    talk.end()
    stamped(talk, ago_s)
    return answer


def sessions(ctx: Ctx) -> dict[str, str]:
    listed = ctx("sessions", "list", "--format=json").json["sessions"]
    return {each["id"]: each["what"] for each in listed}


@pytest.mark.parametrize("mount", MOUNTS)
def test_a_session_on_a_bad_disk_is_captured_later(
    ctx: Ctx, client: Client, mount: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = installed.with_own_mounts()
    talk = client.talk(LOST)
    with monkeypatch.context() as patch:
        patch.setattr(client, "hook", OnBadDisk(client, alone, MOUNTS[mount]))
        answer = converse(talk)
    # The agent was served, the user was told, and nothing was stored.
    assert "Money is in cents." in context_of(answer)
    assert BROKEN in str(answer["systemMessage"])
    assert client.waiting() == []
    assert LOST not in sessions(ctx)
    # The disk works again, and another session begins.
    client.talk("0d0d0d0d-e3b0-4b25-afae-79ee4238d2da").start()
    if mount == next(iter(MOUNTS)):
        assert ctx("worker", "run", "--set", "worker.idle_seconds=0").code == 0
    else:
        assert ctx("hook", "apply").code == 0
    assert "tariff" in sessions(ctx)[LOST]
    shown = ctx("sessions", "show", LOST, "--format=json").out
    assert "round half up" in shown
    before = ctx("list", "--limit=0", "--format=json").out
    assert ctx("hook", "apply").code == 0
    assert ctx("list", "--limit=0", "--format=json").out == before


def lose(client: Client, monkeypatch: pytest.MonkeyPatch, session: str = LOST) -> Conversation:
    """A session whose hooks answer, and cannot write."""
    talk = client.talk(session)
    with monkeypatch.context() as patch:
        answer = {"hookSpecificOutput": {"additionalContext": "Memory (ctx) is empty here."}}
        patch.setattr(client, "hook", lambda *_: answer)
        converse(talk)
    return talk


def test_only_sessions_with_hooks_are_captured_and_deleted_ones_stay_out(
    ctx: Ctx, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose(client, monkeypatch)
    talk = client.talk("0e0e0e0e-e3b0-4b25-afae-79ee4238d2da")
    talk.prompt("Without hooks.")
    talk.reply("Done.")
    stamped(talk)
    assert ctx("hook", "apply").code == 0
    assert "tariff" in sessions(ctx)[LOST]
    assert talk.session not in sessions(ctx)
    assert ctx("sessions", "delete", LOST, "--yes").code == 0
    assert ctx("hook", "apply").code == 0
    assert LOST not in sessions(ctx)
