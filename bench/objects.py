"""Writing and reading objects, compared with bare system calls and with git.

Write: 1,000 pieces of source text, 200 to 2,000 bytes each, become durable objects in one step:
hashed, compressed, sealed, synced, renamed, folders synced. The floor gets the finished bytes and
existing folders, and does open, write, fsync, close and rename for each file. The second line is
the first step in a new store, where ctx also creates the 256 folders.

Read: 10,000 objects of the same sort from a warm cache. ctx decompresses, checks the hash and the
seal, and returns a Python value. The baseline is a whole `git cat-file --batch --buffer` over the
same contents as loose objects, which decompresses, discards the output, and checks no hash (git
2.39 opens each file three times for it). The floor is open, read and close of the ctx files. ctx
is shown as a loop in a running process, and as a whole process.

    python -m bench objects [ROUNDS]
"""

import os
import random
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from unittest.mock import patch

from bench import report, timing
from bench.timing import Cost, Figure, ms, times
from ctx import disk
from ctx.ids import ObjectId
from ctx.objects.loose_objects import LooseStore
from ctx.objects.object_store import blob

WRITTEN = 1_000
READ = 10_000
WRITE_LIMIT = "1.5 ×"
READ_LIMIT = "2 ×"

# Unlike /tmp, it is never in memory, where fsync is free.
DISK = "/var/tmp"  # noqa: S108 - a fresh folder in it

READER = """
import sys
from ctx.objects.loose_objects import LooseStore
store = LooseStore(sys.argv[1])
for line in sys.stdin:
    store.read(line.rstrip())
"""


def pieces() -> Iterator[bytes]:
    """Different runs of lines from the standard library, the same in every run."""
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    lines = [line for source in sources for line in source.read_bytes().splitlines(True)]
    chance = random.Random(1)
    seen = set()
    while True:
        start, length = chance.randrange(len(lines)), chance.randrange(200, 2000)
        piece = b"".join(lines[start : start + 100])[:length]
        if len(piece) == length and piece not in seen:
            seen.add(piece)
            yield piece


class Written:
    """Both sides of writing, each time in a fresh folder."""

    def __init__(self, space: str) -> None:
        # ext4 creates files slowly where many were deleted in the last minutes, as by tests and
        # benchmarks. The children of a "top" folder are spread over the disk.
        subprocess.run(["chattr", "+T", space], check=False, capture_output=True)
        self._space = space
        self._payloads = list(islice(pieces(), WRITTEN))
        sample = LooseStore(self._empty())
        ids = self._write(sample)
        self._finished = [(id, Path(sample.folder, id[:2], id).read_bytes()) for id in ids]

    def ours(self) -> Cost:
        store = LooseStore(self._with_shards())
        return timing.of_call(lambda: self._write(store))

    def ours_from_nothing(self) -> Cost:
        store = LooseStore(self._empty())
        return timing.of_call(lambda: self._write(store))

    def floor(self) -> Cost:
        folder = self._with_shards()
        return timing.of_call(lambda: self._write_bare(folder))

    def _write(self, store: LooseStore) -> list[ObjectId]:
        objects = [blob(payload) for payload in self._payloads]
        store.write(objects)
        return [item.id for item in objects]

    def _write_bare(self, folder: str) -> None:
        for id, data in self._finished:
            path = f"{folder}/{id[:2]}/{id}"
            temporary = f"{path}.tmp"
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.write(fd, data)
            disk.sync(fd)
            os.close(fd)
            os.rename(temporary, path)

    def _empty(self) -> str:
        folder = tempfile.mkdtemp(dir=self._space)
        # Pending disk writes of the previous round must not slow this one.
        os.sync()
        return folder

    def _with_shards(self) -> str:
        folder = tempfile.mkdtemp(dir=self._space)
        for number in range(256):
            os.mkdir(f"{folder}/{number:02x}")
        os.sync()
        return folder


