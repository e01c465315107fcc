"""What a pack contains, compared with what the real change of a task touched.

Recall: the share of the files and of the functions that the change touched which have a chunk in
the pack. A chunk counts for a function if it is the function itself, or an enclosing item that
shows how the function begins. A function is touched if one of its lines was deleted or a line was
inserted beside it. Functions are not counted if the commit of the change is unknown. A function is
shown whole if the chunks together show the text of all its lines.

Precision: the share of the first five chunks that are in a file that the change touched, or in a
file directly connected to one: an item of one imports or calls an item of the other, or a test of
it does, in either direction, with confidence medium or high.
"""

import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from bench import pack_lines, paired, report
from bench.checkouts import Checkout
from bench.pack_lines import Files
from ctx import clock
from ctx.code.lookup import Code
from ctx.code.vocabulary import CALLS, IMPORTS, KINDS, MEDIUM, SLOTS
from ctx.memory.graphs import Graphs
from ctx.packs import pack_pipeline
from ctx.packs.pack_pipeline import RetrievalConfig, Sources
from ctx.packs.prompt_pack import Chunk, PromptPack

BUDGETS = (2_000, 4_000, 8_000)
FIRST = 5
FUNCTIONS = tuple(KINDS.index(kind) for kind in ("function", "method"))

Lines = Mapping[str, Sequence[tuple[int, int]]]
"""For each path, the first and last line of each run."""


class Function(NamedTuple):
    path: str
    first_line: int
    last_line: int
    beginning: str
    """The text of its first line."""

    def is_in(self, chunk: Chunk) -> bool:
        """Whether a chunk is the function, or encloses it and shows how it begins."""
        if chunk.path != self.path or chunk.first_line is None or chunk.last_line is None:
            return False
        if self.first_line <= chunk.first_line and chunk.last_line <= self.last_line:
            return True
        is_around = chunk.first_line <= self.first_line <= chunk.last_line
        return is_around and self.beginning in chunk.snippet

    def is_whole_in(self, shown: Mapping[str, set[int]]) -> bool:
        """Whether all its lines are among the shown ones."""
        return shown.get(self.path, set()).issuperset(range(self.first_line, self.last_line + 1))


class Contents(NamedTuple):
    """How much of the change a pack of one size contains."""

    files: float
    """The share of the files."""
    functions: float | None
    """The share of the functions; None if the touched functions are unknown."""
    right: int
    """The first chunks that are in the right files."""
    connected: int
    """The same, including directly connected files."""
    first: int
    """The number of first chunks: five, or all."""
    tokens: int
    whole: float | None = None
    """The share of the functions that are shown whole."""


def of_task(
    task: str, gold: Sequence[str], changed: Lines | None, code: Code, root: str
) -> dict[str, Contents]:
    functions = None if changed is None else touched_functions(code, gold, changed, root)
    near = {*gold} | connected_files(code, gold)
    files = Files(root)
    return {
        str(budget): contents(build_pack(task, code, root, budget), gold, functions, near, files)
        for budget in BUDGETS
    }


def build_pack(task: str, code: Code, root: str, budget: int) -> PromptPack:
    """A pack without memory."""
    sources = Sources(Graphs(()), lambda _question, _limit: (), code, root)
    return pack_pipeline.build(task, sources, RetrievalConfig(budget), clock.now_ms())


def contents(
    pack: PromptPack,
    gold: Sequence[str],
    functions: Sequence[Function] | None,
    near: set[str],
    files: Files,
) -> Contents:
    chunks = pack.retrieved
    shown = pack_lines.shown_by_path(chunks, files)
    first = [chunk.path for chunk in chunks[:FIRST]]
    paths = {chunk.path for chunk in chunks}
    return Contents(
        paired.mean([float(path in paths) for path in gold]),
        share_of(functions, lambda each: any(map(each.is_in, chunks))),
        sum(path in gold for path in first),
        sum(path in near for path in first),
        len(first),
        pack.token_budget.used,
        share_of(functions, lambda each: each.is_whole_in(shown)),
    )


def changed_by(task_id: str, parent: str, checkout: Checkout) -> Lines | None:
    """The lines that the change touched, if the name of the task ends in its commit."""
    named = checkout.parent_of(task_id.rpartition("-")[2])
    return checkout.changed_lines(named[0]) if named and named[1] == parent else None


