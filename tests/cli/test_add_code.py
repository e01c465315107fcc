"""`ctx add code` and `ctx add rust`: the code in the index, and a snapshot of it in a commit."""

import os
from pathlib import Path
from typing import Any

import pytest

from ctx.ids import ObjectId
from ctx.layout import project_at
from ctx.objects import trees
from ctx.objects.object_store import read_typed
from ctx.objects.object_types import CodeSnapshot, Commit, StepKind, WorkCommit
from ctx.objects.repository import Repository
from tests.conftest import Ctx, git
from tests.files import write

BASE = '''\
class Base:
    """What all share."""
'''
NET = """\
import os
from .base import Base


class Client(Base):
    def connect(self, tries=3):
        return helper(tries)


def helper(tries):
    return os.getcwd()
"""
FILES = {
    "README.md": "# Shop\n",
    "shop/__init__.py": "",
    "shop/base.py": BASE,
    "shop/net.py": NET,
    "core/Cargo.toml": '[package]\nname = "core"\nversion = "0.1.0"\nedition = "2021"\n',
    "core/src/lib.rs": "pub fn run() {}\n",
}


@pytest.fixture
def shop(repo: Path) -> Path:
    """A git repository with code in two languages, and no project store."""
    write(repo, FILES)
    return repo


@pytest.fixture
def project(shop: Path, ctx: Ctx) -> Path:
    assert ctx("init").code == 0
    return shop


def added(ctx: Ctx, *words: str) -> Any:
    ran = ctx("add", *words, "--format", "json")
    assert ran.code == 0, ran.err
    return ran.json


def leaves(root: Path, tree: str) -> dict[str, ObjectId]:
    return dict(trees.paths(Repository(project_at(str(root))).everything, ObjectId(tree)))


def snapshot_of(root: Path, tree: str, path: str) -> CodeSnapshot:
    repository = Repository(project_at(str(root)))
    return read_typed(repository.everything, leaves(root, tree)[path], CodeSnapshot)


def test_what_was_read_also_without_a_project_store(shop: Path, ctx: Ctx) -> None:
    ran = ctx("add", "code")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "Read 4 of 6 files (6 new or changed): 5 items.\n"
        "  python  3 files  13 lines\n"
        "  rust    1 file   1 line\n"
        "Items: 2 function, 2 class, 1 method.\n"
        "Not read: 2 (no grammar).\n"
    )
    assert not (shop / ".ctx").exists()
    again = added(ctx, "code")
    assert (again["changed"], again["files"], again["read"]) == (0, 6, 4)
    (shop / "shop" / "net.py").unlink()
    assert added(ctx, "code")["read"] == 3


def test_only_some_files(shop: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    found = added(ctx, "code", "--files", "shop/b*.py", "core")
    assert [each["language"] for each in found["languages"]] == ["python", "rust"]
    assert found["items"] == [{"kind": "function", "items": 1}, {"kind": "class", "items": 1}]
    found = added(ctx, "rust")
    assert (found["files"], found["read"]) == (1, 1)
    assert found["languages"] == [{"language": "rust", "files": 1, "lines": 1}]
    assert "1 function" in ctx("add", "rust", "--files", "core/**/*.rs").out
    assert ctx("add", "rust", "--files", "shop").out == "No code found.\n"
    monkeypatch.chdir(shop / "shop")
    assert added(ctx, "code", "--files", "net.py")["read"] == 1
    ran = ctx("add", "code", "--files", "*.go")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "error E015: Nothing matches '*.go'.",
        "  To add ignored files, use `ctx add file --force`.",
    ]
    # Parse errors and binary files are reported.
    write(shop, {"shop/broken.py": "def half(:\n", "shop/blob.py": "x\0y"})
    ran = ctx("add", "code")
    assert (ran.code, ran.err) == (0, "warning: 1 place could not be parsed, in shop/broken.py.\n")
    assert "Not read: 2 (no grammar), 1 (binary)." in ran.out
    for words, code, message in (
        (("add", "code", "--snapshot"), 1, "error E012:"),
        (("add", "code", "--commit"), 2, "error E011: --commit needs --snapshot."),
    ):
        ran = ctx(*words)
        assert ran.code == code
        assert ran.err.startswith(message)


