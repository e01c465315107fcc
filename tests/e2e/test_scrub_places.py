"""After a scrub the word stands nowhere, or the answer names the place.

The word is put into names as well as texts: of streams, sessions, tasks, views, tags, documents,
files, branches, tools and models.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from msgspec import msgpack

from ctx.capture import capture_off
from ctx.exchange import scrub_files, scrub_store
from ctx.hook_files import live
from ctx.layout import project_at
from ctx.llm import ledger
from ctx.objects.object_store import Kind, from_payload
from ctx.objects.repository import Repository
from ctx.redaction import needle
from tests.conftest import Ran, git
from tests.e2e import planted_text
from tests.e2e.planted_text import Planted
from tests.e2e.word_places import places

WORD = "zanzi-barquux"

Plant = Callable[[Planted], object]


def left(at: Planted) -> list[str]:
    return places(WORD, at.home / ".ctx", at.project / ".ctx", at.project / ".git" / "ctx")


def plant_names(at: Planted) -> None:
    at.run("add", "note", "One.", "--stream", WORD)
    at.run("add", "decision", "Take it", "--stream", WORD)
    at.run("add", "decision", f"Use {WORD}")
    at.run("commit", "-m", "stream", "--session", "cli")
    at.run("stage", "start", f"Do {WORD}", "--session", f"{WORD}-1")
    at.run("add", "note", "Two.")
    at.run("add", "note", "In the work stream.", "--stream", "work")
    at.run("commit", "-m", "session")
    at.run("add", "--type=fact", "Three.", "--tag", f"about:{WORD}", "--session", f"{WORD}-2")
    at.run("stage", "abort", "--session", f"{WORD}-2")
    at.run("add", "--type=fact", "Four.", "--tag", f"about:{WORD}", "--session", f"{WORD}-3")
    at.run("view", "create", WORD, "--query", f"tag:about:{WORD}")
    at.run("view", "create", f"{WORD}-mine", "--query", f"tag:about:{WORD}", "--user")
    at.file(f"src/{WORD.replace('-', '_')}.py", f"def {WORD.replace('-', '_')}(): return 1\n")
    at.run("add", "file", str(at.project / "src" / f"{WORD.replace('-', '_')}.py"))
    at.run("add", "code", "--snapshot")
    at.run("code", "index")
    at.run("ingest", str(at.file(f"docs-{WORD}.md", "# Nothing\n\nin it\n")))
    at.run("learnings", "add", f"Always {WORD}.")
    talk = at.talk.client.talk(f"{WORD}-agent")
    talk.start()
    agent = at._replace(talk=talk)
    for way in ("prompt", "file read", "file write", "command line", "remember", "answer"):
        planted_text.WAYS[way](agent, f"nothing special {way}")
    agent.use_tool(f"mcp__{WORD}__find", {"query": "x"}, {"found": 1})
    at.run("hook", "apply")


def scrub(at: Planted, *options: str) -> Ran:
    """Scrub the word, and check that the answer is true."""
    looked = at.ctx("scrub", WORD, "--dry-run")
    assert left(at) == [] or "Not found" not in looked.out
    ran = at.ctx("scrub", WORD, "--yes", *options)
    assert WORD not in ran.out
    for place in left(at):
        folder, name = os.path.split(place.rpartition(" ")[2])
        where = os.path.basename(folder) if place.startswith("name ") else name
        assert where.replace(WORD, "scrubbed") in ran.out, (place, ran.out)
        assert ran.code == 1
    return ran


def assert_consistent(at: Planted) -> None:
    for words in (("store", "check"), ("debug", "verify"), ("status",), ("stage", "status")):
        assert (ran := at.ctx(*words)).code == 0, (words, ran.out, ran.err)


def test_names(at: Planted) -> None:
    plant_names(at)
    assert len(left(at)) > 100
    ran = scrub(at)
    assert (ran.code, left(at)) == (0, [])
    assert_consistent(at)
    # What was staged and aborted belongs to the renamed sessions.
    at.run("commit", "-m", "after", "--session", "scrubbed-3")
    assert "Four." in at.ctx("list", "--limit=0").out
    at.run("stage", "recover", "scrubbed-2")
    assert "Three." in at.ctx("list", "--limit=0").out
    shown = at.ctx("sessions", "show", "scrubbed-agent", "--format=json").json
    assert len(shown["steps"]) > 3
    assert_consistent(at)
    assert left(at) == []


def test_the_name_of_a_git_branch(at: Planted) -> None:
    git("checkout", "-q", "-b", WORD, cwd=at.project)
    at.run("add", "--type=fact", "One.")
    at.run("commit", "-m", "on a branch")
    ran = scrub(at)
    assert ran.code == 1
    assert "  .git/HEAD  the git branch has it in its name: ctx stores it again," in ran.out
    assert left(at) == []
    assert "One." in at.ctx("list").out
    git("branch", "-m", "other", cwd=at.project)
    assert "One." in at.ctx("list").out
    assert (scrub(at).code, left(at)) == (0, [])
    assert_consistent(at)


def test_messages_in_the_code_index(at: Planted) -> None:
    """They are compressed."""
    at.file("main.py", "def main(): return 1\n")
    git("add", "-A", cwd=at.project)
    git("commit", "-qm", f"Begin\n\n{'Because it repeats. ' * 9}{WORD}", cwd=at.project)
    at.run("code", "history", "main.py")
    assert [place for place in left(at) if place.endswith("code.db")]
    ran = scrub(at)
    assert (ran.code, left(at)) == (0, [])
    assert "code.db  1  made anew" in ran.out


def in_home(name: str, text: str = f"x {WORD} y\n") -> Plant:
    def plant(at: Planted) -> None:
        path = at.home / ".ctx" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return plant


def in_project(name: str, text: str = f"x {WORD} y\n") -> Plant:
    def plant(at: Planted) -> None:
        path = at.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + text)

    return plant


def in_database(name: str, *statements: str) -> Plant:
    def plant(at: Planted) -> None:
        path = at.home / ".ctx" / name
        at.run("add", "--user", "--type=fact", "Mine.")
        if name == "ledger.db":
            ledger.Ledger(str(path)).__enter__().__exit__(None, None, None)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = OFF")
            for statement in statements:
                connection.execute(statement.replace("WORD", f"{WORD} " * 2000))

    return plant


def stored(value: bytes) -> Plant:
    """A staged object of a kind or with fields that this version does not know."""

    def plant(at: Planted) -> None:
        at.run("add", "--type=fact", "One.")
        staged = Repository(project_at(str(at.project))).staged
        staged.write([from_payload(Kind.TYPED, value)])

    return plant


def damaged_object(at: Planted) -> None:
    at.run("add", "--type=fact", f"Staged: {WORD}")
    for path in (at.project / ".git/ctx/main/stage/objects").iterdir():
        path.write_bytes(path.read_bytes()[:-1])


def link(at: Planted) -> None:
    (at.home / ".ctx" / "elsewhere").symlink_to(f"/nowhere/{WORD}")


CALL = "(at, purpose, backend, place, model, state, counted, reserved, estimate, project)"
GONE = (
    f"INSERT INTO calls {CALL} VALUES ('x', 'ask', 'b', 'p', 'm', 'done', 1, 1, 1, 'WORD')",
    "DELETE FROM calls",
)
FREED = ("INSERT INTO pending VALUES ('k', 'WORD', 'x')", "DELETE FROM pending")
SPARED = 1
"""The exit code where something is left."""

PLACES: dict[str, tuple[Plant, int]] = {
    "settings": (in_home("config.toml", f"# {WORD}\n"), SPARED),
    "settings of the project": (in_project(".ctx/config.toml", f"# {WORD}\n"), SPARED),
    "trusted stores": (in_home("trusted.json", f'{{"{WORD}": 1}}'), SPARED),
    "worker log": (in_home("worker.log"), 0),
    "rotated log": (in_home("worker.log.1"), 0),
    "hook log": (in_home("hook.log"), 0),
    "a file of somebody else": (in_home("notes.txt"), 0),
    "a lock": (in_home("worker.lock"), SPARED),
    "a file being written": (in_home("spool/tmp-1-2-3"), SPARED),
    "an event": (in_home("spool/1-1-a.stop", f'{{"session_id": "s-{WORD}", "a": "{WORD}"}}'), 0),
    "a failed event": (in_home("spool/failed/1-1-a.stop"), 0),
    "a live session": (in_home(f"live/{WORD}.before", WORD), 0),
    "capture off": (in_home(f"off/{WORD}.closed", "off 1\n"), 0),
    "deleted sessions": (in_home("deleted", f"1768906800123 {WORD}\n"), 0),
    "the name of a file": (in_home(f"backups/{WORD}.txt", "x"), SPARED),
    "the name of a folder": (in_home(f"{WORD}/x.txt", "x"), SPARED),
    "a link": (link, SPARED),
    "a damaged store": (in_home("store.db.damaged-20260120T100000Z"), 0),
    "a replaced store": (in_home("store.db.replaced-20260120T100000Z"), 0),
    "a backup that cannot be read": (in_home("store.db.backup-1", f"SQLite format 3\0{WORD}"), 0),
    "free pages": (in_database("store.db", *FREED), 0),
    "free pages of the ledger": (in_database("ledger.db", *GONE), 0),
    "another table": (
        in_database("store.db", "CREATE TABLE mine (a)", "INSERT INTO mine VALUES ('WORD')"),
        SPARED,
    ),
    "a document": (in_project(".ctx/narrative/notes.md"), 0),
    "the folder of a document": (in_project(f".ctx/narrative/{WORD}/a/b.md", "x\n"), 0),
    "an empty folder": (lambda at: (at.project / ".ctx/narrative" / f"{WORD}-2").mkdir(), 0),
    "another file of the project": (in_project(".ctx/heads/notes"), SPARED),
    "the name of another file": (in_project(f".ctx/heads/{WORD}", ""), SPARED),
    "trust in the git folder": (in_project(".git/ctx/trust-0.json"), SPARED),
    "the current session": (in_project(".git/ctx/main/STAGE", f"{WORD}\n"), 0),
    "a damaged ref": (in_project(f".git/ctx/main/refs/damaged/{WORD}-2", "x"), 0),
    "an unknown object": (stored(msgpack.encode(["future", 1, {"a": WORD}])), 0),
    "a key of an object": (stored(msgpack.encode(["future", 1, {WORD: "a"}])), SPARED),
    "the kind of an object": (stored(msgpack.encode([WORD, 1, {}])), SPARED),
    "an object that is no map": (stored(msgpack.encode(WORD)), SPARED),
    "a damaged object": (damaged_object, SPARED),
}


def test_places_that_are_scrubbed(at: Planted) -> None:
    planted = 0
    for place, (plant, code) in PLACES.items():
        if code != SPARED:
            plant(at)
            assert len(left(at)) > planted, place
            planted = len(left(at))
    ran = scrub(at)
    assert (ran.code, left(at)) == (0, []), ran.out
    assert at.ctx("store", "check").code == 0


@pytest.mark.parametrize("place", [name for name, (_, code) in PLACES.items() if code == SPARED])
def test_places_that_are_reported(at: Planted, place: str) -> None:
    plant, _ = PLACES[place]
    plant(at)
    assert left(at) != [] or place in ("a link", "a damaged object")
    ran = scrub(at)
    assert ran.code == 1, ran.out
    assert left(at) or place in ("a link", "a damaged object")
    # Without a question too.
    assert "Still there:" in at.ctx("scrub", WORD).out
    assert at.ctx("store", "check").code == 0


def test_the_log_of_the_database(at: Planted) -> None:
    """Another process reads, so the write-ahead log cannot be emptied."""
    at.run("add", "--user", "--type=fact", f"Mine: {WORD}")
    with closing(sqlite3.connect(at.home / ".ctx" / "store.db")) as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT * FROM nodes").fetchall()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scrub_store, "_PATIENCE_S", 0.1)
            assert scrub(at).code == 1
    assert (scrub(at).code, left(at)) == (0, [])


def test_a_pattern_that_takes_too_long_changes_nothing(
    at: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    at.run("add", "--user", "--type=fact", f"Mine: {'a' * 60}")
    monkeypatch.setattr(needle.regex, "__defaults__", (0.05,))
    before = at.ctx("list", "--format=json").out
    for options in (("--yes",), ("--dry-run",)):
        ran = at.ctx("scrub", "--regex", r"(a+)+\d", *options)
        assert ran.code == 2
        assert ran.err.startswith("error E011: The pattern takes too long on a stored text.\n")
    assert at.ctx("list", "--format=json").out == before


def test_files_are_named_after_sessions_in_these_folders() -> None:
    assert scrub_files.SESSION_FOLDERS == (live.FOLDER, capture_off.FOLDER)
