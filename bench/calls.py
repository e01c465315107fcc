"""How many calls in a repository the index resolves, and how often it is right.

Calls are sampled from all Python files in proportion to their number of calls. Only calls of a name
(`f()`, `a.b()`) count, because nothing else can have an edge. The reference is jedi, which
evaluates the code itself: it goes to the definition, through imports; if that is only a variable,
it infers the value. A call has its target in the repository if jedi names a function or a class
there. Then the index is queried for the same call. An edge is judged if jedi has an answer. It is
right if it points to what jedi names: the class or its `__init__`, one of several overloads, a stub
or what the stub describes.

Disagreements are listed with both answers, because jedi makes mistakes too.

    python -m bench calls [REPOSITORY [SAMPLES [SEED]]] [--index FILE] [--show N]

With `--index` the index is kept in that file. For languages without a reference tool:

    python -m bench calls REPOSITORY 100 1 --list rust

prints that many edges of high confidence, to check by hand.
"""

import argparse
import importlib.util
import os
import random
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from math import sqrt
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, NamedTuple

from bench import report
from bench.judge import Answer, Call, Definition, answers
from ctx import checkouts
from ctx.code import (
    build,
    code_tables,
    index_check,
    index_file,
    language,
    source_parser,
    vocabulary,
)
from ctx.code.resolve import python_rules
from ctx.code.resolve.evaluator import Evaluator
from ctx.code.resolve.world import World
from ctx.code.source_model import CALL, NameMention, SourceItem
from ctx.code.vocabulary import CALLS, CONFIDENCES, HIGH, KINDS, SLOTS

if TYPE_CHECKING:
    from tree_sitter import Node

HERE = Path(__file__).parent.parent
SAMPLES, SEED, SHOWN = 600, 1, 25
NAMED_CALLS = "(call function: [(identifier) (attribute)] @call)"


# Calls


def named_calls(content: bytes) -> "list[Node]":
    """The called expressions without arguments, in file order."""
    from tree_sitter import Parser, Query, QueryCursor

    grammar = language.load("python").grammar
    tree = Parser(grammar).parse(content)
    found = QueryCursor(Query(grammar, NAMED_CALLS)).captures(tree.root_node)
    return sorted(found.get("call", ()), key=lambda node: (node.start_byte, node.end_byte))


def sampled(root: str, paths: Sequence[str], samples: int, rng: random.Random) -> Iterator[Call]:
    """A sample of all calls in these files."""
    ends = list(accumulate(len(named_calls(Path(root, path).read_bytes())) for path in paths))
    total = ends[-1] if ends else 0
    print(f"{total:,} calls by name in {len(paths):,} Python files", flush=True)
    drawn: dict[int, list[int]] = {}
    for number in rng.sample(range(total), min(samples, total)):
        place = bisect_right(ends, number)
        drawn.setdefault(place, []).append(number - (ends[place - 1] if place else 0))
    for place, numbers in sorted(drawn.items()):
        content = Path(root, paths[place]).read_bytes()
        nodes = named_calls(content)
        items = source_parser.parse(paths[place], content, "python").items
        for number in numbers:
            yield call_at(paths[place], content, nodes[number], items)


def call_at(path: str, content: bytes, node: "Node", items: Sequence[SourceItem]) -> Call:
    name = node.child_by_field_name("attribute") or node
    row, begin = name.start_point
    start = name.start_byte - begin
    column = len(content[start : name.start_byte].decode("utf-8", "replace"))
    text = content[node.start_byte : node.end_byte]
    scope = max(
        place
        for place, item in enumerate(items)
        if not place or item.start <= node.start_byte < item.end
    )
    expression = language.load("python").language.expression(text) or "?"
    line = node.start_point[0] + 1
    said = " ".join(text.decode("utf-8", "replace").split())
    return Call(path, row + 1, column, said[-70:], NameMention(scope, CALL, expression, line, 1))


# Answers of the index


class Target(NamedTuple):
    """An item of the index."""

    id: int
    kind: str
    path: str
    names: tuple[str, ...]
    """From the file inward."""
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {'.'.join(self.names)}"


class Claim(NamedTuple):
    """An edge."""

    target: Target
    confidence: int


