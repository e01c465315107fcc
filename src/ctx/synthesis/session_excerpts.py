"""Excerpts: what was said in a session, cut into short passages in their own words.

An excerpt is a passage of at most `LONGEST` characters of one step. It has a kind, a source, and a
worth: how likely a later session needs it.

    correction   a prompt that corrects, forbids or prefers something, or follows an interrupt
    prompt       any other prompt in the user's own words
    answer       what the user chose when the agent asked
    commit       the message of a commit
    final        the last message of the session
    report       the last message of a turn
    recap        a summary of the conversation by the host's model
    plan         a plan that was presented to the user
    remark       anything else that the agent said, and the last message of each subagent
    pasted       text in a prompt that somebody else wrote: a plan, a log, a review, an issue
    change       a line of a file before and after the session, and the reason

The weights are round numbers: on labelled sessions, other choices near them give the same result.
`python -m bench sessions` measures them.
"""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from ctx import terms
from ctx.capture.capture import INTERRUPTED
from ctx.capture.injected_text import without_injected
from ctx.capture.private_text import without_private
from ctx.capture.steps import Step
from ctx.hosts import tool_calls
from ctx.synthesis import cue_phrases, line_changes
from ctx.synthesis.pasted_text import is_fragment, line_keys, split_pasted
from ctx.synthesis.sentences import LONGEST, SHORTEST, passages, split_sentences

ExcerptKind = Literal[
    "correction",
    "prompt",
    "answer",
    "commit",
    "final",
    "report",
    "recap",
    "plan",
    "remark",
    "pasted",
    "change",
]
ExcerptSource = Literal["user", "agent", "pasted"]

MOST = 400
"""The most excerpts of a session; the least worthy are dropped."""
MOST_KEPT = 12
"""The most excerpts of a session that become observations."""
LEAST_WORTH = 800
"""Excerpts that are worth less can be searched for, but do not become observations."""

_LONGEST_TEXT = 24_000
_MOST_PRINTED = 20_000
_COMMAND, _OWN_COMMAND = "<ctx:", "/ctx:"
_BASE = {
    "correction": 3.0,
    "commit": 2.6,
    "answer": 2.5,
    "final": 2.3,
    "prompt": 2.0,
    "report": 1.0,
    "recap": 0.9,
    "plan": 0.5,
    "remark": 0.4,
    "pasted": 0.3,
}
_CAUSE, _DECISION = 1.2, 0.8
_HEDGE, _INTENT, _GUESS = 0.7, 0.6, 0.3
_FEW_TERMS_OF_USER, _FEW_TERMS = 3, 5
_PROCESS_TALK = 0.4
_ENOUGH_TERMS = 8
_DISPUTED = (0.5, 0.3, 0.1)
_REPLACED = 0.4
_SHARED, _MOST_LATER = 4, 20
_CHANGE, _CHANGE_WITH_CAUSE = 500, 700
"""Changes can be searched for. Observations tell what was done in other words."""
_SAME = 0.6
_SHORTEST_CORRECTION = 6
_SEARCHED_ONLY = 0.7
"""The most that results of subagents and short corrections are worth. What matters of them is in
the agent's own report, and in the conversation around them."""

