"""Failure, edit, success: a bug fix. And what passes again though nobody did anything."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctx.capture.steps import Step
from ctx.synthesis import cue_phrases, dedupe, one_line_text
from ctx.synthesis.check_commands import checks
from ctx.synthesis.code_changes import changed_in_words, symbols_of
from ctx.synthesis.failed_attempts import changed_lines, in_vain
from ctx.synthesis.failure_edits import is_of_tests, settling, worth
from ctx.synthesis.failures import Complaint, complaints, is_failing, name_of_test
from ctx.synthesis.observations import (
    LONGEST_LINE,
    LONGEST_TEXT,
    LONGEST_TITLE,
    MOST_EVIDENCE,
    MOST_SYMBOLS,
    Observation,
)
from ctx.synthesis.timeline import Course

_FLAKY = 500
_MOST_FILES = 5
_MOST_NAMED = 2
_MOST_FAILING = 4
_MOST_FIXES = 200
_MOST_ATTEMPTS = 10
_SOME = 50
"""Steps among which something is looked for."""
_SKIPS = re.compile(
    r"\bskip|\bxfail|\bxit\(|\bxdescribe|#\[ignore|@Disabled|@Ignore", re.IGNORECASE
)


class Fixes(NamedTuple):
    observations: tuple[Observation, ...]
    flaky: tuple[Observation, ...]
    causes: tuple[str, ...]
    """The sentences that say why something was broken: they are told with the fix."""
    edits: frozenset[int]
    """The steps that belong to a fix."""
    in_vain: tuple[str, ...]
    failing: tuple[str, ...]
    """What still fails at the end."""


class _Fix(NamedTuple):
    complaints: tuple[Complaint, ...]
    edits: tuple[int, ...]
    confidence: int


def fixes(course: Course) -> Fixes:
    found = complaints(course.steps)
    told: list[Observation] = []
    causes: list[str] = []
    edits: set[int] = set()
    for fix in _joined(_fixed(course, found)):
        cause = _cause(course, fix)
        told.append(_observation(course, fix, cause))
        causes.append(cause)
        edits.update(_edits_for(course, fix))
    flaky = [_flaky(course, each) for each in found if _is_flaky(course, each)]
    return Fixes(
        tuple(told),
        tuple(flaky[:_MOST_NAMED]),
        one_line_text.distinct(causes),
        frozenset(edits),
        in_vain(course, found),
        _failing(course, found),
    )


def _fixed(course: Course, found: Sequence[Complaint]) -> list[_Fix]:
    """The complaints that an edit has settled; those that the same edits settled are one."""
    together: dict[tuple[int, ...], _Fix] = {}
    for complaint in found:
        if complaint.gone is None:
            continue
        edits = settling(course, complaint, complaint.gone)
        confidence = worth(course, complaint, edits) if edits else 0
        if confidence:
            known = together.get(edits)
            together[edits] = (
                _Fix((complaint,), edits, confidence)
                if known is None
                else known._replace(
                    complaints=(*known.complaints, complaint),
                    confidence=max(known.confidence, confidence),
                )
            )
    return list(together.values())


def _joined(found: Sequence[_Fix]) -> list[_Fix]:
    """One error that shows in a program and in the test that was written for it is one bug."""
    kept: list[_Fix] = []
    for fix in sorted(found, key=lambda each: len(each.edits))[:_MOST_FIXES]:
        edits, said = set(fix.edits), {each.said for each in fix.complaints}
        for index, other in enumerate(kept):
            if edits >= set(other.edits) and said & {each.said for each in other.complaints}:
                every = sorted((*other.complaints, *fix.complaints), key=lambda each: each.fails[0])
                sure = max(other.confidence, fix.confidence)
                kept[index] = _Fix(tuple(every), other.edits, sure)
                break
        else:
            kept.append(fix)
    return sorted(kept, key=lambda each: each.complaints[0].fails[0])


def _observation(course: Course, fix: _Fix, cause: str) -> Observation:
    steps, first = course.steps, fix.complaints[0]
    edits = [steps[index] for index in fix.edits]
    files = _cause_files(fix, edits)
    said = first.said
    named = _named(fix)
    only_tests = all(map(is_of_tests, edits))
    verb = _done_to_tests(edits) if only_tests else "Fixed"
    title = f"{verb} {named} in {one_line_text.listed(files, 1) or 'the project'}"
    failed = ", which failed" if only_tests else ""
    passing = first.passing or first.check
    parts = [
        _what_failed(first, said),
        "Only tests were changed, not what they test." if only_tests else "",
        _also(fix),
        one_line_text.sentence(f"Cause: {cause}") if cause else "",
        changed_in_words(edits, files) or _ran(edits),
        f"{one_line_text.code(passing.shown)} passed afterwards.",
    ]
    failing = [index for complaint in fix.complaints for index in complaint.fails[:1]]
    gone = [each.gone for each in fix.complaints if each.gone is not None]
    places = sorted({*failing, *fix.edits, *gone})
    return Observation(
        dedupe.key("bugfix", f"{_subject(first, files)} {name_of_test(first.test)} {said}"),
        "refactor" if only_tests else "bugfix",
        one_line_text.shortened(
            f"{title}{failed}: {_without_code(said, named)}" if said else title, LONGEST_TITLE
        ),
        one_line_text.shortened(" ".join(filter(None, parts)), LONGEST_TEXT),
        tuple(files),
        symbols_of(edits)[:MOST_SYMBOLS],
        tuple(steps[index].id for index in _some(places)),
        steps[max(gone)].at,
        fix.confidence,
    )


def _done_to_tests(edits: Sequence[Step]) -> str:
    if any(_SKIPS.search(line) for step in edits for line in changed_lines(step, "+")):
        return "Skipped"
    changes = [change.change for step in edits for change in step.changes]
    return "Removed" if changes and set(changes) == {"deleted"} else "Changed"


def _ran(edits: Sequence[Step]) -> str:
    """What helped, where it was no edit."""
    return f"Ran {one_line_text.listed([one_line_text.code(step.text) for step in edits], 2)}."


def _subject(first: Complaint, files: Sequence[str]) -> str:
    """What was broken. Where nothing says so, it is what was run, and what put it right."""
    return first.test or first.path or " ".join([first.check.shown, *files[:1]])


def _named(fix: _Fix) -> str:
    """What was broken: the tests that failed, else the error, else the command."""
    tests = one_line_text.distinct(name_of_test(each.test) for each in fix.complaints)
    if tests:
        return one_line_text.listed([one_line_text.code(test) for test in tests], _MOST_NAMED)
    first = fix.complaints[0]
    if first.finding and first.finding.code:
        more = len(fix.complaints) - 1
        return f"{first.finding.code} and {more} more" if more else first.finding.code
    return one_line_text.code(first.check.shown)


def _without_code(said: str, named: str) -> str:
    """What was said, without the code that it is called by already."""
    return said.removeprefix(f"{named.partition(' ')[0]}: ")


def _what_failed(complaint: Complaint, said: str) -> str:
    finding = complaint.first
    where = ""
    if finding and finding.path:
        where = f" at {finding.path}:{finding.line}" if finding.line else f" at {finding.path}"
    told = f": {said}" if said else ""
    return one_line_text.sentence(
        f"{one_line_text.code(complaint.check.shown)} failed{where}{told}"
    )


def _also(fix: _Fix) -> str:
    tests = one_line_text.distinct(name_of_test(each.test) for each in fix.complaints[1:])
    return f"Also failing: {one_line_text.listed(tests, 4)}." if tests else ""


def _cause_files(fix: _Fix, edits: Sequence[Step]) -> list[str]:
    """The edited files: those in the trace of the failure first, then code, then tests."""
    traced = {each.path for each in fix.complaints}
    paths = one_line_text.distinct(step.path for step in edits)
    ordered = sorted(
        paths,
        key=lambda path: (
            one_line_text.is_test(path) or one_line_text.is_document(path),
            path not in traced,
            paths.index(path),
        ),
    )
    return ordered[:_MOST_FILES]


def _cause(course: Course, fix: _Fix) -> str:
    """What the agent said about why it was broken."""
    first = min(each.fails[0] for each in fix.complaints)
    last = max(each.gone or 0 for each in fix.complaints)
    said = [
        sentence.text
        for message in course.messages_between(first, last)
        for sentence in message.sentences
        if not sentence.is_question
        and not cue_phrases.is_open(sentence.text)
        and cue_phrases.weight(cue_phrases.CHOICES, sentence.text) < cue_phrases.ENOUGH
        and not dedupe.is_narration(sentence.text)
        and not dedupe.is_junk(sentence.text)
    ]
    best = cue_phrases.strongest(said, cue_phrases.CAUSES)
    if dedupe.is_told(best, course.prompt_texts):
        return ""
    return one_line_text.shortened(one_line_text.without_lead(best), LONGEST_LINE)


def _edits_for(course: Course, fix: _Fix) -> set[int]:
    """The edits of a fix, with those of the same files that had not helped yet."""
    first = min(each.fails[0] for each in fix.complaints)
    paths = {course.steps[index].path for index in fix.edits}
    between = course.edits_between(first, fix.edits[-1])
    before = [index for index in between if course.steps[index].path in paths]
    return {*before[-_MOST_ATTEMPTS:], *fix.edits}


# What passes again though nobody did anything.


def _is_flaky(course: Course, complaint: Complaint) -> bool:
    if not complaint.test or complaint.gone is None:
        return False
    first, last = complaint.fails[-1], complaint.gone
    between = course.steps[first + 1 : last][:_SOME]
    return (
        not course.edits_between(complaint.fails[0], last + 1)
        and not course.remedies_between(complaint.fails[0], last + 1)
        and all(step.kind != "command" or _only_checks(step.text) for step in between)
    )


def _only_checks(command: str) -> bool:
    """Whether a command changes nothing, as far as can be said: a program may do anything."""
    asked = checks(command)
    return bool(asked) and all(check.goal != "run" for check in asked)


def _setting(complaint: Complaint) -> str:
    """The variable with which it passed, and without which it did not."""
    given = complaint.passing.settings if complaint.passing else ()
    return next((name for name in given if name not in complaint.check.settings), "")


def _flaky(course: Course, complaint: Complaint) -> Observation:
    last = course.steps[complaint.gone or 0]
    name = one_line_text.code(name_of_test(complaint.test))
    setting = _setting(complaint)
    if setting:
        title = f"{name} needs {one_line_text.code(setting)}: it failed without and passed with it"
    else:
        title = f"{name} is flaky: it failed and passed without a change"
    text = _what_failed(complaint, complaint.said)
    return Observation(
        dedupe.key("discovery", f"{setting or 'flaky'} {complaint.test}"),
        "discovery",
        one_line_text.shortened(title, LONGEST_TITLE),
        one_line_text.shortened(text, LONGEST_TEXT),
        one_line_text.distinct([complaint.path]),
        (),
        (course.steps[complaint.fails[-1]].id, last.id),
        last.at,
        _FLAKY,
    )


def _failing(course: Course, found: Sequence[Complaint]) -> tuple[str, ...]:
    """What still failed when it was last looked at, by command."""
    told: dict[str, str] = {}
    for complaint in found:
        if complaint.gone is not None or not is_failing(course.steps[complaint.fails[-1]]):
            continue
        is_check = complaint.check.goal != "run" or complaint.finding or len(complaint.fails) > 1
        if is_check:
            said = complaint.messages[-1]
            test = name_of_test(complaint.test)
            what = ": ".join(filter(None, (one_line_text.code(test) if test else "", said)))
            line = f"{one_line_text.code(complaint.check.shown)} still failed" + (
                f": {what}" if what else ""
            )
            told.setdefault(complaint.check.shown, one_line_text.shortened(line, LONGEST_LINE))
    return tuple(told.values())[-_MOST_FAILING:]


def _some(places: Sequence[int]) -> list[int]:
    """Of very many steps, the first and the last ones."""
    half = MOST_EVIDENCE // 2
    few = len(places) <= MOST_EVIDENCE
    return list(places) if few else [*places[:half], *places[-half:]]
