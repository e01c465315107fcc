"""Discoveries of the agent: how something works, why, and where its limits are."""

import re
from typing import NamedTuple

from ctx.synthesis import cue_phrases, dedupe, wording
from ctx.synthesis.final_message import is_done
from ctx.synthesis.observations import LONGEST_TEXT, LONGEST_TITLE, Observation
from ctx.synthesis.sentences import Sentence
from ctx.synthesis.timeline import ChatMessage, Timeline

_MOST = 5
_FEWEST_WORDS = 6
_FEWEST_REPORTED = 4
_SURE, _LIKELY = 650, 550
_TRIVIAL = re.compile(
    r"(?:the|this) (?:file|code|function|class|method|script|output|command|test|project) (?:has"
    r"|is|contains|looks|exists)\b",
    re.IGNORECASE,
)
_TRIVIAL_ANYWHERE = re.compile(
    r"\b(?:has|contains) [0-9]+ lines\b|\bhas no (?:docstring|comments?)\b|\btypo\b"
    r"|\bon line [0-9]|\b(?:the command|it) timed out\b"
    r"|\bi (?:have not|haven['’]t|did not|didn['’]t)\b",
    re.IGNORECASE,
)
_FINDINGS = re.compile(r"\b(?:findings?|what i found|befunde?)\b")
# In a turn without edits, these are not fixed yet.
_REPORTS = re.compile(
    r"\b(?:findings?|problems?|issues?|results?|found|bugs?|vulnerabilit\w+|risks?|causes?"
    r"|observations?|weaknesses|concerns?|ergebnisse?|befunde?|probleme?|ursachen?)\b"
)
_OPEN_WORK = re.compile(r"\b(?:next|fix(?:es|ed)?|recommend\w*|suggest\w*|how to|no )\b")
# `…, let me fix that`
_FOLLOWUP = re.compile(
    r"(?:,|;| [–—-]) *(?:so |and )?(?:let me|i['’]ll|i will) [^,;]{1,60}\Z", re.IGNORECASE
)
_REPORTED = 2
_POINTS = re.compile(r"(?:this|that|it|they|these|those|he|she|there it is)\b", re.IGNORECASE)


class _Candidate(NamedTuple):
    text: str
    weight: int
    message: ChatMessage
    evidence: tuple[str, ...]


def discoveries(timeline: Timeline) -> list[Observation]:
    """The strongest few discoveries, in order."""
    found: list[_Candidate] = []
    reports = {said.at for said in timeline.reports}
    closings = {said.at for said in timeline.last_words}
    looked, place = "", 0
    for message in timeline.messages:
        while place < message.at:
            step = timeline.steps[place]
            if step.kind in ("read", "search", "command", "agent"):
                looked = step.id
            place += 1
        if not looked:
            # The agent has not looked at anything yet, so this is an assumption.
            continue
        for sentence in message.sentences:
            listed = _REPORTS if message.at in reports else _FINDINGS
            is_listed = message.at in closings and _is_item_below(listed, sentence)
            is_reported = is_listed or message.at in reports
            weight = _weight(timeline, sentence, is_listed=is_listed, is_reported=is_reported)
            if weight >= cue_phrases.ENOUGH:
                text = _FOLLOWUP.sub("", wording.without_lead(sentence.text))
                if not _POINTS.match(text) or cue_phrases.names_something(text[3:]):
                    found.append(_Candidate(text, weight, message, (looked, message.step.id)))
    found.sort(key=lambda each: (-each.weight, each.message.at))
    kept: list[_Candidate] = []
    for each in found:
        if len(kept) < _MOST and not dedupe.is_repeated(each.text, (other.text for other in kept)):
            kept.append(each)
    kept.sort(key=lambda each: (each.message.at, each.text))
    return [_observation(timeline, each) for each in kept]


def _weight(timeline: Timeline, sentence: Sentence, *, is_listed: bool, is_reported: bool) -> int:
    """The weight of a sentence. Reports at the end of an investigation weigh more."""
    text = sentence.text
    found = cue_phrases.weight(cue_phrases.DISCOVERIES, text)
    if is_reported and found:
        found += _REPORTED
    if is_listed:
        found = max(found, cue_phrases.ENOUGH)
    if (
        found < cue_phrases.ENOUGH
        or sentence.is_question
        or cue_phrases.is_open(text)
        or not (is_listed or cue_phrases.names_something(text))
        or len(text.split()) < (_FEWEST_REPORTED if is_reported else _FEWEST_WORDS)
        or is_done(text)
        or _TRIVIAL.match(wording.without_lead(text))
        or _TRIVIAL_ANYWHERE.search(text)
        or dedupe.is_narration(text)
        or dedupe.is_junk(text)
        or dedupe.is_repeated(text, timeline.prompt_texts)
    ):
        return 0
    return found


def _is_item_below(heading: re.Pattern[str], sentence: Sentence) -> bool:
    """Whether a sentence is a list item below such a heading."""
    above = sentence.heading
    is_item = sentence.is_item and sentence.starts
    return is_item and heading.search(above) is not None and _OPEN_WORK.search(above) is None


def _observation(timeline: Timeline, found: _Candidate) -> Observation:
    title = wording.shortened(found.text, LONGEST_TITLE)
    text = wording.sentence(found.text) if title != found.text else ""
    return Observation(
        dedupe.key("discovery", found.text),
        "discovery",
        title,
        wording.shortened(text, LONGEST_TEXT),
        timeline.files_in(found.text),
        (),
        found.evidence,
        found.message.step.at,
        _SURE if found.weight > cue_phrases.ENOUGH else _LIKELY,
        "agent",
    )
