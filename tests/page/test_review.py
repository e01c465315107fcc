"""The view Review: what waits for a decision."""

import os
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import Ctx, git
from tests.page import filled_project
from tests.page.filled_project import FilledProject
from tests.page.form_visitor import FormVisitor, form_fields
from tests.page.served import Served
from tests.page.visits import HOSTILE, press, watch


@pytest.fixture
def filled(repo: Path, ctx: Ctx) -> FilledProject:
    home = Path(os.environ["HOME"], ".ctx")
    return filled_project.fill(ctx, filled_project.environment_of(home, repo), repo)


def node(ctx: Ctx, node_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = ctx("show", node_id, "--format=json").json["node"]
    return shown


def test_everything_open_is_counted_and_decided(
    filled: FilledProject, repo: Path, ctx: Ctx
) -> None:
    with Served(repo) as served, FormVisitor(served) as visitor:
        shown = visitor.get("/review").text
        assert "9 open decisions" in shown
        assert "Deploys run <del>daily</del><ins>on Fridays</ins>" in shown
        assert "<title>Review (9)" in shown

        def decide(what: str) -> str:
            return visitor.follow("/review", do=what)

        shown = decide(f"pick 1 {filled.conflict} content")
        assert "Settled with version 1." in shown
        assert "8 open decisions" in shown
        visitor.follow("/undo", change="")
        assert "9 open decisions" in visitor.text("/review")
        decide(f"pick 2 {filled.conflict} content")
        assert node(ctx, filled.conflict)["content"] == "Deploys run on Fridays"
        assert "Proposals of agents" not in decide(f"accept-proposal {filled.proposal}")
        assert "tier:pinned" in node(ctx, filled.proposal)["tags"]
        decide(f"confirm-learning {filled.learning}")
        assert node(ctx, filled.learning)["metadata"]["origin"] == "human"
        decide(f"reject-import {filled.imported}")
        assert "tier:off-context" in node(ctx, filled.imported)["tags"]
        shown = visitor.get("/review").text
        assert "5 open decisions" in shown
        assert filled.imported not in shown
        for wrong in ("", "burn x", "pick", "pick x y z", f"pick 9 {filled.conflict} content"):
            assert visitor.send("/review", do=wrong).status_code in (400, 404, 409), wrong


def test_the_command_line_lists_and_decides_the_same(
    filled: FilledProject, repo: Path, ctx: Ctx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    git("clone", "-q", str(repo), str(theirs))
    monkeypatch.chdir(theirs)
    ctx("trust", "--yes")
    ctx("add", "--type=fact", "The mirror is in Oslo")
    ctx("commit", "-m", "The mirror")
    git("add", "-A")
    git("commit", "-qm", "The mirror")
    monkeypatch.chdir(repo)
    git("pull", "-q", "--no-edit", str(theirs), "main")
    with Served(repo) as served, served.program() as program:

        def total() -> int:
            """The number of open decisions, which all of them say."""
            status = ctx("status", "--json").json["review"]
            numbers = {
                status["total"],
                sum(status[name] for name in status if name != "total"),
                ctx("review", "--json").json["total"],
                program.get("/api/v1/review").json()["total"],
            }
            assert len(numbers) == 1
            return int(numbers.pop())

        assert total() == 10
        assert (
            "To review: 10 open decisions (1 conflicting change, 1 commit or document of this"
            " branch, 1 proposal of agents, 5 learnings, 2 imported texts); `ctx review`\n"
        ) in ctx("status").out
        shown = ctx("review").out
        assert shown.startswith("10 open decisions.\n")
        for each in (filled.proposal, filled.learning, filled.imported):
            assert f"  {each[:12]}  " in shown
        assert "  … and 4 more (--limit)\n" in ctx("review", "list", "--limit=1").out
        done = ctx("review", "accept", filled.learning, filled.imported).out
        assert "Accepted learning: The tests need a running Redis\n" in done
        assert done.endswith("\n8 open decisions left.\n")
        assert total() == 8
        assert node(ctx, filled.learning)["metadata"]["origin"] == "human"
        assert node(ctx, filled.imported)["source"] == "user"
        [imported] = ctx("review", "--json").json["imports"]
        assert ctx("review", "reject", imported["short_id"]).code == 0
        assert "tier:off-context" in node(ctx, imported["node"]["id"])["tags"]
        # Learnings and imports are decided one by one.
        ctx("review", "accept", "--all")
        assert total() == 5
        assert ctx("review", "reject", filled.rule).code == 1
        ctx("trust", "--revoke")
        assert total() == 5
        assert "The memory of this project is not trusted" in ctx("review").out


def test_several_at_once(filled: FilledProject, repo: Path, ctx: Ctx) -> None:
    with Served(repo) as served, FormVisitor(served) as visitor:
        ids = re.findall('name="ids" value="([^"]*)"', visitor.get("/review").text)
        assert len(ids) == 2
        shown = visitor.follow("/review/imports", do="accept", ids=ids)
        assert "Accepted 2 imports." in shown
        assert [node(ctx, each)["source"] for each in ids] == ["user", "user"]
        visitor.follow("/undo", change="")
        assert {node(ctx, each)["source"] for each in ids} == {"repository"}
        assert "Nothing is selected." in visitor.follow("/review/imports", do="reject")
        shown = visitor.follow("/review/proposals", do="reject")
        assert "Rejected: Use the staging key" in shown
        assert "Proposals of agents" not in shown


def test_another_text_than_both(filled: FilledProject, repo: Path, ctx: Ctx) -> None:
    with Served(repo) as served, FormVisitor(served) as visitor:
        target = "/review/version"
        fields = form_fields(visitor.get("/review").text, target)
        refused = visitor.send(target, **fields, value="  \t")
        assert refused.status_code == 409
        assert "There is no content." in refused.text
        wrong = visitor.send(target, **{**fields, "field": "node"}, value="x")
        assert wrong.status_code == 409
        shown = visitor.follow(target, **fields, value="On Tuesdays\r\nat 9")
        assert "Settled with your text." in shown
        assert node(ctx, filled.conflict)["content"] == "On Tuesdays\nat 9"


def test_a_store_that_is_not_trusted_is_shown(filled: FilledProject, repo: Path, ctx: Ctx) -> None:
    ctx("trust", "--revoke")
    with Served(repo) as served, FormVisitor(served) as visitor:
        shown = visitor.text("/review")
        assert "The memory of this project is not trusted" in shown
        assert "ctx trust" in shown
        assert "Deploys run" not in shown
        now = visitor.text("/now")
        assert "is not trusted" in now
        assert "port 8080" not in now
        # What is in the user store can still be decided.
        visitor.follow("/now", do=f"hide {filled.rule}")


def test_through_the_api(filled: FilledProject, repo: Path, ctx: Ctx) -> None:
    with Served(repo) as served, served.program() as program, FormVisitor(served) as visitor:
        queue = program.get("/api/v1/review").json()
        assert queue["total"] == 9
        assert [each["id"] for each in queue["proposals"]] == [filled.proposal]
        assert queue["learning_count"] == len(queue["learnings"]) == 5
        mine = {"decision": "accept", "ids": [filled.proposal]}
        refused = program.post("/api/v1/review/proposals", json=mine)
        assert "Only a person" in refused.json()["error"]["message"]
        headers = {"Origin": served.origin, "X-CSRF-Token": visitor.csrf}

        def post(path: str, body: dict[str, Any]) -> httpx.Response:
            return visitor.client.post(f"/api/v1/review/{path}", json=body, headers=headers)

        left = post("proposals", {"decision": "accept", "ids": [filled.proposal]}).json()
        assert left["total"] == 8
        assert (
            post("learnings", {"decision": "reject", "ids": [filled.learning]}).json()[
                "learning_count"
            ]
            == 4
        )
        accepted = {"decision": "accept", "ids": [filled.imported]}
        assert post("imports", accepted).json()["import_count"] == 1
        settled = {"id": filled.conflict, "field": "content", "value": "Deploys run at noon"}
        assert post("conflicts", settled).json()["open"] == []
        assert node(ctx, filled.conflict)["content"] == "Deploys run at noon"
        assert post("proposals", {"decision": "accept"}).status_code == 200
        for path, body in (
            ("conflicts", settled),
            ("conflicts", {"id": "", "field": "", "version": 1}),
            ("conflicts", {"id": filled.conflict, "field": "content"}),
            ("learnings", {"decision": "accept", "ids": [filled.imported]}),
            ("learnings", {"decision": "accept", "ids": []}),
            ("imports", {"decision": "burn", "ids": [filled.imported]}),
            ("imports", {"decision": "accept", "ids": ["\0", "x"]}),
        ):
            refused = post(path, body)
            assert refused.status_code in (400, 404), (path, body, refused.text)
            assert refused.json()["error"]["code"]


def test_hostile_text_runs_nothing(
    filled: FilledProject, repo: Path, ctx: Ctx, browser: Browser
) -> None:
    (repo / "AGENTS.md").write_text(f"## {HOSTILE}\n\n{HOSTILE}")
    ctx("import", "--from=instructions", "AGENTS.md")
    ctx("learnings", "add", HOSTILE)
    ctx("update", filled.conflict, "--content", HOSTILE)
    with Served(repo) as served:
        page = served.open(browser, viewport={"width": 390, "height": 800})
        problems = watch(page)
        page.goto(page.url.replace("/now", "/review"))
        expect(page.get_by_role("heading", level=1)).to_contain_text("open decisions")
        page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        expect(page.get_by_text("<script>alert(1)</script>").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.keyboard.press("j")
        expect(page.locator("[data-item].chosen")).to_have_count(1)
        page.get_by_role("button", name="Confirm").first.click()
        expect(page.get_by_text("Confirmed.")).to_be_visible()
        press(page, "u")
        expect(page.get_by_text("Undone:")).to_be_visible()
        assert problems == []
        page.context.close()
