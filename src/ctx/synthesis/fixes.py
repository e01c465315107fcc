"""Bug fixes (failure, edit, success) and flaky tests (failure, no edit, success)."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctx.capture.steps import Step
from ctx.synthesis import cue_phrases, dedupe, wording
from ctx.synthesis.check_commands import checks
from ctx.synthesis.code_changes import describe_changes, symbols_of
from ctx.synthesis.failure_edits import (
    bug_confidence,
    changed_lines,
    edits_only_tests,
    failed_attempts,
    fixing_edits,
    is_taken_back,
)
from ctx.synthesis.failures import Failure, failures_in, is_failing, name_of_test
from ctx.synthesis.observations import (
    LONGEST_LINE,
    LONGEST_TEXT,
    LONGEST_TITLE,
    MOST_EVIDENCE,
    MOST_SYMBOLS,
    Observation,
)
from ctx.synthesis.timeline import Timeline

_FLAKY = 500
_MOST_FILES = 5
_MOST_NAMED = 2
_MOST_FAILING = 4
_MOST_FIXES = 200
_MOST_ATTEMPTS = 10
_LONGEST_COMMAND = 45
_SOME = 50
"""The number of steps that are searched."""
_SKIPS = re.compile(
    r"\bskip|\bxfail|\bxit\(|\bxdescribe|#\[ignore|@Disabled|@Ignore", re.IGNORECASE
)


class Fixes(NamedTuple):
    observations: tuple[Observation, ...]
    flaky: tuple[Observation, ...]
    causes: tuple[str, ...]
    """Sentences that explain a bug; they are part of the fix."""
    edits: frozenset[int]
    """The indexes of the edits that belong to a fix."""
    failed_attempts: tuple[str, ...]
    failing: tuple[str, ...]
    """What still fails at the end."""


class _Fix(NamedTuple):
    failures: tuple[Failure, ...]
    edits: tuple[int, ...]
    confidence: int


def fixes(timeline: Timeline) -> Fixes:
    found = failures_in(timeline.steps)
    told: list[Observation] = []
    causes: list[str] = []
    edits: set[int] = set()
    for fix in _merge_fixes(_find_fixes(timeline, found)):
        if _is_taken_back(timeline, fix):
            continue
        cause = _cause(timeline, fix)
        told.append(_observation(timeline, fix, cause))
        causes.append(cause)
        edits.update(_edits_for(timeline, fix))
    flaky = [_flaky(timeline, each) for each in found if _is_flaky(timeline, each)]
    return Fixes(
        tuple(told),
        tuple(flaky[:_MOST_NAMED]),
        wording.distinct(causes),
        frozenset(edits),
        failed_attempts(timeline, found),
        _still_failing(timeline, found),
    )


def _find_fixes(timeline: Timeline, found: Sequence[Failure]) -> list[_Fix]:
    """The failures that edits fixed; failures fixed by the same edits form one fix."""
    together: dict[tuple[int, ...], _Fix] = {}
    for failure in found:
        if failure.gone is None or (failure.could_not_run and failure.is_other_command):
            continue
        edits = fixing_edits(timeline, failure, failure.gone)
        confidence = bug_confidence(timeline, failure, edits) if edits else 0
        if confidence:
            known = together.get(edits)
            together[edits] = (
                _Fix((failure,), edits, confidence)
                if known is None
                else known._replace(
                    failures=(*known.failures, failure),
                    confidence=max(known.confidence, confidence),
                )
            )
    return list(together.values())


def _is_taken_back(timeline: Timeline, fix: _Fix) -> bool:
    last = max((each.gone or 0 for each in fix.failures), default=0)
    return is_taken_back(timeline, [timeline.steps[index] for index in fix.edits], last)


def _merge_fixes(found: Sequence[_Fix]) -> list[_Fix]:
    """Merge fixes of the same error, such as one in a program and in the test written for it."""
    kept: list[_Fix] = []
    for fix in sorted(found, key=lambda each: len(each.edits))[:_MOST_FIXES]:
        edits, said = set(fix.edits), {each.first_message for each in fix.failures}
        for index, other in enumerate(kept):
            if edits >= set(other.edits) and said & {each.first_message for each in other.failures}:
                every = sorted((*other.failures, *fix.failures), key=lambda each: each.fails[0])
                sure = max(other.confidence, fix.confidence)
                kept[index] = _Fix(tuple(every), other.edits, sure)
                break
        else:
            kept.append(fix)
    return sorted(kept, key=lambda each: each.failures[0].fails[0])


def _observation(timeline: Timeline, fix: _Fix, cause: str) -> Observation:
    steps, first = timeline.steps, fix.failures[0]
    edits = [steps[index] for index in fix.edits]
    files = _cause_files(fix, edits)
    said = first.first_message
    named = _broken_thing(fix)
    only_tests = all(map(edits_only_tests, edits))
    verb = _done_to_tests(edits) if only_tests else "Fixed"
    title = f"{verb} {named} in {wording.listed(files, 1) or 'the project'}"
    failed = ", which failed" if only_tests else ""
    passing = first.passing or first.check
    parts = [
        _failure_text(first, said),
        "Only tests were changed, not what they test." if only_tests else "",
        _other_failures_text(fix),
        wording.sentence(f"Cause: {cause}") if cause else "",
        describe_changes(edits, files) or _helpful_commands(edits),
        f"{wording.code(passing.shown)} passed afterwards.",
    ]
    failing = [index for failure in fix.failures for index in failure.fails[:1]]
    gone = [each.gone for each in fix.failures if each.gone is not None]
    places = sorted({*failing, *fix.edits, *gone})
    return Observation(
        dedupe.key("bugfix", f"{_subject(first, files)} {name_of_test(first.test)} {said}"),
        "refactor" if only_tests else "bugfix",
        wording.shortened(
            f"{title}{failed}: {wording.quoted(_without_code(said, named))}" if said else title,
            LONGEST_TITLE,
        ),
        wording.shortened(" ".join(filter(None, parts)), LONGEST_TEXT),
        tuple(files),
        symbols_of(edits)[:MOST_SYMBOLS],
        tuple(steps[index].id for index in _limit_indexes(places)),
        steps[max(gone)].at,
        fix.confidence,
    )


def _done_to_tests(edits: Sequence[Step]) -> str:
    if any(_SKIPS.search(line) for step in edits for line in changed_lines(step, "+")):
        return "Skipped"
    changes = [change.change for step in edits for change in step.changes]
    return "Removed" if changes and set(changes) == {"deleted"} else "Changed"


def _helpful_commands(edits: Sequence[Step]) -> str:
    """The commands that helped, if it was not an edit."""
    return f"Ran {wording.listed([wording.code(step.text) for step in edits], 2)}."


def _subject(first: Failure, files: Sequence[str]) -> str:
    """What was broken; if unknown, the command that failed and the file that fixed it."""
    return first.test or first.path or " ".join([first.check.shown, *files[:1]])


def _broken_thing(fix: _Fix) -> str:
    """The name of what was broken: the failing tests, the error code, or the command."""
    tests = wording.distinct(name_of_test(each.test) for each in fix.failures)
    if tests:
        return wording.listed([wording.code(test) for test in tests], _MOST_NAMED)
    first = fix.failures[0]
    if first.finding and first.finding.code:
        more = len(fix.failures) - 1
        return f"{first.finding.code} and {more} more" if more else first.finding.code
    return wording.code(first.check.shown)


def _without_code(said: str, named: str) -> str:
    """The message without an error code that the title already has."""
    return said.removeprefix(f"{named.partition(' ')[0]}: ")


def _failure_text(failure: Failure, said: str) -> str:
    finding = failure.first
    where = ""
    if finding and finding.path:
        where = f" at {finding.path}:{finding.line}" if finding.line else f" at {finding.path}"
    told = f": {wording.quoted(said)}" if said else ""
    return wording.sentence(f"{wording.code(failure.check.shown)} failed{where}{told}")


def _other_failures_text(fix: _Fix) -> str:
    tests = wording.distinct(name_of_test(each.test) for each in fix.failures[1:])
    return f"Also failing: {wording.listed(tests, 4)}." if tests else ""


def _cause_files(fix: _Fix, edits: Sequence[Step]) -> list[str]:
    """The edited files: code before tests and documents, files named in the failure first."""
    traced = {each.path for each in fix.failures}
    paths = wording.distinct(step.path for step in edits)
    ordered = sorted(
        paths,
        key=lambda path: (
            wording.is_test(path) or wording.is_document(path),
            path not in traced,
            paths.index(path),
        ),
    )
    return ordered[:_MOST_FILES]


def _cause(timeline: Timeline, fix: _Fix) -> str:
    """The agent's explanation of the bug."""
    first = min(each.fails[0] for each in fix.failures)
    last = max(each.gone or 0 for each in fix.failures)
    said = [
        sentence.text
        for message in timeline.messages_between(first, last)
        for sentence in message.sentences
        if not sentence.is_question
        and not cue_phrases.is_open(sentence.text)
        and cue_phrases.weight(cue_phrases.CHOICES, sentence.text) < cue_phrases.ENOUGH
        and not dedupe.is_narration(sentence.text)
        and not dedupe.is_junk(sentence.text)
    ]
    best = cue_phrases.strongest(said, cue_phrases.CAUSES)
    if dedupe.is_repeated(best, timeline.prompt_texts):
        return ""
    return wording.shortened(wording.without_lead(best), LONGEST_LINE)


