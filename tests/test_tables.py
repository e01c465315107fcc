"""Each table of the store has one owner: the package in which every statement about it stands."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import ctx

SOURCE = Path(ctx.__file__).parent
TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE)\s+(?:\w+\.)?(\w+)")

OWNERS = {
    "events": "capture",
    "sessions": "capture",
    "symbol_changes": "capture",
    "model_answers": "synthesis",
    "contexts": "context",
    "commands": "memory",
    "pending": "memory",
    "receipts": "memory",
    "event_log": "memory",
    "outside": "memory",
}

ELSEWHERE = {
    # How the tables came to be.
    "memory/migrations.py": set(OWNERS),
    # What is damaged is read as it lies, and a word is taken out of everything.
    "exchange/recovery.py": {"pending"},
    "exchange/scrub.py": {"contexts"},
    # A hook loads no more than it must.
    "agents/claude_code/store.py": {"commands", "pending"},
    "context/contexts.py": {"sessions", "symbol_changes"},
    "context/where_you_were.py": {"events"},
    # And so does a shell that asks what a word may become.
    "cli/candidates.py": {"sessions", "receipts"},
}


def named_in(source: str) -> Iterator[str]:
    """The tables that the statements in a module name."""
    tree = ast.parse(source)
    said = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield from TABLE.findall(node.value)


def test_statements_stand_with_the_owner_of_their_table() -> None:
    strays = {
        (path, table)
        for file in SOURCE.rglob("*.py")
        for path in [str(file.relative_to(SOURCE))]
        for table in named_in(file.read_text())
        if table in OWNERS
        and OWNERS[table] != path.partition("/")[0]
        and table not in ELSEWHERE.get(path, ())
    }
    assert strays == set()


def test_every_exception_is_still_needed() -> None:
    unused = {
        (path, table)
        for path, tables in ELSEWHERE.items()
        for table in tables - set(named_in((SOURCE / path).read_text()))
    }
    assert unused == set()


def test_a_statement_is_seen_but_not_a_sentence() -> None:
    said = 'def f():\n    """From events to steps."""\n    "SELECT 1 FROM events"'
    assert list(named_in(said)) == ["events"]
    said = 'x = f"DELETE FROM {table}"; y = "UPDATE main.sessions SET a = 1"'
    assert list(named_in(said)) == ["sessions"]
