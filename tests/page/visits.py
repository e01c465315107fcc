"""What visits to the page have in common: forms, and text that attacks it."""

from html.parser import HTMLParser
from typing import Any

import httpx
from playwright.sync_api import ConsoleMessage, Dialog, Page, expect

from tests.page.served import Served


class _Forms(HTMLParser):
    """The hidden fields of each form, by its action below the session; the last form with an
    action counts."""

    def __init__(self) -> None:
        super().__init__()
        self.by_action: dict[str, dict[str, str]] = {}
        self._open: dict[str, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = self.by_action[values.get("action", "").replace("../", "")] = {}
        elif tag == "input" and self._open is not None and values.get("type") == "hidden":
            self._open[values["name"]] = values.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None


def form_fields(html: str, action: str) -> dict[str, str]:
    """The hidden fields of the form with an action."""
    forms = _Forms()
    forms.feed(html)
    return forms.by_action[action]


def change(
    visitor: httpx.Client, served: Served, page: str, target: str, fields: dict[str, Any]
) -> str:
    """Send a form as a browser does, and follow it; what is shown then."""
    csrf = next(iter(_csrf(visitor.get(page).text)))
    answer = visitor.post(target, headers={"Origin": served.origin}, data={"csrf": csrf, **fields})
    assert answer.status_code == 303, answer.text
    return follow(visitor, answer).text


def base_of(visitor: httpx.Client) -> str:
    """The address of the first place, below the session."""
    return str(visitor.get("/").headers["location"]).removesuffix("/now")


def follow(visitor: httpx.Client, answer: httpx.Response) -> httpx.Response:
    """Where an answer leads to."""
    assert answer.next_request is not None
    return visitor.send(answer.next_request)


def _csrf(html: str) -> set[str]:
    forms = _Forms()
    forms.feed(html)
    return {each["csrf"] for each in forms.by_action.values() if "csrf" in each}


def hostile() -> list[str]:
    """Texts that would run something if they were not escaped."""
    return [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(2)>',
        "[click](javascript:alert(3)) ![x](javascript:alert(4))",
        "<svg onload=alert(5)><a xlink:href='javascript:alert(6)'>x</a></svg>",
        "</textarea><script>alert(7)</script> {{ 7 * 7 }} {% raw %}",
        "bidi ‮ gnp.exe ​ zero",
    ]


def quiet(page: Page, problems: list[Any]) -> None:
    """Collect everything that a page must not do."""

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            problems.append(message.text)

    def on_dialog(dialog: Dialog) -> None:
        problems.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", on_dialog)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", on_console)


def press(page: Page, *keys: str) -> None:
    """Keys work as soon as the scripts of a page are there."""
    expect(page.locator("html.scripted")).to_have_count(1)
    for key in keys:
        page.keyboard.press(key)
