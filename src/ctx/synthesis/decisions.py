"""Decisions: choices, rules and corrections, in their original words.

The user's words count more than the agent's. A sentence that only refers to another one (`let's do
that`) is combined with the proposal, or dropped.
"""

import re
from typing import NamedTuple

from ctx.hosts import tool_calls
from ctx.synthesis import cue_phrases, dedupe, proposals, sentences, wording
from ctx.synthesis.observations import LONGEST_TEXT, LONGEST_TITLE, Observation
from ctx.synthesis.sentences import Sentence
from ctx.synthesis.timeline import ChatMessage, Timeline, agrees

_MOST = 8
_MOST_AT_ONCE = 3
_BY_USER, _AGREED, _BY_AGENT = 900, 850, 600

# `No, use tabs` begins with an answer; `No new dependencies` is a rule.
_LEAD = re.compile(
    r"(?:(?:ok(?:ay)?|no thanks|yes|yeah|ja|also|so|and|but|actually|please|bitte|alright|thanks"
    r"|hmm|then|therefore|one more thing|btw|by the way|from now on)(?:[,.:!;–—]+\s*|\s+(?:- +)?)"
    r"|(?:no|nope|nein|wait|stop)\s+(?=(?:use(?! of| in| for)|keep|go with|please|wait|don't|don’t"
    r"|do not)\b)|(?:no|nope|nein|great|good|right|well|sure|fine|wait|stop|finally|instead"
    r"|not that|design decision|decision|decided)(?:[,.:!;–—]+\s*|\s+- +))(?=\S)",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?:let(?:'s|’s|s| us)(?! not\b)|i(?:'d|’d| would)(?= rather)"
    r"|i(?:'ll|’ll| will|'m going to|’m going to| am going to| would like to"
    r"| want you to| want to|'d like to)|we(?:'ll|’ll| will| are going to|'re going to)|(?:i"
    r"|we)(?:'ve|’ve| have)?(?= (?:decided|agreed|chose|picked|opted|settled|went|used|kept|made"
    r"|switched|prefer)\b))\s+",
    re.IGNORECASE,
)
_CHOOSES = re.compile(
    r"\b(?:use|using|switch|keep|replace|store|move|instead|rather|drop|adopt)\b", re.IGNORECASE
)
_REASON = re.compile(
    r"(?:because|that way|this way|this (?:keeps|avoids|means|makes)|that (?:keeps|avoids|means"
    r"|makes)|the reason|otherwise|so that|since|it (?:keeps|avoids|is|would)|it's|they (?:keep"
    r"|avoid|are)|we (?:need|have))\b",
    re.IGNORECASE,
)
_TASK = re.compile(r"(?:please )?(?:make|write|put|change|move|convert|replace)\b", re.IGNORECASE)
_ONLY_TASK = re.compile(
    r"(?:please )?(?:fix|implement|add|create|remove|delete|update|refactor|rename|run|look"
    r"|check)\b",
    re.IGNORECASE,
)
_DECIDES = re.compile(
    r"\b(?:i|we|let's|let’s)\b|\A(?:decided|chose|kept|used|using|went|deliberately|intentionally"
    r"|going|opted|picked|switched|decision)\b|\b(?:decided|decision:|deliberately"
    r"|on purpose|by design)",
    re.IGNORECASE,
)
_DECIDED_BELOW = re.compile(
    r"\b(?:decisions?|decided|design choices?|trade-?offs?|entscheidungen)\b"
)
_WORKING = re.compile(
    r"\b(?:grep|ripgrep|sed|(?:read|bash|edit|grep|glob|task|write) tool|subagents?|a script"
    r"|to (?:find|look|check|see|search|verify|locate|inspect|understand|debug))\b",
    re.IGNORECASE,
)
_THIS = re.compile(r"(?:this|that|it|these|those)\b", re.IGNORECASE)
_FORBIDS = re.compile(r"(?:don't|don’t|do not|never|avoid|stop|not)\b", re.IGNORECASE)
_IMPERATIVE = re.compile(
    r"(?:just |rather |instead,? |please )?(?:use|keep|make|put|write|call|return|store|leave|go"
    r"|let|move|pass|raise|hold|wait|take|set|it (?:should|must)|we (?:use|want|need))\b",
    re.IGNORECASE,
)
_UP_TO = (
    r"\s+(?P<what>[^.,;:!?()]{1,60}?)(?=[.,;:!?()]|\s(?:because|since|so|for|in|when|as|to|and"
    r"|but|on|at|everywhere|here|now|anymore|any more|instead|rather|over|not|from|with)\b|\s*\Z)"
)
_CHOSEN = re.compile(
    r"\b(?:use|using|used|go(?:ing)? with|went with|switch(?:ed)? to|keep|kept|prefer|chose"
    r"|picked|opted for|settled on|decided on|stick (?:to|with)|moved? to|verwenden?|nehmen"
    r"|nimm)" + _UP_TO,
    re.IGNORECASE,
)
_REJECTED = re.compile(
    r"\b(?:instead of|rather than|over|in place of|(?:don't|don’t|do not|never|stop|no longer"
    r"|avoid) (?:use|using)|drop|(?:switch(?:ed)?|moved?) (?:away )?from|anstatt|statt)" + _UP_TO,
    re.IGNORECASE,
)


