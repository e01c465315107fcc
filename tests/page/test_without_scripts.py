"""Everything can be read and changed in a browser without JavaScript."""

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.conftest import Ctx
from tests.page.served import Served
from tests.page.test_accessibility import VIEWS


def send(page: Page, form: str, button: str) -> str:
    """Send a form, and return the message that is shown then."""
    page.locator(form).get_by_role("button", name=button, exact=True).click()
    return page.locator(".messages").inner_text()


def contents(ctx: Ctx) -> list[str]:
    return [node["content"] for node in ctx("list", "--format=json").json["nodes"]]


def test_a_node_from_its_first_text_to_its_end(
    served: Served, project: Path, ctx: Ctx, browser: Browser
) -> None:
    page = served.open(browser, java_script_enabled=False)
    base = page.url.removesuffix("/now")
    page.goto(f"{base}/search")
    page.locator("#new-node summary").click()
    page.locator("#new-node textarea[name=content]").fill("Deploys run on Mondays.")
    assert "Added" in send(page, "#new-node", "Add")
    page.goto(f"{base}/search?q=deploys")
    page.locator(".hits a[href*='/node/']").first.click()

    page.locator("#edit summary").click()
    page.locator("#edit textarea[name=content]").fill("Deploys run on Tuesdays.")
    assert "Changed" in send(page, "#edit", "Save")
    expect(page.locator(".node > .content")).to_have_text("Deploys run on Tuesdays.")
    assert "Undone" in send(page, ".messages", "Undo")
    expect(page.locator(".node > .content")).to_have_text("Deploys run on Mondays.")

    page.locator("#delete summary").click()
    page.locator("#delete button").first.click()
    assert "Deleted" in page.locator(".messages").inner_text()
    assert contents(ctx) == []
    assert "Undone" in send(page, ".messages", "Undo")
    assert contents(ctx) == ["Deploys run on Mondays."]
    page.context.close()


def test_every_view_and_the_error_in_a_query(served: Served, ctx: Ctx, browser: Browser) -> None:
    ctx("add", "--type=fact", "Deploys run on Mondays.")
    page = served.open(browser, java_script_enabled=False)
    base = page.url.removesuffix("/now")
    for view in VIEWS:
        answer = page.goto(f"{base}/{view}")
        assert answer is not None
        assert answer.status in (200, 400), view
        expect(page.locator("main h1, main h2").first).to_be_visible()
    page.goto(f"{base}/search?q=typ:fact")
    expect(page.locator("main")).to_contain_text("^^^")
    assert page.locator("#query").input_value() == "typ:fact"
    page.go_back()
    expect(page.locator("main h1").first).to_be_visible()
    page.context.close()