def test_a_snapshot_is_staged_and_committed(project: Path, ctx: Ctx) -> None:
    first = added(ctx, "code", "--snapshot")["snapshot"]["tree"]
    # One that was aborted is taken again.
    assert ctx("stage", "abort").code == 0
    ran = ctx("add", "code", "--snapshot")
    assert ran.out.splitlines()[-1] == (
        "Staged a snapshot of 4 files in session cli: 4 new or changed."
    )
    assert ran.err == "Next: ctx commit -m MESSAGE\n"
    again = added(ctx, "code", "--snapshot")["snapshot"]
    assert (again["work_commit"], again["files"], again["changed"]) == (None, 4, 0)
    assert again["tree"] == first
    told = ctx("add", "code", "--snapshot").out.splitlines()[-1]
    assert told == "Unchanged since the last snapshot of 4 files."
    repository = Repository(project_at(str(project)))
    tip = repository.refs.read("work/cli")
    assert tip is not None
    step = read_typed(repository.staged, tip, WorkCommit)
    assert (step.step_kind, step.payload) == (StepKind.COMMAND_RUN, (again["tree"],))
    made = ctx("commit", "--auto", "--format", "json").json
    assert made["message"] == "Keep a snapshot of the code"
    commit = read_typed(repository.objects, made["commit"], Commit)
    assert commit.code_snapshot == again["tree"]
    assert made["changes"] == ["+ a snapshot of the code"]
    assert " + a snapshot of the code\n" in ctx("log").out
    [entry_file] = (project / ".ctx/narrative/log").iterdir()
    assert "- `+` a snapshot of the code\n" in entry_file.read_text()
    assert added(ctx, "code", "--snapshot")["snapshot"]["work_commit"] is None
    [entry] = ctx("debug", "index", f"commit:{made['commit']}", "--format", "json").json["entries"]
    assert entry["code_snapshot"] == again["tree"]
    assert "no damage found" in ctx("debug", "verify").out
    assert list(leaves(project, again["tree"])) == [
        "core/src/lib.rs",
        "shop/__init__.py",
        "shop/base.py",
        "shop/net.py",
    ]


def test_what_a_snapshot_holds(project: Path, ctx: Ctx) -> None:
    tree = added(ctx, "code", "--snapshot")["snapshot"]["tree"]
    base, net = (snapshot_of(project, tree, f"shop/{name}.py") for name in ("base", "net"))
    assert net.language == "python"
    assert [module.module_path for module in net.modules] == [("shop", "net")]
    assert [
        (item.kind.value, item.name, item.stable_key, item.signature, item.doc)
        for item in (*base.items, *net.items)
    ] == [
        ("class", "Base", "shop.base.Base", "class Base", "What all share."),
        ("class", "Client", "shop.net.Client", "class Client(Base)", ""),
        ("method", "connect", "shop.net.Client.connect", "def connect(self, tries=3)", ""),
        ("function", "helper", "shop.net.helper", "def helper(tries)", ""),
    ]
    text = NET.encode()
    spans = [item.declared_span for item in net.items]
    assert text[spans[1].start_byte : spans[1].end_byte].startswith(b"def connect")
    assert [(span.start_line, span.end_line) for span in spans] == [(5, 7), (6, 7), (10, 11)]
    assert len({item.signature_hash for item in net.items}) == 3
    assert [(each.path, each.kind.value, each.span.start_line) for each in net.imports] == [
        ("os", "single", 1),
        (".base.Base", "self", 2),
    ]
    to_os, to_base = net.imports
    assert (to_os.resolved_to_item, to_os.resolved_to_module) == (None, None)
    assert to_base.resolved_to_item == base.items[0].item_id
    span = to_base.span
    assert text[span.start_byte : span.end_byte] == b"from .base import Base\n"
    [implementation] = net.implementations
    assert (implementation.self_type, implementation.trait) == ("Client", "shop.base.Base")
    assert implementation.provides_items == (net.items[1].item_id,)


