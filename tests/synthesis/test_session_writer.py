"""The nodes that a session leaves in memory, however often it is synthesised."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctx.capture import steps as taken
from ctx.capture.steps import Step
from ctx.ids import CLI_SESSION, NodeId
from ctx.layout import UserStore
from ctx.memory.graph import PROJECT, USER
from ctx.operations import context, sessions, update
from ctx.sqlite.connection import transaction
from ctx.synthesis import project_commands
from ctx.synthesis.session_writer import SessionWriteResult, synthesise
from ctx.workspace import Environment, Memory, open_memory
from tests.conftest import Ctx
from tests.synthesis import session_scripts

GOLDEN = Path(__file__).parent.parent / "golden" / "synthesis"
FIX = """
prompt: Fix the failing test in tests/test_auth.py
run: pytest tests/test_auth.py
  failed 1
  finding: src/auth.py:42 | AssertionError | assert 2 == 1 | tests/test_auth.py::test_once
read: src/auth.py
write: src/auth.py +6 -3
  modified method Session.refresh (self) -> Token
run: pytest tests/test_auth.py
  passed
"""
BROKEN_AGAIN = """
write: src/auth.py +1 -1
  modified method Session.refresh (self) -> Token
run: pytest tests/test_auth.py
  failed 1
  finding: src/auth.py:42 | AssertionError | assert 2 == 1 | tests/test_auth.py::test_once
