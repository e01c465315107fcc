"""`ctx add command` without an exit code: the tools say how it ended, and what is wrong."""

from pathlib import Path
from typing import Any

import pytest

from ctx.layout import project_at
from ctx.objects.object_store import derived_id, read_typed
from ctx.objects.object_types import Commit, DiagnosticsSnapshot
from ctx.objects.repository import Repository
from tests.cli.conftest import Piped
from tests.conftest import Ctx
from tests.files import write

FAILED = """\
   Compiling core v0.1.0
error[E0433]: failed to resolve: could not find `retry` in the crate root
 --> src/lib.rs:2:12
  |
2 | use crate::retry::Backoff;
  |            ^^^^^ could not find `retry` in the crate root

warning: unused variable: `left`
 --> src/other.rs:5:9

error: could not compile `core` (lib) due to 1 previous error; 1 warning emitted
"""
PASSED = "running 15 tests\ntest result: ok. 15 passed; 0 failed; 0 ignored\n"
ERROR = "rustc E0433: failed to resolve: could not find `retry` in the crate root @ src/lib.rs"


@pytest.fixture
def rust(project: Path) -> Path:
    (project / "src").mkdir()
    (project / "src" / "lib.rs").write_text("//! é\nuse crate::retry::Backoff;\n")
    return project


def add(ctx: Ctx, piped: Piped, text: str, *words: str) -> Any:
    piped(text.encode())
    ran = ctx("add", "command", "--stdin", "--name", "cargo test", "--format=json", *words)
    assert ran.code == 0, ran.err
    return ran.json


def committed(root: Path) -> tuple[Repository, Commit]:
    repository = Repository(project_at(str(root)))
    [head] = repository.heads.named()
    return repository, read_typed(repository.objects, head, Commit)


def test_the_tools_say_how_it_ended(ctx: Ctx, rust: Path, piped: Piped) -> None:
    kept = add(ctx, piped, FAILED)
    assert kept["node"]["content"].splitlines()[0] == (
        "cargo test failed: 1 error, 1 warning (E0433 src/lib.rs:2), 11 lines of output"
    )
    assert (kept["exit_code"], kept["outcome"], kept["tests"]) == (None, "failed", None)
    assert [each["code"] for each in kept["diagnostics"]] == ["E0433", ""]
    assert kept["node"]["metadata"] == {
        "blob": kept["blob"],
        "command": "cargo test",
        "diagnostics": kept["snapshot"],
        "errors": 1,
        "lines": 11,
        "outcome": "failed",
        "source": "tool output",
        "tool": "rustc",
        "warnings": 1,
    }
    kept = add(ctx, piped, PASSED)
    assert kept["node"]["content"].startswith("cargo test passed: 15 passed, 2 lines of output\n")
    assert kept["tests"] == {"passed": 15, "failed": 0, "skipped": 0, "errors": 0}
    assert kept["node"]["metadata"]["tests"] == kept["tests"]
    assert "exit_code" not in kept["node"]["metadata"]
    piped(PASSED.encode())
    assert ctx("add", "command", "--stdin", "--name=cargo test").err == ""
    # An exit code counts more.
    assert add(ctx, piped, FAILED, "--exit-code=0")["outcome"] == "passed"
    kept = add(ctx, piped, PASSED, "--exit-code=3")
    assert kept["outcome"] == "failed"
    told = kept["node"]["content"].splitlines()[0]
    assert told == "cargo test failed with exit code 3: 15 passed, 2 lines of output"
    piped(b"a\xff\x00.c:1:1: error: \xe9\xed\xa0\x80\nsrc/\x00lib.rs:1:1: error[E1]: x\n")
    ran = ctx("add", "command", "--stdin", "--name=x", "--format=json")
    assert (ran.code, ran.json["outcome"]) == (0, "failed")