class Readable:
    """The same contents in a ctx store and in a git repository."""

    def __init__(self, space: str) -> None:
        self._store = LooseStore(f"{space}/ours")
        objects = [blob(payload) for payload in islice(pieces(), READ)]
        with patch.object(disk, "sync"):
            self._store.write(objects)
        self._ids = [item.id for item in objects]
        self._our_list = f"{space}/ids of ours"
        Path(self._our_list).write_text("".join(f"{id}\n" for id in self._ids))

        self._repository = f"{space}/git"
        self._git("init", "--quiet", "--bare", self._repository)
        names = []
        for number, item in enumerate(objects):
            names.append(f"{space}/piece {number}")
            Path(names[-1]).write_bytes(item.payload)
        settings = ("-c", "gc.auto=0", "-c", "core.fsync=none")
        words = (*settings, "hash-object", "-w", "--no-filters", "--stdin-paths")
        self._git_list = f"{space}/ids of git"
        Path(self._git_list).write_text(self._git(*words, reads="\n".join(names)))
        loose = self._git("count-objects").split()[0]
        if int(loose) != READ:
            raise SystemExit(f"git keeps {loose} loose objects instead of {READ}.")

    def ours(self) -> Cost:
        return timing.of_call(self._read)

    def floor(self) -> Cost:
        return timing.of_call(self._read_bare)

    def ours_from_the_start(self) -> Cost:
        command = [sys.executable, "-c", READER, self._store.folder]
        return timing.of_child(command, reads=self._our_list)

    def by_git(self) -> Cost:
        command = ["git", "cat-file", "--batch", "--buffer"]
        return timing.of_child(command, folder=self._repository, reads=self._git_list)

    def _read(self) -> None:
        for id in self._ids:
            self._store.read(id)

    def _read_bare(self) -> None:
        for id in self._ids:
            disk.read(f"{self._store.folder}/{id[:2]}/{id}")

    def _git(self, *words: str, reads: str = "") -> str:
        folder = self._repository if os.path.isdir(self._repository) else None
        done = subprocess.run(
            ["git", *words], input=reads, cwd=folder, text=True, capture_output=True, check=True
        )
        return done.stdout


def write_figures(rounds: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(dir=DISK) as space:
        written = Written(space)
        sides = {
            "ours": written.ours,
            "floor": written.floor,
            "first": written.ours_from_nothing,
        }
        cost = timing.alternate(rounds, sides)

    def wall(said: str, side: str, limit: str = "") -> Figure:
        ratio = times(cost.wall_ratio(side, "floor"))
        floor = f"{ms(cost.wall('floor'))} for write, fsync and rename of the same files"
        return Figure(said, ms(cost.wall(side)), floor, "", ratio, limit)

    def cpu(said: str, side: str) -> Figure:
        ratio = times(cost.cpu_ratio(side, "floor"))
        return Figure(said, ms(cost.cpu(side)), ms(cost.cpu("floor")), "", ratio)

    name = f"write {WRITTEN:,} small objects in one step"
    return [
        wall(f"{name}, wall", "ours", WRITE_LIMIT),
        cpu(f"{name}, CPU", "ours"),
        wall(f"{name} and the folders, wall", "first"),
        cpu(f"{name} and the folders, CPU", "first"),
    ]


def read_figures(rounds: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(dir=DISK) as space:
        readable = Readable(space)
        sides = {
            "loop": readable.ours,
            "floor": readable.floor,
            "git": readable.by_git,
            "process": readable.ours_from_the_start,
        }
        timing.alternate(1, sides)  # The cache is warm from here on.
        cost = timing.alternate(rounds, sides)

    def cpu(said: str, side: str, limit: str = "") -> Figure:
        floor = f"{ms(cost.cpu('floor'))} for reading the files"
        git = f"{ms(cost.cpu('git'))} for `git cat-file --batch`"
        ratio = times(cost.cpu_ratio(side, "git"))
        return Figure(said, ms(cost.cpu(side)), floor, git, ratio, limit)

    def wall(said: str, side: str) -> Figure:
        floor, git = ms(cost.wall("floor")), ms(cost.wall("git"))
        return Figure(said, ms(cost.wall(side)), floor, git, times(cost.wall_ratio(side, "git")))

    name = f"read {READ:,} objects and verify each"
    return [
        cpu(f"{name} in a loop, CPU", "loop", READ_LIMIT),
        wall(f"{name} in a loop, wall", "loop"),
        cpu(f"{name} in a process, CPU", "process"),
        wall(f"{name} in a process, wall", "process"),
    ]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    written, *write_details = write_figures(rounds)
    read, *read_details = read_figures(rounds)
    print(f"medians of {rounds} rounds")
    report.print_figures([*write_details, *read_details])
    report.show("objects", [written, read])


if __name__ == "__main__":
    main()
