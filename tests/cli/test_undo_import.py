"""`ctx undo` of an import of past sessions: all of it, as one."""

from pathlib import Path

from tests.capture.conversations import Client
from tests.conftest import Ctx
from tests.operations.test_backfill import add_past_sessions, content

IMPORT = ("import", "--from", "claude-code", "--transcripts")


def import_sessions(ctx: Ctx, surroundings: Path, folder: Path) -> str:
    """The id of an import of three sessions, with a session that was there before."""
    add_past_sessions(surroundings / ".claude", str(folder))
    imported = ctx(*IMPORT)
    assert imported.out.startswith("Imported 3 sessions:")
    return imported.err.partition("To undo: `ctx undo ")[2].partition("`")[0]


def test_an_import_is_one_entry_and_undone_as_a_whole(
    ctx: Ctx, repo: Path, surroundings: Path
) -> None:
    assert ctx("add", "fact", "The exporter runs as the user app.").code == 0
    client = Client(surroundings / ".ctx", repo)
    imported = import_sessions(ctx, surroundings, repo)
    with client.memory() as memory:
        filled = content(memory)
    listed = ctx("undo", "--list", "--format=json").json["changes"]
    assert [(each["action"], each["what"]) for each in listed[:2]] == [
        ("import", "3 sessions of claude-code"),
        ("add", "type: fact, content: The exporter runs as the user app."),
    ]
    assert listed[0]["id"] == imported
    assert len(ctx("undo", "--dry-run", "--format=json").json["what"]) == 3
    undone = ctx("undo")
    again = "ctx import --from claude-code --transcripts"
    assert undone.out.startswith("Undone: import at ")
    assert undone.err == f"To import the sessions again: `{again}`\n"
    with client.memory() as memory:
        assert content(memory) == []
    left = ctx("list", "--format=json").json["nodes"]
    assert [each["content"] for each in left] == ["The exporter runs as the user app."]
    # What is known of sessions has gone for good, so only a new import brings it back.
    by = ctx("undo", "--list", "--format=json").json["changes"][0]["id"]
    for change in (imported, by):
        refused = ctx("undo", change)
        assert (refused.code, refused.out) == (2, "")
        assert again in refused.err
    assert ctx(*IMPORT).code == 0
    assert "is already undone" in ctx("undo", imported).err
    with client.memory() as memory:
        assert len(content(memory)) == len(filled)
    assert ctx("undo").out.startswith("Undone: import at ")
    assert ctx("undo").out.startswith("Undone: add at ")


def test_a_later_change_of_the_same_session_is_undone_first(
    ctx: Ctx, repo: Path, surroundings: Path
) -> None:
    imported = import_sessions(ctx, surroundings, repo)
    assert ctx("add", "fact", "The exporter runs as the user app.").code == 0
    assert ctx("undo").out.startswith("Undone: add at ")
    assert ctx("undo", imported[:20]).out.startswith("Undone: import at ")


def test_what_somebody_did_since_is_kept(ctx: Ctx, repo: Path, surroundings: Path) -> None:
    client = Client(surroundings / ".ctx", repo)
    imported = import_sessions(ctx, surroundings, repo)
    edited = ctx("list", "--type=observation", "--format=json").json["nodes"][0]["id"]
    assert ctx("update", edited, "--content", "As the user says it").code == 0
    with client.memory() as memory:
        going_on = memory.local.execute("SELECT max(id) FROM sessions").fetchone()[0]
        memory.local.execute(
            "UPDATE sessions SET last_at = '2100-01-01T00:00:00Z' WHERE id = ?", (going_on,)
        )
    undone = ctx("undo", imported)
    assert len(undone.out.splitlines()) == 3, "two of the three sessions"
    assert "changed since then and is kept." in undone.err
    assert ctx("show", edited, "--format=json").json["node"]["content"] == "As the user says it"
    assert ctx("sessions", "show", going_on).code == 0
    assert "is already undone" in ctx("undo", imported).err
    assert ctx("undo").out.startswith("Undone: update at ")
