"""Lookup by name, by qualified name, by path and line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.code import build, coverage, index_check, lookup, suggestions
from ctx.code.lookup import Code
from tests.files import write

FILES = {
    "shop/__init__.py": '"""The shop."""\n',
    "shop/net/__init__.py": "from shop.net.client import Client\n",
    "shop/net/client.py": (
        "import os\n"
        "class Client:\n"
        '    """Talks to a server. It may take a while."""\n'
        "    def connect(self, timeout):\n"
        "        return os.name\n"
        "    def close(self):\n"
        "        self.connect(1)\n"
    ),
    "shop/app.py": (
        "from shop.net import Client\n\n"
        "def run():\n    Client().connect(2)\n    return helper()\n\n"
        "def helper():\n    from shop import net\n    return net\n"
    ),
    "tool.py": "def connect():\n    pass\n",
    "native/connect.c": "int connect(void) { return 0; }\nint beat(void) { return 1; }",
    "crates/core/Cargo.toml": '[package]\nname = "shop-core"\nedition = "2021"\n',
    "crates/core/src/lib.rs": "pub mod net;\npub fn start() {}\n",
    "crates/core/src/net/mod.rs": "pub struct Wire;\nimpl Wire {\n    pub fn send(&self) {}\n}\n",
    "crates/core/tests/wires.rs": "fn check() {}\n",
    "README.md": "one\ntwo\nthree\n",
    "web/empty.ts": "",
    "web/parts.ts": "".join(
        f"export namespace n{n} {{ function part() {{}} }}\n" for n in range(4)
    ),
    "loose.rs": "fn lonely() {}\n",
    "go.mod": "module example.org/shop\n",
    "cart/cart.go": "package cart\n\ntype Cart struct{}\n\nfunc (c *Cart) Add() {}\n",
    "src/Till.java": "package org.shop;\n\npublic class Till {\n  void ring() {}\n}\n",
    "web/page.view.ts": "export class Page {\n  draw() {}\n}\n",
    "native/drum.cpp": (
        "namespace beat {\nclass Drum { void hit(); };\n}\nvoid beat::Drum::hit() {}\n"
    ),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("repository")


@pytest.fixture(scope="module")
def code(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Code]:
    write(root, FILES)
    database = str(tmp_path_factory.mktemp("index") / "code.db")
    build.refresh(index_check.SourceTree(str(root), None, database))
    opened = lookup.open_index(database, str(root))
    assert opened
    with opened as found:
        yield found


def names(code: Code, text: str, folder: str = "") -> list[str]:
    return [each.name for each in lookup.without_impls(code.find(text, folder))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What has no other name than this does not hide the others.
        ("connect", ["connect", "shop.net.client.Client.connect", "tool.connect"]),
        ("Client.connect", ["shop.net.client.Client.connect"]),
        ("Client::connect", ["shop.net.client.Client.connect"]),
        ("Client#connect", ["shop.net.client.Client.connect"]),
        ("client/Client", ["shop.net.client.Client"]),
        ("shop.net.client.Client.connect", ["shop.net.client.Client.connect"]),
        ("tool.connect", ["tool.connect"]),
        # What stands in between may be left out, where nothing else is meant.
        ("shop.Client", ["shop.net.client.Client"]),
        ("net", ["shop_core::net", "shop.net"]),
        ("shop.net", ["shop.net"]),
        ("Connect", []),
        ("Client.conn", []),
        ("", []),
        ("..::", []),
        ("%", []),
    ],
)
def test_an_item_is_found_by_any_suffix_of_its_qualified_name(
    code: Code, text: str, expected: list[str]
) -> None:
    assert names(code, text) == expected


def test_names_are_written_as_in_their_language(code: Code) -> None:
    for text, expected in {
        "Wire": ["shop_core::net::Wire"],
        "Wire::send": ["shop_core::net::Wire::send"],
        "crate::net::Wire": ["shop_core::net::Wire"],
        "start": ["shop_core::start"],
        "check": ["wires::check"],
        "lonely": ["crate::loose::lonely"],
        "Cart.Add": ["example.org/shop/cart.Cart.Add"],
        "shop/cart.Cart": ["example.org/shop/cart.Cart"],
        "org.shop.Till.ring": ["org.shop.Till.ring"],
        "Page.draw": ["web/page.view.Page.draw"],
        "Drum::hit": ["beat::Drum::hit"] * 2,
    }.items():
        assert names(code, text) == expected


def test_an_item_is_found_by_path_and_line(code: Code) -> None:
    for text, folder, expected in (
        ("shop/net/client.py", "", "shop.net.client"),
        ("client.py", "shop/net", "shop.net.client"),
        ("./client.py", "shop/net", "shop.net.client"),
        ("../app.py", "shop/net", "shop.app"),
        ("tool.py", "shop/net", "tool"),
        ("shop/net/client.py:5", "", "shop.net.client.Client.connect"),
        ("shop/net/client.py:5:12", "", "shop.net.client.Client.connect"),
        ("shop/net/client.py:3", "", "shop.net.client.Client"),
        ("shop/net/client.py:1", "", "shop.net.client"),
        ("shop/net/client.py#connect", "", "shop.net.client.Client.connect"),
        ("shop/net/client.py#Client.connect", "", "shop.net.client.Client.connect"),
        ("client.py#close", "shop/net", "shop.net.client.Client.close"),
        ("tool.py#connect", "", "tool.connect"),
        ("native/connect.c#connect", "", "connect"),
        ("native/connect.c:2", "", "beat"),
        ("web/empty.ts:1", "", "web/empty"),
        ("cart/cart.go", "", "cart/cart.go"),
        ("crates/core/src/lib.rs", "", "shop_core"),
    ):
        assert names(code, text, folder) == [expected], text


def test_a_path_can_be_absolute(code: Code, root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    for base in (root, tmp_path / "link", root / "shop" / ".."):
        assert names(code, f"{base}/tool.py", "shop") == ["tool"]
        assert names(code, f"{base}/tool.py:1") == ["tool.connect"]
        assert names(code, f"{base}/tool.py#connect") == ["tool.connect"]
    for nowhere in ("/", "/tool.py", f"{root}", f"{root}/tool.py\0", f"{tmp_path}/tool.py"):
        assert names(code, nowhere) == []


def test_nothing_is_found_at_an_invalid_place(code: Code) -> None:
    for text in ("tool.py:0", "tool.py:3", "shop/net/client.py:9999", "tool.py#helper"):
        assert names(code, text) == []
    assert names(code, "tool.py#") == names(code, "no.py#run") == []


def test_similar_names_are_suggested(code: Code) -> None:
    assert suggestions.similar_names(code, "conect") == ["connect"]
    assert suggestions.similar_names(code, "Shop.net.Client.connect") == [
        "shop.net.client.Client.connect",
        "connect",
        "tool.connect",
    ]
    for text, similar in (
        ("Client.conect", ["shop.net.client.Client.connect"]),
        ("Wire::sent", ["shop_core::net::Wire::send"]),
        ("shop/app.py#helpr", ["shop.app.helper"]),
        ("shop.app.helpr", ["shop.app.helper"]),
        ("zzz", []),
    ):
        assert suggestions.similar_names(code, text) == similar
    assert suggestions.similar_names(code, "nowhere.start") == ["shop_core::start"]
    assert suggestions.similar_names(code, "nowhere.part") == []
    assert suggestions.similar_paths(code, "shop/net/clients.py") == ["shop/net/client.py"]
    inside = ["shop/net/__init__.py", "shop/net/client.py"]
    assert suggestions.files_in(code, "shop/net", 9) == inside
    assert suggestions.files_in(code, "", 1) == ["README.md"]


def test_an_outline_is_in_order_with_depths(code: Code) -> None:
    file = code.file("shop/net/client.py")
    assert file is not None
    assert (file.language, file.lines, file.skipped, file.problems) == ("python", 7, None, 0)
    assert [(each.depth, each.line, each.signature, each.doc) for each in code.outline(file)] == [
        (0, 2, "class Client", "Talks to a server. It may take a while."),
        (1, 4, "def connect(self, timeout)", ""),
        (1, 6, "def close(self)", ""),
    ]


def test_edges_have_a_confidence_and_a_line(code: Code) -> None:
    [connect] = code.find("Client.connect")
    edges = code.edges_to([connect.id])
    sources = [code.located([edge.source])[0].name for edge in edges]
    found = [
        (name, each.label, each.confidence, each.line)
        for name, each in zip(sources, edges, strict=True)
    ]
    assert sorted(found) == [
        ("shop.app.run", "CALLS", "high", 4),
        ("shop.net.client.Client.close", "CALLS", "high", 7),
    ]
    assert code.edges_to([connect.id], ("IMPORTS",)) == []


def test_imports_have_a_target_if_it_is_in_the_project(code: Code) -> None:
    file, app = code.file("shop/net/client.py"), code.file("shop/app.py")
    assert file is not None
    assert app is not None
    [(_, own)] = code.imports(file.id)
    assert (own.written.module, own.target) == ("os", None)
    found = [(each.line, each.target) for _, each in code.imports(app.id)]
    [client], [package] = code.find("client.Client"), code.find("shop/net/__init__.py")
    assert found == [(1, client.id), (8, package.id)]


def test_the_items_inside_an_item_are_listed(code: Code) -> None:
    [client] = code.find("client.Client")
    inside = [each.name.rpartition(".")[2] for each in code.located(code.within([client.id]))]
    assert inside == ["Client", "connect", "close"]


def test_coverage_counts_files_and_languages(code: Code) -> None:
    found = coverage.measure(code.connection)
    assert (found.files, found.parsed, found.unresolved, found.left_out) == (len(FILES), 16, 0, 0)
    languages = [(each.language, each.files) for each in found.languages]
    assert languages[:2] == [("python", 5), ("rust", 4)]
    assert {each.reason for each in found.skipped} <= {"no grammar", "no known language"}
    assert found.refreshed_at is not None


def test_a_missing_index_gives_none(tmp_path: Path) -> None:
    assert lookup.open_index(str(tmp_path / "code.db"), str(tmp_path)) is None


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("pkg/sub/part.py", "pkg.sub.part"),
        ("app/models/user.py", "app.models.user"),
        ("lib/src/acme/tools/saw.py", "acme.tools.saw"),
        ("services/billing/core/pay.py", "core.pay"),
        ("my-app/core/pay.py", "core.pay"),
        ("src/utils/text.py", "utils.text"),
        ("app/utils/text.py", "app.utils.text"),
        ("tests/test_pay.py", "test_pay"),
        ("top.py", "top"),
    ],
)
def test_packages_without_init(tmp_path: Path, path: str, name: str) -> None:
    files = {path: "def f():\n    pass\n", "pkg/__init__.py": "", "setup.py": ""}
    files["services/billing/pyproject.toml"] = '[project]\nname = "billing"\n'
    write(tmp_path / "repo", files)
    place = index_check.SourceTree(str(tmp_path / "repo"), None, str(tmp_path / "code.db"))
    build.refresh(place)
    opened = lookup.open_index(place.database, place.root)
    assert opened
    with opened as code:
        [found] = code.find("f")
    assert found.name == f"{name}.f"
