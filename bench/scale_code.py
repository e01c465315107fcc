"""The sections of `bench scale` about a repository: its commits in `.ctx`, and its files.

`commits`: the first `ctx list` in a clone, which builds the index of the project from the objects
of all commits. The floor reads the same object files and does nothing with them.

`files`: the first answer of `ctx query` in a repository without an index, as its own process, and
then `ctx code index`. The floor is `git ls-files`, which every answer needs.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from bench import timing
from bench.plots import Plot, Series
from bench.project import node_records
from bench.scale import Scale, Section
from bench.timing import Cost, Figure
from ctx import disk
from ctx.ids import ObjectId
from ctx.layout import project_at
from ctx.objects.object_store import Object, typed
from ctx.objects.object_types import Commit
from ctx.objects.repository import Repository
from ctx.objects.trees import EMPTY
from ctx.project import batches

MOST_COMMITS = 20_000
MOST_FILES = 100_000


# Commits


def commits(scale: Scale) -> Section:
    most = min(scale.most, MOST_COMMITS)
    sizes = [size for size in (1_000, 5_000, MOST_COMMITS) if size <= most] or [most]
    figures: list[Figure] = []
    ours: list[tuple[float, float]] = []
    for size in sizes:
        root = project_of_commits(scale.folder / f"commits-{size}", size)
        cost = run_ctx(root, "list", "--limit", "5")
        floor = timing.of_call(lambda root=root: read_objects(root))  # type: ignore[misc]
        limit = "3 s" if size == MOST_COMMITS else ""
        name = f"the first `ctx list` of a project with {size:,} commits, wall"
        least = f"{floor.wall:.2f} s for reading the objects"
        figures.append(Figure(name, f"{cost.wall:.2f} s", least, limit=limit))
        ours.append((size, cost.wall))
    plot = Plot("scale-commits", "first ctx list", "commits", "s", [Series("ctx", ours)], 3)
    return Section("scale-commits", figures, [plot])


def project_of_commits(root: Path, size: int) -> Path:
    """A project with a history of commits, each with a node, that is trusted and has no index."""
    if not root.exists():
        heads = root / ".ctx" / "heads"
        heads.mkdir(parents=True)
        (root / ".ctx" / "config.toml").write_text('[repo]\nname = "bench"\n')
        git(root, "init", "-q")
        repository = Repository(project_at(str(root)))
        tip: ObjectId | None = None
        written: list[Object] = []
        for number in range(size):
            batch = batches.encode_batch(list(node_records(number)))
            made = typed(
                Commit(
                    parents=(tip,) if tip else (),
                    timestamp_unix=1_760_000_000 + number,
                    message=f"Commit {number}",
                    root_tree=EMPTY.id,
                    author="bench",
                    record_batches=(batch.id,),
                )
            )
            tip = made.id
            written += [batch, made]
        with patch.object(disk, "sync"):
            repository.objects.write(written)
        assert tip
        (heads / tip).touch()
        run_ctx(root, "trust", "--yes")
    shutil.rmtree(project_at(str(root)).indexes, ignore_errors=True)
    return root


def read_objects(root: Path) -> None:
    for shard in os.scandir(root / ".ctx" / "objects"):
        for entry in os.scandir(shard.path):
            disk.read_plain(entry.path, 1 << 20)


# Files

TOPICS = (
    *("alpha", "beta", "client", "server", "parse", "token", "index", "store"),
    *("query", "cache", "route", "event", "queue", "graph", "label", "scope"),
)
IN_A_FOLDER = 50
QUESTION = "where does the client parse a token"


def files(scale: Scale) -> Section:
    most = min(scale.most, MOST_FILES)
    sizes = [size for size in (1_000, 10_000, MOST_FILES) if size <= most] or [most]
    figures: list[Figure] = []
    lines: dict[str, list[tuple[float, float]]] = {"first answer": [], "code index": []}
    for size in sizes:
        root = repository_of_files(scale.folder / f"files-{size}", size)
        answer = run_ctx(root, "query", QUESTION)
        listing = timing.of_child(["git", "ls-files"], folder=str(root))
        indexing = run_ctx(root, "code", "index")
        limit = "5 s" if size == MOST_FILES else ""
        least = f"{listing.wall:.2f} s for `git ls-files`"
        where = f"in a repository of {size:,} files"
        name = f"the first answer of `ctx query` {where} without an index, wall"
        figures.append(Figure(name, f"{answer.wall:.2f} s", least, limit=limit))
        figures.append(Figure(f"`ctx code index` {where}, wall", f"{indexing.wall:.2f} s", least))
        lines["first answer"].append((size, answer.wall))
        lines["code index"].append((size, indexing.wall))
    series = [Series(name, points) for name, points in lines.items()]
    plot = Plot("scale-files", "a new repository", "files", "s", series, 5)
    return Section("scale-files", figures, [plot])


def repository_of_files(root: Path, size: int) -> Path:
    """A git repository of small Python files without a code index."""
    if not root.exists():
        for number in range(size):
            folder = root / f"package{number // 1000}" / f"part{number // IN_A_FOLDER % 20}"
            if number % IN_A_FOLDER == 0:
                folder.mkdir(parents=True)
            topic, other = TOPICS[number % 16], TOPICS[number // 16 % 16]
            (folder / f"{topic}_{other}_{number}.py").write_text(
                f'"""The {topic} of the {other}."""\n\nimport os\n\n\n'
                f"def {topic}_{other}(value):\n    return os.path.join(value, '{topic}')\n"
            )
        git(root, "init", "-q")
        git(root, "add", "-A")
        identity = ("-c", "user.name=bench", "-c", "user.email=")
        git(root, *identity, "commit", "-q", "-m", "all")
    # The index of a project without a store is in the user store.
    shutil.rmtree(home_of(root), ignore_errors=True)
    return root


# Processes


def home_of(root: Path) -> Path:
    return root.with_name(f"{root.name}-home")


def run_ctx(root: Path, *words: str) -> Cost:
    """A command as its own process, with its own user store and no worker."""
    home = home_of(root)
    home.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "ctx", *words]
    environment = {
        **os.environ, "HOME": str(home), "CTX_HOME": str(home / "ctx"), "CTX_OFF": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }  # fmt: skip
    # Otherwise each process would compile its imports, if ctx is not installed.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(root.parent / "compiled")
    return timing.of_child(command, folder=str(root), environment=environment)


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True)


SECTIONS = {"commits": commits, "files": files}
