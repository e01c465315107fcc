"""The parts of a story, and functions that build them.

`expected` is what a colleague would tell the last session, written before the story was played.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.e2e.claude_code.api import Reply, Tool

ROOT = "@ROOT@"
"""Stands for the project's folder, which is known only when the story is played."""


class Turn(NamedTuple):
    """One prompt, and the answers of the model."""

    prompt: str
    replies: tuple[str | Reply, ...]


class ExpectedLine(NamedTuple):
    """One thing that a colleague would say, and how to recognise it in a context."""

    sentence: str
    patterns: tuple[str, ...]
    """All of them match the same line of the context, in any case."""


class Story(NamedTuple):
    files: Mapping[str, str]
    """The repository before the first session."""
    sessions: tuple[tuple[Turn, ...], ...]
    prompt: str
    """With which the last session begins."""
    expected: tuple[ExpectedLine, ...]
    false: Mapping[str, str]
    """False statements: a sentence, and the pattern of a line that says so."""


def bash(command: str, says: str = "") -> Reply:
    return _using(says, Tool("Bash", {"command": command, "description": command[:40]}))


def read(*paths: str) -> Reply:
    return _using("", *(Tool("Read", {"file_path": f"{ROOT}/{path}"}) for path in paths))


def edit(path: str, old: str, new: str, says: str = "") -> Reply:
    change = {"file_path": f"{ROOT}/{path}", "old_string": old, "new_string": new}
    return _using(says, Tool("Edit", change))


def write(path: str, content: str) -> Reply:
    return _using("", Tool("Write", {"file_path": f"{ROOT}/{path}", "content": content}))


def _using(says: str, *tools: Tool) -> Reply:
    return Reply((says,) if says else (), tools)


def played_at(root: Path, replies: Sequence[str | Reply]) -> list[str | Reply]:
    """The replies with the folder of the project filled in."""
    return [each if isinstance(each, str) else _at(str(root), each) for each in replies]


def _at(root: str, reply: Reply) -> Reply:
    def filled(value: object) -> object:
        return value.replace(ROOT, root) if isinstance(value, str) else value

    tools = (
        Tool(tool.name, {name: filled(each) for name, each in tool.input.items()})
        for tool in reply.tools
    )
    return reply._replace(tools=tuple(tools))


def missing(story: Story, context: str) -> list[str]:
    """The expected sentences that the context lacks."""
    return [
        expected.sentence
        for expected in story.expected
        if not any(
            all(re.search(pattern, line, re.IGNORECASE) for pattern in expected.patterns)
            for line in context.splitlines()
        )
    ]


def untrue(story: Story, context: str) -> list[str]:
    """The lines that say something false."""
    return [
        f"{sentence}: {line}"
        for sentence, pattern in story.false.items()
        for line in context.splitlines()
        if re.search(pattern, line, re.IGNORECASE)
    ]
