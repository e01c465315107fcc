"""What the agent reports at the end of a turn: completed and remaining work."""

import re
from collections.abc import Sequence, Set

from ctx.capture.steps import Step
from ctx.synthesis import cue_phrases, dedupe
from ctx.synthesis.failures import is_failing
from ctx.synthesis.sentences import Sentence, split_sentences
from ctx.synthesis.timeline import ChatMessage, Timeline

_MOST = 6
_MOST_MESSAGES = 3
_MOST_REPORTED, _FEWEST_REPORTED, _LONGEST_REPORT = 3, 4, 240
MOST_ANSWERED = 2
"""The most sentences of an answer that is not a list of findings."""
_DONE = re.compile(
    r"(?:(?:i|we)(?:'ve|’ve| have)? |it |this )?(?:also |now |then |just |successfully )*(?:added"
    r"|fixed|implemented|created|updated|changed|removed|renamed|moved|refactored|extracted"
    r"|introduced|replaced|rewrote|rewritten|wrote|written|made|switched|simplified|split|merged"
    r"|documented|migrated|improved|handled|corrected|converted|deleted|bumped|set up|wired"
    r"|enabled|disabled|pinned|upgraded|downgraded|configured|restored|wrapped|resolved|dropped|ported|adds|fixes|implements|replaces|removes|moves|renames)\b",
    re.IGNORECASE,
)
_IS_NOW = re.compile(
    r"\b(?:now|no longer|jetzt|hinzugefügt|behoben|geändert|umbenannt|entfernt|ersetzt)\b",
    re.IGNORECASE,
)
_DONE_HEADING = re.compile(
    r"\b(?:summary|changes?|changed|done|completed?|did|fix(?:es)?|result)\b", re.IGNORECASE
)
_LEFT_HEADING = re.compile(
    r"\b(?:next|remain\w*|to-?do|follow-?ups?|not done|(?:didn['’]t|did not) do|left|open|future"
    r"|outstanding|limitations?|known issues?|offen|nächste\w?)\b",
    re.IGNORECASE,
)
_OPEN_WORK = re.compile(
    r"\Anext\b|\b(?:still (?:needs? (?:to|an?|some|tests?|\w+ing)|to do|missing|open|fails?"
    r"|failing|raises?|ha(?:ve|s) to|todo)|(?:does not|doesn['’]t) work yet"
    r"|remaining|remains(?! (?:at|unchanged|the same|stable|as|compatible|valid|green)\b)"
    r"|no(?:t| [^.,;]{1,40}) yet|left to do|to-?do|next steps?|follow-?up"
    r"|(?:haven['’]t|have not|didn['’]t|did not) (?:yet )?(?:get to"
    r"|implement|implemented|add|added|touch|touched|test|tested|handle|update|migrate)"
    r"|need(?:s|ed)? to be \w+ (?:too|as well|next|later|separately|by hand|manually|before|first)"
    r"|you(?:['’]ll| will)? (?:still |also )?(?:need|have) to|you (?:should|may want to"
    r"|might want to) (?:also |still )?(?!see\b|be\b|now\b|not\b|have\b|get\b|find\b)\w+"
    r"|out of scope|noch offen|als nächstes|(?:fehlt|fehlen|steht|stehen|muss|müssen) noch)\b",
    re.IGNORECASE,
)
# `Next step: stream it`, `Als Nächstes: …`
_LEFT_LEAD = re.compile(
    r"(?:next(?: steps?)?|to-?do|remaining(?: work)?|still (?:open|to do|missing)|follow-?ups?"
    r"|what i (?:did not|didn['’]t) do|noch offen|als nächstes)(?::| (?:is|would be) to\b)\s*",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"(?:none|nothing|n/a|nichts|keine)\b|(?:there (?:is|are) )?(?:no|nothing) (?:more|further"
    r"|other|remaining|open|next)?\b.{0,40}\b(?:left|remain(?:s|ing)?|to do|next steps?|open"
    r"|needed|necessary|required)\b",
    re.IGNORECASE,
)
# `I fixed it, though the tests of the other one still fail`: done, and left to do.
_HOWEVER = re.compile(
    r"(?:,|;| [–—-]) ?(?:though|although|but|however|only|aber|allerdings),? ", re.IGNORECASE
)
_GIT_OR_READING = re.compile(
    r"\s*(?:cd \S+ *&& *)?(?:git (?:add|commit|push|status|log|diff|show|branch)|gh|ls|cat|pwd)\b"
)
_POSTPONED = re.compile(
    r"\b(?:leave (?:it|this|that) (?:for (?:today|now|later|tomorrow)|there)|(?:stop|pause) here"
    r"|(?:continue|go on|finish|resume) (?:\w+ )?(?:later|tomorrow)|for today|für heute"
    r"|morgen weiter)\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 6
_ALL_GOOD = re.compile(
    r"\b(?:everything|all|it|this) (?:is |are |should |now |also )*(?:works?|working|fine|ready"
    r"|good|done|complete|green)\b",
    re.IGNORECASE,
)
_DOUBTFUL = re.compile(
    r"\b(?:tr(?:y|ied|ying)|attempt\w*|think|guess|believe|maybe|perhaps|not sure|unsure"
    r"|(?:does|did)(?:n't|n’t| not) (?:work|help)|still (?:fails?|raises?|crash\w*|broken)|breaks?"
    r"|nothing (?:was|has|is)|in vain|revert\w*|undid|undone|taken? (?:it )?(?:out|back))\b",
    re.IGNORECASE,
)
_RETRACTED = re.compile(
    r"\b(?:but|then|and|later)\b.{0,40}\b(?:revert\w*|undid|undone|(?:took|taken) (?:it |that )?"
    r"(?:out|back))\b",
    re.IGNORECASE,
)
# How something is, rather than what became of it.
_NEGATED = re.compile(
    r"(?<!,) not\b|n['’]t\b|\b(?:no (?!longer)|never|already|still|(?:was|were) (?!(?:\w+ed|made"
    r"|split|rewritten|written|set)\b))",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w.-]*\w")
_PASSES = re.compile(
    r"(?:all|the|both|every|existing|new|unit|[0-9]|of|these|relevant|\s)*\b(?:tests?|checks?"
    r"|suite)\b(?: \w+)? (?:now |still |also )?(?:pass(?:es|ed|ing)?|(?:is|are) (?:passing|green)"
    r"|succeeds?)\b.{0,24}\Z",
    re.IGNORECASE,
)
_SUCCEEDS = re.compile(
    r"\b(?:tests?|checks?|suite|build)\b (?:\w+ ){0,3}(?:pass|succeed|green)", re.IGNORECASE
)
_CLAIMS = re.compile(
    r"you\b|.*\b(?:(?:should|will|would) (?:now|then)|ready (?:for|to)|(?:is|are) (?:now )?"
    r"(?:fully )?(?:complete|done|fixed|ready|resolved|solved|verified)"
    r"|(?:correct|proper|successful|perfect)ly|set up)\b",
    re.IGNORECASE,
)
_IS_SETTLED = re.compile(r"(?:if|applied|completed|finished|addressed)\b", re.IGNORECASE)
_STATES = re.compile(
    r"[A-Z][a-z]+ed\b(?! to\b)|"
    r"(?!(?:if|so|why|how|when|just|choose|you|i|we|let|now|please|want)\b)[\w`\"'’ .,()/-]{0,80}"
    r"\b(?:is|are|was|were|has|have|had|does|do|can|cannot|must|needs?|uses?|comes?|exists?)\b",
    re.IGNORECASE,
)
_FAILS_STILL = re.compile(r"\bstill fail", re.IGNORECASE)
_OFFER = re.compile(
    r"(?:let me know|would you like|do you want|want me to|shall i|feel free|happy to|i can also"
    r"|if you|als nächstes könnten?)\b",
    re.IGNORECASE,
)


def completed_work(messages: Sequence[ChatMessage], names: Set[str]) -> tuple[str, ...]:
    """The sentences of final messages that report completed work.

    A final statement about something that was just changed also counts as a report.
    """
    every = (_done_part(sentence) for said in messages for sentence in said.sentences)
    found = [each.text for each in every if _reports_work_done(each) or _mentions_work(names, each)]
    return tuple(found[:_MOST])


def last_report(timeline: Timeline) -> tuple[str, ...]:
    """The first sentences of the last message that say what was done, or else what is so.

    Claims that everything works are left out: they are often wrong, and say nothing else.
    """
    told = [
        each
        for said in timeline.messages[-1:]
        for each in said.sentences
        if _is_statement(each)
        and not _is_left(each)
        and not is_all_well(each.text)
        and not _CLAIMS.match(each.text)
        and len(each.text.split()) >= _FEWEST_REPORTED
    ]
    prose = [each for each in told if not each.is_item]
    done = [each for each in prose if _reports_work_done(each)]
    listed = [each for each in told if each.is_item and is_done(each.text)]
    stated = [each for each in prose if _STATES.match(each.text)]
    is_of_work = bool(timeline.edits) and timeline.edits[-1] > timeline.last_prompt_at
    named = [each for each in told if is_of_work and cue_phrases.names_something(each.text)]
    found: list[str] = []
    for each in done or listed or stated or named:
        if len(found) == _MOST_REPORTED or len(" ".join([*found, each.text])) > _LONGEST_REPORT:
            break
        found.append(each.text)
    return tuple(found)


def remaining_work(timeline: Timeline) -> tuple[str, ...]:
    """The remaining work, from the last message after which no work follows.

    What an earlier message lists as remaining is what the agent did next.
    """
    found = [sentence.text for sentence in _postponed_sentences(timeline)]
    for said in reversed(timeline.last_words[-_MOST_MESSAGES:]):
        if any(map(_is_work, timeline.steps[said.at :])):
            break
        remaining = [_left_part(each) for each in said.sentences]
        told = [each.text for each in remaining if _reports_remaining_work(each)]
        if told:
            found += told
            break
    whole = (_LEFT_LEAD.sub("", text, count=1) for text in found)
    return tuple([text for text in whole if text and not _NOTHING.match(text)][:_MOST])


def _is_work(step: Step) -> bool:
    """Whether a step may have completed remaining work; reading and committing do not."""
    return step.kind == "write" or (
        step.kind == "command" and _GIT_OR_READING.match(step.text[:400]) is None
    )


def unreported_last_step(timeline: Timeline) -> Step | None:
    """The last edit or failing command, if the session stopped without a report or a check of it.

    A plan, which is a file outside of the project, ends a session too.
    """
    edits, last = set(timeline.edits), None
    for index in range(len(timeline.steps) - 1, -1, -1):
        step = timeline.steps[index]
        is_end = step.kind == "prompt" or (step.kind == "command" and (step.passed or step.message))
        is_plan = step.kind == "plan" or (step.kind == "write" and index not in edits)
        if last is None and (is_end or is_plan):
            return None
        if step.kind == "prompt":
            break
        if step.kind == "say" and not step.agent:
            # Some agents report an edit before they make it.
            is_reported = any(is_done(each.text) for each in split_sentences(step.text))
            return None if is_reported else last
        if last is None and (index in edits or (_is_work(step) and is_failing(step))):
            last = step
    return last


def _postponed_sentences(timeline: Timeline) -> tuple[Sentence, ...]:
    """The sentences of the last prompt, if it postpones work."""
    if not timeline.prompts or timeline.edits_between(timeline.prompts[-1].at, len(timeline.steps)):
        return ()
    said = timeline.prompts[-1]
    if not postpones_work(said):
        return ()
    return tuple(each for each in said.sentences if len(dedupe.words(each.text)) > 1)


def postpones_work(prompt: ChatMessage) -> bool:
    """Whether a prompt postpones the work."""
    return any(_POSTPONED.search(each.text) for each in prompt.sentences)


def conclusions(timeline: Timeline) -> tuple[str, ...]:
    """The findings of the last report, or its first sentences, for a session without edits."""
    if timeline.edits:
        return ()
    for said in reversed(timeline.reports):
        found = [
            each
            for each in said.sentences
            if _is_statement(each)
            and not _is_left(each)
            and cue_phrases.names_something(each.text)
            and not dedupe.is_repeated(each.text, timeline.prompt_texts)
        ]
        if found:
            # The findings of a review are a list.
            listed = [each for each in found if each.is_item]
            best = listed[:_MOST] if len(listed) > MOST_ANSWERED else found[:MOST_ANSWERED]
            return tuple(each.text for each in best)
    return ()


def fails_still(text: str) -> bool:
    """Whether a next step reports a failure that remains."""
    return _FAILS_STILL.search(text) is not None


def is_all_well(text: str) -> bool:
    """Whether a sentence only claims that everything works; the steps show that better."""
    return any(each.search(text) for each in (_ALL_GOOD, _SUCCEEDS))


def is_done(text: str) -> bool:
    """Whether a sentence reports completed work."""
    return _DONE.match(text) is not None


def _reports_work_done(sentence: Sentence) -> bool:
    text = sentence.text
    if not _is_statement(sentence) or _is_left(sentence):
        return False
    if is_done(text):
        return _RETRACTED.search(text) is None
    if _DOUBTFUL.search(text):
        return False
    if sentence.is_item and sentence.heading and _DONE_HEADING.search(sentence.heading):
        return cue_phrases.names_something(text)
    is_telling = cue_phrases.names_something(text) or len(text.split()) >= _FEWEST_WORDS
    return _IS_NOW.search(text) is not None and is_telling and not _ALL_GOOD.search(text)


def _mentions_work(names: Set[str], sentence: Sentence) -> bool:
    return (
        _is_statement(sentence)
        and not _is_left(sentence)
        and not cue_phrases.is_open(sentence.text)
        and not _DOUBTFUL.search(sentence.text)
        and not _NEGATED.search(sentence.text)
        and cue_phrases.weight(cue_phrases.DISCOVERIES, sentence.text) < cue_phrases.ENOUGH
        and cue_phrases.weight(cue_phrases.CHOICES, sentence.text) < cue_phrases.ENOUGH
        and not names.isdisjoint(_WORD.findall(sentence.text))
    )


def _reports_remaining_work(sentence: Sentence) -> bool:
    if not _is_statement(sentence) or _IS_SETTLED.match(sentence.text) or is_done(sentence.text):
        return False
    is_listed = sentence.is_item and _LEFT_HEADING.search(sentence.heading)
    return bool(is_listed) or _OPEN_WORK.search(sentence.text) is not None


def _done_part(sentence: Sentence) -> Sentence:
    """The completed part of a sentence such as "Added X, but Y is missing"."""
    part = _HOWEVER.search(sentence.text)
    if (
        part is None
        or not is_done(sentence.text)
        or not _OPEN_WORK.search(sentence.text[part.end() :])
    ):
        return sentence
    return sentence._replace(text=sentence.text[: part.start()])


def _left_part(sentence: Sentence) -> Sentence:
    done = _done_part(sentence)
    if done is sentence:
        return sentence
    part = _HOWEVER.match(sentence.text, len(done.text))
    return sentence._replace(text=sentence.text[part.end() :]) if part else sentence


def _is_left(sentence: Sentence) -> bool:
    is_below = _LEFT_HEADING.search(sentence.heading) is not None
    return is_below or _OPEN_WORK.search(sentence.text) is not None


def _is_statement(sentence: Sentence) -> bool:
    text = sentence.text
    return not (
        sentence.is_question
        or _OFFER.match(text)
        or _PASSES.match(text)
        or dedupe.is_narration(text)
        or dedupe.is_junk(text)
        or text.endswith(":")
    )
