"""Bad input and unusual file systems give a clear error, and nothing is half-written."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from ctx.layout import project_at
from ctx.objects import repository
from ctx.objects.object_store import Kind, Object, blob, id_of, typed
from ctx.objects.object_types import Commit, Tree, TreeEntry, TreeEntryKind
from ctx.objects.repository import Repository
from tests.conftest import Ctx, git
from tests.e2e.conftest import state
from tests.e2e.forked_commands import Forker

TOKEN = "ghp_" + "0aB1cD2eF3" * 3 + "gH4iJ5"


def test_outside_of_a_project_there_is_an_error(folder: Path, ctx: Ctx) -> None:
    for words in (["add", "file", "x"], ["commit", "-m", "x"], ["gc"], ["debug", "verify"]):
        ran = ctx(*words)
        assert (ran.code, ran.out) == (1, "")
        assert "error E012" in ran.err
        assert "ctx init" in ran.err
    assert json.loads(ctx("gc", "--format", "json").err)["error"]["code"] == "E012"
    assert list(folder.iterdir()) == []


def test_a_secret_can_be_added_on_purpose(project: Path, ctx: Ctx) -> None:
    key = "-----BEGIN RSA PRIVATE" + " KEY-----"
    (project / "fixture.pem").write_text(f"{key}\n{'MIIEowIBAAKCAQEA' * 8}\n")
    assert ctx("add", "file", "fixture.pem").code == 1
    assert ctx("add", "file", "fixture.pem", "--allow-secrets").code == 0


def test_a_secret_in_a_message_is_redacted(project: Path, ctx: Ctx) -> None:
    (project / "a.txt").write_text("a")
    ctx("add", "file", "a.txt")
    ran = ctx("commit", "-m", f"Use {TOKEN} for now", "--format", "json")
    assert ran.code == 0
    assert TOKEN not in ran.out
    assert "[redacted:" in ran.json["message"]
    assert [(item["where"], item["line"]) for item in ran.json["secrets"]] == [("message", 1)]
    assert "message, line 1: secret removed" in ran.err
    for path in (project / ".ctx").rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes()


def test_a_secret_in_a_narrative_file_is_not_stored(project: Path, ctx: Ctx) -> None:
    note = project / ".ctx" / "narrative" / "note.md"
    note.write_text(f"# Note\n\nThe token is {TOKEN}.\n")
    ran = ctx("commit", "-m", "Note")
    assert "narrative/note.md, line 3: secret removed" in ran.err
    assert ".ctx/narrative/note.md contains a secret: remove it before" in ran.err
    assert "to add to git" not in ran.err
    assert TOKEN in note.read_text()
    assert ctx("commit", "-m", "Again", "--format", "json").json["commit"] is None
    (entry,) = ctx("debug", "index", "narrative:note.md", "--format", "json").json["entries"]
    assert "[redacted:" in ctx("debug", "cat", entry["blob_id"]).out


def test_a_wrong_command_line_exits_with_2(project: Path, ctx: Ctx) -> None:
    (project / "a").write_text("a")
    before = state(project)
    for words in (
        ["gc", "--keep-days", "soon"],
        ["gc", "--keep-days", "-1"],
        ["commit"],
        ["commit", "-m", "   "],
        ["commit", "--amend", "-m", " "],
        ["add", "file", "a", "-m", " "],
        ["add", "file"],
        ["add", "nonsense"],
        ["init", "--template", "huge"],
        ["debug", "cat", "xyz!"],
        ["debug", "cat", "abc"],
        ["debug", "index", "nonsense"],
        ["debug", "history", "--limit", "0"],
        ["-C", "/no/such/folder", "gc"],
        ["help", "nonsense"],
        ["add", "file", "a", "--session", "../../etc"],
        ["add", "file", "a", "--session", ".hidden"],
        ["add", "file", "a", "--session", "x" * 200],
        ["add", "file", "a", "--session", TOKEN],
        ["add", "file", "a", "--session", os.fsdecode(b"caf\xe9")],
        ["debug", "cat", os.fsdecode(b"caf\xe9")],
    ):
        ran = ctx(*words)
        assert (ran.code, ran.out) == (2, ""), (words, ran.err)
        assert "error E011" in ran.err, words
        assert state(project) == before


def test_a_read_only_folder_is_an_error(folder: Path, forked: Forker) -> None:
    """As another user, because root may write anywhere."""
    with tempfile.TemporaryDirectory() as space:
        Path(space).chmod(0o755)
        closed = Path(space, "folder")
        closed.mkdir(mode=0o555)
        ran = forked.run(["init", str(closed)], as_nobody=True)
        assert ran.code == 1, ran.err
        assert "error E014: Not permitted while making the project store" in ran.err
        assert list(closed.iterdir()) == []


def test_a_file_in_place_of_the_store_is_an_error(folder: Path, ctx: Ctx) -> None:
    (folder / ".ctx").write_text("mine")
    ran = ctx("init")
    assert ran.code == 1
    assert "error E01" in ran.err
    assert (folder / ".ctx").read_text() == "mine"


def test_a_missing_git_is_reported(
    repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = ctx("init")
    assert ran.code == 0
    assert "git is not on this machine's PATH" in ran.err
    (repo / "a.txt").write_text("a")
    ran = ctx("add", "file", "a.txt")
    assert ran.code == 1
    assert "error E016" in ran.err


def test_a_deleted_current_folder_is_an_error(
    folder: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ran = ctx("gc")
    assert ran.code == 2
    assert "no longer exists" in ran.err


@pytest.mark.parametrize("name", ["narrative", "objects", "heads"])
def test_links_in_place_of_store_folders_are_refused(project: Path, ctx: Ctx, name: str) -> None:
    private = project.parent / "private"
    (project / ".ctx" / name).rename(private)
    (private / "diary.md").write_text("dear diary\n")
    (project / ".ctx" / name).symlink_to(private)
    ran = ctx("commit", "-m", "Take it along")
    assert ran.code == 1
    assert "symbolic link" in ran.err


def test_a_linked_narrative_file_is_not_followed(project: Path, ctx: Ctx) -> None:
    diary = project.parent / "diary.md"
    diary.write_text("dear diary\n")
    (project / ".ctx" / "narrative" / "d.md").symlink_to(diary)
    (project / ".ctx" / "narrative" / "loop.md").symlink_to("loop.md")
    assert ctx("commit", "-m", "Take it", "--format", "json").json["commit"] is None


def test_files_of_a_file_manager_are_ignored(project: Path, ctx: Ctx) -> None:
    for place in ("heads", "objects", "narrative"):
        (project / ".ctx" / place / ".DS_Store").write_bytes(b"x")
    assert ctx("debug", "verify").code == 0
    assert ctx("debug", "refs").code == 0


def test_skipped_narrative_files_are_reported(project: Path, ctx: Ctx) -> None:
    narrative = project / ".ctx" / "narrative"
    os.mkfifo(narrative / "pipe.md")
    (narrative / "line\nbreak.md").write_text("x")
    (narrative / "kept.md").write_text("x")
    ran = ctx("commit", "-m", "x", "--format", "json")
    assert ran.json["documents"] == ["kept.md"]
    assert {item["path"] for item in ran.json["skipped"]} == {"pipe.md", "line\nbreak.md"}
    assert '{"warning": "narrative/pipe.md not committed: it is not a plain file."}' in ran.err


def test_secrets_in_names_are_not_stored(
    repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", TOKEN)
    assert ctx("init").code == 0
    (repo / f"{TOKEN}.txt").write_text("x")
    (repo / "a.txt").write_text("a")
    assert "looks like a secret" in ctx("add", "file", ".").out
    assert ctx("commit", "-m", "x").code == 0
    history = ctx("debug", "history", "--format", "json").out
    assert TOKEN not in history
    assert "[redacted:" in history


def test_init_refuses_places_that_are_not_projects(repo: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    git("init", "-q", "--bare", "bare")
    for place in (".git", ".git/sub", ".ctx", "bare"):
        (repo / place).mkdir(exist_ok=True)
        refused = ctx("init", place)
        assert refused.code == 1
        assert "error E015" in refused.err
        assert not (repo / place / ".ctx").exists()


def test_init_warns_inside_another_project(project: Path, ctx: Ctx) -> None:
    (project / "inner").mkdir()
    ran = ctx("init", "inner")
    assert ran.code == 0
    assert f"inside another one: {project}" in ran.err


@pytest.mark.parametrize("words", [["init"], ["init", "--force", "--yes"]])
def test_init_leaves_a_folder_of_another_program_alone(
    folder: Path, ctx: Ctx, words: list[str]
) -> None:
    (folder / ".ctx").mkdir()
    (folder / ".ctx" / "other-tool.db").write_text("x")
    (folder / ".ctx" / "config.toml").write_text("theirs = 1\n")
    assert ctx(*words).code == 1
    assert (folder / ".ctx" / "other-tool.db").read_text() == "x"
    assert (folder / ".ctx" / "config.toml").read_text() == "theirs = 1\n"
    (folder / ".ctx" / "other-tool.db").unlink()
    assert ctx(*words).code == 1
    (folder / ".ctx" / "config.toml").unlink()
    (folder / ".ctx").rmdir()
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (folder / ".ctx").symlink_to(elsewhere)
    assert ctx(*words).code == 1
    assert list(elsewhere.iterdir()) == []


def test_force_waits_for_the_lock(project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.txt").write_text("a")
    assert ctx("add", "file", "a.txt", "-m", "A").code == 0
    with Repository(project_at(str(project))).locked("something long"):
        with monkeypatch.context() as patched:
            patched.setattr(repository, "_WRITER_WAITS_S", 0)
            ran = ctx("commit", "-m", "x")
        assert ran.code == 1
        assert "error E006" in ran.err
        assert "something long" in ran.err
        before = state(project)
        waiting = subprocess.Popen(
            [sys.executable, "-m", "ctx", "init", "--force", "--yes"],
            cwd=project,
            stdout=subprocess.DEVNULL,
        )
        try:
            waiting.wait(timeout=1.5)
        except subprocess.TimeoutExpired:
            pass
        assert waiting.poll() is None
        assert state(project) == before
    assert waiting.wait(timeout=300) == 0


@pytest.mark.parametrize(
    "words",
    [
        "add --type=fact One",
        "add code --snapshot",
        "add file a.txt",
        "commit -m One",
        "gc --keep-days=0",
        "init --force --yes",
        "rebuild --full",
        "rebuild --text",
        "scrub Twice --yes",
        "stage abort",
        "stage abort --commit={given_up}",
        "stage flush",
        "stage recover",
        "stage recover {given_up}",
        "stage start Two",
    ],
)
def test_a_change_needs_the_lock(
    words: str, project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.txt").write_text("Twice\n")
    (project / "a.py").write_text("def f() -> int:\n    return 1\n")
    assert ctx("add", "file", "a.txt").code == 0
    assert ctx("commit", "-m", "Once").code == 0
    given_up = ctx("commit", "--amend", "-m", "Twice", "--format=json").json["commit"]
    (project / "a.txt").write_text("Three times\n")
    (project / ".ctx" / "narrative" / "note.md").write_text("# Note\n")
    assert ctx("add", "decision", "Twice").code == 0
    monkeypatch.setattr(repository, "_WRITER_WAITS_S", 0)
    with Repository(project_at(str(project))).locked("something long"):
        before = state(project)
        ran = ctx(*words.format(given_up=given_up).split())
        assert (ran.code, "error E006" in ran.err) == (1, True)
        # Indexes are no part of the store.
        assert {path for path in state(project) ^ before if "/local/index" not in path} == set()


def test_the_file_limit_cannot_exceed_the_object_limit(project: Path, ctx: Ctx) -> None:
    limit = ctx("add", "file", ".", "--set", "ingestion.max_file_bytes=400000000")
    assert limit.code == 1
    assert "error E013" in limit.err


def test_hostile_objects_are_survived(project: Path, ctx: Ctx) -> None:
    repository = Repository(project_at(str(project)))
    ((old, _),) = repository.current()

    def raw(payload: bytes) -> Object:
        return Object(id_of(Object(old, Kind.TYPED, payload).canonical), Kind.TYPED, payload)

    nested: object = 1
    for _ in range(700):
        nested = [nested]
    content = blob(b"x")
    twice = TreeEntry("x", TreeEntryKind.BLOB, content.id)
    odd = typed(Tree((twice, twice)))
    commit = typed(Commit((old,), 5, "Odd", odd.id))
    fields = {"parents": [], "timestamp_unix": 2**63, "message": "", "root_tree": odd.id}
    late = raw(msgspec.msgpack.encode(["commit", 1, fields]))
    objects = [
        raw(msgspec.msgpack.encode(["deep", 1, nested])),
        raw(b"\x93\xa1x\x01\x81\x80\x01"),
        late,
        odd,
        content,
        commit,
    ]
    repository.objects.write(objects)
    for item in objects:
        assert "E000" not in ctx("debug", "cat", item.id).err
        assert "E000" not in ctx("debug", "cat", item.id, "--format", "json").err
    repository.heads.advance(commit.id, [old])
    (project / "a.txt").write_text("a")
    for line in ("debug verify", "debug index", "add file .", "commit -m x", "gc"):
        assert "E000" not in ctx(*line.split()).err
