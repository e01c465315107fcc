"""Links lead somewhere, and the site has every page and loads nothing from elsewhere.

`make site` builds the site, which is too slow for this. It checks the same things in the HTML.
"""

import re
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def anchors(page: Path) -> set[str]:
    """What a link to a heading of a page ends with, on GitHub and on the site."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        # A second heading with the same words gets a number, which differs between the two.
        assert anchor not in found, f"{page.name} has two headings {heading!r}"
        found.add(anchor)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_existing_targets(page: Path) -> None:
    text = re.sub(r"^```.*?^```$|`[^`\n]+`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if not target.startswith("https://"):
            linked = page.parent / target if target else page
            assert linked.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(linked), f"{page.name}: {target}#{anchor}"


def test_the_site_has_every_page_once() -> None:
    def pages(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        inner = entry.values() if isinstance(entry, dict) else entry
        assert isinstance(inner, Iterable)
        return [page for each in inner for page in pages(each)]

    nav = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    written = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert sorted(nav) == sorted(written | set(site_pages().ROOT_PAGES.values()))


def site_pages() -> Any:
    spec = spec_from_file_location("site_pages", DOCS / "site_pages.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("page", "link", "on_site"),
    [
        ("index.md", "[a](../README.md#use)", "[a](overview.md#use)"),
        ("overview.md", "![b](docs/pictures/now.png)", "![b](pictures/now.png)"),
        ("decisions/0023-a.md", "[c](../import.md)", "[c](../import.md)"),
        ("reference/topics.md", "[d](../../SECURITY.md)", "[d](../security.md)"),
        ("overview.md", "[e](https://example.org/docs/a)", "[e](https://example.org/docs/a)"),
        ("overview.md", "`[f](docs/index.md)`", "`[f](docs/index.md)`"),
    ],
)
def test_links_lead_to_the_same_page_on_the_site(page: str, link: str, on_site: str) -> None:
    assert site_pages().with_site_links(link, page) == on_site


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<a href="https://example.org">', []),
        ('<script src="assets/a.js"></script><img src="a.png">', []),
        ('<script src="https://example.org/a.js">', ["https://example.org/a.js"]),
        ('<link rel="stylesheet" href="//example.org/a.css">', ["//example.org/a.css"]),
        ("<style>@import url(https://example.org/b.css)</style>", ["https://example.org/b.css"]),
    ],
)
def test_a_page_that_loads_from_another_server_is_found(html: str, found: list[str]) -> None:
    assert site_pages().external_assets(html) == found
