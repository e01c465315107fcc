"""The log: one file for each commit and each note, written once. A day is read as one text.

Text of other people is escaped: it cannot produce a heading, a list, a code block, HTML or a
link target, so a reader of the document sees our structure and their words. Code between backticks
on one line stays code.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ctx import clock
from ctx.errors import UsageError
from ctx.narrative import document_format, document_roles, narrative_scan
from ctx.narrative.markdown_blocks import nest_headings
from ctx.narrative.narrative_scan import GivenNarrative

# Lone surrogates, and the byte order mark, which is not part of a text.
_NO_TEXT = re.compile("[\ud800-\udfff]")
_MARK = "\ufeff"
_SPECIAL = re.compile(r"\\[!-/:-@\[-`{-~]|`+|<(?=[A-Za-z/!?])")
_BACKTICKS = re.compile("`+")
# What a line must not begin with: the backslash goes after a number, and before anything else.
_BEGINNING = re.compile(
    r"(\d{1,9})[.)](?=\s|\Z)|[-+*](?=\s|\Z)|#{1,6}(?=\s|\Z)|>|~{3}|\[[^\]]*\]:"
    r"|[-=*_](?:\s*[-=*_])*\Z"
)
_BULLET = re.compile(r"([-+*]|\d{1,9}[.)])\s+(?=\S)")


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
    parts = [paragraphs(message)]
    for title, lines in entry.sections:
        if lines:
            bullets = "\n".join(f"- {_bullet(line)}" for line in lines)
            parts.append(f"## {heading(title)}\n\n{bullets}")
    return document_format.render(
        heading(entry.title),
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
    return f"`{sign[1]}` {line(text[sign.end() :])}" if sign else line(text)


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
    origin = [line(author), f"session {line(session)}" if session else ""]
    origin.append(stream if stream != document_roles.MAIN_STREAM else "")
    shown = ", ".join(part for part in origin if part)
    parts = [heading, f"*{shown}*" if shown else "", nest_headings(document.body, 1)]
    return "\n\n".join(part for part in parts if part)


def _origin(author: str, session: str) -> list[tuple[str, str]]:
    # An author's name comes from git's configuration, which may contain anything.
    named = (("author", author), ("session", session))
    return [(key, value.encode("utf-8", "replace").decode()) for key, value in named if value]


def heading(text: str) -> str:
    """The text as it can follow the `#` of a heading."""
    return _without_html(" ".join(_NO_TEXT.sub("\ufffd", text).replace(_MARK, "").split()))


def line(text: str) -> str:
    """The text as one line that can follow a bullet."""
    plain = heading(text)
    begins = _BEGINNING.match(plain)
    if begins is None:
        return plain
    at = len(begins[1] or "")
    return f"{plain[:at]}\\{plain[at:]}"


def paragraphs(text: str) -> str:
    """The text as prose: its paragraphs and plain lists stay, and nothing else has a meaning."""
    made = []
    for raw_line in text.splitlines():
        flat = " ".join(raw_line.split())
        bullet = _BULLET.match(flat)
        made.append(f"{bullet[1]} {line(flat[bullet.end() :])}" if bullet else line(flat))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(made)).strip("\n")


def _without_html(text: str) -> str:
    made = []
    done = 0
    while special := _SPECIAL.search(text, done):
        made.append(text[done : special.start()])
        done = special.end()
        token = special[0]
        if token[0] == "`":
            end = _code_end(text, done, len(token))
            # An unpaired backtick would pair with one in the lines below.
            made.append(text[special.start() : end] if end else "\\`" * len(token))
            done = end or done
        else:
            made.append("\\<" if token == "<" else token)
    return "".join([*made, text[done:]])


def _code_end(text: str, at: int, length: int) -> int | None:
    for closing in _BACKTICKS.finditer(text, at):
        if len(closing[0]) == length:
            return closing.end()
    return None
