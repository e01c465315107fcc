"""`ctx relate`: things by what they are called."""

from pathlib import Path
from typing import Any

import pytest

from ctx.codebase import freshness
from ctx.layout import project_at
from tests.cli.conftest import Add
from tests.conftest import Ctx, git


@pytest.fixture
def code(project: Path) -> Path:
    (project / "src/net").mkdir(parents=True)
    for name in ("src/main.rs", "src/lib.rs", "src/net/client.rs"):
        (project / name).write_text("\n" * 30)
    return project


def related(ctx: Ctx, *words: str) -> dict[str, Any]:
    ran = ctx("relate", *words, "--format=json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = ran.json
    return found


def ends(found: dict[str, Any]) -> tuple[str, str, str]:
    return found["from_name"], found["edge"]["type"], found["to_name"]


def test_files_by_their_paths(ctx: Ctx, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = ctx("relate", "src/main.rs", "Imports", "src/lib.rs")
    first, second = ran.out.split()[1], ran.out.split()[-2]
    assert ran.out == f"Related: {first} src/main.rs ── IMPORTS → {second} src/lib.rs\n"
    again = ctx("relate", "./src/main.rs", "imports", str(code / "src/lib.rs"))
    assert again.out == ran.out.replace("Related", "Already related")
    # One change brings anchors and edge.
    assert ctx("undo").code == 0
    assert ctx("list", "--anchors").out == "No nodes.\n"
    found = related(ctx, "src/main.rs", "IMPORTS", "src/lib.rs")
    assert (found["new"], len(found["made"])) == (True, 2)
    monkeypatch.chdir(code / "src/net")
    found = related(ctx, "client.rs", "depends-on", "src/main.rs")
    assert ends(found) == ("src/net/client.rs", "DEPENDS_ON", "src/main.rs")
    # A file that memory knows may be gone.
    (code / "src/lib.rs").unlink()
    assert ends(related(ctx, "../lib.rs", "CALLS", "client.rs"))[0] == "src/lib.rs"


def test_items_tasks_decisions_and_nodes(ctx: Ctx, code: Path, add: Add) -> None:
    fact = add("--type=fact", "Deploys run on Fridays")
    ctx("add", "task", "Add retry")
    ctx("add", "decision", "Use jitter")
    words = {
        "core::net::Client": "core::net::Client",
        "pkg.module.Class": "pkg.module.Class",
        "Client#connect": "Client#connect",
        "task_0001": "Add retry",
        "task_1": "Add retry",
        "decision_0001": "Use jitter",
        "0001": "Use jitter",
        "narrative/README.md": ".ctx/narrative/README.md",
        ".ctx/narrative/README.md": ".ctx/narrative/README.md",
        fact: "Deploys run on Fridays",
    }
    for word, name in words.items():
        assert ends(related(ctx, "src/main.rs", "RelatesTo", word))[2] == name
    [file] = (code / ".ctx/narrative/tasks").iterdir()
    for word in (f"narrative/tasks/{file.name}", str(file)):
        assert related(ctx, word, "Mentions", "src/main.rs")["from_name"] == "Add retry"


def test_what_only_a_document_mentions_stays_when_the_mention_goes(ctx: Ctx, code: Path) -> None:
    ctx("add", "task", "Add retry", "--mention=src/main.rs")
    found = related(ctx, "src/main.rs", "IMPORTS", "src/lib.rs")
    [file] = (code / ".ctx/narrative/tasks").iterdir()
    file.write_text("# Add retry\n")
    [edge] = ctx("edges", found["edge"]["from_id"], "--format=json").json["edges"]
    assert edge["id"] == found["edge"]["id"]


def test_what_names_nothing(ctx: Ctx, code: Path) -> None:
    for word, hint in (
        ("src/clinet.rs", "Did you mean `src/net/client.rs`"),
        ("client.rs", "Did you mean `src/net/client.rs`"),
        ("lib", "Did you mean `src/lib.rs`"),
        ("nonsense", "`ctx list` and `ctx search WORDS` show ids"),
    ):
        ran = ctx("relate", "src/main.rs", "IMPORTS", word)
        assert ran.code == 1
        assert ran.err.startswith(f"error E020: '{word}' is not known here.\nLooked for:\n")
        assert f"  a file, from this folder and from {code}\n" in ran.err
        assert f"\n  {hint}" in ran.err
    main = "src/main.rs"
    for words, error in (
        ([main, "IMPROTS", "src/lib.rs"], "E011: There is no edge type 'IMPROTS'."),
        ([main, "CALLS", "src/../src/main.rs"], "E011: 'src/main.rs' and 'src/../"),
        ([main, "CALLS", "src/net/"], "E015: 'src/net/' is a folder."),
        ([main, "CALLS", "../home"], "E015: '../home' is outside the project"),
        ([main, "CALLS", ""], "E011: The name is empty."),
        (["task_0001", "CALLS", main], "E020: There is no node 'task_0001'."),
        ([main, "CALLS", "src/lib.rs", "--span=9:3"], "E011: '9:3' is not a span of lines."),
        ([main, "CALLS", "src/lib.rs", "--confidence=low"], "E011: An edge of low"),
    ):
        assert ctx("relate", *words).err.startswith(f"error {error}")
    assert ctx("list", "--anchors").out == "No nodes.\n"


def test_evidence(ctx: Ctx, code: Path) -> None:
    words = ["--confidence=low", "--evidence=they change together", "--span=10:20"]
    found = related(ctx, "src/main.rs", "CALLS", "src/lib.rs", *words)
    assert found["edge"]["metadata"] == {
        "tool": "cli",
        "confidence": 300,
        "reason": "they change together",
        "span": "src/lib.rs:10-20",
    }
    found = related(ctx, "src/main.rs", "CALLS", "core::net", "--span=7")
    assert found["edge"]["metadata"]["span"] == "src/main.rs:7"
    found = related(ctx, "core::a", "CALLS", "core::b", "--span=7-9")
    assert found["edge"]["metadata"]["span"] == "7-9"
    secret = "ghp_" + "k3X9w2Qz7Lm4Tn8Vb6Rc1Yd5Hf0Js2Pa4G7u"
    ran = ctx("relate", "core::a", "USES_TYPE", "core::b", f"--evidence={secret}")
    assert "1 secret removed" in ran.err
    assert secret not in ctx("edges", ran.out.split()[1], "--format=json").out


def test_scopes(ctx: Ctx, code: Path, add: Add) -> None:
    mine = add("--user", "--type=fact", "Mine")
    found = related(ctx, mine, "Mentions", "src/main.rs")
    [anchor] = found["made"]
    assert ctx("show", anchor, "--format=json").json["node"]["scope"] == "user"
    related(ctx, "src/lib.rs", "CALLS", "src/main.rs")
    assert ctx("show", anchor, "--format=json").json["node"]["scope"] == "project"
    assert ends(related(ctx, mine, "RelatesTo", "src/lib.rs"))[2] == "src/lib.rs"
    ran = ctx("relate", "src/lib.rs", "Mentions", mine)
    assert (ran.code, "ctx move" in ran.err) == (2, True)


def test_a_link_to_elsewhere_is_a_name_of_its_own(ctx: Ctx, code: Path) -> None:
    (code / "link.rs").symlink_to("/etc/hostname")
    assert ends(related(ctx, "link.rs", "CALLS", "src/lib.rs"))[0] == "link.rs"
    (code / "outside").symlink_to("/etc")
    ran = ctx("relate", "outside/hostname", "CALLS", "src/lib.rs")
    assert ran.err.startswith("error E015: 'outside/hostname' is outside the project")


NET = "class Client:\n    def connect(self):\n        return 1\n\n\ndef helper():\n    return 2\n"


@pytest.fixture
def shop(project: Path) -> Path:
    """A project with code that the index can read."""
    (project / "shop/net").mkdir(parents=True)
    files = {"__init__.py": "", "net/__init__.py": "", "net/client.py": NET, "app.py": "x = 1\n"}
    for path, text in files.items():
        (project / "shop" / path).write_text(text)
    return project


def test_items_of_the_code_by_any_end_of_their_name(
    ctx: Ctx, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = set()
    for word in (
        "shop.net.client.Client.connect",
        "Client::connect",
        "connect",
        # Names in between may be left out: it may be offered by a module further out.
        "shop.net.Client.connect",
        "shop/net/client.py:2",
        "shop/net/client.py#connect",
    ):
        found = related(ctx, "shop/app.py", "Calls", word)
        assert ends(found) == ("shop/app.py", "CALLS", "shop.net.client.Client.connect")
        assert found["unknown"] == []
        edges.add(found["edge"]["id"])
    assert len(edges) == 1
    # Paths in front of a name may begin in this folder.
    monkeypatch.chdir(shop / "shop/net")
    found = related(ctx, "client.py:7", "Calls", "client.py#Client")
    assert ends(found) == ("shop.net.client.helper", "CALLS", "shop.net.client.Client")
    (shop / "shop/app.py").write_text("def helper():\n    return 3\n")
    ran = ctx("relate", "../app.py", "Calls", "helper")
    assert ran.err.splitlines() == [
        "error E021: 'helper' names 2 items in the code.",
        "shop.app.helper         shop/app.py:1",
        "shop.net.client.helper  shop/net/client.py:6",
        "  Use more of its name, or FILE:LINE.",
    ]
    assert ends(related(ctx, "../app.py", "Calls", "app.helper"))[2] == "shop.app.helper"


def test_unknown_names_are_stored_as_written(ctx: Ctx, shop: Path) -> None:
    ran = ctx("relate", "shop/app.py", "Calls", "Client.conect")
    assert ran.out.endswith("CALLS → " + ran.out.split()[-2] + " Client.conect\n")
    assert ran.err == (
        "The code here has no `Client.conect`: stored as written. "
        "Did you mean `shop.net.client.Client.connect`?\n"
    )
    # Memory knows it now.
    again = related(ctx, "shop/app.py", "Calls", "Client.conect")
    assert (again["new"], again["unknown"]) == (False, [])
    assert ctx("relate", "shop/app.py", "Calls", "conect").code == 1


def test_a_large_repository_is_not_read_in_passing(
    ctx: Ctx, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "FEW_FILES", 1)
    ran = ctx("relate", "shop/app.py", "Calls", "Client.connect")
    assert (ran.out.split()[-1], ran.err) == ("Client.connect", "")
    assert not Path(project_at(str(shop)).code.database).exists()
    assert ctx("code", "index").code == 0
    found = related(ctx, "shop/app.py", "Calls", "client.helper")
    assert ends(found)[2] == "shop.net.client.helper"


def test_repositories_without_a_store_have_nothing_in_common(
    ctx: Ctx, folder: Path, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "app.py").write_text("def run():\n    return 1\n")
    # A folder like any other is not read.
    assert ctx("relate", "app.py", "Mentions", "run").code == 1
    assert not (surroundings / ".ctx/code").exists()
    one, two = (folder / name for name in ("one", "two"))
    for each in (one, two):
        git("init", "-q", str(each))
        (each / "app.py").write_text("def run():\n    return 1\n")
    (one / "app.py").write_text("def other():\n    return 2\n\n\ndef run():\n    return 1\n")

    def drawn(*words: str) -> set[tuple[str, str, str]]:
        found = ctx("debug", "graph", *words, "--format=json").json
        labels = {vertex["id"]: vertex["label"] for vertex in found["vertices"]}
        return {
            (labels[edge["source"]], edge["type"], labels[edge["target"]])
            for edge in found["edges"]
        }

    monkeypatch.chdir(one)
    first = related(ctx, "app.py", "References", "app.run")
    related(ctx, "app.other", "RelatesTo", "app.run")
    assert ctx("add", "decision", "Let it run", "--mention=app.run").code == 0
    monkeypatch.chdir(two)
    assert drawn() == set()
    found = related(ctx, "app.py", "References", "app.run")
    said = ("app.py", "REFERENCES", "app.run")
    assert (found["new"], ends(found)) == (True, said)
    assert found["edge"]["to_id"] != first["edge"]["to_id"]
    inside = ("app.py", "DEFINES", "app.run")
    assert drawn("--around", "app.run") == {inside, said}
    assert drawn() == {said}
    assert git("status", "--short") == "?? app.py\n"
    monkeypatch.chdir(one)
    assert related(ctx, "app.py", "References", "run")["new"] is False
    more = {("app.other", "RELATES_TO", "app.run"), ("Let it run", "MENTIONS", "app.run")}
    assert drawn("--around", "app.run", "--depth=1") == {inside, said, *more}
    assert drawn() == {said, *more}


def test_mentions_mean_what_relate_means(ctx: Ctx, shop: Path) -> None:
    (shop / "shop/app.py").write_text("def run():\n    return 3\n\n\ndef helper():\n    return 4\n")
    assert ctx("add", "task", "Add retry").code == 0
    words = ["Client::connect", "shop.net.Client.connect", "app.run", str(shop / "shop/app.py")]
    more = ["task_0001", "helper", "shop/net/gone.py", "shop/net"]
    mentions = [f"--mention={word}" for word in (*words, *more)]
    ran = ctx("add", "decision", "Use Client", *mentions)
    assert ran.err == (
        "The code here has no `shop/net/gone.py`: stored as written.\n"
        "`helper` names several things: stored as written. "
        "It may be `shop.app.helper` or `shop.net.client.helper`.\n"
    )
    task = ctx("show", "task_0001", "--format=json").json["node"]["id"]
    [file] = (shop / ".ctx/narrative/decisions").iterdir()
    told = next(line for line in file.read_text().splitlines() if line.startswith("mentions:"))
    assert told == (
        "mentions: [shop.net.client.Client.connect, item:shop.app.run, shop/app.py, "
        f"{task}, helper, shop/net/gone.py, shop/net]"
    )
    others = ctx("edges", "decision_0001", "--format=json").json["others"]
    assert {(node["type"], node["content"]) for node in others} == {
        ("item", "shop.net.client.Client.connect"),
        ("item", "shop.app.run"),
        ("file", "shop/app.py"),
        ("task", "Add retry"),
        ("item", "helper"),
        ("file", "shop/net/gone.py"),
        ("file", "shop/net"),
    }
    around = ctx("debug", "graph", "--around", "Client.connect", "--format=json").json
    assert "Use Client" in [vertex["label"] for vertex in around["vertices"]]
    # One of several is what memory knows by that name.
    assert ends(related(ctx, "shop/net/client.py", "Calls", "helper"))[2] == "helper"


def test_what_a_text_speaks_of_is_mentioned(ctx: Ctx, shop: Path) -> None:
    (shop / "shop/app.py").write_text("def helper():\n    return 4\n")
    body = (
        "Client.connect() may fail, see shop/app.py:1 and `Client`; a client, e.g. yours, has\n"
        "helper() of one of two files, /etc/passwd, ../x.py, shop/net, https://shop.net/client.\n"
    )
    ran = ctx("add", "decision", "Retry in client.helper()", "--body", body)
    assert ran.err == ""
    others = ctx("edges", "decision_0001", "--format=json").json["others"]
    assert {(node["type"], node["content"]) for node in others} == {
        ("item", "shop.net.client.helper"),
        ("item", "shop.net.client.Client.connect"),
        ("file", "shop/app.py"),
        ("item", "shop.net.client.Client"),
    }


def test_an_item_of_the_code_wins_over_a_known_name(ctx: Ctx, shop: Path) -> None:
    (shop / ".ctx/narrative/decisions").mkdir(exist_ok=True)
    said = "# Use Client\n\n<!-- ctx\nmentions: [Client::connect]\n-->\n"
    (shop / ".ctx/narrative/decisions/0001-use-client.md").write_text(said)
    found = related(ctx, "decision_0001", "Mentions", "Client::connect")
    assert ends(found) == ("Use Client", "MENTIONS", "shop.net.client.Client.connect")
