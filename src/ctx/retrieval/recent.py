"""What happened lately, as a project's narrative tells it: the task at hand, and the log."""

from collections.abc import Sequence

from ctx import clock, tokens
from ctx.memory.model import Node
from ctx.narrative import log

_DAY_MS = 86_400_000
_LEAST = 40
"""Tokens below which an excerpt says nothing."""


def excerpt(folder: str | None, task: Node | None, days: int, now_ms: int, room: int) -> str:
    """The active task and the log of the last days, the newest first, within so many tokens."""
    parts: list[str] = []
    if task is not None:
        parts.append(_fitted(f"## Active task\n\n{task.content}", room // 2))
        room -= tokens.estimate(parts[0])
    for date in _last_days(folder, days, now_ms) if folder else ():
        if room < _LEAST:
            break
        said = log.day(folder, date).strip() if folder else ""
        part = _fitted(said.replace("# ", "## ", 1), room - 2)
        if part:
            parts.append(part)
            room -= tokens.estimate(part) + 2
    return "\n\n".join(part for part in parts if part)


def _last_days(folder: str, days: int, now_ms: int) -> Sequence[str]:
    if days <= 0:
        return ()
    since = clock.iso(now_ms - (days - 1) * _DAY_MS)[:10]
    today = clock.iso(now_ms)[:10]
    return [date for date in reversed(log.days(folder)) if since <= date <= today]


def _fitted(text: str, room: int) -> str:
    """The beginning of a text, by whole lines, where all of it does not fit."""
    if tokens.estimate(text) <= room:
        return text
    kept: list[str] = []
    left = room - 2
    for line in text.splitlines():
        left -= tokens.estimate(f"{line}\n")
        if left < 0:
            break
        kept.append(line)
    # A heading alone says nothing.
    if not any(line.strip() and not line.startswith("#") for line in kept):
        return ""
    return "\n".join([*kept, "…"])
