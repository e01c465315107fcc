"""A small graph in Python, and queries with a Python function that selects the same nodes.

Nothing here is shared with `ctx.memory.query`: a question is made as a text and, beside it, as a
Python function. The database must answer the text as the function does.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import NamedTuple, cast

import ctx.memory
from ctx import terms
from ctx.direct.team_graph_store import TeamConnection
from ctx.sync import team_graph
from tests import engines

NOW_MS = 1_768_903_200_000  # 2026-01-20T10:00:00Z
SCHEMA = Path(ctx.memory.__file__ or "").with_name("schema.sql").read_text()

UNITS = {
    "s": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "d": 86400,
    "w": 604800,
    "mo": 2592000,
    "y": 31536000,
}
TYPES = ("fact", "decision", "open-question", "task", "file")
TAGS = (
    "tier:pinned",
    "tier:working",
    "tier:reference",
    "tier:off-context",
    "project:shop",
    "project:shopping",
    "project:bank",
    "task:auth",
    "task:au",
    "task:db",
    "session:s1",
    "session:s2",
    "kind:bugfix",
    "kind:",
    "plain",
    "plainer",
    "with space",
    'with "quote',
    "ümlaut",
    "更新",
)
PATHS = ("src/app.py", "src/app", "src/app/main.py", "src/app-old/main.py", "src/lib/deep/io.py")
WORDS = (
    "refresh",
    "token",
    "refreshToken",
    "cache",
    "cached",
    "更新",
    "変更",
    "更",
    "Café",
    "the",
    "x",
)


class Node(NamedTuple):
    id: str
    type: str
    content: str
    summary: str | None
    tokens: int
    superseded_by: str | None
    created_at: str
    updated_at: str
    metadata: dict[str, object]
    tags: frozenset[str]


class Graph(NamedTuple):
    nodes: dict[str, Node]
    edges: Sequence[tuple[str, str, str]]
    """From, to and type."""
    records: Sequence[tuple[str, str]]
    """Session and subject."""


Predicate = Callable[[Node, Graph], bool]


class Question(NamedTuple):
    """The text of a query, and the function that it stands for."""

    text: str
    means: Predicate


def iso(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def database(graph: Graph, order: Sequence[str] | None = None) -> sqlite3.Connection:
    """The graph in tables. The order in which rows are inserted must not matter."""
    if engines.server is not None:
        return _on_server(engines.server, graph, order)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(SCHEMA)
    connection.execute("BEGIN")
    for node in (graph.nodes[node_id] for node_id in order or graph.nodes):
        found = terms.column(f"{node.content}\n{node.summary or ''}")
        connection.execute(
            "INSERT INTO nodes (id, type, content, summary, token_estimate, superseded_by,"
            " created_at, updated_at, metadata, terms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*node[:8], json.dumps(node.metadata), found),
        )
        connection.executemany(
            "INSERT INTO tags VALUES (?, ?, '')", [(node.id, tag) for tag in node.tags]
        )
    connection.executemany(
        "INSERT OR IGNORE INTO edges VALUES (?, ?, ?, ?, '', '{}')",
        [(str(number), *edge) for number, edge in enumerate(graph.edges)],
    )
    connection.executemany(
        "INSERT INTO records (id, stamp, change, action, kind, subject, session)"
        " VALUES (?, 0, '', '', '', ?, ?)",
        [(str(number), subject, name) for number, (name, subject) in enumerate(graph.records)],
    )
    connection.execute("COMMIT")
    return connection


def _on_server(
    server: engines.ServerEngine, graph: Graph, order: Sequence[str] | None
) -> sqlite3.Connection:
    server.empty()
    personal = ("", engines.MEMBER)
    subjects = {*graph.nodes, *(subject for _, subject in graph.records)}
    replacing = [
        (node.superseded_by, node.id, "SUPERSEDES")
        for node in graph.nodes.values()
        if node.superseded_by
    ]
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO ctx.subjects VALUES (%s, %s, %s)", [(each, *personal) for each in subjects]
        )
        for node in (graph.nodes[node_id] for node_id in order or graph.nodes):
            words = terms.extract(f"{node.content}\n{node.summary or ''}")
            cursor.execute(
                "INSERT INTO ctx.nodes (project, owner, id, type, content, summary, token_estimate,"
                " created_at, updated_at, metadata, terms, words, search)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (
                    *personal, *node[:5], *node[6:8], json.dumps(node.metadata), " ".join(words),
                    len(words), team_graph.search_vector(words),
                ),
            )  # fmt: skip
            cursor.executemany(
                "INSERT INTO ctx.tags VALUES (%s, %s, %s, %s, '')",
                [(*personal, node.id, tag) for tag in node.tags],
            )
        cursor.executemany(
            "INSERT INTO ctx.stored_edges VALUES (%s, %s, %s, %s, %s, %s, '', '{}', false)"
            " ON CONFLICT DO NOTHING",
            [
                (*personal, str(number), *edge)
                for number, edge in enumerate([*graph.edges, *replacing])
            ],
        )
        cursor.executemany(
            "INSERT INTO ctx.records (project, owner, id, stamp, change, action, kind, subject,"
            " key, body, session, author, version, replaces, depth, machine, node)"
            " VALUES (%s, %s, %s, 0, '', '', 'node.put', %s, '', '{}', %s, '', '', '', 0, '', %s)",
            [
                (*personal, str(number), subject, name, subject)
                for number, (name, subject) in enumerate(graph.records)
            ],
        )
    return cast(sqlite3.Connection, TeamConnection(server.url))


def random_graph(random: Random) -> Graph:
    ids = [
        f"01KF{random.choice('0A')}{random.choice('12')}{number:020d}"
        for number in range(random.randint(1, 14))
    ]
    nodes = {
        node_id: _random_node(random, node_id, ids[place + 1 :])
        for place, node_id in enumerate(ids)
    }
    edges = [
        (random.choice(ids), random.choice(ids), random.choice(["MENTIONS", "RELATES_TO"]))
        for _ in range(random.randint(0, 12))
    ]
    edges += [
        (node.superseded_by, node.id, "SUPERSEDES") for node in nodes.values() if node.superseded_by
    ]
    subjects = [*ids, "01KFZZZZZZZZZZZZZZZZZZZZZZ"]
    records = [
        (random.choice(["s1", "s2", ""]), random.choice(subjects))
        for _ in range(random.randint(0, 8))
    ]
    return Graph(nodes, edges, records)


def _random_node(random: Random, node_id: str, newer: Sequence[str]) -> Node:
    path: dict[str, object] = {"path": random.choice(PATHS)} if random.random() < 0.5 else {}
    created_at, updated_at = sorted(_random_time(random) for _ in range(2))
    return Node(
        node_id,
        random.choice(TYPES),
        " ".join(random.choices(WORDS, k=random.randint(1, 5))),
        random.choice([None, None, "", "refresh", "a summary"]),
        random.choice([0, 5, 10, 500, 2**31 - 1]),
        random.choice(newer) if newer and random.random() < 0.2 else None,
        created_at,
        updated_at,
        {**path, "other": 1} if random.random() < 0.3 else path,
        frozenset(random.sample(TAGS, random.randint(0, 5))),
    )


def _random_time(random: Random) -> str:
    back = random.choice([0, 1, 2, 3]) * random.choice(list(UNITS.values()))
    return iso(NOW_MS // 1000 - back + random.choice([-1, 0, 1]))


def random_question(random: Random, graph: Graph, depth: int = 3) -> Question:
    """A query of filters, with enough brackets that precedence does not matter."""
    roll = random.random() if depth else 1.0
    if roll < 0.15:
        inner = _bracketed(random, random_question(random, graph, depth - 1))
        text = f"{random.choice(['NOT', 'not', 'Not'])} {inner.text}"
        return Question(text, lambda node, where: not inner.means(node, where))
    if roll < 0.65:
        joins_all = random.random() < 0.55
        count = random.randint(2, 3)
        parts = [random_question(random, graph, depth - 1) for _ in range(count)]
        if joins_all:
            # `OR` binds less tightly, so it needs parentheses here, and not the other way round.
            parts = [_bracketed(random, part, needed=" OR " in part.text.upper()) for part in parts]
            text = random.choice([" AND ", " and ", " "]).join(part.text for part in parts)
            return Question(text, lambda node, where: all(p.means(node, where) for p in parts))
        parts = [_bracketed(random, part, needed=False) for part in parts]
        text = random.choice([" OR ", " or "]).join(part.text for part in parts)
        return Question(text, lambda node, where: any(p.means(node, where) for p in parts))
    return random.choice(FILTERS)(random, graph)


def _bracketed(random: Random, question: Question, *, needed: bool = True) -> Question:
    is_single = " " not in question.text
    if (needed and not is_single) or random.random() < 0.2:
        return question._replace(text=f"({question.text})")
    return question


def _type(random: Random, graph: Graph) -> Question:
    wanted = random.choice(TYPES)
    written = random.choice([wanted, wanted.upper(), wanted.replace("-", "_")])
    return Question(f"type:{written}", lambda node, _: node.type == wanted)


def _tag(random: Random, graph: Graph) -> Question:
    wanted = random.choice(TAGS)
    name = "tag"
    if wanted.startswith("project:") and random.random() < 0.5:
        name, written = "project", wanted.removeprefix("project:")
    else:
        written = wanted
    if random.random() < 0.3:
        keep = random.randint(0 if name == "tag" else 1, len(written))
        written = written[:keep]
        start = written if name == "tag" else f"project:{written}"
        return Question(
            f"{name}:{_quoted(random, written + '*')}",
            lambda node, _: any(tag.startswith(start) for tag in node.tags),
        )
    return Question(f"{name}:{_quoted(random, written)}", lambda node, _: wanted in node.tags)


def _quoted(random: Random, value: str) -> str:
    if " " in value or '"' in value or random.random() < 0.2:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return value


def _time(random: Random, graph: Graph) -> Question:
    name = random.choice(["created", "updated"])
    sign = random.choice(["", "=", ">", ">=", "<", "<="])
    if random.random() < 0.6:
        amount, unit = random.choice([0, 1, 2, 3, 999999]), random.choice(list(UNITS))
        limit = iso(max(NOW_MS // 1000 - amount * UNITS[unit], -30_610_224_000))
        written = f"{amount}{unit}"
        from_limit = sign in ("", "=", ">=")
        compare = {">": limit.__lt__, "<": limit.__gt__, "<=": limit.__ge__}
        holds = limit.__le__ if from_limit else compare[sign]
    else:
        moment = random.choice(list(graph.nodes.values())).created_at
        written = random.choice([moment[:10], moment])
        size = len(written)
        is_day = size == 10
        compare = {
            ">": lambda text: text[:size] >= written if is_day else text > written,
            ">=": lambda text: text[:size] >= written,
            "<": lambda text: text[:size] < written,
            "<=": lambda text: text[:size] <= written,
        }
        holds = compare.get(sign, lambda text: text[:size] == written)
    return Question(
        f"{name}:{sign}{written}", lambda node, _: bool(holds(getattr(node, f"{name}_at")))
    )


def _tokens(random: Random, graph: Graph) -> Question:
    sign = random.choice(["", "=", ">", ">=", "<", "<="])
    number = random.choice([0, 5, 9, 10, 500, 10**12])
    holds = {">": number.__lt__, ">=": number.__le__, "<": number.__gt__, "<=": number.__ge__}
    return Question(
        f"tokens:{sign}{number}", lambda node, _: holds.get(sign, number.__eq__)(node.tokens)
    )


def _has(random: Random, graph: Graph) -> Question:
    what = random.choice(["summary", "edges", "tags", "metadata", "superseded"])
    means: dict[str, Predicate] = {
        "summary": lambda node, _: node.summary is not None,
        "edges": lambda node, where: any(node.id in edge[:2] for edge in where.edges),
        "tags": lambda node, _: bool(node.tags),
        "metadata": lambda node, _: bool(node.metadata),
        "superseded": lambda node, _: node.superseded_by is not None,
    }
    return Question(f"has:{what}", means[what])


def _prefix(random: Random, graph: Graph) -> str:
    found = random.choice([*graph.nodes, "01ABCD"])
    return found[: random.choice([4, 5, 6, 12, 26])]


def _linked(random: Random, graph: Graph) -> Question:
    prefix = _prefix(random, graph)
    written = random.choice([prefix, prefix.lower()])
    if random.random() < 0.5:
        return Question(
            f"from:{written}",
            lambda node, where: any(
                edge[0].startswith(prefix) and edge[1] == node.id for edge in where.edges
            ),
        )
    return Question(
        f"to:{written}",
        lambda node, where: any(
            edge[1].startswith(prefix) and edge[0] == node.id for edge in where.edges
        ),
    )


def _session(random: Random, graph: Graph) -> Question:
    name = random.choice(["s1", "s2", "s3"])
    return Question(
        f"session:{name}",
        lambda node, where: f"session:{name}" in node.tags or (name, node.id) in where.records,
    )


def _path(random: Random, graph: Graph) -> Question:
    pattern = random.choice(
        [*PATHS, "src", "src/", "./src/app", "src/*.py", "src/app*", "*main.py", "src/**/*.py", "."]
    )
    plain = pattern.removeprefix("./").rstrip("/")
    globs = {plain, plain.replace("**/", "")}

    def is_there(path: object) -> bool:
        if not isinstance(path, str):
            return False
        if pattern == "." or path == plain or path.startswith(f"{plain}/"):
            return True
        return any(fnmatchcase(path, glob) for glob in globs)

    def means(node: Node, where: Graph) -> bool:
        mentioned = [
            to for start, to, kind in where.edges if start == node.id and kind == "MENTIONS"
        ]
        return any(
            is_there(where.nodes[near].metadata.get("path")) for near in [node.id, *mentioned]
        )

    return Question(f"path:{pattern}", means)


def _id(random: Random, graph: Graph) -> Question:
    prefix = _prefix(random, graph)
    written = random.choice([prefix, prefix.lower()])
    return Question(f"id:{written}", lambda node, _: node.id.startswith(prefix))


FILTERS = (_type, _tag, _tag, _tag, _time, _tokens, _has, _linked, _session, _path, _id)


def has_words(words: str, node: Node, count: Callable[[Iterator[bool]], bool]) -> bool:
    """Whether a node has all (or any) of the words."""
    there = set(terms.extract(f"{node.content}\n{node.summary or ''}"))

    def is_there(term: str) -> bool:
        if term == "更":
            return any(other.startswith(term) for other in there)
        return term in there

    groups = terms.alternatives(words)
    return bool(groups) and count(any(map(is_there, group)) for group in groups)
