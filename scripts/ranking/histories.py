"""Make examples for ranking from the histories of public repositories.

A commit is an example if it changes up to five source files that existed before, besides tests and
documentation, and if its message says what it is about. The text is the message without trailers
and numbers; the answer is the set of these files.

For each repository some commits on the main line are checked out, every `WIDTH` commits, and
indexed. The commits until the next one are the examples of that checkout, so the history that ctx
sees ends before them. For each example, the signals of all candidates are written as ctx computes
them (`file_ranking.signals`), together with the places of the answer in the baseline.

LIST names the folders of MIRRORS (git directories `owner+name/repo`), one in each line. The result
of each repository is one file in FOLDER; a repository that has one is skipped. The seed of the
selection is the name of the repository.

    python scripts/ranking/histories.py MIRRORS LIST FOLDER [--jobs N]
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench import baselines
from bench.checkouts import Checkout
from ctx import checkouts, clock
from ctx.code import file_roles
from ctx.code.lookup import Code
from ctx.code.vocabulary import LARGEST_FILE
from ctx.codebase import indexing
from ctx.codebase.indexing import Codebase
from ctx.layout import CodePlace
from ctx.packs import file_ranking, seeds
from ctx.packs.file_weights import WEIGHTS
from ctx.search import entities, question

CHECKOUTS = 4
WIDTH = 80
MOST_EXAMPLES = 60
"""Of one checkout."""
MOST_FILES = 5
MOST_TOUCHED = 20
FEWEST_WORDS = 3
LISTED = 100
"""The number of files in the ranking of the baseline."""
SUFFIXES = frozenset(
    ".rs .py .pyx .pyi .go .js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .java .c .h .cc .cpp .cxx .hh"
    " .hpp .rb .php .kt .kts .swift .cs .scala .lua .sh .bash".split()
)

_NUMBER = re.compile(r"\s*\((?:#|GH-|PR ?#?)\d+\)")
_TRAILER = re.compile(
    r"^(?:[a-z]+(?:-[a-z]+)+|cc|closes|fixes|resolves|refs?|see|bug|link|piperorigin-revid)\b"
    r"[ :#].*$",
    re.IGNORECASE | re.MULTILINE,
)
_SAYS_NOTHING = re.compile(
    r"(?:fix(?:ed)? (?:some )?typos?|typos?|style|format|lint|\[?docs?|rename|clean ?up|refactor"
    r"|chore|ci|tests?|adjust imports|remove unused|whitespace|merge|revert|bump|release|prepare"
    r"|version|update (?:changelog|dependenc\w*)|changelog|build\(deps|v?\d+\.\d+)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]{2,}")


class Example(NamedTuple):
    commit: str
    text: str
    files: tuple[str, ...]


class Signals(NamedTuple):
    """The signals of the candidates for one example."""

    values: "numpy.ndarray[tuple[int, int], numpy.dtype[numpy.float32]]"
    """A row for each candidate, a column for each signal in the order of `WEIGHTS`."""
    right: list[bool]
    beside: list[bool]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python scripts/ranking/histories.py")
    parser.add_argument("mirrors")
    parser.add_argument("list")
    parser.add_argument("folder")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    write_all(options.mirrors, options.list, options.folder, options.jobs)


def write_all(mirrors: str, listed: str | Path, folder: str, jobs: int) -> None:
    """Write the examples of the listed repositories that have none yet."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    names = Path(listed).read_text("utf-8").split()
    with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool:
        waiting = [
            pool.submit(write_examples, mirrors, name, folder)
            for name in names
            if not Path(folder, f"{name}.npz").exists()
        ]
        for future in waiting:
            print(future.result(), flush=True)


def write_examples(mirrors: str, name: str, folder: str) -> str:
    mirror = os.path.join(mirrors, name, "repo")
    rows: list[Signals] = []
    about: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="ctx-ranking-") as space:
        checkout = Checkout(mirror, f"{space}/tree")
        for base, examples in _examples_by_base(mirror, name):
            try:
                checkout.move_to(base)
            except subprocess.CalledProcessError:
                # The mirror lacks a part of this commit.
                continue
            for example, signals, places in _measured(checkout, space, examples):
                rows.append(signals)
                about.append(
                    {
                        "repository": name,
                        "commit": example.commit,
                        "files": len(example.files),
                        "baseline": places,
                    }
                )
    if rows:
        numpy.savez_compressed(
            Path(folder, f"{name}.npz"),
            names=numpy.array(list(WEIGHTS)),
            values=numpy.concatenate([row.values for row in rows]),
            right=numpy.concatenate([row.right for row in rows]),
            beside=numpy.concatenate([row.beside for row in rows]),
            counts=numpy.array([len(row.right) for row in rows]),
            about=numpy.array(json.dumps(about)),
        )
    return f"{name}: {len(rows)} examples"


