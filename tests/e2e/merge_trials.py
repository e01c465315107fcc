"""Branches of one project with separate work, and what must hold after merging them.

A trial creates some branches from one base, runs random commands on each, and merges them in new
clones without settings, in several orders. git must always merge them without conflicts, and the
resulting memory must not depend on the order.
"""

import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from ctx.config.resolve import load
from ctx.layout import project_at
from ctx.project.given import EverythingGiven
from ctx.project.project_memory import ProjectMemory
from tests.e2e.trial_commands import Unsound, ctx
from tests.memory.graphs import TABLES

Tables = dict[str, list[tuple[Any, ...]]]

WORDS = (
    "cache retry schema auth token index build lint deploy queue worker parser branch hook"
    " latency budget memory"
).split()
TAGS = ("area:net", "area:disk", "tier:pinned", "tier:working", "tier:reference", "draft")
TYPES = ("fact", "decision", "pattern", "observation", "hypothesis", "open-question")
EDGES = ("DEPENDS_ON", "RELATES_TO", "CHILD_OF", "DERIVED_FROM")
# What is done on a branch, and how often.
WORK = {
    "add": 26, "edit": 16, "tag": 10, "untag": 4, "supersede": 6, "delete": 5, "note": 6,
    "task": 5, "decision": 5, "status": 5, "relate": 6, "compact": 4, "gc": 2,
}  # fmt: skip
MARKERS = (b"<<<<<<<", b"=======\n", b">>>>>>>")


def git(folder: Path, *words: str) -> str:
    """Plain git; the command must succeed."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unsound(f"git {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def graph(folder: Path) -> Tables:
    """Everything that a reader of the project can see, as tables."""
    project = project_at(str(folder))
    nowhere = str(folder / "no settings")
    config = load(nowhere, project.config_file, {}, ())
    memory = ProjectMemory(project, lambda: config, EverythingGiven(nowhere, project))
    with closing(memory):
        connection = memory.graph.connection
        return {
            table: connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3").fetchall()
            for table, columns in TABLES.items()
            if table != "pending"
        }


def make_base(folder: Path, *, attributes: bool) -> None:
    """A repository with some code and some memory, committed."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    ctx(folder, "init")
    if not attributes:
        # As forges merge, which do not heed what the file asks for.
        (folder / ".ctx/.gitattributes").unlink()
    (folder / "main.py").write_text("print('shop')\n")
    tags = ["--tag", "area:net", "--tag", "area:disk"]
    ctx(folder, "add", "task", "Ship the shop", "--body", "All of it.", *tags)
    ctx(folder, "add", "decision", "Use one queue", "--body", "It is simpler.", *tags)
    for number in range(8):
        words = ["add", "--type", TYPES[number % len(TYPES)], f"Base {number}.", "--tag", "draft"]
        ctx(folder, *words)
    ctx(folder, "commit", "-m", "Base")
    commit(folder, "Base")


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


class Branch:
    """The work of one person on a branch."""

    def __init__(self, folder: Path, name: str, chance: random.Random) -> None:
        self._folder = folder
        self._name = name
        self._chance = chance
        self.added: dict[str, str] = {}
        """The nodes that were added here, with their current content."""
        self.deleted: set[str] = set()
        listed = ctx(folder, "list", "--limit", "0")["nodes"]
        # What was there first is the most popular, so that branches meet.
        self._known = sorted(node["id"] for node in listed)

    def work(self, times: int) -> None:
        git(self._folder, "switch", "-q", "-c", self._name, "main")
        for number in range(times):
            [what] = self._chance.choices(list(WORK), list(WORK.values()))
            getattr(self, f"_{what}")(number)
        ctx(self._folder, "commit", "--auto")
        commit(self._folder, self._name)

    def _one(self, among: Sequence[str] | None = None) -> str:
        """An existing node, chosen by Zipf's law."""
        there = [each for each in (among or self._known) if each not in self.deleted]
        weights = [1 / (place + 1) for place in range(len(there))]
        [found] = self._chance.choices(there, weights)
        return found

    def _text(self, number: int) -> str:
        said = " ".join(self._chance.choices(WORDS, k=8))
        return f"{self._name} {number}: {said}."

    def _keep(self, node: dict[str, Any]) -> None:
        self.added[node["id"]] = node["content"]
        self._known.append(node["id"])

    def _add(self, number: int) -> None:
        words = ["add", "--type", self._chance.choice(TYPES), self._text(number)]
        if self._chance.random() < 0.3:
            words += ["--tag", self._chance.choice(TAGS)]
        self._keep(ctx(self._folder, *words)["node"])

    def _note(self, number: int) -> None:
        self._keep(ctx(self._folder, "add", "note", self._text(number))["node"])

    def _task(self, number: int) -> None:
        self._document("task", number)

    def _decision(self, number: int) -> None:
        self._document("decision", number)

    def _document(self, kind: str, number: int) -> None:
        # The same titles on many branches: their files must not meet.
        title = f"{self._chance.choice(WORDS)} {self._chance.choice(WORDS[:3])}"
        made = ctx(self._folder, "add", kind, title, "--body", self._text(number))
        self._keep(made["node"])

    def _edit(self, number: int) -> None:
        node_id = self._one()
        text = self._text(number)
        ctx(self._folder, "update", node_id, "--content", text)
        if node_id in self.added:
            self.added[node_id] = text

    def _tag(self, _: int) -> None:
        ctx(self._folder, "tag", self._one(), self._chance.choice(TAGS))

    def _untag(self, _: int) -> None:
        ctx(self._folder, "untag", self._one(), self._chance.choice(TAGS))

    def _supersede(self, number: int) -> None:
        self._add(number)
        new = self._known[-1]
        old = self._one(self._known[:-1])
        ctx(self._folder, "link", new, old, "--type", "SUPERSEDES")

    def _delete(self, _: int) -> None:
        if len(self._known) - len(self.deleted) > 3:
            node_id = self._one()
            ctx(self._folder, "delete", node_id, "--yes")
            self.deleted.add(node_id)

    def _status(self, _: int) -> None:
        listed = ctx(self._folder, "list", "--type", "task", "--limit", "0")["nodes"]
        if listed:
            node_id = self._chance.choice(sorted(node["id"] for node in listed))
            ctx(self._folder, "task", self._chance.choice(["start", "end"]), node_id)

    def _relate(self, _: int) -> None:
        one, other = self._one(), self._one()
        if one != other:
            ctx(self._folder, "relate", one, self._chance.choice(EDGES), other)
        else:
            ctx(self._folder, "relate", one, "MENTIONS", "main.py")

    def _compact(self, number: int) -> None:
        ctx(self._folder, "stage", "compact")
        if self._chance.random() < 0.5:
            commit(self._folder, f"{self._name} {number}")

    def _gc(self, _: int) -> None:
        ctx(self._folder, "gc", "--keep-days", "0")