_CORRECTIVE = re.compile(
    r"\b(?:no|nope|not|don['’]?t|doesn['’]?t|isn['’]?t|never|always|stop|instead|rather|wrong"
    r"|incorrect|shouldn['’]?t|should|must|why (?:are|did|do|is|would) (?:you|we|it)|i (?:meant"
    r"|said|want|prefer|asked)|we (?:want|prefer|use|need)|actually|revert|undo|only|prefer"
    r"|make sure|please (?:do not|don['’]?t|stop|keep|use)|nein|nicht|niemals|nie|immer|statt"
    r"|lieber|falsch|sondern|pas|jamais|toujours|plutôt|siempre|nunca)\b",
    re.IGNORECASE,
)
_BLAMES = re.compile(
    r"\b(?:why|didn['’]?t|did (?:i|you)|i (?:said|told|asked|meant)|wrong|instead|no)\b",
    re.IGNORECASE,
)
_DISPUTES = re.compile(
    r"\b(?:no|nope|nah|wrong|incorrect|not (?:right|true|correct|what)|that['’]?s not|isn['’]?t"
    r"|didn['’]?t|doesn['’]?t|still|actually|why (?:are|did|do)|revert|undo|instead|but)\b",
    re.IGNORECASE,
)
_REVERSES = re.compile(
    r"\b(?:revert|undo|roll (?:it |that |this )?back|take (?:it|that|this) back|why did you)\b",
    re.IGNORECASE,
)
_CAUSES = re.compile(
    r"\b(?:root cause|the (?:real |actual |underlying )?(?:cause|problem|issue|reason|culprit) (?:"
    r"is|was)|because|caused by|due to|turns? out|the fix|fixed by|which means|never (?:called|set"
    r"|awaited|reset)|was missing|were missing|weil|liegt daran)\b",
    re.IGNORECASE,
)
_DECISIONS = re.compile(
    r"\b(?:decided|decision|chose|instead of|rather than|we (?:use|keep|will)|by design"
    r"|intentional(?:ly)?|deliberately|trade-?off|must|always|never|only|requires?)\b",
    re.IGNORECASE,
)
_HEDGES = re.compile(
    r"\b(?:might|maybe|perhaps|possibly|could be|i think|probably|likely|not sure|seems?"
    r"|would you|shall i|should i|do you want|let me know|want me to)\b",
    re.IGNORECASE,
)
_GUESSES = re.compile(
    r"\b(?:my (?:bet|guess|theory|hypothesis|suspicion)|i (?:suspect|guess|bet))\b", re.IGNORECASE
)
_INTENTS = re.compile(
    r"\b(?:let me|i(?:['’]ll| will| need to| can|['’]m going to)|next steps?|ready (?:for|to))\b",
    re.IGNORECASE,
)
PROCESS_TERMS = frozenset(
    terms.query(
        "review reviews pr pull request push pushed commit commits committed merge merged comment"
        " comments branch rebase continue proceed go ahead ok okay yes please thanks done now next"
        " again check look run test tests fix issue issues address all let lets do it step phase"
        " plan file files change changes update updated create created summary good great"
    )
)
"""Terms of prompts about the process of work, which say nothing about its subject."""


class Excerpt(NamedTuple):
    step: str
    """The id of its step."""
    part: int
    """Its index among the passages of that step."""
    at: str
    kind: ExcerptKind
    source: ExcerptSource
    worth: int
    """In thousandths."""
    text: str
    is_disputed: bool = False
    """Whether the next prompt disputes it, in words that it shares."""
    is_reversed: bool = False
    """Whether the next prompt also has it undone."""


class _Passage(NamedTuple):
    place: int
    """The index of its step."""
    step: Step
    part: int
    kind: ExcerptKind
    source: ExcerptSource
    text: str
    words: frozenset[str]


def excerpts(steps: Sequence[Step]) -> list[Excerpt]:
    """The excerpts of a session, in order."""
    rated = _rate_passages(list(_passages(steps)))
    if len(rated) > MOST:
        best = sorted(range(len(rated)), key=lambda index: (-rated[index].worth, index))[:MOST]
        rated = [rated[index] for index in sorted(best)]
    for part, change in enumerate(line_changes.line_changes(steps)):
        worth = _CHANGE_WITH_CAUSE if change.has_cause else _CHANGE
        step = change.step
        rated.append(Excerpt(step.id, part, step.at, "change", "agent", worth, change.text))
    return rated


def best(candidates: Iterable[Excerpt], most: int = MOST_KEPT) -> list[Excerpt]:
    """The excerpts that become observations, in order, without near copies."""
    chosen: list[tuple[Excerpt, frozenset[str]]] = []
    for excerpt in sorted(candidates, key=lambda it: (-it.worth, it.step, it.part)):
        if excerpt.worth < LEAST_WORTH or len(chosen) == most:
            break
        words = terms.significant(excerpt.text)
        if not any(is_contained(words, other) for _, other in chosen):
            chosen.append((excerpt, words))
    return sorted((excerpt for excerpt, _ in chosen), key=lambda it: (it.at, it.step, it.part))


def is_contained(words: frozenset[str], other: frozenset[str]) -> bool:
    """Whether most of a text is in another one."""
    return len(words & other) >= max(1, _SAME * len(words))


