"""The phrases that mark a sentence as a decision, a discovery or a cause.

Each pattern has a weight; a sentence whose weights add up to `ENOUGH` is taken unless something
rules it out. Sentences are at most 400 characters long, and no pattern nests repeats. Patterns and
sentences are compared in lower case, which is several times faster than ignoring case.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

ENOUGH = 5


class Cue(NamedTuple):
    pattern: re.Pattern[str]
    weight: int


def _cue(weight: int, *patterns: str) -> Cue:
    """One cue that matches any of several patterns."""
    return Cue(re.compile("|".join(patterns)), weight)


_VERB = (
    r"(?:use|using|keep|avoid|prefer|make|put|write|call|run|add|name|return|store|check|handle"
    r"|commit|format|test|log|wrap|import|export|validate|sort|round|treat|include|leave|go|stick"
    r"|stay|switch|move|pass|raise|throw|catch|mock|touch|edit|change|create|delete|remove|start"
    r"|end|read|load|send|convert|escape|quote|document|update|rely|depend|push|merge|rebase|squash"
    r"|amend|tag|deploy|release|publish|install|upgrade|pin|bump|build|lint|skip|disable|ignore"
    r"|bypass|force|ask|confirm|verify|assume|guess|trust|hard-?code|expose|print|copy|rewrite"
    r"|rename|refactor|reuse|explain|answer|reply|mention)"
)
_PROBLEM_PHRASE = r"\bthe (?:actual |real |underlying |main )?(?:problem|issue|bug|reason|culprit"
# `The problem is here` is useless later.
_PROBLEM_VERB = (
    r"(?: here)? (?:is|was|why|for|comes?)\b(?! (?:in|at|on|here|clear|obvious|with|fixed)\b)"
)
_ROOT_CAUSE = r"\broot cause\b", r"\bthe (?:actual |real |underlying )?cause (?:is|was|of)\b"

RULES = (
    _cue(6, rf"\A(?:please )?(?:always|never) {_VERB}\b"),
    _cue(
        5,
        r"\b(?:must|should|shall|please|we|you) (?:always|never) "
        rf"(?:be\b|{_VERB}\b)",
    ),
    _cue(5, r"\bmust (?:never|not|always|stay|remain)\b"),
    _cue(
        6,
        r"\b(?:from now on|going forward|as a rule|by convention|our (?:convention|policy))\b",
        r"\Aab (?:jetzt|sofort)\b",
    ),
    _cue(
        5,
        r"\A(?:please )?(?:do not|don't|don’t|dont) (?:ever )?(?!(?:worry|forget|know|think|see"
        r"|like|care|understand|mind|get|need|have|bother|you|we|i|be)\b)[a-z]+ \w",
    ),
    _cue(5, r"\b(?:we|i) (?:do not|don't|don’t|never|no longer) (?:want|use|allow|support)\b"),
    _cue(5, r"\b(?:stop using|avoid using|(?:is|are) forbidden|is not allowed)\b"),
    _cue(5, r"\b(?:we|i) (?:always |would )?prefer\b"),
    _cue(6, r"\Aprefer \S+ (?:over|to)\b"),
    # How someone who knows the project states its conventions.
    _cue(
        4,
        r"\Awe (?:always )?(?:use|store|keep|write|call|name|return|run|handle|put|test|format)\b",
        r"[.!,] we (?:always )?(?:use|store|keep|write|return|run|handle|put)\b",
    ),
    _cue(3, r"\b(?:everywhere|in all cases|project-wide|across the (?:code ?base|project))\b"),
    _cue(1, r"\b(?:because|so that)\b"),
    _cue(5, r"\A(?:please )?use .{1,80} only\b", r"\b(?:only use|use only)\b"),
    _cue(5, r"\bno (?:new|external|third-party|other) (?:dependenc|librar|package)\w+"),
    _cue(
        5,
        r"\A(?:bitte )?(?:immer|niemals|nie) \w+",
        # German rules put the verb at the end.
        r"\b(?:immer|niemals|nie)\b[^.,;]{1,60}\w(?:en|ern|eln)(?=[.,;!]|\Z)",
        r"\Awir (?!bekommen|sehen|haben|kriegen)\w+(?:en|ern|eln)\b.{1,80}\b(?:immer|nie"
        r"|niemals|nur)\b",
        r"\A(?:bitte )?keine? (?!ahnung|frage|sorge|zeit|problem|idee|lust|fehler|angst|eile)\w{3}",
        r"\A(?:bitte )?(?:nimm|verwende|nutze|benutze) lieber\b",
        r"\bw(?:ird|erden) (?:immer |nur )?(?:in|als) .{1,40}\bgespeichert\b",
        r"\Amach .{1,40}\bimmer\b",
    ),
    # What introduces rules, who does what, and what is said again.
    _cue(
        5,
        r"\A(?:\w+ )?(?:rules|conventions|guidelines)(?: here| first| for [\w ]{1,30})?:",
        r"\A(?:just )?(?:a few|some|two|three|four|a couple of) (?:more )?(?:things|rules|notes"
        r"|points)\b[\w ,'’]{0,40}:",
        r"\b(?:i|we) (?!\w+ed\b|did|made|wrote|ran|found|saw)\w+(?: \w+){0,3},? (?:and )?"
        r"(?:you (?:don't|don’t|dont|never)|not you)\b",
        r"\bi (?!\w+ed\b|did|made|wrote|ran|found|saw|will|can|could|would|')\w+"
        r"(?: \w+){0,6} myself\b",
        r"\A(?:please )?remember[,:!] \w",
        r"\b(?:i|we) (?:have |already )?(?:told|asked) you (?:not|never|already|before|twice)\b",
        r"\A(?:i|we) (?:have |already )?(?:told you|said (?:so|that|it))(?: \w+)?\Z",
    ),
    # How people in a hurry write rules.
    _cue(
        5,
        r"\Ano (?!problem|worries|idea|need|rush|thanks|way|it|that|this|one|luck|change|diff|error"
        r"|wait|but|i|we|you|use|keep|more|further)[\w-]{2,}(?: [\w-]+){0,5}[.!]?\Z",
        r"(?:,|\band|\bbut) never \w+",
        r"\A\w+ never \w+ (?:here|anywhere|ever)\b",
        r"\A(?:use|keep|put|write|store|make|call|name|return)\b.{1,100}, not \w",
        r"\A[\w ]{3,40}\b(?:go|goes|belongs?|lives?) (?:in|into|under|to)\b.{1,60}, not \w",
        r"\Ause (?!the|this|that|it|your|my)[\w.`-]+(?: [\w.`-]+){0,3} for (?!now|it|this|that)\w",
        r"\Akeep .{2,60}\b(?:stable|compatible|as (?:it|they) (?:is|are)|unchanged|private)\b",
    ),
    # Statements about how everything is or should be.
    _cue(
        5,
        r"\A(?:all|every|each|public|new) [\w -]{2,40}\b(?:(?:are|is) (?:always |in |as )*(?!\w+"
        r"ing\b|red\b|broken|green|gone|slow|wrong|there|done|missing|empty|null|lost|the\b|not\b)"
        r"|needs? an?\b|needs? (?!to\b)\w+[.!]?\Z)",
        r"\A[\w ]{3,30}\b(?:are|is) (?:(?:stored|kept|given|measured) (?:in|as)\b|in (?:cents|utc"
        r"|seconds|milliseconds|ms|bytes|euros?|local time)\b)",
        r"\b(?:has|have) to stay\b",
        r"\bwe (?:only )?support\b.{1,60}\b(?:only|and (?:newer|later|up))\b",
        r"\bwe only (?:run|use|support|deploy|release|ship|log|store)\b",
        r"\Awe(?:'ll|’ll| will|'re|’re| are) (?:going to )?(?:drop|mov(?:e|ing) (?:to|off)"
        r"|switch(?:ing)? to|migrat(?:e|ing)|remov(?:e|ing)|deprecat(?:e|ing)|stay(?:ing)?)\b",
    ),
)
"""Rules for how to do things."""

CHOICES = (
    _cue(6, r"\b(?:we|i|they)(?:'ve|’ve| have)? (?:decided|agreed|chose|picked|opted|settled)\b"),
    _cue(6, r"\bdecision:", r"\bdecided:", r"\A(?:decided|agreed) (?:to|on|against|that)\b"),
    _cue(
        5,
        r"\b(?:let(?:'s|’s| us)|\Alets) not (?!\W)\w+",
        r"\b(?:let(?:'s|’s| us)|\Alets) (?:never |always )?(?:go with|use|keep|stick|stay"
        r"|switch|drop|avoid|make|store|call|name)\b",
        r"\blasst? uns\b.{1,60}\b(?:nehmen|verwenden|nutzen)\b",
        r"\bwir (?:nehmen|verwenden|nutzen|benutzen|bleiben|haben uns)\b",
    ),
    _cue(6, r"\bi(?:'d|’d| would) rather (?:use|have|keep|go with)\b"),
    _cue(
        5,
        r"\b(?:i|we) (?:kept|left|pin|pinned|keep)\b.{1,120}\b(?:because|since|so that)\b",
        r"\A(?:instead of|rather than) .{1,80}\b(?:i|we) (?!get|got|see|saw)\w+",
    ),
    _cue(6, r"\bi(?:'ll|’ll| will|'m|’m| am)? (?:go|going|went) with\b"),
    _cue(4, r"\b(?:go|going|went|gone) (?:ahead )?with\b"),
    _cue(
        5,
        r"\b(?:use|using|used|keep|kept|prefer|write|store|put|make|made"
        r"|switch(?:ed)? to)\b.{1,120}\b(?:instead|rather than|over)\b",
        r"\A(?:bitte )?(?:verwende|nimm|nutze|benutze)\b.{1,80}\b(?:statt|anstatt|anstelle)\b",
    ),
    _cue(3, r"\b(?:instead of|rather than|in favou?r of)\b"),
    _cue(3, r"\bswitch(?:ed)? (?:from|to|over)\b"),
    _cue(5, r"\b(?:deliberately|intentionally|on purpose|by design)\b"),
    _cue(5, r"\Awe (?:must|should) (?:never|always|not)\b"),
    _cue(2, r"\btrade-?off\b", r"\bsimplest (?:option|approach|solution) (?:is|was)\b"),
    _cue(1, r"\b(?:because|so that|due to|in order to|as it|since)\b"),
)
"""Choices."""

CORRECTIONS = (
    _cue(
        6,
        r"\A(?:no|nope|nein|actually|wait|not that|stop)[,.:!;–—-]* *(?:please )?"
        rf"(?:{_VERB}|don't|do not|it (?:should|must)|we (?:use|have|want|need)|verwende|nimm)\b",
    ),
    _cue(3, r"\A(?:i meant|i said|i want|we want|(?:it|that) (?:should|must) be)\b"),
    _cue(2, r", not [\w`]"),
)
"""Corrections by a user whose agent went the wrong way."""

DISCOVERIES = (
    _cue(5, r"\btried\b.{1,160}\b(?:but|and) (?:then )?(?:reverted|undid|took)\b"),
    _cue(
        5,
        r"\bturn(?:s|ed) out\b",
        r"\b(?:die ursache|das problem|der fehler|der grund) (?:ist|war|liegt)\b",
        r"\bstellt(?:e)? sich heraus\b",
    ),
    _cue(6, *_ROOT_CAUSE),
    _cue(5, rf"{_PROBLEM_PHRASE}|catch|trick){_PROBLEM_VERB}"),
    _cue(
        5,
        r"\b(?:found|discovered|noticed|realized|realised|confirmed|learned) (?:out )?that\b",
        r"\b(?:seems?|looks?|appears?) (?:like |that |to )\b.{1,200}\b(?:because|since|due to)\b",
    ),
    _cue(4, r"\bnote(?: that|:)", r"\b(?:important(?:ly)?|gotcha|caveat|beware)\b"),
    _cue(
        3,
        r"\b(?:only|never) (?:works?|runs?|called|supports?|accepts?|returns?|fires?|applies"
        r"|happens?|if|when|once|after|before|on|for)\b",
    ),
    _cue(
        4,
        r"\b(?:is|are) (?:limited to|capped at|not thread-safe|not safe|case.(?:in)?sensitive"
        r"|deprecated|cached|lazy|evaluated|called twice|ignored|silently)\b",
    ),
    _cue(
        3,
        r"\b(?:silently|undocumented|off-by-one|race condition|deadlock|memory leak|at most"
        r"|no more than|times? out after|rate limit|overflows?)\b",
    ),
    _cue(4, r"\Abecause\b"),
    _cue(3, r"\b(?:was|were|(?:has|have) been) (?:renamed|removed|moved|replaced|deprecated)\b"),
    _cue(2, r"\b(?:unless|only if|except when|by default)\b"),
    _cue(2, r"\b(?:because|since|due to|which means|so that)\b"),
    _cue(2, r"\b(?:expects?|requires?|depends on|assumes?|relies on|must be called|has to be)\b"),
    _cue(1, r"\bactually\b"),
)
"""Discoveries of the agent."""

CAUSES = (
    _cue(6, *_ROOT_CAUSE, rf"{_PROBLEM_PHRASE}){_PROBLEM_VERB}"),
    _cue(5, r"\bturns out\b"),
    _cue(4, r"\b(?:was|were|(?:has|have) been) (?:renamed|removed|moved|replaced)\b"),
    _cue(4, r"\b(?:because|due to|which means|caused by|since|weil|deshalb|liegt daran)\b"),
    _cue(
        2,
        r"\b(?:twice|never|missing|wrong|instead of|off by one|stale|race)\b",
        r"\bnot (?:set|called|awaited|closed|reset)\b",
    ),
)
"""Causes of bugs."""

_HYPOTHETICAL = re.compile(
    r"\b(?:could|might|maybe|perhaps|possibly|would|if (?:we|you|i|they)|should (?:we|i)"
    r"|shall (?:we|i)|do you (?:want|prefer)|would you|one option|another option|alternatives?"
    r"|alternatively|consider|considering|what if|either|whether|not sure|unsure|undecided"
    r"|wondering|let me know|(?:haven't|have not|not yet|didn't|did not) (?:decided?|chosen"
    r"|choose)|k(?:ö|oe)nnten?|vielleicht|w(?:ü|ue)rden?|soll(?:en|te|ten)? (?:wir|ich))\b"
)
_DECIDED = re.compile(r"\b(?:decided|chose|agreed|settled on|opted|would rather|'d rather)\b")
# Applies only to this session, or to another place.
_PASSING = re.compile(
    r"\b(?:the other (?:one|file|way)|your suggestion|(?:make|let) (?:this|it|that) work|with you"
    r"|so many|the time to|tell me|sorry|a mistake|at my|my old|to meet|this time|old (?:version"
    r"|code|build)|for (?:now|the moment)|they (?:decided|chose|agreed)|wait for)\b"
    r"|\b(?:now|(?:tests|that|this) first|go with that)[.!]?\Z|\Ai (?:used|switched)\b"
)
_BUG_REPORT = re.compile(
    r"(?<!must )(?<!should )(?<!shall )\b(?:always|never|no longer|don't|doesn't|do not"
    r"|does not) (?:get|gets|see|fail|fails|work|works|return|returns|seem|seems|happen|happens"
    r"|show|shows|end|ends|crash|crashes|hang|hangs)\b"
)
_NAMED = re.compile(
    r"`[^`]{1,100}`|\b\w+[./]\w+|\b\w+_\w+|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|[0-9]"
)


@lru_cache(maxsize=4_096)
def weight(cues: tuple[Cue, ...], text: str) -> int:
    lower = text.lower()
    return sum(cue.weight for cue in cues if cue.pattern.search(lower))


def is_open(text: str) -> bool:
    """Whether a sentence only considers something and decides nothing."""
    lower = text.lower()
    return _HYPOTHETICAL.search(lower) is not None and not _DECIDED.search(lower)


def is_temporary(text: str) -> bool:
    """Whether a sentence only matters now: `Don't run the slow tests now`."""
    return _PASSING.search(text.lower()) is not None


def describes_symptom(text: str) -> bool:
    """Whether a sentence describes a symptom and not a rule: `It never returns`."""
    return _BUG_REPORT.search(text.lower()) is not None


def names_something(text: str) -> bool:
    """Whether a text contains a code name, a file or a number."""
    return _NAMED.search(text) is not None


def strongest(texts: Iterable[str], cues: tuple[Cue, ...]) -> str:
    """The sentence with the greatest weight, the last of equal ones; empty if none has enough."""
    best, most = "", 0
    for text in texts:
        found = weight(cues, text)
        if found >= max(most, ENOUGH - 1):
            best, most = text, found
    return best
