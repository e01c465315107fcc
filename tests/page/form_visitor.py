"""A browser without JavaScript, as a program: it reads pages and sends forms."""

import html
import re
from types import TracebackType

import httpx

from tests.page.served import Served
from tests.page.visits import base_of, follow


class FormVisitor:
    """Somebody who has opened the page of a folder."""

    def __init__(self, served: Served) -> None:
        self.client = served.visitor()
        self.origin = served.origin
        self.base = base_of(self.client)
        page = self.client.get(f"{self.base}/search").text
        found = re.search(r'name="csrf" content="([^"]+)"', page)
        assert found is not None
        self.csrf = found.group(1)

    def __enter__(self) -> "FormVisitor":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.client.close()

    def get(self, path: str) -> httpx.Response:
        """A view, by its address below that of the folder."""
        return self.client.get(f"{self.base}{path}")

    def text(self, path: str) -> str:
        """What a reader of a view sees: without tags, with single spaces."""
        answer = self.get(path)
        assert answer.status_code in (200, 400, 404, 409), answer.text
        return readable(answer.text)

    def send(self, path: str, **fields: str | list[str]) -> httpx.Response:
        """Send a form; the answer is where it leads, or the form with an error."""
        answer = self.client.post(
            f"{self.base}{path}",
            data={"csrf": self.csrf, **fields},
            headers={"Origin": self.origin},
        )
        assert answer.status_code < 500, answer.text
        return answer

    def follow(self, path: str, **fields: str | list[str]) -> str:
        """Send a form that is accepted, and read the view that it leads to."""
        answer = self.send(path, **fields)
        assert answer.status_code == 303, answer.text
        return readable(follow(self.client, answer).text)


def readable(page: str) -> str:
    main = page[page.index('<div class="messages"') :] if '<div class="messages"' in page else page
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split())


def form_fields(page: str, action: str) -> dict[str, str]:
    """The hidden fields of the last form with an action, without its token."""
    form = page[page.rindex(f'{action}"') :].partition("</form>")[0]
    found = re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in found if name != "csrf"}


def field(page: str, name: str) -> str:
    """The value of the first hidden field with a name."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None, name
    return html.unescape(found.group(1))
