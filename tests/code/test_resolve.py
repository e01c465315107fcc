"""Edge cases of name resolution: the calls in small projects."""

from pathlib import Path

import pytest

from ctx.code import build, index_check, index_file
from ctx.code.qualified_names import QualifiedNames
from ctx.code.vocabulary import CONFIDENCES, LABELS
from tests.files import write


def calls(root: Path, files: dict[str, str]) -> list[str]:
    write(root / "tree", files)
    database = str(root / "code.db")
    build.refresh(index_check.SourceTree(str(root / "tree"), None, database))
    connection = index_file.open_for_reading(database)
    assert connection is not None
    names = QualifiedNames(connection, str(root / "tree"))
    rows = connection.execute(
        "SELECT source, target, confidence FROM edges WHERE label = ?", (LABELS.index("CALLS"),)
    )
    found = sorted(
        f"{names.qualified_name(source)} → {names.qualified_name(target)}, {CONFIDENCES[sure]}"
        for source, target, sure in rows
    )
    connection.close()
    return found


def test_a_prototype_does_not_hide_the_definition(tmp_path: Path) -> None:
    files = {
        "main.c": "int run(void);\nextern int stop(int);\nint main(void) { return stop(run()); }\n",
        "util.c": "int run(void) { return 1; }\nint stop(int code) { return code; }\n",
    }
    assert calls(tmp_path, files) == ["main → run, medium", "main → stop, medium"]


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("void Box<T>::helper()", "ns::Box::helper"),
        ("Box<T>::Box() : x(1)", "ns::Box::Box"),
        ("Box<T>::~Box()", "ns::Box::~Box"),
        ("bool Box<T>::operator==(const Box& other) const", "ns::Box::operator=="),
        ("std::map<T, int> Box<std::vector<T>>::Inner::get()", "ns::Box::Inner::get"),
        ("void helper(int x = Box<int>::made())", "ns::helper"),
    ],
)
def test_a_method_defined_outside_of_its_class_is_qualified(
    tmp_path: Path, head: str, name: str
) -> None:
    code = (
        f"namespace ns {{\nvoid called(int) {{}}\ntemplate<class T> {head} {{ called(1); }}\n}}\n"
    )
    assert calls(tmp_path, {"box.cpp": code}) == [f"{name} → ns::called, high"]


@pytest.mark.parametrize(
    ("name", "confidence"), [("tools", "high"), ("util", "low"), ("unknown", "medium")]
)
def test_a_name_from_a_missing_module_has_low_confidence(
    tmp_path: Path, name: str, confidence: str
) -> None:
    files = {
        "shop/__init__.py": "",
        "shop/tools.py": "def note(text): pass\n",
        "shop/cart.py": f"from . import tools, util\ndef f(unknown): {name}.note('x')\n",
    }
    assert calls(tmp_path, files) == [f"shop.cart.f → shop.tools.note, {confidence}"]


def test_super_searches_the_bases_in_order(tmp_path: Path) -> None:
    code = """
class Named:
    def name(self): pass
class Sent:
    def send(self): pass
class Top(Sent): pass
class Letter(Named, Top):
    def send(self):
        super().send()
        super(Letter, self).name()
        super().unheard_of()
"""
    assert calls(tmp_path, {"post.py": code}) == [
        "post.Letter.send → post.Named.name, high",
        "post.Letter.send → post.Sent.send, high",
    ]


NET = """
class Client:
    def send(self): pass
class Fast(Client):
    def rush(self): pass
"""


def test_calling_a_class_in_an_attribute_gives_its_objects(tmp_path: Path) -> None:
    code = """
import net
from net import Client, Fast
class Base:
    client_class = Client
    fast_class = net.Fast
    def __init__(self):
        self.client = self.client_class()
    @classmethod
    def make(cls):
        cls.client_class().send()
        cls.made = cls.client_class()
class Test(Base):
    def one(self): self.client_class().send()
    def two(self): self.client.send()
    def three(self): self.made.send()
    def four(self):
        kind = Fast
        kind().rush()
    def five(self): self.fast_class().rush()
"""
    assert calls(tmp_path, {"net.py": NET, "app.py": code}) == [
        "app.Base.__init__ → net.Client, high",
        "app.Base.make → net.Client, high",
        "app.Base.make → net.Client.send, high",
        "app.Test.five → net.Fast, high",
        "app.Test.five → net.Fast.rush, high",
        "app.Test.four → net.Fast, high",
        "app.Test.four → net.Fast.rush, high",
        "app.Test.one → net.Client, high",
        "app.Test.one → net.Client.send, high",
        "app.Test.three → net.Client.send, high",
        "app.Test.two → net.Client.send, high",
    ]


