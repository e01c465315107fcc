"""Fits the lines of a layer into a number of tokens.

Each line has shorter forms. Lines are shortened before they are left out, from the last to the
first. No text can break out of its line.

Hooks load this module.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from ctx import tokens
from ctx.context.contexts import (
    BEFORE_EDIT,
    COMMANDS,
    RULES,
    SESSIONS,
    STANDING,
    WORDS,
    ContextItem,
)
from ctx.ids import NodeId
from ctx.markdown import code, flat
from ctx.memory import sources

HEADINGS = {
    STANDING: "## Where things stand",
    RULES: "## Rules and corrections",
    WORDS: "## What the user said",
    SESSIONS: "## Recent Sessions",
    COMMANDS: "## Commands that work here",
    BEFORE_EDIT: "## Before you edit",
}


_BY_THE_USER = "by the user"
"""What synthesis writes below a decision of the user."""
_DISTINCTIVE_LENGTH = 12
"""A title of so many characters does not occur in other text by chance."""


class LayerLine(NamedTuple):
    """One item of a layer: a node, a message or a command."""

    id: str
    label: str
    updated_at: str
    digest: str
    texts: tuple[str, ...]
    """The forms of its text, longest first."""
    title: str = ""
    """If an earlier layer contains this title, the line is left out."""
    reason: str = ""
    """Why it was chosen, if not for its layer alone."""

    def with_author(self, author: str) -> "LayerLine":
        """The line with the name of its author, if that is somebody else."""
        texts = tuple(f"- {author}{each.removeprefix('- ')}" for each in self.texts)
        return self._replace(texts=texts) if author else self


class Layer(NamedTuple):
    name: str
    lines: tuple[LayerLine, ...]
    left_out: int = 0
    """How many more there are, as far as counted."""
    problem: str = ""

    def without(self, keys: Iterable[str], said: str = "") -> "Layer":
        """The layer without what was shown before."""
        known = set(keys)
        lines = tuple(
            each
            for each in self.lines
            if _key(self.name, each) not in known
            and each.id not in known
            and not (len(each.title) >= _DISTINCTIVE_LENGTH and each.title.casefold() in said)
        )
        return self._replace(lines=lines)

    def only(self, keys: Iterable[str]) -> "Layer":
        known = set(keys)
        return self._replace(
            lines=tuple(each for each in self.lines if _key(self.name, each) in known)
        )


class FittedLayer(NamedTuple):
    text: str
    tokens: int
    items: tuple[ContextItem, ...]
    left_out: int
    texts: tuple[str, ...] = ()
    """The text of each item."""
    reasons: tuple[str, ...] = ()
    omitted: tuple[LayerLine, ...] = ()
    """The lines for which there is no room."""


def layer_tokens(layer: Layer) -> int:
    """The tokens of a whole layer."""
    return _sum(layer, [0] * len(layer.lines)) if layer.lines else 0


def fit(layer: Layer, most: int) -> FittedLayer:
    """As much of a layer as fits into `most` tokens."""
    forms = max((len(each.texts) for each in layer.lines), default=1)
    chosen: list[int] = []
    for form in range(forms):
        chosen = [min(form, len(each.texts) - 1) for each in layer.lines]
        if _sum(layer, chosen) <= most:
            break
    while chosen and _sum(layer, chosen) > most:
        chosen.pop()
    if not chosen:
        count = len(layer.lines) + layer.left_out
        return FittedLayer("", 0, (), count, omitted=layer.lines)
    used = _sum(layer, chosen)
    for at, form in enumerate(chosen):
        texts = layer.lines[at].texts
        for longer in range(form):
            more = _cost(texts[longer]) - _cost(texts[form])
            if used + more <= most:
                chosen[at] = longer
                used += more
                break
    return _render_layer(layer, chosen, used)


def _render_layer(layer: Layer, chosen: Sequence[int], used: int) -> FittedLayer:
    shown, omitted = layer.lines[: len(chosen)], layer.lines[len(chosen) :]
    texts = tuple(line.texts[form] for line, form in zip(shown, chosen, strict=True))
    items = tuple(
        ContextItem(
            NodeId(line.id),  # type: ignore[arg-type]
            *(line.label, line.updated_at, _cost(text), line.digest, layer.name),
        )
        for line, text in zip(shown, texts, strict=True)
    )
    text = "\n".join([HEADINGS[layer.name], *texts, "", ""])
    reasons = tuple(line.reason for line in shown)
    return FittedLayer(text, used, items, len(omitted) + layer.left_out, texts, reasons, omitted)


def _sum(layer: Layer, chosen: Sequence[int]) -> int:
    """The tokens of the first lines in these forms, with their headings."""
    return tokens.estimate(f"{HEADINGS[layer.name]}\n\n") + sum(
        _cost(line.texts[form]) for line, form in zip(layer.lines, chosen, strict=False)
    )


def _cost(text: str) -> int:
    return tokens.estimate(f"{text}\n")


def _key(name: str, line: LayerLine) -> str:
    return f"{name}:{line.id or line.label}"


def cut(text: str, most: int) -> str:
    """The beginning of a line, cut between words."""
    if len(text) <= most:
        return text
    begun = text[:most]
    words = begun.rpartition(" ")[0]
    kept = (words if len(words) > most // 2 else begun).rstrip(" ,;:.…")
    # A quotation of what a program printed ends with the text.
    is_quoted = kept.count('"') % 2 and not text.count('"') % 2
    return f'{kept}…"' if is_quoted else f"{kept}…"


def marked(text: str, source: str, lengths: Sequence[int]) -> list[str]:
    """The forms of a text about past work. It is an agent's, unless it is marked."""
    cuts = [cut(text, length) for length in lengths]
    if sources.is_data(source):
        return [f'({source}) "{each}"' for each in cuts]
    is_marked = source == sources.USER and _BY_THE_USER not in text
    return [f"({source}) {each}" for each in cuts] if is_marked else cuts


def sentence(text: str) -> str:
    """The text with a full stop at its end."""
    return text if not text or text[-1] in ".:!?…" else f"{text}."


def digest(text: str) -> str:
    """A checksum that changes with the text of a line."""
    return f"{crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def plain(text: str) -> str:
    """A text as a line that cannot be read as markdown syntax."""
    line = flat(text)
    return line if line[:1].isalpha() or line[:1] in ("_", "/", ".", "@") else code(line)


class LayerLimits(NamedTuple):
    """The limits of each layer: tokens, for a budget of 2,000, and items."""

    standing: int = 130
    rules: int = 180
    words: int = 760
    commands: int = 160
    sessions: int = 80
    most_sessions: int = 10
    most_commands: int = 8
