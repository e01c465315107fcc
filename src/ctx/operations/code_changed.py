"""Which items of the code differ from a commit: new, modified, deleted.

Both sides are read here and now, so that the answer needs no index.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from ctx import clock, disk, git
from ctx.checkouts import Checkout
from ctx.code import (
    encoding,
    file_listing,
    index_check,
    item_changes,
    language_detection,
    source_parser,
)
from ctx.code.grammars import GRAMMARS
from ctx.code.item_changes import ItemChange
from ctx.code.source_model import ParsedFile
from ctx.codebase.indexing import Codebase
from ctx.errors import GitFailure, UsageError

_LARGE = 400_000
"""Larger files are not compared: parsing might take too long."""
_RENAME_SIMILARITY = 0.5
"""The share of lines that makes a new file one that was renamed."""
_MOST_COMPARED = 10_000


class ChangedFile(NamedTuple):
    path: str
    was: str
    """Its path in the commit; empty for a new file."""
    change: str
    """`added`, `modified`, `deleted` or `renamed`."""
    language: str | None
    skipped: str | None
    """Why its items were not compared."""
    items: tuple[ItemChange, ...]


class CodeChanges(NamedTuple):
    """The answer of `ctx code changed`."""

    since: str
    """As it was asked."""
    commit: str | None
    """Null where there is no commit yet: then all is new."""
    files: tuple[ChangedFile, ...]
    new: int
    modified: int
    deleted: int


class _Pair(NamedTuple):
    """A file as it was, and as it is."""

    was: str
    blob: str
    path: str
    """Empty if it was deleted."""


def code_changes(codebase: Codebase, since: str, tick: clock.Tick) -> CodeChanges:
    place = codebase.place
    checkout = place.checkout
    if checkout is None:
        raise GitFailure(
            f"{place.root} is not in a git repository, so there is nothing to compare with.",
            hint="`git init` makes one.",
        )
    commit = git.commit_named(checkout, since)
    if commit is None and not (since == "HEAD" and git.rev_parse_head(checkout) is None):
        raise UsageError(
            f"There is no commit {since[:80]!r} here.",
            hint="Name a branch, a tag or a commit, such as HEAD~3.",
        )
    limits = index_check.limits(place.root, codebase.max_bytes)
    blobs = git.Blobs(checkout)
    files = []
    try:
        pairs = _pair_renames(list(_pairs(codebase, checkout, commit)), place.root, blobs)
        for number, pair in enumerate(pairs, 1):
            tick(number, len(pairs))
            if told := _compare_file(place.root, pair, blobs, limits):
                files.append(told)
    finally:
        blobs.close()
    counts = [
        sum(each.change == word for file in files for each in file.items)
        for word in ("new", "modified", "deleted")
    ]
    return CodeChanges(since, commit, tuple(files), *counts)


def _pairs(codebase: Codebase, checkout: Checkout, commit: str | None) -> Iterator[_Pair]:
    """The files that may differ, in the order of their paths."""
    root = codebase.place.root
    inside = os.path.relpath(root, checkout.top)
    cut = 0 if inside == "." else len(inside) + 1
    here = {
        each[0] for each in file_listing.list_files(root, checkout, codebase.ignore_globs).files
    }
    tracked = {path[cut:] for path in git.tracked_files(checkout, root)}
    new = here - tracked
    found: dict[str, _Pair] = {}
    if commit is None:
        new = here
    else:
        for status, path, blob in git.differences(checkout, commit, root):
            path = path[cut:]
            was = "" if status == "A" else path
            is_here = path in here
            if is_here or (was and was not in here):
                found[path] = _Pair(was, "" if status == "A" else blob, path if is_here else "")
    for path in new:
        # git may have been told to forget a file that still exists.
        before = found.get(path)
        found[path] = before._replace(path=path) if before else _Pair("", "", path)
    yield from (found[path] for path in sorted(found))


def _pair_renames(pairs: list[_Pair], root: str, blobs: git.Blobs) -> list[_Pair]:
    """The same, where a file that is gone and a new one that is mostly the same are one.

    git would tell, but on the way it runs what the repository's settings name as filters.
    """
    gone = [each for each in pairs if each.was and not each.path]
    added = [each for each in pairs if each.path and not each.was]
    if not gone or not added or len(gone) * len(added) > _MOST_COMPARED:
        return pairs
    old = {each: _lines(_content(root, each, blobs)) for each in gone}
    new = {each: _lines(_content(root, each, blobs)) for each in added}
    alike = [
        (len(old[one] & new[other]) / max(len(old[one]), len(new[other]), 1), other, one)
        for one in gone
        for other in added
        if os.path.splitext(one.was)[1] == os.path.splitext(other.path)[1]
    ]
    taken: set[_Pair] = set()
    joined: dict[_Pair, _Pair] = {}
    for share, other, one in sorted(alike, reverse=True):
        if share >= _RENAME_SIMILARITY and one not in taken and other not in taken:
            taken |= {one, other}
            joined[other] = _Pair(one.was, one.blob, other.path)
    return [joined.get(each, each) for each in pairs if each not in taken or each in joined]


def _content(root: str, pair: _Pair, blobs: git.Blobs) -> bytes:
    try:
        if pair.path:
            return disk.read_plain(os.path.join(root, pair.path), _LARGE)
        return blobs.read(pair.blob)
    except (OSError, GitFailure):
        return b""


def _lines(content: bytes) -> set[bytes]:
    return {line.strip() for line in content.splitlines()} - {b""}


def _compare_file(
    root: str, pair: _Pair, blobs: git.Blobs, limits: language_detection.FileLimits
) -> ChangedFile | None:
    """How a file differs; None where nothing does that is code."""
    has_old = bool(pair.blob.strip("0"))
    try:
        old = blobs.read(pair.blob) if has_old else None
        new = (
            disk.read_plain(os.path.join(root, pair.path), limits.max_bytes + 1)
            if pair.path
            else None
        )
    except FileNotFoundError:
        new = None
    except OSError as error:
        return _changed_file(pair, None, f"cannot be read: {error.strerror}", ())
    except GitFailure as failure:
        return _changed_file(pair, None, failure.message, ())
    # git may keep other line ends than the working tree has.
    old, new = (each and each.replace(b"\r\n", b"\n") for each in (old, new))
    path = pair.path or pair.was
    name = language_detection.language_of(path, (new or old or b"")[: language_detection.HEAD])
    if name not in GRAMMARS:
        return None
    if old == new and pair.was == pair.path:
        return None
    unfit = [
        reason for each in (old, new) if each is not None for reason in [_unfit(path, each, limits)]
    ]
    if any(unfit):
        return _changed_file(pair, name, next(filter(None, unfit)), ())
    items = item_changes.compare_files(
        _parse_file(pair.was, old, name), _parse_file(path, new, name)
    )
    if not items and pair.was == pair.path:
        return None
    return _changed_file(pair, name, None, tuple(items))


def _unfit(path: str, content: bytes, limits: language_detection.FileLimits) -> str | None:
    if len(content) > _LARGE:
        return f"larger than {_LARGE:,} bytes"
    return language_detection.unfit(path, content, limits)


def _parse_file(path: str, content: bytes | None, name: str) -> ParsedFile | None:
    if content is None:
        return None
    if not content.isascii():
        content = encoding.decode(content).text.encode()
    return source_parser.parse_items(path, content, name)


def _changed_file(
    pair: _Pair, name: str | None, skipped: str | None, items: tuple[ItemChange, ...]
) -> ChangedFile:
    if not pair.was:
        change = "added"
    elif not pair.path:
        change = "deleted"
    else:
        change = "modified" if pair.was == pair.path else "renamed"
    return ChangedFile(pair.path or pair.was, pair.was, change, name, skipped, items)
