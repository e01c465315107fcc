"""Which edits fixed a failure, and whether the failure was a bug.

An agent also causes failures in code that it is still writing, and fixes them; nobody needs to know
later. So a failure counts only if it existed before the first edit, or if it concerns something
that the session did not create.
"""

import re
from collections.abc import Sequence

from ctx.capture.steps import Step
from ctx.synthesis import wording
from ctx.synthesis.code_changes import describe_changes
from ctx.synthesis.failures import Failure, name_of_test
from ctx.synthesis.net_changes import net_changes
from ctx.synthesis.observations import LONGEST_LINE
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
    code = [index for index in able if not wording.is_test(timeline.steps[index].path)]
    older = [index for index in code if not _only_adds(timeline.steps[index], failure)]
    return tuple(index for index in able if not older or index in older or index not in code)


def _can_fix(path: str, failure: Failure) -> bool:
    return not wording.is_document(path) or _is_named(path, failure)


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
    return wording.is_test(step.path) or (bool(items) and all(each.is_test for each in items))


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
    if failure.check.is_style or all(wording.is_test(timeline.steps[each].path) for each in edits):
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
    files = wording.distinct(step.path for step in steps)
    what = describe_changes(steps, files).rstrip(".") or f"Edited {wording.listed(files, 2)}"
    for message in timeline.messages_between(before, after):
        idea = next((each.text for each in message.sentences if _TRIES.search(each.text)), "")
        if idea:
            what = f"{what} ({wording.shortened(idea.rstrip('.'), 100)})"
            break
    undone = ", and undone" if _is_undone(timeline, steps, after) else ""
    said = failure.messages[failure.fails.index(after)]
    failed_again = "still failed" if failure.gone is None else "failed again"
    failed = f"{wording.code(failure.check.shown)} {failed_again}" + (
        f": {wording.quoted(said)}" if said else ""
    )
    return wording.shortened(f"Tried in vain{undone}: {what}; {failed}", LONGEST_LINE)


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
