"""Texts as the table sees them, ready to be added up on the device."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ctx.search import static_embedder


class Texts(NamedTuple):
    """Texts as rows of the table: each piece once, with its weight in the text."""

    rows: Tensor
    weights: Tensor
    begins: Tensor

    @property
    def size(self) -> int:
        return len(self.begins) - 1

    def pooled(self, rows: Tensor, chosen: Tensor) -> Tensor:
        begins, ends = self.begins[chosen], self.begins[chosen + 1]
        lengths = ends - begins
        owner = torch.repeat_interleave(torch.arange(len(chosen), device=rows.device), lengths)
        first = torch.cumsum(lengths, 0) - lengths
        place = torch.arange(len(owner), device=rows.device) - first[owner] + begins[owner]
        parts = rows[self.rows[place]] * self.weights[place][:, None]
        total = torch.zeros(len(chosen), rows.shape[1], device=rows.device)
        return normalize(total.index_add(0, owner, parts))


def read(vocabulary: static_embedder.PieceVocabulary, texts: Iterable[str], device: str) -> Texts:
    rows: list[int] = []
    weights: list[float] = []
    begins = [0]
    for text in texts:
        used = vocabulary.weights(text)
        rows += used
        weights += used.values()
        begins.append(len(rows))
    return Texts(
        torch.tensor(rows, dtype=torch.int32, device=device).long(),
        torch.tensor(weights, dtype=torch.float32, device=device),
        torch.tensor(begins, device=device),
    )
