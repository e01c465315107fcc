"""`narrative.db`: the words of the narrative, section by section, for recall.

It is derived from the files and updated by each reader, with one `stat` for an unchanged file. It
is rebuilt if it is damaged or of another version. If it cannot be written, it is built in memory.

Tasks and decisions are left out: they are nodes, and search finds them as nodes.
"""

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from sqlite3 import Connection
from typing import NamedTuple

from ctx import disk, terms
from ctx.errors import CtxError, IndexCorrupt
from ctx.narrative import document_format, document_roles, narrative_scan
from ctx.narrative.markdown_blocks import COMMENT, HEADING, blocks
from ctx.narrative.narrative_scan import GivenNarrative
from ctx.redaction import redact
from ctx.sqlite.connection import (
    closed_on_failure,
    connect,
    discard,
    execute_script,
    expect_mark,
    explain_errors,
    mark,
    transaction,
)

LONGEST_SECTION = 20_000
"""The most characters of a section that are kept."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_MARKS = re.compile(r"\A#{1,6}[ \t]*|[ \t]+#*[ \t]*\Z")
APPLICATION_ID = 0x6374786E  # "ctxn"
VERSION = 3

_SCHEMA = """
CREATE TABLE documents (
    path TEXT PRIMARY KEY,
    stamp TEXT NOT NULL,
    -- Agents are not given it: it has no sections.
    withheld INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE sections (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL
);
CREATE INDEX idx_sections_path ON sections(path);
CREATE VIRTUAL TABLE words USING fts5(title, text, tokenize = 'unicode61');
"""
_NODES = frozenset({"task", "decision"})
_BUSY_MS = 500
_TITLE_COUNTS = 2.0
_MOST_TERMS = 32


class FoundSection(NamedTuple):
    """A section that contains words of a question."""

    path: str
    """Below `narrative/`."""
    title: str
    text: str
    first_line: int
    last_line: int
    score: float
    """The best section has 1."""


def search(
    database: str, narrative: GivenNarrative, words: Iterable[str], limit: int
) -> list[FoundSection]:
    """The given sections of a narrative folder that contain any of the terms, the best first."""
    wanted = list(dict.fromkeys(words))[:_MOST_TERMS]
    if not wanted:
        return []
    try:
        return _query(_refreshed_index(database, narrative), database, wanted, limit)
    except IndexCorrupt:
        # Damage may show only when an answer is read.
        with suppress(CtxError):
            return _query(_create_index(database, narrative), database, wanted, limit)
    except CtxError:
        # It cannot be read, or another process is writing to it.
        pass
    return _query(_in_memory(narrative), database, wanted, limit)


def _refreshed_index(database: str, narrative: GivenNarrative) -> Connection:
    """The index, up to date if it can be written. The caller closes it."""
    connection = _open(database)
    with closed_on_failure(connection):
        try:
            _refresh(connection, database, narrative)
        except IndexCorrupt:
            raise
        except CtxError:
            # It cannot be written, or another process is writing to it: use it as it is.
            pass
        return connection


def _create_index(database: str, narrative: GivenNarrative) -> Connection:
    connection = _make(database)
    with closed_on_failure(connection):
        _refresh(connection, database, narrative)
        return connection


def _in_memory(narrative: GivenNarrative) -> Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    with closed_on_failure(connection):
        _lay_out(connection)
        _refresh(connection, ":memory:", narrative)
        return connection


def _open(database: str) -> Connection:
    if not os.path.isfile(database) or os.path.islink(database):
        raise IndexCorrupt(f"There is no index at {database}.")
    with (
        explain_errors(database, IndexCorrupt),
        closed_on_failure(connect(database, "mode=rw", _BUSY_MS)) as connection,
    ):
        expect_mark(connection, database, APPLICATION_ID, VERSION)
        return connection


def _make(database: str) -> Connection:
    with (
        explain_errors(database, IndexCorrupt),
        disk.explain_errors("making the index of the narrative"),
    ):
        discard(database)
        disk.make_folder(os.path.dirname(database))
        os.close(os.open(database, os.O_RDWR | os.O_CREAT, disk.FILE_MODE))
        with closed_on_failure(connect(database, "mode=rw", _BUSY_MS)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            _lay_out(connection)
            return connection


def _lay_out(connection: Connection) -> None:
    with transaction(connection):
        execute_script(connection, _SCHEMA)
        mark(connection, APPLICATION_ID, VERSION)


def _refresh(connection: Connection, database: str, narrative: GivenNarrative) -> None:
    """Update the index from the files."""
    with explain_errors(database, IndexCorrupt):
        known = dict(connection.execute("SELECT path, stamp FROM documents"))
        withheld = {
            row[0] for row in connection.execute("SELECT path FROM documents WHERE withheld")
        }
        present = {
            file.path: f"{file.mtime_ns} {file.size} {file.inode}"
            for file, why_not in narrative_scan.files(narrative.folder)
            if why_not is None and document_roles.place(file.path).role not in _NODES
        }
        changed = [path for path, stamp in present.items() if known.get(path) != stamp]
        gone = known.keys() - present.keys()
        read = {
            path: narrative_scan.read(narrative.folder, path)
            for path in {*changed, *withheld} - gone
        }
        shown = narrative.given({path: data for path, data in read.items() if data is not None})
        # What was withheld before may be given by now.
        changed += sorted(withheld.intersection(shown).difference(changed))
        if changed or gone:
            try:
                with transaction(connection):
                    for path in (*gone, *changed):
                        _forget(connection, path)
                    for path in changed:
                        data = read[path] if path in shown else None
                        _index_document(connection, path, present[path], data)
            except sqlite3.IntegrityError as error:
                # Deleted text may still be in free pages.
                raise IndexCorrupt(f"The index {database} contradicts itself.") from error


def _forget(connection: Connection, path: str) -> None:
    of_path = "SELECT id FROM sections WHERE path = ?"
    connection.execute(f"DELETE FROM words WHERE rowid IN ({of_path})", (path,))
    connection.execute("DELETE FROM sections WHERE path = ?", (path,))
    connection.execute("DELETE FROM documents WHERE path = ?", (path,))


def _index_document(connection: Connection, path: str, stamp: str, data: bytes | None) -> None:
    connection.execute("INSERT INTO documents VALUES (?, ?, ?)", (path, stamp, data is None))
    for section in sections((data or b"").decode("utf-8", "replace")):
        cursor = connection.execute(
            "INSERT INTO sections (path, title, text, first_line, last_line)"
            " VALUES (?, ?, ?, ?, ?)",
            (path, section.title, section.text, section.first_line, section.last_line),
        )
        connection.execute(
            "INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)",
            (cursor.lastrowid, terms.column(section.title), terms.column(section.text)),
        )


def _query(
    connection: Connection, database: str, wanted: Sequence[str], limit: int
) -> list[FoundSection]:
    with closing(connection), explain_errors(database, IndexCorrupt):
        rows = connection.execute(
            "SELECT s.path, s.title, s.text, s.first_line, s.last_line,"
            f" -bm25(words, {_TITLE_COUNTS}, 1.0) AS score FROM words"
            " JOIN sections AS s ON s.id = words.rowid WHERE words MATCH ?"
            # Of equal matches, the newest: the name of a log file is its time.
            " ORDER BY score DESC, s.path DESC, s.first_line LIMIT ?",
            (" OR ".join(f'"{term}"' for term in wanted), limit),
        ).fetchall()
    best = max((row[-1] for row in rows), default=0.0) or 1.0
    return [FoundSection._make((*fields, score / best)) for *fields, score in rows]


class Section(NamedTuple):
    """The text under one heading, up to the next."""

    title: str
    """The title of the document and the heading, if there are any."""
    text: str
    first_line: int
    """From 1; the line of the heading."""
    last_line: int


def sections(text: str) -> Iterator[Section]:
    """The sections that have text, in order. Comments are left out.

    A file that people write may contain a secret; the search index must not.
    """
    title = document_format.parse(text).title
    found = list(blocks(text))
    headings = [block for block in found if block.kind == HEADING]
    hidden = [(block.start, block.end) for block in found if block.kind == COMMENT]
    starts = [0, *(block.start for block in headings)]
    ends = [*(block.start for block in headings), len(text)]
    names = ["", *(_MARKS.sub("", text[block.start : block.end]) for block in headings)]
    line, at = 1, 0
    for start, end, name in zip(starts, ends, names, strict=True):
        line += len(_LINE_END.findall(text, at, start))
        at = start
        body = _text_without_ranges(
            text, start + len(_first_line(text, start) if name else ""), end, hidden
        )
        if body:
            above = title if title != name else ""
            last = line + len(_LINE_END.findall(text[start:end].rstrip()))
            heading = redact(" › ".join(filter(None, (above, name)))).text
            yield Section(heading, redact(body).text[:LONGEST_SECTION], line, last)


def _first_line(text: str, start: int) -> str:
    end = _LINE_END.search(text, start)
    return text[start : end.end() if end else len(text)]


def _text_without_ranges(text: str, start: int, end: int, hidden: list[tuple[int, int]]) -> str:
    kept = []
    for from_, to in hidden:
        if start <= from_ < end:
            kept.append(text[start:from_])
            start = to
    return "".join([*kept, text[start:end]]).strip()