def is_corrective(prompt: str) -> bool:
    """Whether a prompt corrects, forbids or prefers something. Most questions do not."""
    return is_rule(prompt) or any(
        (_BLAMES if sentence.is_question else _CORRECTIVE).search(sentence.text)
        for sentence in split_sentences(prompt[:LONGEST])
    )


def is_rule(prompt: str) -> bool:
    """Whether a sentence of a prompt forbids or prefers something in general."""
    sentences = split_sentences(prompt[:LONGEST])
    return any(
        cue_phrases.weight(cue_phrases.RULES, sentence.text.lower()) >= cue_phrases.ENOUGH
        for sentence in sentences
        if not sentence.is_question
    )


def _corrects(prompt: str) -> bool:
    """Whether a prompt corrects the work before it, however short it is."""
    is_dispute = is_corrective(prompt) or _DISPUTES.search(prompt) is not None
    return is_dispute and bool(terms.significant(prompt) - PROCESS_TERMS or is_rule(prompt))


def from_first_rule(prompt: str) -> str:
    """A prompt without what comes before its first rule or correction."""
    for sentence in split_sentences(prompt):
        at = prompt.find(sentence.text)
        if at >= 0 and is_corrective(sentence.text):
            return prompt[at:]
    return prompt


def _passages(steps: Sequence[Step]) -> Iterator[_Passage]:
    ends = _ends_of_turns(steps)
    last = max(ends, default=-1)
    results = _results_of_subagents(steps)
    printed, seen = set[str](), set[str]()
    is_interrupted = has_worked = False
    for place, step in enumerate(steps):
        if step.agent and place not in results:
            continue
        if step.kind == "mark":
            is_interrupted = is_interrupted or step.text == INTERRUPTED
            continue
        if step.kind == "prompt":
            parts = _prompt_parts(step, printed, is_interrupted=is_interrupted)
            shortest = _SHORTEST_CORRECTION if has_worked and _corrects(step.text) else SHORTEST
            is_interrupted = has_worked = False
        else:
            shortest, has_worked = SHORTEST, True
            parts = _parts(step, is_end=place in ends, is_last=place == last)
            if len(printed) < _MOST_PRINTED:
                printed |= line_keys(step.text if step.kind == "say" else step.output)
        cut = [(*part[:2], text) for part in parts for text in passages(part[2], shortest)]
        for part, (whole, source, text) in enumerate(cut):
            is_piece = whole == "correction" and is_fragment(text) and not is_rule(text)
            kind = "prompt" if is_piece else whole
            # The hook and the transcript report the same message; commands for ctx are no work.
            if text not in seen and _COMMAND not in text:
                seen.add(text)
                yield _Passage(place, step, part, kind, source, text, terms.significant(text))


def _prompt_parts(
    step: Step, printed: set[str], *, is_interrupted: bool
) -> list[tuple[ExcerptKind, ExcerptSource, str]]:
    if step.text.startswith(_OWN_COMMAND):
        return []
    if not step.is_by_person:
        return [("pasted", "pasted", _own_words(step.text))]
    own, pasted = split_pasted(_own_words(step.text), printed)
    parts: list[tuple[ExcerptKind, ExcerptSource, str]] = []
    if own:
        is_correction = is_interrupted or is_corrective(own)
        parts.append(("correction" if is_correction else "prompt", "user", own))
    if pasted:
        parts.append(("pasted", "pasted", pasted))
    return parts


def _parts(
    step: Step, *, is_end: bool, is_last: bool
) -> list[tuple[ExcerptKind, ExcerptSource, str]]:
    match step.kind, step.tool:
        case "say", _:
            kind: ExcerptKind = "final" if is_last else "report" if is_end else "remark"
            return [(kind, "agent", _own_words(step.text))]
        case "plan", tool_calls.QUESTION if step.is_by_person:
            return [("answer", "user", step.text)]
        case "plan", tool_calls.PLAN:
            return [("plan", "agent", step.text)]
        case "recap", _:
            return [("recap", "agent", step.text)]
        case "command", _ if step.message:
            return [("commit", "agent", step.message)]
    return []


def _ends_of_turns(steps: Sequence[Step]) -> frozenset[int]:
    """The indexes of the last messages before each prompt, and before the end."""
    ends = set()
    last = None
    for place, step in enumerate(steps):
        if step.kind == "say" and not step.agent:
            last = place
        elif step.kind == "prompt" and last is not None:
            ends.add(last)
            last = None
    return frozenset(ends if last is None else {*ends, last})


