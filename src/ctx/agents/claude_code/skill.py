"""The skill: the pages that tell Claude how to use its memory, put where the client finds them.

Each page ends with a mark, `<!-- ctx-skill 0.1.0 1f2e3d4c5b6a7988 -->`, which holds a hash of what
stands above it. So a page of ours that nobody changed can be told from one that its user has
changed, whichever version wrote it. What somebody else has written is never lost: it is put
aside under another name before ours takes its place.
"""

import os
import re
from contextlib import suppress
from hashlib import blake2s
from importlib import resources
from typing import Literal

from ctx import __version__, disk

PAGES = ("SKILL.md", "commands.md", "examples.md", "query-language.md")
"""The page that the client loads, and those to which it leads."""
EDITED = ".edited"
"""How the name of a page ends that was put aside."""

_MARK = re.compile(rb"\n<!-- ctx-skill \S+ ([0-9a-f]{16}) -->\n?\Z")
_LARGEST_PAGE = 256 * 1024


def files() -> dict[str, str]:
    """The name and the text of every page, with its mark."""
    texts = resources.files("ctx.agents.claude_code").joinpath("texts", "skill")
    return {name: marked(texts.joinpath(name).read_text("utf-8")) for name in PAGES}


def marked(text: str) -> str:
    """A page with the mark that tells whether somebody has changed it."""
    return f"{text}\n<!-- ctx-skill {__version__} {_hash(text.encode())} -->\n"


def write(folder: str) -> Literal["written", "updated", "current"]:
    """Put the pages into a folder, `…/skills/ctx`. Those in `edited` are put aside before."""
    wanted = {name: text.encode() for name, text in files().items()}
    present = _present(folder)
    older = [name for name in _older_pages(folder) if name not in wanted]
    if present == wanted and not older:
        return "current"
    with disk.explained("writing the skill"):
        disk.make_folder(folder)
        for name, text in wanted.items():
            path = os.path.join(folder, name)
            if present.get(name) == text:
                continue
            if name in present and not _is_unchanged(present[name]):
                os.rename(path, _free_name(path))
            # Where the user keeps our page elsewhere and has put a link here, the link stays.
            disk.replace(os.path.realpath(path), text)
        for name in older:
            disk.discard(os.path.join(folder, name))
        disk.sync_folder(folder)
    return "updated" if present else "written"


def remove(folder: str, *, force: bool) -> Literal["removed", "kept", "missing"]:
    """Take our pages out of a folder; one that its user has changed only by `force`.

    What else lies there stays. The folder goes with the last of its files.
    """
    present = _present(folder)
    going = [name for name in present if force or _is_unchanged(present[name])]
    going += [name for name in _older_pages(folder) if name not in present]
    if not present and not going:
        return "missing"
    with disk.explained("removing the skill"):
        for name in going:
            disk.discard(os.path.join(folder, name))
        for emptied in (folder, os.path.dirname(folder)):
            with suppress(OSError):
                os.rmdir(emptied)
    return "removed" if set(present) <= set(going) else "kept"


def edited(folder: str) -> tuple[str, ...]:
    """The paths of those pages that somebody has changed, or that were never ours."""
    present = _present(folder)
    changed = [name for name in present if not _is_unchanged(present[name])]
    return tuple(os.path.join(folder, name) for name in changed)


def is_current(folder: str) -> bool:
    return _present(folder) == {name: text.encode() for name, text in files().items()}


def _hash(text: bytes) -> str:
    return blake2s(text, digest_size=8).hexdigest()


def _is_unchanged(text: bytes) -> bool:
    """Whether this is a page as some version of ours has written it."""
    mark = _MARK.search(text)
    return mark is not None and _hash(text[: mark.start()]) == mark[1].decode()


def _present(folder: str) -> dict[str, bytes]:
    """What stands under the names of our pages."""
    paths = {name: os.path.join(folder, name) for name in PAGES}
    return {name: _read(path) for name, path in paths.items() if os.path.lexists(path)}


def _older_pages(folder: str) -> list[str]:
    """Unchanged pages of ours, also those that only another version knows."""
    names = [name for name in disk.names(folder) if name.endswith(".md")]
    return [name for name in names if _is_unchanged(_read(os.path.join(folder, name)))]


def _read(path: str) -> bytes:
    """A page. What is none, such as a folder, a pipe or a link to nowhere, reads as empty."""
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
