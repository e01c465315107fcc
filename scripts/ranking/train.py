"""Learn the weights of the signals that rank files, and what a lead of the first file means.

FOLDER holds the examples that `histories.py` made. With `--mirrors`, the missing ones are made
first, from the repositories in `repositories.txt`. Three in ten repositories are kept apart, chosen
by a checksum of their names; the weights are learned on the others. A weight is learned so that the
files of the answer are likely among all candidates (a softmax over the weighted sums). Then the
probability of the first file is calibrated on the same examples: how often was it right?

Issues differ from commit messages: a lead of the first file says less. `--answers` names answers to
issues (`bench localisation --results`, made with the weights in the source). Then the calibration
is the mean of both.

The script prints, on the repositories that were kept apart, how often all files of the answer are
among the first (strict Acc@k), for the baseline, for the signals without those of meaning and
names with their own weights, and for all signals; then what was said and what was right. It is
deterministic.

    python scripts/ranking/train.py FOLDER [--mirrors MIRRORS] [--jobs N] [--answers FILE]
        [--write] [--figures]

`--write` writes `src/ctx/packs/file_weights.py`, and `--figures` the tables of docs/benchmarks.md.
"""

import argparse
import json
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

import histories

from bench import paired, report
from ctx.packs.file_ranking import NEVER_SURE, RANKED
from ctx.packs.file_weights import CONFIDENCE

REPOSITORIES = Path(__file__).with_name("repositories.txt")
WRITTEN = Path(__file__).parents[2] / "src" / "ctx" / "packs" / "file_weights.py"
OLDER = ("text", "path", "names", "history", "mentioned", "recent")
KEPT_APART = 3
"""Of ten repositories."""
STEPS = 400
RATE = 0.1
NEVER = 1_000.0
"""Taken off the score of tests and documentation, which come last."""
BINS = 10
COMMAND = "python scripts/ranking/train.py FOLDER"

Floats = NDArray[numpy.float64]


class Examples(NamedTuple):
    names: list[str]
    values: Floats
    right: NDArray[numpy.bool_]
    beside: NDArray[numpy.bool_]
    starts: NDArray[numpy.int64]
    """The first row of each example, and the end."""
    about: list[dict[str, Any]]

    def chosen(self, which: Sequence[int]) -> "Examples":
        spans = [range(self.starts[at], self.starts[at + 1]) for at in which]
        rows = numpy.concatenate([numpy.arange(span.start, span.stop) for span in spans])
        starts = numpy.cumsum([0, *map(len, spans)])
        about = [self.about[at] for at in which]
        return Examples(
            self.names, self.values[rows], self.right[rows], self.beside[rows], starts, about
        )

    def scores(self, weights: Floats) -> Floats:
        found: Floats = self.values @ weights - NEVER * self.beside
        return found


def read_examples(folder: str) -> Examples:
    parts = [numpy.load(path) for path in sorted(Path(folder).glob("*.npz"))]
    counts = numpy.concatenate([part["counts"] for part in parts])
    return Examples(
        list(map(str, parts[0]["names"])),
        numpy.concatenate([part["values"] for part in parts]).astype(numpy.float64),
        numpy.concatenate([part["right"] for part in parts]),
        numpy.concatenate([part["beside"] for part in parts]),
        numpy.concatenate([[0], numpy.cumsum(counts)]),
        [each for part in parts for each in json.loads(str(part["about"]))],
    )


def is_kept_apart(repository: str) -> bool:
    return zlib.crc32(repository.encode()) % 10 >= 10 - KEPT_APART