class Choice(NamedTuple):
    """What a decision chooses and rejects, if it says so."""

    chosen: frozenset[str]
    rejected: frozenset[str]


class _Candidate(NamedTuple):
    title: str
    reason: str
    weight: int
    confidence: int
    message: ChatMessage
    evidence: tuple[str, ...]


def decisions(timeline: Timeline) -> list[Observation]:
    """The decisions of a session, in order, without duplicates."""
    found = [*_answers(timeline), *_agreed_plans(timeline)]
    for prompt in timeline.prompts:
        if prompt.step.is_by_person:
            found += _by_person(timeline, prompt)
    for message in timeline.messages:
        found += _by_agent(timeline, message)
    # Of two alike the later one holds.
    best = sorted(found, key=lambda each: (-each.confidence, -each.weight, -each.message.at))
    kept: list[_Candidate] = []
    for each in best:
        if len(kept) == _MOST:
            break
        if not dedupe.is_repeated(each.title, (other.title for other in kept)):
            kept.append(each)
    kept.sort(key=lambda each: (each.message.at, each.message.text.find(each.title[-20:])))
    return [
        _observation(timeline, each)
        for index, each in enumerate(kept)
        if not any(_takes_back(later, each) for later in kept[index + 1 :])
    ]


def _takes_back(later: _Candidate, earlier: _Candidate) -> bool:
    return later.confidence >= earlier.confidence and contradicts(later.title, earlier.title)


def _answers(timeline: Timeline) -> list[_Candidate]:
    """The user's answers to the agent's multiple-choice questions, one per line."""
    found = []
    for index, step in enumerate(timeline.steps):
        if step.kind != "plan" or step.tool != tool_calls.QUESTION or not step.is_by_person:
            continue
        said = ChatMessage(index, step, step.text, ())
        for line in step.text[:4_000].splitlines()[:_MOST]:
            question, mark, answer = line.rpartition("? ")
            title = f"{question.strip()}: {answer.strip()}" if mark else line.strip()
            if answer.strip() and _is_specific(title):
                found.append(_Candidate(title, "", cue_phrases.ENOUGH, _BY_USER, said, (step.id,)))
    return found


def _agreed_plans(timeline: Timeline) -> list[_Candidate]:
    """The choices in accepted plans. A client reports a plan once the user accepts it. Most of a
    plan is future work, which is reported when it is done."""
    found = []
    for index, step in enumerate(timeline.steps):
        if step.kind != "plan" or step.tool != tool_calls.PLAN or not step.ok:
            continue
        if not step.is_by_person:
            continue
        said = ChatMessage(index, step, step.text, tuple(sentences.split_sentences(step.text)))
        chosen = [
            candidate
            for place, sentence in enumerate(said.sentences)
            if (candidate := _from_plan(said, place, sentence))
        ]
        found += sorted(chosen, key=lambda each: -each.weight)[:_MOST_AT_ONCE]
    return found


def _from_plan(plan: ChatMessage, place: int, sentence: Sentence) -> _Candidate | None:
    # The user accepted the plan, so its sentences count as the user's.
    weight = _person_weight(sentence)
    if sentence.is_item and _DECIDED_BELOW.search(sentence.heading):
        weight += cue_phrases.ENOUGH
    title = _clean_sentence(sentence.text)
    if (
        weight < cue_phrases.ENOUGH
        or _is_task(sentence.text)
        or _is_against(sentence)
        or _WORKING.search(sentence.text)
        or proposals.points(title)
        or not _is_specific(title)
        or dedupe.is_printed(title)
    ):
        return None
    evidence = (plan.step.id,)
    return _Candidate(title, _reason(plan, place), weight, _AGREED, plan, evidence)


