"""How modules import each other: never in a circle, and inside functions only where a list says so.

Imports are at the top of a module. They are inside a function only for a fast start: a command or a
hook does not load what it does not use. `tests/lazy_imports.txt` lists them, each as a module and
what it imports late. To renew the list: `python -m tests.test_imports`.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
LAZY = Path(__file__).with_name("lazy_imports.txt")


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted((SOURCE / "ctx").rglob("*.py"))}


class Imports(ast.NodeVisitor):
    """The imports of a module at load time, and those inside its functions."""

    def __init__(self) -> None:
        self.early: set[str] = set()
        self.late: set[str] = set()
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_If(self, node: ast.If) -> None:
        # A type checker may go in circles.
        is_for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for each in node.orelse if is_for_types else (*node.body, *node.orelse):
            self.visit(each)

    def visit_Import(self, node: ast.Import) -> None:
        self._add(alias.name for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        full = (f"{base}.{alias.name}" for alias in node.names)
        self._add(name if name in MODULES else base for name in full)

    def _add(self, names: Iterator[str]) -> None:
        (self.late if self._depth else self.early).update(names)


def imports(source: str) -> Imports:
    found = Imports()
    found.visit(ast.parse(source))
    return found


def circle(known: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other, if any do."""
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@cache
def all_imports() -> dict[str, Imports]:
    return {name: imports(path.read_text("utf-8")) for name, path in MODULES.items()}


def lazy_imports() -> list[str]:
    return [f"{name}: {late}" for name, each in all_imports().items() for late in sorted(each.late)]


def test_there_are_no_circular_imports() -> None:
    known = {
        name: {each for each in found.early | found.late if each in MODULES} - {name}
        for name, found in all_imports().items()
    }
    assert circle(known) == []


def test_imports_inside_functions_are_the_listed_ones() -> None:
    listed = LAZY.read_text("utf-8").splitlines()
    there = lazy_imports()
    assert sorted(set(there) - set(listed)) == [], "import these at the top of their modules"
    assert sorted(set(listed) - set(there)) == [], "these are not in the code any more"


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, set()),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, {"a", "b", "c"}),
    ],
)
def test_a_circular_import_is_detected(known: dict[str, set[str]], expected: set[str]) -> None:
    assert set(circle(known)) == expected


def test_a_late_import_is_detected() -> None:
    source = (
        "import os\nif TYPE_CHECKING:\n    import re\ndef f():\n    if os:\n        import json\n"
    )
    found = imports(source)
    assert (found.early, found.late) == ({"os"}, {"json"})


if __name__ == "__main__":
    LAZY.write_text("".join(f"{each}\n" for each in lazy_imports()), "utf-8")