def fit(examples: Examples, names: Sequence[str]) -> Floats:
    """The weights of some signals; 0 for the others.

    Each file of an answer competes with all files that are not in the answer.
    """
    used = numpy.array([name in names for name in examples.names])
    source = ~examples.beside
    numbers = numpy.repeat(numpy.arange(len(examples.about)), numpy.diff(examples.starts))[source]
    values, right = examples.values[source][:, used], examples.right[source]
    count = len(examples.about)
    share = 1 / numpy.maximum(numpy.bincount(numbers, right, count), 1)[numbers[right]]
    weights = numpy.zeros(int(used.sum()))
    mean, square = numpy.zeros_like(weights), numpy.zeros_like(weights)
    for step in range(1, STEPS + 1):
        scores = values @ weights
        highest = numpy.full(count, -numpy.inf)
        numpy.maximum.at(highest, numbers, scores)
        odds = numpy.exp(scores - highest[numbers])
        wrong = numpy.bincount(numbers, numpy.where(right, 0, odds), count)
        every = wrong[numbers[right]] + odds[right]
        slope = odds * numpy.bincount(numbers[right], share / every, count)[numbers]
        slope[right] = share * (odds[right] / every - 1)
        gradient = values.T @ slope / count
        # Adam.
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        corrected = mean / (1 - 0.9**step), square / (1 - 0.99**step)
        weights -= RATE * corrected[0] / (numpy.sqrt(corrected[1]) + 1e-9)
    found = numpy.zeros(len(examples.names))
    found[used] = weights
    return found


# The first file


def first_probability(examples: Examples, scores: Floats) -> tuple[Floats, Floats]:
    """For each example, the probability of the first file, and whether it is in the answer."""
    likely, correct = [], []
    for start, end in zip(examples.starts, examples.starts[1:], strict=False):
        own = scores[start:end]
        if not len(own):
            continue
        ranked = numpy.sort(own)[::-1][:RANKED]
        likely.append(1 / numpy.exp(ranked - ranked[0]).sum())
        correct.append(float(examples.right[start:end][own.argmax()]))
    return numpy.array(likely), numpy.array(correct)


def log_odds(probability: Floats) -> Floats:
    found: Floats = -numpy.log(numpy.maximum(1 / probability - 1, NEVER_SURE))
    return found


def calibrate(odds: Floats, correct: Floats) -> Floats:
    """A line through the log odds, by Newton's method."""
    rows = numpy.stack([numpy.ones_like(odds), odds], 1)
    line = numpy.zeros(2)
    for _ in range(30):
        said = 1 / (1 + numpy.exp(-rows @ line))
        curve = (rows * (said * (1 - said))[:, None]).T @ rows
        line += numpy.linalg.solve(curve, rows.T @ (correct - said))
    return line


def read_answers(path: str) -> tuple[Floats, Floats]:
    """For each answer of `bench localisation`, the log odds of the first file before they were
    calibrated, and whether it is in the change."""
    answers = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
    said = numpy.array([answer["confidence"] for answer in answers])
    correct = numpy.array([float(0 in answer["places"]["ours"]) for answer in answers])
    constant, factor = CONFIDENCE
    return (numpy.log(said / (1 - said)) - constant) / factor, correct


# Figures


def accuracies(examples: Examples, scores: Floats, first: int) -> list[float]:
    found = []
    for about, start, end in zip(
        examples.about, examples.starts, examples.starts[1:], strict=False
    ):
        order = numpy.argsort(-scores[start:end], kind="stable")[:first]
        found.append(float(examples.right[start:end][order].sum() == about["files"]))
    return found


def baseline(examples: Examples, first: int) -> list[float]:
    return [
        float(all(place is not None and place < first for place in about["baseline"]))
        for about in examples.about
    ]


def show_figures(examples: Examples, methods: dict[str, Floats]) -> None:
    several = [number for number, about in enumerate(examples.about) if about["files"] > 1]
    lines = []
    plain = baseline(examples, 5)
    rows = {"baseline": [baseline(examples, first) for first in (1, 5, 10)]}
    for name, scores in methods.items():
        rows[name] = [accuracies(examples, scores, first) for first in (1, 5, 10)]
    for name, columns in rows.items():
        gain = paired.gain(columns[1], plain)
        cells = [f"{100 * paired.mean(column):.1f}" for column in columns]
        of_several = [columns[1][number] for number in several]
        apart = paired.gain(of_several, [plain[number] for number in several])
        of_all = f"{100 * gain.mean:+.1f} ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
        more = f"{100 * apart.mean:+.1f} ({100 * apart.low:+.1f} to {100 * apart.high:+.1f})"
        lines.append([name, *cells, of_all, f"{100 * paired.mean(of_several):.1f}", more])
    heads = [f"{len(examples.about):,} commits of other repositories", "Acc@1", "Acc@5", "Acc@10"]
    heads += ["gain in Acc@5", "several files, Acc@5", "gain"]
    report.show_table(report.Table("ranking", heads, lines), COMMAND)


