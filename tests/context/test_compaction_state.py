"""The state of a session when its conversation was compacted."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.capture.steps import StepFinding, SymbolChange
from ctx.context import compaction_state, layers
from ctx.context.layers import CompactionState, ContextRequest
from ctx.memory.graph import Graph
from tests import effort
from tests.memory import graphs
from tests.packs.session_store import node, step

TESTS = "pytest -q"
FAILS = StepFinding("tests/test_auth.py", 12, "AssertionError", "2 != 1", "test_refresh")


def edit(graph: Graph, path: str, name: str, session: str = "s") -> None:
    changed = SymbolChange("modified", "function", name, f"def {name}()", 1)
    step(graph, session, "write", path=path, changes=(changed,))


def run(graph: Graph, command: str, *, ok: bool, session: str = "s") -> None:
    findings = () if ok else (FAILS,)
    step(graph, session, "command", text=command, ok=ok, findings=findings)


def test_edited_files_failures_and_failed_attempts_are_listed() -> None:
    with graphs.graph() as graph:
        step(graph, "s", "prompt", text="Fix the refresh")
        run(graph, "ruff check", ok=False)
        run(graph, TESTS, ok=False)
        edit(graph, "src/lock.py", "acquire")
        run(graph, TESTS, ok=False)
        edit(graph, "src/auth.py", "refresh")
        edit(graph, "src/auth.py", "login")
        run(graph, TESTS, ok=False)
        run(graph, "ruff check", ok=True)
        edit(graph, "src/auth.py", "Session.refresh", session="another")
        edit(graph, "src/token.py", "expire")
        step(graph, "s", "write", path="a.py", agent="helper")
        assert compaction_state.lines(graph.connection, "s") == [
            "- In work: src/token.py, src/auth.py, src/lock.py",
            '- Still failing: `pytest -q` ("test_refresh: AssertionError: 2 != 1")',
            "- Tried, and it still failed: src/auth.py (`refresh`, `login`), then `pytest -q`",
            "- Tried, and it still failed: src/lock.py (`acquire`), then `pytest -q`",
        ]
        run(graph, TESTS, ok=True)
        assert compaction_state.lines(graph.connection, "s") == [
            "- In work: src/token.py, src/auth.py, src/lock.py"
        ]
        # An error code is not repeated before the message.
        finding = StepFinding("a.py", 1, "KeyError", "KeyError: 'x'", "test_a")
        step(graph, "s", "command", text=TESTS, ok=False, findings=(finding,))
        told = "- Still failing: `pytest -q` (\"test_a: KeyError: 'x'\")"
        assert compaction_state.lines(graph.connection, "s")[1:] == [told]
        assert compaction_state.lines(graph.connection, "nobody") == []
        graph.connection.execute("DROP TABLE events")
        assert compaction_state.lines(graph.connection, "s") == []


def test_the_state_is_above_the_working_nodes() -> None:
    with graphs.graph() as graph:
        node(graph, "observation", "Half done", ["tier:working"])
        edit(graph, "src/auth.py", "refresh")
        state = layers.state([graph.connection], None, None, "s")
        where = CompactionState(state, compaction_state.lines(graph.connection, "s"))
        made = layers.context([graph.connection], ContextRequest(None, None, 2_000), where)
        body = made.text.partition(f"{layers.PREFACE}\n\n")[2]
        label = f"observation:{state[0][:12]}"
        assert body == (
            f"## Where you were\n\n- In work: src/auth.py\n- [{label}] Half done\n\n"
            "<!-- ctx:end -->\n"
        )
        alone = layers.context(
            [graph.connection], ContextRequest("x", None, 2_000), CompactionState((), where.lines)
        )
        assert "\n## Where you were\n\n- In work: src/auth.py\n\n## Working" in alone.text


def test_the_state_fits_into_the_budget() -> None:
    with graphs.graph() as graph:
        for number in range(50):
            node(graph, "observation", f"Node {number}", ["tier:working"])
        lines = [f"- Still failing: `{'x' * 90}{number}`" for number in range(9)]
        state = layers.state([graph.connection], None, None, "s")
        for budget in (100, 300, 2_000):
            wanted = ContextRequest(None, None, budget)
            made = layers.context([graph.connection], wanted, CompactionState(state, lines))
            assert made.tokens <= budget
            assert ("Still failing" in made.text) is (budget > 300)


FIELDS = ("text", "path", "ok", "findings", "changes", "exit_code", "agent")
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=20)),
    lambda inner: st.lists(inner, max_size=6),
    max_leaves=12,
)


def test_file_and_summary_nodes_are_not_part_of_the_state() -> None:
    with graphs.graph() as graph:
        for node_type in ("file", "summary"):
            node(graph, node_type, "src/auth.py", ["tier:working"])
        assert layers.state([graph.connection], None, None, "s") == []


@settings(max_examples=effort.times(15), deadline=None, derandomize=True)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"kind": st.sampled_from(["write", "command", "say"])},
            optional=dict.fromkeys(FIELDS, ANYTHING),
        ),
        max_size=20,
    )
)
def test_steps_of_any_shape_give_lines(bodies: list[dict[str, object]]) -> None:
    with graphs.graph() as graph:
        for number, body in enumerate(bodies):
            graph.connection.execute(
                "INSERT INTO events (id, session, event, at, status, body)"
                " VALUES (?, 's', 'PostToolUse', '', 'step', ?)",
                (f"{number:013}", json.dumps(body)),
            )
        for line in compaction_state.lines(graph.connection, "s"):
            assert line.startswith("- ")
            assert len(line.splitlines()) == 1
        made = layers.context(
            [graph.connection],
            ContextRequest(None, None, 2_000),
            CompactionState((), compaction_state.lines(graph.connection, "s")),
        )
        assert made.tokens <= 2_000
