"""Reads the database of claude-mem, in all its schema versions: observations and session summaries.

Its tables have changed over time: sessions were `sdk_session_id` before they were
`memory_session_id`, an observation was one `text` before it had a title, facts and a narrative, and
the first versions had `memories` and `overviews` instead. Columns are read by name, if they exist.

An observation becomes a node `observation` with its kind, project, session and concepts as tags. A
session summary becomes a node `summary` that is derived from the session's observations. Prompts
are not knowledge by themselves, so they are imported only on request.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from sqlite3 import Connection
from typing import Any

from ctx.errors import DatabaseFailure
from ctx.exchange.foreign import foreign_database, foreign_items
from ctx.exchange.foreign.foreign_database import Row
from ctx.exchange.foreign.foreign_items import ForeignSource, Item, SkippedItem
from ctx.ids import NodeId
from ctx.memory.model import Draft
from ctx.sqlite.connection import path_text

PROGRAM = "claude-mem"
SOURCE = f"source:{PROGRAM}"

SECTIONS = ("request", "investigated", "learned", "completed", "next_steps", "notes")

_SESSION = ("memory_session_id", "sdk_session_id", "session_id")
_COMMON: dict[str, Sequence[str]] = {
    "id": ("id",),
    "session": _SESSION,
    "project": ("project",),
    "merged_into": ("merged_into_project",),
    "epoch": ("created_at_epoch",),
    "created_at": ("created_at",),
    "prompt_number": ("prompt_number",),
}
_OBSERVATION: dict[str, Sequence[str]] = {
    **_COMMON,
    "type": ("type",),
    "title": ("title",),
    "subtitle": ("subtitle",),
    "narrative": ("narrative",),
    "text": ("text",),
    "facts": ("facts",),
    "concepts": ("concepts",),
    "keywords": ("keywords",),
    "files_read": ("files_read",),
    "files_modified": ("files_modified", "files_touched"),
}
_SUMMARY: dict[str, Sequence[str]] = {
    **_COMMON,
    **{name: (name,) for name in (*SECTIONS, "files_read", "files_edited")},
    "content": ("content",),
}
_PROMPT: dict[str, Sequence[str]] = {
    "id": ("id",),
    "session": ("content_session_id", "claude_session_id"),
    "prompt_number": ("prompt_number",),
    "text": ("prompt_text",),
    "epoch": ("created_at_epoch",),
    "created_at": ("created_at",),
}

# Newest version first; the tables of the first versions have other names.
_OBSERVATIONS = ("observations", "memories")
_SUMMARIES = ("session_summaries", "overviews")
_PROMPTS = "user_prompts"

Tables = Mapping[str, list[str]]


def has_tables(connection: Connection) -> bool:
    tables = foreign_database.columns(connection)
    sessions = any(name in tables for name in ("sdk_sessions", "sessions"))
    return sessions and any(
        "project" in tables.get(table, ()) for table in (*_OBSERVATIONS, *_SUMMARIES)
    )


@contextmanager
def reading(path: str, *, with_prompts: bool = False) -> Iterator[ForeignSource]:
    with foreign_database.open_snapshot(path) as connection:
        with foreign_database.explain_errors(path):
            if not has_tables(connection):
                raise DatabaseFailure(
                    f"{path_text(path)} is not a database of claude-mem.",
                    hint="Leave out --from, and ctx detects the format.",
                )
            tables = foreign_database.columns(connection)
            read = [*_OBSERVATIONS, *_SUMMARIES, *([_PROMPTS] if with_prompts else [])]
            total = sum(foreign_database.count(connection, name) for name in read if name in tables)
        yield ForeignSource(PROGRAM, total, _items(path, connection, tables, with_prompts))


def _items(path: str, connection: Connection, tables: Tables, with_prompts: bool) -> Iterator[Item]:
    with foreign_database.explain_errors(path):
        sessions = _Sessions(connection, tables)
        for table in _OBSERVATIONS:
            for row in foreign_database.rows(
                connection, table, tables.get(table, ()), _OBSERVATION
            ):
                yield _observation(table, row, sessions)
        for table, about in zip(_SUMMARIES, _OBSERVATIONS, strict=True):
            for row, observed in _with_observations(connection, tables, table, about):
                yield _summary(table, row, sessions, observed)
        if with_prompts:
            for row in foreign_database.rows(
                connection, _PROMPTS, tables.get(_PROMPTS, ()), _PROMPT
            ):
                yield _prompt(row, sessions)
        elif count := foreign_database.count(connection, _PROMPTS) if _PROMPTS in tables else 0:
            reason = "raw prompts are not knowledge (--with-prompts imports them)"
            yield SkippedItem(f"user prompts: {count:,}", reason)


class _Sessions:
    """The sessions of claude-mem, which have ids of their own."""

    def __init__(self, connection: Connection, tables: Tables) -> None:
        self._known: dict[str, str] = {}
        self._projects: dict[str, str] = {}
        wanted = {
            "own": _SESSION[:2],
            "agents": ("content_session_id", "claude_session_id"),
            "project": ("project",),
        }
        for row in foreign_database.rows(
            connection, "sdk_sessions", tables.get("sdk_sessions", ()), wanted
        ):
            own, agents = _text(row, "own"), _text(row, "agents")
            if own and agents:
                self._known.setdefault(own, agents)
            if agents and (project := _text(row, "project")):
                self._projects.setdefault(agents, project)

    def name(self, row: Row) -> str:
        """The agent's id of the session of a row."""
        own = _text(row, "session")
        return self._known.get(own, own)

    def project(self, name: str) -> str:
        """The project of a session, by the agent's id."""
        return self._projects.get(name, "")