class Tried(NamedTuple):
    branches: int
    operations: int
    nodes: int


def trial(base: Path, space: Path, seed: int) -> Tried:
    """Create branches with work and merge them; raise `Unsound` if a rule is violated."""
    chance = random.Random(seed)
    origin = space / "origin"
    shutil.copytree(base, origin, symlinks=True)
    ctx(origin, "trust", "--yes")
    branches = []
    operations = 0
    for number in range(chance.randint(2, 5)):
        git(origin, "switch", "-q", "main")
        times = chance.randint(1, 25)
        branches.append(Branch(origin, f"b{number}", chance))
        branches[-1].work(times)
        operations += times
    git(origin, "switch", "-q", "main")
    names = [f"b{number}" for number in range(len(branches))]
    first = merged(origin, space / "first", names)
    second = merged(origin, space / "second", chance.sample(names, len(names)))
    compare(first, second, "another order of merges gives another graph")
    keeps(first, branches)
    again(space / "first", names, first)
    joined(space / "second", second)
    return Tried(len(branches), operations, len(first["nodes"]))


def merged(origin: Path, clone: Path, names: Sequence[str]) -> Tables:
    """The graph of a clone into which branches were merged, one after another."""
    git(origin.parent, "clone", "-q", "--no-hardlinks", str(origin), str(clone))
    ctx(clone, "trust", "--yes")
    for name in names:
        git(clone, "merge", "-q", "--no-edit", f"origin/{name}")
        clean(clone, f"after the merge of {name}")
    for path in clone.rglob("*"):
        if path.is_file() and ".git" not in path.parts and path.suffix != "":
            text = path.read_bytes()
            if any(text.startswith(mark) or b"\n" + mark in text for mark in MARKERS):
                raise Unsound(f"There is a marker in {path}.")
    found = graph(clone)
    for words in (["list"], ["status"], ["log"], ["search", "retry"], ["review"]):
        ctx(clone, *words)
    clean(clone, "after reading")
    return found


def clean(folder: Path, when: str) -> None:
    if said := git(folder, "status", "--porcelain"):
        raise Unsound(f"{when}, git status says:\n{said}")


def keeps(there: Tables, branches: Sequence[Branch]) -> None:
    """Check that every added node exists with its last content, unless it was deleted."""
    deleted = set().union(*(branch.deleted for branch in branches))
    found = {row[0]: row[2] for row in there["nodes"]}
    for branch in branches:
        for node_id, content in branch.added.items():
            if node_id in deleted:
                continue
            if node_id not in found:
                raise Unsound(f"{node_id} was lost: {content}")
            if content not in found[node_id]:
                raise Unsound(f"{node_id} says {found[node_id]!r} instead of {content!r}.")
    for node_id in deleted & found.keys():
        raise Unsound(f"{node_id} was deleted, and is there.")


def again(clone: Path, names: Sequence[str], before: Tables) -> None:
    """Check that a second merge changes nothing."""
    head = git(clone, "rev-parse", "HEAD")
    for name in names:
        git(clone, "merge", "-q", "--no-edit", f"origin/{name}")
    if git(clone, "rev-parse", "HEAD") != head:
        raise Unsound("A second merge made a commit.")
    compare(before, graph(clone), "a second merge gives another graph")


def joined(clone: Path, before: Tables) -> None:
    """Check that the next commit joins the heads, and that it and a new index change nothing."""
    ctx(clone, "commit", "-m", "Join")
    compare(before, graph(clone), "joining the heads gives another graph")
    if len(project_heads(clone)) != 1:
        raise Unsound(f"There are {len(project_heads(clone))} heads after joining them.")
    shutil.rmtree(project_at(str(clone)).indexes)
    compare(before, graph(clone), "an index that is made anew gives another graph")


def project_heads(folder: Path) -> list[str]:
    return os.listdir(project_at(str(folder)).heads)


def compare(one: Tables, other: Tables, problem: str) -> None:
    for table, rows in one.items():
        if rows != other[table]:
            odd = set(map(repr, rows)) ^ set(map(repr, other[table]))
            raise Unsound(f"{problem}: {table}: " + "\n".join(sorted(odd)[:6]))
