"""What a view gets, and what it may return."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, tzinfo
from typing import Any, NamedTuple

from ctx import layout
from ctx.ids import CLI_SESSION, SessionId
from ctx.operations import undo
from ctx.operations.agent_proposals import PROGRAM
from ctx.page.access import BrowserSession
from ctx.page.doctor_runs import DoctorRuns
from ctx.page.places import PagePlace
from ctx.project import current_session
from ctx.workspace import Environment, Memory, open_memory

AUTHOR = "page"
"""The author of what the user changes here."""
_MAX_NUMBER = 1_000_000
_LONGEST_ADDRESS = 8_000


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
    root: str = ""
    """The relative address of the session, such as `../../`."""
    here: str = ""
    """The address below that of the place, to come back to; empty for a form that is sent."""
    if_match: str = ""
    """The ETag that a program expects."""
    doctor: DoctorRuns | None = None
    """None if the server cannot run it."""
    stamp: str = ""
    """What the memory was before it was read, for the updates of the page."""
    zone: tzinfo = UTC
    """That of the browser when it asked: a script may tell another while the page is made."""

    @property
    def base(self) -> str:
        """The relative address of the place."""
        return f"{self.root}p/{self.place.key}"

    def reading(self) -> AbstractContextManager[Memory]:
        return open_place(self.environment, writing=False)

    def writing(self, session: SessionId | None = None) -> AbstractContextManager[Memory]:
        """The memory to change, in a session, or in the one that a command here would join."""
        author = PROGRAM if self.browser is None else AUTHOR
        return open_place(self.environment, writing=True, author=author, session=session)

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


def path_below(text: str, default: str = "/now") -> str:
    """An address below that of the place, from a form; the default if it is anything else.

    Another site could have made the form, so it must not lead anywhere else.
    """
    path = text.partition("?")[0]
    is_plain = text.isprintable() and "\\" not in text and "#" not in text
    is_below = path.startswith("/") and "//" not in path and ".." not in path.split("/")
    return text if is_plain and is_below and len(text) < _LONGEST_ADDRESS else default


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
    button: str = "Undo"
    """`Redo` if that change is itself an undo."""


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
def open_place(
    environment: Environment,
    *,
    writing: bool,
    author: str = AUTHOR,
    session: SessionId | None = None,
) -> Iterator[Memory]:
    """The memory of a folder, in the session that a command there would join."""
    home = environment.user_store.home
    if session is None and (project := layout.find_project(environment.folder, home)):
        session = current_session.joined(home, project).session
    joined = environment._replace(session=session or CLI_SESSION)
    with open_memory(joined, writing=writing, author=author) as memory:
        yield memory


def last_change(memory: Memory) -> str:
    """The id of the change that was just made here, for `Undo`; empty if there is none."""
    made = next(undo.changes(memory, memory.session), None)
    return made.id if made and made.author == AUTHOR else ""
