"""Which items differ between two states of a file."""

from ctx.code import item_changes
from ctx.code.source_parser import parse


def between(old: str | None, new: str | None, language: str = "python") -> list[tuple[object, ...]]:
    sides = [
        None if text is None else parse(f"a.{language}", text.encode(), language)
        for text in (old, new)
    ]
    return [
        (each.change, each.kind, each.name, "+".join(each.parts), each.line)
        for each in item_changes.compare_files(*sides)
    ]


OLD = "import os\nclass A:\n    def f(self):\n        return 1\n    def g(self):\n        pass\n"


def test_changes_of_a_body_and_of_a_signature_are_distinguished() -> None:
    assert between(OLD, OLD.replace("class A", "\n\nclass A")) == []
    assert between(OLD, OLD.replace("return 1", "return 2")) == [
        ("modified", "method", "A.f", "body", 3)
    ]
    assert between(OLD, OLD.replace("g(self)", "g(self, x)")) == [
        ("modified", "method", "A.g", "signature", 5)
    ]
    both = OLD.replace("g(self)", "g(self, x)").replace("pass", "return x")
    assert between(OLD, both) == [("modified", "method", "A.g", "signature+body", 5)]


def test_new_and_deleted_items_are_listed() -> None:
    assert between(OLD, OLD.replace("def g", "def h")) == [
        ("deleted", "method", "A.g", "", 5),
        ("new", "method", "A.h", "", 5),
    ]
    assert between(None, "def f():\n    pass\n") == [
        ("new", "module", "", "", 1),
        ("new", "function", "f", "", 1),
    ]
    assert between("def f():\n    pass\n", None) == [
        ("deleted", "module", "", "", 1),
        ("deleted", "function", "f", "", 1),
    ]


def test_overloads_are_matched_by_their_signatures() -> None:
    java = "class A {\n  void f(int x) { a(); }\n  void f(long x) { b(); }\n}\n"
    turned = "class A {\n  void f(long x) { b(); }\n  void f(int x) { a(); }\n}\n"
    assert between(java, turned, "java") == []
    assert between(java, turned.replace("a()", "c()"), "java") == [
        ("modified", "method", "A.f", "body", 3)
    ]
    one_less = "class A {\n  void f(long x) { b(); }\n}\n"
    assert between(java, one_less, "java") == [("deleted", "method", "A.f", "", 2)]


def test_rust_impl_blocks_are_matched_by_trait() -> None:
    old = "struct S;\nimpl Drop for S {\n fn drop(&mut self) {}\n}\nimpl S {\n fn f(&self) {}\n}\n"
    new = old.replace("fn f(&self) {}", "fn f(&self) { g() }")
    assert between(old, new, "rust") == [("modified", "method", "S::f", "body", 6)]
