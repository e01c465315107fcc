import errno
import os
import stat
from pathlib import Path

import pytest

from ctx import disk
from ctx.errors import DiskFailure
from tests.faults import NO_SPACE, Disk


def test_replace_is_atomic_and_private(tmp_path: Path) -> None:
    path = tmp_path / "f"
    disk.replace(str(path), b"one")
    disk.replace(str(path), b"two" * 100_000)
    assert path.read_bytes() == b"two" * 100_000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["f", "home"]


def test_a_refused_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "f"
    disk.replace(str(path), b"one")
    for number in range(4):
        with Disk(number, refuse_with=NO_SPACE).installed(), pytest.raises(OSError):
            disk.replace(str(path), b"two")
        assert path.read_bytes() == b"one"
        assert sorted(os.listdir(tmp_path)) == ["f", "home"]


def test_a_mode_that_cannot_be_copied_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    os.symlink("f", tmp_path / "f")
    with pytest.raises(OSError, match="symbolic links"):
        disk.write_like(str(tmp_path / "f"), b"two", 0o600)
    assert sorted(os.listdir(tmp_path)) == ["f", "home"]


def test_discarding_a_missing_file_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text("not a folder")
    disk.discard(str(tmp_path / "gone"))
    disk.discard(str(tmp_path / "tasks" / "one.md"))
    assert (tmp_path / "tasks").read_text() == "not a folder"


def test_files_of_any_size_are_read(tmp_path: Path) -> None:
    for size in (0, 1, 65535, 65536, 65537, 200_000):
        path = tmp_path / str(size)
        path.write_bytes(b"x" * size)
        assert len(disk.read(str(path))) == size
    assert disk.read_or_none(str(tmp_path / "missing")) is None
    assert disk.names(str(tmp_path / "missing")) == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "Not permitted"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_disk_errors_are_explained(code: int, words: str) -> None:
    with pytest.raises(DiskFailure, match=words) as raised, disk.explain_errors("saving a note"):
        raise OSError(code, os.strerror(code), "/x/y")
    assert "while saving a note (/x/y)" in raised.value.message


def test_folders_are_private_and_can_be_created_twice(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    disk.make_folder(str(deep))
    disk.make_folder(str(deep))
    assert stat.S_IMODE(deep.stat().st_mode) == 0o700
    (tmp_path / "f").write_text("x")
    with pytest.raises(OSError):
        disk.make_folder(str(tmp_path / "f" / "g"))


def test_a_file_that_is_replaced_again_and_again(folder: Path) -> None:
    path = folder / "ref"
    path.write_bytes(b"first and long")
    for number in range(4):
        disk.replace_again(str(path), b"%d" % number)
        assert path.read_bytes() == b"%d" % number
    assert sorted(os.listdir(folder)) == ["ref", "ref.spare.tmp"]
    disk.discard_spare(str(path))
    assert os.listdir(folder) == ["ref"]


def test_a_leftover_spare_file_is_never_written_through(folder: Path) -> None:
    """A spare that is a hard link to the file itself must not be changed in place."""
    path = folder / "ref"
    path.write_bytes(b"0")
    os.link(path, folder / "ref.old.tmp")
    os.link(path, folder / "ref.spare.tmp")
    held = path.open("rb")
    disk.replace_again(str(path), b"1")
    with held:
        assert held.read() == b"0"
    assert path.read_bytes() == b"1"
