"""Fits the weights of `ctx.context.chooser` to labelled starts.

Examples are what the product rates: what the user said, as at a start, and what matches the first
prompt. Right are passages that say a needed thing, and those that readers graded useful.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ctx.context import chooser_weights

_REGULARITY = 0.01
_LEAST_USES = 30
"""A feature that fewer examples have has no weight."""


class Example(NamedTuple):
    features: Mapping[str, float]
    is_right: bool
    weight: float


class Weights(NamedTuple):
    bias: float
    weights: dict[str, float]

    def use(self) -> None:
        chooser_weights.BIAS = self.bias
        chooser_weights.WEIGHTS = self.weights


def fit(examples: Sequence[Example]) -> Weights:
    numpy: Any = importlib.import_module("numpy")
    linear = importlib.import_module("sklearn.linear_model")
    names = sorted({name for each in examples for name in each.features})
    table = numpy.array(
        [[each.features.get(name, 0.0) for name in names] for each in examples], dtype="f4"
    )
    used = (table != 0).sum(0) >= _LEAST_USES
    names = [name for name, is_used in zip(names, used, strict=True) if is_used]
    table = table[:, used]
    mean, spread = table.mean(0), table.std(0) + 1e-6
    model = linear.LogisticRegression(C=_REGULARITY, max_iter=500).fit(
        (table - mean) / spread,
        [each.is_right for each in examples],
        sample_weight=[each.weight for each in examples],
    )
    per_unit = model.coef_[0] / spread
    bias = float(model.intercept_[0] - (per_unit * mean).sum())
    return Weights(bias, dict(zip(names, map(float, per_unit), strict=True)))


def as_module(fitted: Weights, starts: int, projects: int) -> str:
    lines = "".join(f'    "{name}": {value:.3f},\n' for name, value in fitted.weights.items())
    source = f"Fitted by `scripts/fit-chooser` to {starts} labelled starts of {projects} projects."
    about = f'"""The weights of `chooser`.\n\n{source}\n"""'
    return f"{about}\n\nBIAS = {fitted.bias:.3f}\nWEIGHTS = {{\n{lines}}}\n"
