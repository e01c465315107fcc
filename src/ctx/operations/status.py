"""How much there is in memory."""

import os
from typing import NamedTuple

from ctx.memory import pending
from ctx.memory.census import TierCount, TypeCount, census
from ctx.sqlite.connection import size_of
from ctx.workspace import Memory


class Status(NamedTuple):
    """The answer of `ctx status`."""

    database: str
    bytes: int
    new: bool
    """Whether this very command has made it."""
    nodes: int
    tokens: int
    types: tuple[TypeCount, ...]
    edges: int
    tags: int
    """How many different ones there are."""
    tiers: tuple[TierCount, ...]
    """A pinned node may have another tier too."""
    no_tier: int
    """Nodes that search finds and no context shows."""
    superseded: int
    views: int
    project: str | None
    task: str | None


def status(memory: Memory, *, new: bool) -> Status:
    path = memory.path
    size = size_of(path) + size_of(f"{path}-wal")
    return Status(
        database=path,
        bytes=size,
        new=new,
        project=memory.project,
        task=pending.current_task(memory.graph, memory.task_key),
        **census(memory.graph)._asdict(),
    )


def as_text(found: Status) -> str:
    """As a person reads it, and as an agent is given it."""
    size = "new" if found.new else f"{found.bytes / 1_000_000:,.1f} MB"
    lines = [f"Database: {_from_home(found.database)} ({size})"]
    if not found.nodes:
        lines.append("Nodes: 0")
    else:
        lines.append(f"Nodes: {found.nodes:,} (estimated {found.tokens:,} tokens)")
        lines += [f"  {each.type}: {each.nodes:,}" for each in found.types]
        lines += [f"Edges: {found.edges:,}", f"Tags: {found.tags:,} unique"]
        if found.superseded:
            lines.append(f"Superseded: {found.superseded:,}")
    if found.views > 1:
        lines.append(f"Views: {found.views:,}")
    lines += [f"Project: {found.project}"] if found.project else []
    lines += [f"Task: {found.task}"] if found.task else []
    if found.nodes:
        lines += ["", "Tier breakdown:"]
        for tier, nodes, tokens in found.tiers:
            name = tier.removeprefix("tier:")
            lines.append(
                f"  {name}: {nodes:,} {'node' if nodes == 1 else 'nodes'} ({tokens:,} tokens)"
            )
        if found.no_tier:
            noun = "node" if found.no_tier == 1 else "nodes"
            lines.append(f"  none: {found.no_tier:,} {noun}, which no context shows")
    return "\n".join(lines) + "\n"


def _from_home(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
