"""How many of the functions that a change touched are in the pack for its commit message.

For each repository, one commit that lies some way before HEAD is checked out and indexed once, and
the index is kept. The commits after it are the tasks: the text is the message without trailers, the
answer is the set of functions in the indexed files that the commit changed. A commit is a task if
its message has a few words, and if it changes a few source files, no tests counted, and at least
one function that exists in the index. Which commits are tasks depends only on the repositories.

LIST names the folders of MIRRORS (git directories `owner+name/repo`), one in each line. Odd lines
are the half to choose on, even lines are the half to check on. None of them is part of an
evaluation set. The weights in `item_ranking` were fitted on the first half, but some of the
constants were chosen with both halves in view, so the second half is not untouched.

    python scripts/ranking/functions.py MIRRORS LIST SPACE [--half choosing|checking]
        [--results FILE] [--against FILE]

SPACE keeps working trees and indexes. `--against` compares with the results of an earlier run.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench import packs, paired
from bench.checkouts import Checkout
from bench.pack_lines import Files
from bench.packs import Contents, Function, Lines
from ctx import checkouts, clock
from ctx.code import file_roles
from ctx.code.lookup import Code
from ctx.code.vocabulary import LARGEST_FILE, SLOTS
from ctx.codebase import indexing
from ctx.codebase.indexing import Codebase
from ctx.layout import CodePlace

BUDGETS = (2_000, 8_000, 16_000)
BEFORE_HEAD = 60
"""The number of commits between the indexed one and HEAD, without merges."""
MOST_TASKS = 16
MOST_FILES = 8
FEWEST_WORDS = 4

_TRAILER = re.compile(
    r"^(?:[A-Z][a-z]+(?:-[A-Za-z]+)+: .*|\(cherry picked .*|Change-Id: .*|git-svn-id: .*)$",
    re.MULTILINE,
)
_NUMBER = re.compile(r"\s*\((?:#|GH-|PR ?#?)\d+\)")
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


class Task(NamedTuple):
    commit: str
    text: str
    files: tuple[str, ...]
    functions: tuple[Function, ...]


class Repository:
    """A repository at the indexed commit."""

    def __init__(self, mirror: Path, space: Path) -> None:
        self.mirror = mirror
        self.root = str(space / "tree")
        every = self._git("rev-list", "--no-merges", f"--max-count={BEFORE_HEAD + 1}", "HEAD")
        self.base = every.split()[-1]
        is_new = not Path(space, "done").exists()
        if is_new:
            space.mkdir(parents=True, exist_ok=True)
            Checkout(str(mirror), self.root).move_to(self.base)
        place = CodePlace(
            self.root, checkouts.find_checkout(self.root), f"{space}/code.db", f"{space}/local"
        )
        codebase = Codebase(place, "", (), LARGEST_FILE)
        if is_new:
            indexing.update(codebase, clock.no_tick)
            Path(space, "done").touch()
        code = indexing.open_readable(codebase)
        assert code is not None
        self.code: Code = code
        listed = code.connection.execute(
            "SELECT path FROM files WHERE id IN (SELECT id >> ? FROM items WHERE kind IN (?, ?))",
            (SLOTS, *packs.FUNCTIONS),
        )
        self._sources = {
            path for (path,) in listed if file_roles.role_of(path) != file_roles.BESIDE
        }

    def tasks(self) -> Iterator[Task]:
        listed = self._git("rev-list", "--no-merges", "--reverse", f"{self.base}..HEAD")
        found = (task for commit in listed.split() if (task := self._task(commit)))
        for task, _ in zip(found, range(MOST_TASKS), strict=False):
            yield task

    def _task(self, commit: str) -> Task | None:
        text = _message(self._git("show", "-s", "--format=%B", commit))
        if len(text.split()) < FEWEST_WORDS:
            return None
        changed = self._changed_lines(commit)
        files = [path for path in changed if path in self._sources]
        if not 1 <= len(files) <= MOST_FILES:
            return None
        functions = packs.touched_functions(self.code, files, changed, self.root)
        return Task(commit, text, tuple(files), tuple(functions)) if functions else None

    def _changed_lines(self, commit: str) -> Lines:
        """The lines that a commit changed, numbered as in the indexed commit."""
        by_path: dict[str, list[tuple[int, int]]] = {}
        for path, hunks in self._hunks(f"{commit}^", commit):
            earlier = dict(self._hunks(self.base, f"{commit}^", path)).get(path, [])
            by_path[path] = [
                (_line_before(first, earlier), _line_before(first + max(1, count) - 1, earlier))
                for first, count, _, _ in hunks
            ]
        return by_path

    def _hunks(
        self, old: str, new: str, *paths: str
    ) -> Iterator[tuple[str, list[tuple[int, ...]]]]:
        words = ("diff", "--no-renames", "--no-color", "-U0", "--diff-filter=M", old, new, "--")
        for part in f"\n{self._git(*words, *paths)}".split("\ndiff --git ")[1:]:
            path = part.partition("\n--- a/")[2].partition("\n")[0].rstrip("\t")
            hunks = [tuple(int(group or 1) for group in m.groups()) for m in _HUNK.finditer(part)]
            if path:
                yield path, hunks

    def _git(self, *words: str) -> str:
        command = ["git", "-c", "core.quotepath=off", "--git-dir", str(self.mirror), *words]
        done = subprocess.run(command, capture_output=True, check=False)
        return done.stdout.decode("utf-8", "replace")


def _message(text: str) -> str:
    return _NUMBER.sub("", _TRAILER.sub("", text)).strip()


def _line_before(line: int, hunks: Sequence[tuple[int, ...]]) -> int:
    """The number that a line had before some hunks; inside a hunk, the line where it begins."""
    offset = 0
    for old, removed, new, added in hunks:
        if line < new + (not added):
            break
        if line < new + added:
            return max(old, 1)
        # A hunk without lines on one side stands behind the line that it names.
        offset = old + removed + (not removed) - new - added - (not added)
    return line + offset


def measure(task: Task, repository: Repository) -> dict[str, Contents]:
    contents: dict[str, Contents] = {}
    files, near = Files(repository.root), {*task.files}
    for budget in BUDGETS:
        pack = packs.build_pack(task.text, repository.code, repository.root, budget)
        contents[str(budget)] = packs.contents(pack, task.files, task.functions, near, files)
    return contents


def print_figures(
    measured: Mapping[str, Mapping[str, Contents]], before: Mapping[str, Mapping[str, Contents]]
) -> None:
    print(f"{'tokens':>8}{'functions':>11}{'between':>16}{'files':>8}{'right':>8}{'median':>9}")
    for budget in map(str, BUDGETS):
        found = [contents[budget] for contents in measured.values()]
        functions = paired.interval([each.functions or 0.0 for each in found])
        print(
            f"{budget:>8}{100 * functions.mean:11.1f}"
            f"{100 * functions.low:9.1f} to {100 * functions.high:.1f}"
            f"{100 * paired.mean([each.files for each in found]):8.1f}"
            f"{100 * paired.mean([_right(each) for each in found]):8.1f}"
            f"{statistics.median(each.tokens for each in found):9.0f}"
            f"   n = {len(found)}"
        )
        both = [(contents[budget], before[id][budget]) for id, contents in measured.items()
                if id in before]  # fmt: skip
        for name, value in (("functions", _functions), ("right", _right)) if both else ():
            ours, theirs = [value(one) for one, _ in both], [value(other) for _, other in both]
            gain, apart = paired.gain(ours, theirs), paired.differing(ours, theirs)
            print(
                f"{'':8}{name} {100 * gain.mean:+.1f} ({100 * gain.low:+.1f} to"
                f" {100 * gain.high:+.1f}), {apart.won} won, {apart.lost} lost"
            )


def _functions(contents: Contents) -> float:
    return contents.functions or 0.0


def _right(contents: Contents) -> float:
    return contents.right / contents.first if contents.first else 0.0


def read_results(path: str | None) -> dict[str, dict[str, Contents]]:
    if not path:
        return {}
    rows = json.loads(Path(path).read_text("utf-8"))
    return {
        id: {budget: Contents(*values) for budget, values in row.items()}
        for id, row in rows.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("list", type=Path)
    parser.add_argument("space", type=Path)
    parser.add_argument("--half", choices=("choosing", "checking"))
    parser.add_argument("--results", help="file for the figures of each task")
    parser.add_argument("--against", help="results of an earlier run to compare with")
    options = parser.parse_args()
    names = options.list.read_text("utf-8").split()
    if options.half:
        names = names[options.half == "checking" :: 2]
    measured: dict[str, dict[str, Contents]] = {}
    for name in names:
        repository = Repository(options.mirrors / name / "repo", options.space / name)
        with closing(repository.code.connection):
            for task in repository.tasks():
                measured[f"{name}-{task.commit[:12]}"] = measure(task, repository)
        print(name, len(measured), file=sys.stderr, flush=True)
    if options.results:
        Path(options.results).write_text(json.dumps(measured), "utf-8")
    print_figures(measured, read_results(options.against))


if __name__ == "__main__":
    main()
