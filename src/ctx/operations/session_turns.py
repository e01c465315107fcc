"""The turns of a session: each prompt, and what was done until the next one, in groups.

A long session has several pages of turns, and a long turn may be on more than one.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from ctx.capture.steps import Kind, Step
from ctx.synthesis.failures import is_failing

Group = Literal["read", "search", "edit", "command", "plan", "agent", "say", "mark"]
"""What steps of a turn are shown together: files read, searches, files written, commands, plans and
answers to questions, subagents, messages of the agent, and what happened to the session itself."""

_ORDER: tuple[Group, ...] = (
    *("plan", "search", "read", "edit", "command", "agent", "say", "mark"),
)
_GROUPS: Mapping[Kind, Group] = {
    "prompt": "agent",
    "agent": "agent",
    "say": "say",
    "recap": "say",
    "plan": "plan",
    "read": "read",
    "search": "search",
    "write": "edit",
    "command": "command",
    "title": "mark",
    "name": "mark",
    "mark": "mark",
}
"""The prompt of a turn is in no group; those in one were given to subagents."""
_PAGE_STEPS = 80
_PAGE_CHARACTERS = 40_000
_LONGEST_LINE = 200
_LONGEST_NAME = 50


class StoryStep(NamedTuple):
    """One step, as a line, and all of it."""

    step: Step
    line: str
    transcript_line: int | None
    """Where it is in the transcript; None if it is not found there."""


class StoryGroup(NamedTuple):
    """Steps of a turn that are alike."""

    group: Group
    line: str
    """Such as `5 files read`."""
    names: str
    """The files, commands or first words, on one line."""
    failed: int
    steps: tuple[StoryStep, ...]


class StoryTurn(NamedTuple):
    """A prompt, and what was done until the next one."""

    number: int
    """From 1 on; 0 is what happened before the first prompt."""
    is_continued: bool
    """Whether its beginning is on the page before."""
    prompt: StoryStep | None
    groups: tuple[StoryGroup, ...]
    answer: StoryStep | None
    """The last message of the agent."""


class TurnChunk(NamedTuple):
    """Steps of one turn on one page."""

    number: int
    is_continued: bool
    is_last: bool
    """Whether the turn ends with it."""
    steps: tuple[Step, ...]


def pages_of(kept: Sequence[Step]) -> list[list[TurnChunk]]:
    """The turns, page by page; at least one page."""
    pages: list[list[TurnChunk]] = [[]]
    count = size = 0
    for number, turn in _turns(kept):
        start = 0
        for place, step in enumerate(turn):
            characters = len(step.text) + len(step.output) + len(step.excerpt)
            if count and (count >= _PAGE_STEPS or size + characters > _PAGE_CHARACTERS):
                if place > start:
                    pages[-1].append(TurnChunk(number, start > 0, False, turn[start:place]))
                pages.append([])
                start, count, size = place, 0, 0
            count, size = count + 1, size + min(characters, _PAGE_CHARACTERS)
        pages[-1].append(TurnChunk(number, start > 0, True, turn[start:]))
    return pages


def _turns(kept: Sequence[Step]) -> Iterator[tuple[int, tuple[Step, ...]]]:
    """The steps from each prompt to the next. A subagent's prompt is part of the turn."""
    begins = [place for place, step in enumerate(kept) if step.kind == "prompt" and not step.agent]
    if kept and (not begins or begins[0] > 0):
        yield 0, tuple(kept[: begins[0] if begins else None])
    for number, (begin, end) in enumerate(pairwise([*begins, len(kept)]), 1):
        yield number, tuple(kept[begin:end])


def turn_of(chunk: TurnChunk, lines: Mapping[str, int]) -> StoryTurn:
    first, *rest = chunk.steps
    is_prompt = chunk.number > 0 and not chunk.is_continued
    done = rest if is_prompt else list(chunk.steps)
    said = (each for each in reversed(done) if each.kind == "say" and not each.agent)
    answer = next(said, None) if chunk.is_last else None
    by_group: dict[Group, list[Step]] = {}
    for step in done:
        if step is not answer:
            by_group.setdefault(_GROUPS[step.kind], []).append(step)
    return StoryTurn(
        chunk.number,
        chunk.is_continued,
        story_step(first, lines) if is_prompt else None,
        tuple(
            StoryGroup(
                group,
                _group_line(group, alike),
                _names(group, alike),
                sum(has_failed(each) for each in alike),
                tuple(story_step(each, lines) for each in alike),
            )
            for group in _ORDER
            if (alike := by_group.get(group))
        ),
        story_step(answer, lines) if answer else None,
    )


def has_failed(step: Step) -> bool:
    return is_failing(step) or not step.ok


def story_step(step: Step, lines: Mapping[str, int]) -> StoryStep:
    return StoryStep(step, step_line(step), lines.get(step.id))


def step_line(step: Step) -> str:
    """A step as one line."""
    match step.kind:
        case "write":
            names = ", ".join(f"{each.change} {each.name}" for each in step.changes[:3])
            return one_line(
                f"{step.path} +{step.added:,} −{step.removed:,}{f': {names}' if names else ''}"
            )
        case "read":
            return one_line(f"{step.path} ({step.text})" if step.text else step.path)
        case "search":
            return one_line(f"{step.text} in {step.path}" if step.path else step.text)
        case _:
            return one_line(step.text or step.path or step.tool or step.kind)


def _group_line(group: Group, alike: Sequence[Step]) -> str:
    files = len({each.path for each in alike if each.path})
    match group:
        case "read":
            return f"{_count(files, 'file')} read"
        case "edit":
            added, removed = sum(each.added for each in alike), sum(each.removed for each in alike)
            return f"{_count(files, 'file')} edited (+{added:,} −{removed:,})"
        case "search":
            return _count(len(alike), "search", "searches")
        case "agent":
            return _count(len(alike), "subagent")
        case "say":
            return _count(len(alike), "message")
        case "mark":
            return "session"
        case _:
            return _count(len(alike), group)


def _names(group: Group, alike: Sequence[Step]) -> str:
    is_file = group in ("read", "edit")
    names = (_base_name(each.path) if is_file else _first_words(each.text) for each in alike)
    return one_line(", ".join(dict.fromkeys(name for name in names if name)))


def _first_words(text: str) -> str:
    line = " ".join(text[: _LONGEST_NAME * 4].split())
    return line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 1].rstrip()}…"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def _base_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def one_line(text: str) -> str:
    line = " ".join(text[: _LONGEST_LINE * 4].split())
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1].rstrip()}…"
