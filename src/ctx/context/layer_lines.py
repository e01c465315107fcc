"""Lines of a layer: as many as there is room for, each as long as there is room for.

Each line has shorter forms. Lines become shorter before they are left out, from the last to the
first. Nothing in a line can leave it, whoever wrote it.

Hooks load this module.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from ctx import tokens
from ctx.context.contexts import CODE, LEARNINGS, PAST_WORK, SESSIONS, Item
from ctx.ids import NodeId
from ctx.markdown import code, flat

HEADINGS = {
    SESSIONS: "## Recent Sessions",
    CODE: "## Recently Changed Code",
    LEARNINGS: "## Project Knowledge",
    PAST_WORK: "## Relevant Past Work",
}


_TELLING = 12
"""Characters of a title that nobody says by chance."""


class Line(NamedTuple):
    """One item of a layer: a node, or a changed item of code."""

    id: str
    label: str
    updated_at: str
    digest: str
    texts: tuple[str, ...]
    """What it says, the longest form first."""
    group: str = ""
    """The line above it that it shares with others: of an item of code its file."""
    title: str = ""
    """By which it is seen that another layer has said it already."""

    def said_by(self, author: str) -> "Line":
        """With the name of whoever wrote it, where that is somebody else."""
        texts = tuple(f"- {author}{each.removeprefix('- ')}" for each in self.texts)
        return self._replace(texts=texts) if author else self


class Layer(NamedTuple):
    name: str
    lines: tuple[Line, ...]
    left_out: int = 0
    """How many more there are, as far as somebody has counted."""
    problem: str = ""

    def without(self, keys: Iterable[str], said: str = "") -> "Layer":
        """The same without what was shown before."""
        known = set(keys)
        lines = tuple(
            each
            for each in self.lines
            if _key(self.name, each) not in known
            and each.id not in known
            and not (len(each.title) >= _TELLING and each.title.casefold() in said)
        )
        return self._replace(lines=lines)

    def only(self, keys: Iterable[str]) -> "Layer":
        known = set(keys)
        return self._replace(
            lines=tuple(each for each in self.lines if _key(self.name, each) in known)
        )


class Fitted(NamedTuple):
    text: str
    tokens: int
    items: tuple[Item, ...]
    left_out: int


def wanted(layer: Layer) -> int:
    """The tokens that a layer takes where nothing is left out of it."""
    return _sum(layer, [0] * len(layer.lines)) if layer.lines else 0


def fit(layer: Layer, most: int) -> Fitted:
    """As much of a layer as there is room for."""
    forms = max((len(each.texts) for each in layer.lines), default=1)
    chosen: list[int] = []
    for form in range(forms):
        chosen = [min(form, len(each.texts) - 1) for each in layer.lines]
        if _sum(layer, chosen) <= most:
            break
    while chosen and _sum(layer, chosen) > most:
        chosen.pop()
    if not chosen:
        return Fitted("", 0, (), len(layer.lines) + layer.left_out)
    used = _sum(layer, chosen)
    for at, form in enumerate(chosen):
        texts = layer.lines[at].texts
        for longer in range(form):
            more = _cost(texts[longer]) - _cost(texts[form])
            if used + more <= most:
                chosen[at] = longer
                used += more
                break
    return _written(layer, chosen, used)


def _written(layer: Layer, chosen: Sequence[int], used: int) -> Fitted:
    parts = [f"{HEADINGS[layer.name]}\n"]
    items: list[Item] = []
    group = ""
    for line, form in zip(layer.lines, chosen, strict=False):
        text = line.texts[form]
        if line.group and line.group == group:
            items[-1] = items[-1]._replace(tokens=items[-1].tokens + _cost(text))
        else:
            group = line.group
            parts += [f"{group}\n"] if group else []
            cost = _cost(text) + (_cost(group) if group else 0)
            node_id = NodeId(line.id)  # type: ignore[arg-type]
            items.append(Item(node_id, line.label, line.updated_at, cost, line.digest, layer.name))
        parts.append(f"{text}\n")
    left_out = len(layer.lines) - len(chosen) + layer.left_out
    return Fitted("".join(parts) + "\n", used, tuple(items), left_out)


def _sum(layer: Layer, chosen: Sequence[int]) -> int:
    """What the first lines take in these forms, with the headings above them."""
    total = tokens.estimate(f"{HEADINGS[layer.name]}\n\n")
    group = ""
    for line, form in zip(layer.lines, chosen, strict=False):
        if line.group and line.group != group:
            group = line.group
            total += _cost(group)
        total += _cost(line.texts[form])
    return total


def _cost(text: str) -> int:
    return tokens.estimate(f"{text}\n")


def _key(name: str, line: Line) -> str:
    return f"{name}:{line.id or line.label}"


def cut(text: str, most: int) -> str:
    """The beginning of a line, whole words of it."""
    if len(text) <= most:
        return text
    begun = text[:most]
    words = begun.rpartition(" ")[0]
    return f"{(words if len(words) > most // 2 else begun).rstrip(' ,;:.')}…"


def sentence(text: str) -> str:
    """With a point at its end."""
    return text if not text or text[-1] in ".:!?…" else f"{text}."


def digest(text: str) -> str:
    """By which it is seen whether a line says something else than before."""
    return f"{crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def plain(text: str) -> str:
    """A line that stands without a label before it, and is not taken for anything else."""
    line = flat(text)
    return line if line[:1].isalpha() or line[:1] in ("_", "/", ".", "@") else code(line)
