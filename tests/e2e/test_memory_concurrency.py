"""Many processes write to one store at once: nothing is lost, and no lock is reported."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from ctx.memory import user_store
from tests import effort
from tests.conftest import Ctx

WRITERS = 10
READERS = 2
ROUNDS = effort.times(6)
# Where it is reached, something hangs.
LONGEST_S = 600

# What a command answers goes to whoever started the process, a line for each.
WORKER = """
import io, json, sys
from contextlib import redirect_stdout
from ctx.cli.main import main

def ctx(*words):
    said = io.StringIO()
    with redirect_stdout(said):
        code = main([*words, "--format", "json"])
    assert code == 0, words
    return json.loads(said.getvalue())

def tell(*what):
    print(json.dumps(what), flush=True)

name, rounds = sys.argv[1], int(sys.argv[2])
"""

WRITER = """
before = None
for number in range(1, rounds + 1):
    words = ["--tag", f"by:{name}", f"Node {number} of {name}."]
    if before:
        words += ["--supersedes", before]
    node = ctx("add", "--type", "fact", *words)["node"]["id"]
    tell("added", node, before)
    if number % 3 == 0:
        ctx("update", node, "--content", f"Changed by {name}.")
        tell("updated", node)
    if number % 4 == 0:
        ctx("tag", shared, f"seen-by:{name}-{number}")
        tell("tagged", f"seen-by:{name}-{number}")
    if number % 5 == 0:
        ctx("delete", node, "--yes")
        tell("deleted", node)
        node = None
    before = node
"""

READER = """
for _ in range(rounds):
    found = ctx("list", "--limit", "5")
    assert len(found["nodes"]) <= 5
    found = ctx("query", "tag:by:w1")
    ctx("show", shared, "--with-edges", "--history")
    tell("read")
"""


def start(program: str, name: str, shared: str, rounds: int) -> "subprocess.Popen[str]":
    # Into a file: a pipe that nobody empties yet would make a writer wait.
    with Path(name).open("w") as out:
        return subprocess.Popen(
            [sys.executable, "-c", f"{WORKER}\nshared = {shared!r}\n{program}", name, str(rounds)],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        )


def test_many_writers_and_two_readers_lose_nothing(
    ctx: Ctx, folder: Path, surroundings: Path
) -> None:
    shared = ctx("add", "--type=fact", "Everybody's.", "--format", "json").json["node"]["id"]
    workers = [start(WRITER, f"w{number}", shared, ROUNDS) for number in range(WRITERS)]
    workers += [start(READER, f"r{number}", shared, ROUNDS) for number in range(READERS)]
    for worker in workers:
        _, err = worker.communicate(timeout=LONGEST_S)
        assert (worker.returncode, err) == (0, "")
    told: dict[str, list[list[str]]] = {}
    for file in folder.iterdir():
        for line in file.read_text().splitlines():
            what, *rest = json.loads(line)
            told.setdefault(what, []).append(rest)
    added = {row[0]: row[1] for row in told["added"]}
    assert len(added) == len(told["added"]), "an id was given twice"
    assert len(added) == WRITERS * ROUNDS
    assert len(told["read"]) == READERS * ROUNDS
    deleted = {node for (node,) in told["deleted"]}
    updated = {node for (node,) in told["updated"]}
    tagged = {tag for (tag,) in told["tagged"]}
    with closing(
        user_store.open_for_reading(str(surroundings / ".ctx" / "store.db"))
    ) as connection:
        rows = connection.execute("SELECT id, content, superseded_by FROM nodes").fetchall()
        nodes = {node: (content, later) for node, content, later in rows}
        tags = {row[0] for row in connection.execute("SELECT tag FROM tags")}
        records = connection.execute("SELECT count(*), count(DISTINCT stamp) FROM records")
        assert len(set(records.fetchone())) == 1, "a stamp was given twice"
    assert nodes.keys() == (added.keys() | {shared}) - deleted
    assert all(nodes[node][0].startswith("Changed") for node in updated - deleted)
    assert tagged <= tags
    for node, before in added.items():
        if before and node not in deleted:
            assert nodes[before][1] == node
    checked = ctx("store", "check")
    assert checked.code == 0, checked.out
