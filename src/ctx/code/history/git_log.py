"""Commits as git tells them: when, with what message, and which files they changed.

Everything is asked of git's plumbing, whose answers no setting of the user changes and which
runs no program of theirs: no signature check, no textconv, no external diff. Any bytes may come
back. A message is made fit to be kept: secrets, control characters and the lines that only name
people are taken out, and its length is bounded.
"""

import os
import re
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from ctx import checkouts, git, redaction
from ctx.errors import GitFailure

LONGEST_MESSAGE = 1500
"""Characters that are kept of a message."""

# A secret is found in its surroundings, so more of a message is looked at than is kept.
_LOOKED_AT = 4 * LONGEST_MESSAGE
_AT_A_TIME = 2500
_PROCESSES = 4
_BLOCK = 1 << 20
_LONGEST_FIELD = 1 << 16
_LATEST = 1 << 40
_SHORTEST_HASH = 40


Change = tuple[bytes, bytes | None]
"""The path of a file that a commit added, changed, removed or renamed, and the path before that
where it was renamed; as bytes, from the folder. There are too many of them for more than tuples."""


class LoggedCommit(NamedTuple):
    hash: str
    time: int
    """Seconds since 1970, when it was committed."""
    message: str
    changes: list[Change] | None
    """Empty for a merge; None where git cannot say, as at the edge of a shallow clone."""


def read(
    checkout: checkouts.Checkout, folder: str, hashes: Sequence[str], edge: frozenset[str]
) -> Generator[list[LoggedCommit]]:
    """These commits in this order, some at a time, with what they changed under a folder.

    Several git processes work ahead of us. Where one fails, because objects are missing that the
    comparison of files or of trees needs, the rest is read in a way that needs less.
    """
    parts = deque(hashes[at : at + _AT_A_TIME] for at in range(0, len(hashes), _AT_A_TIME))
    at_once = min(os.cpu_count() or 1, _PROCESSES)
    ways = _ways(folder)
    way = 0
    running: deque[tuple[int, Sequence[str], git.Reading]] = deque()

    def start(part: Sequence[str]) -> tuple[int, Sequence[str], git.Reading]:
        asked = "".join(f"{hash}\n" for hash in part).encode()
        return way, part, git.Reading(checkout, *ways[way], *_TELLING, stdin=asked)

    try:
        while parts or running:
            while parts and len(running) < at_once:
                running.append(start(parts.popleft()))
            used, part, reading = running[0]
            try:
                told = list(_commits(_fields(reading.printed()), edge))
                if used == len(ways) - 1:
                    told = [commit._replace(changes=None) for commit in told]
            except GitFailure:
                way = max(way, used + 1)
                if way == len(ways):
                    raise
                reading.close()
                running[0] = start(part)
                continue
            running.popleft()
            reading.close()
            yield _fit(told)
    finally:
        for _, _, reading in running:
            reading.close()


# A field holds anything but NUL, and a hash looks like no status of a file.
_TELLING = ("--stdin", "-z", "--encoding=UTF-8", "--format=%H%x00%ct%x00%B")


def _ways(folder: str) -> list[tuple[str, ...]]:
    """From the one that tells most to the one that needs least."""
    compared = [
        *("diff-tree", "--always", "--root", "-r", "--name-status", "--no-ext-diff"),
        *("--no-textconv", "--ignore-submodules=all"),
    ]
    if folder:
        compared.append(f"--relative={folder}/")
    return [
        # Renamed and edited: needs the files. The bound keeps a mass of them from being compared
        # each with each.
        (*compared, "-M", "-l200"),
        # Renamed and left alone: needs the trees only, as a clone without blobs has them.
        (*compared, "-M100%"),
        ("log", "--no-walk=unsorted", "--no-show-signature", "-s"),
    ]


def _fields(printed: BinaryIO) -> Iterator[bytes]:
    begun = b""
    while block := printed.read(_BLOCK):
        end, *others = block.split(b"\0")
        # Of a message without end only the beginning counts.
        begun = (begun + end)[:_LONGEST_FIELD] if len(begun) < _LONGEST_FIELD else begun
        for other in others:
            yield begun
            begun = other


def _commits(fields: Iterator[bytes], edge: frozenset[str]) -> Iterator[LoggedCommit]:
    field = next(fields, None)
    while field is not None:
        hash = field.decode("ascii", "replace")
        time, message = next(fields, b""), next(fields, b"")
        changes: list[Change] = []
        while (field := next(fields, None)) is not None and len(field) < _SHORTEST_HASH:
            path = next(fields, b"")
            match field.lstrip(b"\n")[:1]:
                case b"R":
                    changes.append((next(fields, b""), path))
                case b"C":
                    # The second file that was made of a removed one; the first is its heir.
                    changes.append((next(fields, b""), None))
                case _:
                    changes.append((path, None))
        said = message[:_LOOKED_AT].decode("utf-8", "replace")
        known = None if hash in edge else changes
        yield LoggedCommit(hash, min(int(time or 0), _LATEST), said, known)


def _fit(commits: list[LoggedCommit]) -> list[LoggedCommit]:
    """The same commits with messages that can be kept."""
    messages = [_CONTROL.sub("", commit.message) for commit in commits]
    # Nearly no message has a secret, and one look at all of them costs a tenth of a look at each.
    # No rule reaches across a NUL, and no message has one.
    if redaction.redact("\n\0\n".join(messages)).findings:
        messages = [redaction.redact(message).text for message in messages]
    kept = (_NAMING_PEOPLE.sub("", message[:LONGEST_MESSAGE]).strip() for message in messages)
    return [commit._replace(message=message) for commit, message in zip(commits, kept, strict=True)]


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NAMING_PEOPLE = re.compile(r"\n[A-Za-z]{1,20}(?:-[A-Za-z]{1,20}){0,3}-by: .*")
