"""Prices per token. They change, so they are settings, not a built-in table."""

from collections.abc import Sequence
from typing import NamedTuple

from ctx.errors import ConfigInvalid
from ctx.llm.protocol import Usage


class Price(NamedTuple):
    """Dollars per million tokens."""

    input: float
    output: float


class Prices:
    """Prices by model name prefix; `*` matches every model."""

    def __init__(self, prices: Sequence[tuple[str, Price]]) -> None:
        # The longest prefix wins, `*` comes last.
        self._prices = sorted(prices, key=lambda price: (price[0] == "*", -len(price[0])))

    def cost_micros(self, model: str, usage: Usage) -> int | None:
        """The cost in millionths of a dollar; None without a price for the model."""
        for name, price in self._prices:
            if name == "*" or model.startswith(name):
                cost = usage.input_tokens * price.input + usage.output_tokens * price.output
                return round(cost)
        return None


def prices(settings: Sequence[str]) -> Prices:
    """Parse `llm.prices`: `claude-haiku=1.00/5.00`, dollars per million input and output tokens."""
    parsed = []
    for setting in settings:
        name, _, numbers = setting.partition("=")
        try:
            first, second = (float(number) for number in numbers.split("/"))
        except ValueError:
            first = second = -1.0
        if not name.strip() or not (0 <= first < 1e6 and 0 <= second < 1e6):
            raise ConfigInvalid(
                f"llm.prices: `{setting}` is not a price.",
                hint="`claude-haiku=1.00/5.00` is one: dollars for a million tokens in and out.",
            )
        parsed.append((name.strip(), Price(first, second)))
    return Prices(parsed)