def choice(text: str) -> Choice:
    """What a sentence chooses and what it rejects."""
    return Choice(_matched_names(_CHOSEN, text), _matched_names(_REJECTED, text))


def contradicts(later: str, earlier: str) -> bool:
    """Whether a decision rejects what an earlier one chose, or states the opposite or another
    number in the same words."""
    if dedupe.is_opposite(later, earlier) or dedupe.is_revised(later, earlier):
        return True
    rejected, before, now = choice(later).rejected, choice(earlier).chosen, choice(later).chosen
    return (
        bool(rejected) and rejected <= before and len(before) <= len(rejected) + 1 and now != before
    )


def _matched_names(pattern: re.Pattern[str], text: str) -> frozenset[str]:
    found = pattern.search(text[:600])
    return dedupe.words(found["what"]) if found else frozenset()


def _by_person(timeline: Timeline, prompt: ChatMessage) -> list[_Candidate]:
    found = []
    if agrees(prompt.text):
        if (proposal := _proposal(timeline, prompt, "")) and _CHOOSES.search(proposal.title):
            found.append(proposal)
        return found
    if picked := _pick(timeline, prompt):
        found.append(picked)
    for index, sentence in enumerate(prompt.sentences):
        title = _in_words_of_user(sentence.text)
        if picked and index == 0:
            continue
        if proposals.points(title):
            if proposal := _proposal(timeline, prompt, title):
                found.append(proposal)
            continue
        weight = _person_weight(sentence)
        if weight < cue_phrases.ENOUGH or (index == 0 and _is_task(sentence.text)):
            continue
        if correct := _alternative_after(prompt, index):
            title = f"{title}; {correct}"
        if _is_specific(title):
            reason = _reason(prompt, index)
            evidence = (prompt.step.id,)
            found.append(_Candidate(title, reason, weight, _BY_USER, prompt, evidence))
    # Pasted text can contain many rules; keep the strongest few.
    return sorted(found, key=lambda each: -each.weight)[:_MOST_AT_ONCE]


def settles(prompt: ChatMessage) -> bool:
    """Whether a prompt begins with a decision and not with a task."""
    first = next((each for each in prompt.sentences if len(dedupe.words(each.text)) > 1), None)
    return first is not None and (
        _person_weight(first) >= cue_phrases.ENOUGH or proposals.points(_clean_sentence(first.text))
    )


def _person_weight(sentence: Sentence) -> int:
    text = sentence.text
    if _is_against(sentence) or cue_phrases.describes_symptom(text) or dedupe.is_printed(text):
        return 0
    every = cue_phrases.RULES, cue_phrases.CHOICES, cue_phrases.CORRECTIONS
    # An introduction hides the beginning that the patterns look for.
    return max(
        sum(cue_phrases.weight(each, words) for each in every)
        for words in {text, _without_lead(text)}
    )


def _is_task(text: str) -> bool:
    """Whether a sentence is a one-time task: `Make it take a path instead of a text`."""
    if _ONLY_TASK.match(text):
        return True
    return (
        _TASK.match(text) is not None
        and cue_phrases.weight(cue_phrases.RULES, text) < cue_phrases.ENOUGH
    )


def _alternative_after(prompt: ChatMessage, index: int) -> str:
    """The alternative in the sentence after one that forbids something."""
    after = prompt.sentences[index + 1 : index + 2]
    if not after or not _FORBIDS.match(_clean_sentence(prompt.sentences[index].text)):
        return ""
    if after[0].starts or not _IMPERATIVE.match(after[0].text) or _is_against(after[0]):
        return ""
    words = after[0].text.rstrip(".!")
    return words[:1].lower() + words[1:]


