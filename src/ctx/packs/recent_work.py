"""Recent work from a project's narrative: the active task and the log."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctx import clock, tokens
from ctx.ids import short
from ctx.memory.model import Node
from ctx.narrative.narrative_scan import GivenNarrative
from ctx.packs.prompt_pack import Chunk

_DAY_MS = 86_400_000
_LEAST = 40
"""A shorter excerpt, in tokens, is useless."""
_NEW_NODE = re.compile(r"- `\+` [a-z-]+ (\w+): .*")
"""How a log lists a node that was added."""
_ENTRY = re.compile(r"(?=^## )", re.MULTILINE)
"""Where an entry of the log or a day begins."""
_EMPTY_DAY = re.compile(r"^## \d{4}-\d\d-\d\d\n*(?=^## \d{4}-|\Z)", re.MULTILINE)
_EMPTY = re.compile(r"^### .*\n\s*(?=^#|\Z)", re.MULTILINE)
"""A part of an entry of which only the heading is left."""


class RecentWork(NamedTuple):
    """The active task and the recent log."""

    task: str
    log: str

    @property
    def text(self) -> str:
        return "\n\n".join(part for part in self if part)


def recent_work(
    narrative: GivenNarrative | None, task: Node | None, days: int, now_ms: int, room: int
) -> RecentWork:
    """The active task and the log of the last days, the newest first, within a number of tokens."""
    at_hand = _fit_lines(f"## Active task\n\n{task.content}", room // 2) if task else ""
    room -= tokens.estimate(at_hand)
    if not narrative or days <= 0:
        return RecentWork(at_hand, "")
    # Most projects have no narrative, and importing this takes longer than checking.
    from ctx.narrative import log_files

    parts: list[str] = []
    for date in _last_days(log_files.days(narrative.folder), days, now_ms):
        if room < _LEAST:
            break
        if part := _fit_entries(date, log_files.entries(narrative, date), room - 2):
            parts.append(part)
            room -= tokens.estimate(part) + 2
    return RecentWork(at_hand, "\n\n".join(parts))


def without_chunks(lately: RecentWork, task: Node | None, chunks: Iterable[Chunk]) -> str:
    """The recent work, without parts that the chunks of the pack also contain."""
    nodes = {chunk.object_id: chunk.title for chunk in chunks if chunk.path is None}
    ids = {short(node_id) for node_id in nodes}
    titles = {f"- {title.partition(': ')[2]}" for title in nodes.values()}
    kept = [
        line
        for line in lately.log.split("\n")
        if line not in titles and not ((new := _NEW_NODE.fullmatch(line)) and new[1] in ids)
    ]
    text = _EMPTY.sub("", "\n".join(kept)).rstrip()
    is_there = task is not None and task.id in nodes
    return RecentWork("" if is_there else lately.task, text).text


def without_entries(text: str, title: str) -> str:
    """The recent work, without notes and added nodes whose title begins with this text."""
    begins = re.escape(title)
    line = re.compile(rf"- `.` (?:[a-z-]+ \w+: {begins}|source \w+ MENTIONS ).*")
    kept = [row for row in text.split("\n") if not line.fullmatch(row)]
    rest = _EMPTY.sub("", "\n".join(kept))
    # A commit may have the same title and describe other changes too: it has parts.
    note = re.compile(rf"## \d\d:\d\d {begins}(?!(?s:.*)^### )", re.MULTILINE)
    entries = [entry for entry in _ENTRY.split(rest) if not note.match(entry)]
    return _EMPTY_DAY.sub("", "".join(entries)).rstrip()


def _last_days(dates: Sequence[str], days: int, now_ms: int) -> list[str]:
    since = clock.iso(now_ms - (days - 1) * _DAY_MS)[:10]
    today = clock.iso(now_ms)[:10]
    return [date for date in reversed(dates) if since <= date <= today]


def _fit_entries(date: str, entries: Iterable[str], room: int) -> str:
    """The log of a day, as much as fits. The rest is not read."""
    parts = [f"## {date}"]
    size = 0
    for entry in entries:
        parts.append(entry)
        size += tokens.estimate(entry)
        # The estimate of each part is rounded up.
        if size > room + len(parts):
            break
    return _fit_lines("\n\n".join(parts), room) if len(parts) > 1 else ""


def _fit_lines(text: str, room: int) -> str:
    """The beginning of a text in whole lines, if all of it does not fit."""
    if tokens.estimate(text) <= room:
        return text
    kept: list[str] = []
    left = room - 2
    for line in text.splitlines():
        left -= tokens.estimate(f"{line}\n")
        if left < 0:
            break
        kept.append(line)
    # A heading alone is useless.
    if not any(line.strip() and not line.startswith("#") for line in kept):
        return ""
    return "\n".join([*kept, "…"])
