from pathlib import Path

import pytest

from ctx import __version__, locks
from ctx.cli import debug
from ctx.layout import project_at
from ctx.objects.repository import Repository
from tests.conftest import Ctx


@pytest.fixture
def project(folder: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    (folder / "a.txt").write_text("hello\n")
    assert ctx("add", "file", "a.txt", "-m", "One").code == 0
    return folder


def test_cat(project: Path, ctx: Ctx) -> None:
    (entry,) = ctx("debug", "index", "path:a.txt", "--format", "json").json["entries"]
    assert ctx("debug", "cat", entry["blob_id"]).out == "hello\n"
    assert ctx("debug", "cat", entry["blob_id"][:10].upper()).out == "hello\n"
    assert ctx("debug", "cat", entry["blob_id"], "--format", "json").json["text"] == "hello\n"
    # Typed objects have names.
    (head,) = (project / ".ctx" / "heads").iterdir()
    shown = ctx("debug", "cat", head.name, "--format", "json").json
    assert shown["type"] == "commit"
    assert shown["fields"]["message"] == "One"
    assert ctx("debug", "cat", head.name).out.startswith(f"commit {head.name}\n{{\n")
    ran = ctx("debug", "cat", "0" * 64)
    assert (ran.code, ran.err[:10]) == (1, "error E001")
    # An ambiguous beginning lists the candidates.
    objects = project / ".ctx" / "objects"
    blob = next(path for path in objects.rglob("*") if path.is_file())
    twin = blob.name[:-1] + ("0" if blob.name[-1] != "0" else "1")
    (blob.parent / twin).write_bytes(b"")
    ran = ctx("debug", "cat", blob.name[:20])
    assert ran.code == 2
    assert "2 objects begin with" in ran.err
    assert ran.err.count(blob.name[:28]) == 2


def test_cat_prints_the_file_of_a_chunk(repo: Path, ctx: Ctx) -> None:
    (repo / "src").mkdir()
    source = repo / "src" / "pay.py"
    source.write_text('def charge(amount):\n    """Charge a card."""\n')
    for store in (False, True):
        if store:
            assert ctx("init").code == 0
        pack = ctx("query", "charge a card", "--format=json").json
        (chunk,) = [each for each in pack["retrieved"] if each["path"] == "src/pay.py"]
        shown = ctx("debug", "cat", chunk["object_id"])
        assert (shown.code, shown.out) == (0, source.read_text())
        found = ctx("debug", "cat", chunk["object_id"][:12], "--format=json").json
        assert (found["path"], found["type"]) == ("src/pay.py", "blob")
    assert ctx("debug", "cat", found["id"]).code == 1
    assert ctx("add", "file", "src/pay.py").code == 0
    assert ctx("debug", "cat", found["id"], "--format=json").json["path"] is None
    source.write_text("changed = True\n")
    assert ctx("debug", "cat", chunk["object_id"]).code == 1


def test_history_is_newest_first_and_can_be_cut(project: Path, ctx: Ctx) -> None:
    for number in range(3):
        (project / "a.txt").write_text(f"{number}\n")
        ctx("add", "file", "a.txt", "-m", f"Change {number}")
    found = ctx("debug", "history", "--limit", "2", "--format", "json").json
    assert [commit["message"] for commit in found["commits"]] == ["Change 2", "Change 1"]
    assert found["more"] is True
    assert found["commits"][0]["is_head"] is True
    text = ctx("debug", "history").out
    assert text.index("Change 2") < text.index("Change 0") < text.index("Initial commit")


def test_the_index_answers_by_path_file_commit_and_narrative(project: Path, ctx: Ctx) -> None:
    def entries(key: str) -> list[dict[str, str]]:
        found: list[dict[str, str]] = ctx("debug", "index", key, "--format", "json").json["entries"]
        return found

    (entry,) = entries("path:a.txt")
    assert entries(f"file:{entry['file_id'][:8]}") == [entry]
    (head,) = (project / ".ctx" / "heads").iterdir()
    assert entries(f"commit:{head.name[:10]}")[0]["message"] == "One"
    assert entries("narrative:README.md")[0]["role"] == "overview"
    assert entries("path:nothing") == []
    assert "nothing under path:nothing" in ctx("debug", "index", "path:nothing").out


def test_the_index_answers_about_code(project: Path, ctx: Ctx) -> None:
    def code(*key: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = ctx("debug", "index", *key, "--format", "json").json[
            "code"
        ]
        return found

    (project / "shop.py").write_text("class Till:\n    def ring(self):\n        pass\n")
    assert code() == code("name:ring") == []
    assert ctx("code", "index").code == 0
    [file] = code("path:shop.py")
    assert (file["language"], file["items"]) == ("python", 2)
    [item] = code("name:ring")
    assert (item["name"], item["file_id"], item["line"]) == ("shop.Till.ring", file["id"], 2)
    for key in ("item:shop.Till.ring", "item:ring", "item:Till::ring"):
        assert code(key) == [item]
    assert code("item:Till.rung") == []
    assert "Did you mean `shop.Till.ring`?" in ctx("debug", "index", "item:Till.rung").out
    assert code()[0]["parsed"] == 1
    assert "In the code" in ctx("debug", "index", "name:ring").out
    ran = ctx("debug", "index", "nonsense:x")
    assert (ran.code, "name:, item:, package:." in ran.err) == (2, True)


def test_the_index_answers_about_code_without_a_store(repo: Path, ctx: Ctx) -> None:
    (repo / "shop.py").write_text("class Till:\n    def ring(self):\n        pass\n")
    early = ctx("debug", "index", "name:ring")
    assert (early.code, early.out) == (0, "The index has nothing under name:ring.\n")
    assert "There is no code index yet. To create it: `ctx code index`" in early.err
    assert ctx("code", "index").code == 0
    for key in ("name:ring", "item:shop.Till.ring", "path:shop.py", f"path:{repo}/shop.py"):
        ran = ctx("debug", "index", key)
        assert (ran.code, "In the code" in ran.out) == (0, True)
        assert "The code index is" in ran.err
    for other in ("commit:3f2a91c0", "file:9b1d", "narrative:README.md"):
        assert "error E012" in ctx("debug", "index", other).err
    assert "error E012" in ctx("debug", "index").err


@pytest.mark.slow
def test_only_the_last_indexes_are_kept(project: Path, ctx: Ctx) -> None:
    heads, indexes = project / ".ctx" / "heads", project / ".ctx" / "local" / "index"
    made = []
    for number in range(9):
        (project / "a.txt").write_text(f"{number}\n")
        ctx("add", "file", "a.txt", "-m", f"Change {number}")
        made.append([head.name for head in heads.iterdir()])
    # What is committed takes the index over from what was before.
    assert ctx("debug", "index").code == 0
    assert len(list(indexes.iterdir())) == 1
    for number, names in enumerate(made):
        # As a branch does that is checked out.
        for head in heads.iterdir():
            head.unlink()
        for name in names:
            (heads / name).touch()
        (entry,) = ctx("debug", "index", "--format", "json").json["entries"]
        assert entry["commits"] == number + 3
    assert len(list(indexes.iterdir())) == 8


def test_help(ctx: Ctx) -> None:
    assert "nodes:" in ctx("help", "--all").out
    assert ctx().out == ctx("help").out == ctx("help", "help").out
    assert ctx().out.rstrip() in ctx("--help").out
    assert ctx("help", "config", "set").out.startswith("usage: ctx config set")
    assert "examples:" in ctx("help", "debug").out
    assert ctx("gc", "--help") == ctx("help", "gc")
    for words, said in (
        (("help", "config", "sett"), "Did you mean `set`?\n"),
        (("help", "nonsense"), ""),
        (("config", "gett", "x"), "Did you mean `get`?"),
        (("--fromat", "json", "gc"), "There is no option --fromat"),
        (("--fromat", "json", "gc"), "Did you mean `--format`?"),
    ):
        ran = ctx(*words)
        assert (ran.code, said in ran.err) == (2, True)
    for asked in (["--version"], ["-V"], ["-q", "--version"], ["--version", "--format", "json"]):
        assert ctx(*asked).out == f"ctx {__version__}\n"


def test_what_may_be_damaged_is_checked_again_under_the_lock(project: Path) -> None:
    repository = Repository(project_at(str(project)))
    objects = (project / ".ctx" / "objects").rglob("*")
    next(path for path in objects if path.is_file()).write_text("")
    held = []
    debug.verified(repository, lambda *_: held.append(locks.is_held(repository.project.lock)))
    half = len(held) // 2
    assert held == [False] * half + [True] * half
