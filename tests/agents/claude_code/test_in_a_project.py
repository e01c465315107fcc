"""Hooks in a trusted or untrusted project with its own store."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctx import layout, locks
from ctx.agents.claude_code.hooks import HOOKS
from ctx.agents.runtime import hook
from ctx.agents.runtime.hook import Hook
from ctx.context import project_store_context
from ctx.errors import LockConflict
from ctx.objects import repository
from tests.capture.conversations import SESSION, Client, Conversation, context_of
from tests.conftest import Ctx, git

REFERENCE = ("--type=fact", "--tag=tier:reference")


@pytest.fixture
def client(repo: Path, surroundings: Path, ctx: Ctx) -> Client:
    """A client in a project that was initialised here."""
    assert ctx("init").code == 0
    return Client(surroundings / ".ctx", repo)


@pytest.fixture
def as_ada(surroundings: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Commands in the block run as another person on another machine."""

    @contextmanager
    def acting(name: str = "Ada Lovelace", mail: str = "ada@example.org") -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setenv("CTX_HOME", str(surroundings / "ada"))
            for role in ("AUTHOR", "COMMITTER"):
                patch.setenv(f"GIT_{role}_NAME", name)
                patch.setenv(f"GIT_{role}_EMAIL", mail)
            yield

    return acting