def _by_agent(timeline: Timeline, message: ChatMessage) -> list[_Candidate]:
    found = []
    for index, sentence in enumerate(message.sentences):
        text = sentence.text
        weight = cue_phrases.weight(cue_phrases.CHOICES, text)
        is_listed = sentence.is_item and _DECIDED_BELOW.search(sentence.heading) is not None
        if is_listed:
            weight += cue_phrases.ENOUGH
        elif weight:
            # From an agent, a rule alone only describes how something works.
            weight += cue_phrases.weight(cue_phrases.RULES, text) // 2
        if weight < cue_phrases.ENOUGH or _is_against(sentence) or dedupe.is_narration(text):
            continue
        title = _clean_sentence(text)
        if proposals.points(title) or not _is_specific(title) or dedupe.is_printed(title):
            continue
        if not (is_listed or _DECIDES.search(text)) or _WORKING.search(text):
            # It describes a fact or the agent's own procedure.
            continue
        if _THIS.match(title) and not cue_phrases.names_something(title):
            continue
        if dedupe.is_repeated(title, timeline.prompt_texts):
            # The user said it first; the decision is taken from the prompt.
            continue
        reason = _reason(message, index)
        found.append(_Candidate(title, reason, weight, _BY_AGENT, message, (message.step.id,)))
    return found


def _is_against(sentence: Sentence) -> bool:
    text = sentence.text
    return sentence.is_question or cue_phrases.is_open(text) or cue_phrases.is_temporary(text)


def _is_specific(title: str) -> bool:
    return len(dedupe.words(title)) >= 2 and (len(title.split()) >= 2 or not title.isascii())


def _clean_sentence(text: str) -> str:
    """A sentence without its introduction and without its subject, such as `We'll`."""
    return wording.impersonal(_without_subject(text))


def _in_words_of_user(text: str) -> str:
    """The same for a sentence of the user, where `I` is not the agent."""
    words = _without_subject(text)
    return words if words[:2].casefold() == "i " else wording.impersonal(words)


def _without_subject(text: str) -> str:
    words = _without_lead(text)
    subject = _SUBJECT.match(words)
    if subject:
        words = words[subject.end() :]
    return words.strip().rstrip(".!").removesuffix(" then")


def _without_lead(text: str) -> str:
    words = text.strip()
    for _ in range(4):
        lead = _LEAD.match(words)
        if lead is None:
            break
        words = words[lead.end() :]
    return words


def _reason(said: ChatMessage, index: int) -> str:
    """The sentence after a decision, if it gives a reason."""
    after = said.sentences[index + 1 : index + 2]
    if after and not after[0].starts and _REASON.match(after[0].text):
        return after[0].text
    return ""


def _proposal(timeline: Timeline, prompt: ChatMessage, pointing: str) -> _Candidate | None:
    """The agent's last proposal before a prompt that agrees to it."""
    message = timeline.last_before(prompt.at)
    if message is None:
        return None
    return _agreed_proposal(message, prompt, proposals.find_proposal(message, pointing), "")


def _pick(timeline: Timeline, prompt: ChatMessage) -> _Candidate | None:
    """The option that a prompt picks in its first sentence, with the comment on it."""
    message = timeline.last_before(prompt.at)
    if message is None or not prompt.sentences:
        return None
    title, rest = proposals.picked_option(message, _without_lead(prompt.sentences[0].text))
    return _agreed_proposal(message, prompt, title, wording.sentence(rest))


def _agreed_proposal(
    message: ChatMessage, prompt: ChatMessage, proposed: str, reason: str
) -> _Candidate | None:
    title = wording.capital(proposed.strip().rstrip(".?! "))
    if not _is_specific(title) or dedupe.is_printed(title):
        return None
    evidence = (message.step.id, prompt.step.id)
    return _Candidate(title, reason, cue_phrases.ENOUGH, _AGREED, prompt, evidence)


def _observation(timeline: Timeline, found: _Candidate) -> Observation:
    title = wording.shortened(found.title, LONGEST_TITLE)
    whole = wording.sentence(found.title) if title != found.title else ""
    who = {_BY_USER: "Said by the user.", _AGREED: "Proposed by the agent, agreed to by the user."}
    text = " ".join(filter(None, (whole, found.reason, who.get(found.confidence, ""))))
    files = timeline.files_in(f"{found.title} {found.reason}")
    return Observation(
        dedupe.key("decision", found.title),
        "decision",
        title,
        wording.shortened(text or "Said by the agent.", LONGEST_TEXT),
        files,
        (),
        found.evidence,
        found.message.step.at,
        found.confidence,
        "agent" if found.confidence == _BY_AGENT else "user",
    )