def _edits_for(timeline: Timeline, fix: _Fix) -> set[int]:
    """The edits of a fix, with earlier edits of the same files that did not help."""
    first = min(each.fails[0] for each in fix.failures)
    paths = {timeline.steps[index].path for index in fix.edits}
    between = timeline.edits_between(first, fix.edits[-1])
    before = [index for index in between if timeline.steps[index].path in paths]
    return {*before[-_MOST_ATTEMPTS:], *fix.edits}


# Flaky tests


def _is_flaky(timeline: Timeline, failure: Failure) -> bool:
    if not failure.test or failure.gone is None:
        return False
    first, last = failure.fails[-1], failure.gone
    between = timeline.steps[first + 1 : last][:_SOME]
    return (
        not timeline.edits_between(failure.fails[0], last + 1)
        and not timeline.remedies_between(failure.fails[0], last + 1)
        and all(step.kind != "command" or _only_checks(step.text) for step in between)
    )


def _only_checks(command: str) -> bool:
    """Whether a command only runs checks; a program may do anything."""
    asked = checks(command)
    return bool(asked) and all(check.goal != "run" for check in asked)


def _changed_variable(failure: Failure) -> str:
    """The environment variable that was set only in the passing run."""
    given = failure.passing.settings if failure.passing else ()
    return next((name for name in given if name not in failure.check.settings), "")


