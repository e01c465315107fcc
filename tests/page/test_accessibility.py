"""Every view is usable with a screen reader, with the keyboard, and on a phone."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import dist
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from ctx.page.rendering import STATIC
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
    page.set_viewport_size({"width": 375, "height": 800})
    for view in VIEWS:
        page.goto(f"{base}/{view}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, view
    boxes = [link.bounding_box() for link in page.locator(".top nav a").all()]
    assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= 375 for box in boxes)


# Machado, Oliveira and Fernandes (2009): what the eye takes a colour for, in linear light.
_SEEN = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "no green": ((0.367, 0.861, -0.228), (0.28, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "no blue": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}
_CONES = ((0.4122, 0.5363, 0.0514), (0.2119, 0.6807, 0.1074), (0.0883, 0.2817, 0.63))
_LAB = ((0.2105, 0.7936, -0.0041), (1.978, -2.4286, 0.4506), (0.0259, 0.7828, -0.8087))


def _times(matrix: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, values, strict=True)) for row in matrix]


def _linear(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def _contrast(one: str, other: str) -> float:
    light = [_times(((0.2126, 0.7152, 0.0722),), _linear(each))[0] + 0.05 for each in (one, other)]
    return max(light) / min(light)


def test_the_hues_differ_for_everybody() -> None:
    """Distances in Oklab; 0.02 is the least that can be seen side by side."""
    sheet = Path(STATIC, "page.css").read_text()
    for scheme in (sheet.partition("@media")[0], sheet.partition("@media")[2].partition("* {")[0]):
        names = dict(re.findall(r"--([\w-]+): (#\w+);", scheme))
        hues = [colour for name, colour in names.items() if name.startswith("hue-")]
        assert len(hues) == 8
        assert all(_contrast(each, names["ground"]) >= 3 for each in hues)
        for eye, matrix in _SEEN.items():
            seen = [[max(0, part) for part in _times(matrix, _linear(each))] for each in hues]
            places = [
                _times(_LAB, [cone ** (1 / 3) for cone in _times(_CONES, each)]) for each in seen
            ]
            assert min(dist(*pair) for pair in combinations(places, 2)) > 0.1, eye