class Index:
    """The index of a repository, queried for single calls."""

    def __init__(self, connection: Connection, root: str) -> None:
        self.connection = connection
        self.root = root
        world = World(connection, root)
        self._world = world
        self._evaluator = Evaluator(world, python_rules.RULES)

    @cached_property
    def paths(self) -> list[str]:
        """The Python files in the index."""
        rows = self.connection.execute(
            "SELECT path FROM files WHERE language = 'python' AND skipped IS NULL ORDER BY path"
        )
        return [path for (path,) in rows]

    def claims(self, call: Call) -> list[Claim]:
        """The targets of this call."""
        file = self._world.at(call.path)
        assert file is not None
        found = self._evaluator.resolve(file, (call.mention,)).edges
        return [
            Claim(self.target(target), confidence)
            for (source, label, target), (confidence, *_) in found.items()
            if label == CALLS and self._is_kept(source, target)
        ]

    def _is_kept(self, source: int, target: int) -> bool:
        row = self.connection.execute(
            "SELECT 1 FROM edges WHERE source = ? AND label = ? AND target = ?",
            (source, CALLS, target),
        ).fetchone()
        if row is None:
            print(f"not in the index: {self.target(source)} → {self.target(target)}")
        return row is not None

    def caller(self, call: Call) -> Target:
        return self.target(vocabulary.item_id(self._world.ids[call.path], call.mention.scope))

    def target(self, item: int) -> Target:
        names: list[str] = []
        place: int | None = item
        kind, line = 0, 0
        while place is not None:
            parent, its_kind, name, its_line = self.connection.execute(
                "SELECT parent, kind, name, line FROM items WHERE id = ?", (place,)
            ).fetchone()
            if place == item:
                kind, line = its_kind, its_line
            if parent is not None:
                names.insert(0, name)
            place = parent
        return Target(item, KINDS[kind], self._world.path(item >> SLOTS), tuple(names), line)

    def defined(self, definition: Definition) -> Target | None:
        """The item that jedi means: the innermost one with this name and line."""
        path, line, names, kind = definition
        number = self._world.ids.get(path or "")
        if number is None:
            return None
        rows = self.connection.execute(
            "SELECT id FROM items WHERE id BETWEEN ? AND ? AND name = ? AND parent IS NOT NULL"
            " AND (? = 0 OR ? BETWEEN line AND end_line) ORDER BY start DESC",
            (*file_range(number), names[-1], line, line),
        )
        found = [self.target(item) for (item,) in rows]
        if line:
            # A target that jedi names and the index lacks is still a target.
            return found[0] if found else Target(0, kind, path or "", names, line)
        return next((each for each in found if each.names == names), None)


def file_range(file_id: int) -> tuple[int, int]:
    return vocabulary.item_id(file_id, 0), vocabulary.item_id(file_id, code_tables.LARGEST_SLOT)


# Comparison


class Judged(NamedTuple):
    """A call with the answers of both sides."""

    call: Call
    answer: Answer
    claims: list[Claim]
    targets: list[Target]
    """The functions and classes in the repository that jedi names as targets."""
    also: list[Target]
    """Variables and properties with that name. An edge to one is no mistake."""

    def is_right(self, claim: Claim) -> bool:
        return any(is_same(claim.target, each) for each in (*self.targets, *self.also))

    def is_judged(self, claim: Claim) -> bool:
        return bool(self.answer.called) or self.is_right(claim)

    @property
    def is_found(self) -> bool:
        return any(map(self.is_right, self.claims))


def judged(index: Index, call: Call, answer: Answer) -> Judged:
    # If jedi knows only a stub that differs from the file, its answer is unknown.
    called = [each for each in answer.called if each.line or not each.path or index.defined(each)]
    also = [each for each in answer.named if each not in answer.called]
    targets, variables = (
        [found for each in definitions if (found := index.defined(each))]
        for definitions in (called, also)
    )
    answer = answer._replace(called=tuple(called))
    return Judged(call, answer, index.claims(call), targets, variables)


def is_same(ours: Target, theirs: Target) -> bool:
    if ours.path.removesuffix("i") != theirs.path.removesuffix("i"):
        return False
    return plain(ours) == plain(theirs)


def plain(target: Target) -> tuple[str, ...]:
    """A constructor counts as its class."""
    return target.names[:-1] if target.names[-1:] in (("__init__",), ("__new__",)) else target.names


def compare(index: Index, samples: int, seed: int, shown: int) -> None:
    calls = list(sampled(index.root, index.paths, samples, random.Random(seed)))
    results: list[Judged] = []
    broken: Counter[str] = Counter()
    of_itself = 0
    with tempfile.TemporaryDirectory() as cache:
        for call, future in answers(calls, index.root, cache):
            failure = future.exception()
            if failure:
                broken[type(failure).__name__] += 1
                continue
            result = judged(index, call, future.result())
            caller = index.caller(call)
            if any(is_same(caller, each) for each in result.targets):
                # The index leaves out recursive calls: they connect nothing.
                of_itself += 1
                continue
            results.append(result)
    print(f"\r{len(calls)} sampled, {of_itself} of them recursive; jedi failed: {dict(broken)}")
    if not results:
        raise SystemExit(f"jedi judged no call in {index.root}.")
    print_figures(results)
    print_differences(results, shown)
    show_figures(os.path.basename(index.root), results, f"{samples} {seed}")


def print_figures(results: list[Judged]) -> None:
    inside = [each for each in results if each.targets]
    known = sum(bool(each.answer.called) for each in results)
    edge = sum(bool(each.claims) for each in inside)
    found = sum(each.is_found for each in inside)
    print(
        f"target in the repository: {len(inside)}; outside: {known - len(inside)};"
        f" unknown to jedi: {len(results) - known}"
    )
    print("of those in the repository")
    print(f"  with an edge        {share(edge, len(inside))}   limit ≥ 60 %")
    print(f"  with a right edge   {share(found, len(inside))}")
    print("right, of the judged edges")
    for confidence in reversed(range(len(CONFIDENCES))):
        claims = [(r, claim) for r in results for claim in r.claims]
        claims = [(r, claim) for r, claim in claims if claim.confidence == confidence]
        right = [r.is_right(claim) for r, claim in claims if r.is_judged(claim)]
        limit = "   limit ≥ 90 %" if confidence == HIGH else ""
        unknown = f"; {len(claims) - len(right)} more that jedi cannot judge"
        print(f"  {CONFIDENCES[confidence]:18}  {share(sum(right), len(right))}{unknown}{limit}")


