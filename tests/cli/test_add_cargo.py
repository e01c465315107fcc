"""`ctx add cargo`, with the real cargo."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ctx.ids import ObjectId
from ctx.layout import project_at
from ctx.objects.object_store import read_typed
from ctx.objects.object_types import CargoSnapshot, Commit, EdgeBatch, StepKind, WorkCommit
from ctx.objects.repository import Repository
from tests.code.cargo import settle
from tests.conftest import Ctx, git
from tests.files import write

LOCK = """\
version = 4

[[package]]
name = "hull"
version = "0.2.0"

[[package]]
name = "ship-yard"
version = "1.0.0"
dependencies = [
 "hull",
]
"""
FILES = {
    "Cargo.toml": '[workspace]\nmembers = ["hull", "yard"]\nresolver = "2"\n',
    "hull/Cargo.toml": '[package]\nname = "hull"\nversion = "0.2.0"\nedition = "2021"\n'
    "[features]\npaint = []\n",
    "hull/src/lib.rs": "",
    "yard/Cargo.toml": '[package]\nname = "ship-yard"\nversion = "1.0.0"\nedition = "2018"\n'
    '[dependencies]\nhull = { path = "../hull", features = ["paint"] }\n'
    '[dev-dependencies]\nhull = { path = "../hull" }\n',
    "yard/src/main.rs": "fn main() {}\n",
    "yard/tests/launch.rs": "",
    "yard/build.rs": "fn main() {}\n",
}
YARD, HULL = "path+yard#ship-yard@1.0.0", "path+hull#hull@0.2.0"
CRATES = "registry+https://github.com/rust-lang/crates.io-index"


@pytest.fixture
def yard(repo: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cargo workspace in git, with a project store and nothing to resolve from a registry."""
    settle(monkeypatch, tmp_path)
    write(repo, FILES)
    (repo / "Cargo.lock").write_text(LOCK)
    assert ctx("init").code == 0
    return repo


def answer(ctx: Ctx, *words: str) -> Any:
    ran = ctx("add", "cargo", *words, "--format", "json")
    assert ran.code == 0, ran.err
    return ran.json


def needs(found: Any) -> list[tuple[Any, ...]]:
    return [
        (
            *(need["from_id"], need["to_id"], need["kind"]),
            *(need["optional"], need["features"]),
        )
        for need in found["dependencies"]
    ]


def test_a_workspace_is_staged_and_committed(yard: Path, ctx: Ctx) -> None:
    git("add", "-A")
    found = answer(ctx)
    assert found["problems"] == []
    assert found["workspace_root"] == "."
    assert [
        (package["id"], package["manifest"], package["edition"]) for package in found["packages"]
    ] == [(HULL, "hull/Cargo.toml", "2021"), (YARD, "yard/Cargo.toml", "2018")]
    assert [
        (target["name"], target["kind"], target["path"])
        for target in found["packages"][1]["targets"]
    ] == [
        ("ship-yard", "bin", "yard/src/main.rs"),
        ("build-script-build", "build_script", "yard/build.rs"),
        ("launch", "test", "yard/tests/launch.rs"),
    ]
    assert needs(found) == [
        (YARD, HULL, "dev", False, []),
        (YARD, HULL, "normal", False, ["paint"]),
    ]
    repository = Repository(project_at(str(yard)))
    step = read_typed(repository.staged, found["work_commit"], WorkCommit)
    assert step.step_kind is StepKind.COMMAND_RUN
    snapshot_id, batch_id = step.payload
    assert snapshot_id == found["snapshot"]
    snapshot = read_typed(repository.staged, snapshot_id, CargoSnapshot)
    targets = {
        target.target_id: target.name for each in snapshot.packages for target in each.targets
    }
    assert len(targets) == 4
    edges = read_typed(repository.staged, batch_id, EdgeBatch).edges
    assert all(edge.evidence.tool == "cargo" for edge in edges)
    assert [
        (edge.label, *(targets.get(ObjectId(end.id), end.id) for end in (edge.from_, edge.to)))
        for edge in edges
    ] == [
        ("DEPENDS_ON", YARD, HULL),
        ("TARGET_OF", "hull", HULL),
        ("CRATE_FROM_TARGET", "hull", "hull"),
        ("TARGET_OF", "ship-yard", YARD),
        ("CRATE_FROM_TARGET", "ship_yard", "ship-yard"),
        ("TARGET_OF", "build-script-build", YARD),
        ("CRATE_FROM_TARGET", "build_script_build", "build-script-build"),
        ("TARGET_OF", "launch", YARD),
        ("CRATE_FROM_TARGET", "launch", "launch"),
    ]

    made = ctx("commit", "-m", "The yard", "--format", "json").json
    assert made["edges"] == len(edges)
    commit = read_typed(repository.objects, made["commit"], Commit)
    assert (commit.cargo_snapshot, commit.edge_batches) == (snapshot_id, (batch_id,))
    assert read_typed(repository.objects, snapshot_id, CargoSnapshot) == snapshot
    made = ctx("commit", "--amend", "-m", "Better words", "--format", "json").json
    commit = read_typed(repository.objects, made["commit"], Commit)
    assert commit.cargo_snapshot == snapshot_id
    assert ctx("debug", "verify").code == 0
    # Neither the commit nor cargo has changed anything else.
    assert git("ls-files", "--others", "--modified", "--", ":!.ctx") == ""


