"""Tables of figures: printed, kept in docs/figures, and shown on docs/benchmarks.md.

A benchmark hands each table to `show`, which prints it. If the run was started with `--write`, it
also writes the table to docs/figures/NAME.json, with the command, the date and the machine.
`draw` does the same for a plot. docs/benchmarks.md has a place for each table:

    <!-- figures: hooks -->
    <!-- end -->

`python -m bench report` fills all places from the files, also that of the README (`figures:
readme`), and `--check` fails if a page shows something else. A place that names several tables
joins their rows, so they need the same columns. It also shows the plots of these names, and leaves
out what was not measured yet. `figures: missed` lists all limits that were missed.

A limit is compared with what the table shows: `50 ms` or `≥ 75 %` with the column *ctx*, `1.5 ×` or
`+25 ms` with the column *ratio* or *gain*, and `all` requires a figure such as `200 of 200`.
"""

import json
import os
import platform
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench import plots
from bench.plots import Plot
from bench.timing import Figure

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", DOCS / "benchmarks.md")
FIGURES = DOCS / "figures"
PLOTS = DOCS / "plots"
WRITES = "BENCH_WRITE"
"""The variable by which `--write` reaches the process of a benchmark. Its value is the load average
before the first benchmark: later ones would only see what the others caused."""
COLUMNS = ("operation", "ctx", "floor", "baseline", "ratio", "limit")
"""Those of a table of `Figure`s."""
MISSED = "missed"
README = "readme"
IN_README = [
    (
        "CPU time of the hook after a tool call",
        ("hooks", "`post-tool-use`: store an event", "ctx"),
        ("hooks", "`post-tool-use`: store an event", "floor", "an empty Python process"),
    ),
    (
        "time from the end of an agent's answer until search finds it",
        (
            "worker",
            "from the end of an agent's answer (Stop hook) until search finds it, wall",
            "ctx",
        ),
        None,
    ),
    (
        "`ctx query` in a repository of 10,005 source files",
        ("query", "`ctx query`, whole process, wall", "ctx"),
        ("query", "`ctx query`, whole process, wall", "baseline", "`git grep`"),
    ),
    (
        "share of 140 commits of which the first five results contain all changed files",
        ("localisation-history", "all, 140", "ctx"),
        ("localisation-history", "all, 140", "baseline", "BM25 with paths"),
    ),
    (
        "commands stopped at each file-system operation, without data loss",
        (
            "crash",
            (
                "commands stopped at every file-system operation, "
                "by a kill or a power cut: nothing lost"
            ),
            "ctx",
        ),
        None,
    ),
]
"""The rows of the README: what it says, a cell of a table, and one to compare it with."""


class Table(NamedTuple):
    """`name` is the name of its file, `note` says what the columns do not."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


class Measured(NamedTuple):
    """A table with its origin, as it is kept in a file."""

    table: Table
    command: str
    date: str
    machine: Mapping[str, str]


# In a benchmark


def start_writing() -> None:
    os.environ[WRITES] = f"{os.getloadavg()[0]:.1f}"


def show(name: str, figures: Iterable[Figure], note: str = "", command: str = "") -> None:
    show_table(Table(name, COLUMNS, list(figures), note), command)


def show_table(table: Table, command: str = "") -> None:
    """`command` replaces the command line, if that has paths of this machine."""
    print_table(table)
    if WRITES in os.environ:
        write(Measured(table, command or command_line(), today(), this_machine()))


def print_figures(figures: Iterable[Figure]) -> None:
    """Print what is too detailed for the page."""
    print_table(Table("", COLUMNS, list(figures)))


def print_table(table: Table) -> None:
    columns, rows = without_empty_columns(table.columns, marked_rows(table))
    lines = [columns, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        print("  ".join([name.ljust(widths[0]), *right]).rstrip())
    if table.note:
        print(table.note)
    sys.stdout.flush()


def draw(plot: Plot) -> None:
    if WRITES in os.environ:
        print(f"wrote {plots.write(plot, PLOTS)}", flush=True)


def command_line() -> str:
    module = Path(sys.argv[0])
    name = module.parent.name if module.stem == "__main__" else module.stem
    return shlex.join(["python", "-m", "bench", name, *sys.argv[1:]])


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def this_machine() -> dict[str, str]:
    return {
        "cores": str(os.cpu_count()),
        "architecture": platform.machine(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "file system": file_system(tempfile.gettempdir()),
        "load": os.environ[WRITES],
    }


def file_system(folder: str) -> str:
    """The type of the file system, where the kernel lists it."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return ""
    around = [
        (len(point), kind)
        for _, point, kind, *_ in mounts
        if os.path.commonpath([point, folder]) == point
    ]
    return max(around)[1] if around else ""


# Limits

_AMOUNT = re.compile(r"[≥≤ ]*([+-]?[\d.,]*\d)\s*(ms|s|KB|MB/s|MB|GB|%|×)?(?=\W|$)")
_UNITS = {"ms": (0.001, "s"), "KB": (0.001, "MB"), "GB": (1000.0, "MB")}


def is_missed(columns: Sequence[str], row: Sequence[str]) -> bool:
    cells = dict(zip(columns, row, strict=True))
    limit = cells.get("limit", "")
    if not limit:
        return False
    if limit == "all":
        part, _, whole = cells["ctx"].partition(" of ")
        return part != whole
    is_relative = limit.endswith("×") or "+" in limit
    figure = amount(cells.get("ratio") or cells.get("gain", "") if is_relative else cells["ctx"])
    most = amount(limit)
    if figure[1] != most[1]:
        raise ValueError(f"{cells} has a limit in another unit")
    return figure[0] < most[0] if limit.startswith("≥") else figure[0] > most[0]


