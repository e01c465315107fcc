"""Each table of the store has one owner: the package with all statements about it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import ctx

SOURCE = Path(ctx.__file__).parent
KEYWORD = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE)\b")
TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE)\s+(?:\w+\.)?(\w+)")

OWNERS = {
    "events": "capture",
    "sessions": "capture",
    "symbol_changes": "capture",
    "model_answers": "synthesis",
    "excerpts": "synthesis",
    "excerpts_fts": "synthesis",
    "session_commands": "synthesis",
    "session_teams": "capture",
    "contexts": "context",
    "commands": "memory",
    "pending": "memory",
    "receipts": "memory",
    "event_log": "memory",
    "outside": "memory",
    "records": "memory",
    "nodes": "memory",
    "nodes_fts": "memory",
    "edges": "memory",
    "tags": "memory",
    "views": "memory",
    **{
        f"sync_{each}": "memory"
        for each in (
            "targets",
            "batches",
            "records",
            "versions",
            "replicas",
            "confirmed",
            "changes",
            "unread",
        )
    },
}
# The index of a project has the same tables, and so has a team's server. The index of the code has
# edges of its own.
ALIKE = {
    "project": {"records", "nodes", "views"},
    "code": {"edges"},
    "sync": {"records", "nodes", "tags", "edges"},
    "direct": {"records"},
}

ELSEWHERE = {
    # How the tables came to be.
    "memory/migrations.py": set(OWNERS),
    # A whole store is read as it lies: to compare it, to carry it over, to take a word out of it.
    "exchange/graph_json.py": {"nodes", "edges", "tags"},
    "exchange/importer.py": {"records", "nodes", "edges"},
    "exchange/integrity.py": {"records"},
    "exchange/recovery.py": {"nodes", "views"},
    "exchange/salvage.py": {"records"},
    "exchange/scrub_store.py": {"contexts", "records", "nodes", "tags", "views"}
    | {"excerpts", "excerpts_fts"},
    # A hook loads no more than it must.
    "context/hook_queries.py": {"commands", "pending", "sessions", "events"}
    | {"records", "nodes", "edges", "tags", "views"}
    | {"excerpts", "excerpts_fts", "session_commands", "session_teams", "nodes_fts"},
    # And so does a shell that asks what a word may become.
    "cli/completion_candidates.py": {"nodes", "tags", "views"},
}


def named_in(source: str) -> Iterator[str]:
    """The tables that the statements in a module name."""
    if not KEYWORD.search(source):
        return
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


def test_statements_are_in_the_package_that_owns_the_table() -> None:
    strays = {
        (path, table)
        for file in SOURCE.rglob("*.py")
        for path in [str(file.relative_to(SOURCE))]
        for table in named_in(file.read_text())
        if table in OWNERS
        and OWNERS[table] != (package := path.partition("/")[0])
        and table not in ALIKE.get(package, ())
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


def test_statements_are_detected_and_sentences_are_not() -> None:
    said = 'def f():\n    """From events to steps."""\n    "SELECT 1 FROM events"'
    assert list(named_in(said)) == ["events"]
    said = 'x = f"DELETE FROM {table}"; y = "UPDATE main.sessions SET a = 1"'
    assert list(named_in(said)) == ["sessions"]


# Where the graph of the user store is read as tables. Everything else that a command reads from the
# user store is in `memory.local`: with `CTX_DB=postgresql://…`, these are two databases.
GRAPH_TABLES = {
    "operations/backfill.py",
    "operations/learnings.py",
    "operations/session_timeline.py",
    "operations/sessions.py",
    "operations/undo.py",
    "operations/worker_round.py",
    "worker/sync_thread.py",
}


def test_tables_of_this_machine_are_not_read_through_the_graph() -> None:
    found = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if re.search(r"\b\w+\.user\.connection\b", file.read_text())
    }
    assert found == GRAPH_TABLES
