"""The layers of a context about past sessions: what they did, changed, and learned.

    ## Recent Sessions
    - [yesterday] Refresh tokens once. Next: the same for the mobile client
    ## Commands that work here
    - test: `pnpm vitest run` (14 runs in 6 sessions)
    ## Recently Changed Code
    auth/service.py:
      def refresh(self, token: str) -> Token  [MODIFIED]
    ## Project Knowledge
    - Convention: Errors are values, never exceptions
    ## Relevant Past Work
    - [bugfix] Fixed test_refresh in auth/service.py: the lock was taken twice

Each layer is a list of lines, most important first. A layer that cannot be read has a `problem`,
and the others are not affected.

Hooks load this module, so it queries the tables directly.
"""

import sqlite3
from collections.abc import Callable, Sequence
from operator import itemgetter
from sqlite3 import Connection
from typing import Any, NamedTuple

from ctx import clock
from ctx.context import command_lines, contexts
from ctx.context.contexts import CODE, COMMANDS, LEARNINGS, PAST_WORK, SESSIONS
from ctx.context.layer_limits import LayerLimits
from ctx.context.layer_lines import Layer, LayerLine, cut, digest, plain, sentence
from ctx.ids import NodeId
from ctx.markdown import flat
from ctx.memory import learning_confidence, model

# The lengths of the forms of a line, in characters.
_LENGTHS = (300, 160, 80)
_SHORT_LENGTHS = (320, 200, 120, 70)
_SIGNATURES = (110, 60)
_SESSIONS_WITH_CODE = 5
_MOST_OF_A_FILE = 8
_MOST_LEARNINGS = 2_000
_MOST_SHARED = 200
_MOST_CANDIDATES = 150
_RECENT = 10
"""Observations of so many sessions are candidates for past work."""
_MOST_FILES = 40
_LONGEST_COMPARED = 4_000
_SHORTEST_WORD = 4
_AROUND_WORDS = ".,:;!?()[]{}`'\"*"
_KINDS = {"decision": 3, "bugfix": 3, "feature": 2, "discovery": 2, "refactor": 1}
_RUN_WITH = ("Tests are run with `", "The code is checked with `", "The code is formatted with `")
_SAME_FILE, _MOST_SAME_FILES, _MOST_SAME_WORDS = 2, 3, 6

_HOLDS = (
    " n.superseded_by IS NULL AND NOT EXISTS (SELECT 1 FROM tags WHERE node_id = n.id"
    " AND tag = 'tier:off-context') AND (SELECT min(tag <> 'project:' || ?1) FROM tags"
    " WHERE node_id = n.id AND tag >= 'project:' AND tag < 'project;') IS NOT 1"
)
_COLUMNS = "n.id, n.type, n.content, n.metadata, n.created_at, n.updated_at"


class LayerRequest(NamedTuple):
    """Which sessions the layers cover."""

    project: str | None
    session: str
    """The session that gets the context; its own work is left out."""
    limits: LayerLimits


def build_layers(connections: Sequence[Connection], asked: LayerRequest) -> list[Layer]:
    """The layers in order. The last store is the user's, which has the sessions."""
    found: list[Layer] = []
    for name, build, most in (
        (SESSIONS, _sessions, asked.limits.most_sessions),
        (COMMANDS, _commands, asked.limits.most_commands),
        (CODE, _code, asked.limits.most_changes),
        (LEARNINGS, _learnings, asked.limits.most_learnings),
        (PAST_WORK, _past_work, asked.limits.most_past_work),
    ):
        found.append(_build_layer(name, build, connections, asked, most))
    return found


def _build_layer(
    name: str,
    build: "Callable[[Sequence[Connection], LayerRequest, int], tuple[list[LayerLine], int]]",
    connections: Sequence[Connection],
    asked: LayerRequest,
    most: int,
) -> Layer:
    try:
        lines, count = build(connections, asked, most)
    except sqlite3.DatabaseError as error:
        return Layer(name, (), 0, str(error))
    return Layer(name, tuple(lines[:most]), max(0, count - most))


# Recent sessions