def _examples_by_base(mirror: str, name: str) -> Iterator[tuple[str, list[Example]]]:
    line = _git(mirror, "rev-list", "--first-parent", f"-n{CHECKOUTS * WIDTH + 1}", "HEAD").split()
    line.reverse()
    chosen = random.Random(name)
    width = min(WIDTH, max(8, len(line) // CHECKOUTS))
    for place in range(0, max(1, len(line) - width), width):
        base, end = line[place], line[min(place + width, len(line) - 1)]
        examples = list(_examples(mirror, base, end))
        chosen.shuffle(examples)
        if examples:
            yield base, examples[:MOST_EXAMPLES]


def _examples(mirror: str, base: str, end: str) -> Iterator[Example]:
    existing = set(_git(mirror, "ls-tree", "-r", "--name-only", base).splitlines())
    listed = _git(
        mirror, "log", "--no-merges", "--reverse", "--no-renames", "--name-only",
        "--format=%x01%H%x00%B%x00", f"{base}..{end}",
    )  # fmt: skip
    for entry in listed.split("\x01")[1:]:
        commit, message, touched = entry.split("\0")
        paths = touched.split("\n")
        files = [
            path
            for path in paths
            if os.path.splitext(path)[1].lower() in SUFFIXES
            and file_roles.role_of(path) != file_roles.BESIDE
        ]
        text = _TRAILER.sub("", _NUMBER.sub("", message)).strip()
        first = text.partition("\n")[0]
        if (
            1 <= len(files) <= MOST_FILES
            and len(paths) <= MOST_TOUCHED
            and existing.issuperset(files)
            and not _SAYS_NOTHING.match(first)
            and len(_WORD.findall(first)) >= FEWEST_WORDS
        ):
            yield Example(commit, text, tuple(files))


def _measured(
    checkout: Checkout, space: str, examples: Sequence[Example]
) -> Iterator[tuple[Example, Signals, list[int | None]]]:
    place = CodePlace(
        checkout.root,
        checkouts.find_checkout(checkout.root),
        f"{space}/index/code.db",
        f"{space}/index/local",
    )
    codebase = Codebase(place, "", (), LARGEST_FILE)
    indexing.update(codebase, clock.no_tick)
    code = indexing.open_readable(codebase)
    assert code is not None
    sources = {
        path: hash
        for path, hash in checkout.files().items()
        if os.path.splitext(path)[1].lower() in SUFFIXES
    }
    ranker = baselines.Ranker(example.text for example in examples)
    with closing(code.connection):
        for example in examples:
            ranked = ranker.rank(example.text, sources, checkout.read)[baselines.CAREFUL][:LISTED]
            places = [ranked.index(path) if path in ranked else None for path in example.files]
            yield example, _signals(code, example), places


def _signals(code: Code, example: Example) -> Signals:
    named = seeds.in_code(code, entities.find(example.text))
    asked = question.read(example.text).without(seeds.project_words(code))
    found = file_ranking.signals(code.connection, asked, named.files, named.items)
    ids = sorted(set().union(*found.by_name.values()))
    paths = dict(code.connection.execute("SELECT id, path FROM files"))
    values = [[found.by_name[name].get(id, 0.0) for name in WEIGHTS] for id in ids]
    return Signals(
        numpy.array(values, numpy.float32).reshape(len(ids), len(WEIGHTS)),
        [paths.get(id) in example.files for id in ids],
        [id in found.beside and not asked.is_about_tests for id in ids],
    )


def _git(mirror: str, *words: str) -> str:
    command = ["git", "-c", "core.quotepath=off", "--git-dir", mirror, *words]
    environment = os.environ | {"GIT_NO_LAZY_FETCH": "1"}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    return done.stdout.decode("utf-8", "replace")


if __name__ == "__main__":
    main()
