"""A benchmark wrote every figure of docs/benchmarks.md and of the README.

`bench/report.py` says how a benchmark writes a table and how the page shows it.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import report
from bench.plots import Plot, Series
from bench.report import COLUMNS, Measured, Table
from bench.timing import Figure

ROOT = Path(__file__).parent.parent
PAGE = report.PAGE.read_text()
NAMES = report.kept_names()
MACHINE = {
    "cores": "2",
    "architecture": "aarch64",
    "python": "CPython 3.11",
    "file system": "ext4",
    "load": "0.3",
}


def sources(command: str) -> list[Path]:
    """The files of the program that a command runs."""
    if script := re.match(r"python (scripts/\S+\.py)", command):
        return [ROOT / script[1]]
    found = re.match(r"python -m bench (\w+)", command)
    assert found, command
    name = found[1]
    # The parts of `bench scale` are modules of their own.
    modules = {ROOT / f"bench/{name}.py", *ROOT.glob(f"bench/{name}_*.py")}
    if name == "localisation":
        modules.add(ROOT / "bench/packs.py")
    return [*sorted(modules), *sorted(ROOT.glob(f"bench/{name}/*.py"))]


def named_in(path: Path) -> Iterator[str]:
    """Patterns of the texts in a module: `{…}` in a text stands for anything."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else None for part in node.values)
            yield "".join(".+" if part is None else re.escape(str(part)) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)


def is_named(name: str, paths: list[Path]) -> bool:
    patterns = (pattern for path in paths for pattern in named_in(path))
    # A pattern that is only `{…}` would match every name.
    return any(pattern != ".+" and re.fullmatch(pattern, name) for pattern in patterns)


def places() -> set[str]:
    return {name for found in report.PLACE.finditer(PAGE) for name in found["names"].split()}


# The page


def test_the_page_shows_what_the_files_have() -> None:
    assert report.filled(PAGE) == PAGE, "run: python -m bench report"


def test_no_table_with_figures_is_written_by_hand() -> None:
    rows = re.findall(r"^\|.*\d.*$", report.PLACE.sub("", PAGE), re.MULTILINE)
    assert rows == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_figures_is_on_the_page_and_named_by_the_program_that_writes_it(
    name: str,
) -> None:
    command = report.read(name).command
    paths = [path for path in sources(command) if path.exists()]
    assert name in places()
    assert is_named(name, paths), f"{command} does not write {name}"
    # A path of somebody's machine.
    assert not re.search(r"[ =]/", command), command


def test_a_place_names_a_table_that_a_benchmark_writes() -> None:
    every = sorted((ROOT / "bench").rglob("*.py"))
    waiting = places() - set(NAMES) - {report.MISSED}
    assert [name for name in sorted(waiting) if not is_named(name, every)] == []


def test_a_plot_is_one_that_a_benchmark_draws() -> None:
    every = sorted((ROOT / "bench").rglob("*.py"))
    drawn = sorted(path.stem for path in report.PLOTS.glob("*.svg"))
    assert sorted(re.findall(r"\(plots/([\w-]+)\.svg\)", PAGE)) == drawn
    assert [name for name in drawn if not is_named(name, every)] == []


UNIT = r"(?: (ms|s|%|[KMG]B)\b|)"


def figures_in(text: str, number: str) -> set[tuple[str, str]]:
    """The numbers in a text, each with its unit."""
    return {(found[1], found[2] or "") for found in re.finditer(f"({number}){UNIT}", text)}