def _sessions(
    connections: Sequence[Connection], asked: LayerRequest, most: int
) -> tuple[list[LayerLine], int]:
    own = contexts.sessions(connections[-1], asked.project, asked.session)
    seconds = {row[2]: row[1] or 0 for row in own}
    nodes = {row[0]: row for row in _nodes(connections, list(seconds), asked.project)}
    for row in _shared(connections[:-1], "summary", asked):
        if row[0] not in nodes:
            nodes[row[0]] = row
            seconds[row[0]] = (clock.parse_iso(row[5]) or 0) // 1000
    written_by = _authors(connections, list(nodes))
    today = clock.day_number(clock.now_ms())
    ordered = sorted(nodes, key=lambda node_id: (seconds[node_id], node_id), reverse=True)
    # Sessions with the same summary appear once, at their latest time.
    lines: dict[tuple[str, str], LayerLine] = {}
    for node_id in ordered:
        author = written_by.get(node_id, "")
        age = clock.days_ago(today - clock.day_number(seconds[node_id] * 1000))
        line = _session_line(nodes[node_id], age, author)
        lines.setdefault((author, line.digest), line)
    return list(lines.values())[:most], len(lines)


def _session_line(row: Sequence[Any], age: str, author: str) -> LayerLine:
    told = _summary_line(row)
    texts = tuple(f"- [{age}] {author}{cut(told, length)}" for length in _LENGTHS)
    return LayerLine(row[0], _label(row), row[5], digest(told), texts)


def _summary_line(row: Sequence[Any]) -> str:
    """The goal of a session, what it did and what is left to do, in one line."""
    about = model.from_json(row[3])
    made_of = [str(about.get("request", "")), *_listed(about.get("completed"))]
    if about.get("key") == "summary" and not all(each in row[2] for each in made_of):
        # The user has edited it since.
        return flat(row[2][:_LONGEST_COMPARED])
    title = _text(about.get("title")) or _text(about.get("request"))
    # A session that completed nothing may have learned or edited something.
    done = _text(about.get("completed")) or _text(about.get("learned"))
    done = done or _edited(about) or _text(about.get("investigated"))
    further = _text(about.get("next_steps"))
    # Agents often write the prefix themselves.
    further = further[5:].lstrip() if further[:5].casefold() == "next:" else further
    if title and title.casefold() not in done.casefold():
        done = f"{sentence(title)} {done}".strip()
    told = f"{sentence(done)} Next: {further}" if done and further else done
    return told or flat(row[2][:_LONGEST_COMPARED])


def _edited(about: dict[str, Any]) -> str:
    files = _listed(about.get("files_edited"))
    more = f" and {len(files) - 3:,} more" if len(files) > 3 else ""
    return flat(f"Edited {', '.join(files[:3])}{more}") if files else ""


def _commands(
    connections: Sequence[Connection], asked: LayerRequest, most: int
) -> tuple[list[LayerLine], int]:
    lines = command_lines.lines(connections[-1], asked.project, asked.session)
    return lines[:most], len(lines[:most])


# Recently changed code


def _code(
    connections: Sequence[Connection], asked: LayerRequest, most: int
) -> tuple[list[LayerLine], int]:
    sessions: dict[str, None] = {}
    files: dict[str, dict[tuple[str, str], Sequence[Any]]] = {}
    for row in contexts.changes(connections[-1], asked.project, asked.session):
        sessions[row[0]] = None
        if len(sessions) > _SESSIONS_WITH_CODE:
            break
        files.setdefault(row[1], {}).setdefault((row[2], row[3]), row)
    lines: list[LayerLine] = []
    for path, items in files.items():
        rows = sorted(items.values(), key=lambda row: (row[6], row[2]))
        newest, state = max(row[7] for row in rows), digest(repr([row[2:6] for row in rows]))
        told = [_changed(row) for row in rows[:_MOST_OF_A_FILE]]
        if len(rows) > _MOST_OF_A_FILE:
            told.append((f"  and {len(rows) - _MOST_OF_A_FILE:,} more",))
        label, group = f"code:{flat(path)}", f"{plain(path)}:"
        lines += [LayerLine("", label, newest, state, texts, group) for texts in told]
    return lines[:most], len(lines)


def _changed(row: Sequence[Any]) -> tuple[str, ...]:
    _, _, name, _, change, signature, _, _ = row
    tag = f"  [{flat(change).upper()}]"
    told = flat(signature) or flat(name)
    return tuple(
        f"  {plain(cut(each, length))}{tag}"
        for each, length in zip((told, flat(name) or told), _SIGNATURES, strict=True)
    )


# Learnings


