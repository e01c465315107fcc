"""What an agent proposed, and which option the user picked."""

import re

from ctx.synthesis.timeline import ChatMessage

_POINTING = re.compile(
    r"(?:go with|use|do|keep|take|stick (?:with|to)|choose|pick|(?:decided|chose|agreed)(?: on"
    r"| to)?)?\s*(?:that|this|it|them|these|those|option (?P<option>[0-9a-d]|one|two|three)"
    r"|(?:the )?(?P<which>first|second|third|last|former|latter|other|same)(?: one| option"
    r"| approach| way)?|(?:that|this) (?:one|option|approach|way|instead))(?: then| please"
    r"| instead| for now)?[\s.!,]*\Z",
    re.IGNORECASE,
)
_PROPOSES = re.compile(
    r"(?:i(?:'d|’d| would)? (?:suggest|recommend|propose)(?: that we| to| we)?|my (?:suggestion"
    r"|recommendation|proposal)(?: is|:)(?: to)?|we could|i could|i can|shall (?:i|we)"
    r"|should (?:i|we)|(?:do you )?want me to|would you like me to|option [0-9a-d]:?)\s+",
    re.IGNORECASE,
)
_OPTION = re.compile(r"option [0-9a-d]\s*[:–—-]*\s*", re.IGNORECASE)
_ONLY_ASKS = re.compile(
    r"(?:shall|should|want|would|do) .{0,20}\b(?:proceed|go ahead|continue|start|begin|do (?:that"
    r"|it|this|so))\b.{0,20}\Z",
    re.IGNORECASE,
)
_PICKS = re.compile(
    r"(?:(?:let(?:'s|’s|s) )?(?:go with|use|take|pick|do) |i(?:'d|’d| would)? (?:prefer|take"
    r"|go with) )?"
    r"(?:(?:option|number) (?P<option>[1-9a-d]|one|two|three)|(?:the )?(?P<which>first|second|third"
    r"|last|former|latter|[1-9a-d])(?: one| option| approach)?)(?=[.,;:!)]|\Z| please| but"
    r"| because)"
    r"(?P<rest>.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_NUMBERS = {"one": 0, "two": 1, "three": 2, "first": 0, "second": 1, "third": 2, "former": 0}
_BETWEEN = " ,;:.!–—-"
_LAST = frozenset({"last", "latter", "other"})


def points(text: str) -> bool:
    """Whether a sentence only refers to an earlier proposal: `use the second one`."""
    return _POINTING.match(text) is not None


def find_proposal(message: ChatMessage, pointing: str) -> str:
    """The proposal of a message, or the option that `pointing` refers to; empty if none."""
    found = _POINTING.match(pointing) if pointing else None
    number = _number(found) if found else None
    if number is not None:
        return _option(message, number)
    every = [each.text for each in message.sentences if _PROPOSES.match(each.text)]
    telling = [text for text in every if not _ONLY_ASKS.match(text)]
    return _PROPOSES.sub("", telling[-1], count=1) if telling else ""


def picked_option(message: ChatMessage, text: str) -> tuple[str, str]:
    """The option that a sentence picks, and its comment on it; empty if none."""
    found = _PICKS.match(text)
    number = _number(found) if found else None
    if found is None or number is None:
        return "", ""
    rest = found["rest"].strip(_BETWEEN).removeprefix("please").strip(_BETWEEN)
    return _option(message, number), rest.removeprefix("and ")


def _option(message: ChatMessage, number: int) -> str:
    options = [each.text for each in message.sentences if each.is_item and each.starts] or [
        each.text for each in message.sentences if _OPTION.match(each.text)
    ]
    is_there = -len(options) <= number < len(options)
    return _OPTION.sub("", options[number], count=1) if is_there else ""


def _number(pointing: re.Match[str]) -> int | None:
    option, which = pointing["option"], pointing["which"]
    word = (option or which or "").lower()
    if word in _LAST:
        return -1
    if word in _NUMBERS:
        return _NUMBERS[word]
    if word.isdigit():
        return int(word) - 1 if word != "0" else None
    return ord(word) - ord("a") if len(word) == 1 else None
