"""Which edits fixed a failure, and whether the failure was a bug.

An agent also causes failures in code that it is still writing, and fixes them; nobody needs to know
later. So a failure counts only if it existed before the first edit, or if it concerns something
that the session did not create.
"""

from collections.abc import Sequence

from ctx.capture.steps import Step
from ctx.synthesis import one_line_text
from ctx.synthesis.failures import Failure, name_of_test
from ctx.synthesis.net_changes import net_changes
from ctx.synthesis.timeline import Timeline

_FOUND_BROKEN, _ASKED_FOR, _BROKE_IT = 900, 800, 700


def fixing_edits(timeline: Timeline, failure: Failure, gone: int) -> tuple[int, ...]:
    """The edits before a check passed that can be the reason why.

    Edits of documents do not count unless the failure names them. Additions of new code do not
    count if existing code was changed too.
    """
    last = failure.fails[-1]
    # A single command line may edit and check.
    edits = timeline.edits_between(last, gone + 1)
    able = [index for index in edits if _can_fix(timeline.steps[index].path, failure)]
    if not able:
        return () if edits else tuple(timeline.remedies_between(last, gone + 1))
    code = [index for index in able if not one_line_text.is_test(timeline.steps[index].path)]
    older = [index for index in code if not _only_adds(timeline.steps[index], failure)]
    return tuple(index for index in able if not older or index in older or index not in code)


def _can_fix(path: str, failure: Failure) -> bool:
    return not one_line_text.is_document(path) or _is_named(path, failure)


def _only_adds(step: Step, failure: Failure) -> bool:
    is_new = bool(step.changes) and all(change.change == "new" for change in step.changes)
    return is_new and not step.removed and not _is_named(step.path, failure)


def _is_named(path: str, failure: Failure) -> bool:
    """Whether a failure names a file."""
    name = path.rpartition("/")[2]
    return path == failure.path or any(name in said for said in failure.messages)


def bug_confidence(timeline: Timeline, failure: Failure, edits: Sequence[int]) -> int:
    """The confidence that something was broken and not just unfinished; 0 means no bug."""
    first = failure.fails[0]
    if failure.check.is_style:
        return 0
    if failure.check.goal == "run" and not _is_traced(timeline, failure, edits):
        # A program can fail for many reasons that are unrelated to the edits.
        return 0
    if not timeline.edits or timeline.edits[0] > first:
        return _FOUND_BROKEN
    if all(edits_only_tests(timeline.steps[index]) for index in edits):
        # Changing only tests fixes no bug.
        return 0
    is_asked_for = timeline.is_about_fixing(timeline.goal_at(first))
    if failure.test:
        made_at = timeline.first_new.get(name_of_test(failure.test).partition("/")[0], first)
        if is_asked_for:
            return _ASKED_FOR
        return 0 if made_at < first or _is_red_phase(timeline, failure) else _BROKE_IT
    # Compiler errors in code that is being edited are part of editing it.
    is_own = failure.check.goal == "lint" or any(
        _was_edited_before(timeline, path, first) for path in (failure.path, *failure.check.targets)
    )
    return _ASKED_FOR if is_asked_for and not is_own else 0


def _is_red_phase(timeline: Timeline, failure: Failure) -> bool:
    """Whether a test failed because it was just changed to ask for more than the code does."""
    before = timeline.edits_between(-1, failure.fails[0])
    last = timeline.steps[before[-1]] if before else None
    if last is None or not edits_only_tests(last):
        return False
    name = last.path.rpartition("/")[2]
    named = {name_of_test(change.name) for change in last.changes}
    return last.path == failure.path or name in failure.test or name_of_test(failure.test) in named


def _is_traced(timeline: Timeline, failure: Failure, edits: Sequence[int]) -> bool:
    """Whether the failing program, its targets or its output name an edited file."""
    check = failure.check
    said = " ".join([*check.targets, timeline.steps[failure.fails[-1]].output])
    # `python -m shop.report` runs code in `shop`.
    program = check.tool.partition(".")[0]
    for path in (timeline.steps[index].path for index in edits):
        is_own = program in path.split("/") or path.rpartition("/")[2] == check.tool
        if path and (is_own or path in said or _is_named(path, failure)):
            return True
    return False


def _was_edited_before(timeline: Timeline, path: str, before: int) -> bool:
    return timeline.first_edits.get(path, before) < before


def edits_only_tests(step: Step) -> bool:
    """Whether an edit changes only tests; some languages keep them beside the code."""
    items = net_changes([step])
    return one_line_text.is_test(step.path) or (bool(items) and all(each.is_test for each in items))