def _learnings(
    connections: Sequence[Connection], asked: LayerRequest, most: int
) -> tuple[list[LayerLine], int]:
    found: dict[str, tuple[tuple[int, int, str], Sequence[Any]]] = {}
    now_ms = clock.now_ms()
    for connection in connections:
        rows = connection.execute(
            f"SELECT {_COLUMNS}, t.tag FROM tags AS t JOIN nodes AS n ON n.id = t.node_id"
            f" WHERE t.tag >= 'learning:' AND t.tag < 'learning;' AND {_HOLDS} LIMIT ?2",
            (asked.project or "", _MOST_LEARNINGS),
        )
        for row in rows:
            about = model.from_json(row[3])
            confidence = learning_confidence.at(about, now_ms)
            if confidence >= asked.limits.least_confidence:
                rank = (-confidence, -_number(about.get("times_seen")), row[0])
                found[row[0]] = rank, row
    best = [row for _, row in sorted(found.values(), key=itemgetter(0))[:most]]
    written_by = _authors(connections, [row[0] for row in best])
    lines = [_learning_line(row).with_author(written_by.get(row[0], "")) for row in best]
    return lines, len(found)


def _learning_line(row: Sequence[Any]) -> LayerLine:
    category = flat(row[6].partition(":")[2]).capitalize()
    told = flat(row[2][:_LONGEST_COMPARED])
    texts = tuple(f"- {category}: {cut(told, length)}" for length in _SHORT_LENGTHS)
    # The layer of commands may have the same command.
    title = f"`{told.split('`')[1]}`" if told.startswith(_RUN_WITH) and "`" in told else told
    return LayerLine(row[0], _label(row), row[5], digest(f"{category} {told}"), texts, "", title)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


# Past work


def _past_work(
    connections: Sequence[Connection], asked: LayerRequest, most: int
) -> tuple[list[LayerLine], int]:
    """The observations most related to the latest work.

    Those about the same files, and with words of the last summary, come first; then the newest.
    """
    sessions = contexts.sessions(connections[-1], asked.project, asked.session)[:_RECENT]
    last = _nodes(connections, [row[2] for row in sessions[:3]], asked.project)
    changes = contexts.changes(connections[-1], asked.project, asked.session)
    files = dict.fromkeys(row[1] for row in changes)
    words: set[str] = set()
    for row in last[:1]:
        words |= _words(row[2])
    for row in last:
        files |= dict.fromkeys(_listed(model.from_json(row[3]).get("files_edited")))
    in_work = list(files)[:_MOST_FILES]
    candidates: dict[str, Sequence[Any]] = {}
    # A session without a summary may still contain decisions.
    heard = contexts.latest_sessions(connections[-1], asked.project, asked.session)[:_RECENT]
    heard = [*dict.fromkeys([*heard, *(row[0] for row in sessions)])]
    for connection in connections:
        for row in _noted(connection, heard, in_work, asked.project):
            candidates[row[0]] = row
    for row in _shared(connections[:-1], "observation", asked):
        candidates[row[0]] = row
    kinds = _kinds(connections, list(candidates))
    ranked = sorted(
        (
            _rank(row, kinds[row[0]], set(in_work), words)
            for row in candidates.values()
            if row[0] in kinds
        ),
        reverse=True,
    )
    # Some may be shown in another layer.
    best = [node_id for _, _, node_id in ranked[: 2 * most]]
    written_by = _authors(connections, best)
    lines = [
        _noted_line(candidates[node_id], kinds[node_id]).with_author(written_by.get(node_id, ""))
        for node_id in best
    ]
    return lines, len(ranked)


def _noted(
    connection: Connection, sessions: Sequence[str], files: Sequence[str], project: str | None
) -> "list[Any]":
    """Observations of these sessions, and those that mention one of these files."""
    by_session = ", ".join("?" * len(sessions))
    by_file = ", ".join("?" * len(files))
    # Few nodes match by path, many by type: the `+` keeps SQLite from using the type's index.
    sql = (
        f"SELECT {_COLUMNS} FROM nodes AS n WHERE n.type = 'observation' AND {_HOLDS} AND n.id IN ("
        f" SELECT node_id FROM tags WHERE tag IN ({by_session})"
        " UNION SELECT e.from_id FROM nodes AS f JOIN edges AS e ON e.to_id = f.id"
        "  AND e.type = 'MENTIONS'"
        f"  WHERE json_extract(f.metadata, '$.path') IN ({by_file}) AND +f.type = 'file')"
        f" ORDER BY n.created_at DESC, n.id DESC LIMIT {_MOST_CANDIDATES}"
    )
    tags = [f"session:{each}" for each in sessions]
    return connection.execute(sql, (project or "", *tags, *files)).fetchall()


