"""`ctx scrub`: what it tells, what it asks, and what it leaves alone."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from ctx import layout, repository_names
from ctx.exchange.scrub_project import ScrubbedProject
from ctx.memory import user_store
from ctx.redaction import needle
from ctx.sqlite.connection import connect
from tests.cli.conftest import Add, Piped
from tests.conftest import Ctx, git
from tests.project.repositories import repository_at

WORD = "acme-internal"


def rows(path: Path, table: str, column: str) -> list[str]:
    with closing(user_store.open_for_reading(str(path))) as connection:
        return [row[0] for row in connection.execute(f"SELECT {column} FROM {table}")]


@pytest.fixture
def file(surroundings: Path) -> Path:
    return surroundings / ".ctx" / "store.db"


def test_a_dry_run_counts_and_changes_nothing(ctx: Ctx, add: Add, folder: Path, file: Path) -> None:
    for words in ((WORD,), (WORD, "--dry-run"), ("--yes",)):
        assert ctx("scrub", *words)[:2] == (0, "Not found in anything ctx stores.\n")
    add("--type=fact", f"The {WORD} host.", "--tag", f"about:{WORD}")
    before = ctx("list", "--format=json").json
    assert ctx("scrub", WORD, "--dry-run").out == (
        "Would remove it from 3 places:\n"
        "  store.db: records  2  rewritten\n"
        "  store.db: nodes    1  rewritten\n"
        "  store.db: tags     1  rewritten\n"
    )
    asked = ctx("scrub", WORD)
    assert (asked.code, "This cannot be undone.\n  Add --yes" in asked.err) == (1, True)
    assert ctx("list", "--format=json").json == before
    answer = ctx("scrub", WORD, "--dry-run", "--format=json").json
    assert (answer["dry_run"], answer["looked_for"]) == (True, "a word")
    assert answer["places"] == [
        {"where": f"store.db: {table}", "found": found, "done": "rewritten"}
        for table, found in (("records", 2), ("nodes", 1), ("tags", 1))
    ]
    for name in ("left", "in_git", "transcripts", "folders", "replicas"):
        assert answer[name] == []


def test_the_name_of_the_project(
    ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, surroundings: Path
) -> None:
    folder = tmp_path / WORD
    git("init", "-q", str(folder))
    monkeypatch.chdir(folder)
    assert ctx("add", "--type=fact", "Money is in cents.").code == 0
    assert ctx("add", "--type=fact", f"We work for {WORD}.").code == 0
    for options in (("--dry-run",), ("--yes",)):
        told = ctx("scrub", WORD, *options).out
        assert "Folders in which agents work have it in their names: the next session" in told
        assert told.endswith(f"\n  {tmp_path}/scrubbed\n")
    # It is still known here, also when it was written down where the repository lies.
    home = str(surroundings / ".ctx")
    common_dir = str(folder / ".git")
    assert repository_names.name_of(home, common_dir) == "scrubbed"
    repository_names.record(home, common_dir, "")
    assert ctx("scrub", WORD, "--yes").code == 0
    assert "Money is in cents." in ctx("recall", "money").out
    assert "project:scrubbed" in ctx("tags").out
    assert layout.place(str(folder), home).project == "scrubbed"


def test_a_word_that_sqlite_uses_itself(ctx: Ctx, add: Add, folder: Path) -> None:
    add("--type=fact", "An integer.")
    assert ctx("store", "backup").code == 0
    for _ in range(2):
        told = ctx("scrub", "integer", "--yes", "--format=json").json
        assert {each["why"] for each in told["left"]} == {
            "in a name that ctx uses itself: of a session, a type or a key"
        }


def test_prompts_kept_by_a_server_are_reported(
    ctx: Ctx, add: Add, folder: Path, file: Path
) -> None:
    states = file.parent / "llm"
    states.mkdir(parents=True)
    name = "ctx-0123456789abcdef-0.bin"
    state = [2, "http://127.0.0.1:8080", "m", [[name, [["a", 99]], 1, []]], 0, 0]
    (states / "slots-0123456789abcdef.json").write_text(json.dumps(state))
    # What is nowhere was never sent either.
    assert ctx("scrub", WORD, "--yes").code == 0
    add("--type=fact", f"The {WORD} host.")
    ran = ctx("scrub", WORD, "--yes", "--format=json")
    assert ran.code == 1
    why = (
        "the llama.cpp server at http://127.0.0.1:8080 keeps a prompt in it, which may"
        " contain it: delete it in that server's --slot-save-path"
    )
    assert ran.json["left"] == [{"where": name, "why": why}]
    assert list(states.iterdir()) == []


def test_nodes_tags_views_tasks_and_history(ctx: Ctx, add: Add, folder: Path, file: Path) -> None:
    node = add("--type=fact", f"The {WORD} host.", "--tag", f"about:{WORD}", "--meta", f"{WORD}=1")
    add("--type=fact", "Another.", "--meta", "why=because of ACME internal", "--tag", "a:b")
    assert ctx("update", node, "--content", "Nothing of it any more.").code == 0
    assert ctx("view", "create", WORD, "--query", f"tag:about:{WORD}").code == 0
    assert ctx("task", "start", f"move {WORD}").code == 0
    assert ctx("scrub", WORD, "--yes").code == 0
    assert ctx("store", "check").code == 0
    data = file.read_bytes().lower()
    assert b"acme-internal" not in data
    assert b"acme internal" not in data
    assert "about:scrubbed" in ctx("tags").out
    assert "scrubbed" in ctx("view", "list").out
    # The words of what is left are found, and those that went are not.
    assert ctx("search", "another", "--format=json").json["total"] == 1
    assert ctx("search", "acme", "--format=json").json["total"] == 0
    assert ctx("undo", "--list").code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ab"], "error E011: 2 characters are too few: they are in everything."),
        (["--regex"], "error E011: --regex needs a PATTERN."),
        (["--regex", "("], "error E011: This is no regular expression: "),
        (["--regex", "a*"], "error E011: This pattern finds nothing at all, everywhere."),
        (["scrubbed"], "error E011: It stands in [scrubbed], which is what takes its place."),
        (["word", "--project"], "error E012: "),
    ],
)
def test_what_cannot_be_done(ctx: Ctx, folder: Path, words: list[str], told: str) -> None:
    ran = ctx("scrub", *words, "--yes")
    assert ran.code in (1, 2)
    assert ran.err.startswith(told)


def test_a_projection_is_reported(ctx: Ctx, add: Add, repo: Path) -> None:
    add("--type=fact", f"Ours: {WORD}", "--tag=tier:pinned", "--tag=project:app")
    for words in ((), ("NOTES.md",)):
        assert ctx("install", "--projection", *words).code == 0
    assert WORD in (repo / "AGENTS.md").read_text()
    # A pipe in its place does not keep a scrub waiting.
    os.mkfifo(repo / "CLAUDE.md")
    ran = ctx("scrub", WORD, "--yes")
    assert ran.code == 1
    notes = str(repo / "NOTES.md")
    told = "`ctx install --projection` rewrites the block of memory in it"
    assert ran.out.split("Still there:\n")[1].split("\n") == [
        *(f"  {'AGENTS.md':{len(notes)}}  {told}", f"  {notes}  {told}", "")
    ]
    for words in ((), ("NOTES.md",)):
        assert ctx("install", "--projection", *words).code == 0
    assert WORD not in (repo / "AGENTS.md").read_text()
    assert ctx("scrub", WORD, "--yes").code == 0


def test_one_store_or_the_other(ctx: Ctx, add: Add, project: Path, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")
    add("--user", "--type=fact", f"Mine: {WORD}")
    add("--type=fact", f"Ours: {WORD}")
    add("--type=fact", f"There: {WORD}", "--db", other)

    def scrubbed(*words: str) -> list[bool]:
        assert ctx("scrub", WORD, *words, "--yes").code == 0
        listed = ctx("list").out + ctx("list", "--db", other).out
        return [f"{name}: [scrubbed]" in listed for name in ("Mine", "Ours", "There")]

    assert scrubbed("--db", other) == [False, False, True]
    assert scrubbed("--project") == [False, True, True]
    assert scrubbed("--user") == [True, True, True]


def test_git_history_is_reported_without_the_word(ctx: Ctx, add: Add, project: Path) -> None:
    add("--type=fact", f"Ours: {WORD}")
    assert ctx("add", "decision", f"Take {WORD}").code == 0
    (project / "a.txt").write_text(WORD)
    assert ctx("add", "file", "a.txt").code == 0
    assert ctx("commit", "-m", "x").code == 0
    git("add", "-A")
    git("commit", "-qm", "memory")
    ran = ctx("scrub", WORD, "--yes")
    assert ran.code == 0, ran.out
    assert "git history still contains it in earlier commits" in ran.out
    assert "  git log --all --oneline -S'PATTERN' -- .ctx/narrative\n" in ran.out
    assert WORD not in ran.out
    # The commands that are told find it.
    told = [line.split() for line in ran.out.splitlines() if line.startswith("  git log")]
    assert len(told) == 1 + 5
    assert all(git(*words[1:]).count("\n") == 1 for words in told[1:])
    assert ctx("debug", "verify").code == 0


@pytest.mark.parametrize("word", ["objects", "narrative", "config"])
def test_what_is_left_in_a_project_is_named_without_the_word(
    ctx: Ctx, add: Add, project: Path, word: str
) -> None:
    """The word is in the paths of a project's own files."""
    add("--type=fact", f"About {word}.")
    assert ctx("add", "decision", f"Take {word}").code == 0
    assert ctx("commit", "-m", word).code == 0
    (project / ".ctx" / "config.toml").write_text(f"# {word}\n")
    (project / ".ctx" / "odd").write_text(word)
    left = ScrubbedProject(repository_at(str(project)), needle.word(word)).left()
    told = [place.where for place in left]
    assert len(told) > 2
    assert not [where for where in told if word in where]


