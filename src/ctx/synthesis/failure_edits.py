"""Which edits have settled a complaint, and whether what they settled was a bug.

An agent also fails at what it is just writing, and puts that right: nobody needs to know later. So
a complaint counts that was there before the session touched anything, or that is about something
which the session did not make itself.
"""

from collections.abc import Sequence

from ctx.capture.steps import Step
from ctx.synthesis import one_line_text
from ctx.synthesis.failures import Complaint, name_of_test
from ctx.synthesis.net_changes import net
from ctx.synthesis.timeline import Course

_FOUND_BROKEN, _ASKED_FOR, _BROKE_IT = 900, 800, 700


def settling(course: Course, complaint: Complaint, gone: int) -> tuple[int, ...]:
    """Of what was done before a check was content, that which can have been why.

    Documents are not, where they are not what was complained about; and what was made new is not
    while something was changed that was there before.
    """
    last = complaint.fails[-1]
    # A command may edit and check in one line.
    edits = course.edits_between(last, gone + 1)
    able = [index for index in edits if _can_settle(course.steps[index].path, complaint)]
    if not able:
        return () if edits else tuple(course.remedies_between(last, gone + 1))
    code = [index for index in able if not one_line_text.is_test(course.steps[index].path)]
    older = [index for index in code if not _only_adds(course.steps[index], complaint)]
    return tuple(index for index in able if not older or index in older or index not in code)


def _can_settle(path: str, complaint: Complaint) -> bool:
    return not one_line_text.is_document(path) or _is_named(path, complaint)


def _only_adds(step: Step, complaint: Complaint) -> bool:
    is_new = bool(step.changes) and all(change.change == "new" for change in step.changes)
    return is_new and not step.removed and not _is_named(step.path, complaint)


def _is_named(path: str, complaint: Complaint) -> bool:
    """Whether a complaint speaks of a file."""
    name = path.rpartition("/")[2]
    return path == complaint.path or any(name in said for said in complaint.messages)


def worth(course: Course, complaint: Complaint, edits: Sequence[int]) -> int:
    """How sure it is that something was broken, rather than not finished; 0: not at all."""
    first = complaint.fails[0]
    if complaint.check.is_style:
        return 0
    if complaint.check.goal == "run" and not _is_traced(course, complaint, edits):
        # A program can fail for many reasons that no edit has settled.
        return 0
    if not course.edits or course.edits[0] > first:
        return _FOUND_BROKEN
    if all(is_of_tests(course.steps[index]) for index in edits):
        # Tests follow what they test.
        return 0
    is_asked_for = course.is_about_fixing(course.goal_at(first))
    if complaint.test:
        made_at = course.first_new.get(name_of_test(complaint.test).partition("/")[0], first)
        if is_asked_for:
            return _ASKED_FOR
        return 0 if made_at < first else _BROKE_IT
    # A compiler that is not content with what is being changed is a part of changing it.
    is_own = complaint.check.goal == "lint" or any(
        _touched(course, path, first) for path in (complaint.path, *complaint.check.targets)
    )
    return _ASKED_FOR if is_asked_for and not is_own else 0


def _is_traced(course: Course, complaint: Complaint, edits: Sequence[int]) -> bool:
    """Whether what failed is in a file that was edited then, as far as anybody said."""
    check = complaint.check
    said = " ".join([*check.targets, course.steps[complaint.fails[-1]].output])
    # `python -m shop.report` runs what is in `shop`.
    program = check.tool.partition(".")[0]
    for path in (course.steps[index].path for index in edits):
        is_own = program in path.split("/") or path.rpartition("/")[2] == check.tool
        if path and (is_own or path in said or _is_named(path, complaint)):
            return True
    return False


def _touched(course: Course, path: str, before: int) -> bool:
    return course.first_edits.get(path, before) < before


def is_of_tests(step: Step) -> bool:
    """Whether an edit is of tests alone; some languages have them beside the code."""
    items = net([step])
    return one_line_text.is_test(step.path) or (bool(items) and all(each.is_test for each in items))
