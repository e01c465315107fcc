"""`ctx code`: through the command line, on small repositories."""

import os
import re
from pathlib import Path

import pytest

from ctx.objects import lock
from ctx.operations import code_index
from tests.conftest import Ctx, git

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


def write(root: Path, files: dict[str, str]) -> None:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)


@pytest.fixture
def shop(repo: Path) -> Path:
    write(repo, FILES)
    git("add", "-A")
    git("commit", "-qm", "all")
    return repo


def test_an_outline(shop: Path, ctx: Ctx) -> None:
    assert ctx("code", "outline", "shop/net.py").out == (
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


def test_an_outline_of_what_is_no_code_says_why(shop: Path, ctx: Ctx) -> None:
    said = ctx("code", "outline", "README.md").out
    assert "Nothing was read out of it: no grammar." in said
    ran = ctx("code", "outline", "shop/nett.py")
    assert ran.code == 1
    assert "Did you mean `shop/net.py`?" in ran.err


def test_callers(shop: Path, ctx: Ctx) -> None:
    assert ctx("code", "callers", "Client.connect").out == (
        "  shop/net.py:6  shop.net.Client.connect  def connect(self, timeout: float) -> None\n"
        "Called by\n"
        "  shop/app.py:5    shop.app.run      high  2 times\n"
        "  shop/retry.py:3  shop.retry.again  high\n"
    )


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


def test_callees(shop: Path, ctx: Ctx) -> None:
    assert ctx("code", "callees", "shop/app.py:4").out == (
        "  shop/app.py:3  shop.app.run  def run(thing)\n"
        "Calls\n"
        "  shop/net.py:11   shop.net.make            high\n"
        "  shop/net.py:6    shop.net.Client.connect  high    2 times\n"
        "  shop/retry.py:1  shop.retry.again         medium\n"
    )
    assert "shop.retry.again" in ctx("code", "callees", "Client").out
    assert "It calls nothing that is here." in ctx("code", "callees", "close").out


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


def test_cycles(shop: Path, ctx: Ctx) -> None:
    assert ctx("code", "cycles").out == (
        "1 group of files that import each other\n"
        "  2  shop/net.py → shop/retry.py → shop/net.py\n"
        "1 group of items that call each other\n"
        "  2  shop.net.Client.connect → shop.retry.again → shop.net.Client.connect\n"
    )
    files = ctx("code", "cycles", "--files", "--format", "json").json["cycles"]
    assert [each["of"] for each in files] == ["files"]
    items = ctx("code", "cycles", "--items", "--format", "json").json["cycles"]
    assert [each["of"] for each in items] == ["items"]
    (shop / "shop" / "retry.py").write_text("def again(what):\n    what()\n")
    assert ctx("code", "cycles").out == "There are no cycles.\n"


def test_a_name_that_nobody_has(shop: Path, ctx: Ctx) -> None:
    ran = ctx("code", "callers", "conect")
    assert (ran.code, ran.out) == (1, "")
    assert "Nothing in the code is called 'conect'." in ran.err
    assert "Did you mean `connect`?" in ran.err


def test_every_answer_is_about_the_files_as_they_are(shop: Path, ctx: Ctx) -> None:
    assert "def make()" in ctx("code", "outline", "shop/net.py").out
    (shop / "shop" / "net.py").write_text("def build():\n    pass\n")
    (shop / "new.py").write_text("from shop.net import build\nbuild()\n")
    old = ctx("code", "outline", "shop/net.py", "--no-refresh")
    assert "def make()" in old.out
    assert re.search(r"What is known of the code is \d+ s old\.", old.err)
    assert "def make()" not in ctx("code", "outline", "shop/net.py").out
    assert "new.py:2" in ctx("code", "callers", "build").out


def test_one_process_at_a_time_brings_it_up_to_date(
    shop: Path, ctx: Ctx, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_index, "_WAIT_SECONDS", 0.0)
    assert ctx("code", "status").code == 0
    [index] = (surroundings / ".ctx" / "code").glob("*/code.db")
    (shop / "later.py").write_text("def later():\n    pass\n")
    with lock.held(f"{index}.lock", "somebody", 0):
        ran = ctx("code", "callers", "make")
        assert ran.code == 0
        assert "Another process is reading the code" in ran.err
        busy = ctx("code", "status", "--format", "json").json
        assert (busy["age"]["state"], busy["coverage"]["files"]) == ("busy", len(FILES))
        index.unlink()
        ran = ctx("code", "status")
        assert ran.code == 1
        assert "error E006: The index of the code is being made by process" in ran.err
    assert ctx("code", "status", "--format", "json").json["coverage"]["files"] == len(FILES) + 1


def test_the_status_is_what_code_alone_shows(shop: Path, ctx: Ctx) -> None:
    said = ctx("code").out
    assert "files  5, 4 of them read" in said
    assert "python  4 files  " in said
    assert "no grammar  1 file" in said
    assert ctx("code", "status", "--no-refresh").code == 0


def test_without_an_index_there_is_nothing_to_read(shop: Path, ctx: Ctx) -> None:
    ran = ctx("code", "outline", "shop/net.py", "--no-refresh")
    assert ran.code == 1
    assert "`ctx code index` makes it." in ran.err


def test_index_says_what_it_did(shop: Path, ctx: Ctx) -> None:
    os.symlink("README.md", shop / "LINK.md")
    first = ctx("code", "index", "--format", "json").json
    assert (first["added"], first["changed"], first["removed"]) == (5, 0, 0)
    assert first["left_out"] == [{"path": "LINK.md", "reason": "it is a symbolic link"}]
    (shop / "shop" / "app.py").unlink()
    said = ctx("code", "index").out
    assert said.startswith("The index of the code is up to date: 0 files read, 1 gone.\n")
    assert ctx("code", "index", "--full", "--format", "json").json["added"] == 4


def test_a_damaged_index_is_made_anew(shop: Path, ctx: Ctx, surroundings: Path) -> None:
    before = ctx("code", "callers", "connect").out
    [index] = (surroundings / ".ctx" / "code").glob("*/code.db")
    whole = index.read_bytes()
    for damage in (b"", b"no database", whole[:4096] + b"\xff" * (len(whole) - 4096)):
        for beside in index.parent.glob("code.db-*"):
            beside.unlink()
        index.write_bytes(damage)
        assert ctx("code", "callers", "connect").out == before


def test_in_a_project_it_lies_in_the_git_folder(shop: Path, ctx: Ctx, surroundings: Path) -> None:
    assert ctx("init").code == 0
    assert ctx("code", "cycles").code == 0
    local = shop / ".git" / "ctx" / "main"
    assert (local / "index" / "code.db").stat().st_mode & 0o777 == 0o600
    assert (local / "DERIVED" / "scc_latest").is_file()
    assert not (surroundings / ".ctx" / "code").exists()
    assert ctx("debug", "verify").code == 0


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


def test_nobody_means_all_that_is_in_a_home(surroundings: Path, ctx: Ctx) -> None:
    for words in ((), ("-C", "/")):
        ran = ctx(*words, "code", "status")
        assert ran.code == 1
        assert "is no project: everything that somebody has lies in it." in ran.err


def test_names_are_offered_to_the_shell(shop: Path, ctx: Ctx) -> None:
    assert ctx("__complete", "fish", "ctx", "code", "callers", "co").out == "files\n"
    ctx("code", "index")
    assert ctx("__complete", "fish", "ctx", "code", "callers", "co").out == (
        "words\nconnect\tmethod\n"
    )
    assert ctx("__complete", "fish", "ctx", "code", "callers", "shop/").out == "files\n"


# What changed


def test_nothing_changed(shop: Path, ctx: Ctx) -> None:
    assert ctx("code", "changed").out == "No item differs from HEAD.\n"
    (shop / "README.md").write_text("other words\n")
    assert ctx("code", "changed").out == "No item differs from HEAD.\n"


def test_what_changed_since_a_commit(shop: Path, ctx: Ctx) -> None:
    git("mv", "shop/retry.py", "shop/again.py")
    again = shop / "shop" / "again.py"
    again.write_text(again.read_text().replace("connect(1)", "connect(7)"))
    net = shop / "shop" / "net.py"
    net.write_text(net.read_text().replace("close(self)", "close(self, why)") + "X = 1\n")
    (shop / "shop" / "app.py").unlink()
    write(shop, {"fresh.py": "def fresh():\n    pass\n", "notes.txt": "x\n"})
    expected = (
        "4 new, 2 modified, 2 deleted since HEAD\n"
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
    before = (shop / ".git" / "index").read_bytes()
    said = ctx("code", "changed").out
    assert (shop / ".git" / "index").read_bytes() == before
    assert said.splitlines()[1:10] == expected.splitlines()[1:]
    assert "  modified  8   def close(self, why)  signature\n" in said
    git("add", "-A")
    git("commit", "-qm", "more")
    assert ctx("code", "changed").out == "No item differs from HEAD.\n"
    since = ctx("code", "changed", "--since", "HEAD~1", "--format", "json").json
    assert [file["change"] for file in since["files"]] == [
        "added",
        "renamed",
        "deleted",
        "modified",
    ]
    assert since["commit"] == git("rev-parse", "HEAD~1").strip()


def test_before_the_first_commit_all_is_new(repo: Path, ctx: Ctx) -> None:
    write(repo, {"a.py": "def f():\n    pass\n"})
    said = ctx("code", "changed").out
    assert said.startswith("2 new since the beginning: there is no commit yet\n")


def test_a_commit_that_is_not_there(shop: Path, ctx: Ctx) -> None:
    for ref in ("nothing", "-p", "HEAD:shop", ""):
        ran = ctx("code", "changed", f"--since={ref}")
        assert ran.code == 2, ref
        assert "There is no commit" in ran.err


def test_line_ends_are_no_change(shop: Path, ctx: Ctx) -> None:
    net = shop / "shop" / "net.py"
    net.write_bytes(net.read_bytes().replace(b"\n", b"\r\n"))
    assert ctx("code", "changed").out == "No item differs from HEAD.\n"


def test_what_git_is_told_to_forget_is_still_compared(shop: Path, ctx: Ctx) -> None:
    git("rm", "-q", "--cached", "shop/app.py")
    assert ctx("code", "changed").out == "No item differs from HEAD.\n"


def test_a_project_inside_a_repository(
    repo: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repo, {"part/a.py": "def f():\n    pass\n", "other/b.py": "def g():\n    pass\n"})
    monkeypatch.chdir(repo / "part")
    assert ctx("init", "--no-git").code == 0
    git("add", "-A")
    git("commit", "-qm", "all")
    write(repo, {"part/a.py": "def f():\n    return 1\n", "other/b.py": "x = 1\n"})
    found = ctx("code", "changed", "--format", "json").json
    assert [file["path"] for file in found["files"]] == ["a.py"]
    assert ctx("code", "status", "--format", "json").json["coverage"]["parsed"] == 1
