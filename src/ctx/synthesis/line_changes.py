"""Small changes of a session: a line before and after, where else it changed, and the reason.

    `api/config.ts`: `timeout: 30` → `timeout: 90`; also in `docs/limits.md`. The export takes a
    minute.

Only lines that differ in a few words count: a value, a name, a condition. The change is net over
the session: what was changed back, or was written by the session itself, is none.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ctx import terms
from ctx.capture.steps import Step
from ctx.synthesis import wording
from ctx.synthesis.timeline import Timeline, last_name

MOST = 12
"""The most changes of a session."""

_LONGEST = 240
_LONGEST_LINE, _LONGEST_SIDES, _LONGEST_OLD, _LONGEST_MIDDLE = 160, 120, 80, 90
_CONTEXT = 24
_NEAR, _MUCH = 6, 3
_MOST_OF_A_FILE, _MOST_PLACES, _MOST_PARTS = 3, 4, 4
_LONGEST_REASON, _FEWEST_REASON_TERMS = 130, 3
_MOST_LINES = 12
"""Of a larger edit, not all lines are stored, so those that are could be paired wrongly."""
_ALIKE = 0.5
_DISTINCT = 5
"""A changed text of so many characters is the same change in every file."""
_FEWEST_NEW_LINES = 10

_TOKEN = re.compile(r"[\w.@#$%-]+|\s+|.")
_SETTING = re.compile(r"\s*([\w.$\"'-]+)\s*[:=](?![:=])\s*(.*)")
_END = re.compile(r"[\s,;{]+\Z")
_NO_TEXT = re.compile(r"[\s,;'\"`()_“”‘’]+")
# Comments, imports and output say little about what a program does.
_DULL = re.compile(
    r"(?://|</|#(?![\da-f]{3}|[\w-]+ *[{:])|\*|/\*|<!--|--\s|\"{3}|import\b|from\b.*\bimport\b"
    r"|(?:pub )?use\b|using\b|#include|export \* |(?:export )?(?:const|var|let) .*\brequire\("
    r"|package\b|.{0,30}\b(?:console\.\w+|print\w*!?|log(?:ger|ging)?\.\w+|log\(|echo|Write-Host)\b)"
)
_GENERATED = re.compile(
    r"\A/(?:tmp|var|private)/|/\.(?:claude|codex|cursor|copilot|gemini)/"
    r"|(?:\A|/)(?:node_modules|dist|build|out|vendor|target|\.next|__snapshots__|coverage)/"
    r"|\.(?:min\.(?:js|css)|map|snap|svg|csv|log|ipynb|lockb?)\Z|(?:-lock\.|\.g\.|\.pb\.|_pb2\.)\w+\Z"
)
_PROSE = (".md", ".mdx", ".rst", ".txt", ".adoc", ".mdc")
_VALUE = re.compile(
    r"[\d.\"'#%-]*\d[\w.%\"'-]*|true|false|null|none|[A-Z_]{3,}|[\"'].*[\"']", re.IGNORECASE
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d")
_CAUSES = re.compile(
    r"\b(?:because|since|so that|otherwise|caus(?:e[sd]?|ing)|due to|turns? out|instead of"
    r"|rather than|was(?:n['’]t)? (?:missing|never|not|using|set|still|too|being)|were (?:missing"
    r"|never|not|using)|too (?:\w+)|to (?:avoid|prevent|match|ensure|fix)|doesn['’]?t"
    r"|does not|isn['’]?t|can(?:no|['’])t|no longer|mismatch|wrong|incorrect|expects?|requires?"
    r"|needs? to|weil|damit|sonst)\b",
    re.IGNORECASE,
)
_NARRATES = re.compile(
    r"(?:if|but|you|this|now|next|then|first|let['’]?s|let me|i['’]?(?:ll|m|ve|d)?|we['’]?(?:ll)?"
    r"|done|great|perfect|good|excellent|ok(?:ay)?|all|checking|updating|adding|fixing|looking"
    r"|reading|running|going|here['’]s)\b"
    r"|.*\b(?:let me|i['’]ll|i will|i need to|i['’]m going to|next steps?)\b",
    re.IGNORECASE,
)


class LineChange(NamedTuple):
    step: Step
    text: str
    has_cause: bool


class _Change(NamedTuple):
    step: Step
    place: int
    old: str
    new: str


def line_changes(steps: Sequence[Step]) -> list[LineChange]:
    """The most telling changes of a session, in order."""
    timeline = Timeline(steps)
    groups: dict[tuple[str, str, str], list[_Change]] = {}
    for change in _net_changes(timeline):
        groups.setdefault(_key(change), []).append(change)
    rated = []
    for group in groups.values():
        group.sort(key=lambda each: _is_secondary(each.step.path))
        first = group[0]
        if _is_secondary(first.step.path):
            continue
        reason, has_cause = _reason(timeline, first)
        old, new = _middle(first)[1:3]
        is_value = all(_VALUE.fullmatch(side.strip()) for side in (old, new) if side.strip())
        score = 2 * has_cause + bool(reason) + min(len(group) - 1, 2) + 2 * is_value
        score -= "class" in first.new and not is_value
        rated.append((score, first.place, LineChange(first.step, _text(group, reason), has_cause)))
    rated.sort(key=lambda each: (-each[0], -each[1]))
    counts: Counter[str] = Counter()
    chosen: list[tuple[int, LineChange]] = []
    for _, place, found in rated:
        counts[found.step.path] += 1
        if counts[found.step.path] <= _MOST_OF_A_FILE and len(chosen) < MOST:
            chosen.append((place, found))
    return [found for _, found in sorted(chosen, key=lambda each: each[0])]


# The net change of each line


def _net_changes(timeline: Timeline) -> list[_Change]:
    """The changed lines that are still there at the end."""
    live: dict[tuple[str, str], _Change] = {}
    own: set[tuple[str, str]] = set()
    known, new_files = set[str](), set[str]()
    for place, step in enumerate(timeline.steps):
        path = step.path
        if step.kind != "write" or not step.ok:
            known.add(path)
            continue
        if path not in known and not step.removed and step.added >= _FEWEST_NEW_LINES:
            new_files.add(path)
        known.add(path)
        if path in new_files or _GENERATED.search(path):
            continue
        for before, after in _pairs(step):
            key = path, _NO_TEXT.sub("", before)
            if not after:
                live.pop(key, None)
                continue
            new_key = path, _NO_TEXT.sub("", after)
            if not before or key in own:
                own.discard(key)
                own.add(new_key)
                continue
            first = live.pop(key, None)
            old = first.old if first else before
            if _NO_TEXT.sub("", old) != new_key[1]:
                live[new_key] = _Change(step, place, old, after)
    return [each for each in live.values() if _is_telling(each)]


def _pairs(step: Step) -> Iterator[tuple[str, str]]:
    """The changed lines, before and after; one of them is empty if a line has no counterpart."""
    # The end of a longer line is not stored.
    every = [line for line in step.excerpt.splitlines() if line[:1] in ("+", "-")]
    lines = [line for line in every if len(line) < _LONGEST_LINE]
    if step.added + step.removed > _MOST_LINES:
        # These lines are known, but not what they replaced.
        yield from (("", line[1:].strip()) for line in lines if line[0] == "+")
        return
    removed: list[str] = []
    added: list[str] = []
    for line in [*lines, "-"]:
        if line[0] == "-" and added:
            yield from _matched(removed, added)
            removed, added = [], []
        (removed if line[0] == "-" else added).append(line[1:])
    yield from _matched(removed[:-1], added)


def _matched(removed: list[str], added: list[str]) -> Iterator[tuple[str, str]]:
    left = list(added)
    for before in removed:
        best = max(left, key=lambda after: _likeness(before, after), default="")
        if best and _likeness(before, best) >= _ALIKE:
            left.remove(best)
            yield before.strip(), best.strip()
        else:
            yield before.strip(), ""
    yield from (("", after.strip()) for after in left)


def _likeness(before: str, after: str) -> float:
    """How alike two lines are; not at all if they set two names to two values."""
    names = _SETTING.match(before), _SETTING.match(after)
    if names[0] and names[1] and names[0][1] != names[1][1] and names[0][2] != names[1][2]:
        return 0.0
    one, other = (_TOKEN.findall(line.strip()) for line in (before, after))
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _is_telling(change: _Change) -> bool:
    before, old, new, _ = _middle(change)
    is_cut = not before.strip() and (change.old in change.new or change.new in change.old)
    return (
        not is_cut
        and not (_DATE.search(old) and _DATE.search(new))
        and max(len(old), len(new)) <= _LONGEST_MIDDLE
        and not _DULL.match(change.old)
        and not _DULL.match(change.new)
        and _NO_TEXT.sub("", old) != _NO_TEXT.sub("", new)
        # A line that was wrapped.
        and change.old.count("(") - change.old.count(")")
        == change.new.count("(") - change.new.count(")")
        and re.search(r"\w", old + new) is not None
    )


def _middle(change: _Change) -> tuple[str, str, str, str]:
    """What is common before, the two texts that differ, and what is common behind."""
    old, new = _TOKEN.findall(change.old), _TOKEN.findall(change.new)
    most = min(len(old), len(new))
    first = next((at for at in range(most) if old[at] != new[at]), most)
    last = next((at for at in range(most - first) if old[-1 - at] != new[-1 - at]), most - first)
    ends = len(old) - last, len(new) - last
    return (
        "".join(old[:first]),
        "".join(old[first : ends[0]]),
        "".join(new[first : ends[1]]),
        "".join(old[ends[0] :]),
    )


def _is_secondary(path: str) -> bool:
    """Whether a file follows what other files do: a test, a document."""
    return wording.is_test(path) or wording.is_document(path) or path.endswith(_PROSE)


def _key(change: _Change) -> tuple[str, str, str]:
    """Changes with the same key are one change in several places."""
    before, old, new, _ = _middle(change)
    if not old.strip():
        return "", change.old, change.new
    # `timeout: 30` and `retries: 30` are not the same, but two mentions of a version are.
    names = re.findall(r"\w+", before)[-1:] if len(new.strip()) < _DISTINCT else []
    return "".join(names), old, new


# Its text


def _text(group: Sequence[_Change], reason: str) -> str:
    first = group[0]
    old, new = _sides(first)
    items = [each.name for each in first.step.changes if each.change == "modified"]
    item = f" {wording.code(last_name(items[-1]))}" if len(items) in (1, 2) else ""
    path, *others = wording.distinct(_shown_path(each.step.path) for each in group)
    text = f"{path}{item}: `{old}` → `{new}`"
    for most in range(min(len(others), _MOST_PLACES), 0, -1):
        also = f"; also in {wording.listed(others, most)}"
        if len(text) + len(also) <= _LONGEST:
            text += also
            break
    told = f"{text}. {wording.sentence(reason)}"
    return told if reason and len(told) <= _LONGEST else text


def _shown_path(path: str) -> str:
    """A path; of a file outside the project, its last parts."""
    parts = path.replace("\\", "/").split("/")
    return f"`{'/'.join(parts[-_MOST_PARTS:] if parts[0][-1:] in ('', ':') else parts)}`"


def _sides(change: _Change) -> tuple[str, str]:
    before, one, other, behind = _middle(change)
    start = _cut_tokens(before[::-1])[::-1] if len(before) > _CONTEXT else before
    end = _cut_tokens(behind) if len(behind) > _CONTEXT else behind
    sides = change.old, change.new, f"{start}{one}{end}", f"{start}{other}{end}"
    whole, new, short, short_new = (_shown(side) for side in sides)
    if len(whole) + len(new) <= _LONGEST_SIDES:
        return whole, new
    return whole if len(whole) <= _LONGEST_OLD else short, short_new


def _shown(code: str) -> str:
    return _END.sub("", wording.line(code.replace("`", "'")))


def _cut_tokens(text: str) -> str:
    kept = ""
    for token in _TOKEN.findall(text):
        if len(kept) + len(token) > _CONTEXT:
            break
        kept += token
    return f"{kept}…"


# Its reason


def _reason(timeline: Timeline, change: _Change) -> tuple[str, bool]:
    """The sentence of the turn that best explains a change, and whether it names a cause.

    It has to be about the text that differs. No reason is better than that of another change.
    """
    places = [said.at for said in timeline.prompts]
    number = bisect_left(places, change.place)
    begin = places[number - 1] if number else 0
    end = places[number] if number < len(places) else len(timeline.steps)
    spoken = timeline.messages_between(begin, end)
    near = [said for said in spoken if abs(said.at - change.place) <= _NEAR]
    _, old, new, _ = _middle(change)
    middle = terms.significant(f"{old} {new}")
    line = terms.significant(f"{change.old} {change.new}") - middle
    best, most = ("", False), 0.0
    for message in [*timeline.prompts[max(0, number - 1) : number], *near, *spoken[-1:]]:
        is_prompt = message.step.kind == "prompt"
        for sentence in message.sentences:
            text, own = sentence.text, terms.significant(sentence.text)
            has_cause = _CAUSES.search(text) is not None
            exact, around = len(own & middle), len(own & line)
            score = 2 * exact + around + has_cause + is_prompt
            if (
                score > most
                and ((exact and exact + around > 1) or (is_prompt and around >= _MUCH))
                and (has_cause or is_prompt)
                and (is_prompt or not _NARRATES.match(text))
                and len(own) >= _FEWEST_REASON_TERMS
                and len(text) <= _LONGEST_REASON
                and text[-1] not in ":…?;"
                and not text[0].isdigit()
            ):
                most, best = score, (f'Asked: "{text}"' if is_prompt else text, has_cause)
    return best
