"""Three questions at the end of the walk-through of the specification.

The code is as it is then, and memory has what its commands leave there.
"""

from collections.abc import Iterator

import pytest

from ctx.ids import anchor_id
from ctx.memory.changes import changing
from ctx.memory.model import Evidence
from ctx.packs.prompt_pack import PromptPack
from tests.e2e.test_walkthrough import (
    AGAIN,
    BACKOFF,
    CLIENT,
    DECISION,
    FAILED,
    FILES,
    LIB,
    MODULE,
    OBJECTIVE,
    ONCE,
    RETRY,
    RETRY_MODULE,
    TITLE,
    WHY,
)
from tests.memory.graphs import WHO
from tests.packs.packs import Packing, packing

HEAD, REST = FILES[CLIENT].split("\n", 1)
CODE = {
    **FILES,
    CLIENT: f"{HEAD}\nuse crate::retry::Backoff;\n{REST.replace(ONCE, AGAIN)}",
    RETRY: BACKOFF,
    LIB: "pub mod net;\npub mod retry;\n",
}
CONNECT = f"{MODULE}::Client::connect"
ERROR = f"rustc E0432: unresolved import `crate::retry` @ {CLIENT}"


@pytest.fixture(scope="module")
def walkthrough(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packing]:
    with packing(tmp_path_factory.mktemp("walk") / "app", CODE) as made:
        made.add("task", f"{TITLE}\n{OBJECTIVE}", {CLIENT: "file", RETRY: "file", CONNECT: "item"})
        made.add(
            "decision", f"{DECISION}\n{WHY}", {f"{RETRY_MODULE}::Backoff": "item", CONNECT: "item"}
        )
        with changing(made.memory, "add", WHO) as change:
            error = anchor_id("diagnostic", ERROR)
            change.add_node("diagnostic", ERROR, metadata={"name": ERROR}, node_id=error)
            change.link(error, anchor_id("file", CLIENT), "REFERENCES", Evidence("rustc"))
            said = f"cargo test failed: 1 error (E0432 {CLIENT}:2), 8 lines of output\n{FAILED}"
            failed = change.add_node("observation", said)
            change.link(failed, error, "MENTIONS", Evidence("cli"))
        yield made


def titles(pack: PromptPack) -> list[str]:
    return [chunk.title for chunk in pack.retrieved]


def text_of(pack: PromptPack, path: str) -> str:
    return "\n".join(chunk.snippet for chunk in pack.retrieved if chunk.path == path)


@pytest.mark.parametrize("budget", [2_000, 8_000, 16_000])
def test_what_retry_strategy_do_we_use(walkthrough: Packing, budget: int) -> None:
    pack = walkthrough.build("retry strategy", budget=budget)
    assert titles(pack)[0] == f"Decision: {DECISION}"
    assert "pub struct Backoff" in text_of(pack, RETRY)
    assert "backoff.next_delay()" in text_of(pack, CLIENT)


@pytest.mark.parametrize("budget", [2_000, 8_000, 16_000])
def test_why_did_the_tests_fail(walkthrough: Packing, budget: int) -> None:
    pack = walkthrough.build("test failure retry", budget=budget)
    [diagnostic] = [each for each in pack.retrieved if each.chunk_kind == "DiagnosticOutput"]
    assert diagnostic.title == f"Diagnostic: {ERROR}"
    assert any("could not find `retry`" in chunk.snippet for chunk in pack.retrieved)
    assert "pub mod retry;" in text_of(pack, LIB)


@pytest.mark.parametrize("budget", [2_000, 8_000, 16_000])
def test_what_files_are_involved_in_connection_handling(walkthrough: Packing, budget: int) -> None:
    pack = walkthrough.build("connection handling", budget=budget)
    found = titles(pack)
    assert found[0] == f"File: {CLIENT}"
    assert {f"File: {RETRY}", f"Decision: {DECISION}", f"Task: {TITLE}"} <= set(found)
    context = pack.graph_context
    assert CONNECT in (*context.seed_nodes, *context.expanded_nodes)
    assert f"{RETRY_MODULE}::Backoff::new" in (*context.seed_nodes, *context.expanded_nodes)
    assert context.scc_dag_used
