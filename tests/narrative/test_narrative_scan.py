"""Finding documents among other files in the folder."""

import os
from pathlib import Path

import pytest

from ctx.errors import DiskFailure
from ctx.narrative import narrative_scan, narrative_snapshots
from ctx.narrative.narrative_scan import ScannedFile

LARGEST = 4 * 1024 * 1024


@pytest.fixture
def narrative(tmp_path: Path) -> Path:
    folder = tmp_path / "narrative"
    for path in (
        "README.md",
        "decisions.md",
        "notes.txt",
        "tasks/task_0001-x-ab12.md",
        "tasks/task_0001-x-ab12.md.7-1.tmp",
        "tasks/decisions.md",
        "log/2026-01-20-1005-ab12.md",
        "log/old/2025.md",
        "feature/net/README.md",
        "feature/net/log/2026-01-20-1005-ab12.md",
        "work/s-1/log/notes.md",
        "guides/x.md/deep.md",
        "log.md",
        "更新/ü.md",
        "new\nline.md",
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("# X\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("secret")
    (folder / "linked").symlink_to(tmp_path / "outside")
    (folder / "link.md").symlink_to(tmp_path / "outside" / "secret.md")
    (folder / "dangling.md").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.md")
    with (folder / "large.md").open("wb") as file:
        file.truncate(LARGEST + 1)
    with (folder / "largest.md").open("wb") as file:
        file.truncate(LARGEST)
    if os.path.supports_unicode_filenames is False:
        (folder / os.fsdecode(b"\xff.md")).write_text("x")
    return folder


DOCUMENTS = [
    "README.md",
    "feature/net/README.md",
    "guides/x.md/deep.md",
    "largest.md",
    "log.md",
    "tasks/decisions.md",
    "tasks/task_0001-x-ab12.md",
    "work/s-1/log/notes.md",
    "更新/ü.md",
]


def test_editable_documents_are_found(narrative: Path) -> None:
    found = list(narrative_scan.documents(str(narrative)))
    assert [seen.path for seen in found] == DOCUMENTS
    status = (narrative / "README.md").stat()
    assert found[0] == ScannedFile("README.md", status.st_mtime_ns, 4, status.st_ino)
    assert list(narrative_scan.documents(str(narrative / "nowhere"))) == []


def test_files_for_a_commit_include_the_log(narrative: Path) -> None:
    kept, skipped = narrative_snapshots.documents(str(narrative))
    logs = [
        "feature/net/log/2026-01-20-1005-ab12.md",
        "log/2026-01-20-1005-ab12.md",
        "log/old/2025.md",
    ]
    assert kept == sorted([*DOCUMENTS, *logs])
    reasons = {path: reason for path, reason in skipped if path.isprintable()}
    assert reasons == {
        "dangling.md": "it is not a plain file",
        "large.md": "it is larger than 4,194,304 bytes",
        "link.md": "it is not a plain file",
        "pipe.md": "it is not a plain file",
    }
    assert ("new\nline.md", "its name has a control character in it") in skipped


def test_documents_are_read(narrative: Path, tmp_path: Path) -> None:
    folder = str(narrative)
    assert narrative_scan.read(folder, "README.md") == b"# X\n"
    assert narrative_scan.read(folder, "largest.md") == bytes(LARGEST)
    for path in (
        "large.md", "link.md", "dangling.md", "pipe.md", "gone.md", "guides/x.md", "README.md/x.md",
        "linked/secret.md", "../outside/secret.md", f"{tmp_path}/outside/secret.md", "", ".", "a\0",
        "x" * 300, "log/../README.md",
    ):  # fmt: skip
        assert narrative_scan.read(folder, path) is None, path


def test_an_unreadable_document_is_an_error(narrative: Path) -> None:
    (narrative / "README.md").chmod(0)
    child = os.fork()
    if not child:
        # Root may read everything, so somebody else tries.
        if os.geteuid() == 0:
            os.setuid(65_534)
        try:
            narrative_scan.read(str(narrative), "README.md")
        except DiskFailure as error:
            is_told = "Not permitted while reading the narrative file README" in error.message
            os._exit(0 if is_told else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_document_whose_path_is_a_secret_is_skipped(tmp_path: Path) -> None:
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    folder = tmp_path / "feature" / token
    folder.mkdir(parents=True)
    (folder / "spec.md").write_text("# Spec\n")
    (tmp_path / "plain.md").write_text("# Plain\n")
    kept, skipped = narrative_snapshots.documents(str(tmp_path))
    assert kept == ["plain.md"]
    assert [(each.path, each.reason) for each in skipped] == [
        (f"feature/{token}/spec.md", "its name looks like a secret")
    ]
