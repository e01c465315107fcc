"""The search view."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.cli.conftest import Add
from tests.conftest import Ctx
from tests.page.form_visitor import FormVisitor
from tests.page.served import Served
from tests.page.visits import press
from tests.synthesis.test_session_writer import open_writable

TRANSFERRED_BYTES = """
() => ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
  .reduce((sum, each) => sum + each.encodedBodySize, 0)
"""


def test_what_the_box_answers(served: Served, add: Add, ctx: Ctx) -> None:
    gateway = add("--type=fact", "The gateway refuses connections after ten retries.")
    add("--type=decision", "Tea is better than coffee.", "--tag=area:kitchen")
    with FormVisitor(served) as visitor:
        newest = visitor.text("/search")
        assert "2 nodes, newest first." in newest
        assert "Types" in newest
        assert "area:kitchen" in newest

        page = visitor.get("/search?q=connection+retry").text
        assert "<mark>connections</mark>" in page
        assert "<mark>retries</mark>" in page
        assert gateway in page
        assert "its words" in page
        assert "Tea" not in page
        everything = visitor.text("/search?q=connection+tea&every=1")
        assert "2 nodes match, best first." in everything
        assert "No node has all of these words; these have some." in everything

        assert "1 node matches" in visitor.text("/search?q=tag:area:kitchen")
        assert "No node matches." in visitor.text("/search?q=type:task")

        refused = visitor.get("/search?q=type:fact+AND+typ:x")
        assert refused.status_code == 400
        shown = refused.text[refused.text.index('id="query-error"') :].partition("</pre>")[0]
        printed = ctx("query", "type:fact AND typ:x").err
        assert shown.partition(">")[2].strip() == printed.strip()
        assert 'value="type:fact AND typ:x"' in refused.text, "what was typed stays"


def test_a_superseded_node_is_found_on_request(served: Served, add: Add) -> None:
    old = add("--type=decision", "Use XML.")
    add("--type=decision", "Use JSON.", f"--supersedes={old}")
    with FormVisitor(served) as visitor:
        assert "Only superseded nodes match." in visitor.text("/search?q=xml")
        assert "Use XML" in visitor.text("/search?q=xml&superseded=1")


def test_other_projects_are_shown_on_request(served: Served, add: Add) -> None:
    add("--type=fact", "Mine is tea.")
    add("--type=fact", "--tag=project:shop", "Theirs is tea.")
    with FormVisitor(served) as visitor:
        for query in ("", "q=tea", "q=tea&every=1", "q=type:fact"):
            shown = visitor.text(f"/search?{query}")
            assert "Mine is" in shown
            assert "Theirs is" not in shown
            assert "1 more in other projects" in shown
            assert "Theirs is" in visitor.text(f"/search?{query}&all=1")
    with served.program() as client:
        assert client.get("/api/v1/nodes").json()["total"] == 1
        assert client.get("/api/v1/nodes?all=true").json()["total"] == 2


def test_many_nodes_come_in_pages(served: Served) -> None:
    with served.program() as client:
        for number in range(60):
            body = {"content": f"Fact {number:03}."}
            assert client.post("/api/v1/nodes", json=body).status_code == 200
    with FormVisitor(served) as visitor:
        first = visitor.get("/search").text
        assert "Fact 059." in first
        assert "Fact 009." not in first
        assert 'rel="next" href="../../' + visitor.base + '/search?from=50"' in first
        last = visitor.text("/search?from=50&q=type:fact")
        assert "Fact 000." in last
        assert "Older" not in last
        assert "There are no more nodes." in visitor.text("/search?from=500")
        assert len(first) < 150_000


def test_views_are_saved_and_deleted(served: Served, add: Add, ctx: Ctx) -> None:
    add("--type=fact", "Tea.", "--tag=area:kitchen")
    with FormVisitor(served) as visitor:
        saved = visitor.follow("/views", name="kitchen", query="tag:area:kitchen")
        assert "Saved the view kitchen." in saved
        assert "1 node matches" in saved
        assert "kitchen" in ctx("view", "list").out

        refused = visitor.send("/views", name="kitchen", query="type:fact")
        assert refused.status_code == 400
        assert "already exists" in refused.text
        assert 'value="type:fact"' in refused.text
        visitor.follow("/views", name="kitchen", query="type:fact", replace="1")
        assert "type:fact" in ctx("view", "list").out

        deleted = visitor.follow("/views/delete", name="kitchen", back="/search?q=type:fact")
        assert "Deleted the view kitchen." in deleted
        assert "1 node matches" in deleted, "back to where it was"
        assert "kitchen" not in ctx("view", "list").out
        assert "Undone" in visitor.follow("/undo", change="", back="/search")
        assert "kitchen" in ctx("view", "list").out


def test_a_new_node(served: Served, ctx: Ctx) -> None:
    with FormVisitor(served) as visitor:
        refused = visitor.send("/nodes", type="fact", content="Water boils.", tags="tier:none x")
        assert refused.status_code == 400
        assert "There is no tier" in refused.text
        assert "Water boils." in refused.text, "what was typed stays"
        made = visitor.follow("/nodes", type="fact", content="Water boils.", tags="area:tea, x:y")
        visitor.follow("/nodes", type="fact", content="Ice melts.", tags="", tier="pinned")
        visitor.follow("/undo", change="")
    assert "Added. Undo" in made
    listed = ctx("list", "--format=json").json["nodes"]
    assert [each["content"] for each in listed] == ["Water boils."]
    assert {"area:tea", "x:y", "tier:reference"} <= set(listed[0]["tags"])
    assert listed[0]["source"] == "user"


def options(page: Page) -> list[str]:
    page.wait_for_selector(".options li")
    return page.locator(".options .label").all_inner_texts()


def wait_for_option(page: Page, label: str) -> None:
    """Wait until this is the first that is offered."""
    expect(page.locator(".options:not([hidden]) .label").first).to_have_text(label)


def test_completion_with_the_keyboard(served: Served, add: Add, browser: Browser) -> None:
    add("--type=decision", "Tea is better.", "--tag=area:kitchen")
    page = served.open(browser)
    page.goto(page.url.removesuffix("/now") + "/search")
    page.keyboard.press("/")
    box = page.locator("#query")
    assert box.evaluate("box => box === document.activeElement")
    page.keyboard.type("ty")
    assert options(page) == ["type:"]
    page.keyboard.press("ArrowDown")
    active = box.get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    assert box.input_value() == "type:"
    page.keyboard.type("dec")
    wait_for_option(page, "decision")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert box.input_value() == "type:decision "
    page.keyboard.type("tag:ar")
    wait_for_option(page, "area:kitchen")
    page.keyboard.press("Escape")
    assert box.get_attribute("aria-expanded") == "false"
    assert box.evaluate("box => box === document.activeElement"), "the first Escape only closes"
    page.keyboard.type("ea:kitchen")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=type*")
    assert page.locator(".hits li").count() == 1
    press(page, "Escape", "j", "Enter")
    page.wait_for_url("**/node/*")
    page.context.close()


def test_a_new_node_appears_by_itself(served: Served, add: Add, browser: Browser) -> None:
    add("--type=fact", "Tea is hot.")
    page = served.open(browser)
    page.goto(page.url.removesuffix("/now") + "/search")
    expect(page.locator(".hits li")).to_have_count(1)
    page.click("#new-node summary")
    add("--type=fact", "Coffee is hot.")
    expect(page.locator(".hits li")).to_have_count(2)
    expect(page.locator("#new-node textarea")).to_be_visible()
    # The box still completes after the page has read itself again.
    page.locator("#query").press_sequentially("ty")
    wait_for_option(page, "type:")
    page.context.close()


@pytest.mark.slow
def test_ten_thousand_nodes_are_shown_at_once(
    surroundings: Path, tmp_path: Path, browser: Browser
) -> None:
    folder = tmp_path / "place"
    folder.mkdir()
    with open_writable(surroundings, folder) as memory, memory.transaction("add") as change:
        for number in range(10_000):
            content = f"Fact {number} about the gateway and its request {number % 97}."
            change.tag(change.add_node("fact", content), f"area:{number % 40}")
    with Served(folder) as served:
        page = served.open(browser)
        base = page.url.removesuffix("/now")
        for path in ("/search", "/search?q=gateway+request+13", "/search?from=9000&q=type:fact"):
            page.goto(base + path)
            assert page.locator(".hits li").count() == 50
            assert page.evaluate(TRANSFERRED_BYTES) < 150_000, path
        page.context.close()
