"""`ctx remember`, and `ctx forget` by an agent."""

from pathlib import Path

import pytest

from ctx.cli.settings import Settings
from tests.cli.conftest import Add
from tests.conftest import Ctx


def test_an_agent_in_a_shell_forgets_only_what_agents_said(
    project: Path, ctx: Ctx, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("The cache is cold at start")
    assert ctx("remember", "The cache is warm at noon").code == 0
    monkeypatch.setattr(Settings, "is_in_agents_shell", property(lambda _: True))
    ran = ctx("forget", "cache")
    assert ran.code == 0
    assert "The cache is warm at noon" in ran.out
    assert "They decide with `ctx review`" in ran.err
    left = ctx("list", "--format", "json").json["nodes"]
    assert [node["content"] for node in left] == ["The cache is cold at start"]
    (proposal,) = ctx("review", "--format", "json").json["proposals"]
    assert proposal["asked"] == ["forget"]
    assert ctx("review", "reject", proposal["short_id"]).code == 0
    assert ctx("list", "--format", "json").json["total"] == 1


def test_options_and_answers(project: Path, ctx: Ctx, add: Add) -> None:
    ran = ctx("remember", "--type=decision", "--rationale=no servers", "We use SQLite")
    assert (ran.code, ran.err) == (0, "")
    words = ran.out.split()
    assert (words[0], words[2]) == ("Remembered:", "(tier:reference)")
    node = ctx("show", words[1], "--format", "json").json["node"]
    assert (node["source"], node["metadata"]["rationale"]) == ("agent", "no servers")
    assert "We use SQLite" in ctx("context").out
    ran = ctx("remember", "Never force-push", "--tag=tier:pinned", "--user", "--format=json")
    assert ran.json["proposed"] == ["pin", "all projects"]
    assert "tier:pinned" not in ran.json["node"]["tags"]
    text = ctx("remember", "Never push on Fridays", "--tag=tier:pinned")
    assert "Proposed to the user: pin" in text.out
    assert "ctx review" in text.err
    one, two = add("Node one"), add("Node two")
    ran = ctx("remember", "--id", two, "--link", f"DEPENDS_ON:{one}")
    assert (ran.code, ran.out) == (0, f"Linked: {two}\n")
    new = ctx("remember", "Node three", "--supersedes", one, "--link", f"relates-to:{two}")
    assert new.code == 0
    types = [edge["type"] for edge in ctx("edges", two, "--format", "json").json["edges"]]
    assert sorted(types) == ["DEPENDS_ON", "RELATES_TO"]
    assert ctx("show", one, "--format", "json").json["node"]["superseded_by"]
    before = ctx("list", "--format", "json").json["total"]
    for wrong in (
        [],
        ["--id", two],
        ["text", "--id", two],
        ["text", "--link", "no"],
        ["--link", two],
    ):
        ran = ctx("remember", *wrong)
        assert (ran.code, ran.err[:10]) == (2, "error E011")
    assert ctx("list", "--format", "json").json["total"] == before