def show_figures(repository: str, results: list[Judged], sample: str) -> None:
    inside = [each for each in results if each.targets]
    edges = sum(bool(each.claims) for each in inside)
    judged_edges = [
        result.is_right(claim)
        for result in results
        for claim in result.claims
        if claim.confidence == HIGH and result.is_judged(claim)
    ]
    checked = len(judged_edges)
    columns = ["Python repository", "high edges checked", "precision", "recall"]
    row = [
        repository,
        f"{checked} of {len(results)} calls",
        f"{100 * sum(judged_edges) / max(1, checked):.1f} %",
        f"{100 * edges / max(1, len(inside)):.1f} %",
    ]
    command = f"python -m bench calls REPOSITORY {sample}"
    report.show_table(report.Table(f"calls-{repository}", columns, [row]), command)


def share(part: int, whole: int) -> str:
    """A share with its 95 % Wilson interval."""
    if not whole:
        return "none"
    p, z = part / whole, 1.96
    middle = (p + z * z / (2 * whole)) / (1 + z * z / whole)
    reach = z * sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole)) / (1 + z * z / whole)
    low, high = (f"{100 * bound:.1f}" for bound in (middle - reach, middle + reach))
    return f"{part:4} of {whole:4} = {100 * p:5.1f} % ({low} to {high})"


def print_differences(results: list[Judged], shown: int) -> None:
    wrong = [
        (result, claim)
        for result in results
        for claim in result.claims
        if result.is_judged(claim) and not result.is_right(claim)
    ]
    for confidence in reversed(range(len(CONFIDENCES))):
        here = [(r, c) for r, c in wrong if c.confidence == confidence]
        print(f"\ndifferent, {CONFIDENCES[confidence]}: {len(here)}")
        for result, claim in here[:shown]:
            print(f"{place(result.call)}\n    ours {claim.target}")
            print(f"    jedi {'; '.join(map(str, result.answer.called[:3]))}")
    missed = [each for each in results if each.targets and not each.claims]
    print(f"\nwithout an edge: {len(missed)}")
    for result in missed[:shown]:
        print(f"{place(result.call)}\n    jedi {'; '.join(map(str, result.targets[:3]))}")


def place(call: Call) -> str:
    return f"{call.path}:{call.line} {call.text}()"


# Checking by hand


def list_edges(index: Index, name: str, count: int, seed: int) -> None:
    ids = [
        row[0]
        for row in index.connection.execute(
            "SELECT id FROM files WHERE language = ? AND skipped IS NULL", (name,)
        )
    ]
    edges = [
        edge
        for file_id in ids
        for edge in index.connection.execute(
            "SELECT source, target, line FROM edges WHERE source BETWEEN ? AND ?"
            " AND label = ? AND confidence = ?",
            (*file_range(file_id), CALLS, HIGH),
        )
    ]
    print(f"{len(edges):,} calls of high confidence in {len(ids):,} files of {name}")
    for source, target, line in random.Random(seed).sample(edges, min(count, len(edges))):
        caller, called = index.target(source), index.target(target)
        lines = Path(index.root, caller.path).read_bytes().splitlines()
        text = lines[line - 1].decode("utf-8", "replace").strip() if line <= len(lines) else ""
        print(f"{caller.path}:{line} {'.'.join(caller.names)} → {called}\n    {text[:120]}")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench calls")
    parser.add_argument("repository", nargs="?", default=str(HERE))
    parser.add_argument("samples", nargs="?", type=int, default=SAMPLES)
    parser.add_argument("seed", nargs="?", type=int, default=SEED)
    parser.add_argument("--index", metavar="FILE", help="keep the index there")
    parser.add_argument("--list", metavar="LANGUAGE", help="print edges instead")
    parser.add_argument(
        "--show", type=int, default=SHOWN, metavar="N", help="differences to list for each kind"
    )
    return parser.parse_args()


def main() -> None:
    chosen = options()
    if not chosen.list and importlib.util.find_spec("jedi") is None:
        print("jedi is not installed, so there is no reference.")
        return
    root = os.path.realpath(chosen.repository)
    with tempfile.TemporaryDirectory() as space:
        database = os.path.abspath(chosen.index or os.path.join(space, "code.db"))
        build.refresh(index_check.SourceTree(root, checkouts.find_checkout(root), database))
        connection = index_file.open_for_reading(database)
        assert connection is not None
        index = Index(connection, root)
        if chosen.list:
            list_edges(index, chosen.list, chosen.samples, chosen.seed)
        else:
            compare(index, chosen.samples, chosen.seed, chosen.show)
        connection.close()


if __name__ == "__main__":
    main()