def test_what_has_not_changed_is_not_staged_again(yard: Path, ctx: Ctx) -> None:
    assert ctx("add", "cargo", "-m", " ").code == 2
    ran = ctx("add", "cargo", "--session", "s-1")
    assert ran.out == (
        "Staged a cargo snapshot in session s-1: 2 packages, 9 edges.\n"
        "  hull       0.2.0  hull/Cargo.toml  1 target   0 dependencies\n"
        "  ship-yard  1.0.0  yard/Cargo.toml  3 targets  2 dependencies\n"
    )
    assert ran.err == "Next: ctx commit -m MESSAGE --session s-1\n"
    both = answer(ctx, "-m", "Now")
    assert both["commit"]["message"] == "Now"
    first = both["cargo"]
    again = ctx("add", "cargo")
    assert again.out == "Unchanged since the last snapshot: 2 packages, 9 edges.\n"
    ctx("add", "note", "In between")
    ctx("commit", "-m", "Two")
    assert answer(ctx)["work_commit"] is None
    assert answer(ctx, "--commit")["commit"]["commit"] is None
    manifest = yard / "hull" / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("2021", "2024"))
    changed = answer(ctx)
    assert changed["work_commit"]
    assert changed["snapshot"] != first["snapshot"]
    manifest.write_text(manifest.read_text().replace("2024", "2021"))
    back = answer(ctx)
    assert back["work_commit"]
    assert back["snapshot"] == first["snapshot"]
    # Of two in one session the last counts, with the edges that came with it.
    made = ctx("commit", "--auto", "--format", "json").json
    assert made["message"] == "Keep the answer of cargo metadata"
    commit = read_typed(Repository(project_at(str(yard))).objects, made["commit"], Commit)
    assert commit.cargo_snapshot == first["snapshot"]
    assert len(commit.edge_batches) == 1


def test_without_a_lock_file_dependencies_are_as_declared(yard: Path, ctx: Ctx) -> None:
    (yard / "Cargo.lock").unlink()
    (yard / "yard" / "Cargo.toml").write_text(
        '[package]\nname = "ship-yard"\nversion = "1.0.0"\n'
        '[dependencies]\nhull = "0.2"\nserde = { version = "1", optional = true }\n'
        '[build-dependencies]\nglue = { git = "https://me:s3cr3t@example.org/glue?x=1" }\n'
        '[dev-dependencies]\nelsewhere = { path = "../../elsewhere" }\n'
    )
    manifest = yard / "Cargo.toml"
    manifest.write_text(f'{FILES["Cargo.toml"]}[patch.crates-io]\nhull = {{ path = "hull" }}\n')
    elsewhere = '[package]\nname = "elsewhere"\n[lib]\npath = "e.rs"\n'
    write(yard.parent, {"elsewhere/Cargo.toml": elsewhere, "elsewhere/e.rs": ""})
    found = answer(ctx)
    assert needs(found) == [
        (YARD, "git+https://example.org/glue?x=1#glue@*", "build", False, []),
        (YARD, HULL, "normal", False, []),
        (YARD, "path+outside#elsewhere@*", "dev", False, []),
        (YARD, f"{CRATES}#serde@^1", "normal", True, []),
    ]
    assert found["problems"] == [
        {
            "path": "Cargo.toml",
            "reason": "has dependencies as declared: there is no Cargo.lock",
        }
    ]
    assert not (yard / "Cargo.lock").exists()
    _check_that_nothing_tells_of_the_machine(yard, found)