def _results_of_subagents(steps: Sequence[Step]) -> frozenset[int]:
    """The index of the last message of each subagent."""
    last = {step.agent: at for at, step in enumerate(steps) if step.agent and step.kind == "say"}
    return frozenset(last.values())


def _own_words(text: str) -> str:
    return without_injected(without_private(text[:_LONGEST_TEXT])).strip()


# Worth


def _rate_passages(passages: Sequence[_Passage]) -> list[Excerpt]:
    prompts = [passage for passage in passages if passage.kind in ("correction", "prompt")]
    replaced = _replaced_passages(passages)
    rated = []
    for index, passage in enumerate(passages):
        dispute, is_reversed = _dispute(passage, prompts)
        worth = _score(passage, is_replaced=index in replaced) * dispute
        rated.append(
            Excerpt(
                *(passage.step.id, passage.part, passage.step.at, passage.kind, passage.source),
                *(round(worth * 1000), passage.text, dispute < _DISPUTED[0]),
                is_reversed and dispute < _DISPUTED[0],
            )
        )
    return rated


def _score(passage: _Passage, *, is_replaced: bool) -> float:
    worth, text, is_by_user = _BASE[passage.kind], passage.text, passage.source == "user"
    if passage.source == "agent" and passage.kind != "commit":
        worth += _CAUSE if _CAUSES.search(text) else 0
        worth += _DECISION if _DECISIONS.search(text) else 0
        worth *= _HEDGE if _HEDGES.search(text) else 1
        worth *= _INTENT if _INTENTS.search(text) else 1
        worth *= _GUESS if _GUESSES.search(text) else 1
    # Rules are often about the process itself: who commits, what is never pushed.
    is_of_rule = passage.kind == "correction" and is_rule(text)
    own = passage.words - (frozenset() if is_of_rule else PROCESS_TERMS)
    worth *= 0.3 + min(len(own), _ENOUGH_TERMS) / _ENOUGH_TERMS
    is_short, few = len(text) < SHORTEST, _FEW_TERMS_OF_USER if is_by_user else _FEW_TERMS
    if len(own) < few and not (is_short and is_of_rule):
        worth *= _PROCESS_TALK
    if is_replaced and not is_by_user:
        worth *= _REPLACED
    is_searched_only = passage.step.agent or (is_short and not is_of_rule)
    return min(worth, _SEARCHED_ONLY) if is_searched_only else worth


def _dispute(passage: _Passage, prompts: Sequence[_Passage]) -> tuple[float, bool]:
    """The factor for a message that the next prompt disputes, and whether it is to be undone.

    The factor is lower with each shared term.
    """
    if passage.kind not in ("final", "report", "remark"):
        return 1.0, False
    after = bisect_right(prompts, passage.place, key=lambda prompt: prompt.place)
    prompt = prompts[after] if after < len(prompts) else None
    if prompt is None or not _DISPUTES.search(prompt.text):
        return 1.0, False
    is_reversed = _REVERSES.search(prompt.text) is not None
    # What is undone may be part of the process: a commit, a push.
    about = passage.words if is_reversed else passage.words - PROCESS_TERMS
    shared = len(about & prompt.words)
    return _DISPUTED[min(shared, len(_DISPUTED) - 1)], is_reversed


def _replaced_passages(passages: Sequence[_Passage]) -> set[int]:
    """The indexes of passages about something that a later conclusion is about too."""
    frequency = Counter(word for passage in passages for word in passage.words)
    common = max(3, len(passages) // 8)
    later: dict[str, deque[int]] = {}
    replaced = set()
    for index in range(len(passages) - 1, -1, -1):
        passage = passages[index]
        rare = [word for word in passage.words if frequency[word] <= common]
        shared = Counter(
            other
            for word in rare
            for other in later.get(word, ())
            if passages[other].place > passage.place
        )
        if shared and max(shared.values()) >= _SHARED:
            replaced.add(index)
        if passage.kind in ("correction", "report", "final", "commit"):
            for word in rare:
                later.setdefault(word, deque(maxlen=_MOST_LATER)).append(index)
    return replaced