def not_measured(repeated: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Figures that no table has in this unit. A table may give the unit in its title."""
    tables = [report.read(name).table for name in NAMES]
    cells = "\n".join(cell for table in tables for row in table.rows for cell in (*row, table.note))
    measured = figures_in(cells, r"\d[\d,]*(?:\.\d+)?")
    measured |= figures_in(cells, r"\d[\d,]*(?:\.\d+)? of [\d,]+")
    return sorted(figure for figure in repeated if not {figure, (figure[0], "")} & measured)


def test_the_figures_of_the_readme_were_measured() -> None:
    table = (ROOT / "README.md").read_text().partition("## Figures\n")[2].partition("\n## ")[0]
    figures = figures_in(table, r"\d[\d.,]*(?: of [\d,]+)?(?= (?:ms|s|%|\|))")
    assert len(figures) >= 5
    assert not_measured(figures) == []


def test_figures_that_other_pages_repeat_were_measured() -> None:
    """They are in paragraphs that link to a section of the benchmarks, or begin with *Measured*."""
    repeated = set()
    for page in sorted(report.DOCS.rglob("*.md")):
        if page != report.PAGE:
            for paragraph in re.split(r"\n\s*\n|\n- ", page.read_text()):
                if "benchmarks.md#" in paragraph or paragraph.startswith("**Measured"):
                    repeated |= figures_in(paragraph, r"\d[\d,]*\.\d+|\d[\d,]*(?= (?:ms|%))")
    assert len(repeated) >= 10
    assert not_measured(repeated) == []


# Limits


@pytest.mark.parametrize(
    ("figure", "is_missed"),
    [
        (Figure("a time", "49.9 ms", limit="50 ms"), False),
        (Figure("a time", "50.1 ms", limit="50 ms"), True),
        (Figure("another unit", "1.03 s", limit="900 ms"), True),
        (Figure("another unit", "1,030 ms", limit="3 s"), False),
        (Figure("a rate", "953", limit="≥ 1,000"), True),
        (Figure("a share", "80.0 % of 125", limit="≥ 75 %"), False),
        (Figure("a ratio", "2.0 s", ratio="1.51 ×", limit="1.5 ×"), True),
        (Figure("a difference", "26.6 ms", ratio="+11.7 ms", limit="+25 ms"), False),
        (Figure("faster than the floor", "26.6 ms", ratio="-11.7 ms", limit="+25 ms"), False),
        (Figure("a count", "1 of 12", limit="0"), True),
        (Figure("everything", "200 of 200", limit="all"), False),
        (Figure("not everything", "199 of 200", limit="all"), True),
        (Figure("nothing", "lost", limit="all"), True),
        (Figure("no limit", "7 days"), False),
    ],
)
def test_a_limit_is_compared_with_what_the_table_shows(figure: Figure, *, is_missed: bool) -> None:
    assert report.is_missed(COLUMNS, figure) is is_missed
    [row] = report.marked_rows(Table("name", COLUMNS, [figure]))
    assert row[-1].endswith(", missed") is is_missed


def test_a_limit_in_another_unit_is_an_error() -> None:
    with pytest.raises(ValueError, match="another unit"):
        report.is_missed(COLUMNS, Figure("a size", "12 MB", limit="50 ms"))


# Writing


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(report, "PLOTS", tmp_path / "plots")
    return tmp_path


def test_only_a_run_with_write_changes_the_figures(
    figures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [Figure("read a file", "12.0 ms", "1.0 ms", limit="10 ms")]
    plot = Plot("by-size", "Reading", "files", "ms", [Series("ctx", [(1, 2), (10, 20)])])
    monkeypatch.delenv(report.WRITES, raising=False)
    report.show("reading", lines, "a note")
    report.draw(plot)
    assert not (figures / "figures").exists()
    assert not (figures / "plots").exists()
    assert capsys.readouterr().out.splitlines() == [
        "operation        ctx   floor          limit",
        "read a file  12.0 ms  1.0 ms  10 ms, missed",
        "a note",
    ]

    monkeypatch.setenv(report.WRITES, "0.3")
    monkeypatch.setattr("sys.argv", ["bench/reading.py", "3"])
    report.show("reading", lines, "a note")
    report.draw(plot)
    written = json.loads((figures / "figures" / "reading.json").read_text())
    assert written["command"] == "python -m bench reading 3"
    assert written["machine"].keys() == MACHINE.keys()
    assert written["machine"]["load"] == "0.3"
    assert written["rows"] == [["read a file", "12.0 ms", "1.0 ms", "", "", "10 ms"]]
    assert (figures / "plots" / "by-size.svg").read_text().startswith("<svg")


def test_a_place_joins_tables_and_says_where_they_come_from(figures: Path) -> None:
    for name, row, note in (
        ("one", ["read", "1 ms", "", "", "", "2 ms"], "ten files"),
        ("two", ["write", "3 ms", "", "", "", "2 ms"], ""),
    ):
        table = Table(name, COLUMNS, [row], note)
        report.write(Measured(table, f"python -m bench {name}", "2026-11-17", MACHINE))
    empty = "before\n<!-- figures: one two later -->\n<!-- end -->\nafter\n"
    filled = report.filled(empty)
    assert filled == (
        "before\n<!-- figures: one two later -->\n\n"
        "| operation | ctx | limit |\n|---|---|---|\n"
        "| read | 1 ms | 2 ms |\n| write | 3 ms | 2 ms, missed |\n\n"
        "Measured by `python -m bench one` (ten files; load 0.3), `python -m bench two` (load 0.3)"
        " on 2026-11-17, 2 cores (aarch64), CPython 3.11, ext4.\n\n<!-- end -->\nafter\n"
    )
    assert report.filled(filled) == filled
    missed = report.filled("<!-- figures: missed -->\n<!-- end -->")
    assert "| write | 3 ms | 2 ms | `python -m bench two` |" in missed
    assert "| read |" not in missed
    later = report.filled("<!-- figures: later -->\n<!-- end -->")
    assert "Not measured yet." in later
