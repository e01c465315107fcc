"""The state of the code that a node is about, in real repositories."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx import clock
from ctx.codebase import anchor_check
from ctx.ids import CLI_SESSION, NodeId
from ctx.layout import UserStore
from ctx.memory import code_anchors
from ctx.memory.code_anchors import AnchorState
from ctx.memory.graph import USER
from ctx.sqlite.connection import transaction
from ctx.workspace import Environment, Memory, open_memory
from tests.conftest import Ctx, git

AUTH = "class Session:\n    def refresh(self):\n        return 1\n"
HOUR_S = 3_600


@pytest.fixture
def memory(surroundings: Path, repo: Path) -> Iterator[Memory]:
    (repo / "src").mkdir()
    write(repo, "src/auth.py", AUTH)
    write(repo, "src/other.py", "def other():\n    return 2\n")
    commit("First", hours=-10)
    for name in ("auth.py", "other.py"):
        touch(repo, f"src/{name}", hours=-10)
    environment = Environment(str(repo), UserStore(str(surroundings / ".ctx")), {}, (), CLI_SESSION)
    with open_memory(environment, writing=True) as memory:
        yield memory


def write(repo: Path, path: str, text: str) -> None:
    (repo / path).write_text(text)


def touch(repo: Path, path: str, hours: float) -> None:
    at = clock.wall_s() + hours * HOUR_S
    os.utime(repo / path, (at, at))


def commit(message: str, hours: float) -> None:
    at = f"{int(clock.wall_s() + hours * HOUR_S)} +0000"
    os.environ |= {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    try:
        git("add", "-A")
        git("commit", "-qm", message)
    finally:
        del os.environ["GIT_AUTHOR_DATE"], os.environ["GIT_COMMITTER_DATE"]


def add_observation(
    memory: Memory, *symbols: str, files: tuple[str, ...] = ("src/auth.py",)
) -> NodeId:
    """Add an observation that is five hours old."""
    at = clock.iso(clock.now_ms() - 5 * HOUR_S * 1000)
    about = {"files": list(files), "symbols": list(symbols), "source": "agent"}
    with memory.transaction("synthesise", USER) as change:
        text = "Fixed the refresh of tokens in the session."
        node_id = change.add_node("observation", text, metadata=about, times=(at, at))
        change.tag(node_id, "kind:bugfix")
        change.tag(node_id, str(memory.own_tag))
    return node_id


def states(memory: Memory, node_id: NodeId) -> tuple[AnchorState, ...]:
    return anchor_check.check(memory, [memory.graph.node(node_id)]).get(node_id, ())


def test_code_without_a_change_is_unchanged(memory: Memory, repo: Path) -> None:
    node_id = add_observation(memory, "Session.refresh")
    found = states(memory, node_id)
    assert found == (
        AnchorState("file", "src/auth.py", "unchanged"),
        AnchorState("item", "Session.refresh", "unchanged"),
    )
    assert code_anchors.describe(found) == ""
    # A checkout is not a change. Git stores times of whole seconds at least, and looks at the
    # content if they differ.
    touch(repo, "src/auth.py", hours=-1)
    assert [each.state for each in states(memory, node_id)] == ["unchanged", "unchanged"]


def test_committing_the_observed_edit_is_not_a_change(memory: Memory, repo: Path) -> None:
    write(repo, "src/auth.py", AUTH.replace("1", "2"))
    touch(repo, "src/auth.py", hours=-5.1)
    commit("What was observed", hours=-1)
    assert [each.state for each in states(memory, add_observation(memory))] == ["unchanged"]


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_later_edit_is_a_change(memory: Memory, repo: Path, is_committed: bool) -> None:
    node_id = add_observation(memory, "Session.refresh")
    write(repo, "src/auth.py", AUTH.replace("1", "2"))
    if is_committed:
        commit("Later", hours=-1)
    found = states(memory, node_id)
    assert [each.state for each in found] == ["changed", "changed"]
    assert code_anchors.describe(found) == "src/auth.py changed since"


def test_a_file_renamed_by_a_commit_is_moved(memory: Memory, repo: Path) -> None:
    node_id = add_observation(memory)
    git("mv", "src/auth.py", "src/session_tokens.py")
    commit("Move it", hours=-1)
    found = states(memory, node_id)
    assert found == (AnchorState("file", "src/auth.py", "moved", "src/session_tokens.py"),)
    assert code_anchors.describe(found) == "src/auth.py moved to src/session_tokens.py"
    assert not code_anchors.is_gone(found)


def test_a_file_renamed_without_a_commit_is_moved(memory: Memory, repo: Path) -> None:
    node_id = add_observation(memory, "Session.refresh")
    os.rename(repo / "src/auth.py", repo / "src/session_tokens.py")
    assert states(memory, node_id) == (
        AnchorState("file", "src/auth.py", "moved", "src/session_tokens.py"),
        AnchorState("item", "Session.refresh", "moved", "src/session_tokens.py"),
    )


def test_items_are_moved_or_gone_independently_of_their_files(memory: Memory, repo: Path) -> None:
    node_id = add_observation(
        memory, "Session.refresh", "other", files=("src/auth.py", "src/other.py")
    )
    write(repo, "src/auth.py", "def unrelated():\n    return 3\n")
    write(repo, "src/third.py", AUTH)
    write(repo, "src/other.py", "def another():\n    return 2\n")
    found = states(memory, node_id)
    assert found[2:] == (
        AnchorState("item", "Session.refresh", "moved", "src/third.py"),
        AnchorState("item", "other", "gone"),
    )


def test_a_deleted_file_is_gone(memory: Memory, repo: Path, ctx: Ctx) -> None:
    node_id = add_observation(memory, "Session.refresh")
    write(repo, "src/other.py", "# about refresh\n")
    (repo / "src/auth.py").unlink()
    found = states(memory, node_id)
    assert [each.state for each in found] == ["gone", "gone"]
    assert code_anchors.is_gone(found)
    shown = ctx("show", node_id)
    assert "code" in shown.out
    assert "src/auth.py is gone; Session.refresh is gone" in shown.out
    gone = {"type": "file", "name": "src/auth.py", "state": "gone", "where": None}
    assert ctx("show", node_id, "--format=json").json["anchors"][0] == gone
    assert ctx("recall", "refresh of tokens", "--format=json").json["nodes"] == []
    packed = ctx("query", "How are tokens refreshed in the session?", "--format=json").json
    assert [each for each in packed["retrieved"] if each["object_id"] == node_id] == []
    assert [each["reason"] for each in packed["left_out"]] == ["its code is gone"]


def test_files_of_another_branch_are_not_gone(memory: Memory, repo: Path, ctx: Ctx) -> None:
    git("switch", "-q", "-c", "feature")
    (repo / "src/cache.py").write_text("class Cache:\n    size = 1\n")
    commit("Add a cache", hours=-2)
    at = clock.iso(clock.now_ms() - 5 * HOUR_S * 1000)
    with transaction(memory.local):
        memory.local.execute(
            "INSERT INTO sessions (id, project, folder, branch, started_at, last_at)"
            " VALUES (?,?,?,?,?,?)",
            ("s1", memory.project, str(repo), "feature", at, at),
        )
    node_id = add_observation(memory)
    with memory.transaction("tag", USER) as change:
        change.update_node(
            node_id, metadata={"session": "s1", "files": ["src/cache.py"], "symbols": []}
        )
        change.tag(node_id, "session:s1")
    git("switch", "-q", "main")
    assert not (repo / "src/cache.py").exists()
    recalled = ctx("recall", "refresh of tokens", "--format=json").json["nodes"]
    assert [node["id"] for node in recalled] == [node_id]
    git("switch", "-q", "feature")
    git("rm", "-q", "src/cache.py")
    commit("Remove it", hours=-1)
    assert ctx("recall", "refresh of tokens", "--format=json").json["nodes"] == []


def test_what_the_user_said_stays(memory: Memory, repo: Path, ctx: Ctx) -> None:
    node_id = add_observation(memory)
    with memory.transaction("update", USER) as change:
        change.update_node(node_id, metadata={"source": "user"})
    (repo / "src/auth.py").unlink()
    found = ctx("recall", "refresh of tokens", "--format=json").json
    assert [node["id"] for node in found["nodes"]] == [node_id]
    assert found["anchors"][node_id][0]["state"] == "gone"
    # A node of another project is not checked.
    with memory.transaction("tag", USER) as change:
        change.untag(node_id, str(memory.own_tag))
        change.tag(node_id, "project:elsewhere")
    assert states(memory, node_id) == ()


def test_recall_and_packs_show_moved_code(memory: Memory, repo: Path, ctx: Ctx) -> None:
    add_observation(memory)
    git("mv", "src/auth.py", "src/session_tokens.py")
    commit("Move it", hours=-1)
    moved = "src/auth.py moved to src/session_tokens.py"
    assert f"\n  - Code: {moved}\n" in ctx("recall", "refresh tokens", "--format=markdown").out
    packed = ctx("query", "How are tokens refreshed in the session?", "--format=json").json
    (chunk,) = [each for each in packed["retrieved"] if each["chunk_kind"] == "Memory"]
    assert chunk["anchors"][0]["where"] == "src/session_tokens.py"
    assert chunk["source"] == "agent"
