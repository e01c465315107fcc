"""How the figures grow with the size of a store and of a repository.

The sections are in `bench/scale_memory.py` (nodes, tags, events) and `bench/scale_code.py` (files,
commits). Each of these modules has a mapping `SECTIONS` from the name of a section to a function
that takes a `Scale` and returns its `Section`: lines for the table, and plots.

    python -m bench scale [--most N] [--folder FOLDER] [--plots FOLDER] [--list] [SECTION ...]

`--most` is the largest size that is measured, `--folder` keeps the generated stores for the next
run, and `--plots` writes the SVG files of docs/benchmarks.md.
"""

import argparse
import importlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from bench import plots, timing
from bench.plots import Plot
from bench.timing import Figure

PARTS = ("bench.scale_memory", "bench.scale_code")
MOST = 1_000_000


class Scale(NamedTuple):
    """The largest size, and a folder for what the sections generate."""

    most: int
    folder: Path

    def sizes(self, *sizes: int) -> list[int]:
        """The sizes up to the largest; at least one of them."""
        return [size for size in sizes if size <= self.most] or [self.most]


class Section(NamedTuple):
    figures: Iterable[Figure]
    plots: Iterable[Plot] = ()


Sections = Mapping[str, Callable[[Scale], Section]]


def sections() -> dict[str, Callable[[Scale], Section]]:
    every: dict[str, Callable[[Scale], Section]] = {}
    for part in PARTS:
        if find_spec(part):
            every.update(importlib.import_module(part).SECTIONS)
    return every


def run(names: Iterable[str], scale: Scale, pictures: Path | None) -> None:
    every = sections()
    for name in names:
        print(f"\n{name}", flush=True)
        section = every[name](scale)
        timing.print_table(list(section.figures))
        for plot in section.plots:
            if pictures:
                print(f"wrote {plots.write(plot, pictures)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench scale")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="all, if none is named")
    parser.add_argument("--most", type=int, default=MOST, help="the largest size (%(default)s)")
    parser.add_argument("--folder", type=Path, help="keep the generated stores here")
    parser.add_argument("--plots", type=Path, help="write the plots to this folder")
    parser.add_argument("--list", action="store_true", help="list the sections and exit")
    options = parser.parse_args()
    every = sections()
    if options.list:
        print("\n".join(every))
        return 0
    unknown = set(options.sections) - set(every)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are: {', '.join(every)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        run(options.sections or list(every), Scale(options.most, folder), options.plots)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
