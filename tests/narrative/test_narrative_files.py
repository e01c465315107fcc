"""Documents are written atomically, and never overwrite an edit."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctx.errors import ContentRefused, DiskFailure, PathRefused
from ctx.narrative import narrative_files
from tests.faults import NO_SPACE, Disk, Stopped

PATH = "feature/net/tasks/task_0001-x-ab12.md"
TEXT = "# Grüße\n" * 10


class LinkingDisk(Disk):
    """A disk that also counts hard links and undoes them after a power loss."""

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        link = os.link

        def counted(source: Any, target: Any) -> None:
            self._step("link", target)
            link(source, target)
            self._named(target, lambda: os.unlink(target))

        with super().installed(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "link", counted)
            yield


@pytest.fixture
def narrative(tmp_path: Path) -> Path:
    folder = tmp_path / "narrative"
    folder.mkdir()
    return folder


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_new_document_is_complete_and_private(narrative: Path) -> None:
    narrative_files.create(str(narrative), PATH, TEXT)
    made = narrative / PATH
    assert made.read_text() == TEXT
    assert everything(narrative) == [PATH]
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_an_existing_path_is_not_overwritten(narrative: Path, tmp_path: Path, kind: str) -> None:
    outside, there = tmp_path / "outside", narrative / "x.md"
    outside.write_text("theirs")
    if kind == "link":
        there.symlink_to(outside)
    elif kind == "folder":
        there.mkdir()
    else:
        there.hardlink_to(outside)
    with pytest.raises(PathRefused, match=r"x\.md is there already"):
        narrative_files.create(str(narrative), "x.md", "ours")
    assert outside.read_text() == "theirs"
    assert os.listdir(narrative) == ["x.md"]


@pytest.mark.parametrize(
    "path", ["../x.md", "/x.md", "a/../../x.md", "a//x.md", "", ".", "a/\0.md", "linked/x.md"]
)
def test_nothing_is_written_outside_of_the_folder(
    narrative: Path, tmp_path: Path, path: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (narrative / "linked").symlink_to(outside)
    with pytest.raises(PathRefused):
        narrative_files.create(str(narrative), path, "ours")
    assert narrative_files.replace(str(narrative), path, "ours", expected=b"") is False
    assert os.listdir(outside) == []
    assert sorted(os.listdir(tmp_path)) == ["home", "narrative", "outside"]


def test_invalid_text_is_refused(narrative: Path) -> None:
    with pytest.raises(ContentRefused):
        narrative_files.create(str(narrative), "x.md", "\ud800")
    narrative_files.create(str(narrative), "x.md", b"\xff".decode("utf-8", "surrogateescape"))
    assert (narrative / "x.md").read_bytes() == b"\xff"


def test_documents_are_written_without_hard_links(
    narrative: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)
    narrative_files.create(str(narrative), PATH, TEXT)
    assert (narrative / PATH).read_text() == TEXT
    with pytest.raises(PathRefused, match="already"):
        narrative_files.create(str(narrative), PATH, "other")
    assert (narrative / PATH).read_text() == TEXT
    assert everything(narrative) == [PATH]


@pytest.mark.parametrize("power_loss", [False, True])
@pytest.mark.parametrize("replaces", [False, True])
def test_stopping_anywhere_leaves_a_complete_document(
    tmp_path: Path, power_loss: bool, replaces: bool
) -> None:
    stop_at, done = 0, False
    while not done:
        folder = tmp_path / str(stop_at)
        folder.mkdir()
        if replaces:
            (folder / "x.md").write_text("old")
        disk = LinkingDisk(stop_at, power_loss=power_loss)
        with disk.installed(), contextlib.suppress(Stopped):
            if replaces:
                assert narrative_files.replace(str(folder), "x.md", "new", expected=b"old")
            else:
                narrative_files.create(str(folder), PATH, TEXT)
            done = True
        if power_loss:
            disk.lose_power()
        documents = [path for path in everything(folder) if path.endswith(".md")]
        if replaces:
            assert (folder / "x.md").read_text() in (("new",) if done else ("old", "new"))
        else:
            assert documents in ([PATH], [PATH] if done else [])
            assert not documents or (folder / PATH).read_text() == TEXT
        stop_at += 1
    assert stop_at > (3 if replaces else 8)


def test_a_disk_error_leaves_nothing_behind(tmp_path: Path) -> None:
    for number in range(3, 9):
        folder = tmp_path / str(number)
        (folder / "tasks").mkdir(parents=True)
        with LinkingDisk(number - 3, refuse_with=NO_SPACE).installed():
            try:
                narrative_files.create(str(folder), "tasks/x.md", TEXT)
            except DiskFailure as error:
                assert "disk is full while writing the narrative file tasks/x.md" in error.message
        assert everything(folder) in ([], ["tasks/x.md"], _temporary(folder))


def _temporary(folder: Path) -> list[str]:
    """The file that is left if the clean-up itself failed."""
    return [name for name in everything(folder) if name.endswith(".tmp")]


def test_a_document_is_replaced_only_if_it_is_unchanged(narrative: Path) -> None:
    path = narrative / "x.md"
    path.write_text("old")
    path.chmod(0o640)
    assert narrative_files.replace(str(narrative), "x.md", "new", expected=b"old")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert not narrative_files.replace(str(narrative), "x.md", "newer", expected=b"old")
    assert path.read_text() == "new"
    before = path.stat().st_mtime_ns
    assert narrative_files.replace(str(narrative), "x.md", "new", expected=b"new")
    assert path.stat().st_mtime_ns == before
    assert not narrative_files.replace(str(narrative), "gone.md", "new", expected=b"")
    assert os.listdir(narrative) == ["x.md"]


def test_a_concurrent_edit_wins(narrative: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = narrative / "x.md"
    path.write_text("old")
    chmod = os.chmod

    def saved_meanwhile(*words: Any) -> None:
        chmod(*words)
        path.write_text("theirs")

    monkeypatch.setattr(os, "chmod", saved_meanwhile)
    assert not narrative_files.replace(str(narrative), "x.md", "ours", expected=b"old")
    assert path.read_text() == "theirs"
    assert os.listdir(narrative) == ["x.md"]


def test_a_document_that_is_deleted_meanwhile_stays_deleted(
    narrative: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = narrative / "x.md"
    path.write_text("old")
    lstat = os.lstat

    def removed_meanwhile(name: str) -> os.stat_result:
        path.unlink(missing_ok=True)
        return lstat(name)

    monkeypatch.setattr(os, "lstat", removed_meanwhile)
    assert not narrative_files.replace(str(narrative), "x.md", "ours", expected=b"old")
    monkeypatch.undo()
    assert os.listdir(narrative) == []
