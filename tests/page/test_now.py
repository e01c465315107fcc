"""The view Now: what a session would be given."""

import os
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from ctx.page.now_view import LAYER_NAMES
from tests.cli.conftest import Add
from tests.conftest import Ctx
from tests.page import filled_project
from tests.page.filled_project import RULE, FilledProject
from tests.page.form_visitor import FormVisitor, form_fields
from tests.page.served import Served
from tests.page.visits import HOSTILE, press, watch

HOME = "HOME"


@pytest.fixture
def filled(repo: Path, ctx: Ctx) -> FilledProject:
    home = Path(os.environ[HOME], ".ctx")
    return filled_project.fill(ctx, filled_project.environment_of(home, repo), repo)


def test_every_item_says_why_it_is_there(filled: FilledProject, repo: Path, ctx: Ctx) -> None:
    """The same items as `ctx context` has, with their reasons, sources and tokens."""
    told = ctx("context", "--format=json").json
    with Served(repo) as served, FormVisitor(served) as visitor:
        text = visitor.get("/now").text
        assert "The API listens on port 8080" in text
        assert "pinned" in text
        assert "<code>tier:reference</code>, in the view <code>default</code>" in text
        assert RULE in text
        assert "rule of the project, <code>kind:rule</code>, holds in general" in text
        assert text.count("data-item") >= len(told["items"])
        assert f"tokens, budget {told['budget']:,}" in text
        for layer in told["layers"]:
            if layer["shown"]:
                assert f'part-{layer["name"]}"' in text
                # The legend of the bar and the heading of the section.
                label, tokens = LAYER_NAMES[layer["name"]], f"{layer['tokens']:,}"
                assert f'{label} <span class="number">{tokens}</span></li>' in text
                assert f'{label} <span class="quiet number">{tokens}</span></h3>' in text
        # An agent wants to pin this one.
        assert f"accept-proposal {filled.proposal}" in text
        with served.program() as program:
            assert program.get("/api/v1/context").json()["items"] == told["items"]
            asked = program.get("/api/v1/context", params={"prompt": "Where is the API port?"})
            assert asked.json()["source"] == "prompt"
            tag = program.get("/api/v1/review").headers["etag"]
            again = program.get("/api/v1/review", headers={"If-None-Match": tag})
            assert again.status_code == 304


def test_with_a_prompt(filled: FilledProject, repo: Path, ctx: Ctx) -> None:
    ctx("add", "--type=fact", "--no-tier", "The frobnicator needs a warm cache before it starts")
    prompt = "why is the frobnicator <b>cache</b> cold?"
    with Served(repo) as served, FormVisitor(served) as visitor:
        text = visitor.get(f"/now?prompt={quote(prompt)}").text
        assert "With this prompt" in text
        assert f"/now?prompt={quote(prompt, safe='')}" in text
        assert "shares <code>frobnicator</code>" in text
        assert "why is the frobnicator &lt;b&gt;cache&lt;/b&gt; cold?" in text
        none = visitor.get("/now?prompt=zebra").text
        assert "No earlier session said anything about this." in none


def test_items_are_decided_in_place_and_undone(filled: FilledProject, repo: Path, ctx: Ctx) -> None:
    def tags(node: str) -> list[str]:
        return list(ctx("show", node, "--format=json").json["node"]["tags"])

    with Served(repo) as served, FormVisitor(served) as visitor:

        def decide(button: str, node: str) -> str:
            return visitor.follow("/now", do=f"{button} {node}")

        for button, node, added in (
            ("pin", filled.reference, "tier:pinned"),
            ("hide", filled.rule, "tier:off-context"),
        ):
            before = tags(node)
            decide(button, node)
            assert added in tags(node)
            visitor.follow("/undo", change="")
            assert tags(node) == before
        decide("hide", filled.pinned)
        assert "tier:pinned" not in tags(filled.pinned)
        assert f"reveal {filled.pinned}" in visitor.get("/now").text
        decide("reveal", filled.pinned)
        assert "tier:reference" in tags(filled.pinned)
        decide("accept", filled.imported)
        assert ctx("show", filled.imported, "--format=json").json["node"]["source"] == "user"
        decide("accept", filled.learning)
        learned = ctx("show", filled.learning, "--format=json").json["node"]
        assert learned["metadata"]["origin"] == "human"
        decide("accept-proposal", filled.proposal)
        assert "tier:pinned" in tags(filled.proposal)
        decide("delete", filled.reference)
        assert ctx("show", filled.reference).code != 0
        command = "remove-command:make test"
        assert f'value="{command}"' in visitor.get("/now").text
        assert "Removed the command make test . Undo" in visitor.follow("/now", do=command)
        assert "make test" not in ctx("context").out.partition("## Commands")[2].partition("##")[0]
        assert "make test" in visitor.text("/now").partition("Left out")[2], "it can be shown again"
        visitor.follow("/undo", change="")
        assert f'"{command}"' in visitor.get("/now").text
        for wrong in ("", "pin", "burn 01", f"burn {filled.rule}", "pin zzzz"):
            assert visitor.send("/now", do=wrong).status_code in (400, 404), wrong


