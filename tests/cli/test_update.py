"""`ctx update`."""

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
    assert ran.err.startswith("error E011: Nothing to change.")


@pytest.mark.parametrize("name", ["01ZZZZZZZZZZ", "zz", "", "not/an/id"])
def test_a_node_that_is_not_there(ctx: Ctx, name: str) -> None:
    ran = ctx("update", name, "--content=x")
    assert ran.code == 1
    assert ran.err.startswith("error E020: ")


def test_the_text_can_be_an_argument(ctx: Ctx, add: Add) -> None:
    node = add("--type=fact", "Old")
    assert ctx("update", node, "Deploys run", "on Mondays").out.endswith(" (content)\n")
    shown = ctx("show", node, "--json").json["node"]
    assert shown["content"] == "Deploys run on Mondays"
    assert ctx("update", node, "One", "--content=Other").code == 2
