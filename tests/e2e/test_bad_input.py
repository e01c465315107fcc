"""Bad input and unusual file systems give a clear error, and nothing is half-written."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ctx.ids import session_id
from ctx.layout import project_at
from ctx.objects import repository
from ctx.objects.repository import Repository
from tests.conftest import Ctx, git
from tests.e2e.conftest import state
from tests.faults import Disk


@pytest.mark.parametrize(
    "words",
    [
        ["add", "file", "x"],
        ["commit", "-m", "x"],
        ["gc"],
        ["debug", "verify"],
        ["debug", "refs"],
    ],
    ids=" ".join,
)
def test_outside_of_a_project_there_is_an_error(folder: Path, ctx: Ctx, words: list[str]) -> None:
    ran = ctx(*words)
    assert ran.code == 1
    assert "error E012" in ran.err
    assert "ctx init" in ran.err
    assert ran.out == ""
    assert list(folder.iterdir()) == []


def test_errors_are_json_too(folder: Path, ctx: Ctx) -> None:
    import json

    ran = ctx("gc", "--format", "json")
    assert json.loads(ran.err)["error"]["code"] == "E012"


def test_a_secret_can_be_added_on_purpose(project: Path, ctx: Ctx) -> None:
    key = "-----BEGIN RSA PRIVATE" + " KEY-----"
    (project / "fixture.pem").write_text(f"{key}\n{'MIIEowIBAAKCAQEA' * 8}\n")
    assert ctx("add", "file", "fixture.pem").code == 1
    assert ctx("add", "file", "fixture.pem", "--allow-secrets").code == 0


def test_a_secret_in_a_message_is_redacted(project: Path, ctx: Ctx) -> None:
    (project / "a.txt").write_text("a")
    ctx("add", "file", "a.txt")
    token = "ghp_" + "0aB1cD2eF3" * 3 + "gH4iJ5"
    ran = ctx("commit", "-m", f"Use {token} for now", "--format", "json")
    assert ran.code == 0
    assert token not in ran.out
    assert "[redacted:" in ran.json["message"]
    assert [(item["where"], item["line"]) for item in ran.json["secrets"]] == [("message", 1)]
    assert "message, line 1: secret removed" in ran.err
    for path in (project / ".ctx").rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes()


def test_a_secret_in_a_narrative_file_is_not_stored(project: Path, ctx: Ctx) -> None:
    token = "ghp_" + "0aB1cD2eF3" * 3 + "gH4iJ5"
    note = project / ".ctx" / "narrative" / "note.md"
    note.write_text(f"# Note\n\nThe token is {token}.\n")
    ran = ctx("commit", "-m", "Note")
    assert "narrative/note.md, line 3: secret removed" in ran.err
    assert ".ctx/narrative/note.md contains a secret: remove it before" in ran.err
    assert "to add to git" not in ran.err
    assert token in note.read_text()
    assert ctx("commit", "-m", "Again", "--format", "json").json["commit"] is None
    (entry,) = ctx("debug", "index", "narrative:note.md", "--format", "json").json["entries"]
    assert "[redacted:" in ctx("debug", "cat", entry["blob_id"]).out


@pytest.mark.parametrize(
    "words",
    [
        ["frobnicate"],
        ["gc", "--keep-days", "soon"],
        ["gc", "--keep-days", "-1"],
        ["commit"],
        ["commit", "-m", "   "],
        ["add"],
        ["add", "file"],
        ["add", "nonsense"],
        ["init", "--template", "huge"],
        ["debug", "cat", "xyz!"],
        ["debug", "cat", "abc"],
        ["debug", "index", "nonsense"],
        ["debug", "history", "--limit", "0"],
        ["--nonsense"],
        ["--format", "xml", "gc"],
        ["-C", "/no/such/folder", "gc"],
        ["--set", "nonsense", "gc"],
        ["help", "nonsense"],
        ["add", "file", "a", "--session", "../../etc"],
        ["add", "file", "a", "--session", ".hidden"],
        ["add", "file", "a", "--session", "x" * 200],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_a_wrong_command_line_exits_with_2(project: Path, ctx: Ctx, words: list[str]) -> None:
    (project / "a").write_text("a")
    before = state(project)
    ran = ctx(*words)
    assert ran.code == 2, ran.err
    assert "error E011" in ran.err
    assert ran.out == ""
    assert state(project) == before


def test_the_nearest_command_is_suggested(folder: Path, ctx: Ctx) -> None:
    assert "Did you mean `commit`?" in ctx("comit").err


@pytest.mark.parametrize("name", ["a", "retry-feature-001", "A.b_c-9", "x" * 128])
def test_valid_session_names_are_accepted(name: str) -> None:
    assert session_id(name) == name


READ_ONLY = """
import os, sys
from ctx.cli.main import main
assert main(["-q", "init", sys.argv[1]]) == 0
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
sys.exit(main(["init", sys.argv[2]]))
"""


def test_a_read_only_folder_is_an_error() -> None:
    """As another user, because root may write anywhere. The first call loads the modules,
    which that user may not be allowed to read."""
    with tempfile.TemporaryDirectory() as space:
        Path(space).chmod(0o755)
        first, folder = Path(space, "first"), Path(space, "folder")
        first.mkdir()
        folder.mkdir()
        folder.chmod(0o555)
        ran = subprocess.run(
            [sys.executable, "-c", READ_ONLY, first, folder],
            cwd=space,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert ran.returncode == 1, ran.stderr
        assert "error E014: Not permitted while making the project store" in ran.stderr
        assert "Traceback" not in ran.stderr
        assert list(folder.iterdir()) == []


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


def test_a_closed_pipe_is_not_an_error(project: Path) -> None:
    ran = subprocess.run(
        f"{sys.executable} -m ctx debug history --format json | true",
        shell=True,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""


def test_text_that_is_not_utf8_is_an_error(project: Path) -> None:
    (project / "a.txt").write_text("a")
    for words in (
        [b"commit", b"-m", b"caf\xe9"],
        [b"add", b"file", b"a.txt", b"-m", b"caf\xe9"],
        [b"debug", b"index", b"path:caf\xe9"],
        [b"debug", b"cat", b"caf\xe9"],
        [b"add", b"file", b"a.txt", b"--session", b"caf\xe9"],
        [b"\xff"],
        [b"config", b"get", b"\xff"],
        [b"--set", b"gc.keep_days=\xff", b"gc"],
    ):
        ran = subprocess.run(
            [sys.executable, "-m", "ctx", *words], cwd=project, capture_output=True, check=False
        )
        assert ran.returncode in (0, 1, 2), ran.stderr
        assert b"E000" not in ran.stderr, ran.stderr
        assert b"Traceback" not in ran.stderr, ran.stderr


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


def test_trees_with_too_many_paths_are_refused(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctx.objects import trees
    from ctx.objects.object_store import blob, typed
    from ctx.objects.object_types import Commit, Tree, TreeEntry, TreeEntryKind

    monkeypatch.setattr(trees, "MOST_PATHS", 10_000)
    repository = Repository(project_at(str(project)))
    content = blob(b"x")
    objects = [content]
    below, kind = content.id, TreeEntryKind.BLOB
    for _ in range(30):
        tree = typed(Tree(tuple(TreeEntry(name, kind, below) for name in "abcdefghij")))
        objects.append(tree)
        below, kind = tree.id, TreeEntryKind.TREE
    (old,) = repository.current()
    bomb = typed(Commit((old[0],), 2_000_000_000, "Bomb", below))
    repository.objects.write([*objects, bomb])
    repository.heads.advance(bomb.id, [old[0]])
    ran = ctx("debug", "index")
    assert ran.code == 1
    assert "error E010" in ran.err
    assert ctx("debug", "verify").code == 0
    assert ctx("gc", "--keep-days", "0").code == 0
    (project / "a.txt").write_text("a")
    assert ctx("add", "file", "a.txt", "-m", "On").code == 0


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
    token = "ghp_" + "0aB1cD2eF3" * 3 + "gH4iJ5"
    monkeypatch.setenv("GIT_AUTHOR_NAME", token)
    assert ctx("init").code == 0
    (repo / f"{token}.txt").write_text("x")
    (repo / "a.txt").write_text("a")
    assert "looks like a secret" in ctx("add", "file", ".").out
    assert ctx("add", "file", "a.txt", "--session", token).code == 2
    assert ctx("commit", "-m", "x").code == 0
    history = ctx("debug", "history", "--format", "json").out
    assert token not in history
    assert "[redacted:" in history


def test_a_blank_message_stages_nothing(project: Path, ctx: Ctx) -> None:
    (project / "a.txt").write_text("a")
    before = state(project)
    for words in (
        ["add", "file", "a.txt", "-m", " "],
        ["commit", "--amend", "-m", " "],
    ):
        assert ctx(*words).code == 2
        assert state(project) == before
    assert ctx("add", "file", "").code == 1


@pytest.mark.parametrize("place", [".git", ".git/sub", ".ctx", "bare"])
def test_init_refuses_places_that_are_not_projects(repo: Path, ctx: Ctx, place: str) -> None:
    assert ctx("init").code == 0
    (repo / place).mkdir(exist_ok=True)
    if place == "bare":
        git("init", "-q", "--bare", cwd=repo / place)
    refused = ctx("init", place)
    assert refused.code == 1
    assert "error E015" in refused.err
    assert not (repo / place / ".ctx").exists()


def test_init_warns_inside_another_project(project: Path, ctx: Ctx) -> None:
    (project / "inner").mkdir()
    ran = ctx("init", "inner")
    assert ran.code == 0
    assert f"inside another one: {project}" in ran.err


@pytest.mark.parametrize("words", [["init"], ["init", "--force"], ["init", "--force", "--yes"]])
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


def test_the_file_limit_cannot_exceed_the_object_limit(project: Path, ctx: Ctx) -> None:
    limit = ctx("add", "file", ".", "--set", "ingestion.max_file_bytes=400000000")
    assert limit.code == 1
    assert "error E013" in limit.err


def test_a_read_only_store_can_be_read(project: Path, ctx: Ctx) -> None:
    from tests.faults import READ_ONLY as CODE

    class Frozen(Disk):
        def _step(self, name: str, path: object) -> None:  # noqa: ARG002
            raise OSError(CODE, os.strerror(CODE), str(path))

    (project / "a.txt").write_text("a")
    ctx("add", "file", "a.txt", "-m", "A")
    for words in (
        ["debug", "verify"],
        ["debug", "refs"],
        ["debug", "history"],
        ["debug", "index", "path:a.txt"],
        ["gc", "--dry-run"],
        ["config", "list"],
    ):
        with Frozen().installed():
            ran = ctx(*words)
        assert ran.code == 0, (words, ran.err)


def test_hostile_objects_are_survived(project: Path, ctx: Ctx) -> None:
    import msgspec

    from ctx.objects.object_store import Kind, Object, blob, id_of, typed
    from ctx.objects.object_types import Commit, Tree, TreeEntry, TreeEntryKind

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
    late = raw(
        msgspec.msgpack.encode(
            [
                "commit",
                1,
                {"parents": [], "timestamp_unix": 2**63, "message": "", "root_tree": odd.id},
            ]
        )
    )
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
    for words in (
        ["debug", "verify"],
        ["debug", "index"],
        ["add", "file", "."],
        ["commit", "-m", "x"],
        ["gc"],
    ):
        assert "E000" not in ctx(*words).err