def test_an_edit_is_saved_or_given_back(filled: FilledProject, repo: Path, ctx: Ctx) -> None:
    node = filled.reference
    with Served(repo) as served, FormVisitor(served) as visitor:
        target = f"/now/{node}/edit"
        fields = form_fields(visitor.get(f"/now?edit={node}").text, target)
        ctx("update", node, "--content", "We use PostgreSQL")
        stale = visitor.send(target, **fields, content="My <own> text")
        assert stale.status_code == 409
        assert "The node was changed meanwhile." in stale.text
        assert "My &lt;own&gt; text</textarea>" in stale.text
        fields = form_fields(stale.text, target)
        assert "There is no content." in visitor.send(target, **fields, content=" ").text
        assert visitor.send(target, **fields, content="a\r\nb \u202ex").status_code == 303
        assert ctx("show", node, "--format=json").json["node"]["content"] == "a\nb \u202ex"


def test_an_empty_memory_says_what_to_do(repo: Path, ctx: Ctx) -> None:
    with Served(repo) as served, FormVisitor(served) as visitor:
        text = visitor.text("/now")
        assert "Memory is empty here." in text
        assert "ctx add" in text
        assert "Nothing to review" in visitor.text("/review")


def test_what_had_no_room_is_listed(repo: Path, ctx: Ctx, add: Add) -> None:
    for number in range(24):
        add("--type=fact", "--tag=tier:reference", f"Fact {number}: {'word ' * 90}")
    with Served(repo) as served, FormVisitor(served) as visitor:
        text = visitor.get("/now").text
    left_out = text.partition('id="left-out"')[2]
    assert "no room in the layer memory" in left_out
    assert "Fact 0:" in left_out
    assert len(text) < 150_000


def test_in_a_browser(
    filled: FilledProject, repo: Path, ctx: Ctx, add: Add, browser: Browser
) -> None:
    """Keys, copying, a live update and the text of hostile nodes, in one visit."""
    add("--type=fact", "--tag=tier:reference", HOSTILE)
    told = ctx("context").out
    with Served(repo) as served:
        page = served.open(
            browser, permissions=["clipboard-read", "clipboard-write"], viewport=None
        )
        problems = watch(page)
        page.reload()
        _copies_exactly(page, told)
        _keys(page)
        ctx("add", "--type=fact", "--tag=tier:pinned", "Something quite new")
        expect(page.locator(".given").get_by_text("Something quite new").first).to_be_visible()
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert problems == []
        page.context.close()


def _copies_exactly(page: Page, told: str) -> None:
    page.get_by_role("button", name="Copy as markdown").first.click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == told


def _keys(page: Page) -> None:
    press(page, "j")
    expect(page.locator("[data-item].chosen")).to_have_count(1)
    press(page, "e")
    area = page.locator("textarea[name=content]")
    expect(area).to_be_focused()
    area.fill("The API listens on port 9090")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.locator(".given").get_by_text("port 9090").first).to_be_visible()
    press(page, "u")
    expect(page.get_by_text("Undone:").first).to_be_visible()
    expect(page.locator(".given").get_by_text("port 8080").first).to_be_visible()
    press(page, "g", "r")
    expect(page.get_by_role("heading", level=1)).to_contain_text("open decisions")
    press(page, "g", "n")
    expect(page.get_by_role("heading", name="What a session here gets")).to_be_visible()


def test_a_page_hears_of_changes_before_it_listened(repo: Path, ctx: Ctx) -> None:
    with Served(repo) as served, FormVisitor(served) as visitor:
        live = visitor.get("/now").text.partition('data-live="../../')[2].partition('"')[0]
        ctx("add", "--type=fact", "Something quite new")
        with visitor.client.stream("GET", live) as stream:
            received = stream.iter_text()
            assert next(received) == ": listening\n\n"
            assert next(received).startswith("event: changed")
