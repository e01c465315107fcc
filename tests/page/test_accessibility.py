"""Every view is usable with a screen reader, with the keyboard, and on a phone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.conftest import Ctx
from tests.installed import skip_without
from tests.page.served import Served

_AXE = "axe-core 4.14.0"
_SCRIPT = Path(__file__).parents[2] / ".cache/axe-4.14.0/node_modules/axe-core/axe.min.js"
VIEWS = (
    "now",
    "now?prompt=deploys",
    "sessions",
    "search",
    "search?q=deploys",
    "search?q=type%3A%3A",
    "review",
    "graph",
    "code",
    "health",
)


@pytest.fixture
def page(project: Path, ctx: Ctx, browser: Browser) -> Iterator[Page]:
    """The page of a project with some memory."""
    Path("app.py").write_text("def main():\n    return helper()\n\ndef helper():\n    return 1\n")
    added = ctx("add", "--type=fact", "Deploys run on Mondays.", "--tag=area:ops").out.split()[1]
    ctx("add", "--type=fact", "Deploys need `app.py`.", f"--link=RELATES_TO:{added}")
    ctx("remember", "Deploys are slow.", "--tag=tier:pinned")
    with Served(project) as served:
        page = served.open(browser)
        yield page
        page.context.close()


def test_axe_finds_nothing_serious(page: Page) -> None:
    if not _SCRIPT.exists():
        skip_without(_AXE)
    script = _SCRIPT.read_text()
    base = page.url.removesuffix("/now")
    first = page.goto(f"{base}/search")
    assert first is not None
    node = page.locator("main a[href*='/node/']").first.get_attribute("href")
    assert node is not None
    origin = base.partition("/p/")[0]
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="light" if scheme == "light" else "dark")
        for address in [*(f"{base}/{view}" for view in VIEWS), origin + node]:
            page.goto(address)
            page.evaluate(script)
            found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            serious = [
                (each["id"], each["nodes"][0]["html"][:200])
                for each in found["violations"]
                if each["impact"] in ("serious", "critical")
            ]
            assert serious == [], (scheme, address)


def test_nothing_is_wider_than_a_phone(page: Page) -> None:
    base = page.url.removesuffix("/now")
    page.set_viewport_size({"width": 390, "height": 800})
    for view in VIEWS:
        page.goto(f"{base}/{view}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, view