say: It fails again.
"""
DECIDED = """
prompt: Use SQLite for the job queue instead of files because there is one writer.
read: src/queue.py
say: OK, I looked at `src/queue.py`.
"""


@contextmanager
def open_writable(home: Path, folder: Path) -> Iterator[Memory]:
    surroundings = Environment(str(folder), UserStore(str(home / ".ctx")), {}, (), CLI_SESSION)
    with open_memory(surroundings, writing=True) as memory:
        yield memory


def add_steps(memory: Memory, script: str, session: str = "s1") -> None:
    """Store the steps of a session, as capture does."""
    with transaction(memory.local):
        at = "2026-11-15T00:00:00Z"
        memory.local.execute(
            "INSERT OR IGNORE INTO sessions (id, project, folder, started_at, last_at)"
            " VALUES (?, ?, ?, ?, ?)",
            (session, memory.project, memory.folder, at, at),
        )
        for step in session_scripts.steps(script, session):
            keep(memory, step, session)


def keep(memory: Memory, step: Step, session: str) -> None:
    """Store steps inside a transaction; existing steps are kept."""
    memory.local.execute(
        "INSERT OR IGNORE INTO events (id, session, event, at, tool, status, body)"
        " VALUES (?, ?, 'x', ?, ?, ?, ?)",
        (step.id, session, step.at, step.tool, taken.STEP, taken.body(step)),
    )


def write_session(
    memory: Memory, session: str = "s1", *, is_over: bool = False
) -> SessionWriteResult:
    return synthesise(memory, session, is_over=is_over)


def nodes(memory: Memory, scope: str = USER) -> list[tuple[str, str, list[str]]]:
    graph = memory.only(scope).graph
    found = []
    for node_id in [*graph.graphs[0].of_type("observation"), *graph.graphs[0].of_type("summary")]:
        node = graph.node(node_id)
        found.append((node.type, str(node.metadata["title"]), sorted(node.tags)))
    return found


def metadata(memory: Memory, node_id: NodeId) -> dict[str, Any]:
    return dict(memory.graph.node(node_id).metadata)


def count(memory: Memory) -> int:
    row = memory.user.connection.execute("SELECT count(*) FROM records").fetchone()
    return int(row[0])


def test_a_fix_is_written_at_once_and_the_summary_at_the_end(memory: Memory) -> None:
    add_steps(memory, FIX)
    first = write_session(memory)
    assert (len(first.new), first.summary) == (1, None)
    node = memory.graph.node(first.new[0])
    assert node.content == (
        'Fixed `test_once` in src/auth.py: "AssertionError: assert 2 == 1"\n\n'
        '`pytest tests/test_auth.py` failed at src/auth.py:42: "AssertionError: assert 2 == 1".'
        " Modified `Session.refresh` in src/auth.py. `pytest tests/test_auth.py` passed afterwards."
    )
    assert node.metadata["files"] == ["src/auth.py"]
    assert node.metadata["symbols"] == ["Session.refresh"]
    assert node.metadata["times_seen"] == 1
    assert len(node.metadata["evidence"]) == 3
    assert node.created_at == "2026-11-15T00:04:00.000Z"
    [edge] = memory.graph.edges(node.id)
    assert (edge.type, memory.graph.node(edge.to_id).content) == ("MENTIONS", "src/auth.py")

    last = write_session(memory, is_over=True)
    assert last.new == (last.summary,)
    assert last.summary is not None
    summary = memory.graph.node(last.summary)
    assert summary.content.startswith("**Request:** Fix the failing test in tests/test_auth.py.\n")
    assert summary.metadata["files_edited"] == ["src/auth.py"]
    project = f"project:{memory.project}"
    assert nodes(memory) == [
        (
            "observation",
            'Fixed `test_once` in src/auth.py: "AssertionError: assert 2 == 1"',
            ["kind:bugfix", project, "session:s1"],
        ),
        ("summary", "Fix the failing test in tests/test_auth.py", [project, "session:s1"]),
    ]
    row = memory.local.execute("SELECT summary, synthesised FROM sessions").fetchone()
    assert row == (last.summary, session_scripts.steps(FIX)[-1].id)


def test_synthesising_again_changes_nothing(memory: Memory) -> None:
    add_steps(memory, FIX + DECIDED)
    write_session(memory, is_over=True)
    before = count(memory)
    assert write_session(memory, is_over=True)[1:5] == ((), (), (), ())
    assert write_session(memory)[1:5] == ((), (), (), ())
    assert count(memory) == before


def test_the_commands_of_a_session_are_replaced_by_those_of_its_steps(memory: Memory) -> None:
    connection = memory.local
    add_steps(memory, FIX)
    synthesise(memory, "s1", is_over=False)
    before = project_commands.of_session(connection, "s1")
    assert [(each.command, each.purpose, each.runs, each.last) for each in before] == [
        ("pytest tests/test_auth.py", "test", 2, "passed")
    ]
    changes = connection.total_changes
    synthesise(memory, "s1", is_over=False)
    assert project_commands.of_session(connection, "s1") == before
    assert connection.total_changes - changes <= 1
    add_steps(memory, FIX + BROKEN_AGAIN)
    synthesise(memory, "s1", is_over=True)
    after = project_commands.of_session(connection, "s1")
    assert [(each.runs, each.passes, each.failures, each.last) for each in after] == [
        (3, 1, 2, "failed")
    ]
    with transaction(connection):
        project_commands.forget_session(connection, "s1")
    assert project_commands.of_session(connection, "s1") == []


def test_a_fix_that_broke_again_is_withdrawn_and_can_return(memory: Memory) -> None:
    add_steps(memory, FIX)
    [fix] = write_session(memory).new
    add_steps(memory, FIX + BROKEN_AGAIN)
    assert write_session(memory, is_over=True).withdrawn == (fix,)
    again = FIX.partition("run: pytest")[2].rpartition("write")[2]
    add_steps(memory, FIX + BROKEN_AGAIN + "write" + again)
    written = write_session(memory, is_over=True)
    assert fix in written.new
    assert memory.graph.node(fix).metadata["title"].startswith("Fixed `test_once`")


def test_edits_and_deletions_by_a_person_are_kept(memory: Memory) -> None:
    add_steps(memory, FIX + DECIDED)
    written = write_session(memory, is_over=True)
    assert written.summary is not None
    fix, decision = written.new[:2]
    with memory.transaction("update", USER) as change:
        change.update_node(written.summary, content="My own words.")
        change.delete_node(decision)
        change.delete_node(fix)
    add_steps(memory, FIX + DECIDED + "prompt: Also write a test for the queue\nread: src/b.py\n")
    assert write_session(memory, is_over=True)[1:5] == ((), (), (), ())
    assert memory.graph.node(written.summary).content == "My own words."


def test_a_summary_leaves_out_deleted_observations(memory: Memory) -> None:
    add_steps(memory, FIX + DECIDED)
    written = write_session(memory, is_over=True)
    assert written.summary is not None
    before = metadata(memory, written.summary)
    assert (len(before["completed"]), len(before["notes"])) == (1, 2)
    with memory.transaction("delete", USER) as change:
        for node_id in written.new[:2]:
            change.delete_node(node_id)
    add_steps(memory, FIX + DECIDED + "read: src/b.py\n")
    write_session(memory, is_over=True)
    after = metadata(memory, written.summary)
    assert (after["completed"], after["notes"]) == (
        [],
        ["Checked with `pytest tests/test_auth.py`"],
    )


def test_text_edited_by_a_person_is_shown_everywhere(memory: Memory) -> None:
    add_steps(memory, FIX + DECIDED)
    written = write_session(memory, is_over=True)
    assert written.summary is not None
    decision = written.new[1]
    for node_id, words in ((written.summary, "My own words."), (decision, "Files it is.")):
        update.update(memory, node_id, update.Options(content=words))
    shown = sessions.show(memory, "s1")
    assert shown.summary == {"notes": ["My own words."]}
    assert "Files it is." in [each.title for each in shown.observations]
    given = context.context(memory).text
    assert "My own words." in given
    assert "Files it is." in given
    assert "SQLite" not in given


def test_the_same_observation_in_two_sessions_is_one_node(memory: Memory) -> None:
    add_steps(memory, DECIDED)
    [decision, _] = write_session(memory, is_over=True).new
    add_steps(memory, DECIDED.replace("for the job queue", "for job queues"), "s2")
    second = write_session(memory, "s2", is_over=True)
    assert (len(second.new), second.seen_again) == (1, (decision,))
    seen = metadata(memory, decision)
    assert (seen["times_seen"], seen["sessions"]) == (2, ["s1", "s2"])
    assert len(seen["evidence"]) == 2
    before = count(memory)
    write_session(memory, "s2", is_over=True)
    write_session(memory, is_over=True)
    assert count(memory) == before


def test_a_stated_decision_is_not_repeated(memory: Memory) -> None:
    with memory.transaction("add", USER) as change:
        node_id = change.add_node(
            "decision", "Use SQLite for the job queue instead of files because there is one writer"
        )
        change.tag(node_id, f"project:{memory.project}")
    add_steps(memory, DECIDED)
    assert [kind for kind, *_ in nodes(memory)] == []
    write_session(memory, is_over=True)
    assert [kind for kind, *_ in nodes(memory)] == ["summary"]


def test_statements_from_memory_are_not_new_observations(memory: Memory) -> None:
    with memory.transaction("add", USER) as change:
        node_id = change.add_node("decision", "We decided to use ZorpDB because it is fast.")
        change.tag(node_id, f"project:{memory.project}")
    add_steps(
        memory,
        """
