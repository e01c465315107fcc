import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from ctx import locks
from ctx.errors import LockConflict

HOLDER = """
import sys, time
from ctx import locks
with locks.hold(sys.argv[1], "ctx gc", 5):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_lock_leaves_nothing_behind(tmp_path: Path) -> None:
    path = str(tmp_path / "local" / "LOCK")
    with locks.hold(path, "ctx commit", 1):
        owner = locks.read_owner(path)
        assert owner is not None
        assert (owner.pid, owner.doing) == (os.getpid(), "ctx commit")
        assert locks.is_held(path)
    assert not os.path.exists(path)
    assert not locks.is_held(path)


def test_a_lock_on_a_file_that_was_removed_meanwhile_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder is deleted while one process holds the lock in it and another waits for it."""
    path = tmp_path / "home" / "LOCK"
    first = ExitStack()
    assert first.enter_context(locks.try_hold(str(path))) is not None

    def delete_and_release() -> None:
        shutil.rmtree(path.parent, ignore_errors=True)
        first.close()

    monkeypatch.setattr(locks, "_pause", delete_and_release)
    with locks.try_hold(str(path), 30) as second:
        assert second is None
    assert not path.parent.exists()


def test_a_conflict_names_the_holder_and_its_age(tmp_path: Path) -> None:
    path = str(tmp_path / "LOCK")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(
                LockConflict, match=rf"E006: .*process {holder.pid} .*\(ctx gc\), for \d"
            ),
            locks.hold(path, "ctx commit", 0.05),
        ):
            pass
        assert locks.is_held(path)
    finally:
        holder.communicate("\n")
    with locks.hold(path, "ctx commit", 1):
        pass


def test_a_lock_file_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    path = str(tmp_path / "LOCK")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.communicate()
    assert os.path.exists(path)
    assert not locks.is_held(path)
    with locks.hold(path, "ctx commit", 0):
        owner = locks.read_owner(path)
        assert owner is not None
        assert owner.pid == os.getpid()


def test_a_lock_is_released_after_an_error(tmp_path: Path) -> None:
    path = str(tmp_path / "LOCK")
    with pytest.raises(ZeroDivisionError), locks.hold(path, "ctx commit", 1):
        raise ZeroDivisionError
    with locks.hold(path, "ctx commit", 0):
        pass


@pytest.mark.parametrize("content", ["", "garbage", "1\n2\n3\n", "a\nb\nc\nd\n", "\udcff\n"])
def test_any_text_in_the_lock_file_is_accepted(tmp_path: Path, content: str) -> None:
    path = tmp_path / "LOCK"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert locks.read_owner(str(path)) is None
    with locks.hold(str(path), "ctx commit", 0):
        pass
