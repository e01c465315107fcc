"""Filters sentences that are noise or repeat another sentence.

Agents pay for every word of memory that they read. Repeated statements, announcements of what the
agent is about to do, and copied command output are dropped here, before they are written. Two
sentences may also mean the same, or the opposite, in different words.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from ctx import terms

_LONGEST = 600
_FEWEST_TERMS = 3
_SAME = 0.8
_OPPOSITE = 0.6
_RESTATED = 0.85
_COMMON = frozenset(
    terms.extract(
        "a an the this that these those it its they them we us our i me my you your he she"
        " is are was were be been being am do does did done have has had having can could will"
        " would shall should may might must not no yes of to in on at by for from with without into"
        " onto over under and or but if then else than as so because since while when where which"
        " who what how why there here also just only now too very more most some any all each both"
        " let lets please ok okay sure thanks thank great good fine well actually really still"
        " der die das und oder nicht ein eine ist sind zu mit auf fuer für von wir ich du bitte"
    )
)
_COMPARED = re.compile(
    r"\b(?:instead of|rather than|in place of|over|anstatt|statt|anstelle von)\b|, *(?:and )?not\b"
)
_NEGATION = re.compile(
    r"\b(?:no|not|never|dont|stop|avoid|without|forbidden|cannot|\w{2,8}n['’]t|nicht|kein\w{0,2}"
    r"|nie|niemals|ohne)\b"
)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_DEGREES = frozenset(
    terms.extract(
        "always never no not don't dont stop avoid longer everywhere from now on immer nie"
    )
)
_NARRATION = re.compile(
    r"(?:(?:ok(?:ay)?|for now|now|first|next|then|so|great|good|perfect|alright|right"
    r"|and)[,.:!]?\s+)*(?:let me\b|let's (?:look|see|check|start|run|first|now|verify|read|find"
    r"|take|examine|try)\b|i(?:'ll|’ll| will|'m going to|’m going to| am going to| need to"
    r"| want to| should| can now)\s+(?!go with\b|use\b|keep\b|stick\b|stay\b)|i(?:'m| am"
    r"|’m) (?:now )?(?:looking|reading|running|checking|starting|working|going (?!with\b))\b"
    r"|(?:looking|reading|running|checking|searching|examining|starting|verifying) (?:at|for|the"
    r"|into)\b|(?:next|now),? (?:i|we)\b|time to\b|here(?:'s| is| are)\b|here you go\b)",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"(?:hi|hey|hello|hallo|thanks|thank you|thx|danke|good (?:morning|evening)|you(?:'re"
    r"| are) (?:welcome|right)|great|perfect|awesome|nice|sure|of course|certainly|absolutely"
    r"|done|sorry|i apologi[sz]e|happy to|glad to|feel free"
    r"|let me know)\b\W*(?:\w+\W+){0,12}\w*\Z",
    re.IGNORECASE,
)
_PRINTED = re.compile(
    r"\A\s*(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]|\[[^\]]{0,40}\]\s|\$ |at \S+ \(|File \"|Traceback\b"
    r"|(?:DEBUG|INFO|WARN|ERROR)\b|[-+]{3} |@@ |[{}<\[(|]|[\w.]{0,80}(?:Error|Exception"
    r"|Warning): |(?:error|warning|note)(?:\[\w{1,20}\])?: |\S{1,200}:[0-9]+:|E {2,})"
)
_CODE = re.compile(r"`[^`]*`")


@lru_cache(maxsize=4_096)
def words(text: str) -> frozenset[str]:
    """The terms of a text, without stop words."""
    return frozenset(terms.extract(text[:_LONGEST])) - _COMMON


class Sense(NamedTuple):
    """What a set of words cannot express: negation, rejected alternatives, numbers."""

    is_negative: bool
    instead_of: frozenset[str]
    """The rejected alternative: `spaces` in `tabs over spaces`."""
    numbers: frozenset[str]


@lru_cache(maxsize=4_096)
def sense(text: str) -> Sense:
    told = text[:_LONGEST].lower()
    compared = _COMPARED.search(told)
    before = told[: compared.start()] if compared else told
    behind = told[compared.end() :] if compared else ""
    rejected = words(behind.partition(" because ")[0]) - words(before)
    return Sense(_NEGATION.search(before) is not None, rejected, frozenset(_NUMBER.findall(told)))


def is_same(one: str, other: str) -> bool:
    """Whether two texts say nearly the same."""
    left, right = words(one), words(other)
    if not left or not right:
        return one == other
    is_like = len(left & right) >= _SAME * len(left | right)
    return is_like and not _differs(one, other) and sense(one).numbers == sense(other).numbers


def is_opposite(one: str, other: str) -> bool:
    """Whether two texts contradict each other in nearly the same words."""
    left, right = words(one) - _DEGREES, words(other) - _DEGREES
    return (
        min(len(left), len(right)) > 1
        and len(left & right) >= _OPPOSITE * len(left | right)
        and _differs(one, other)
    )


def is_revised(one: str, other: str) -> bool:
    """Whether two texts say nearly the same with other numbers: a port, a version, a limit."""
    numbers, others = sense(one).numbers, sense(other).numbers
    if not numbers or not others or numbers == others:
        return False
    left, right = words(_NUMBER.sub("", one)), words(_NUMBER.sub("", other))
    return min(len(left), len(right)) > 1 and len(left & right) >= _SAME * len(left | right)


def _differs(one: str, other: str) -> bool:
    """Whether one text rejects what the other states."""
    first, second = sense(one), sense(other)
    return first.is_negative != second.is_negative or bool(
        first.instead_of & (words(other) - second.instead_of)
        or second.instead_of & (words(one) - first.instead_of)
    )


def key(kind: str, text: str) -> str:
    """A key for a text that does not depend on its word order."""
    told = " ".join(sorted(words(text))) or text
    is_negative, instead_of, _ = sense(text)
    if is_negative or instead_of:
        told += f"\0{is_negative}\0{' '.join(sorted(instead_of))}"
    return f"{kind}:{blake2b(told.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def is_repeated(text: str, others: Iterable[str]) -> bool:
    """Whether one of the other texts already contains this statement."""
    wanted = words(text)
    return any(
        wanted
        and len(wanted & words(other)) >= _RESTATED * len(wanted)
        and not _differs(text, other)
        and sense(text).numbers <= sense(other).numbers
        for other in others
    )


def is_narration(text: str) -> bool:
    """Whether a sentence announces what the agent is about to do."""
    return _NARRATION.match(text[:_LONGEST]) is not None


def is_junk(text: str) -> bool:
    """Whether a sentence has nothing that a later session could use."""
    head = text[:_LONGEST]
    is_empty = len(words(head)) < _FEWEST_TERMS
    return is_empty or _GREETING.match(head) is not None or is_printed(head)


def is_printed(text: str) -> bool:
    """Whether a text looks like program output and not like a sentence."""
    head = text[:_LONGEST]
    if _PRINTED.match(head):
        return True
    said = _CODE.sub("x", head)
    letters = sum(map(str.isalpha, said)) + said.count(" ")
    return letters < 0.7 * len(said)


_LEAST_SIMILARITY = 0.6
_LONGEST_COMPARED = 960
_LITTLE_MEANING = frozenset(
    terms.extract(
        "the a an and or of to in on for with is are be as at by it its this that we i you should"
        " must use used using will from not no always never only instead because so than then"
    )
)
_NAMED = re.compile(r"`([^`]{1,100})`")
_SAYS_NO = re.compile(
    r"\b(?:no longer|not any ?more|stop|don'?t|do not|never|instead of|rather than|avoid|wrong)\b",
    re.IGNORECASE,
)


class Meaning(NamedTuple):
    subject: frozenset[str]
    """The terms of the sentence, without stop words."""
    says_no: bool
    names: frozenset[str]
    """Code names in backticks."""
    numbers: frozenset[str]


# Cached: hundreds of sentences are compared, each with all others.
@lru_cache(maxsize=4_096)
def meaning_of(text: str) -> Meaning:
    head = text[:_LONGEST_COMPARED]
    return Meaning(
        frozenset(terms.extract(head)) - _LITTLE_MEANING,
        _SAYS_NO.search(head) is not None,
        frozenset(_NAMED.findall(text)),
        sense(text).numbers,
    )


def is_similar(one: str, other: str) -> bool:
    """Whether two sentences mean the same in different words."""
    first, second = meaning_of(one), meaning_of(other)
    if first.says_no != second.says_no or first.numbers != second.numbers:
        return False
    if first.names and second.names and first.names.isdisjoint(second.names):
        # That the query in `report` is slow does not apply to `export`.
        return False
    return _overlap(first.subject, second.subject) >= _LEAST_SIMILARITY and not is_opposite(
        one, other
    )


def contradicts(said: str, learning: str) -> bool:
    """Whether a sentence contradicts a learning: same subject, opposite polarity."""
    if is_opposite(said, learning):
        return True
    known, now = meaning_of(learning), meaning_of(said)
    if now.says_no == known.says_no or not known.subject:
        return False
    return len(known.subject & now.subject) / len(known.subject) >= _LEAST_SIMILARITY


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
