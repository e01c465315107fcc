"""Live sessions, and the small files that hooks share."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from ctx.hook_files import live
from tests.capture.conversations import SESSION, Client
from tests.conftest import Ctx
from tests.faults import Disk, Stopped

NOW_S = 1_768_906_800.0


@pytest.fixture
def gone() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def begin(home: Path, process: str, silent_s: float = 0) -> None:
    live.begin(str(home), SESSION, process, "/work/app")
    os.utime(live.path_of(str(home), SESSION), (NOW_S - silent_s, NOW_S - silent_s))


def is_live(home: Path) -> bool:
    return live.is_live(str(home), SESSION, NOW_S)


def test_a_session_is_live_while_its_client_runs(tmp_path: Path, gone: int) -> None:
    assert not is_live(tmp_path)
    begin(tmp_path, str(os.getpid()), silent_s=86_400)
    assert is_live(tmp_path)
    begin(tmp_path, str(gone))
    assert not is_live(tmp_path)


def test_a_client_of_another_user_counts_as_running(tmp_path: Path) -> None:
    """A process that may not be signalled is running."""
    begin(tmp_path, "1")
    assert is_live(tmp_path)


def test_without_a_process_a_session_is_live_for_ten_minutes(tmp_path: Path) -> None:
    for process in ("", "none"):
        begin(tmp_path, process, silent_s=599)
        assert is_live(tmp_path)
        begin(tmp_path, process, silent_s=601)
        assert not is_live(tmp_path)


def test_an_impossible_process_id_is_not_live(tmp_path: Path) -> None:
    begin(tmp_path, "9" * 30)
    assert not is_live(tmp_path)


def test_every_event_keeps_a_session_without_a_process_live(
    folder: Path, surroundings: Path
) -> None:
    """A long conversation stays live if its client gives no process id."""
    client = Client(surroundings / ".ctx", folder)
    with client.memory():
        pass
    conversation = client.talk()
    conversation.start()
    path = live.path_of(client.home, SESSION)

    def use_tool() -> None:
        client.hook("post-tool-use", conversation.payload("PostToolUse"))

    for event in (use_tool, conversation.submit, conversation.stop):
        os.utime(path, (NOW_S, NOW_S))
        event()
        assert os.stat(path).st_mtime > NOW_S + 601, event


def test_a_session_is_live_from_its_start_to_its_end(
    folder: Path, surroundings: Path, ctx: Ctx
) -> None:
    client = Client(surroundings / ".ctx", folder, str(os.getpid()))
    conversation = client.talk()
    path = Path(live.path_of(client.home, SESSION))
    conversation.start()
    assert path.read_text() == f"{os.getpid()}\n{folder}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    conversation.answer("Nothing to remember.")
    conversation.submit()
    assert path.exists()
    conversation.end()
    assert not path.exists()
    assert Path(f"{path}.stop").read_text() == str(conversation.size)


def test_a_command_in_the_shell_of_a_session_joins_it(
    folder: Path, surroundings: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(surroundings / ".ctx", folder, str(os.getpid()))
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", SESSION)

    def session_of(content: str) -> str:
        node = ctx("add", "--type=fact", content, "--format=json").json["node"]["id"]
        with client.memory() as memory:
            return memory.graph.history(node)[0].session

    assert session_of("Before it starts.") == "cli"
    client.talk().start()
    assert session_of("While it is live.") == SESSION
    client.talk().end()
    assert session_of("After its end.") == "cli"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (SESSION, True),
        ("a", True),
        ("A_b.c-9", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        (".", False),
        ("..", False),
        ("-", False),
        ("a/b", False),
        ("../x", False),
        ("a b", False),
        ("a\n", False),
        ("a\0", False),
        ("é", False),
        ("٣", False),
    ],
)
def test_valid_session_ids_are_recognised(text: str, is_one: bool) -> None:
    assert live.is_session(text) is is_one


def test_a_file_is_replaced_atomically(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert live.read(home, "a.stop") == ""
    live.write(home, "a.stop", "1024")
    step = 0
    while True:
        try:
            with Disk(step).installed():
                live.write(home, "a.stop", "2048")
            break
        except Stopped:
            assert live.read(home, "a.stop") == "1024"
        step += 1
    assert step >= 2
    assert live.read(home, "a.stop") == "2048"
    live.remove(home, "a.stop")
    live.remove(home, "a.stop")
    assert live.read(home, "a.stop") == ""
    # Nobody waits for a pipe in its place.
    os.mkfifo(live.path_of(home, "a.stop"))
    assert live.read(home, "a.stop") == ""


@pytest.mark.parametrize(
    ("written", "before"),
    [("another", "another"), ("", ""), (SESSION, ""), ("../x", ""), ("a b", "")],
)
def test_the_previous_session_is_recorded(tmp_path: Path, written: str, before: str) -> None:
    assert live.continued_session(str(tmp_path), SESSION) == ""
    live.write(str(tmp_path), f"{SESSION}.before", written)
    assert live.continued_session(str(tmp_path), SESSION) == before


def test_files_of_abandoned_sessions_are_removed(folder: Path, surroundings: Path) -> None:
    client = Client(surroundings / ".ctx", folder)
    for name in ("old.stop", "new.stop"):
        live.write(client.home, name, "5")
    month = 31 * 86_400
    path = live.path_of(client.home, "old.stop")
    os.utime(path, (os.stat(path).st_mtime - month,) * 2)
    client.apply()
    assert sorted(os.listdir(live.path_of(client.home, ""))) == ["new.stop"]


def test_a_name_is_claimed_once_within_its_time(tmp_path: Path) -> None:
    home = str(tmp_path / "ctx")
    now_ms = int(NOW_S * 1000)

    def claim(name: str, at_ms: int) -> bool:
        return live.claim(home, name, at_ms, 1_000)

    assert live.written_ms(home, "one") == 0
    assert claim("one", now_ms)
    path = Path(live.path_of(home, "one"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    os.utime(path, (NOW_S, NOW_S))
    assert live.written_ms(home, "one") == now_ms
    assert not claim("one", now_ms)
    assert not claim("one", now_ms + 999)
    assert claim("two", now_ms)
    assert claim("one", now_ms + 1_000)
    # From then on its time runs anew.
    assert not claim("one", now_ms + 1_999)
    assert claim("one", now_ms + 2_000)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    live.write(str(tmp_path), "one", "before")
    with pytest.raises(UnicodeEncodeError):
        live.write(str(tmp_path), "one", "/half \ud800 a character")
    assert live.read(str(tmp_path), "one") == "before"
    assert os.listdir(tmp_path / "live") == ["one"]
