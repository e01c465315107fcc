"""How a user store behaves as it grows: nodes, tags, and events that wait in the spool.

`import` reads a file that `ctx export` wrote into an empty store, as a whole process; the floor is
SQLite copying the same rows from one file to another, the baseline is parsing the JSON and
inserting nodes, tags and edges without records and text index. `commands` are whole processes; the
floor is a bare interpreter, the baseline a plain statement for the same answer. `queries` are those
of `bench memory`, in process, in CPU time. `tags` is one node with very many tags. `spool` is a
round of the worker from files in the spool to steps; the floor reads the files and inserts a row
for each.
"""

import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import capture, memory, report, timing
from bench.plots import Plot, Series
from bench.scale import Scale, Section
from bench.scale_stores import store_of, tagged_store
from bench.timing import Cost, Figure, ms
from ctx.agents.known_hosts import HOSTS
from ctx.capture import pipeline
from ctx.ids import CLI_SESSION
from ctx.layout import UserStore
from ctx.memory import user_store
from ctx.memory.graph import Graph
from ctx.operations import worker_round
from ctx.workspace import Environment, Memory, open_memory

CTX = str(Path(sys.executable).with_name("ctx"))
BARE = [sys.executable, "-I", "-S", "-c", "pass"]
NODES = (1_000, 10_000, 100_000, 150_000, 1_000_000)
IMPORTED = (1_000, 10_000, 100_000)
TAGS = (1_000, 10_000, 100_000)
EVENTS = (1_000, 10_000)
ROUNDS = 3
SLOW_S = 5.0
QUERY_LIMIT = {100_000: "50 ms", 1_000_000: "100 ms"}


class Process(NamedTuple):
    """What a finished process used."""

    cost: Cost
    peak_mb: float


