"""The session summary, in eight sections."""

import re
from collections.abc import Iterable, Sequence

from ctx.capture.steps import Step
from ctx.hosts import tool_calls
from ctx.synthesis import dedupe, final_message, one_line_text, request_line
from ctx.synthesis.check_commands import checks
from ctx.synthesis.failures import is_failing
from ctx.synthesis.fixes import Fixes
from ctx.synthesis.net_changes import reverted_items
from ctx.synthesis.observations import (
    LONGEST_LINE,
    MOST_FILES,
    Observation,
    Summary,
)
from ctx.synthesis.timeline import Timeline

_MOST_LEARNED = 5
_MOST_COMPLETED = 6
_MOST_NEXT = 6
_MOST_NOTES = 8
_MOST_SEARCHES = 3
_MOST_READ = 5
_OPEN_TODO = re.compile(r"\[(?P<mark>[^\]]{0,20})\] (?P<what>.+)")
_NUMBERED = re.compile(r"task (\d{1,6})\Z")
_DECIDED = re.compile(r"(?:decided|agreed|chose|opted|settled|deliberately)\b", re.IGNORECASE)


def summarise(
    timeline: Timeline,
    told: Sequence[Observation],
    learned: Sequence[str],
    fixes: Fixes,
    done: Sequence[str],
) -> Summary | None:
    """The summary; None if nothing was requested or nothing was done."""
    is_asked = any(dedupe.words(said.text) for said in request_line.prompts(timeline))
    if not is_asked or not any(map(_has_substance, timeline.steps)):
        return None
    stopped_at = final_message.unreported_last_step(timeline)
    completed = (
        _completed_lines(told, done)
        if stopped_at is None
        else _completed_lines(*_before_last_turn(timeline, told, done))
    )
    concluded = [] if completed else final_message.conclusions(timeline)
    is_review = len(concluded) > final_message.MOST_ANSWERED
    findings = [*map(one_line_text.without_lead, concluded)]
    found_out = [*learned, *findings] if is_review or not learned else learned
    read, more_read = _files(_read_paths(timeline))
    edited, more_edited = _files(_by_importance(timeline))
    return Summary(
        request_line.title(timeline, completed),
        request_line.request(timeline),
        _investigated_lines(timeline),
        tuple(_lines(found_out, _MOST_LEARNED)),
        completed,
        _next_steps(timeline, fixes, stopped_at),
        read,
        edited,
        _notes(timeline, told, fixes),
        more_read,
        more_edited,
        timeline.steps[-1].at,
    )


def _has_substance(step: Step) -> bool:
    return step.kind in ("read", "write", "command", "search", "agent")


def _investigated_lines(timeline: Timeline) -> tuple[str, ...]:
    """What the agent read and searched for before the first edit."""
    until = timeline.edits[0] if timeline.edits else len(timeline.steps)
    before = timeline.steps[:until]
    read = one_line_text.distinct(step.path for step in before if step.kind == "read")
    searched = one_line_text.distinct(
        one_line_text.code(step.text)
        for step in before
        if step.kind == "search" and step.text.strip()
    )
    found = []
    if read:
        found.append(f"Read {one_line_text.listed(read, _MOST_READ)}")
    if searched:
        found.append(f"Searched for {one_line_text.listed(searched, _MOST_SEARCHES)}")
    return tuple(one_line_text.shortened(each, LONGEST_LINE) for each in found)


def _completed_lines(told: Sequence[Observation], done: Sequence[str]) -> tuple[str, ...]:
    kinds = ("bugfix", "feature", "refactor")
    titles = [each.title for each in told if each.kind in kinds]
    return tuple(_lines([*titles, *map(one_line_text.impersonal, done)], _MOST_COMPLETED))


def _lines(texts: Iterable[str], most: int) -> list[str]:
    """The texts as single lines, without repetitions."""
    found: list[str] = []
    for text in texts:
        line = one_line_text.shortened(text, LONGEST_LINE).rstrip(".!")
        if line and len(found) < most and not dedupe.is_repeated(line, found):
            found.append(line)
    return found


def _before_last_turn(
    timeline: Timeline, told: Sequence[Observation], done: Sequence[str]
) -> tuple[list[Observation], list[str]]:
    """What was completed although the session was cut off: earlier turns, and fixed failures."""
    begin = timeline.prompts[-1].step.at
    last = " ".join(said.text for said in timeline.messages if said.step.at > begin)
    return (
        [each for each in told if each.kind == "bugfix" or each.at <= begin],
        [text for text in done if text not in last],
    )