def test_transcripts_are_named(ctx: Ctx, add: Add, folder: Path, file: Path) -> None:
    add("--type=fact", "One.")
    transcript = folder / "5dd6.jsonl"
    transcript.write_text(json.dumps({"type": "user", "message": WORD}))
    with closing(user_store.open_for_writing(str(file))) as connection:
        connection.execute(
            "INSERT INTO sessions (id, folder, transcript, started_at, last_at, request)"
            " VALUES ('s', '/x', ?, '2026-01-20T10:00:00Z', '2026-01-20T10:00:00Z', ?)",
            (str(transcript), f"About {WORD}"),
        )
    ran = ctx("scrub", WORD, "--yes")
    assert ran.out.splitlines()[-2:] == [
        "Transcripts of the agent contain it; ctx does not change them:",
        f"  {transcript}",
    ]
    assert rows(file, "sessions", "request") == ["About [scrubbed]"]
    assert WORD in transcript.read_text()


def test_free_pages_are_written_anew_also_for_rules(ctx: Ctx, add: Add, file: Path) -> None:
    add("--type=fact", "One.")
    token = "gh" + "p_" + "a1B2c3D4e5F6" * 3
    with closing(user_store.open_for_writing(str(file))) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("INSERT INTO pending VALUES ('k', ?, 'x')", (f"{token} " * 3000,))
        connection.execute("DELETE FROM pending")
    assert token.encode() in file.read_bytes()
    assert ctx("scrub", "--yes").code == 0
    assert token.encode() not in file.read_bytes()


