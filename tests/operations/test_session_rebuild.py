"""Rebuilding past sessions: what it changes, what it leaves alone, and how to undo it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctx import locks
from ctx.capture import reconcile, session_state
from ctx.errors import LockConflict, UsageError
from ctx.ids import NodeId
from ctx.memory.changes import Change
from ctx.memory.graph import USER
from ctx.memory.model import Evidence
from ctx.operations import session_rebuild, undo
from ctx.operations.session_rebuild import RebuildSessionsResult
from ctx.sqlite.connection import transaction
from ctx.synthesis import excerpt_table, project_commands, session_stores, session_writer
from ctx.workspace import Memory
from tests.capture.conversations import Client
from tests.capture.transcripts import Transcript, fix, session_ids
from tests.conftest import Ctx
from tests.operations.test_backfill import run
from tests.synthesis import session_scripts
from tests.synthesis.test_session_writer import DECIDED, FIX, add_steps, count, open_writable

OLD = "The queue is slow"
SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def old_session(memory: Memory, session: str = "s1", script: str = FIX + DECIDED) -> NodeId:
    """A session that an older version synthesised: one observation that nothing supports now."""
    add_steps(memory, script, session)
    end(memory, session)
    evidence = session_scripts.steps(script, session)[0].id
    with memory.transaction("synthesise", USER, author=session_stores.AUTHOR) as change:
        metadata = {
            "key": f"old:{session}",
            "title": OLD,
            "session": session,
            "sessions": [session],
            "evidence": [evidence],
        }
        node = change.add_node("observation", OLD, metadata=metadata)
        for tag in ("kind:discovery", f"session:{session}", str(memory.own_tag)):
            change.tag(node, tag)
    return node


def end(memory: Memory, session: str) -> None:
    with transaction(memory.local):
        memory.local.execute("UPDATE sessions SET status = 'completed' WHERE id = ?", (session,))


def rebuilt(memory: Memory, *texts: str, dry_run: bool = False) -> RebuildSessionsResult:
    return session_rebuild.rebuild(memory, texts, None, dry_run=dry_run)


def live_nodes(memory: Memory) -> dict[NodeId, str]:
    graph = memory.user
    found = [*graph.of_type("observation"), *graph.of_type("summary")]
    return {node_id: graph.node(node_id).content for node_id in found}


def reasons(found: RebuildSessionsResult) -> list[str]:
    return [each.reason for each in found.skipped]


def backups(memory: Memory) -> list[Path]:
    return sorted((Path(memory.environment.graph_file).parent / "backups").glob("*.db"))


def test_sessions_are_rebuilt_in_one_change_and_one_undo_reverts_it(memory: Memory) -> None:
    first = old_session(memory)
    second = old_session(memory, "s2", FIX.replace("auth", "login"))
    before = live_nodes(memory)
    assert set(before) == {first, second}
    found = rebuilt(memory)
    assert [(each.id, each.changed, each.withdrawn) for each in found.sessions] == [
        ("s1", 0, 1),
        ("s2", 0, 1),
    ]
    assert found.withdrawn == 2
    assert found.new == sum(each.new for each in found.sessions) == len(live_nodes(memory))
    assert not {first, second} & set(live_nodes(memory))
    assert {"s1", "s2"} == project_commands.sessions(memory.local)
    assert "s1" in excerpt_table.sessions(memory.local)
    after = live_nodes(memory)

    # Rebuilding again changes nothing, and makes no backup.
    [_] = backups(memory)
    again = rebuilt(memory)
    assert (again.sessions, again.unchanged, again.change, again.backup) == ((), 2, None, None)
    assert live_nodes(memory) == after

    undone = undo.undo_change(memory, None, dry_run=False)
    assert (undone.change.id, undone.change.action) == (found.change, "rebuild")
    assert live_nodes(memory) == before
    # What was undone stays undone.
    assert rebuilt(memory).sessions == ()
    assert session_writer.synthesise(memory, "s1", is_over=True).new == ()
    assert live_nodes(memory) == before


def test_a_dry_run_changes_nothing(memory: Memory) -> None:
    old_session(memory)
    before, records = live_nodes(memory), count(memory)
    planned = rebuilt(memory, dry_run=True)
    assert (planned.dry_run, planned.change, planned.backup) == (True, None, None)
    assert (live_nodes(memory), count(memory), backups(memory)) == (before, records, [])
    assert excerpt_table.sessions(memory.local) == set()
    made = rebuilt(memory)
    assert made.sessions == planned.sessions
    assert [str(each) for each in backups(memory)] == [made.backup]


def edit(change: Change, node: NodeId) -> None:
    change.update_node(node, metadata={"note": "checked"})


def tag(change: Change, node: NodeId) -> None:
    change.tag(node, "confirmed")


def link_from(change: Change, node: NodeId) -> None:
    fact = change.add_node("fact", "One writer")
    change.write()
    change.link(node, fact, "RELATES_TO", Evidence("cli"))


def link_to(change: Change, node: NodeId) -> None:
    fact = change.add_node("fact", "One writer")
    change.write()
    change.link(fact, node, "RELATES_TO", Evidence("cli"))


def outdated(memory: Memory) -> tuple[NodeId, NodeId]:
    """Two nodes of a session: the rules would withdraw the first and update the second."""
    old = old_session(memory)
    written = session_writer.synthesise(memory, "s1", is_over=False).new
    [fix] = [it for it in written if memory.user.node(it).content.startswith("Fixed")]
    with memory.transaction("synthesise", USER, author=session_stores.AUTHOR) as change:
        change.update_node(fix, content="Fixed by the old rules.")
        if not memory.user.has(old):
            change.restore_node(old)
    return old, fix


@pytest.mark.parametrize("touch", [edit, tag, link_from, link_to])
def test_nodes_changed_by_a_person_are_kept(
    memory: Memory, touch: Callable[[Change, NodeId], None]
) -> None:
    old, fix = outdated(memory)
    with memory.transaction("update", USER) as change:
        touch(change, old)
        touch(change, fix)
    before = memory.user.node(old), memory.user.node(fix)
    rebuilt(memory)
    assert (memory.user.node(old), memory.user.node(fix)) == before


def test_a_replaced_node_is_superseded_and_out_of_every_context(memory: Memory) -> None:
    unsupported, fix = outdated(memory)
    found = rebuilt(memory)
    assert (found.changed, found.withdrawn) == (1, 1)
    assert not memory.user.has(unsupported)
    old = memory.user.node(fix)
    assert old.content == "Fixed by the old rules."
    assert "tier:off-context" in old.tags
    assert old.superseded_by is not None
    new = memory.user.node(old.superseded_by)
    assert new.content.startswith("Fixed `test_once`")
    # Everything else about it is the same.
    assert {*old.tags} - {"tier:off-context"} == {*new.tags}
    assert old.metadata == new.metadata
    assert (old.created_at, new.superseded_by) == (new.created_at, None)
    edges = {(each.type, each.to_id) for each in memory.user.edges(new.id, "out")}
    mentioned = {(each.type, each.to_id) for each in memory.user.edges(fix, "out")}
    assert edges == {("SUPERSEDES", fix), *mentioned}
    [summary] = memory.user.of_type("summary")
    assert new.id in {each.to_id for each in memory.user.edges(summary, "out", "DERIVED_FROM")}

    # Neither another rebuild nor the next synthesis makes a third one.
    before = live_nodes(memory)
    assert rebuilt(memory).sessions == ()
    written = session_writer.synthesise(memory, "s1", is_over=True)
    assert (written.new, written.changed, written.withdrawn) == ((), (), ())
    assert live_nodes(memory) == before
    # A node that the user deletes does not come back in its old words.
    with memory.transaction("delete", USER) as change:
        change.delete_node(new.id)
        change.delete_node(summary)
    assert rebuilt(memory).new == 0
    assert not memory.user.has(new.id)
    assert not memory.user.has(summary)
    assert "tier:off-context" in memory.user.node(fix).tags


def test_later_rules_supersede_once_more(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    _, fix = outdated(memory)
    rebuilt(memory)
    second = memory.user.node(fix).superseded_by
    assert second is not None
    with memory.transaction("synthesise", USER, author=session_stores.AUTHOR) as change:
        change.update_node(second, content="Fixed by the second rules.")
    # The same version of the rules updates its own node.
    rebuilt(memory)
    assert memory.user.node(second).superseded_by is None
    assert memory.user.node(second).content.startswith("Fixed `test_once`")

    with memory.transaction("synthesise", USER, author=session_stores.AUTHOR) as change:
        change.update_node(second, content="Fixed by the second rules.")
    monkeypatch.setattr(session_writer, "RULES", session_writer.RULES + 1)
    rebuilt(memory)
    third = memory.user.node(second).superseded_by
    assert third is not None
    assert memory.user.node(third).content.startswith("Fixed `test_once`")
    valid = [it for it in memory.user.of_type("observation") if is_valid_fix(memory, it)]
    assert valid == [third]


def is_valid_fix(memory: Memory, node_id: NodeId) -> bool:
    node = memory.user.node(node_id)
    return node.superseded_by is None and node.content.startswith("Fixed")


def test_a_new_node_about_the_same_steps_supersedes_the_one_it_replaces(memory: Memory) -> None:
    add_steps(memory, FIX)
    end(memory, "s1")
    evidence = [each.id for each in session_scripts.steps(FIX, "s1")]
    with memory.transaction("synthesise", USER, author=session_stores.AUTHOR) as change:
        told = {"key": "fix:by-another-name", "session": "s1", "evidence": evidence[1:2]}
        fix = change.add_node("observation", "Fixed it.", metadata=told)
        for tag in ("kind:bugfix", "session:s1", str(memory.own_tag)):
            change.tag(fix, tag)
    found = rebuilt(memory)
    assert (found.new, found.withdrawn) == (2, 1)
    newer = memory.user.node(fix).superseded_by
    assert newer is not None
    assert memory.user.node(newer).metadata["key"] != "fix:by-another-name"
    undo.undo_change(memory, found.change, dry_run=False)
    assert memory.user.node(fix).superseded_by is None
    assert not memory.user.has(newer)


def test_an_observation_of_another_session_that_a_person_edited_is_not_counted(
    memory: Memory,
) -> None:
    old_session(memory)
    rebuilt(memory)
    [fix] = [each for each, text in live_nodes(memory).items() if text.startswith("Fixed")]
    with memory.transaction("update", USER) as change:
        edit(change, fix)
    old_session(memory, "s2", FIX)
    rebuilt(memory, "s2")
    assert memory.user.node(fix).metadata["times_seen"] == 1
    assert sum(text.startswith("Fixed") for text in live_nodes(memory).values()) == 1


def test_only_complete_and_ended_sessions_are_rebuilt(memory: Memory) -> None:
    old_session(memory)
    old_session(memory, "s2")
    old_session(memory, "s3")
    old_session(memory, "s4")
    rebuilt(memory, "s4")
    with transaction(memory.local):
        execute = memory.local.execute
        execute("UPDATE sessions SET status = 'active' WHERE id = 's1'")
        execute("DELETE FROM events WHERE session = 's2'")
        first = "SELECT min(id) FROM events WHERE session IN ('s3', 's4') GROUP BY session"
        execute(f"DELETE FROM events WHERE id IN ({first})")
        # Then only its summary shows that there was an earlier step.
        execute("UPDATE sessions SET started_at = '2027' WHERE id = 's4'")
    before = live_nodes(memory)
    found = rebuilt(memory)
    assert {each.id: each.reason for each in found.skipped} == {
        "s1": "it is active",
        "s2": "no steps are stored",
        "s3": "its first steps have expired",
        "s4": "its first steps have expired",
    }
    assert (found.sessions, live_nodes(memory)) == ((), before)


def share(surroundings: Path, value: str) -> None:
    (surroundings / ".ctx" / "config.toml").write_text(f'[share]\nsessions = "{value}"\n')


@pytest.mark.parametrize("value", ["all", "summary"])
def test_shared_sessions_are_not_rebuilt(
    surroundings: Path, repo: Path, ctx: Ctx, value: str
) -> None:
    ctx("init")
    ctx("trust", "--yes")
    with open_writable(surroundings, repo) as memory:
        assert memory.project_memory is not None
        old_session(memory)
        share(surroundings, value)
        assert reasons(rebuilt(memory)) == ["it is shared through git (share.sessions)"]
        session_writer.synthesise(memory, "s1", is_over=True)
        assert len(list(memory.project_memory.graph.of_type("summary"))) == 1
        share(surroundings, "none")
        before = live_nodes(memory)
        assert reasons(rebuilt(memory)) == ["some of its nodes are in the project store"]
        assert live_nodes(memory) == before


def test_a_running_round_is_a_lock_conflict(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_rebuild, "_LOCK_S", 0)
    home = memory.environment.user_store.home
    with locks.try_hold(f"{home}/tend.lock", 0), pytest.raises(LockConflict):
        rebuilt(memory)


def test_an_unknown_session_is_an_error(memory: Memory) -> None:
    with pytest.raises(UsageError):
        rebuilt(memory, "s")


@pytest.mark.parametrize("failing", ["set_transcript_position", "reconcile", "end"])
def test_an_error_while_a_transcript_is_read_again_leaves_the_session_as_it_was(
    client: Client, surroundings: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    transcript = Transcript(surroundings / ".claude" / "p", next(session_ids()), str(client.folder))
    fix(transcript)
    with client.memory() as memory:
        run(memory, surroundings / ".claude", paths=(str(transcript.path),))
        before = session_state.get(memory.local, transcript.session)
        module = reconcile if failing == "reconcile" else session_state

        def activate(*_: object) -> int:
            """Missing events make a session active."""
            memory.local.execute("UPDATE sessions SET status = 'active', ended_at = NULL")
            return 0

        monkeypatch.setattr(reconcile, "reconcile", activate)
        original = getattr(module, failing)

        def fail(*given: Any) -> None:
            original(*given)
            raise RuntimeError

        monkeypatch.setattr(module, failing, fail)
        with pytest.raises(RuntimeError):
            rebuilt(memory)
        now = session_state.get(memory.local, transcript.session)
        match failing:
            case "set_transcript_position":
                assert now == before
            case "reconcile":
                assert (now.status, now.ended_at) == (before.status, before.ended_at)
            case "end":
                assert (now.status, now.ended_at) == ("active", None)


def test_a_secret_in_a_step_is_no_reason_to_make_its_node_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that the rules of an older version did not find."""
    add_steps(memory, FIX.replace("assert 2 == 1", f"token={SECRET}"))
    end(memory, "s1")
    rebuilt(memory)
    assert SECRET not in str(live_nodes(memory))
    assert "[redacted:" in str(live_nodes(memory))
    monkeypatch.setattr(session_writer, "RULES", session_writer.RULES + 1)
    assert rebuilt(memory).sessions == ()
