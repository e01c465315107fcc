"""`ctx import` of instruction files, of other tools' memory, and of other hosts' sessions."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests import effort
from tests.conftest import Ctx

SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA3"
PROGRAMS = ("instructions", "basic-memory", "mcp-memory")


def answer(ctx: Ctx, *words: str) -> dict[str, Any]:
    ran = ctx("import", *words, "--format", "json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = ran.json
    return found


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder that each of the programs can read, with a secret in each file."""
    folder = tmp_path / "shop"
    entity = {"type": "entity", "name": "Ada", "entityType": "person"}
    other = {"type": "entity", "name": "Shop", "entityType": "project", "observations": []}
    relation = {"type": "relation", "from": "Ada", "to": "Shop", "relationType": "works_at"}
    lines = ({**entity, "observations": [f"uses {SECRET}"]}, other, relation)
    files = {
        "AGENTS.md": f"# Deploy\nUse {SECRET}.\n# Test\nmake\n",
        "notes/a.md": f"---\ntitle: A\n---\n- [fact] the token is {SECRET}\n- uses [[B]]\n",
        "notes/b.md": "---\ntitle: B\n---\nText.\n",
        "memory.json": "\n".join(map(json.dumps, lines)),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def place(program: str, shop: Path) -> str:
    inner = {"basic-memory": "notes", "mcp-memory": "memory.json"}
    return str(shop / inner.get(program, ""))


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_import_can_be_tried_repeated_and_undone(ctx: Ctx, shop: Path, program: str) -> None:
    words = ("--from", program, place(program, shop))
    tried = answer(ctx, *words, "--dry-run")
    assert tried["dry_run"]
    assert sum(tried["added"].values()) == len(tried["new"]) > 0
    assert ctx("list", "--format=json").json["nodes"] == []
    first = answer(ctx, *words)
    assert first["added"] == tried["added"]
    assert first["programs"] == [program]
    assert len(first["redacted"]) == 1
    assert SECRET not in ctx("export").out
    again = answer(ctx, *words)
    assert (again["change"], again["added"], again["updated"], again["edges"]) == (None, {}, 0, 0)
    assert again["unchanged"] == sum(first["added"].values())
    assert ctx("undo", first["change"]).code == 0
    assert ctx("list", "--format=json").json["nodes"] == []
    assert answer(ctx, *words)["added"] == first["added"]


def test_instructions_are_data_of_the_repository(ctx: Ctx, shop: Path) -> None:
    answer(ctx, str(shop / "AGENTS.md"))
    found = ctx("list", "--format=json").json["nodes"]
    assert {node["source"] for node in found} == {"repository"}
    assert all("source:agents-md" in node["tags"] for node in found)
    # A section that is gone is no longer shown to agents.
    (shop / "AGENTS.md").write_text("# Test\nmake\n")
    assert answer(ctx, str(shop / "AGENTS.md"))["archived"] == 1


def test_relations_become_edges(ctx: Ctx, shop: Path) -> None:
    assert answer(ctx, str(shop / "memory.json"))["edges"] == 1
    assert answer(ctx, "--from", "basic-memory", str(shop / "notes"))["edges"] == 2
    edges = json.loads(ctx("export").out)["edges"]
    assert sorted(edge["type"] for edge in edges) == ["CHILD_OF", "RELATES_TO", "RELATES_TO"]


def test_hundreds_of_entities(ctx: Ctx, tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    count = effort.times(600)
    entity = '{"type": "entity", "name": "E%d", "entityType": "x", "observations": ["o"]}\n'
    path.write_text("".join(entity % number for number in range(count)) + "{bad\n")
    found = answer(ctx, str(path))
    assert found["added"] == {"fact": count}
    assert found["skipped"] == [{"what": f"line {count + 1}", "reason": "it is not a JSON object"}]
    assert ctx("undo").code == 0
    assert ctx("list", "--format=json").json["nodes"] == []


def test_errors_have_a_code_and_a_hint(ctx: Ctx, tmp_path: Path) -> None:
    for program in PROGRAMS:
        ran = ctx("import", "--from", program, str(tmp_path / "nothing"))
        assert ran.code != 0
        assert "E0" in ran.err


def test_the_usual_places(ctx: Ctx, surroundings: Path) -> None:
    home = Path(os.environ["HOME"])
    (home / "basic-memory").mkdir()
    (home / "basic-memory" / "a.md").write_text("A note.")
    assert answer(ctx, "--from", "basic-memory")["added"] == {"fact": 1}
    ran = ctx("import", "--from", "mcp-memory", "-")
    assert "mcp-memory cannot be read from stdin" in ran.err


# Past sessions of other hosts

GOLDEN = Path(__file__).parents[1] / "golden"
FOLDERS = {"codex": ".codex/sessions/2026/11/16", "gemini": ".gemini/tmp/project/chats"}


@pytest.mark.parametrize("host", FOLDERS)
def test_past_sessions_of_another_host_are_imported_once(
    host: str, ctx: Ctx, surroundings: Path
) -> None:
    shutil.copytree(GOLDEN / host / "transcripts", surroundings / FOLDERS[host])
    older = answer(ctx, "--from", host, "--since", "2124-01-01")
    assert (older["sessions"], older["left_out"]) == ([], 1)
    would = answer(ctx, "--from", host, "--dry-run")
    assert [each["what"] for each in would["sessions"]] == ["Please start"]
    done = answer(ctx, "--from", host)
    assert (len(done["sessions"]), done["skipped"]) == (1, [])
    again = answer(ctx, "--from", host)
    assert (again["sessions"], again["unchanged"]) == ([], 1)
    assert "Nothing new in the transcripts." in ctx("import", "--from", host).out
    listed = ctx("sessions", "list", "--all", "--format", "json").json
    assert [each["host"] for each in listed["sessions"]] == [host]
    shown = ctx("sessions", "list", "--all").out
    assert shown.split()[:2] == [listed["sessions"][0]["id"][:12], host]
    session = done["sessions"][0]["session"]
    replay = ctx("sessions", "replay", session, "--format", "json").json
    failed = [step for step in replay["steps"] if step["kind"] == "command" and not step["ok"]]
    assert [(step["text"], step["exit_code"]) for step in failed] == [("echo oops >&2; exit 3", 3)]
    refused = ctx("import", "--from", host, "--merge")
    assert (refused.code, f"cannot be used with --from {host}" in refused.err) == (2, True)
