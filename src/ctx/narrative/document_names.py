"""The file names of narrative documents.

    tasks/task_0043-retry-with-jitter-k3x9.md
    decisions/0007-use-jitter-8m2q.md
    log/2026-01-20-1005-w4hz.md

People refer to a document by its number, which comes from one sequence for the whole project. The
last four characters are random, so two branches that use the same number never write the same path.
"""

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ctx import clock
from ctx.errors import PathRefused
from ctx.narrative import document_roles, narrative_scan

Kind = Literal["task", "decision"]

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_ENDING = 4
_LONGEST = 40
_MOST_BYTES = 120
_SHORTEST_AT_A_WORD = 20
_UNTITLED = "untitled"
_YEAR_9999_MS = 253_402_300_799_999

# A longer number is not one of ours, and neither is a date.
_TASK = re.compile(r"task_(\d{1,9})(?:-(.+))?\.md", re.IGNORECASE | re.ASCII)
_DECISION = re.compile(r"(?!\d{4}-\d\d-\d\d)(\d{1,9})(?:-(.+))?\.md", re.IGNORECASE | re.ASCII)
_DOCUMENT_NAME = re.compile(
    r"(?:(task|decision)_(\d{1,9})|(\d{4,9}))(?:-(.+))?", re.IGNORECASE | re.ASCII
)


def slug(title: str) -> str:
    """A title as part of a file name: the same on every file system, in any script."""
    lower = unicodedata.normalize("NFC", unicodedata.normalize("NFC", title).lower())
    kept = "".join(c if c.isalnum() or _is_mark(c) else " " for c in lower)
    # A combining mark without a letter would change the dash.
    words = (_without_marks(word) for word in kept.split())
    whole = "-".join(word for word in words if word)
    short = whole[:_LONGEST].encode("utf-8", "ignore")[:_MOST_BYTES].decode("utf-8", "ignore")
    if len(short) < len(whole) and whole[len(short)] != "-":
        at_a_word = short.rpartition("-")[0]
        short = at_a_word if len(at_a_word) >= _SHORTEST_AT_A_WORD else short
    return short.strip("-") or _UNTITLED


def task_path(number: int, title: str, within: str = "") -> str:
    """The path of a new task. `within` is the folder of a stream."""
    return _join(within, f"tasks/task_{number:04d}-{slug(title)}-{_random()}.md")


def decision_path(number: int, title: str, within: str = "") -> str:
    return _join(within, f"decisions/{number:04d}-{slug(title)}-{_random()}.md")


def log_path(at_ms: int, end: str = "", within: str = "") -> str:
    """The path of a new log entry. `end` replaces the random characters if the same entry may be
    written again."""
    written = clock.iso(min(max(at_ms, 0), _YEAR_9999_MS))
    minute = f"{written[:10]}-{written[11:13]}{written[14:16]}"
    return _join(within, f"log/{minute}-{end or _random()}.md")


def token(name: str) -> str:
    """The end of a file name, derived from another name, that looks random."""
    return _encode_base32(hashlib.blake2s(name.encode(), digest_size=_ENDING).digest())


def number_of(path: str) -> str | None:
    """`task_0043` for a task's file, `0007` for a decision's."""
    name = _numbered_name(path)
    if name is None:
        return None
    return f"task_{name.number:04d}" if name.kind == "task" else f"{name.number:04d}"


def next_number(folder: str, kind: Kind) -> int:
    return max((name.number for name in _names(folder) if name.kind == kind), default=0) + 1


def find(folder: str, text: str) -> list[str]:
    """The documents that a person may mean, in order.

    A path below `narrative/`, or a number with or without what follows it in the name: `task_43`,
    `task_0043-k3x9`, `decision_0007`, `0007`. There are several if two branches used the same
    number.
    """
    wanted = _comparable(text.strip()).removeprefix("./").removeprefix(".ctx/")
    wanted = wanted.removeprefix("narrative/")
    if path := _document_at(folder, wanted):
        return [path]
    match = _DOCUMENT_NAME.fullmatch(wanted.removesuffix(".md"))
    if match is None:
        return []
    kind = (match[1] or "decision").lower()
    number = int(match[2] or match[3])
    rest = match[4]
    return [
        name.path
        for name in _names(folder)
        if name.kind == kind and name.number == number and (not rest or _is_part(rest, name.rest))
    ]


class _Name(NamedTuple):
    path: str
    kind: str
    number: int
    rest: str


def _names(folder: str) -> Iterator[_Name]:
    for file in narrative_scan.documents(folder):
        if name := _numbered_name(file.path):
            yield name


def _numbered_name(path: str) -> _Name | None:
    role = document_roles.place(path).role
    pattern = _TASK if role == "task" else _DECISION if role == "decision" else None
    match = pattern.fullmatch(os.path.basename(path)) if pattern else None
    return _Name(path, role, int(match[1]), match[2] or "") if match else None


def _is_part(rest: str, whole: str) -> bool:
    """Whether a text is the whole rest of a file name after the number, its beginning, or its
    random end."""
    rest, whole = _comparable(rest).casefold(), _comparable(whole).casefold()
    return whole == rest or whole.startswith(f"{rest}-") or whole.endswith(f"-{rest}")


def _document_at(folder: str, path: str) -> str | None:
    for candidate in (path, f"{path}.md"):
        try:
            full = narrative_scan.located(folder, candidate)
        except PathRefused:
            continue
        if candidate.endswith(".md") and os.path.isfile(full) and not os.path.islink(full):
            return candidate
    return None


def _comparable(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc")


def _without_marks(word: str) -> str:
    while word and _is_mark(word[0]):
        word = word[1:]
    return word


def _join(within: str, path: str) -> str:
    return f"{within}/{path}" if within else path


def _random() -> str:
    return _encode_base32(os.urandom(_ENDING))


def _encode_base32(data: bytes) -> str:
    return "".join(_ALPHABET[byte & 31] for byte in data)
