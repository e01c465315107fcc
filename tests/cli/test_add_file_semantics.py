"""`ctx add file --extract-semantics`: what files define, import and call, as edges of a step."""

from pathlib import Path
from typing import Any

import pytest

from ctx.codebase import freshness
from ctx.ids import ObjectId
from ctx.layout import project_at
from ctx.objects.object_store import read_typed
from ctx.objects.object_types import Commit, EdgeBatch, StepKind, WorkCommit
from ctx.objects.repository import Repository
from tests.conftest import Ctx

RETRY = """\
class Backoff:
    def pause(self):
        return 1
"""
CLIENT = """\
import os
from shop.retry import Backoff


class Client:
    def connect(self):
        backoff = Backoff()
        return backoff.pause()

    def send(self):
        return os.getcwd()
"""
FILES = {"shop/__init__.py": "", "shop/retry.py": RETRY, "shop/client.py": CLIENT}
WHOLE = [
    ("file shop/client.py", "DEFINES", "module shop.client", 1000, 1),
    ("module shop.client", "IMPORTS", "item shop.retry.Backoff", 900, 2),
    ("file shop/client.py", "DEFINES", "item shop.client.Client", 1000, 5),
    ("file shop/client.py", "DEFINES", "item shop.client.Client.connect", 1000, 6),
    ("file shop/client.py", "DEFINES", "item shop.client.Client.send", 1000, 10),
    ("item shop.client.Client.connect", "CALLS", "item shop.retry.Backoff", 900, 7),
    ("item shop.client.Client.connect", "CALLS", "item shop.retry.Backoff.pause", 900, 8),
]


@pytest.fixture
def shop(repo: Path, ctx: Ctx) -> Path:
    for path, text in FILES.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
    assert ctx("init").code == 0
    return repo


def added(ctx: Ctx, *paths: str) -> Any:
    ran = ctx("add", "file", *paths, "--extract-semantics", "--format", "json")
    assert ran.code == 0, ran.err
    return ran.json


def states(found: Any) -> dict[str, str]:
    return {
        item["name"]: item["state"]
        for file in found["semantics"]["files"]
        for item in file["items"]
    }


def edges(root: Path, batch: str) -> list[tuple[str, str, str, int, int | None]]:
    repository = Repository(project_at(str(root)))
    value = read_typed(repository.everything, ObjectId(batch), EdgeBatch)
    assert {edge.evidence.tool.value for edge in value.edges} == {"parser"}
    return [
        (
            f"{edge.from_.kind} {edge.from_.id}",
            edge.label,
            f"{edge.to.kind} {edge.to.id}",
            edge.evidence.confidence,
            edge.evidence.span.start_line if edge.evidence.span else None,
        )
        for edge in value.edges
    ]


def committed(root: Path) -> Commit:
    repository = Repository(project_at(str(root)))
    [head] = repository.heads.named()
    return read_typed(repository.objects, head, Commit)


