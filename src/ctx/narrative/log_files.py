"""The log: one file for each commit and each note, written once. A day is read as one text."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ctx import clock
from ctx.errors import UsageError
from ctx.narrative import document_format, document_roles, log_text, narrative_scan
from ctx.narrative.markdown_blocks import nest_headings
from ctx.narrative.narrative_scan import GivenNarrative

_LONGEST_TITLE = 100
_DATE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", re.ASCII)
_SIGN = re.compile(r"([-+~#>*=!?]) +(?=\S)")
_NAME = re.compile(rf"({_DATE.pattern})(?:-([01]\d|2[0-3])([0-5]\d))?(?:-.*)?\.md", re.ASCII)


class Entry(NamedTuple):
    """The log entry of a commit."""

    title: str
    at_ms: int
    author: str
    session: str
    message: str
    """The message without its title; may be empty."""
    sections: Sequence[tuple[str, Sequence[str]]]
    """Headings with their lines. A heading without lines is left out."""


class _File(NamedTuple):
    path: str
    day: str
    time: str
    """`10:05`, or nothing for a file that a person keeps for the whole day."""


def render(entry: Entry) -> str:
    first, _, rest = entry.message.strip().partition("\n")
    # A message often includes its title.
    message = rest if first.strip() == entry.title.strip() else entry.message
    parts = [log_text.paragraphs(message)]
    for heading, lines in entry.sections:
        if lines:
            bullets = "\n".join(f"- {_bullet(line)}" for line in lines)
            parts.append(f"## {log_text.heading(heading)}\n\n{bullets}")
    return document_format.render(
        log_text.heading(entry.title),
        "\n\n".join(part for part in parts if part),
        created=clock.iso(entry.at_ms),
        more=_origin(entry.author, entry.session),
    )


def note(text: str, at_ms: int, author: str, session: str, tags: Iterable[str] = ()) -> str:
    """A note as a document: its first line is the title, unless it is too long."""
    first, _, rest = document_format.tidy(text).partition("\n")
    title = " ".join(first.lstrip("#").split())
    if len(title) > _LONGEST_TITLE:
        title, rest = f"{title[: _LONGEST_TITLE - 1].rstrip()}…", text
    return document_format.render(
        title, rest, created=clock.iso(at_ms), tags=tags, more=_origin(author, session)
    )


def days(folder: str) -> list[str]:
    """The days that have log entries, in order."""
    return sorted({file.day for file in _files(folder)})


def day(narrative: GivenNarrative, date: str) -> str:
    """All given entries of a day as one text, in order of time; empty without entries."""
    if not _DATE.fullmatch(date):
        raise UsageError(f"{date[:80]!r} is not a day.", hint="Write it like 2026-01-20.")
    parts = list(entries(narrative, date))
    return "\n\n".join([f"# {date}", *parts]) + "\n" if parts else ""


def entries(narrative: GivenNarrative, date: str) -> Iterator[str]:
    """The given entries of a day, in order of time. Each is read when it is needed."""
    folder = narrative.folder
    for file in sorted(_files(folder), key=lambda file: (file.time, file.path)):
        data = narrative_scan.read(folder, file.path) if file.day == date else None
        if data is not None and file.path in narrative.given({file.path: data}):
            yield _entry_text(file, data.decode("utf-8-sig", "replace"))


def paths(folder: str) -> list[str]:
    """The log files of all streams, in order of paths."""
    files = narrative_scan.files(folder, _may_hold_logs)
    every = [file.path for file, why_not in files if why_not is None]
    return [path for path in every if document_roles.place(path).role == "log"]


def _bullet(text: str) -> str:
    """A line of the log with its sign: `+` for what is new, `-` for what is gone."""
    sign = _SIGN.match(text)
    return f"`{sign[1]}` {log_text.line(text[sign.end() :])}" if sign else log_text.line(text)


def _files(folder: str) -> list[_File]:
    names = [(path, _NAME.fullmatch(os.path.basename(path))) for path in paths(folder)]
    return [
        _File(path, name[1], f"{name[2]}:{name[3]}" if name[2] else "")
        for path, name in names
        if name
    ]


def _may_hold_logs(path: str) -> bool:
    parts = path.split("/")
    return parts[0] == "log" or (parts[0] == "feature" and parts[2:3] in ([], ["log"]))


def _entry_text(file: _File, text: str) -> str:
    document = document_format.parse(text)
    heading = f"## {file.time} {document.title or 'Untitled'}".replace("  ", " ")
    stream = document_roles.place(file.path).stream
    author = document_format.entry(text, "author")
    session = document_format.entry(text, "session")
    origin = [log_text.line(author), f"session {log_text.line(session)}" if session else ""]
    origin.append(stream if stream != document_roles.MAIN_STREAM else "")
    line = ", ".join(part for part in origin if part)
    parts = [heading, f"*{line}*" if line else "", nest_headings(document.body, 1)]
    return "\n\n".join(part for part in parts if part)


def _origin(author: str, session: str) -> list[tuple[str, str]]:
    # An author's name comes from git's configuration, which may contain anything.
    named = (("author", author), ("session", session))
    return [(key, value.encode("utf-8", "replace").decode()) for key, value in named if value]
