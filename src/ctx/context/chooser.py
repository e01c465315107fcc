"""Chooses what a session is given of past ones: the chance that it needs a passage.

One linear model serves the start, where nothing is known of the task, and prompts. Its weights are
in `chooser_weights.py`; `scripts/fit-chooser` fits them to labelled starts of real sessions. A
feature takes microseconds: speaker, form, age, a few cue words, and what a passage shares with the
prompt. Passages are given in the order of chance per token.

Hooks load this module, so it has no regular expressions and imports nothing slow.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import exp, log
from typing import NamedTuple

from ctx import clock
from ctx.context import chooser_weights

LEAST_CHANCE = 0.1
"""What is needed less often is not worth its tokens."""

_FRAME = 15
"""Tokens that each item costs besides its text: a very short one says little."""
_KINDS = ("correction", "answer", "final", "report", "remark", "plan", "commit", "change")
_CUES: Mapping[str, frozenset[str]] = {
    "says how it should be": frozenset(
        "should must shall need needs have has ensure sure want wants prefer keep always never only"
        " rather instead don't dont avoid no remember allowed supposed лучше должен должна должно"
        " нужно надо нельзя всегда хочу doit faut toujours jamais veux debe siempre nunca quiero"
        " không phải luôn hãy muss soll immer nie nicht keine statt".split()
    ),
    "reports a problem": frozenset(
        "still doesn't doesnt isn't aren't cannot can't nothing fail fails failed failing broken"
        " crash crashes empty missing wrong stuck error errors issue bug problem работает ошибка"
        " ошибку lỗi fonctionne marche funciona fehler".split()
    ),
    "says what the user wants": frozenset(
        "i we i'd we'd i'll we'll prefer like would use decided meant said expect".split()
    ),
    "asks why": frozenset("why warum pourquoi почему sao".split()),
    "gives a reason": frozenset(
        "because since cause caused reason root otherwise therefore why turns weil denn".split()
    ),
    "objects": frozenset("but however actually rather instead except unless although".split()),
    "speaks in general": frozenset(
        "when if whenever every each all any everywhere per once".split()
    ),
    "announces work": frozenset("let me i'll i'm going now looking checking".split()),
    "claims success": frozenset(
        "successfully complete completed fixed added updated created implemented pass passed"
        " verified".split()
    ),
}
_DEMANDS = _CUES["says how it should be"] - frozenset("need needs have has want wants no".split())
_STATES = frozenset().union(
    _DEMANDS,
    *(_CUES[cue] for cue in ("asks why", "objects", "speaks in general")),
    _CUES["says what the user wants"] - frozenset(("i", "we")),
    # Definitions and conventions: `money is in cents`, `use pnpm`.
    frozenset("is are use name answer as".split()),
)
_ORDERS = frozenset(
    "fix add implement create make update change remove delete run commit push check review write"
    " build test start show move rename refactor look investigate analyze find read continue"
    " proceed merge deploy open generate try do resolve give tell explain execute please can could"
    " now then lets let's".split()
)
_GOES_ON = frozenset(
    "ok okay yes yep sure great good nice perfect cool thanks continue proceed go next alright fine"
    " looks works".split()
)
_SAID_AS = {
    "correction": "a correction",
    "answer": "an answer to a question",
    "final": "the end of a session",
    "report": "the end of a turn",
    "plan": "a plan",
    "change": "a change",
    "says how it should be (user)": "says how it should be",
    "says what the user wants (user)": "says what the user wants",
    "asks why (user)": "asks why",
    "objects (user)": "objects",
    "speaks in general (user)": "speaks in general",
    "gives a reason (user)": "gives a reason",
    "gives a reason (agent)": "gives a reason",
    "objects (agent)": "says what is different",
    "speaks in general (agent)": "speaks in general",
    "in a short message": "a short message of the user",
    "is of a session about the same": "its session was about the same",
    "is of a session about the same, by the user": "its session was about the same",
}
"""Features as reasons that a person reads."""
_EDGES = ".,:;!?()[]{}`'\"*_#>-"


class Passage(NamedTuple):
    """A passage of a past session that could be given."""

    id: int
    session: str
    at: str
    kind: str
    source: str
    text: str
    terms: str
    """As the full-text index has them."""
    step: str
    message: int
    """The characters of its whole message."""

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self.terms.split())


class Rated(NamedTuple):
    passage: Passage
    words: frozenset[str]
    chance: float
    """How likely the session needs it."""
    reasons: tuple[str, ...]
    """What raises the chance most, in words."""

    def worth(self, tokens: int) -> float:
        return self.chance / (tokens + _FRAME)


def rate(
    passages: Sequence[Passage],
    ages: Mapping[str, int],
    asked: frozenset[str] = frozenset(),
    named: frozenset[str] = frozenset(),
) -> list[Rated]:
    """The passages with their chances.

    `ages` is how many sessions ago each session was; `asked` are the terms of the prompt, and
    `named` those of the names in it.
    """
    rated = []
    for passage, words, features in (
        zip(passages, *zip(*rows(passages, ages, asked, named), strict=True), strict=True)
        if passages
        else ()
    ):
        parts = {
            name: chooser_weights.WEIGHTS.get(name, 0.0) * value for name, value in features.items()
        }
        chance = 1 / (1 + exp(-chooser_weights.BIAS - sum(parts.values())))
        rated.append(Rated(passage, words, chance, _reasons(parts)))
    return rated


def is_lasting(passage: Passage) -> bool:
    """Whether something that the user said may hold for a later session.

    An answer to a question does, and what says how something should be, or why. A question does
    not, but `why are you …?` is a correction; nor does the report of a problem alone, or an order
    such as `make it a bit smaller`. Of text in other letters, only questions are left out.
    """
    text = passage.text
    words = _words(text)
    if is_question(text):
        return not words.isdisjoint(_CUES["asks why"])
    if passage.kind == "answer" or any(each.isalpha() and not each.isascii() for each in text):
        return True
    reports = not words.isdisjoint(_CUES["reports a problem"])
    return not words.isdisjoint(_DEMANDS if reports else _STATES)


def is_question(text: str) -> bool:
    return text.rstrip().endswith(("?", "？", "؟"))


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip(_EDGES) for word in text.lower().replace("’", "'").split())


def rows(
    passages: Sequence[Passage],
    ages: Mapping[str, int],
    asked: frozenset[str],
    named: frozenset[str],
) -> Iterable[tuple[frozenset[str], dict[str, float]]]:
    """The words and the features of each passage."""
    every = [passage.words if asked else frozenset[str]() for passage in passages]
    seen = Counter(word for words in every for word in words & asked)
    rare = {word: log((len(every) + 1) / (seen[word] + 0.5)) for word in seen}
    total = sum(rare.values()) or 1.0
    shared = [sum(rare[word] for word in words & asked) for words in every]
    order = sorted(range(len(every)), key=lambda place: -shared[place])
    ranks = {place: rank for rank, place in enumerate(order)}
    spoken: dict[str, set[str]] = {}
    for passage, words in zip(passages, every, strict=True):
        spoken.setdefault(passage.session, set()).update(words & asked)
    # A prepared context is the same text all day.
    today = clock.day_number(clock.now_ms())
    for place, (passage, words) in enumerate(zip(passages, every, strict=True)):
        features = _form(passage, ages.get(passage.session, len(ages)), today)
        if asked:
            likeness = sum(rare[word] for word in spoken[passage.session]) / total
            covered = len(words & asked) / max(1, len(words))
            features |= {
                "with a prompt": 1.0,
                "after better matches": log(1 + ranks[place]),
                "matches the prompt": shared[place] / total,
                "shares words with the prompt": float(min(8, len(words & asked))),
                "says what the prompt says": covered,
                "shares names with the prompt": float(min(3, len(words & named))),
                "is of a session about the same": likeness,
            }
            if passage.source == "user":
                features |= {
                    "says what the prompt says, by the user": covered,
                    "is of a session about the same, by the user": likeness,
                }
        yield words, features


def _form(passage: Passage, age: int, today: int) -> dict[str, float]:
    """The features that do not depend on the prompt."""
    text = passage.text
    words, first = _words(text), text.lower().partition(" ")[0].strip(_EDGES)
    days = max(0, today - clock.day_number(clock.parse_iso(passage.at) or 0))
    is_by_user = passage.source == "user"
    speaker = "user" if is_by_user else "agent"
    found = {
        **{kind: float(passage.kind == kind) for kind in _KINDS},
        "length": log(1 + len(text)),
        "sessions ago": log(1 + age),
        "days ago": log(1 + days),
        "asks": float(is_question(text)),
        **{f"{cue} ({speaker})": float(not words.isdisjoint(_CUES[cue])) for cue in _CUES},
    }
    if is_by_user:
        message = max(passage.message, len(text))
        return found | {
            "said by the user": 1.0,
            "length of the message": log(1 + message),
            "in a short message": float(message < 400),
            "in a very short message": float(message < 60),
            "sessions ago, by the user": log(1 + age),
            "orders work": float(first in _ORDERS),
            "goes on": float(first in _GOES_ON),
            "has an address": float("://" in text or "localhost" in text),
        }
    return found | {
        "has code": float(min(8, text.count("`") // 2)),
        "leads to something": float(text.rstrip("*_ ").endswith(":")),
        "has headings or marks": float(text.count("**") > 2 or text.startswith("#")),
        "is a table or a list": float(text.count("\n-") + text.count("|") > 3),
    }


def _reasons(parts: Mapping[str, float]) -> tuple[str, ...]:
    best = sorted(
        (name for name in parts if parts[name] > 0 and name in _SAID_AS),
        key=lambda name: -parts[name],
    )
    return tuple(_SAID_AS[name] for name in best[:2])