prompt: Which database do we use here?
read: src/store.py
say: According to the memory, we decided to use ZorpDB because it is fast.
say: From memory: - [decision:01ABC] We decided to use ZorpDB because it is fast.
say: We decided to keep reports in plain files because people read them.
""",
    )
    write_session(memory, is_over=True)
    titles = [title for kind, title, _ in nodes(memory) if kind == "observation"]
    assert len(titles) == 1
    assert "plain files" in titles[0]


def test_a_decision_supersedes_one_that_it_contradicts(memory: Memory) -> None:
    add_steps(memory, DECIDED)
    [first, _] = write_session(memory, is_over=True).new
    later = "prompt: x\n" * 5 + "prompt: Let's use Redis instead of SQLite for the job queue.\n"
    add_steps(memory, later + "read: src/queue.py\n", "s2")
    [second, _] = write_session(memory, "s2", is_over=True).new
    assert memory.graph.node(first).superseded_by == second
    assert memory.graph.node(second).superseded_by is None


def test_a_long_sentence_is_not_repeated_in_the_text(memory: Memory) -> None:
    rule = (
        "From now on tokens are only refreshed in `Session.get`, never by any of its callers,"
        " because the bank locks accounts after ten tokens a minute."
    )
    add_steps(memory, f"prompt: Look at auth.\nread: a.py\nsay: OK.\nprompt: {rule}\nsay: OK.\n")
    [node, _] = write_session(memory, is_over=True).new
    assert memory.graph.node(node).content == f"T{rule[13:]} Said by the user."


def test_the_summary_keeps_work_whose_events_were_removed(memory: Memory) -> None:
    add_steps(memory, FIX)
    written = write_session(memory, is_over=True)
    assert written.summary is not None
    add_steps(memory, FIX + "prompt: Now add a changelog entry\nwrite: CHANGELOG.md +1 -0\n")
    with transaction(memory.local):
        memory.local.execute(
            "DELETE FROM events WHERE id <= ?", (session_scripts.steps(FIX)[-1].id,)
        )
    again = write_session(memory, is_over=True)
    assert (again.summary, again.withdrawn) == (written.summary, ())
    summary = memory.graph.node(written.summary).metadata
    assert summary["request"] == "Fix the failing test in tests/test_auth.py."
    assert summary["files_edited"] == ["src/auth.py", "CHANGELOG.md"]
    assert len(summary["completed"]) == 1
    before = count(memory)
    write_session(memory, is_over=True)
    assert count(memory) == before


@pytest.mark.parametrize("shared", ["none", "summary", "all"])
def test_shared_nodes_are_written_to_the_project(
    ctx: Ctx, surroundings: Path, repo: Path, shared: str
) -> None:
    ctx("init")
    ctx("trust", "--yes")
    home = surroundings / ".ctx"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(f'[share]\nsessions = "{shared}"\n')
    with open_writable(surroundings, repo) as memory:
        assert memory.withheld is None
        add_steps(memory, FIX)
        write_session(memory, is_over=True)
        write_session(memory, is_over=True)
        theirs = [kind for kind, *_ in nodes(memory, PROJECT)]
        mine = [kind for kind, *_ in nodes(memory, USER)]
    everything = ["observation", "summary"]
    assert (mine, theirs) == {
        "none": (everything, []),
        "summary": (["observation"], ["summary"]),
        "all": ([], everything),
    }[shared]


def test_secrets_are_redacted(memory: Memory) -> None:
    key = "AKIA" + "Q3EGRIY7LBTZ2WXN"
    add_steps(memory, f"prompt: From now on, always use the key {key} for uploads.\nread: a.py\n")
    write_session(memory, is_over=True)
    body = memory.user.connection.execute("SELECT group_concat(body) FROM records").fetchone()[0]
    assert "for uploads" in body
    assert key not in body


def test_an_unknown_session_gives_an_empty_result(memory: Memory) -> None:
    assert write_session(memory, "nobody") == SessionWriteResult("nobody", (), (), (), (), None)
    add_steps(memory, "", "empty")
    assert write_session(memory, "empty", is_over=True) == SessionWriteResult(
        "empty", (), (), (), (), None
    )


@pytest.mark.parametrize("gone", ["/nowhere/at/all", ""])
def test_a_session_in_a_removed_folder_is_synthesised(memory: Memory, gone: str) -> None:
    add_steps(memory, FIX)
    with transaction(memory.user.connection):
        memory.local.execute("UPDATE sessions SET folder = ?, project = 'a b,c'", (gone,))
    assert len(write_session(memory, is_over=True).new) == 2
    tags = memory.user.connection.execute("SELECT json_group_array(tag) FROM tags").fetchone()[0]
    assert not any(tag.startswith("project:") for tag in json.loads(tags))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["again_broken", "long_day", "talk"])
def test_synthesis_after_every_step_gives_the_same_result_as_once_at_the_end(
    surroundings: Path, repo: Path, tmp_path: Path, name: str
) -> None:
    script = (GOLDEN / f"{name}.txt").read_text()
    found = []
    for home, is_often in ((surroundings, True), (tmp_path / "other", False)):
        (home / ".ctx").mkdir(parents=True, exist_ok=True)
        with open_writable(home, repo) as memory:
            add_steps(memory, "", "s1")
            for step in session_scripts.steps(script):
                with transaction(memory.local):
                    keep(memory, step, "s1")
                if is_often:
                    write_session(memory)
            write_session(memory, is_over=True)
            graph = memory.user
            node_ids = [*graph.of_type("observation"), *graph.of_type("summary")]
            found.append(
                {
                    node.id: (node.content, sorted(node.tags), node.metadata)
                    for node in graph.nodes(node_ids)
                }
            )
    assert found[0] == found[1]
    assert found[0]


# What a summary rests on


def derived_from(memory: Memory, node_id: NodeId) -> list[str]:
    edges = memory.user.edges(node_id, "out", "DERIVED_FROM")
    return [memory.user.node(edge.to_id).content.partition("\n")[0] for edge in edges]


def test_a_summary_is_derived_from_the_observations(memory: Memory) -> None:
    add_steps(memory, FIX + DECIDED)
    written = synthesise(memory, "s1", is_over=True)
    assert written.summary is not None
    observations = [each for each in written.new if each != written.summary]
    edges = memory.user.edges(written.summary, "out", "DERIVED_FROM")
    assert len(observations) >= 2
    assert {edge.to_id for edge in edges} == set(observations)
    last = memory.user.connection.execute("SELECT max(rowid) FROM records").fetchone()
    synthesise(memory, "s1", is_over=True)
    now = memory.user.connection.execute("SELECT max(rowid) FROM records").fetchone()
    assert now == last, "nothing is written twice"


def test_withdrawing_an_observation_removes_its_edge(memory: Memory) -> None:
    add_steps(memory, FIX)
    first = synthesise(memory, "s1", is_over=True)
    assert first.summary is not None
    assert len(derived_from(memory, first.summary)) == 1
    add_steps(memory, FIX + BROKEN_AGAIN)
    synthesise(memory, "s1", is_over=True)
    assert derived_from(memory, first.summary) == []


def test_a_summary_is_derived_from_an_observation_of_another_session(memory: Memory) -> None:
    add_steps(memory, DECIDED)
    decision, _ = synthesise(memory, "s1", is_over=False).new
    add_steps(memory, DECIDED, "s2")
    again = synthesise(memory, "s2", is_over=True)
    assert again.seen_again == (decision,)
    assert again.summary is not None
    assert [edge.to_id for edge in memory.user.edges(again.summary, "out", "DERIVED_FROM")] == [
        decision
    ]
