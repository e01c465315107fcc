"""What people and file systems come up with: a clear error, and nothing half-written."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ctx.ids import session_id
from tests.conftest import Ctx, git
from tests.faults import Disk


@pytest.fixture
def project(folder: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    return folder


def state(folder: Path) -> set[str]:
    return {str(path) for path in (folder / ".ctx").rglob("*")}


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
def test_not_a_project(folder: Path, ctx: Ctx, words: list[str]) -> None:
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


@pytest.mark.parametrize(
    "word",
    ["../outside.txt", "/etc/hosts", "sub/../../outside.txt", "link-out/hosts"],
)
def test_a_path_outside_the_project(project: Path, ctx: Ctx, word: str) -> None:
    (project.parent / "outside.txt").write_text("x")
    (project / "sub").mkdir()
    (project / "link-out").symlink_to("/etc")
    before = state(project)
    ran = ctx("add", "file", word)
    assert ran.code == 1
    assert "error E015" in ran.err
    assert "outside the project" in ran.err
    assert state(project) == before


@pytest.mark.parametrize("word", ["missing.txt", "no/such/folder", "*.nothing", ""])
def test_a_path_that_is_not_there(project: Path, ctx: Ctx, word: str) -> None:
    (project / "good.txt").write_text("x")
    before = state(project)
    ran = ctx("add", "file", "good.txt", word or "missing")
    assert ran.code == 1
    assert "error E015" in ran.err
    assert state(project) == before


def test_the_store_itself_cannot_be_added(project: Path, ctx: Ctx) -> None:
    assert "belongs to ctx" in ctx("add", "file", ".ctx/config.toml").err
    (project / "a.txt").write_text("a")
    assert [item["path"] for item in ctx("add", "file", ".", "--format", "json").json["added"]] == [
        "a.txt"
    ]


def test_what_cannot_be_kept_is_refused_with_a_reason(project: Path, ctx: Ctx) -> None:
    (project / "good.txt").write_text("good\n")
    (project / "image.bin").write_bytes(b"\x89PNG\0\0")
    (project / "large.txt").write_bytes(b"x" * 2000)
    (project / "link.txt").symlink_to("good.txt")
    (project / "loop").symlink_to("loop")
    os.mkfifo(project / "pipe")
    (project / "new\nline.txt").write_text("x")
    bad = os.fsencode(project) + b"/bad-\xff.txt"
    with open(bad, "wb") as file:
        file.write(b"x")
    key = "-----BEGIN RSA PRIVATE" + " KEY-----"
    (project / "secret.pem").write_text(f"{key}\n{'MIIEowIBAAKCAQEA' * 8}\n")
    (project / "unreadable.txt").write_text("x")
    ran = ctx("add", "file", ".", "--set", "ingestion.max_file_bytes=1000", "--format", "json")
    assert ran.code == 0
    answer = ran.json
    added = [item["path"] for item in answer["added"]]
    assert added == ["good.txt", "unreadable.txt"]
    reasons = {item["path"]: item["reason"] for item in answer["refused"]}
    assert "binary" in reasons["image.bin"]
    assert "2,000 bytes" in reasons["large.txt"]
    assert "symbolic link" in reasons["link.txt"]
    assert "symbolic link" in reasons["loop"]
    assert "plain file" in reasons["pipe"]
    assert "control character" in reasons["new\nline.txt"]
    assert "secret" in reasons["secret.pem"]
    (name,) = [path for path in reasons if path.startswith("bad-")]
    assert "not UTF-8" in reasons[name]


@pytest.mark.parametrize("name", [b"bad-\xff.txt", b"new\nline.txt", b"loop", b"pipe"])
def test_naming_an_impossible_file_outright_fails(project: Path, name: bytes) -> None:
    path = os.fsencode(project) + b"/" + name
    if name == b"loop":
        os.symlink(b"loop", path)
    elif name == b"pipe":
        os.mkfifo(path)
    else:
        with open(path, "wb") as file:
            file.write(b"x")
    ran = subprocess.run(
        [sys.executable, "-m", "ctx", "add", "file", name],
        cwd=project,
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert ran.returncode == 1
    assert b"Refused 1 file" in ran.stdout
    assert b"Traceback" not in ran.stderr


def test_a_refused_file_does_not_stop_the_others(project: Path, ctx: Ctx) -> None:
    (project / "good.txt").write_text("good\n")
    (project / "image.bin").write_bytes(b"\0")
    ran = ctx("add", "file", "good.txt", "image.bin")
    assert ran.code == 1
    assert "new  good.txt" in ran.out
    assert ctx("commit", "-m", "Good").code == 0


def test_a_secret_can_be_added_on_purpose(project: Path, ctx: Ctx) -> None:
    key = "-----BEGIN RSA PRIVATE" + " KEY-----"
    (project / "fixture.pem").write_text(f"{key}\n{'MIIEowIBAAKCAQEA' * 8}\n")
    assert ctx("add", "file", "fixture.pem").code == 1
    assert ctx("add", "file", "fixture.pem", "--allow-secrets").code == 0


def test_a_secret_in_a_message_is_left_out(project: Path, ctx: Ctx) -> None:
    (project / "a.txt").write_text("a")
    ctx("add", "file", "a.txt")
    token = "ghp_" + "0aB1cD2eF3" * 3 + "gH4iJ5"
    ran = ctx("commit", "-m", f"Use {token} for now", "--format", "json")
    assert ran.code == 0
    assert token not in ran.out
    assert "[redacted:" in ran.json["message"]
    assert [(item["where"], item["line"]) for item in ran.json["secrets"]] == [("message", 1)]
    assert "message, line 1: a secret was left out" in ran.err
    for path in (project / ".ctx").rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes()


def test_a_secret_in_a_narrative_file_stays_out_of_the_snapshot(project: Path, ctx: Ctx) -> None:
    token = "ghp_" + "0aB1cD2eF3" * 3 + "gH4iJ5"
    note = project / ".ctx" / "narrative" / "note.md"
    note.write_text(f"# Note\n\nThe token is {token}.\n")
    ran = ctx("commit", "-m", "Note")
    assert "narrative/note.md, line 3: a secret was left out" in ran.err
    assert ".ctx/narrative/note.md still has it" in ran.err
    assert "git does not know" not in ran.err
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
def test_session_names(name: str) -> None:
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


def test_a_read_only_folder() -> None:
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
            timeout=30,
        )
        assert ran.returncode == 1, ran.stderr
        assert "error E014: Not permitted while making the project store" in ran.stderr
        assert "Traceback" not in ran.stderr
        assert list(folder.iterdir()) == []


def test_a_file_where_the_store_should_be(folder: Path, ctx: Ctx) -> None:
    (folder / ".ctx").write_text("mine")
    ran = ctx("init")
    assert ran.code == 1
    assert "error E01" in ran.err
    assert (folder / ".ctx").read_text() == "mine"


def test_git_that_is_missing(
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


def test_a_folder_that_has_gone(
    folder: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ran = ctx("gc")
    assert ran.code == 2
    assert "no longer exists" in ran.err


def test_a_closed_pipe_is_no_error(project: Path) -> None:
    ran = subprocess.run(
        f"{sys.executable} -m ctx debug history --format json | true",
        shell=True,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""


def test_ignored_files_need_force(repo: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "a.log").write_text("a")
    (repo / "node_modules").mkdir()
    (repo / "node_modules" / "m.js").write_text("m")
    answer = ctx("add", "file", ".", "--format", "json").json
    assert [item["path"] for item in answer["added"]] == [".gitignore"]
    named = ctx("add", "file", "a.log", "node_modules/m.js")
    assert named.code == 1
    assert ".gitignore lists it" in named.out
    assert "ignore_globs lists it" in named.out
    assert ctx("add", "file", "a.log", "node_modules/m.js", "--force").code == 0


def test_without_git_the_ignore_files_hold_all_the_same(project: Path, ctx: Ctx) -> None:
    (project / ".gitignore").write_text("*.log\n/build/\n")
    (project / "sub").mkdir()
    (project / "sub" / ".gitignore").write_text("!keep.log\nlocal.txt\n")
    (project / "build").mkdir()
    for name in ("a.log", "b.txt", "sub/keep.log", "sub/x.log", "sub/local.txt", "build/o.txt"):
        (project / name).write_text(name)
    answer = ctx("add", "file", ".", "--format", "json").json
    added = {item["path"] for item in answer["added"]}
    assert added == {".gitignore", "sub/.gitignore", "b.txt", "sub/keep.log"}


def test_git_add_and_our_ignore_rules_agree(repo: Path, ctx: Ctx) -> None:
    assert ctx("init", "--no-git").code == 0
    (repo / ".gitignore").write_text("*.log\n")
    for name in ("a.log", "b.txt", "c d.txt", "ü.txt"):
        (repo / name).write_text(name)
    git("add", "b.txt")
    answer = ctx("add", "file", ".", "--format", "json").json
    added = {item["path"] for item in answer["added"]}
    assert added == {".gitignore", "b.txt", "c d.txt", "ü.txt"}


def test_text_that_is_not_utf8_is_said(project: Path) -> None:
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
def test_a_strangers_links_lead_nowhere(project: Path, ctx: Ctx, name: str) -> None:
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


def test_trees_that_unfold_without_end(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctx.layout import project_at
    from ctx.objects import trees
    from ctx.objects.model import Commit, Tree, TreeEntry, TreeEntryKind
    from ctx.objects.repository import Repository
    from ctx.objects.store import blob, typed

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


def test_what_a_file_manager_leaves_does_no_harm(project: Path, ctx: Ctx) -> None:
    for place in ("heads", "objects", "narrative"):
        (project / ".ctx" / place / ".DS_Store").write_bytes(b"x")
    assert ctx("debug", "verify").code == 0
    assert ctx("debug", "refs").code == 0


def test_a_very_deep_file_is_refused(project: Path, ctx: Ctx) -> None:
    deep = project.joinpath(*["d"] * 300)
    deep.mkdir(parents=True)
    (deep / "f.txt").write_text("x")
    (project / "a.txt").write_text("a")
    answer = ctx("add", "file", ".", "--format", "json").json
    assert [item["path"] for item in answer["added"]] == ["a.txt"]
    assert "folders deep" in answer["refused"][0]["reason"]


def test_a_link_is_refused_wherever_it_is_met(project: Path, ctx: Ctx) -> None:
    private = project.parent / "private"
    private.mkdir()
    (private / "diary.txt").write_text("dear diary")
    (project / "link").symlink_to(private)
    (project / "a.txt").write_text("a")
    for words in (["link"], ["link/"], ["link//"], ["."], ["*"], ["**"], ["**/*.txt"], ["-f", "."]):
        answer = ctx("add", "file", *words, "--format", "json").json
        assert all("diary" not in item["path"] for item in answer["added"]), words
    assert ctx("add", "file", "link").code == 1
    assert ctx("add", "file", "link/diary.txt").code == 1


def test_globs_pass_over_the_store_and_git(repo: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    (repo / "src" / "deep").mkdir(parents=True)
    for name in ("a.txt", "b.py", "src/c.py", "src/deep/d.py"):
        (repo / name).write_text(name)

    def added(glob: str) -> list[str]:
        answer = ctx("add", "file", glob, "--session", f"s{hash(glob)}", "--format", "json").json
        return [item["path"] for item in answer["added"]]

    assert added("*") == ["a.txt", "b.py", "src/c.py", "src/deep/d.py"]
    assert added("**") == ["a.txt", "b.py", "src/c.py", "src/deep/d.py"]
    assert added("*.py") == ["b.py"]
    assert added("**/*.py") == ["b.py", "src/c.py", "src/deep/d.py"]
    assert added("src/*.py") == ["src/c.py"]
    assert added("[ab].*") == ["a.txt", "b.py"]
    assert added("s*/deep") == ["src/deep/d.py"]


def test_links_that_lead_in_circles(project: Path, ctx: Ctx) -> None:
    (project / "a").symlink_to(".")
    (project / "b").symlink_to(".")
    (project / "x.py").write_text("x")
    answer = ctx("add", "file", "**/*.py", "--format", "json").json
    assert [item["path"] for item in answer["added"]] == ["x.py"]


SCRIPTS = ["設計\u3000メモ.txt", "می\u200cخواهم.txt", "👨\u200d👩.txt", "a\u00a0b.txt", "-x", ":y"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_names_in_every_script(repo: Path, ctx: Ctx, name: str) -> None:
    assert ctx("init").code == 0
    (repo / name).write_text("x")
    answer = ctx("add", "file", ".", "--format", "json").json
    assert [item["path"] for item in answer["added"]] == [name]
    (repo / ".ctx" / "narrative" / f"{name}.md").write_text("# x\n")
    made = ctx("commit", "-m", "x", "--format", "json").json
    assert made["documents"] == [f"{name}.md"]


def test_a_folder_that_became_a_file_in_one_session(project: Path, ctx: Ctx) -> None:
    (project / "a").mkdir()
    (project / "a" / "b").write_text("b")
    ctx("add", "file", "a")
    (project / "a" / "b").unlink()
    (project / "a").rmdir()
    (project / "a").write_text("a")
    ctx("add", "file", "a")
    assert ctx("commit", "-m", "Both", "--format", "json").json["files"] == ["a"]
    assert ctx("debug", "index", "path:a", "--format", "json").json["entries"]
    assert not ctx("debug", "index", "path:a/b", "--format", "json").json["entries"]


def test_narrative_that_is_not_kept_is_said(project: Path, ctx: Ctx) -> None:
    narrative = project / ".ctx" / "narrative"
    os.mkfifo(narrative / "pipe.md")
    (narrative / "line\nbreak.md").write_text("x")
    (narrative / "kept.md").write_text("x")
    ran = ctx("commit", "-m", "x", "--format", "json")
    assert ran.json["documents"] == ["kept.md"]
    assert {item["path"] for item in ran.json["skipped"]} == {"pipe.md", "line\nbreak.md"}
    assert '{"warning": "narrative/pipe.md is not kept: it is not a plain file."}' in ran.err


def test_secrets_in_names_stay_out(repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_init_says_that_it_is_inside_another_project(project: Path, ctx: Ctx) -> None:
    (project / "inner").mkdir()
    ran = ctx("init", "inner")
    assert ran.code == 0
    assert f"inside another one, {project}" in ran.err


@pytest.mark.parametrize("words", [["init"], ["init", "--force"], ["init", "--force", "--yes"]])
def test_init_leaves_somebody_elses_folder_alone(folder: Path, ctx: Ctx, words: list[str]) -> None:
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


def test_force_waits_for_the_lock(project: Path, ctx: Ctx) -> None:
    from ctx.layout import project_at
    from ctx.objects.repository import Repository

    (project / "a.txt").write_text("a")
    assert ctx("add", "file", "a.txt", "-m", "A").code == 0
    with Repository(project_at(str(project))).locked("something long"):
        ran = subprocess.run(
            [
                sys.executable,
                "-m",
                "ctx",
                "commit",
                "-m",
                "x",
                "--set",
                "storage.lock_timeout_seconds=0",
            ],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 1
        assert "error E006" in ran.stderr
        assert "something long" in ran.stderr
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
    assert waiting.wait(timeout=30) == 0


def test_a_file_larger_than_any_object(project: Path, ctx: Ctx) -> None:
    limit = ctx("add", "file", ".", "--set", "ingestion.max_file_bytes=400000000")
    assert limit.code == 1
    assert "error E013" in limit.err


def test_an_ignore_file_that_is_a_folder(project: Path, ctx: Ctx) -> None:
    (project / ".gitignore").mkdir()
    (project / "a.txt").write_text("a")
    assert ctx("add", "file", ".").code == 0


def test_reading_a_store_that_cannot_be_written(project: Path, ctx: Ctx) -> None:
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


def test_a_folder_whose_name_looks_like_a_glob(
    project: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a[1]", "a1"):
        (project / name).mkdir()
        (project / name / "x.py").write_text(name)
    monkeypatch.chdir(project / "a[1]")
    answer = ctx("add", "file", "*.py", "--format", "json").json
    assert [item["path"] for item in answer["added"]] == ["a[1]/x.py"]
    answer = ctx("add", "file", "../a1/*.py", "--format", "json").json
    assert [item["path"] for item in answer["added"]] == ["a1/x.py"]


def test_force_leaves_other_repositories_alone(repo: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    (repo / "inner").mkdir()
    git("init", "-q", cwd=repo / "inner")
    (repo / "inner" / "x.txt").write_text("x")
    (repo / "a.txt").write_text("a")
    answer = ctx("add", "file", "--force", ".", "--format", "json").json
    assert [item["path"] for item in answer["added"]] == ["a.txt"]
    ran = ctx("add", "file", "inner")
    assert ran.code == 1
    assert "belongs to the git repository in inner" in ran.out


@pytest.mark.parametrize("line", ["!", "a\\", "[", "**", "***", "\\"])
def test_patterns_that_make_no_sense(project: Path, ctx: Ctx, line: str) -> None:
    (project / ".gitignore").write_text(f"{line}\n")
    (project / "a.txt").write_text("a")
    assert ctx("add", "file", ".").code in (0, 1)
    for words in (
        ["add", "file", f"x*{line}"],
        ["--set", f"ingestion.ignore_globs={line}", "add", "file", "."],
    ):
        ran = ctx(*words)
        assert ran.code in (0, 1, 2)
        assert "E000" not in ran.err


def test_objects_that_are_built_to_confuse(project: Path, ctx: Ctx) -> None:
    import msgspec

    from ctx.layout import project_at
    from ctx.objects.model import Commit, Tree, TreeEntry, TreeEntryKind
    from ctx.objects.repository import Repository
    from ctx.objects.store import Kind, Object, blob, id_of, typed

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
