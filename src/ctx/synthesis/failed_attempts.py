"""What was tried and did not help."""

import re
from collections.abc import Sequence

from ctx.capture.steps import Step
from ctx.synthesis import one_line_text
from ctx.synthesis.code_changes import changed_in_words
from ctx.synthesis.failures import Complaint
from ctx.synthesis.observations import LONGEST_LINE
from ctx.synthesis.timeline import Course

_MOST_IN_VAIN = 3
_SOME = 50
"""Steps among which something is looked for."""
_TRIES = re.compile(r"\b(?:try|trying|attempt|approach|maybe|perhaps|idea)\b", re.IGNORECASE)
_UNDOES = re.compile(r"\bgit (?:checkout|restore|stash|reset|revert)\b")


def in_vain(course: Course, found: Sequence[Complaint]) -> tuple[str, ...]:
    """Edits after which the same thing was complained about, and that were no progress."""
    told: dict[tuple[int, ...], str] = {}
    for complaint in found:
        pairs = zip(complaint.fails, complaint.fails[1:], strict=False)
        for number, (before, after) in enumerate(pairs):
            edits = tuple(course.edits_between(before, after))
            if not edits or any(before < each < after for each in complaint.passes):
                continue
            steps = [course.steps[index] for index in edits]
            # Where it failed in other words, it may have been a step on the way.
            if complaint.messages[number] == complaint.messages[number + 1] or _is_undone(
                course, steps, after
            ):
                told.setdefault(edits, _vain(course, complaint, steps, before, after))
    return tuple(told.values())[-_MOST_IN_VAIN:]


def _vain(
    course: Course, complaint: Complaint, steps: Sequence[Step], before: int, after: int
) -> str:
    files = one_line_text.distinct(step.path for step in steps)
    what = changed_in_words(steps, files).rstrip(".") or f"Edited {one_line_text.listed(files, 2)}"
    for message in course.messages_between(before, after):
        idea = next((each.text for each in message.sentences if _TRIES.search(each.text)), "")
        if idea:
            what = f"{what} ({one_line_text.shortened(idea.rstrip('.'), 100)})"
            break
    undone = ", and undone" if _is_undone(course, steps, after) else ""
    said = complaint.messages[complaint.fails.index(after)]
    failed = f"{one_line_text.code(complaint.check.shown)} still failed" + (
        f": {said}" if said else ""
    )
    return one_line_text.shortened(f"Tried in vain{undone}: {what}; {failed}", LONGEST_LINE)


def _is_undone(course: Course, edits: Sequence[Step], after: int) -> bool:
    """Whether what these edits brought was taken out again."""
    brought = {line[1:] for step in edits for line in changed_lines(step, "+")}
    paths = {step.path for step in edits}
    for step in course.steps[after : after + _SOME]:
        if step.kind == "command" and _UNDOES.search(step.text[:400]):
            return True
        if step.kind == "write" and step.path in paths and brought:
            taken = {line[1:] for line in changed_lines(step, "-")}
            if brought <= taken:
                return True
    return False


def changed_lines(step: Step, sign: str) -> list[str]:
    lines = step.excerpt[:4_000].splitlines()
    return [line for line in lines if line.startswith(sign) and line[1:].strip()]
