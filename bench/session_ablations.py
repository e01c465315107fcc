"""What memory of sessions would be without one detector, and a context without one layer.

A detector is what makes one kind of node: rules, decisions, fixes, the summary. Its nodes are taken
out of what memory kept, and the labels are compared with the rest. A layer is one section of the
context, or what comes with the first prompt. Nothing takes the place of what is taken out.

The same table has baselines, from the same run and with the same number of tokens.
"""

import importlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

USER_KINDS = ("correction", "preference", "constraint")
FIRST_PROMPT = "first prompt"


class Judged(NamedTuple):
    """A label, and what of memory matches it."""

    kind: str
    is_wanted: bool
    """Whether memory should have it; otherwise it must not."""
    sources: frozenset[str]
    """The detectors or layers with a text that matches."""
    baselines: frozenset[str]
    """The baselines that match."""


class Part(NamedTuple):
    """The texts of one session, or of one start, and its labels."""

    sizes: Mapping[str, int]
    """How many nodes each detector made, or how many tokens each layer took."""
    labels: tuple[Judged, ...]


class Kit:
    """The functions of the measuring kit that judge texts."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder))
        try:
            gold = importlib.import_module("gold")
            product = importlib.import_module("product")
        finally:
            sys.path.remove(str(folder))
        self.plain: Callable[[str], str] = gold.plain
        self.hit: Callable[[Mapping[str, Any], Sequence[str]], str | None] = gold.hit
        self.blocks: Callable[[str], list[str]] = product.blocks
        self.items: Callable[[str], list[tuple[str, str]]] = product.context_items
        self.tokens: Callable[[str], int] = product.tokens
        self.labels = [json.loads(path.read_text()) for path in folder.glob("gold/*.json")]


def sessions(kit: Kit, results: Iterable[Mapping[str, Any]]) -> list[Part]:
    """What memory kept of the labelled sessions, by detector."""
    found = []
    for sid, evidence, label in _labelled(kit, results, "sessions"):
        kinds = [_detector(kind) for kind in evidence["kinds"]]
        pieces = [
            (kind, kit.plain(piece))
            for kind, text in zip(kinds, evidence["nodes"], strict=True)
            for piece in kit.blocks(text)
        ]
        final = {each["what"]: each["final"] for each in sid["keep"]}
        judged = _judged(kit, label, "keep", pieces)
        labels = [
            each._replace(baselines=frozenset({"final message"} if final.get(what) else ()))
            for what, each in judged
        ]
        sizes = {kind: kinds.count(kind) for kind in kinds}
        found.append(Part(sizes, tuple(labels)))
    return found


def starts(kit: Kit, results: Iterable[Mapping[str, Any]]) -> list[Part]:
    """What the labelled starts were given, by layer."""
    found = []
    for sid, evidence, label in _labelled(kit, results, "starts"):
        first = evidence["hints"][0][0] if evidence["hints"] else ""
        given = list(zip(evidence["sections"], evidence["pieces"]["context"], strict=True))
        sizes: dict[str, int] = {}
        for section, text in given:
            sizes[section] = sizes.get(section, 0) + kit.tokens(text)
        sizes["frame"] = evidence["tokens"]["context"] - sum(sizes.values())
        if first:
            given += [(FIRST_PROMPT, text) for _, text in kit.items(f"## Hints\n{first}")]
            sizes[FIRST_PROMPT] = kit.tokens(first)
        pieces = [(section, kit.plain(text)) for section, text in given]
        by = {each["what"]: each["by"] for each in (*sid["needed"], *sid["must_not"])}
        labels = [
            each._replace(
                baselines=frozenset(
                    name for name, text in by.get(what, {}).items() if text is not None
                )
            )
            for what, each in _judged(kit, label, "needed", pieces)
        ]
        found.append(Part(sizes, tuple(labels)))
    return found


def _labelled(
    kit: Kit, results: Iterable[Mapping[str, Any]], kind: str
) -> Iterable[tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]]:
    """The result, the evidence and the label of each labelled session or start."""
    for result in results:
        labels = [label for gold in kit.labels for label in gold.get(kind, ())]
        for each in result[kind]:
            label = next((one for one in labels if each["sid"].startswith(one["sid"])), None)
            if label is not None:
                yield each, result["evidence"][kind][each["sid"]], label


def _judged(
    kit: Kit, label: Mapping[str, Any], wanted: str, pieces: Sequence[tuple[str, str]]
) -> list[tuple[str, Judged]]:
    found = []
    for name in (wanted, "must_not"):
        for each in label.get(name, ()):
            sources = frozenset(source for source, text in pieces if kit.hit(each, [text]))
            judged = Judged(each.get("kind", ""), name == wanted, sources, frozenset())
            found.append((each["what"], judged))
    return found


def _detector(kind: str) -> str:
    return "learning" if kind.startswith("learning:") else kind.removeprefix("kind:")


def kept_table(parts: Sequence[Part]) -> list[str]:
    """What is kept without each detector, and by each alone."""
    every = sorted({kind for part in parts for kind in part.sizes})
    labels = [label for part in parts for label in part.labels]
    of_user = [label for label in labels if label.kind in USER_KINDS]

    def row(name: str, sources: frozenset[str]) -> str:
        nodes = sum(part.sizes.get(kind, 0) for part in parts for kind in sources)
        return (
            f"{name:<32}{_share(labels, sources):>8.1f}{_share(of_user, sources):>10.1f}"
            f"{_wrong(labels, sources):>10}{nodes / max(1, len(parts)):>10.1f}"
        )

    whole = frozenset(every)
    final = [label._replace(sources=label.baselines) for label in labels]
    return [
        f"{'kept, % of labels':<32}{'all':>8}{'by users':>10}{'must-not':>10}{'nodes':>10}",
        row("all detectors", whole),
        *(row(f"  without {kind}", whole - {kind}) for kind in every),
        *(row(f"  only {kind}", frozenset({kind})) for kind in every),
        f"{'baseline: the final message':<32}{_share(final, frozenset({'final message'})):>8.1f}",
    ]


def given_table(parts: Sequence[Part], results: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is given without each layer, and by each alone."""
    every = list(dict.fromkeys(name for part in parts for name in part.sizes if name != "frame"))
    labels = [label for part in parts for label in part.labels]

    def row(name: str, sources: frozenset[str]) -> str:
        tokens = sum(part.sizes.get(each, 0) for part in parts for each in sources)
        return (
            f"{name:<44}{_share(labels, sources):>8.1f}{_wrong(labels, sources):>10}"
            f"{tokens / max(1, len(parts)):>10.0f}"
        )

    whole = frozenset((*every, "frame"))
    names = [name for name in baselines(results) if not name.startswith("context")]
    by = [label._replace(sources=label.baselines) for label in labels]
    answered = sum(FIRST_PROMPT in part.sizes for part in parts)
    return [
        f"{'needed given, % of labels':<44}{'':>8}{'must-not':>10}{'tokens':>10}",
        row("context and first prompt", whole),
        row("context", whole - {FIRST_PROMPT}),
        *(row(f"  without {name}", whole - {name}) for name in every),
        *(row(f"  only {name}", frozenset({name})) for name in every),
        *(
            f"{f'baseline: {name}':<44}{_share(by, frozenset({name})):>8.1f}"
            f"{_wrong(by, frozenset({name})):>10}{_mean_tokens(results, name):>10.0f}"
            for name in names
        ),
        # On a busy machine, the hook may not answer in time.
        f"{'starts with an answer to the first prompt':<44}{answered:>8} of {len(parts)}",
    ]


def _share(labels: Sequence[Judged], sources: frozenset[str]) -> float:
    wanted = [label for label in labels if label.is_wanted]
    return 100 * sum(bool(label.sources & sources) for label in wanted) / max(1, len(wanted))


def _wrong(labels: Sequence[Judged], sources: frozenset[str]) -> int:
    return sum(bool(label.sources & sources) for label in labels if not label.is_wanted)


def baselines(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of what was given in the same run."""
    starts = [each for result in results for each in result["starts"]]
    return list(starts[0]["tokens"]) if starts else []


def _mean_tokens(results: Sequence[Mapping[str, Any]], system: str) -> float:
    starts = [each for result in results for each in result["starts"]]
    return float(sum(each["tokens"][system] for each in starts)) / max(1, len(starts))
