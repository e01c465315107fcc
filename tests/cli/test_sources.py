"""Who said it, wherever a node is shown."""

import os
from pathlib import Path

import pytest

from ctx.hook_files import live
from tests.cli.conftest import Add, Piped
from tests.conftest import Ctx


def source(ctx: Ctx, node_id: str) -> str:
    said = ctx("show", node_id, "--format=json").json["node"]["source"]
    assert "source" in ctx("show", node_id).out
    return str(said)


def test_what_a_person_adds(ctx: Ctx, project: Path, add: Add) -> None:
    node_id = add("--type=fact", "The API speaks OAuth.")
    assert source(ctx, node_id) == "user"
    assert ctx("show", node_id, "--format=json").json["node"]["metadata"] == {}
    assert source(ctx, add("--type=source", "--meta=source=web", "A page.")) == "web"
    # People write the documents of the narrative.
    ran = ctx("add", "decision", "Use SQLite", "--body=No servers.", "--format=json").json
    assert ran["node"]["source"] == "user"
    path = project / ran["path"]
    path.write_text(path.read_text().replace("No servers.", "Nobody runs servers here."))
    assert source(ctx, ran["node"]["id"]) == "user"
    # Moving a node keeps its source.
    notes = project.parent / "notes.jsonl"
    notes.write_text('{"type": "pattern", "content": "From another program."}\n')
    assert ctx("import", str(notes)).code == 0
    (node,) = ctx("list", "--type=pattern", "--format=json").json["nodes"]
    assert (node["source"], node["metadata"]) == ("agent", {})
    assert ctx("move", node["id"], "--project").code == 0
    assert source(ctx, node["id"]) == "agent"
    # A person may pin a text of the repository.
    (project / "RULES.md").write_text("Always use tabs.\n")
    assert ctx("ingest", "RULES.md").code == 0
    (node,) = ctx("query", "path:RULES.md", "--as=nodes", "--format=json").json["nodes"]
    assert "tier:pinned" not in node["tags"]
    assert ctx("tag", node["id"], "tier:pinned").code == 0
    text = ctx("compose").out
    assert f'## Pinned\n\n- [source:{node["id"][:12]}] (repository) "Always use tabs."\n' in text


def test_what_an_agent_adds_in_its_shell(
    ctx: Ctx, add: Add, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = "5dd6d8b2-0000-4000-8000-000000000001"
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", session)
    assert source(ctx, add("--type=fact", "Nobody lives here.")) == "user"
    home = str(surroundings / ".ctx")
    live.begin(home, session, str(os.getpid()), str(surroundings))
    by_agent = add("--type=fact", "The agent says so.")
    assert source(ctx, by_agent) == "agent"
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID")
    assert ctx("update", by_agent, "--content=A person corrected it.").code == 0
    assert source(ctx, by_agent) == "user"


def test_files_and_output_are_quoted(ctx: Ctx, repo: Path, add: Add, piped: Piped) -> None:
    (repo / "README.md").write_text("Always use tabs.\n\nCall `make`.\n")
    assert ctx("ingest", "README.md", "--tag=tier:reference").code == 0
    piped(b"ok\n")
    ran = "add", "command", "--stdin", "--name=make", "--exit-code=0", "--tag=tier:reference"
    assert ctx(*ran).code == 0
    add("--type=fact", "--tag=tier:reference", "The user says so.")
    nodes = {each["source"]: each for each in ctx("list", "--format=json").json["nodes"]}
    assert set(nodes) == {"user", "repository", "tool output"}
    assert "  repository" in ctx("list").out
    text = ctx("compose").out
    assert f"- [fact:{nodes['user']['id'][:12]}] The user says so.\n" in text
    label = f"source:{nodes['repository']['id'][:12]}"
    fence = "  ```\n  Always use tabs.\n\n  Call `make`.\n  ```\n"
    assert f"- [{label}] (repository)\n{fence}" in text
    assert "] (tool output)\n  ```\n  make passed" in text
    recalled = ctx("recall", "tabs", "--format=markdown").out
    assert f"- [{label}] (repository)\n{fence}" in recalled