def _rank(row: Sequence[Any], kind: str, files: set[str], words: set[str]) -> tuple[int, str, str]:
    about = model.from_json(row[3])
    shared = len(files & set(_listed(about.get("files"))))
    same = len(words & _words(row[2]))
    score = (
        _KINDS.get(kind, 0)
        + _SAME_FILE * min(shared, _MOST_SAME_FILES)
        + min(same, _MOST_SAME_WORDS)
    )
    return score, row[4], row[0]


def _noted_line(row: Sequence[Any], kind: str) -> LayerLine:
    title, _, rest = row[2].strip()[:_LONGEST_COMPARED].partition("\n")
    title, rest = flat(title), flat(rest)
    is_begun = bool(title) and rest.startswith(title.rstrip("….:"))
    # A decision is followed by who made it, the others by details.
    begun = sentence(title) if kind == "decision" else f"{title.rstrip('.:')}:"
    told = rest if is_begun else f"{begun} {rest}" if title and rest else title or rest
    title = _text(model.from_json(row[3]).get("title")) or title
    texts = tuple(f"- [{flat(kind)}] {cut(told, length)}" for length in _SHORT_LENGTHS)
    return LayerLine(row[0], _label(row), row[5], digest(told), texts, "", title.rstrip("…."))


def _kinds(connections: Sequence[Connection], node_ids: Sequence[str]) -> dict[str, str]:
    rows = _among(
        connections,
        "SELECT node_id, min(substr(tag, 6)) FROM tags WHERE tag >= 'kind:' AND tag < 'kind;'"
        " AND node_id IN",
        node_ids,
        "GROUP BY node_id",
    )
    return dict(rows)


# Rows


def _nodes(
    connections: Sequence[Connection], node_ids: Sequence[str], project: str | None
) -> "list[Any]":
    """The valid nodes, in the order of `node_ids`."""
    found: dict[str, Any] = {}
    for start in range(0, len(node_ids), _MOST_CANDIDATES):
        part = node_ids[start : start + _MOST_CANDIDATES]
        places = ", ".join("?" * len(part))
        sql = f"SELECT {_COLUMNS} FROM nodes AS n WHERE {_HOLDS} AND n.id IN ({places})"
        for connection in connections:
            found.update((row[0], row) for row in connection.execute(sql, (project or "", *part)))
    return [found[each] for each in node_ids if each in found]


def _shared(projects: Sequence[Connection], node_type: str, asked: LayerRequest) -> "list[Any]":
    """What sessions, also those of other people, left in the project's store."""
    sql = (
        f"SELECT {_COLUMNS} FROM nodes AS n WHERE n.type = ?2 AND {_HOLDS} AND EXISTS (SELECT 1"
        " FROM tags WHERE node_id = n.id AND tag >= 'session:' AND tag < 'session;'"
        " AND tag <> 'session:' || ?3) ORDER BY n.created_at DESC, n.id DESC LIMIT ?4"
    )
    values = (asked.project or "", node_type, asked.session, _MOST_SHARED)
    return [row for each in projects for row in each.execute(sql, values)]


def _among(
    connections: Sequence[Connection], sql: str, node_ids: Sequence[str], order: str = ""
) -> "list[Any]":
    found: list[Any] = []
    for start in range(0, len(node_ids), _MOST_CANDIDATES):
        part = node_ids[start : start + _MOST_CANDIDATES]
        statement = f"{sql} ({', '.join('?' * len(part))}) {order}"
        found += [row for each in connections for row in each.execute(statement, part)]
    return found


def _authors(connections: Sequence[Connection], node_ids: Sequence[str]) -> dict[str, str]:
    """The author prefix of each node that somebody else wrote."""
    if len(connections) == 1 or not node_ids:
        return {}
    from ctx.project import authors

    known = authors.strangers(connections[:-1], [NodeId(each) for each in node_ids])  # type: ignore[arg-type]
    return {node_id: f"(by {name}) " for node_id, name in known.items()}


# Text


def _text(value: Any) -> str:
    """A section of a summary in one line: a text, or a list of them."""
    lines = value.splitlines() if isinstance(value, str) else []
    parts = [line.strip().lstrip("-*• ") for line in lines] or _listed(value)
    return flat("; ".join(part.rstrip(".") for part in parts if part.strip())[:_LONGEST_COMPARED])


def _listed(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _words(text: str) -> set[str]:
    found = (word.strip(_AROUND_WORDS) for word in text[:_LONGEST_COMPARED].lower().split())
    return {word for word in found if len(word) >= _SHORTEST_WORD}


def _label(row: Sequence[Any]) -> str:
    return f"{row[1]}:{row[0][:12]}"
