"""Globs of folders in the member lists of workspaces: `packages/*`, `apps/**`, `!**/fixtures`."""

import fnmatch
import re
from collections.abc import Sequence
from functools import lru_cache

_LONGEST = 300
_MOST = 200


def matches(folder: str, globs: Sequence[str]) -> bool:
    """Whether a folder is listed; a glob with `!` excludes what others include."""
    listed = False
    for glob in globs[:_MOST]:
        wanted = not glob.startswith("!")
        if wanted != listed and _fits(folder, glob.removeprefix("!")):
            listed = wanted
    return listed


def _fits(folder: str, glob: str) -> bool:
    if len(glob) > _LONGEST:
        return False
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    names = [] if folder == "." else folder.split("/")
    # How many names the parts so far can match: all possibilities at once, none tried twice.
    reached = {0}
    for part in parts:
        if part == "**":
            reached = set(range(min(reached), len(names) + 1))
        else:
            fits = _part(part)
            reached = {n + 1 for n in reached if n < len(names) and fits.match(names[n])}
        if not reached:
            return False
    return len(names) in reached


@lru_cache(maxsize=256)
def _part(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part))
