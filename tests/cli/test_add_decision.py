"""`ctx add decision`: a node, and in a project its file and the page of all."""

import re
from pathlib import Path

from tests.conftest import Ctx, git


def test_a_decision_of_a_project(ctx: Ctx, project: Path) -> None:
    words = ["--body", "All at once would bring it down.", "--tag=area:net", "--mention=src/net.rs"]
    ran = ctx("add", "decision", "Retry with jitter", *words)
    [file] = (project / ".ctx/narrative/decisions").iterdir()
    assert re.fullmatch(r"0001-retry-with-jitter-[0-9a-z]{4}\.md", file.name)
    short = ran.out.split()[1]
    assert ran.out == (
        f"Added: {short} decision_0001 (tier:reference)\n  .ctx/narrative/decisions/{file.name}\n"
    )
    shown = ctx("show", "decision_0001", "--format=json").json["node"]
    assert shown["content"] == "Retry with jitter\n\nAll at once would bring it down."
    assert shown["tags"] == ["area:net", "tier:reference"]
    at = shown["created_at"]
    assert file.read_text() == (
        f"# Retry with jitter\n\n<!-- metadata:\ncreated: {at}\nupdated: {at}\n"
        f"node: {shown['id']}\n"
        "tags: [area:net]\nmentions: [src/net.rs]\n-->\n\nAll at once would bring it down.\n"
    )


def test_the_page_of_all_decisions_is_local(ctx: Ctx, project: Path) -> None:
    ctx("add", "decision", "Use tabs", "--body", "Everybody agrees.")
    ctx("add", "decision", "Use spaces", "--body", "Nobody agreed.")
    page = (project / ".ctx/narrative/decisions.md").read_text()
    assert re.findall("^## .*", page, re.MULTILINE) == ["## 0002 Use spaces", "## 0001 Use tabs"]
    assert "decisions.md" not in git("status", "--short", "-uall")
    ctx("update", "decision_0002", "--content", "Use spaces after all")
    page = (project / ".ctx/narrative/decisions.md").read_text()
    assert re.findall("^## .*", page, re.MULTILINE)[0] == "## 0002 Use spaces after all"


def test_its_words_are_those_of_its_file(ctx: Ctx, project: Path) -> None:
    node_id = ctx("add", "decision", "Use tabs", "--format=json").json["node"]["id"]
    [file] = (project / ".ctx/narrative/decisions").iterdir()
    file.write_text("# Use spaces\n\n<!-- metadata:\ntags: [area:style]\n-->\n\nWe voted.\n")
    shown = ctx("show", node_id, "--format=json").json["node"]
    assert shown["content"] == "Use spaces\n\nWe voted."
    assert shown["tags"] == ["area:style", "tier:reference"]
    file.unlink()
    shown = ctx("show", node_id, "--format=json").json["node"]
    assert (shown["content"], shown["tags"]) == ("Use tabs", ["tier:reference"])


def test_in_a_feature_and_outside_of_a_project(ctx: Ctx, project: Path) -> None:
    words = ("--stream=retry", "--tag=tier:pinned", "--format=json")
    added = ctx("add", "decision", "x", *words).json
    assert added["path"].startswith(".ctx/narrative/feature/retry/decisions/0001-x-")
    assert (added["number"], added["given"]) == ("decision_0001", [])
    assert added["node"]["tags"] == ["tier:pinned"]
    added = ctx("add", "decision", "y", "--user", "--format=json").json
    assert (added["number"], added["node"]["scope"]) == (None, "user")
    assert added["node"]["tags"] == ["tier:reference"]
