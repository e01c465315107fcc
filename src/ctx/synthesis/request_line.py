"""The user's request in one line, and the session title."""

import re
from collections.abc import Sequence

from ctx.synthesis import dedupe, final_message, one_line_text
from ctx.synthesis.decisions import settles
from ctx.synthesis.observations import LONGEST_LINE, LONGEST_NAME
from ctx.synthesis.sentences import Sentence
from ctx.synthesis.timeline import ChatMessage, Timeline, agrees, is_about_fixing

_MOST_GOALS = 3
_MOST_SENTENCES = 4
_LONGEST = 4_000
_LONGEST_GOAL = 110
_FEWEST_WORDS = 3
# `Add a cache.`
_FEWEST_AT_FIRST = 2
_POLITE = re.compile(
    r"(?:(?:hi|hey|hello|hallo|ok(?:ay)?|so|now|then|please|bitte|also|and|great|thanks|nice|cool"
    r"|ah|perfect|works|yes|yep|ja)[,.!:]*\s+|(?:can|could|would|will) you (?:please )?"
    r"|i(?:'d| would) like (?:you )?to |i (?:want|need) (?:you )?to |we (?:need|want|have) to "
    r"|let(?:'s|’s) |kannst du (?:bitte )?)",
    re.IGNORECASE,
)
_TRAILING_REQUEST = re.compile(
    r"[,;–—] *(?:can|could|would|will|please|bitte)\b[^,;]*\Z", re.IGNORECASE
)
_COMMAND_NAME = re.compile(r"/[\w:-]+\s+")
# Clients write this when the user accepts a plan; the plan has its own title.
_PLAN = re.compile(
    r"[^\n]{0,80}\bplan:?\s{1,9}#[ \t]{1,9}(?:plan\b[: \t]*)?(?P<title>[^\n]{0,200})", re.IGNORECASE
)
_ERROR = re.compile(
    r"^[ \t>]*((?:[\w.]{0,80}(?:Error|Exception)|error|panic)\b[^\n]{3,200})", re.MULTILINE
)
_TRACE = re.compile(r"\sat \S{1,200} [\[(].*\Z", re.DOTALL)
_STATES = re.compile(
    r"(?:(?:gut|interesting|hm+|right|okay|ok|ah|so|yes|ja)[,.!]*\s+)*(?:it['’]?s|it is|that['’]?s"
    r"|that is|option \w|the (?:first|second|third) one|we (?:will|are|have a|use)"
    r"|they|i (?:think|see|am)|das \w+ (?:ist|bleibt|war)"
    r"|das (?:ist|bleibt|war))\b",
    re.IGNORECASE,
)
# Paths, links, pasted code and several lines make no title.
_UNSUITABLE_TITLE = re.compile(r"[\n<>{}|\\@#]|\w/\w|^/|https?:")
_ASKS = re.compile(r"\?|\b(?:please|bitte|can you|could you|kannst du)\b", re.IGNORECASE)


def prompts(timeline: Timeline) -> tuple[ChatMessage, ...]:
    """The prompts that request something, or all prompts if none does."""
    every = timeline.requests or timeline.prompts
    return tuple(said for said in every if not _is_given_up(timeline, said)) or every


def _is_given_up(timeline: Timeline, said: ChatMessage) -> bool:
    """Whether a short prompt is followed at once by another prompt."""
    after = timeline.steps[said.at + 1 : said.at + 2]
    is_short = len(dedupe.words(said.text)) < _FEWEST_WORDS
    return is_short and any(step.kind == "prompt" for step in after)


def request(timeline: Timeline) -> str:
    """The first request, and later ones that change the goal."""
    every = prompts(timeline)
    asked = [said for said in every if len(dedupe.words(_as_request(said))) >= _FEWEST_AT_FIRST]
    first, *later = asked or every
    told = [one_line_text.shortened(_as_request(first), LONGEST_LINE)]
    for said in later:
        goal = one_line_text.shortened(_as_request(said), _LONGEST_GOAL)
        is_goal = (
            len(dedupe.words(goal)) >= _FEWEST_WORDS
            and not dedupe.is_repeated(goal, told)
            and not settles(said)
            and not final_message.postpones_work(said)
            and not _only_states(said)
        )
        if is_goal and len(told) <= _MOST_GOALS:
            told.append(goal)
    whole = one_line_text.sentence(told[0])
    if len(told) > 1:
        whole += (
            f" Then: {one_line_text.sentence('; '.join(goal.rstrip('.') for goal in told[1:]))}"
        )
    return one_line_text.shortened(whole, 2 * LONGEST_LINE)


