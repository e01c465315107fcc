"""Read commits from git: time, message, and changed files.

Only git's plumbing is used: no user setting changes its output, and it runs no program of the user:
no signature check, no textconv, no external diff. The output may contain any bytes. Secrets,
control characters and lines that only name people are removed from a message, and its length is
limited."""

import os
import re
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from ctx import checkouts, git, redaction
from ctx.errors import GitFailure

LONGEST_MESSAGE = 1500
"""The maximum number of characters of a message."""

# Secrets are recognised by their context, so more of a message is searched than stored.
_LONGEST_READ_MESSAGE = 4 * LONGEST_MESSAGE
_AT_A_TIME = 2500
_PROCESSES = 4
_BLOCK = 1 << 20
_LONGEST_FIELD = 1 << 16
_LATEST = 1 << 40
_SHORTEST_HASH = 40


Change = tuple[bytes, bytes | None]
"""The path of a file that a commit added, changed, removed or renamed, and its old path if it was
renamed; as bytes, relative to the folder. There are too many for anything larger than tuples."""


class LoggedCommit(NamedTuple):
    hash: str
    time: int
    """The time of the commit, in seconds since 1970."""
    message: str
    changes: list[Change] | None
    """Empty for a merge; None if git cannot tell, as at the boundary of a shallow clone."""


def read(
    checkout: checkouts.Checkout, folder: str, hashes: Sequence[str], edge: frozenset[str]
) -> Generator[list[LoggedCommit]]:
    """These commits in order, in batches, with their changes under a folder.

    Several git processes work ahead of us. If one fails, because objects are missing that the
    comparison of files or trees needs, the rest is read in a way that needs less.
    """
    parts = deque(hashes[at : at + _AT_A_TIME] for at in range(0, len(hashes), _AT_A_TIME))
    at_once = min(os.cpu_count() or 1, _PROCESSES)
    ways = _log_options(folder)
    way = 0
    running: deque[tuple[int, Sequence[str], git.BackgroundProcess]] = deque()

    def start(part: Sequence[str]) -> tuple[int, Sequence[str], git.BackgroundProcess]:
        stdin = "".join(f"{hash}\n" for hash in part).encode()
        return (
            way,
            part,
            git.BackgroundProcess(checkout, *ways[way], *_MESSAGE_OPTIONS, stdin=stdin),
        )

    try:
        while parts or running:
            while parts and len(running) < at_once:
                running.append(start(parts.popleft()))
            used, part, reading = running[0]
            try:
                commits = list(_commits(_fields(reading.printed()), edge))
                if used == len(ways) - 1:
                    commits = [commit._replace(changes=None) for commit in commits]
            except GitFailure:
                way = max(way, used + 1)
                if way == len(ways):
                    raise
                reading.close()
                running[0] = start(part)
                continue
            running.popleft()
            reading.close()
            yield _fit(commits)
    finally:
        for _, _, reading in running:
            reading.close()


# A field contains anything but NUL, and a hash does not look like a file status.
_MESSAGE_OPTIONS = ("--stdin", "-z", "--encoding=UTF-8", "--format=%H%x00%ct%x00%B")


def _log_options(folder: str) -> list[tuple[str, ...]]:
    """The options, from the most detailed to those that need the fewest objects."""
    compared = [
        *("diff-tree", "--always", "--root", "-r", "--name-status", "--no-ext-diff"),
        *("--no-textconv", "--ignore-submodules=all"),
    ]
    if folder:
        compared.append(f"--relative={folder}/")
    return [
        # Detect renames with edits: needs the blobs. The limit prevents comparing a mass of files
        # pairwise.
        (*compared, "-M", "-l200"),
        # Detect exact renames: needs only the trees, which a blobless clone has.
        (*compared, "-M100%"),
        ("log", "--no-walk=unsorted", "--no-show-signature", "-s"),
    ]


def _fields(printed: BinaryIO) -> Iterator[bytes]:
    begun = b""
    while block := printed.read(_BLOCK):
        end, *others = block.split(b"\0")
        # Only the beginning of a very long message counts.
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
                    # A second file that was made from a removed one. The first one continues its
                    # history.
                    changes.append((next(fields, b""), None))
                case _:
                    changes.append((path, None))
        text = message[:_LONGEST_READ_MESSAGE].decode("utf-8", "replace")
        known = None if hash in edge else changes
        yield LoggedCommit(hash, min(int(time or 0), _LATEST), text, known)


def _fit(commits: list[LoggedCommit]) -> list[LoggedCommit]:
    """The same commits with messages that can be stored."""
    messages = [_CONTROL.sub("", commit.message) for commit in commits]
    # Hardly any message contains a secret, and one search over all of them takes a tenth of the
    # time. No rule matches across a NUL, and no message contains one.
    if redaction.redact("\n\0\n".join(messages)).findings:
        messages = [redaction.redact(message).text for message in messages]
    kept = (_NAMING_PEOPLE.sub("", message[:LONGEST_MESSAGE]).strip() for message in messages)
    return [commit._replace(message=message) for commit, message in zip(commits, kept, strict=True)]


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NAMING_PEOPLE = re.compile(r"\n[A-Za-z]{1,20}(?:-[A-Za-z]{1,20}){0,3}-by: .*")
