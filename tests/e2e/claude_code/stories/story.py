"""What a story is made of.

`told` is what a colleague would tell the eighth session, written down before the story was played.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from tests.e2e.claude_code.replay.scenario import Turn


class Told(NamedTuple):
    """One thing that a colleague would say, and how to recognise it."""

    sentence: str
    patterns: tuple[str, ...]
    """Each matches the same line of what the session is given, in any case."""
    is_rule: bool = False
    """Whether it is a rule of the first session, which must still be there after many others."""


class Story(NamedTuple):
    name: str
    files: Mapping[str, str]
    """The repository before the first session."""
    sessions: tuple[tuple[Turn, ...], ...]
    prompt: str
    """With which the eighth session begins."""
    told: tuple[Told, ...]
    false: Mapping[str, str]
    """What must not be told: a sentence, and the pattern of a line that says so."""


def missing(story: Story, given: str) -> list[str]:
    """What a colleague would have said too."""
    return [told.sentence for told in story.told if not is_told(told, given)]


def is_told(told: Told, given: str) -> bool:
    return any(
        all(re.search(pattern, line, re.IGNORECASE) for pattern in told.patterns)
        for line in given.splitlines()
    )


def untrue(story: Story, given: str) -> list[str]:
    """The lines that say something false."""
    return [
        f"{sentence}: {line}"
        for sentence, pattern in story.false.items()
        for line in given.splitlines()
        if re.search(pattern, line, re.IGNORECASE)
    ]
