"""The parts of a scenario, and functions that build them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.claude_code.api import Reply, Tool

ROOT = "@ROOT@"
"""Stands for the project's folder, which is known only when the scenario is played."""


class Turn(NamedTuple):
    """One prompt, and the answers of the model."""

    prompt: str
    replies: tuple[str | Reply, ...]


class Expected(NamedTuple):
    """An expected observation: its kind, words that it must contain, and its files."""

    kind: str
    words: tuple[str, ...]
    files: tuple[str, ...] = ()


class Scenario(NamedTuple):
    name: str
    files: Mapping[str, str]
    """The repository when the session begins."""
    turns: tuple[Turn, ...]
    observations: tuple[Expected, ...] = ()
    most: int = 6
    """How many observations there may be, at most."""
    junk: tuple[str, ...] = ()
    """What no node may have in it."""
    summary: Mapping[str, tuple[str, ...]] = {}
    """Words that sections of the session summary must name."""


def bash(command: str, says: str = "") -> Reply:
    return _using(says, Tool("Bash", {"command": command, "description": command[:40]}))


def read(*paths: str, says: str = "") -> Reply:
    return _using(says, *(Tool("Read", {"file_path": f"{ROOT}/{path}"}) for path in paths))


def edit(path: str, old: str, new: str, says: str = "") -> Reply:
    change = {"file_path": f"{ROOT}/{path}", "old_string": old, "new_string": new}
    return _using(says, Tool("Edit", change))


def write(path: str, content: str, says: str = "") -> Reply:
    return _using(says, Tool("Write", {"file_path": f"{ROOT}/{path}", "content": content}))


def _using(says: str, *tools: Tool) -> Reply:
    return Reply((says,) if says else (), tools)


def played_at(root: Path, replies: Sequence[str | Reply]) -> list[str | Reply]:
    """The replies with the folder of the project filled in."""
    return [each if isinstance(each, str) else _at(root, each) for each in replies]


def _at(root: Path, reply: Reply) -> Reply:
    tools = tuple(Tool(tool.name, _filled(root, tool.input)) for tool in reply.tools)
    return reply._replace(tools=tools)


def _filled(root: Path, value: dict[str, Any]) -> dict[str, Any]:
    return {
        name: each.replace(ROOT, str(root)) if isinstance(each, str) else each
        for name, each in value.items()
    }