def test_versions_come_from_the_lock_file(yard: Path, ctx: Ctx) -> None:
    manifest = yard / "hull" / "Cargo.toml"
    manifest.write_text(f'{manifest.read_text()}[dependencies]\nserde = "1"\nrand = "0.8"\n')
    locked = "".join(
        f'\n[[package]]\nname = "{name}"\nversion = "{version}"\nsource = "{CRATES}"\n'
        for name, version in (("serde", "1.0.219"), ("rand", "0.7.3"), ("rand", "0.8.5"))
    )
    (yard / "Cargo.lock").write_text(LOCK + locked)
    found = answer(ctx)
    assert needs(found)[:2] == [
        (HULL, f"{CRATES}#rand@^0.8", "normal", False, []),
        (HULL, f"{CRATES}#serde@1.0.219", "normal", False, []),
    ]
    [problem] = found["problems"]
    assert problem["reason"].startswith("has dependencies as declared, not as resolved: cargo says")


def _check_that_nothing_tells_of_the_machine(root: Path, found: Any) -> None:
    repository = Repository(project_at(str(root)))
    kept = [repository.staged.read(id).payload for id in repository.staged.ids()]
    everything = json.dumps(found).encode() + b"".join(kept)
    for word in (str(root), str(root.parent), "s3cr3t", str(Path.home())):
        assert word.encode() not in everything


def test_a_strangers_workspace_cannot_choose_what_runs(
    yard: Path, ctx: Ctx, tmp_path: Path
) -> None:
    trap = tmp_path / "toolchain" / "bin" / "cargo"
    trap.parent.mkdir(parents=True)
    (trap.parent.parent / "lib").mkdir()
    for path in (trap, trap.with_name("rustc"), yard / "cargo"):
        path.write_text(f"#!/bin/sh\ntouch {tmp_path}/trapped\n")
        path.chmod(stat.S_IRWXU)
    write(
        yard,
        {
            ".cargo/config.toml": f'[build]\nrustc = "{trap}"\nrustc-wrapper = "{trap}"\n'
            f'[alias]\nmetadata = "version"\n[env]\nPATH = "{trap.parent}"\n',
            "rust-toolchain.toml": f'[toolchain]\npath = "{trap.parent.parent}"\n',
        },
    )
    assert answer(ctx)["problems"] == []
    assert not (tmp_path / "trapped").exists()


def test_no_cargo_on_this_machine(
    yard: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "only-git"
    path.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        if (Path(folder) / "git").exists():
            (path / "git").symlink_to(Path(folder) / "git")
            break
    (yard / "cargo").write_text(f"#!/bin/sh\ntouch {tmp_path}/trapped\n")
    (yard / "cargo").chmod(stat.S_IRWXU)
    # A program of the project is not taken for cargo.
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}.{os.pathsep}")
    ran = ctx("add", "cargo")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "error E029: cargo is not on this machine's PATH.\n"
        "  Install Rust from https://rustup.rs, or add the folder of cargo to PATH.\n"
    )
    assert not (tmp_path / "trapped").exists()