def title(timeline: Timeline, completed: Sequence[str]) -> str:
    """The first request if it is short and plain, or else the title that the session was given."""
    given = timeline.title
    if given.text and (given.is_by_user or not _is_title(prompts(timeline)[0].text)):
        return one_line_text.shortened(given.text.rstrip(". "), LONGEST_NAME)
    return _own_title(timeline, completed)


def _is_title(prompt: str) -> bool:
    text = prompt.strip()
    is_plain = len(text) <= LONGEST_NAME and not _UNSUITABLE_TITLE.search(text)
    return is_plain and len(dedupe.words(_plain(text))) >= _FEWEST_WORDS


def _own_title(timeline: Timeline, completed: Sequence[str]) -> str:
    """The first request, or the completed work if the request says too little."""
    for said in prompts(timeline)[:_MOST_GOALS]:
        plan = _PLAN.match(said.text)
        if plan and len(dedupe.words(plan["title"])) >= _FEWEST_AT_FIRST:
            return one_line_text.shortened(plan["title"].rstrip(".?! "), LONGEST_NAME)
        each = [_request_in(sentence) for sentence in said.sentences[:_MOST_SENTENCES]]
        each.append(_as_request(said))
        for fewest in (_FEWEST_WORDS, _FEWEST_AT_FIRST):
            telling = (asked for asked in each if len(dedupe.words(asked)) >= fewest)
            best = next(telling, "")
            if best and not agrees(said.text):
                return one_line_text.shortened(best.rstrip(".?! "), LONGEST_NAME)
    best = completed[0] if completed else _as_request(prompts(timeline)[0])
    return one_line_text.shortened(best.rstrip(".?! ") or best, LONGEST_NAME)


def _request_in(sentence: Sentence) -> str:
    is_lead = sentence.text.endswith(":") or not dedupe.words(sentence.text)
    return "" if is_lead else _TRAILING_REQUEST.sub("", _plain(sentence.text))


def _as_request(said: ChatMessage) -> str:
    """A prompt without pasted text and polite phrases."""
    words, is_listed = "", False
    for each in said.sentences[:_MOST_SENTENCES]:
        if dedupe.words(each.text) and not each.text.endswith(":"):
            words += f"{'; ' if is_listed and each.is_item else ' '}{each.text}"
            is_listed = each.is_item
    words = _plain(words.strip() or said.text[:_LONGEST])
    error = _ERROR.search(said.text[:_LONGEST])
    if error and len(dedupe.words(words)) < _FEWEST_AT_FIRST:
        # The prompt is just `fix` with pasted output below it.
        words = f"{words.rstrip('.!: ')}: {error[1]}"
    return one_line_text.line(words)


def _plain(text: str) -> str:
    words = _without_command(text)
    for _ in range(4):
        polite = _POLITE.match(words)
        if polite is None or polite.end() == len(words):
            break
        words = words[polite.end() :]
    words = _TRACE.sub("", words) or words
    return one_line_text.capital(one_line_text.line(words).removesuffix(" please"))


def _without_command(words: str) -> str:
    """A prompt without its slash command, unless too few words remain: `/review src/a.py`."""
    behind = _COMMAND_NAME.sub("", words, count=1) if words.startswith("/") else words
    return behind if len(dedupe.words(behind)) >= _FEWEST_WORDS else words


def _only_states(said: ChatMessage) -> bool:
    """Whether a prompt only states something and requests nothing."""
    return (
        _STATES.match(said.text) is not None
        and not _ASKS.search(said.text)
        and not is_about_fixing(said.text)
    )