def _observation(table: str, row: Row, sessions: _Sessions) -> Draft | SkippedItem:
    facts = foreign_items.words(row["facts"])
    listed = "\n".join(f"- {fact}" for fact in facts)
    heading = "\n".join(filter(None, (_text(row, "title"), _text(row, "subtitle"))))
    narrative = _text(row, "narrative") or _text(row, "text")
    content = "\n\n".join(filter(None, (heading, narrative, listed)))
    if not content:
        return SkippedItem(f"{table} {_text(row, 'id')}", "it has no text")
    kind = _text(row, "type") or "memory"
    concepts = foreign_items.parse_list(row["concepts"]) + foreign_items.parse_list(row["keywords"])
    metadata = {
        "files_read": foreign_items.words(row["files_read"]),
        "files_modified": foreign_items.words(row["files_modified"]),
    }
    return _draft(
        table,
        row,
        "observation",
        content,
        foreign_items.tags(
            f"kind:{kind}",
            *_project_and_session_tags(row, sessions),
            *(f"concept:{concept.strip()}" for concept in concepts if isinstance(concept, str)),
            SOURCE,
        ),
        metadata,
    )


def _summary(
    table: str, row: Row, sessions: _Sessions, observed: Sequence[NodeId]
) -> Draft | SkippedItem:
    sections = {name: text for name in SECTIONS if (text := _text(row, name))}
    lines = [f"{name.replace('_', ' ').capitalize()}: {text}" for name, text in sections.items()]
    content = "\n\n".join(lines) or _text(row, "content")
    if not content:
        return SkippedItem(f"{table} {_text(row, 'id')}", "it has no text")
    metadata: dict[str, Any] = {
        **sections,
        "files_read": foreign_items.words(row["files_read"]),
        "files_edited": foreign_items.words(row["files_edited"]),
    }
    tags = foreign_items.tags(*_project_and_session_tags(row, sessions), SOURCE)
    draft = _draft(table, row, "summary", content, tags, metadata)
    return draft._replace(edges=tuple(("DERIVED_FROM", node_id) for node_id in observed))


def _prompt(row: Row, sessions: _Sessions) -> Draft | SkippedItem:
    content = _text(row, "text")
    if not content:
        return SkippedItem(f"{_PROMPTS} {_text(row, 'id')}", "it has no text")
    session = _text(row, "session")
    tags = foreign_items.tags(
        f"project:{sessions.project(session)}", f"session:{session}", "kind:prompt", SOURCE
    )
    return _draft(_PROMPTS, row, "source", content, tags, {})


def _project_and_session_tags(row: Row, sessions: _Sessions) -> tuple[str, str]:
    project = _text(row, "merged_into") or _text(row, "project")
    return f"project:{project}", f"session:{sessions.name(row)}"


def _draft(
    table: str,
    row: Row,
    node_type: str,
    content: str,
    tags: tuple[str, ...],
    metadata: Mapping[str, Any],
) -> Draft:
    created_at = foreign_items.iso(_created_ms(row))
    about = {**metadata, "prompt_number": row["prompt_number"], "claude_mem_id": row["id"]}
    return Draft(
        _node_id(table, row),
        node_type,
        content,
        created_at,
        created_at,
        tags=tags,
        metadata={name: value for name, value in about.items() if value not in (None, [], "")},
    )


def _node_id(table: str, row: Row) -> NodeId:
    """Row numbers are not unique across databases, so the session is part of the id."""
    return foreign_items.derived_id(_created_ms(row), PROGRAM, table, row["session"], row["id"])


def _created_ms(row: Row) -> int | None:
    return foreign_items.moment(row["epoch"], row["created_at"])


def _text(row: Row, name: str) -> str:
    return foreign_items.text(row[name]).strip()


def _with_observations(
    connection: Connection, tables: Tables, table: str, about: str
) -> Iterator[tuple[Row, list[NodeId]]]:
    """Each summary, with the observations of its session since the previous summary.

    A session may have many summaries, one for each prompt. Observations after the last summary
    belong to it too. Both tables are read in the order of sessions, so neither has to fit into
    memory.
    """
    order = ("session", "epoch", "id")
    summaries = _by_session(
        foreign_database.rows(connection, table, tables.get(table, ()), _SUMMARY, order)
    )
    wanted = {name: _COMMON[name] for name in ("id", "session", "epoch", "created_at")}
    by_session = _by_session(
        foreign_database.rows(connection, about, tables.get(about, ()), wanted, order)
    )
    session, observations = next(by_session, (b"", []))
    for name, rows in summaries:
        while observations and session < name:
            session, observations = next(by_session, (b"", []))
        parts: list[list[NodeId]] = [[] for _ in rows]
        number = 0
        for observation in observations if session == name else ():
            while number < len(rows) - 1 and (_created_ms(rows[number]) or 0) < (
                _created_ms(observation) or 0
            ):
                number += 1
            parts[number].append(_node_id(about, observation))
        yield from zip(rows, parts, strict=True)


def _by_session(rows: Iterator[Row]) -> Iterator[tuple[bytes, list[Row]]]:
    """Groups consecutive rows by session id, in SQLite's order."""
    name, together = b"", list[Row]()
    for row in rows:
        own = foreign_items.text(row["session"]).encode("utf-8", "surrogateescape")
        if own != name and together:
            yield name, together
            together = []
        name = own
        together.append(row)
    if together:
        yield name, together
