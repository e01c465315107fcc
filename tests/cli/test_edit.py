"""`ctx edit`."""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from ctx.cli.output import Output
from tests.cli.conftest import Add
from tests.conftest import Ctx


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file for the editor is made, and what is left of it can be seen."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def editor(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = folder / "my editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("EDITOR", f"'{path}' --wait")


def content(ctx: Ctx, node_id: str) -> str:
    return str(ctx("show", node_id, "--format=json").json["node"]["content"])


def test_editing_in_the_editor(
    ctx: Ctx, add: Add, folder: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = add("--type=fact", "Deploys run on Fridays")
    # What an editor leaves behind goes too.
    script = 'cp "$2" "$2~"; mkdir "$(dirname "$2")/.swap"; sed -i s/Fridays/Mondays/ "$2"'
    editor(folder, monkeypatch, script)
    assert ctx("edit", node_id) == (0, f"Updated: {node_id} (content)\n", "")
    assert content(ctx, node_id) == "Deploys run on Mondays"
    assert list(temporary.iterdir()) == []


def test_a_text_that_is_only_looked_at_does_not_change(
    ctx: Ctx, add: Add, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = add("--type=fact", "First\r\nsecond\rthird\nfourth 設計")
    editor(folder, monkeypatch, 'cp "$2" seen')
    monkeypatch.setenv("LC_ALL", "C")
    assert ctx("edit", node_id) == (0, f"Unchanged: {node_id}\n", "")
    assert Path("seen").read_bytes() == "First\r\nsecond\rthird\nfourth 設計\n".encode()


def test_an_editor_that_fails_changes_nothing(
    ctx: Ctx, add: Add, folder: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = add("--type=fact", "As it was")
    for script, reason in (
        ("exit 3", "it ended with code 3"),
        ('rm "$2"', "it deleted the file"),
        ('rm "$2"; mkdir "$2"; touch "$2/x"', "it deleted the file"),
    ):
        editor(folder, monkeypatch, script)
        ran = ctx("edit", node_id)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            f"error E011: The editor \"'{folder}/my editor' --wait\" failed: {reason}."
            " Nothing changed.\n  Set EDITOR to another program.\n"
        )
        assert content(ctx, node_id) == "As it was"
        assert list(temporary.iterdir()) == []


def test_what_was_typed_outlives_a_failure(
    ctx: Ctx, add: Add, folder: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = add("--type=fact", "As it was")
    for script, code, said in (
        ('echo Typed > "$2"; exit 3', 2, " Nothing changed.\n"),
        ('echo Typed > "$2"; exit 130', 2, " Nothing changed.\n"),
        (': > "$2"', 2, "error E023: There is no content.\n"),
        ("printf 'ab\\377' > \"$2\"", 2, "error E023: The edited text is not UTF-8.\n"),
    ):
        editor(folder, monkeypatch, script)
        ran = ctx("edit", node_id)
        (kept,) = temporary.glob("ctx-*/*.md")
        assert "Typed" not in script or kept.read_text() == "Typed\n"
        assert (ran.code, ran.out) == (code, "")
        assert said in ran.err
        assert ran.err.endswith(f" Your text is in {kept}.\n")
        assert content(ctx, node_id) == "As it was"
        shutil.rmtree(kept.parent)


def test_which_editor_it_is(
    ctx: Ctx, add: Add, folder: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = add("--type=fact", "As it was")
    editor(folder, monkeypatch, 'echo Typed > "$2"')
    # A blank one is none.
    monkeypatch.setenv("VISUAL", "  ")
    assert ctx("edit", node_id).code == 0
    monkeypatch.setenv("EDITOR", " \t")
    assert ctx("edit", node_id) == (
        2,
        "",
        (
            "error E011: There is no terminal to edit on.\n"
            "  `ctx update ID --stdin` takes the new content; or set EDITOR to a program.\n"
        ),
    )
    assert list(temporary.iterdir()) == []
    # On a terminal it is vi.
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name)
    vi = folder / "vi"
    vi.write_text('#!/bin/sh\necho "As it is" > "$1"\n')
    vi.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(Output, "is_interactive", True)
    assert ctx("edit", node_id).out == f"Updated: {node_id} (content)\n"


def test_an_edit_does_not_overwrite_a_change_made_meanwhile(
    ctx: Ctx, add: Add, folder: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = add("--type=fact", "First")
    other = f'{sys.executable} -m ctx update {node_id} --content=Second; echo Third > "$2"'
    editor(folder, monkeypatch, other)
    ran = ctx("edit", node_id)
    assert ran.code == 2
    assert "was changed while you edited it" in ran.err
    place = ran.err.split("Your text is in ")[1].strip().rstrip(".")
    assert Path(place).is_relative_to(temporary)
    assert Path(place).read_text() == "Third\n"
    assert content(ctx, node_id) == "Second"