def test_errors_are_anchors(ctx: Ctx, rust: Path, piped: Piped) -> None:
    first = add(ctx, piped, FAILED)["node"]["id"]
    [anchor] = ctx("list", "--type=diagnostic", "--format=json").json["nodes"]
    assert anchor["content"] == ERROR
    edges = ctx("edges", anchor["id"], "--format=json").json
    others = {node["id"]: node["content"].splitlines()[0] for node in edges["others"]}
    found = {
        (edge["type"], others.get(edge["from_id"], "it"), others.get(edge["to_id"], "it"))
        for edge in edges["edges"]
    }
    headline = "cargo test failed: 1 error, 1 warning (E0433 src/lib.rs:2), 11 lines of output"
    assert found == {("REFERENCES", "it", "src/lib.rs"), ("MENTIONS", headline, "it")}
    # The same mistake again is the same node.
    second = add(ctx, piped, FAILED.replace("lib.rs:2:", "lib.rs:9:"))["node"]["id"]
    [same] = ctx("list", "--type=diagnostic", "--format=json").json["nodes"]
    assert same["id"] == anchor["id"]
    mentions = ctx("edges", anchor["id"], "--format=json").json["edges"]
    assert {first, second} < {edge["from_id"] for edge in mentions}
    # Of many errors few become nodes.
    lines = "\n".join(f"src/lib.rs:{n}:1: error[E{n:04d}]: wrong {n}" for n in range(1, 61))
    kept = add(ctx, piped, lines)
    assert len(kept["diagnostics"]) == 60
    assert len(ctx("list", "--type=diagnostic", "--format=json").json["nodes"]) == 11
    assert len(ctx("list", "--type=file", "--format=json").json["nodes"]) == 1
    repository = Repository(project_at(str(rust)))
    held = read_typed(repository.everything, kept["snapshot"], DiagnosticsSnapshot)
    assert len(held.diagnostics) == 50
    piped(lines.encode())
    shown = ctx("add", "command", "--stdin", "--name=cargo check").out.splitlines()
    assert (len(shown), shown[-1]) == (7, "  and 55 more errors")


def test_a_commit_holds_the_last_snapshot(ctx: Ctx, rust: Path, piped: Piped) -> None:
    snapshot = add(ctx, piped, FAILED)["snapshot"]
    assert ctx("debug", "verify").code == 0
    assert ctx("commit", "-m", "It does not compile").code == 0
    repository, commit = committed(rust)
    assert commit.diagnostics_snapshot == snapshot
    found = read_typed(repository.objects, snapshot, DiagnosticsSnapshot)
    error, warning = found.diagnostics
    assert (found.tool, error.severity, error.code) == ("rustc", "error", "E0433")
    said = repository.objects.read(error.message_blob_id).payload.decode()
    assert said == "failed to resolve: could not find `retry` in the crate root"
    assert error.related_blob_id is not None
    related = repository.objects.read(error.related_blob_id).payload.decode()
    assert related == "src/lib.rs:2: could not find `retry` in the crate root"
    [span] = error.spans
    assert span.file_id == derived_id("file", rust.name, "src/lib.rs")
    assert (span.start_byte, span.end_byte) == (7, 34)
    assert (span.start_line, span.start_column, span.end_column) == (2, 12, 17)
    # What is no file here has no place.
    assert warning.spans == ()
    add(ctx, piped, FAILED)
    clean = add(ctx, piped, PASSED)["snapshot"]
    assert ctx("commit", "-m", "It does").code == 0
    repository, commit = committed(rust)
    assert commit.diagnostics_snapshot == clean
    assert read_typed(repository.objects, clean, DiagnosticsSnapshot).diagnostics == ()
    assert ctx("commit", "--amend", "-m", "It does compile").code == 0
    assert committed(rust)[1].diagnostics_snapshot == clean
    ctx("gc", "--aggressive")
    assert ctx("debug", "verify").code == 0
    assert ctx("debug", "cat", error.message_blob_id).out.strip() == said
    log = "".join(path.read_text() for path in (rust / ".ctx/narrative/log").iterdir())
    assert "cargo test: failed\n" in log
    assert "cargo test: passed\n" in log


def test_outside_of_projects(ctx: Ctx, folder: Path, piped: Piped) -> None:
    kept = add(ctx, piped, FAILED)
    assert (kept["outcome"], kept["blob"], kept["snapshot"]) == ("failed", None, None)
    assert not {"blob", "diagnostics"} & kept["node"]["metadata"].keys()
    assert len(ctx("list", "--format=json").json["nodes"]) == 1


def test_where_the_paths_lead(
    ctx: Ctx, rust: Path, piped: Piped, monkeypatch: pytest.MonkeyPatch
) -> None:
    boom = "src/main/java/org/shop/Boom.java"
    write(rust, dict.fromkeys(("stock/stock_test.go", "main.go", boom, "sub/a.c"), "x\n"))
    (rust / "link.c").symlink_to("/etc/passwd")
    outside = rust.parent / "outside.c"
    outside.write_text("x\n")
    monkeypatch.chdir(rust / "sub")
    text = f"""\
a.c:1:1: error: one
{rust}/src/lib.rs:1:1: error: two
/app/src/lib.rs:1:1: error: three
{outside}:1:1: error: four
../link.c:1:1: error: five
../../outside.c:1:1: error: six
lib.rs:1:1: error: seven
{"x" * 300}.c:1:1: error: eight
--- FAIL: TestCount (0.00s)
    stock_test.go:1: nine
FAIL\texample.org/shop/stock\t0.003s
Exception in thread "main" java.lang.RuntimeException: ten
\tat org.shop.Boom.main(Boom.java:1)
"""
    kept = add(ctx, piped, text)
    found = {each["message"].split()[-1]: each["spans"][0]["path"] for each in kept["diagnostics"]}
    assert found == {
        "one": "sub/a.c",
        "two": "src/lib.rs",
        "three": "src/lib.rs",
        "four": "…/outside.c",
        "five": "link.c",
        "six": "…/outside.c",
        "seven": "lib.rs",
        "eight": "x" * 300 + ".c",
        "nine": "stock/stock_test.go",
        "ten": boom,
    }
    files = {node["content"] for node in ctx("list", "--type=file", "--format=json").json["nodes"]}
    assert files == {"sub/a.c", "src/lib.rs", "stock/stock_test.go", boom}


