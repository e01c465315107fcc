"""Definitions in the index compared with universal-ctags, for each language.

The input is the golden projects and the repositories on the command line. For the functions,
methods and types that ctags lists, the benchmark counts how many the index has: the same name in
the same file, on a line of the item, or on any line where several declarations are possible. And it
counts how many definitions of the index ctags lists. Broken files are skipped. ctags has no
grammars, so neither side is the truth, and differences are listed to check by hand.

    python -m bench languages [REPOSITORY ...] [--show N]
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from bench import report
from ctx import checkouts
from ctx.code import build, index_check, index_file
from ctx.code.vocabulary import KINDS, SLOTS

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "code"
DEFINED = frozenset({"function", "method", "class", "struct", "enum", "trait", "interface"})
"""The item kinds of the index that are compared with ctags."""
LISTED = frozenset(
    {
        *("function", "func", "method", "singletonMethod", "generator", "getter", "setter"),
        *("prototype", "methodSpec"),
        *("class", "struct", "enum", "trait", "interface", "union"),
    }
)
"""The ctags kinds that are compared with the index."""
LISTED_IN = {
    "python": LISTED | {"member"},
    "ruby": LISTED | {"module"},
    # ctags lists every object as a class.
    "javascript": LISTED - {"class"},
}


LAST_NAME = re.compile(r"^.*[.:#](?=.)")
"""A prefix to remove: `M:count` is the `count` of a module."""
MADE_UP = re.compile(r"__anon|[Aa]nonymous\w*[0-9a-f]{8}|<")
"""Names that ctags invents for anonymous items."""
DECLARED_AGAIN = frozenset({"c", "cpp", "typescript", "tsx"})
"""In these languages a function may be declared on several lines. The index has it once."""
CTAGS = (
    *("ctags", "--quiet=yes", "--output-format=json", "--fields=+n"),
    # Include declarations, and read .tsx files as TypeScript.
    *("--kinds-C=+p", "--kinds-C++=+p", "--langmap=TypeScript:+.tsx"),
    *("-L", "-", "-f", "-"),
)


class Defined(NamedTuple):
    """A definition according to one of the two."""

    path: str
    line: int
    last_line: int
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind} {self.name}"


class Definitions(NamedTuple):
    """The definitions of both sides in the files of one language."""

    files: int
    ours: list[Defined]
    theirs: list[Defined]


def indexed(root: str) -> dict[str, tuple[str, list[Defined]]]:
    """The language and the items of each file."""
    with tempfile.TemporaryDirectory() as space:
        database = os.path.join(space, "code.db")
        build.refresh(index_check.SourceTree(root, checkouts.find_checkout(root), database))
        with closing(index_file.open_for_writing(database)) as connection:
            files = connection.execute(
                "SELECT id, path, language FROM files WHERE skipped IS NULL ORDER BY path"
            ).fetchall()
            items = connection.execute(
                "SELECT id, line, end_line, kind, name FROM items WHERE parent IS NOT NULL"
            ).fetchall()
    paths = {file_id: path for file_id, path, _ in files}
    found: dict[str, tuple[str, list[Defined]]] = {
        path: (language, []) for _, path, language in files if Path(path).stem.lower() != "broken"
    }
    for item, line, last_line, kind, name in items:
        path = paths[item >> SLOTS]
        if path in found:
            plain = LAST_NAME.sub("", name).lstrip("#").replace(" ", "")
            found[path][1].append(Defined(path, line, last_line, KINDS[kind], plain))
    return found


def tagged(root: str, paths: list[str]) -> Iterator[Defined]:
    """The definitions that ctags lists in these files."""
    lines = subprocess.run(
        CTAGS, input="\n".join(paths), cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for line in lines:
        tag = json.loads(line)
        name = LAST_NAME.sub("", tag["name"]).replace(" ", "")
        if not MADE_UP.match(name):
            yield Defined(tag["path"], tag["line"], tag["line"], tag["kind"], name)


def compared(root: str) -> dict[str, Definitions]:
    known = indexed(root)
    files = Counter(language for language, _ in known.values())
    found = {language: Definitions(count, [], []) for language, count in files.items()}
    foreign: set[tuple[str, int]] = set()
    for language, items in known.values():
        for item in items:
            if item.name.isascii():
                found[language].ours.append(item)
            else:
                # ctags splits such a name.
                foreign.add((item.path, item.line))
    for tag in tagged(root, list(known)):
        if (tag.path, tag.line) not in foreign:
            found[known[tag.path][0]].theirs.append(tag)
    return found


def missing(these: list[Defined], those: list[Defined], *, anywhere: bool) -> list[Defined]:
    """Which of these are not among those, on the same lines or anywhere in the file."""
    known: dict[tuple[str, str], list[Defined]] = {}
    for each in those:
        known.setdefault((each.path, each.name), []).append(each)
    return [
        each
        for each in these
        if not any(
            anywhere or (other.line <= each.last_line and each.line <= other.last_line)
            for other in known.get((each.path, each.name), ())
        )
    ]


def print_comparison(root: str, shown: int) -> list[list[str]]:
    """The rows are those of the table: what ctags lists, and what of that ctx has."""
    repository = os.path.basename(root)
    print(f"\n{repository}")
    rows = []
    print(f"{'':12}{'files':>7}{'ctags':>9}{'in ours':>9}{'ours':>9}{'in ctags':>10}")
    differences = []
    for language, found in sorted(compared(root).items()):
        kinds = LISTED_IN.get(language, LISTED)
        theirs = [each for each in found.theirs if each.kind in kinds]
        ours = [each for each in found.ours if each.kind in DEFINED]
        if not theirs:
            print(f"{language:12}{found.files:7,}   not supported by ctags; ctx {len(ours):,}")
            continue
        anywhere = language in DECLARED_AGAIN
        ours_lacks = missing(theirs, found.ours, anywhere=anywhere)
        ctags_lacks = missing(ours, found.theirs, anywhere=anywhere)
        print(
            f"{language:12}{found.files:7,}{len(theirs):9,}{share(ours_lacks, theirs):>9}"
            f"{len(ours):9,}{share(ctags_lacks, ours):>10}"
        )
        differences.append((language, ours_lacks, ctags_lacks))
        rows.append([f"{repository}, {language}", f"{len(theirs):,}", share(ours_lacks, theirs)])
    rng = random.Random(1)
    for language, ours_lacks, ctags_lacks in differences:
        for said, lacking in (("not in ctx", ours_lacks), ("not in ctags", ctags_lacks)):
            for each in rng.sample(lacking, min(shown, len(lacking))):
                print(f"  {language}, {said}: {each}")
    return rows


def share(lacking: list[Defined], whole: list[Defined]) -> str:
    return f"{100 - 100 * len(lacking) / len(whole):.1f} %" if whole else ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench languages")
    parser.add_argument("repositories", nargs="*")
    parser.add_argument(
        "--show", type=int, default=3, metavar="N", help="differences to list for each kind"
    )
    chosen = parser.parse_args()
    if not shutil.which("ctags"):
        print("universal-ctags is not installed, so there is no reference.")
        return
    print_comparison(str(GOLDEN), chosen.show)
    rows = [
        row
        for root in chosen.repositories
        for row in print_comparison(os.path.realpath(root), chosen.show)
    ]
    if rows:
        columns = ["repository", "definitions that ctags lists", "found by ctx"]
        command = "python -m bench languages REPOSITORY …"
        report.show_table(report.Table("languages", columns, rows), command)


if __name__ == "__main__":
    main()