def run_process(command: Sequence[str], home: Path, database: str = "") -> Process:
    """A whole process with its own home, and its peak memory."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CTX_", "CLAUDE", "GIT_"))}
    variables = {**kept, "HOME": str(home), "CTX_HOME": str(home / ".ctx")}
    if database:
        variables["CTX_DB"] = database
    home.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    child = subprocess.Popen(command, env=variables, cwd=home, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return Process(Cost(usage.ru_utime + usage.ru_stime, wall), usage.ru_maxrss / 1024)


def repeated(work: Callable[[], Process]) -> Process:
    """The median of several runs; of one, if it is slow."""
    runs = [work()]
    while len(runs) < ROUNDS and runs[0].cost.wall < SLOW_S:
        runs.append(work())
    cpu, wall = median(run.cost.cpu for run in runs), median(run.cost.wall for run in runs)
    return Process(Cost(cpu, wall), max(run.peak_mb for run in runs))


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else ms(value)


# Import


def import_(scale: Scale) -> Section:
    figures, speeds, floors, peaks = [], [], [], []
    for nodes in scale.sizes(*IMPORTED):
        source = store_of(scale.folder, nodes)
        with tempfile.TemporaryDirectory(dir=scale.folder) as space:
            document = f"{space}/export.json"
            run_process([CTX, "export", "--output", document], Path(space, "home"), source)
            size = os.path.getsize(document) / 1e6
            target = f"{space}/imported.db"
            ours = run_process([CTX, "import", document], Path(space, "home"), target)
            floor = timing.of_call(partial(copy_rows, source, f"{space}/copied.db"))
            plain = timing.of_call(partial(plain_import, document, f"{space}/plain.db"))
        name = f"`ctx import` of {nodes:,} nodes ({size:,.0f} MB)"
        figures += [
            Figure(f"{name}, nodes a second, wall", f"{nodes / ours.cost.wall:,.0f}",
                   f"{nodes / floor.wall:,.0f} when SQLite copies the rows",
                   f"{nodes / plain.wall:,.0f} for JSON to plain tables", "",
                   "≥ 3,000" if nodes == IMPORTED[-1] else ""),
            Figure(f"{name}, nodes per CPU second", f"{nodes / ours.cost.cpu:,.0f}",
                   f"{nodes / floor.cpu:,.0f}", f"{nodes / plain.cpu:,.0f}"),
            Figure(f"{name}, peak memory", f"{ours.peak_mb:,.0f} MB"),
        ]  # fmt: skip
        speeds.append((nodes, nodes / ours.cost.cpu))
        floors.append((nodes, nodes / floor.cpu))
        peaks.append((nodes, ours.peak_mb))
    return Section(
        "scale-import",
        figures,
        [
            Plot("scale-import", "ctx import", "nodes", "nodes per CPU second",
                 [Series("ctx import", speeds), Series("SQLite copies the rows", floors)], 3_000),
            Plot("scale-import-memory", "ctx import, peak memory", "nodes", "MB",
                 [Series("ctx import", peaks)]),
        ],
    )  # fmt: skip


COPIED = ("records", "nodes", "tags", "edges")


def copy_rows(source: str, target: str) -> None:
    """Copy the rows of a store into an empty one, with its indexes and its text index."""
    with closing(user_store.open_for_writing(target)) as connection:
        connection.execute("ATTACH ? AS source", (source,))
        connection.execute("BEGIN")
        for table in ("views", *COPIED):
            connection.execute(f"DELETE FROM main.{table}")
        for table in COPIED:
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM source.{table}")
        connection.execute("COMMIT")


def plain_import(document: str, target: str) -> None:
    """The shortest program that puts the document into tables."""
    with open(document, encoding="utf-8") as file:
        found = json.load(file)
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("CREATE TABLE nodes (id PRIMARY KEY, type, content, created_at)")
        connection.execute("CREATE TABLE tags (node_id, tag, PRIMARY KEY (node_id, tag))")
        connection.execute("CREATE TABLE edges (id PRIMARY KEY, from_id, to_id, type)")
        connection.executemany(
            "INSERT INTO nodes VALUES (:id, :type, :content, :created_at)", found["nodes"]
        )
        tags = ((node["id"], tag) for node in found["nodes"] for tag in node["tags"])
        connection.executemany("INSERT INTO tags VALUES (?, ?)", tags)
        connection.executemany(
            "INSERT INTO edges VALUES (:id, :from_id, :to_id, :type)", found["edges"]
        )
        connection.commit()


# Commands


class Command(NamedTuple):
    words: tuple[str, ...]
    baseline: tuple[str, ...]
    """Statements that give a similar answer without ctx."""
    limits: dict[int, str]


COUNTS = tuple(f"SELECT count(*) FROM {table}" for table in ("nodes", "tags", "edges"))
COMMANDS = (
    Command(("list", "--limit", "20"), ("SELECT * FROM nodes ORDER BY id DESC LIMIT 20",), {}),
    Command(("status",), COUNTS, {150_000: "0.5 s"}),
    Command(("store", "check"), ("PRAGMA integrity_check",), {150_000: "10 s"}),
)


def commands(scale: Scale) -> Section:
    figures = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for nodes in scale.sizes(*NODES):
        path = store_of(scale.folder, nodes)
        home = scale.folder / "home"
        floor = repeated(partial(run_process, BARE, home))
        for command in COMMANDS:
            ours = repeated(partial(run_process, [CTX, *command.words], home, path))
            plain = timing.of_call(partial(ask, path, command.baseline))
            name = f"ctx {' '.join(command.words)}"
            about = f"`{name}`, {nodes:,} nodes"
            sql = "; ".join(command.baseline[:1])
            figures += [
                Figure(f"{about}, wall", seconds(ours.cost.wall),
                       f"{seconds(floor.cost.wall)} for an empty interpreter",
                       f"{seconds(plain.wall)} for `{sql}`", "",
                       command.limits.get(nodes, "")),
                Figure(f"{about}, CPU", seconds(ours.cost.cpu), seconds(floor.cost.cpu),
                       seconds(plain.cpu)),
                Figure(f"{about}, peak memory", f"{ours.peak_mb:,.0f} MB"),
            ]  # fmt: skip
            lines.setdefault(name, []).append((nodes, ours.cost.wall * 1000))
    plotted = [Series(name, points) for name, points in lines.items()]
    plot = Plot("scale-commands", "Whole commands", "nodes", "ms", plotted)
    return Section("scale-commands", figures, [plot])


def ask(path: str, statements: Sequence[str]) -> None:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        for statement in statements:
            connection.execute(statement).fetchall()


# Queries


def cpu(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The CPU time of a call in this process: other processes hardly change it."""
    work()
    return median(timing.of_call(work).cpu for _ in range(rounds))