def test_nothing_says_where_the_project_lies(
    ctx: Ctx, rust: Path, piped: Piped, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "people" / "ann"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "way").symlink_to(rust)
    (rust / "sub").mkdir()
    # Files of the same name that were not meant.
    (rust / "sub" / "tool.py").write_text("x\n")
    (rust / "tool.py").write_text("x\n")
    text = f"""\
   Compiling core v0.1.0 ({rust}) -I{home}/include
{rust}/gone/tool.py:1:1: error: one in {rust}/gone
{rust}/tool.py:1:1: error: two
{tmp_path}/way/gone.c:2:1: error: three
{home}/x.c:2:1: error: four of {home}
{home}/venv/lib/python3/site-packages/pkg/mod.py:2:1: error: five
{tmp_path}/other/{home.name}.c:1:1: error: six in {rust}-old and {home}.old
"""
    piped(text.encode())
    words = ("--name", f"make -C {rust}/sub", "--exit-code=2", "--format=json")
    there = ("-C", str(tmp_path / "way" / "sub"))
    kept = ctx(*there, "add", "command", "--stdin", *words).json
    assert kept["command"] == "make -C ./sub"
    found = {each["message"].split()[0]: each["spans"][0]["path"] for each in kept["diagnostics"]}
    assert found == {
        "one": "gone/tool.py",
        "two": "tool.py",
        "three": "gone.c",
        "four": "…/x.c",
        "five": "…/site-packages/pkg/mod.py",
        "six": "…/ann.c",
    }
    assert "one in ./gone" in [each["message"] for each in kept["diagnostics"]]
    repository = Repository(project_at(str(rust)))
    assert (
        repository.everything.read(kept["blob"]).payload.decode()
        == f"""\
   Compiling core v0.1.0 (.) -I~/include
./gone/tool.py:1:1: error: one in ./gone
./tool.py:1:1: error: two
./gone.c:2:1: error: three
~/x.c:2:1: error: four of ~
~/venv/lib/python3/site-packages/pkg/mod.py:2:1: error: five
{tmp_path}/other/ann.c:1:1: error: six in {rust}-old and {home}.old
"""
    )
    files = ctx("list", "--type=file", "--format=json").json["nodes"]
    assert [node["content"] for node in files] == ["tool.py"]


def test_diagnostics_in_json_are_printed_as_text(ctx: Ctx, rust: Path, piped: Piped) -> None:
    golden = Path(__file__).parent.parent / "golden" / "diagnostics"
    kept = add(ctx, piped, (golden / "cargo-json.txt").read_text())
    assert kept["node"]["content"] == (
        "cargo test failed: 3 errors, 1 warning (E0432 src/lib.rs:4), 9 lines of output\n"
        "src/lib.rs:4  error[E0432]: unresolved import `crate::retry`\n"
        "src/lib.rs:8  error[E0308]: mismatched types\n"
        "src/queue.rs:9  error[E0382]: use of moved value: `self.items`\n"
        "…\n"
        "    Checking sample v0.1.0 (/home/me/shop)\n"
        "error: could not compile `sample` (lib) due to 3 previous errors; 1 warning emitted"
    )


def test_no_secret_comes_in_with_a_diagnostic(ctx: Ctx, rust: Path, piped: Piped) -> None:
    secret = "ghp_" + "k3X9w2Qz7Lm4Tn8Vb6Rc1Yd5Hf0Js2Pa4G7u"
    text = f"src/lib.rs:1:1: error[E0001]: bad token {secret}\n"
    piped((f"Using {secret}\n" + "\n" * 600 + text + "\n" * 600).encode())
    ran = ctx("add", "command", "--stdin", "--name=cargo test", "--exit-code=1")
    assert "removed: output, line 1 (" in ran.err
    assert len(ctx("list", "--type=diagnostic", "--format=json").json["nodes"]) == 1
    assert ctx("commit", "-m", "x").code == 0
    repository = Repository(project_at(str(rust)))
    for store in (repository.objects, repository.staged):
        for id in store.ids():
            assert secret.encode() not in store.read(id).payload
    assert secret not in ran.out + ran.err + ctx("list", "--type=diagnostic", "--format=json").out
