"""How the figures grow with the size of a store and of a repository.

The sections are in `bench/scale_memory.py` (nodes, tags, events) and `bench/scale_code.py` (files,
commits). Each of these modules has a mapping `SECTIONS` from the name of a section to a function
that takes a `Scale` and returns its `Section`: a table and plots.

    python -m bench scale [--most N] [--folder FOLDER] [--list] [SECTION ...]

`--most` is the largest size that is measured, and `--folder` keeps the generated stores for the
next run.
"""

import argparse
import importlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from bench import report
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
    """`name` is the name of the table's file; `note` says what its rows do not."""

    name: str
    figures: Iterable[Figure]
    plots: Iterable[Plot] = ()
    note: str = ""


Sections = Mapping[str, Callable[[Scale], Section]]


def sections() -> dict[str, Callable[[Scale], Section]]:
    every: dict[str, Callable[[Scale], Section]] = {}
    for part in PARTS:
        if find_spec(part):
            every.update(importlib.import_module(part).SECTIONS)
    return every


def run(names: Iterable[str], scale: Scale, command: str) -> None:
    every = sections()
    for name in names:
        print(f"\n{name}", flush=True)
        section = every[name](scale)
        report.show(section.name, section.figures, section.note, f"{command} {name}")
        for plot in section.plots:
            report.draw(plot)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench scale")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="all, if none is named")
    parser.add_argument("--most", type=int, default=MOST, help="the largest size (%(default)s)")
    parser.add_argument("--folder", type=Path, help="keep the generated stores here")
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
        cut = "" if options.most == MOST else f" --most {options.most}"
        command = f"python -m bench scale{cut}"
        run(options.sections or list(every), Scale(options.most, folder), command)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
