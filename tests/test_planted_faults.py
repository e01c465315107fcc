"""Faults are drawn and planted so that two trees can be compared by them (`bench/faults`)."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from bench.faults import kinds, planted
from bench.faults.planted import Fault

MODULE = '''"""A store."""

from __future__ import annotations

import os


class Store:
    def keep(self, name: str, limit: int) -> str:
        if len(name) >= limit:
            raise ValueError(name)
        elif not name:
            name = "unnamed"
        else:
            name = name[:limit]
        with self.transaction():
            self.write(redact(name).text)
        return name
'''
FUNCTION = "objects/store.py:Store.keep"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("objects/store.py", "objects/heads.py", "cli/show.py", "locks.py"):
        path = tmp_path / "src/ctx" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODULE)
    return tmp_path


def faults() -> list[Fault]:
    statements = list(planted.statements(ast.parse(MODULE)))
    return list(planted.faults("objects/store.py", statements))


@pytest.mark.parametrize(
    ("before", "kind", "after"),
    [
        ("if a < b: ...", kinds.COMPARISON, "if a >= b:\n    ..."),
        ("return a in b", kinds.COMPARISON, "return a not in b"),
        ("file.write(a)", kinds.WRITE, "pass"),
        ("rows[a] = b", kinds.WRITE, "pass"),
        ("with locks.hold(path): ...", kinds.LOCK, "if True:\n    ..."),
        ("with a, transaction(b): ...", kinds.LOCK, "with a:\n    ..."),
        ("disk.sync_folder(a)", kinds.LOCK, "pass"),
        ("return redact(a + b).text", kinds.CHECK, "return a + b"),
        ("if redact(a).findings: ...", kinds.CHECK, "if False:\n    ..."),
        ("if not (a and store.is_trusted): ...", kinds.CHECK, "if not (a and True):\n    ..."),
        ("return [b for b in a if not memory.withheld]", kinds.CHECK, None),
        ("while len(a) < most: ...", kinds.LIMIT, "while len(a) <= most:\n    ..."),
        ("return a[:most]", kinds.LIMIT, "return a[:most + 1]"),
        ("return a + 1", kinds.LIMIT, "return a"),
        ("return a if b else c", kinds.BRANCH, "return c if b else a"),
        ("raise StoreDamaged(a)", kinds.ERROR, "pass"),
    ],
)
def test_a_statement_has_places_for_faults(before: str, kind: str, after: str | None) -> None:
    (statement,) = ast.parse(before).body
    changes = {
        kind: ast.unparse(ast.fix_missing_locations(changed))
        for kind, changed in kinds.changes(statement, "cli/show.py:render")
    }
    assert changes[kind] == (after or "return [b for b in a if not False]")


@pytest.mark.parametrize(
    "statement",
    [
        "self._log(a)",
        "connection.close()",
        "if waited_s < deadline: ...",
        "raise AssertionError(a)",
        "return re.escape(a)",
    ],
)
def test_what_nobody_can_observe_is_left_out(statement: str) -> None:
    (node,) = ast.parse(statement).body
    assert {kind for kind, _ in kinds.changes(node, FUNCTION)} <= {kinds.COMPARISON}


def test_a_seed_always_draws_the_same_faults(tree: Path) -> None:
    drawn = planted.draw(tree, 7, 12)
    assert drawn == planted.draw(tree, 7, 12)
    assert drawn != planted.draw(tree, 8, 12)
    assert [fault.package for fault in drawn] == [
        *["(top level)"] * 3,
        *["cli"] * 3,
        *["objects"] * 6,
    ]
    assert len({(fault.module, fault.before) for fault in drawn}) == 12


def test_a_planted_fault_changes_one_statement_and_nothing_inside_it() -> None:
    for fault in faults():
        changed = planted.planted(MODULE, fault)
        assert changed is not None
        before, after = ast.unparse(ast.parse(MODULE)).splitlines(), changed.splitlines()
        assert len(before) == len(after)
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_a_fault_is_planted_again_after_code_has_moved() -> None:
    moved = MODULE.replace("import os\n", "import os\n\n\ndef other() -> None:\n    os.sync()\n")
    moved = moved.replace("            raise ValueError(name)\n", "            name = ''\n")
    (fault,) = [each for each in faults() if each.kind == kinds.COMPARISON]
    changed = planted.planted(moved, fault)
    assert changed is not None
    assert "if len(name) < limit:\n            name = ''\n        elif not name:" in changed


@pytest.mark.parametrize(
    "changed",
    [
        MODULE.replace("len(name) >= limit", "len(name) > limit"),
        MODULE.replace("def keep", "def store"),
        MODULE.replace("class Store", "class Stores"),
    ],
)
def test_a_fault_is_left_out_where_its_statement_no_longer_exists(changed: str) -> None:
    (fault,) = [each for each in faults() if each.kind == kinds.COMPARISON]
    assert planted.planted(changed, fault) is None


def test_which_faults_are_executed_is_recorded_in_any_process(tmp_path: Path) -> None:
    source = "def read(a):\n    if a > 1:\n        raise ValueError(a)\n    return a + 1\n"
    numbered = dict(enumerate(planted.faults("m.py", planted.statements(ast.parse(source)))))
    memory = tmp_path / "executed"
    memory.write_bytes(bytes(len(numbered)))
    (tmp_path / "entry.py").write_text(
        planted.recording(source, numbered, memory)
        + "\nimport os, signal\nread(1)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    words = [sys.executable, "-I", "-S", str(tmp_path / "entry.py")]
    subprocess.run(words, check=False, env={})
    executed = [numbered[number].before for number, byte in enumerate(memory.read_bytes()) if byte]
    assert set(executed) == {"if a > 1:\n    ...", "return a + 1"}
