"""How modules import each other: never in a circle, and seldom inside functions.

Imports are at the top of a module. They are inside a function only for a fast start: a command or a
hook does not load what it does not use.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
MOST_LATE = 388


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


def test_there_are_no_circular_imports() -> None:
    known = {
        name: {each for each in found.early | found.late if each in MODULES} - {name}
        for name, found in all_imports().items()
    }
    assert circle(known) == []
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


def test_few_imports_are_inside_functions() -> None:
    late = [f"{name}: {each}" for name, found in all_imports().items() for each in found.late]
    assert len(late) <= MOST_LATE, "import at the top of modules, or make this number smaller"
