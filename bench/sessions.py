"""Is what memory gives worth its tokens? Labelled sessions of public repositories.

    python -m bench sessions KIT MIRRORS OUT [--json FILE] [--again FILE] [--next]

KIT is the folder of the measuring kit (`gold.py`, `next_session.py` and its gold labels), MIRRORS
the git directories of the labelled projects, OUT a folder for indexes and HOMEs. The kit imports
the transcripts up to each labelled moment, asks this ctx what a session would be given, and
compares that with the labels. It prints its baselines from the same run: final messages that fit
into the same tokens, and BM25 over old messages with the first prompt. The tables at the end show
our figures beside their limits, and what they are without each detector and each layer.

`--again` prints these tables for the results that an earlier run kept with `--json`.
`--next` also runs the measure without labels, which takes several times as long.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench import report, session_ablations
from bench.session_ablations import USER_KINDS

HERE = Path(__file__).parent


class Row(NamedTuple):
    name: str
    figure: str
    limit: str
    baseline: str = ""


def rows(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The figures that have a limit."""
    found = list(results)
    sessions = [each for result in found for each in result["sessions"]]
    starts = [each for result in found for each in result["starts"]]
    keep = [label for each in sessions for label in each["keep"]]
    said_by_user = [label for label in keep if label["kind"] in USER_KINDS]
    wrong = [label for each in sessions for label in each["must_not"]]
    needed = [label for each in starts for label in each["needed"]]
    wrong_given = [label for each in starts for label in each["must_not"]]
    made = [each["made"].get("observation", 0) for each in sessions]
    both = "context + first prompt"

    def given(labels: list[Mapping[str, Any]], system: str) -> int:
        return sum(label["by"][system] is not None for label in labels)

    def mean_tokens(system: str) -> str:
        return f"{sum(each['tokens'][system] for each in starts) / max(1, len(starts)):,.0f}"

    def kept(labels: list[Mapping[str, Any]]) -> str:
        return _share(sum(label["piece"] for label in labels), labels)

    others = [name for name in session_ablations.baselines(found) if not name.startswith("context")]
    baselines = "; ".join(f"{_share(given(needed, name), needed)}: {name}" for name in others)
    stored = sum(label["piece"] for label in wrong)
    return [
        Row("labelled items kept, each within one node", kept(keep), "≥ 75 %"),
        Row(
            "of these, corrections, preferences, constraints of users", kept(said_by_user), "≥ 80 %"
        ),
        Row("items stored that must not be stored", f"{stored} of {len(wrong)}", "3"),
        Row("observations per session, mean", f"{sum(made) / max(1, len(made)):.1f}", "15"),
        Row(
            "needed items in the context at the start",
            _share(given(needed, "context"), needed),
            "≥ 38 %",
        ),
        Row("tokens of this context, mean", mean_tokens("context"), "800"),
        Row(
            "needed items in the context and the hints of the first prompt",
            _share(given(needed, both), needed),
            "≥ 70 %",
            baselines,
        ),
        Row("tokens of both, mean", mean_tokens(both), "1,600"),
        Row(
            "items given that must not be given",
            f"{given(wrong_given, both)} of {len(wrong_given)}",
            "0",
        ),
    ]


def _share(count: int, of: list[Any]) -> str:
    return f"{100 * count / max(1, len(of)):.1f} % of {len(of)}"


def _run(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, *words], cwd=folder, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench sessions", description=__doc__)
    parser.add_argument("kit", type=Path)
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--json", type=Path, help="keep the kit's results there")
    parser.add_argument("--again", type=Path, help="read the kit's results from there")
    parser.add_argument("--next", action="store_true", help="also measure without labels")
    options = parser.parse_args()
    kit, mirrors, out = (each.resolve() for each in (options.kit, options.mirrors, options.out))
    if not (kit / "gold.py").is_file():
        print(f"There is no gold.py in {kit}: name the folder of the measuring kit.")
        return 2
    if options.again:
        results = json.loads(options.again.read_text())
    else:
        results = _measured(kit, mirrors, out, options)
    judge = session_ablations.Kit(kit)
    kept = session_ablations.kept_table(session_ablations.sessions(judge, results))
    given = session_ablations.given_table(session_ablations.starts(judge, results), results)
    print("", *kept, "", *given, "", sep="\n")
    shown = [[row.name, row.figure, row.baseline, row.limit] for row in rows(results)]
    columns = ["measure", "ctx", "baseline", "limit"]
    command = "python -m bench sessions KIT MIRRORS OUT"
    report.show_table(report.Table("sessions", columns, shown), command)
    return 0


def _measured(kit: Path, mirrors: Path, out: Path, options: argparse.Namespace) -> Any:
    """Run the kit; what it found."""
    out.mkdir(parents=True, exist_ok=True)
    command = str(Path(sys.executable).with_name("ctx"))
    with tempfile.TemporaryDirectory() as folder:
        result = (options.json or Path(folder, "gold.json")).resolve()
        _run(kit, "prepare.py", str(mirrors), str(out))
        arguments = (str(mirrors), str(out), str(kit / "gold"), "--ctx", command)
        recording = ("-m", "bench.session_evidence", str(kit), *arguments, "--json", str(result))
        _run(HERE.parent, *recording)
        if options.next:
            _run(kit, "next_session.py", str(mirrors), str(out), "--ctx", command)
        return json.loads(result.read_text())


if __name__ == "__main__":
    raise SystemExit(main())