def test_an_index_with_a_secret_that_no_object_has(ctx: Ctx, add: Add, project: Path) -> None:
    add("--type=fact", "Plain words.")
    (index,) = project.glob(".git/ctx/main/index/*/store.db")
    token = "gh" + "p_" + "a1B2c3D4e5F6" * 3
    with closing(connect(str(index), "mode=rw")) as connection:
        connection.execute("UPDATE nodes SET content = ?", (f"The token {token}.",))
    told = "it from 1 place:\n  .git/ctx/main/index  1  made anew\n"
    assert ctx("scrub", "--dry-run").out == f"Would remove {told}"
    assert ctx("scrub", "--yes").out == f"Removed {told}"
    assert not index.exists()
    assert "Plain words." in ctx("list").out
    # An index alone is not a find.
    assert ctx("scrub", "--yes").out == "Not found in anything ctx stores.\n"


def test_one_that_was_interrupted_is_completed(ctx: Ctx, add: Add, file: Path) -> None:
    """Its rows were scrubbed already, and only a mark says that the file was not written anew."""
    add("--type=fact", "One.")
    mark = file.with_name("scrubbing")
    mark.touch()
    assert ctx("scrub", WORD, "--yes").out == "Removed it from 1 place:\n  store.db  1  rewritten\n"
    assert not mark.exists()


def test_patterns_and_words_from_stdin(ctx: Ctx, add: Add, folder: Path, piped: Piped) -> None:
    add("--type=fact", f"The {WORD} host of ACME-1234 and ACME-99 and acme-1234.")
    assert ctx("scrub", "--regex", r"ACME-\d{4}", "--yes").code == 0
    piped(f"{WORD}\n".encode())
    assert ctx("scrub", "-", "--yes").code == 0
    assert "The [scrubbed] host of [scrubbed] and ACME-99 and acme-1234." in ctx("list").out
    for words, told in (
        (["ab"], "E011: 2 characters are too few: they are in everything."),
        (["--regex"], "E011: --regex needs a PATTERN."),
        (["--regex", "("], "E011: This is no regular expression: "),
        (["--regex", "a*"], "E011: This pattern finds nothing at all, everywhere."),
        (["scrubbed"], "E011: It stands in [scrubbed], which is what takes its place."),
        (["word", "--project"], "E012: "),
    ):
        ran = ctx("scrub", *words, "--yes")
        assert ran.code in (1, 2)
        assert ran.err.startswith(f"error {told}")


def test_a_backup_can_still_be_restored(ctx: Ctx, add: Add, folder: Path, file: Path) -> None:
    add("--type=fact", f"The {WORD} host.")
    assert ctx("store", "backup").code == 0
    (backup,) = file.parent.glob("store.db.backup-*")
    spared = file.with_name("store.db.damaged-20260120T100001Z")
    spared.write_bytes(b"x" * 5000)
    ran = ctx("scrub", WORD, "--yes")
    assert ran.code == 0, ran.out
    assert f"  {backup.name} " in ran.out
    assert spared.exists()
    assert ctx("store", "restore", str(backup), "--yes").code == 0
    assert ctx("store", "check").code == 0
    assert "The [scrubbed] host." in ctx("list").out