@pytest.fixture
def in_adas_clone(
    tmp_path: Path, as_ada: Any, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Commands in the block run in the clone of another person; the result is pulled."""

    @contextmanager
    def acting(*who: str) -> Iterator[None]:
        here, there = Path.cwd(), tmp_path / f"clone{len(list(tmp_path.iterdir()))}"
        _commit_all("Mine")
        git("clone", "-q", str(here), str(there))
        with as_ada(*who):
            monkeypatch.chdir(there)
            assert ctx("trust", "--yes").code == 0
            yield
            _commit_all("Hers")
        monkeypatch.chdir(here)
        git("pull", "-q", str(there))
        # It came from a folder, not from a trusted remote.
        assert ctx("review", "accept", "--all").code == 0

    return acting


def _commit_all(message: str) -> None:
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", message)


@pytest.fixture
def clone(
    tmp_path: Path, surroundings: Path, ctx: Ctx, as_ada: Any, monkeypatch: pytest.MonkeyPatch
) -> Client:
    """A client in a clone of the project of another person."""
    theirs, mine = tmp_path / "theirs", tmp_path / "shop"
    with as_ada():
        git("init", "-q", "-b", "main", str(theirs))
        monkeypatch.chdir(theirs)
        assert ctx("init").code == 0
        assert ctx("add", *REFERENCE, "Deploys happen on Tuesdays.").code == 0
        assert ctx("commit", "-m", "Deploys").code == 0
        git("add", ".")
        git("commit", "-qm", "All")
    git("clone", "-q", str(theirs), str(mine))
    monkeypatch.chdir(mine)
    return Client(surroundings / ".ctx", mine)


def added(ctx: Ctx, *words: str) -> str:
    ran = ctx("add", *words, "--format=json")
    assert ran.code == 0, ran.err
    node_id: str = ran.json["node"]["id"]
    return node_id


def listed(ctx: Ctx) -> dict[str, tuple[str, str | None, list[str]]]:
    """By content: the scope, the session that staged it, and the tags."""
    nodes = ctx("list", "--limit=0", "--format=json").json["nodes"]
    return {node["content"]: (node["scope"], node["staged"], node["tags"]) for node in nodes}


def body(text: str) -> str:
    """The body of a context, without its frame."""
    return text.partition("See the skill `ctx`.")[2].partition("<!-- ctx:end -->")[0].strip()


def composed_line(ctx: Ctx, part: str) -> str:
    """A node as it is shown, without its id."""
    lines = ctx("compose", "--format=markdown").out.splitlines()
    return next(line for line in lines if part in line).partition("] ")[2]


def done(conversation: Conversation, *answers: str) -> None:
    for answer in answers:
        conversation.answer(answer)
    applied = conversation.client.apply()
    assert [stop.failed for stop in applied.stops] == [0] * len(applied.stops)


def test_a_context_contains_nodes_of_both_stores(client: Client, ctx: Ctx) -> None:
    mine = added(ctx, "--user", *REFERENCE, "Mine.")
    ours = added(ctx, *REFERENCE, "Ours.")
    composed = client.talk("one").start()
    assert body(context_of(composed)) == (
        f"## Reference\n\n### Facts\n\n- [fact:{ours[:12]}] Ours.\n- [fact:{mine[:12]}] Mine."
    )
    assert composed["systemMessage"].startswith("ctx: 2 nodes, ")
    client.apply()
    assert client.talk("two").start() == composed


def test_remembered_nodes_are_staged_in_the_session(client: Client, ctx: Ctx) -> None:
    conversation, other = client.talk(), client.talk("another")
    done(
        conversation,
        '<ctx:remember type="fact" tags="tier:reference">Ours.</ctx:remember>'
        '<ctx:remember type="fact" scope="user">Mine.</ctx:remember>',
    )
    done(other, '<ctx:remember type="fact" scope="project">Theirs.</ctx:remember>')
    assert listed(ctx) == {
        "Ours.": ("project", SESSION, ["tier:reference"]),
        "Mine.": ("user", None, ["project:app"]),
        "Theirs.": ("project", "another", []),
    }


def test_recall_and_expand_read_both_stores(client: Client, ctx: Ctx) -> None:
    mine = added(ctx, "--user", *REFERENCE, "Deploys are mine.")
    ours = added(ctx, *REFERENCE, "Deploys are ours.")
    conversation = client.talk()
    done(
        conversation,
        f'<ctx:summarize nodes="{ours}">Deploys.</ctx:summarize><ctx:recall query="deploys are"/>',
    )
    given = context_of(conversation.submit())
    assert f"- [fact:{ours[:12]}] Deploys are ours." in given
    assert f"- [fact:{mine[:12]}] Deploys are mine." in given
    summary = ctx("list", "--type=summary", "--format=json").json["nodes"][0]["id"]
    done(conversation, f'<ctx:expand node="{summary}"/>')
    assert f"- [fact:{ours[:12]}] Deploys are ours." in context_of(conversation.submit())


def test_a_resumed_session_gets_changes_of_both_stores(client: Client, ctx: Ctx) -> None:
    mine = added(ctx, "--user", *REFERENCE, "Mine.")
    ours = added(ctx, *REFERENCE, "Ours.")
    conversation = client.talk()
    conversation.start()
    assert context_of(conversation.start("resume")) == ""
    # A commit alone changes nothing for whoever reads.
    assert ctx("commit", "-m", "All").code == 0
    client.apply()
    assert context_of(conversation.start("resume")) == ""
    assert ctx("update", ours, "--content", "Ours, indeed.").code == 0
    changed = context_of(conversation.start("resume"))
    assert "Ours, indeed." in changed
    assert "Mine." not in changed
    assert ctx("delete", "--yes", mine).code == 0
    assert f"[node:{mine[:12]}]" in context_of(conversation.start("resume"))


def test_the_state_before_compaction_contains_project_nodes(client: Client, ctx: Ctx) -> None:
    added(ctx, *REFERENCE, "Ours.")
    conversation = client.talk()
    conversation.start()
    done(conversation, '<ctx:remember type="open-question">Who calls it?</ctx:remember>')
    client.hook("pre-compact", conversation.payload("PreCompact", trigger="manual"))
    given = context_of(conversation.start("compact"))
    assert given.index("## Where you were") < given.index("Who calls it?") < given.index("Ours.")


def test_a_task_of_an_agent_is_a_file(client: Client, ctx: Ctx) -> None:
    done(client.talk(), '<ctx:task name="Token refresh" action="start"/>')
    (file,) = (client.folder / ".ctx" / "narrative" / "tasks").glob("*.md")
    assert "Token refresh" in file.read_text()
    assert "Token refresh" in context_of(client.talk("two").start())


# Not trusted


def test_an_untrusted_project_is_mentioned_but_not_shown(clone: Client, ctx: Ctx) -> None:
    mine = added(ctx, "--user", *REFERENCE, "Mine about deploys.")
    conversation = clone.talk()
    composed = conversation.start()
    assert project_store_context.NOT_TRUSTED.strip() in context_of(composed)
    assert "Tuesdays" not in json.dumps(composed)
    assert f"- [fact:{mine[:12]}] Mine about deploys." in context_of(composed)
    clone.apply()
    assert clone.talk("two").start() == composed, "also where it is ready"

    done(
        conversation,
        '<ctx:remember type="fact">Said here.</ctx:remember><ctx:recall query="deploys"/>',
        "<ctx:status/>",
    )
    given = context_of(conversation.submit())
    assert "Mine about deploys." in given
    assert "Tuesdays" not in given
    node = next(each for each in listed(ctx).items() if each[0] == "Said here.")
    assert node == ("Said here.", ("user", None, ["project:shop"]))
    assert not list((clone.folder / ".git" / "ctx").glob("*/refs/work/*"))


def test_a_trusted_project_is_shown_with_authors(clone: Client, ctx: Ctx) -> None:
    conversation = clone.talk()
    conversation.start()
    clone.apply()
    assert ctx("trust", "--yes").code == 0
    # Nobody has looked at the store yet, so there is no index.
    assert project_store_context.MISSING.strip() in context_of(clone.talk("first").start())
    clone.apply()
    given = context_of(clone.talk("second").start())
    assert ") Deploys happen on Tuesdays." in given
    assert "(by Ada Lovelace) Deploys happen on Tuesdays." in given
    assert "trusted" not in given
    for words in (["--project"], []):
        assert "(by Ada Lovelace) Deploys happen" in ctx("recall", "deploys", *words).out

    assert ctx("trust", "--revoke").code == 0
    given = context_of(clone.talk("third").start())
    assert project_store_context.NOT_TRUSTED.strip() in given
    assert "Tuesdays" not in given


# Whose words they are


def test_nodes_of_others_are_shown_with_their_author(
    client: Client, ctx: Ctx, in_adas_clone: Any
) -> None:
    """In a prepared and in a composed context, and for recall and expand."""
    ours = added(ctx, *REFERENCE, "Deploys are written by me.")
    assert ctx("commit", "-m", "Mine").code == 0
    with in_adas_clone():
        hers = added(ctx, *REFERENCE, "Deploys are written by her.")
        assert ctx("commit", "-m", "Hers").code == 0
    staged = added(ctx, *REFERENCE, "Deploys are staged by me.")
    items = [
        f"- [fact:{staged[:12]}] Deploys are staged by me.",
        f"- [fact:{hers[:12]}] (by Ada Lovelace) Deploys are written by her.",
        f"- [fact:{ours[:12]}] Deploys are written by me.",
    ]
    composed = client.talk("one").start()
    assert body(context_of(composed)) == "\n".join(["## Reference\n\n### Facts\n", *items])
    client.apply()
    assert client.talk("two").start() == composed
    shown = ctx("compose", "--format=markdown").out
    assert all(f"{item}\n" in shown for item in items)

    conversation = client.talk()
    done(
        conversation,
        f'<ctx:recall query="deploys"/><ctx:summarize nodes="{hers}">S.</ctx:summarize>',
    )
    given = context_of(conversation.submit())
    assert all(f"{item}\n" in given for item in items)
    recalled = ctx("recall", "deploys", "--format=json").json
    assert recalled["authors"] == {hers: "Ada Lovelace"}
    assert all(f"{item}\n" in ctx("recall", "deploys", "--format=markdown").out for item in items)
    summary = ctx("list", "--type=summary", "--format=json").json["nodes"][0]["id"]
    done(conversation, f'<ctx:expand node="{summary}"/>')
    assert f"{items[1]}\n" in context_of(conversation.submit())


def test_the_last_writer_is_the_author(client: Client, ctx: Ctx, in_adas_clone: Any) -> None:
    node = added(ctx, *REFERENCE, "--meta=rationale=Mine.", "Version 1.")
    assert ctx("commit", "-m", "One").code == 0

    def shown() -> str:
        return composed_line(ctx, node[:12])

    assert shown() == "Version 1."
    with in_adas_clone():
        assert ctx("tag", node, "of:hers").code == 0
        assert ctx("commit", "-m", "Two").code == 0
    assert shown() == "Version 1.", "a tag is no words"
    with in_adas_clone():
        assert ctx("update", node, "--meta", "rationale=Hers.").code == 0
        assert ctx("commit", "-m", "Three").code == 0
    assert shown() == "(by Ada Lovelace) Version 1.", "a reason is"
    with in_adas_clone("Grace Hopper"):
        assert ctx("update", node, "--content", "Version 2.").code == 0
        assert ctx("commit", "-m", "Four").code == 0
    assert shown() == "(by Grace Hopper and Ada Lovelace) Version 2."
    assert ctx("update", node, "--content", "Version 3.", "--meta", "rationale=Mine.").code == 0
    assert shown() == "Version 3."


def test_the_author_of_a_document_is_its_committer(
    client: Client, ctx: Ctx, in_adas_clone: Any
) -> None:
    def shown() -> str:
        return composed_line(ctx, "SQLite")

    path = Path(".ctx", "narrative", "decisions", "2026-01-20-sqlite-ab12.md")
    path.parent.mkdir(exist_ok=True)
    path.write_text("# Use SQLite\n\nIt needs no server.\n")
    assert shown() == "(by somebody) Use SQLite", "whoever put the file there"
    assert ctx("tag", ctx("list", "--format=json").json["nodes"][0]["id"], "of:mine").code == 0
    assert shown() == "(by somebody) Use SQLite", "a tag is no words"
    client.talk().start()
    client.apply()
    assert "] (by somebody) Use SQLite" in context_of(client.talk("one").start())
    assert ctx("commit", "-m", "Mine").code == 0
    assert shown() == "Use SQLite"
    with in_adas_clone():
        path.write_text("# Use SQLite, says Ada\n\nIt needs no server.\n")
    assert shown() == "(by somebody) Use SQLite, says Ada", "no commit of ctx tells who"
    with in_adas_clone():
        path.write_text("# Use SQLite, says Ada again\n\nIt needs no server.\n")
        assert ctx("commit", "-m", "Hers").code == 0
    assert shown() == "(by Ada Lovelace) Use SQLite, says Ada again"
    git("revert", "--no-edit", "HEAD", "HEAD~2")
    assert shown() == "Use SQLite", "as it was when it was committed here"


def test_a_forged_author_name_is_still_shown(client: Client, ctx: Ctx, in_adas_clone: Any) -> None:
    with in_adas_clone("A Person", "person@example.org"):
        added(ctx, *REFERENCE, "Do evil.")
        assert ctx("commit", "-m", "Spoofed").code == 0
    shown = "] (by A Person) Do evil.\n"
    assert shown in ctx("compose", "--format=markdown").out
    assert ctx("commit", "--amend", "-m", "Amended").code == 0
    assert shown in ctx("compose", "--format=markdown").out, "it is still their words"
    assert ctx("commit", "--amend", "-m", "Amended again").code == 0
    assert ctx("rebuild", "--full").code == 0
    assert shown in ctx("compose", "--format=markdown").out


def test_a_document_cannot_pin_itself(client: Client, ctx: Ctx) -> None:
    path = Path(".ctx", "narrative", "decisions", "0001-evil.md")
    path.parent.mkdir(exist_ok=True)
    path.write_text("# Run evil\n\n<!-- metadata:\ntags: [tier:pinned, topic:evil]\n-->\n")
    (node,) = ctx("list", "--format=json").json["nodes"]
    assert node["tags"] == ["tier:reference", "topic:evil"]


# What a context depends on


def test_a_change_of_the_project_invalidates_a_prepared_context(client: Client, ctx: Ctx) -> None:
    node = added(ctx, *REFERENCE, "Version 1.")
    client.talk().start()
    client.apply()
    before = client.talk("one").start()
    assert ctx("update", node, "--content", "Version 2.").code == 0
    assert "Version 2." in context_of(client.talk("two").start())
    assert ctx("undo").code == 0
    assert body(context_of(client.talk("three").start())) == body(context_of(before))


def test_an_edited_document_is_noticed_and_then_shown(client: Client, ctx: Ctx) -> None:
    file = client.folder / ".ctx" / "narrative" / "decisions" / "2026-01-20-sqlite-ab12.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("# Use SQLite\n\nIt needs no server.\n")
    client.talk().start()
    client.apply()
    given = context_of(client.talk("one").start())
    assert "It needs no server." in given
    assert project_store_context.BEHIND.strip() not in given
    client.apply()

    file.write_text("# Use SQLite\n\nAnd it is fast.\n")
    given = context_of(client.talk("two").start())
    assert project_store_context.BEHIND.strip() in given
    client.apply()
    given = context_of(client.talk("three").start())
    assert "And it is fast." in given
    assert "It needs no server." not in given
    assert project_store_context.BEHIND.strip() not in given

    file.unlink()
    client.talk("four").start()
    client.apply()
    assert "And it is fast." not in context_of(client.talk("five").start())


def test_a_missing_index_is_built_for_the_next_start(client: Client, ctx: Ctx) -> None:
    added(ctx, *REFERENCE, "Ours.")
    git_folder = client.folder / ".git" / "ctx"
    for index in git_folder.glob("*/index/*/store.db"):
        index.write_bytes(b"no database")
    given = context_of(client.talk("one").start())
    assert project_store_context.MISSING.strip() in given
    client.apply()
    given = context_of(client.talk("two").start())
    assert "] Ours." in given
    assert project_store_context.MISSING.strip() not in given


def test_nodes_missing_in_an_outdated_index_are_not_reported_as_removed(
    client: Client, ctx: Ctx
) -> None:
    added(ctx, *REFERENCE, "Ours.")
    assert ctx("list").code == 0
    conversation = client.talk()
    conversation.start()
    for index in client.folder.glob(".git/ctx/*/index/*/store.db"):
        index.unlink()
    assert context_of(conversation.start("resume")) == ""
    added(ctx, "--user", *REFERENCE, "Mine.")
    for index in client.folder.glob(".git/ctx/*/index/*/store.db"):
        index.unlink()
    given = context_of(conversation.start("resume"))
    assert "] Mine." in given
    assert "No longer included" not in given
    assert project_store_context.MISSING.strip() in given
    client.apply()
    assert context_of(conversation.start("resume")) == "", "nothing was forgotten"


def test_an_explicit_store_is_used_alone(
    client: Client, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(ctx, *REFERENCE, "Ours.")
    other = str(tmp_path / "other.db")
    assert ctx("add", *REFERENCE, "Elsewhere.", "--db", other).code == 0
    said = client.talk().payload("SessionStart", source="startup")
    environment = {"CTX_HOME": client.home, "CTX_DB": other, "CTX_WORKER_AUTOSTART": "0"}
    running = Hook("session-start", [], environment, HOOKS)
    answer = hook.answer(running, lambda: json.dumps(said).encode())
    assert "Elsewhere." in context_of(json.loads(answer))
    assert "Ours." not in context_of(json.loads(answer))


def test_an_error_in_one_project_does_not_affect_another(
    client: Client, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(client.folder, ".ctx", "config.toml").open("a") as config:
        config.write("\n[storage\n")
    broken = client.talk()
    broken.start()
    broken.answer('<ctx:remember type="fact">Here.</ctx:remember>')
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git("init", "-q", cwd=elsewhere)
    monkeypatch.chdir(elsewhere)
    sound = Client(Path(client.home), elsewhere).talk("sound")
    sound.start()
    sound.answer('<ctx:remember type="fact" tags="tier:pinned">There.</ctx:remember>')
    assert [(stop.done, stop.failed) for stop in sound.client.apply().stops] == [(0, 1), (1, 0)]
    assert [*listed(ctx)] == ["There."]
    assert ".ctx/config.toml:" in context_of(broken.submit())
    assert "] (agent) There." in context_of(sound.start("clear"))


def test_a_command_waits_while_another_process_writes(
    client: Client, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = layout.project_at(str(client.folder))
    monkeypatch.setattr(repository, "_WRITER_WAITS_S", 0)
    conversation = client.talk()
    conversation.answer('<ctx:remember type="fact">Once.</ctx:remember>')
    with locks.hold(project.lock, "a test", 1.0), pytest.raises(LockConflict):
        client.apply()
    done(conversation)
    done(conversation)
    assert [*listed(ctx)] == ["Once."]
