"""A project whose memory grows, without the command line."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from ctx.config.resolve import load
from ctx.ids import CLI_SESSION
from ctx.layout import project_at
from ctx.memory.changes import ChangeAuthor
from ctx.project.compaction import CompactionOptions
from ctx.project.given import EverythingGiven
from ctx.project.project_memory import ProjectMemory

WHO = ChangeAuthor(CLI_SESSION, "cli")
TAGS = ("area:net", "area:disk", "tier:reference", "tier:working")
PROSE = (
    "The client retries {n} times with jitter, because the gateway drops idle connections after a"
    " minute; see the incident of week {n}. Callers must pass a deadline."
)


@contextmanager
def open_project_memory(folder: Path) -> Iterator[ProjectMemory]:
    project = project_at(str(folder))
    nowhere = str(folder / "no settings")
    config = load(nowhere, project.config_file, {}, ())
    memory = ProjectMemory(project, lambda: config, EverythingGiven(nowhere, project))
    with closing(memory):
        yield memory


def grow(memory: ProjectMemory, commits: int, nodes: int, begin: int = 0) -> None:
    """Add commits with some nodes each; every node has a tag and an edge to another."""
    for number in range(begin, begin + commits):
        with memory.changing("add", WHO) as change:
            before = None
            for place in range(nodes):
                said = f"{number}.{place} {PROSE.format(n=number * nodes + place)}"
                node_id = change.add_node("fact", said, metadata={"n": place})
                change.tag(node_id, TAGS[(number + place) % len(TAGS)])
                if before:
                    change.link(node_id, before, "RELATES_TO", {"tool": "cli"})
                before = node_id
        made = memory.commit(CompactionOptions(CLI_SESSION, f"Commit {number}", "cli"))
        assert made is not None


class Size(NamedTuple):
    files: int
    bytes: int
    """Of the contents."""
    allocated: int
    """Of the disk."""

    def __sub__(self, other: "Size") -> "Size":
        return Size(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


def size(folder: Path) -> Size:
    found = [os.lstat(path) for path in folder.rglob("*") if not path.is_dir()]
    total = sum(status.st_size for status in found)
    return Size(len(found), total, sum(status.st_blocks * 512 for status in found))