def show_calibration(said: Floats, correct: Floats) -> None:
    rows = []
    for low in range(0, 100, 100 // BINS):
        own = (100 * said >= low) & (100 * said < low + 100 // BINS)
        if own.any():
            right = f"{100 * correct[own].mean():.1f} %"
            rows.append([f"{low} to {low + 100 // BINS} %", right, f"{int(own.sum()):,}"])
    columns = ["said", "right", "commits of other repositories"]
    report.show_table(report.Table("ranking-confidence", columns, rows), COMMAND)


def written(weights: dict[str, float], sharpness: float, line: Floats) -> str:
    listed = "".join(f'    "{name}": {value:.3f},\n' for name, value in weights.items())
    return f'''"""The weights of the signals of files, written by `scripts/ranking/train.py`."""

WEIGHTS = {{
{listed}}}
"""The weight of the text is 1."""

SHARPNESS = {sharpness:.3f}
"""The probability of a file grows with the exponential of its score times this."""

CONFIDENCE = ({line[0]:.3f}, {line[1]:.3f})
"""The log odds that the first file is right: a constant, and the factor of the log odds that its
probability among the candidates gives."""
'''


def main() -> None:
    parser = argparse.ArgumentParser(prog="python scripts/ranking/train.py")
    parser.add_argument("folder")
    parser.add_argument("--mirrors", help="git directories to make missing examples from")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--answers", help="answers of `bench localisation` to calibrate on too")
    parser.add_argument("--write", action="store_true", help="write the weights into the source")
    parser.add_argument("--figures", action="store_true", help="write the tables of the page")
    options = parser.parse_args()
    if options.figures:
        report.start_writing()
    if options.mirrors:
        histories.write_all(options.mirrors, REPOSITORIES, options.folder, options.jobs)
    every = read_examples(options.folder)
    apart = [number for number, each in enumerate(every.about) if is_kept_apart(each["repository"])]
    others = sorted(set(range(len(every.about))) - set(apart))
    learned_on, kept_apart = every.chosen(others), every.chosen(apart)
    for name, part in (("learned on", learned_on), ("kept apart", kept_apart)):
        count = len({each["repository"] for each in part.about})
        print(f"{name}: {len(part.about):,} examples from {count} repositories")

    older, learned = fit(learned_on, OLDER), fit(learned_on, every.names)
    print()
    show_figures(
        kept_apart,
        {
            "without meaning and names": kept_apart.scores(older),
            "all signals": kept_apart.scores(learned),
            **{
                f"without {name}": kept_apart.scores(
                    fit(learned_on, [other for other in every.names if other != name])
                )
                for name in every.names
            },
        },
    )
    likely, correct = first_probability(learned_on, learned_on.scores(learned))
    line = calibrate(log_odds(likely), correct)
    if options.answers:
        line = (line + calibrate(*read_answers(options.answers))) / 2
    likely, correct = first_probability(kept_apart, kept_apart.scores(learned))
    said = 1 / (1 + numpy.exp(-(line[0] + line[1] * log_odds(likely))))
    show_calibration(said, correct)

    sharpness = float(learned[every.names.index("text")])
    weights = dict(zip(every.names, (learned / sharpness).tolist(), strict=True))
    print(f"\n{written(weights, sharpness, line)}", end="")
    if options.write:
        WRITTEN.write_text(written(weights, sharpness, line), encoding="utf-8")


if __name__ == "__main__":
    main()