def test_what_did_not_change_is_the_same_object(project: Path, ctx: Ctx) -> None:
    first = added(ctx, "code", "--snapshot")["snapshot"]["tree"]
    assert ctx("commit", "-m", "One").code == 0
    before = leaves(project, first)
    # What it imports moves down by a line, and it does not.
    write(project, {"shop/base.py": f"# Anything.\n{BASE}", "shop/new.py": "x = 1\n"})
    (project / "core/src/lib.rs").unlink()
    ran = ctx("add", "code", "--snapshot")
    assert ran.out.splitlines()[-1] == (
        "Staged a snapshot of 4 files in session cli: 2 new or changed, 1 removed."
    )
    assert ctx("commit", "-m", "Two").code == 0
    second = added(ctx, "code", "--snapshot")["snapshot"]["tree"]
    after = leaves(project, second)
    same = {path for path, id in after.items() if before.get(path) == id}
    assert same == {"shop/__init__.py", "shop/net.py"}
    assert sorted(after.keys() - same) == ["shop/base.py", "shop/new.py"]
    # A part is laid over the snapshot before.
    write(project, {"shop/net.py": "x = 1\n", "core/src/lib.rs": "pub fn walk() {}\n"})
    taken = added(ctx, "rust", "--snapshot")["snapshot"]
    assert (taken["files"], taken["changed"], taken["removed"]) == (5, 1, 0)
    part = leaves(project, taken["tree"])
    assert {path for path in part if part[path] != after.get(path)} == {"core/src/lib.rs"}
    [item] = snapshot_of(project, taken["tree"], "core/src/lib.rs").items
    assert item.stable_key == "core::walk"


@pytest.mark.slow
def test_a_clone_has_all_of_it(project: Path, ctx: Ctx, tmp_path: Path) -> None:
    write(project, {"shop/net.py": NET + "\nLIMIT = 3\n"})
    made = added(ctx, "code", "--snapshot", "-m", "The limit")
    tree = made["code"]["snapshot"]["tree"]
    # Staging is gone: what is committed is whole without it.
    assert ctx("gc", "--aggressive").code == 0
    git("add", "-A")
    git("commit", "-qm", "Shop")
    clone = tmp_path / "clone"
    git("clone", "-q", str(project), str(clone))
    there = ("-C", str(clone))
    assert ctx(*there, "trust", "--yes").code == 0
    shown = ctx(*there, "debug", "cat", tree, "--format", "json").json
    assert [entry["name"] for entry in shown["fields"]["entries"]] == ["core", "shop"]
    assert ctx(*there, "gc").code == 0
    assert "no damage found" in ctx(*there, "debug", "verify").out
    leaf = ctx(*there, "debug", "cat", leaves(clone, tree)["shop/net.py"]).out
    assert '"stable_key": "shop.net.Client.connect"' in leaf


def test_secrets_do_not_enter(project: Path, ctx: Ctx) -> None:
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    write(project, {"shop/net.py": f'def connect(token="{secret}"):\n    """Uses {secret}."""\n'})
    write(project, {f"shop/{secret}.py": "x = 1\n"})
    ran = ctx("add", "code", "--snapshot", "-m", "All")
    assert ran.code == 0
    # A file whose name is a secret is not in the index either.
    assert secret not in ran.out + ran.err
    repository = Repository(project_at(str(project)))
    kept = [repository.objects.read(id).payload for id in repository.objects.ids()]
    assert any(b"def connect(token=" in payload for payload in kept)
    assert not any(secret.encode() in payload for payload in kept)


def test_no_code_no_snapshot(folder: Path, ctx: Ctx) -> None:
    assert ctx("init").code == 0
    found = added(ctx, "code", "--snapshot")
    assert (found["read"], found["snapshot"]["work_commit"]) == (0, None)
    assert os.listdir(folder) == [".ctx"]
