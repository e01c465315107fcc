"""The attributes of files in the `.gitattributes` at the root of a repository.

Forges collapse files that are marked `linguist-generated` or `linguist-vendored`, and the index
does not parse them either. The marks can also be negated, and then they override every guess.
"""

import os
import re
from typing import NamedTuple

from ctx import disk
from ctx.code import patterns

NAME = ".gitattributes"

_LINE = re.compile(r'[ \t]*(?:"((?:[^"\\]|\\.)+)"|([^\s"#]\S*))[ \t]+(.*)')
_MARKS = {"linguist-generated": "generated", "linguist-vendored": "vendored"}


class Mark(NamedTuple):
    reason: str
    """`generated` or `vendored`."""
    holds: bool | None
    """None removes what an earlier line set."""
    matches: re.Pattern[str]


class Attributes(NamedTuple):
    marks: tuple[Mark, ...] = ()
    """The last line first, because it takes precedence."""

    def says(self, path: str, reason: str) -> bool | None:
        """Whether a file is generated or vendored; None if no attribute is set."""
        for mark in self.marks:
            if mark.reason == reason and mark.matches.fullmatch(path):
                return mark.holds
        return None


def read_attributes(root: str) -> Attributes:
    """Read the attributes of a project."""
    try:
        return read(disk.read_plain(os.path.join(root, NAME), patterns.LARGEST)[: patterns.LARGEST])
    except OSError:
        return Attributes()


def read(content: bytes) -> Attributes:
    text = content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    marks = [mark for line in text.splitlines() for mark in _marks(line)]
    return Attributes(tuple(reversed(marks)))


def _marks(line: str) -> list[Mark]:
    match = _LINE.fullmatch(line) if "linguist-" in line else None
    if match is None:
        return []
    pattern = re.sub(r"\\(.)", r"\1", match[1]) if match[1] else match[2]
    # Unlike in `.gitignore`, a pattern for a folder does not apply to its files, and `!` is not
    # allowed.
    meant = None if pattern[0] == "!" or pattern[-1] == "/" else patterns.expression_for(pattern)
    if meant is None:
        return []
    matches = re.compile(meant, re.DOTALL)
    marks = []
    for word in match[3].split():
        name, _, value = word.lstrip("-!").partition("=")
        if name in _MARKS:
            holds = None if word[0] == "!" else word[0] != "-" and value.lower() != "false"
            marks.append(Mark(_MARKS[name], holds, matches))
    return marks
