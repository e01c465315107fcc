"""Where the steps of a session are in its transcript.

No position is stored: a transcript may be moved or rewritten. A step is found by the id of its tool
call, or by the beginning of its text as JSON writes it. What is not found has no position.
"""

import json
from collections.abc import Iterable

from ctx import disk
from ctx.capture.steps import Step

_LARGEST = 12 * 1024 * 1024
"""Bytes that are searched. Most transcripts are smaller."""
_WINDOW = 2 * 1024 * 1024
"""How far a text is searched for: it may be in the transcript in other words, or not at all."""
_LONGEST_NEEDLE = 60
_SHORTEST_TEXT = 2


def lines_of(path: str, steps: Iterable[Step]) -> dict[str, int]:
    """The lines of the steps, by their ids.

    The steps are all of the session, in the order of time: the same words may occur often, and a
    step is after those before it.
    """
    try:
        data = disk.read_plain(path, _LARGEST) if path else b""
    except (OSError, ValueError):
        return {}
    found: dict[str, int] = {}
    place, line = 0, 1
    for step in steps:
        # Subagents have transcripts of their own.
        if step.agent or (at := _find(data, step, place)) < 0:
            continue
        line += data.count(b"\n", place, at)
        place = at
        found[step.id] = line
    return found


def _find(data: bytes, step: Step, start: int) -> int:
    end = len(data) if step.tool_use else start + _WINDOW
    for needle in _needles(step):
        if (at := data.find(needle, start, end)) >= 0:
            return at
    return -1


def _needles(step: Step) -> list[bytes]:
    if step.tool_use:
        return [json.dumps(step.tool_use).encode()]
    text = step.text[:_LONGEST_NEEDLE]
    if step.kind not in ("prompt", "say", "recap") or len(text) < _SHORTEST_TEXT:
        return []
    end = '"' if len(step.text) <= _LONGEST_NEEDLE else ""
    return [
        f"{json.dumps(text, ensure_ascii=is_ascii)[:-1]}{end}".encode("utf-8", "surrogatepass")
        for is_ascii in (False, True)
    ]