def _flaky(timeline: Timeline, failure: Failure) -> Observation:
    last = timeline.steps[failure.gone or 0]
    name = wording.code(name_of_test(failure.test))
    setting = _changed_variable(failure)
    failed, passed = failure.check.typed, (failure.passing or failure.check).typed
    if setting:
        title = f"{name} needs {wording.code(setting)}: it failed without and passed with it"
    elif failed != passed:
        # A difference between two commands is not flakiness.
        setting = passed
        run_by = [wording.shortened(each, _LONGEST_COMMAND) for each in (failed, passed)]
        failed, passed = map(wording.code, run_by)
        title = f"{name} fails with {failed} and passes with {passed}"
    else:
        title = f"{name} is flaky: it failed and passed without a change"
    text = _failure_text(failure, failure.first_message)
    return Observation(
        dedupe.key("discovery", f"{setting or 'flaky'} {failure.test}"),
        "discovery",
        wording.shortened(title, LONGEST_TITLE),
        wording.shortened(text, LONGEST_TEXT),
        wording.distinct([failure.path]),
        (),
        (timeline.steps[failure.fails[-1]].id, last.id),
        last.at,
        _FLAKY,
    )


def _still_failing(timeline: Timeline, found: Sequence[Failure]) -> tuple[str, ...]:
    """What failed in the last run of each command."""
    told: dict[str, str] = {}
    for failure in found:
        if failure.gone is not None or not is_failing(timeline.steps[failure.fails[-1]]):
            continue
        if failure.is_unclear or failure.could_not_run or failure.check.fixes:
            continue
        if failure.finding and not failure.test and not failure.path:
            # An error about options or settings of the tool, not about a file.
            continue
        is_check = failure.check.goal != "run" or failure.finding or len(failure.fails) > 1
        if is_check:
            said = failure.messages[-1]
            test = name_of_test(failure.test)
            named = wording.code(test) if test else ""
            what = ": ".join(filter(None, (named, wording.quoted(said))))
            line = f"{wording.code(failure.check.shown)} still failed" + (
                f": {what}" if what else ""
            )
            told.setdefault(failure.check.shown, wording.shortened(line, LONGEST_LINE))
    return tuple(told.values())[-_MOST_FAILING:]


def _limit_indexes(places: Sequence[int]) -> list[int]:
    """The indexes, reduced to the first and last ones if there are too many."""
    half = MOST_EVIDENCE // 2
    few = len(places) <= MOST_EVIDENCE
    return list(places) if few else [*places[:half], *places[-half:]]
