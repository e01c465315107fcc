"""Files of other programs are edited in place, and no concurrent change is lost."""

import os
import stat
from multiprocessing import get_context
from pathlib import Path

import pytest

from ctx import disk
from ctx.agents.host_setup import edited_file
from ctx.agents.host_setup.edited_file import FileChange
from ctx.errors import DiskFailure, LockConflict, SettingsUnreadable
from tests.faults import Disk


def added(text: str | None) -> str:
    return (text or "") + "ours\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "theirs" / "settings.json"


@pytest.fixture
def backup(tmp_path: Path) -> str:
    return str(tmp_path / "backups" / "settings.json")


def backups(backup: str) -> list[str]:
    folder = Path(backup).parent
    found = sorted(folder.iterdir()) if folder.exists() else []
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in found)
    return [each.read_text() for each in found]


def test_a_missing_file_is_created(path: Path, backup: str) -> None:
    assert edited_file.change(str(path), added, backup) == FileChange(str(path), None, "ours\n")
    assert path.read_text() == "ours\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert backups(backup) == []


def test_new_folders_are_still_there_after_a_power_loss(path: Path, backup: str) -> None:
    nested = path.parent / "new" / "settings.json"
    disk = Disk(power_loss=True)
    with disk.installed():
        edited_file.change(str(nested), added, backup)
    disk.lose_power()
    assert nested.read_text() == "ours\n"


