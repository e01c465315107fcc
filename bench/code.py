"""The cost of the code index: building and refreshing it, its memory and its size.

Everything is measured on a copy of the repository's files, in a temporary git repository, because
files are edited here. The floor of a full index is the bare parse: read each file that the index
contains and parse it with the same grammar, in one process, keeping nothing. The baseline is
`ctags -R` over the whole tree. The floor of a refresh without changes is `git status` on the same
tree. A full index runs in its own process, as from the command line, and its child processes are
included. It parses every file and resolves names on demand. A separate line shows a full index with
all names resolved, as `ctx code index` does.

    python -m bench code [REPOSITORY [ROUNDS]]
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tree_sitter import Parser

from bench import report, timing
from bench.timing import Cost, Figure, ms, times
from ctx import checkouts
from ctx.code import build, file_listing, index_check, index_file, language
from ctx.code.index_check import SourceTree
from ctx.code.vocabulary import KINDS, SLOTS

HERE = Path(__file__).parent.parent
ROUNDS = 3
STILL_ROUNDS = 9
EDIT_ROUNDS = 3
EDITED = 50
SAMPLED_EVERY = 0.02
MB = 1_000_000

INDEX = """
import sys
from ctx import checkouts
from ctx.code.index_check import SourceTree, refresh
refresh(SourceTree(sys.argv[1], checkouts.find_checkout(sys.argv[1]), sys.argv[2]))
"""
FOLLOW = """
from ctx.code.build import follow
follow(SourceTree(sys.argv[1], None, sys.argv[2]))
"""

BRACES = {
    "c": b"\nint added_by_the_bench(int a) { return a; }\n",
    "cpp": b"\nint added_by_the_bench(int a) { return a; }\n",
    "go": b"\nfunc addedByTheBench(a int) int { return a }\n",
    "java": b"\nclass AddedByTheBench { int added(int a) { return a; } }\n",
    "javascript": b"\nexport function addedByTheBench(a) { return a; }\n",
    "rust": b"\npub fn added_by_the_bench(a: u8) -> u8 { a }\n",
    "tsx": b"\nexport function addedByTheBench(a: number) { return a; }\n",
    "typescript": b"\nexport function addedByTheBench(a: number) { return a; }\n",
}
ADDED = {"python": b"\n\ndef added_by_the_bench(a: int) -> int:\n    return a\n", **BRACES}
"""Text to append to a file. Files of other languages are not edited."""


# The tree


def copied(repository: str, root: str) -> SourceTree:
    """The files of a repository, copied into a new repository."""
    source = os.path.realpath(repository)
    for path, *_ in file_listing.list_files(source, checkouts.find_checkout(source), ()).files:
        target = os.path.join(root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        # Keep file times: git rereads files that are as new as its index.
        shutil.copy2(os.path.join(source, path), target)
    for words in (
        ("init", "-q"),
        # Includes files that are tracked although they are ignored.
        ("-c", "core.safecrlf=false", "add", "-A", "-f"),
        ("-c", "user.name=bench", "-c", "user.email=", "commit", "-q", "--no-verify", "-m", "all"),
        ("status", "--porcelain"),
    ):
        subprocess.run(["git", *words], cwd=root, env=environment(), check=True)
    return SourceTree(root, checkouts.find_checkout(root), f"{root}-index/code.db")


def environment() -> dict[str, str]:
    """The environment without git settings of the user."""
    return {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


class Tree(NamedTuple):
    """The files in the index."""

    files: list[tuple[str, str]]
    """Path and language."""
    bytes: int
    skipped: int


def tree(place: SourceTree) -> Tree:
    with closing(index_file.open_for_writing(place.database)) as connection:
        rows = connection.execute("SELECT path, language, size, skipped FROM files").fetchall()
    read = [row for row in rows if row[3] is None]
    return Tree([row[:2] for row in read], sum(row[2] for row in read), len(rows) - len(read))


# A full index


def bare_parse(root: str, files: Sequence[tuple[str, str]]) -> Cost:
    parsers = {name: Parser(language.load(name).grammar) for name in {name for _, name in files}}

    def parse() -> None:
        for path, name in files:
            with open(f"{root}/{path}", "rb", buffering=0) as file:
                parsers[name].parse(file.readall())

    return timing.of_call(parse)


def command(program: str, place: SourceTree) -> list[str]:
    return [sys.executable, "-c", program, place.root, place.database]


def forget(place: SourceTree) -> None:
    shutil.rmtree(os.path.dirname(place.database), ignore_errors=True)


def full_index(place: SourceTree) -> Cost:
    """With more than a few files, it resolves no names."""
    forget(place)
    return timing.of_child(command(INDEX, place))


def with_every_name(place: SourceTree) -> Cost:
    forget(place)
    return timing.of_child(command(INDEX + FOLLOW, place))


def ctags(root: str) -> Cost:
    if not shutil.which("ctags"):
        return Cost(0, 0)
    # It prints warnings about code that it cannot parse.
    return timing.of_child(["sh", "-c", "exec ctags -R -f - . 2>/dev/null"], folder=root)


def peak_memory(command: Sequence[str]) -> tuple[str, int]:
    """The peak memory of a process and its children together. Shared pages count once."""
    child = subprocess.Popen(command, start_new_session=True)
    if not os.path.exists("/proc/self/smaps_rollup"):
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
        unit = 1 if sys.platform == "darwin" else 1024
        return "peak memory of the largest process", usage.ru_maxrss * unit
    samples = [0]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLED_EVERY):
            samples.append(sum(map(proportional_size, group(child.pid))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    child.wait()
    over.set()
    watcher.join()
    return f"peak memory of all processes, {len(samples)} samples", max(samples)


def group(leader: int) -> Iterator[int]:
    """The processes of a process group."""
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError):
                # The program name may contain spaces and brackets.
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == leader:
                    yield int(name)


def proportional_size(process: int) -> int:
    with suppress(OSError):
        found = re.search(
            r"^Pss:\s+(\d+) kB", Path(f"/proc/{process}/smaps_rollup").read_text(), re.MULTILINE
        )
        if found:
            return int(found.group(1)) * 1024
    return 0


# A refresh


def settle(place: SourceTree) -> None:
    """Wait until every file is old enough to be recognised by its stamps."""
    while True:
        build.refresh(place)
        build.follow(place)
        with closing(index_file.open_for_writing(place.database)) as connection:
            if not connection.execute("SELECT 1 FROM files WHERE NOT settled").fetchone():
                return
        time.sleep(0.5)


def still(place: SourceTree) -> timing.Rounds:
    status = ["git", "--no-optional-locks", "status", "--porcelain"]
    return timing.alternate(
        STILL_ROUNDS,
        {
            "ours": lambda: timing.of_call_and_children(lambda: build.refresh(place)),
            "floor": lambda: timing.of_child(status, folder=place.root, environment=environment()),
        },
    )


class Function(NamedTuple):
    path: str
    language: str
    name: str
    start: int
    stop: int


def functions(place: SourceTree, rng: random.Random) -> list[Function]:
    """One function with a body from each of several files."""
    languages = ", ".join(f"'{name}'" for name in ADDED)
    kinds = f"{KINDS.index('function')}, {KINDS.index('method')}"
    sql = (
        "SELECT f.path, f.language, i.name, i.start, i.stop FROM items i"
        f" JOIN files f ON f.id = i.id >> {SLOTS}"
        f" WHERE f.language IN ({languages}) AND i.kind IN ({kinds}) ORDER BY i.id"
    )
    in_file: dict[str, list[Function]] = {}
    with closing(index_file.open_for_writing(place.database)) as connection:
        for row in connection.execute(sql):
            in_file.setdefault(row[0], []).append(Function(*row))
    chosen: list[Function] = []
    paths = rng.sample(sorted(in_file), len(in_file))
    while paths and len(chosen) < EDITED:
        path = paths.pop()
        content = Path(place.root, path).read_bytes()
        fitting = [each for each in in_file[path] if has_body(content, each)]
        if fitting:
            chosen.append(rng.choice(fitting))
    return chosen


def has_body(content: bytes, function: Function) -> bool:
    return function.language not in BRACES or content[function.stop - 1 : function.stop] == b"}"


def with_another_body(content: bytes, function: Function) -> bytes:
    """It calls one more function."""
    start, stop = function.start, function.stop
    if function.language in BRACES:
        return content[: stop - 1] + b"; edited_by_the_bench(); " + content[stop - 1 :]
    before = content[content.rfind(b"\n", 0, start) + 1 : start]
    return content[:stop] + b"\n" + before + b"    edited_by_the_bench()" + content[stop:]


def with_another_name(content: bytes, function: Function) -> bytes:
    start, name = function.start, function.name.encode()
    renamed = re.sub(rb"\b%s\b" % re.escape(name), name + b"_renamed", content[start:], count=1)
    return content[:start] + renamed


def with_one_more(content: bytes, function: Function) -> bytes:
    return content + ADDED[function.language]


Edit = Callable[[bytes, Function], bytes]
EDITS: dict[str, Edit] = {
    "functions were changed": with_another_body,
    "functions were added": with_one_more,
    "functions were renamed": with_another_name,
}


def after_edits(place: SourceTree, name: str, rng: random.Random) -> Figure:
    """The time of a refresh after this many files were edited in one way."""
    costs: list[Cost] = []
    refreshes: list[index_check.RefreshCounts] = []
    left: list[int] = []
    for _ in range(EDIT_ROUNDS):
        settle(place)
        for function in functions(place, rng):
            file = Path(place.root, function.path)
            file.write_bytes(EDITS[name](file.read_bytes(), function))
        costs.append(timing.of_call_and_children(lambda: refreshes.append(build.refresh(place))))
        left.append(build.follow(place))
    walls = [cost.wall for cost in costs]
    about = (
        f"{median(done.resolved for done in refreshes):.0f} files resolved,"
        f" {median(left):.0f} left unresolved,"
        f" CPU {seconds(median(cost.cpu for cost in costs))}, worst {seconds(max(walls))}"
    )
    changed = min(done.changed for done in refreshes)
    print(f"{changed} {name}: {about}", flush=True)
    title = f"refresh after {changed} {name}, wall"
    return Figure(title, seconds(median(walls)), limit="1 s")


# The table


def measure(repository: str, place: SourceTree, rounds: int) -> None:
    forget(place)
    memory_name, memory = peak_memory(command(INDEX + FOLLOW, place))
    of = tree(place)
    languages = Counter(name for _, name in of.files).most_common()
    print(", ".join(f"{name} {count:,}" for name, count in languages), flush=True)
    full = timing.alternate(
        rounds,
        {
            "floor": lambda: bare_parse(place.root, of.files),
            "ours": lambda: full_index(place),
            "followed": lambda: with_every_name(place),
            "ctags": lambda: ctags(place.root),
        },
    )
    settle(place)
    size = os.path.getsize(place.database)
    same = still(place)
    rng = random.Random(6)
    edited = [after_edits(place, name, rng) for name in EDITS]
    note = f"{os.path.basename(repository)}: {len(of.files):,} source files of"
    note += f" {len(of.files) + of.skipped:,}, {of.bytes / MB:.1f} MB; medians of {rounds} full"
    note += f" indexes, {STILL_ROUNDS} refreshes without changes and {EDIT_ROUNDS} after edits"
    parse = "for a bare tree-sitter parse"
    lines = [
        Figure("parse everything into a new index, CPU", seconds(full.cpu("ours")),
               f"{seconds(full.cpu('floor'))} {parse}", f"{seconds(full.cpu('ctags'))} for `ctags`",
               times(full.cpu_ratio("ours", "floor")), "2.5 ×"),
        Figure("parse everything into a new index, wall", seconds(full.wall("ours")),
               f"{seconds(full.wall('floor'))} {parse}",
               f"{seconds(full.wall('ctags'))} for `ctags`",
               times(full.wall_ratio("ours", "floor"))),
        Figure("the same with all names resolved, CPU", seconds(full.cpu("followed")),
               f"{seconds(full.cpu('floor'))} {parse}", "",
               times(full.cpu_ratio("followed", "floor"))),
        Figure("the same with all names resolved, wall", seconds(full.wall("followed")),
               f"{seconds(full.wall('floor'))} {parse}", "",
               times(full.wall_ratio("followed", "floor"))),
        Figure("refresh without changes, in process, wall", ms(same.wall("ours")),
               f"{ms(same.wall('floor'))} for `git status`", "",
               times(same.wall_ratio("ours", "floor")), "5 ×"),
        Figure("refresh without changes, in process, CPU", ms(same.cpu("ours")),
               f"{ms(same.cpu('floor'))} for `git status`", "",
               times(same.cpu_ratio("ours", "floor"))),
        *edited,
        Figure(memory_name, f"{memory / MB:.0f} MB", "", "", "", "500 MB"),
        Figure("size of the index", f"{size / MB:.1f} MB", f"{of.bytes / MB:.1f} MB of sources", "",
               times(size / max(1, of.bytes)), "1.5 ×"),
    ]  # fmt: skip
    report.show("code", lines, note, "python -m bench code REPOSITORY")


def seconds(took: float) -> str:
    return f"{took:.2f} s" if took else ""


def main() -> None:
    repository = sys.argv[1] if len(sys.argv) > 1 else str(HERE)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    with tempfile.TemporaryDirectory() as space:
        # Otherwise each process would compile its imports, if ctx is not installed.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(space, "compiled")
        place = copied(repository, os.path.join(os.path.realpath(space), "tree"))
        measure(os.path.realpath(repository), place, rounds)


if __name__ == "__main__":
    main()
