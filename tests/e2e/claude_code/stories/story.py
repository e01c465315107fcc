"""The parts of a story.

`expected` is what a colleague would tell the eighth session, written before the story was played.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from tests.e2e.claude_code.replay.scenario import Turn


class ExpectedLine(NamedTuple):
    """One thing that a colleague would say, and how to recognise it in a context."""

    sentence: str
    patterns: tuple[str, ...]
    """All of them match the same line of the context, in any case."""
    is_rule: bool = False
    """Whether it is a rule of the first session, which must still be there after many others."""


class Story(NamedTuple):
    name: str
    files: Mapping[str, str]
    """The repository before the first session."""
    sessions: tuple[tuple[Turn, ...], ...]
    prompt: str
    """With which the eighth session begins."""
    expected: tuple[ExpectedLine, ...]
    false: Mapping[str, str]
    """False statements: a sentence, and the pattern of a line that says so."""


def missing(story: Story, context: str) -> list[str]:
    """The expected sentences that the context lacks."""
    return [expected.sentence for expected in story.expected if not is_shown(expected, context)]


def is_shown(expected: ExpectedLine, context: str) -> bool:
    return any(
        all(re.search(pattern, line, re.IGNORECASE) for pattern in expected.patterns)
        for line in context.splitlines()
    )


def untrue(story: Story, context: str) -> list[str]:
    """The lines that say something false."""
    return [
        f"{sentence}: {line}"
        for sentence, pattern in story.false.items()
        for line in context.splitlines()
        if re.search(pattern, line, re.IGNORECASE)
    ]
