"""Edits that were tried and did not help."""

import re
from collections.abc import Sequence

from ctx.capture.steps import Step
from ctx.synthesis import one_line_text
from ctx.synthesis.code_changes import describe_changes
from ctx.synthesis.failures import Failure
from ctx.synthesis.observations import LONGEST_LINE
from ctx.synthesis.timeline import Timeline

_MOST_FAILED_ATTEMPTS = 3
_SOME = 50
"""The number of following steps that are searched."""
_TRIES = re.compile(r"\b(?:try|trying|attempt|approach|maybe|perhaps|idea)\b", re.IGNORECASE)
_UNDOES = re.compile(
    r"\bgit (?:checkout (?:-f |--force )?(?:HEAD )?(?:--|\.)|restore (?!--staged)|reset --hard"
    r"|revert|stash(?! (?:list|show|pop|apply|drop)))"
)
_UNDOES_ALL = re.compile(r"\bgit (?:checkout (?:-f )?\.|restore \.|reset --hard|stash)")
_RESTORES = re.compile(r"\bgit stash (?:pop|apply)")
_DELETES = re.compile(r"(?:\A|[;&|]\s*)(?:git )?rm ")
_LONGEST_COMMAND = 1_000


def failed_attempts(timeline: Timeline, found: Sequence[Failure]) -> tuple[str, ...]:
    """Edits after which the same check failed in the same way, or that were undone."""
    told: dict[tuple[int, ...], str] = {}
    for failure in found:
        pairs = zip(failure.fails, failure.fails[1:], strict=False)
        for number, (before, after) in enumerate(pairs):
            edits = tuple(timeline.edits_between(before, after))
            if not edits or any(before < each < after for each in failure.passes):
                continue
            if not _is_attempt(timeline, failure, edits, before, after):
                continue
            steps = [timeline.steps[index] for index in edits]
            # A different message may mean progress.
            if failure.messages[number] == failure.messages[number + 1] or _is_undone(
                timeline, steps, after
            ):
                told.setdefault(edits, _failed_attempt(timeline, failure, steps, before, after))
    return tuple(told.values())[-_MOST_FAILED_ATTEMPTS:]


def _is_attempt(
    timeline: Timeline, failure: Failure, edits: Sequence[int], before: int, after: int
) -> bool:
    """Whether edits aimed at a failure: others of the same run may have been fixed instead."""
    if failure.check.is_style or all(
        one_line_text.is_test(timeline.steps[each].path) for each in edits
    ):
        return False
    if timeline.goal_at(before) != timeline.goal_at(after):
        # In between, the user asked for something else.
        return False
    first, second = timeline.steps[before], timeline.steps[after]
    if len(second.findings) < len(first.findings):
        return False
    is_named = failure.test or not failure.path
    return bool(is_named) or any(timeline.steps[each].path == failure.path for each in edits)


def _failed_attempt(
    timeline: Timeline, failure: Failure, steps: Sequence[Step], before: int, after: int
) -> str:
    files = one_line_text.distinct(step.path for step in steps)
    what = describe_changes(steps, files).rstrip(".") or f"Edited {one_line_text.listed(files, 2)}"
    for message in timeline.messages_between(before, after):
        idea = next((each.text for each in message.sentences if _TRIES.search(each.text)), "")
        if idea:
            what = f"{what} ({one_line_text.shortened(idea.rstrip('.'), 100)})"
            break
    undone = ", and undone" if _is_undone(timeline, steps, after) else ""
    said = failure.messages[failure.fails.index(after)]
    failed_again = "still failed" if failure.gone is None else "failed again"
    failed = f"{one_line_text.code(failure.check.shown)} {failed_again}" + (
        f": {one_line_text.quoted(said)}" if said else ""
    )
    return one_line_text.shortened(f"Tried in vain{undone}: {what}; {failed}", LONGEST_LINE)


def _is_undone(timeline: Timeline, edits: Sequence[Step], after: int) -> bool:
    """Whether the lines that these edits added were removed again."""
    brought = {line[1:] for step in edits for line in changed_lines(step, "+")}
    paths = {step.path for step in edits}
    for step in timeline.steps[after : after + _SOME]:
        if step.kind == "command" and _UNDOES.search(step.text[:400]):
            return True
        if step.kind == "write" and step.path in paths and brought:
            taken = {line[1:] for line in changed_lines(step, "-")}
            if brought <= taken:
                return True
    return False


def is_taken_back(timeline: Timeline, edits: Sequence[Step], after: int) -> bool:
    """Whether all files of some edits were restored, deleted or changed back until the end."""
    paths = {step.path for step in edits if step.path}
    taken: set[str] = set()
    for step in timeline.steps[after + 1 :]:
        command = step.text[:_LONGEST_COMMAND] if step.kind == "command" and step.ok else ""
        if _RESTORES.search(command):
            taken.clear()
        elif _UNDOES.search(command) or _DELETES.search(command):
            named = {path for path in paths if path in command}
            taken |= named or (paths if _UNDOES_ALL.search(command) else set())
        elif step.kind == "write" and step.path in paths:
            brought = {
                line[1:]
                for edit in edits
                if edit.path == step.path
                for line in changed_lines(edit, "+")
            }
            if brought and brought <= {line[1:] for line in changed_lines(step, "-")}:
                taken.add(step.path)
    return bool(paths) and paths <= taken


def changed_lines(step: Step, sign: str) -> list[str]:
    lines = step.excerpt[:4_000].splitlines()
    return [line for line in lines if line.startswith(sign) and line[1:].strip()]
