"""`--output FILE` overwrites only what ctx wrote; both commands that have it use one function."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Ctx


@pytest.fixture(params=["query", "export"])
def words(request: pytest.FixtureRequest, folder: Path, ctx: Ctx) -> list[str]:
    assert ctx("add", "--type=fact", "The client has a timeout").code == 0
    return [request.param, *(["client timeout", "--as", "pack"] * (request.param == "query"))]


def test_a_file_that_ctx_wrote_is_overwritten(words: list[str], ctx: Ctx, folder: Path) -> None:
    out = folder / "out.json"
    assert ctx(*words, "-o", "out.json").code == 0
    first = out.read_text()
    ctx("add", "--type=fact", "The client waits for a second timeout")
    assert ctx(*words, "-o", str(folder / ".." / folder.name / "out.json")).code == 0
    assert out.read_text() != first
    assert os.listdir(folder) == ["out.json"]


def test_a_file_of_another_program_is_kept(words: list[str], ctx: Ctx, folder: Path) -> None:
    (folder / "notes.json").write_text("mine")
    refused = ctx(*words, "-o", "notes.json")
    assert (refused.code, refused.out) == (1, "")
    assert "E015" in refused.err
    assert "--force" in refused.err
    assert (folder / "notes.json").read_text() == "mine"
    assert ctx(*words, "-o", "notes.json", "--force").code == 0
    assert json.loads((folder / "notes.json").read_text())


def test_a_copy_of_a_pack_is_not_a_file_that_ctx_wrote(
    words: list[str], ctx: Ctx, folder: Path
) -> None:
    """A repository may contain any content: only the note under CTX_HOME counts."""
    assert ctx(*words, "-o", "out.json").code == 0
    shutil.copy(folder / "out.json", folder / "config.json")
    assert ctx(*words, "-o", "config.json").code == 1
    with (folder / "out.json").open("a") as file:
        file.write("a remark\n")
    assert ctx(*words, "-o", "out.json").code == 1, "it was edited"
    assert (folder / "out.json").read_text().endswith("a remark\n")


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_the_output_can_be_stdout(name: str, folder: Path) -> None:
    command = [sys.executable, "-m", "ctx", "export", "-o", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["nodes"]) == (0, [])
    assert os.listdir(folder) == []


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_only_plain_files_are_written(force: list[str], ctx: Ctx, folder: Path) -> None:
    (folder / "target").write_text("kept")
    (folder / "link").symlink_to("target")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "inner").mkdir()
    os.mkfifo(folder / "pipe")
    for name in ("link", "dangling", "inner", "pipe", "/dev/null", "missing/out.json"):
        refused = ctx("export", "-o", name, *force)
        assert (refused.code, "E015" in refused.err) == (1, True), name
    assert (folder / "target").read_text() == "kept"
    assert sorted(os.listdir(folder)) == ["dangling", "inner", "link", "pipe", "target"]


def test_the_number_of_notes_is_limited(ctx: Ctx, folder: Path, surroundings: Path) -> None:
    notes = surroundings / ".ctx" / "outputs"
    notes.mkdir(parents=True)
    for number in range(1000):
        (notes / f"{number:064x}").touch()
    assert ctx("export", "-o", "out.json").code == 0
    assert len(os.listdir(notes)) == 1000
    assert ctx("export", "-o", "out.json").code == 0


def test_a_file_is_written_without_a_writable_home(
    ctx: Ctx, folder: Path, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written, and not overwritten the next time."""
    (surroundings / ".ctx").mkdir()
    (surroundings / ".ctx" / "outputs").write_text("in the way")
    assert ctx("export", "-o", "out.json").code == 0
    assert ctx("export", "-o", "out.json").code == 1
