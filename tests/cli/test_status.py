"""`ctx status`"""

import re
from pathlib import Path

from tests.cli.conftest import Add
from tests.conftest import Ctx


def test_a_new_store(folder: Path, ctx: Ctx) -> None:
    assert ctx("status").out == "Database: ~/.ctx/store.db (new)\nNodes: 0\n"
    assert re.fullmatch(r"Database: ~/.ctx/store.db \(\d.\d MB\)\nNodes: 0\n", ctx("status").out)


def test_what_is_in_memory(repo: Path, ctx: Ctx, add: Add) -> None:
    old = add("--type=fact", "--tag=tier:reference", "--tag=x:y", "Deploys run on Fridays")
    add("--type=fact", "--tag=tier:reference", f"--supersedes={old}", "Deploys run on Mondays")
    one = add("--type=open-question", "--tag=tier:working", "What about Windows?")
    ctx("pin", one)
    ctx("view", "create", "facts", "--query=type:fact")
    ctx("task", "start", "Port to Windows")
    assert re.sub(r"\(\d.\d MB\)", "(SIZE)", ctx("status").out) == (
        """Database: ~/.ctx/store.db (SIZE)
Nodes: 4 (estimated 25 tokens)
  fact: 2
  task: 1
  open-question: 1
Edges: 1
Tags: 6 unique
Superseded: 1
Views: 2
Project: app
Task: port-to-windows

Tier breakdown:
  pinned: 1 node (6 tokens)
  reference: 2 nodes (14 tokens)
  working: 2 nodes (11 tokens)
  off-context: 0 nodes (0 tokens)
"""
    )
    assert ctx("status", "--format=markdown").out == f"```\n{ctx('status').out}```\n"


def test_as_json(folder: Path, ctx: Ctx, add: Add, surroundings: Path) -> None:
    add("--type=fact", "--tag=tier:pinned", "One")
    answer = ctx("status", "--format=json").json
    assert answer.pop("bytes") > 4096
    assert answer == {
        "database": str(surroundings / ".ctx" / "store.db"),
        "new": False,
        "nodes": 1,
        "tokens": 1,
        "types": [{"type": "fact", "nodes": 1}],
        "edges": 0,
        "tags": 1,
        "tiers": [
            {"tier": "tier:pinned", "nodes": 1, "tokens": 1},
            {"tier": "tier:reference", "nodes": 0, "tokens": 0},
            {"tier": "tier:working", "nodes": 0, "tokens": 0},
            {"tier": "tier:off-context", "nodes": 0, "tokens": 0},
        ],
        "no_tier": 0,
        "superseded": 0,
        "views": 1,
        "scopes": [{"scope": "user", "nodes": 1, "staged": 0}],
        "project": None,
        "task": None,
        "staged": [],
    }


def test_another_store(folder: Path, ctx: Ctx) -> None:
    there = folder / "other.db"
    assert ctx("status", "--db=other.db").out == f"Database: {there} (new)\nNodes: 0\n"
