"""Features and refactorings, from the net changes of code items.

Only the final state counts: an item that was created and deleted again does not appear. Related
edits form one observation; edits that belong to a bug fix are reported with the fix.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ctx.capture.steps import Step
from ctx.synthesis import dedupe, final_message, wording
from ctx.synthesis.net_changes import (
    NetChange,
    moved_items,
    net_changes,
    net_changes_at,
    reverted_items,
)
from ctx.synthesis.observations import (
    LONGEST_TEXT,
    LONGEST_TITLE,
    MOST_EVIDENCE,
    MOST_SYMBOLS,
    Observation,
    ObservationKind,
)
from ctx.synthesis.timeline import Goal, Timeline, last_name

_MOST_TOGETHER = 6
_MOST_GROUPS = 5
_MOST_OBSERVATIONS = 12
_MOST_NAMED = 3
_FEWEST_MODIFIED = 3
_EVEN = 0.3
_SHORT = 2
_MUCH = 12
_SURE, _LIKELY, _CLAIMED, _UNFINISHED = 800, 700, 600, 450
_VERBS: tuple[tuple[str, str], ...] = (
    ("new", "added"),
    ("modified", "modified"),
    ("deleted", "removed"),
)
_REFACTORS = re.compile(
    r"\b(?:refactor\w*|renam\w+|mov(?:e|ed|ing)|extract\w*|simplif\w+|split\w*|inlin\w+"
    r"|reorgani[sz]\w+|restructur\w+|clean(?:ed)? ?up|dedup\w*|umbenenn\w+|aufteil\w+)\b",
    re.IGNORECASE,
)
_ADDS = re.compile(
    r"\b(?:add(?:s|ed)?|implement(?:s|ed)?|introduc(?:es|ed)|support(?:s|ed)?|creat(?:es|ed)"
    r"|new)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"`[^`]{0,200}`|\"[^\"]{0,200}\"")
_FIXES = re.compile(
    r"\b(?:fix(?:es|ed)?|correct(?:s|ed)|repair(?:s|ed)|solv(?:es|ed))\b", re.IGNORECASE
)


_FASTER = re.compile(
    r"\b(?:faster|slow(?:er|ly)?|speed\w*|performance|latency|n\+1|optimi[sz]\w+|(?:takes?|took)"
    r" (?:too long|[0-9.]+ ?(?:m?s|seconds?|minutes?))|schneller|langsam)\b"
    r"|\bfrom [0-9.]+ ?m?s to\b",
    re.IGNORECASE,
)
_ALL_GOOD = re.compile(
    rf"{_FIXES.pattern}|\b(?:now|again|no longer|pinned|restored|resolved|jetzt|wieder|behoben)\b",
    re.IGNORECASE,
)
_PROSE = (".md", ".rst", ".txt", ".adoc", ".lock")
_FOLLOWS = 4


class EditGroup(NamedTuple):
    """Related edits that form one observation."""

    paths: tuple[str, ...]
    items: tuple[NetChange, ...]
    places: tuple[int, ...]
    added: int
    removed: int


def changes(
    timeline: Timeline, told: frozenset[int], failing: Sequence[str]
) -> tuple[list[Observation], list[str]]:
    """Features and refactorings by goal, and everything the agent reported as done."""
    found: list[Observation] = []
    done: list[str] = []
    undone = reverted_items(timeline)
    gone = {last_name(each.name) for each in undone if len(last_name(each.name)) > _SHORT + 1}
    for goal in timeline.goals:
        told_by: set[str] = set()
        edits = timeline.edits_between(goal.start - 1, goal.end)
        is_edited = bool(edits or timeline.remedies_between(goal.start - 1, goal.end))
        last = [each for each in timeline.closings(goal) if not edits or each.at > edits[0]]
        said = [
            each
            for each in final_message.completed_work(last, _names(timeline, edits))
            if gone.isdisjoint(re.findall(r"\w+", each))
            # A report on code that nobody changed has findings.
            and (is_edited or final_message.is_done(each))
        ]
        done += said
        is_about_fixing = timeline.is_about_fixing(goal)
        groups = _groups(timeline, edits, told, undone)
        if not groups and is_about_fixing and said:
            groups = _without_code(timeline, edits, told)
        for group in groups:
            sentence = _sentence_about(group, said)
            if not sentence and len(groups) == 1:
                sentence = _sentence_like(group, said)
                is_only_fix = is_about_fixing and len(said) == 1 and told.isdisjoint(edits)
                sentence = sentence or (said[0] if is_only_fix else "")
            if len(groups) > 1 and (sentence in told_by or (told_by and _is_small(group))):
                # Report a shared sentence once, and skip small follow-up edits.
                continue
            told_by |= {sentence} - {""}
            kind = _kind(group, sentence, is_about_fixing=is_about_fixing)
            if kind == "feature" and _is_about_speed(timeline, goal, sentence):
                kind = "refactor"
            if kind is not None:
                # Remaining failures belong to the last goal.
                is_last = goal is timeline.goals[-1]
                found.append(
                    _observation(timeline, goal, group, kind, sentence, failing if is_last else ())
                )
    return found[-_MOST_OBSERVATIONS:], done


def symbols_of(edits: Iterable[Step]) -> tuple[str, ...]:
    """The code items that edits changed, tests last."""
    items = net_changes(edits)
    ordered = sorted(items, key=lambda each: each.is_test)
    return wording.distinct(each.name for each in ordered)


def describe_changes(edits: Sequence[Step], files: Sequence[str]) -> str:
    """`Modified `a`, added `b` in x.py.`; only the files if no code item changed."""
    items = net_changes(edits)
    # Items of tests are listed only if no other code changed.
    code = [each for each in items if not each.is_test] or list(items)
    where = f" in {wording.listed(files, 2)}" if files else ""
    told = _changes_text(code)
    if told:
        return wording.sentence(f"{told}{where}")
    return f"Edited {wording.listed(files, 2)}." if files else ""


def _names(timeline: Timeline, edits: Sequence[int]) -> set[str]:
    """The names by which a sentence can refer to the edited files and items."""
    found = set()
    for index in edits:
        step = timeline.steps[index]
        found.add(posixpath.basename(step.path))
        for change in step.changes:
            found |= {change.name, last_name(change.name)}
    return {name for name in found if len(name) > _SHORT}


def _groups(
    timeline: Timeline, edits: Sequence[int], told: frozenset[int], undone: Sequence[NetChange]
) -> list[EditGroup]:
    """The edits of code: one group if they are few, else one per folder, in order.

    Edits that belong to a bug fix are left out.
    """
    by_path: dict[str, list[int]] = {}
    for index in edits:
        if index not in told and timeline.steps[index].path in timeline.changed_paths:
            by_path.setdefault(timeline.steps[index].path, []).append(index)
    code = [path for path in by_path if not wording.is_test(path)]
    if not code:
        return []
    parts: dict[str, list[str]] = {}
    if len(code) <= _MOST_TOGETHER:
        parts[""] = list(by_path)
    else:
        items = net_changes_at(timeline, (place for places in by_path.values() for place in places))
        # Files that exchanged items by a move go into one group.
        moves = {each.path for pair in moved_items(items) for each in pair}
        for path in sorted(code, key=lambda path: path not in moves):
            parts.setdefault("" if path in moves else f"/{posixpath.dirname(path)}", []).append(
                path
            )
    found = list(parts.values())[:_MOST_GROUPS]
    return [_group(timeline, part, by_path, undone) for part in found]


def _without_code(
    timeline: Timeline, edits: Sequence[int], told: frozenset[int]
) -> list[EditGroup]:
    """Edits of configuration and workflows, which may be fixes too."""
    by_path: dict[str, list[int]] = {}
    for index in edits:
        path = timeline.steps[index].path
        if index not in told and not path.lower().endswith(_PROSE) and not wording.is_test(path):
            by_path.setdefault(path, []).append(index)
    return [_group(timeline, list(by_path), by_path, ())] if by_path else []


def _is_small(group: EditGroup) -> bool:
    """Whether a group has only a few changed lines per file."""
    is_only_modified = all(each.change == "modified" for each in group.items)
    return is_only_modified and group.added + group.removed <= _FOLLOWS * len(group.paths)


def _is_about_speed(timeline: Timeline, goal: Goal, sentence: str) -> bool:
    asked = timeline.steps[goal.start : goal.end]
    prompts = (step.text[:2_000] for step in asked if step.kind == "prompt")
    return any(_FASTER.search(text) for text in [sentence, *prompts])


def _group(
    timeline: Timeline,
    paths: Sequence[str],
    by_path: Mapping[str, Sequence[int]],
    undone: Sequence[NetChange],
) -> EditGroup:
    places = tuple(sorted(index for path in paths for index in by_path[path]))
    steps = [timeline.steps[index] for index in places]
    added = sum(step.added for step in steps)
    removed = sum(step.removed for step in steps)
    ordered = sorted(paths, key=lambda path: (wording.is_test(path), by_path[path][0]))
    gone = {(each.path, each.name) for each in undone}
    items = tuple(each for each in net_changes(steps) if (each.path, each.name) not in gone)
    return EditGroup(tuple(ordered), items, places, added, removed)


def _kind(group: EditGroup, sentence: str, *, is_about_fixing: bool) -> ObservationKind | None:
    code = [each for each in group.items if not each.is_test]
    new = [each for each in code if each.change == "new" and each.is_public]
    deleted = [each for each in code if each.change == "deleted"]
    modified = [each for each in code if each.change == "modified"]
    if not code:
        is_put_right = is_about_fixing and sentence and not _ADDS.match(sentence)
        return "bugfix" if is_put_right and _ALL_GOOD.search(sentence) and not group.items else None
    if moved_items(code) or (_REFACTORS.search(sentence) and not _ADDS.search(sentence)):
        return "refactor"
    is_fix = is_about_fixing and sentence and not new
    if not _ADDS.match(sentence) and (is_fix or _FIXES.search(_QUOTED.sub("", sentence))):
        return "bugfix"
    if new and len(new) >= len(deleted):
        return "feature"
    total = group.added + group.removed
    is_even = abs(group.added - group.removed) <= _EVEN * total
    if deleted or (len(modified) >= _FEWEST_MODIFIED and is_even):
        return "refactor"
    # A small change that the agent does not mention is not reported.
    return "feature" if sentence or group.added - group.removed >= _MUCH else None


def _sentence_about(group: EditGroup, closing: Sequence[str]) -> str:
    """The sentence of the final message that names most of the changed items."""
    names = {last_name(each.name) for each in group.items if len(last_name(each.name)) > _SHORT}
    names |= {posixpath.basename(path) for path in group.paths}
    best, most = "", 0
    for sentence in closing:
        tokens = set(re.findall(r"[\w.]+", sentence)) | set(re.findall(r"\w+", sentence))
        count = len({token.strip(".") for token in tokens} & names)
        if count > most:
            best, most = sentence, count
    return best


def _sentence_like(group: EditGroup, closing: Sequence[str]) -> str:
    """The sentence with most words in common with the changed paths and items."""
    about = dedupe.words(" ".join([*group.paths, *(each.name for each in group.items)]))
    best = max(closing, key=lambda text: len(dedupe.words(text) & about), default="")
    return best if dedupe.words(best) & about else ""


def _observation(
    timeline: Timeline,
    goal: Goal,
    group: EditGroup,
    kind: ObservationKind,
    sentence: str,
    failing: Sequence[str],
) -> Observation:
    code = [each for each in group.items if not each.is_test]
    files = [path for path in group.paths if not wording.is_test(path)]
    tests = [path for path in group.paths if wording.is_test(path)]
    moves = moved_items(code)
    elsewhere = {each for pair in moves for each in pair}
    others = [each for each in code if each not in elsewhere]
    told = _changes_text(others)
    touched = {each.path for each in others}
    where = [path for path in files if path in touched]
    title = wording.impersonal(sentence.rstrip(".")) or wording.capital(_brief(code, files))
    edited = f"Edited {wording.listed(files, 3)}." if files and not code else ""
    parts = [
        wording.sentence(f"{told} in {wording.listed(where, 3)}") if told else edited,
        _renames_text(moves),
        f"Tests in {wording.listed(tests, 2)}." if tests else "",
        wording.sentence(f"Not finished: {failing[0]}") if failing else "",
    ]
    sure = _CLAIMED if kind == "bugfix" else _SURE if sentence else _LIKELY
    steps = [timeline.steps[index] for index in group.places]
    return Observation(
        f"changes:{goal.name}:{steps[0].path}",
        kind,
        wording.shortened(title, LONGEST_TITLE),
        wording.shortened(" ".join(filter(None, parts)), LONGEST_TEXT),
        tuple(group.paths[:5]),
        wording.distinct(each.name for each in code)[:MOST_SYMBOLS],
        tuple(step.id for step in steps[:MOST_EVIDENCE]),
        steps[-1].at,
        _UNFINISHED if failing else sure,
    )


def _changes_text(items: Sequence[NetChange]) -> str:
    """`added `a` and `b`, modified `c``."""
    parts = []
    for change, verb in _VERBS:
        named = wording.distinct(_code(each) for each in items if each.change == change)
        if named:
            parts.append(f"{verb} {wording.listed(named, _MOST_NAMED)}")
    return ", ".join(parts)


def _brief(items: Sequence[NetChange], files: Sequence[str]) -> str:
    """The most important change and its file: added items first, then modified ones."""
    for change, verb in _VERBS:
        public = [each for each in items if each.change == change and each.is_public]
        named = wording.distinct(_code(each) for each in public)
        if named:
            where = wording.distinct(each.path for each in public)
            return f"{verb} {wording.listed(named, 1)} in {wording.listed(where, 1)}"
    return f"{_changes_text(items) or 'edited code'} in {wording.listed(files, 1)}"


def _renames_text(moves: Sequence[tuple[NetChange, NetChange]]) -> str:
    told = []
    for before, after in moves:
        if before.name == after.name:
            told.append(f"{_code(before)} moved to {after.path}")
        else:
            where = f" in {after.path}" if before.path != after.path else ""
            told.append(f"{_code(before)} became {_code(after)}{where}")
    return wording.sentence(wording.listed(told, _MOST_NAMED)) if told else ""


def _code(item: NetChange) -> str:
    return wording.code(item.name)
