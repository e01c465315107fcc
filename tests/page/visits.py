"""What visits to the page have in common, and text that attacks it."""

import httpx
from playwright.sync_api import ConsoleMessage, Dialog, Page, expect


def base_of(visitor: httpx.Client) -> str:
    """The address of the first place, below the session."""
    return str(visitor.get("/").headers["location"]).removesuffix("/now")


def follow(visitor: httpx.Client, answer: httpx.Response) -> httpx.Response:
    """Where an answer leads to."""
    assert answer.next_request is not None
    return visitor.send(answer.next_request)


HOSTILE = (
    '<script>alert(1)</script> "><img src=x onerror=alert(2)> <svg onload=alert(3)>'
    " [click](javascript:alert(4)) ![x](javascript:alert(5)) <a xlink:href='javascript:alert(6)'>"
    " </textarea><script>alert(7)</script> {{ 7 * 7 }} {% raw %} \u202eevil"
)
"""A text that would run something if it were not escaped."""


def watch(page: Page) -> list[str]:
    """Everything that the page does from now on and must not do."""
    problems: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            problems.append(message.text)

    def on_dialog(dialog: Dialog) -> None:
        problems.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", on_dialog)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", on_console)
    return problems


def press(page: Page, *keys: str) -> None:
    """Keys work as soon as the scripts of a page are there."""
    expect(page.locator("html.scripted")).to_have_count(1)
    for key in keys:
        page.keyboard.press(key)
