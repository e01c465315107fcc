"""The cost of vectors: loading the table, embedding a text, and finding the nearest of many.

The floor of loading is numpy, in its own process. The search over many rows is compared with the
plain product of a matrix and a vector, the lower bound for any search that looks at all rows.

    python -m bench vectors [ROWS]
"""

import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import numpy

from bench import report, timing
from ctx.search import embedders
from ctx.search.vectors import Vectors

if TYPE_CHECKING:
    from ctx.search.embedders import Matrix

SENTENCES = (
    "The login form sends the password twice when the connection is slow",
    "def refresh_token(session): return session.renew(expires=HOUR)",
    "We decided to keep the index beside the code, because a clone must not carry it.",
)
ROUNDS = 9


class Random(NamedTuple):
    """An embedder without cost, so that only the file is measured."""

    name: str = "random"
    version: str = "1"
    dimensions: int = 256

    def embed(self, texts: Sequence[str]) -> "Matrix":
        chance = numpy.random.default_rng(int(texts[0]))
        rows = chance.standard_normal((len(texts), self.dimensions), numpy.float32)
        unit: Matrix = rows / numpy.linalg.norm(rows, axis=1, keepdims=True)
        return unit


def loading() -> timing.Figure:
    numbers = [sys.executable, "-c", "import numpy"]
    ours = [sys.executable, "-c", "from ctx.search.embedders import default; default()"]
    rounds = timing.alternate(
        ROUNDS,
        {"ours": lambda: timing.of_child(ours), "numpy": lambda: timing.of_child(numbers)},
    )
    return timing.Figure(
        "a process with the table", timing.ms(rounds.cpu("ours")), timing.ms(rounds.cpu("numpy"))
    )


def embedding() -> list[timing.Figure]:
    long = " ".join(SENTENCES) * 1_000
    return [
        timing.Figure("one sentence", f"{_seconds_per_text(SENTENCES * 20) * 1000:.3f} ms"),
        timing.Figure(
            f"one text of {len(long) // 1000} kB", f"{_seconds_per_text([long]) * 1000:.3f} ms"
        ),
    ]


def _seconds_per_text(texts: Sequence[str]) -> float:
    table = embedders.default()
    times = [timing.of_call(lambda: table.embed(texts)).cpu for _ in range(ROUNDS)]
    return statistics.median(times) / len(texts)


def finding(count: int) -> list[timing.Figure]:
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vectors.db")
        with closing(Vectors(path)) as vectors:
            keys = [(str(number), str(number)) for number in range(count)]
            filled = timing.of_call(lambda: vectors.fill(Random(), keys, limit=count))
            figures.append(timing.Figure(f"filling {count:,} rows", timing.ms(filled.cpu)))
        size = os.path.getsize(path) / 1e6
        with closing(Vectors(path)) as vectors:
            first = timing.of_call(lambda: vectors.nearest(Random(), "7"))
            figures.append(timing.Figure(f"first query ({size:.0f} MB)", timing.ms(first.cpu)))
            rows = numpy.random.default_rng(0).standard_normal((count, 256), numpy.float32)
            rounds = timing.alternate(
                ROUNDS,
                {
                    "ours": lambda: timing.of_call(lambda: vectors.nearest(Random(), "7")),
                    "product": lambda: timing.of_call(lambda: rows @ rows[0]),
                },
            )
    ours, product = timing.ms(rounds.cpu("ours")), timing.ms(rounds.cpu("product"))
    return [*figures, timing.Figure("each further query", ours, product)]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    report.print_figures([loading(), *embedding(), *finding(count)])


if __name__ == "__main__":
    main()
