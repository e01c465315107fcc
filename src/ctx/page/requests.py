"""What a view gets, and what it may return."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from ctx import layout
from ctx.ids import CLI_SESSION, SessionId
from ctx.operations import undo
from ctx.page.access import BrowserSession
from ctx.page.doctor_runs import DoctorRuns
from ctx.page.places import PagePlace
from ctx.project import current_session, trust_check
from ctx.workspace import Environment, Memory, open_memory

AUTHOR = "page"
"""The author of what the user changes here."""
_MAX_NUMBER = 1_000_000


class PageRequest(NamedTuple):
    """A request for a view of one place."""

    environment: Environment
    place: PagePlace
    path: Mapping[str, str]
    """The variable parts of the address."""
    query: Mapping[str, str]
    form: Mapping[str, Sequence[str]]
    browser: BrowserSession | None
    """None for a program."""
    doctor: DoctorRuns | None = None
    """None if the server cannot run it."""

    def reading(self) -> AbstractContextManager[Memory]:
        return open_place(self.environment, writing=False)

    def writing(self) -> AbstractContextManager[Memory]:
        return open_place(self.environment, writing=True)

    def text(self, name: str) -> str:
        """A parameter of the address; empty if it is missing."""
        return self.query.get(name, "")

    def field(self, name: str) -> str:
        """A field of the form; empty if it is missing. Browsers send `\\r\\n`."""
        values = self.form.get(name) or [""]
        return values[0].replace("\r\n", "\n")

    def number(self, name: str, default: int, most: int = _MAX_NUMBER) -> int:
        """A number in the address; the default if it is not one."""
        value = self.query.get(name, "")
        is_number = value.isascii() and value.isdecimal() and len(value) < 10
        return min(int(value), most) if is_number else default


class HtmlPage(NamedTuple):
    """A page to render."""

    template: str
    title: str
    values: Mapping[str, Any]
    status: int = 200


class GoTo(NamedTuple):
    """After a change: where to go on, and a sentence that is shown there."""

    path: str
    """Below the address of the place, such as `/node/01J…`."""
    message: str = ""
    undo: str = ""
    """The change that the message offers to undo."""


class Download(NamedTuple):
    """A file for the user."""

    name: str
    media_type: str
    data: bytes


Answer = HtmlPage | GoTo | Download
View = Callable[[PageRequest], Answer]


class PageRoute(NamedTuple):
    method: str
    path: str
    """Below the address of the place."""
    view: View


@contextmanager
def open_place(environment: Environment, *, writing: bool) -> Iterator[Memory]:
    """The memory of a folder, in the session that a command there would join."""
    joined = environment._replace(session=_session(environment))
    with open_memory(joined, writing=writing, author=AUTHOR) as memory:
        yield memory


def _session(environment: Environment) -> SessionId:
    home = environment.user_store.home
    project = layout.find_project(environment.folder, home)
    if project is None or not os.path.lexists(project.stage):
        return CLI_SESSION
    if not trust_check.verify(home, project).is_trusted:
        return CLI_SESSION
    return current_session.read(project).session or CLI_SESSION


def last_change(memory: Memory) -> str:
    """The id of the change that was just made here, for `Undo`; empty if there is none."""
    made = next(undo.changes(memory, memory.session), None)
    return made.id if made and made.author == AUTHOR else ""