def test_existing_content_is_kept_and_backed_up(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_bytes(b"\xef\xbb\xbftheirs\r\n")
    path.chmod(0o644)
    change = edited_file.change(str(path), added, backup)
    assert change[:3] == (str(path), "\ufefftheirs\r\n", "\ufefftheirs\r\nours\n")
    assert path.read_bytes() == b"\xef\xbb\xbftheirs\r\nours\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert Path(change.backup).read_bytes() == b"\xef\xbb\xbftheirs\r\n"
    assert os.listdir(path.parent) == ["settings.json"]


def test_without_a_change_the_file_is_not_touched(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_text("theirs\n")
    before = path.stat()
    change = edited_file.change(str(path), lambda text: text, backup)
    assert change == FileChange(str(path), "theirs\n", "theirs\n")
    assert not change.is_one
    assert path.stat() == before
    assert backups(backup) == []


def test_a_file_can_be_removed(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_text("theirs\n")
    change = edited_file.change(str(path), lambda _: None, backup)
    assert (change.before, change.after) == ("theirs\n", None)
    assert not path.exists()
    assert backups(backup) == ["theirs\n"]


def test_the_oldest_and_the_newest_backups_of_each_file_are_kept(path: Path, backup: str) -> None:
    other = f"{backup}-of-app"
    edited_file.change(str(path), added, other)
    edited_file.change(str(path), added, other)
    for _ in range(12):
        edited_file.change(str(path), added, backup)
    assert backups(backup) == ["ours\n" * n for n in [2, *range(5, 14), 1]]


def test_several_attempts_leave_one_backup(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_text("theirs\n")

    def slowly(text: str | None) -> str:
        if text is not None and text.count("theirs") < 5:
            path.write_text(f"{text}theirs\n")
        return added(text)

    change = edited_file.change(str(path), slowly, backup)
    assert change.before == "theirs\n" * 5
    assert backups(backup) == ["theirs\n" * 5]
    assert Path(change.backup).read_text() == "theirs\n" * 5


def changed_at_the_same_time(path: str, backup: str) -> list[FileChange]:
    return [edited_file.change(path, added, backup) for _ in range(2)]


@pytest.mark.slow
def test_concurrent_changes_keep_their_own_backups(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_text("theirs\n")
    with get_context("spawn").Pool(3) as processes:
        changes = processes.starmap(changed_at_the_same_time, [(str(path), backup)] * 3)
    kept = [change for each in changes for change in each]
    assert len({change.backup for change in kept}) == 6
    assert [Path(change.backup).read_text() for change in kept] == [each.before for each in kept]
    assert len(backups(backup)) == 6


def test_without_a_backup_nothing_is_changed(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_text("theirs\n")
    Path(backup).parent.write_text("a file")
    with pytest.raises(DiskFailure) as raised:
        edited_file.change(str(path), added, backup)
    assert raised.value.message == f"File exists while changing {path} ({Path(backup).parent})."
    assert path.read_text() == "theirs\n"
    assert os.listdir(path.parent) == ["settings.json"]


@pytest.mark.parametrize(
    ("umask", "file", "folder"),
    [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700), (0o007, 0o660, 0o770)],
)
def test_shared_files_follow_the_umask(
    path: Path, backup: str, umask: int, file: int, folder: int
) -> None:
    before = os.umask(umask)
    try:
        mode = disk.shared_mode()
        assert os.umask(umask) == umask
        edited_file.change(str(path), added, backup, mode=mode)
        beside = path.parent / "a" / "b" / "page.md"
        edited_file.put(str(beside), b"page", mode)
    finally:
        os.umask(before)
    files, folders = (path, beside), (path.parent, beside.parent, beside.parent.parent)
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {file}
    assert {stat.S_IMODE(each.stat().st_mode) for each in folders} == {folder}
    # What is there stays as open as it was.
    beside.chmod(0o604)
    edited_file.put(str(beside), b"newer", mode)
    assert (beside.read_bytes(), stat.S_IMODE(beside.stat().st_mode)) == (b"newer", 0o604)
    assert os.listdir(beside.parent) == ["page.md"]


def test_a_link_stays_a_link(path: Path, backup: str, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("theirs\n")
    real.chmod(0o640)
    path.parent.mkdir()
    path.symlink_to(real)
    edited_file.change(str(path), added, backup)
    assert path.is_symlink()
    assert real.read_text() == "theirs\nours\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_file_that_keeps_changing_is_not_edited(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_text("theirs\n")

    def slowly(text: str | None) -> str:
        path.write_text(f"{text}theirs\n")
        return added(text)

    with pytest.raises(LockConflict, match="Another program keeps changing"):
        edited_file.change(str(path), slowly, backup)
    assert set(path.read_text().splitlines()) == {"theirs"}
    assert os.listdir(path.parent) == ["settings.json"]
    assert backups(backup) == []


def test_a_planned_change_has_a_diff(path: Path) -> None:
    planned = edited_file.plan_change(str(path), added)
    assert planned == FileChange(str(path), None, "ours\n")
    assert planned.diff == f"--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+ours\n"
    assert not path.exists()
    change = FileChange(str(path), "a\nb", None)
    assert change.diff == f"--- {path}\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"


def test_a_file_that_is_not_text_is_left_alone(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_bytes(b"a\nb \xff\n")
    with pytest.raises(SettingsUnreadable, match=r"settings\.json, line 2: this is not UTF-8"):
        edited_file.change(str(path), added, backup)
    assert path.read_bytes() == b"a\nb \xff\n"
    with path.open("wb") as file:
        file.truncate(4 * 2**20 + 1)
    with pytest.raises(SettingsUnreadable, match="more than 4 MiB"):
        edited_file.change(str(path), added, backup)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(SettingsUnreadable, match="is not a plain file"):
        edited_file.change(str(path), added, backup)
    path.unlink()
    path.mkdir()
    with pytest.raises(SettingsUnreadable, match="is not a plain file"):
        edited_file.change(str(path), added, backup)


def test_a_file_in_place_of_the_folder_is_an_error(path: Path, backup: str) -> None:
    path.parent.write_text("a file")
    with pytest.raises(DiskFailure) as raised:
        edited_file.change(str(path), added, backup, by_hand="write it yourself")
    assert raised.value.message == f"File exists while changing {path} ({path.parent})."
    assert raised.value.hint == "Write it yourself."


def test_an_edit_error_names_the_file(path: Path, backup: str) -> None:
    def puzzled(_: str | None) -> str:
        raise SettingsUnreadable("line 2, column 5: this is not a JSON value.")

    with pytest.raises(SettingsUnreadable) as raised:
        edited_file.change(str(path), puzzled, backup, by_hand="write it yourself")
    assert raised.value.message == f"{path}, line 2, column 5: this is not a JSON value."
    assert raised.value.hint == "Fix it, or write it yourself."
