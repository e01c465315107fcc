"""`ctx code`: through the command line, on small repositories."""

import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctx import locks
from ctx.codebase import indexing
from tests.conftest import Ctx, git
from tests.files import write

FILES = {
    "shop/__init__.py": "",
    "shop/net.py": (
        "import os\n"
        "from shop import retry\n"
        "\n"
        "class Client:\n"
        '    """Talks to a server. It may take a while."""\n'
        "    def connect(self, timeout: float) -> None:\n"
        "        retry.again(self.close)\n"
        "    def close(self):\n"
        "        return os.name\n"
        "\n"
        "def make() -> Client:\n"
        "    return Client()\n"
    ),
    "shop/retry.py": (
        "def again(what):\n    from shop.net import make\n    make().connect(1)\n    what()\n"
    ),
    "shop/app.py": (
        "from shop.net import Client as C, make\n"
        "\n"
        "def run(thing):\n"
        "    c = make()\n"
        "    c.connect(2)\n"
        "    c.connect(3)\n"
        "    thing.again()\n"
    ),
    "README.md": "words\n",
}


@pytest.fixture
def shop(repo: Path) -> Path:
    write(repo, FILES)
    git("add", "-A")
    git("commit", "-qm", "all")
    return repo


def test_an_outline(shop: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ctx("code", "outline", "shop/net.py").out
    assert shown == (
        "shop/net.py: python, 12 lines\n"
        "  4   class Client\n"
        "  6     def connect(self, timeout: float) -> None\n"
        "  8     def close(self)\n"
        "  11  def make() -> Client\n"
    )
    assert "Talks to a server" in ctx("code", "outline", "shop/net.py", "--docs").out
    found = ctx("code", "outline", "shop/net.py", "--format", "json").json
    assert found["items"][1] == {
        "name": "connect",
        "kind": "method",
        "visibility": "public",
        "depth": 1,
        "line": 6,
        "end_line": 7,
        "signature": "def connect(self, timeout: float) -> None",
        "doc": "",
    }
    assert found["age"]["state"] == "fresh"
    assert "Not parsed: no grammar." in ctx("code", "outline", "README.md").out
    monkeypatch.chdir(shop / "shop")
    for word in (str(shop / "shop" / "net.py"), "net.py"):
        assert ctx("code", "outline", word).out == shown


def test_callers_and_callees(shop: Path, ctx: Ctx) -> None:
    callers = (
        "  shop/net.py:6  shop.net.Client.connect  def connect(self, timeout: float) -> None\n"
        "Called by\n"
        "  shop/app.py:5    shop.app.run      high  2 times\n"
        "  shop/retry.py:3  shop.retry.again  high\n"
    )
    net = shop / "shop" / "net.py"
    for word in ("Client.connect", f"{net}:6", f"{net}#connect"):
        assert ctx("code", "callers", word).out == callers
    assert ctx("debug", "graph", "--around", str(net)).code == 0
    assert ctx("code", "callees", "shop/app.py:4").out == (
        "  shop/app.py:3  shop.app.run  def run(thing)\n"
        "Calls\n"
        "  shop/net.py:11   shop.net.make            high\n"
        "  shop/net.py:6    shop.net.Client.connect  high    2 times\n"
        "  shop/retry.py:1  shop.retry.again         medium\n"
    )
    assert ctx("code", "callees", "shop.net.Client").out.splitlines()[1:] == [
        "Calls",
        "  shop/retry.py:1  shop.retry.again  shop.net.Client.connect  high",
    ]
    assert "No calls into this project." in ctx("code", "callees", "close").out


def test_callers_of_callers_and_how_sure(shop: Path, ctx: Ctx) -> None:
    def calls(*words: str) -> list[tuple[int, str, str, str]]:
        found = ctx("code", "callers", "connect", "--format", "json", *words).json["calls"]
        return [
            (call["depth"], call["caller"]["name"], call["callee"]["name"], call["confidence"])
            for call in found
        ]

    connect, again = "shop.net.Client.connect", "shop.retry.again"
    near = [(1, "shop.app.run", connect, "high"), (1, again, connect, "high")]
    assert calls() == near
    # A cycle is gone round once.
    assert calls("--depth", "9") == [
        *near,
        (2, connect, again, "high"),
        (2, "shop.app.run", again, "medium"),
    ]
    assert calls("--depth", "9", "--confidence", "high") == [*near, (2, connect, again, "high")]
    assert calls("--limit", "1") == near[:1]
    assert "… and 1 more (--limit)" in ctx("code", "callers", "connect", "--limit", "1").out
    assert ctx("code", "callers", "connect", "--depth", "0").code == 2


def test_imports(shop: Path, ctx: Ctx) -> None:
    assert ctx("code", "imports", "shop/net.py").out == (
        "  shop/net.py:1  shop.net\n"
        "Imports\n"
        "  1  os           -\n"
        "  2  shop: retry  shop.retry  shop/retry.py:1\n"
        "Imported by\n"
        "  shop/app.py:1    shop.app          shop.net.Client\n"
        "  shop/app.py:1    shop.app          shop.net.make\n"
        "  shop/retry.py:2  shop.retry.again  shop.net.make\n"
    )
    found = ctx("code", "imports", "Client", "--format", "json").json
    assert found["imports"] == []
    assert [each["importer"]["name"] for each in found["importers"]] == ["shop.app"]
    assert "shop.net: Client as C" in ctx("code", "imports", "shop/app.py").out
    said = ctx("code", "imports", "shop/net.py", "--limit", "1").out
    assert said.endswith("shop.net.Client\n  … and 2 more (--limit)\n")


def test_cycles(shop: Path, ctx: Ctx) -> None:
    assert ctx("code", "cycles").out == (
        "1 group of files that import each other\n"
        "  2  shop/net.py → shop/retry.py → shop/net.py\n"
        "1 group of items that call each other\n"
        "  2  shop.net.Client.connect → shop.retry.again → shop.net.Client.connect\n"
    )
    for of in ("files", "items"):
        found = ctx("code", "cycles", f"--{of}", "--format", "json").json["cycles"]
        assert [each["of"] for each in found] == [of]
    (shop / "shop" / "retry.py").write_text("def again(what):\n    what()\n")
    assert ctx("code", "cycles").out == "No cycles.\n"


def test_a_file_that_cannot_be_shown_says_why(shop: Path, ctx: Ctx) -> None:
    (shop / "link.py").symlink_to("shop/net.py")
    (shop / ".gitignore").write_text("built/\n")
    write(
        shop,
        {"built/out.py": "x = 1\n", "odd\x1b.py": "", **{f"many/{n}.py": "" for n in "abcdef"}},
    )
    for word, reason in (
        ("link.py", "'link.py' is not in the code index: it is a symbolic link."),
        ("odd\x1b.py", "its name has a control character in it."),
        ("../top.py", f"'../top.py' is outside of the project {shop}."),
        ("/etc/passwd", f"'/etc/passwd' is outside of the project {shop}."),
        ("shop", "Name a file in it: shop/__init__.py, shop/app.py, shop/net.py, shop/retry.py."),
        ("many/", "many/a.py, many/b.py, many/c.py, many/d.py, many/e.py, …\n"),
        ("built/out.py", "git may ignore it, or .ctxignore, or the setting"),
        ("Client", "'Client' is not a file: shop.net.Client is a class."),
        ("Client", "`ctx code outline shop/net.py` shows the file that contains it."),
        ("shop/nett.py", "There is no file 'shop/nett.py' in the code."),
        ("shop/nett.py", "Did you mean `shop/net.py`?"),
    ):
        ran = ctx("code", "outline", word)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith("error E015: ")
        assert reason in ran.err


def test_a_name_or_line_that_is_not_there(shop: Path, ctx: Ctx) -> None:
    ran = ctx("code", "callers", "conect")
    assert (ran.code, ran.out) == (1, "")
    assert "No item in the code is named 'conect'." in ran.err
    assert "Did you mean `connect`?" in ran.err
    for line in ("0", "13"):
        ran = ctx("code", "callers", f"shop/net.py:{line}")
        assert (ran.code, ran.out) == (1, "")
        assert f"shop/net.py has 12 lines, and no line {line}." in ran.err
    assert "README.md was not indexed: no grammar." in ctx("code", "callees", "README.md").err


def test_what_is_not_known_yet_is_not_denied(
    shop: Path, ctx: Ctx, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_WAIT_SECONDS", 0.0)
    assert ctx("code", "index").code == 0
    [index] = (surroundings / ".ctx" / "code").glob("*/code.db")
    (shop / "later.py").write_text("def later():\n    make()\n")
    asked = (
        (
            ("code", "callers", "later"),
            "No item in the code index so far is named 'later'.",
        ),
        (("code", "outline", "later.py"), "'later.py' is not in the code index so far."),
        (("debug", "graph", "--around", "later"), "'later' is not known yet."),
    )
    with locks.hold(f"{index}.lock", "somebody", 0):
        for words, said in asked:
            ran = ctx(*words)
            assert (ran.code, ran.out) == (1, "")
            assert said in ran.err
            assert "Another process is reading the code. Try again in a moment." in ran.err
    for words, said in asked:
        ran = ctx(*words, "--no-refresh")
        assert said in ran.err
        assert "leave out --no-refresh to refresh it." in ran.err
        assert "Did you mean" not in ran.err
    with closing(sqlite3.connect(index)) as connection, connection:
        # As whoever was stopped in the middle of the first time leaves it.
        connection.execute("DELETE FROM meta WHERE key = 'refreshed_at'")
    assert "not fully indexed yet" in ctx("code", "callers", "later", "--no-refresh").err
    assert all(ctx(*words).code == 0 for words, _ in asked)


def test_one_process_at_a_time_brings_it_up_to_date(
    shop: Path, ctx: Ctx, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_WAIT_SECONDS", 0.0)
    assert "def make()" in ctx("code", "outline", "shop/net.py").out
    [index] = (surroundings / ".ctx" / "code").glob("*/code.db")
    # Every answer is about the files as they are.
    (shop / "shop" / "net.py").write_text("def build():\n    pass\n")
    (shop / "new.py").write_text("from shop.net import build\nbuild()\n")
    old = ctx("code", "outline", "shop/net.py", "--no-refresh")
    assert "def make()" in old.out
    assert re.search(r"The code index is \d+ s old\.", old.err)
    assert "def make()" not in ctx("code", "outline", "shop/net.py").out
    assert "new.py:2" in ctx("code", "callers", "build").out
    (shop / "later.py").write_text("def later():\n    pass\n")
    with locks.hold(f"{index}.lock", "somebody", 0):
        ran = ctx("code", "callers", "build")
        assert ran.code == 0
        assert "Another process is updating the index" in ran.err
        busy = ctx("code", "status", "--format", "json").json
        assert (busy["age"]["state"], busy["coverage"]["files"]) == ("busy", len(FILES) + 1)
        index.unlink()
        ran = ctx("code", "status")
        assert ran.code == 1
        assert "error E006: The code index is being built by process" in ran.err
    assert ctx("code", "status", "--format", "json").json["coverage"]["files"] == len(FILES) + 2


def test_the_index_and_its_status(shop: Path, ctx: Ctx, surroundings: Path) -> None:
    ran = ctx("code", "outline", "shop/net.py", "--no-refresh")
    assert ran.code == 1
    assert "Run `ctx code index`." in ran.err
    os.symlink("README.md", shop / "LINK.md")
    first = ctx("code", "index", "--format", "json").json
    assert (first["added"], first["changed"], first["removed"]) == (5, 0, 0)
    assert first["left_out"] == [{"path": "LINK.md", "reason": "it is a symbolic link"}]
    said = ctx("code").out
    assert "files     5, 4 of them read" in said
    assert "python  4 files  " in said
    assert "no grammar  1 file" in said
    assert ctx("code", "status", "--no-refresh").code == 0
    (shop / "shop" / "app.py").unlink()
    said = ctx("code", "index").out
    assert said.startswith("The code index is up to date: 0 files read, 1 gone.\n")
    assert ctx("code", "index", "--full", "--format", "json").json["added"] == 4
    # A damaged index is made anew.
    before = ctx("code", "callers", "connect").out
    [index] = (surroundings / ".ctx" / "code").glob("*/code.db")
    whole = index.read_bytes()
    for damage in (b"", b"no database", whole[:4096] + b"\xff" * (len(whole) - 4096)):
        for beside in index.parent.glob("code.db-*"):
            beside.unlink()
        index.write_bytes(damage)
        assert ctx("code", "callers", "connect").out == before


def test_where_the_index_lies(shop: Path, ctx: Ctx, surroundings: Path) -> None:
    assert ctx("init").code == 0
    assert ctx("code", "cycles").code == 0
    local = shop / ".git" / "ctx" / "main"
    assert (local / "index" / "code.db").stat().st_mode & 0o777 == 0o600
    assert (local / "DERIVED" / "scc_latest").is_file()
    assert not (surroundings / ".ctx" / "code").exists()
    assert ctx("debug", "verify").code == 0
    shutil.rmtree(shop / ".git" / "ctx")
    # Where nothing can be written, it lies in the home: into a file nobody can write a file.
    (shop / ".git" / "ctx").touch()
    assert ctx("code", "outline", "shop/net.py").code == 0
    assert ctx("code", "cycles").code == 0
    assert len(list((surroundings / ".ctx" / "code").glob("*/code.db"))) == 1


def test_an_index_that_was_left_behind_is_removed(
    shop: Path, ctx: Ctx, surroundings: Path, tmp_path: Path
) -> None:
    gone = tmp_path / "gone \udcff"
    try:
        gone.mkdir()
    except OSError:
        gone = tmp_path / "gone"
        gone.mkdir()
    (tmp_path / "kept").mkdir()

    def indexes() -> int:
        return len(list((surroundings / ".ctx" / "code").glob("*/code.db")))

    def a_day_later() -> None:
        os.utime(surroundings / ".ctx" / "code" / "looked", (0, 0))

    for folder in (shop, gone, tmp_path / "kept"):
        assert ctx("-C", str(folder), "code", "status").code == 0
    gone.rmdir()
    assert ctx("init").code == 0
    assert ctx("code", "status").code == 0
    # Whoever has looked today need not do so again.
    assert indexes() == 3
    a_day_later()
    assert ctx("code", "status").code == 0
    assert indexes() == 1
    a_day_later()
    assert ctx("-C", str(tmp_path / "kept"), "code", "status", "--no-refresh").code == 0
    assert ctx("code", "status").code == 0
    assert indexes() == 1


def test_a_folder_without_git_and_one_inside(
    folder: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, FILES)
    assert "shop.app.run" in ctx("code", "callers", "Client.connect").out
    assert ctx("code", "changed").code == 1
    git("init", "-q")
    monkeypatch.chdir(folder / "shop")
    assert ctx("code", "outline", "net.py").out.startswith("shop/net.py: python")
    assert not (folder / ".ctx").exists()


def test_a_home_folder_is_not_a_project(surroundings: Path, ctx: Ctx) -> None:
    for words in ((), ("-C", "/")):
        ran = ctx(*words, "code", "status")
        assert ran.code == 1
        assert "is not a project: it contains all of somebody's files." in ran.err
        assert "or name it with `-C DIR`." in ran.err


# What changed


def test_what_changed_since_a_commit(shop: Path, ctx: Ctx) -> None:
    nothing = "No item differs from HEAD.\n"
    assert ctx("code", "changed").out == nothing
    # Words, line ends, and what git alone no longer knows are no change of an item.
    (shop / "README.md").write_text("other words\n")
    net = shop / "shop" / "net.py"
    text = net.read_bytes()
    net.write_bytes(text.replace(b"\n", b"\r\n"))
    git("rm", "-q", "--cached", "shop/app.py")
    assert ctx("code", "changed").out == nothing
    net.write_bytes(text)
    git("add", "-A")
    git("mv", "shop/retry.py", "shop/again.py")
    again = shop / "shop" / "again.py"
    again.write_text(again.read_text().replace("connect(1)", "connect(7)"))
    net.write_text(net.read_text().replace("close(self)", "close(self, why)") + "X = 1\n")
    (shop / "shop" / "app.py").unlink()
    write(shop, {"fresh.py": "def fresh():\n    pass\n", "notes.txt": "x\n"})
    before = (shop / ".git" / "index").read_bytes()
    said = ctx("code", "changed").out
    assert (shop / ".git" / "index").read_bytes() == before
    assert said.startswith(
        "3 new, 2 modified, 2 deleted since HEAD\n"
        "fresh.py (added)\n"
        "  new  1  the file itself\n"
        "  new  1  def fresh()\n"
        "shop/retry.py → shop/again.py (renamed)\n"
        "  modified  1  def again(what)  body\n"
        "shop/app.py (deleted)\n"
        "  deleted  1  the file itself\n"
        "  deleted  3  def run(thing)\n"
        "shop/net.py (modified)\n"
    )
    assert "  modified  8   def close(self, why) in Client  signature\n" in said
    git("add", "-A")
    git("commit", "-qm", "more")
    assert ctx("code", "changed").out == nothing
    since = ctx("code", "changed", "--since", "HEAD~1", "--format", "json").json
    changes = [file["change"] for file in since["files"]]
    assert changes == ["added", "renamed", "deleted", "modified"]
    assert since["commit"] == git("rev-parse", "HEAD~1").strip()
    for ref in ("nothing", "-p", "HEAD:shop", ""):
        ran = ctx("code", "changed", f"--since={ref}")
        assert ran.code == 2, ref
        assert "There is no commit" in ran.err


def test_a_project_inside_a_repository(
    repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repo, {"part/a.py": "def f():\n    pass\n", "other/b.py": "def g():\n    pass\n"})
    monkeypatch.chdir(repo / "part")
    assert ctx("init", "--no-git").code == 0
    said = ctx("code", "changed").out
    assert said.startswith("2 new since the beginning: there is no commit yet\n")
    git("add", "-A")
    git("commit", "-qm", "all")
    write(repo, {"part/a.py": "def f():\n    return 1\n", "other/b.py": "x = 1\n"})
    found = ctx("code", "changed", "--format", "json").json
    assert [file["path"] for file in found["files"]] == ["a.py"]
    assert ctx("code", "status", "--format", "json").json["coverage"]["parsed"] == 1
