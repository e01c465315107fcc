"""`ctx update` and `ctx edit`."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Add
from tests.conftest import Ctx


def node(ctx: Ctx, node_id: str) -> dict[str, object]:
    found: dict[str, object] = ctx("show", node_id, "--format=json").json["node"]
    return found


def test_fields_change_and_others_stay(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "--meta=a=1", "--meta=b=2", "--summary=Old", "Before")
    ran = ctx("update", node_id, "--content=After", "--type=decision", "--meta=b=3", "--meta=a=")
    assert ran.out == f"Updated: {node_id} (type, content, metadata)\n"
    found = node(ctx, node_id)
    assert (found["type"], found["content"], found["summary"]) == ("decision", "After", "Old")
    assert found["metadata"] == {"b": "3"}
    assert ctx("search", "after").out.startswith(f"  {node_id}")
    assert ctx("search", "before").out == "No matching nodes.\n"


def test_what_is_so_already_is_no_change(ctx: Ctx, add: Add) -> None:
    node_id = add("--type=fact", "Same")
    assert ctx("update", node_id, "--content=Same").out == f"Unchanged: {node_id}\n"
    assert len(ctx("undo", "--list", "--format=json").json["changes"]) == 1


def test_nothing_to_change_is_a_mistake(ctx: Ctx, add: Add) -> None:
    ran = ctx("update", add("--type=fact", "Same"))
    assert ran.code == 2
    assert ran.err.startswith("error E011: There is nothing to change.")


@pytest.mark.parametrize("name", ["01ZZZZZZZZZZ", "zz", "", "not/an/id"])
def test_a_node_that_is_not_there(ctx: Ctx, name: str) -> None:
    ran = ctx("update", name, "--content=x")
    assert ran.code == 1
    assert ran.err.startswith("error E020: ")


def editor(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = folder / "my editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("EDITOR", f"'{path}' --wait")


def test_editing_in_the_editor(
    ctx: Ctx, add: Add, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = add("--type=fact", "Deploys run on Fridays")
    editor(folder, monkeypatch, 'sed -i s/Fridays/Mondays/ "$2"')
    ran = ctx("edit", node_id)
    assert ran.out == f"Updated: {node_id} (content)\n"
    assert node(ctx, node_id)["content"] == "Deploys run on Mondays"


@pytest.mark.parametrize(
    ("script", "told"),
    [("exit 3", "it ended with code 3"), (': > "$2"', "There is no content.")],
)
def test_a_failed_edit_changes_nothing(
    ctx: Ctx, add: Add, folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    node_id = add("--type=fact", "As it was")
    editor(folder, monkeypatch, script)
    ran = ctx("edit", node_id)
    assert ran.code != 0
    assert told in ran.err
    assert node(ctx, node_id)["content"] == "As it was"


def test_an_edit_does_not_overwrite_a_change_made_meanwhile(
    ctx: Ctx, add: Add, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = add("--type=fact", "First")
    other = f'{sys.executable} -m ctx update {node_id} --content=Second; echo Third > "$2"'
    editor(folder, monkeypatch, other)
    ran = ctx("edit", node_id)
    assert ran.code == 2
    assert "was changed while you edited it" in ran.err
    place = ran.err.split("Your text is in ")[1].strip().rstrip(".")
    assert Path(place).read_text() == "Third\n"
    assert node(ctx, node_id)["content"] == "Second"