def _stopped_line(step: Step | None) -> list[str]:
    if step is None:
        return []
    is_edit = step.path and step.ok
    after = f"an edit of {step.path}" if is_edit else f"{one_line_text.code(step.text)} failed"
    return [f"The session stopped after {after}, without a report"]


def _next_steps(timeline: Timeline, fixes: Fixes, stopped_at: Step | None) -> tuple[str, ...]:
    left = [
        one_line_text.impersonal(one_line_text.without_lead(each))
        for each in final_message.remaining_work(timeline)
    ]
    return tuple(
        _lines([*fixes.failing, *_stopped_line(stopped_at), *left, *_todos(timeline)], _MOST_NEXT)
    )


def _todos(timeline: Timeline) -> list[str]:
    """Open items of the agent's last to-do list, and its open tasks."""
    lists = [
        step for step in timeline.steps if step.tool == tool_calls.TODO_LIST and step.kind == "plan"
    ]
    made: list[str] = []
    done: set[int] = set()
    for step in timeline.steps:
        if step.kind != "plan" or step.tool not in (tool_calls.NEW_TASK, tool_calls.CHANGED_TASK):
            continue
        found = _OPEN_TODO.match(step.text)
        number = _NUMBERED.match(found["what"]) if found else None
        if found and number and found["mark"] in ("x", "deleted"):
            done.add(int(number[1]))
        elif found and number is None and step.tool == tool_calls.NEW_TASK:
            made.append(found["what"].partition("\n")[0])
    left = [what for index, what in enumerate(made, 1) if index not in done]
    if lists:
        matches = map(_OPEN_TODO.match, lists[-1].text.splitlines())
        left += [each["what"] for each in matches if each and each["mark"] != "x"]
    return left


def _read_paths(timeline: Timeline) -> list[str]:
    """The files read, most frequent first."""
    counts: dict[str, int] = {}
    for step in timeline.steps:
        if step.kind == "read" and step.path:
            counts[step.path] = counts.get(step.path, 0) + 1
    return sorted(counts, key=lambda path: -counts[path])


def _by_importance(timeline: Timeline) -> list[str]:
    """The edited files: code before tests, most changed lines first."""
    size: dict[str, int] = {}
    for index in timeline.edits:
        step = timeline.steps[index]
        size[step.path] = size.get(step.path, 0) + step.added + step.removed
    return sorted(size, key=lambda path: (one_line_text.is_test(path), -size[path]))


def _files(paths: Sequence[str]) -> tuple[tuple[str, ...], int]:
    return tuple(paths[:MOST_FILES]), max(0, len(paths) - MOST_FILES)


def _notes(timeline: Timeline, told: Sequence[Observation], fixes: Fixes) -> tuple[str, ...]:
    decided = [_decision_title(each.title) for each in told if each.kind == "decision"]
    used = one_line_text.distinct(
        one_line_text.code(check.shown)
        for step in timeline.steps
        if step.kind == "command" and not is_failing(step)
        for check in checks(step.text)
        if check.goal in ("test", "build", "lint")
    )
    checked = [f"Checked with {one_line_text.listed(used, 3)}"] if used else []
    gone = one_line_text.distinct(
        one_line_text.code(each.name) for each in reverted_items(timeline)
    )
    undone = [f"Added and taken out again: {one_line_text.listed(gone, 3)}"] if gone else []
    notes = [*decided[:4], *fixes.failed_attempts, *undone, *checked]
    return tuple(one_line_text.shortened(note, LONGEST_LINE) for note in notes[:_MOST_NOTES])


def _decision_title(title: str) -> str:
    """A title with `Decided:` in front, unless it already begins like a decision."""
    return title if _DECIDED.match(title) else f"Decided: {title}"


def markdown(summary: Summary) -> str:
    """The summary as the text of a node, without empty sections."""
    sections = (
        ("Request", summary.request),
        ("Investigated", "; ".join(summary.investigated)),
        ("Learned", "; ".join(summary.learned)),
        ("Completed", "; ".join(summary.completed)),
        ("Next Steps", "; ".join(summary.next_steps)),
        ("Files Read", _join_with_rest(summary.files_read, summary.more_read)),
        ("Files Edited", _join_with_rest(summary.files_edited, summary.more_edited)),
        ("Notes", "; ".join(summary.notes)),
    )
    return "\n".join(f"**{name}:** {text}" for name, text in sections if text)


def _join_with_rest(paths: Sequence[str], more: int) -> str:
    return ", ".join([*paths, f"and {more} more"] if more else paths)