def queries(scale: Scale) -> Section:
    figures: list[Figure] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for nodes in scale.sizes(*NODES):
        if figures:
            # Only those of the largest store are the table.
            report.print_figures(figures)
            figures = []
        print(f"{nodes:,} nodes", flush=True)
        path = store_of(scale.folder, nodes)
        home = os.path.dirname(path)
        here = Environment(home, UserStore(home), {}, (), CLI_SESSION, path)
        with closing(user_store.open_for_reading(path)) as connection:
            store = Memory(Graph(connection), None, here, "bench")
            for question in memory.questions(store):
                answer = question.ask()
                ours = cpu(question.ask)
                least = cpu(partial(memory.floor, connection, answer))
                plain = cpu(question.baseline, 1) if question.baseline else None
                limit = QUERY_LIMIT.get(nodes, "") if question.limit else ""
                name = question.name.replace("`", "")
                # The number of nodes with a word differs from size to size.
                key = re.sub(r",( the rarest)? in [\d,]+ nodes$", "", name)
                lines.setdefault(key, []).append((nodes, ours * 1000))
                figures.append(
                    Figure(question.name, ms(ours), ms(least),
                           "" if plain is None else ms(plain), "", limit)
                )  # fmt: skip
    slowest = sorted(lines, key=lambda name: lines[name][-1][1])[-8:]
    plotted = [Series(name, lines[name]) for name in slowest]
    title = "The slowest queries, in process, CPU, p50"
    plot = Plot("scale-queries", title, "nodes", "ms", plotted, 100)
    note = f"CPU, in process, a store of {nodes:,} nodes"
    return Section("scale-queries", figures, [plot], note)


# Tags


def tags(scale: Scale) -> Section:
    figures = []
    lines: dict[str, list[tuple[float, float]]] = {}
    counted = ("SELECT tag, count(*) FROM tags GROUP BY tag",)
    for count in scale.sizes(*TAGS):
        path = tagged_store(scale.folder, count)
        home = scale.folder / "home"
        floor = repeated(partial(run_process, BARE, home))
        plain = timing.of_call(partial(ask, path, counted))
        for words in (("tags",), ("list",), ("list", "--format", "json")):
            ours = repeated(partial(run_process, [CTX, *words], home, path))
            name = f"ctx {' '.join(words)}"
            figures.append(
                Figure(f"`{name}`, a node with {count:,} tags, wall", seconds(ours.cost.wall),
                       f"{seconds(floor.cost.wall)} for an empty interpreter",
                       f"{seconds(plain.wall)} for counting in SQL", "",
                       "1 s" if count == 100_000 else "")
            )  # fmt: skip
            lines.setdefault(name, []).append((count, ours.cost.wall * 1000))
    plotted = [Series(name, points) for name, points in lines.items()]
    title = "A node with many tags, whole commands"
    plot = Plot("scale-tags", title, "tags", "ms", plotted, 1_000)
    return Section("scale-tags", figures, [plot])


# Spool


def spool(scale: Scale) -> Section:
    figures, ours, floors = [], [], []
    for events in scale.sizes(*EVENTS):
        with tempfile.TemporaryDirectory(dir=scale.folder) as space:
            measured = timing.alternate(1 if events > 1_000 else 3, drains(Path(space), events))
        speed, floor = events / measured.wall("ours"), events / measured.wall("floor")
        figures += [
            Figure(f"{events:,} events from the spool to steps, events a second, wall",
                   f"{speed:,.0f}", f"{floor:,.0f} for reading the files and inserting a row each",
                   "", "", "≥ 1,000"),
            Figure(f"{events:,} events from the spool to steps, events per CPU second",
                   f"{events / measured.cpu('ours'):,.0f}",
                   f"{events / measured.cpu('floor'):,.0f}"),
        ]  # fmt: skip
        ours.append((events, speed))
        floors.append((events, floor))
    lines = [Series("a round of the worker", ours), Series("one row for each file", floors)]
    plot = Plot("scale-spool", "Draining the spool", "events", "events a second", lines, 1_000)
    return Section("scale-spool", figures, [plot])


def drains(space: Path, count: int) -> dict[str, Callable[[], Cost]]:
    project = space / "shop"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    events = list(capture.working_session(project, random.Random(8), count))
    home = space / "home"

    def ours() -> Cost:
        filled = capture.filled(home, events)
        here = Environment(
            str(project), UserStore(filled), {}, (), CLI_SESSION, load_hosts=lambda: HOSTS
        )
        with open_memory(here, writing=True) as store:
            return timing.of_call(
                lambda: (worker_round.drain(store, filled), pipeline.take(store, filled))
            )

    def floor() -> Cost:
        filled = capture.filled(home, events)
        return timing.of_call(lambda: capture.one_row_each(filled))

    return {"ours": ours, "floor": floor}


SECTIONS: Mapping[str, Callable[[Scale], Section]] = {
    "import": import_,
    "commands": commands,
    "queries": queries,
    "tags": tags,
    "spool": spool,
}
