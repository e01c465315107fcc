"""The skill: pages that explain to Claude how to use its memory, in the folder where the client
finds them.

Each page ends with a mark, `<!-- ctx-skill 0.1.0 1f2e3d4c5b6a7988 -->`, with a hash of the text
above it. So ctx can distinguish its own unchanged pages, of any version, from pages that the user
has changed. Text of the user is never lost: it is renamed before our page takes its place.
"""

import os
import re
from contextlib import suppress
from hashlib import blake2s
from importlib import resources
from typing import Literal

from ctx import __version__, disk, interrupts
from ctx.agents.host_setup import edited_file
from ctx.errors import PathRefused
from ctx.sqlite.connection import path_text

PAGES = ("SKILL.md", "commands.md", "examples.md", "query-language.md")
"""The page that the client loads, and the pages that it links to."""
EDITED = ".edited"
"""The suffix of a page that was renamed."""

_MARK = re.compile(rb"\n<!-- ctx-skill \S+ ([0-9a-f]{16}) -->\n?\Z")
_LARGEST_PAGE = 256 * 1024


def files() -> dict[str, str]:
    """The name and the text of every page, with its mark."""
    texts = resources.files("ctx.agents.host_setup").joinpath("texts", "skill")
    return {name: add_mark(texts.joinpath(name).read_text("utf-8")) for name in PAGES}


def add_mark(text: str) -> str:
    """A page with a mark that shows whether it was changed."""
    return f"{text}\n<!-- ctx-skill {__version__} {_hash(text.encode())} -->\n"


def planned_state(folder: str) -> Literal["written", "updated", "current"]:
    """What writing the pages would do. Raises PathRefused if the folder cannot be created."""
    _require_folder(folder)
    present = _present(folder)
    if present == _page_contents() and not _gone_pages(folder):
        return "current"
    return "updated" if present else "written"


def write(
    folder: str, *, mode: int = disk.FILE_MODE, dry_run: bool = False
) -> Literal["written", "updated", "current"]:
    """Write the pages to a folder, `…/skills/ctx`. The user's
    `edited_pages` are renamed first."""
    state = planned_state(folder)
    if state == "current" or dry_run:
        return state
    present = _present(folder)
    interrupts.defer()
    with disk.explain_errors("writing the skill"):
        for name, text in _page_contents().items():
            path = os.path.join(folder, name)
            if present.get(name) == text:
                continue
            if name in present and not _is_unchanged(present[name]):
                os.rename(path, _free_name(path))
            # If the user replaced our page by a symbolic link, the link stays.
            edited_file.put(os.path.realpath(path), text, mode)
        for name in _gone_pages(folder):
            disk.discard(os.path.join(folder, name))
    return state


def remove(
    folder: str, *, force: bool, dry_run: bool = False
) -> Literal["removed", "kept", "missing"]:
    """Remove our pages from a folder; changed ones only with `force`.

    Other files stay. The folder is removed if it is empty.
    """
    present = _present(folder)
    going = [name for name in present if force or _is_unchanged(present[name])]
    going += [name for name in _older_pages(folder) if name not in present]
    if not present and not going:
        return "missing"
    state: Literal["removed", "kept"] = "removed" if set(present) <= set(going) else "kept"
    if dry_run:
        return state
    interrupts.defer()
    with disk.explain_errors("removing the skill"):
        for name in going:
            disk.discard(os.path.join(folder, name))
        for emptied in (folder, os.path.dirname(folder)):
            with suppress(OSError):
                os.rmdir(emptied)
    return state


def edited_pages(folder: str) -> tuple[str, ...]:
    """The paths of pages that the user has changed or written."""
    present = _present(folder)
    changed = [name for name in present if not _is_unchanged(present[name])]
    return tuple(os.path.join(folder, name) for name in changed)


def put_aside(folder: str) -> tuple[str, ...]:
    """The paths of pages that were renamed because the user had changed them."""
    began = tuple(f"{name}{EDITED}" for name in PAGES)
    return tuple(
        os.path.join(folder, name) for name in disk.names(folder) if name.startswith(began)
    )


def is_current(folder: str) -> bool:
    return _present(folder) == _page_contents()


def _page_contents() -> dict[str, bytes]:
    return {name: text.encode() for name, text in files().items()}


def _require_folder(folder: str) -> None:
    """Refuse a path that is not a folder, also among the folders above it."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise PathRefused(
            f"{path_text(folder)} is not a folder, so the skill cannot be written there.",
            hint="Move it away, or leave the skill out with --no-skill.",
        )


def _hash(text: bytes) -> str:
    return blake2s(text, digest_size=8).hexdigest()


def _is_unchanged(text: bytes) -> bool:
    """Whether a page is unchanged since some version of ctx wrote it."""
    mark = _MARK.search(text)
    return mark is not None and _hash(text[: mark.start()]) == mark[1].decode()


def _present(folder: str) -> dict[str, bytes]:
    """The content of the files with the names of our pages."""
    paths = {name: os.path.join(folder, name) for name in PAGES}
    return {name: _read(path) for name, path in paths.items() if os.path.lexists(path)}


def _older_pages(folder: str) -> list[str]:
    """Our unchanged pages, also those of other versions."""
    names = [name for name in disk.names(folder) if name.endswith(".md")]
    return [name for name in names if _is_unchanged(_read(os.path.join(folder, name)))]


def _gone_pages(folder: str) -> list[str]:
    return [name for name in _older_pages(folder) if name not in PAGES]


def _read(path: str) -> bytes:
    """The content of a page. Anything else, such as a folder, a pipe or a broken link, counts as
    empty."""
    try:
        return disk.read_plain(os.path.realpath(path), _LARGEST_PAGE)
    except OSError:
        return b""


def _free_name(path: str) -> str:
    name, number = f"{path}{EDITED}", 1
    while os.path.lexists(name):
        number += 1
        name = f"{path}{EDITED}-{number}"
    return name