def test_a_new_file_with_all_that_is_in_it(
    shop: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as limited:
        limited.setenv("CTX_INGESTION_MAX_EDGES_PER_STEP", "3")
        ran = ctx("add", "file", "shop/client.py", "--extract-semantics", "--session=limited")
        assert "Extracted 3 edges:" in ran.out
        assert ran.err.splitlines()[0].startswith("4 edges left out: the limit of a step is")
    ran = ctx("add", "file", "shop/client.py", "--extract-semantics")
    assert ran.out == (
        "Staged 1 file (187 B) in session cli:\n"
        "  new  shop/client.py  187 B\n"
        "Extracted 7 edges:\n"
        "  shop/client.py  shop.client: Client, Client.connect, Client.send\n"
    )
    repository = Repository(project_at(str(shop)))
    for session, expected in (("limited", WHOLE[:3]), ("cli", WHOLE)):
        tip = repository.refs.read(f"work/{session}")
        assert tip is not None
        step = read_typed(repository.staged, tip, WorkCommit)
        assert (step.step_kind, len(step.payload)) == (StepKind.FILE_READ, 2)
        assert edges(shop, step.payload[-1]) == expected
    blob = ctx("stage", "compact", "-m", "Client", "--format", "json").json
    assert (blob["edges"], blob["files"]) == (7, ["shop/client.py"])
    [batch] = committed(shop).edge_batches
    assert edges(shop, batch) == WHOLE
    assert "no damage found" in ctx("debug", "verify").out
    [log] = (shop / ".ctx/narrative/log").iterdir()
    assert log.read_text().endswith(
        "## Code\n\n- shop/client.py: shop.client: Client, Client.connect, Client.send (7 edges)\n"
    )


def test_only_what_differs_from_what_was_committed(shop: Path, ctx: Ctx) -> None:
    # A commit has the edges of the last version.
    (shop / "shop/client.py").write_text("def alone():\n    return 1\n")
    added(ctx, "shop/client.py")
    (shop / "shop/client.py").write_text(CLIENT)
    added(ctx, "shop/client.py")
    added(ctx, "shop/retry.py")
    assert ctx("commit", "-m", "All").code == 0
    [batch] = committed(shop).edge_batches
    assert sorted(edges(shop, batch)) == sorted(
        [
            *WHOLE,
            ("file shop/retry.py", "DEFINES", "module shop.retry", 1000, 1),
            ("file shop/retry.py", "DEFINES", "item shop.retry.Backoff", 1000, 1),
            ("file shop/retry.py", "DEFINES", "item shop.retry.Backoff.pause", 1000, 2),
        ]
    )
    changed = CLIENT.replace("os.getcwd()", "Backoff().pause()") + "\n\ndef new():\n    pass\n"
    (shop / "shop/client.py").write_text(changed)
    found = added(ctx, "shop/client.py")
    assert states(found) == {
        "shop.client.Client": "same",
        "shop.client.Client.connect": "same",
        "shop.client.Client.send": "changed",
        "shop.client.new": "new",
    }
    assert edges(shop, found["semantics"]["batch"]) == [
        ("file shop/client.py", "DEFINES", "module shop.client", 1000, 1),
        ("module shop.client", "IMPORTS", "item shop.retry.Backoff", 900, 2),
        ("file shop/client.py", "DEFINES", "item shop.client.Client.send", 1000, 10),
        ("file shop/client.py", "DEFINES", "item shop.client.new", 1000, 14),
        ("item shop.client.Client.send", "CALLS", "item shop.retry.Backoff", 900, 11),
        ("item shop.client.Client.send", "CALLS", "item shop.retry.Backoff.pause", 900, 11),
    ]
    assert added(ctx, "shop/client.py", "shop/retry.py")["semantics"]["files"] == []


def test_changed_items_are_marked(shop: Path, ctx: Ctx) -> None:
    assert ctx("add", "file", "shop/client.py").code == 0
    # A file that was staged before is read once.
    first = added(ctx, "shop/client.py")
    assert (first["added"], first["unchanged"]) == ([], ["shop/client.py"])
    assert first["work_commit"] is not None
    assert set(states(first).values()) == {"new"}
    assert edges(shop, first["semantics"]["batch"]) == WHOLE
    again = added(ctx, "shop/client.py")
    assert (again["work_commit"], again["semantics"]["files"]) == (None, [])
    changed = CLIENT.replace("os.getcwd()", "Backoff().pause()") + "\n\ndef new():\n    pass\n"
    (shop / "shop/client.py").write_text(changed)
    ran = ctx("add", "file", "shop/client.py", "--extract-semantics")
    assert "shop.client: Client.send (changed), new (new) and 2 unchanged\n" in ran.out
    (shop / "shop/client.py").write_text(CLIENT)
    found = added(ctx, "shop/client.py")
    assert states(found) == {
        "shop.client.Client": "same",
        "shop.client.Client.connect": "same",
        "shop.client.Client.send": "changed",
    }
    # A commit has all that is new in it.
    assert edges(shop, found["semantics"]["batch"]) == WHOLE
    assert ctx("commit", "-m", "Client").code == 0
    assert len(committed(shop).edge_batches) == 1


def test_declared_modules_are_listed(shop: Path, ctx: Ctx) -> None:
    (shop / "src").mkdir()
    (shop / "Cargo.toml").write_text('[package]\nname = "core"\nversion = "0.1.0"\n')
    (shop / "src/lib.rs").write_text("pub mod net;\n")
    (shop / "src/net.rs").write_text("// Nothing yet.\n")
    ran = ctx("add", "file", "src", "--extract-semantics")
    told = [line.split(maxsplit=1) for line in ran.out.splitlines() if ": " in line]
    assert ["src/lib.rs", "core: net (module)"] in told
    assert ["src/net.rs", "core::net: no items"] in told


def test_guesses_count_where_memory_speaks_of_their_target(shop: Path, ctx: Ctx) -> None:
    for name in ("rocket", "ship"):
        (shop / f"shop/{name}.py").write_text(
            f"class {name.title()}:\n    def launch(self):\n        return 1\n"
        )
    (shop / "shop/pad.py").write_text("def go(thing):\n    return thing.launch()\n")
    found = added(ctx, "shop/pad.py")["semantics"]
    assert (found["edges"], found["doubtful"]) == (2, 2)
    assert ctx("relate", "shop/pad.py", "Mentions", "Ship.launch").code == 0
    (shop / "shop/pad.py").write_text("\ndef go(thing):\n    return thing.launch()\n")
    found = added(ctx, "shop/pad.py")["semantics"]
    assert (found["edges"], found["doubtful"]) == (3, 1)
    assert edges(shop, found["batch"])[-1] == (
        "item shop.pad.go",
        "CALLS",
        "item shop.ship.Ship.launch",
        300,
        3,
    )


def test_why_nothing_is_known(shop: Path, ctx: Ctx) -> None:
    (shop / "notes.txt").write_text("Buy milk.\n")
    (shop / ".gitignore").write_text("secret.py\n")
    (shop / "secret.py").write_text("x = 1\n")
    found = added(ctx, "notes.txt", "secret.py", "--force")
    assert {file["path"]: file["problem"] for file in found["semantics"]["files"]} == {
        "notes.txt": "it was not read: no grammar",
        "secret.py": "it is ignored, so the index of the code does not have it",
    }
    assert (found["semantics"]["batch"], found["semantics"]["edges"]) == (None, 0)
    assert len(found["added"]) == 2


def test_a_large_repository_is_not_read_for_one_file(
    shop: Path, ctx: Ctx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "FEW_FILES", 1)
    found = added(ctx, "shop/client.py")
    # Where its imports lead is not known.
    assert [edge[1] for edge in edges(shop, found["semantics"]["batch"])] == ["DEFINES"] * 4
    # Somebody has asked for it.
    assert ctx("code", "index").code == 0
    (shop / "shop/client.py").write_text(CLIENT + "\n")
    assert edges(shop, added(ctx, "shop/client.py")["semantics"]["batch"]) == WHOLE
