"""How well a table finds things together with BM25: by that one is chosen.

A folder with `locomo*.json` and `beam*.json` (conversations with questions and the turns that
answer them), and functions of packages that the table was not trained on.
"""

import json
import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from pairs import Pair
from teacher import Teacher
from texts import Texts, read
from torch import Tensor

from ctx import terms
from ctx.search import static_embedder

TEXT, VECTORS = 0.4, 0.6
FUNCTIONS = 1_000


class History(NamedTuple):
    units: Sequence[str]
    questions: Sequence[str]
    answers: Sequence[set[int]]


class Questions(NamedTuple):
    """A history, read once; only the rows differ from table to table."""

    bm25: Tensor
    units: Texts
    questions: Texts
    answers: Sequence[set[int]]
    taught: Tensor


class Judge:
    def __init__(
        self,
        folder: Path,
        vocabulary: static_embedder.PieceVocabulary,
        held_out: Sequence[Pair],
        teacher: Teacher,
    ) -> None:
        chance = random.Random(0)
        chosen = chance.sample(list(held_out), min(FUNCTIONS, len(held_out)))
        functions = History(
            [pair.text for pair in chosen],
            [pair.about for pair in chosen],
            [{place} for place in range(len(chosen))],
        )
        sets = {
            "locomo": list(locomo(next(folder.glob("locomo*.json")))),
            "beam": list(beam(next(folder.glob("beam*.json")))),
            "code": [functions],
        }
        self.sets = {
            name: [
                Questions(
                    bm25(each.units, each.questions).to(teacher.device),
                    read(vocabulary, each.units, teacher.device),
                    read(vocabulary, each.questions, teacher.device),
                    each.answers,
                    (teacher.embed(each.questions) @ teacher.embed(each.units).T).to(
                        teacher.device
                    ),
                )
                for each in histories
            ]
            for name, histories in sets.items()
        }

    def verdict(self, rows: Tensor) -> str:
        return " ".join(
            f"{name} {self.fused(name, rows):5.2f} ({self.alone(name, rows):5.2f})"
            for name in self.sets
        )

    def bounds(self) -> str:
        said = []
        for name, histories in self.sets.items():
            plain = mean([score(name, each.bm25, each.answers) for each in histories])
            fused = mean(
                [score(name, joined(each.bm25, each.taught), each.answers) for each in histories]
            )
            alone = mean([score(name, each.taught, each.answers) for each in histories])
            said.append(f"{name}: bm25 {plain:.2f}, with the teacher {fused:.2f} ({alone:.2f})")
        return "\n".join(said)

    def fused(self, name: str, rows: Tensor) -> float:
        return mean(
            [score(name, joined(h.bm25, near(h, rows)), h.answers) for h in self.sets[name]]
        )

    def alone(self, name: str, rows: Tensor) -> float:
        return mean([score(name, near(h, rows), h.answers) for h in self.sets[name]])


def near(asked: Questions, rows: Tensor) -> Tensor:
    every = [torch.arange(each.size, device=rows.device) for each in (asked.questions, asked.units)]
    return asked.questions.pooled(rows, every[0]) @ asked.units.pooled(rows, every[1]).T


def joined(text: Tensor, vectors: Tensor) -> Tensor:
    text = text / text.amax(1, keepdim=True).clamp(min=1e-9)
    vectors = vectors.clamp(min=0)
    return TEXT * text + VECTORS * vectors / vectors.amax(1, keepdim=True).clamp(min=1e-9)


def mean(found: Sequence[list[float]]) -> float:
    every = [each for part in found for each in part]
    return 100 * sum(every) / max(1, len(every))


def score(name: str, scores: Tensor, answers: Sequence[set[int]]) -> list[float]:
    ranked = scores.argsort(1, descending=True).tolist()
    if name == "code":
        return [
            1 / (order.index(min(gold)) + 1) for order, gold in zip(ranked, answers, strict=True)
        ]
    return [
        len(gold & set(order[:10])) / len(gold) for order, gold in zip(ranked, answers, strict=True)
    ]


def bm25(units: Sequence[str], questions: Sequence[str]) -> Tensor:
    counted = [Counter(terms.extract(unit)) for unit in units]
    lengths = [sum(each.values()) for each in counted]
    average = sum(lengths) / max(1, len(lengths))
    postings: dict[str, list[tuple[int, int]]] = {}
    for place, each in enumerate(counted):
        for term, count in each.items():
            postings.setdefault(term, []).append((place, count))
    scores = torch.zeros(len(questions), len(units))
    for row, question in enumerate(questions):
        for term in terms.query(question):
            found = postings.get(term, ())
            idf = math.log(1 + (len(units) - len(found) + 0.5) / (len(found) + 0.5))
            for place, count in found:
                norm = 1.2 * (0.25 + 0.75 * lengths[place] / average)
                scores[row, place] += idf * count * 2.2 / (count + norm)
    return scores


def locomo(path: Path) -> Iterator[History]:
    for sample in json.loads(path.read_text("utf-8")):
        talk = sample["conversation"]
        units: dict[str, str] = {}
        for name in sorted(talk):
            if re.fullmatch(r"session_\d+", name):
                for turn in talk[name]:
                    seen = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
                    units[turn["dia_id"]] = f"{turn['speaker']}: {turn['text']}{seen}"
        places = {name: place for place, name in enumerate(units)}
        asked = []
        for each in sample["qa"]:
            named = re.findall(r"D\d+:\d+", " ".join(each.get("evidence", [])))
            if gold := {places[name] for name in named if name in places}:
                asked.append((each["question"], gold))
        yield History(list(units.values()), [q for q, _ in asked], [a for _, a in asked])


def beam(path: Path) -> Iterator[History]:
    for sample in json.loads(path.read_text("utf-8")):
        units: list[str] = []
        place_of: dict[int, int] = {}
        for batch in sample["chat"]:
            for turn in batch["turns"]:
                for begin, message in enumerate(turn):
                    if message["role"] == "user" or begin == 0:
                        units.append("")
                    units[-1] += re.sub(r"->->.*", "", message.get("content") or "") + "\n"
                    place_of[message["id"]] = len(units) - 1
        asked = []
        for kind, questions in sample["probing_questions"].items():
            for each in questions if kind != "abstention" else ():
                gold = {place_of[i] for i in numbers(each.get("source_chat_ids")) if i in place_of}
                if gold:
                    asked.append((each["question"], gold))
        yield History(units, [q for q, _ in asked], [a for _, a in asked])


def numbers(value: object) -> Iterator[int]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as found:
                waiting += found.values()
            case list() as found:
                waiting += found
            case int() as found:
                yield found