def test_where_there_is_nothing_to_describe(
    repo: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch, tmp_path)
    assert ctx("add", "cargo").err.startswith("error E012: No project store in ")
    ctx("init")
    nothing = "error E015: There is no Cargo.toml among the files"
    assert ctx("add", "cargo").err.startswith(nothing)
    # Links that lead out of the project are not followed.
    other = tmp_path / "other"
    write(other, {"Cargo.toml": FILES["hull/Cargo.toml"], "src/lib.rs": "", "main.rs": ""})
    (repo / "linked").mkdir()
    (repo / "linked" / "Cargo.toml").symlink_to(other / "Cargo.toml")
    assert ctx("add", "cargo").err.startswith(nothing)
    write(repo, {"a/Cargo.toml": "[package]\n", "b/Cargo.toml": "[package]\n"})
    assert "E029: cargo can describe none of the manifests.\n" in ctx("add", "cargo").err
    write(repo, {"Cargo.toml": "[package]\nname = 1\n"})
    ran = ctx("add", "cargo")
    assert ran.code == 1
    assert ran.err.startswith("error E029: cargo says: ")
    assert len(ran.err.splitlines()) == 2
    # With a type it is a word, and no workspace.
    assert ctx("add", "--type=fact", "cargo").code == 0
    write(repo, {"Cargo.toml": '[workspace]\nmembers = ["own", "theirs"]\n'})
    write(repo, {"own/Cargo.toml": '[package]\nname = "own"\n', "own/src/lib.rs": ""})
    (repo / "own" / "src" / "main.rs").symlink_to(other / "main.rs")
    (repo / "theirs").symlink_to(other)
    assert answer(ctx)["packages"] == [
        {
            "id": "path+own#own@0.0.0",
            "name": "own",
            "version": "0.0.0",
            "manifest": "own/Cargo.toml",
            "edition": "2015",
            "targets": [{"name": "own", "kind": "lib", "path": "own/src/lib.rs"}],
        }
    ]


def test_several_workspaces(
    repo: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch, tmp_path)
    ctx("init")
    write(repo, {f"a/{path}": text for path, text in FILES.items()})
    write(repo, {"b/Cargo.toml": "[package", "c/d/Cargo.toml": FILES["hull/Cargo.toml"]})
    write(repo, {"c/d/src/lib.rs": "", "a/hull/fuzz/Cargo.toml": "[package]\nname = 'fuzz'\n"})
    write(repo, {".gitignore": "target\n", "target/x/Cargo.toml": "["})
    found = answer(ctx)
    assert [package["manifest"] for package in found["packages"]] == [
        "a/hull/Cargo.toml",
        "a/yard/Cargo.toml",
        "c/d/Cargo.toml",
    ]
    reasons = {problem["path"]: problem["reason"] for problem in found["problems"]}
    assert sorted(reasons) == ["a/Cargo.toml", "b/Cargo.toml", "c/d/Cargo.toml"]
    assert reasons["b/Cargo.toml"].startswith("is left out: cargo says: ")


def test_a_project_inside_a_workspace(
    repo: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch, tmp_path)
    write(repo, FILES)
    (repo / "Cargo.lock").write_text(LOCK)
    ctx("-C", str(repo / "yard"), "init")
    found = ctx("-C", str(repo / "yard"), "add", "cargo", "--format", "json").json
    assert found["workspace_root"] == "."
    assert [package["manifest"] for package in found["packages"]] == ["Cargo.toml"]
    own = "path+.#ship-yard@1.0.0"
    assert {need[:2] for need in needs(found)} == {(own, "path+outside#hull@0.2.0")}


def test_dependencies_that_came_and_went(yard: Path, ctx: Ctx) -> None:
    answer(ctx)
    assert ctx("commit", "-m", "One").code == 0
    write(
        yard,
        {
            "hull/Cargo.toml": FILES["hull/Cargo.toml"].replace("0.2.0", "0.3.0"),
            "yard/Cargo.toml": FILES["yard/Cargo.toml"].partition("[dev-dependencies]")[0],
        },
    )
    (yard / "Cargo.lock").write_text(LOCK.replace("0.2.0", "0.3.0"))
    answer(ctx)
    staged = ctx("diff").out.splitlines()
    assert staged[1:] == ["~ package hull 0.2.0 → 0.3.0", "- dependency ship-yard → hull (dev)"]
    assert ctx("commit", "-m", "Two").code == 0
    assert ctx("diff", "HEAD~1", "HEAD").out.splitlines()[1:] == staged[1:]