def amount(cell: str) -> tuple[float, str]:
    """The first number of a cell and its unit."""
    found = _AMOUNT.match(cell)
    if not found:
        raise ValueError(f"{cell!r} is not a figure with a unit")
    number, unit = float(found[1].replace(",", "")), found[2] or ""
    factor, base = _UNITS.get(unit, (1.0, unit))
    return number * factor, base


def marked_rows(table: Table) -> list[list[str]]:
    """The rows, with limits that were missed marked as such."""
    rows = [list(row) for row in table.rows]
    for row in rows:
        if is_missed(table.columns, row):
            row[table.columns.index("limit")] += f", {MISSED}"
    return rows


# Files


def write(measured: Measured) -> None:
    FIGURES.mkdir(exist_ok=True)
    table = measured.table
    head = {
        "command": measured.command,
        "date": measured.date,
        "machine": measured.machine,
        "note": table.note,
        "columns": table.columns,
    }
    # One line for each row, so that a diff shows what changed.
    lines = [f' "{key}": {_json(value)},' for key, value in head.items()]
    rows = ",\n".join(f"  {_json(row)}" for row in table.rows)
    text = "\n".join(["{", *lines, ' "rows": [', rows, " ]", "}", ""])
    (FIGURES / f"{table.name}.json").write_text(text, encoding="utf-8")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def read(name: str) -> Measured:
    found = json.loads((FIGURES / f"{name}.json").read_text(encoding="utf-8"))
    table = Table(name, found["columns"], found["rows"], found["note"])
    return Measured(table, found["command"], found["date"], found["machine"])


def kept_names() -> list[str]:
    return sorted(path.stem for path in FIGURES.glob("*.json"))


# The page

PLACE = re.compile(r"<!-- figures: (?P<names>[\w -]+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(page: str) -> str:
    """The text of the page with the tables of the files in their places."""

    def place(found: re.Match[str]) -> str:
        names = found["names"].split()
        if names == [MISSED]:
            shown = missed_limits()
        elif names == [README]:
            shown = readme_table()
        else:
            measured = set(kept_names())
            shown = joined([read(name) for name in names if name in measured])
            drawn = [name for name in names if (PLOTS / f"{name}.svg").exists()]
            shown += "".join(f"\n\n![{name.replace('-', ' ')}](plots/{name}.svg)" for name in drawn)
        return f"<!-- figures: {found['names']} -->\n\n{shown}\n\n<!-- end -->"

    return PLACE.sub(place, page)


def joined(parts: Sequence[Measured]) -> str:
    """The rows of one or more tables, and below them their commands, dates and machines."""
    if not parts:
        return "Not measured yet."
    columns = parts[0].table.columns
    if any(list(part.table.columns) != list(columns) for part in parts):
        raise ValueError(f"{', '.join(part.table.name for part in parts)} have different columns")
    rows = [row for part in parts for row in marked_rows(part.table)]
    lines = markdown(*without_empty_columns(columns, rows))
    return "\n".join([*lines, "", *origins(parts)])


def origins(parts: Sequence[Measured]) -> Iterator[str]:
    """A sentence for each date and machine."""
    runs: dict[str, dict[str, list[str]]] = {}
    for part in parts:
        where = f"on {part.date}, {described(part.machine)}"
        notes = runs.setdefault(where, {}).setdefault(part.command, [])
        load = f"load {part.machine['load']}" if part.machine["load"] else ""
        notes += [note for note in (part.table.note, load) if note and note not in notes]
    for where, commands in runs.items():
        named = [
            f"`{command}`" + (f" ({'; '.join(notes)})" if notes else "")
            for command, notes in commands.items()
        ]
        yield f"Measured by {', '.join(named)} {where}."


def described(machine: Mapping[str, str]) -> str:
    processor = f"{machine['cores']} cores ({machine['architecture']})"
    return ", ".join(filter(None, (processor, machine["python"], machine["file system"])))


def missed_limits() -> str:
    rows = []
    for name in kept_names():
        kept = read(name)
        for row in kept.table.rows:
            if is_missed(kept.table.columns, row):
                cells = dict(zip(kept.table.columns, row, strict=True))
                head = kept.table.columns[0]
                about = row[0] if head in ("operation", "measure") else f"{head}: {row[0]}"
                change = cells.get("ratio") or cells.get("gain", "")
                rows.append([about, cells["ctx"], change, cells["limit"], f"`{kept.command}`"])
    if not rows:
        return "None."
    columns = ["operation", "ctx", "ratio or gain", "limit", "command"]
    return "\n".join(markdown(*without_empty_columns(columns, rows)))


def readme_table() -> str:
    rows = []
    for about, figure, other in IN_README:
        compared = f"{cell(*other[:3])} for {other[3]}" if other else ""
        rows.append([about, cell(*figure), compared])
    return "\n".join(markdown(["", "ctx", "for comparison"], rows))


def cell(name: str, row: str, column: str) -> str:
    """A figure with its unit; shares have theirs in the title of the table."""
    table = read(name).table
    [found] = [each for each in table.rows if each[0] == row]
    text = found[list(table.columns).index(column)].partition(" for ")[0]
    return f"{text} %" if re.fullmatch(r"\d+\.\d", text) else text


def without_empty_columns(
    columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    used = [place for place in range(len(columns)) if any(row[place] for row in rows) or not place]
    return [columns[place] for place in used], [[row[place] for place in used] for row in rows]


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def fill_pages() -> None:
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


def pages_that_differ() -> list[str]:
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    return [name for name, text in texts.items() if filled(text) != text]


if __name__ == "__main__":
    if "--check" not in sys.argv:
        fill_pages()
    elif different := pages_that_differ():
        raise SystemExit(f"{' and '.join(different)}: run `make docs` to show the kept figures.")
