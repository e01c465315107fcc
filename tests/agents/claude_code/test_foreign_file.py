"""Another program's file is replaced where it lies, and nobody's change to it is lost."""

import os
import stat
from pathlib import Path

import pytest

from ctx.agents.claude_code import foreign_file
from ctx.agents.claude_code.foreign_file import Change
from ctx.errors import DiskFailure, LockConflict, SettingsUnreadable


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


def test_a_file_that_is_not_there_is_made(path: Path, backup: str) -> None:
    assert foreign_file.change(str(path), added, backup) == Change(str(path), None, "ours\n")
    assert path.read_text() == "ours\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert backups(backup) == []


def test_what_was_there_is_kept(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_bytes(b"\xef\xbb\xbftheirs\r\n")
    path.chmod(0o644)
    change = foreign_file.change(str(path), added, backup)
    assert change[:3] == (str(path), "\ufefftheirs\r\n", "\ufefftheirs\r\nours\n")
    assert path.read_bytes() == b"\xef\xbb\xbftheirs\r\nours\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert Path(change.backup).read_bytes() == b"\xef\xbb\xbftheirs\r\n"
    assert os.listdir(path.parent) == ["settings.json"]


def test_nothing_to_change_touches_nothing(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_text("theirs\n")
    before = path.stat()
    change = foreign_file.change(str(path), lambda text: text, backup)
    assert change == Change(str(path), "theirs\n", "theirs\n")
    assert not change.is_one
    assert path.stat() == before
    assert backups(backup) == []


def test_a_file_may_go(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_text("theirs\n")
    change = foreign_file.change(str(path), lambda _: None, backup)
    assert (change.before, change.after) == ("theirs\n", None)
    assert not path.exists()
    assert backups(backup) == ["theirs\n"]


def test_the_last_ten_are_kept_of_each_file(path: Path, backup: str) -> None:
    other = f"{backup}-of-app"
    foreign_file.change(str(path), added, other)
    foreign_file.change(str(path), added, other)
    for _ in range(12):
        foreign_file.change(str(path), added, backup)
    assert backups(backup) == ["ours\n" * n for n in [*range(4, 14), 1]]


def test_a_link_stays_a_link(path: Path, backup: str, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("theirs\n")
    real.chmod(0o640)
    path.parent.mkdir()
    path.symlink_to(real)
    foreign_file.change(str(path), added, backup)
    assert path.is_symlink()
    assert real.read_text() == "theirs\nours\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_change_of_another_program_in_between_is_not_lost(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_text("theirs\n")
    seen = []

    def slowly(text: str | None) -> str:
        seen.append(text)
        if len(seen) == 1:
            path.write_text("theirs, newer\n")
        return added(text)

    foreign_file.change(str(path), slowly, backup)
    assert seen == ["theirs\n", "theirs, newer\n"]
    assert path.read_text() == "theirs, newer\nours\n"
    assert os.listdir(path.parent) == ["settings.json"]


def test_a_program_that_never_stops_changing_it_wins(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_text("theirs\n")

    def slowly(text: str | None) -> str:
        path.write_text(f"{text}theirs\n")
        return added(text)

    with pytest.raises(LockConflict, match="Another program keeps changing"):
        foreign_file.change(str(path), slowly, backup)
    assert set(path.read_text().splitlines()) == {"theirs"}
    assert os.listdir(path.parent) == ["settings.json"]


def test_what_would_change(path: Path) -> None:
    planned = foreign_file.planned(str(path), added)
    assert planned == Change(str(path), None, "ours\n")
    assert planned.diff == f"--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+ours\n"
    assert not path.exists()
    change = Change(str(path), "a\nb", None)
    assert change.diff == f"--- {path}\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"


def test_what_is_no_text_is_left_alone(path: Path, backup: str) -> None:
    path.parent.mkdir()
    path.write_bytes(b"a\nb \xff\n")
    with pytest.raises(SettingsUnreadable, match=r"settings\.json, line 2: this is not UTF-8"):
        foreign_file.change(str(path), added, backup)
    assert path.read_bytes() == b"a\nb \xff\n"
    with path.open("wb") as file:
        file.truncate(4 * 2**20 + 1)
    with pytest.raises(SettingsUnreadable, match="more than 4 MiB"):
        foreign_file.change(str(path), added, backup)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(SettingsUnreadable, match="is no plain file"):
        foreign_file.change(str(path), added, backup)
    path.unlink()
    path.mkdir()
    with pytest.raises(SettingsUnreadable, match="is no plain file"):
        foreign_file.change(str(path), added, backup)


def test_a_folder_that_cannot_be_written(path: Path, backup: str) -> None:
    path.parent.write_text("a file")
    with pytest.raises(DiskFailure) as raised:
        foreign_file.change(str(path), added, backup)
    assert str(path) in raised.value.message
    assert "`ctx install --print` shows what to put in by hand." in (raised.value.hint or "")


def test_what_an_edit_cannot_understand_is_told_with_the_file(path: Path, backup: str) -> None:
    def puzzled(_: str | None) -> str:
        raise SettingsUnreadable("line 2, column 5: this is no JSON value.")

    with pytest.raises(SettingsUnreadable) as raised:
        foreign_file.change(str(path), puzzled, backup)
    assert raised.value.message == f"{path}, line 2, column 5: this is no JSON value."
    assert raised.value.hint == (
        "Mend it, or add the hooks by hand: `ctx install --print` shows them."
    )
