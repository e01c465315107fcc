"""A whole file of ours in the folder of a host."""

from collections.abc import Callable
from typing import Literal

from ctx.agents.host_setup.host_setups import HostFile
from ctx.errors import SettingsUnreadable


def owned_file(
    what: Literal["hooks", "plugin"], path: str, content: str, is_ours: Callable[[str], bool]
) -> HostFile:
    """A file that ctx writes as a whole. `is_ours`: whether a text is such a file, of any version.

    A file of somebody else with this name is left alone.
    """
    assert is_ours(content), "the file could not be recognized"

    def add(text: str | None) -> str:
        if text is not None and not is_ours(text):
            raise SettingsUnreadable("this file was not written by ctx.")
        return content

    def remove(text: str | None) -> str | None:
        return None if text is None or is_ours(text) else text

    return HostFile(what, path, add, remove, content)