def touched_functions(code: Code, gold: Sequence[str], changed: Lines, root: str) -> list[Function]:
    """The innermost functions around the lines."""
    found: dict[Function, None] = {}
    for path in gold:
        rows = code.connection.execute(
            "SELECT line, end_line FROM items WHERE kind IN (?, ?) AND id >> ? ="
            " (SELECT id FROM files WHERE path = ?) ORDER BY line",
            (*FUNCTIONS, SLOTS, path),
        ).fetchall()
        if not rows or path not in changed:
            continue
        text = Path(root, path).read_bytes().decode("utf-8", "replace").split("\n")
        for first, last in changed[path]:
            around = [row for row in rows if row[0] <= last and first <= row[1]]
            if around:
                line, end = min(around, key=lambda row: row[1] - row[0])
                found.setdefault(Function(path, line, end, text[line - 1].strip()))
    return list(found)


def share_of(
    functions: Sequence[Function] | None, is_right: Callable[[Function], bool]
) -> float | None:
    return paired.mean([float(is_right(each)) for each in functions]) if functions else None


def connected_files(code: Code, gold: Sequence[str]) -> set[str]:
    """The files directly connected to these, in either direction."""
    rows = code.connection.execute(
        """
        WITH gold AS (SELECT id FROM files WHERE path IN (SELECT value FROM json_each(:gold))),
        near AS (
            SELECT target >> :slots AS id FROM gold JOIN edges
                ON source BETWEEN gold.id << :slots AND (gold.id + 1 << :slots) - 1
                WHERE label IN (:imports, :calls) AND confidence >= :sure
            UNION
            SELECT source >> :slots FROM gold JOIN edges
                ON target BETWEEN gold.id << :slots AND (gold.id + 1 << :slots) - 1
                WHERE label IN (:imports, :calls) AND confidence >= :sure
        )
        SELECT path FROM near JOIN files USING (id)
        """,
        {
            "gold": json.dumps(list(gold)),
            "slots": SLOTS,
            "imports": IMPORTS,
            "calls": CALLS,
            "sure": MEDIUM,
        },
    )
    return {path for (path,) in rows}


COLUMNS = (
    *("budget", "files", "functions", "shown whole", "first five in a modified file"),
    *("or connected", "tokens used", "tasks"),
)


def show_figures(
    answered: Iterable[tuple[str, Mapping[str, Contents] | None]], command: str, table: str
) -> None:
    """Recall of files and functions, the precision of the first chunks, the median of tokens."""
    rows = sorted((each for each in answered if each[1]), key=lambda each: each[0])
    rows_of: dict[str, list[list[str]]] = {}
    groups = [("all", rows)]
    groups += [(name, list(those)) for name, those in groupby(rows, key=lambda each: each[0])]
    for name, those in groups:
        for budget in BUDGETS:
            found = [
                Contents(*contents[str(budget)])
                for _, contents in those
                if contents and str(budget) in contents
            ]
            if not found:
                continue
            functions = [each.functions for each in found if each.functions is not None]
            whole = [each.whole for each in found if each.whole is not None]
            with_chunks = [each for each in found if each.first]
            right = paired.mean([each.right / each.first for each in with_chunks])
            near = paired.interval([each.connected / each.first for each in with_chunks])
            files = paired.mean([each.files for each in found])
            row = [
                f"{budget:,}",
                f"{100 * files:.1f}",
                f"{100 * paired.mean(functions):.1f}" if functions else "",
                f"{100 * paired.mean(whole):.1f}" if whole else "",
                f"{100 * right:.1f}",
                f"{100 * near.mean:.1f} ({100 * near.low:.1f} to {100 * near.high:.1f})",
                f"{statistics.median(each.tokens for each in found):,.0f}",
                f"{len(found)}, functions known in {len(functions)}",
            ]
            rows_of.setdefault(name, []).append(row)
    every, *sets = (report.Table(table, COLUMNS, lines, name) for name, lines in rows_of.items())
    for each in sets:
        report.print_table(each)
    report.show_table(every._replace(note=""), command)


MEASURES: Mapping[str, Callable[[Contents], float | None]] = {
    "files": lambda each: each.files,
    "functions": lambda each: each.functions,
    "functions shown whole": lambda each: each.whole,
    "first five in a modified file": lambda each: each.right / each.first if each.first else None,
    "or connected": lambda each: each.connected / each.first if each.first else None,
}


def differences(
    pairs: Sequence[tuple[Mapping[str, Contents] | None, Mapping[str, Contents] | None]],
) -> Iterator[list[str]]:
    """The packs of two runs on the same tasks as rows of a table."""
    for budget in map(str, BUDGETS):
        both = [
            (Contents(*before[budget]), Contents(*after[budget]))
            for before, after in pairs
            if before and after and budget in before and budget in after
        ]
        for name, measure in MEASURES.items():
            values = [(measure(before), measure(after)) for before, after in both]
            known = [(old, new) for old, new in values if old is not None and new is not None]
            if known:
                old, new = zip(*known, strict=True)
                yield [f"{int(budget):,}, {name}, {len(known)} tasks", *paired.row(old, new)]
