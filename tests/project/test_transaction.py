"""One transaction over the user store and a project's: order, claims, parts, and `ctx undo`."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ctx as ctx_package
from ctx.errors import UsageError
from ctx.ids import CLI_SESSION, NodeId
from ctx.layout import UserStore
from ctx.memory import idempotency_keys
from ctx.memory.graph import PROJECT, USER
from ctx.memory.idempotency_keys import AlreadyDone, Claim
from ctx.operations import undo
from ctx.sqlite.connection import transaction
from ctx.workspace import Environment, Memory, open_memory
from tests.conftest import Ctx

CLAIM = Claim("a session msg_1 0", "a session", "remember")


@pytest.fixture
def memory(repo: Path, surroundings: Path, ctx: Ctx) -> Iterator[Memory]:
    assert ctx("init").code == 0
    store = UserStore(str(surroundings / ".ctx"))
    with open_memory(Environment(str(repo), store, {}, (), CLI_SESSION), writing=True) as opened:
        yield opened


def contents(memory: Memory, scope: str) -> list[str]:
    graph = memory.only(scope).graph
    return sorted(node.content for node in graph.nodes(graph.of_type("fact")))


def add_and_fail(memory: Memory, scopes: tuple[str, ...], *, finishing: str | None = None) -> None:
    """Add a node to each store and fail: immediately, or after one scope is written."""

    def fail() -> None:
        raise UsageError("No.")

    with memory.transaction("add", *scopes) as change:
        for scope in scopes:
            change.in_scope(scope).add_node("fact", f"In {scope}.")
        if finishing is None:
            fail()
        else:
            change.in_scope(finishing).write = fail  # type: ignore[method-assign]


@pytest.mark.parametrize("scopes", [(PROJECT, USER), (USER, PROJECT)])
def test_parts_of_a_transaction_are_one_change(memory: Memory, scopes: tuple[str, str]) -> None:
    with memory.transaction("add", *scopes) as change:
        assert change.graph.scope == scopes[0]
        for scope in scopes:
            change.in_scope(scope).add_node("fact", f"In {scope}.")
    assert contents(memory, USER) == ["In user."]
    assert contents(memory, PROJECT) == ["In project."]
    undo.undo_change(memory, change.id, dry_run=False)
    assert contents(memory, USER) == contents(memory, PROJECT) == []


@pytest.mark.parametrize("scopes", [(PROJECT, USER), (USER, PROJECT)])
def test_a_transaction_that_fails_changes_neither_store(
    memory: Memory, scopes: tuple[str, str]
) -> None:
    with pytest.raises(UsageError):
        add_and_fail(memory, scopes)
    assert contents(memory, USER) == contents(memory, PROJECT) == []
    # The first scope is written first.
    with pytest.raises(UsageError):
        add_and_fail(memory, scopes, finishing=scopes[1])
    assert contents(memory, scopes[0]) == [f"In {scopes[0]}."]
    assert contents(memory, scopes[1]) == []


def test_a_nested_transaction_is_part_of_the_outer_one(memory: Memory) -> None:
    with memory.transaction("observe") as outer:
        outer.add_node("fact", "Outside.")
        with memory.transaction("add") as inner:
            inner.add_node("fact", "Inside.")
        with pytest.raises(UsageError):
            add_and_fail(memory, (PROJECT,))
        with memory.transaction("add", USER) as other:
            other.add_node("fact", "Mine.")
        assert inner is outer
        assert other.id == outer.id
    assert contents(memory, PROJECT) == ["Inside.", "Outside."]
    assert contents(memory, USER) == ["Mine."]


def test_the_project_must_be_locked_before_the_user_store(memory: Memory) -> None:
    with (
        memory.transaction("add", USER),
        pytest.raises(RuntimeError, match="comes before"),
        memory.transaction("add", PROJECT),
    ):
        pytest.fail("Both wait for each other.")


@pytest.mark.parametrize("scopes", [(USER,), (PROJECT,), (PROJECT, USER), (USER, PROJECT)])
def test_a_claimed_change_is_made_once(memory: Memory, scopes: tuple[str, ...]) -> None:
    with memory.transaction("add", *scopes, claim=CLAIM) as change:
        for scope in scopes:
            change.in_scope(scope).add_node("fact", f"In {scope}.")
    assert idempotency_keys.is_taken(memory.local, CLAIM.id)
    with pytest.raises(AlreadyDone), memory.transaction("add", *scopes, claim=CLAIM):
        pytest.fail("It is done already.")


def test_a_project_change_is_recognised_without_its_claim(memory: Memory) -> None:
    with memory.transaction("add", PROJECT, claim=CLAIM) as change:
        change.add_node("fact", "Once.")
    # As after a crash between the two stores.
    with transaction(memory.local):
        idempotency_keys.drop(memory.local, CLAIM.id)
    with pytest.raises(AlreadyDone), memory.transaction("add", PROJECT, claim=CLAIM):
        pytest.fail("It is done already.")
    assert idempotency_keys.is_taken(memory.local, CLAIM.id)
    assert contents(memory, PROJECT) == ["Once."]


def test_nodes_are_changed_in_their_own_store(memory: Memory) -> None:
    made: dict[str, NodeId] = {}
    with memory.transaction("add", PROJECT, USER) as change:
        for scope in (PROJECT, USER):
            made[scope] = change.in_scope(scope).add_node("fact", scope)
    assert memory.graph.by_scope(made.values()) == {scope: [made[scope]] for scope in made}
    with pytest.raises(UsageError):
        memory.graph.shared_scope(made.values(), "superseding")


SOURCE = Path(ctx_package.__file__).parent
CALLS_CHANGING = re.compile(r"(?<!def )(?<!\w)changing\(")


def test_there_is_no_other_way_to_change_memory() -> None:
    """Recovery and conversion write a new file, which no `Memory` has opened."""
    calling = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if CALLS_CHANGING.search(path.read_text("utf-8"))
    }
    assert calling - {"memory/changes.py"} == {
        "exchange/recovery.py",
        "operations/convert_go_store.py",
        "project/transaction.py",
    }
