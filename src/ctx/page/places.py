"""The folders whose memory the page can show: those that were named, and those of sessions.

An address contains the key of its folder, such as `p/shop-1f2e3d4c/now` below the session: a link
keeps its meaning in another tab, and only folders that are known here can be opened.
"""

import os
import re
from hashlib import blake2b
from typing import NamedTuple

from ctx.capture import session_table
from ctx.errors import CtxError, UsageError
from ctx.workspace import Environment, open_memory

_LONGEST_NAME = 40


class PagePlace(NamedTuple):
    key: str
    name: str
    folder: str


def place(folder: str) -> PagePlace:
    name = os.path.basename(folder.rstrip(os.sep)) or folder
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:_LONGEST_NAME]
    digest = blake2b(os.fsencode(folder), digest_size=4).hexdigest()
    return PagePlace(f"{plain or 'folder'}-{digest}", name, folder)


class Places:
    """The folders that one server knows."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._named: dict[str, PagePlace] = {}

    def add(self, folder: str) -> PagePlace:
        known = place(folder)
        self._named[known.key] = known
        return known

    def every(self) -> list[PagePlace]:
        """All of them by name; those of sessions only if the folder still exists."""
        listed = {each.key: each for each in map(place, self._folders_of_sessions())}
        listed = {key: each for key, each in listed.items() if os.path.isdir(each.folder)}
        return sorted({**listed, **self._named}.values(), key=lambda each: (each.name, each.folder))

    def find(self, key: str) -> PagePlace:
        """The folder with this key."""
        if key in self._named:
            return self._named[key]
        for each in map(place, self._folders_of_sessions()):
            if each.key == key and os.path.isdir(each.folder):
                self._named[key] = each
                return each
        raise UsageError(
            f"There is no folder {key[:60]!r} here.", hint="Run `ctx ui` in that folder."
        )

    def _folders_of_sessions(self) -> list[str]:
        environment = self._environment._replace(folder=self._environment.user_store.home)
        try:
            with open_memory(environment, writing=False) as memory:
                return session_table.folders(memory.local)
        except CtxError:
            # What is wrong with the store is shown by the view itself.
            return []