def test_a_field_has_the_type_of_the_local_it_was_assigned(tmp_path: Path) -> None:
    code = """
from net import Client
other = Client()
class Base:
    def __init__(self, first: Client, other):
        made = first
        self.made = made
        kept = other
        self.kept = kept
    def use(self):
        self.made.send()
    def leave(self):
        self.kept.send()
"""
    more = "class Second:\n    def send(self): pass\n"
    assert calls(tmp_path, {"net.py": NET, "app.py": code, "more.py": more}) == [
        # What is handed over nobody knows.
        "app.Base.leave → more.Second.send, low",
        "app.Base.leave → net.Client.send, low",
        "app.Base.use → net.Client.send, high",
        "app.other → net.Client, high",
    ]


def test_circular_assignments_and_aliases_are_not_followed(tmp_path: Path) -> None:
    files = {
        "a.py": "str = str\none = two\ntwo = one\n\n\ndef f():\n    return str().upper(), one()\n",
        "b.py": "from a import str, two\n\n\ndef g(x):\n    return str(x).upper(), two().lower()\n",
        "src/lib.rs": "type One = Two;\ntype Two = One;\ntype Own = Own;\n"
        "fn make() -> One { todo!() }\nfn own() -> Own { todo!() }\n"
        "fn run() { make().go(); own().go(); let a: Two = make(); a.go(); }\n",
        "Cargo.toml": CRATE,
    }
    called = ["a.f → a.one, high", "a.f → a.str, high"]
    called += ["a::run → a::make, high", "a::run → a::own, high"]
    assert calls(tmp_path, files) == [*called, "b.g → a.str, high", "b.g → a.two, high"]


CRATE = '[package]\nname = "a"\nversion = "1.0.0"\n'
SEVERAL = {f"src/{each}.cc": "static int check() { return 1; }\n" for each in "abcdefghi"}


@pytest.mark.parametrize(
    ("files", "called"),
    [
        (
            {
                "go.mod": "module example.com/app\n\nreplace example.com/lib => ./x/../third/lib\n",
                "main.go": 'package main\n\nimport "example.com/lib"\n\nfunc run() { lib.Go() }\n',
                "third/lib/lib.go": "package lib\n\nfunc Go() {}\n",
            },
            ["example.com/app.run → example.com/app/third/lib.Go, high"],
        ),
        (
            {
                "go.mod": "module example.com/app\n",
                "main.go": "package main\n\ntype Plain struct{}\n\nfunc (p Plain) Go() {}\n\n"
                "type Kind = Plain\n\nfunc run(p Plain) { Kind(p).Go() }\n",
            },
            [
                "example.com/app.run → example.com/app.Kind, high",
                "example.com/app.run → example.com/app.Plain.Go, high",
            ],
        ),
        (
            {
                "Cargo.toml": CRATE,
                "src/lib.rs": '#[path = "../shared/it.rs"]\nmod it;\nfn run() { it::go(); }\n',
                "shared/it.rs": "pub fn go() {}\n",
            },
            ["a::run → shared::it::go, high"],
        ),
        (
            {
                "Cargo.toml": CRATE,
                "src/lib.rs": '#[path = "unix.rs"]\nmod platform;\nfn run() { platform::go(); }\n'
                "fn back() {}\n",
                "src/unix.rs": "pub fn go() { super::back(); }\n",
            },
            ["a::run → a::unix::go, high", "a::unix::go → a::back, high"],
        ),
        (
            {
                "Cargo.toml": CRATE,
                "src/lib.rs": "mod outer {\n    pub mod inner;\n    pub fn up() {}\n}\n"
                "fn run() { outer::inner::go(); }\n",
                "src/outer/inner.rs": "pub fn go() { super::up(); }\n",
            },
            ["a::outer::inner::go → a::outer::up, high", "a::run → a::outer::inner::go, high"],
        ),
        (
            {"a.js": "exports.go = function () {};\nexports.run = () => { exports.go(); };\n"},
            ["a.run → a.go, high"],
        ),
        (
            {
                **SEVERAL,
                "aside/near.h": "",
                "src/lib/near.h": "namespace ns { inline int check() { return 1; } }\n",
                "src/near.cc": '#include "near.h"\nint f() { return ns::check(); }\n',
            },
            ["f → ns::check, high"],
        ),
        (
            {
                "src/one.cc": "namespace ns { int only() { return 1; } }\n",
                "src/two.cc": "int f() { return ns::only(); }\n",
            },
            ["f → ns::only, medium"],
        ),
    ],
    ids=[
        *("go: replaced module", "go: conversion to an alias", "rust: path in another folder"),
        *("rust: super of a path", "rust: file in an inline module", "javascript: exports"),
        *("c++: a common name in a namespace", "c++: a namespace without an include"),
    ],
)
def test_a_construct_that_few_projects_have(
    tmp_path: Path, files: dict[str, str], called: list[str]
) -> None:
    assert calls(tmp_path, files) == called
