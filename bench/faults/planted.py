"""Faults as patches of functions: how they are drawn, and planted in a module.

A fault names its module, its function and a statement as `ast.unparse` writes it, without the
statements inside it. So it can be planted again after the code around it has changed.
"""

import ast
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.faults import kinds

_GUARDS = frozenset(
    "redaction trust scrub secrets sqlite transaction lock locks disk sync interrupts".split()
)
_GUARDING_KINDS = frozenset({kinds.LOCK, kinds.CHECK})


class Fault(NamedTuple):
    kind: str
    module: str
    """Its path below `src/ctx`."""
    function: str
    before: str
    after: str
    place: int = 0
    """Its number among the statements of the function with the same text."""
    equivalent: str = ""
    """Why nobody can observe it, judged by a person; such a fault is not counted."""

    @property
    def package(self) -> str:
        return _package(self.module)

    @property
    def guards(self) -> bool:
        """Whether it is about redaction, trust, transactions, locks or sync."""
        words = re.split(r"[/_.]", self.module)
        return not _GUARDS.isdisjoint(words) or self.kind in _GUARDING_KINDS

    @property
    def key(self) -> str:
        return json.dumps(self[:6])

    def __str__(self) -> str:
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.module}: {self.function}: {self.kind}: {before}  ->  {after}"


class Statement(NamedTuple):
    function: str
    place: int
    text: str
    node: ast.stmt
    block: list[ast.stmt]
    """The statements that it is one of."""


_WITHOUT_FAULTS = (ast.Match, ast.Try, ast.TryStar, ast.Assert)


# Where faults can be


def statements(module: ast.Module) -> Iterator[Statement]:
    """The statements inside functions, outer ones first."""
    seen: dict[tuple[str, str], int] = defaultdict(int)
    pending: list[tuple[ast.AST, str, bool]] = [(module, "", False)]
    while pending:
        parent, name, is_inside = pending.pop()
        for block in _blocks(parent):
            for node in block:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    inside = is_inside or not isinstance(node, ast.ClassDef)
                    pending.append((node, f"{name}.{node.name}".lstrip("."), inside))
                    continue
                if is_inside and not isinstance(node, _WITHOUT_FAULTS):
                    text = ast.unparse(kinds.head(node))
                    place = seen[name, text]
                    seen[name, text] += 1
                    yield Statement(name, place, text, node, block)
                pending.append((node, name, is_inside))


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield block
    for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield inner.body


def _is_left_out(function: str) -> bool:
    """What is shown to programmers alone, and what only saves time."""
    last = function.rpartition(".")[2]
    return last in ("__repr__", "__str__", "__hash__") or "cache" in last or "log" in last


def draw(tree: Path, seed: int, count: int) -> list[Fault]:
    """About so many faults: of each package in proportion to its statements and at least one, of
    each kind that it has places for equally many, and one in a statement."""
    choice = random.Random(seed).choice
    source = tree / "src/ctx"
    sizes: dict[str, int] = defaultdict(int)
    places: dict[str, dict[str, list[Fault]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(source.rglob("*.py")):
        module = path.relative_to(source).as_posix()
        inside = list(statements(ast.parse(path.read_text("utf-8"))))
        sizes[_package(module)] += len(inside)
        for fault in faults(module, inside):
            places[fault.package][fault.kind].append(fault)
    total = sum(sizes[package] for package in places)
    drawn: dict[tuple[str, str, str, int], Fault] = {}
    for package, by_kind in sorted(places.items()):
        wanted = len(drawn) + max(1, round(sizes[package] * count / total))
        while len(drawn) < wanted:
            fault = choice(by_kind[choice(sorted(by_kind))])
            drawn.setdefault((fault.module, fault.function, fault.before, fault.place), fault)
    return list(drawn.values())


def faults(module: str, inside: Iterable[Statement]) -> Iterator[Fault]:
    for each in inside:
        if not _is_left_out(each.function):
            for kind, changed in kinds.changes(each.node, f"{module}:{each.function}"):
                after = ast.unparse(ast.fix_missing_locations(changed))
                yield Fault(kind, module, each.function, each.text, after, each.place)


def _package(module: str) -> str:
    return module.partition("/")[0] if "/" in module else "(top level)"


# In a copy of the tree


def planted(source: str, fault: Fault) -> str | None:
    """A module with the fault; None if its function or statement no longer exists."""
    module = ast.parse(source)
    for each in statements(module):
        if (each.function, each.text, each.place) == (fault.function, fault.before, fault.place):
            (changed,) = ast.parse(fault.after).body
            for name, inside in ast.iter_fields(each.node):
                if name in kinds.INSIDE and hasattr(changed, name):
                    setattr(changed, name, inside)
            each.block[each.block.index(each.node)] = changed
            return ast.unparse(module)
    return None


_RECORD = """
import sys
if not hasattr(sys, "executed_faults"):
    from mmap import mmap
    with open({path!r}, "r+b") as file:
        sys.executed_faults = mmap(file.fileno(), 0)
    del mmap, file
executed_faults = sys.executed_faults
"""
"""All processes write to the same memory, also hooks, which see only the standard library, and
processes that are killed."""


def recording(source: str, numbered: Mapping[int, Fault], path: Path) -> str:
    """A module that sets a byte of the file when the statement of a fault is executed."""
    module = ast.parse(source)
    by_text = {(each.function, each.text, each.place): each for each in statements(module)}
    for number, fault in numbered.items():
        if each := by_text.get((fault.function, fault.before, fault.place)):
            (record,) = ast.parse(f"executed_faults[{number}] = 1").body
            each.block.insert(each.block.index(each.node), record)
    imports = [
        place
        for place, node in enumerate(module.body)
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    first = max(imports, default=-1) + 1 or int(ast.get_docstring(module) is not None)
    module.body[first:first] = ast.parse(_RECORD.format(path=str(path))).body
    return ast.unparse(module)
