"""What a repository says about its files in the `.gitattributes` at its root.

Forges fold away what is marked `linguist-generated` or `linguist-vendored`; nobody parses it for
an index either. The marks also say the opposite, and then they outweigh every guess.
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
    """None takes back what a line before has said."""
    matches: re.Pattern[str]


class Attributes(NamedTuple):
    marks: tuple[Mark, ...] = ()
    """The last line first: it is the one that counts."""

    def says(self, path: str, reason: str) -> bool | None:
        """Whether a file is generated, or vendored; None where nothing is said."""
        for mark in self.marks:
            if mark.reason == reason and mark.matches.fullmatch(path):
                return mark.holds
        return None


def read_attributes(root: str) -> Attributes:
    """What a project says about its files."""
    try:
        return read(disk.read_plain(os.path.join(root, NAME), patterns.LARGEST)[: patterns.LARGEST])
    except OSError:
        return Attributes()


def read(content: bytes) -> Attributes:
    text = content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    marks = [mark for line in text.splitlines() for mark in _marks(line)]
    return Attributes(tuple(reversed(marks)))


def _marks(line: str) -> list[Mark]:
    found = _LINE.fullmatch(line) if "linguist-" in line else None
    if found is None:
        return []
    pattern = re.sub(r"\\(.)", r"\1", found[1]) if found[1] else found[2]
    # Here a folder's pattern does not reach what is in it, and nothing can be taken back by `!`.
    meant = None if pattern[0] == "!" or pattern[-1] == "/" else patterns.expression_for(pattern)
    if meant is None:
        return []
    matches = re.compile(meant, re.DOTALL)
    marks = []
    for word in found[3].split():
        name, _, value = word.lstrip("-!").partition("=")
        if name in _MARKS:
            holds = None if word[0] == "!" else word[0] != "-" and value.lower() != "false"
            marks.append(Mark(_MARKS[name], holds, matches))
    return marks
